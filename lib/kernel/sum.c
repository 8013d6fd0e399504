/* Adding up: lanes into a block, blocks into a chunk, chunks into a tensor. */
#include "kernel/row.h"

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

static double
both(const struct acc_sum *s)
{
	return isfinite(s->hi) ? s->hi + s->lo : s->hi;
}

double
acc_sum_value(const struct acc_sum *s)
{
	return ldexp(both(s), (int)s->exp);
}

double
acc_sum_root(const struct acc_sum *s)
{
	return ldexp(sqrt(both(s)), (int)s->exp / 2);
}

double
acc_sum_root_over(const struct acc_sum *s, const struct acc_sum *by)
{
	return ldexp(sqrt(both(s)) / sqrt(both(by)), (int)(s->exp - by->exp) / 2);
}

double
acc_sum_mean(const struct acc_sum *s, uint64_t n)
{
	return ldexp(both(s) / (double)n, (int)s->exp);
}

double
acc_sum_rms(const struct acc_sum *s, uint64_t n)
{
	return ldexp(sqrt(both(s) / (double)n), (int)s->exp / 2);
}

struct acc_sum
acc_sum_at(const struct acc_sum *s, int exp)
{
	const int by = (int)s->exp - exp;
	return (struct acc_sum){ldexp(s->hi, by), ldexp(s->lo, by), exp};
}

/* Of two scales the larger one holds both: what the other one loses is nothing beside it. */
void
acc_sum_add_at(struct acc_sum *s, double v, int exp)
{
	if (v == 0)
		return;
	if (s->hi == 0 && s->lo == 0)
		s->exp = exp;
	else if (s->exp < exp)
		*s = acc_sum_at(s, exp);
	acc_sum_add(s, ldexp(v, exp - (int)s->exp));
}

int
acc_scale_of(const double *x, size_t n, double sumsq)
{
	if (sumsq < 0x1p1000 && sumsq > 0x1p-900)
		return 0;
	double top = 0;
	for (size_t i = 0; i < n; i++)
		top = fmax(top, fabs(x[i]));
	return top > 0x1p400 ? -ACC_SCALED : top > 0 && top < 0x1p-400 ? ACC_SCALED : 0;
}

static void
sum_merge(struct acc_sum *s, const struct acc_sum *next)
{
	if (s->exp == next->exp)
		acc_sum_add(s, next->hi);
	else
		acc_sum_add_at(s, next->hi, (int)next->exp);
	s->lo += ldexp(next->lo, (int)(next->exp - s->exp));
}

void
acc_one_init(struct acc_one *s)
{
	*s = (struct acc_one){.min = INFINITY, .max = -INFINITY};
}

void
acc_two_init(struct acc_two *s)
{
	*s = (struct acc_two){0};
}

void
acc_one_merge(struct acc_one *s, const struct acc_one *next)
{
	s->n += next->n;
	s->nan += next->nan;
	s->posinf += next->posinf;
	s->neginf += next->neginf;
	s->zero += next->zero;
	s->sat += next->sat;
	s->min = next->min < s->min ? next->min : s->min;
	s->max = next->max > s->max ? next->max : s->max;
	sum_merge(&s->sum, &next->sum);
	sum_merge(&s->sumsq, &next->sumsq);
}

/* The first of equals stays: the lowest index. */
static void
max_merge(double *max, uint64_t *at, double next, uint64_t next_at)
{
	if (next > *max) {
		*max = next;
		*at = next_at;
	}
}

void
acc_two_merge(struct acc_two *s, const struct acc_two *next)
{
	s->n += next->n;
	s->used += next->used;
	s->same += next->same;
	s->kind_diff += next->kind_diff;
	s->kind_diff_unsigned += next->kind_diff_unsigned;
	sum_merge(&s->dot, &next->dot);
	sum_merge(&s->aa, &next->aa);
	sum_merge(&s->bb, &next->bb);
	sum_merge(&s->absd, &next->absd);
	sum_merge(&s->dd, &next->dd);
	max_merge(&s->max_absd, &s->max_absd_at, next->max_absd, next->max_absd_at);
	s->nrel += next->nrel;
	s->b_zero += next->b_zero;
	sum_merge(&s->rel, &next->rel);
	max_merge(&s->max_rel, &s->max_rel_at, next->max_rel, next->max_rel_at);
	s->lt_1e3 += next->lt_1e3;
	s->lt_5e3 += next->lt_5e3;
	s->outside += next->outside;
	if (next->ulp_max > s->ulp_max) {
		s->ulp_max = next->ulp_max;
		s->ulp_max_at = next->ulp_max_at;
	}
	for (int i = 0; i < ACC_ULP_BINS; i++)
		s->ulp[i] += next->ulp[i];
	sum_merge(&s->ee, &next->ee);
	max_merge(&s->max_e, &s->max_e_at, next->max_e, next->max_e_at);
}
