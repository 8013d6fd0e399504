/* Noise about zero, or not: t tests on groups of a prewhitened series. */
#include "acc/curve.h"
#include "curve/limits.h"

#include <math.h>

enum { BLOCKS = 64, GROUPS = 16, FEW_GROUPS = 8, LEAST = 10 };

/* Continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22). */
static double
beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double h = d;
	for (int m = 1; m < 500; m++) {
		double step = 1;
		for (int odd = 0; odd < 2; odd++) {
			double k = odd ? -(a + m) * (a + b + m) / (a + 2 * m + 1)
				       : m * (b - m) / (a + 2 * m - 1);
			k *= x / (a + 2 * m);
			d = 1 + k * d;
			c = 1 + k / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			step = c * d;
			h *= step;
		}
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return h;
}

/* The regularised incomplete beta function I_x(a, b). */
static double
beta_part(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x >= 1;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double
acc_student_p(double t, double df)
{
	if (isinf(t))
		return 0;
	return beta_part(df / 2, 0.5, df / (df + t * t));
}

/* Means of q groups of as many values each as n allows. */
static void
group_means(const double *x, size_t n, size_t q, double *out)
{
	for (size_t g = 0; g < q; g++) {
		size_t lo = g * n / q, hi = (g + 1) * n / q;
		double sum = 0;
		for (size_t i = lo; i < hi; i++)
			sum += x[i];
		out[g] = sum / (double)(hi - lo);
	}
}

/* The mean of x[n], its standard error, and the probability of a mean as far from 0. */
static double
t_test(const double *x, size_t n, double *mean, double *se)
{
	double sum = 0, sq = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	*mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		sq += (x[i] - *mean) * (x[i] - *mean);
	*se = sqrt(sq / (double)(n - 1) / (double)n);
	if (*mean == 0)
		return 1;
	return acc_student_p(*mean / *se, (double)(n - 1));
}

/* Lag-1 autocorrelation of what the straight line leaves over; that estimate is too small by
 * about (2 + 4 phi) / n (Kendall 1954, with a trend fitted). */
static double
autocorrelation(const double *x, size_t n, double *left)
{
	double mean = 0, tx = 0, tt = 0, up = 0, sq = 0, most = 0;
	for (size_t i = 0; i < n; i++) {
		mean += x[i] / (double)n;
		most = fmax(most, fabs(x[i]));
	}
	for (size_t i = 0; i < n; i++) {
		double t = (double)i - (double)(n - 1) / 2;
		tx += t * x[i];
		tt += t * t;
	}
	for (size_t i = 0; i < n; i++) {
		left[i] = x[i] - mean - tx / tt * ((double)i - (double)(n - 1) / 2);
		sq += left[i] * left[i];
		if (i > 0)
			up += left[i] * left[i - 1];
	}
	/* Nothing but rounding is left of a straight line. */
	if (!(sq > 1e-24 * most * most * (double)n))
		return 0;
	double phi = ((double)n * (up / sq) + 2) / ((double)n - 4);
	return phi < 0 ? 0 : phi > LIMIT_PHI ? LIMIT_PHI : phi;
}

static uint64_t
sign_changes(const double *d, size_t n)
{
	uint64_t changes = 0;
	double last = 0;
	for (size_t i = 0; i < n; i++) {
		if (d[i] == 0)
			continue;
		changes += (d[i] > 0 && last < 0) || (d[i] < 0 && last > 0);
		last = d[i];
	}
	return changes;
}

void
acc_drift_test(const double *d, size_t n, struct acc_drift *out)
{
	double block[BLOCKS], white[BLOCKS], group[GROUPS], half[GROUPS / 2], mean, se;
	size_t nb = n < BLOCKS ? n : BLOCKS, q = n < 32 ? FEW_GROUPS : GROUPS;
	*out = (struct acc_drift){.kind = ACC_DRIFT_UNKNOWN,
		.offset_p = NAN,
		.trend_p = NAN,
		.offset = NAN,
		.offset_se = NAN,
		.phi = NAN,
		.eff = NAN,
		.signs = sign_changes(d, n)};
	if (n < LEAST)
		return;
	group_means(d, n, nb, block);
	out->phi = autocorrelation(block, nb, white);
	out->eff = (double)nb * (1 - out->phi) / (1 + out->phi);
	for (size_t i = 1; i < nb; i++)
		white[i - 1] = block[i] - out->phi * block[i - 1];
	group_means(white, nb - 1, q, group);
	out->offset_p = t_test(group, q, &mean, &se);
	out->offset = mean / (1 - out->phi);
	out->offset_se = se / (1 - out->phi);
	for (size_t i = 0; i < q / 2; i++)
		half[i] = group[i + q / 2] - group[i];
	out->trend_p = t_test(half, q / 2, &mean, &se);
	bool enough = out->eff >= (n < BLOCKS ? LIMIT_DRIFT_BLOCKS_SHORT : LIMIT_DRIFT_BLOCKS);
	enum acc_drift_kind found = out->trend_p < LIMIT_DRIFT_LEVEL    ? ACC_DRIFT_TREND
				    : out->offset_p < LIMIT_DRIFT_LEVEL ? ACC_DRIFT_OFFSET
									: ACC_DRIFT_NONE;
	/* What crosses zero as often goes nowhere, whatever its autocorrelation may be. */
	if (enough || (found == ACC_DRIFT_NONE && 4 * out->signs >= n))
		out->kind = found;
}
