/* Histograms, quantiles, the next number, the incomplete gamma function. */
#include "replay/impl.h"

#include <stdlib.h>

#include "base/order.h"

static int
histc(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t bins = 100;
	double lo = 0, hi = 0;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "bins", &bins) < 0 ||
		acc_arg_float(r, "min", &lo) < 0 || acc_arg_float(r, "max", &hi) < 0 ||
		acc_out_shape(r, out, &bins, 1) < 0)
		return ACC_EUNSUP;
	if (lo == hi && x->n > 0) {
		lo = INFINITY;
		hi = -INFINITY;
		for (size_t i = 0; i < x->n; i++) {
			lo = fmin(lo, x->v[i]);
			hi = fmax(hi, x->v[i]);
		}
	}
	if (lo == hi) {
		lo -= 1;
		hi += 1;
	}
	const double near = 8 * acc_unit(x->dtype) * (double)bins *
			    (1 + fmax(fabs(lo), fabs(hi)) / (hi - lo)),
		     one = 1 / acc_work_unit(acc_unit(out->dtype));
	for (size_t i = 0; i < out->n; i++) {
		out->v[i] = 0;
		if (out->mag != NULL)
			out->mag[i] = 0;
	}
	for (size_t i = 0; i < x->n; i++) {
		const double at = (x->v[i] - lo) / (hi - lo) * (double)bins, edge = nearbyint(at);
		const size_t bin = at >= (double)bins ? out->n - 1 : (size_t)fmax(at, 0);
		if (!(x->v[i] >= lo && x->v[i] <= hi))
			continue;
		out->v[bin]++;
		/* Next to an edge, it may be in either. */
		if (out->mag == NULL || fabs(at - edge) > near || edge <= 0 || edge >= (double)bins)
			continue;
		out->mag[(size_t)edge] += one;
		out->mag[(size_t)edge - 1] += one;
	}
	return 0;
}

/* A row's quantile, between its sorted elements; and what its place is rounded by. */
static double
between(const double *s, size_t n, double q, struct acc_str how, double *mag)
{
	const double at = q * ((double)n - 1);
	const size_t low = (size_t)floor(at), high = (size_t)ceil(at);
	const double part = at - (double)low, lo = s[low], hi = s[high];
	*mag = fabs(lo) + fabs(hi) + ((double)n - 1) * fabs(hi - lo);
	if (acc_str_is(how, "lower"))
		return lo;
	if (acc_str_is(how, "higher"))
		return hi;
	if (acc_str_is(how, "midpoint"))
		return (lo + hi) / 2;
	if (acc_str_is(how, "nearest"))
		return s[(size_t)nearbyint(at)];
	return lo + part * (hi - lo);
}

/* The dimension that goes, and the number of rows behind an element. */
struct rows {
	size_t len, inner;
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t ndim;
};

static int
rows_of(struct acc_replay *r, const struct acc_dense *x, struct rows *s)
{
	const struct acc_value *dim = acc_arg(r, "dim");
	uint32_t d = 0;
	bool keep = false;
	const bool all = dim == NULL || dim->type == ACC_A_NONE;
	if (acc_arg_bool(r, "keepdim", &keep) < 0 ||
		(!all && acc_arg_dim(r, "dim", x->ndim, 0, &d) < 0))
		return ACC_EUNSUP;
	*s = (struct rows){all || x->ndim == 0 ? x->n : (size_t)x->shape[d], 1, {0}, 0};
	for (uint32_t i = 0; i < x->ndim; i++) {
		const bool gone = all || i == d;
		s->inner *= !gone && i > d ? (size_t)x->shape[i] : 1;
		if (!gone || keep)
			s->shape[s->ndim++] = gone ? 1 : x->shape[i];
	}
	return 0;
}

static int
quantile(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *qs = NULL;
	const struct acc_value *v = acc_arg(r, "q");
	struct acc_str how = {"linear", 6};
	struct rows s;
	double q = NAN;
	if (acc_need_tensor(r, "input", &x) < 0 || rows_of(r, x, &s) < 0 ||
		acc_arg_text(r, "interpolation", &how) < 0 ||
		(v != NULL && v->type == ACC_A_TENSOR ? acc_need_tensor(r, "q", &qs)
						      : acc_arg_float(r, "q", &q)) < 0)
		return ACC_EUNSUP;
	q = qs != NULL && qs->n == 1 ? qs->v[0] : q;
	if (!(q >= 0 && q <= 1) || s.len == 0 || (qs != NULL && qs->ndim > 0))
		return acc_cannot(r, "several quantiles");
	double *row = acc_doubles(r, s.len), mag;
	if (row == NULL || acc_out_shape(r, out, s.shape, s.ndim) < 0)
		return ACC_EUNSUP;
	for (size_t o = 0; o < out->n; o++) {
		const double *from = x->v + o / s.inner * s.len * s.inner + o % s.inner;
		bool nan = false;
		for (size_t i = 0; i < s.len; i++) {
			row[i] = from[i * s.inner];
			nan |= isnan(row[i]);
		}
		qsort(row, s.len, sizeof *row, acc_by_double);
		out->v[o] = nan ? NAN : between(row, s.len, q, how, &mag);
		if (out->mag != NULL)
			out->mag[o] = nan ? 0 : mag;
	}
	return 0;
}

