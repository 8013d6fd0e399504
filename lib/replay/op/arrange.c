/* Tensors arranged in other ways, and results made of others: hstack, rot90, diff, broadcast_tensors,
 * slice_scatter, std_mean, aminmax, nansum, softmin, cross, grouped products. */
#include "replay/compose.h"
#include "replay/impl.h"
#include "replay/view.h"

/* --- joining after dimensions are added --- */

enum { H, V, D, COLUMN };

/* x seen with at least as many dimensions as the way of joining needs. */
static void
at_least(int which, struct acc_dense *x)
{
	if (x->ndim == 0) {
		x->ndim = 1;
		x->shape[0] = 1;
	}
	if (which == COLUMN && x->ndim == 1) {
		x->ndim = 2;
		x->shape[1] = 1;
	}
	if ((which == V || which == D) && x->ndim == 1) {
		x->ndim = 2;
		x->shape[1] = x->shape[0];
		x->shape[0] = 1;
	}
	if (which == D && x->ndim == 2) {
		x->ndim = 3;
		x->shape[2] = 1;
	}
}

static int
stacks(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_value *list = acc_arg(r, "tensors");
	int which = r->op->which;
	if (list == NULL || list->type != ACC_A_LIST || list->n == 0)
		return acc_cannot(r, "its tensors were not recorded");
	struct acc_dense *x = acc_alloc(r->mem, list->n * sizeof *x);
	struct acc_value in[2] = {{.type = ACC_A_LIST,
		.n = list->n,
		.item = acc_alloc(r->mem, list->n * sizeof *in[0].item)}};
	if (x == NULL || in[0].item == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (uint32_t k = 0; k < list->n; k++) {
		if (list->item[k].type != ACC_A_TENSOR || list->item[k].t->v == NULL)
			return acc_cannot(r, "its tensors were not recorded");
		x[k] = *list->item[k].t;
		at_least(which, &x[k]);
		in[0].item[k] = acc_of_tensor(&x[k]);
	}
	int dim = which == V ? 0 : which == D ? 2 : which == COLUMN ? 1 : x[0].ndim == 1 ? 0 : 1;
	in[1] = acc_of_int(dim);
	struct acc_part p = {.name = "cat", .in = in, .nin = 2, .nout = 1};
	return acc_compose(r, &p, out);
}

/* --- turning --- */

enum { LEFT_RIGHT, UP_DOWN, QUARTERS };

/* Quarter turns of two dimensions, or turned round along one. */
static int
turn(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_view v;
	int64_t dims[2] = {0, 1}, k = 1;
	uint32_t n = 2;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "k", &k) < 0 ||
		acc_arg_ints(r, "dims", dims, 2, &n) < 0)
		return ACC_EUNSUP;
	acc_view_of(x, &v);
	for (int i = 0; i < 2; i++)
		dims[i] += dims[i] < 0 ? v.ndim : 0;
	if (r->op->which != QUARTERS) {
		dims[0] = dims[1] = r->op->which == UP_DOWN ? 0 : 1;
		k = 4;
	}
	if (dims[0] < 0 || dims[1] < 0 || dims[0] >= (int64_t)v.ndim || dims[1] >= (int64_t)v.ndim)
		return acc_cannot(r, "its argument dims are not dimensions");
	int64_t a = dims[0], b = dims[1], turns = k == 4 ? 4 : ((k % 4) + 4) % 4;
	bool flip_a = turns == 2 || turns == 3 || turns == 4, flip_b = turns == 1 || turns == 2;
	if (x->n == 0)
		return acc_cannot(r, "its input is empty");
	if (flip_a) {
		v.first += (v.shape[a] - 1) * v.stride[a];
		v.stride[a] = -v.stride[a];
	}
	if (flip_b) {
		v.first += (v.shape[b] - 1) * v.stride[b];
		v.stride[b] = -v.stride[b];
	}
	if (turns == 1 || turns == 3) {
		int64_t n0 = v.shape[a], s0 = v.stride[a];
		v.shape[a] = v.shape[b];
		v.stride[a] = v.stride[b];
		v.shape[b] = n0;
		v.stride[b] = s0;
	}
	return acc_view_copy(r, &v, x->v, out);
}

