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

/* Has the other side, among what is as large and has no partner, others instead of these values? What the network itself is
 * given is among nobody's results. */
static bool
is_lost(const struct arrays *x, int side, const struct way *w, const struct acc_align_item *it)
{
	const struct output p = {.count = it->count,
		.real = it->num == ACC_NODTYPE || acc_dtype_of(it->num)->cls == 'F',
		.known = true,
		.like = it->like};
	bool lost = false;
	for (uint32_t i = 0; i < x->n[1 - side]; i++) {
		const struct output *q = &x->v[1 - side][i];
		if (acc_arrays_apart(&p, q) <= ARRAYS_SAME)
			return false;
		lost |= q->mate == ACC_NOMATE && q->real && q->count == p.count;
	}
	for (uint32_t k = 0; k < w->ix->op[x->v[side][0].op].n && lost; k++) {
		const struct acc_align_item *q =
			&w->ix->item[w->ix->op[x->v[side][0].op].first + k];
		lost = !q->tensor || q->liked == 0 ||
		       values(q->count, q->like) != values(it->count, it->like);
	}
	return lost;
}

/* A module of which nothing agrees that goes in or comes out, though no module that was recorded made it: the network may
 * have more ends than one, or its end may be none of theirs. */
static bool
is_astray(const struct arrays *x, int side, const struct way *w, uint32_t call)
{
	const unsigned all = 1 << ACC_LIKE_MAX | 1 << ACC_LIKE_MIN | 1 << ACC_LIKE_RMS;
	const struct acc_align_call *o = &w->ix->op[call];
	bool astray = false;
	for (uint32_t k = o->first; k < o->first + o->n; k++) {
		const struct acc_align_item *it = &w->ix->item[k];
		if (!it->tensor || it->io != ACC_IO_IN || it->count < 2)
			continue;
		if ((it->liked & all) != all ||
			!(it->like[ACC_LIKE_MAX] > it->like[ACC_LIKE_MIN]) ||
			acc_ids_get(&w->made, values(it->count, it->like)) != ACC_NOID ||
			!is_lost(x, side, w, it))
			return false;
		astray = true;
	}
	return astray;
}

/* Does a side end otherwise than the other, at the end of all or of what is modules? */
static bool
parts(const struct arrays *x, int side, const struct way *w)
{
	const struct output *v = x->v[side];
	uint32_t end = x->n[side];
	while (end > 0 && (!v[end - 1].real || v[end - 1].count < 2))
		end--;
	if (end > 0 && !agrees(x, side, &v[end - 1]))
		return true;
	bool met = false; /* something before it agrees */
	for (uint32_t i = 0; i < x->n[side]; i++) {
		const struct acc_align_call *o = &w->ix->op[v[i].op];
		if (met && v[i].known && v[i].real && v[i].count > 1 && v[i].mate == ACC_NOMATE &&
			!v[i].again && (o->module || o->nobodys) && is_astray(x, side, w, v[i].op))
			return true;
		met |= agrees(x, side, &v[i]);
	}
	return false;
}

int
acc_arrays_open(struct arrays *x, int side, bool *open)
{
	const struct output *v = x->v[side];
	struct way w = {.ix = side == 0 ? x->j->a : x->j->b,
		.taken = calloc(2 * (size_t)x->n[side] + 1, 1)};
	int rc = w.taken == NULL ? acc_nomem(x->e) : 0;
	w.leads = w.taken + (rc == 0 ? x->n[side] : 0);
	for (uint32_t i = 0; i < x->n[side] && rc == 0; i++) {
		const uint64_t key = values(v[i].count, v[i].like);
		if (acc_ids_get(&w.made, key) == ACC_NOID)
			rc = acc_ids_put(&w.made, key, i, false, x->e);
	}
	if (rc == 0 && parts(x, side, &w))
		go_back(x, side, &w, open);
	acc_ids_release(&w.made);
	free(w.taken);
	return rc;
}
