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

/* Of what was recorded already. */
static bool
acc_is_view(const struct ggml_tensor *t)
{
	return t->op == GGML_OP_VIEW || t->op == GGML_OP_RESHAPE || t->op == GGML_OP_PERMUTE || t->op == GGML_OP_TRANSPOSE;
}

static bool
acc_record_ggml(struct ggml_tensor *t, bool ask, void *rec)
{
	int64_t shape[GGML_MAX_DIMS], stride[GGML_MAX_DIMS];
	struct acc1 *a = (struct acc1 *)rec;
	const int n = ggml_n_dims(t);
	if (ask || acc_is_view(t) || (t->type != GGML_TYPE_F32 && t->type != GGML_TYPE_F16))
		return true;
	for (int d = 0; d < n; d++) { /* ggml's first axis is the last */
		shape[d] = t->ne[n - 1 - d];
		stride[d] = (int64_t)t->nb[n - 1 - d];
	}
	acc1_node(a, t->name, ggml_op_desc(t));
	for (int i = 0; i < 2 && t->src[i] != NULL; i++) {
		const struct ggml_tensor *s = t->src[i];
		while (acc_is_view(s) && s->src[0] != NULL)
			s = s->src[0];
		acc1_from(a, i == 0 ? "0" : "1", s->name);
	}
	acc1_tensor(a, "out", "0", t->type == GGML_TYPE_F32 ? "f32" : "f16", (uint32_t)n, shape, stride, t->data);
	return true;
}
