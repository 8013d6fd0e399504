/* Operators on lists of tensors, and clipping of gradients: _foreach_add_, _foreach_norm,
 * clip_by_norm, clip_by_value, clip_by_global_norm. */
#include "replay/compose.h"
#include "replay/impl.h"

/* The k-th item of an argument that is a list; what is none is the same for all. */
static struct acc_value
item(const struct acc_value *v, uint32_t k)
{
	struct acc_value one = v->type != ACC_A_LIST ? *v
			       : k < v->n            ? v->item[k]
						     : (struct acc_value){.type = ACC_A_OPAQUE};
	one.name = v->name;
	return one;
}

/* Each output is what the operator without foreach_ makes of the items at its place. */
static int
each(struct acc_replay *r, struct acc_dense *out)
{
	static const char prefix[] = "foreach_";
	struct acc_str name = r->name;
	struct acc_value *in = acc_alloc(r->mem, (r->nin + 1) * sizeof *in);
	struct acc_value *kw = acc_alloc(r->mem, (r->nkw + 1) * sizeof *kw);
	if (in == NULL || kw == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	if (r->nin == 0 || r->in[0].type != ACC_A_LIST || r->in[0].n != r->nrec)
		return acc_cannot(r, "its tensors were not recorded");
	if (!acc_str_starts(name, prefix))
		return acc_cannot(r, "unknown operator");
	char *base = acc_arena_copy(r->mem, name.p + sizeof prefix - 1,
		name.n - (sizeof prefix - 1));
	if (base == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (uint32_t k = 0; k < r->nrec; k++) {
		for (uint32_t i = 0; i < r->nin; i++)
			in[i] = item(&r->in[i], k);
		for (uint32_t i = 0; i < r->nkw; i++)
			kw[i] = item(&r->kw[i], k);
		struct acc_part p = {.name = base,
			.in = in,
			.kw = kw,
			.nin = r->nin,
			.nkw = r->nkw,
			.rec = &r->rec[k],
			.nout = 1};
		if (acc_compose(r, &p, &out[k]) < 0)
			return ACC_EUNSUP;
	}
	return 0;
}

/* --- clipping --- */

enum { BY_NORM, BY_GLOBAL_NORM };

/* What everything is multiplied with, so that the norm of all is at most `most`. */
static double
coefficient(int which, double norm, double most)
{
	if (which == BY_GLOBAL_NORM)
		return most / fmax(norm, most);
	return fmin(1, most / (norm + 1e-6));
}

/* The norm of all tensors together: of their elements. */
static int
norm_of(struct acc_replay *r, uint32_t n, double order, double *norm)
{
	const struct acc_dense *x;
	double sum = 0, top = 0;
	for (uint32_t k = 0; k < n; k++) {
		if (acc_arg_item(r, "input", k, &x) <= 0)
			return acc_cannot(r, "its tensors were not recorded");
		for (size_t i = 0; i < x->n; i++) {
			double a = fabs(x->v[i]);
			sum += order == 2 ? a * a : pow(a, order);
			top = isnan(a) || a > top ? a : top;
		}
	}
	*norm = isinf(order) ? top : order == 2 ? sqrt(sum) : pow(sum, 1 / order);
	return 0;
}

static int
clip_norm(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	uint32_t n = acc_arg_count(r, "input");
	double most = r->op->which == BY_GLOBAL_NORM ? 1 : NAN, order = 2, norm = 0;
	if (acc_arg_float(r, "max_norm", &most) < 0 || acc_arg_float(r, "norm_type", &order) < 0)
		return ACC_EUNSUP;
	if (isnan(most) || n == 0 || r->nrec != n || acc_arg(r, "use_norm") != NULL)
		return acc_cannot(r, "outputs that are not understood");
	if (norm_of(r, n, order, &norm) < 0)
		return ACC_EUNSUP;
	double by = coefficient(r->op->which, norm, most);
	for (uint32_t k = 0; k < n; k++) {
		if (acc_arg_item(r, "input", k, &x) <= 0 ||
			acc_out_shape(r, &out[k], x->shape, x->ndim) < 0)
			return acc_cannot(r, "its tensors were not recorded");
		for (size_t i = 0; i < x->n; i++) {
			out[k].v[i] = x->v[i] * by;
			if (out[k].mag != NULL) /* norm and coefficient are rounded, too */
				out[k].mag[i] = 2 * acc_roundings(r, out[k].dtype) *
						fabs(out[k].v[i]);
		}
	}
	return 0;
}

/* Of one tensor, or of a list. */
static int
clip_value(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	double low = -INFINITY, high = INFINITY;
	uint32_t n = acc_arg_count(r, "input");
	if (acc_arg_float(r, "clip_value_min", &low) < 0 ||
		acc_arg_float(r, "clip_value_max", &high) < 0)
		return ACC_EUNSUP;
	if (n == 0 || n != r->nrec || (isinf(low) && isinf(high)))
		return acc_cannot(r, "its bounds were not recorded");
	for (uint32_t k = 0; k < n; k++) {
		if (acc_arg_item(r, "input", k, &x) <= 0 ||
			acc_out_shape(r, &out[k], x->shape, x->ndim) < 0)
			return acc_cannot(r, "its tensors were not recorded");
		for (size_t i = 0; i < x->n; i++)
			out[k].v[i] = isnan(x->v[i]) ? x->v[i] : fmin(fmax(x->v[i], low), high);
	}
	return 0;
}

const struct acc_op acc_ops_foreach[] = {
	{.names = "foreach_add foreach_sub foreach_mul foreach_div foreach_addcmul foreach_addcdiv "
		  "foreach_maximum foreach_minimum foreach_clamp_min foreach_clamp_max foreach_lerp "
		  "foreach_pow foreach_sqrt foreach_rsqrt foreach_reciprocal foreach_neg foreach_abs "
		  "foreach_exp foreach_sign foreach_norm foreach_zero foreach_copy",
		.sig = "input|self:any other|tensor1|tensors1|exponent:any "
		       "tensor2|tensors2|weight|weights:any value",
		.cls = "list",
		.rounding = ACC_FEW,
		.eval = each},
	{.names = "clip_by_norm ClipByNorm",
		.sig = "input|x max_norm norm_type",
		.cls = "list",
		.rounding = ACC_FEW,
		.eval = clip_norm,
		.which = BY_NORM},
	{.names = "clip_by_global_norm",
		.sig = "input|x max_norm|clip_norm use_norm",
		.cls = "list",
		.rounding = ACC_FEW,
		.eval = clip_norm,
		.which = BY_GLOBAL_NORM},
	{.names = "clip_by_value",
		.sig = "input|x clip_value_min clip_value_max",
		.cls = "move",
		.rounding = ACC_EXACT,
		.eval = clip_value},
	{.names = NULL},
};
