/* The four statistics that are known of a tensor without its elements. */
#include "acc/stat.h"

#include <math.h>

static bool
number(const struct acc_val *x, double *v)
{
	bool b;
	if (acc_as_f64(x, v))
		return true;
	if (!acc_as_bool(x, &b))
		return false;
	*v = b;
	return true;
}

uint8_t
acc_stat_read(const struct acc_rec *r, const char *side, enum acc_stat_from from,
	double v[ACC_STATS])
{
	static const char *const recorded[ACC_STATS] = {"stat.max", "stat.min", "stat.mean",
		"stat.norm"};
	static const char *const measured[ACC_STATS] = {"s.max", "s.min", "s.mean", "s.norm"};
	unsigned known = 0;
	for (int i = 0; i < ACC_STATS; i++) {
		v[i] = NAN;
		if ((from == ACC_STAT_MEASURED && number(acc_get(r, side, measured[i]), &v[i])) ||
			number(acc_get(r, side, recorded[i]), &v[i]))
			known |= 1U << i;
	}
	return (uint8_t)known;
}

bool
acc_stat_finite(const double v[ACC_STATS])
{
	bool all = true;
	for (int i = 0; i < ACC_STATS; i++)
		all &= isfinite(v[i]) != 0;
	return all;
}

double
acc_stat_rms(const double v[ACC_STATS], double count)
{
	return count > 0 ? fabs(v[ACC_STAT_NORM]) / sqrt(count) : 0;
}

void
acc_stat_add(struct acc_stat_parts *p, const double v[ACC_STATS], double count)
{
	const double max = v[ACC_STAT_MAX], min = v[ACC_STAT_MIN];
	if (count == 0)
		return;
	if (p->count == 0 || isnan(max) || max > p->max)
		p->max = p->count > 0 && isnan(p->max) ? p->max : max;
	if (p->count == 0 || isnan(min) || min < p->min)
		p->min = p->count > 0 && isnan(p->min) ? p->min : min;
	p->sum += v[ACC_STAT_MEAN] * count;
	p->square += v[ACC_STAT_NORM] * v[ACC_STAT_NORM];
	p->count += count;
}

void
acc_stat_whole(const struct acc_stat_parts *p, double v[ACC_STATS])
{
	v[ACC_STAT_MAX] = p->max;
	v[ACC_STAT_MIN] = p->min;
	v[ACC_STAT_MEAN] = p->sum / p->count;
	v[ACC_STAT_NORM] = sqrt(p->square);
}

void
acc_stat_apart(const double a[ACC_STATS], const double b[ACC_STATS], double count,
	double apart[ACC_STATS])
{
	const double large = fmax(fabs(b[ACC_STAT_MAX]), fabs(b[ACC_STAT_MIN]));
	const double size[ACC_STATS] = {large, large, acc_stat_rms(b, count),
		fabs(b[ACC_STAT_NORM])};
	for (int i = 0; i < ACC_STATS; i++)
		apart[i] = a[i] == b[i] ? 0 : fabs(a[i] - b[i]) / size[i];
}
