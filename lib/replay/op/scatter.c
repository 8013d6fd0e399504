/* Writing by indices into a copy: scatter, index_add, index_put, x[...] = value, and their kin. */
#include "replay/compose.h"
#include "replay/impl.h"
#include "replay/op/index.h"
#include "replay/view.h"

enum { PUT, ADD, MUL, AMAX, AMIN, MEAN, REDUCE };

struct writer {
	int how;
	struct acc_dense *out;
	const double *rec;
	uint32_t *times; /* each element was written to */
	bool self;       /* what was there before counts */
	bool scaled;     /* what is written was multiplied before */
	double step;     /* of a rounding, in units of mag */
	bool twice;      /* an element was put more than once: which one stays is not laid down */
};

static int
start(struct acc_replay *r, const struct acc_dense *x, int how, bool self, struct acc_dense *out,
	struct writer *w)
{
	*w = (struct writer){.how = how,
		.out = out,
		.rec = r->rec[0].v,
		.self = self,
		.step = acc_roundings(r, out->dtype),
		.times = acc_alloc(r->mem, x->n * sizeof *w->times)};
	if (w->times == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	if (acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < x->n; i++) {
		w->times[i] = 0;
		out->v[i] = x->v[i];
		if (out->mag != NULL)
			out->mag[i] = how == PUT ? 0 : fabs(x->v[i]);
	}
	return 0;
}

static double
combine(int how, double a, double b)
{
	switch (how) {
	case MUL:
		return a * b;
	case AMAX:
		return isnan(a) || a > b ? a : b;
	case AMIN:
		return isnan(a) || a < b ? a : b;
	default:
		return a + b;
	}
}

static void
put(struct writer *w, size_t at, double v)
{
	double *y = &w->out->v[at];
	bool first = w->times[at]++ == 0;
	if (w->how == PUT) {
		w->twice |= !first && *y != v;
		if (first || w->rec == NULL || w->rec[at] != *y)
			*y = v;
		return;
	}
	bool fresh = first && !w->self;
	const double before = fabs(*y);
	*y = fresh ? v : combine(w->how, *y, v);
	if (w->out->mag == NULL)
		return;
	double *mag = &w->out->mag[at];
	*mag = w->how == MUL ? fabs(*y) * (1 + w->times[at]) : (fresh ? 0 : *mag) + fabs(v);
	if (!first) /* atomic additions round each time */
		*mag += (w->how == MUL ? fabs(*y) : before) * w->step;
	if (w->scaled) /* and so does what is added */
		*mag += fabs(v) * w->step;
}

static int
finish(struct acc_replay *r, struct writer *w)
{
	if (w->twice && (r->gradient || w->out->mag == NULL))
		return acc_cannot(r, "an element was written to twice");
	/* Its gradient is the product over the element. */
	for (size_t i = 0; w->how == MUL && w->out->mag == NULL && i < w->out->n; i++)
		if (w->times[i] > 0 && fabs(w->out->v[i]) < 0x1p10 * acc_tiny_of(w->out->dtype))
			return acc_cannot(r, "its products are too small");
	for (size_t i = 0; w->how == MEAN && i < w->out->n; i++) {
		uint32_t n = w->times[i] + (w->self || w->times[i] == 0);
		w->out->v[i] /= n;
		if (!acc_is_float(w->out->dtype))
			w->out->v[i] = floor(w->out->v[i]);
	}
	return 0;
}

static int
how_of(struct acc_replay *r, int *how)
{
	static const struct {
		const char *text;
		int how;
	} word[] = {{"sum", ADD}, {"add", ADD}, {"prod", MUL}, {"multiply", MUL}, {"mul", MUL},
		{"mean", MEAN}, {"amax", AMAX}, {"amin", AMIN}, {"none", PUT}};
	struct acc_str s = {"", 0};
	int rc = acc_arg_text(r, "reduce", &s);
	*how = r->op->which;
	if (rc <= 0)
		return rc < 0 || *how != REDUCE ? rc
						: acc_cannot(r, "its reduction was not recorded");
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (acc_str_is(s, word[i].text)) {
			*how = word[i].how;
			return 0;
		}
	return acc_cannot(r, "a reduction that is not understood");
}

/* An index as it is counted from the front; < 0: outside. */
static int64_t
index_of(double k, int64_t n)
{
	k += k < 0 ? (double)n : 0;
	return k >= 0 && k < (double)n ? (int64_t)k : -1;
}

static int
outside(struct acc_replay *r)
{
	return acc_cannot(r, "an index outside of its input");
}

/* out[index[i][j]][j] = src[i][j] and so on along a dimension; src may be larger, or a number. */
static int
scatter(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids, *src = NULL;
	struct acc_view v, from;
	struct writer w;
	uint32_t dim;
	double number = 0;
	bool self = true;
	int how;
	if (how_of(r, &how) < 0 || acc_need_tensor(r, "input", &x) < 0 ||
		acc_need_tensor(r, "index", &ids) < 0 ||
		acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0 ||
		acc_arg_bool(r, "include_self", &self) < 0 || start(r, x, how, self, out, &w) < 0)
		return ACC_EUNSUP;
	const struct acc_value *value = acc_arg(r, "src");
	if (value != NULL && value->type == ACC_A_TENSOR && value->t->ndim > 0) {
		if (acc_need_tensor(r, "src", &src) < 0)
			return ACC_EUNSUP;
	} else if (acc_arg_float(r, "src", &number) <= 0) {
		return acc_cannot(r, "its source was not recorded");
	}
	bool fits = x->ndim == ids->ndim && x->ndim > 0 && (src == NULL || src->ndim == x->ndim);
	for (uint32_t d = 0; fits && d < x->ndim; d++)
		fits = (d == dim || ids->shape[d] <= x->shape[d]) &&
		       (src == NULL || ids->shape[d] <= src->shape[d]);
	if (!fits)
		return ids->n == 0 ? 0 : acc_cannot(r, "its inputs do not fit each other");
	acc_view_of(x, &v);
	int64_t step = v.stride[dim];
	memcpy(v.shape, ids->shape, ids->ndim * sizeof *v.shape);
	v.stride[dim] = 0;
	acc_view_of(src == NULL ? ids : src, &from);
	memcpy(from.shape, ids->shape, ids->ndim * sizeof *from.shape);
	const size_t *at = acc_view_offsets(r, &v), *of = acc_view_offsets(r, &from);
	for (size_t i = 0; at != NULL && of != NULL && i < ids->n; i++) {
		int64_t k = index_of(ids->v[i], x->shape[dim]);
		if (k < 0)
			return outside(r);
		put(&w, at[i] + (size_t)(k * step), src == NULL ? number : src->v[of[i]]);
	}
	return at == NULL || of == NULL ? ACC_EUNSUP : finish(r, &w);
}

/* Rows along a dimension: out[..., index[i], ...] = source[..., i, ...], or a number. */
static int
by_rows(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids, *src = NULL;
	struct writer w;
	uint32_t dim;
	double alpha = 1, number = 0;
	int64_t shape[ACC_DENSE_DIMS] = {0};
	bool self = true;
	int how, fill = acc_arg(r, "value") != NULL;
	if (how_of(r, &how) < 0 || acc_need_tensor(r, "input", &x) < 0 ||
		acc_need_tensor(r, "index", &ids) < 0 ||
		acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0 ||
		acc_arg_float(r, "alpha", &alpha) < 0 ||
		acc_arg_bool(r, "include_self", &self) < 0 || start(r, x, how, self, out, &w) < 0 ||
		(fill ? acc_arg_float(r, "value", &number) : acc_need_tensor(r, "source", &src)) <
			0)
		return ACC_EUNSUP;
	if (!acc_is_float(out->dtype)) /* as whole numbers are multiplied */
		alpha = out->dtype == ACC_BOOL ? alpha != 0 : trunc(alpha);
	w.scaled = alpha != 1;
	if (x->ndim > 0)
		memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[dim] = (int64_t)ids->n;
	size_t inner = 1, n = x->ndim == 0 ? 1 : (size_t)x->shape[dim], count = 1;
	for (uint32_t d = 0; d < x->ndim; d++) {
		inner *= d > dim ? (size_t)x->shape[d] : 1;
		count *= (size_t)shape[d];
	}
	if (x->ndim == 0)
		count = ids->n;
	if (src != NULL && src->n != count)
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < count; i++) {
		int64_t k = index_of(ids->v[i / inner % ids->n], (int64_t)n);
		if (k < 0)
			return outside(r);
		put(&w, (i / inner / ids->n * n + (size_t)k) * inner + i % inner,
			src == NULL ? number : alpha * src->v[i]);
	}
	return finish(r, &w);
}

