/* Which row evaluates an operator. */
#include "acc/op.h"
#include "replay/impl.h"

static const struct acc_op *const tables[] = {
#define TABLE(name) acc_ops_##name,
#include "replay/table.h"
#undef TABLE
};

/* Its own name in the catalogue, if that lists it by this very name; else empty. Modules,
 * primitives (LayerNorm) and torch_npu's operators (npu_rms_norm) have signatures of their own. */
static struct acc_str
own_name(struct acc_str op, struct acc_str name)
{
	const struct acc_op_info *o = acc_op_info_of(op);
	return o != NULL && acc_word_in(o->names, name) ? acc_op_own_name(o)
							: (struct acc_str){"", 0};
}

/* What engines call operators that take the same in the same order: OpenVINO, ggml, StableHLO and lax. */
static struct acc_str
of_engine(struct acc_str name)
{
	static const struct {
		const char *names, *ours;
	} rows[] = {{"Multiply multiply MUL", "mul"}, {"Subtract subtract SUB", "sub"},
		{"Divide divide DIV", "div"}, {"ADD", "add"}, {"Power power", "pow"},
		{"Negative negate NEG", "neg"}, {"EXP", "exp"}, {"logistic SIGMOID", "sigmoid"},
		{"Swish SILU", "silu"}, {"TANH", "tanh"}, {"RELU", "relu"}, {"SQRT", "sqrt"},
		{"SQR", "square"}, {"concatenate CONCAT", "Concat"}, {"RESHAPE CONT", "contiguous"},
		{"OUT_PROD", "outer"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (acc_word_in(rows[i].names, name))
			return acc_str(rows[i].ours);
	return name;
}

static const struct acc_op *
search(struct acc_str op)
{
	struct acc_str name = of_engine(acc_op_name(op)), own = own_name(op, name);
	const struct acc_op *found = NULL;
	/* Their weight and bias come first, torch.nn.functional's last. */
	const bool batch = acc_str_is(name, "batch_norm");
	if ((batch || acc_str_is(name, "instance_norm")) && acc_str_starts(op, "aten"))
		return search(acc_str(batch ? "native_batch_norm" : "InstanceNormalization"));
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct acc_op *row = tables[i]; row->names != NULL; row++) {
			if (acc_word_in(row->names, name))
				return row;
			if (own.n > 0 && acc_word_in(row->names, own))
				found = row;
		}
	/* Each model of transformers has a class of its own for it. */
	static const char any[] = "*RMSNorm";
	if (found == NULL && acc_op_is_module(op) && acc_str_ends(name, any + 1))
		return search(acc_str(any));
	return found;
}

/* Arguments of one call ask for it in turn, and a network has few operators: all rows are gone through where none
 * has the name. */
const struct acc_op *
acc_op_find(struct acc_str op)
{
	enum { FEW = 64, TRIES = 8 };
	static _Thread_local struct {
		const struct acc_op *row;
		uint32_t n; /* 0: free */
		char name[52];
	} found[FEW];
	if (op.n == 0 || op.n > sizeof found->name)
		return search(op);
	const uint64_t hash = acc_hash(op.p, op.n);
	uint64_t at = hash % FEW;
	for (unsigned i = 0; i < TRIES && found[at].n > 0; i++, at = (at + 1) % FEW)
		if (op.n == found[at].n && memcmp(op.p, found[at].name, op.n) == 0)
			return found[at].row;
	if (found[at].n > 0)
		at = hash % FEW;
	found[at].row = search(op);
	memcpy(found[at].name, op.p, op.n);
	found[at].n = op.n;
	return found[at].row;
}

const struct acc_op *
acc_op_of_call(const struct acc_audit_job *j)
{
	const struct acc_op *op = acc_op_find(j->op);
	uint32_t n = 0;
	const struct acc_value *x = j->fwd.nin > 0 ? &j->fwd.in[0] : NULL;
	if (op != NULL && op->of_complex != NULL && x != NULL && x->type == ACC_A_TENSOR &&
		x->t->dtype != ACC_NODTYPE && acc_dtype_of(x->t->dtype)->cls == 'C')
		return op->of_complex;
	if (op != NULL && op->of_others != NULL) {
		acc_each_held(j->fwd.in, j->fwd.nin, acc_count_held, &n);
		return n == 2 ? op : op->of_others;
	}
	if (op != NULL && op->of_one != NULL && j->fwd.nin + j->fwd.nkw == 1)
		return acc_op_find(acc_str(op->of_one));
	if (op == NULL || op->of_two == NULL)
		return op;
	const struct acc_value *v = j->fwd.nin > 1 ? &j->fwd.in[1] : NULL;
	for (uint32_t i = 0; i < j->fwd.nkw; i++)
		if (acc_str_is(j->fwd.kw[i].name, "other"))
			v = &j->fwd.kw[i];
	/* A tensor of one integer may be a dimension. */
	bool two = v != NULL && v->type == ACC_A_TENSOR &&
		   (v->t->n != 1 || acc_is_float(v->t->dtype));
	return two ? acc_op_find(acc_str(op->of_two)) : op;
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

/* Add a name, behind a blank. */
static int
say(struct acc_buf *out, struct acc_str name)
{
	return (out->n > 0 && acc_buf_add(out, " ", 1) < 0) ? ACC_ENOMEM
							    : acc_buf_add(out, name.p, name.n);
}

int
acc_op_all_names(const struct acc_op *op, struct acc_buf *out)
{
	int rc = 0;
	for (const char *p = op->names; *p != '\0' && rc == 0; p += *p == ' ') {
		struct acc_str name = {p, (uint32_t)strcspn(p, " ")};
		const struct acc_op_info *o = acc_op_info_of(name);
		bool own = o != NULL && acc_str_eq(name, acc_op_own_name(o));
		rc = say(out, name);
		p += name.n;
		for (const char *q = own ? o->names + name.n : ""; *q == ' ' && rc == 0;) {
			struct acc_str more = {q + 1, (uint32_t)strcspn(q + 1, " ")};
			if (!acc_word_in(op->names, more) && acc_op_find(more) == op)
				rc = say(out, more);
			q = more.p + more.n;
		}
	}
	return rc;
}
