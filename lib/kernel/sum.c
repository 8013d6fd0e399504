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

double
acc_sum_value(const struct acc_sum *s)
{
	return isfinite(s->hi) ? s->hi + s->lo : s->hi;
}

static void
sum_merge(struct acc_sum *s, const struct acc_sum *next)
{
	acc_sum_add(s, next->hi);
	s->lo += next->lo;
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
