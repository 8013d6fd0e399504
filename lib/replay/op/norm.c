/* Layer, rms, batch, group, instance and local response norms. */
#include "replay/impl.h"

/* BARE_LAYER: the shape that is normalised is not given; OFFSET_RMS: the factor is 1 + weight; ANY_RMS: or that, and
 * which of the two nothing says; GGML_RMS, GGML_LAYER: of the last dimension, without a factor. */
enum { LAYER, RMS, NPU_RMS, BARE_LAYER, OFFSET_RMS, ANY_RMS, GGML_RMS, GGML_LAYER };

static bool
is_ggml(const struct acc_replay *r)
{
	return r->op->which == GGML_RMS || r->op->which == GGML_LAYER;
}

/* Elements with one mean and variance: (a, c) for group b of a tensor taken apart as A x B x C;
 * layer norm has A groups of C, batch norm B groups over A and C. */
struct layout {
	size_t a, b, c;
	bool over_a; /* statistics go over a too */
};

static size_t
trailing(const struct acc_dense *x, uint32_t from)
{
	size_t n = 1;
	for (uint32_t d = from; d < x->ndim; d++)
		n *= (size_t)x->shape[d];
	return n;
}

struct stats {
	double mean, rstd, size; /* size: mean magnitude, which the mean is known relative to */
};

static struct stats
measure(const double *x, const struct layout *l, size_t group, double eps, bool centre)
{
	struct stats s = {0};
	size_t a0 = l->over_a ? 0 : group / l->b, a1 = l->over_a ? l->a : a0 + 1;
	size_t b = group % l->b, n = (a1 - a0) * l->c;
	const struct acc_audit_row *row = acc_audit_row();
	double sq = 0, sum = 0, abs = 0, one;
	for (size_t a = a0; centre && a < a1; a++) {
		sum += row->sum(x + (a * l->b + b) * l->c, l->c, &one);
		abs += one;
	}
	s.mean = sum / (double)n;
	s.size = abs / (double)n;
	for (size_t a = a0; a < a1; a++)
		sq += row->squares(x + (a * l->b + b) * l->c, s.mean, l->c);
	s.rstd = 1 / sqrt(sq / (double)n + eps);
	return s;
}

/* y = (x - mean) * rstd * w + b, where w and b depend on which of the elements it is. */
struct affine {
	const double *w, *b;
	size_t n, step; /* element i takes w[i / step % n] */
};

/* Elements [from, from + n), all of one group. */
static void
run(const double *x, size_t from, size_t n, const struct stats *s, const struct affine *f,
	struct acc_dense *out)
{
	for (size_t i = from, len; i < from + n; i += len) {
		size_t k = i / f->step % f->n;
		bool each = f->step == 1;
		len = each ? f->n - k : f->step - i % f->step;
		len = len < from + n - i ? len : from + n - i;
		struct acc_affine h = {s->mean, s->rstd, s->size, f->w == NULL ? NULL : f->w + k,
			f->b == NULL ? NULL : f->b + k, each};
		acc_audit_row()->affine(x + i, len, &h, out->v + i,
			out->mag == NULL ? NULL : out->mag + i);
	}
}

static void
apply(const struct acc_dense *x, const struct layout *l, const struct affine *f, bool centre,
	double eps, struct acc_dense *out)
{
	size_t groups = (l->over_a ? 1 : l->a) * l->b;
	for (size_t g = 0; g < groups; g++) {
		struct stats s = measure(x->v, l, g, eps, centre);
		size_t a0 = l->over_a ? 0 : g / l->b, a1 = l->over_a ? l->a : a0 + 1;
		for (size_t a = a0; a < a1; a++)
			run(x->v, (a * l->b + g % l->b) * l->c, l->c, &s, f, out);
	}
}

static double
distance(const struct acc_dense *a, const double *b)
{
	double d = 0;
	for (size_t i = 0; i < a->n; i++)
		if (isfinite(a->v[i]) && isfinite(b[i]))
			d += fabs(a->v[i] - b[i]);
	return d;
}

