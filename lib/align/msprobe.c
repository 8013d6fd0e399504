/* As msprobe pairs: by the name of the row, in which the numbers of backward calls are replaced
 * by their order of appearance; then a gate on the data types. */
#include "align/impl.h"
#include "acc/tensor.h"

#include <stdlib.h>

static uint64_t
row(const struct acc_align_item *it)
{
	return it->row;
}

/* Recomputation and another order of autograd renumber backward calls; so count them. */
static int
number(const struct acc_index *ix, const uint32_t *op, uint32_t n, uint64_t *id, struct acc_err *e)
{
	struct acc_map seen = {0};
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		uint64_t key[2] = {o->base, (uint64_t)o->call};
		if (o->pass == ACC_PASS_BACKWARD && o->call >= 0) {
			const struct acc_str s = {(const char *)&o->base, sizeof o->base};
			uint64_t *count = acc_map_put(&seen, s, 0);
			if (count == NULL)
				rc = acc_nomem(e);
			else
				key[1] = (*count)++;
		}
		id[i] = acc_hash(key, sizeof key);
	}
	acc_map_release(&seen);
	return rc;
}

static bool
low(int8_t t)
{
	return t == ACC_F16 || t == ACC_F32 || t == ACC_BF16;
}

/* Between frameworks only the class of a type counts: int, float, bool, complex. */
static char class(int8_t t)
{
	char c = t < 0 ? '\0' : acc_dtype_of(t)->cls;
	return c == 'U' ? 'I' : c;
}

static bool
gate(const struct acc_align_item *x, const struct acc_align_item *y, bool cross)
{
	return x->dtype == y->dtype || (low(x->num) && low(y->num)) ||
	       (cross && class(x->num) != '\0' && class(x->num) == class(y->num));
}

static int
pair(struct acc_joined *j, struct acc_err *e)
{
	uint64_t *id = malloc(((size_t)j->na + j->nb + 1) * sizeof *id);
	if (id == NULL)
		return acc_nomem(e);
	int rc = number(j->a, j->aop, j->na, id, e);
	if (rc == 0)
		rc = number(j->b, j->bop, j->nb, id + j->na, e);
	if (rc == 0)
		rc = acc_mate_calls(j, id, id + j->na, row, "msprobe", 1, e);
	free(id);
	for (uint32_t i = 0; i < j->na && rc == 0; i++) {
		const struct acc_align_call *op = &j->a->op[j->aop[i]];
		for (uint32_t k = op->first; k < op->first + op->n; k++) {
			struct acc_align_item *x = &j->a->item[k];
			if (x->mate == ACC_NOMATE || gate(x, &j->b->item[x->mate], j->cross))
				continue;
			j->b->item[x->mate].mate = ACC_NOMATE;
			x->mate = ACC_NOMATE;
		}
	}
	return rc;
}

const struct acc_aligner acc_aligner_msprobe = {
	.name = "msprobe",
	.help = "the same row name, backward calls numbered anew; data types must agree",
	.pair = pair,
};

const struct acc_aligner acc_aligner_msprobe_26 = {
	.name = "msprobe-26",
	.help = "the same as msprobe",
	.pair = pair,
};

const struct acc_aligner acc_aligner_msprobe_8_3 = {
	.name = "msprobe-8.3",
	.help = "the same as msprobe",
	.pair = pair,
};
