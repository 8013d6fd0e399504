/* Rarer functions of one or two elements. */
#include "replay/impl.h"

enum {
	THRESHOLD,
	HARDSHRINK,
	SOFTSHRINK,
	TANHSHRINK,
	LOGIT,
	SINC,
	POLYGAMMA,
	DEG2RAD,
	RAD2DEG,
	LGAMMA,
	DIGAMMA,
	ERFINV,
	ENTR,
	I0,
	ANGLE,
	NAN_TO_NUM,
	POSITIVE,
	BITWISE_NOT,
	ISNEGINF,
	ISPOSINF,
	SIGNBIT
};

#define PI 3.14159265358979323846

/* By its recurrence, up to where the series is exact; below 1/2 by its reflection. */
static double
digamma(double x)
{
	double sum = 0;
	if (x == 0)
		return -copysign(INFINITY, x);
	if (x < 0.5)
		return x == trunc(x) ? NAN : digamma(1 - x) - PI / tan(PI * (x - trunc(x)));
	while (x < 16) {
		sum -= 1 / x;
		x += 1;
	}
	const double y = 1 / (x * x);
	return sum + log(x) - 0.5 / x -
	       y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

/* The n-th derivative of that: a sum of powers, whose tail is Euler and Maclaurin's. */
static double
polygamma(double n, double x)
{
	double s = n + 1, sum = 0;
	if (n == 0)
		return digamma(x);
	if (!(x > -0x1p16) || isinf(x))
		return x > 0 ? 0 : NAN;
	while (x < 16) {
		sum += pow(x, -s);
		x += 1;
	}
	const double p = pow(x, -s), y = 1 / (x * x);
	sum += p * x / n + p / 2 +
	       p / x * s *
		       (1.0 / 12 -
			       y * (s + 1) * (s + 2) *
				       (1.0 / 720 - y * (s + 3) * (s + 4) *
							    (1.0 / 30240 - y * (s + 5) * (s + 6) /
										   1209600)));
	return (fmod(n, 2) == 0 ? -1 : 1) * tgamma(s) * sum;
}

/* Newton's steps for erfc, from what its tail is like. */
static double
erfinv(double x)
{
	const double left = log((1 - x) * (1 + x)), a = 2 / (PI * 0.147) + left / 2;
	double y = copysign(sqrt(sqrt(a * a - left / 0.147) - a), x);
	if (!(fabs(x) < 1))
		return fabs(x) == 1 ? x * INFINITY : NAN;
	for (int k = 0; k < 4 && x != 0; k++) {
		const double off = fabs(x) < 0.5 ? x - erf(y)
				   : x > 0       ? erfc(y) - (1 - x)
						 : (1 + x) - erfc(-y);
		y += off * exp(y * y) * (sqrt(PI) / 2);
	}
	return y;
}

/* The series has no terms of either sign. */
static double
bessel(double x)
{
	const double y = x * x / 4;
	double sum = 1, term = 1;
	if (!(fabs(x) < 714)) /* beyond the largest number */
		return isnan(x) ? x : INFINITY;
	for (uint32_t k = 1; term > sum * 0x1p-54; k++)
		sum += term *= y / ((double)k * k);
	return sum;
}

/* The two numbers beside the tensor. */
struct numbers {
	double a, b, c;
};

static double
function(int which, double x, const struct numbers *k)
{
	switch (which) {
	case THRESHOLD:
		return isnan(x) || x > k->a ? x : k->b;
	case HARDSHRINK:
		return x >= -k->a && x <= k->a ? 0 : x;
	case SOFTSHRINK:
		return x > k->a ? x - k->a : x < -k->a ? x + k->a : x * 0;
	case TANHSHRINK:
		return x - tanh(x);
	case LOGIT:
		x = isnan(k->a) || isnan(x) ? x : fmin(fmax(x, k->a), 1 - k->a);
		return log(x / (1 - x));
	case SINC:
		return x == 0 ? 1 : sin(PI * x) / (PI * x);
	case DEG2RAD:
		return x * (PI / 180);
	case RAD2DEG:
		return x * (180 / PI);
	case LGAMMA:
		return lgamma(x);
	case DIGAMMA:
		return digamma(x);
	case POLYGAMMA:
		return polygamma(k->a, x);
	case ERFINV:
		return erfinv(x);
	case ENTR:
		return x > 0 ? -x * log(x) : x == 0 ? 0 : isnan(x) ? x : -INFINITY;
	case I0:
		return bessel(x);
	case ANGLE:
		return isnan(x) ? x : x < 0 ? PI : 0;
	case NAN_TO_NUM:
		return isnan(x) ? k->a : isinf(x) ? (x > 0 ? k->b : k->c) : x;
	case BITWISE_NOT:
		return -x - 1;
	case ISNEGINF:
		return isinf(x) && x < 0;
	case ISPOSINF:
		return isinf(x) && x > 0;
	case SIGNBIT:
		return signbit(x) != 0;
	default:
		return x; /* POSITIVE */
	}
}

static int
arguments(struct acc_replay *r, const struct acc_dense *out, struct numbers *k)
{
	double max = acc_is_float(out->dtype) ? acc_max_of(out->dtype) : 0;
	switch (r->op->which) {
	case THRESHOLD:
		return acc_arg_float(r, "threshold", &k->a) > 0 &&
				       acc_arg_float(r, "value", &k->b) > 0
			       ? 0
			       : acc_cannot(r, "its threshold was not recorded");
	case HARDSHRINK:
	case SOFTSHRINK:
		k->a = 0.5;
		return acc_arg_float(r, "lambd", &k->a);
	case POLYGAMMA:
		return acc_arg_float(r, "n", &k->a) > 0 && k->a >= 0 && k->a <= 20
			       ? 0
			       : acc_cannot(r, "its order was not recorded");
	case LOGIT:
		k->a = NAN;
		return acc_arg_float(r, "eps", &k->a);
	case NAN_TO_NUM:
		*k = (struct numbers){0, max, -max};
		return acc_arg_float(r, "nan", &k->a) < 0 ||
				       acc_arg_float(r, "posinf", &k->b) < 0 ||
				       acc_arg_float(r, "neginf", &k->c) < 0
			       ? ACC_EUNSUP
			       : 0;
	default:
		return 0;
	}
}

/* Near a pole, what the argument of the cotangent is rounded by. */
static double
digamma_size(double x)
{
	const double near = x - nearbyint(x);
	return 1 + log(fabs(x) + 2) + (x < 0 && near != 0 ? fabs(x) / (near * near) : 0);
}

/* Torch's trigamma ends its series behind three terms, at 6: what follows is 6^-9 / 30, 3e-9. */
static double
polygamma_size(double n, enum acc_dtype t)
{
	return n == 1 ? 0x1p-28 / acc_work_unit(acc_unit(t)) : 0;
}

static int
unary(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct numbers k = {0, 0, 0};
	int which = r->op->which;
	if (acc_need_tensor(r, "input", &x) < 0 || arguments(r, out, &k) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	const bool inner = which == SINC || which == TANHSHRINK, log_of = which == LOGIT;
	double step = inner || log_of ? acc_roundings(r, out->dtype) : 0;
	for (size_t i = 0; i < out->n; i++) {
		out->v[i] = which == BITWISE_NOT && out->dtype == ACC_BOOL
				    ? x->v[i] == 0
				    : function(which, x->v[i], &k);
		if (out->mag != NULL && isfinite(x->v[i]))
			out->mag[i] = which == LOGIT    ? 1 / fmax(fabs(x->v[i]), 1e-300) + 1
				      : which == LGAMMA ? fabs(x->v[i] * log(fabs(x->v[i]) + 2)) + 1
				      : which == DIGAMMA   ? digamma_size(x->v[i])
				      : which == ENTR      ? 2 * fabs(out->v[i]) + fabs(x->v[i])
				      : which == ERFINV    ? acc_unit_low(acc_unit(out->dtype))
				      : which == POLYGAMMA ? polygamma_size(k.a, out->dtype)
				      : which == I0 || which == ANGLE ? 0
				      : which >= NAN_TO_NUM           ? 0
								      : 1 + fabs(x->v[i]);
		/* The argument of sin, tanh of x are rounded. */
		if (out->mag != NULL && isfinite(x->v[i]) && inner)
			out->mag[i] += step * fmin(1, fabs(x->v[i]));
		if (out->mag != NULL && isfinite(out->v[i]) && log_of) /* x / (1 - x) is */
			out->mag[i] += 2 * step;
	}
	return 0;
}

/* max(0, x) + weight min(0, x): one weight, or one for each channel */
static int
prelu(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *w;
	size_t inner = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "weight", &w) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (w->n != 1 && (x->ndim < 2 || w->n != (size_t)x->shape[1]))
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = 2; d < x->ndim; d++)
		inner *= (size_t)x->shape[d];
	for (size_t i = 0; i < x->n; i++)
		out->v[i] = x->v[i] > 0 || isnan(x->v[i])
				    ? x->v[i]
				    : x->v[i] * w->v[w->n == 1 ? 0 : i / inner % w->n];
	return 0;
}

