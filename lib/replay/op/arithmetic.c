/* Arithmetic, comparison and logic of elements, with broadcasting. */
#include "replay/impl.h"

enum {
	ADD,
	SUB,
	RSUB,
	MUL,
	DIV,
	RDIV,
	POW,
	RPOW,
	MAXIMUM,
	MINIMUM,
	FMOD,
	REMAINDER,
	FLOOR_DIV,
	ATAN2,
	HYPOT,
	EQ,
	NE,
	LT,
	LE,
	GT,
	GE,
	AND,
	OR,
	XOR,
	BIT_AND,
	BIT_OR,
	BIT_XOR,
	SHL,
	SHR
};

/* A tensor, or a number as one. */
static int
operand(struct acc_replay *r, const char *name, struct acc_dense *number, double *value,
	const struct acc_dense **out)
{
	const struct acc_value *v = acc_arg(r, name);
	if (v != NULL && v->type == ACC_A_TENSOR)
		return acc_arg_tensor(r, name, out);
	int rc = acc_arg_float(r, name, value);
	if (rc == 0)
		return acc_cannot(r, "an operand was not recorded");
	*number = (struct acc_dense){
		.dtype = v != NULL && v->type == ACC_A_FLOAT ? ACC_F64 : ACC_I64,
		.n = 1,
		.v = value};
	*out = number;
	return rc;
}

