/* What goes into calls whose results belong together. The operators may be others, with other arguments in another order:
 * so what goes in belongs together by where it comes from, or by its values. */
#include "align/arrays.h"

#include <math.h>

/* Of the tensors that go into a call, one that no other has: as large, of the same kind. */
static bool
fits(const struct acc_align_item *p, const struct acc_align_item *q)
{
	return q->tensor && q->io == ACC_IO_IN && q->mate == ACC_NOMATE && p->count == q->count &&
	       p->count > 0;
}

static double
apart(const struct acc_align_item *p, const struct acc_align_item *q)
{
	const unsigned all = 1 << ACC_LIKE_MAX | 1 << ACC_LIKE_MIN | 1 << ACC_LIKE_RMS;
	double far = 0, most = 0;
	if ((p->liked & q->liked & all) != all)
		return INFINITY;
	/* Without fmax, of which gcc 12 for 64-bit ARM cannot make vectors here. */
	for (int i = 0; i < ACC_NLIKE; i++) {
		const double x = (double)p->like[i], y = (double)q->like[i];
		far = fabs(x - y) > far ? fabs(x - y) : far;
		most = fabs(x) > most ? fabs(x) : most;
		most = fabs(y) > most ? fabs(y) : most;
	}
	return far == 0 ? 0 : far / most;
}

/* Which of a call's tensors holds what this does, up to `least`; the first of those that are as near. */
static uint32_t
nearest(const struct acc_align_item *p, double least, const struct acc_index *b,
	const struct acc_align_call *m)
{
	uint32_t best = ACC_NOMATE;
	for (uint32_t l = m->first; l < m->first + m->n; l++) {
		if (!fits(p, &b->item[l]))
			continue;
		const double d = apart(p, &b->item[l]);
		if (best == ACC_NOMATE ? d <= least : d < least) {
			best = l;
			least = d;
		}
	}
	return best;
}

static uint64_t
values(const struct acc_align_item *p)
{
	return acc_hash_pair(p->count, acc_hash(p->like, sizeof p->like));
}

/* An input is what a call before gave, though that differs from what the other side's gave: then what took the latter
 * is its partner. */
static uint32_t
handed(const struct arrays *x, const struct acc_ids *made, const struct acc_align_item *p,
	const struct acc_align_call *m)
{
	const double moved = 0x1p-20; /* sums in another order of axes */
	const struct acc_index *a = x->j->a, *b = x->j->b;
	const uint32_t from = p->liked == 0 ? ACC_NOID : acc_ids_get(made, values(p));
	return from == ACC_NOID ? ACC_NOMATE : nearest(&b->item[a->item[from].mate], moved, b, m);
}

int
acc_arrays_inputs(struct arrays *x)
{
	const struct acc_index *a = x->j->a, *b = x->j->b;
	struct acc_ids made = {0}; /* values that a call gave -> its item, that has a partner */
	int rc = 0;
	for (uint32_t i = 0; i < x->j->na && rc == 0; i++) {
		const struct acc_align_call *o = &a->op[x->j->aop[i]];
		for (int by = 0; by < 2 && o->forward && o->mate != ACC_NOMATE; by++)
			for (uint32_t k = o->first; k < o->first + o->n; k++) {
				const struct acc_align_item *p = &a->item[k];
				const struct acc_align_call *m = &b->op[o->mate];
				if (!p->tensor || p->io != ACC_IO_IN || p->mate != ACC_NOMATE)
					continue;
				const uint32_t best = by == 0 ? nearest(p, ARRAYS_SAME, b, m)
							      : handed(x, &made, p, m);
				if (best != ACC_NOMATE)
					acc_mate_items(x->j, k, best);
			}
		for (uint32_t k = o->first; o->forward && k < o->first + o->n && rc == 0; k++) {
			const struct acc_align_item *p = &a->item[k];
			if (p->tensor && p->io == ACC_IO_OUT && p->mate != ACC_NOMATE &&
				p->liked != 0)
				rc = acc_ids_put(&made, values(p), k, true, x->e);
		}
	}
	acc_ids_release(&made);
	return rc;
}