/* Each output is the input at its place, broadcast to the output's shape. */
static int
broadcast_tensors(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_value *list = acc_arg(r, "tensors");
	bool many = list != NULL && list->type == ACC_A_LIST;
	const struct acc_value *item = many ? list->item : r->in;
	if ((many ? list->n : r->nin) != r->nrec)
		return acc_cannot(r, "its tensors were not recorded");
	for (uint32_t k = 0; k < r->nrec; k++) {
		struct acc_broadcast b;
		if (item[k].type != ACC_A_TENSOR || item[k].t->v == NULL)
			return acc_cannot(r, "its tensors were not recorded");
		const struct acc_dense *x = item[k].t;
		if (!acc_broadcast_start(&b, out[k].shape, out[k].ndim, &x, 1))
			return acc_cannot(r, "its inputs do not fit each other");
		for (size_t i = 0; i < out[k].n; i++, acc_broadcast_next(&b))
			out[k].v[i] = x->v[b.at[0]];
	}
	return 0;
}

/* Neighbours' differences, n times; what is put before or behind is not understood. */
static int
diff(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	uint32_t dim;
	int64_t n = 1, shape[ACC_DENSE_DIMS] = {0};
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "n", &n) < 0 ||
		acc_arg_dim(r, "dim", x->ndim, -1, &dim) < 0)
		return ACC_EUNSUP;
	if (n != 1 || x->ndim == 0 || x->shape[dim] < 1 || acc_arg(r, "prepend") != NULL ||
		acc_arg(r, "append") != NULL)
		return acc_cannot(r, "an argument is not understood");
	memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[dim]--;
	if (acc_out_shape(r, out, shape, x->ndim) < 0)
		return ACC_EUNSUP;
	size_t inner = 1, len = (size_t)x->shape[dim];
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	for (size_t i = 0; i < out->n; i++) {
		size_t row = i / inner / (len - 1), k = i / inner % (len - 1);
		const double *p = x->v + (row * len + k) * inner + i % inner;
		out->v[i] = x->dtype == ACC_BOOL ? p[inner] != p[0] : p[inner] - p[0];
	}
	return 0;
}

/* x with a slice along one dimension from src, or one place of it. */
static int
slice_scatter(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *src;
	uint32_t dim;
	int64_t start = 0, end = INT64_MAX, step = 1;
	bool select = r->op->which;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "src", &src) < 0 ||
		acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0 ||
		acc_arg_int(r, "start", &start) < 0 || acc_arg_int(r, "end", &end) < 0 ||
		acc_arg_int(r, "step", &step) < 0 || acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (x->ndim == 0 || step <= 0)
		return acc_cannot(r, "a slice that is not understood");
	int64_t len = x->shape[dim];
	start += start < 0 ? len : 0;
	end += end < 0 ? len : 0;
	start = start < 0 ? 0 : start > len ? len : start;
	end = select ? start + 1 : end > len ? len : end;
	int64_t n = end <= start ? 0 : (end - start) / step + ((end - start) % step != 0);
	size_t inner = 1;
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	if (len == 0 || src->n != x->n / (size_t)len * (size_t)n)
		return acc_cannot(r, "its inputs do not fit each other");
	memcpy(out->v, x->v, x->n * sizeof *x->v);
	for (size_t i = 0; i < src->n; i++) {
		size_t k = i / inner % (size_t)n, row = i / inner / (size_t)n;
		size_t at = (size_t)start + k * (size_t)step;
		out->v[(row * (size_t)len + at) * inner + i % inner] = src->v[i];
	}
	return 0;
}

/* --- results of other operators --- */

