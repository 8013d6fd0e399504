/* Why an output may be right although it is not what the recorded inputs give. */
#include "replay/compose.h"
#include "replay/impl.h"

/* Operators that write to their input, other than by a name that ends in _. */
static const char operators[] = "iadd isub imul imatmul idiv itruediv ifloordiv imod ipow iand ior "
	"ixor ilshift irshift setitem npu_apply_adam npu_apply_adam_w Adam AdamWeightDecay "
	"ApplyMomentum";

/* Is the call one that writes to its first argument? */
static bool
writes(struct acc_trial *t)
{
	struct acc_str op = t->j->op;
	bool inplace = false;
	if (acc_str_starts(op, "Aten.")) /* add_.Tensor */
		for (uint32_t i = 5; i < op.n; i++)
			if (op.p[i] == '.')
				op.n = i;
	bool one = op.n > 1 && op.p[op.n - 1] == '_' && op.p[op.n - 2] != '_';
	if (one || acc_word_in(operators, t->r.name))
		return true;
	const char *why = t->r.why;
	int rc = strstr(t->r.op->sig, " inplace") == NULL ? 0
		: acc_arg_bool(&t->r, "inplace", &inplace);
	t->r.why = why;
	return rc > 0 && inplace;
}

static bool
same(const struct acc_value *v, uint32_t k, const struct acc_dense *out)
{
	if (v != NULL && v->type == ACC_A_LIST)
		v = k < v->n ? &v->item[k] : NULL;
	if (v == NULL || v->type != ACC_A_TENSOR)
		return false;
	const struct acc_dense *x = v->t;
	return x->n == out->n && x->dtype == out->dtype && x->v != NULL && out->v != NULL &&
		x->n > 0 && memcmp(x->v, out->v, x->n * sizeof *x->v) == 0;
}

/* Where the recorder saved the input after the call, it is the output, and tells nothing. */
static bool
overwritten(struct acc_trial *t, uint32_t k)
{
	const struct acc_dense *out = &t->out[k]->d;
	const struct acc_replay *r = &t->r;
	bool found = r->nin > 0 && same(&r->in[0], k, out);
	for (uint32_t i = 0; i < r->nkw && !found; i++) {
		struct acc_str name = r->kw[i].name;
		found = (acc_str_is(name, "out") || acc_str_is(name, "input") ||
				acc_str_is(name, "self")) && same(&r->kw[i], k, out);
	}
	return found && writes(t);
}

/* Modules and primitives whose numbers, which are not recorded, change the result. Where the usual
 * ones do not give it, others may. */
static const char numbers[] = "LeakyReLU ELU CELU Softplus Hardtanh GELU Threshold Hardshrink "
	"Softshrink Softmax LogSoftmax BatchNorm1d BatchNorm2d BatchNorm3d StridedSlice Elu "
	"ApplyMomentum OneHot CrossEntropyLoss NLLLoss MSELoss L1Loss SmoothL1Loss HuberLoss "
	"BCELoss BCEWithLogitsLoss KLDivLoss";

/* Operators that are often given keywords that change the result. */
static const char keywords[] = "gelu clamp clip sort argsort triu tril leaky_relu elu softplus "
	"cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div "
	"binary_cross_entropy binary_cross_entropy_with_logits std var norm div argmax argmin "
	"interpolate normalize cosine_similarity nan_to_num scaled_dot_product_attention "
	"npu_fusion_attention rms_norm npu_rms_norm layer_norm dropout one_hot scatter pad";

/* Are there arguments that were not recorded, because they may have been keywords? */
static bool
left_out(const struct acc_trial *t)
{
	uint32_t words = 1;
	for (const char *p = t->r.op->sig; *p != '\0'; p++)
		words += *p == ' ';
	return t->j->positional && t->r.nkw == 0 && t->r.nin < words &&
		acc_word_in(keywords, t->r.name);
}

const char *
acc_excuse(struct acc_trial *t, uint32_t k)
{
	if (overwritten(t, k))
		return "it works in place, and its input was recorded after it";
	if (t->r.module && acc_word_in(numbers, t->r.name))
		return "its numbers were not recorded, and the usual ones do not give its output";
	if (left_out(t))
		return "keywords were not recorded, and without them its output is another";
	return NULL;
}