/* A module's eps is not recorded: of the usual ones, the one that fits best. */
static int
choose_eps(struct acc_replay *r, const struct acc_dense *x, const struct layout *l,
	const struct affine *f, bool centre, const struct acc_dense *out, double *eps)
{
	static const double usual[] = {1e-5, 1e-6, 1e-12, 1e-8, 1e-3, 1e-7};
	int rc = acc_arg_float(r, "eps", eps);
	if (rc != 0 || !r->module || r->rec[0].v == NULL)
		return rc;
	if (r->guess != 0) { /* the input is changed now */
		*eps = r->guess = fabs(r->guess);
		return 0;
	}
	struct acc_dense trial = *out;
	double best = INFINITY;
	trial.mag = NULL;
	trial.v = acc_doubles(r, out->n);
	for (size_t i = 0; trial.v != NULL && i < sizeof usual / sizeof *usual; i++) {
		apply(x, l, f, centre, usual[i], &trial);
		double d = distance(&trial, r->rec[0].v);
		if (d < best) {
			best = d;
			*eps = usual[i];
		}
	}
	r->guess = *eps;
	return trial.v == NULL ? ACC_EUNSUP : 0;
}

static int
weights(struct acc_replay *r, size_t n, size_t step, struct affine *f)
{
	const struct acc_dense *w = NULL, *b = NULL;
	if (acc_arg_tensor(r, "weight", &w) < 0 || acc_arg_tensor(r, "bias", &b) < 0)
		return ACC_EUNSUP;
	if ((w != NULL && w->n != n) || (b != NULL && b->n != n) || n == 0)
		return acc_cannot(r, "its inputs do not fit each other");
	*f = (struct affine){w == NULL ? NULL : w->v, b == NULL ? NULL : b->v, n, step};
	return 0;
}

/* MindSpore's primitive has the variance in this place, or 1 / deviation. */
static bool
gives_variance(const struct acc_replay *r, uint32_t k, double rstd, double eps)
{
	double rec = r->rec[k].v == NULL || r->rec[k].n == 0 ? NAN : r->rec[k].v[0];
	return fabs(rec - (1 / (rstd * rstd) - eps)) < fabs(rec - rstd);
}

static int
finish(struct acc_replay *r, const struct acc_dense *x, const struct layout *l,
	const struct affine *f, bool centre, double eps, struct acc_dense *out)
{
	if (acc_out_shape(r, &out[0], x->shape, x->ndim) < 0 ||
		choose_eps(r, x, l, f, centre, &out[0], &eps) < 0)
		return ACC_EUNSUP;
	apply(x, l, f, centre, eps, &out[0]);
	/* Some return mean and 1 / deviation too. */
	for (uint32_t k = 1; k < r->nrec; k++) {
		size_t groups = (l->over_a ? 1 : l->a) * l->b;
		bool mean = centre && k == 1;
		/* MindSpore's BatchNorm has the variance behind the mean. */
		bool variance = !mean && acc_str_is(r->name, "BatchNorm");
		variance |= !mean && r->op->which == BARE_LAYER &&
			    gives_variance(r, k, measure(x->v, l, 0, eps, centre).rstd, eps);
		if (out[k].n != groups || k > 2)
			return acc_cannot(r, "outputs that are not understood");
		for (size_t g = 0; g < groups; g++) {
			struct stats s = measure(x->v, l, g, eps, centre);
			out[k].v[g] = mean       ? s.mean
				      : variance ? 1 / (s.rstd * s.rstd) - eps
						 : s.rstd;
			if (mean && out[k].mag != NULL)
				out[k].mag[g] = 1 / s.rstd;
		}
	}
	return 0;
}

/* How many elements a row has: those of normalized_shape, or of the weight. */
static int
row_length(struct acc_replay *r, const struct acc_dense *x, size_t *len)
{
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t n = 0;
	const struct acc_dense *w = NULL;
	if ((r->op->which == LAYER || r->op->which == RMS) && !r->module) {
		if (acc_arg_ints(r, "normalized_shape", shape, ACC_DENSE_DIMS, &n) < 0)
			return ACC_EUNSUP;
		for (uint32_t d = 0; d < n; d++)
			if (n > x->ndim || shape[d] != x->shape[x->ndim - n + d])
				return acc_cannot(r, "its inputs do not fit each other");
	} else if (is_ggml(r)) {
		n = 1;
	} else {
		if (acc_need_tensor(r, "weight", &w) < 0)
			return ACC_EUNSUP;
		n = w->ndim;
	}
	if (n == 0 || n > x->ndim)
		return acc_cannot(r, "its inputs do not fit each other");
	*len = trailing(x, x->ndim - n);
	return 0;
}

