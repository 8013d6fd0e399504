/* The comparison of two sides: what a chunk is, and how its blocks add up. */
#include "kernel/two.h"

#include <math.h>

void
acc_kinds_add(struct acc_kinds *k, double x, double y)
{
	if (isnan(x) ? isnan(y) : x == y) {
		k->equal++;
		return;
	}
	k->diff++;
	k->diff_unsigned += !(isinf(x) && isinf(y));
}

void
acc_two_job_add(struct acc_two_job *j, const struct acc_blk2 *r, const struct acc_kinds *k,
	size_t zeros)
{
	struct acc_two *o = j->out;
	acc_sum_add(&o->dot, r->dot);
	acc_sum_add(&o->aa, r->a.sumsq);
	acc_sum_add(&o->bb, r->b.sumsq);
	acc_sum_add(&o->absd, r->absd);
	acc_sum_add(&o->dd, r->dd);
	acc_sum_add(&o->rel, r->rel);
	acc_sum_add(&o->ee, r->ee);
	o->used += k->used;
	o->kind_diff += k->diff;
	o->kind_diff_unsigned += k->diff_unsigned;
	o->nrel += k->used - (r->b.zero - zeros);
	o->b_zero += r->b0;
	/* Rows take r = 0 where b is 0. */
	o->lt_1e3 += r->lt1 - zeros - r->b0;
	o->lt_5e3 += r->lt5 - zeros - r->b0;
	o->outside += r->outside + k->diff;
}

void
acc_two_job_add_ulps(struct acc_two_job *j, const struct acc_ulps *u, const struct acc_kinds *k,
	size_t zeros)
{
	struct acc_two *o = j->out;
	const int last = u->max == 0 ? 0 : 64 - __builtin_clzll(u->max);
	o->same += u->same - zeros + k->equal;
	for (int i = 0; i <= last; i++)
		o->ulp[i] += u->bin[i];
	o->ulp[0] -= zeros;
}

uint64_t
acc_two_job_place(const struct acc_two_job *j, size_t off, size_t i)
{
	return j->at + (off + i) / j->per;
}

static enum acc_dtype
coarser(enum acc_dtype a, enum acc_dtype b)
{
	const struct acc_dtype_info *x = acc_dtype_of(a), *y = acc_dtype_of(b);
	if (x->cls != 'F')
		return y->cls != 'F' ? ACC_NODTYPE : b;
	if (y->cls != 'F' || x->eps > y->eps)
		return a;
	return x->eps < y->eps || y->max < x->max ? b : a;
}

/* Equal bytes: every sum is one of a side's own. */
static void
same_bytes(const struct acc_two_job *j, enum acc_dtype t, size_t n)
{
	struct acc_one side;
	struct acc_two *o = j->out;
	acc_one_run(j->row, t, j->a, n, &side);
	o->used = n - side.nan - side.posinf - side.neginf;
	o->same = n;
	o->dot = o->aa = o->bb = side.sumsq;
	o->nrel = o->used - side.zero;
	o->lt_1e3 = o->lt_5e3 = o->ulp[0] = o->used;
}

void
acc_two_run(const struct acc_row *row, enum acc_dtype ta, const void *a, enum acc_dtype tb,
	const void *b, size_t n, uint64_t at, const struct acc_kernel_opt *opt, struct acc_one *oa,
	struct acc_one *ob, struct acc_two *out)
{
	struct acc_two_job j = {.row = row,
		.opt = opt,
		.ta = acc_component(ta),
		.tb = acc_component(tb),
		.a = a,
		.b = b,
		.at = at,
		.out = out};
	const bool za = acc_dtype_of(ta)->cls == 'C', zb = acc_dtype_of(tb)->cls == 'C';
	const bool same = ta == tb && memcmp(a, b, n * acc_dtype_of(ta)->size) == 0;
	acc_two_init(out);
	acc_one_init(oa);
	acc_one_init(ob);
	j.per = za || zb ? 2 : 1;
	j.real_a = j.per == 2 && !za;
	j.real_b = j.per == 2 && !zb;
	j.coarse = coarser(j.ta, j.tb);
	j.ca = acc_codes_of(j.ta);
	j.cb = acc_codes_of(j.tb);
	j.cc = j.coarse == j.ta ? j.ca : j.cb;
	j.f32 = !za && !zb && acc_is_narrow(j.ta) && acc_is_narrow(j.tb) &&
		acc_dtype_of(j.ta)->cls == 'F' && acc_dtype_of(j.tb)->cls == 'F';
	out->n = n;
	if (same) {
		same_bytes(&j, ta, n);
	} else if (j.f32) {
		j.oa = oa;
		j.ob = ob;
		acc_two_narrow(&j, n);
	} else {
		acc_two_wide(&j, n * j.per);
	}
	if (j.oa == NULL) {
		acc_one_run(row, ta, a, n, oa);
		if (same)
			*ob = *oa;
		else
			acc_one_run(row, tb, b, n, ob);
	}
}
