/* The two columns of the report of maca_tools: diff1, the relative error, and diff2, the standard
 * deviation. Their maker does not publish the formulas; these are the plainest readings of the
 * names. Elements that are not finite on a side are left out, as of all metrics but msaccucmp's. */
#include "acc/metric.h"

#include <math.h>

struct spread {
	uint64_t n;
	double mean, m2; /* of d = a - b; m2: sum (d - mean)^2 */
};

static void
begin(void *state, const struct acc_reading *r, const struct acc_ref *a, const struct acc_ref *b)
{
	(void)r;
	(void)a;
	(void)b;
	*(struct spread *)state = (struct spread){0};
}

/* The mean of the chunk first, then the deviations from it: of a large difference that is nearly
 * the same everywhere, nothing cancels. The chunks are joined as Chan, Golub and LeVeque do. */
static void
chunk(void *state, const double *a, const double *b, size_t n)
{
	struct spread *s = state;
	double sum = 0, m2 = 0;
	uint64_t used = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(a[i]) && isfinite(b[i])) {
			sum += a[i] - b[i];
			used++;
		}
	if (used == 0)
		return;
	const double mean = sum / (double)used;
	for (size_t i = 0; i < n; i++)
		if (isfinite(a[i]) && isfinite(b[i])) {
			double x = a[i] - b[i] - mean;
			m2 += x * x;
		}
	const double all = (double)(s->n + used), apart = mean - s->mean;
	s->m2 += m2 + apart * apart * ((double)s->n * (double)used / all);
	s->mean += apart * ((double)used / all);
	s->n += used;
}

static const struct acc_second pass = {
	.size = sizeof(struct spread),
	.begin = begin,
	.chunk = chunk,
};

static struct acc_val
diff1(struct acc_subject *s)
{
	const struct acc_two *t = &s->r->two;
	return acc_f64(t->dd.hi == 0 ? 0 : acc_sum_root_over(&t->dd, &t->bb));
}

static struct acc_val
diff2(struct acc_subject *s)
{
	const struct spread *p = s->second;
	return acc_f64(p == NULL || p->n == 0 ? 0 : sqrt(p->m2 / (double)p->n));
}

const struct acc_metric acc_metric_diff1 = {
	.name = "m.diff1",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "maca_tools' relative error: |d| / |b|, as m.rel_l2",
	.value = diff1,
	.second = &pass,
};
const struct acc_metric acc_metric_diff2 = {
	.name = "m.diff2",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "maca_tools' standard deviation: sqrt(mean (d - mean d)^2)",
	.value = diff2,
	.second = &pass,
};
