/* Elements put elsewhere in patterns: unfold, fold, pixel_shuffle, channel_shuffle, diagonals. */
#include "replay/impl.h"
#include "replay/view.h"

#include <stdlib.h>

/* Sizes beyond this are not multiplied. */
#define LARGE ((int64_t)1 << 20)

/* --- windows of an image as columns --- */

struct windows {
	int64_t n, c, h, w;                           /* the image */
	int64_t k[2], dil[2], pad[2], step[2], at[2]; /* at: how many windows */
};

static int
pair(struct acc_replay *r, const char *name, int64_t dflt, int64_t out[2])
{
	uint32_t n = 0;
	out[0] = dflt;
	int rc = acc_arg_ints(r, name, out, 2, &n);
	if (rc < 0)
		return rc;
	if (n < 2)
		out[1] = out[0];
	if (out[0] < 0 || out[1] < 0 || out[0] > LARGE || out[1] > LARGE)
		return acc_cannot(r, "an argument is not understood");
	return 0;
}

static int
windows(struct acc_replay *r, struct windows *w)
{
	if (acc_arg(r, "kernel_size") == NULL)
		return acc_cannot(r, "its kernel size was not recorded");
	if (w->c > LARGE || w->h > LARGE || w->w > LARGE)
		return acc_cannot(r, "too large to be recomputed");
	if (pair(r, "kernel_size", 1, w->k) < 0 || pair(r, "dilation", 1, w->dil) < 0 ||
		pair(r, "padding", 0, w->pad) < 0 || pair(r, "stride", 1, w->step) < 0)
		return ACC_EUNSUP;
	int64_t size[2] = {w->h, w->w};
	for (int i = 0; i < 2; i++) {
		int64_t room = size[i] + 2 * w->pad[i] - w->dil[i] * (w->k[i] - 1) - 1;
		if (w->step[i] == 0 || w->k[i] == 0 || room < 0)
			return acc_cannot(r, "its inputs do not fit each other");
		w->at[i] = room / w->step[i] + 1;
	}
	return 0;
}

/* The element of the image that row `row`, column `col` of the columns is; < 0: padding. */
static int64_t
source(const struct windows *w, int64_t row, int64_t col)
{
	int64_t c = row / (w->k[0] * w->k[1]), i = row / w->k[1] % w->k[0], j = row % w->k[1];
	int64_t y = col / w->at[1] * w->step[0] - w->pad[0] + i * w->dil[0];
	int64_t x = col % w->at[1] * w->step[1] - w->pad[1] + j * w->dil[1];
	return y < 0 || x < 0 || y >= w->h || x >= w->w ? -1 : (c * w->h + y) * w->w + x;
}

/* x.unfold(dimension, size, step): windows along one dimension, in a new last one. */
static int
sliding(struct acc_replay *r, const struct acc_dense *x, struct acc_dense *out)
{
	struct acc_view v;
	uint32_t dim;
	int64_t size, step;
	if (acc_arg_dim(r, "kernel_size", x->ndim, 0, &dim) < 0 ||
		acc_arg_int(r, "dilation", &size) <= 0 || acc_arg_int(r, "padding", &step) <= 0)
		return acc_cannot(r, "an argument is not understood");
	acc_view_of(x, &v);
	if (step <= 0 || size < 0 || v.ndim == 0 || size > v.shape[dim] || v.ndim == ACC_DENSE_DIMS)
		return acc_cannot(r, "an argument is not understood");
	v.shape[v.ndim] = size;
	v.stride[v.ndim++] = v.stride[dim];
	v.shape[dim] = (v.shape[dim] - size) / step + 1;
	v.stride[dim] *= v.shape[dim] > 1 ? step : 1;
	return acc_view_copy(r, &v, x->v, out);
}

static int
unfold(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct windows w;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (out->ndim == x->ndim + 1)
		return sliding(r, x, out);
	if (x->ndim != 4 && x->ndim != 3)
		return acc_cannot(r, "its input is no image");
	bool batch = x->ndim == 4;
	w.n = batch ? x->shape[0] : 1;
	w.c = x->shape[batch];
	w.h = x->shape[batch + 1];
	w.w = x->shape[batch + 2];
	if (windows(r, &w) < 0)
		return ACC_EUNSUP;
	int64_t rows = w.c * w.k[0] * w.k[1], cols = w.at[0] * w.at[1], each = w.c * w.h * w.w;
	int64_t shape[3] = {w.n, rows, cols};
	if (acc_out_shape(r, out, shape + !batch, batch ? 3 : 2) < 0)
		return ACC_EUNSUP;
	for (size_t o = 0; o < out->n; o++) {
		int64_t i = (int64_t)o, s = source(&w, i / cols % rows, i % cols);
		out->v[o] = s < 0 ? 0 : x->v[i / cols / rows * each + s];
	}
	return 0;
}

