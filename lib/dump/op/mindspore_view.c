/* The shapes that kernels take their inputs in. Reshape, ExpandDims and Squeeze hand on the memory of what they are
 * given, and a dump of MindSpore's CPU has their result in the shape in which that memory was written first (behaviour
 * ms-views-keep-shape). What a kernel writes is dumped in its own shape: of elements one by one that is the shape that
 * its inputs have, and of what it sums up over an axis, but for that. */
#include "acc/base.h"
#include "acc/tensor.h"

#include "dump/op/mindspore_folder.h"
#include "dump/payload.h"

static const char each[] =
	"Add Sub Mul Div RealDiv Pow Maximum Minimum FloorDiv FloorMod Mod Abs Neg Sign Square Sqrt Rsqrt Reciprocal Inv Exp"
	" Expm1 Log Log1p Sin Cos Tanh Erf Erfc Sigmoid SiLU ReLU ReLU6 GeLU Elu CeLU SeLU HSigmoid HSwish Softplus Softsign"
	" Mish LeakyReLU HShrink SoftShrink Floor Ceil Round Cast Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd"
	" LogicalOr LogicalNot Select MaskedFill Addcmul Addcdiv Softmax LogSoftmax SmoothL1Loss ReluGrad ReLU6Grad GeLUGrad"
	" SiLUGrad TanhGrad SigmoidGrad EluGrad SqrtGrad RsqrtGrad SoftmaxBackward LogSoftmaxGrad CumSum Triu Tril";
/* Of these the first input alone: the others are weights. */
static const char first[] = "LayerNorm GroupNorm BatchNorm BiasAdd Dropout";
static const char reduced[] =
	"ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceStd ReduceAll ReduceAny";

static uint64_t
count(const int64_t *shape, uint32_t ndim)
{
	uint64_t n = 1;
	for (uint32_t d = 0; d < ndim; d++)
		n *= (uint64_t)shape[d];
	return n;
}

/* May it be broadcast to the shape that comes out? Then it is taken as it stands. */
static bool
broadcasts(const struct acc_ref *x, const struct ms_view *v)
{
	if (x->ndim > v->ndim)
		return false;
	for (uint32_t d = 0; d < x->ndim; d++) {
		const int64_t n = x->shape[d], to = v->shape[v->ndim - x->ndim + d];
		if (n != 1 && n != to)
			return false;
	}
	return true;
}

/* The axis that goes, of what comes out in this many; false: none, or several. */
static bool
gone(const struct ms_call *c, const struct ms_attr *attr, struct ms_view *v)
{
	bool keeps = false, any = false;
	int64_t dim = 0;
	for (uint32_t i = 0; attr != NULL && i < c->n; i++) {
		if (acc_str_is(attr[i].name, "keepdim"))
			keeps = attr[i].ints[0] != 0;
		if (!acc_str_is(attr[i].name, "dim") || attr[i].n != 1)
			continue;
		dim = attr[i].ints[0];
		any = true;
	}
	const int64_t ndim = (int64_t)v->ndim + !keeps;
	dim += dim < 0 ? ndim : 0;
	if (!any || dim < 0 || dim >= ndim || ndim > ACC_MAXDIM)
		return false;
	for (int64_t d = ndim - 1; d > dim && !keeps; d--)
		v->shape[d] = v->shape[d - 1];
	v->shape[dim] = 1;
	v->ndim = (uint32_t)ndim;
	v->gone = (int)dim;
	return true;
}

void
acc_ms_view(struct ms_folder *f, const struct ms_call *c, const struct ms_attr *attr)
{
	const struct ms_tensor *t = &f->first[c->first];
	struct ms_view *v = &f->view;
	*v = (struct ms_view){.gone = -1};
	if (!f->cpu || c->loose || t->n == NULL)
		return;
	const bool sums = acc_word_in(reduced, t->n->type);
	v->first = acc_word_in(first, t->n->type);
	if (!sums && !v->first && !acc_word_in(each, t->n->type))
		return;
	for (uint32_t i = 0; i < c->n; i++) {
		struct acc_ref ref = {.dtype = ACC_NODTYPE};
		struct acc_err quiet = {0};
		if (t[i].kind != MS_TENSOR || t[i].n->io != 'o' || t[i].n->slot != 0 ||
			t[i].file == NULL)
			continue;
		acc_dump_payload(f->dirfd, acc_str(t[i].file), &ref, &f->one, &quiet);
		v->ndim = ref.ndim;
		memcpy(v->shape, ref.shape, sizeof v->shape);
		v->known = (quiet.code == 0 || quiet.code == ACC_EFORMAT) &&
			   ref.dtype != ACC_NODTYPE &&
			   (!sums || (ref.ndim < ACC_MAXDIM && gone(c, attr, v)));
	}
}

void
acc_ms_view_put(const struct ms_folder *f, const struct ms_tensor *t, struct acc_ref *ref)
{
	const struct ms_view *v = &f->view;
	if (!v->known || t->n->io != 'i' || (v->first && t->n->slot != 0) || ref->strided)
		return;
	struct ms_view to = *v;
	const uint64_t have = count(ref->shape, ref->ndim), out = count(to.shape, to.ndim);
	if (to.gone >= 0 && out > 0 && have % out == 0)
		to.shape[to.gone] = (int64_t)(have / out);
	if (have <= 1 || have != count(to.shape, to.ndim) || (to.gone < 0 && broadcasts(ref, v)))
		return;
	ref->ndim = to.ndim;
	memcpy(ref->shape, to.shape, sizeof to.shape);
}
