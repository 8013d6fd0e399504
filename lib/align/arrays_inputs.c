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
	for (int i = 0; i < ACC_NLIKE; i++) {
		far = fmax(far, fabs((double)p->like[i] - (double)q->like[i]));
		most = fmax(most, fmax(fabs((double)p->like[i]), fabs((double)q->like[i])));
	}
	return far == 0 ? 0 : far / most;
}

void
acc_arrays_inputs(struct arrays *x)
{
	const double same = 0x1p-14;
	const struct acc_index *a = x->j->a, *b = x->j->b;
	for (uint32_t i = 0; i < x->j->na; i++) {
		const struct acc_align_call *o = &a->op[x->j->aop[i]];
		if (!o->forward || o->mate == ACC_NOMATE)
			continue;
		const struct acc_align_call *m = &b->op[o->mate];
		for (uint32_t k = o->first; k < o->first + o->n; k++) {
			const struct acc_align_item *p = &a->item[k];
			uint32_t best = ACC_NOMATE;
			double least = same;
			if (!p->tensor || p->io != ACC_IO_IN || p->mate != ACC_NOMATE)
				continue;
			for (uint32_t l = m->first; l < m->first + m->n; l++) {
				const double d = fits(p, &b->item[l]) ? apart(p, &b->item[l])
								      : INFINITY;
				if (d <= least && (best == ACC_NOMATE || d < least)) {
					best = l;
					least = d;
				}
			}
			if (best != ACC_NOMATE)
				acc_mate_items(x->j, k, best);
		}
	}
}
