/* Sums of products in double, by tables of offsets. */
#include "replay/impl.h"

int
acc_product_eval(struct acc_replay *r, struct acc_dense *out)
{
	struct acc_product p = {.alpha = 1};
	int rc = r->op->product(r, &out[0], &p);
	if (rc < 0)
		return rc;
	double *y = acc_doubles(r, p.nk);
	if (y == NULL)
		return ACC_EUNSUP;
	/* For the gradient of what is added, only that counts. */
	for (size_t i = 0; r->gradient && i < out[0].n; i++)
		out[0].v[i] = p.bias != NULL ? p.bias[i] : 0;
	if (r->gradient)
		return 0;
	for (size_t b = 0; b < p.nb; b++)
		for (size_t j = 0; j < p.n; j++) {
			for (size_t k = 0; k < p.nk; k++)
				y[k] = p.y[p.yb[b] + p.yk[k] + p.yn[j]];
			for (size_t i = 0; i < p.m; i++) {
				const double *x = p.x + p.xb[b] + p.xm[i];
				double sum = 0, abs = 0;
				for (size_t k = 0; k < p.nk; k++) {
					double term = x[p.xk[k]] * y[k];
					sum += term;
					abs += fabs(term);
				}
				size_t o = p.ob[b] + p.om[i] + p.on[j];
				out[0].v[o] = p.alpha * sum + (p.bias != NULL ? p.bias[o] : 0);
				if (out[0].mag != NULL)
					out[0].mag[o] = fabs(p.alpha) * abs +
						(p.bias != NULL ? fabs(p.bias[o]) : 0);
			}
		}
	return 0;
}

size_t *
acc_offsets(struct acc_replay *r, size_t n, size_t step)
{
	size_t *p = n > ACC_MAX_TABLE ? NULL : acc_alloc(r->mem, (n > 0 ? n : 1) * sizeof *p);
	if (p == NULL)
		acc_cannot(r, "out of memory");
	for (size_t i = 0; p != NULL && i < n; i++)
		p[i] = i * step;
	return p;
}
