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
	p->bias = b->v;
	p->bb = p->ob;
	p->bm = acc_offsets(r, p->m, 0);
	p->bn = p->on;
	return p->bm == NULL ? ACC_EUNSUP : 0;
}

/* --- matmul: the last two dimensions, the others broadcast --- */

void
acc_product_of(struct acc_product *p, const struct acc_dense *x, const struct acc_dense *y)
{
	p->x = x->v;
	p->nx = x->n;
	p->y = y->v;
	p->ny = y->n;
}

/* As engines have it: is the last axis of x, or y, the one before the last? */
static int
turned(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *y, bool turn[2])
{
	static const char *const names[] = {"transpose_a", "transpose_b"};
	const uint32_t nd[2] = {x->ndim, y->ndim};
	for (int i = 0; i < 2; i++) {
		turn[i] = false;
		if (acc_arg_bool(r, names[i], &turn[i]) < 0)
			return ACC_EUNSUP;
		turn[i] &= nd[i] > 1;
	}
	return 0;
}

/* x [.., m, k] and y [.., k, n]; vectors as matrices of one row or column. */
static int
matrices(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *y,
	const struct acc_dense *out, struct acc_product *p)
{
	bool turn[2];
	struct acc_dense a = *x, b = *y;
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t nx = x->ndim, ny = y->ndim, nd = nx > ny ? nx : ny;
	if (nx == 0 || ny == 0)
		return acc_cannot(r, "its inputs do not fit each other");
	if (turned(r, x, y, turn) < 0)
		return ACC_EUNSUP;
	p->m = nx == 1 ? 1 : (size_t)x->shape[turn[0] ? nx - 1 : nx - 2];
	p->nk = (size_t)x->shape[turn[0] ? nx - 2 : nx - 1];
	p->n = ny == 1 ? 1 : (size_t)y->shape[turn[1] ? ny - 2 : ny - 1];
	if (p->nk != (size_t)y->shape[ny == 1 ? 0 : turn[1] ? ny - 1 : ny - 2])
		return acc_cannot(r, "its inputs do not fit each other");
	a.ndim = nx < 2 ? 0 : nx - 2;
	b.ndim = ny < 2 ? 0 : ny - 2;
	nd = nd < 2 ? 0 : nd - 2;
	p->nb = 1;
	for (uint32_t d = 0; d < nd; d++) {
		int64_t sa = d + a.ndim < nd ? 1 : a.shape[d + a.ndim - nd];
		int64_t sb = d + b.ndim < nd ? 1 : b.shape[d + b.ndim - nd];
		shape[d] = sa == 1 ? sb : sa;
		p->nb *= (size_t)shape[d];
	}
	uint32_t n = nd;
	if (nx > 1)
		shape[n++] = (int64_t)p->m;
	if (ny > 1)
		shape[n++] = (int64_t)p->n;
	const struct acc_dense *both[2] = {&a, &b};
	struct acc_broadcast w;
	if (acc_out_shape(r, out, shape, n) < 0)
		return ACC_EUNSUP;
	if (!acc_broadcast_start(&w, shape, nd, both, 2))
		return acc_cannot(r, "its inputs do not fit each other");
	size_t *xb = acc_offsets(r, p->nb, 0), *yb = acc_offsets(r, p->nb, 0);
	for (size_t i = 0; xb != NULL && yb != NULL && i < p->nb; i++, acc_broadcast_next(&w)) {
		xb[i] = w.at[0] * p->m * p->nk;
		yb[i] = w.at[1] * p->nk * p->n;
	}
	acc_product_of(p, x, y);
	p->xb = xb;
	p->yb = yb;
	p->ob = acc_offsets(r, p->nb, p->m * p->n);
	p->om = acc_offsets(r, p->m, p->n);
	p->on = acc_offsets(r, p->n, 1);
	p->yn = acc_offsets(r, p->n, turn[1] ? p->nk : 1);
	p->xm = acc_offsets(r, p->m, turn[0] ? 1 : p->nk);
	p->xk = acc_offsets(r, p->nk, turn[0] ? p->m : 1);
	p->yk = acc_offsets(r, p->nk, turn[1] ? 1 : p->n);
	return offsets_ok(p) ? 0 : ACC_EUNSUP;
}

