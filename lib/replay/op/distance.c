/* Distances and directions: cdist, pairwise_distance, cosine_similarity, normalize, dist. */
#include "replay/impl.h"

/* A norm of order p as it is summed up: add each |term|, then finish. */
struct norm {
	double p, sum;
};

static void
add(struct norm *s, double x)
{
	double a = fabs(x);
	if (isinf(s->p))
		s->sum = isnan(a) || a > s->sum ? a : s->sum;
	else
		s->sum += s->p == 0 ? a != 0 : s->p == 1 ? a : s->p == 2 ? a * a : pow(a, s->p);
}

static double
total(const struct norm *s)
{
	if (isinf(s->p) || s->p == 0 || s->p == 1)
		return s->sum;
	return s->p == 2 ? sqrt(s->sum) : pow(s->sum, 1 / s->p);
}

static int
order(struct acc_replay *r, double *p)
{
	*p = 2;
	if (acc_arg_float(r, "p", p) < 0)
		return ACC_EUNSUP;
	return *p >= 0 ? 0 : acc_cannot(r, "a norm that is not understood");
}

/* Distances of all rows of x [.., m, d] and y [.., n, d]. With many rows it is computed by a
 * product, |x|^2 + |y|^2 - 2 x y, which is as exact as the largest of these. */
static int
cdist(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *y;
	int64_t shape[ACC_DENSE_DIMS];
	double p;
	if (acc_need_tensor(r, "x1", &x) < 0 || acc_need_tensor(r, "x2", &y) < 0 ||
		order(r, &p) < 0)
		return ACC_EUNSUP;
	uint32_t nd = x->ndim;
	bool fits = nd >= 2 && y->ndim == nd && x->shape[nd - 1] == y->shape[nd - 1];
	for (uint32_t d = 0; fits && d + 2 < nd; d++)
		fits = x->shape[d] == y->shape[d];
	if (!fits)
		return acc_cannot(r, "inputs that are broadcast");
	memcpy(shape, x->shape, nd * sizeof *shape);
	shape[nd - 1] = y->shape[nd - 2];
	if (acc_out_shape(r, out, shape, nd) < 0)
		return ACC_EUNSUP;
	size_t m = (size_t)x->shape[nd - 2], n = (size_t)y->shape[nd - 2];
	size_t len = (size_t)x->shape[nd - 1];
	for (size_t o = 0; o < out->n; o++) {
		const double *a = x->v + o / n * len, *b = y->v + (o / n / m * n + o % n) * len;
		struct norm s = {p, 0};
		double size = 0;
		for (size_t k = 0; k < len; k++) {
			add(&s, a[k] - b[k]);
			size += a[k] * a[k] + b[k] * b[k];
		}
		out->v[o] = total(&s);
		if (out->mag != NULL && p == 2 && (m > 25 || n > 25))
			out->mag[o] = fmin(size / out->v[o],
					      sqrt(size / acc_work_unit(acc_unit(out->dtype)))) +
				      sqrt(acc_tiny_of(out->dtype) * (double)len) /
					      acc_work_unit(acc_unit(out->dtype));
	}
	return 0;
}

/* Vectors along one dimension of what x and y are broadcast to. */
struct along {
	size_t outer, len, inner;
	size_t *at[2];
};