/* The columns put together again; where windows overlap, they are summed up. */
static int
fold(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct windows w;
	int64_t size[2];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg(r, "output_size") == NULL ||
		pair(r, "output_size", 1, size) < 0)
		return acc_cannot(r, "its output size was not recorded");
	if (x->ndim != 3 && x->ndim != 2)
		return acc_cannot(r, "its inputs do not fit each other");
	bool batch = x->ndim == 3;
	w.h = size[0];
	w.w = size[1];
	w.c = 1;
	if (windows(r, &w) < 0)
		return ACC_EUNSUP;
	int64_t rows = x->shape[batch], cols = x->shape[batch + 1];
	w.n = batch ? x->shape[0] : 1;
	w.c = rows / (w.k[0] * w.k[1]);
	if (w.c > LARGE)
		return acc_cannot(r, "too large to be recomputed");
	int64_t shape[4] = {w.n, w.c, w.h, w.w}, each = w.c * w.h * w.w;
	if (cols != w.at[0] * w.at[1] || rows != w.c * w.k[0] * w.k[1])
		return acc_cannot(r, "its inputs do not fit each other");
	if (acc_out_shape(r, out, shape + !batch, batch ? 4 : 3) < 0)
		return ACC_EUNSUP;
	double step = acc_roundings(r, out->dtype);
	for (size_t o = 0; o < out->n; o++)
		out->v[o] = 0;
	for (size_t k = 0; k < x->n; k++) {
		int64_t i = (int64_t)k, s = source(&w, i / cols % rows, i % cols);
		if (s < 0)
			continue;
		s += i / cols / rows * each;
		out->v[s] += x->v[k];
		if (out->mag != NULL)
			out->mag[s] += fabs(x->v[k]) + step * fabs(out->v[s]);
	}
	return 0;
}

/* --- views of more dimensions, in another order --- */

static int
shuffle(struct acc_replay *r, const struct acc_dense *x, const int64_t *shape,
	const uint32_t *order, uint32_t n, const int64_t *result, uint32_t nresult,
	struct acc_dense *out)
{
	struct acc_dense more = *x, between = *out;
	struct acc_view v, w;
	if (acc_out_shape(r, out, result, nresult) < 0)
		return ACC_EUNSUP;
	more.ndim = between.ndim = n;
	memcpy(more.shape, shape, n * sizeof *shape);
	acc_view_of(&more, &v);
	w = v;
	for (uint32_t d = 0; d < n; d++) {
		between.shape[d] = w.shape[d] = v.shape[order[d]];
		w.stride[d] = v.stride[order[d]];
	}
	return acc_view_copy(r, &w, x->v, &between);
}

enum { PIXELS, UNPIXELS, CHANNELS };

static int
pixels(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t f, n = 1;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (acc_arg_int(r, "factor", &f) <= 0 || f <= 0 || f > 1024 || x->ndim < 3)
		return acc_cannot(r, "an argument is not understood");
	uint32_t lead = x->ndim - 3;
	int64_t c = x->shape[lead], h = x->shape[lead + 1], w = x->shape[lead + 2];
	if (c > LARGE || h > LARGE || w > LARGE || x->n == 0)
		return acc_cannot(r, "its inputs do not fit each other");
	int64_t result[ACC_DENSE_DIMS];
	for (uint32_t d = 0; d < lead; d++)
		n *= result[d] = x->shape[d];
	switch (r->op->which) {
	case PIXELS:
		if (c % (f * f) != 0)
			break;
		memcpy(result + lead, (int64_t[]){c / (f * f), h * f, w * f}, 3 * sizeof *result);
		return shuffle(r, x, (int64_t[]){n, c / (f * f), f, f, h, w},
			(uint32_t[]){0, 1, 4, 2, 5, 3}, 6, result, x->ndim, out);
	case UNPIXELS:
		if (h % f != 0 || w % f != 0)
			break;
		memcpy(result + lead, (int64_t[]){c * f * f, h / f, w / f}, 3 * sizeof *result);
		return shuffle(r, x, (int64_t[]){n, c, h / f, f, w / f, f},
			(uint32_t[]){0, 1, 3, 5, 2, 4}, 6, result, x->ndim, out);
	default: /* CHANNELS: of the second dimension */
		c = x->shape[1];
		if (c % f != 0)
			break;
		return shuffle(r, x,
			(int64_t[]){x->shape[0], f, c / f, (int64_t)x->n / x->shape[0] / c},
			(uint32_t[]){0, 2, 1, 3}, 4, x->shape, x->ndim, out);
	}
	return acc_cannot(r, "its inputs do not fit each other");
}