/* Two results of one input: (std, mean), (var, mean), (smallest, largest). */
static int
both(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const name[][2] = {{"std", "mean"}, {"var", "mean"}, {"amin", "amax"}};
	const struct acc_value *dim = acc_arg(r, "dim"), *keep = acc_arg(r, "keepdim");
	const struct acc_dense *x;
	struct acc_value in[1], kw[4];
	uint32_t n = 0;
	bool unbiased = true;
	double correction = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_bool(r, "unbiased", &unbiased) < 0)
		return ACC_EUNSUP;
	correction = unbiased;
	if (acc_arg_float(r, "correction", &correction) < 0)
		return ACC_EUNSUP;
	if (r->nrec != 2 || (dim != NULL && dim->type == ACC_A_BOOL))
		return acc_cannot(r, "outputs that are not understood");
	in[0] = acc_of_tensor(x);
	if (dim != NULL)
		kw[n++] = acc_named("dim", *dim);
	if (keep != NULL)
		kw[n++] = acc_named("keepdim", *keep);
	for (int k = 0; k < 2; k++) {
		uint32_t more = n;
		if (k == 0 && r->op->which < 2)
			kw[more++] = acc_named("correction", acc_of_float(correction));
		struct acc_part p = {.name = name[r->op->which][k],
			.in = in,
			.kw = kw,
			.nin = 1,
			.nkw = more,
			.nout = 1};
		if (acc_compose(r, &p, &out[k]) < 0)
			return ACC_EUNSUP;
	}
	return 0;
}

enum { NANSUM, SOFTMIN };

/* Another operator's result of a changed input. */
static int
changed(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const name[] = {"sum", "softmax"};
	const struct acc_dense *x;
	struct acc_dense y;
	struct acc_value *in = acc_alloc(r->mem, (r->nin + 1) * sizeof *in);
	if (acc_need_tensor(r, "input", &x) < 0 || in == NULL || r->nin == 0)
		return acc_cannot(r, "its input was not recorded");
	if (acc_between(r, x->dtype, x->shape, x->ndim, false, &y) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < y.n; i++)
		y.v[i] = r->op->which == SOFTMIN ? -x->v[i] : isnan(x->v[i]) ? 0 : x->v[i];
	memcpy(in, r->in, r->nin * sizeof *in);
	in[0] = acc_of_tensor(&y);
	struct acc_part p = {.name = name[r->op->which],
		.in = in,
		.kw = r->kw,
		.nin = r->nin,
		.nkw = r->nkw,
		.nout = 1};
	return acc_compose(r, &p, out);
}

/* log of the running sum of exp */
static int
logcumsumexp(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	uint32_t dim;
	size_t inner = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	size_t len = x->ndim == 0 ? 1 : (size_t)x->shape[dim];
	for (size_t i = 0; i < x->n; i++) {
		bool first = i / inner % len == 0;
		double a = first ? -INFINITY : out->v[i - inner], b = x->v[i], top = fmax(a, b);
		out->v[i] = isnan(a) || isnan(b) ? NAN
			    : isinf(top)         ? top
						 : top + log(exp(a - top) + exp(b - top));
		if (out->mag != NULL)
			out->mag[i] = 1 + (isfinite(b) ? fabs(b) : 0) +
				      (first ? 0 : out->mag[i - inner]);
	}
	return 0;
}

/* --- products --- */

/* a x b, of vectors of three along a dimension */
static int
cross(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *y;
	uint32_t dim;
	size_t inner = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "other", &y) < 0)
		return ACC_EUNSUP;
	int rc = acc_arg_dim(r, "dim", x->ndim, -1, &dim);
	for (uint32_t d = 0; rc == 0 && d < x->ndim; d++) /* the first that has three */
		if (x->shape[d] == 3) {
			dim = d;
			break;
		}
	if (rc < 0 || acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (x->ndim == 0 || x->shape[dim] != 3 || y->n != x->n)
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	for (size_t i = 0; i < x->n; i++) {
		size_t k = i / inner % 3, base = i - k * inner;
		size_t p = base + (k + 1) % 3 * inner, q = base + (k + 2) % 3 * inner;
		double a = x->v[p] * y->v[q], b = x->v[q] * y->v[p];
		out->v[i] = a - b;
		if (out->mag != NULL) /* each may be rounded first */
			out->mag[i] = (1 + acc_roundings(r, out->dtype)) * (fabs(a) + fabs(b));
		if (out->mag != NULL && fmax(fabs(a), fabs(b)) > acc_max_of(out->dtype) &&
			r->rec[0].v != NULL && !isfinite(r->rec[0].v[i]))
			out->mag[i] = INFINITY; /* and overflow */
	}
	return 0;
}