static int
along(struct acc_replay *r, const struct acc_dense *const *in, int64_t dim, bool keep,
	const struct acc_dense *out, struct along *s)
{
	struct acc_broadcast b;
	int64_t shape[ACC_DENSE_DIMS], result[ACC_DENSE_DIMS];
	uint32_t nd = in[0]->ndim > in[1]->ndim ? in[0]->ndim : in[1]->ndim, n = 0;
	dim += dim < 0 ? nd : 0;
	if (dim < 0 || dim >= (int64_t)nd)
		return acc_cannot(r, "its argument dim is no dimension of its input");
	*s = (struct along){1, 1, 1, {NULL, NULL}};
	for (uint32_t d = 0; d < nd; d++) {
		shape[d] = 1;
		for (int k = 0; k < 2; k++)
			if (d + in[k]->ndim >= nd && in[k]->shape[d + in[k]->ndim - nd] != 1)
				shape[d] = in[k]->shape[d + in[k]->ndim - nd];
		if (d == dim)
			s->len = (size_t)shape[d];
		else if (d < dim)
			s->outer *= (size_t)shape[d];
		else
			s->inner *= (size_t)shape[d];
		if (d != dim || keep)
			result[n++] = d == dim ? 1 : shape[d];
	}
	size_t total = s->outer * s->len * s->inner;
	if (acc_out_shape(r, out, result, n) < 0)
		return ACC_EUNSUP;
	if (!acc_broadcast_start(&b, shape, nd, in, 2))
		return acc_cannot(r, "its inputs do not fit each other");
	for (int k = 0; k < 2; k++)
		if ((s->at[k] = acc_offsets(r, total, 0)) == NULL)
			return ACC_EUNSUP;
	for (size_t i = 0; i < total; i++, acc_broadcast_next(&b)) {
		s->at[0][i] = b.at[0];
		s->at[1][i] = b.at[1];
	}
	return 0;
}

static int
pairwise(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2];
	struct along s;
	double p, eps = 1e-6;
	bool keep = false;
	if (acc_need_tensor(r, "x1", &in[0]) < 0 || acc_need_tensor(r, "x2", &in[1]) < 0 ||
		order(r, &p) < 0 || acc_arg_float(r, "eps", &eps) < 0 ||
		acc_arg_bool(r, "keepdim", &keep) < 0 || along(r, in, -1, keep, out, &s) < 0)
		return ACC_EUNSUP;
	for (size_t o = 0; o < out->n; o++) {
		struct norm sum = {p, 0};
		double size = 0;
		for (size_t k = 0; k < s.len; k++) {
			double a = in[0]->v[s.at[0][o * s.len + k]],
			       b = in[1]->v[s.at[1][o * s.len + k]];
			add(&sum, a - b + eps);
			size = fmax(size, fabs(a) + fabs(b));
		}
		out->v[o] = total(&sum);
		if (out->mag != NULL) /* each difference is rounded as its terms are large */
			out->mag[o] = size * sqrt((double)s.len) +
				      2 * acc_roundings(r, out->dtype) * out->v[o];
	}
	return 0;
}

/* x y / (max(|x|, eps) max(|y|, eps)) */
static int
cosine(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2];
	struct along s;
	double eps = 1e-8;
	int64_t dim = 1;
	if (acc_need_tensor(r, "x1", &in[0]) < 0 || acc_need_tensor(r, "x2", &in[1]) < 0 ||
		acc_arg_int(r, "dim", &dim) < 0 || acc_arg_float(r, "eps", &eps) < 0 ||
		along(r, in, dim, false, out, &s) < 0)
		return ACC_EUNSUP;
	/* Its products may be rounded, too. */
	double step = acc_roundings(r, out->dtype);
	for (size_t o = 0; o < out->n; o++) {
		double xy = 0, xx = 0, yy = 0, abs = 0, sq = 0;
		for (size_t k = 0; k < s.len; k++) {
			size_t i = (o / s.inner * s.len + k) * s.inner + o % s.inner;
			double a = in[0]->v[s.at[0][i]], b = in[1]->v[s.at[1][i]];
			xy += a * b;
			abs += fabs(a * b);
			sq += a * b * a * b;
			xx += a * a;
			yy += b * b;
		}
		double size = fmax(sqrt(xx), eps) * fmax(sqrt(yy), eps);
		out->v[o] = xy / size;
		if (out->mag != NULL)
			out->mag[o] = (abs + step * (3 * fabs(xy) + sqrt(sq))) / size;
	}
	return 0;
}

struct rows {
	size_t len, inner;
};

