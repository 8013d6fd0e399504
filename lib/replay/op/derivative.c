/* Derivatives that are operators of their own, as ATen's backward calls them: the gradient of the
 * output, and what the forward operator saved. */
#include "replay/compose.h"
#include "replay/impl.h"

enum { THRESHOLD, SIGMOID, TANH, GELU, SILU, LEAKY };

struct numbers {
	double a;
	bool tanh;
};

static double
gelu(double x, bool by_tanh)
{
	const double k = 0.7978845608028654, c = 0.044715;
	if (by_tanh) {
		double t = tanh(k * (x + c * x * x * x));
		return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x);
	}
	return 0.5 * erfc(-x * 0.7071067811865476) + x * exp(-0.5 * x * x) * 0.3989422804014327;
}

/* What the gradient is multiplied with, of the input or (sigmoid, tanh) the output. */
static double
slope(int which, double x, const struct numbers *k)
{
	double s = 1 / (1 + exp(-x));
	switch (which) {
	case THRESHOLD:
		return x <= k->a ? 0 : 1;
	case SIGMOID:
		return x * (1 - x);
	case TANH:
		return 1 - x * x;
	case GELU:
		return gelu(x, k->tanh);
	case SILU:
		return s * (1 + x * (1 - s));
	default: /* LEAKY */
		return x > 0 ? 1 : k->a;
	}
}

static int
pointwise(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *g, *x;
	struct acc_str how = {"", 0};
	struct numbers k = {0, false};
	int which = r->op->which;
	if (acc_need_tensor(r, "grad", &g) < 0 || acc_need_tensor(r, "self", &x) < 0 ||
		acc_arg_text(r, "approximate", &how) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (g->n != x->n)
		return acc_cannot(r, "its inputs do not fit each other");
	if ((which == THRESHOLD || which == LEAKY) && acc_arg_float(r, "number", &k.a) <= 0)
		return acc_cannot(r, "its threshold was not recorded");
	k.tanh = acc_str_is(how, "tanh");
	for (size_t i = 0; i < x->n; i++) {
		double d = slope(which, x->v[i], &k);
		out->v[i] = d == 0 && which == THRESHOLD ? 0 : g->v[i] * d;
		if (out->mag != NULL && which != THRESHOLD && which != LEAKY)
			out->mag[i] = fabs(g->v[i]) * (isfinite(x->v[i]) ? 1 + fabs(x->v[i]) : 1);
	}
	return 0;
}

/* y (g - sum g y), and g - exp(y) sum g for the logarithm, along a dimension */
static int
softmax(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *g, *y;
	uint32_t dim;
	size_t inner = 1;
	bool log_of = r->op->which;
	if (acc_need_tensor(r, "grad", &g) < 0 || acc_need_tensor(r, "output", &y) < 0 ||
		acc_arg_dim(r, "dim", y->ndim, -1, &dim) < 0 ||
		acc_out_shape(r, out, y->shape, y->ndim) < 0)
		return ACC_EUNSUP;
	size_t len = y->ndim == 0 ? 1 : (size_t)y->shape[dim];
	if (g->n != y->n)
		return acc_cannot(r, "its inputs do not fit each other");
	for (uint32_t d = dim + 1; d < y->ndim; d++)
		inner *= (size_t)y->shape[d];
	for (size_t i = 0; i < y->n; i++) {
		size_t first = i / (len * inner) * len * inner + i % inner;
		double sum = 0, abs = 0;
		if (i != first) /* its row was done */
			continue;
		for (size_t k = first; k < first + len * inner; k += inner) {
			double term = log_of ? g->v[k] : g->v[k] * y->v[k];
			sum += term;
			abs += fabs(term);
		}
		for (size_t k = first; k < first + len * inner; k += inner) {
			double e = log_of ? exp(y->v[k]) : y->v[k];
			out->v[k] = log_of ? g->v[k] - e * sum : e * (g->v[k] - sum);
			if (out->mag != NULL) /* exp grows with what its argument was rounded by */
				out->mag[k] = log_of ? fabs(g->v[k]) + e * abs * (1 + fabs(y->v[k]))
						     : e * (fabs(g->v[k]) + abs);
		}
	}
	return 0;
}

/* Rows of the gradient, summed up by the index they were taken from. */
static int
embedding(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *g, *ids;
	int64_t n = 0, padding = -1;
	bool by_freq = false;
	if (acc_need_tensor(r, "grad", &g) < 0 || acc_need_tensor(r, "indices", &ids) < 0 ||
		acc_arg_int(r, "num_weights", &n) < 0 ||
		acc_arg_int(r, "padding_idx", &padding) < 0 ||
		acc_arg_bool(r, "scale_grad_by_freq", &by_freq) < 0)
		return ACC_EUNSUP;
	if (by_freq || ids->n == 0 || g->ndim == 0)
		return acc_cannot(r, "rows that are scaled");
	size_t len = g->n / ids->n;
	if (acc_out_shape(r, out, (int64_t[]){n, g->shape[g->ndim - 1]}, 2) < 0)
		return ACC_EUNSUP;
	if (len != (size_t)g->shape[g->ndim - 1] || len * ids->n != g->n)
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < out->n; i++)
		out->v[i] = 0;
	double step = acc_roundings(r, out->dtype);
	for (size_t i = 0; i < ids->n; i++) {
		if (!(ids->v[i] >= 0 && ids->v[i] < (double)n))
			return acc_cannot(r, "an index outside of its input");
		for (size_t k = 0; k < len && ids->v[i] != (double)padding; k++) {
			size_t at = (size_t)ids->v[i] * len + k;
			bool first = out->v[at] == 0;
			out->v[at] += g->v[i * len + k];
			if (out->mag != NULL) /* atomic additions round each time */
				out->mag[at] += fabs(g->v[i * len + k]) +
						(first ? 0 : step * fabs(out->v[at]));
		}
	}
	return 0;
}

