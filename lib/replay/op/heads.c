/* Attention with its projections, which torch computes as some ten operators: linear of query, key
 * and value, scaling, bmm, softmax, bmm, linear.
 *
 * Source: torch.nn.functional.multi_head_attention_forward. */
#include "replay/impl.h"

/* Results on the way, and the squares of what their rounding leaves, as errors of either sign add up:
 * step is in roundings of a result, where each step has one, work in roundings of what is computed with,
 * of which each sum has one of the sum of its terms' sizes. NULL where nobody asks. */
struct with_error {
	double *x, *step, *work;
};

struct heads {
	const struct acc_dense *q, *k, *v;
	const struct acc_dense *w[3], *b[3]; /* of each projection; b: all in one, or NULL */
	const struct acc_dense *more[2];     /* one more key and value, or NULL */
	const struct acc_dense *w_out, *b_out, *mask, *hidden;
	size_t n, nh, nq, nk, seen, ne, nd; /* batches, heads, queries, keys given, keys looked at,
					     * elements of a query, of a head */
	bool average;
	double roundings; /* of a step, by those of what is computed with */
	struct with_error in[3], sum;
	double *s, *step, *work; /* weights of one query in one head */
	double *wstep, *wwork;   /* and as they are handed out */
};

static size_t
dim(const struct acc_dense *d, uint32_t i)
{
	return i < d->ndim ? (size_t)d->shape[i] : 1;
}

/* Rows of a weight that go with a projection: of one for all, the third that is its own. */
static const double *
weight_of(const struct heads *h, int which)
{
	bool packed = h->w[0] == h->w[1];
	return h->w[which]->v + (packed ? (size_t)which * h->ne * h->ne : 0);
}

static int
read_weights(struct acc_replay *r, struct heads *h)
{
	static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
	const struct acc_dense *x[] = {h->q, h->k, h->v};
	bool separate = false;
	if (acc_arg_bool(r, "use_separate_proj_weight", &separate) < 0 ||
		acc_arg_tensor(r, "in_proj_bias", &h->b[0]) < 0)
		return ACC_EUNSUP;
	for (int i = 0; i < 3; i++) {
		if (acc_need_tensor(r, separate ? names[i] : "in_proj_weight", &h->w[i]) < 0)
			return ACC_EUNSUP;
		size_t rows = separate ? h->ne : 3 * h->ne;
		if (h->w[i]->ndim != 2 || dim(h->w[i], 0) != rows ||
			dim(h->w[i], 1) != dim(x[i], x[i]->ndim - 1))
			return acc_cannot(r, "its inputs do not fit each other");
	}
	return h->b[0] != NULL && h->b[0]->n != 3 * h->ne
		       ? acc_cannot(r, "its inputs do not fit each other")
		       : 0;
}

static int
read_masks(struct acc_replay *r, struct heads *h)
{
	bool zero = false;
	if (acc_arg_tensor(r, "bias_k", &h->more[0]) < 0 ||
		acc_arg_tensor(r, "bias_v", &h->more[1]) < 0 ||
		acc_arg_bool(r, "add_zero_attn", &zero) < 0 ||
		acc_arg_tensor(r, "attn_mask", &h->mask) < 0 ||
		acc_arg_tensor(r, "key_padding_mask", &h->hidden) < 0)
		return ACC_EUNSUP;
	if ((h->more[0] == NULL) != (h->more[1] == NULL) ||
		(h->more[0] != NULL && (h->more[0]->n != h->ne || h->more[1]->n != h->ne)))
		return acc_cannot(r, "its inputs do not fit each other");
	h->seen = h->nk + (h->more[0] != NULL) + zero;
	size_t one = h->nq * h->nk;
	if ((h->mask != NULL && h->mask->n != one && h->mask->n != one * h->n * h->nh) ||
		(h->hidden != NULL && h->hidden->n != h->n * h->nk))
		return acc_cannot(r, "its mask does not fit its inputs");
	return 0;
}

