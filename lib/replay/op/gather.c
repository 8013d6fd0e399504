/* Choosing elements by a tensor of indices or a mask: embedding, gather, index_select, take. */
#include "replay/impl.h"
#include "replay/view.h"

static const char BEYOND[] = "an index outside of its input";

static int
embedding(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *ids, *w;
	int64_t shape[ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &ids) < 0 || acc_need_tensor(r, "weight", &w) < 0)
		return ACC_EUNSUP;
	/* ATen has them the other way round. */
	if (acc_is_float(ids->dtype) && !acc_is_float(w->dtype)) {
		const struct acc_dense *other = ids;
		ids = w;
		w = other;
	}
	if (w->ndim != 2 || ids->ndim + 1 > ACC_DENSE_DIMS)
		return acc_cannot(r, "its weight is no matrix");
	int64_t padding = -1;
	bool by_freq = false;
	if (acc_arg_int(r, "padding_idx", &padding) < 0 ||
		acc_arg_bool(r, "scale_grad_by_freq", &by_freq) < 0)
		return ACC_EUNSUP;
	if (acc_arg(r, "max_norm") != NULL || (by_freq && r->gradient))
		return acc_cannot(r, "rows that are scaled");
	if (ids->ndim > 0)
		memcpy(shape, ids->shape, ids->ndim * sizeof *shape);
	shape[ids->ndim] = w->shape[1];
	if (acc_out_shape(r, out, shape, ids->ndim + 1) < 0)
		return ACC_EUNSUP;
	size_t len = (size_t)w->shape[1];
	for (size_t i = 0; i < ids->n; i++) {
		if (!(ids->v[i] >= 0 && ids->v[i] < (double)w->shape[0]))
			return acc_cannot(r, BEYOND);
		bool pad = r->gradient && ids->v[i] == (double)padding;
		for (size_t k = 0; k < len; k++)
			out->v[i * len + k] = pad ? 0 : w->v[(size_t)ids->v[i] * len + k];
	}
	return 0;
}

/* --- embedding_bag: sums, means or largest elements of the rows of a bag --- */

struct bags {
	const struct acc_dense *ids, *w, *start, *scale;
	enum { BAG_SUM, BAG_MEAN, BAG_MAX } how;
	size_t n, len;  /* bags; the length of all, where they are rows of ids */
	double padding; /* an index that belongs to no bag */
};

static int
bags(struct acc_replay *r, struct bags *b)
{
	struct acc_str mode = ACC_STR("mean");
	int64_t padding = -1;
	bool last = false;
	if (acc_need_tensor(r, "input", &b->ids) < 0 || acc_need_tensor(r, "weight", &b->w) < 0 ||
		acc_arg_tensor(r, "offsets", &b->start) < 0 || acc_arg_text(r, "mode", &mode) < 0 ||
		acc_arg_tensor(r, "per_sample_weights", &b->scale) < 0 ||
		acc_arg_bool(r, "include_last_offset", &last) < 0)
		return ACC_EUNSUP;
	int rc = acc_arg_int(r, "padding_idx", &padding);
	if (rc < 0 || acc_arg(r, "max_norm") != NULL || r->nrec != 1)
		return acc_cannot(r, "an argument is not understood");
	bool rows = b->ids->ndim == 2;
	if (b->w->ndim != 2 || rows != (b->start == NULL) || b->ids->ndim == 0 ||
		b->ids->ndim > 2 || (b->scale != NULL && b->scale->n != b->ids->n))
		return acc_cannot(r, "its inputs do not fit each other");
	b->padding = rc == 0 ? -1 : (double)(padding + (padding < 0 ? b->w->shape[0] : 0));
	b->how = acc_str_is(mode, "sum") ? BAG_SUM : acc_str_is(mode, "max") ? BAG_MAX : BAG_MEAN;
	b->len = rows ? (size_t)b->ids->shape[1] : 0;
	b->n = rows ? (size_t)b->ids->shape[0] : b->start->n - (last && b->start->n > 0);
	return 0;
}

