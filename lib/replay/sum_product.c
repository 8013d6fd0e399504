/* Sums of products in double, by tables of offsets. */
#include "replay/impl.h"

/* The bias alone: for the gradient of what is added, only that counts. */
static void
added(const struct acc_product *p, struct acc_dense *out)
{
	for (size_t b = 0; b < p->nb; b++)
		for (size_t i = 0; i < p->m; i++)
			for (size_t j = 0; j < p->n; j++)
				out->v[p->ob[b] + p->om[i] + p->on[j]] =
					p->bias == NULL
						? 0
						: p->beta * p->bias[p->bb[b] + p->bm[i] + p->bn[j]];
}

bool
acc_neighbours(const size_t *t, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (t[i] != t[0] + i)
			return false;
	return true;
}

/* x[k] = v[t[k]], or where they stand already. */
static const double *
line(const double *v, const size_t *t, size_t n, bool plain, double *room)
{
	if (plain)
		return v + (n > 0 ? t[0] : 0);
	for (size_t k = 0; k < n; k++)
		room[k] = v[t[k]];
	return room;
}

/* Of the terms, as a vector: what sums of some of them, rounded, err by. */
static double
length(const double *x, const double *y, size_t n, double add)
{
	double sq = add * add;
	for (size_t k = 0; k < n; k++)
		sq += x[k] * x[k] * y[k] * y[k];
	return sqrt(sq);
}

/* What padding is multiplied with may be left out: a weight that is NaN or Inf makes NaN of it, or nothing. */
static double
unpadded(const struct acc_product *p, const double *x, const double *y, size_t at, double sum)
{
	double s = 0;
	if (!isnan(sum) || p->xfrom == NULL)
		return sum;
	for (size_t k = 0; k < p->nk; k++)
		s += p->xfrom[at + p->xk[k]] == SIZE_MAX ? 0 : x[k] * y[k];
	return s;
}

/* So many columns of y are gathered at a time: then rows of x are read once for all of them. */
enum { COLUMNS = 16 };

int
acc_product_eval(struct acc_replay *r, struct acc_dense *out)
{
	struct acc_product p = {.alpha = 1, .beta = 1};
	int rc = r->op->product(r, &out[0], &p);
	if (rc < 0)
		return rc;
	if (r->gradient) {
		added(&p, &out[0]);
		return 0;
	}
	double *yroom = acc_doubles(r, COLUMNS * p.nk), *xroom = acc_doubles(r, p.nk);
	if (yroom == NULL || xroom == NULL)
		return ACC_EUNSUP;
	const double *y[COLUMNS];
	const bool parts = (r->op->flags & ACC_SUMS_PARTS) != 0 &&
			   acc_unit_low(acc_unit(out[0].dtype));
	const double step = parts ? 2 * acc_roundings(r, out[0].dtype) : 0;
	/* Kernels that do not know the operand's strides round the product, then add the bias. */
	const bool twice = p.bias != NULL && acc_unit_low(acc_unit(out[0].dtype));
	const double between = twice ? acc_roundings(r, out[0].dtype) : 0;
	bool xplain = acc_neighbours(p.xk, p.nk), yplain = acc_neighbours(p.yk, p.nk);
	for (size_t b = 0; b < p.nb; b++)
		for (size_t j0 = 0; j0 < p.n; j0 += COLUMNS) {
			size_t nj = p.n - j0 < COLUMNS ? p.n - j0 : COLUMNS;
			for (size_t j = 0; j < nj; j++)
				y[j] = line(p.y + p.yb[b] + p.yn[j0 + j], p.yk, p.nk, yplain,
					yroom + j * p.nk);
			for (size_t i = 0; i < p.m; i++) {
				const double *x = line(p.x + p.xb[b] + p.xm[i], p.xk, p.nk, xplain,
					xroom);
				for (size_t j = 0; j < nj; j++) {
					size_t o = p.ob[b] + p.om[i] + p.on[j0 + j];
					double sum = 0, abs = 0,
					       add = p.bias == NULL
							     ? 0
							     : p.beta * p.bias[p.bb[b] + p.bm[i] +
										p.bn[j0 + j]];
					acc_audit_row()->dot(x, y[j], p.nk, &sum, &abs);
					if (r->rec[0].v != NULL && !isnan(r->rec[0].v[o]))
						sum = unpadded(&p, x, y[j], p.xb[b] + p.xm[i], sum);
					out[0].v[o] = p.alpha * sum + add;
					if (out[0].mag != NULL)
						out[0].mag[o] = fabs(p.alpha) *
									(abs + between *
											fabs(sum)) +
								fabs(add);
					if (parts && out[0].mag != NULL)
						out[0].mag[o] += step * length(x, y[j], p.nk, add);
					if (parts && out[0].mag != NULL &&
						abs > acc_max_of(out[0].dtype) &&
						r->rec[0].v != NULL && !isfinite(r->rec[0].v[o]))
						out[0].mag[o] = INFINITY; /* a part overflows */
				}
			}
		}
	return 0;
}

size_t *
acc_offsets(struct acc_replay *r, size_t n, size_t step)
{
	size_t *p = n > ACC_MAX_TABLE ? NULL : acc_alloc(r->mem, (n > 0 ? n : 1) * sizeof *p);
	if (p == NULL)
		acc_cannot(r, ACC_NOMEM_TEXT);
	for (size_t i = 0; p != NULL && i < n; i++)
		p[i] = i * step;
	return p;
}
