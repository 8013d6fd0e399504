/* Does a series keep another level from a point on? A test of each point, with the noise's
 * autocorrelation removed. */
#include "acc/curve.h"
#include "curve/limits.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCKS = 256, LEAST = 400, SHORT = 640, EDGE = 10, FEW = 8 };

struct work {
	double b[BLOCKS];     /* means of blocks */
	double w[BLOCKS];     /* what is left of them without autocorrelation */
	double s[BLOCKS + 1]; /* sums of the first of b, or w */
	double q[BLOCKS + 1]; /* of their squares */
	size_t nb, edge;
	double p1, p2, rest; /* autoregression; rest = 1 - p1 - p2 */
};

static void
sum(struct work *k, const double *x, size_t n)
{
	k->s[0] = k->q[0] = 0;
	for (size_t i = 0; i < n; i++) {
		k->s[i + 1] = k->s[i] + x[i];
		k->q[i + 1] = k->q[i] + x[i] * x[i];
	}
}

/* Where two levels leave the least over. */
static size_t
best_split(struct work *k)
{
	size_t at = k->edge;
	double most = -1, n = (double)k->nb;
	sum(k, k->b, k->nb);
	for (size_t i = k->edge; i + k->edge <= k->nb; i++) {
		double m = (double)i, d = (k->s[k->nb] - k->s[i]) / (n - m) - k->s[i] / m;
		if (d * d * m * (n - m) > most) {
			most = d * d * m * (n - m);
			at = i;
		}
	}
	return at;
}

/* An autoregression of order 2 (Yule and Walker; order 1 where that would swing) of what two
 * levels leave over. Their autocorrelations are too small by about (2 + 4 r) / n, as with a line
 * (Kendall 1954). */
static void
fit(struct work *k)
{
	size_t at = best_split(k), n = k->nb;
	double mean[2] = {k->s[at] / (double)at, (k->s[n] - k->s[at]) / (double)(n - at)};
	double c[3] = {0, 0, 0}, r[2];
	for (size_t i = 0; i < n; i++)
		k->w[i] = k->b[i] - mean[i >= at];
	for (size_t lag = 0; lag < 3; lag++)
		for (size_t i = lag; i < n; i++)
			c[lag] += k->w[i] * k->w[i - lag];
	for (size_t lag = 1; lag < 3; lag++) {
		double v = c[0] > 0 ? ((double)n * (c[lag] / c[0]) + 2) / ((double)n - 4) : 0;
		r[lag - 1] = fmin(fmax(v, 0), 0.99);
	}
	r[1] = fmin(r[1], r[0]);
	k->p1 = r[0] * (1 - r[1]) / (1 - r[0] * r[0]);
	k->p2 = (r[1] - r[0] * r[0]) / (1 - r[0] * r[0]);
	if (k->p2 < 0) {
		k->p1 = r[0];
		k->p2 = 0;
	}
	double phi = k->p1 + k->p2, cut = phi > LIMIT_PHI ? LIMIT_PHI / phi : 1;
	k->p1 *= cut;
	k->p2 *= cut;
	k->rest = 1 - k->p1 - k->p2;
}

/* Take the autocorrelation out: w[i] belongs to b[i + 1]. */
static void
whiten(struct work *k)
{
	for (size_t i = 1; i < k->nb; i++)
		k->w[i - 1] = k->b[i] - k->p1 * k->b[i - 1] - k->p2 * k->b[i > 1 ? i - 2 : 0];
	sum(k, k->w, k->nb - 1);
}

/* Variance of w[lo] to w[hi - 1] about their mean. */
static double
variance(const struct work *k, size_t lo, size_t hi)
{
	double n = (double)(hi - lo), m = (k->s[hi] - k->s[lo]) / n;
	return fmax(k->q[hi] - k->q[lo] - n * m * m, 0) / (n - 1);
}

/* The t of another level from block `at` on: what the means before and after say of it, and the
 * step itself, each with the weight that the noise of its side leaves it (Welch). */