enum {
	FMAX,
	FMIN,
	CLAMP_MIN,
	CLAMP_MAX,
	XLOGY,
	LOGADDEXP,
	LOGADDEXP2,
	COPYSIGN,
	HEAVISIDE,
	LDEXP,
	FLOAT_POWER,
	GCD,
	LCM
};

static double
gcd(double a, double b)
{
	a = fabs(a);
	b = fabs(b);
	while (b != 0) {
		double m = fmod(a, b);
		a = b;
		b = m;
	}
	return a;
}

static double
log_add(double a, double b, double (*up)(double), double (*down)(double))
{
	double top = fmax(a, b);
	if (isnan(a) || isnan(b) || isinf(top))
		return isnan(a) || isnan(b) ? NAN : top;
	return top + down(up(a - top) + up(b - top));
}

static double
apply(int which, double a, double b)
{
	bool nan = isnan(a) || isnan(b);
	switch (which) {
	case FMAX:
		return fmax(a, b);
	case FMIN:
		return fmin(a, b);
	case CLAMP_MIN:
		return nan ? NAN : fmax(a, b);
	case CLAMP_MAX:
		return nan ? NAN : fmin(a, b);
	case XLOGY:
		return a == 0 && !isnan(b) ? 0 : a * log(b);
	case LOGADDEXP:
		return log_add(a, b, exp, log);
	case LOGADDEXP2:
		return log_add(a, b, exp2, log2);
	case COPYSIGN:
		return copysign(a, b);
	case HEAVISIDE:
		return isnan(a) ? a : a == 0 ? b : a > 0;
	case LDEXP:
		return a * exp2(b);
	case FLOAT_POWER:
		return pow(a, b);
	case GCD:
		return gcd(a, b);
	default: /* LCM */
		return a == 0 || b == 0 ? 0 : fabs(a / gcd(a, b) * b);
	}
}

