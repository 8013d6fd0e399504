/* How far apart, in the unit of the tensors and relative to the norm of b. */
#include "acc/metric.h"

#include <math.h>

static struct acc_val
euclid(struct acc_subject *s)
{
	return acc_f64(acc_sum_root(&s->r->two.dd));
}

static struct acc_val
rel_l2(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	return acc_f64(t->dd.hi == 0 ? 0 : acc_sum_root_over(&t->dd, &t->bb));
}

static struct acc_val
rmse(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	return acc_f64(t->used == 0 ? 0 : acc_sum_rms(&t->dd, t->used));
}

static struct acc_val
snr(struct acc_subject *s)
{
	const struct acc_sum dd = s->r->two.dd, bb = s->r->two.bb;
	const double decades = (double)(bb.exp - dd.exp) * log10(2);
	return acc_f64(
		dd.hi == 0 ? INFINITY : 10 * (log10((bb.hi + bb.lo) / (dd.hi + dd.lo)) + decades));
}

static struct acc_val
mean_abs(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	return acc_f64(t->used == 0 ? 0 : acc_sum_mean(&t->absd, t->used));
}

static struct acc_val
max_abs(struct acc_subject *s)
{
	return acc_f64(s->r->two.used == 0 ? 0 : s->r->two.max_absd);
}

/* The coordinates of the element with the largest |a - b|. */
static struct acc_val
worst(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	uint64_t at = t->max_absd_at;
	if (t->used == 0 || t->max_absd == 0)
		return acc_nil();
	for (uint32_t i = s->shape->ndim; i-- > 0;) {
		uint64_t dim = (uint64_t)s->shape->shape[i];
		s->ints[i] = (int64_t)(at % dim);
		at /= dim;
	}
	return acc_ints(s->ints, s->shape->ndim);
}

const struct acc_metric acc_metric_euclid = {
	.name = "m.euclid",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "Euclidean distance: sqrt(sum d^2)",
	.value = euclid,
	.plain = true,
};
const struct acc_metric acc_metric_rel_l2 = {
	.name = "m.rel_l2",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "relative L2 distance: |d| / |b|; 0 if d is zero, inf if only b is",
	.value = rel_l2,
	.plain = true,
};
const struct acc_metric acc_metric_rmse = {
	.name = "m.rmse",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "root of the mean square error: sqrt(sum d^2 / n)",
	.value = rmse,
	.plain = true,
};
const struct acc_metric acc_metric_snr = {
	.name = "m.snr",
	.of = ACC_OF_PAIR,
	.unit = "dB",
	.help = "signal to noise ratio: 10 log10(sum b^2 / sum d^2); inf if d is zero",
	.value = snr,
	.plain = true,
};
const struct acc_metric acc_metric_mean_abs = {
	.name = "m.mean_abs",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "mean absolute error: sum |d| / n",
	.value = mean_abs,
	.plain = true,
};
const struct acc_metric acc_metric_max_abs = {
	.name = "m.max_abs",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "largest absolute error: max |d|",
	.value = max_abs,
	.plain = true,
};
const struct acc_metric acc_metric_worst = {
	.name = "m.worst",
	.of = ACC_OF_PAIR,
	.unit = "index",
	.help = "coordinates of the (first) element with the largest |d|, in a's shape",
	.value = worst,
	.plain = true,
};