static int
read_heads(struct acc_replay *r, struct heads *h)
{
	int64_t heads = 0;
	double drop = 0;
	bool training = true;
	*h = (struct heads){.average = true};
	if (acc_need_tensor(r, "query", &h->q) < 0 || acc_need_tensor(r, "key", &h->k) < 0 ||
		acc_need_tensor(r, "value", &h->v) < 0 ||
		acc_need_tensor(r, "out_proj_weight", &h->w_out) < 0 ||
		acc_arg_tensor(r, "out_proj_bias", &h->b_out) < 0 ||
		acc_arg_float(r, "dropout_p", &drop) < 0 ||
		acc_arg_bool(r, "training", &training) < 0 ||
		acc_arg_bool(r, "average_attn_weights", &h->average) < 0)
		return ACC_EUNSUP;
	if (acc_arg_int(r, "num_heads", &heads) <= 0 || heads <= 0)
		return acc_cannot(r, "its number of heads was not recorded");
	if (training && drop != 0)
		return acc_cannot(r, "it is random");
	if (acc_arg(r, "static_k") != NULL || acc_arg(r, "static_v") != NULL)
		return acc_cannot(r, "its keys and values from elsewhere are not understood");
	uint32_t nd = h->q->ndim;
	if (nd < 2 || nd > 3 || h->k->ndim != nd || h->v->ndim != nd)
		return acc_cannot(r, "its inputs do not fit each other");
	h->n = nd == 3 ? dim(h->q, 1) : 1;
	h->nq = dim(h->q, 0);
	h->nk = dim(h->k, 0);
	h->ne = dim(h->q, nd - 1);
	h->nh = (size_t)heads;
	h->nd = h->ne / h->nh;
	if (h->ne == 0 || h->ne % h->nh != 0 || dim(h->v, 0) != h->nk ||
		(nd == 3 && (dim(h->k, 1) != h->n || dim(h->v, 1) != h->n)) ||
		h->w_out->ndim != 2 || dim(h->w_out, 1) != h->ne ||
		(h->b_out != NULL && h->b_out->n != dim(h->w_out, 0)))
		return acc_cannot(r, "its inputs do not fit each other");
	return read_weights(r, h) < 0 ? ACC_EUNSUP : read_masks(r, h);
}

/* The shapes of both outputs. 0 or < 0. */
static int
check_outputs(struct acc_replay *r, const struct heads *h, const struct acc_dense *out)
{
	int64_t n = (int64_t)h->n, nh = (int64_t)h->nh, nq = (int64_t)h->nq;
	int64_t ne = (int64_t)dim(h->w_out, 0), seen = (int64_t)h->seen;
	bool batched = h->q->ndim == 3;
	int64_t y[] = {nq, n, ne}, flat[] = {nq, ne};
	int64_t all[] = {n, nh, nq, seen}, mean[] = {n, nq, seen};
	if (acc_out_shape(r, &out[0], batched ? y : flat, batched ? 3 : 2) < 0)
		return ACC_EUNSUP;
	if (r->nrec > 2)
		return acc_cannot(r, "its further outputs are not understood");
	if (r->nrec < 2)
		return 0;
	const int64_t *w = h->average ? mean : all;
	uint32_t nd = h->average ? 3 : 4;
	return batched ? acc_out_shape(r, &out[1], w, nd)
		       : acc_out_shape(r, &out[1], w + 1, nd - 1);
}

static int
room_for(struct acc_replay *r, bool sizes, size_t n, struct with_error *e)
{
	e->x = acc_doubles(r, n);
	e->step = sizes ? acc_doubles(r, n) : NULL;
	e->work = sizes ? acc_doubles(r, n) : NULL;
	return e->x == NULL || (sizes && (e->step == NULL || e->work == NULL)) ? ACC_EUNSUP : 0;
}

