/* What statistics tell of errors, and what they do not.
 *
 * Of a tensor's elements, max and min are two; mean and norm are sums, in which errors of either
 * sign cancel. So a call that was given what agrees by statistics may have been given what does
 * not agree by elements, and its own error then seems to be news. The usual error of the op calls
 * around it tells better than the statistics of one input. */
#include "judge/first_bad.h"

#include <math.h>

void
acc_stat_seen(struct scan *s, bool backward, double e)
{
	const float v = (float)e;
	float *last = &s->recent_stat[backward][s->nrecent_stat[backward] % LIMIT_RECENT];
	float *sorted = s->sorted_stat[backward];
	uint32_t n = s->nrecent_stat[backward], k = 0;
	if (n < LIMIT_RECENT) {
		k = n;
	} else {
		while (k + 1 < LIMIT_RECENT && sorted[k] != *last)
			k++;
		for (n = LIMIT_RECENT - 1; k < n && sorted[k + 1] < v; k++)
			sorted[k] = sorted[k + 1];
	}
	for (; k > 0 && sorted[k - 1] > v; k--)
		sorted[k] = sorted[k - 1];
	sorted[k] = v;
	*last = v;
	s->nrecent_stat[backward]++;
}

double
acc_stat_usual(const struct scan *s, bool backward)
{
	const uint32_t n = s->nrecent_stat[backward];
	return n == 0 ? 0
		      : s->sorted_stat[backward][((n < LIMIT_RECENT ? n : LIMIT_RECENT) - 1) / 2];
}

/* A backward call that gives fewer elements than it was given sums them up, n at a time: the terms
 * may cancel (the gradient of a bias before a norm is zero in exact arithmetic), but each has its
 * error, and the sum root n of them. */
double
acc_stat_gradient_scale(const struct acc_call *k, const struct acc_item *it, const struct given *g)
{
	if (it->measure != ACC_BY_STAT || !k->backward || k->module || it->loose || it->count == 0)
		return 0;
	double product = acc_product_scale(k, it, g);
	if (product > 0 && it->ndim > 1)
		return LIMIT_PRODUCT_SCALE * product;
	if (g->grad_count < it->count)
		return 0;
	/* Of g - p sum(g), and of p (g - sum(p g)), nothing may be left. */
	if (k->response == ACC_OP_SOFTMAX)
		return g->grad_rms;
	double n = (double)g->grad_count / (double)it->count;
	return n > 1 || it->ndim <= 1 ? sqrt(n) * g->grad_rms : 0;
}

double
acc_stat_element(const struct scan *s, double e, double unit)
{
	return acc_is_coarse(s, unit) && s->multiplied ? fmax(e, LIMIT_TF32) : e;
}

double
acc_stat_unseen(const struct scan *s, double unit)
{
	/* Where the products themselves are hardly compared, nothing says how the device multiplies. */
	if (s->wholes && !acc_unit_low(unit))
		return LIMIT_TF32 / LIMIT_TF32_SEEN;
	return acc_stat_element(s, 0, unit) / LIMIT_TF32_SEEN;
}

double
acc_stat_rest(const struct scan *s, const struct acc_call *k, double cause, double unit)
{
	/* Errors by statistics are of max or min, relative to that and the rms: twice as much of an
	 * element alone. Where a kink fell otherwise, elements are all error. */
	double rest = 2 * cause + LIMIT_STEP_U * unit, flips = k->backward ? s->flips : 0;
	if (acc_passes_kink(k))
		flips = fmax(flips, sqrt(acc_stat_element(s, cause, unit)));
	return fmax(rest, LIMIT_KINK * flips);
}

double
acc_stat_terms(const struct acc_call *k, const struct acc_item *it, const struct given *g)
{
	return fmax(acc_sum_scale(k, it, g), acc_stat_gradient_scale(k, it, g));
}

double
acc_stat_norm_rounding(double tiny, double norm, double n)
{
	if (!(tiny > 0))
		return 0;
	/* Each square may lose half of the smallest number, each addition a rounding. */
	return sqrt(norm * norm + n * tiny) - norm +
	       norm * LIMIT_STAT_F16 * (sqrt(n) + n / LIMIT_NORM_LANES);
}
