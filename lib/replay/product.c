/* Matrix products. */
#include "replay/impl.h"

static bool
offsets_ok(const struct acc_product *p)
{
	return p->ob != NULL && p->om != NULL && p->on != NULL && p->xb != NULL && p->xm != NULL &&
		p->xk != NULL && p->yb != NULL && p->yk != NULL && p->yn != NULL;
}

/* x [..., k], weight [n, k], bias [n] */
static int
linear(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *w, *b = NULL;
	int64_t shape[ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "weight", &w) < 0 ||
		acc_arg_tensor(r, "bias", &b) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 1 || w->ndim != 2 || x->shape[x->ndim - 1] != w->shape[1] ||
		(b != NULL && (b->ndim != 1 || b->shape[0] != w->shape[0])))
		return acc_cannot(r, "its inputs do not fit each other");
	memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[x->ndim - 1] = w->shape[0];
	int rc = acc_out_shape(r, out, shape, x->ndim);
	if (rc < 0)
		return rc;
	p->x = x->v;
	p->y = w->v;
	p->nx = x->n;
	p->ny = w->n;
	p->xname = "input";
	p->yname = "weight";
	p->nb = 1;
	p->nk = (size_t)w->shape[1];
	p->n = (size_t)w->shape[0];
	p->m = p->n == 0 ? 0 : out->n / p->n;
	p->ob = p->xb = p->yb = acc_offsets(r, 1, 0);
	p->om = acc_offsets(r, p->m, p->n);
	p->on = acc_offsets(r, p->n, 1);
	p->xm = acc_offsets(r, p->m, p->nk);
	p->xk = p->yk = acc_offsets(r, p->nk, 1);
	p->yn = acc_offsets(r, p->n, p->nk);
	if (!offsets_ok(p))
		return ACC_EUNSUP;
	if (b == NULL)
		return 0;
	double *bias = acc_doubles(r, out->n);
	p->bias = bias;
	for (size_t i = 0; bias != NULL && i < out->n; i++)
		bias[i] = b->v[i % p->n];
	return bias == NULL ? ACC_EUNSUP : 0;
}

const struct acc_op acc_ops_product[] = {
	{.names = "linear npu_linear Linear", .sig = "input|x:prod weight:prod bias:point",
		.cls = "product", .rounding = ACC_FEW, .product = linear},
	{.names = NULL},
};
