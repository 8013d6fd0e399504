/* The spread of the bench itself: is the device inside it? */
#include "curve/curve.h"
#include "curve/limits.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_PART = 5 };

static size_t
part(const struct band *b, int64_t step)
{
	double begin = (double)b->begin, length = (double)b->end - begin + 1;
	size_t k = (size_t)(((double)step - begin) / length * (double)b->nb);
	return k < b->nb ? k : b->nb - 1;
}

static void
widen(struct band *b, const struct curve *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct acc_point *p = &c->p[i];
		if (!acc_curve_finite(p) || p->step < b->begin || p->step > b->end)
			continue;
		double *m = &b->max[part(b, p->step)];
		*m = fmax(*m, fabs(p->v[CURVE_A] - p->v[CURVE_B])); /* fmax(NAN, x) is x */
	}
}

/* The band at a step: of its part and the two beside it. */
static double
width(const struct band *b, int64_t step)
{
	size_t k = part(b, step);
	double w = b->max[k];
	if (k > 0)
		w = fmax(w, b->max[k - 1]);
	if (k + 1 < b->nb)
		w = fmax(w, b->max[k + 1]);
	return w;
}

/* The share of c's steps that leave the band; where there is none, they do. *parts: the first of two in a row. */
static double
outside(const struct curve *c, const struct band *b, int64_t *parts)
{
	uint64_t n = 0, out = 0;
	int64_t last = INT64_MIN;
	*parts = INT64_MIN;
	for (size_t i = 0; i < c->n; i++) {
		const struct acc_point *p = &c->p[i];
		if (!acc_curve_finite(p))
			continue;
		double d = fabs(p->v[CURVE_A] - p->v[CURVE_B]);
		double may = LIMIT_NOISE_SLACK * width(b, p->step) + p->res[0] + p->res[1];
		n++;
		out += !(d <= may);
		if (!(d <= may) && last != INT64_MIN && *parts == INT64_MIN)
			*parts = last;
		last = d <= may ? INT64_MIN : p->step;
	}
	return n > 0 ? (double)out / (double)n : 0;
}

/* Its mean difference is within those of the bench's runs (and zero), but for chance. */
static bool
centred(const struct curve *c, double lo, double hi)
{
	const struct acc_drift *d = &c->f.drift;
	if (d->kind != ACC_DRIFT_OFFSET && d->kind != ACC_DRIFT_TREND)
		return true;
	double beyond = fmax(d->offset - hi, lo - d->offset);
	return !(beyond > 2.6 * d->offset_se); /* t(15) at 2 % */
}

int
acc_curve_noise(struct acc_curves *cs, struct curve *c, struct acc_err *e)
{
	struct noise *z = &c->noise;
	double lo = 0, hi = 0;
	struct band *b = &z->band;
	b->begin = c->f.begin;
	b->end = c->f.end;
	b->nb = c->f.n / LEAST_PART < 1 ? 1 : c->f.n / LEAST_PART;
	b->nb = b->nb > BAND_PARTS ? BAND_PARTS : b->nb;
	for (size_t i = 0; i < BAND_PARTS; i++)
		b->max[i] = NAN;
	for (unsigned k = 1; k < cs->nset; k++) {
		struct curve *w = acc_curve_find(&cs->set[k], c->tag);
		if (w == NULL || w->n == 0)
			w = acc_curve_find(&cs->set[k], c->base);
		if (w == NULL)
			continue;
		int rc = acc_curve_measure(w, e);
		if (rc < 0)
			return rc;
		if (isnan(w->f.mean_abs))
			continue;
		z->runs++;
		z->mean_abs = fmax(z->mean_abs, w->f.mean_abs);
		z->max_abs = fmax(z->max_abs, w->f.max_abs);
		z->mean_rel = fmax(z->mean_rel, w->f.mean_rel);
		lo = fmin(lo, w->f.drift.offset);
		hi = fmax(hi, w->f.drift.offset);
		widen(b, w);
	}
	if (z->runs == 0)
		return 0;
	z->outside = outside(c, b, &z->parts);
	z->inside = c->f.nonfinite == 0 && z->outside <= LIMIT_NOISE_LEAVE && centred(c, lo, hi) &&
		    c->f.mean_abs <= LIMIT_NOISE_SLACK * z->mean_abs + c->f.res;
	return 0;
}

double
acc_curves_band(const struct acc_curves *cs, const char *tag, int64_t step)
{
	const struct curve *c = acc_curve_find(&cs->set[0], tag);
	if (c == NULL || c->noise.runs == 0 || step < c->f.begin || step > c->f.end)
		return NAN;
	return LIMIT_NOISE_SLACK * width(&c->noise.band, step);
}