/* What elements are multiplied by: 1 + weight, where its class says so, or where the output is nearer to that. 0 or < 0. */
static int
offset(struct acc_replay *r, const struct acc_dense *x, const struct layout *l, struct affine *f)
{
	struct acc_dense trial = {.v = acc_doubles(r, x->n), .n = x->n};
	double *w = acc_doubles(r, f->n), d[2];
	if (w == NULL || trial.v == NULL)
		return ACC_EUNSUP;
	for (size_t i = 0; i < f->n; i++)
		w[i] = 1 + f->w[i];
	struct affine g = {w, NULL, f->n, f->step};
	bool plus = r->op->which == OFFSET_RMS;
	if (!plus && r->guess == 0 && r->rec[0].v != NULL && r->rec[0].n == x->n) {
		for (int k = 0; k < 2; k++) {
			apply(x, l, k == 0 ? f : &g, false, 1e-6, &trial);
			d[k] = distance(&trial, r->rec[0].v);
		}
		plus = d[1] < d[0];
	} else if (!plus) {
		plus = r->guess < 0;
	}
	if (plus)
		*f = g;
	return plus;
}

static int
layer_norm(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct affine f;
	size_t len;
	if (acc_need_tensor(r, "input", &x) < 0 || row_length(r, x, &len) < 0 ||
		weights(r, len, 1, &f) < 0)
		return ACC_EUNSUP;
	struct layout l = {x->n / len, 1, len, false};
	bool centre = r->op->which == LAYER || r->op->which == BARE_LAYER ||
		      r->op->which == GGML_LAYER;
	int plus = r->op->which == OFFSET_RMS || r->op->which == ANY_RMS ? offset(r, x, &l, &f) : 0;
	if (plus < 0)
		return ACC_EUNSUP;
	double eps = centre ? 1e-5 : 1e-6;
	if (is_ggml(r) && acc_arg(r, "eps") == NULL)
		return acc_cannot(r, "its eps was not recorded");
	if (r->op->which == RMS && !r->module && acc_arg(r, "eps") == NULL && x->n > 0)
		/* In 16 bits it computes in f32, and takes its eps. */
		eps = acc_dtype_of(acc_unit_low(acc_unit(x->dtype)) ? ACC_F32 : x->dtype)->eps;
	int rc = finish(r, x, &l, &f, centre, eps, out);
	if (plus > 0) /* of the changed input, too */
		r->guess = -r->guess;
	return rc;
}

static int
layer_blocks(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	const struct acc_dense *x;
	size_t len;
	(void)name;
	if (acc_need_tensor(r, "input", &x) < 0 || row_length(r, x, &len) < 0)
		return ACC_EUNSUP;
	*in = *out = (struct acc_blocks){x->n / len, 1, len, true, false, false};
	return 0;
}

static int
layer_cut(struct acc_replay *r, struct acc_cut *c)
{
	const struct acc_dense *x;
	size_t len;
	if (acc_need_tensor(r, "input", &x) < 0 || row_length(r, x, &len) < 0)
		return ACC_EUNSUP;
	for (size_t n = x->n; n > len && c->lead < x->ndim; c->lead++)
		n /= (size_t)x->shape[c->lead];
	return 0;
}

/* --- by channel --- */

enum { BATCH, GROUP, INSTANCE };

