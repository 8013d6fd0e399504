/* Softmax and its relatives, along one dimension. */
#include "replay/impl.h"

enum { SOFTMAX, LOG_SOFTMAX, MASKED, GGML };

struct along {
	size_t outer, len, inner;
};

static int
along(struct acc_replay *r, const struct acc_dense **x, struct along *s)
{
	uint32_t dim = 0;
	if (acc_need_tensor(r, "input", x) < 0)
		return ACC_EUNSUP;
	const bool last = r->op->which == MASKED || r->op->which == GGML;
	bool known = last || acc_arg(r, "dim") != NULL || acc_str_starts(r->name, "Soft") ||
		     acc_str_starts(r->name, "Log");
	if (!known)
		return acc_cannot(r, "its dimension was not recorded");
	if (last)
		dim = (*x)->ndim > 0 ? (*x)->ndim - 1 : 0;
	else if (acc_arg_dim(r, "dim", (*x)->ndim, -1, &dim) < 0)
		return ACC_EUNSUP;
	*s = (struct along){1, (*x)->ndim == 0 ? 1 : (size_t)(*x)->shape[dim], 1};
	for (uint32_t d = 0; d < (*x)->ndim; d++) {
		s->outer *= d < dim ? (size_t)(*x)->shape[d] : 1;
		s->inner *= d > dim ? (size_t)(*x)->shape[d] : 1;
	}
	return 0;
}

static void
one(const double *x, size_t n, size_t step, bool log_of, double *y, double *mag)
{
	const struct acc_audit_row *row = acc_audit_row();
	double top = -INFINITY, sum = 0, abs;
	if (step == 1 && !log_of) {
		top = row->top(x, n);
		row->exp(x, top, n, y);
		sum = row->sum(y, n, &abs);
		row->part(y, x, top, sum, n, mag);
		for (size_t i = 0; mag != NULL && i < n; i++)
			mag[i] += fabs(y[i]); /* the sum is rounded, too */
		return;
	}
	for (size_t i = 0; i < n; i++)
		top = isnan(x[i * step]) || x[i * step] > top ? x[i * step] : top;
	for (size_t i = 0; i < n; i++)
		sum += exp(x[i * step] - top);
	for (size_t i = 0; i < n; i++) {
		double d = x[i * step] - top;
		y[i * step] = log_of ? d - log(sum) : exp(d) / sum;
		/* The difference is rounded, and the exponential grows with it; the sum is, of which 1 is a part,
		 * though little may be left of its logarithm. */
		if (mag != NULL && isfinite(d))
			mag[i * step] = log_of ? fabs(d) + log(sum) + fabs(top) + 1
					       : y[i * step] * (1 + fabs(d));
	}
}

/* npu_scaled_masked_softmax: x * scale, -10000 where the mask says so */
static const double *
masked(struct acc_replay *r, const struct acc_dense *x)
{
	const struct acc_dense *mask;
	struct acc_broadcast b;
	double scale = 1, *y = acc_doubles(r, x->n);
	bool triangle = false;
	if (y == NULL || acc_need_tensor(r, "mask", &mask) < 0 ||
		acc_arg_float(r, "scale", &scale) < 0 ||
		acc_arg_bool(r, "fixed_triu_mask", &triangle) < 0)
		return NULL;
	if (triangle || !acc_broadcast_start(&b, x->shape, x->ndim, &mask, 1)) {
		acc_cannot(r, "a mask that is not understood");
		return NULL;
	}
	for (size_t i = 0; i < x->n; i++, acc_broadcast_next(&b))
		y[i] = mask->v[b.at[0]] != 0 ? -10000 : x->v[i] * scale;
	return y;
}

/* ggml's: x * scale + mask, which is never left out of a recording where there is one. */
static const double *
biased(struct acc_replay *r, const struct acc_dense *x)
{
	const struct acc_dense *mask;
	struct acc_broadcast b;
	double scale, slope = 0, *y = acc_doubles(r, x->n);
	if (y == NULL || acc_need_tensor(r, "mask", &mask) < 0)
		return NULL;
	if (acc_arg_float(r, "scale", &scale) <= 0 || acc_arg_float(r, "max_bias", &slope) <= 0) {
		acc_cannot(r, "its scale was not recorded");
		return NULL;
	}
	if (slope != 0 || !acc_broadcast_start(&b, x->shape, x->ndim, &mask, 1)) {
		acc_cannot(r, "a mask that is not understood");
		return NULL;
	}
	for (size_t i = 0; i < x->n; i++, acc_broadcast_next(&b))
		y[i] = x->v[i] * scale + mask->v[b.at[0]];
	return y;
}

static int
softmax(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct along s;
	if (along(r, &x, &s) < 0 || acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	const double *v = r->op->which == MASKED ? masked(r, x)
			  : r->op->which == GGML ? biased(r, x)
						 : x->v;
	if (v == NULL)
		return ACC_EUNSUP;
	for (size_t o = 0; o < s.outer && x->n > 0; o++)
		for (size_t i = 0; i < s.inner; i++) {
			size_t at = o * s.len * s.inner + i;
			one(v + at, s.len, s.inner, r->op->which == LOG_SOFTMAX, out->v + at,
				out->mag == NULL ? NULL : out->mag + at);
		}
	return 0;
}

static int
blocks(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	const struct acc_dense *x;
	struct along s;
	(void)name;
	int rc = along(r, &x, &s);
	*in = *out = (struct acc_blocks){s.outer, s.len, s.inner, true, false, true};
	return rc;
}

/* Along what stands before the dimension. */
static int
cut(struct acc_replay *r, struct acc_cut *c)
{
	const struct acc_dense *x;
	struct along s;
	uint32_t d = 0;
	int rc = along(r, &x, &s);
	for (size_t n = 1; rc >= 0 && d < x->ndim && n < s.outer; d++)
		n *= (size_t)x->shape[d];
	c->lead = d;
	return rc;
}

#define ROW(n, s, w) \
	{ \
		.names = n, .sig = s, .cls = "softmax", .rounding = ACC_FEW, .eval = softmax, \
		.flags = ACC_UNIT_SCALE | \
			 (w == LOG_SOFTMAX ? ACC_SAVES_LOG | ACC_TELLS_STEPS : ACC_SAVES_OUTPUT), \
		.blocks = blocks, .which = w, .cut = cut \
	}
const struct acc_op acc_ops_softmax[] = {
	ROW("softmax Softmax", "input|x|self:block dim|axis _stacklevel dtype", SOFTMAX),
	ROW("log_softmax LogSoftmax", "input|x|self:block dim|axis _stacklevel dtype", LOG_SOFTMAX),
	ROW("npu_scaled_masked_softmax", "input|x:block mask scale fixed_triu_mask", MASKED),
	ROW("SOFT_MAX", "input:block mask scale max_bias", GGML),
	{.names = NULL},
};