static int
rows_of(struct acc_replay *r, const struct acc_dense **x, struct rows *s)
{
	uint32_t dim;
	if (acc_need_tensor(r, "input", x) < 0 || acc_arg_dim(r, "dim", (*x)->ndim, 1, &dim) < 0)
		return ACC_EUNSUP;
	*s = (struct rows){(*x)->ndim == 0 ? 1 : (size_t)(*x)->shape[dim], 1};
	for (uint32_t d = dim + 1; d < (*x)->ndim; d++)
		s->inner *= (size_t)(*x)->shape[d];
	return 0;
}

/* x / max(|x|, eps) along a dimension */
static int
normalize(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct rows s;
	double p, eps = 1e-12;
	if (rows_of(r, &x, &s) < 0 || order(r, &p) < 0 || acc_arg_float(r, "eps", &eps) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < x->n; i++) {
		size_t first = i / (s.len * s.inner) * s.len * s.inner + i % s.inner;
		struct norm sum = {p, 0};
		if (i != first) /* its row was done */
			continue;
		for (size_t k = 0; k < s.len; k++)
			add(&sum, x->v[first + k * s.inner]);
		double length = total(&sum), by = fmax(length, eps);
		/* Of a dtype in which the length is none, or eps is 0, nobody knows how it was computed. */
		const bool lost = (length > acc_max_of(out->dtype) && isfinite(length)) ||
				  (length < eps && eps < acc_tiny_of(out->dtype));
		for (size_t k = 0; k < s.len; k++)
			out->v[first + k * s.inner] = x->v[first + k * s.inner] / by;
		for (size_t k = 0; k < s.len && out->mag != NULL;
			k++) /* the norm is rounded, too */
			out->mag[first + k * s.inner] =
				lost ? INFINITY
				     : acc_roundings(r, out->dtype) *
						fabs(out->v[first + k * s.inner]);
	}
	return 0;
}

static int
normalize_blocks(struct acc_replay *r, const char *name, struct acc_blocks *in,
	struct acc_blocks *out)
{
	const struct acc_dense *x;
	struct rows s;
	(void)name;
	if (rows_of(r, &x, &s) < 0 || s.len * s.inner == 0)
		return acc_cannot(r, "its gradient could not be followed");
	*in = *out = (struct acc_blocks){x->n / s.len / s.inner, s.len, s.inner, true, false, true};
	return 0;
}

/* dist(x, y, p): the norm of the difference */
static int
dist(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2];
	struct acc_broadcast b;
	struct norm s = {0};
	double size = 0;
	if (acc_need_tensor(r, "x1", &in[0]) < 0 || acc_need_tensor(r, "x2", &in[1]) < 0 ||
		order(r, &s.p) < 0 || acc_out_shape(r, out, NULL, 0) < 0)
		return ACC_EUNSUP;
	const struct acc_dense *large = in[0]->n > in[1]->n ? in[0] : in[1];
	if (!acc_broadcast_start(&b, large->shape, large->ndim, in, 2))
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < large->n; i++, acc_broadcast_next(&b)) {
		add(&s, in[0]->v[b.at[0]] - in[1]->v[b.at[1]]);
		size = fmax(size, fabs(in[0]->v[b.at[0]]) + fabs(in[1]->v[b.at[1]]));
	}
	out->v[0] = total(&s);
	if (out->mag != NULL)
		out->mag[0] = out->v[0] + size;
	return 0;
}

#define ROW(n, s, f, b, fl) \
	{ \
		.names = n, .sig = s, .cls = "norm", .rounding = ACC_FEW, .eval = f, .blocks = b, \
		.flags = fl \
	}
const struct acc_op acc_ops_distance[] = {
	ROW("cdist Cdist", "x1:any x2:any p compute_mode", cdist, NULL, 0),
	ROW("pairwise_distance", "x1:any x2:any p eps keepdim", pairwise, NULL, 0),
	ROW("cosine_similarity", "x1:any x2:any dim eps", cosine, NULL, 0),
	ROW("normalize", "input:block p dim eps", normalize, normalize_blocks, ACC_BY_LENGTH),
	ROW("dist", "x1|input|self:any x2|other:any p", dist, NULL, 0),
	{.names = NULL},
};
