#include "row.h"

#include <math.h>

double
acc_fold(const double lane[16])
{
	double t[8];
	for (int i = 0; i < 8; i++)
		t[i] = lane[i] + lane[i + 8];
	for (int h = 4; h > 0; h /= 2)
		for (int i = 0; i < h; i++)
			t[i] += t[i + h];
	return t[0];
}

void
acc_wide_one(const double *x, size_t n, struct acc_blk1 *o)
{
	double sum[16] = {0}, sumsq[16] = {0}, lo = INFINITY, hi = -INFINITY;
	uint32_t zero = 0;
	for (size_t i = 0; i < n; i++) {
		double v = x[i];
		sum[i % 16] += v;
		sumsq[i % 16] += v * v;
		lo = v < lo ? v : lo;
		hi = v > hi ? v : hi;
		zero += v == 0;
	}
	*o = (struct acc_blk1){acc_fold(sum), acc_fold(sumsq), lo, hi, zero};
}

double
acc_wide_r(double d, double b)
{
	return b == 0 ? 0 : fabs(d) / fabs(b);
}

double
acc_wide_e(double d, double b, double scale)
{
	double den = fabs(b) + scale;
	return den == 0 ? d == 0 ? 0 : INFINITY : fabs(d) / den;
}

void
acc_wide_two(const double *a, const double *b, const double *d, size_t n,
	const struct acc_kernel_opt *opt, struct acc_blk2 *o)
{
	enum { DOT, ABSD, DD, R, EE, NSUM };
	double s[NSUM][16] = {{0}};
	*o = (struct acc_blk2){0};
	acc_wide_one(a, n, &o->a);
	acc_wide_one(b, n, &o->b);
	for (size_t i = 0; i < n; i++) {
		size_t k = i % 16;
		double ad = fabs(d[i]), r = acc_wide_r(d[i], b[i]);
		double e = acc_wide_e(d[i], b[i], opt->scale);
		s[DOT][k] += a[i] * b[i];
		s[ABSD][k] += ad;
		s[DD][k] += d[i] * d[i];
		s[R][k] += r;
		s[EE][k] += e * e;
		o->maxd = ad > o->maxd ? ad : o->maxd;
		o->maxr = r > o->maxr ? r : o->maxr;
		o->maxe = e > o->maxe ? e : o->maxe;
		o->b0 += b[i] == 0 && a[i] != 0;
		o->lt1 += r < 0.001;
		o->lt5 += r < 0.005;
		o->outside += !(ad <= opt->atol + opt->rtol * fabs(b[i]));
	}
	o->dot = acc_fold(s[DOT]);
	o->absd = acc_fold(s[ABSD]);
	o->dd = acc_fold(s[DD]);
	o->rel = acc_fold(s[R]);
	o->ee = acc_fold(s[EE]);
}