/* What the mask is true at takes the elements of the source, one after the other. */
static int
masked_scatter(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2], *src;
	struct acc_broadcast b;
	size_t k = 0;
	if (acc_need_tensor(r, "input", &in[0]) < 0 || acc_need_tensor(r, "mask", &in[1]) < 0 ||
		acc_need_tensor(r, "source", &src) < 0 ||
		acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b)) {
		bool take = in[1]->v[b.at[1]] != 0;
		if (take && k == src->n)
			return acc_cannot(r, "its source is too short");
		out->v[i] = take ? src->v[k++] : in[0]->v[b.at[0]];
	}
	return 0;
}

static int
masked_select(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2];
	struct acc_broadcast b;
	int64_t shape[ACC_DENSE_DIMS];
	size_t n = 1, k = 0;
	if (acc_need_tensor(r, "input", &in[0]) < 0 || acc_need_tensor(r, "mask", &in[1]) < 0)
		return ACC_EUNSUP;
	uint32_t nd = in[0]->ndim > in[1]->ndim ? in[0]->ndim : in[1]->ndim;
	for (uint32_t d = 0; d < nd; d++) {
		shape[d] = 1;
		for (int s = 0; s < 2; s++)
			if (d + in[s]->ndim >= nd && in[s]->shape[d + in[s]->ndim - nd] != 1)
				shape[d] = in[s]->shape[d + in[s]->ndim - nd];
		n *= (size_t)shape[d];
	}
	if (!acc_broadcast_start(&b, shape, nd, in, 2))
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < n; i++, acc_broadcast_next(&b)) {
		if (in[1]->v[b.at[1]] == 0)
			continue;
		if (k < out->n)
			out->v[k] = in[0]->v[b.at[0]];
		k++;
	}
	return acc_out_shape(r, out, (int64_t[]){(int64_t)k}, 1);
}