/* The gradient in its place in zeros: of a slice, or of one place of a dimension. */
static int
slice(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *g;
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t n;
	if (acc_need_tensor(r, "grad", &g) < 0 ||
		acc_arg_ints(r, "sizes", shape, ACC_DENSE_DIMS, &n) <= 0)
		return acc_cannot(r, "its shape was not recorded");
	if (acc_out_shape(r, out, shape, n) < 0)
		return ACC_EUNSUP;
	struct acc_dense zeros;
	if (acc_between(r, out->dtype, out->shape, out->ndim, false, &zeros) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < zeros.n; i++)
		zeros.v[i] = 0;
	struct acc_value *in = acc_alloc(r->mem, (r->nin + 1) * sizeof *in);
	if (in == NULL || r->nin < 3)
		return acc_cannot(r, "an argument is not understood");
	memcpy(in + 2, r->in + 2, (r->nin - 2) * sizeof *in);
	in[0] = acc_of_tensor(&zeros);
	in[1] = acc_of_tensor(g);
	struct acc_part p = {.name = r->op->which ? "select_scatter" : "slice_scatter",
		.in = in,
		.nin = r->nin,
		.nout = 1};
	return acc_compose(r, &p, out);
}

#define ROW(n, s, c, rnd, f, w) \
	{ \
		.names = n, .sig = s, .cls = c, .rounding = rnd, .eval = f, .which = w \
	}
#define SLOPE(n, more, rnd, w) \
	ROW(n, "grad|grad_output self|output|result " more, "activation", rnd, pointwise, w)
const struct acc_op acc_ops_derivative[] = {
	SLOPE("threshold_backward", "number|threshold", ACC_EXACT, THRESHOLD),
	SLOPE("leaky_relu_backward", "number|negative_slope", ACC_ONCE, LEAKY),
	SLOPE("sigmoid_backward", "", ACC_FEW, SIGMOID),
	SLOPE("tanh_backward", "", ACC_FEW, TANH),
	SLOPE("gelu_backward", "approximate", ACC_FEW, GELU),
	SLOPE("silu_backward npu_silu_backward", "", ACC_FEW, SILU),
	ROW("softmax_backward_data", "grad|grad_output output dim", "softmax", ACC_FEW, softmax, 0),
	ROW("log_softmax_backward_data", "grad|grad_output output dim", "softmax", ACC_FEW, softmax,
		1),
	ROW("embedding_dense_backward",
		"grad|grad_output indices num_weights padding_idx "
		"scale_grad_by_freq",
		"reduce", ACC_FEW, embedding, 0),
	ROW("slice_backward", "grad|grad_output sizes|input_sizes", "move", ACC_EXACT, slice, 0),
	ROW("select_backward", "grad|grad_output sizes|input_sizes", "move", ACC_EXACT, slice, 1),
	{.names = NULL},
};