/* The indices of a bag are those from *from to *to. */
static int
bag(struct acc_replay *r, const struct bags *b, size_t i, size_t *from, size_t *to)
{
	if (b->start == NULL) {
		*from = i * b->len;
		*to = *from + b->len;
		return 0;
	}
	double n = (double)b->ids->n, x = b->start->v[i],
	       y = i + 1 < b->start->n ? b->start->v[i + 1] : n;
	if (!(x >= 0 && x <= y && y <= n))
		return acc_cannot(r, BEYOND);
	*from = (size_t)x;
	*to = (size_t)y;
	return 0;
}

/* Column k of a bag. */
static double
gathered(const struct bags *b, size_t from, size_t to, size_t k, double *mag)
{
	size_t width = (size_t)b->w->shape[1];
	double sum = 0, most = -INFINITY, n = 0;
	*mag = 0;
	for (size_t i = from; i < to; i++) {
		if (b->ids->v[i] == b->padding)
			continue;
		double x = b->w->v[(size_t)b->ids->v[i] * width + k];
		double term = b->scale == NULL ? x : x * b->scale->v[i];
		most = isnan(x) || x > most ? x : most;
		sum += term;
		*mag += fabs(term);
		n++;
	}
	if (b->how == BAG_MAX) {
		*mag = 0;
		return n > 0 ? most : 0;
	}
	if (b->how == BAG_SUM || n == 0)
		return sum;
	*mag /= n;
	return sum / n;
}

static int
embedding_bag(struct acc_replay *r, struct acc_dense *out)
{
	struct bags b = {0};
	size_t from = 0, to = 0;
	if (bags(r, &b) < 0 ||
		acc_out_shape(r, out, (int64_t[]){(int64_t)b.n, b.w->shape[1]}, 2) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < b.ids->n; i++)
		if (!(b.ids->v[i] >= 0 && b.ids->v[i] < (double)b.w->shape[0]))
			return acc_cannot(r, BEYOND);
	size_t width = (size_t)b.w->shape[1];
	for (size_t i = 0; i < b.n; i++) {
		if (bag(r, &b, i, &from, &to) < 0)
			return ACC_EUNSUP;
		for (size_t k = 0; k < width; k++) {
			double mag;
			out->v[i * width + k] = gathered(&b, from, to, k, &mag);
			if (out->mag != NULL)
				out->mag[i * width + k] = mag;
		}
	}
	return 0;
}

static int
index_select(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids;
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t dim;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "index", &ids) < 0 ||
		acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0)
		return ACC_EUNSUP;
	if (x->ndim == 0)
		return acc_cannot(r, "its input has no dimension");
	memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[dim] = (int64_t)ids->n;
	if (acc_out_shape(r, out, shape, x->ndim) < 0)
		return ACC_EUNSUP;
	size_t inner = 1, n = (size_t)x->shape[dim];
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	for (size_t i = 0; i < out->n; i++) {
		double k = ids->v[i / inner % ids->n];
		if (!(k >= 0 && k < (double)n))
			return acc_cannot(r, BEYOND);
		out->v[i] = x->v[(i / inner / ids->n * n + (size_t)k) * inner + i % inner];
	}
	return 0;
}

/* out[i][j] = x[index[i][j]][j] and so on: the index's shape, which x may exceed elsewhere. */
static int
gather(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids;
	struct acc_view v;
	uint32_t dim;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "index", &ids) < 0 ||
		acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0 ||
		acc_out_shape(r, out, ids->shape, ids->ndim) < 0)
		return ACC_EUNSUP;
	bool fits = x->ndim == ids->ndim && x->ndim > 0;
	for (uint32_t d = 0; fits && d < x->ndim; d++)
		fits = d == dim || ids->shape[d] <= x->shape[d];
	if (!fits)
		return acc_cannot(r, "its inputs do not fit each other");
	acc_view_of(x, &v);
	int64_t step = v.stride[dim], n = v.shape[dim];
	memcpy(v.shape, ids->shape, ids->ndim * sizeof *v.shape);
	v.stride[dim] = 0;
	const size_t *at = acc_view_offsets(r, &v);
	for (size_t i = 0; at != NULL && i < ids->n; i++) {
		if (!(ids->v[i] >= 0 && ids->v[i] < (double)n))
			return acc_cannot(r, BEYOND);
		out->v[i] = x->v[at[i] + (size_t)ids->v[i] * (size_t)step];
	}
	return at == NULL ? ACC_EUNSUP : 0;
}

