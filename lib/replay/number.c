/* Rounding: units, limits of dtypes, and the errors of one output. */
#include "replay/impl.h"
#include "replay/limits.h"

bool
acc_is_float(enum acc_dtype t)
{
	return t != ACC_NODTYPE && acc_dtype_of(t)->cls == 'F';
}

double
acc_max_of(enum acc_dtype t)
{
	return acc_is_float(t) ? acc_dtype_of(t)->max : INFINITY;
}

double
acc_largest(const struct acc_dense *x)
{
	double most = 1;
	for (size_t i = 0; i < x->n; i++)
		most = isfinite(x->v[i]) ? fmax(most, fabs(x->v[i])) : most;
	return most;
}

/* Operators in 16 bits compute in f32. */
double
acc_work_unit(double unit)
{
	return fmin(unit, acc_unit_low(unit) ? LIMIT_LOW_WORK : unit);
}

double
acc_roundings(struct acc_replay *r, enum acc_dtype t)
{
	double unit = acc_unit(t);
	r->rounds = true;
	return unit > 0 ? unit / acc_work_unit(unit) : 1;
}

double
acc_mean_rounding(enum acc_dtype t)
{
	double unit = acc_unit(t);
	return unit >= acc_unit(ACC_BF16)  ? LIMIT_STATISTIC_BF16
	       : unit >= acc_unit(ACC_F16) ? LIMIT_STATISTIC_F16
					   : LIMIT_STATISTIC_F32;
}

double
acc_norm_rounding(enum acc_dtype t, uint64_t n)
{
	double sum = sqrt((double)n) + (double)n / LIMIT_STATISTIC_LANES;
	return acc_mean_rounding(t) * (t == ACC_F16 && n > 1 ? sum : 1);
}

/* Devices may flush what is not normal to zero (behaviour jax-flushes-subnormals), but not in f16, whose range is small. */
double
acc_tiny_of(enum acc_dtype t)
{
	switch (t) {
	case ACC_F64:
		return 0x1p-1022;
	case ACC_F32:
	case ACC_BF16:
		return 0x1p-126;
	case ACC_F16:
		return 0x1p-24;
	case ACC_F8E4M3:
	case ACC_F8E4M3FNUZ:
		return 0x1p-9;
	case ACC_F8E5M2:
	case ACC_F8E5M2FNUZ:
		return 0x1p-16;
	case ACC_HIF8:
		return 0x1p-22;
	case ACC_F8E8M0:
		return 0x1p-127;
	case ACC_F8E4M3IEEE:
		return 0x1p-9;
	case ACC_F8E3M4:
		return 0x1p-6;
	case ACC_F8E4M3B11FNUZ:
		return 0x1p-13;
	case ACC_F6E2M3:
		return 0x1p-3;
	case ACC_F6E3M2:
		return 0x1p-4;
	case ACC_F4E2M1:
		return 0x1p-1;
	default:
		return 0;
	}
}

double
acc_round_to(enum acc_dtype t, double x)
{
	int e;
	if (!acc_is_float(t) || t == ACC_F64 || !isfinite(x) || x == 0)
		return x;
	if (t == ACC_F32)
		return (float)x;
	frexp(x, &e);
	/* eps = 2^(1-p) for p bits: the last one of x weighs 2^(e-p). */
	double step = ldexp(acc_dtype_of(t)->eps, e - 1);
	if (step < acc_tiny_of(t) && t == ACC_F16)
		step = acc_tiny_of(t);
	double y = nearbyint(x / step) * step;
	return fabs(y) > acc_dtype_of(t)->max ? copysign(INFINITY, x) : y;
}

/* splitmix64 */
uint64_t
acc_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

double
acc_err_rms(const struct acc_errsum *s)
{
	return s->broken ? INFINITY : s->n == 0 ? 0 : sqrt(s->sum2 / (double)s->n);
}

bool
acc_far_off(const struct acc_errsum *s, bool low)
{
	return s->broken || acc_err_rms(s) > (low ? LIMIT_LOW_RMS : LIMIT_ONCE_RMS) ||
	       s->max > (low ? LIMIT_LOW_MAX : LIMIT_ONCE_MAX);
}

double
acc_err_max(const struct acc_errsum *s)
{
	return s->broken ? INFINITY : s->max;
}

void
acc_err_add(struct acc_errsum *s, double e)
{
	s->n++;
	if (!isfinite(e)) {
		s->broken = true;
		return;
	}
	s->sum2 += e * e;
	s->max = e > s->max ? e : s->max;
}

void
acc_err_merge(struct acc_errsum *s, const struct acc_errsum *more)
{
	s->n += more->n;
	s->sum2 += more->sum2;
	s->max = more->max > s->max ? more->max : s->max;
	s->broken |= more->broken;
}