static int
matmul(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *y;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "mat2", &y) < 0)
		return ACC_EUNSUP;
	return r->op->which ? matrices(r, y, x, out, p) : matrices(r, x, y, out, p);
}

/* Steps of an input that is broadcast to the output, along its last two dimensions (counted from
 * the last) and, as offsets, along all before them. */
static int
broadcast(struct acc_replay *r, const struct acc_dense *c, const struct acc_dense *out,
	struct acc_product *p)
{
	struct acc_broadcast w;
	struct acc_dense lead = *c;
	uint32_t nd = out->ndim;
	if (!acc_broadcast_start(&w, out->shape, nd, &c, 1))
		return acc_cannot(r, "its inputs do not fit each other");
	/* A product of a matrix and a vector has one dimension less. */
	bool columns = nd > 0 && p->n == (size_t)out->shape[nd - 1] && (nd > 1 || p->m == 1);
	int64_t last = nd > 0 ? w.step[0][nd - 1] : 0, before = nd > 1 ? w.step[0][nd - 2] : 0;
	size_t inner = 1;
	for (uint32_t d = c->ndim; d-- > 0 && c->ndim - d <= 2;)
		inner *= (size_t)c->shape[d];
	lead.ndim = c->ndim < 2 ? 0 : c->ndim - 2;
	const struct acc_dense *in = &lead;
	size_t *bb = acc_offsets(r, p->nb, 0);
	if (bb == NULL || !acc_broadcast_start(&w, out->shape, nd < 2 ? 0 : nd - 2, &in, 1))
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < p->nb; i++, acc_broadcast_next(&w))
		bb[i] = w.at[0] * inner;
	p->bb = bb;
	p->bm = acc_offsets(r, p->m, (size_t)(columns ? before : last));
	p->bn = acc_offsets(r, p->n, (size_t)(columns ? last : 0));
	return p->bm == NULL || p->bn == NULL ? ACC_EUNSUP : 0;
}

/* beta * input + alpha * (x @ y); with beta = 0, the input does not count, NaN or not. */
static int
addmm(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *c = NULL, *x, *y;
	const bool may_lack = r->op->which; /* ONNX' Gemm */
	if ((may_lack ? acc_arg_tensor(r, "input", &c) : acc_need_tensor(r, "input", &c)) < 0 ||
		acc_need_tensor(r, "mat1", &x) < 0 || acc_need_tensor(r, "mat2", &y) < 0 ||
		acc_arg_float(r, "beta", &p->beta) < 0 ||
		acc_arg_float(r, "alpha", &p->alpha) < 0 || matrices(r, x, y, out, p) < 0)
		return ACC_EUNSUP;
	if (!acc_is_float(out->dtype)) { /* as whole numbers are multiplied */
		p->alpha = trunc(p->alpha);
		p->beta = trunc(p->beta);
	}
	if (p->beta == 0 || c == NULL)
		return 0;
	p->bias = c->v;
	return broadcast(r, c, out, p);
}

static int
outer(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *y;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "mat2", &y) < 0)
		return ACC_EUNSUP;
	if (acc_out_shape(r, out, (int64_t[]){(int64_t)x->n, (int64_t)y->n}, 2) < 0)
		return ACC_EUNSUP;
	acc_product_of(p, x, y);
	p->nb = p->nk = 1;
	p->m = x->n;
	p->n = y->n;
	p->ob = p->xb = p->yb = p->xk = p->yk = acc_offsets(r, 1, 0);
	p->om = acc_offsets(r, p->m, p->n);
	p->xm = acc_offsets(r, p->m, 1);
	p->on = p->yn = acc_offsets(r, p->n, 1);
	return offsets_ok(p) ? 0 : ACC_EUNSUP;
}