static double
python_mod(double a, double b)
{
	double m = fmod(a, b);
	return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

/* What is left over is taken off before: then the quotient is exact. */
static double
floor_div(double a, double b)
{
	const double m = python_mod(a, b);
	return b == 0 || isinf(b) || isnan(m) ? floor(a / b) : nearbyint((a - m) / b);
}

static double
bits(int which, double a, double b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;
	switch (which) {
	case BIT_AND:
		return (double)(x & y);
	case BIT_OR:
		return (double)(x | y);
	case BIT_XOR:
		return (double)(x ^ y);
	case SHL:
		return y < 0 || y > 62 ? 0 : ldexp(a, (int)y);
	default:
		return y < 0 || y > 62 ? 0 : floor(ldexp(a, -(int)y));
	}
}

static double
compare(int which, double a, double b)
{
	switch (which) {
	case EQ:
		return a == b;
	case NE:
		return a != b;
	case LT:
		return a < b;
	case LE:
		return a <= b;
	case GT:
		return a > b;
	case GE:
		return a >= b;
	case AND:
		return a != 0 && b != 0;
	case OR:
		return a != 0 || b != 0;
	default:
		return (a != 0) != (b != 0); /* XOR */
	}
}

static double
apply(int which, double a, double b)
{
	switch (which) {
	case ADD:
		return a + b;
	case SUB:
		return a - b;
	case RSUB:
		return b - a;
	case MUL:
		return a * b;
	case DIV:
		return a / b;
	case RDIV:
		return b / a;
	case POW:
		return pow(a, b);
	case RPOW:
		return pow(b, a);
	case MAXIMUM:
		return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case MINIMUM:
		return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case FMOD:
		return fmod(a, b);
	case REMAINDER:
		return python_mod(a, b);
	case FLOOR_DIV:
		return floor_div(a, b);
	case ATAN2:
		return atan2(a, b);
	case HYPOT:
		return hypot(a, b);
	default:
		return which >= BIT_AND ? bits(which, a, b) : compare(which, a, b);
	}
}

static int
rounding_mode(struct acc_replay *r, double (**f)(double))
{
	struct acc_str mode = {"", 0};
	int rc = acc_arg_text(r, "rounding_mode", &mode);
	*f = acc_str_is(mode, "floor")              ? floor
	     : acc_str_is(mode, "trunc")            ? trunc
	     : rc == 0 && r->op->which == FLOOR_DIV ? floor
						    : NULL;
	return rc;
}

/* Runs in which each operand is one number, or as many as the output. */
static bool
fast(int which, struct acc_broadcast *b, const struct acc_dense *const *in, struct acc_dense *out)
{
	static const enum acc_audit_binary of[] = {[ADD] = ACC_AUDIT_ADD,
		[SUB] = ACC_AUDIT_SUB,
		[RSUB] = ACC_AUDIT_SUB,
		[MUL] = ACC_AUDIT_MUL,
		[DIV] = ACC_AUDIT_DIV,
		[RDIV] = ACC_AUDIT_DIV};
	if (which > RDIV)
		return false;
	size_t len = acc_broadcast_run(b);
	int first = which == RSUB || which == RDIV;
	for (size_t i = 0; i < out->n; i += len, acc_broadcast_skip(b))
		acc_audit_row()->binary(of[which], in[first]->v + b->at[first], b->each[first],
			in[1 - first]->v + b->at[1 - first], b->each[1 - first], len, out->v + i);
	return true;
}

/* A number may be rounded to the dtype before it is added, and of that much is left where it cancels; in 16
 * bits before it is multiplied with, or its reciprocal. */
static void
allow_number(struct acc_replay *r, int which, const struct acc_dense *const in[2],
	struct acc_dense *out)
{
	bool scales = which == MUL || which == DIV || which == RDIV;
	bool adds = which == ADD || which == SUB || which == RSUB;
	if (out->mag == NULL || !acc_is_float(out->dtype) ||
		(!adds && !acc_unit_low(acc_unit(out->dtype))))
		return;
	for (int k = 0; k < 2; k++) {
		/* An exponent's rounding, times the logarithm of what is raised to it. */
		const bool raises = which == POW && k == 1;
		/* What is single on both sides tells by its dtype whether it is no tensor. */
		if (in[k]->ndim > 0 || in[k]->n != 1 || (!scales && !adds && !raises) ||
			(out->ndim == 0 && in[k]->dtype != ACC_F64))
			continue;
		double v = in[k]->v[0], w = which == DIV ? 1 / v : v;
		if (acc_round_to(out->dtype, v) == v && acc_round_to(out->dtype, w) == w)
			continue;
		double step = acc_roundings(r, out->dtype);
		for (size_t i = 0; i < out->n; i++)
			out->mag[i] += step *
				       fabs(raises      ? out->v[i] == 0
								    ? 0
								    : out->v[i] * log(fabs(out->v[i]))
						    : scales ? out->v[i]
							: v);
	}
}

/* A quotient that is rounded before the step is taken may be on its other side. */
static double
step_near(const struct acc_dense *out, double a, double b)
{
	const double q = a / b, eps = acc_dtype_of(out->dtype)->eps, one = fabs(nearbyint(q) - q);
	const bool near = isinf(b) || one <= eps * fabs(q);
	return near && isfinite(q) ? 1 / acc_work_unit(acc_unit(out->dtype)) : 0;
}

/* fmod, remainder and quotients that are rounded jump: a number is what the framework's kernel takes it as, in the
 * tensor's dtype, in f32, or as it is. Of these the one that the recorded output fits. */
static void
choose_number(struct acc_replay *r, const struct acc_dense *out,
	const struct acc_dense *const in[2], double (*round)(double), double value[2])
{
	const int k = in[0]->v == &value[0] ? 0 : 1, which = r->op->which;
	const struct acc_dense *x = in[1 - k];
	const bool jumps = round != NULL || which == FMOD || which == REMAINDER;
	if (!jumps || in[k]->v != &value[k] || in[k]->dtype != ACC_F64 || x->n != out->n)
		return;
	const double own = value[k],
		     as[] = {acc_round_to(acc_is_float(x->dtype) ? x->dtype : ACC_F32, own),
			     (float)own, own};
	double best = INFINITY;
	for (size_t i = 0; i < 3 && r->guess == 0 && r->rec[0].v != NULL; i++) {
		double d = 0;
		for (size_t o = 0; o < out->n; o++) {
			const double a = k == 0 ? as[i] : x->v[o], b = k == 0 ? x->v[o] : as[i],
				     y = apply(which, a, b),
				     e = (round == NULL ? y : round(y)) - r->rec[0].v[o];
			d += isfinite(e) ? fabs(e) : 0;
		}
		if (d < best) {
			best = d;
			value[k] = as[i];
		}
	}
	if (r->guess != 0) /* the input is changed now */
		value[k] = r->guess;
	else if (r->rec[0].v != NULL && value[k] != 0)
		r->guess = value[k];
}

/* Whole numbers are cast to the dtype of the result, before anything is made of them. */
static bool
is_cast(const struct acc_dense *out, const struct acc_dense *in)
{
	return acc_is_float(out->dtype) && !acc_is_float(in->dtype);
}

static int
binary(struct acc_replay *r, struct acc_dense *out)
{
	struct acc_dense number[2];
	double value[2], alpha = 1;
	double (*round)(double) = NULL;
	const struct acc_dense *in[2];
	struct acc_broadcast b;
	int which = r->op->which;
	if (operand(r, "input", &number[0], &value[0], &in[0]) < 0 ||
		operand(r, "other", &number[1], &value[1], &in[1]) < 0 ||
		acc_arg_float(r, "alpha", &alpha) < 0 || rounding_mode(r, &round) < 0 ||
		acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	if (round == NULL && alpha == 1 && fast(which, &b, in, out)) {
		allow_number(r, which, in, out);
		return 0;
	}
	choose_number(r, out, in, round, value);
	if (!acc_is_float(out->dtype)) /* a factor of whole numbers is one */
		alpha = trunc(alpha);
	const bool cast[2] = {is_cast(out, in[0]), is_cast(out, in[1])};
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b)) {
		const double v[2] = {in[0]->v[b.at[0]], in[1]->v[b.at[1]]};
		const double a = cast[0] ? acc_round_to(out->dtype, v[0]) : v[0];
		double y = alpha * (cast[1] ? acc_round_to(out->dtype, v[1]) : v[1]),
		       x = apply(which, a, y);
		out->v[i] = round != NULL ? round(x) : x;
		/* Made of a quotient that overflows. */
		if ((which == FMOD || which == REMAINDER) && out->mag != NULL &&
			fabs(a / y) > acc_max_of(out->dtype) / 2 && r->rec[0].v != NULL &&
			!isfinite(r->rec[0].v[i]))
			out->mag[i] = INFINITY;
		if (round != NULL && out->mag != NULL && acc_is_float(out->dtype))
			out->mag[i] = step_near(out, a, y);
		if (alpha != 1 && out->mag != NULL) /* it may be rounded before it is added */
			out->mag[i] = acc_roundings(r, out->dtype) * fabs(y);
	}
	allow_number(r, which, in, out);
	return 0;
}

