/* Op calls that stand out: what is kept of one. */
#include "judge/first_bad.h"

#include "judge/case.h"

int
acc_suspect_add(struct scan *s, const struct suspect *x)
{
	if (s->learning)
		return 0;
	if (!ACC_ROOM(s->suspect, s->suspect_cap, s->nsuspect + 1, NULL))
		return ACC_ENOMEM;
	struct suspect *y = &s->suspect[s->nsuspect];
	*y = *x;
	y->guess = x->guess || acc_module_agrees(s->c, x) ||
		   (s->two && !x->audit && acc_is_guess(s, x));
	s->nsuspect += acc_witness_heard(s, y);
	return 0;
}

/* Where a second run of the bench tells the noise of this very tensor, no less is a fault. */
void
acc_known_noise(const struct scan *s, const struct acc_item *it, double e, double e2,
	struct suspect *x)
{
	if (!(e2 > 0) || it->exact || !(x->margin > 0))
		return;
	struct limit l = {s->noise * e2, 0, NULL};
	double margin = isinf(e2) ? -LIMIT_CERTAIN : acc_margin(e, &l, 0);
	if (margin >= x->margin)
		return;
	x->margin = margin;
	x->limit = LIMIT_MARGIN * l.floor;
	x->from = "the noise between two runs of the bench";
}

int
acc_suspect_argument(struct scan *s, uint32_t item, double margin, double value)
{
	const uint32_t call = s->c->item[item].call;
	return acc_suspect_add(s, &(struct suspect){.call = call,
					  .item = item,
					  .role = ROLE_ARG,
					  .blame = call,
					  .producer = ACC_NOCALL,
					  .margin = margin,
					  .value = value,
					  .limit = 0,
					  .from = "arguments are equal"});
}