static int
binary(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_value *v = acc_arg(r, "other");
	const struct acc_dense *in[2];
	struct acc_dense number;
	struct acc_broadcast b;
	double value;
	int which = r->op->which;
	if (acc_need_tensor(r, "input", &in[0]) < 0)
		return ACC_EUNSUP;
	if (v != NULL && v->type == ACC_A_TENSOR) {
		if (acc_need_tensor(r, "other", &in[1]) < 0)
			return ACC_EUNSUP;
	} else if (acc_arg_float(r, "other", &value) > 0) {
		number = (struct acc_dense){.dtype = ACC_F64, .n = 1, .v = &value};
		in[1] = &number;
	} else {
		return acc_cannot(r, "an operand was not recorded");
	}
	if (acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	if (in[1] == &number && (which == CLAMP_MIN || which == CLAMP_MAX))
		value = acc_round_to(in[0]->dtype, value); /* bounds are of the tensor's dtype */
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b)) {
		double x = in[0]->v[b.at[0]], y = in[1]->v[b.at[1]];
		out->v[i] = apply(which, x, y);
		bool logs = which == XLOGY || which == LOGADDEXP || which == LOGADDEXP2;
		if (out->mag != NULL && logs && isfinite(x) && isfinite(y))
			out->mag[i] = 1 + fabs(x) + fabs(y);
	}
	return 0;
}