/* gather where the other dimensions are broadcast; without a dimension, of all elements. */
static int
along(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids;
	struct acc_broadcast b;
	uint32_t dim;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "index", &ids) < 0)
		return ACC_EUNSUP;
	if (acc_arg(r, "dim") == NULL)
		return acc_cannot(r, "its dimension was not recorded");
	if (x->ndim == 0 || x->ndim != ids->ndim || x->ndim != out->ndim)
		return acc_cannot(r, "its inputs do not fit each other");
	if (acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0)
		return ACC_EUNSUP;
	struct acc_dense rest = *x;
	rest.shape[dim] = 1;
	const struct acc_dense *in[] = {&rest, ids};
	if (acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	size_t inner = 1, n = (size_t)x->shape[dim];
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b)) {
		double k = ids->v[b.at[1]];
		if (!(k >= 0 && k < (double)n))
			return acc_cannot(r, BEYOND);
		size_t at = b.at[0] / inner * n * inner + b.at[0] % inner;
		out->v[i] = x->v[at + (size_t)k * inner];
	}
	return 0;
}

static int
take(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "index", &ids) < 0 ||
		acc_out_shape(r, out, ids->shape, ids->ndim) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < ids->n; i++) {
		double k = ids->v[i] < 0 ? ids->v[i] + (double)x->n : ids->v[i];
		if (!(k >= 0 && k < (double)x->n))
			return acc_cannot(r, BEYOND);
		out->v[i] = x->v[(size_t)k];
	}
	return 0;
}

/* Which elements a mask takes. */
static int
masked_fill(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2];
	struct acc_broadcast b;
	double value;
	if (acc_need_tensor(r, "input", &in[0]) < 0 || acc_need_tensor(r, "mask", &in[1]) < 0)
		return ACC_EUNSUP;
	int rc = acc_arg_float(r, "value", &value);
	if (rc <= 0)
		return rc < 0 ? rc : acc_cannot(r, "its value was not recorded");
	if (acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b))
		out->v[i] = in[1]->v[b.at[1]] != 0 ? value : in[0]->v[b.at[0]];
	return 0;
}

#define MOVE(n, s, f) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = ACC_EXACT, .eval = f, \
		.flags = f == masked_fill ? 0 : ACC_GATHERS, .rows = f == embedding, \
		.cut = f == masked_fill ? acc_cut_point : NULL \
	}
const struct acc_op acc_ops_gather[] = {
	MOVE("embedding Embedding",
		"input:move weight:move padding_idx max_norm norm_type "
		"scale_grad_by_freq sparse",
		embedding),
	MOVE("GET_ROWS", "weight:move input:move", embedding),
	{.names = "embedding_bag",
		.sig = "input weight:any offsets max_norm norm_type "
		       "scale_grad_by_freq mode sparse per_sample_weights:any include_last_offset padding_idx",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.eval = embedding_bag},
	MOVE("index_select", "input|x|self:move dim|axis index", index_select),
	MOVE("gather GatherD", "input|x|self:move dim|axis index", gather),
	MOVE("take_along_dim", "input|x|self:move index|indices dim", along),
	MOVE("take", "input|x|self:move index", take),
	MOVE("masked_fill npu_masked_fill MaskedFill", "input|x|self:move mask value", masked_fill),
	{.names = NULL},
};
