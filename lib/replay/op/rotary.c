/* Rotary position embedding: x cos + rotate(x) sin.
 *
 * Sources: torch_npu.npu_rotary_mul, torch_npu.npu_apply_rotary_pos_emb;
 * mindspore.ops.rotary_position_embedding. */
#include "replay/impl.h"

enum { ONE, TWO }; /* of one tensor, or of query and key */

/* Rotate in halves, or pairs of neighbours? */
static int
halves(struct acc_replay *r, bool *half)
{
	const struct acc_value *v = acc_arg(r, "rotary_mode");
	*half = true;
	if (v == NULL || (v->type == ACC_A_TEXT && acc_str_is(v->s, "half")) ||
		(v->type == ACC_A_INT && v->i == 0))
		return 0;
	*half = false;
	if ((v->type == ACC_A_TEXT && acc_str_is(v->s, "interleave")) ||
		(v->type == ACC_A_INT && v->i == 1))
		return 0;
	return acc_cannot(r, "its way of rotating is not understood");
}

static int
rotate(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *cosine,
	const struct acc_dense *sine, struct acc_dense *out)
{
	const struct acc_dense *in[] = {x, cosine, sine};
	struct acc_broadcast b;
	bool half;
	if (halves(r, &half) < 0 || acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	size_t len = x->ndim == 0 ? 1 : (size_t)x->shape[x->ndim - 1];
	if (len % 2 != 0)
		return acc_cannot(r, "its vectors cannot be halved");
	if (!acc_broadcast_start(&b, x->shape, x->ndim, in, 3))
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < x->n; i++, acc_broadcast_next(&b)) {
		size_t d = i % len, step = half ? len / 2 : 1;
		bool first = half ? d < step : d % 2 == 0;
		double other = first ? -x->v[i + step] : x->v[i - step];
		double p = x->v[i] * cosine->v[b.at[1]], q = other * sine->v[b.at[2]];
		out->v[i] = p + q;
		if (out->mag != NULL)
			out->mag[i] = fabs(p) + fabs(q);
	}
	return 0;
}

static int
rotary(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *key, *cosine, *sine;
	struct acc_str layout;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "cos", &cosine) < 0 ||
		acc_need_tensor(r, "sin", &sine) < 0)
		return ACC_EUNSUP;
	if (r->nrec != (r->op->which == TWO ? 2U : 1U))
		return acc_cannot(r, "its further outputs are not understood");
	int rc = rotate(r, x, cosine, sine, &out[0]);
	if (rc < 0 || r->op->which == ONE)
		return rc;
	if (acc_arg_text(r, "layout", &layout) < 0 || acc_need_tensor(r, "key", &key) < 0)
		return ACC_EUNSUP;
	return rotate(r, key, cosine, sine, &out[1]);
}

/* ggml's: of angles that fall by a power, times the position; pairs are neighbours (mode 0) or halves (2). What is
 * behind n_dims stays. */
static int
ggml_rope(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *pos;
	int64_t n_dims, mode;
	double base, scale = 1, ext = 0, attn = 1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "pos", &pos) < 0)
		return ACC_EUNSUP;
	if (acc_arg_int(r, "n_dims", &n_dims) <= 0 || acc_arg_int(r, "mode", &mode) <= 0 ||
		acc_arg_float(r, "freq_base", &base) <= 0 ||
		acc_arg_float(r, "freq_scale", &scale) <= 0 ||
		acc_arg_float(r, "ext_factor", &ext) <= 0 ||
		acc_arg_float(r, "attn_factor", &attn) <= 0)
		return acc_cannot(r, "its angles were not recorded");
	const uint32_t nd = out->ndim;
	/* Recorders leave axes of 1 in front, and a reshape before it, out. */
	const int64_t len = nd == 0 ? 1 : out->shape[nd - 1],
		      tokens = nd < 3 ? 1 : out->shape[nd - 3];
	if (ext != 0 || (mode != 0 && mode != 2) || nd > 3 || n_dims < 2 || n_dims % 2 != 0 ||
		n_dims > len)
		return acc_cannot(r, "its way of rotating is not understood");
	if (x->n != out->n || (size_t)tokens != pos->n)
		return acc_cannot(r, "its inputs do not fit each other");
	const size_t half = (size_t)n_dims / 2, step = mode == 2 ? half : 1;
	for (size_t i = 0; i < out->n; i++) {
		const size_t d = i % (size_t)len, pair = mode == 2 ? d % half : d / 2;
		out->v[i] = x->v[i];
		if (out->mag != NULL)
			out->mag[i] = fabs(x->v[i]);
		if (d >= (size_t)n_dims)
			continue;
		const bool first = mode == 2 ? d < half : d % 2 == 0;
		const double other = first ? -x->v[i + step] : x->v[i - step];
		const double angle = pos->v[i / (out->n / pos->n)] * scale *
				     pow(base, -(double)pair / (double)half);
		out->v[i] = attn * (x->v[i] * cos(angle) + other * sin(angle));
		/* The angle is a product of pair + 1 factors in f32, of which the power is rounded twice. */
		if (out->mag != NULL)
			out->mag[i] = fabs(attn) * (fabs(x->v[i]) + fabs(other)) *
				      (1 + fabs(angle) * (double)(3 * pair + 1));
	}
	return 0;
}

const struct acc_op acc_ops_rotary[] = {
	{.names = "ROPE",
		.cls = "arithmetic",
		.rounding = ACC_FEW,
		.eval = ggml_rope,
		.sig = "input:block pos n_dims mode freq_base freq_scale ext_factor attn_factor"},
	{.names = "npu_rotary_mul rotary_mul npu_rotary_position_embedding",
		.which = ONE,
		.cls = "arithmetic",
		.rounding = ACC_FEW,
		.eval = rotary,
		.sig = "input|self|x:block cos|r1:point sin|r2:point rotary_mode|mode"},
	{.names = "npu_apply_rotary_pos_emb",
		.which = TWO,
		.cls = "arithmetic",
		.rounding = ACC_FEW,
		.eval = rotary,
		.sig = "input|query:any key:any cos:point sin:point layout rotary_mode"},
	{.names = NULL},
};