/* input + alpha vec1 (x) vec2 */
static int
addr(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *c, *a, *b;
	struct acc_broadcast w;
	double alpha = 1, beta = 1;
	if (acc_need_tensor(r, "input", &c) < 0 || acc_need_tensor(r, "vec1", &a) < 0 ||
		acc_need_tensor(r, "vec2", &b) < 0 || acc_arg_float(r, "alpha", &alpha) < 0 ||
		acc_arg_float(r, "beta", &beta) < 0 ||
		acc_out_shape(r, out, (int64_t[]){(int64_t)a->n, (int64_t)b->n}, 2) < 0)
		return ACC_EUNSUP;
	if (!acc_broadcast_start(&w, out->shape, 2, &c, 1))
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&w)) {
		double p = alpha * a->v[i / b->n] * b->v[i % b->n];
		double q = beta == 0 ? 0 : beta * c->v[w.at[0]];
		out->v[i] = p + q;
		if (out->mag != NULL)
			out->mag[i] = (1 + acc_roundings(r, out->dtype)) * (fabs(p) + fabs(q));
	}
	return 0;
}

/* out[.., o] = x1[.., i] w[o, i, j] x2[.., j] + bias[o] */
static int
bilinear(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *y, *w, *b = NULL;
	int64_t shape[ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "input2", &y) < 0 ||
		acc_need_tensor(r, "weight", &w) < 0 || acc_arg_tensor(r, "bias", &b) < 0)
		return ACC_EUNSUP;
	uint32_t last = x->ndim - 1;
	if (x->ndim == 0 || y->ndim != x->ndim || w->ndim != 3 || w->shape[1] != x->shape[last] ||
		w->shape[2] != y->shape[last] || (b != NULL && b->n != (size_t)w->shape[0]))
		return acc_cannot(r, "its inputs do not fit each other");
	memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[last] = w->shape[0];
	if (memcmp(x->shape, y->shape, last * sizeof *shape) != 0 ||
		acc_out_shape(r, out, shape, x->ndim) < 0)
		return acc_cannot(r, "its inputs do not fit each other");
	size_t no = (size_t)w->shape[0], ni = (size_t)w->shape[1], nj = (size_t)w->shape[2];
	for (size_t i = 0; i < out->n; i++) {
		const double *u = x->v + i / no * ni, *v = y->v + i / no * nj,
			     *m = w->v + i % no * ni * nj;
		double sum = b == NULL ? 0 : b->v[i % no], mag = fabs(sum), sq = sum * sum;
		for (size_t k = 0; k < ni * nj; k++) {
			double term = u[k / nj] * m[k] * v[k % nj];
			sum += term;
			mag += fabs(term);
			sq += term * term;
		}
		out->v[i] = sum;
		if (out->mag !=
			NULL) /* one of the two products may be rounded, and its bias comes last */
			out->mag[i] = mag + 2 * acc_roundings(r, out->dtype) * sqrt(sq);
	}
	return 0;
}

