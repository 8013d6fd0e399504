/* What MindSpore's kernels take, slot by slot, where some of it are attributes: since 2.3 a dump holds
 * these behind the tensors, as scalars and lists. Read off the dumps of MindSpore 2.10.0 on the CPU and
 * its ops/auto_generate/gen_ops_prim.py: what a primitive is called with, then what it was made with.
 * An attribute that torch has, too, is called as torch calls it. */
#include "acc/op.h"

/* A word a slot: t a tensor, t* one or more; else NAME:TYPE, a Bool (b), a float (f), an integer (i), a number of
 * either kind (n), a number that may be an operand (c), integers (I), an axis or several (A), how a loss is reduced
 * (r), the share that is kept (k), which torch gives as what is not. N:! a tensor that is written over and is what
 * output N should be (behaviour ms-optimizer-after-update), N:~ one that is no result. NAME=TEXT takes no slot: what the kernel does, where torch has an
 * argument for it. */
static const struct {
	const char *types, *slots;
} rows[] = {
	{"MatMul BatchMatMul", "t t transpose_a:b transpose_b:b"},
	{"Add Sub Mul Div RealDiv Pow Maximum Minimum FloorDiv FloorMod", "t 1:c"},
	{"Add Sub Mul Div RealDiv Pow Maximum Minimum FloorDiv FloorMod", "0:c t"},
	{"BiasAdd", "t t data_format:i"},
	{"BiasAddGrad", "t data_format:i"},
	{"LayerNorm", "t t t begin_norm_axis:i begin_params_axis:i eps:f"},
	{"LayerNormGrad", "t t t t t begin_norm_axis:i begin_params_axis:i"},
	{"Adam", "0:! 1:! 2:! t t lr:f beta1:f beta2:f eps:f t"},
	{"AdamWeightDecay", "0:! 1:! 2:! lr:f beta1:f beta2:f eps:f weight_decay:f t"},
	{"AdamWeightDecay",
		"0:! 1:! 2:! lr:f beta1:f beta2:f eps:f weight_decay:f t use_locking:b"},
	{"ApplyMomentum", "0:! 1:! lr:f t momentum:f"},
	{"ApplyAdagrad", "0:! 1:! lr:f t"},
	{"ApplyAdagradV2", "0:! 1:! lr:f t"},
	{"ApplyRMSProp", "0:! 1:~ 2:~ lr:f t rho:f momentum:f eps:f"},
	{"ApplyAdaMax", "0:! 1:! 2:! t lr:f beta1:f beta2:f eps:f t"},
	{"ApplyAdadelta", "0:! 1:! 2:! lr:f rho:f eps:f t"},
	{"BatchNorm", "t t t 1:~ 2:~ training:b eps:f momentum:f data_format:i"},
	{"BatchNormGrad", "t t t t t t training:b eps:f data_format:i"},
	{"GroupNorm", "t num_groups:i t t eps:f"},
	{"Softmax LogSoftmax Squeeze ReverseV2", "t dim:A"},
	{"ExpandDims", "t dim:i"},
	{"Transpose", "t dims:I"},
	{"LogSoftmaxGrad SoftmaxBackward", "t t dim:A"},
	{"ReduceSum", "t dim:A keepdim:b skip_mode:b"},
	{"ReduceSum", "t keepdim:b skip_mode:b"},
	{"ReduceMean ReduceMax ReduceMin ReduceProd ReduceAll ReduceAny", "t dim:A keepdim:b"},
	{"ReduceMean ReduceMax ReduceMin ReduceProd ReduceAll ReduceAny", "t keepdim:b"},
	{"ReduceStd", "t dim:A unbiased:b keepdim:b"},
	{"ReduceStd", "t unbiased:b keepdim:b"},
	{"ArgMaxWithValue ArgMinWithValue", "t dim:i keepdim:b"},
	{"Argmax Argmin", "t dim:i output_type:i"},
	{"CumSum CumProd", "t dim:i exclusive:b reverse:b"},
	{"TopK", "t k:i"},
	{"Concat", "t* dim:i"},
	{"Split", "t dim:i chunks:i"},
	{"Tile", "t repeats:I"},
	{"BroadcastTo", "t size:I"},
	{"PadV3", "t pad:I value:n"},
	{"Triu Tril", "t diagonal:i"},
	{"Slice", "t begin:I size:I"},
	{"StridedSlice", "t begin:I end:I strides:I begin_mask:i end_mask:i ellipsis_mask:i"
			 " new_axis_mask:i shrink_axis_mask:i"},
	{"StridedSliceGrad", "t shape:I begin:I end:I strides:I begin_mask:i end_mask:i"
			     " ellipsis_mask:i new_axis_mask:i shrink_axis_mask:i"},
	{"Gather", "t t axis:i batch_dims:i"},
	{"GatherD", "t dim:i t"},
	{"GatherDGradV2", "t dim:i t t"},
	{"TensorScatterElements", "t t t dim:i reduce:i"},
	{"OneHot", "t on_value:n off_value:n dim:i"},
	{"MaskedFill", "t t value:n"},
	{"Addcmul Addcdiv", "t t t value:n"},
	{"Elu CeLU", "t alpha:f"},
	{"HShrink SoftShrink", "t lambd:f"},
	{"Round", "t decimals:i"},
	{"Cdist", "t t p:f"},
	{"Meshgrid", "t* indexing:i"},
	{"AvgPool", "t kernel_size:I stride:I pad_mode:i data_format:i"},
	{"ResizeBilinearV2", "t align_corners:b half_pixel_centers:b"},
	{"ResizeNearestNeighborV2", "t size:I align_corners:b half_pixel_centers:b"},
	{"GeLU", "t approximate=tanh"},
	{"SmoothL1Loss", "t t beta:f reduction:r"},
	{"SmoothL1LossGrad", "t t t beta:f reduction:r"},
	{"BinaryCrossEntropy", "t t reduction:r"},
	{"BinaryCrossEntropy", "t t t reduction:r"},
	{"BinaryCrossEntropyGrad", "t t t reduction:r"},
	{"BCEWithLogitsLoss", "t t t t reduction:r"},
	{"NLLLoss", "t t t reduction:r ignore_index:i"},
	{"NLLLossGrad", "t t t t t reduction:r ignore_index:i"},
	{"Dropout", "t p:k seed0:i seed1:i"},
};

