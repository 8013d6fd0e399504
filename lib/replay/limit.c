/* How large an error may be, and what the dump itself says about it. */
#include "replay/impl.h"

#include <stdlib.h>

/* Limits in units of rounding, of the rms and of the largest error. What is right stays far below
 * (rounding to nearest: 0.6 and 1 in f32, 1.2 and 2 in 16 bits, whose unit is half as large). */
static void
basic(const struct acc_audited *v, double *rms, double *max)
{
	if (v->rounding == ACC_EXACT && !v->backward) {
		*rms = *max = 0.5;
	} else if (v->low) {
		*rms = v->backward ? 4 : 1.6;
		*max = v->backward ? 10 : 4;
	} else if (v->rounding == ACC_FEW) {
		*rms = 40;
		*max = 200;
	} else {
		*rms = 8;
		*max = 32;
	}
}

/* What all calls of a class do cannot all be faults: tf32 and hf32 in products (2^-11 of the
 * terms), fast approximations elsewhere. From three calls of a class on, each may have the usual
 * error of the others at this place, several times over. */
enum { FEWEST = 3, RAISE = 6 };

/* In 16 bits errors are of the final rounding, whose rms is nearly the same everywhere; unless
 * they are larger than that. */
static double
raise_rms(const struct acc_audited *v, double usual)
{
	return v->low && usual <= v->limit * 2 / 3 ? 2.5 : RAISE;
}

static bool
is_product(const struct acc_audited *v)
{
	return strcmp(v->cls, "product") == 0;
}

/* The rms that a class may be forgiven. */
static double
ceiling(const struct acc_audited *v)
{
	if (v->low)
		return 16;
	return is_product(v) ? 0x1p14 : 0x1p10;
}

static int
by_class(const void *a, const void *b)
{
	const struct acc_audited *x = *(struct acc_audited *const *)a;
	const struct acc_audited *y = *(struct acc_audited *const *)b;
	int d = strcmp(x->cls, y->cls);
	if (d == 0)
		d = x->backward - y->backward;
	if (d == 0)
		d = x->low - y->low;
	if (d == 0)
		d = x->pos - y->pos;
	if (d == 0)
		d = (x->rms > y->rms) - (x->rms < y->rms);
	return d != 0 ? d : (x->line > y->line) - (x->line < y->line);
}

static bool
together(const struct acc_audited *x, const struct acc_audited *y)
{
	return strcmp(x->cls, y->cls) == 0 && x->backward == y->backward && x->low == y->low &&
		x->pos == y->pos;
}

static int
by_max(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The lower median of all of n sorted values but one that is y. */
static double
median_but(const double *x, size_t n, double y)
{
	size_t m = (n - 2) / 2;
	return x[m + (y <= x[m])];
}

static void
raise_to(struct acc_audited *v, double rms, double max)
{
	double most = ceiling(v), each = v->limit_max / v->limit;
	v->limit = fmax(v->limit, fmin(rms, most));
	v->limit_max = fmax(v->limit_max, fmin(max, most * each));
}

/* v[0..n) are of one class, in order of their rms errors; room has place for 2 n numbers. */
static void
learn(struct acc_audited **v, size_t n, double *room)
{
	double *rms = room, *max = room + n;
	size_t beyond = 0;
	if (n < FEWEST)
		return;
	for (size_t i = 0; i < n; i++) {
		rms[i] = v[i]->rms;
		max[i] = v[i]->max;
		beyond += max[i] > v[i]->limit_max;
	}
	qsort(max, n, sizeof *max, by_max);
	for (size_t i = 0; i < n; i++) {
		double usual = median_but(rms, n, v[i]->rms), most = 0;
		/* Of calls in 16 bits, do many have single large errors? Then terms are rounded on
		 * the way. */
		size_t others = beyond - (v[i]->max > v[i]->limit_max);
		if (!v[i]->low || (others >= 2 && others * 5 >= n - 1))
			most = RAISE * median_but(max, n, v[i]->max);
		raise_to(v[i], raise_rms(v[i], usual) * usual, most);
	}
}

/* v[0..n) are of one class, in 16 bits. If most of them are beyond what f32 inside explains, then
 * this device's operator rounds each step to 16 bits, and is measured accordingly. */
static void
coarsen(struct acc_audited **v, size_t n)
{
	if (n < FEWEST || !v[0]->low || v[(n - 1) / 2]->rms <= v[0]->limit)
		return;
	for (size_t i = 0; i < n; i++) {
		v[i]->rms = v[i]->coarse_rms;
		v[i]->max = v[i]->coarse_max;
	}
	qsort(v, n, sizeof *v, by_class);
}

/* A network in 16 bits may do what little it does in f32 by tf32: nobody sees a twentieth of its
 * rounding. */
static void
forgive(struct acc_audited **v, size_t n)
{
	size_t low = 0, all = 0;
	for (size_t i = 0; i < n; i++)
		if (is_product(v[i])) {
			all++;
			low += v[i]->low;
		}
	for (size_t i = 0; i < n && low * 2 > all; i++)
		if (is_product(v[i]) && !v[i]->low)
			raise_to(v[i], 0.05 * 0x1p15, 0.25 * 0x1p15);
}

int
acc_limits(struct acc_audited *v, size_t n)
{
	struct acc_audited **p = malloc((n > 0 ? n : 1) * sizeof *p);
	size_t m = 0;
	double *room = malloc((n > 0 ? n : 1) * 2 * sizeof *room);
	if (p == NULL || room == NULL) {
		free(p);
		free(room);
		return ACC_ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		if (v[i].skip != NULL)
			continue;
		basic(&v[i], &v[i].limit, &v[i].limit_max);
		bool exact = v[i].rounding == ACC_EXACT && !v[i].backward;
		if (v[i].finite && !exact)
			p[m++] = &v[i];
	}
	qsort(p, m, sizeof *p, by_class);
	for (size_t i = 0, k; i < m; i = k) {
		for (k = i + 1; k < m && together(p[i], p[k]); k++)
			;
		coarsen(p + i, k - i);
		learn(p + i, k - i, room);
	}
	forgive(p, m);
	free(p);
	free(room);
	return 0;
}

bool
acc_audited_good(const struct acc_audited *v)
{
	return v->rms <= v->limit && v->max <= v->limit_max;
}
