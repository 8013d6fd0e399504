/* The ten metrics of msaccucmp, as it defines them: elements are taken as float32, x is the
 * device's, y the bench's. The elements' differences and quotients are rounded to float32 as
 * there; sums are kept in double, where its own depend on the order in which its BLAS adds.
 * Nothing is filtered: a NaN or an infinity makes most of them NaN. */
#include "acc/metric.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const float EPS = 2.220446e-16f;

struct acu {
	uint64_t n;
	bool scalar, boolean, finite;
	float xmin, xrange, ymin, yrange; /* for the distributions; range 0: constant */
	double xshift, yshift;            /* near the means: deviations keep their digits */
	double xx, yy, xy, dd, absd, rel;
	double x1, x2, y1, y2; /* sum and sum of squares of x - xshift, y - yshift */
	double p, q, plogpq;   /* sums of the distributions before scaling, and of p ln(p/q) */
	float max_abs, max_rel;
};

/* As numpy's maximum: NaN wins. */
static void
raise_to(float *max, float v)
{
	if (v > *max || v != v)
		*max = v;
}

static bool
all_ones(const struct acc_ref *r)
{
	for (uint32_t i = 0; i < r->ndim; i++)
		if (r->shape[i] != 1)
			return false;
	return true;
}

static void
begin(void *state, const struct acc_reading *r, const struct acc_ref *a, const struct acc_ref *b)
{
	struct acu *s = state;
	const struct acc_one *x = &r->a, *y = &r->b;
	*s = (struct acu){.n = x->n};
	s->scalar = all_ones(a);
	s->boolean = a->dtype == ACC_BOOL && b->dtype == ACC_BOOL;
	s->finite = x->nan + x->posinf + x->neginf + y->nan + y->posinf + y->neginf == 0;
	if (!s->finite)
		return;
	s->xmin = (float)x->min;
	s->xrange = (float)x->max - s->xmin;
	s->ymin = (float)y->min;
	s->yrange = (float)y->max - s->ymin;
	s->xshift = acc_sum_value(&x->sum) / (double)x->n;
	s->yshift = acc_sum_value(&y->sum) / (double)y->n;
}

static float
scaled(float v, float min, float range)
{
	float p = range != 0 ? (v - min) / range : v;
	return p > FLT_EPSILON ? p : FLT_EPSILON;
}

static void
chunk(void *state, const double *a, const double *b, size_t n)
{
	struct acu *s = state;
	for (size_t i = 0; i < n; i++) {
		float x = (float)a[i], y = (float)b[i], d = x - y;
		float rel = fabsf(y) > EPS ? fabsf(x / y - 1) : 0;
		s->xx += (double)x * x;
		s->yy += (double)y * y;
		s->xy += (double)x * y;
		s->dd += (double)d * d;
		s->absd += fabsf(d);
		s->rel += rel;
		raise_to(&s->max_abs, fabsf(d));
		raise_to(&s->max_rel, rel);
		if (!s->finite)
			continue;
		double xd = x - s->xshift, yd = y - s->yshift;
		s->x1 += xd;
		s->x2 += xd * xd;
		s->y1 += yd;
		s->y2 += yd * yd;
		double p = scaled(x, s->xmin, s->xrange), q = scaled(y, s->ymin, s->yrange);
		s->p += p;
		s->q += q;
		s->plogpq += p * log(p / q);
	}
}

static const struct acc_second pass = {
	.size = sizeof(struct acu),
	.begin = begin,
	.chunk = chunk,
};

/* A bool tensor has the cosine and the Euclidean distance only. */
static struct acc_val
number(const struct acu *s, double v)
{
	return s->boolean ? acc_nil() : acc_f64(v);
}

static bool
both_zero(const struct acu *s)
{
	return sqrt(s->xx) <= EPS && sqrt(s->yy) <= EPS;
}

static struct acc_val
cosine(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	if (s->scalar || both_zero(s))
		return acc_f64(1);
	double nx = sqrt(s->xx), ny = sqrt(s->yy);
	if (sqrt(nx) <= EPS || sqrt(ny) <= EPS)
		return acc_f64(NAN);
	double c = s->xy / nx / ny;
	return acc_f64(c > 1 ? 1 : c);
}

static struct acc_val
max_abs(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	return number(s, s->max_abs);
}

static struct acc_val
sum_rel(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	return number(s, s->rel);
}

static struct acc_val
rel_euclid(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	return acc_f64(sqrt(s->yy) <= EPS ? 0 : sqrt(s->dd / s->yy));
}

/* Each side scaled to 0..1, lifted to at least 2^-23, divided by its sum: p, q; then
 * sum p ln(p / q), here with the divisions by the sums (P, Q) drawn out of it. */
static struct acc_val
kld(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	double v = s->finite ? s->plogpq / s->p + log(s->q / s->p) : NAN;
	return number(s, fabs(v) < EPS ? 0 : v);
}

static struct acc_val
std_(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	double n = (double)s->n, v[4] = {NAN, NAN, NAN, NAN};
	if (s->boolean)
		return acc_nil();
	if (s->finite) {
		double x = s->x1 / n, y = s->y1 / n;
		v[0] = s->xshift + x;
		v[1] = sqrt(s->x2 / n - x * x);
		v[2] = s->yshift + y;
		v[3] = sqrt(s->y2 / n - y * y);
	}
	for (int i = 0; i < 4; i++)
		if (fabs(v[i]) < 0.001)
			v[i] = 0;
	snprintf(sub->text, sizeof sub->text, "(%.3f;%.3f),(%.3f;%.3f)", v[0], v[1], v[2], v[3]);
	return acc_ctext(sub->text);
}

static struct acc_val
mean_abs(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	return number(s, s->absd / (double)s->n);
}

static struct acc_val
rmse(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	return number(s, sqrt(s->dd / (double)s->n));
}

static struct acc_val
max_rel(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	return number(s, s->max_rel);
}

static struct acc_val
mean_rel(struct acc_subject *sub)
{
	const struct acu *s = sub->second;
	return number(s, s->rel / (double)s->n);
}

#define ACU(word, fn, definition) \
	const struct acc_metric acc_metric_acu_##word = { \
		.name = "m.acu." #word, \
		.of = ACC_OF_PAIR, \
		.unit = "", \
		.help = definition, \
		.value = fn, \
		.second = &pass, \
	};

ACU(cosine, cosine, "CosineSimilarity: min(sum x y / (|x| |y|), 1); 1 if both are zero")
ACU(max_abs, max_abs, "MaxAbsoluteError: max |x - y|")
ACU(sum_rel, sum_rel, "AccumulatedRelativeError: sum |x / y - 1| where |y| > 2.2e-16")
ACU(rel_euclid, rel_euclid, "RelativeEuclideanDistance: |x - y| / |y|; 0 if y is zero")
ACU(kld, kld, "KullbackLeiblerDivergence: sum p ln(p / q) of values scaled to 0..1")
ACU(std, std_, "StandardDeviation: text (mean x;std x),(mean y;std y)")
ACU(mean_abs, mean_abs, "MeanAbsoluteError: mean |x - y|")
ACU(rmse, rmse, "RootMeanSquareError: sqrt(mean (x - y)^2)")
ACU(max_rel, max_rel, "MaxRelativeError: max |x / y - 1| where |y| > 2.2e-16")
ACU(mean_rel, mean_rel, "MeanRelativeError: mean |x / y - 1|, 0 where |y| <= 2.2e-16")
