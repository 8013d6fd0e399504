/* Two calls that take the same weight belong together, whatever they give: behind a fault nothing else is left to tell, and the
 * call that has the fault gives other values from equal ones. */
#include "align/arrays.h"

#define TWICE (ACC_NOID - 1) /* several calls */

/* max and min are those of any order of axes. */
static uint64_t
weight_key(uint64_t count, const float *like)
{
	const float ends[] = {like[ACC_LIKE_MAX], like[ACC_LIKE_MIN]};
	return acc_hash_pair(count, acc_hash(ends, sizeof ends));
}

/* An input that no call of its side gave; 0: it tells nothing. */
static uint64_t
weight_of(const struct acc_align_item *it, const struct acc_ids *made)
{
	const unsigned all = 1 << ACC_LIKE_MAX | 1 << ACC_LIKE_MIN;
	if (!it->tensor || it->io != ACC_IO_IN || it->count < 2 || (it->liked & all) != all ||
		!(it->like[ACC_LIKE_MAX] > it->like[ACC_LIKE_MIN]) ||
		(it->num != ACC_NODTYPE && acc_dtype_of(it->num)->cls != 'F'))
		return 0;
	const uint64_t key = weight_key(it->count, it->like);
	return acc_ids_get(made, key) == ACC_NOID ? key : 0;
}

static bool
is_free(const struct output *v)
{
	return v->mate == ACC_NOMATE && !v->again && v->real && v->count > 1;
}

/* Of a weight and how much comes out, the output of the one call without a partner that has them. */
static int
list_weights(const struct arrays *x, int side, struct acc_ids *of, struct acc_ids *made)
{
	const struct acc_index *ix = side == 0 ? x->j->a : x->j->b;
	int rc = 0;
	for (uint32_t i = 0; i < x->n[side] && rc == 0; i++)
		if (x->v[side][i].known)
			rc = acc_ids_put(made, weight_key(x->v[side][i].count, x->v[side][i].like),
				i, false, x->e);
	for (uint32_t i = 0; i < x->n[side] && rc == 0; i++) {
		const struct acc_align_call *o = &ix->op[x->v[side][i].op];
		for (uint32_t k = o->first; k < o->first + o->n && rc == 0; k++) {
			uint64_t key = weight_of(&ix->item[k], made);
			if (key == 0 || !is_free(&x->v[side][i]))
				continue;
			key = acc_hash_pair(key, x->v[side][i].count);
			rc = acc_ids_put(of, key, acc_ids_get(of, key) == ACC_NOID ? i : TWICE,
				true, x->e);
		}
	}
	return rc;
}

int
acc_arrays_weights(struct arrays *x)
{
	struct acc_ids of[2] = {{0}}, made[2] = {{0}};
	int rc = 0;
	for (int side = 0; side < 2 && rc == 0; side++)
		rc = list_weights(x, side, &of[side], &made[side]);
	for (uint32_t i = 0; i < x->n[1] && rc == 0; i++) {
		struct output *q = &x->v[1][i];
		const struct acc_align_call *o = &x->j->b->op[q->op];
		/* The last first: of a product and the sum with its bias, which are one call here, the sum gives the same. */
		for (uint32_t k = o->first + o->n; k-- > o->first && is_free(q);) {
			uint64_t key = weight_of(&x->j->b->item[k], &made[1]);
			key = key == 0 ? 0 : acc_hash_pair(key, q->count);
			const uint32_t at = key == 0 ? ACC_NOID : acc_ids_get(&of[0], key);
			if (at < x->n[0] && acc_ids_get(&of[1], key) == i && is_free(&x->v[0][at]))
				acc_arrays_mate(&x->v[0][at], q, ACC_HOW_PLACE);
		}
	}
	for (int side = 0; side < 2; side++) {
		acc_ids_release(&of[side]);
		acc_ids_release(&made[side]);
	}
	return rc;
}
