/* What moves elements: views, shapes, joining and splitting, masks of triangles, casts. */
#include "replay/impl.h"
#include "replay/view.h"

static int
input(struct acc_replay *r, const struct acc_dense **x, struct acc_view *v)
{
	int rc = acc_need_tensor(r, "input", x);
	if (rc >= 0)
		acc_view_of(*x, v);
	return rc < 0 ? rc : 0;
}

/* --- the same elements in the same order --- */

/* A shape with perhaps one -1, for n elements. */
static int
infer(struct acc_replay *r, int64_t *shape, uint32_t ndim, size_t n)
{
	int64_t known = 1, *open = NULL;
	for (uint32_t d = 0; d < ndim; d++) {
		if (shape[d] == -1 && open == NULL)
			open = &shape[d];
		else if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known))
			return acc_cannot(r, "a shape that no tensor has");
	}
	if (open != NULL)
		*open = known == 0 ? 0 : (int64_t)n / known;
	return 0;
}

static int
same_order(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t ndim = 0;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	/* The shape that was asked for, where one was; view(dtype) has none. */
	const struct acc_value *v = acc_arg(r, "shape");
	if (v != NULL && v->type == ACC_A_TEXT)
		return acc_cannot(r, "another view of the same bits");
	int rc = acc_arg_ints(r, "shape", shape, ACC_DENSE_DIMS, &ndim);
	if (rc < 0 || (rc > 0 && (infer(r, shape, ndim, x->n) < 0 ||
					 acc_out_shape(r, out, shape, ndim) < 0)))
		return ACC_EUNSUP;
	if (out->n != x->n)
		return acc_cannot(r,
			"its recorded output does not have the shape that its inputs give");
	return acc_view_same(r, x, out);
}

/* Some go by way of f32, and round twice: behaviour float64-rounded-twice. */
static double
cast(enum acc_dtype t, double x)
{
	if (acc_is_float(t) || t == ACC_NODTYPE || acc_dtype_of(t)->cls == 'C')
		return x;
	return acc_dtype_of(t)->cls == 'B' ? x != 0 : trunc(x);
}

/* To another dtype: the recorded one. */
static int
convert(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (r->notes != NULL)
		return acc_view_same(r, x, out);
	for (size_t i = 0; i < x->n; i++)
		out->v[i] = cast(out->dtype, x->v[i]);
	return 0;
}

/* --- dimensions in another order or number --- */

static int
swap(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	uint32_t a = 0, b = 1;
	if (input(r, &x, &v) < 0)
		return ACC_EUNSUP;
	bool t = acc_arg(r, "dim0") == NULL; /* t(), .T of a matrix, mT */
	if (t && v.ndim >= 2) {
		a = v.ndim - 2;
		b = v.ndim - 1;
	}
	if (!t && (acc_arg_dim(r, "dim0", v.ndim, 0, &a) < 0 ||
			  acc_arg_dim(r, "dim1", v.ndim, 1, &b) < 0))
		return ACC_EUNSUP;
	if (v.ndim >= 2) {
		int64_t n = v.shape[a], s = v.stride[a];
		v.shape[a] = v.shape[b];
		v.stride[a] = v.stride[b];
		v.shape[b] = n;
		v.stride[b] = s;
	}
	return acc_view_copy(r, &v, x->v, out);
}

static int
permute(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v, w;
	int64_t dim[ACC_DENSE_DIMS];
	uint32_t n, seen = 0;
	if (input(r, &x, &v) < 0 || acc_arg_ints(r, "dims", dim, ACC_DENSE_DIMS, &n) < 0)
		return ACC_EUNSUP;
	if (n != v.ndim)
		return acc_cannot(r, "its argument dims is not an order of its dimensions");
	w = v;
	for (uint32_t d = 0; d < n; d++) {
		int64_t from = dim[d] < 0 ? dim[d] + (int64_t)n : dim[d];
		if (from < 0 || from >= (int64_t)n || (seen & 1u << from))
			return acc_cannot(r, "its argument dims is not an order of its dimensions");
		seen |= 1u << from;
		w.shape[d] = v.shape[from];
		w.stride[d] = v.stride[from];
	}
	return acc_view_copy(r, &w, x->v, out);
}

