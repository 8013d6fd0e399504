/* Attention in one operator: softmax(scale q k' + mask) v.
 *
 * Sources: torch.nn.functional.scaled_dot_product_attention; torch_npu.npu_fusion_attention and
 * MindSpore's flash_attention_score (CANN's FlashAttentionScore); flash_attn_func. */
#include "replay/impl.h"

/* Names of a row: which. */
enum { TORCH, CANN, FLASH };

/* A tensor as heads of sequences of vectors, whatever the order of its dimensions. */
struct heads {
	const double *v;
	size_t nb, nh, ns, nd; /* batches, heads, length, size of a vector (next to each other) */
	size_t sb, sh, ss;     /* steps */
};

struct attention {
	struct heads q, k, v, o;
	const struct acc_dense *mask; /* broadcast to [nb, nh, nq, nk]; or NULL */
	bool drops;                   /* where a bool mask is true, nothing is looked at */
	bool causal;
	int64_t diagonal; /* causal: row i sees columns up to i + diagonal */
	double scale;
	double roughness; /* rounding of the scores in units of the output's */
	bool bnsd;
};

static int
heads_of(struct acc_replay *r, const struct acc_dense *d, struct acc_str layout, size_t nh,
	struct heads *h)
{
	size_t s[4];
	for (uint32_t i = 0; i < 4; i++)
		s[i] = i < d->ndim ? (size_t)d->shape[i] : 1;
	h->v = d->v;
	bool folded = acc_str_is(layout, "BSH") || acc_str_is(layout, "SBH");
	if (d->ndim != (folded ? 3 : 4))
		return acc_cannot(r, "its inputs have other dimensions than its layout");
	if (folded && (nh == 0 || s[2] % nh != 0))
		return acc_cannot(r, "its heads do not divide its inputs");
	if (acc_str_is(layout, "BNSD"))
		*h = (struct heads){d->v, s[0], s[1], s[2], s[3], s[1] * s[2] * s[3], s[2] * s[3],
			s[3]};
	else if (acc_str_is(layout, "BSND"))
		*h = (struct heads){d->v, s[0], s[2], s[1], s[3], s[1] * s[2] * s[3], s[3],
			s[2] * s[3]};
	else if (acc_str_is(layout, "BSH"))
		*h = (struct heads){d->v, s[0], nh, s[1], s[2] / nh, s[1] * s[2], s[2] / nh, s[2]};
	else if (acc_str_is(layout, "SBH"))
		*h = (struct heads){d->v, s[1], nh, s[0], s[2] / nh, s[2], s[2] / nh, s[1] * s[2]};
	else
		return acc_cannot(r, "its layout is not one of BNSD, BSND, BSH, SBH");
	return 0;
}

/* A number that must have its neutral value. */
static int
only(struct acc_replay *r, const char *name, double neutral, const char *why)
{
	double x = neutral;
	int rc = acc_arg_float(r, name, &x);
	return rc < 0 ? rc : x != neutral ? acc_cannot(r, why) : 0;
}

static int
torch(struct acc_replay *r, struct attention *a, struct acc_str *layout)
{
	bool causal = false;
	*layout = ACC_STR("BNSD");
	if (only(r, "dropout_p", 0, "it is random") < 0 ||
		acc_arg_bool(r, "is_causal", &causal) < 0 ||
		acc_arg_float(r, "scale", &a->scale) < 0 ||
		acc_arg_tensor(r, "attn_mask", &a->mask) < 0)
		return ACC_EUNSUP;
	a->causal = causal;
	return 0;
}

static int
flash(struct acc_replay *r, struct attention *a, struct acc_str *layout)
{
	*layout = ACC_STR("BSND");
	if (only(r, "dropout_p", 0, "it is random") < 0 ||
		acc_arg_bool(r, "causal", &a->causal) < 0 ||
		acc_arg_float(r, "softmax_scale", &a->scale) < 0)
		return ACC_EUNSUP;
	if (acc_arg(r, "window_size") != NULL || acc_arg(r, "alibi_slopes") != NULL)
		return acc_cannot(r, "its window or slopes are not understood");
	return 0;
}