/* where(condition, a, b); lerp(a, b, weight); addcmul and addcdiv(a, b, c, value) */
enum { WHERE, LERP, ADDCMUL, ADDCDIV, CLAMP };

static double
three(int which, const double *x, double value)
{
	switch (which) {
	case WHERE:
		return x[0] != 0 ? x[1] : x[2];
	case LERP:
		return x[0] + x[2] * (x[1] - x[0]);
	case ADDCMUL:
		return x[0] + value * x[1] * x[2];
	case ADDCDIV:
		return x[0] + value * x[1] / x[2];
	default: /* of two bounds that cross, the upper one holds; NaN is handed on, of a bound, too */
		return isnan(x[0]) || isnan(x[1]) || isnan(x[2]) ? NAN
								 : fmin(fmax(x[0], x[1]), x[2]);
	}
}

/* Of what is added to the first. */
static double
added(int which, const double *x, double value)
{
	switch (which) {
	case LERP:
		return fabs(x[2]) * (fabs(x[0]) + fabs(x[1]));
	case ADDCMUL:
		return fabs(value * x[1] * x[2]);
	default:
		return fabs(value * x[1] / x[2]);
	}
}

static int
ternary(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const name[] = {"input", "a", "b"};
	struct acc_dense number[3];
	double value[3] = {0, -INFINITY, INFINITY}, scale = 1;
	const struct acc_dense *in[3];
	struct acc_broadcast b;
	int which = r->op->which;
	for (int k = 0; k < 3; k++) {
		bool open = which == CLAMP && k > 0 && acc_arg(r, name[k]) == NULL;
		number[k] = (struct acc_dense){.dtype = ACC_F64, .n = 1, .v = &value[k]};
		in[k] = &number[k];
		if (!open && operand(r, name[k], &number[k], &value[k], &in[k]) < 0)
			return ACC_EUNSUP;
	}
	if (which == WHERE && in[1]->dtype == ACC_BOOL && in[0]->dtype != ACC_BOOL) {
		const struct acc_dense *x = in[0]; /* x.where(condition, y) */
		in[0] = in[1];
		in[1] = x;
	}
	if (acc_arg_float(r, "value", &scale) < 0 || acc_broadcast_exact(r, &b, out, in, 3) < 0)
		return ACC_EUNSUP;
	if (!acc_is_float(out->dtype)) /* a factor of whole numbers is one */
		scale = trunc(scale);
	for (int k = 1; which == CLAMP && k < 3; k++) /* bounds are of the tensor's dtype */
		value[k] = acc_round_to(in[0]->dtype, value[k]);
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b)) {
		double x[3] = {in[0]->v[b.at[0]], in[1]->v[b.at[1]], in[2]->v[b.at[2]]};
		out->v[i] = three(which, x, scale);
		if (out->mag != NULL && which != WHERE && which != CLAMP)
			out->mag[i] = fabs(x[0]) + added(which, x, scale);
	}
	return 0;
}

