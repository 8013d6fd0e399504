/* Operators of MindSpore whose arguments are others than those of PyTorch's of the same name.
 * Attributes of a primitive are not recorded: what can be told from shapes or results is. */
#include "replay/compose.h"
#include "replay/impl.h"
#include "replay/view.h"

/* --- products whose operands may be transposed --- */

struct turns {
	bool x, y;
};

/* Offsets for x [.., m, k] or [.., k, m], y [.., k, n] or [.., n, k]; false: shapes do not fit. */
static bool
lay_out(const struct acc_dense *x, const struct acc_dense *y, const struct acc_dense *out,
	struct turns t, size_t size[3])
{
	uint32_t a = x->ndim, b = y->ndim, o = out->ndim;
	int64_t m = x->shape[t.x ? a - 1 : a - 2], k = x->shape[t.x ? a - 2 : a - 1];
	int64_t n = y->shape[t.y ? b - 2 : b - 1], ky = y->shape[t.y ? b - 1 : b - 2];
	size[0] = (size_t)m;
	size[1] = (size_t)n;
	size[2] = (size_t)k;
	return k == ky && out->shape[o - 2] == m && out->shape[o - 1] == n;
}

/* How far some elements are off, each operand turned or not. */
static double
misfit(const struct acc_dense *x, const struct acc_dense *y, const struct acc_dense *rec,
	struct turns t, const size_t size[3])
{
	size_t m = size[0], n = size[1], k = size[2];
	double sum = 0;
	for (size_t s = 0; s < 16 && m * n > 0; s++) {
		size_t at = (size_t)(acc_mix(s) % (m * n)), i = at / n, j = at % n;
		double v = 0;
		for (size_t q = 0; q < k; q++)
			v += x->v[t.x ? q * m + i : i * k + q] * y->v[t.y ? j * k + q : q * n + j];
		sum += isfinite(v) && isfinite(rec->v[at]) ? fabs(v - rec->v[at]) : 0;
	}
	return sum;
}

static int
batches(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *y,
	const struct acc_dense *out, const size_t size[3], struct acc_product *p)
{
	struct acc_dense a = *x, b = *y;
	struct acc_broadcast w;
	a.ndim -= 2;
	b.ndim -= 2;
	const struct acc_dense *both[2] = {&a, &b};
	if (!acc_broadcast_start(&w, out->shape, out->ndim - 2, both, 2))
		return acc_cannot(r, "its inputs do not fit each other");
	p->nb = size[0] * size[1] == 0 ? 0 : out->n / (size[0] * size[1]);
	size_t *xb = acc_offsets(r, p->nb, 0), *yb = acc_offsets(r, p->nb, 0);
	p->ob = acc_offsets(r, p->nb, size[0] * size[1]);
	for (size_t i = 0; xb != NULL && yb != NULL && i < p->nb; i++, acc_broadcast_next(&w)) {
		xb[i] = w.at[0] * size[0] * size[2];
		yb[i] = w.at[1] * size[1] * size[2];
	}
	p->xb = xb;
	p->yb = yb;
	return xb == NULL || yb == NULL || p->ob == NULL ? ACC_EUNSUP : 0;
}

static int
matmul(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p)
{
	const struct acc_dense *x, *y, *rec = &r->rec[0];
	struct turns best = {false, false};
	size_t size[3];
	double least = INFINITY;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "mat2", &y) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 2 || y->ndim < 2 || out->ndim < 2)
		return acc_cannot(r, "its inputs do not fit each other");
	for (int k = 0; k < 4; k++) {
		struct turns t = {k & 1, k & 2};
		if (!lay_out(x, y, out, t, size))
			continue;
		double d = rec->v == NULL || x->n == 0 || y->n == 0 ? 0
								    : misfit(x, y, rec, t, size);
		if (d < least) {
			least = d;
			best = t;
		}
	}
	if (!(least < INFINITY))
		return acc_cannot(r,
			"its recorded output does not have the shape that its inputs give");
	lay_out(x, y, out, best, size);
	size_t m = size[0], n = size[1], k = size[2];
	p->x = x->v;
	p->nx = x->n;
	p->y = y->v;
	p->ny = y->n;
	p->m = m;
	p->n = n;
	p->nk = k;
	p->om = acc_offsets(r, m, n);
	p->on = acc_offsets(r, n, 1);
	p->xm = acc_offsets(r, m, best.x ? 1 : k);
	p->xk = acc_offsets(r, k, best.x ? m : 1);
	p->yk = acc_offsets(r, k, best.y ? 1 : n);
	p->yn = acc_offsets(r, n, best.y ? k : 1);
	if (p->om == NULL || p->on == NULL || p->xm == NULL || p->xk == NULL || p->yk == NULL ||
		p->yn == NULL)
		return ACC_EUNSUP;
	return batches(r, x, y, out, size, p);
}