static double
t_at(const struct work *k, size_t at)
{
	size_t m = k->nb - 1, before = at - 1, after = m - at;
	double v[2] = {variance(k, 0, before), variance(k, at, m)};
	double pool = (v[0] * (double)(before - 1) + v[1] * (double)(after - 1)) / (double)(m - 3);
	if (before < FEW)
		v[0] = fmax(v[0], pool / 2);
	if (after < FEW)
		v[1] = fmax(v[1], pool / 2);
	double mean = k->s[before] / (double)before;
	double level = ((k->s[m] - k->s[at]) / (double)after - mean) / k->rest;
	double level_var = (v[0] / (double)before + v[1] / (double)after) / (k->rest * k->rest);
	double step = k->w[at - 1] - mean;
	double step_var = fmax(v[0], v[1]) + v[0] / (double)before;
	if (!(level_var > 0) || !(step_var > 0))
		return level == 0 ? 0 : copysign(INFINITY, level);
	return (level / level_var + step / step_var) / sqrt(1 / level_var + 1 / step_var);
}

/* The first of n values that another level begins with, near that of block `at`: where two
 * levels leave the least over. */
static size_t
refine(const double *d, size_t n, const struct work *k, size_t at)
{
	size_t lo = (at - 1) * n / k->nb, hi = (at + 2) * n / k->nb, first = at * n / k->nb;
	double mean[2] = {k->s[at] / (double)at, (k->s[k->nb] - k->s[at]) / (double)(k->nb - at)};
	double less = 0, least = 0;
	hi = hi < n ? hi : n;
	for (size_t i = lo; i < hi; i++) {
		double a = d[i] - mean[0], b = d[i] - mean[1];
		less += a * a - b * b;
		if (i == lo || less < least) {
			least = less;
			first = i + 1;
		}
	}
	return first < n ? first : n - 1;
}

bool
acc_change_sharp(const double *d, size_t n, double *room, struct acc_change *out)
{
	*out = (struct acc_change){.t = NAN, .before = NAN, .after = NAN};
	/* The least of the values from i on, where all are to one side; else 0. */
	for (size_t i = n; i-- > 0;) {
		const double next = i + 1 < n ? room[i + 1] : fabs(d[i]);
		room[i] = i + 1 < n && (d[i] > 0) != (d[i + 1] > 0) ? 0 : fmin(fabs(d[i]), next);
	}
	double most = 0, sum = 0; /* of those before i */
	for (size_t i = 1; i < n; i++) {
		most = fmax(most, fabs(d[i - 1]));
		const double times = room[i] > 1e9 * most ? 1e9 : room[i] / most;
		if (room[i] > most && times > out->times) {
			out->found = true;
			out->times = times;
			out->at = i;
			out->before = most;
		}
	}
	for (size_t i = out->at; i < n; i++)
		sum += d[i];
	out->told = n > 1;
	out->after = out->found ? sum / (double)(n - out->at) : NAN;
	out->even = out->found && sum != 0 ? room[out->at] / fabs(out->after) : NAN;
	return out->found;
}

void
acc_change_test(const double *d, size_t n, struct acc_change *out)
{
	struct work k = {.nb = n < BLOCKS ? n : BLOCKS};
	*out = (struct acc_change){.t = NAN, .before = NAN, .after = NAN};
	if (n < LEAST)
		return;
	k.edge = k.nb / EDGE;
	for (size_t g = 0; g < k.nb; g++) {
		size_t lo = g * n / k.nb, hi = (g + 1) * n / k.nb;
		double all = 0;
		for (size_t i = lo; i < hi; i++)
			all += d[i];
		k.b[g] = all / (double)(hi - lo);
	}
	fit(&k);
	whiten(&k);
	size_t at = k.edge;
	for (size_t i = k.edge; i + k.edge <= k.nb; i++) {
		double t = t_at(&k, i);
		if (isnan(out->t) || fabs(t) > fabs(out->t)) {
			out->t = t;
			at = i;
		}
	}
	double phi = 1 - k.rest;
	out->told = (double)k.nb * (1 - phi) / (1 + phi) >=
		    (n < SHORT ? LIMIT_CHANGE_BLOCKS_SHORT : LIMIT_CHANGE_BLOCKS);
	out->found = out->told && fabs(out->t) > LIMIT_CHANGE;
	sum(&k, k.b, k.nb);
	out->at = refine(d, n, &k, at);
	double sums[2] = {0, 0};
	for (size_t i = 0; i < n; i++)
		sums[i >= out->at] += d[i];
	out->before = sums[0] / (double)out->at;
	out->after = sums[1] / (double)(n - out->at);
}
