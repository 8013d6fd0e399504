/* Functions of one element. */
#include "replay/impl.h"

enum {
	NEG,
	ABS,
	SIGN,
	SQUARE,
	SQRT,
	RSQRT,
	RECIPROCAL,
	EXP,
	EXPM1,
	EXP2,
	LOG,
	LOG2,
	LOG10,
	LOG1P,
	SIN,
	COS,
	TAN,
	ASIN,
	ACOS,
	ATAN,
	SINH,
	COSH,
	TANH,
	ASINH,
	ACOSH,
	ATANH,
	ERF,
	ERFC,
	SIGMOID,
	LOGSIGMOID,
	SOFTPLUS,
	RELU,
	RELU6,
	LEAKY,
	ELU,
	SELU,
	CELU,
	SILU,
	GELU,
	QUICK_GELU,
	MISH,
	HARDSWISH,
	HARDSIGMOID,
	HARDTANH,
	SOFTSIGN,
	FLOOR,
	CEIL,
	TRUNC,
	ROUND,
	FRAC,
	LOGICAL_NOT,
	ISNAN,
	ISINF,
	ISFINITE,
	NAN_TO_NUM
};

struct numbers { /* arguments beside the tensor */
	double a, b;
	bool tanh;
};

#define SELU_SCALE 1.0507009873554805
#define SELU_ALPHA 1.6732632423543772