static int
cann(struct acc_replay *r, struct attention *a, struct acc_str *layout, size_t *heads)
{
	int64_t mode = 0, n = 0;
	a->drops = true;
	a->scale = 1;
	/* As a wrapper passes it on: q, k, v, mask, scale, and nothing else. */
	if (r->nin == 5 && r->nkw == 0 && r->in[4].type == ACC_A_FLOAT &&
		(r->in[3].type == ACC_A_TENSOR || r->in[3].type == ACC_A_NONE)) {
		*layout = ACC_STR("BNSD");
		a->scale = r->in[4].f;
		a->mask = r->in[3].type == ACC_A_TENSOR ? r->in[3].t : NULL;
		return a->mask != NULL && a->mask->v == NULL
			       ? acc_cannot(r, "its mask was recorded without data")
			       : 0;
	}
	if (acc_arg_int(r, "head_num", &n) < 0 || acc_arg_text(r, "input_layout", layout) < 0 ||
		acc_arg_float(r, "scale", &a->scale) < 0 ||
		acc_arg_tensor(r, "atten_mask", &a->mask) < 0 ||
		acc_arg_int(r, "sparse_mode", &mode) < 0 ||
		only(r, "keep_prob", 1, "it is random") < 0)
		return ACC_EUNSUP;
	*heads = n > 0 ? (size_t)n : 0;
	if (acc_arg(r, "pse") != NULL || acc_arg(r, "prefix") != NULL ||
		acc_arg(r, "padding_mask") != NULL || acc_arg(r, "drop_mask") != NULL ||
		acc_arg(r, "actual_seq_qlen") != NULL)
		return acc_cannot(r, "its shift, prefix or lengths are not understood");
	if (mode == 2 || mode == 3) { /* causal, from the upper left or the lower right corner */
		a->causal = true;
		a->diagonal = mode == 3 ? INT64_MAX : 0;
		a->mask = NULL; /* a triangle of fixed size, whatever the lengths */
	} else if (mode != 0 && mode != 1) {
		return acc_cannot(r, "its sparse mode is not understood");
	} else if (mode == 0 && a->mask != NULL) {
		double before = INT32_MAX, after = INT32_MAX;
		if (acc_arg_float(r, "pre_tockens", &before) < 0 ||
			acc_arg_float(r, "next_tockens", &after) < 0)
			return ACC_EUNSUP;
		a->diagonal = after < INT32_MAX ? (int64_t)after : 0;
		a->causal = after < INT32_MAX;
		if (before < (double)a->mask->shape[a->mask->ndim == 0 ? 0 : a->mask->ndim - 1])
			return acc_cannot(r, "its window is not understood");
	}
	return 0;
}

static int
read_attention(struct acc_replay *r, const struct acc_dense *out, struct attention *a)
{
	const struct acc_dense *q, *k, *v;
	struct acc_str layout = ACC_STR("BSH");
	size_t heads = 0;
	*a = (struct attention){.scale = NAN};
	if (acc_need_tensor(r, "query", &q) < 0 || acc_need_tensor(r, "key", &k) < 0 ||
		acc_need_tensor(r, "value", &v) < 0)
		return ACC_EUNSUP;
	int rc = r->op->which == TORCH   ? torch(r, a, &layout)
		 : r->op->which == FLASH ? flash(r, a, &layout)
					 : cann(r, a, &layout, &heads);
	if (rc < 0 || (rc = heads_of(r, q, layout, heads, &a->q)) < 0 || a->q.nd == 0)
		return rc < 0 ? rc : acc_cannot(r, "its vectors are empty");
	/* Several heads of q may share one of k and v. */
	size_t kv = k->ndim == 3 ? (size_t)k->shape[2] / a->q.nd : 0;
	if ((rc = heads_of(r, k, layout, kv, &a->k)) < 0 ||
		(rc = heads_of(r, v, layout, kv, &a->v)) < 0 ||
		(rc = heads_of(r, out, layout, heads, &a->o)) < 0)
		return rc;
	if (a->q.nb != a->k.nb || a->q.nb != a->v.nb || a->k.nh != a->v.nh || a->k.nh == 0 ||
		a->q.nh % a->k.nh != 0 || a->k.ns != a->v.ns || a->q.nd != a->k.nd)
		return acc_cannot(r, "its inputs do not fit each other");
	if (a->o.nb != a->q.nb || a->o.nh != a->q.nh || a->o.ns != a->q.ns || a->o.nd != a->v.nd)
		return acc_cannot(r,
			"its recorded output does not have the shape that its inputs give");
	if (isnan(a->scale))
		a->scale = 1 / sqrt((double)a->q.nd);
	if (a->diagonal == INT64_MAX || r->op->which == FLASH)
		a->diagonal = (int64_t)a->k.ns - (int64_t)a->q.ns;
	a->bnsd = acc_str_is(layout, "BNSD");
	a->roughness = 0x1p-24 / fmax(acc_unit(out->dtype), 0x1p-24);
	return 0;
}