/* npu_confusion_transpose: transposed and then seen in another shape, or the reverse. */
static int
confusion(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t perm[ACC_DENSE_DIMS], shape[ACC_DENSE_DIMS], *to;
	uint32_t order[ACC_DENSE_DIMS], n, ns, seen = 0;
	bool first = false;
	if (acc_need_tensor(r, "input", &x) < 0 ||
		acc_arg_ints(r, "perm", perm, ACC_DENSE_DIMS, &n) <= 0 ||
		acc_arg_ints(r, "shape", shape, ACC_DENSE_DIMS, &ns) <= 0 ||
		acc_arg_bool(r, "transpose_first", &first) <= 0)
		return acc_cannot(r, "an argument is not understood");
	for (uint32_t d = 0; d < n; d++) {
		if (perm[d] < 0 || perm[d] >= (int64_t)n || (seen & 1u << perm[d]))
			return acc_cannot(r, "its argument perm is not an order of its dimensions");
		seen |= 1u << perm[d];
		order[d] = (uint32_t)perm[d];
	}
	size_t count = 1;
	for (uint32_t d = 0; d < ns; d++)
		count *= shape[d] < 0 ? 0 : (size_t)shape[d];
	if (n != (first ? x->ndim : ns) || count != x->n)
		return acc_cannot(r, "its inputs do not fit each other");
	if (first)
		return shuffle(r, x, x->shape, order, n, shape, ns, out);
	int64_t result[ACC_DENSE_DIMS];
	to = result;
	for (uint32_t d = 0; d < n; d++)
		*to++ = shape[order[d]];
	return shuffle(r, x, shape, order, n, result, n, out);
}

/* --- diagonals --- */

/* diagonal(x, offset, dim1, dim2): the diagonal becomes the last dimension. */
static int
diagonal(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	int64_t offset = 0;
	uint32_t a, b, n = 0;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "offset", &offset) < 0 ||
		acc_arg_dim(r, "dim1", x->ndim, 0, &a) < 0 ||
		acc_arg_dim(r, "dim2", x->ndim, 1, &b) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 2 || a == b || llabs(offset) > LARGE)
		return acc_cannot(r, "its input is no matrix");
	acc_view_of(x, &v);
	int64_t rows = v.shape[a] + (offset < 0 ? offset : 0);
	int64_t cols = v.shape[b] - (offset > 0 ? offset : 0), len = rows < cols ? rows : cols;
	struct acc_view w = {.first = offset < 0 ? -offset * v.stride[a] : offset * v.stride[b]};
	for (uint32_t d = 0; d < v.ndim; d++) {
		if (d == a || d == b)
			continue;
		w.shape[n] = v.shape[d];
		w.stride[n++] = v.stride[d];
	}
	w.shape[n] = len < 0 ? 0 : len;
	w.stride[n++] = v.stride[a] + v.stride[b];
	w.ndim = n;
	return acc_view_copy(r, &w, x->v, out);
}

/* diag(x, diagonal): of a matrix its diagonal, of a vector a matrix; diag_embed. */
static int
diag(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t offset = 0, shape[ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "offset", &offset) < 0)
		return ACC_EUNSUP;
	if (r->op->which == 0 && x->ndim == 2)
		return diagonal(r, out);
	if (x->ndim == 0 || x->ndim == ACC_DENSE_DIMS || (r->op->which == 0 && x->ndim != 1))
		return acc_cannot(r, "its input is no vector");
	if (acc_arg(r, "dim1") != NULL || llabs(offset) > LARGE)
		return acc_cannot(r, "an argument is not understood");
	int64_t n = x->shape[x->ndim - 1], side = n + (offset < 0 ? -offset : offset);
	memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[x->ndim - 1] = shape[x->ndim] = side;
	if (acc_out_shape(r, out, shape, x->ndim + 1) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++) {
		int64_t c = (int64_t)i % side, l = (int64_t)i / side % side;
		int64_t k = offset < 0 ? c : l;
		bool on = c - l == offset && k < n;
		out->v[i] = on ? x->v[(int64_t)i / side / side * n + k] : 0;
	}
	return 0;
}

