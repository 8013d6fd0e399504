/* Where only statistics were recorded: their differences. */
#include "acc/metric.h"

#include <math.h>

static struct acc_val
diff(const struct acc_subject *s, int i)
{
	if (!s->sa->has[i] || !s->sb->has[i])
		return acc_nil();
	double a = s->sa->v[i], b = s->sb->v[i];
	return acc_f64(a == b || (isnan(a) && isnan(b)) ? 0 : a - b);
}

static struct acc_val
relerr(const struct acc_subject *s, int i)
{
	if (!s->sa->has[i] || !s->sb->has[i])
		return acc_nil();
	double a = s->sa->v[i], b = s->sb->v[i];
	if (a == b || (isnan(a) && isnan(b)))
		return acc_f64(0);
	return acc_f64(isfinite(a) && isfinite(b) ? fabs(a - b) / fabs(b) : INFINITY);
}

#define STAT(word, index, symbol) \
	static struct acc_val word##_diff(struct acc_subject *s) \
	{ \
		return diff(s, index); \
	} \
	static struct acc_val word##_relerr(struct acc_subject *s) \
	{ \
		return relerr(s, index); \
	} \
	const struct acc_metric acc_metric_##word##_diff = { \
		.name = "m." #word "_diff", \
		.of = ACC_OF_STATS, \
		.unit = "", \
		.help = symbol "(a) - " symbol "(b) of the recorded statistics", \
		.value = word##_diff, \
	}; \
	const struct acc_metric acc_metric_##word##_relerr = { \
		.name = "m." #word "_relerr", \
		.of = ACC_OF_STATS, \
		.unit = "", \
		.help = "|" symbol "(a) - " symbol "(b)| / |" symbol \
			"(b)| of the recorded statistics", \
		.value = word##_relerr, \
	};

STAT(max, 0, "max")
STAT(min, 1, "min")
STAT(mean, 2, "mean")
STAT(norm, 3, "norm")
