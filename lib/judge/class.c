/* What an operator does to errors, by its name. */
#include "acc/judge.h"

/* Sorted, for bsearch; without the leading and trailing underscores of the spelling. */
static const char *const move[] = {"all_gather", "all_gather_base", "all_gather_into_tensor",
	"all_to_all", "all_to_all_single", "as_strided", "atleast_1d", "atleast_2d",
	"atleast_3d", "bfloat16", "broadcast", "broadcast_tensors", "broadcast_to", "cat",
	"chunk", "clone", "concat", "contiguous", "copy", "cpu", "cuda", "detach", "diagonal",
	"double", "embedding", "expand", "expand_as", "fill", "fill_diagonal", "flatten", "flip",
	"float", "full", "full_like", "gather", "getitem", "half", "hstack", "identity", "index",
	"index_copy", "index_fill", "index_select", "int", "long", "masked_fill",
	"masked_scatter", "masked_select", "movedim", "narrow", "new_full", "new_ones", "new_tensor", "new_zeros", "npu", "npu_format_cast",
	"npu_masked_fill", "one_hot", "ones", "ones_like", "pad", "permute", "ravel", "recv",
	"repeat", "repeat_interleave", "reshape", "reshape_as", "roll", "scatter", "select",
	"send", "setitem", "split", "split_with_sizes", "squeeze", "stack", "swapaxes",
	"swapdims", "t", "take", "take_along_dim", "tensor", "tensor_split", "tile", "to", "transpose",
	"tril", "triu", "type", "type_as", "unbind", "unflatten", "unfold", "unsqueeze", "view",
	"view_as", "vstack", "where", "zero", "zeros", "zeros_like"};
static const char *const add[] = {"abs", "add", "clamp", "hardtanh", "iadd", "isub",
	"leaky_relu", "maximum", "minimum", "neg", "radd", "relu", "rsub", "sub", "subtract"};
static const char *const mul[] = {"div", "divide", "idiv", "imul", "itruediv", "mul", "multiply",
	"rdiv", "rmul", "rtruediv", "true_divide", "truediv"};
static const char *const steady[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d",
	"adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
	"adaptive_max_pool3d", "amax", "amin", "avg_pool1d", "avg_pool2d", "avg_pool3d", "cos",
	"elu", "interpolate", "logsigmoid", "logsumexp", "max", "max_pool1d", "max_pool2d",
	"max_pool3d", "mean", "median", "min", "msort", "sigmoid", "sin", "softmax", "softplus",
	"sort", "tanh", "topk", "upsample"};
static const char *const contract[] = {"addbmm", "addmm", "addmv", "baddbmm", "bilinear",
	"bmm", "chain_matmul", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
	"conv_transpose2d", "conv_transpose3d", "dot", "einsum", "flash_attn_func", "inner",
	"linear", "matmul", "mm", "multi_head_attention_forward", "mv", "npu_fusion_attention",
	"npu_grouped_matmul", "outer", "rmatmul", "scaled_dot_product_attention", "tensordot"};
static const char *const random_[] = {"alpha_dropout", "bernoulli", "cauchy", "dropout",
	"dropout1d", "dropout2d", "dropout3d", "exponential", "feature_alpha_dropout",
	"feature_dropout", "gumbel_softmax", "multinomial", "normal", "poisson", "rand",
	"rand_like", "randint", "randint_like", "randn", "randn_like", "random", "randperm",
	"rrelu", "uniform"};
static const char *const alloc[] = {"empty", "empty_like", "empty_strided",
	"empty_with_format", "new_empty", "new_empty_strided"};

static const char *const weighted[] = {"batch_norm", "bilinear", "conv1d", "conv2d", "conv3d",
	"conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "group_norm",
	"instance_norm", "layer_norm", "linear", "npu_rms_norm", "rms_norm"};

static bool
listed(const char *const *list, size_t n, struct acc_str s)
{
	size_t lo = 0;
	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;
		int d = acc_str_cmp(s, acc_str(list[mid]));
		if (d == 0)
			return true;
		if (d > 0)
			lo = mid + 1;
		else
			n = mid;
	}
	return false;
}

/* Functional.linear, Tensor.__add__, Tensor.copy_, NPU.npu_format_cast: the bare name. */
static struct acc_str
bare(struct acc_str op)
{
	for (uint32_t i = 0; i < op.n; i++)
		if (op.p[i] == '.') {
			op.p += i + 1;
			op.n -= i + 1;
			break;
		}
	while (op.n > 1 && op.p[op.n - 1] == '_')
		op.n--;
	while (op.n > 1 && op.p[0] == '_') {
		op.p++;
		op.n--;
	}
	return op;
}

#define IN(list) listed(list, sizeof list / sizeof *list, op)
enum acc_op_class
acc_op_class(struct acc_str op)
{
	if (acc_str_starts(op, "Module."))
		return acc_str_ends(op, "Linear") || acc_glob("*.Conv[123]d", op)
			       ? ACC_OP_CONTRACT : ACC_OP_OTHER;
	op = bare(op);
	return IN(move)	      ? ACC_OP_MOVE
	       : IN(add)      ? ACC_OP_ADD
	       : IN(mul)      ? ACC_OP_MUL
	       : IN(steady)   ? ACC_OP_STEADY
	       : IN(contract) ? ACC_OP_CONTRACT
	       : IN(random_)  ? ACC_OP_RANDOM
	       : IN(alloc)    ? ACC_OP_ALLOC
			      : ACC_OP_OTHER;
}

bool
acc_op_same(struct acc_str a, struct acc_str b)
{
	a = bare(a);
	b = bare(b);
	for (int i = 0; i < 2; i++) {
		struct acc_str *s = i == 0 ? &a : &b;
		if (acc_str_starts(*s, "npu_")) {
			s->p += 4;
			s->n -= 4;
		}
	}
	return acc_str_eq(a, b);
}

bool
acc_op_weighted(struct acc_str op)
{
	op = bare(op);
	return IN(weighted);
}
#undef IN

double
acc_unit(enum acc_dtype t)
{
	if (t == ACC_NODTYPE || acc_dtypes[t].cls == 'I' || acc_dtypes[t].cls == 'U' ||
		acc_dtypes[t].cls == 'B')
		return 0;
	switch (t) {
	case ACC_C32:
		t = ACC_F16;
		break;
	case ACC_C64:
		t = ACC_F32;
		break;
	case ACC_C128:
		t = ACC_F64;
		break;
	default:
		break;
	}
	/* eps is the distance from 1 to the next number. The rms of a rounding to nearest is
	 * eps / 2 / sqrt(3) at most; an operator in a 16-bit dtype rounds once, at its end,
	 * one in f32 or f64 also on its way. */
	return acc_dtypes[t].size <= 2 ? acc_dtypes[t].eps / 4 : acc_dtypes[t].eps / 2;
}