/* Along a dimension, the area under y, of which the steps are dx, or of x; running, or all of it. */
static int
trapezoid(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *y, *x = NULL;
	const struct acc_value *v = acc_arg(r, "x");
	const bool running = r->op->which;
	uint32_t dim;
	double dx = 1;
	size_t inner = 1;
	int64_t shape[ACC_DENSE_DIMS];
	if (acc_need_tensor(r, "y", &y) < 0 || acc_arg_dim(r, "dim", y->ndim, -1, &dim) < 0 ||
		acc_arg_float(r, "dx", &dx) < 0 ||
		(v != NULL && v->type == ACC_A_TENSOR && acc_need_tensor(r, "x", &x) < 0))
		return ACC_EUNSUP;
	const size_t len = y->ndim == 0 ? 0 : (size_t)y->shape[dim];
	if (len == 0 || (x != NULL && (x->ndim != 1 || x->n != len)))
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = 0, k = 0; d < y->ndim; d++) {
		inner *= d > dim ? (size_t)y->shape[d] : 1;
		if (d != dim)
			shape[k++] = y->shape[d];
		else if (running)
			shape[k++] = y->shape[d] - 1;
	}
	if (acc_out_shape(r, out, shape, y->ndim - !running) < 0)
		return ACC_EUNSUP;
	/* Of each step its sides' sum, and that times its width; then the sums, each time. */
	const double step = 2 * acc_roundings(r, out->dtype);
	for (size_t row = 0; row < y->n / len / inner * inner; row++) {
		const double *p = y->v + row / inner * len * inner + row % inner;
		double sum = 0, abs = 0, sq = 0, rough = 0;
		for (size_t k = 1; k < len; k++) {
			const double by = (x == NULL ? dx : x->v[k] - x->v[k - 1]) / 2;
			const double a = p[k * inner] * by, b = p[(k - 1) * inner] * by;
			sum += a + b;
			abs += fabs(a) + fabs(b);
			sq += (a + b) * (a + b);
			rough = running ? rough + sum * sum : 0;
			const size_t o = row / inner * (len - 1) * inner + (k - 1) * inner +
					 row % inner;
			if (running) {
				out->v[o] = sum;
				if (out->mag != NULL)
					out->mag[o] = abs + step * sqrt(sq + rough);
			}
		}
		if (!running)
			out->v[row] = sum;
		if (!running && out->mag != NULL)
			out->mag[row] = abs + step * (sqrt(sq) + fabs(sum));
	}
	return 0;
}

/* Of variables in rows, or one: the mean of the products of what is left without their means. */
static int
cov(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t correction = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "correction", &correction) < 0)
		return ACC_EUNSUP;
	const size_t n = x->ndim == 0 ? 0 : (size_t)x->shape[x->ndim - 1],
		     m = n == 0 ? 0 : x->n / n;
	const int64_t shape[2] = {(int64_t)m, (int64_t)m};
	double *d = acc_doubles(r, x->n);
	if (d == NULL)
		return ACC_EUNSUP;
	if (x->ndim > 2 || (int64_t)n <= correction || acc_arg(r, "fweights") != NULL ||
		acc_arg(r, "aweights") != NULL ||
		acc_out_shape(r, out, shape, x->ndim == 2 ? 2 : 0) < 0)
		return acc_cannot(r, "its weights, or too few values");
	for (size_t i = 0; i < m; i++) {
		double mean = 0;
		for (size_t k = 0; k < n; k++)
			mean += x->v[i * n + k] / (double)n;
		for (size_t k = 0; k < n; k++)
			d[i * n + k] = x->v[i * n + k] - mean;
	}
	/* Each factor was rounded, as was the mean. */
	const double step = 2 * acc_roundings(r, out->dtype), by = (double)n - (double)correction;
	for (size_t o = 0; o < m * m; o++) {
		double sum = 0, abs = 0;
		for (size_t k = 0; k < n; k++) {
			const double a = d[o / m * n + k], b = d[o % m * n + k];
			sum += a * b;
			abs += fabs(a * b) + fabs(a * x->v[o % m * n + k]) +
			       fabs(b * x->v[o / m * n + k]);
		}
		out->v[o] = sum / by;
		if (out->mag != NULL)
			out->mag[o] = abs / by * (1 + step / sqrt((double)n));
	}
	return 0;
}

/* Row i has the powers of element i, in falling order. */
static int
vander(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	bool rising = false;
	if (acc_need_tensor(r, "x", &x) < 0)
		return ACC_EUNSUP;
	int64_t n = (int64_t)x->n;
	if (acc_arg_int(r, "N", &n) < 0 || acc_arg_bool(r, "increasing", &rising) < 0)
		return ACC_EUNSUP;
	if (x->ndim != 1 || n < 1 || acc_out_shape(r, out, (int64_t[]){(int64_t)x->n, n}, 2) < 0)
		return acc_cannot(r, "its input is no vector");
	for (size_t o = 0; o < out->n; o++) {
		const size_t k = o % (size_t)n, power = rising ? k : (size_t)n - 1 - k;
		out->v[o] = pow(x->v[o / (size_t)n], (double)power);
		if (out->mag != NULL) /* each product is rounded */
			out->mag[o] = fabs(out->v[o]) * sqrt((double)power) *
				      acc_roundings(r, out->dtype);
	}
	return 0;
}

