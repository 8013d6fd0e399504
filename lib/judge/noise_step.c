/* An optimizer that divides by the root of mean squares makes a step of the learning rate of any gradient, however small: of
 * one that is zero in exact arithmetic, as of the keys' part of an attention's bias, what rounding leaves is stretched to a
 * whole step, of either sign. Beside the parts for queries and values the statistics of such a gradient agree. The two sides'
 * weights are then apart by two learning rates an element at most. A fault of the optimizer is in its other weights, too, and
 * those of more than one axis have no such gradients. */
#include "judge/bounds.h"

#include <math.h>
#include <strings.h>

#include "acc/stat.h"
#include "judge/case.h"
#include "judge/traced.h"

/* The learning rate that a call is told; 0: none is known. */
static double
rate(struct acc_case *c, uint32_t call)
{
	double lr = 0;
	for (uint32_t i = c->call[call].first; i <= c->call[call].last && lr == 0; i++) {
		struct acc_rec *r;
		if (c->item[i].call == call && c->item[i].kind == ACC_ITEM_ARG &&
			c->item[i].sides == 3 && acc_case_record(c, &c->item[i], &r, NULL) >= 0 &&
			acc_str_is(acc_get_text(r, "a.", "pos"), "lr"))
			acc_as_f64(acc_get(r, "b.", "value"), &lr);
	}
	return lr > 0 ? lr : 0;
}

/* Does the call give a weight of several axes, too? Then what is wrong with it shows there. */
static bool
gives_matrix(const struct acc_case *c, uint32_t call)
{
	for (uint32_t i = c->call[call].first; i <= c->call[call].last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call == call && acc_is_output(it) && acc_is_measured(it) &&
			it->kind == ACC_ITEM_TENSOR && it->ndim > 1 && it->ndim != 255)
			return true;
	}
	return false;
}

bool
acc_is_noise_step(struct acc_case *c, uint32_t call, const struct acc_item *it)
{
	const struct acc_call *k = &c->call[call];
	const char *name = acc_call_name(k);
	double a[ACC_STATS], b[ACC_STATS];
	struct acc_rec *r;
	if (!acc_call_steps(k) || it->measure != ACC_BY_STAT || it->ndim > 1 || it->nonfinite ||
		(strcasestr(name, "adam") == NULL && strcasestr(name, "rmsprop") == NULL) ||
		!gives_matrix(c, call))
		return false;
	const double most = 2 * rate(c, call) * (1 + LIMIT_STAT_F32);
	if (!(most > 0) || acc_case_record(c, it, &r, NULL) < 0)
		return false;
	acc_stat_read(r, "a.", ACC_STAT_MEASURED, a);
	acc_stat_read(r, "b.", ACC_STAT_MEASURED, b);
	return fabs(a[ACC_STAT_MAX] - b[ACC_STAT_MAX]) <= most &&
	       fabs(a[ACC_STAT_MIN] - b[ACC_STAT_MIN]) <= most &&
	       fabs(a[ACC_STAT_MEAN] - b[ACC_STAT_MEAN]) <= most &&
	       fabs(a[ACC_STAT_NORM] - b[ACC_STAT_NORM]) <= most * sqrt((double)it->count);
}
