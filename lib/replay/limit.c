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
 * terms), fast approximations elsewhere. */
enum { RAISE = 6, OTHERS = 3 };

static double
ceiling(const struct acc_audited *v)
{
	if (v->low)
		return 16;
	return strcmp(v->cls, "product") == 0 ? 0x1p14 : 0x1p10;
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
		d = (x->rms > y->rms) - (x->rms < y->rms);
	return d != 0 ? d : (x->line > y->line) - (x->line < y->line);
}

static bool
together(const struct acc_audited *x, const struct acc_audited *y)
{
	return strcmp(x->cls, y->cls) == 0 && x->backward == y->backward && x->low == y->low;
}

/* v[0..n) are of one class, in order of their errors. */
static void
learn(struct acc_audited **v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		basic(v[i], &v[i]->limit, &v[i]->limit_max);
		if (n <= OTHERS || (v[i]->rounding == ACC_EXACT && !v[i]->backward))
			continue;
		/* The median of the others: the lower one of two. */
		size_t m = (n - 2) / 2;
		m += m >= i;
		double floor = RAISE * v[m]->rms, most = ceiling(v[i]);
		floor = fmin(floor, most);
		double by = floor / v[i]->limit;
		if (by > 1) {
			v[i]->limit = floor;
			v[i]->limit_max *= by;
		}
	}
}

int
acc_limits(struct acc_audited *v, size_t n)
{
	struct acc_audited **p = malloc((n > 0 ? n : 1) * sizeof *p);
	size_t m = 0;
	if (p == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (v[i].skip != NULL)
			continue;
		basic(&v[i], &v[i].limit, &v[i].limit_max);
		if (v[i].finite)
			p[m++] = &v[i];
	}
	qsort(p, m, sizeof *p, by_class);
	for (size_t i = 0, k; i < m; i = k) {
		for (k = i + 1; k < m && together(p[i], p[k]); k++)
			;
		learn(p + i, k - i);
	}
	free(p);
	return 0;
}

bool
acc_audited_good(const struct acc_audited *v)
{
	return v->rms <= v->limit && v->max <= v->limit_max;
}