#define BINARY(n, c, rnd, w) \
	{ \
		.names = n, \
		.sig = "input|x|self:point other|y|exponent:point alpha rounding_mode", .cls = c, \
		.rounding = rnd, .eval = binary, .which = w, .cut = acc_cut_point \
	}
/* Linear in both. */
#define LINEAR(n, w) \
	{ \
		.names = n, \
		.sig = "input|x|self:linear other|y|exponent:linear alpha rounding_mode", \
		.cls = "arithmetic", .rounding = ACC_ONCE, .flags = ACC_KEEPS_NAN, .eval = binary, \
		.which = w, .cut = acc_cut_point \
	}
/* x / y, of a y that was rounded: much, where it is small; and of squares that are lost, nobody knows. */
static double
length_terms(struct acc_replay *r, const struct acc_steep *at)
{
	const double x = at->x, slope = at->slope;
	const enum acc_dtype t = r->rec[0].dtype;
	if (x == 0 || slope == 0)
		return 0;
	return 2 * slope * slope / fabs(x) * acc_tiny_of(t) / acc_unit(t);
}

/* What is lost of a square that is divided by, in units of it: all where it, or one by it, is no number of the dtype. */
static double
lost(enum acc_dtype t, double square)
{
	const double least = acc_tiny_of(t), most = acc_max_of(t) / 2;
	return square > least && square < most && 1 / square < most ? least / square / acc_unit(t)
								    : INFINITY;
}

/* x / (x^2 + y^2), of squares that are rounded: to nothing, or beyond the largest. */
static double
angle_terms(struct acc_replay *r, const struct acc_steep *at)
{
	const enum acc_dtype t = r->rec[0].dtype;
	const double part = strcmp(at->name, "input") == 0 ? sin(at->y) : cos(at->y);
	const double length = at->x == 0 ? 1 / at->slope : at->x / part;
	if (at->x == 0 && fabs(at->slope) > 0x1p16) /* beside 0 */
		return INFINITY;
	return fabs(at->slope) * lost(t, length * length);
}

/* y x^(y-1), whose exponent was rounded. */
static double
power_terms(struct acc_replay *r, const struct acc_steep *at)
{
	if (strcmp(at->name, "input") != 0) /* y log(x), each of which was rounded */
		return 2 * fabs(at->slope);
	if (!(at->x > 0) || at->y == 0)
		return 0;
	const enum acc_dtype t = r->rec[0].dtype;
	const double off = fabs((at->slope * at->x / at->y - 1) * log(at->x));
	const double power = log(fabs(at->y)) - log(at->x) + 2 * acc_unit(t) * off;
	return power < log(acc_max_of(t) / 2) ? fabs(at->slope) * off : INFINITY;
}

/* a / b^2, of a square that is rounded: to nothing, where it is small. */
static double
square_terms(struct acc_replay *r, const struct acc_steep *at)
{
	return fabs(at->slope) * (1 + lost(r->rec[0].dtype, at->x * at->x));
}

/* What is moved and leaves the result where it was itself is next to a bound, or to what it bounds:
 * either side's slope is right. */
static double
bound_terms(struct acc_replay *r, const struct acc_steep *at)
{
	(void)r;
	return at->y == at->x ? INFINITY : 0;
}

