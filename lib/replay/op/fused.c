/* Operators of torch_npu and MindSpore that are several in one.
 *
 * Sources: the documentation of torch_npu; what msprobe runs in their place on a CPU. */
#include "replay/compose.h"
#include "replay/impl.h"

/* --- a sum, and a norm of it --- */

enum { ADD_RMS, ADD_LAYER, DEEP };

/* Which output is what; -1: there is none. */
struct positions {
	const char *norm;
	int y, mean, rstd, sum;
};
static const struct positions add_norm_positions[] = {
	[ADD_RMS] = {"npu_rms_norm", 0, -1, 1, 2},
	[ADD_LAYER] = {"LayerNorm", 0, 1, 2, 3},
	[DEEP] = {"LayerNorm", 2, 0, 1, -1},
};

/* alpha x1 + x2 */
static int
sum_of(struct acc_replay *r, bool mag, struct acc_dense *sum)
{
	const struct acc_dense *a, *b;
	double alpha = 1;
	if (acc_need_tensor(r, "x1", &a) < 0 || acc_need_tensor(r, "x2", &b) < 0)
		return ACC_EUNSUP;
	if (r->op->which == DEEP) {
		alpha = 0.3;
		if (acc_arg_float(r, "alpha", &alpha) < 0)
			return ACC_EUNSUP;
	}
	if (a->n != b->n)
		return acc_cannot(r, "inputs that are broadcast");
	if (acc_between(r, a->dtype, a->shape, a->ndim, mag, sum) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < a->n; i++) {
		sum->v[i] = alpha * a->v[i] + b->v[i];
		if (mag)
			sum->mag[i] = fabs(alpha * a->v[i]) + fabs(b->v[i]);
	}
	return 0;
}

static int
add_norm(struct acc_replay *r, struct acc_dense *out)
{
	const struct positions *at = &add_norm_positions[r->op->which];
	const struct acc_dense *gamma, *beta = NULL;
	struct acc_dense sum, part[3];
	double eps = r->op->which == ADD_LAYER ? 1e-5 : 1e-6;
	uint32_t n = 0;
	bool mag = out[0].mag != NULL;
	if (sum_of(r, mag, &sum) < 0 || acc_need_tensor(r, "gamma", &gamma) < 0 ||
		acc_arg_tensor(r, "beta", &beta) < 0 || acc_arg_float(r, "eps", &eps) < 0)
		return ACC_EUNSUP;
	if (r->nrec <= (uint32_t)at->y)
		return acc_cannot(r, "outputs that are not understood");
	part[n++] = out[at->y];
	if (at->mean >= 0 && r->nrec > (uint32_t)at->mean)
		part[n++] = out[at->mean];
	if (at->rstd >= 0 && r->nrec > (uint32_t)at->rstd)
		part[n++] = out[at->rstd];
	struct acc_value in[3] = {acc_of_tensor(&sum), acc_of_tensor(gamma), {.type = ACC_A_NONE}};
	struct acc_value kw = acc_named("eps", acc_of_float(eps));
	if (beta != NULL)
		in[2] = acc_of_tensor(beta);
	struct acc_part p = {.name = at->norm,
		.in = in,
		.kw = &kw,
		.nin = beta == NULL ? 2 : 3,
		.nkw = 1,
		.nout = n};
	if (acc_compose(r, &p, part) < 0)
		return ACC_EUNSUP;
	/* The sum may be rounded first. */
	for (size_t i = 0; mag && i < part[0].n; i++)
		part[0].mag[i] += acc_roundings(r, part[0].dtype) * fabs(part[0].v[i]);
	if (at->sum < 0 || r->nrec <= (uint32_t)at->sum)
		return 0;
	struct acc_dense *s = &out[at->sum];
	if (acc_out_shape(r, s, sum.shape, sum.ndim) < 0)
		return s->n == 0 ? 0 : ACC_EUNSUP;
	memcpy(s->v, sum.v, sum.n * sizeof *s->v);
	return 0;
}

/* --- group norm, then silu --- */

