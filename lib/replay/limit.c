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

/* In 16 bits errors are of the final rounding, whose rms is nearly the same everywhere, unless
 * they are larger than that; and where gradients are summed up in 16 bits, some are far off. */
static double
raise_rms(const struct acc_audited *v, double usual, bool rough)
{
	if (rough && v->backward)
		return 2 * RAISE;
	return v->low && usual <= v->limit * 2 / 3 ? 2.5 : RAISE;
}

static double
raise_max(const struct acc_audited *v, bool rough)
{
	if (rough && v->backward)
		return 2 * RAISE;
	return !v->low || v->backward || rough ? RAISE : 0;
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

/* Calls whose errors are alike: of one class, pass and precision, and of one kind of gradient. */
static int
compare_class(const struct acc_audited *x, const struct acc_audited *y, bool wide)
{
	int d = strcmp(x->cls, y->cls);
	if (d == 0)
		d = x->backward - y->backward;
	if (d == 0)
		d = x->low - y->low;
	return d != 0 || wide ? d : x->mode - y->mode;
}

static int
in_order(const struct acc_audited *x, const struct acc_audited *y, bool wide)
{
	int d = compare_class(x, y, wide);
	if (d == 0)
		d = (x->call > y->call) - (x->call < y->call);
	return d != 0 ? d : (x->line > y->line) - (x->line < y->line);
}

static int
by_call(const void *a, const void *b)
{
	return in_order(*(struct acc_audited *const *)a, *(struct acc_audited *const *)b, false);
}

static int
by_call_wide(const void *a, const void *b)
{
	return in_order(*(struct acc_audited *const *)a, *(struct acc_audited *const *)b, true);
}

static int
by_size(const void *a, const void *b)
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

/* The worst errors of each call among v[0..n), which stand call by call; how many calls. */
static size_t
calls_of(struct acc_audited *const *v, size_t n, double *rms, double *max)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		bool more = i > 0 && v[i]->call == v[i - 1]->call;
		k += !more;
		rms[k - 1] = more ? fmax(rms[k - 1], v[i]->rms) : v[i]->rms;
		max[k - 1] = more ? fmax(max[k - 1], v[i]->max) : v[i]->max;
	}
	return k;
}

/* In 16 bits: if most calls are beyond what f32 inside explains, or many have single elements
 * that are, then this device's operator rounds each step to 16 bits, and is measured so. */
static bool
coarsen(struct acc_audited **v, size_t n, double *rms, double *max)
{
	size_t calls = calls_of(v, n, rms, max), far = 0, beyond = 0;
	for (size_t i = 0; i < calls; i++) {
		far += rms[i] > v[0]->limit;
		beyond += max[i] > v[0]->limit_max;
	}
	if (!v[0]->low || beyond < FEWEST || (far * 2 <= calls && beyond * 5 < calls))
		return false;
	for (size_t i = 0; i < n; i++) {
		v[i]->rms = v[i]->coarse_rms;
		v[i]->max = v[i]->coarse_max;
	}
	return true;
}

/* v[0..n) are calls alike; room has place for 4 n numbers. With few calls nothing is learnt;
 * what was learnt before is not learnt again. */
static void
learn(struct acc_audited **v, size_t n, bool wide, double *room)
{
	double *rms = room, *max = rms + n, *own_rms = max + n, *own_max = own_rms + n;
	bool rough = !wide && coarsen(v, n, rms, max);
	size_t calls = calls_of(v, n, own_rms, own_max), k = 0;
	if (calls < FEWEST)
		return;
	memcpy(rms, own_rms, calls * sizeof *rms);
	memcpy(max, own_max, calls * sizeof *max);
	qsort(rms, calls, sizeof *rms, by_size);
	qsort(max, calls, sizeof *max, by_size);
	for (size_t i = 0; i < n; i++) {
		k += i > 0 && v[i]->call != v[i - 1]->call;
		double usual = median_but(rms, calls, own_rms[k]);
		double most = median_but(max, calls, own_max[k]);
		if (!v[i]->learnt)
			raise_to(v[i], raise_rms(v[i], usual, rough) * usual,
				raise_max(v[i], rough) * most);
		v[i]->learnt = true;
	}
}

static void
learn_all(struct acc_audited **p, size_t m, bool wide, double *room)
{
	qsort(p, m, sizeof *p, wide ? by_call_wide : by_call);
	for (size_t i = 0, k; i < m; i = k) {
		for (k = i + 1; k < m && compare_class(p[i], p[k], wide) == 0; k++)
			;
		learn(p + i, k - i, wide, room);
	}
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
	double *room = malloc((n > 0 ? n : 1) * 4 * sizeof *room);
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
	forgive(p, m);
	learn_all(p, m, false, room);
	learn_all(p, m, true, room);
	free(p);
	free(room);
	return 0;
}

bool
acc_audited_good(const struct acc_audited *v)
{
	return v->rms <= v->limit && v->max <= v->limit_max;
}