/* repeat_interleave(x, repeats, dim): each element so often, one number or one for each. */
static int
repeat_interleave(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_dense flat;
	const struct acc_value *v = acc_arg(r, "repeats");
	uint32_t dim;
	double one = 0;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	int rc = acc_arg_dim(r, "dim", x->ndim, 0, &dim);
	bool many = v != NULL && v->type == ACC_A_TENSOR && v->t->n > 1;
	if (rc < 0 || (!many && acc_arg_float(r, "repeats", &one) <= 0))
		return acc_cannot(r, "its repeats were not recorded");
	flat = *x;
	if (rc == 0 || x->ndim == 0) {
		flat.ndim = 1;
		flat.shape[0] = (int64_t)x->n;
	}
	size_t len = (size_t)flat.shape[dim], inner = 1, outer = 1, total = 0, o = 0;
	if (many && (v->t->n != len || v->t->v == NULL))
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = 0; d < flat.ndim; d++) {
		outer *= d < dim ? (size_t)flat.shape[d] : 1;
		inner *= d > dim ? (size_t)flat.shape[d] : 1;
	}
	for (size_t i = 0; i < len; i++) {
		double k = many ? v->t->v[i] : one;
		if (!(k >= 0) || k > 0x1p40)
			return acc_cannot(r, "its repeats were not recorded");
		total += (size_t)k;
	}
	int64_t shape[ACC_DENSE_DIMS];
	memcpy(shape, flat.shape, flat.ndim * sizeof *shape);
	shape[dim] = (int64_t)total;
	if (acc_out_shape(r, out, shape, flat.ndim) < 0)
		return ACC_EUNSUP;
	for (size_t a = 0; a < outer; a++)
		for (size_t i = 0; i < len; i++) {
			size_t times = (size_t)(many ? v->t->v[i] : one);
			for (size_t k = 0; k < times; k++, o += inner)
				memcpy(out->v + o, x->v + (a * len + i) * inner,
					inner * sizeof *x->v);
		}
	return 0;
}

/* movedim(x, source, destination) */
static int
movedim(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v, w;
	int64_t from[ACC_DENSE_DIMS], to[ACC_DENSE_DIMS];
	uint32_t n, m, left = 0;
	bool used[ACC_DENSE_DIMS] = {false}, set[ACC_DENSE_DIMS] = {false};
	if (acc_need_tensor(r, "input", &x) < 0 ||
		acc_arg_ints(r, "source", from, ACC_DENSE_DIMS, &n) <= 0 ||
		acc_arg_ints(r, "destination", to, ACC_DENSE_DIMS, &m) <= 0 || n != m)
		return acc_cannot(r, "an argument is not understood");
	acc_view_of(x, &v);
	w = v;
	for (uint32_t k = 0; k < n; k++) {
		from[k] += from[k] < 0 ? v.ndim : 0;
		to[k] += to[k] < 0 ? v.ndim : 0;
		if (from[k] < 0 || to[k] < 0 || from[k] >= (int64_t)v.ndim ||
			to[k] >= (int64_t)v.ndim || used[from[k]] || set[to[k]])
			return acc_cannot(r, "an argument is not understood");
		used[from[k]] = set[to[k]] = true;
		w.shape[to[k]] = v.shape[from[k]];
		w.stride[to[k]] = v.stride[from[k]];
	}
	for (uint32_t d = 0; d < v.ndim; d++) {
		if (set[d])
			continue;
		while (used[left])
			left++;
		w.shape[d] = v.shape[left];
		w.stride[d] = v.stride[left++];
	}
	return acc_view_copy(r, &w, x->v, out);
}

#define MOVE(n, s, f, w) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = ACC_EXACT, .eval = f, .which = w \
	}
const struct acc_op acc_ops_fold[] = {
	MOVE("unfold",
		"input|self:move kernel_size|dimension dilation|size padding|step "
		"stride",
		unfold, 0),
	{.names = "fold",
		.sig = "input|self:any output_size kernel_size dilation padding "
		       "stride",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.eval = fold},
	MOVE("pixel_shuffle", "input|self:move factor|upscale_factor", pixels, PIXELS),
	MOVE("pixel_unshuffle", "input|self:move factor|downscale_factor", pixels, UNPIXELS),
	MOVE("channel_shuffle", "input|self:move factor|groups", pixels, CHANNELS),
	MOVE("npu_confusion_transpose", "input|self:move perm shape transpose_first", confusion, 0),
	MOVE("diagonal", "input|self:move offset dim1 dim2", diagonal, 0),
	MOVE("diag", "input|self:move offset|diagonal dim1 dim2", diag, 0),
	MOVE("diag_embed", "input|self:move offset dim1 dim2", diag, 1),
	MOVE("repeat_interleave", "input|self:move repeats dim|axis", repeat_interleave, 0),
	MOVE("movedim", "input|self|x:move source destination", movedim, 0),
	{.names = NULL},
};