/* A value, or a number, broadcast to the places of an index. */
static int
write_at(struct acc_replay *r, struct writer *w, const struct acc_dense *at)
{
	const struct acc_value *v = acc_arg(r, "value");
	const struct acc_dense *src = NULL;
	struct acc_broadcast b;
	double number = 0;
	if (v != NULL && v->type == ACC_A_TENSOR) {
		if (acc_need_tensor(r, "value", &src) < 0)
			return ACC_EUNSUP;
		struct acc_dense *d = acc_alloc(r->mem, sizeof *d);
		if (d == NULL)
			return acc_cannot(r, ACC_NOMEM_TEXT);
		*d = *src; /* leading dimensions of 1 may be more than there are places */
		while (d->ndim > at->ndim && d->shape[0] == 1) {
			d->ndim--;
			memmove(d->shape, d->shape + 1, d->ndim * sizeof *d->shape);
		}
		src = d;
		if (!acc_broadcast_start(&b, at->shape, at->ndim, &src, 1))
			return acc_cannot(r, "its inputs do not fit each other");
	} else if (acc_arg_float(r, "value", &number) <= 0) {
		return acc_cannot(r, "its value was not recorded");
	}
	for (size_t i = 0; i < at->n; i++) {
		put(w, (size_t)at->v[i], src == NULL ? number : src->v[b.at[0]]);
		if (src != NULL)
			acc_broadcast_next(&b);
	}
	return finish(r, w);
}

/* x[index] = value, x.index_put(indices, value, accumulate) */
static int
index_put(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_dense at;
	struct writer w;
	bool add = false;
	const struct acc_value *idx = acc_arg(r, "index");
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_bool(r, "accumulate", &add) < 0)
		return ACC_EUNSUP;
	if (idx == NULL)
		return acc_cannot(r, "its index was not recorded");
	if (acc_index_places(r, x, idx, &at) < 0 || start(r, x, add ? ADD : PUT, true, out, &w) < 0)
		return ACC_EUNSUP;
	return write_at(r, &w, &at);
}