static int
expand(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_broadcast b;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (!acc_broadcast_start(&b, out->shape, out->ndim, &x, 1))
		return acc_cannot(r,
			"its recorded output does not have the shape that its inputs give");
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b))
		out->v[i] = x->v[b.at[0]];
	return 0;
}

/* --- parts --- */

static int
narrow(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	uint32_t dim;
	int64_t from = 0, n = 1;
	bool select = r->op->which;
	if (input(r, &x, &v) < 0 || acc_arg_dim(r, "dim", v.ndim, 0, &dim) < 0 ||
		acc_arg_int(r, "start", &from) < 0 || acc_arg_int(r, "length", &n) < 0)
		return ACC_EUNSUP;
	if (v.ndim == 0)
		return acc_cannot(r, "its input has no dimension");
	from += from < 0 ? v.shape[dim] : 0;
	if (from < 0 || n < 0 || from > v.shape[dim] - n)
		return acc_cannot(r, "its argument start is outside of its input");
	v.first = from * v.stride[dim];
	v.shape[dim] = n;
	if (select) {
		v.ndim--;
		for (uint32_t d = dim; d < v.ndim; d++) {
			v.shape[d] = v.shape[d + 1];
			v.stride[d] = v.stride[d + 1];
		}
	}
	return acc_view_copy(r, &v, x->v, out);
}

/* chunk, split, unbind: all outputs, one behind the other along a dimension. */
enum { CHUNK, SPLIT, UNBIND, TENSOR_SPLIT };

/* The length of the k-th part of a dimension of n. */
static int64_t
part(int which, int64_t arg, const int64_t *sizes, uint32_t nsizes, uint32_t k, int64_t n,
	int64_t at)
{
	if (which == UNBIND)
		return 1;
	if (which == SPLIT && nsizes > 1)
		return k < nsizes ? sizes[k] : 0;
	if (which == TENSOR_SPLIT)
		return arg <= 0 ? 0 : n / arg + (k < n % arg);
	int64_t each = which == CHUNK && arg > 0 ? n / arg + (n % arg != 0) : arg;
	return each < n - at ? each : n - at;
}

static int
split(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	int64_t sizes[64], at = 0;
	uint32_t dim, nsizes = 0;
	int which = r->op->which;
	const char *by = which == UNBIND ? "dim" : "size";
	if (input(r, &x, &v) < 0 || acc_arg_dim(r, "dim", v.ndim, 0, &dim) < 0)
		return ACC_EUNSUP;
	int rc = acc_arg_ints(r, by, sizes, 64, &nsizes);
	if (rc < 0 || (rc == 0 && which != UNBIND))
		return acc_cannot(r, "the sizes of its parts were not recorded");
	if (which == TENSOR_SPLIT && nsizes != 1)
		return acc_cannot(r, "a split at given places");
	/* Some do not record keywords: then it is the dimension that shrank. */
	for (uint32_t d = 0; acc_arg(r, "dim") == NULL && which != UNBIND && r->nrec > 0 &&
			     r->rec[0].ndim == v.ndim && d < v.ndim;
		d++)
		if (r->rec[0].shape[d] != v.shape[d])
			dim = d;
	const struct acc_value *list = acc_arg(r, by);
	bool one_size = which != UNBIND && list->type != ACC_A_LIST;
	int64_t n = v.ndim == 0 ? 0 : v.shape[dim];
	for (uint32_t k = 0; k < r->nrec; k++) {
		struct acc_view p = v;
		int64_t len = part(which, nsizes > 0 ? sizes[0] : 1, sizes, one_size ? 1 : nsizes,
			k, n, at);
		if (len < 0 || at > n - len)
			return acc_cannot(r, "its parts do not fit its input");
		p.first = at * v.stride[dim];
		p.shape[dim] = len;
		if (which == UNBIND) {
			p.ndim--;
			for (uint32_t d = dim; d < p.ndim; d++) {
				p.shape[d] = p.shape[d + 1];
				p.stride[d] = p.stride[d + 1];
			}
		}
		rc = acc_view_copy(r, &p, x->v, &out[k]);
		if (rc < 0)
			return rc;
		at += len;
	}
	return 0;
}

/* --- joining --- */

enum { JOIN, STACK };