static double
sigmoid(double x)
{
	return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double
softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double
gelu(double x, bool by_tanh)
{
	if (isinf(x))
		return x > 0 ? x : 0;
	if (by_tanh)
		return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
	return 0.5 * x * erfc(-x * 0.7071067811865476);
}

/* NaN stays NaN. */
static double
between(double x, double lo, double hi)
{
	return x < lo ? lo : x > hi ? hi : x;
}

static double
activation(int which, double x, const struct numbers *k)
{
	switch (which) {
	case SIGMOID:
		return sigmoid(x);
	case LOGSIGMOID:
		return -softplus(-x);
	case SOFTPLUS:
		return x * k->a > k->b ? x : softplus(x * k->a) / k->a;
	case RELU:
		return x < 0 ? 0 : x;
	case RELU6:
		return between(x, 0, 6);
	case LEAKY:
		return x < 0 ? k->a * x : x;
	case ELU:
	case CELU:
		return x > 0 ? x : k->a * expm1(which == ELU ? x : x / k->a);
	case SELU:
		return SELU_SCALE * (x > 0 ? x : SELU_ALPHA * expm1(x));
	case SILU:
		return isinf(x) && x < 0 ? 0 : x * sigmoid(x);
	case GELU:
		return gelu(x, k->tanh);
	case QUICK_GELU:
		return x * sigmoid(1.702 * x);
	case MISH:
		return x * tanh(softplus(x));
	case HARDSWISH:
		return x * between(x + 3, 0, 6) / 6;
	case HARDSIGMOID:
		return between(x + 3, 0, 6) / 6;
	case HARDTANH:
		return between(x, k->a, k->b);
	default:
		return x / (1 + fabs(x)); /* SOFTSIGN */
	}
}

static double
rounding(int which, double x)
{
	switch (which) {
	case FLOOR:
		return floor(x);
	case CEIL:
		return ceil(x);
	case TRUNC:
		return trunc(x);
	case ROUND:
		return nearbyint(x);
	case FRAC:
		return x - trunc(x);
	case LOGICAL_NOT:
		return x == 0;
	case ISNAN:
		return isnan(x) != 0;
	case ISINF:
		return isinf(x) != 0; /* -1 of -Inf */
	default:
		return isfinite(x) != 0; /* ISFINITE */
	}
}

static double
function(int which, double x)
{
	switch (which) {
	case NEG:
		return -x;
	case ABS:
		return fabs(x);
	case SIGN:
		return isnan(x) ? x : (x > 0) - (x < 0);
	case SQUARE:
		return x * x;
	case SQRT:
		return sqrt(x);
	case RSQRT:
		return 1 / sqrt(x);
	case RECIPROCAL:
		return 1 / x;
	case EXP:
		return exp(x);
	case EXPM1:
		return expm1(x);
	case EXP2:
		return exp2(x);
	case LOG:
		return log(x);
	case LOG2:
		return log2(x);
	case LOG10:
		return log10(x);
	case LOG1P:
		return log1p(x);
	case SIN:
		return sin(x);
	case COS:
		return cos(x);
	case TAN:
		return tan(x);
	case ASIN:
		return asin(x);
	case ACOS:
		return acos(x);
	case ATAN:
		return atan(x);
	case SINH:
		return sinh(x);
	case COSH:
		return cosh(x);
	case TANH:
		return tanh(x);
	case ASINH:
		return asinh(x);
	case ACOSH:
		return acosh(x);
	case ATANH:
		return atanh(x);
	case ERF:
		return erf(x);
	default:
		return erfc(x); /* ERFC */
	}
}

/* A module's `approximate` is not recorded: some classes have one form, and of others the one that fits best: behaviour
 * keras-two-gelus. */
static bool
is_by_tanh(struct acc_replay *r, const struct acc_dense *x)
{
	double d[2] = {0, 0};
	if (acc_str_is(r->name, "GELUTanh") || acc_str_is(r->name, "PytorchGELUTanh"))
		return true;
	if (!r->module || x == NULL || !acc_str_is(r->name, "GELU"))
		return false;
	/* Where the input is changed, by what it was before. */
	if (r->guess == 0 && r->rec[0].v != NULL && r->rec[0].n == x->n) {
		for (size_t i = 0; i < x->n; i++)
			for (int k = 0; k < 2; k++)
				if (isfinite(x->v[i]) && isfinite(r->rec[0].v[i]))
					d[k] += fabs(gelu(x->v[i], k == 1) - r->rec[0].v[i]);
		r->guess = d[1] < d[0] ? 2 : 1;
	}
	return r->guess == 2;
}

static int
arguments(struct acc_replay *r, const struct acc_dense *x, struct numbers *k)
{
	struct acc_str how = {"", 0};
	int which = r->op->which;
	*k = (struct numbers){.a = 1, .b = 1};
	if (which == SOFTPLUS) {
		k->b = 20;
		if (acc_arg_float(r, "beta", &k->a) < 0 || acc_arg_float(r, "threshold", &k->b) < 0)
			return ACC_EUNSUP;
	} else if (which == LEAKY) {
		k->a = 0.01;
		return acc_arg_float(r, "negative_slope", &k->a);
	} else if (which == ELU || which == CELU) {
		return acc_arg_float(r, "alpha", &k->a);
	} else if (which == HARDTANH) {
		k->a = -1;
		if (acc_arg_float(r, "min_val", &k->a) < 0 ||
			acc_arg_float(r, "max_val", &k->b) < 0)
			return ACC_EUNSUP;
	} else if (which == GELU) {
		if (acc_arg_text(r, "approximate", &how) < 0)
			return ACC_EUNSUP;
		k->tanh = how.n > 0 ? acc_str_is(how, "tanh") : is_by_tanh(r, x);
	} else if (which == ROUND) {
		int64_t decimals = 0;
		k->a = 0;
		if (acc_arg_int(r, "decimals", &decimals) < 0)
			return ACC_EUNSUP;
		k->a = (double)decimals;
	}
	return 0;
}

static double
value(int which, double x, const struct numbers *k)
{
	return which < SIGMOID ? function(which, x)
	       : which < FLOOR ? activation(which, x, k)
			       : rounding(which, x);
}

static bool
is_dear(int which)
{
	return (which >= EXP && which <= SOFTPLUS) || (which >= ELU && which <= MISH);
}

/* In 16 bits there are few numbers, and an element's value is looked up: what was computed once is
 * kept, by the upper half of the element as f32 (or, of f16, by as much as it has of it). */
static struct acc_memo *
memo_of(struct acc_replay *r, const struct numbers *k, const struct acc_dense *x)
{
	bool half = x->dtype == ACC_BF16 || x->dtype == ACC_F16;
	double key[] = {k->a, k->b, k->tanh};
	return half && is_dear(r->op->which) && r->memos != NULL
		       ? acc_memo_get(r->memos, r->op, key, sizeof key)
		       : NULL;
}

static void
look_up(struct acc_memo *m, int which, const struct numbers *k, const struct acc_dense *in,
	double *out)
{
	const double *x = in->v;
	unsigned shift = in->dtype == ACC_BF16 ? 16 : 13;
	for (size_t i = 0; i < in->n; i++) {
		float f = (float)x[i];
		uint32_t u;
		memcpy(&u, &f, sizeof u);
		struct acc_memo_entry *e = acc_memo_at(m, u, shift);
		if (f != x[i] || (u & 0x1fff) != 0) {
			out[i] = value(which, x[i], k);
			continue;
		}
		if (e->code != u) {
			e->code = u;
			e->v = value(which, x[i], k);
		}
		out[i] = e->v;
	}
}

/* By one exponential of each, or a table; what is not finite is left to the others. */
static bool
at_once(int which, const struct numbers *k, const double *x, size_t n, double *out)
{
	double t[ACC_AUDIT_BLOCK];
	const struct acc_audit_row *row = acc_audit_row();
	if (which != EXP && which != SIGMOID && which != SILU && which != QUICK_GELU &&
		which != GELU)
		return false;
	for (size_t at = 0, len; at < n; at += len) {
		const double *p = x + at;
		len = n - at < ACC_AUDIT_BLOCK ? n - at : ACC_AUDIT_BLOCK;
		if (!row->finite(p, len)) {
			for (size_t i = 0; i < len; i++)
				out[at + i] = value(which, p[i], k);
			continue;
		}
		if (which == GELU && !k->tanh) {
			acc_normal(p, len, t);
			for (size_t i = 0; i < len; i++)
				out[at + i] = p[i] * t[i];
			continue;
		}
		for (size_t i = 0; i < len; i++)
			t[i] = which == EXP          ? p[i]
			       : which == QUICK_GELU ? -1.702 * p[i]
			       : which != GELU       ? -p[i]
						     : -1.5957691216057308 *
							 (p[i] + 0.044715 * p[i] * p[i] * p[i]);
		row->exp(t, 0, len, t);
		for (size_t i = 0; i < len; i++)
			out[at + i] = which == EXP ? t[i]
						   : (which == SIGMOID ? 1 : p[i]) / (1 + t[i]);
	}
	return true;
}

static void
values(struct acc_replay *r, const struct numbers *k, const struct acc_dense *x, double *out)
{
	struct acc_memo *m = memo_of(r, k, x);
	if (m != NULL)
		look_up(m, r->op->which, k, x, out);
	else if (!at_once(r->op->which, k, x->v, x->n, out))
		for (size_t i = 0; i < x->n; i++)
			out[i] = value(r->op->which, x->v[i], k);
}

/* To k decimals, or to 10^-k. x times that is rounded: near the middle it may be either way, and where it has no
 * decimals left, x is what it was, to rounding. */
static double
to_decimals(const struct acc_replay *r, double k, double x, size_t i)
{
	const double rec = r->rec[0].v != NULL && i < r->rec[0].n ? r->rec[0].v[i] : NAN;
	const double unit = acc_unit(r->rec[0].dtype), by = pow(10, fabs(k));
	const double y = k > 0 ? x * by : x / by, near = 4 * unit * fabs(y);
	double n = nearbyint(y);
	if (fabs(y) > acc_max_of(r->rec[0].dtype) && rec == copysign(INFINITY, x))
		return rec;
	if (fabs(rec - x) <= 4 * unit * fabs(x) && near >= 0.5)
		return rec;
	if (fabs(fabs(y - trunc(y)) - 0.5) <= near) {
		const double low = k > 0 ? floor(y) / by : floor(y) * by,
			     high = k > 0 ? ceil(y) / by : ceil(y) * by;
		n = fabs(rec - low) < fabs(rec - high) ? floor(y) : ceil(y);
	}
	return k > 0 ? n / by : n * by;
}

static int
unary(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct numbers k;
	int which = r->op->which;
	if (acc_need_tensor(r, "input", &x) < 0 || arguments(r, x, &k) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	values(r, &k, x, out->v);
	for (size_t i = 0; which == ROUND && k.a != 0 && i < out->n; i++)
		out->v[i] = isfinite(x->v[i]) ? to_decimals(r, k.a, x->v[i], i) : x->v[i];
	/* 1 + erf(x) and the like cancel. */
	bool cancels = which == GELU || which == QUICK_GELU || which == MISH || which == SELU ||
		       which == ELU || which == CELU || which == HARDSWISH;
	bool reduces = which == SIN || which == COS || which == TAN;
	/* Fast ones lose digits where they bring x into the first period. */
	for (size_t i = 0; reduces && out->mag != NULL && i < out->n; i++)
		out->mag[i] = isfinite(x->v[i]) ? 1 + fabs(x->v[i]) + fabs(out->v[i]) : 0;
	for (size_t i = 0; cancels && out->mag != NULL && i < out->n; i++)
		out->mag[i] = isfinite(x->v[i]) ? fabs(x->v[i]) : 0;
	/* exp(x) - 1 may be computed as it is written, and log(1 + exp(x)): rounded as 1 is. MindSpore's logarithm on
	 * the CPU is so, too, near 1. */
	double one = which == SELU                   ? SELU_SCALE * SELU_ALPHA
		     : which == ELU || which == CELU ? fabs(k.a)
		     : which == EXPM1 || which == LOG1P || which == SOFTPLUS ||
				     which == LOGSIGMOID || acc_str_is(r->name, "Log")
			     ? 1
			     : 0;
	/* In 16 bits erf may be what is left of 1 near 0, too. */
	if (which == ERF && acc_unit_low(acc_unit(out->dtype)))
		one = 1;
	bool below = which == SELU || which == ELU || which == CELU;
	for (size_t i = 0; one > 0 && out->mag != NULL && i < out->n; i++)
		if (isfinite(x->v[i]) && (!below || x->v[i] < 0))
			out->mag[i] = fmax(out->mag[i], one);
	return 0;
}

/* The exponential grows with what its argument, a quotient, is rounded by. */
static double
exponent_terms(struct acc_replay *r, const struct acc_steep *at)
{
	struct numbers k;
	if (!(at->x < 0) || arguments(r, NULL, &k) < 0)
		return 0;
	const double size = fabs(at->slope * at->x / (r->op->which == CELU ? k.a : 1));
	/* PyTorch takes alpha in single precision there. */
	const bool single = r->op->which == CELU && r->rec[0].dtype == ACC_F64;
	return size * (single ? 0x1p-25 / acc_unit(ACC_F64) : 2);
}

/* The slope of the form with tanh has the cube of x, which overflows where it is 0 or 1 long since. */
static double
cube_terms(struct acc_replay *r, const struct acc_steep *at)
{
	struct numbers k;
	if (arguments(r, NULL, &k) < 0 || !(k.tanh || r->guess == 2))
		return 0;
	const double most = fmin(acc_max_of(r->rec[0].dtype), acc_max_of(ACC_F32));
	return fabs(at->x) > cbrt(most) ? INFINITY : 0;
}

/* A sixth, which PyTorch has in single precision there. */
static double
sixth_terms(struct acc_replay *r, const struct acc_steep *at)
{
	return r->rec[0].dtype == ACC_F64 ? fabs(at->slope) * 0x1p-25 / acc_unit(ACC_F64) : 0;
}

/* The gradient is divided by x log 2 or x log 10, which is rounded, to nothing or to Inf. */
static double
logarithm_terms(struct acc_replay *r, const struct acc_steep *at)
{
	const double x = at->x, slope = at->slope;
	const enum acc_dtype t = r->rec[0].dtype;
	const double unit = acc_unit(t);
	if (fabs(x) > acc_max_of(t) / 2.5)
		return fabs(slope) / unit;
	return fabs(slope) * (2 + acc_tiny_of(t) / fabs(x) / unit);
}

#define UNARY(n, c, rnd, f, s, w) \
	{ \
		.names = n, .sig = s, .cls = c, .rounding = rnd, .flags = f, .eval = unary, \
		.which = w, .cut = acc_cut_point \
	}
#define EXPONENTIAL(n, s, w) \
	{ \
		.names = n, .sig = s, .cls = "activation", .rounding = ACC_FEW, \
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT | ACC_TELLS_STEPS, .eval = unary, \
		.which = w, .cut = acc_cut_point, .terms = exponent_terms \
	}
#define ROW(n, w) UNARY(n, "function", ACC_FEW, ACC_KEEPS_NAN, "input|x|self:point", w)
#define LOGARITHM(n, w) \
	{ \
		.names = n, .sig = "input|x|self:point", .cls = "function", .rounding = ACC_FEW, \
		.flags = ACC_KEEPS_NAN, .eval = unary, .which = w, .cut = acc_cut_point, \
		.terms = logarithm_terms \
	}
#define UNIT_OF(n, c, w) \
	UNARY(n, c, ACC_FEW, ACC_KEEPS_NAN | ACC_UNIT_SCALE | ACC_SAVES_OUTPUT | ACC_TELLS_STEPS, \
		"input|x|self:point", w)
#define UNIT(n, w) UNIT_OF(n, "function", w)
#define WAVE(n, w) \
	UNARY(n, "function", ACC_FEW, \
		ACC_KEEPS_NAN | ACC_UNIT_SCALE | ACC_SAVES_OUTPUT | ACC_PERIODIC, \
		"input|x|self:point", w)
#define BOUND(n, w) \
	UNARY(n, "function", ACC_FEW, \
		ACC_KEEPS_NAN | ACC_UNTIL_ONE | ACC_SAVES_OUTPUT | ACC_TELLS_STEPS, \
		"input|x|self:point", w)
#define ACTIVATION(n, s, w) \
	UNARY(n, "activation", ACC_FEW, ACC_UNIT_SCALE | ACC_SAVES_OUTPUT | ACC_TELLS_STEPS, s, w)
#define STEPS(n, w) UNARY(n, "move", ACC_EXACT, 0, "input|x|self:flat", w)
const struct acc_op acc_ops_unary[] = {
	UNARY("neg Neg", "arithmetic", ACC_EXACT, ACC_KEEPS_NAN, "input|x|self:point", NEG),
	{.names = "abs Abs",
		.sig = "input|x|self:point",
		.of_complex = &acc_op_modulus,
		.cls = "arithmetic",
		.rounding = ACC_EXACT,
		.flags = ACC_KEEPS_NAN,
		.eval = unary,
		.cut = acc_cut_point,
		.which = ABS},
	UNARY("square Square", "arithmetic", ACC_ONCE, ACC_KEEPS_NAN, "input|x|self:point", SQUARE),
	STEPS("sign Sign", SIGN),
	ROW("sqrt Sqrt", SQRT),
	ROW("rsqrt Rsqrt", RSQRT),
	ROW("reciprocal Reciprocal Inv", RECIPROCAL),
	ROW("log Log", LOG),
	LOGARITHM("log2", LOG2),
	LOGARITHM("log10", LOG10),
	UNIT("exp Exp", EXP),
	UNIT("expm1 Expm1", EXPM1),
	UNIT("exp2", EXP2),
	UNIT("log1p Log1p", LOG1P),
	WAVE("sin Sin", SIN),
	WAVE("cos Cos", COS),
	WAVE("tan Tan", TAN),
	BOUND("asin Asin", ASIN),
	BOUND("acos ACos", ACOS),
	UNIT("atan Atan", ATAN),
	UNIT("sinh Sinh", SINH),
	UNIT("cosh Cosh", COSH),
	UNIT("asinh Asinh", ASINH),
	BOUND("acosh Acosh", ACOSH),
	BOUND("atanh Atanh", ATANH),
	UNIT("erf Erf", ERF),
	UNIT("erfc Erfc", ERFC),
	UNIT_OF("tanh Tanh", "activation", TANH),
	UNIT_OF("sigmoid Sigmoid", "activation", SIGMOID),
	ACTIVATION("logsigmoid LogSigmoid", "input:point", LOGSIGMOID),
	ACTIVATION("softplus Softplus", "input:point beta threshold", SOFTPLUS),
	UNARY("relu ReLU Relu", "activation", ACC_EXACT, 0, "input|x|self:point inplace", RELU),
	UNARY("relu6 ReLU6", "activation", ACC_EXACT, 0, "input|x:point inplace", RELU6),
	UNARY("hardtanh Hardtanh", "activation", ACC_EXACT, 0,
		"input:point min_val max_val inplace", HARDTANH),
	UNARY("leaky_relu LeakyReLU", "activation", ACC_ONCE, 0,
		"input|x:point negative_slope|alpha inplace", LEAKY),
	EXPONENTIAL("elu ELU Elu", "input:point alpha inplace", ELU),
	EXPONENTIAL("celu CELU CeLU", "input:point alpha inplace", CELU),
	EXPONENTIAL("selu SELU SeLU", "input:point inplace", SELU),
	ACTIVATION("silu npu_silu SiLU Silu SiLUActivation", "input|x:point inplace", SILU),
	{.names = "gelu npu_gelu Gelu GELU GeLU GELUActivation GELUTanh PytorchGELUTanh",
		.sig = "input|x|self:point approximate",
		.cls = "activation",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT | ACC_TELLS_STEPS | ACC_EVERY_STEP,
		.eval = unary,
		.cut = acc_cut_point,
		.terms = cube_terms,
		.which = GELU},
	ACTIVATION("fast_gelu npu_fast_gelu QuickGELUActivation", "input|x|self:point", QUICK_GELU),
	ACTIVATION("mish npu_mish Mish MishActivation", "input:point inplace", MISH),
	ACTIVATION("hardswish Hardswish HSwish", "input:point inplace", HARDSWISH),
	{.names = "hardsigmoid Hardsigmoid HSigmoid",
		.sig = "input:point inplace",
		.cls = "activation",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE | ACC_SAVES_OUTPUT | ACC_TELLS_STEPS,
		.eval = unary,
		.cut = acc_cut_point,
		.terms = sixth_terms,
		.which = HARDSIGMOID},
	UNARY("softsign Softsign", "activation", ACC_FEW, ACC_SAVES_OUTPUT | ACC_TELLS_STEPS,
		"input:point", SOFTSIGN),
	STEPS("floor Floor", FLOOR),
	STEPS("ceil Ceil", CEIL),
	STEPS("trunc Trunc", TRUNC),
	UNARY("frac", "move", ACC_EXACT, 0, "input|x|self:same", FRAC),
	UNARY("round Round", "move", ACC_EXACT, 0, "input:flat decimals", ROUND),
	STEPS("logical_not LogicalNot", LOGICAL_NOT),
	STEPS("isnan IsNan", ISNAN),
	STEPS("isinf IsInf", ISINF),
	STEPS("isfinite IsFinite", ISFINITE),
	{.names = NULL},
};