/* What stands on the diagonal. */
static int
trace(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (x->ndim != 2 || acc_out_shape(r, out, NULL, 0) < 0)
		return acc_cannot(r, "its input is no matrix");
	double sum = 0, abs = 0;
	for (int64_t i = 0; i < x->shape[0] && i < x->shape[1]; i++) {
		sum += x->v[i * (x->shape[1] + 1)];
		abs += fabs(x->v[i * (x->shape[1] + 1)]);
	}
	out->v[0] = sum;
	if (out->mag != NULL) /* and may be added one by one */
		out->mag[0] = abs * (1 + acc_roundings(r, out->dtype));
	return 0;
}

#define ROW(n, s, c, rnd, f, w) \
	{ \
		.names = n, .sig = s, .cls = c, .rounding = rnd, .eval = f, .which = w \
	}
const struct acc_op acc_ops_arrange[] = {
	ROW("hstack", "tensors:move", "move", ACC_EXACT, stacks, H),
	ROW("vstack", "tensors:move", "move", ACC_EXACT, stacks, V),
	ROW("dstack", "tensors:move", "move", ACC_EXACT, stacks, D),
	ROW("column_stack", "tensors:move", "move", ACC_EXACT, stacks, COLUMN),
	ROW("fliplr", "input|self:move", "move", ACC_EXACT, turn, LEFT_RIGHT),
	ROW("flipud", "input|self:move", "move", ACC_EXACT, turn, UP_DOWN),
	ROW("rot90", "input|self:move k dims", "move", ACC_EXACT, turn, QUARTERS),
	ROW("broadcast_tensors", "*tensors:move", "move", ACC_EXACT, broadcast_tensors, 0),
	ROW("diff", "input|self:any n dim|axis prepend append", "arithmetic", ACC_ONCE, diff, 0),
	ROW("slice_scatter", "input|self:move src:move dim start end step", "move", ACC_EXACT,
		slice_scatter, 0),
	ROW("select_scatter", "input|self:move src:move dim start|index end step", "move",
		ACC_EXACT, slice_scatter, 1),
	ROW("std_mean ReduceStd", "input|self:any dim|axis unbiased keepdim correction", "reduce",
		ACC_FEW, both, 0),
	ROW("var_mean", "input|self:any dim|axis unbiased keepdim correction", "reduce", ACC_FEW,
		both, 1),
	ROW("aminmax", "input|self:any dim|axis keepdim", "reduce", ACC_EXACT, both, 2),
	ROW("nansum", "input|self:any dim|axis keepdim", "reduce", ACC_FEW, changed, NANSUM),
	{.names = "softmin",
		.sig = "input:any dim",
		.cls = "softmax",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT,
		.eval = changed,
		.which = SOFTMIN},
	{.names = "logcumsumexp",
		.sig = "input|self:any dim|axis",
		.cls = "softmax",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT,
		.eval = logcumsumexp},
	ROW("cross", "input|self:any other:any dim", "arithmetic", ACC_FEW, cross, 0),
	ROW("bilinear", "input|input1:any input2:any weight:any bias:any", "product", ACC_FEW,
		bilinear, 0),
	ROW("addr", "input|self:point vec1:any vec2:any beta alpha", "product", ACC_FEW, addr, 0),
	ROW("trapezoid trapz", "y|input:any x dx dim", "reduce", ACC_FEW, trapezoid, 0),
	ROW("cumulative_trapezoid", "y|input:any x dx dim", "reduce", ACC_FEW, trapezoid, 1),
	ROW("cov", "input|self:any correction fweights aweights", "reduce", ACC_FEW, cov, 0),
	ROW("vander", "x|input:any N increasing", "arithmetic", ACC_FEW, vander, 0),
	ROW("trace", "input|self:any", "reduce", ACC_FEW, trace, 0),
	{.names = NULL},
};
