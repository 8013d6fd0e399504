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

/* Which of a call's tensors is this input, by what it holds; the first of those that are as near. */
static uint32_t
nearest(const struct acc_align_item *p, const struct acc_index *b, const struct acc_align_call *m)
{
	uint32_t best = ACC_NOMATE;
	double least = 0x1p-14;
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

void
acc_arrays_inputs(struct arrays *x)
{
	const struct acc_index *a = x->j->a, *b = x->j->b;
	for (uint32_t i = 0; i < x->j->na; i++) {
		const struct acc_align_call *o = &a->op[x->j->aop[i]];
		if (!o->forward || o->mate == ACC_NOMATE)
			continue;
		const struct acc_align_call *m = &b->op[o->mate];
		for (uint32_t k = o->first; k < o->first + o->n; k++) {
			const struct acc_align_item *p = &a->item[k];
			if (!p->tensor || p->io != ACC_IO_IN || p->mate != ACC_NOMATE)
				continue;
			const uint32_t best = nearest(p, b, m);
			if (best != ACC_NOMATE)
				acc_mate_items(x->j, k, best);
		}
	}
}