static int
group_norm_silu(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *w = NULL, *b = NULL;
	int64_t group;
	double eps = 1e-5;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_tensor(r, "weight", &w) < 0 ||
		acc_arg_tensor(r, "bias", &b) < 0 || acc_arg_float(r, "eps", &eps) < 0)
		return ACC_EUNSUP;
	if (acc_arg_int(r, "group", &group) <= 0)
		return acc_cannot(r, "its number of groups was not recorded");
	struct acc_value none = {.type = ACC_A_NONE},
			 in[] = {acc_of_tensor(x), w == NULL ? none : acc_of_tensor(w),
				 b == NULL ? none : acc_of_tensor(b), none, none, none,
				 acc_of_int(group), acc_of_float(eps)};
	struct acc_part p = {.name = "native_group_norm", .in = in, .nin = 8, .nout = r->nrec};
	if (acc_compose(r, &p, out) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out[0].n; i++) {
		double y = out[0].v[i];
		out[0].v[i] = y / (1 + exp(-y));
	}
	return 0;
}

/* --- half of a tensor times gelu of the other half --- */

static int
geglu(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	uint32_t dim;
	int64_t tanh_form = 1;
	bool left = false;
	size_t inner = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_dim(r, "dim", x->ndim, -1, &dim) < 0 ||
		acc_arg_int(r, "approximate", &tanh_form) < 0 ||
		acc_arg_bool(r, "activate_left", &left) < 0)
		return ACC_EUNSUP;
	struct acc_dense half = *x;
	if (x->ndim == 0 || x->shape[dim] % 2 != 0 || r->nrec > 2)
		return acc_cannot(r, "its input has no halves");
	half.shape[dim] /= 2;
	half.n = x->n / 2;
	for (uint32_t d = dim; d < x->ndim; d++)
		inner *= (size_t)half.shape[d];
	struct acc_dense gate, act;
	for (uint32_t k = 0; k < r->nrec; k++)
		if (acc_out_shape(r, &out[k], half.shape, x->ndim) < 0)
			return ACC_EUNSUP;
	if (acc_between(r, x->dtype, half.shape, x->ndim, false, &gate) < 0 ||
		acc_between(r, x->dtype, half.shape, x->ndim, out[0].mag != NULL, &act) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < gate.n; i++)
		gate.v[i] = x->v[i / inner * 2 * inner + i % inner + (left ? 0 : inner)];
	struct acc_value in[] = {acc_of_tensor(&gate),
		{.type = ACC_A_TEXT, .s = acc_str(tanh_form ? "tanh" : "none")}};
	struct acc_part p = {.name = "gelu", .in = in, .nin = 2, .nout = 1};
	if (acc_compose(r, &p, &act) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < act.n; i++) {
		double up = x->v[i / inner * 2 * inner + i % inner + (left ? inner : 0)];
		out[0].v[i] = up * act.v[i];
		if (out[0].mag != NULL) /* the activation may be rounded first */
			out[0].mag[i] = fabs(up) * (act.mag[i] + acc_roundings(r, out[0].dtype) *
									 fabs(act.v[i]));
		if (r->nrec > 1)
			out[1].v[i] = act.v[i];
		if (r->nrec > 1 && out[1].mag != NULL)
			out[1].mag[i] = act.mag[i];
	}
	return 0;
}

/* --- cross entropy with given probabilities: a loss for each row, perhaps its gradient --- */

static int
soft_cross_entropy(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *t;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "labels", &t) < 0)
		return ACC_EUNSUP;
	if (x->ndim != 2 || t->n != x->n || r->nrec > 2)
		return acc_cannot(r, "its inputs do not fit each other");
	size_t n = (size_t)x->shape[1];
	if (acc_out_shape(r, &out[0], x->shape, 1) < 0 ||
		(r->nrec > 1 && acc_out_shape(r, &out[1], x->shape, 2) < 0))
		return ACC_EUNSUP;
	for (size_t o = 0; o < out[0].n; o++) {
		const double *row = x->v + o * n, *p = t->v + o * n;
		double top = -INFINITY, sum = 0, loss = 0, abs = 0;
		for (size_t i = 0; i < n; i++)
			top = isnan(row[i]) || row[i] > top ? row[i] : top;
		for (size_t i = 0; i < n; i++)
			sum += exp(row[i] - top);
		for (size_t i = 0; i < n; i++) {
			double term = p[i] * (log(sum) - (row[i] - top));
			loss += term;
			abs += fabs(p[i]) * (fabs(log(sum)) + fabs(row[i]) + fabs(top) + 1);
			if (r->nrec < 2)
				continue;
			out[1].v[o * n + i] = exp(row[i] - top) / sum - p[i];
			if (out[1].mag != NULL)
				out[1].mag[o * n + i] = 1;
		}
		out[0].v[o] = loss;
		if (out[0].mag != NULL)
			out[0].mag[o] = abs;
	}
	return 0;
}

/* --- experts --- */

