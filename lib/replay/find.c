/* Which row evaluates an operator. */
#include "replay/impl.h"

static const struct acc_op *const tables[] = {
#define TABLE(name) acc_ops_##name,
#include "replay/table.h"
#undef TABLE
};

bool
acc_word_in(const char *words, struct acc_str name)
{
	while (*words != '\0') {
		size_t n = strcspn(words, " ");
		if (n == name.n && memcmp(words, name.p, n) == 0)
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

/* Functional.linear, Tensor.__add__, Aten.add.Tensor, NPU.npu_rms_norm, Module.a.b.Linear,
 * Mint.add, MintFunctional.relu, Primitive.norm.RmsNorm: the operator's own name. */
struct acc_str
acc_op_name(struct acc_str op, char *buf, size_t size)
{
	bool aten = acc_str_starts(op, "Aten."), last = acc_str_starts(op, "Module.") ||
		acc_str_starts(op, "Cell.") || acc_str_starts(op, "Primitive.");
	uint32_t dot = 0;
	for (uint32_t i = 0; i < op.n && (last || dot == 0); i++)
		if (op.p[i] == '.')
			dot = i + 1;
	op.p += dot;
	op.n -= dot;
	for (uint32_t i = 0; aten && i < op.n; i++)
		if (op.p[i] == '.')
			op.n = i;
	while (op.n > 1 && op.p[op.n - 1] == '_')
		op.n--;
	while (op.n > 1 && op.p[0] == '_') {
		op.p++;
		op.n--;
	}
	if (op.n >= size)
		op.n = (uint32_t)size - 1;
	memcpy(buf, op.p, op.n);
	buf[op.n] = '\0';
	return (struct acc_str){buf, op.n};
}

const struct acc_op *
acc_op_find(struct acc_str op)
{
	char buf[128];
	struct acc_str name = acc_op_name(op, buf, sizeof buf);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct acc_op *row = tables[i]; row->names != NULL; row++)
			if (acc_word_in(row->names, name))
				return row;
	return NULL;
}

const struct acc_op *
acc_op_row(size_t i)
{
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct acc_op *row = tables[t]; row->names != NULL; row++)
			if (i-- == 0)
				return row;
	return NULL;
}
