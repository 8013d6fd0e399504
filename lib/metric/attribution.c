/* e = |a - b| / (|b| + s), s being the median of the nonzero |b|: an error that is relative
 * for large elements, and for small ones relative to what is usual in this tensor, so that
 * neither a mask of -1e4 nor a rounded zero decides. A judge compares it along the graph. */
#include "acc/metric.h"

#include <math.h>

static struct acc_val
err_rms(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	if (t->kind_diff > 0)
		return acc_f64(INFINITY);
	return acc_f64(t->used == 0 ? 0 : sqrt(acc_sum_value(&t->ee) / (double)t->used));
}

static struct acc_val
err_max(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	if (t->kind_diff > 0)
		return acc_f64(INFINITY);
	return acc_f64(t->used == 0 ? 0 : t->max_e);
}

const struct acc_metric acc_metric_err_rms = {
	.name = "m.err_rms",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "root of the mean of e^2, e = |d| / (|b| + s), s: median of |b| not 0; for judges",
	.value = err_rms,
};
const struct acc_metric acc_metric_err_max = {
	.name = "m.err_max",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "largest e",
	.value = err_max,
};