enum { GATE_SIGMOID, GATE_SILU };

static double
gate(int which, double x)
{
	const double s = x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
	return which == GATE_SIGMOID ? s : isinf(x) && x < 0 ? 0 : x * s;
}

/* The gated ones: one tensor whose halves along a dimension are taken, or (as some recorders
 * have it) both halves. */
static int
gated(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *up = NULL;
	const struct acc_value *second = acc_arg(r, "dim");
	uint32_t dim = 0;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	bool two = second != NULL && second->type == ACC_A_TENSOR && second->t->n > 1;
	size_t half, inner = 1;
	if (two) {
		if (acc_need_tensor(r, "dim", &up) < 0 ||
			acc_out_shape(r, out, x->shape, x->ndim) < 0)
			return ACC_EUNSUP;
		if (up->n != x->n)
			return acc_cannot(r, "its inputs do not fit each other");
		for (size_t i = 0; i < out->n; i++)
			out->v[i] = gate(r->op->which, x->v[i]) * up->v[i];
		return 0;
	}
	bool swapped = true;
	if (acc_str_is(r->name, "SWIGLU") && acc_arg_bool(r, "swapped", &swapped) >= 0 && swapped)
		return acc_cannot(r, "which of its halves is the gate is not known");
	if (acc_arg_dim(r, "dim", x->ndim, -1, &dim) < 0)
		return ACC_EUNSUP;
	int64_t shape[ACC_DENSE_DIMS];
	memcpy(shape, x->shape, x->ndim * sizeof *shape);
	if (x->ndim == 0 || shape[dim] % 2 != 0)
		return acc_cannot(r, "its input has no halves");
	shape[dim] /= 2;
	if (acc_out_shape(r, out, shape, x->ndim) < 0)
		return ACC_EUNSUP;
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		inner *= (size_t)shape[d];
	half = (size_t)shape[dim] * inner;
	for (size_t i = 0; i < out->n; i++) {
		size_t at = i / half * 2 * half + i % half;
		/* glu gates by its second half. */
		bool swap = r->op->which == GATE_SIGMOID;
		double g = x->v[swap ? at + half : at], u = x->v[swap ? at : at + half];
		out->v[i] = gate(r->op->which, g) * u;
	}
	return 0;
}

/* 1 - tanh^2, which is subtracted from 1 */
static double
shrink_terms(struct acc_replay *r, const struct acc_steep *at)
{
	(void)r;
	return at->x == 0 ? 0 : 2;
}

/* -log(x) - 1 */
static double
entropy_terms(struct acc_replay *r, const struct acc_steep *at)
{
	(void)r;
	return at->x > 0 ? 1 + fabs(log(at->x)) : 0;
}

/* (pi x cos(pi x) - sin(pi x)) / (pi x^2), where pi x is rounded */
static double
sinc_terms(struct acc_replay *r, const struct acc_steep *at)
{
	const double size = fabs(at->x);
	(void)r;
	return size == 0 ? 0 : fmin(PI, 1 / size) + 2 / size + PI;
}

#define UNARY(n, c, rnd, s, w) \
	{ \
		.names = n, .sig = s, .cls = c, .rounding = rnd, .eval = unary, .which = w \
	}
#define UNIT(n, c, s, w) \
	{ \
		.names = n, .sig = s, .cls = c, .rounding = ACC_FEW, .flags = ACC_UNIT_SCALE, \
		.eval = unary, .which = w \
	}
#define BINARY(n, c, rnd, w) \
	{ \
		.names = n, .sig = "input|self|x:point other|y|exponent|min|max|values:point", \
		.cls = c, .rounding = rnd, .eval = binary, .which = w \
	}
/* 1 / (1 + exp(y - x)), of a difference that is rounded, and 0 where the exponential overflows. */
static double
share_terms(struct acc_replay *r, const struct acc_steep *at)
{
	const enum acc_dtype t = r->rec[0].dtype;
	return fabs(at->slope) * fabs(at->x - at->y) + 1 / acc_max_of(t) / acc_unit(t);
}

#define LOGS(n, w) \
	{ \
		.names = n, .sig = "input|self|x:point other|y:point", .cls = "function", \
		.rounding = ACC_FEW, .eval = binary, .which = w, .terms = share_terms \
	}