/* The slope along the first is 1. */
#define JUMPS(n, w) \
	{ \
		.names = n, .sig = "input|x|self:same other|y|exponent:point", \
		.cls = "arithmetic", .rounding = ACC_ONCE, .flags = ACC_STEPS, .eval = binary, \
		.which = w, .cut = acc_cut_point \
	}
#define TERMS(n, w, f) \
	{ \
		.names = n, \
		.sig = "input|x|self:point other|y|exponent:point alpha rounding_mode", \
		.cls = "function", .rounding = ACC_FEW, .eval = binary, .which = w, \
		.cut = acc_cut_point, .terms = f \
	}
#define QUOTIENT(n, w) \
	{ \
		.names = n, \
		.sig = "input|x|self:point other|y|exponent:point alpha rounding_mode", \
		.cls = "arithmetic", .rounding = ACC_ONCE, .flags = ACC_KEEPS_NAN, .eval = binary, \
		.which = w, .cut = acc_cut_point \
	}
#define EXACT(n, w) BINARY(n, "arithmetic", ACC_EXACT, w)
const struct acc_op acc_ops_arithmetic[] = {
	LINEAR("add iadd Add TensorAdd", ADD),
	LINEAR("sub isub Sub", SUB),
	LINEAR("rsub", RSUB),
	LINEAR("mul imul Mul", MUL),
	QUOTIENT("div idiv truediv Div RealDiv", DIV),
	QUOTIENT("rdiv", RDIV),
	TERMS("pow ipow Pow", POW, power_terms),
	BINARY("rpow", "function", ACC_FEW, RPOW),
	EXACT("maximum Maximum", MAXIMUM),
	EXACT("minimum Minimum", MINIMUM),
	JUMPS("fmod", FMOD),
	JUMPS("remainder imod FloorMod", REMAINDER),
	BINARY("floor_divide ifloordiv FloorDiv", "arithmetic", ACC_ONCE, FLOOR_DIV),
	TERMS("atan2 Atan2", ATAN2, angle_terms),
	TERMS("hypot Hypot", HYPOT, length_terms),
	EXACT("eq Equal", EQ),
	EXACT("ne NotEqual", NE),
	EXACT("lt Less", LT),
	EXACT("le LessEqual", LE),
	EXACT("gt Greater", GT),
	EXACT("ge GreaterEqual", GE),
	EXACT("logical_and LogicalAnd", AND),
	EXACT("logical_or LogicalOr", OR),
	EXACT("logical_xor LogicalXor", XOR),
	EXACT("bitwise_and iand", BIT_AND),
	EXACT("bitwise_or ior", BIT_OR),
	EXACT("bitwise_xor ixor", BIT_XOR),
	EXACT("bitwise_left_shift ilshift", SHL),
	EXACT("bitwise_right_shift irshift", SHR),
	{.names = "where Select",
		.sig = "input|condition a|x|input|self:point b|y|other:point",
		.of_one = "nonzero",
		.cls = "move",
		.rounding = ACC_EXACT,
		.eval = ternary,
		.cut = acc_cut_point,
		.which = WHERE},
	{.names = "lerp Lerp",
		.sig = "input:point a|end:point b|weight:point",
		.cls = "arithmetic",
		.rounding = ACC_FEW,
		.eval = ternary,
		.cut = acc_cut_point,
		.which = LERP},
	{.names = "addcmul Addcmul",
		.sig = "input:linear a|tensor1:linear b|tensor2:linear value",
		.cls = "arithmetic",
		.rounding = ACC_FEW,
		.eval = ternary,
		.cut = acc_cut_point,
		.which = ADDCMUL},
	{.names = "addcdiv Addcdiv",
		.sig = "input:linear a|tensor1:linear b|tensor2:point value",
		.cls = "arithmetic",
		.rounding = ACC_FEW,
		.eval = ternary,
		.cut = acc_cut_point,
		.terms = square_terms,
		.which = ADDCDIV},
	{.names = "clamp",
		.sig = "input:point a|min:point b|max:point",
		.cls = "arithmetic",
		.rounding = ACC_EXACT,
		.eval = ternary,
		.cut = acc_cut_point,
		.terms = bound_terms,
		.which = CLAMP},
	{.names = NULL},
};
