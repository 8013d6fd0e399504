/* Operators that draw numbers, as far as the result shows whether they did what they should. */
#include "replay/impl.h"

/* What is smaller than this was zero before it was changed to see what the output does. */
static double
small(const struct acc_dense *x)
{
	double sum = 0;
	for (size_t i = 0; i < x->n; i++)
		sum += isfinite(x->v[i]) ? x->v[i] * x->v[i] : 0;
	return x->n == 0 ? 0 : 0x1p-14 * sqrt(sum / (double)x->n);
}

/* Every element is zero, or scaled by 1 / (1 - p): so what was drawn is seen in the output, and
 * the gradient is that of the same elements. */
static int
dropout(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	double p = 0.5;
	bool training = true;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_float(r, "p", &p) < 0 ||
		acc_arg_bool(r, "training", &training) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (r->module || (acc_str_is(r->name, "native_dropout") && acc_arg(r, "training") == NULL))
		return acc_cannot(r, "its probability was not recorded");
	const double *rec = r->rec[0].v;
	if (training && p > 0 && rec == NULL)
		return acc_cannot(r, "random");
	/* Of a zero, nobody knows whether it was dropped: its gradient is not told. */
	double unknown = out->mag == NULL && training && p > 0 && p < 1 ? small(x) : 0;
	size_t dropped = 0, alive = 0;
	for (size_t i = 0; i < x->n; i++) {
		bool drop = training && (p >= 1 || (p > 0 && rec[i] == 0));
		out->v[i] = drop ? 0 : x->v[i] / (training ? 1 - p : 1);
		if (fabs(x->v[i]) < unknown) {
			out->v[i] = drop ? NAN : out->v[i];
			continue;
		}
		dropped += drop && x->v[i] != 0;
		alive += x->v[i] != 0;
	}
	/* More than chance drops: then nothing is known of what was drawn. */
	double mean = p * (double)alive, sd = sqrt(mean * (1 - p));
	if (training && p > 0 && p < 1 && fabs((double)dropped - mean) > 8 * sd + 1)
		for (size_t i = 0; i < x->n; i++)
			out->v[i] = x->v[i] / (1 - p);
	return 0;
}

const struct acc_op acc_ops_random[] = {
	{.names = "dropout npu_dropout native_dropout",
		.sig = "input:point p training|train inplace",
		.cls = "arithmetic",
		.rounding = ACC_ONCE,
		.eval = dropout,
		.cut = acc_cut_point},
	{.names = NULL},
};
