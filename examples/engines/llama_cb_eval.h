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

static void
acc_put_ggml(struct acc1 *a, const char *io, const char *pos, const struct ggml_tensor *t)
{
	int64_t shape[GGML_MAX_DIMS], stride[GGML_MAX_DIMS];
	const int n = ggml_n_dims(t);
	for (int d = 0; d < n; d++) { /* ggml's first axis is the last */
		shape[d] = t->ne[n - 1 - d];
		stride[d] = (int64_t)t->nb[n - 1 - d];
	}
	if (t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16)
		acc1_tensor(a, io, pos, t->type == GGML_TYPE_F32 ? "f32" : "f16", (uint32_t)n,
			shape, stride, t->data);
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
		if (acc_is_view(s))
			acc_put_ggml(a, "in", i == 0 ? "0" : "1", t->src[i]);
		else
			acc1_from(a, i == 0 ? "0" : "1", s->name);
	}
	acc_put_ggml(a, "out", "0", t);
	return true;
}