static int
join(struct acc_replay *r, struct acc_dense *out)
{
	/* A kernel has them one behind the other. */
	const struct acc_value all = {.type = ACC_A_LIST, .item = r->in, .n = r->nin};
	const struct acc_value *list = acc_arg(r, "tensors");
	if (list != NULL && list->type == ACC_A_TENSOR &&
		acc_word_in("Concat concatenate CONCAT", r->name))
		list = &all;
	bool stack = r->op->which == STACK;
	uint32_t dim;
	if (list == NULL || list->type != ACC_A_LIST || list->n == 0)
		return acc_cannot(r, "its tensors were not recorded");
	if (acc_arg_dim(r, "dim", out->ndim, 0, &dim) < 0)
		return ACC_EUNSUP;
	/* The axis of a primitive is not recorded, nor are keywords by some: the dimension that grew. */
	const struct acc_value *one = &list->item[0];
	bool unknown = acc_arg(r, "dim") == NULL && !stack;
	for (uint32_t d = 0;
		unknown && one->type == ACC_A_TENSOR && one->t->ndim == out->ndim && d < out->ndim;
		d++)
		if (one->t->shape[d] != out->shape[d])
			dim = d;
	size_t inner = 1, at = 0, outer, total;
	for (uint32_t d = dim + 1; d < out->ndim; d++)
		inner *= (size_t)out->shape[d];
	total = (out->ndim == 0 ? 1 : (size_t)out->shape[dim]) * inner;
	outer = total == 0 ? 0 : out->n / total;
	for (uint32_t k = 0; k < list->n; k++) {
		if (list->item[k].type != ACC_A_TENSOR)
			return acc_cannot(r, "its tensors were not recorded");
		const struct acc_dense *x = list->item[k].t;
		if (x->ndim == 1 && x->n == 0 && !stack)
			continue; /* an old way of saying nothing */
		bool fits = x->ndim == out->ndim - (stack ? 1 : 0);
		for (uint32_t d = 0; fits && d < x->ndim; d++) {
			uint32_t to = d + (stack && d >= dim);
			fits = (to == dim && !stack) || x->shape[d] == out->shape[to];
		}
		size_t len = stack ? inner : (fits ? (size_t)x->shape[dim] * inner : 0);
		if (!fits || at + len > total)
			return acc_cannot(r, "its tensors do not fit its output");
		struct acc_view v = {.ndim = 2,
			.shape = {(int64_t)outer, (int64_t)len},
			.stride = {(int64_t)total, 1},
			.first = (int64_t)at};
		if (r->notes != NULL && acc_view_note(r, out->v, &v, x->v, false) < 0)
			return ACC_EUNSUP;
		for (size_t o = 0; r->notes == NULL && len > 0 && o < outer; o++)
			memcpy(out->v + o * total + at, x->v + o * len, len * sizeof *x->v);
		at += len;
	}
	return at == total ? 0 : acc_cannot(r, "its tensors do not fit its output");
}

/* --- turning and repeating --- */

static int
flip(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	int64_t dim[ACC_DENSE_DIMS];
	uint32_t n;
	if (input(r, &x, &v) < 0 || acc_arg_ints(r, "dims", dim, ACC_DENSE_DIMS, &n) < 0)
		return ACC_EUNSUP;
	/* msprobe leaves out the attribute of a primitive. */
	if (n == 0)
		return acc_cannot(r, "an argument is not understood");
	for (uint32_t k = 0; k < n; k++) {
		int64_t d = dim[k] < 0 ? dim[k] + (int64_t)v.ndim : dim[k];
		if (d < 0 || d >= (int64_t)v.ndim)
			return acc_cannot(r, "its argument dims are not dimensions");
		v.first += (v.shape[d] - 1) * v.stride[d];
		v.stride[d] = -v.stride[d];
	}
	return out->n == 0 ? 0 : acc_view_copy(r, &v, x->v, out);
}

