/* Tensors made from numbers, shapes or indices: arange, full, eye, one_hot, meshgrid. */
#include "replay/impl.h"

enum { ZERO, ONE, FILL };

/* zeros(size), full(size, value), zeros_like(x), x.fill_(value): the shape is asked for where it
 * was recorded. */
static int
constant(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *like = NULL;
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t n = 0;
	double value = r->op->which == ONE ? 1 : 0;
	const struct acc_value *v = acc_arg(r, "input");
	if (v != NULL && v->type == ACC_A_TENSOR)
		like = v->t;
	int rc = acc_arg_ints(r, "size", shape, ACC_DENSE_DIMS, &n);
	if (rc < 0 || (r->op->which == FILL && acc_arg_float(r, "value", &value) <= 0))
		return acc_cannot(r, "its value was not recorded");
	if (rc > 0 && acc_out_shape(r, out, shape, n) < 0)
		return ACC_EUNSUP;
	if (rc == 0 && like != NULL && acc_out_shape(r, out, like->shape, like->ndim) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++)
		out->v[i] = value;
	return 0;
}

/* x.copy_(source): x gives the shape, and the dtype. */
static int
copy(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *src;
	struct acc_broadcast b;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "source", &src) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (!acc_broadcast_start(&b, x->shape, x->ndim, &src, 1))
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b)) {
		double v = src->v[b.at[0]];
		out->v[i] = acc_is_float(out->dtype) ? v
			    : out->dtype == ACC_BOOL ? v != 0
						     : trunc(v);
	}
	return 0;
}

/* arange(end), arange(start, end, step) */
static int
arange(struct acc_replay *r, struct acc_dense *out)
{
	double v[3] = {0, 0, 1};
	bool one = r->nin == 1 && acc_arg(r, "end") == NULL;
	if (acc_arg_float(r, "start", &v[one ? 1 : 0]) < 0 || acc_arg_float(r, "step", &v[2]) < 0)
		return ACC_EUNSUP;
	if (!one && acc_arg_float(r, "end", &v[1]) <= 0)
		return acc_cannot(r, "its end was not recorded");
	double n = ceil((v[1] - v[0]) / v[2]);
	if (!(n >= 0 && n < 0x1p53))
		return acc_cannot(r, "an argument is not understood");
	if (acc_out_shape(r, out, (int64_t[]){(int64_t)n}, 1) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++) {
		out->v[i] = v[0] + (double)i * v[2];
		if (!acc_is_float(out->dtype))
			out->v[i] = trunc(out->v[i]);
		if (out->mag != NULL)
			out->mag[i] = fabs(v[0]) + fabs((double)i * v[2]);
	}
	return 0;
}

static int
linspace(struct acc_replay *r, struct acc_dense *out)
{
	double from, to;
	int64_t n;
	if (acc_arg_float(r, "start", &from) <= 0 || acc_arg_float(r, "end", &to) <= 0 ||
		acc_arg_int(r, "steps", &n) <= 0)
		return acc_cannot(r, "its ends were not recorded");
	if (acc_out_shape(r, out, &n, 1) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++) {
		double part = n > 1 ? (double)i / (double)(n - 1) : 0;
		out->v[i] = from + part * (to - from);
		if (!acc_is_float(out->dtype))
			out->v[i] = trunc(out->v[i]);
		if (out->mag != NULL)
			out->mag[i] = fabs(from) + fabs(to);
	}
	return 0;
}

static int
eye(struct acc_replay *r, struct acc_dense *out)
{
	int64_t n, m;
	if (acc_arg_int(r, "n", &n) <= 0)
		return acc_cannot(r, "its shape was not recorded");
	m = n;
	if (acc_arg_int(r, "m", &m) < 0 || acc_out_shape(r, out, (int64_t[]){n, m}, 2) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++)
		out->v[i] = (int64_t)i / m == (int64_t)i % m;
	return 0;
}

/* Rows and columns of the elements of a triangle. */
static int
triangle(struct acc_replay *r, struct acc_dense *out)
{
	int64_t rows, cols, offset = 0;
	size_t n = out->ndim == 2 ? (size_t)out->shape[1] : 0, k = 0;
	bool upper = r->op->which;
	if (acc_arg_int(r, "row", &rows) <= 0 || acc_arg_int(r, "col", &cols) <= 0 ||
		acc_arg_int(r, "offset", &offset) < 0)
		return acc_cannot(r, "its shape was not recorded");
	if (rows < 0 || cols < 0 || rows > 1 << 14 || cols > 1 << 14)
		return acc_cannot(r, "too large to be recomputed");
	for (int64_t i = 0; i < rows && k <= n; i++)
		for (int64_t j = 0; j < cols && k <= n; j++) {
			if (upper ? j - i < offset : j - i > offset)
				continue;
			if (k < n) {
				out->v[k] = (double)i;
				out->v[n + k] = (double)j;
			}
			k++;
		}
	return acc_out_shape(r, out, (int64_t[]){2, (int64_t)k}, 2);
}

