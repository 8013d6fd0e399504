/* An item of which statistics alone are known: how far they are apart, and what they leave open. */
#include "judge/first_bad.h"
#include "judge/picked.h"

#include <math.h>

/* -1, 0, 1 for -Inf, finite, +Inf; 2 for NaN */
static int
kind_of_number(double x)
{
	return isnan(x) ? 2 : isinf(x) ? (x > 0) - (x < 0) : 0;
}

/* A statistic (MAX to NORM) as the recorder wrote it, or as it was measured. */
static const struct acc_val *
statistic(const struct acc_val *const *v, int i)
{
	static const uint8_t own[] = {S_MAX, S_MIN, S_MEAN, S_NORM};
	return v[i] != NULL ? v[i] : v[own[i - MAX]];
}

/* What six digits leave open of a number: half a unit of the last of them. 0: it has more. */
static double
open_digits(double x)
{
	const int digits = acc_f64_digits(x);
	return digits > 0 && digits <= 6 ? 0.5 * pow(10, floor(log10(fabs(x))) - 5) : 0;
}

void
acc_open_digits(const double *x, int n, double *open)
{
	bool all = true;
	for (int i = 0; i < n; i++) {
		open[i] = open_digits(x[i]);
		all &= x[i] == 0 || open[i] > 0;
	}
	for (int i = 0; i < n && !all; i++)
		open[i] = 0;
}

/* Does a side write its statistics with six digits, as MindSpore does? Numbers that have no more
 * by chance are few: all must be such. */
static bool
six_digits(const struct acc_val *const *v)
{
	bool any = false;
	for (int i = MAX; i <= NORM; i++) {
		double x = acc_picked_f64(statistic(v, i));
		if (!isfinite(x) || x == 0)
			continue;
		if (open_digits(x) == 0)
			return false;
		any = true;
	}
	return any;
}

/* A cast to f16 rounds to a multiple of 2^-24, its smallest number: what is small has no relative
 * precision. 0 without a cast. */
double
acc_item_cast(const struct acc_item *it)
{
	bool one = (it->dtype[ACC_A] == ACC_F16) != (it->dtype[ACC_B] == ACC_F16);
	return one ? 0x1p-25 : 0;
}

/* Floats that are all 0 or 1, and some are each? Of those between, the square is less than the number:
 * then the squares add up to less than the numbers do. */
static bool
is_mask(const struct acc_val *const *v, double n, double unit)
{
	const double mean = acc_picked_f64(statistic(v, MEAN)),
		     norm = acc_picked_f64(statistic(v, NORM));
	return acc_picked_f64(statistic(v, MAX)) == 1 && acc_picked_f64(statistic(v, MIN)) == 0 &&
	       fabs(norm * norm - n * mean) <=
		       3 * acc_statistic_rounding(unit) * fmax(norm * norm, n * mean);
}

/* Is it split over ranks that accfold made one? */
static bool
is_split(const struct acc_val *fold)
{
	struct acc_str s = acc_picked_text(fold);
	return memmem(s.p, s.n, "Shard", 5) != NULL;
}

/* A norm is summed up in f32, one square after another in each lane, and equal ones round the same way.
 * Where both sides have the same elements, so they do alike; but not where one side's are split over
 * ranks. `most` is the largest magnitude: n (rms / most)^2 elements at most are that large. */
static double
split_rounding(const struct acc_picked *f, double norm, double most)
{
	if (!(most > 0) || !(is_split(f->side[ACC_A][FOLD]) || is_split(f->side[ACC_B][FOLD])))
		return 0;
	return norm * 2 * acc_unit(ACC_F32) * (norm / most) * (norm / most) / LIMIT_NORM_SUMMANDS;
}

/* The largest magnitude of a side, by its extremes; NAN where they are unknown. */
static double
largest(const struct acc_val *const *v)
{
	return fmax(fabs(acc_picked_f64(statistic(v, MAX))),
		fabs(acc_picked_f64(statistic(v, MIN))));
}

/* Squares are summed up in f32: of elements so small they are subnormal, or 0, and the norm shows nothing. */
static bool
norm_underflows(const struct acc_val *const *v)
{
	const double most = largest(v);
	return most > 0 && most * most < LIMIT_NORM_LEAST;
}

/* The L1 norm, which a recorder gives that has no other statistic. It was summed up in double. 0: there is none. */
static bool
by_l1(struct acc_item *it, const struct acc_val *p, const struct acc_val *q, uint64_t n)
{
	const double x = acc_picked_f64(p), y = acc_picked_f64(q), d = fabs(x - y);
	if (!acc_picked_is_f64(p) || !acc_picked_is_f64(q) || (isnan(x) && isnan(y)) ||
		(isinf(x) && isinf(y)))
		return false;
	it->measure = ACC_BY_STAT;
	it->blind = true;
	it->nonfinite = kind_of_number(x) != kind_of_number(y);
	it->rms = it->max = it->left = it->rest = it->slope = it->nonfinite      ? INFINITY
							      : d <= 0x1p-40 * y ? 0
							      : it->exact        ? 1
							      : y == 0           ? INFINITY
										 : (float)(d / y);
	it->b_rms = (float)(n == 0 ? 0 : y / (double)n);
	it->stat_abs = it->nonfinite ? NAN : (float)(n == 0 ? d : d / (double)n);
	return true;
}