static int
roll(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t shift[ACC_DENSE_DIMS], dim[ACC_DENSE_DIMS];
	uint32_t ns, nd;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_out_shape(r, out, x->shape, x->ndim) < 0 ||
		acc_arg_ints(r, "shifts", shift, ACC_DENSE_DIMS, &ns) < 0 ||
		acc_arg_ints(r, "dims", dim, ACC_DENSE_DIMS, &nd) < 0)
		return ACC_EUNSUP;
	if (ns == 0 || (nd != ns && nd != 0))
		return acc_cannot(r, "its shifts do not fit its dims");
	for (size_t i = 0; i < x->n; i++) {
		size_t to = i;
		for (uint32_t k = 0; k < (nd == 0 ? 1 : nd); k++) {
			int64_t d = nd == 0 ? 0 : dim[k] < 0 ? dim[k] + x->ndim : dim[k];
			if (d < 0 || (nd > 0 && d >= (int64_t)x->ndim))
				return acc_cannot(r, "its argument dims are not dimensions");
			size_t inner = 1, n = nd == 0 ? x->n : (size_t)x->shape[d];
			for (uint32_t q = (uint32_t)d + 1; nd > 0 && q < x->ndim; q++)
				inner *= (size_t)x->shape[q];
			int64_t by = shift[k] % (int64_t)n;
			size_t at = to / inner % n, now = (at + n + (size_t)(by + (int64_t)n)) % n;
			to = to - at * inner + now * inner;
		}
		out->v[to] = x->v[i];
	}
	return 0;
}

/* repeat, tile: each output index, modulo the input's size */
static int
repeat(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t times[ACC_DENSE_DIMS], shape[ACC_DENSE_DIMS];
	uint32_t n;
	if (acc_need_tensor(r, "input", &x) < 0 ||
		acc_arg_ints(r, "repeats", times, ACC_DENSE_DIMS, &n) < 0)
		return ACC_EUNSUP;
	if (n < x->ndim) { /* of tile: those in front are 1 */
		const uint32_t more = x->ndim - n;
		memmove(times + more, times, n * sizeof *times);
		for (uint32_t d = 0; d < more; d++)
			times[d] = 1;
		n = x->ndim;
	}
	for (uint32_t d = 0; d < n; d++)
		if (__builtin_mul_overflow(times[d],
			    d + x->ndim < n ? 1 : x->shape[d + x->ndim - n], &shape[d]))
			return acc_cannot(r, "its repeats do not fit its input");
	if (acc_out_shape(r, out, shape, n) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++) {
		size_t at = 0, step = 1, rest = i;
		for (uint32_t d = n; d-- > 0;) {
			size_t idx = rest % (size_t)shape[d];
			rest /= (size_t)shape[d];
			if (d + x->ndim < n)
				continue;
			size_t len = (size_t)x->shape[d + x->ndim - n];
			at += idx % len * step;
			step *= len;
		}
		out->v[i] = x->v[at];
	}
	return 0;
}

enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR };

/* Which element stands at a place that may be outside of n; -1: none. */
static int64_t
behind(int how, int64_t i, int64_t n)
{
	if (i >= 0 && i < n)
		return i;
	if (how == REPLICATE)
		return i < 0 ? 0 : n - 1;
	if (how == REFLECT)
		i = i < 0 ? -i : 2 * (n - 1) - i;
	else if (how == CIRCULAR)
		i += i < 0 ? n : -n;
	return how != CONSTANT && i >= 0 && i < n ? i : -1;
}

static int
padding_mode(struct acc_replay *r, int *how)
{
	static const char *const modes[] = {"constant", "reflect", "replicate", "circular"};
	struct acc_str mode = ACC_STR("constant");
	if (acc_arg_text(r, "mode", &mode) < 0)
		return ACC_EUNSUP;
	for (*how = 0; *how < 4; (*how)++)
		if (acc_str_is(mode, modes[*how]))
			return 0;
	return acc_cannot(r, "its mode is not understood");
}