/* Scores of one row into s, and how large the terms of the largest were; false: nothing is seen. */
static bool
scores(const struct attention *a, struct acc_broadcast *m, size_t b, size_t h, size_t i, double *s,
	double *size)
{
	const double *q = a->q.v + b * a->q.sb + h * a->q.sh + i * a->q.ss;
	size_t group = a->q.nh / a->k.nh;
	double top = -INFINITY;
	*size = 0;
	for (size_t j = 0; j < a->k.ns; j++) {
		const double *k = a->k.v + b * a->k.sb + h / group * a->k.sh + j * a->k.ss;
		double sum = 0, abs = 0;
		acc_audit_row()->dot(q, k, a->q.nd, &sum, &abs);
		s[j] = a->scale * sum;
		if (a->causal && (int64_t)j > (int64_t)i + a->diagonal)
			s[j] = -INFINITY;
		if (a->mask != NULL) {
			double mask = a->mask->v[m->at[0]];
			if (acc_is_float(a->mask->dtype))
				s[j] += mask;
			else if ((mask != 0) == a->drops)
				s[j] = -INFINITY;
			acc_broadcast_next(m);
		}
		if (s[j] > top || isnan(s[j]))
			top = s[j];
		if (s[j] > -INFINITY)
			*size = fmax(*size, fabs(a->scale) * abs);
	}
	return top > -INFINITY || isnan(top);
}

/* A row of which the mask leaves nothing is 0, NaN or the mean, as the library has it: nobody knows. */
static void
unknown_row(const struct attention *a, struct acc_dense *out, size_t at)
{
	for (size_t d = 0; d < a->v.nd; d++) {
		out->v[at + d] = NAN;
		if (out->mag != NULL)
			out->mag[at + d] = INFINITY;
	}
}

/* CANN's second and third output: the maximum and the sum of each row, eight times over. */
static void
row_results(const struct acc_replay *r, struct acc_dense *out, size_t row, double top, double sum,
	double size)
{
	for (uint32_t k = 1; k < 3 && k < r->nrec; k++)
		for (size_t c = 0; c < 8 && (row + 1) * 8 <= out[k].n; c++) {
			out[k].v[row * 8 + c] = k == 1 ? top : sum;
			if (out[k].mag != NULL)
				out[k].mag[row * 8 + c] = k == 1 ? size : sum * (1 + size);
		}
}