/* The k largest of the softmax of each row; which they are; and in which row of all that were
 * chosen, counted by columns, each stands. */
static int
gating(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct acc_dense soft, part[2];
	int64_t k;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (acc_arg_int(r, "k", &k) <= 0 || acc_arg(r, "finished") != NULL || r->nrec < 2 ||
		r->nrec > 3 || x->ndim == 0)
		return acc_cannot(r, "an argument is not understood");
	if (acc_between(r, x->dtype, x->shape, x->ndim, out[0].mag != NULL, &soft) < 0)
		return ACC_EUNSUP;
	struct acc_value in[] = {acc_of_tensor(x), acc_of_int(-1)};
	struct acc_part p = {.name = "softmax", .in = in, .nin = 2, .nout = 1};
	if (acc_compose(r, &p, &soft) < 0)
		return ACC_EUNSUP;
	/* What is rounded before it is compared may be equal then. */
	for (size_t i = 0; i < soft.n; i++)
		soft.v[i] = acc_round_to(out[0].dtype, soft.v[i]);
	struct acc_value top[] = {acc_of_tensor(&soft), acc_of_int(k)};
	struct acc_part q = {.name = "topk", .in = top, .nin = 2, .rec = r->rec, .nout = 2};
	part[0] = out[0];
	part[1] = out[1];
	if (acc_compose(r, &q, part) < 0)
		return ACC_EUNSUP;
	size_t rows = k <= 0 ? 0 : out[0].n / (size_t)k;
	for (size_t i = 0; r->nrec > 2 && i < out[2].n && rows > 0; i++) {
		size_t row = i / (size_t)k, choice = i % (size_t)k;
		out[2].v[i] = (double)(choice * rows + row);
	}
	return r->nrec > 2 ? acc_out_shape(r, &out[2], out[0].shape, out[0].ndim) : 0;
}

/* Tokens in the order of the experts they are for: token i / k for the i-th choice; and where each
 * choice went. */
static int
permute_tokens(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *ids;
	bool padded = false;
	int64_t most = 0;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "indices", &ids) < 0 ||
		acc_arg_bool(r, "padded_mode", &padded) < 0 ||
		acc_arg_int(r, "num_out_tokens", &most) < 0)
		return ACC_EUNSUP;
	size_t k = ids->ndim == 2 ? (size_t)ids->shape[1] : 1, n = ids->n;
	if (padded || x->ndim != 2 || k == 0 || n / k != (size_t)x->shape[0] || r->nrec > 2)
		return acc_cannot(r, "an argument is not understood");
	size_t len = (size_t)x->shape[1], keep = most > 0 && (size_t)most < n    ? (size_t)most
						 : most < 0 && (size_t)-most < n ? n - (size_t)-most
										 : n;
	struct acc_dense order, flat = *ids;
	flat.ndim = 1;
	flat.shape[0] = (int64_t)n;
	if (acc_between(r, ACC_I64, flat.shape, 1, false, &order) < 0)
		return ACC_EUNSUP;
	struct acc_value in[] = {acc_of_tensor(&flat)};
	struct acc_part p = {.name = "argsort", .in = in, .nin = 1, .nout = 1};
	if (acc_compose(r, &p, &order) < 0 ||
		acc_out_shape(r, &out[0], (int64_t[]){(int64_t)keep, (int64_t)len}, 2) < 0 ||
		(r->nrec > 1 && acc_out_shape(r, &out[1], flat.shape, 1) < 0))
		return ACC_EUNSUP;
	for (size_t o = 0; o < n; o++) {
		size_t choice = (size_t)order.v[o];
		if (o < keep)
			memcpy(out[0].v + o * len, x->v + choice / k * len, len * sizeof *x->v);
		if (r->nrec > 1)
			out[1].v[choice] = (double)o;
	}
	return 0;
}