/* Padding; pairs from the last dimension on. */
static int
pad(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t by[2 * ACC_DENSE_DIMS], shape[ACC_DENSE_DIMS];
	double value = 0;
	uint32_t n;
	int how;
	if (acc_need_tensor(r, "input", &x) < 0 ||
		acc_arg_ints(r, "pad", by, 2 * ACC_DENSE_DIMS, &n) < 0 ||
		padding_mode(r, &how) < 0 || acc_arg_float(r, "value", &value) < 0)
		return ACC_EUNSUP;
	if (n % 2 != 0 || n / 2 > x->ndim)
		return acc_cannot(r, "its padding does not fit its input");
	for (uint32_t d = 0; d < x->ndim; d++) {
		uint32_t k = x->ndim - 1 - d;
		shape[d] = x->shape[d];
		if (k < n / 2 &&
			(__builtin_add_overflow(shape[d], by[2 * k], &shape[d]) ||
				__builtin_add_overflow(shape[d], by[2 * k + 1], &shape[d])))
			return acc_cannot(r, "its padding does not fit its input");
	}
	if (acc_out_shape(r, out, shape, x->ndim) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++) {
		size_t rest = i;
		int64_t at = 0, step = 1;
		for (uint32_t d = x->ndim; d-- > 0;) {
			uint32_t k = x->ndim - 1 - d;
			const int64_t at_d = (int64_t)(rest % (size_t)shape[d]) -
					     (k < n / 2 ? by[2 * k] : 0);
			const int64_t idx = behind(how, at_d, x->shape[d]);
			rest /= (size_t)shape[d];
			if (idx < 0)
				at = INT64_MIN / 2;
			else if (at >= 0)
				at += idx * step;
			step *= x->shape[d];
		}
		out->v[i] = at < 0 ? value : x->v[at];
	}
	return 0;
}

static int
triangle(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t diagonal = 0;
	bool upper = r->op->which;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "diagonal", &diagonal) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 2)
		return acc_cannot(r, "its input is no matrix");
	int64_t rows = x->shape[x->ndim - 2], cols = x->shape[x->ndim - 1];
	for (size_t i = 0; i < x->n; i++) {
		int64_t c = (int64_t)(i % (size_t)cols), l = (int64_t)(i / (size_t)cols) % rows;
		bool keep = upper ? c - l >= diagonal : c - l <= diagonal;
		out->v[i] = keep ? x->v[i] : 0;
	}
	return 0;
}

static int
planes(struct acc_replay *r, struct acc_cut *c)
{
	uint32_t n = r->rec[0].ndim;
	c->lead = n < 2 ? 0 : n - 2;
	return 0;
}

#define MOVE(n, s, f, w) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = ACC_EXACT, .eval = f, .which = w, \
		.views = f != expand && f != roll && f != repeat && f != pad && f != triangle, \
		.cut = f == expand     ? acc_cut_point \
		       : f == triangle ? planes \
				       : NULL \
	}
const struct acc_op acc_ops_move[] = {
	MOVE("view Reshape npu_reshape", "input|x|self:move *shape|size", same_order, 0),
	MOVE("contiguous clone flatten ravel squeeze unsqueeze Unsqueeze ExpandDims Squeeze view_as Identity "
	     "Flatten unflatten",
		"input|x|self:move", same_order, 0),
	{.names = "to long cpu npu_dtype_cast npu_format_cast requires_grad Cast",
		.sig = "input|x|self:move",
		.cls = "cast",
		.rounding = ACC_ONCE,
		.eval = convert,
		.views = true,
		.cut = acc_cut_point},
	MOVE("transpose t T mT", "input|x|self:move dim0|axis0 dim1|axis1", swap, 0),
	MOVE("permute npu_transpose", "input|x|self:move *dims|axis|perm|permutation", permute, 0),
	MOVE("expand Expand BroadcastTo npu_broadcast", "input|x|self:move", expand, 0),
	MOVE("narrow", "input:move dim start length", narrow, 0),
	MOVE("select", "input:move dim start|index length", narrow, 1),
	MOVE("chunk Split", "input|x:move size|chunks|num_outputs dim|axis", split, CHUNK),
	MOVE("split",
		"input|tensor|x:move size|split_size|split_sizes|"
		"split_size_or_sections dim|axis",
		split, SPLIT),
	MOVE("tensor_split", "input:move size|sections|indices_or_sections dim", split,
		TENSOR_SPLIT),
	MOVE("unbind", "input:move dim|axis", split, UNBIND),
	MOVE("cat Concat", "tensors:move dim|axis|dimension", join, JOIN),
	MOVE("stack", "tensors:move dim|axis", join, STACK),
	MOVE("flip ReverseV2", "input:move *dims|axis|dim", flip, 0),
	MOVE("roll", "input:move shifts dims", roll, 0),
	MOVE("repeat Tile", "input|x:move *repeats|dims|reps", repeat, 0),
	MOVE("pad npu_pad PadV3", "input:move pad|padding mode value", pad, 0),
	MOVE("triu Triu", "input:move diagonal", triangle, 1),
	MOVE("tril", "input:move diagonal", triangle, 0),
	{.names = NULL},
};
