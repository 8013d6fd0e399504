/* How a device rounds, where that is not to the nearest and even: by chance, half away from zero, or numbers
 * that are not normal to zero. Each is right by a rule of its own, and is told by all of a tensor. */
#include "replay/impl.h"
#include "replay/limits.h"

static double
least_normal(enum acc_dtype t)
{
	return t == ACC_F64 ? 0x1p-1022 : t == ACC_F16 ? 0x1p-14 : 0x1p-126;
}

/* Between which two numbers of the dtype lies ref, how far behind the nearer one to zero, in parts of their
 * distance, and which was taken? */
static void
see(struct acc_rounds *s, double eps, double least, double rec, double ref)
{
	int e;
	frexp(fmax(fabs(ref), least), &e);
	const double step = ldexp(eps, e - 1), size = fabs(ref) / step, low = floor(size);
	const double part = size - low, took = rec * copysign(1, ref) / step - low;
	if (part == 0 && took == 0)
		return;
	s->n++;
	if (took != 0 && took != 1) {
		s->beyond++;
		return;
	}
	if (part == 0.5) {
		s->ties += fmod(low, 2) == 0; /* to even is down */
		s->away += fmod(low, 2) == 0 && took == 1;
	} else {
		const bool near = took == (part > 0.5), outer = fabs(part - 0.5) > 0.25;
		s->off += !near;
		s->outer += outer;
		s->outer_off += outer && !near;
	}
	s->up += took - part;
	s->chance += part * (1 - part);
}

void
acc_rounds_add(struct acc_rounds *s, enum acc_dtype t, const double *rec, const double *ref,
	size_t n)
{
	const double least = least_normal(t), eps = acc_dtype_of(t)->eps;
	const bool low = t == ACC_F16 || t == ACC_BF16;
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(rec[i]) || !isfinite(ref[i]) || ref[i] == 0)
			continue;
		s->small += rec[i] != 0 && fabs(rec[i]) < least;
		s->flushed += rec[i] == 0 && fabs(ref[i]) < least && fabs(ref[i]) >= least * eps;
		if (low && i < LIMIT_ROUNDING_SAMPLES)
			see(s, eps, least, rec[i], ref[i]);
	}
}

const char *
acc_rounds_of(const struct acc_rounds *s)
{
	/* To the nearest number none of the outer ones would be off. */
	const double outer = (double)s->outer_off / (double)s->outer;
	if (s->flushed > 0 && s->small == 0)
		return "flushed";
	if (s->beyond > 0 || s->n < LIMIT_ROUNDING_LEAST)
		return NULL;
	if (s->off == 0 && s->ties >= LIMIT_ROUNDING_TIES && s->away == s->ties)
		return "half away";
	return s->outer >= LIMIT_ROUNDING_LEAST && outer > LIMIT_ROUNDING_OUTER / 2 &&
			       outer < LIMIT_ROUNDING_OUTER * 2 &&
			       fabs(s->up) < LIMIT_SLOPE_CHANCE * sqrt(s->chance)
		       ? "by chance"
		       : NULL;
}
