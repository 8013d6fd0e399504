/* Arithmetic of elements, with broadcasting. */
#include "replay/impl.h"

enum { ADD, SUB, RSUB, MUL, DIV, RDIV };

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
	*number = (struct acc_dense){.dtype = ACC_NODTYPE, .n = 1, .v = value};
	*out = number;
	return rc;
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
	default:
		return b / a;
	}
}

static int
binary(struct acc_replay *r, struct acc_dense *out)
{
	struct acc_dense number[2];
	double value[2], alpha = 1;
	const struct acc_dense *in[2];
	struct acc_broadcast b;
	if (operand(r, "input", &number[0], &value[0], &in[0]) < 0 ||
		operand(r, "other", &number[1], &value[1], &in[1]) < 0 ||
		acc_arg_float(r, "alpha", &alpha) < 0)
		return ACC_EUNSUP;
	if (acc_broadcast_exact(r, &b, out, in, 2) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++, acc_broadcast_next(&b))
		out->v[i] = apply(r->op->which, in[0]->v[b.at[0]], alpha * in[1]->v[b.at[1]]);
	return 0;
}

#define BINARY(n, w)                                                                     \
	{.names = n, .sig = "input|x:point other|y:point alpha", .cls = "arithmetic",    \
		.rounding = ACC_ONCE, .eval = binary, .which = w}
const struct acc_op acc_ops_arithmetic[] = {
	BINARY("add iadd radd", ADD),
	BINARY("sub isub subtract", SUB),
	BINARY("rsub", RSUB),
	BINARY("mul imul rmul multiply", MUL),
	BINARY("div idiv truediv itruediv true_divide divide", DIV),
	BINARY("rdiv rtruediv", RDIV),
	{.names = NULL},
};