static int
one_hot(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t shape[ACC_DENSE_DIMS], classes = -1;
	double on = 1, off = 0;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "num_classes", &classes) < 0 ||
		acc_arg_float(r, "on_value", &on) < 0 || acc_arg_float(r, "off_value", &off) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; classes < 0 && i < x->n; i++)
		shape[0] = i == 0 || x->v[i] > (double)shape[0] ? (int64_t)x->v[i] : shape[0];
	if (classes < 0 && x->n > 0)
		classes = shape[0] + 1;
	if (classes <= 0 || x->ndim == ACC_DENSE_DIMS)
		return acc_cannot(r, "its number of classes was not recorded");
	if (x->ndim > 0)
		memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[x->ndim] = classes;
	if (acc_out_shape(r, out, shape, x->ndim + 1) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++)
		out->v[i] = x->v[i / (size_t)classes] == (double)(i % (size_t)classes) ? on : off;
	return 0;
}

/* Output k is tensor k along dimension k; with indexing xy, the first two change places. */
static int
meshgrid(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_value *v = acc_arg(r, "tensors");
	struct acc_str how = ACC_STR("ij");
	int64_t shape[ACC_DENSE_DIMS];
	for (uint32_t i = 0; i < r->nkw; i++)
		if (acc_str_is(r->kw[i].name, "indexing") && r->kw[i].type == ACC_A_TEXT)
			how = r->kw[i].s;
	bool list = v != NULL && v->type == ACC_A_LIST, xy = acc_str_is(how, "xy");
	const struct acc_value *item = list ? v->item : r->in;
	uint32_t n = list ? v->n : r->nin;
	if (n == 0 || n > ACC_DENSE_DIMS || n != r->nrec)
		return acc_cannot(r, "its tensors were not recorded");
	for (uint32_t k = 0; k < n; k++) {
		uint32_t d = xy && k < 2 && n > 1 ? 1 - k : k;
		if (item[k].type != ACC_A_TENSOR || item[k].t->v == NULL || item[k].t->ndim > 1)
			return acc_cannot(r, "its tensors were not recorded");
		shape[d] = (int64_t)item[k].t->n;
	}
	for (uint32_t k = 0; k < n; k++) {
		size_t inner = 1, d = xy && k < 2 && n > 1 ? 1 - k : k;
		if (acc_out_shape(r, &out[k], shape, n) < 0)
			return ACC_EUNSUP;
		for (size_t j = d + 1; j < n; j++)
			inner *= (size_t)shape[j];
		for (size_t i = 0; i < out[k].n; i++)
			out[k].v[i] = item[k].t->v[i / inner % (size_t)shape[d]];
	}
	return 0;
}

#define ROW(n, s, rnd, f, w) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = rnd, .eval = f, .which = w \
	}
const struct acc_op acc_ops_make[] = {
	ROW("zeros", "*size|shape", ACC_EXACT, constant, ZERO),
	ROW("ones", "*size|shape", ACC_EXACT, constant, ONE),
	ROW("zeros_like zero ZerosLike", "input|self", ACC_EXACT, constant, ZERO),
	ROW("ones_like one OnesLike", "input|self", ACC_EXACT, constant, ONE),
	ROW("new_zeros", "input|self *size", ACC_EXACT, constant, ZERO),
	ROW("new_ones", "input|self *size", ACC_EXACT, constant, ONE),
	ROW("full", "size|shape value|fill_value", ACC_ONCE, constant, FILL),
	ROW("full_like fill", "input|self value|fill_value", ACC_ONCE, constant, FILL),
	ROW("new_full", "input|self size value|fill_value", ACC_ONCE, constant, FILL),
	{.names = "copy",
		.sig = "input|self|variable source|src|other|value:move",
		.cls = "cast",
		.rounding = ACC_ONCE,
		.eval = copy},
	ROW("scalar_tensor", "value|s", ACC_ONCE, constant, FILL),
	ROW("arange", "start end step", ACC_FEW, arange, 0),
	ROW("linspace", "start end steps", ACC_FEW, linspace, 0),
	ROW("eye", "n m", ACC_EXACT, eye, 0),
	ROW("tril_indices", "row col offset", ACC_EXACT, triangle, 0),
	ROW("triu_indices", "row col offset", ACC_EXACT, triangle, 1),
	ROW("one_hot npu_one_hot OneHot", "input|self|indices num_classes|depth on_value off_value",
		ACC_EXACT, one_hot, 0),
	ROW("meshgrid", "*tensors:move", ACC_EXACT, meshgrid, 0),
	{.names = NULL},
};
