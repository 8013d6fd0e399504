/* llama_cb_eval.h - record what llama.cpp computes: each tensor of its graph, by its name, without a copy
 *
 *	struct acc1 *rec = acc1_open_for("device", "llama.cpp b4000");
 *	params.cb_eval = acc_record_ggml, params.cb_eval_user_data = rec;    of its context
 *	...
 *	acc1_close(rec);
 *
 * then: accdiff device bench. For backends whose tensors lie in the memory of the host. With params.type_k and
 * type_v GGML_TYPE_F32, params.flash_attn_type LLAMA_FLASH_ATTN_TYPE_DISABLED it rounds as f32 does.
 */
#include <acc/accrec1.h>
#include <ggml.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
acc_put_ggml(struct acc1 *a, const char *io, const char *pos, const struct ggml_tensor *t)
{
	int64_t shape[GGML_MAX_DIMS], stride[GGML_MAX_DIMS];
	const int n = ggml_n_dims(t);
	for (int d = 0; d < n; d++) { /* ggml's first axis is the last */
		shape[d] = t->ne[n - 1 - d];
		stride[d] = (int64_t)t->nb[n - 1 - d];
	}
	const char *dtype = t->type == GGML_TYPE_F32   ? "f32"
			    : t->type == GGML_TYPE_F16 ? "f16"
						       : "i32";
	if (t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_I32)
		acc1_tensor(a, io, pos, dtype, (uint32_t)n, shape, stride, t->data);
}

/* A float by the fewest digits that tell it: 1e-6, not 9.99999997e-07. */
static double
acc_digits(const int32_t *param)
{
	char s[32];
	float f;
	memcpy(&f, param, sizeof f);
	double d = f;
	for (int n = 6; n <= 9; n++) {
		snprintf(s, sizeof s, "%.*g", n, (double)f);
		d = strtod(s, NULL);
		if ((float)d == f)
			return d;
	}
	return f;
}

/* Attributes, so that accaudit can recompute it; where something more goes in than is recorded, none. */
static void
acc_put_params(struct acc1 *a, const struct ggml_tensor *t)
{
	const int32_t *p = t->op_params;
	for (int i = 0; i < 2 && t->src[i] != NULL; i++)
		if (ggml_is_quantized(t->src[i]->type)) /* then what else goes in is rounded, too */
			acc1_text(a, "kw", "quantized", ggml_type_name(t->src[i]->type));
	if (t->op == GGML_OP_RMS_NORM || t->op == GGML_OP_NORM)
		acc1_float(a, "kw", "eps", acc_digits(p));
	if (t->op == GGML_OP_GLU)
		acc1_int(a, "kw", "swapped", p[1]);
	if (t->op == GGML_OP_SOFT_MAX && t->src[2] == NULL) {
		acc1_float(a, "kw", "scale", acc_digits(p));
		acc1_float(a, "kw", "max_bias", acc_digits(p + 1));
	}
	if (t->op == GGML_OP_ROPE && t->src[2] == NULL) {
		static const char *const names[] = {"freq_base", "freq_scale", "ext_factor",
			"attn_factor"};
		acc1_int(a, "kw", "n_dims", p[1]);
		acc1_int(a, "kw", "mode", p[2]);
		for (int i = 0; i < 4; i++)
			acc1_float(a, "kw", names[i], acc_digits(p + 5 + i));
	}
}

/* Of what was recorded already, in another order. */
static bool
acc_is_view(const struct ggml_tensor *t)
{
	return t->op == GGML_OP_VIEW || t->op == GGML_OP_PERMUTE || t->op == GGML_OP_TRANSPOSE;
}

static bool
acc_record_ggml(struct ggml_tensor *t, bool ask, void *rec)
{
	struct acc1 *a = (struct acc1 *)rec;
	if (ask || acc_is_view(t) || t->op == GGML_OP_RESHAPE ||
		(t->type != GGML_TYPE_F32 && t->type != GGML_TYPE_F16))
		return true;
	acc1_node(a, t->name, ggml_op_desc(t));
	for (int i = 0; i < 2 && t->src[i] != NULL; i++) {
		const struct ggml_tensor *s = t->src[i];
		while (s->op == GGML_OP_RESHAPE && s->src[0] != NULL)
			s = s->src[0];
		if (acc_is_view(s) ||
			(s->flags & GGML_TENSOR_FLAG_INPUT)) /* tokens, places, masks */
			acc_put_ggml(a, "in", i == 0 ? "0" : "1", t->src[i]);
		else
			acc1_from(a, i == 0 ? "0" : "1", s->name);
	}
	acc_put_params(a, t);
	acc_put_ggml(a, "out", "0", t);
	return true;
}