/* The reverse: each token is the sum of its choices, weighted by their probabilities. */
static int
unpermute_tokens(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *at, *probs = NULL;
	bool padded = false;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "indices", &at) < 0 ||
		acc_arg_tensor(r, "probs", &probs) < 0 ||
		acc_arg_bool(r, "padded_mode", &padded) < 0)
		return ACC_EUNSUP;
	size_t k = probs != NULL && probs->ndim == 2 ? (size_t)probs->shape[1] : 1;
	if (padded || x->ndim != 2 || k == 0 || (probs != NULL && probs->n != at->n))
		return acc_cannot(r, "an argument is not understood");
	size_t len = (size_t)x->shape[1], rows = at->n / k;
	if (acc_out_shape(r, out, (int64_t[]){(int64_t)rows, (int64_t)len}, 2) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < rows * len; i++) {
		double sum = 0, abs = 0;
		for (size_t c = i / len * k; c < (i / len + 1) * k; c++) {
			if (!(at->v[c] >= 0))
				return acc_cannot(r, "an index outside of its input");
			if (at->v[c] >= (double)x->shape[0])
				continue; /* it was dropped */
			double v = x->v[(size_t)at->v[c] * len + i % len];
			v *= probs == NULL ? 1 : probs->v[c];
			sum += v;
			abs += fabs(v);
		}
		out->v[i] = sum;
		if (out->mag != NULL)
			out->mag[i] = k > 1 ? abs : 0;
	}
	return 0;
}

/* --- products of groups of rows --- */

/* Where each group of rows ends: group_list, of ends or (type 1) of sizes. */
static int
group_ends(struct acc_replay *r, uint32_t n, int64_t rows, int64_t *end)
{
	int64_t type = 0, at = 0;
	const struct acc_value *v = acc_arg(r, "group_list");
	const struct acc_dense *t = NULL;
	uint32_t got = 0;
	if (acc_arg_int(r, "group_list_type", &type) < 0 || v == NULL)
		return acc_cannot(r, "its groups were not recorded");
	if (v->type == ACC_A_TENSOR) {
		if (acc_need_tensor(r, "group_list", &t) < 0)
			return ACC_EUNSUP;
		for (; got < n && got < t->n; got++)
			end[got] = fabs(t->v[got]) < 0x1p40 ? (int64_t)t->v[got] : -1;
	} else if (acc_arg_ints(r, "group_list", end, n, &got) < 0) {
		return ACC_EUNSUP;
	}
	for (uint32_t k = 0; k < got; k++) {
		int64_t to = type == 1 ? at + end[k] : end[k];
		if (end[k] < 0 || end[k] > rows || to < at || to > rows)
			return acc_cannot(r, "its groups do not fit its input");
		end[k] = at = to;
	}
	return got == n && type <= 1 ? 0 : acc_cannot(r, "its groups do not fit its input");
}

/* Rows [from, to) of x times one weight, into the same rows of out. */
static int
group_product(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *w,
	const struct acc_dense *bias, int64_t from, int64_t to, struct acc_dense *out)
{
	struct acc_dense rows = *x, part = *out;
	rows.shape[0] = part.shape[0] = to - from;
	rows.n = (size_t)((to - from) * x->shape[1]);
	part.n = (size_t)((to - from) * out->shape[1]);
	rows.v += from * x->shape[1];
	part.v += from * out->shape[1];
	if (part.mag != NULL)
		part.mag += from * out->shape[1];
	if (w->ndim != 2 || w->shape[1] != out->shape[1])
		return acc_cannot(r, "its inputs do not fit each other");
	struct acc_value in[] = {acc_of_tensor(&rows), acc_of_tensor(w)};
	struct acc_part p = {.name = "matmul", .in = in, .nin = 2, .nout = 1};
	if (acc_compose(r, &p, &part) < 0)
		return ACC_EUNSUP;
	if (bias != NULL && bias->n != (size_t)out->shape[1])
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; bias != NULL && i < part.n; i++)
		part.v[i] += bias->v[i % bias->n];
	return 0;
}

/* A weight of each group: a list of them, or one tensor of all. */
static int
weight_of(struct acc_replay *r, uint32_t k, struct acc_dense *w)
{
	const struct acc_dense *t;
	uint32_t n = acc_arg_count(r, "weight");
	if (acc_arg_item(r, "weight", n == 1 ? 0 : k, &t) <= 0)
		return acc_cannot(r, "its weights were not recorded");
	*w = *t;
	if (n > 1 || t->ndim == 2)
		return 0;
	if (t->ndim != 3 || (int64_t)k >= t->shape[0])
		return acc_cannot(r, "its inputs do not fit each other");
	*w = (struct acc_dense){.dtype = t->dtype,
		.ndim = 2,
		.shape = {t->shape[1], t->shape[2]},
		.n = t->n / (size_t)t->shape[0]};
	w->v = t->v + k * w->n;
	return 0;
}

