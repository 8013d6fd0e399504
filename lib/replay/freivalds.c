/* Products too large to be formed again: Freivalds' check, and some elements.
 *
 * For random signs r, (x y) r = x (y r): as cheap as reading the two. It is made for rows and for
 * columns, so that a single bad element shows in both; what it cannot see in the rounding noise of
 * a long row, the elements that are formed one by one may. */
#include "replay/impl.h"

enum { SAMPLES = 4096 };
#define LARGE ((uint64_t)1 << 24)

bool
acc_product_large(const struct acc_product *p)
{
	double work = (double)p->nb * (double)p->m * (double)p->n * (double)p->nk;
	return work > (double)LARGE;
}

/* Tables for one side of the check: out [i, j] = sum_k x[i, k] y[k, j], summed over j. */
struct side {
	const double *x, *y;
	size_t m, n, nk;
	const size_t *om, *on, *xm, *xk, *yk, *yn;
};

static double
sign(uint64_t seed, size_t i)
{
	return acc_mix(seed + i) & 1 ? 1 : -1;
}

struct ruler {
	double unit, work;
	double max; /* of the dtype */
	struct acc_errsum *err, *coarse;
};

static void
count(const struct ruler *u, double d, double size, double terms, size_t at)
{
	if (!isfinite(terms))
		return;
	size = isfinite(size) ? size : 0;
	acc_err_add(u->err, d / (u->unit * size + u->work * terms + 0x1p-126), at);
	acc_err_add(u->coarse, d / (u->unit * (size + terms) + 0x1p-126), at);
}

static int
one_side(struct acc_replay *r, const struct acc_product *p, const struct side *s, size_t b,
	size_t yb, size_t xb, const double *rec, double alpha, const struct ruler *u)
{
	double *yr = acc_doubles(r, s->nk), *size = acc_doubles(r, s->nk);
	if (yr == NULL || size == NULL)
		return ACC_EUNSUP;
	for (size_t k = 0; k < s->nk; k++) {
		double sum = 0, sq = 0;
		for (size_t j = 0; j < s->n; j++) {
			double v = s->y[yb + s->yk[k] + s->yn[j]];
			sum += v * sign(b * 977, j);
			sq += v * v;
		}
		yr[k] = sum;
		size[k] = sqrt(sq);
	}
	for (size_t i = 0; i < s->m; i++) {
		double left = 0, sq = 0, right = 0, terms = 0;
		for (size_t j = 0; j < s->n; j++) {
			size_t o = p->ob[b] + s->om[i] + s->on[j];
			double v = rec[o] - (p->bias == NULL ? 0 : p->bias[o]);
			left += v * sign(b * 977, j);
			sq += rec[o] * rec[o];
		}
		for (size_t k = 0; k < s->nk; k++) {
			double v = s->x[xb + s->xm[i] + s->xk[k]];
			right += v * yr[k];
			terms += fabs(v) * size[k];
		}
		/* NaN and Inf belong nowhere where nothing is large. */
		if (!isfinite(left) && fabs(alpha) * terms < u->max / 4)
			left = INFINITY;
		if (!isnan(left) && isfinite(right))
			count(u, fabs(left - alpha * right), sqrt(sq), fabs(alpha) * terms, i);
	}
	return 0;
}

static void
samples(const struct acc_product *p, const double *rec, const struct ruler *u)
{
	for (size_t t = 0; t < SAMPLES; t++) {
		uint64_t h = acc_mix(t * 3 + 1);
		size_t b = (size_t)(h % p->nb), i = (size_t)(acc_mix(h) % p->m);
		size_t j = (size_t)(acc_mix(h + 1) % p->n), o = p->ob[b] + p->om[i] + p->on[j];
		double sum = 0, abs = 0;
		for (size_t k = 0; k < p->nk; k++) {
			double v = p->x[p->xb[b] + p->xm[i] + p->xk[k]] *
				p->y[p->yb[b] + p->yk[k] + p->yn[j]];
			sum += v;
			abs += fabs(v);
		}
		double ref = p->alpha * sum + (p->bias == NULL ? 0 : p->bias[o]);
		if (!isfinite(ref) || fabs(ref) > u->max * (1 - 8 * u->unit))
			continue;
		double d = isfinite(rec[o]) ? fabs(rec[o] - ref) : INFINITY;
		count(u, d, fabs(ref), fabs(p->alpha) * abs, o);
	}
}

int
acc_freivalds(struct acc_replay *r, const struct acc_product *p, const struct acc_dense *rec,
	double unit, double work, struct acc_errsum *err, struct acc_errsum *coarse)
{
	struct ruler u = {unit, work, acc_max_of(rec->dtype), err, coarse};
	struct side rows = {p->x, p->y, p->m, p->n, p->nk, p->om, p->on, p->xm, p->xk, p->yk, p->yn};
	struct side columns = {p->y, p->x, p->n, p->m, p->nk, p->on, p->om, p->yn, p->yk, p->xk,
		p->xm};
	int rc = 0;
	for (size_t b = 0; b < p->nb && rc == 0; b++) {
		rc = one_side(r, p, &rows, b, p->yb[b], p->xb[b], rec->v, p->alpha, &u);
		if (rc == 0)
			rc = one_side(r, p, &columns, b, p->xb[b], p->yb[b], rec->v, p->alpha, &u);
	}
	if (p->nb > 0 && p->m > 0 && p->n > 0)
		samples(p, rec->v, &u);
	return rc;
}

int
acc_freivalds_gradient(struct acc_adjoint *a, const struct acc_product *p, bool of_x)
{
	struct acc_replay *r = &a->t->r;
	struct acc_product q = *p;
	const double *g = a->gout[0] == NULL ? NULL : a->gout[0]->v;
	size_t each = of_x ? p->nb * p->m * p->nk : p->nb * p->nk * p->n;
	if (g == NULL || each != a->x->n || (of_x && p->xfrom != NULL))
		return acc_cannot(r, "too large to be recomputed");
	q.bias = NULL;
	if (of_x) { /* gx[i, k] = sum_j g[i, j] y[k, j] */
		q.x = g;
		q.n = p->nk;
		q.nk = p->n;
		q.ob = p->xb, q.om = p->xm, q.on = p->xk;
		q.xb = p->ob, q.xm = p->om, q.xk = p->on;
		q.yk = p->yn, q.yn = p->yk;
	} else { /* gy[k, j] = sum_i x[i, k] g[i, j] */
		q.y = g;
		q.m = p->nk;
		q.nk = p->m;
		q.ob = p->yb, q.om = p->yk, q.on = p->yn;
		q.xm = p->xk, q.xk = p->xm;
		q.yb = p->ob, q.yk = p->om, q.yn = p->on;
	}
	return acc_freivalds(r, &q, a->gin, a->unit, a->work, &a->err, &a->coarse);
}