#define X "input|self|x:point "
const struct acc_op acc_ops_elementwise[] = {
	UNARY("threshold Threshold", "activation", ACC_EXACT, X "threshold value", THRESHOLD),
	UNARY("hardshrink Hardshrink HShrink", "activation", ACC_EXACT, X "lambd", HARDSHRINK),
	UNARY("softshrink Softshrink SoftShrink", "activation", ACC_FEW, X "lambd", SOFTSHRINK),
	{.names = "tanhshrink Tanhshrink",
		.sig = X,
		.cls = "activation",
		.rounding = ACC_FEW,
		.eval = unary,
		.terms = shrink_terms,
		.which = TANHSHRINK},
	UNARY("logit", "function", ACC_FEW, X "eps", LOGIT),
	{.names = "sinc",
		.sig = X,
		.cls = "function",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE,
		.eval = unary,
		.terms = sinc_terms,
		.which = SINC},
	UNARY("deg2rad", "function", ACC_FEW, X, DEG2RAD),
	UNARY("rad2deg", "function", ACC_FEW, X, RAD2DEG),
	UNIT("lgamma", "function", X, LGAMMA),
	UNARY("digamma psi", "function", ACC_FEW, X, DIGAMMA),
	UNARY("polygamma", "function", ACC_FEW, "n " X, POLYGAMMA),
	{.names = "erfinv",
		.sig = X,
		.cls = "function",
		.rounding = ACC_FEW,
		.flags = ACC_UNTIL_ONE,
		.eval = unary,
		.which = ERFINV},
	{.names = "entr",
		.sig = X,
		.cls = "function",
		.rounding = ACC_FEW,
		.eval = unary,
		.terms = entropy_terms,
		.which = ENTR},
	UNIT("i0", "function", X, I0),
	UNARY("angle", "function", ACC_ONCE, "input|self|x:flat", ANGLE),
	UNARY("nan_to_num NanToNum", "move", ACC_ONCE, X "nan posinf neginf", NAN_TO_NUM),
	UNARY("positive", "move", ACC_EXACT, X, POSITIVE),
	UNARY("bitwise_not", "move", ACC_EXACT, X, BITWISE_NOT),
	UNARY("isneginf", "move", ACC_EXACT, X, ISNEGINF),
	UNARY("isposinf", "move", ACC_EXACT, X, ISPOSINF),
	UNARY("signbit", "move", ACC_EXACT, X, SIGNBIT),
	{.names = "prelu PReLU",
		.sig = "input|x:point weight:any",
		.cls = "activation",
		.rounding = ACC_ONCE,
		.eval = prelu},
	BINARY("fmax", "arithmetic", ACC_EXACT, FMAX),
	BINARY("fmin", "arithmetic", ACC_EXACT, FMIN),
	BINARY("clamp_min", "arithmetic", ACC_ONCE, CLAMP_MIN),
	BINARY("clamp_max", "arithmetic", ACC_ONCE, CLAMP_MAX),
	BINARY("xlogy Xlogy", "function", ACC_FEW, XLOGY),
	LOGS("logaddexp", LOGADDEXP),
	LOGS("logaddexp2", LOGADDEXP2),
	BINARY("copysign", "arithmetic", ACC_EXACT, COPYSIGN),
	BINARY("heaviside", "arithmetic", ACC_EXACT, HEAVISIDE),
	BINARY("ldexp", "arithmetic", ACC_FEW, LDEXP),
	BINARY("float_power", "function", ACC_FEW, FLOAT_POWER),
	BINARY("gcd", "arithmetic", ACC_EXACT, GCD),
	BINARY("lcm", "arithmetic", ACC_EXACT, LCM),
	{.names = "swiglu npu_swiglu SWIGLU",
		.sig = "input|x:block dim|up:point swapped",
		.cls = "activation",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT,
		.eval = gated,
		.which = GATE_SILU},
	{.names = "glu GLU",
		.sig = "input:block dim",
		.cls = "activation",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT,
		.eval = gated,
		.which = GATE_SIGMOID},
	{.names = NULL},
};
#undef X
