/* Statistics of one tensor. NaN and infinities propagate, as in what the recorders write. */
#include "acc/metric.h"

#include <math.h>

static bool
empty(const struct acc_one *o)
{
	return o->n == 0;
}

static struct acc_val
min(struct acc_subject *s)
{
	const struct acc_one *o = s->one;
	if (empty(o))
		return acc_nil();
	return acc_f64(o->nan > 0 ? NAN : o->neginf > 0 ? -INFINITY : o->min);
}

static struct acc_val
max(struct acc_subject *s)
{
	const struct acc_one *o = s->one;
	if (empty(o))
		return acc_nil();
	return acc_f64(o->nan > 0 ? NAN : o->posinf > 0 ? INFINITY : o->max);
}

static struct acc_val
mean(struct acc_subject *s)
{
	const struct acc_one *o = s->one;
	if (empty(o))
		return acc_nil();
	if (o->nan > 0 || (o->posinf > 0 && o->neginf > 0))
		return acc_f64(NAN);
	if (o->posinf > 0 || o->neginf > 0)
		return acc_f64(o->posinf > 0 ? INFINITY : -INFINITY);
	return acc_f64(acc_sum_mean(&o->sum, o->n));
}

static struct acc_val
norm(struct acc_subject *s)
{
	const struct acc_one *o = s->one;
	if (o->nan > 0)
		return acc_f64(NAN);
	return acc_f64(o->posinf + o->neginf > 0 ? INFINITY : acc_sum_root(&o->sumsq));
}

static struct acc_val
nan_(struct acc_subject *s)
{
	return acc_uint(s->one->nan);
}

static struct acc_val
posinf(struct acc_subject *s)
{
	return acc_uint(s->one->posinf);
}

static struct acc_val
neginf(struct acc_subject *s)
{
	return acc_uint(s->one->neginf);
}

static struct acc_val
zero(struct acc_subject *s)
{
	return acc_uint(s->one->zero);
}

static struct acc_val
sat(struct acc_subject *s)
{
	return acc_uint(s->one->sat);
}

static struct acc_val
hash(struct acc_subject *s)
{
	if (s->hash == 0) /* nobody looked */
		return acc_nil();
	acc_hex16(s->hash, s->text);
	return acc_ctext(s->text);
}

const struct acc_metric acc_metric_s_min = {
	.name = "s.min",
	.of = ACC_OF_TENSOR,
	.unit = "",
	.help = "smallest element",
	.value = min,
};
const struct acc_metric acc_metric_s_max = {
	.name = "s.max",
	.of = ACC_OF_TENSOR,
	.unit = "",
	.help = "largest element",
	.value = max,
};
const struct acc_metric acc_metric_s_mean = {
	.name = "s.mean",
	.of = ACC_OF_TENSOR,
	.unit = "",
	.help = "mean: sum x / n",
	.value = mean,
};
const struct acc_metric acc_metric_s_norm = {
	.name = "s.norm",
	.of = ACC_OF_TENSOR,
	.unit = "",
	.help = "L2 norm: sqrt(sum x^2)",
	.value = norm,
};
const struct acc_metric acc_metric_s_nan = {
	.name = "s.nan",
	.of = ACC_OF_TENSOR,
	.unit = "elements",
	.help = "count of NaN",
	.value = nan_,
};
const struct acc_metric acc_metric_s_posinf = {
	.name = "s.posinf",
	.of = ACC_OF_TENSOR,
	.unit = "elements",
	.help = "count of +Inf",
	.value = posinf,
};
const struct acc_metric acc_metric_s_neginf = {
	.name = "s.neginf",
	.of = ACC_OF_TENSOR,
	.unit = "elements",
	.help = "count of -Inf",
	.value = neginf,
};
const struct acc_metric acc_metric_s_zero = {
	.name = "s.zero",
	.of = ACC_OF_TENSOR,
	.unit = "elements",
	.help = "count of zeros",
	.value = zero,
};
const struct acc_metric acc_metric_s_sat = {
	.name = "s.sat",
	.of = ACC_OF_TENSOR,
	.unit = "elements",
	.help = "count of finite x with |x| = the dtype's largest finite value; floats only",
	.value = sat,
};
const struct acc_metric acc_metric_s_hash = {
	.name = "s.hash",
	.of = ACC_OF_TENSOR,
	.unit = "",
	.help = "content hash, 16 hex digits: XXH3-64 over the XXH3-64 of each 65,536 elements",
	.value = hash,
};