static int
attention(struct acc_replay *r, struct acc_dense *out)
{
	struct attention a;
	struct acc_broadcast m = {0};
	int rc = read_attention(r, &out[0], &a);
	if (rc < 0)
		return rc;
	int64_t full[] = {(int64_t)a.q.nb, (int64_t)a.q.nh, (int64_t)a.q.ns, (int64_t)a.k.ns};
	if (a.mask != NULL && !acc_broadcast_start(&m, full, 4, &a.mask, 1))
		return acc_cannot(r, "its mask does not fit its inputs");
	for (uint32_t k = 1; k < r->nrec; k++)
		if (out[k].n != 0 &&
			(r->op->which != CANN || k > 2 || out[k].n != 8 * a.q.nb * a.q.nh * a.q.ns))
			return acc_cannot(r, "its further outputs are not understood");
	if ((double)a.q.nb * (double)a.q.nh * (double)a.q.ns * (double)a.k.ns * (double)a.q.nd >
		0x1p26)
		return acc_cannot(r, "too large to be recomputed");
	double *s = acc_doubles(r, a.k.ns), size;
	if (s == NULL)
		return ACC_EUNSUP;
	size_t group = a.q.nh / a.k.nh;
	/* In 16 bits the probabilities are rounded before they are multiplied with v, as far as the largest so far
	 * has them: a second time where that changes. */
	const double step = acc_unit_low(acc_unit(out[0].dtype))
				    ? 1.5 * acc_roundings(r, out[0].dtype)
				    : 0;
	for (size_t row = 0; row < a.q.nb * a.q.nh * a.q.ns; row++) {
		size_t i = row % a.q.ns, h = row / a.q.ns % a.q.nh, b = row / a.q.ns / a.q.nh;
		double top = -INFINITY, sum = 0;
		if (!scores(&a, &m, b, h, i, s, &size)) {
			if (r->nrec > 1)
				return acc_cannot(r, "its mask leaves nothing of a row");
			unknown_row(&a, &out[0], b * a.o.sb + h * a.o.sh + i * a.o.ss);
			continue;
		}
		for (size_t j = 0; j < a.k.ns; j++)
			top = s[j] > top || isnan(s[j]) ? s[j] : top;
		for (size_t j = 0; j < a.k.ns; j++)
			sum += s[j] = exp(s[j] - top);
		for (size_t d = 0; d < a.v.nd; d++) {
			const double *v = a.v.v + b * a.v.sb + h / group * a.v.sh + d;
			double x = 0, abs = 0, sq = 0;
			for (size_t j = 0; j < a.k.ns; j++) {
				const double term = s[j] * v[j * a.v.ss];
				x += term;
				abs += fabs(term);
				sq += term * term;
			}
			size_t o = b * a.o.sb + h * a.o.sh + i * a.o.ss + d;
			out[0].v[o] = x / sum;
			if (r->divided != NULL)
				r->divided[o] = top + log(sum);
			if (out[0].mag != NULL)
				out[0].mag[o] = abs / sum * (1 + 2 * a.roughness * size) +
						step * sqrt(sq) / sum;
		}
		row_results(r, out, row, top, sum, size);
	}
	return 0;
}

/* Heads do not depend on each other, where they stand apart; batches never do. */
static int
blocks(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	struct attention a;
	const struct acc_dense *x;
	if (read_attention(r, &r->rec[0], &a) < 0 || acc_need_tensor(r, name, &x) < 0)
		return ACC_EUNSUP;
	bool outer = a.bnsd || a.q.sb >= a.q.ss; /* SBH: batches lie within */
	size_t n = a.bnsd ? a.q.nb * a.k.nh : outer ? a.q.nb : 1;
	if (n == 0)
		return acc_cannot(r, "its gradient could not be followed");
	*in = (struct acc_blocks){n, 1, x->n / n, true, false, false};
	*out = (struct acc_blocks){n, 1, r->rec[0].n / n, true, false, false};
	return 0;
}

/* Heads and batches by themselves, where they stand in front. */
static int
cut(struct acc_replay *r, struct acc_cut *c)
{
	struct attention a;
	if (read_attention(r, &r->rec[0], &a) < 0)
		return ACC_EUNSUP;
	c->lead = a.bnsd ? 2 : a.q.sb >= a.q.ss ? 1 : 0;
	c->work = (double)a.k.ns;
	return 0;
}

#define ATTENTION(op, of, arguments) \
	{ \
		.names = op, .which = of, .sig = arguments, .cls = "product", .rounding = ACC_FEW, \
		.flags = ACC_LESS_SUM, .eval = attention, .blocks = blocks, .cut = cut \
	}

const struct acc_op acc_ops_attention[] = {
	ATTENTION("scaled_dot_product_attention", TORCH,
		"query:block key:block value:block attn_mask dropout_p is_causal scale"),
	ATTENTION("npu_fusion_attention npu_fusion_attention_v2 fusion_attention", CANN,
		"query:block key:block value:block head_num input_layout pse padding_mask "
		"atten_mask scale keep_prob pre_tockens next_tockens inner_precise prefix "
		"actual_seq_qlen actual_seq_kvlen sparse_mode"),
	ATTENTION("flash_attention_score FlashAttentionScore", CANN,
		"query:block key:block value:block head_num pse|real_shift drop_mask "
		"padding_mask atten_mask|attn_mask prefix actual_seq_qlen actual_seq_kvlen "
		"keep_prob scale|scalar_value|scale_value pre_tockens|pre_tokens "
		"next_tockens|next_tokens inner_precise input_layout sparse_mode"),
	ATTENTION("flash_attn_func", FLASH,
		"q|query:block k|key:block v|value:block dropout_p softmax_scale causal "
		"window_size softcap alibi_slopes"),
	{.names = NULL},
};