static void
set(const struct with_error *e, size_t i, double x, double step, double work)
{
	e->x[i] = x;
	if (e->step != NULL) {
		e->step[i] = step;
		e->work[i] = work;
	}
}

/* One projection, each result of which is rounded; rows of key and value that are added are not. */
static void
project(const struct heads *h, int which, const struct acc_dense *x, const struct with_error *to)
{
	const double *w = weight_of(h, which), *b = h->b[0] == NULL ? NULL : h->b[0]->v;
	size_t n = dim(x, x->ndim - 1), rows = n == 0 ? 0 : x->n / n, i = rows * h->ne;
	for (size_t row = 0; row < rows; row++)
		for (size_t e = 0; e < h->ne; e++) {
			double sum = 0, abs = 0;
			acc_audit_row()->dot(x->v + row * n, w + e * n, n, &sum, &abs);
			double add = b == NULL ? 0 : b[(size_t)which * h->ne + e];
			abs += fabs(add);
			sum += add;
			set(to, row * h->ne + e, sum, sum * sum, abs * abs);
		}
	if (which == 0)
		return;
	for (size_t more = h->nk; more < h->seen; more++)
		for (size_t k = 0; k < h->n * h->ne; k++, i++)
			set(to, i,
				more == h->nk && h->more[0] != NULL
					? h->more[which - 1]->v[k % h->ne]
					: 0,
				0, 0);
}

/* What a mask adds to score (i, j) of a head of a batch: -Inf hides it. */
static double
masked(const struct heads *h, size_t b, size_t head, size_t i, size_t j)
{
	double add = 0;
	if (j >= h->nk)
		return 0;
	if (h->mask != NULL) {
		size_t at = i * h->nk + j, one = h->nq * h->nk;
		if (h->mask->n != one)
			at += (b * h->nh + head) * one;
		double m = h->mask->v[at];
		add = acc_is_float(h->mask->dtype) ? m : m != 0 ? -INFINITY : 0;
	}
	if (h->hidden != NULL) {
		double m = h->hidden->v[b * h->nk + j];
		add += acc_is_float(h->hidden->dtype) ? m : m != 0 ? -INFINITY : 0;
	}
	return add;
}

/* Scores of one query in one head, and its weights. false: nothing is seen. */
static bool
weights(struct heads *h, size_t b, size_t head, size_t i)
{
	const double scale = 1 / sqrt((double)h->nd);
	size_t qo = (i * h->n + b) * h->ne + head * h->nd;
	double top = -INFINITY, sum = 0, step = 0, work = 0;
	for (size_t j = 0; j < h->seen; j++) {
		size_t ko = (j * h->n + b) * h->ne + head * h->nd;
		double s = 0, abs = 0;
		acc_audit_row()->dot(h->in[0].x + qo, h->in[1].x + ko, h->nd, &s, &abs);
		h->s[j] = scale * s + masked(h, b, head, i, j);
		top = h->s[j] > top || isnan(h->s[j]) ? h->s[j] : top;
		if (h->step == NULL)
			continue;
		/* Query (its projection, scaled) and key were rounded, then the score, twice. */
		double off = 2 * s * s, terms = abs * abs;
		for (size_t d = 0; d < h->nd; d++) {
			double q = h->in[0].x[qo + d], k = h->in[1].x[ko + d];
			off += 2 * h->in[0].step[qo + d] * k * k + q * q * h->in[1].step[ko + d];
			terms += h->in[0].work[qo + d] * k * k + q * q * h->in[1].work[ko + d];
		}
		h->step[j] = scale * scale * off;
		h->work[j] = scale * scale * terms;
	}
	if (top == -INFINITY)
		return false;
	for (size_t j = 0; j < h->seen; j++)
		sum += h->s[j] = exp(h->s[j] - top);
	for (size_t j = 0; j < h->seen; j++) {
		double p = h->s[j] /= sum;
		step += h->step == NULL ? 0 : p * p * h->step[j];
		work += h->step == NULL ? 0 : p * p * h->work[j];
	}
	/* An error of a score is a relative one of its weight, which was rounded, too: in two steps where
	 * softmax is not one. */
	for (size_t j = 0; j < h->seen && h->step != NULL; j++) {
		double p2 = h->s[j] * h->s[j];
		h->step[j] = p2 * (h->step[j] + step + 2);
		h->work[j] = p2 * (h->work[j] + work + 1);
	}
	return true;
}