/* Of statistics. The recorder rounded mean and norm to the dtype of the tensor; max and min are elements
 * of it. An infinite norm or mean is no sign of an infinite element (it is computed
 * in the tensor's own dtype), so only max and min tell of those. */
void
acc_item_by_statistics(struct acc_item *it, const struct acc_picked *f)
{
	const struct acc_val *const *a = f->side[ACC_A], *const *b = f->side[ACC_B];
	double scale = 0, worst = 0, left = 0, off = 0, tiny = acc_item_cast(it);
	double unit = acc_item_unit(it);
	uint64_t n = acc_picked_count(b[SHAPE]);
	if (a[SHAPE] != NULL && acc_picked_count(a[SHAPE]) != n)
		return;
	if (acc_picked_is_f64(statistic(b, NORM)) && n > 0)
		/* msprobe gives a scalar itself as its norm, with its sign: behaviour msprobe-scalar-norm. */
		scale = fabs(acc_picked_f64(statistic(b, NORM))) / sqrt((double)n);
	if (!isfinite(scale))
		scale = 0;
	/* What a norm taken in 16 bits cannot hold is no size: behaviours msprobe-norm-in-dtype, msprobe-complex-abs. */
	const bool normless = !it->exact && (norm_underflows(a) || norm_underflows(b));
	if (normless)
		scale = fmax(0, largest(b));
	bool any = false, short_a = six_digits(a), short_b = six_digits(b);
	for (int i = MAX; i <= NORM; i++) {
		const struct acc_val *p = statistic(a, i), *q = statistic(b, i);
		bool bools = p != NULL && q != NULL && p->type == ACC_V_BOOL &&
			     q->type == ACC_V_BOOL;
		if (!bools && !(acc_picked_is_f64(p) && acc_picked_is_f64(q)))
			continue;
		any = true;
		if (i == NORM && normless)
			continue;
		double x = bools ? p->b : acc_picked_f64(p), y = bools ? q->b : acc_picked_f64(q);
		if (i ==
			NORM) /* of a scalar msprobe gives itself; others, and what is measured, not */
			x = fabs(x), y = fabs(y);
		if (kind_of_number(x) != kind_of_number(y)) {
			if (i == MAX || i == MIN)
				it->nonfinite = true;
			continue;
		}
		if (!isfinite(x))
			continue;
		double d = fabs(x - y);
		/* What the digits leave open is no difference; of a large one it is no matter. Integers are
		 * exact, but their statistics have no more digits; of one that both write so the digits are the
		 * same. */
		double open = (short_a ? open_digits(x) : 0) + (short_b ? open_digits(y) : 0);
		if (it->exact && short_a && short_b)
			open = 0;
		if (d <= (it->exact ? 1 + 0x1p-40 : 4) * open)
			d = fmax(0, d - open * (1 + 0x1p-40));
		double den = fabs(y) + (i == NORM ? 0 : scale);
		if (i == NORM)
			d = fmax(0, d - acc_stat_norm_rounding(tiny, fabs(y), (double)n) -
					    split_rounding(f, fabs(y), largest(b)));
		if (i == NORM || i == MEAN)
			d = fmax(0, d - acc_statistic_rounding(unit) *
						    (acc_unit_low(unit) ? fabs(y) : den));
		if (den == 0) /* a single 0 has no size that an error could be relative to */
			den = it->ndim == 0 ? 1 : 0;
		if (i == NORM && y != 0)
			it->slope = (float)(d / fabs(y));
		double e = d == 0 ? 0 : it->exact ? 1 : den == 0 ? INFINITY : d / den;
		if (i == MEAN)
			it->mean_off = (float)e;
		worst = e > worst ? e : worst;
		/* A mean of rounded elements is rounded itself. */
		left = fmax(left, i == NORM || it->exact || !(d > 0) || isinf(e)
					  ? e
					  : fmax(0, d - (i == MEAN ? 2 : 1) * tiny) / den);
		off = fmax(off, i == NORM ? d / sqrt((double)n + (n == 0)) : d);
	}
	if (!any) {
		by_l1(it, a[L1], b[L1], n);
		return;
	}
	it->measure = ACC_BY_STAT;
	it->mask = !it->exact && is_mask(a, (double)n, unit) && is_mask(b, (double)n, unit);
	it->rms = it->max = it->nonfinite ? INFINITY : (float)worst;
	it->left = it->nonfinite ? INFINITY : (float)left;
	it->b_rms = (float)scale;
	it->b_max = (float)fmax(fabs(acc_picked_f64(b[MAX])), fabs(acc_picked_f64(b[MIN])));
	it->stat_abs = it->nonfinite ? NAN : (float)off;
	it->few = (float)(it->b_max / (scale * sqrt((double)n)));
	it->rest = it->rms * 2;
}