/* The number of a dtype behind x, towards y. */
static double
next(enum acc_dtype t, double x, double y)
{
	const int least = t == ACC_F16 ? -13 : t == ACC_F64 ? -1021 : -125;
	int e;
	if (isnan(x) || isnan(y) || x == y)
		return isnan(x) ? x : y;
	if (t == ACC_F64 || isinf(x))
		return t == ACC_F64 ? nextafter(x, y) : copysign(acc_max_of(t), x);
	const double m = frexp(x, &e), eps = acc_dtype_of(t)->eps;
	const bool shrinks = (y < x) == (x > 0);
	const double step = ldexp(eps, (x == 0 || e < least ? least : e) - 1);
	const double by = shrinks && fabs(m) == 0.5 && e > least ? step / 2 : step;
	return acc_round_to(t, x + (y > x ? by : -by));
}

static int
nextafters(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2];
	struct acc_broadcast b;
	if (acc_need_tensor(r, "input", &in[0]) < 0 || acc_need_tensor(r, "other", &in[1]) < 0 ||
		acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b))
		out->v[i] = next(out->dtype, in[0]->v[b.at[0]], in[1]->v[b.at[1]]);
	return 0;
}

/* P(a, x): a series, or one less a continued fraction. And its smaller part. */
static double
gamma_part(double a, double x, double *part)
{
	enum { MOST = 100000 }; /* terms */
	const double front = exp(a * log(x) - x - lgamma(a));
	if (x < a + 1) {
		double sum = 1 / a, term = sum;
		for (uint32_t i = 1; term > sum * 0x1p-54 && i < MOST; i++)
			sum += term *= x / (a + i);
		return *part = front * sum;
	}
	double b = x + 1 - a, c = 0x1p1000, d = 1 / b, h = d;
	for (uint32_t i = 1; i < MOST; i++) {
		const double by = -(double)i * (i - a);
		b += 2;
		d = 1 / (by * d + b);
		c = b + by / c;
		const double change = d * c;
		h *= change;
		if (fabs(change - 1) < 0x1p-52)
			break;
	}
	*part = front * h;
	return 1 - *part;
}

static int
igamma(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *in[2];
	struct acc_broadcast b;
	if (acc_need_tensor(r, "input", &in[0]) < 0 || acc_need_tensor(r, "other", &in[1]) < 0 ||
		acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	const double most = fmin(acc_max_of(out->dtype), 0x1p1000) / 4,
		     wide = acc_unit_low(acc_unit(out->dtype)) ? acc_max_of(ACC_F32) / 4 : most;
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b)) {
		const double a = in[0]->v[b.at[0]], x = in[1]->v[b.at[1]];
		double part = 0;
		/* Beside, and where 1 / a overflows, nobody knows. */
		const bool inside = a * wide > 1 && x * wide > 1 && a < most && x < most;
		out->v[i] = inside ? gamma_part(a, x, &part) : x == 0 && a * wide > 1 ? 0 : NAN;
		if (out->mag == NULL)
			continue;
		/* The front is an exponential of what is rounded. */
		out->mag[i] = inside ? part * (x + fabs(a * log(x)) + fabs(lgamma(a)) + 2)
			      : isnan(out->v[i]) ? INFINITY
						 : 0;
	}
	return 0;
}

const struct acc_op acc_ops_counted[] = {
	{.names = "histc",
		.sig = "input|self bins min max",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.eval = histc},
	{.names = "quantile",
		.sig = "input|self:any q dim keepdim interpolation",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.eval = quantile},
	{.names = "nextafter",
		.sig = "input|self other",
		.cls = "arithmetic",
		.rounding = ACC_EXACT,
		.eval = nextafters},
	{.names = "igamma gammainc",
		.sig = "input|self other",
		.cls = "function",
		.rounding = ACC_FEW,
		.eval = igamma},
	{.names = NULL},
};
