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

static void
put(struct acc_view *to, const struct acc_view *from, int64_t d)
{
	to->shape[to->ndim] = from->shape[d];
	to->stride[to->ndim++] = from->stride[d];
}

static bool
lists(const struct dims *d, uint32_t at)
{
	bool is = false;
	for (uint32_t k = 0; k < d->n; k++)
		is |= d->at[k] == (int64_t)at;
	return is;
}

/* Views of one of the two: of what is summed over, of what both have one by one, of all else. */
struct parts {
	struct acc_view summed, each, rest;
};

static void
views(const struct acc_dense *x, const struct dims *sum, const struct dims *each, struct parts *out)
{
	struct acc_view v;
	acc_view_of(x, &v);
	*out = (struct parts){.rest.ndim = 0};
	for (uint32_t i = 0; i < sum->n; i++)
		put(&out->summed, &v, sum->at[i]);
	for (uint32_t i = 0; i < each->n; i++)
		put(&out->each, &v, each->at[i]);
	for (uint32_t i = 0; i < x->ndim; i++)
		if (!lists(sum, i) && !lists(each, i))
			put(&out->rest, &v, i);
}

static bool
same_shape(const struct acc_view *a, const struct acc_view *b)
{
	return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

/* The product of x and y: first what is each for itself, then the rest of x, and of y. */
static int
contract(struct acc_replay *r, const struct acc_dense *out, const struct dims sum[2],
	const struct dims each[2], struct acc_product *p)
{
	const struct acc_dense *x, *y;
	struct parts of_x, of_y;
	int64_t shape[2 * ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "other", &y) < 0)
		return ACC_EUNSUP;
	views(x, &sum[0], &each[0], &of_x);
	views(y, &sum[1], &each[1], &of_y);
	if (!same_shape(&of_x.summed, &of_y.summed) || !same_shape(&of_x.each, &of_y.each))
		return acc_cannot(r, "its inputs do not fit each other");
	const struct acc_view *const kept[] = {&of_x.each, &of_x.rest, &of_y.rest};
	uint32_t nd = 0;
	for (size_t i = 0; i < sizeof kept / sizeof *kept; nd += kept[i++]->ndim)
		memcpy(shape + nd, kept[i]->shape, kept[i]->ndim * sizeof *shape);
	if (nd > ACC_DENSE_DIMS || acc_out_shape(r, out, shape, nd) < 0)
		return acc_cannot(r, "its inputs do not fit each other");
	acc_product_of(p, x, y);
	p->nb = acc_view_count(&of_x.each);
	p->m = acc_view_count(&of_x.rest);
	p->n = acc_view_count(&of_y.rest);
	p->nk = acc_view_count(&of_x.summed);
	p->ob = acc_offsets(r, p->nb, p->m * p->n);
	p->om = acc_offsets(r, p->m, p->n);
	p->on = acc_offsets(r, p->n, 1);
	p->xb = acc_view_offsets(r, &of_x.each);
	p->yb = acc_view_offsets(r, &of_y.each);
	p->xm = acc_view_offsets(r, &of_x.rest);
	p->xk = acc_view_offsets(r, &of_x.summed);
	p->yk = acc_view_offsets(r, &of_y.summed);
	p->yn = acc_view_offsets(r, &of_y.rest);
	return p->ob != NULL && p->om != NULL && p->on != NULL && p->xb != NULL && p->yb != NULL &&
			       p->xm != NULL && p->xk != NULL && p->yk != NULL && p->yn != NULL
		       ? 0
		       : ACC_EUNSUP;
}

static int
tensordot(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *y;
	struct dims sum[2] = {{0}};
	const struct dims each[2] = {{0}};
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "other", &y) < 0)
		return ACC_EUNSUP;
	if (!both_dims(r, x, y, &sum[0], &sum[1]))
		return acc_cannot(r, "its argument dims are not dimensions");
	return contract(r, out, sum, each, p);
}

/* The lists of integers in "(((2,), (1,)), ((0,), (0,)))", which are four. */
static bool
four_lists(struct acc_str s, struct dims out[4])
{
	uint32_t n = 0;
	bool open = false;
	for (uint32_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		const bool digit = c >= '0' && c <= '9';
		if (c == '(') {
			open = true;
		} else if (c == ')') { /* of a list of lists, too */
			n += open;
			open = false;
		} else if (digit) {
			if (!open || n > 3 || out[n].n == ACC_DENSE_DIMS ||
				(i + 1 < s.n && s.p[i + 1] >= '0' && s.p[i + 1] <= '9'))
				return false;
			out[n].at[out[n].n++] = c - '0';
		} else if (c != ',' && c != ' ') {
			return false;
		}
	}
	return n == 4;
}

static bool
are_dims(const struct dims *sum, const struct dims *each, const struct acc_dense *x)
{
	uint32_t seen = 0;
	for (uint32_t i = 0; i < sum->n + each->n; i++) {
		const int64_t d = i < sum->n ? sum->at[i] : each->at[i - sum->n];
		if (d >= (int64_t)x->ndim || (seen >> d & 1) != 0)
			return false;
		seen |= 1U << d;
	}
	return true;
}

/* lax': both sides' dimensions that are summed over, and that are one by one. */
static int
dot_general(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_value *v = acc_arg(r, "dimension_numbers");
	const struct acc_dense *x, *y;
	struct dims d[4] = {{0}};
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "other", &y) < 0)
		return ACC_EUNSUP;
	if (v == NULL || (v->type != ACC_A_TEXT && v->type != ACC_A_OPAQUE) || v->s.p == NULL ||
		!four_lists(v->s, d) || !are_dims(&d[0], &d[2], x) || !are_dims(&d[1], &d[3], y))
		return acc_cannot(r, "its dimension numbers are not understood");
	return contract(r, out, d, d + 2, p);
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
	PRODUCT("dot_general", "input:prod other:prod dimension_numbers", dot_general),
	PRODUCT("kron", "input|self|a:prod other|b:prod", kron),
	{.names = "multi_dot",
		.sig = "tensors:any",
		.cls = "product",
		.rounding = ACC_FEW,
		.eval = multi_dot},
	{.names = NULL},
};
