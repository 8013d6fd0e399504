/* r = |a - b| / |b|, over the elements where b is not zero; those where it is and a is not
 * are counted apart, so that none of them hides in, or alone makes, a mean or a maximum. */
#include "acc/metric.h"

#include <math.h>

/* A quotient that was formed in f32 has eight digits: those of a double that follow mean nothing. */
static double
digits(double x)
{
	const double by = x > 1e-15 && x < 1e6 ? pow(10, 7 - floor(log10(x))) : 0;
	return x != (float)x || by == 0 ? x : nearbyint(x * by) / by;
}

static struct acc_val
max_rel(struct acc_subject *s)
{
	return acc_f64(s->r->two.nrel == 0 ? 0 : digits(s->r->two.max_rel));
}

static struct acc_val
mean_rel(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	return acc_f64(t->nrel == 0 ? 0 : acc_sum_value(&t->rel) / (double)t->nrel);
}

static double
share(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 1 : (double)part / (double)whole;
}

static struct acc_val
thousandth(struct acc_subject *s)
{
	return acc_f64(share(s->r->two.lt_1e3, s->r->two.used));
}

static struct acc_val
five_thousandths(struct acc_subject *s)
{
	return acc_f64(share(s->r->two.lt_5e3, s->r->two.used));
}

static struct acc_val
b_zero(struct acc_subject *s)
{
	return acc_uint(s->r->two.b_zero);
}

const struct acc_metric acc_metric_max_rel = {
	.name = "m.max_rel",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "largest relative error: max |d| / |b| where b is not 0",
	.value = max_rel,
};
const struct acc_metric acc_metric_mean_rel = {
	.name = "m.mean_rel",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "mean relative error: mean of |d| / |b| where b is not 0",
	.value = mean_rel,
};
const struct acc_metric acc_metric_thousandth = {
	.name = "m.thousandth",
	.of = ACC_OF_PAIR,
	.unit = "share",
	.help = "share of elements with |d| < 0.001 |b|, or d = 0",
	.value = thousandth,
};
const struct acc_metric acc_metric_five_thousandths = {
	.name = "m.five_thousandths",
	.of = ACC_OF_PAIR,
	.unit = "share",
	.help = "share of elements with |d| < 0.005 |b|, or d = 0",
	.value = five_thousandths,
};
const struct acc_metric acc_metric_b_zero = {
	.name = "m.b_zero",
	.of = ACC_OF_PAIR,
	.unit = "elements",
	.help = "count of elements with b = 0 and a not 0, which have no relative error",
	.value = b_zero,
};
