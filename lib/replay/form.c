/* In which arithmetic a product was computed: what is left of the error when its operands are
 * rounded first, as units do that multiply in fewer bits. Other errors only become larger so. */
#include "replay/impl.h"
#include "replay/limits.h"

static const struct form {
	const char *name;
	int bits;  /* of the mantissa */
	bool down; /* what is left over is cut off */
} forms[ACC_NFORM] = {{"tf32", 10, false}, {"tf32", 10, true}, {"hf32", 11, false},
	{"bf16", 7, false}};

static double
rounded(double x, const struct form *f)
{
	float v = (float)x;
	uint32_t u, rest = 23 - (uint32_t)f->bits;
	if (!isfinite(v))
		return x;
	memcpy(&u, &v, sizeof u);
	u += f->down ? 0 : UINT32_C(1) << (rest - 1);
	u &= ~((UINT32_C(1) << rest) - 1);
	memcpy(&v, &u, sizeof v);
	return v;
}

void
acc_form_add(struct acc_forms *f, const double *x, const double *y, size_t n, double alpha,
	double added, double rec)
{
	double sum = 0, off[ACC_NFORM];
	for (size_t k = 0; k < n; k++)
		sum += x[k] * y[k];
	bool good = isfinite(rec);
	for (int i = 0; i < ACC_NFORM; i++) {
		double s = 0;
		for (size_t k = 0; k < n; k++)
			s += rounded(x[k], &forms[i]) * rounded(y[k], &forms[i]);
		off[i] = rec - (alpha * s + added);
		good &= isfinite(off[i]);
	}
	sum = rec - (alpha * sum + added);
	if (!good || !isfinite(sum))
		return;
	f->n++;
	f->plain += sum * sum;
	for (int i = 0; i < ACC_NFORM; i++)
		f->off[i] += off[i] * off[i];
}

int
acc_form_product(struct acc_replay *r, const struct acc_product *p, const double *rec,
	struct acc_forms *f)
{
	double *x = acc_doubles(r, p->nk), *y = acc_doubles(r, p->nk);
	size_t all = p->nb * p->m * p->n, n = all < LIMIT_FORM_SAMPLES ? all : LIMIT_FORM_SAMPLES;
	if (x == NULL || y == NULL)
		return ACC_EUNSUP;
	for (size_t s = 0; s < n; s++) {
		size_t at = (size_t)((double)s * (double)all / (double)n);
		size_t j = at % p->n, i = at / p->n % p->m, b = at / p->n / p->m;
		for (size_t k = 0; k < p->nk; k++) {
			x[k] = p->x[p->xb[b] + p->xm[i] + p->xk[k]];
			y[k] = p->y[p->yb[b] + p->yk[k] + p->yn[j]];
		}
		double added = p->bias == NULL ? 0
					       : p->beta * p->bias[p->bb[b] + p->bm[i] + p->bn[j]];
		acc_form_add(f, x, y, p->nk, p->alpha, added, rec[p->ob[b] + p->om[i] + p->on[j]]);
	}
	return 0;
}

void
acc_form_merge(struct acc_forms *f, const struct acc_forms *more)
{
	f->n += more->n;
	f->plain += more->plain;
	for (int i = 0; i < ACC_NFORM; i++)
		f->off[i] += more->off[i];
}

const char *
acc_form_of(const struct acc_forms *f)
{
	int best = 0;
	for (int i = 1; i < ACC_NFORM; i++)
		best = f->off[i] < f->off[best] ? i : best;
	/* Squares of errors. */
	double left = LIMIT_CAUSE_SHARE * LIMIT_CAUSE_SHARE * f->off[best];
	return f->n >= LIMIT_FORM_LEAST && left < f->plain ? forms[best].name : NULL;
}