/* x.put(index, source, accumulate): x as if it were flat */
static int
put_flat(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids, *src;
	struct writer w;
	bool add = false;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "index", &ids) < 0 ||
		acc_need_tensor(r, "source", &src) < 0 || acc_arg_bool(r, "accumulate", &add) < 0 ||
		start(r, x, add ? ADD : PUT, true, out, &w) < 0)
		return ACC_EUNSUP;
	if (src->n != ids->n)
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < ids->n; i++) {
		int64_t k = index_of(ids->v[i], (int64_t)x->n);
		if (k < 0)
			return outside(r);
		put(&w, (size_t)k, src->v[i]);
	}
	return finish(r, &w);
}

/* Each row of indices [..., k] names a part of x by its first k dimensions. */
static int
scatter_nd(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids, *src;
	struct writer w;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "index", &ids) < 0 ||
		acc_need_tensor(r, "source", &src) < 0 ||
		start(r, x, r->op->which, true, out, &w) < 0)
		return ACC_EUNSUP;
	size_t k = ids->ndim == 0 ? 0 : (size_t)ids->shape[ids->ndim - 1], inner = 1;
	if (k == 0 || k > x->ndim)
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = (uint32_t)k; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	if (src->n != ids->n / k * inner)
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t row = 0; row < ids->n / k; row++) {
		size_t at = 0;
		for (size_t d = 0; d < k; d++) {
			int64_t j = index_of(ids->v[row * k + d], x->shape[d]);
			if (j < 0)
				return outside(r);
			at = at * (size_t)x->shape[d] + (size_t)j;
		}
		for (size_t i = 0; i < inner; i++)
			put(&w, at * inner + i, src->v[row * inner + i]);
	}
	return finish(r, &w);
}

#define ROW(n, s, rnd, f, w) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = rnd, .eval = f, .which = w \
	}
#define SUMS(n, s, f, w) \
	{ \
		.names = n, .sig = s, .cls = "reduce", .rounding = ACC_FEW, .eval = f, .which = w \
	}
const struct acc_op acc_ops_scatter[] = {
	ROW("scatter", "input|self:move dim|axis index src|value:move reduce", ACC_EXACT, scatter,
		PUT),
	ROW("tensor_scatter_elements",
		"input|input_x:move index|indices src|updates:move dim|axis "
		"reduce|reduction",
		ACC_EXACT, scatter, PUT),
	SUMS("scatter_add", "input|self:point dim|axis index src:any", scatter, ADD),
	SUMS("scatter_reduce", "input|self:any dim index src:any reduce include_self", scatter,
		REDUCE),
	SUMS("index_add", "input|self:point dim|axis index source|y:any alpha", by_rows, ADD),
	SUMS("index_reduce", "input|self:any dim index source:any reduce include_self", by_rows,
		REDUCE),
	ROW("index_copy", "input|self:move dim index source|tensor:move", ACC_EXACT, by_rows, PUT),
	ROW("index_fill", "input|self|x:move dim|axis index value", ACC_EXACT, by_rows, PUT),
	ROW("masked_scatter", "input|self:move mask source:move", ACC_EXACT, masked_scatter, 0),
	ROW("masked_select", "input|self:move mask", ACC_EXACT, masked_select, 0),
	ROW("index_put",
		"input|self:point index|indices value|values:any "
		"accumulate",
		ACC_ONCE, index_put, 0),
	ROW("setitem", "input|self:move index value:move", ACC_EXACT, index_put, 0),
	ROW("put", "input|self:point index source:any accumulate", ACC_ONCE, put_flat, 0),
	ROW("npu_scatter_nd_update tensor_scatter_update TensorScatterUpdate ScatterNdUpdate",
		"input|self|input_x:move index|indices source|updates:move", ACC_EXACT, scatter_nd,
		PUT),
	SUMS("TensorScatterAdd scatter_nd_add ScatterNdAdd",
		"input|self|input_x:point index|indices source|updates:any", scatter_nd, ADD),
	{.names = NULL},
};
