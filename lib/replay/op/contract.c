/* Products of more than two tensors, or of other dimensions than the last: tensordot, kron, multi_dot. */
#include "replay/compose.h"
#include "replay/impl.h"
#include "replay/view.h"

/* --- tensordot --- */

struct dims { /* of one of the two: which are summed over, in order */
	uint32_t n;
	int64_t at[ACC_DENSE_DIMS];
};

static bool
read_dims(const struct acc_value *v, const struct acc_dense *x, struct dims *d)
{
	d->n = v->type == ACC_A_LIST ? v->n : 1;
	if (d->n > x->ndim)
		return false;
	for (uint32_t i = 0; i < d->n; i++) {
		const struct acc_value *one = v->type == ACC_A_LIST ? &v->item[i] : v;
		d->at[i] = one->type == ACC_A_INT ? one->i : INT64_MAX;
		d->at[i] += d->at[i] < 0 ? x->ndim : 0;
		if (d->at[i] < 0 || d->at[i] >= (int64_t)x->ndim)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (d->at[k] == d->at[i])
				return false;
	}
	return true;
}

/* A number of dimensions, the last of x and the first of y; or a list for each. */
static bool
both_dims(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *y,
	struct dims *of_x, struct dims *of_y)
{
	const struct acc_value *v = acc_arg(r, "dims");
	int64_t n = 2;
	if (v != NULL && v->type == ACC_A_LIST)
		return v->n == 2 && read_dims(&v->item[0], x, of_x) &&
		       read_dims(&v->item[1], y, of_y) && of_x->n == of_y->n;
	if (v != NULL && v->type != ACC_A_INT)
		return false;
	n = v == NULL ? n : v->i;
	if (n < 0 || n > (int64_t)x->ndim || n > (int64_t)y->ndim)
		return false;
	of_x->n = of_y->n = (uint32_t)n;
	for (uint32_t i = 0; i < of_x->n; i++) {
		of_x->at[i] = (int64_t)x->ndim - of_x->n + i;
		of_y->at[i] = i;
	}
	return true;
}

/* The dimensions that are summed over as a view, and all others. */
static void
views(const struct acc_dense *x, const struct dims *d, struct acc_view *summed,
	struct acc_view *rest)
{
	struct acc_view v;
	acc_view_of(x, &v);
	*summed = *rest = (struct acc_view){0};
	for (uint32_t i = 0; i < d->n; i++) {
		summed->shape[summed->ndim] = v.shape[d->at[i]];
		summed->stride[summed->ndim++] = v.stride[d->at[i]];
	}
	for (uint32_t i = 0; i < x->ndim; i++) {
		bool other = true;
		for (uint32_t k = 0; k < d->n; k++)
			other &= d->at[k] != (int64_t)i;
		if (!other)
			continue;
		rest->shape[rest->ndim] = v.shape[i];
		rest->stride[rest->ndim++] = v.stride[i];
	}
}

static int
tensordot(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *y;
	struct dims dx = {0}, dy = {0};
	struct acc_view xk, xm, yk, yn;
	int64_t shape[2 * ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "other", &y) < 0)
		return ACC_EUNSUP;
	if (!both_dims(r, x, y, &dx, &dy))
		return acc_cannot(r, "its argument dims are not dimensions");
	views(x, &dx, &xk, &xm);
	views(y, &dy, &yk, &yn);
	if (memcmp(xk.shape, yk.shape, xk.ndim * sizeof *xk.shape) != 0)
		return acc_cannot(r, "its inputs do not fit each other");
	memcpy(shape, xm.shape, xm.ndim * sizeof *shape);
	memcpy(shape + xm.ndim, yn.shape, yn.ndim * sizeof *shape);
	if (xm.ndim + yn.ndim > ACC_DENSE_DIMS ||
		acc_out_shape(r, out, shape, xm.ndim + yn.ndim) < 0)
		return acc_cannot(r, "its inputs do not fit each other");
	acc_product_of(p, x, y);
	p->nb = 1;
	p->m = acc_view_count(&xm);
	p->n = acc_view_count(&yn);
	p->nk = acc_view_count(&xk);
	p->ob = p->xb = p->yb = acc_offsets(r, 1, 0);
	p->om = acc_offsets(r, p->m, p->n);
	p->on = acc_offsets(r, p->n, 1);
	p->xm = acc_view_offsets(r, &xm);
	p->xk = acc_view_offsets(r, &xk);
	p->yk = acc_view_offsets(r, &yk);
	p->yn = acc_view_offsets(r, &yn);
	return p->ob != NULL && p->om != NULL && p->on != NULL && p->xm != NULL && p->xk != NULL &&
			       p->yk != NULL && p->yn != NULL
		       ? 0
		       : ACC_EUNSUP;
}

/* --- kron: each element of x times all of y --- */

/* Where the elements of one of them are in the output, times `by` of each dimension. */
static size_t *
places(struct acc_replay *r, const struct acc_dense *out, const struct acc_dense *x,
	const int64_t *by)
{
	struct acc_view o, v = {.ndim = out->ndim};
	acc_view_of(out, &o);
	for (uint32_t d = 0; d < out->ndim; d++) {
		v.shape[d] = d + x->ndim < out->ndim ? 1 : x->shape[d + x->ndim - out->ndim];
		v.stride[d] = o.stride[d] * by[d];
	}
	return acc_view_offsets(r, &v);
}

