/* Where a fault may lie: an output from which values go on to an end that differs, without one on the way that agrees with
 * the other side's. What has no partner, but is followed by what agrees, is only written otherwise there. */
#include "align/arrays.h"

#include <stdlib.h>

/* Of outputs of the same values, as of a view and what it is of, the first stands for all. */
struct way {
	const struct acc_index *ix;
	struct acc_ids made; /* values -> the first output that has them */
	bool *taken;         /* a call takes it, */
	bool *leads;         /* one that is open */
};

static uint64_t
values(uint64_t count, const float *like)
{
	return acc_hash_pair(count, acc_hash(like, ACC_NLIKE * sizeof *like));
}

static bool
agrees(const struct arrays *x, int side, const struct output *p)
{
	return p->mate != ACC_NOMATE &&
	       (p->how == ACC_HOW_CONTENT ||
		       acc_arrays_apart(p, &x->v[1 - side][p->mate]) <= ARRAYS_SAME);
}

/* What a call took is on the way that it is on. */
static void
mark_inputs(const struct way *w, uint32_t call, bool open)
{
	const struct acc_align_call *o = &w->ix->op[call];
	for (uint32_t k = o->first; k < o->first + o->n; k++) {
		const struct acc_align_item *it = &w->ix->item[k];
		if (!it->tensor || it->io != ACC_IO_IN || it->liked == 0)
			continue;
		const uint32_t from = acc_ids_get(&w->made, values(it->count, it->like));
		if (from == ACC_NOID)
			continue;
		w->taken[from] = true;
		w->leads[from] |= open;
	}
}

/* From the last call to the first. */
static void
go_back(const struct arrays *x, int side, const struct way *w, bool *open)
{
	const struct output *v = x->v[side];
	for (uint32_t end = x->n[side], from; end > 0; end = from) {
		bool any = false;
		for (from = end; from > 0 && v[from - 1].op == v[end - 1].op; from--) {
			const uint32_t i = from - 1,
				       first = acc_ids_get(&w->made, values(v[i].count, v[i].like));
			const uint32_t at = first == ACC_NOID ? i : first;
			open[i] = !agrees(x, side, &v[i]) && (!w->taken[at] || w->leads[at]);
			any |= open[i];
		}
		mark_inputs(w, v[end - 1].op, any);
	}
}

int
acc_arrays_open(struct arrays *x, int side, bool *open)
{
	const struct output *v = x->v[side];
	uint32_t end = x->n[side];
	while (end > 0 && (!v[end - 1].real || v[end - 1].count < 2))
		end--;
	if (end == 0 || agrees(x, side, &v[end - 1]))
		return 0;
	struct way w = {.ix = side == 0 ? x->j->a : x->j->b,
		.taken = calloc(2 * (size_t)x->n[side], 1)};
	int rc = w.taken == NULL ? acc_nomem(x->e) : 0;
	w.leads = w.taken + (rc == 0 ? x->n[side] : 0);
	for (uint32_t i = 0; i < x->n[side] && rc == 0; i++) {
		const uint64_t key = values(v[i].count, v[i].like);
		if (acc_ids_get(&w.made, key) == ACC_NOID)
			rc = acc_ids_put(&w.made, key, i, false, x->e);
	}
	if (rc == 0)
		go_back(x, side, &w, open);
	acc_ids_release(&w.made);
	free(w.taken);
	return rc;
}
