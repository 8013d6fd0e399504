/* Where the two sides agree, and in what. */
#include "acc/metric.h"

static double
share(uint64_t part, uint64_t whole, double none)
{
	return whole == 0 ? none : (double)part / (double)whole;
}

static struct acc_val
outside(struct acc_subject *s)
{
	return acc_f64(share(s->r->two.outside, s->r->two.n, 0));
}

static struct acc_val
rtol(struct acc_subject *s)
{
	return acc_f64(s->r->rtol);
}

static struct acc_val
atol(struct acc_subject *s)
{
	return acc_f64(s->r->atol);
}

static struct acc_val
same(struct acc_subject *s)
{
	return acc_f64(share(s->r->two.same, s->r->two.n, 1));
}

static struct acc_val
nonfinite(struct acc_subject *s)
{
	return acc_uint(s->r->two.kind_diff);
}

static struct acc_val
equal(struct acc_subject *s)
{
	return acc_bool(s->equal);
}

const struct acc_metric acc_metric_outside = {
	.name = "m.outside",
	.of = ACC_OF_PAIR,
	.unit = "share",
	.help = "share of elements not within |d| <= atol + rtol |b|; differing NaN, Inf are not",
	.value = outside,
};
const struct acc_metric acc_metric_rtol = {
	.name = "m.rtol",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "the relative tolerance of m.outside",
	.value = rtol,
	.plain = true,
};
const struct acc_metric acc_metric_atol = {
	.name = "m.atol",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "the absolute tolerance of m.outside",
	.value = atol,
	.plain = true,
};
const struct acc_metric acc_metric_same = {
	.name = "m.same",
	.of = ACC_OF_PAIR,
	.unit = "share",
	.help = "share of elements with the same bits in the coarser of the two dtypes; NaN is NaN",
	.value = same,
};
const struct acc_metric acc_metric_nonfinite = {
	.name = "m.nonfinite",
	.of = ACC_OF_PAIR,
	.unit = "elements",
	.help = "count of places where one side is NaN, +Inf or -Inf and the other is not the same",
	.value = nonfinite,
	.plain = true,
};
const struct acc_metric acc_metric_equal = {
	.name = "m.equal",
	.of = ACC_OF_VALUE,
	.unit = "",
	.help = "are the two checksums, or the two values of an argument, the same",
	.value = equal,
};