/* --- others --- */

/* x [n, c, ...] + bias [c] */
static int
bias_add(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *b;
	size_t inner = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "bias", &b) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 2 || b->n != (size_t)x->shape[1] || b->n == 0)
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = 2; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	for (size_t i = 0; i < x->n; i++)
		out->v[i] = x->v[i] + b->v[i / inner % b->n];
	return 0;
}

static int
bias_blocks(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	const struct acc_dense *x;
	if (acc_need_tensor(r, "input", &x) < 0 || x->ndim < 2)
		return ACC_EUNSUP;
	size_t n = (size_t)x->shape[0], c = (size_t)x->shape[1], rest = 1;
	for (uint32_t d = 2; d < x->ndim; d++)
		rest *= (size_t)x->shape[d];
	(void)name;
	*in = (struct acc_blocks){1, c, 1, false, true, false};
	*out = (struct acc_blocks){n, c, rest, false, true, false};
	return 0;
}

/* Gather(x, indices, axis): the axis becomes those of the indices. */
static int
gather(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids;
	int64_t shape[2 * ACC_DENSE_DIMS], batch = 0;
	uint32_t dim, nd = 0;
	size_t inner = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "indices", &ids) < 0 ||
		acc_arg_dim(r, "axis", x->ndim, 0, &dim) < 0 ||
		acc_arg_int(r, "batch_dims", &batch) < 0)
		return ACC_EUNSUP;
	if (batch != 0 || x->ndim == 0)
		return acc_cannot(r, "an argument is not understood");
	for (uint32_t d = 0; d < dim; d++)
		shape[nd++] = x->shape[d];
	for (uint32_t d = 0; d < ids->ndim; d++)
		shape[nd++] = ids->shape[d];
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)(shape[nd++] = x->shape[d]);
	if (acc_out_shape(r, out, shape, nd) < 0)
		return ACC_EUNSUP;
	size_t n = (size_t)x->shape[dim];
	for (size_t i = 0; i < out->n; i++) {
		double k = ids->v[i / inner % ids->n];
		if (!(k >= 0 && k < (double)n))
			return acc_cannot(r, "an index outside of its input");
		out->v[i] = x->v[(i / inner / ids->n * n + (size_t)k) * inner + i % inner];
	}
	return 0;
}

/* gather_nd(x, indices [.., k]): each row names a part of x by its first k dimensions. */
static int
gather_nd(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids;
	int64_t shape[2 * ACC_DENSE_DIMS];
	uint32_t nd = 0;
	size_t inner = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "indices", &ids) < 0)
		return ACC_EUNSUP;
	size_t k = ids->ndim == 0 ? 0 : (size_t)ids->shape[ids->ndim - 1];
	if (k == 0 || k > x->ndim)
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = 0; d + 1 < ids->ndim; d++)
		shape[nd++] = ids->shape[d];
	for (uint32_t d = (uint32_t)k; d < x->ndim; d++)
		inner *= (size_t)(shape[nd++] = x->shape[d]);
	if (acc_out_shape(r, out, shape, nd) < 0)
		return ACC_EUNSUP;
	for (size_t row = 0; row < ids->n / k; row++) {
		size_t at = 0;
		for (size_t d = 0; d < k; d++) {
			double j = ids->v[row * k + d];
			j += j < 0 ? (double)x->shape[d] : 0;
			if (!(j >= 0 && j < (double)x->shape[d]))
				return acc_cannot(r, "an index outside of its input");
			at = at * (size_t)x->shape[d] + (size_t)j;
		}
		memcpy(out->v + row * inner, x->v + at * inner, inner * sizeof *x->v);
	}
	return 0;
}

/* ATen's slice(x, dim, start, end, step): along one dimension. */
static int
slice_dim(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	int64_t a = 0, b = INT64_MAX, k = 1;
	uint32_t dim;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_dim(r, "begin", x->ndim, 0, &dim) < 0 ||
		acc_arg_int(r, "end", &a) < 0 || acc_arg_int(r, "strides", &b) < 0 ||
		acc_arg_int(r, "step", &k) < 0)
		return ACC_EUNSUP;
	if (x->ndim == 0 || k <= 0)
		return acc_cannot(r, "a slice that is not understood");
	int64_t len = x->shape[dim];
	a += a < 0 ? len : 0;
	b += b < 0 ? len : 0;
	a = a < 0 ? 0 : a > len ? len : a;
	b = b < a ? a : b > len ? len : b;
	acc_view_of(x, &v);
	v.first += a * v.stride[dim];
	v.shape[dim] = (b - a) / k + ((b - a) % k != 0);
	v.stride[dim] *= v.shape[dim] > 1 ? k : 1;
	return acc_view_copy(r, &v, x->v, out);
}