static int
kron(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *y;
	int64_t shape[ACC_DENSE_DIMS], step[ACC_DENSE_DIMS], one[ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "other", &y) < 0)
		return ACC_EUNSUP;
	const uint32_t nd = x->ndim > y->ndim ? x->ndim : y->ndim;
	for (uint32_t d = 0; d < nd; d++) {
		one[d] = 1;
		step[d] = d + y->ndim < nd ? 1 : y->shape[d + y->ndim - nd];
		shape[d] = d + x->ndim < nd ? 1 : x->shape[d + x->ndim - nd];
		if (__builtin_mul_overflow(shape[d], step[d], &shape[d]))
			return acc_cannot(r, "its inputs do not fit each other");
	}
	if (acc_out_shape(r, out, shape, nd) < 0)
		return ACC_EUNSUP;
	acc_product_of(p, x, y);
	p->nb = p->nk = 1;
	p->m = x->n;
	p->n = y->n;
	p->ob = p->xb = p->yb = p->xk = p->yk = acc_offsets(r, 1, 0);
	p->xm = acc_offsets(r, p->m, 1);
	p->yn = acc_offsets(r, p->n, 1);
	p->om = places(r, out, x, step);
	p->on = places(r, out, y, one);
	return p->ob != NULL && p->xm != NULL && p->yn != NULL && p->om != NULL && p->on != NULL
		       ? 0
		       : ACC_EUNSUP;
}

/* --- multi_dot: a chain of matrices, the first and the last of which may be vectors --- */

struct chain { /* so far: a matrix; of magnitudes; and of what rounding steps to 16 bits errs by, squared */
	size_t m, n;
	double *v, *abs, *sq;
};

static int
times(struct acc_replay *r, struct chain *c, const struct acc_dense *y, size_t k, size_t n,
	double step)
{
	struct chain o = {c->m, n, acc_doubles(r, c->m * n), acc_doubles(r, c->m * n),
		acc_doubles(r, c->m * n)};
	if (k != c->n)
		return acc_cannot(r, "its inputs do not fit each other");
	if (o.v == NULL || o.abs == NULL || o.sq == NULL)
		return ACC_EUNSUP;
	for (size_t i = 0; i < o.m; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = 0, abs = 0, sq = 0;
			for (size_t q = 0; q < k; q++) {
				const double b = y->v[q * n + j], a = c->v[i * k + q];
				sum += a * b;
				abs += c->abs[i * k + q] * fabs(b);
				/* What was rounded before, and is now. */
				sq += (c->sq[i * k + q] + step * a * step * a) * b * b;
			}
			o.v[i * n + j] = sum;
			o.abs[i * n + j] = abs;
			o.sq[i * n + j] = sq;
		}
	*c = o;
	return 0;
}

static int
multi_dot(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	const uint32_t n = acc_arg_count(r, "tensors");
	struct chain c = {0};
	int64_t shape[2];
	uint32_t nd = 0;
	double work = 0, most = 1;
	for (uint32_t i = 0; i < n; i++) {
		if (acc_arg_item(r, "tensors", i, &x) <= 0)
			return acc_cannot(r, "its tensors were not recorded");
		const bool vector = x->ndim == 1 && (i == 0 || i == n - 1);
		most *= acc_largest(x);
		if (x->ndim != 2 && !vector)
			return acc_cannot(r, "its inputs do not fit each other");
		const size_t rows = vector && i == 0 ? 1 : (size_t)x->shape[0];
		const size_t cols = vector ? (i == 0 ? x->n : 1) : (size_t)x->shape[1];
		if (i == 0) {
			c = (struct chain){rows, cols, x->v, acc_doubles(r, x->n),
				acc_doubles(r, x->n)};
			if (c.abs == NULL || c.sq == NULL)
				return ACC_EUNSUP;
			for (size_t k = 0; k < x->n; k++) {
				c.abs[k] = fabs(x->v[k]);
				c.sq[k] = 0;
			}
			if (!vector)
				shape[nd++] = (int64_t)rows;
			continue;
		}
		work += (double)c.m * (double)rows * (double)cols;
		if (work > 0x1p26)
			return acc_cannot(r, "too large to be recomputed");
		/* In whatever order: what lies between is rounded. */
		if (times(r, &c, x, rows, cols, i > 1 ? acc_roundings(r, out->dtype) : 0) < 0)
			return ACC_EUNSUP;
		if (i == n - 1 && !vector)
			shape[nd++] = (int64_t)cols;
	}
	if (n < 2 || acc_out_shape(r, out, shape, nd) < 0)
		return acc_cannot(r, "its tensors were not recorded");
	for (size_t i = 0; i < out->n; i++) {
		out->v[i] = c.v[i];
		if (out->mag != NULL) /* what lies between may have overflowed */
			out->mag[i] = most > acc_max_of(out->dtype) / 4 && r->rec[0].v != NULL &&
						      !isfinite(r->rec[0].v[i])
					      ? INFINITY
					      : c.abs[i] + 2 * sqrt(c.sq[i]);
	}
	return 0;
}

#define PRODUCT(nm, s, f) \
	{ \
		.names = nm, .sig = s, .cls = "product", .rounding = ACC_FEW, .product = f, \
		.streams = true \
	}
const struct acc_op acc_ops_contract[] = {
	PRODUCT("tensordot", "input|a|x1|self:prod other|b|x2:prod dims|axes", tensordot),
	PRODUCT("kron", "input|self|a:prod other|b:prod", kron),
	{.names = "multi_dot",
		.sig = "tensors:any",
		.cls = "product",
		.rounding = ACC_FEW,
		.eval = multi_dot},
	{.names = NULL},
};