/* What one head gives for one query. */
static void
look(struct heads *h, size_t b, size_t head, size_t i)
{
	for (size_t d = 0; d < h->nd; d++) {
		double x = 0, abs = 0, step = 0, work = 0;
		size_t e = head * h->nd + d;
		for (size_t j = 0; j < h->seen; j++)
			x += h->s[j] * h->in[2].x[(j * h->n + b) * h->ne + e];
		for (size_t j = 0; j < h->seen && h->step != NULL; j++) {
			size_t vo = (j * h->n + b) * h->ne + e;
			double v = h->in[2].x[vo], p = h->s[j];
			step += p * p * h->in[2].step[vo] + v * v * h->step[j];
			work += p * p * h->in[2].work[vo] + v * v * h->work[j];
			abs += p * fabs(v);
		}
		set(&h->sum, (b * h->nq + i) * h->ne + e, x, step + x * x, work + abs * abs);
	}
}

/* Weights as they are handed out: of each head, or their mean. */
static void
hand_out(const struct heads *h, size_t b, size_t head, size_t i, struct acc_dense *out)
{
	double part = h->average ? 1 / (double)h->nh : 1;
	size_t row = h->average ? b * h->nq + i : (b * h->nh + head) * h->nq + i;
	for (size_t j = 0; j < h->seen; j++) {
		size_t o = row * h->seen + j;
		bool first = !h->average || head == 0;
		out->v[o] = (first ? 0 : out->v[o]) + part * h->s[j];
		if (out->mag == NULL)
			continue;
		h->wstep[o] = (first ? 0 : h->wstep[o]) + part * part * h->step[j];
		h->wwork[o] = (first ? 0 : h->wwork[o]) + part * part * h->work[j];
		out->mag[o] = h->roundings * sqrt(h->wstep[o] + out->v[o] * out->v[o]) +
			      sqrt(h->wwork[o]);
	}
}

static void
project_out(const struct heads *h, struct acc_dense *out)
{
	size_t n = dim(h->w_out, 0);
	for (size_t row = 0; row < h->n * h->nq; row++)
		for (size_t e = 0; e < n; e++) {
			const double *w = h->w_out->v + e * h->ne;
			size_t from = (row % h->n * h->nq + row / h->n) * h->ne, to = row * n + e;
			double sum = 0, abs = 0, add = h->b_out == NULL ? 0 : h->b_out->v[e];
			acc_audit_row()->dot(h->sum.x + from, w, h->ne, &sum, &abs);
			out->v[to] = sum + add;
			if (out->mag == NULL)
				continue;
			double step = 0, work = (abs + fabs(add)) * (abs + fabs(add));
			for (size_t k = 0; k < h->ne; k++) {
				step += w[k] * w[k] * h->sum.step[from + k];
				work += w[k] * w[k] * h->sum.work[from + k];
			}
			out->mag[to] = h->roundings * sqrt(step) + sqrt(work);
		}
}

/* Where all that was given is finer than the result, its terms are rounded as coarsely, see judge(). */
static double
roundings(struct acc_replay *r, const struct heads *h, enum acc_dtype t)
{
	const struct acc_dense *all[] = {h->q, h->k, h->v, h->w[0], h->w[1], h->w[2], h->w_out};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (acc_unit(all[i]->dtype) >= acc_unit(t))
			return acc_roundings(r, t);
	return 1;
}