bool
acc_kernel_word(const char **p, struct acc_kernel_slot *out)
{
	while (**p == ' ')
		(*p)++;
	if (**p == '\0')
		return false;
	uint32_t n = (uint32_t)strcspn(*p, " ");
	const char *colon = memchr(*p, ':', n);
	*out = (struct acc_kernel_slot){.many = n == 2 && (*p)[1] == '*'};
	if (memchr(*p, '=', n) != NULL)
		*out = (struct acc_kernel_slot){.name = {*p, n}, .type = '='};
	if (colon != NULL) {
		out->name = (struct acc_str){*p, (uint32_t)(colon - *p)};
		out->type = colon[1];
	}
	*p += n;
	return true;
}

/* May what was dumped at a slot be what the row says of it? */
static bool
fits(char type, char kind)
{
	switch (type) {
	case '\0':
	case '!':
	case '~':
		return true;
	case 'k':
		return kind == 'f';
	case 'c':
	case 'n':
		return kind == 'f' || kind == 'i';
	case 'A':
		return kind == 'i' || kind == 'I';
	case 'r':
		return kind == 'i';
	case 'f': /* an optimizer's may be a list of one */
		return kind == 'f' || kind == 'F';
	default:
		return kind == type;
	}
}

static bool
row_fits(const char *p, const char *kinds)
{
	const char *rest;
	struct acc_kernel_slot s, next;
	for (; acc_kernel_word(&p, &s); kinds++) {
		if (s.type == '=')
			break;
		if (*kinds == '\0' || !fits(s.type, *kinds))
			return false;
		/* Of many tensors, all but the attributes behind them. */
		size_t behind = 0;
		for (rest = p; s.many && acc_kernel_word(&rest, &next);)
			behind++;
		while (s.many && strlen(kinds) > behind + 1)
			kinds++;
	}
	return *kinds == '\0';
}

bool
acc_kernel_known(struct acc_str type)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (acc_word_in(rows[i].types, type))
			return true;
	return false;
}

const char *
acc_kernel_slots(struct acc_str type, const char *kinds)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (acc_word_in(rows[i].types, type) && row_fits(rows[i].slots, kinds))
			return rows[i].slots;
	return NULL;
}

/* The inputs of primitives of 2.10.0 in their order, and where torch's function has them: x, gamma, beta;
 * x, scale, bias, mean, variance; params, indices, axis. */
static const struct {
	const char *type, *places;
} orders[] = {
	{"LayerNorm", "023"},
	{"BatchNorm", "03412"},
	{"Gather", "10"},
};

struct acc_str
acc_op_torch_place(struct acc_str op, struct acc_str pos)
{
	const uint32_t at = pos.n == 1 ? (uint32_t)(pos.p[0] - '0') : UINT32_MAX;
	if (!acc_str_starts(op, "Primitive."))
		return pos;
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		if (acc_str_is(acc_op_name(op), orders[i].type) && at < strlen(orders[i].places))
			return (struct acc_str){orders[i].places + at, 1};
	return pos;
}

bool
acc_op_writes_later(struct acc_str op, struct acc_str pos)
{
	const struct acc_op_info *o = acc_op_info_of(op);
	return o != NULL && strcmp(o->family, "batch_norm") == 0 && acc_word_in("momentum 6", pos);
}
