/* What operators are made of, by their last part: where one side computes in one call what the
 * other computes in several, the results of these two are the same tensor. */
#include "acc/op.h"

static const struct acc_op_whole rows[] = {
	{"linear", "bias_add matmul add"},
	{"conv1d", "bias_add add"},
	{"conv_transpose1d", "bias_add add"},
	{"matmul", "add"}, /* addmm */
	{"scaled_dot_product_attention", "matmul"},
	{"multi_head_attention_forward", "bias_add linear add"},
	{"rotary_mul", "add"},
	{"layer_norm", "add mul"},
	{"group_norm", "add mul"},
	{"batch_norm", "add mul"},
	{"rms_norm", "mul"},
	{"normalize", "div mul"},
	{"softmax", "div mul sub"}, /* of log_softmax a difference */
	{"gelu", "mul"},
	{"silu", "mul div"},
	{"swiglu", "mul"},
	{"geglu", "mul"},
	{"glu", "mul"},
	{"leaky_relu", "max"},
	{"mish", "mul"},
	{"hardswish", "mul div"},
	{"sigmoid", "div rsqrt"},
	{"tanh", "div"},
	{"softplus", "log add"},
	{"dropout", "mul"},
	{"embedding", "gather"},
	{"avg_pool2d", "mean"},
	{"max_pool2d", "max"},
	{"pow", "mul"},
	{"norm", "pow sqrt"},
	{"var", "mean"},
	{"mse_loss", "mean sum"}, /* and smooth_l1_loss, of its family */
	{"cross_entropy", "mean sum neg div"},
	{"binary_cross_entropy", "mean sum neg div"},
	{"binary_cross_entropy_with_logits", "mean sum neg div"},
	{"kl_div", "mean sum div"},
};

/* Which of the words has this hash, from 1 on; 0: none. */
static unsigned
word(const char *words, uint64_t hash)
{
	unsigned nth = 1;
	for (const char *p = words; *p != '\0'; p += *p == ' ', nth++) {
		size_t n = strcspn(p, " ");
		if (acc_hash(p, n) == hash)
			return nth;
		p += n;
	}
	return 0;
}

unsigned
acc_op_ends_in(uint64_t whole, uint64_t last)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (word(rows[i].whole, whole) != 0)
			return word(rows[i].ends, last);
	return 0;
}

const struct acc_op_whole *
acc_op_whole_at(size_t i)
{
	return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}