static int
channels(struct acc_replay *r, const struct acc_dense **x, struct layout *l)
{
	int64_t groups = 1;
	bool training = r->module || acc_arg(r, "running_mean") == NULL;
	if (acc_need_tensor(r, "input", x) < 0)
		return ACC_EUNSUP;
	if ((*x)->ndim < 2 || (*x)->n == 0)
		return acc_cannot(r, "its input has no channels");
	size_t n = (size_t)(*x)->shape[0], c = (size_t)(*x)->shape[1], rest = trailing(*x, 2);
	*l = (struct layout){n, c, rest, r->op->which == BATCH};
	if (r->op->which == GROUP) {
		if (acc_arg_int(r, "num_groups", &groups) <= 0)
			return acc_cannot(r, "its number of groups was not recorded");
		if (groups <= 0 || c % (size_t)groups != 0)
			return acc_cannot(r, "its inputs do not fit each other");
		*l = (struct layout){n, (size_t)groups, c / (size_t)groups * rest, false};
	}
	if (r->op->which == BATCH && acc_arg_bool(r, "training", &training) < 0)
		return ACC_EUNSUP;
	l->over_a &= training;
	return training ? 0 : 1;
}

/* With given statistics: rstd as a weight, in place of measuring. */
static int
evaluation(struct acc_replay *r, const struct acc_dense *x, size_t rest, double eps,
	struct acc_dense *out)
{
	const struct acc_dense *mean, *var;
	size_t c = (size_t)x->shape[1];
	struct affine f;
	if (acc_need_tensor(r, "running_mean", &mean) < 0 ||
		acc_need_tensor(r, "running_var", &var) < 0 || weights(r, c, rest, &f) < 0 ||
		acc_arg_float(r, "eps", &eps) < 0 ||
		acc_out_shape(r, &out[0], x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (mean->n != c || var->n != c)
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < x->n; i++) {
		size_t k = i / rest % c;
		double s = (f.w == NULL ? 1 : f.w[k]) / sqrt(var->v[k] + eps);
		double b = f.b == NULL ? 0 : f.b[k];
		out->v[i] = (x->v[i] - mean->v[k]) * s + b;
		if (out->mag != NULL)
			out->mag[i] = (fabs(x->v[i]) + fabs(mean->v[k])) * fabs(s) + fabs(b);
	}
	return 0;
}

static int
channel_norm(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct layout l;
	struct affine f;
	int rc = channels(r, &x, &l);
	if (rc < 0)
		return rc;
	for (uint32_t k = 1; rc > 0 && k < r->nrec; k++)
		if (out[k].n > 0)
			return acc_cannot(r, "outputs that are not understood");
	if (rc > 0)
		return evaluation(r, x, l.c, 1e-5, out);
	if (weights(r, (size_t)x->shape[1], trailing(x, 2), &f) < 0)
		return ACC_EUNSUP;
	return finish(r, x, &l, &f, true, 1e-5, out);
}

static int
channel_blocks(struct acc_replay *r, const char *name, struct acc_blocks *in,
	struct acc_blocks *out)
{
	const struct acc_dense *x;
	struct layout l;
	int rc = channels(r, &x, &l);
	if (rc < 0)
		return rc;
	size_t n = (size_t)x->shape[0], c = (size_t)x->shape[1], rest = trailing(x, 2);
	if (strcmp(name, "input") != 0) {
		*in = (struct acc_blocks){1, c, 1, false, true, false};
		*out = (struct acc_blocks){n, c, rest, false, true, false};
	} else {
		*in = *out = (struct acc_blocks){l.a, l.b, l.c, !l.over_a, true, false};
	}
	return 0;
}

/* Each element by those of the same place in the channels around it:
 * x / (k + alpha * mean of x^2 over `size` channels, where those beyond the last are 0)^beta */
static int
response_norm(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	int64_t size = 0;
	double alpha = 1e-4, beta = 0.75, k = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_int(r, "size", &size) < 0 ||
		acc_arg_float(r, "alpha", &alpha) < 0 || acc_arg_float(r, "beta", &beta) < 0 ||
		acc_arg_float(r, "k", &k) < 0 || acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 3 || size <= 0)
		return acc_cannot(r, "its input has no channels, or its size is not recorded");
	size_t nc = (size_t)x->shape[1], step = trailing(x, 2);
	size_t below = (size_t)size / 2, above = ((size_t)size - 1) / 2;
	for (size_t i = 0; i < x->n; i++) {
		size_t c = i / step % nc;
		size_t first = i - (c < below ? c : below) * step;
		size_t last = i + (nc - 1 - c < above ? nc - 1 - c : above) * step;
		double squares = 0;
		for (size_t j = first; j <= last; j += step)
			squares += x->v[j] * x->v[j];
		out->v[i] = x->v[i] / pow(k + alpha * squares / (double)size, beta);
		if (out->mag != NULL)
			out->mag[i] = fabs(out->v[i]);
	}
	return 0;
}