/* ggml's: the weight [.., n, k] comes first; each matrix of it serves as many of x as x has more. */
static int
mul_mat(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *w;
	int64_t shape[ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "weight", &w) < 0)
		return ACC_EUNSUP;
	if (w->dtype != x->dtype)
		return acc_cannot(r, "what goes in is rounded to its weight's dtype first");
	if (w->ndim < 3)
		return linear(r, out, p);
	const uint32_t nd = x->ndim, lead = nd - 2, less = nd - w->ndim;
	if (nd < w->ndim || x->shape[nd - 1] != w->shape[w->ndim - 1])
		return acc_cannot(r, "its inputs do not fit each other");
	p->nb = 1;
	for (uint32_t d = 0; d < lead; d++) {
		shape[d] = x->shape[d];
		p->nb *= (size_t)shape[d];
		if (d >= less && (w->shape[d - less] == 0 || shape[d] % w->shape[d - less] != 0))
			return acc_cannot(r, "its inputs do not fit each other");
	}
	shape[lead] = x->shape[lead];
	shape[lead + 1] = w->shape[w->ndim - 2];
	if (acc_out_shape(r, out, shape, nd) < 0)
		return ACC_EUNSUP;
	p->m = (size_t)shape[lead];
	p->n = (size_t)shape[lead + 1];
	p->nk = (size_t)x->shape[nd - 1];
	size_t *yb = acc_offsets(r, p->nb, 0);
	for (size_t i = 0; yb != NULL && i < p->nb; i++) {
		size_t rest = i, step = p->n * p->nk;
		for (uint32_t d = lead; d-- > less; step *= (size_t)w->shape[d - less]) {
			const int64_t each = shape[d] / w->shape[d - less];
			yb[i] += rest % (size_t)shape[d] / (size_t)each * step;
			rest /= (size_t)shape[d];
		}
	}
	acc_product_of(p, x, w);
	p->yb = yb;
	p->xb = acc_offsets(r, p->nb, p->m * p->nk);
	p->ob = acc_offsets(r, p->nb, p->m * p->n);
	p->om = acc_offsets(r, p->m, p->n);
	p->on = acc_offsets(r, p->n, 1);
	p->xm = acc_offsets(r, p->m, p->nk);
	p->xk = p->yk = acc_offsets(r, p->nk, 1);
	p->yn = acc_offsets(r, p->n, p->nk);
	return offsets_ok(p) ? 0 : ACC_EUNSUP;
}

#define PRODUCT(nm, s, f, w) \
	{ \
		.names = nm, .sig = s, .cls = "product", .rounding = ACC_FEW, .product = f, \
		.which = w, .streams = true \
	}
const struct acc_op acc_ops_product[] = {
	PRODUCT("linear npu_linear Linear inner", "input|x|self:prod weight|other:prod bias:point",
		linear, 0),
	PRODUCT("MUL_MAT", "weight:prod input:prod bias:point", mul_mat, 0),
	PRODUCT("matmul npu_bmmV2",
		"input|x|self:prod "
		"mat2|other|vec|y|tensor:prod transpose_a|transa transpose_b|transb",
		matmul, 0),
	PRODUCT("rmatmul", "input|x|self:prod mat2|other:prod", matmul, 1),
	PRODUCT("addmm",
		"input:point mat1|batch1|mat:prod mat2|batch2|vec:prod "
		"beta alpha",
		addmm, 0),
	PRODUCT("Gemm",
		"mat1:prod mat2:prod input:point alpha beta transpose_a|transA transpose_b|transB",
		addmm, 1),
	PRODUCT("outer", "input|self:prod mat2|vec2|other:prod", outer, 0),
	{.names = NULL},
};