/* From begin to end by strides, where no mask says otherwise; slice(x, begin, size). */
static int
slice(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	const struct acc_value *first = acc_arg(r, "begin");
	if (first != NULL && first->type == ACC_A_INT)
		return slice_dim(r, out);
	int64_t from[ACC_DENSE_DIMS], to[ACC_DENSE_DIMS], step[ACC_DENSE_DIMS];
	int64_t no_begin = 0, no_end = 0, ellipsis = 0, fresh = 0, single = 0;
	uint32_t n, m, s, left = 0;
	bool sizes = r->op->which;
	if (acc_need_tensor(r, "input", &x) < 0 ||
		acc_arg_ints(r, "begin", from, ACC_DENSE_DIMS, &n) <= 0 ||
		acc_arg_ints(r, "end", to, ACC_DENSE_DIMS, &m) <= 0 ||
		acc_arg_ints(r, "strides", step, ACC_DENSE_DIMS, &s) < 0)
		return acc_cannot(r, "an argument is not understood");
	if (n > x->ndim || m != n || (s != 0 && s != n))
		return acc_cannot(r, "its inputs do not fit each other");
	if (!sizes && (acc_arg_int(r, "begin_mask", &no_begin) < 0 ||
			      acc_arg_int(r, "end_mask", &no_end) < 0 ||
			      acc_arg_int(r, "ellipsis_mask", &ellipsis) < 0 ||
			      acc_arg_int(r, "new_axis_mask", &fresh) < 0 ||
			      acc_arg_int(r, "shrink_axis_mask", &single) < 0))
		return ACC_EUNSUP;
	if (ellipsis != 0 || fresh != 0)
		return acc_cannot(r, "a slice that is not understood");
	acc_view_of(x, &v);
	for (uint32_t d = 0; d < n; d++) {
		int64_t len = v.shape[d], k = s == 0 ? 1 : step[d];
		int64_t a = from[d] < 0 ? from[d] + len : from[d],
			b = to[d] < 0 ? to[d] + len : to[d];
		a = no_begin >> d & 1 ? 0 : a;
		b = single >> d & 1 ? a + 1 : no_end >> d & 1 ? len : b;
		if (sizes)
			b = to[d] == -1 ? len : a + (to[d] < len ? to[d] : len);
		a = a < 0 ? 0 : a > len ? len : a;
		b = b < a ? a : b > len ? len : b;
		if (k <= 0)
			return acc_cannot(r, "a slice that is not understood");
		v.first += a * v.stride[d];
		v.shape[d] = (b - a) / k + ((b - a) % k != 0);
		v.stride[d] *= v.shape[d] > 1 ? k : 1;
	}
	/* An axis of which one index is taken goes. */
	for (uint32_t d = 0; d < v.ndim; d++) {
		if (d < n && single >> d & 1)
			continue;
		v.shape[left] = v.shape[d];
		v.stride[left++] = v.stride[d];
	}
	v.ndim = left;
	return acc_view_copy(r, &v, x->v, out);
}

#define MOVE(n, s, f, w) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = ACC_EXACT, .eval = f, .which = w \
	}
const struct acc_op acc_ops_primitive[] = {
	{.names = "MatMul BatchMatMul BatchMatMulExt MatMulExt",
		.sig = "input|x:prod mat2|other|y:prod",
		.cls = "product",
		.rounding = ACC_FEW,
		.product = matmul},
	{.names = "BiasAdd bias_add",
		.sig = "input|input_x:point bias:block",
		.cls = "arithmetic",
		.rounding = ACC_ONCE,
		.eval = bias_add,
		.blocks = bias_blocks},
	MOVE("Gather", "input|input_params:move indices|input_indices axis batch_dims", gather, 0),
	MOVE("GatherNd gather_nd", "input|input_x:move indices", gather_nd, 0),
	MOVE("StridedSlice strided_slice",
		"input|input_x:move begin end strides begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask",
		slice, 0),
	MOVE("Slice slice npu_slice",
		"input|self|input_x:move begin|offsets end|size strides "
		"step",
		slice, 1),
	{.names = NULL},
};