/* npu_grouped_matmul: list by list, or groups of rows of one tensor into one. */
static int
grouped_matmul(struct acc_replay *r, struct acc_dense *out)
{
	enum { GROUPS = 512 };
	const struct acc_dense *x, *b = NULL;
	struct acc_dense w;
	int64_t end[GROUPS], type = -1;
	uint32_t nx = acc_arg_count(r, "input"), n = acc_arg_count(r, "weight");
	static const char *const more[] = {"scale", "offset", "antiquant_scale", "antiquant_offset",
		"per_token_scale", "activation_input"};
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (acc_arg_count(r, more[i]) > 0)
			return acc_cannot(r, "an argument is not understood");
	if (acc_arg_int(r, "group_type", &type) < 0 || nx == 0 || n == 0)
		return acc_cannot(r, "its tensors were not recorded");
	bool rows = nx == 1 && r->nrec == 1 && acc_arg(r, "group_list") != NULL;
	if (acc_arg_item(r, "input", 0, &x) <= 0 || (rows && type > 0))
		return acc_cannot(r, "an argument is not understood");
	if (rows && n == 1 && acc_arg_item(r, "weight", 0, &b) > 0 && b->ndim == 3)
		n = b->shape[0] < GROUPS ? (uint32_t)b->shape[0] : GROUPS + 1;
	if (n == 0 || n > GROUPS || (!rows && (nx != n || r->nrec != n)))
		return acc_cannot(r, "outputs that are not understood");
	if (rows && group_ends(r, n, x->ndim == 2 ? x->shape[0] : 0, end) < 0)
		return ACC_EUNSUP;
	for (uint32_t k = 0; k < n; k++) {
		struct acc_dense *o = &out[rows ? 0 : k];
		b = NULL;
		if (weight_of(r, k, &w) < 0 || acc_arg_item(r, "bias", k, &b) < 0 ||
			(!rows && acc_arg_item(r, "input", k, &x) <= 0))
			return acc_cannot(r, "its tensors were not recorded");
		if (x->ndim != 2 || o->ndim != 2 || o->shape[0] != x->shape[0])
			return acc_cannot(r, "its inputs do not fit each other");
		if (group_product(r, x, &w, b, rows && k > 0 ? end[k - 1] : 0,
			    rows ? end[k] : x->shape[0], o) < 0)
			return ACC_EUNSUP;
	}
	return rows && end[n - 1] != x->shape[0] ? acc_cannot(r, "its groups do not fit its input")
						 : 0;
}

#define ROW(n, s, c, f, w) \
	{ \
		.names = n, .sig = s, .cls = c, .rounding = ACC_FEW, .eval = f, .which = w \
	}
const struct acc_op acc_ops_fused[] = {
	ROW("npu_add_rms_norm AddRmsNorm add_rms_norm", "x1:any x2:any gamma:any eps|epsilon",
		"norm", add_norm, ADD_RMS),
	ROW("npu_add_layer_norm AddLayerNorm add_layer_norm",
		"x1:any x2:any gamma:any beta:any "
		"eps|epsilon additional_output",
		"norm", add_norm, ADD_LAYER),
	ROW("npu_deep_norm", "x1|x:any x2|gx:any beta:any gamma:any alpha eps|epsilon", "norm",
		add_norm, DEEP),
	ROW("npu_group_norm_silu", "input:any weight:any bias:any group eps", "norm",
		group_norm_silu, 0),
	ROW("npu_geglu", "input|self:any dim approximate activate_left", "activation", geglu, 0),
	{.names = "npu_softmax_cross_entropy_with_logits SoftmaxCrossEntropyWithLogits",
		.sig = "input|features|logits:any labels:any",
		.cls = "loss",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE,
		.eval = soft_cross_entropy},
	ROW("npu_moe_gating_top_k_softmax", "input|x finished|finished_optional k", "softmax",
		gating, 0),
	ROW("npu_grouped_matmul grouped_matmul GroupedMatmul",
		"input|x:any weight:any bias:any scale "
		"offset antiquant_scale antiquant_offset per_token_scale group_list "
		"activation_input activation_quant_scale activation_quant_offset split_item "
		"group_type group_list_type",
		"product", grouped_matmul, 0),
	{.names = "npu_moe_token_permute moe_token_permute",
		.sig = "input|tokens|x:move indices "
		       "num_out_tokens padded_mode",
		.cls = "move",
		.rounding = ACC_EXACT,
		.eval = permute_tokens},
	ROW("npu_moe_token_unpermute moe_token_unpermute",
		"input|permuted_tokens:any "
		"indices|sorted_indices probs:any padded_mode restore_shape",
		"reduce", unpermute_tokens, 0),
	{.names = NULL},
};