static int
prepare(struct acc_replay *r, struct heads *h, bool sizes)
{
	double proj = (double)(h->nq + 2 * h->seen) * (double)h->n * (double)h->ne * (double)h->ne;
	double look = 2 * (double)h->nq * (double)h->seen * (double)h->n * (double)h->ne;
	if (proj + look > 0x1p27)
		return acc_cannot(r, "too large to be recomputed");
	size_t weights = h->n * h->nh * h->nq * h->seen;
	for (int i = 0; i < 3; i++)
		if (room_for(r, sizes, (i == 0 ? h->nq : h->seen) * h->n * h->ne, &h->in[i]) < 0)
			return ACC_EUNSUP;
	h->s = acc_doubles(r, h->seen);
	if (h->s == NULL || room_for(r, sizes, h->n * h->nq * h->ne, &h->sum) < 0)
		return ACC_EUNSUP;
	if (!sizes)
		return 0;
	h->step = acc_doubles(r, h->seen);
	h->work = acc_doubles(r, h->seen);
	h->wstep = acc_doubles(r, weights);
	h->wwork = acc_doubles(r, weights);
	return h->step == NULL || h->work == NULL || h->wstep == NULL || h->wwork == NULL
		       ? ACC_EUNSUP
		       : 0;
}

static int
multi_head(struct acc_replay *r, struct acc_dense *out)
{
	struct heads h;
	if (read_heads(r, &h) < 0 || check_outputs(r, &h, out) < 0 ||
		prepare(r, &h, out[0].mag != NULL) < 0)
		return ACC_EUNSUP;
	h.roundings = roundings(r, &h, out[0].dtype);
	const struct acc_dense *given[] = {h.q, h.k, h.v};
	for (int i = 0; i < 3; i++)
		project(&h, i, given[i], &h.in[i]);
	for (size_t b = 0; b < h.n; b++)
		for (size_t i = 0; i < h.nq; i++)
			for (size_t head = 0; head < h.nh; head++) {
				/* A row of which the mask leaves nothing is what the library makes of it. */
				if (!weights(&h, b, head, i))
					for (size_t j = 0; j < h.seen; j++)
						h.s[j] = NAN;
				look(&h, b, head, i);
				if (r->nrec > 1)
					hand_out(&h, b, head, i, &out[1]);
			}
	project_out(&h, &out[0]);
	return 0;
}

/* Batches do not depend on each other. */
static int
blocks(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	struct heads h;
	const struct acc_dense *x;
	if (read_heads(r, &h) < 0 || acc_need_tensor(r, name, &x) < 0)
		return ACC_EUNSUP;
	size_t n = h.n * dim(x, 0), ne = dim(h.w_out, 0);
	if (n == 0)
		return acc_cannot(r, "its gradient could not be followed");
	/* Weights lie in another order. */
	if (r->nrec > 1) {
		*in = *out = (struct acc_blocks){1, 1, 1, false, false, false};
		return 0;
	}
	*in = (struct acc_blocks){dim(x, 0), h.n, x->n / n, false, true, false};
	*out = (struct acc_blocks){h.nq, h.n, ne, false, true, false};
	return 0;
}

const struct acc_op acc_ops_heads[] = {
	{.names = "multi_head_attention_forward",
		.sig = "query:block key:block value:block embed_dim_to_check num_heads "
		       "in_proj_weight:any in_proj_bias:any bias_k:any bias_v:any add_zero_attn "
		       "dropout_p out_proj_weight:any out_proj_bias:any training key_padding_mask "
		       "need_weights attn_mask use_separate_proj_weight q_proj_weight:any "
		       "k_proj_weight:any v_proj_weight:any static_k static_v average_attn_weights",
		.cls = "product",
		.rounding = ACC_FEW,
		.flags = ACC_IN_STEPS,
		.eval = multi_head,
		.blocks = blocks},
	{.names = NULL},
};