static int
response_blocks(struct acc_replay *r, const char *name, struct acc_blocks *in,
	struct acc_blocks *out)
{
	const struct acc_dense *x;
	if (acc_need_tensor(r, name, &x) < 0 || x->ndim < 3)
		return ACC_EUNSUP;
	*in = *out = (struct acc_blocks){(size_t)x->shape[0], (size_t)x->shape[1], trailing(x, 2),
		true, false, true};
	return 0;
}

#define NORM(n, s, f, b, w) \
	{ \
		.names = n, .sig = s, .cls = "norm", .rounding = ACC_FEW, .eval = f, .blocks = b, \
		.flags = ACC_TELLS_STEPS | ACC_EVERY_STEP | ACC_LESS_MEAN | \
			 (f == layer_norm && (int)(w) == (int)LAYER ? ACC_GATHERS : 0), \
		.which = w, .cut = f == layer_norm ? layer_cut : NULL \
	}
const struct acc_op acc_ops_norm[] = {
	NORM("LayerNorm LayerNormalization FusedLayerNorm",
		"input|x:block weight|gamma:linear bias|beta:point "
		"eps|epsilon",
		layer_norm, layer_blocks, BARE_LAYER),
	NORM("layer_norm npu_layer_norm npu_layer_norm_eval",
		"input|x:block normalized_shape weight:linear bias:linear eps", layer_norm,
		layer_blocks, LAYER),
	NORM("npu_rms_norm RmsNorm RMSNorm FusedRMSNorm LlamaRMSNorm MistralRMSNorm "
	     "Qwen2RMSNorm Qwen3RMSNorm DeepseekV2RMSNorm DeepseekV3RMSNorm T5LayerNorm",
		"input|self|x:block weight|gamma:linear eps|epsilon", layer_norm, layer_blocks,
		NPU_RMS),
	NORM("GemmaRMSNorm Gemma2RMSNorm Gemma3RMSNorm MiniMaxM3VLRMSNorm Qwen3NextRMSNorm "
	     "Qwen3_5RMSNorm Qwen3_5MoeRMSNorm RecurrentGemmaRMSNorm Step3p7RMSNorm "
	     "T5GemmaRMSNorm T5Gemma2RMSNorm VaultGemmaRMSNorm",
		"input:block weight eps", layer_norm, layer_blocks, OFFSET_RMS),
	NORM("*RMSNorm", "input:block weight eps", layer_norm, layer_blocks, ANY_RMS),
	NORM("rms_norm", "input:block normalized_shape weight:linear eps", layer_norm, layer_blocks,
		RMS),
	NORM("RMS_NORM", "input:block eps", layer_norm, layer_blocks, GGML_RMS),
	NORM("NORM", "input:block eps", layer_norm, layer_blocks, GGML_LAYER),
	NORM("batch_norm BatchNorm1d BatchNorm2d BatchNorm3d",
		"input:block running_mean "
		"running_var weight:block bias:block training momentum eps",
		channel_norm, channel_blocks, BATCH),
	NORM("native_batch_norm BatchNorm",
		"input:block weight:block bias:block running_mean running_var "
		"training momentum eps",
		channel_norm, channel_blocks, BATCH),
	NORM("native_group_norm", "input:block weight:block bias:block n c hxw num_groups eps",
		channel_norm, channel_blocks, GROUP),
	NORM("instance_norm",
		"input:block running_mean running_var weight:block bias:block "
		"use_input_stats momentum eps",
		channel_norm, channel_blocks, INSTANCE),
	NORM("InstanceNormalization",
		"input:block weight:block bias:block running_mean running_var "
		"use_input_stats momentum eps|epsilon",
		channel_norm, channel_blocks, INSTANCE),
	NORM("group_norm GroupNorm", "input:block num_groups weight:block bias:block eps",
		channel_norm, channel_blocks, GROUP),
	NORM("local_response_norm", "input:block size alpha beta k", response_norm, response_blocks,
		0),
	{.names = NULL},
};
