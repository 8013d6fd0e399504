/* Pooling over the last one, two or three dimensions, as torch.nn.functional defines it. */
#include "replay/compose.h"
#include "replay/impl.h"

enum { AVG, MAX, ADAPTIVE_AVG, ADAPTIVE_MAX };
enum { KIND = 3, DIMS_AT = 2 }; /* `which`: the kind, and the dimensions above it */

struct pool {
	const struct acc_dense *x;
	int kind;
	uint32_t nd;           /* dimensions that are pooled */
	int64_t in[3], out[3]; /* their sizes; missing ones are 1 */
	int64_t kernel[3], stride[3], pad[3], dilation[3];
	bool ceil, count_pad;
	int64_t divisor; /* 0: the size of the window */
};

/* A window: [lo, hi) in each dimension, in steps; and its size with padding, as averages count. */
struct window {
	int64_t lo[3], hi[3], step[3];
	double size;
};

/* One number for all dimensions, or one each; dflt where absent. */
static int
each(struct acc_replay *r, const char *name, uint32_t nd, const int64_t *dflt, int64_t least,
	int64_t *v)
{
	int64_t got[6];
	uint32_t n;
	int rc = acc_arg_ints(r, name, got, 6, &n);
	if (rc < 0)
		return rc;
	/* ONNX pads each axis in front, then each behind. */
	for (uint32_t i = 0; n == 2 * nd && i < nd; i++)
		if (got[i] != got[i + nd])
			return acc_cannot(r, "a padding that is not understood");
	n = n == 2 * nd ? nd : n;
	if (n != 0 && n != 1 && n != nd)
		return acc_cannot(r, "its arguments do not fit its dimensions");
	for (uint32_t i = 0; i < 3; i++) {
		v[i] = i >= nd ? (least > 0 ? 1 : 0) : n == 0 ? dflt[i] : got[n == 1 ? 0 : i];
		if (v[i] < least || v[i] > INT32_MAX)
			return acc_cannot(r, "its arguments are out of range");
	}
	return 0;
}

static int64_t
extent(const struct pool *p, uint32_t d)
{
	int64_t span = p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
	if (span < 0)
		return 0;
	int64_t n = (span + (p->ceil ? p->stride[d] - 1 : 0)) / p->stride[d] + 1;
	/* The last window must start inside, or in the padding before. */
	if (p->ceil && (n - 1) * p->stride[d] >= p->in[d] + p->pad[d])
		n--;
	return n;
}

static int
sizes(struct acc_replay *r, struct pool *p)
{
	static const int64_t zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
	if (acc_arg(r, "kernel_size") == NULL)
		return acc_cannot(r, "its window was not recorded");
	if (each(r, "kernel_size", p->nd, one, 1, p->kernel) < 0 ||
		each(r, "stride", p->nd, p->kernel, 1, p->stride) < 0 ||
		each(r, "padding", p->nd, zero, 0, p->pad) < 0 ||
		acc_arg_bool(r, "ceil_mode", &p->ceil) < 0)
		return ACC_EUNSUP;
	for (uint32_t d = 0; d < 3; d++)
		p->dilation[d] = 1;
	if (p->kind == MAX)
		return each(r, "dilation", p->nd, one, 1, p->dilation);
	if (acc_arg_bool(r, "count_include_pad", &p->count_pad) < 0 ||
		acc_arg_int(r, "divisor_override", &p->divisor) < 0)
		return ACC_EUNSUP;
	return 0;
}

static int
read_pool(struct acc_replay *r, const struct acc_dense *out, struct pool *p)
{
	int64_t shape[ACC_DENSE_DIMS];
	*p = (struct pool){.kind = r->op->which & KIND,
		.nd = (uint32_t)r->op->which >> DIMS_AT,
		.count_pad = true};
	int rc = acc_need_tensor(r, "input", &p->x);
	if (rc < 0)
		return rc;
	if (p->nd == 0) { /* ONNX' */
		p->nd = p->x->ndim < 3 ? 1 : p->x->ndim - 2;
		p->count_pad = false;
	}
	if (p->nd > 3)
		return acc_cannot(r, "its input has other dimensions");
	if (p->x->ndim != p->nd + 1 && p->x->ndim != p->nd + 2)
		return acc_cannot(r, "its input has other dimensions");
	uint32_t outer = p->x->ndim - p->nd;
	if (p->kind < ADAPTIVE_AVG && (rc = sizes(r, p)) < 0)
		return rc;
	memcpy(shape, p->x->shape, p->x->ndim * sizeof *shape);
	for (uint32_t d = 0; d < 3; d++) {
		p->in[d] = d < p->nd ? p->x->shape[outer + d] : 1;
		if (d >= p->nd || p->kind >= ADAPTIVE_AVG) /* the recorded output says it */
			p->out[d] = d < p->nd && out->ndim == p->x->ndim ? out->shape[outer + d]
									 : 1;
		else
			p->out[d] = extent(p, d);
		if (d < p->nd)
			shape[outer + d] = p->out[d];
	}
	return acc_out_shape(r, out, shape, p->x->ndim);
}

static void
window(const struct pool *p, const int64_t *at, struct window *w)
{
	w->size = 1;
	for (uint32_t d = 0; d < 3; d++) {
		w->step[d] = 1;
		if (p->kind >= ADAPTIVE_AVG || d >= p->nd) {
			w->lo[d] = at[d] * p->in[d] / p->out[d];
			w->hi[d] = ((at[d] + 1) * p->in[d] + p->out[d] - 1) / p->out[d];
			w->size *= (double)(w->hi[d] - w->lo[d]);
			continue;
		}
		int64_t lo = at[d] * p->stride[d] - p->pad[d];
		int64_t hi = lo + p->dilation[d] * (p->kernel[d] - 1) + 1;
		int64_t most = hi < p->in[d] + p->pad[d] ? hi : p->in[d] + p->pad[d];
		w->step[d] = p->dilation[d];
		w->lo[d] = lo < 0 ? lo + (-lo + w->step[d] - 1) / w->step[d] * w->step[d] : lo;
		w->hi[d] = hi < p->in[d] ? hi : p->in[d];
		w->size *= (double)(p->count_pad ? most - lo : w->hi[d] - w->lo[d]);
	}
	if (p->divisor != 0)
		w->size = (double)p->divisor;
}

/* The largest in a window, the first of equal ones as torch takes it, or NaN; its element. */
static double
largest(const double *x, const struct pool *p, const struct window *w, size_t *at)
{
	double top = -INFINITY;
	*at = SIZE_MAX;
	for (int64_t i = w->lo[0]; i < w->hi[0]; i += w->step[0])
		for (int64_t j = w->lo[1]; j < w->hi[1]; j += w->step[1])
			for (int64_t k = w->lo[2]; k < w->hi[2]; k += w->step[2]) {
				size_t e = (size_t)((i * p->in[1] + j) * p->in[2] + k);
				if (*at == SIZE_MAX || x[e] > top || isnan(x[e])) {
					top = x[e];
					*at = e;
				}
			}
	return top;
}

static double
average(const double *x, const struct pool *p, const struct window *w, double *mag)
{
	double sum = 0, abs = 0;
	for (int64_t i = w->lo[0]; i < w->hi[0]; i += w->step[0])
		for (int64_t j = w->lo[1]; j < w->hi[1]; j += w->step[1])
			for (int64_t k = w->lo[2]; k < w->hi[2]; k += w->step[2]) {
				double v = x[(i * p->in[1] + j) * p->in[2] + k];
				sum += v;
				abs += fabs(v);
			}
	*mag = abs / fabs(w->size);
	return sum / w->size;
}

/* Calls for each output element: its window, and the plane of the input that it is in. */
static void
coordinates(const struct pool *p, size_t o, int64_t *at, size_t *plane)
{
	for (uint32_t d = 3; d-- > 0;) {
		at[d] = (int64_t)(o % (size_t)p->out[d]);
		o /= (size_t)p->out[d];
	}
	*plane = o * (size_t)(p->in[0] * p->in[1] * p->in[2]);
}

static int
pool(struct acc_replay *r, struct acc_dense *out)
{
	struct pool p;
	struct window w;
	int64_t at[3];
	int rc = read_pool(r, &out[0], &p);
	if (rc < 0)
		return rc;
	bool max = p.kind == MAX || p.kind == ADAPTIVE_MAX;
	if (r->nrec > (max ? 2 : 1) || (r->nrec == 2 && out[1].n != out[0].n))
		return acc_cannot(r, "its further outputs are not understood");
	for (size_t o = 0; o < out[0].n; o++) {
		size_t plane, from = 0; /* of an average, nobody's */
		double mag = 0;
		coordinates(&p, o, at, &plane);
		window(&p, at, &w);
		out[0].v[o] = max ? largest(p.x->v + plane, &p, &w, &from)
				  : average(p.x->v + plane, &p, &w, &mag);
		if (out[0].mag != NULL)
			out[0].mag[o] = mag;
		if (r->nrec ==
			2) /* indices within the plane; ONNX' and OpenVINO's within the tensor */
			out[1].v[o] = (double)(from + (acc_str_is(r->name, "MaxPool") ? plane : 0));
	}
	return 0;
}

/* The root of the sum of powers, as torch takes it: of the mean, times the size of the window. */
static int
power_pool(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const average_of[] = {"avg_pool1d", "avg_pool2d", "avg_pool3d"};
	const struct acc_dense *x;
	struct acc_dense y, mean = *out;
	const int nd = r->op->which;
	int64_t kernel[3], count = 1;
	uint32_t n;
	double p = NAN;
	bool ceil = false;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_float(r, "norm_type", &p) < 0 ||
		acc_arg_ints(r, "kernel_size", kernel, 3, &n) < 0 ||
		acc_arg_bool(r, "ceil_mode", &ceil) < 0)
		return ACC_EUNSUP;
	const struct acc_value *k = acc_arg(r, "kernel_size"), *stride = acc_arg(r, "stride");
	if (!(p > 0) || k == NULL || (n != 1 && n != (uint32_t)nd))
		return acc_cannot(r, "its window was not recorded");
	for (int d = 0; d < nd; d++)
		count *= kernel[n == 1 ? 0 : d];
	if (acc_between(r, x->dtype, x->shape, x->ndim, false, &y) < 0 ||
		(mean.v = acc_doubles(r, out->n)) == NULL ||
		(mean.mag = acc_doubles(r, out->n)) == NULL)
		return ACC_EUNSUP;
	double most = 0;
	for (size_t i = 0; i < x->n; i++) {
		y.v[i] = p == 2 ? x->v[i] * x->v[i] : pow(x->v[i], p);
		most = isfinite(x->v[i]) ? fmax(most, fabs(y.v[i])) : most;
	}
	if (!acc_is_float(x->dtype))
		return acc_cannot(r, "a mean of whole numbers");
	if (most > acc_max_of(x->dtype) / 2 ||
		(most > 0 && most < acc_tiny_of(x->dtype) / acc_unit(x->dtype)))
		return acc_cannot(r, "its powers are no numbers of its dtype");
	struct acc_value in[] = {acc_of_tensor(&y), *k, stride == NULL ? *k : *stride,
		acc_of_int(0), {.type = ACC_A_BOOL, .b = ceil}};
	struct acc_part part = {.name = average_of[nd - 1], .in = in, .nin = 5, .nout = 1};
	if (acc_compose(r, &part, &mean) < 0)
		return ACC_EUNSUP;
	/* The powers, the mean and what it is multiplied with are rounded. */
	const double steps = 3 * acc_roundings(r, out->dtype) / p;
	for (size_t i = 0; i < out->n; i++) {
		const double a = mean.v[i] < 0 ? -fabs(mean.v[i]) : mean.v[i];
		out->v[i] = pow(a * (double)count, 1 / p);
		if (out->mag != NULL)
			out->mag[i] = fabs(out->v[i]) *
				      (1 + steps + (a != 0 ? mean.mag[i] / fabs(a) / p : 0));
	}
	return 0;
}

/* Where elements came from; ties may be broken differently. */
static int
pick(struct acc_replay *r, const char *name, uint32_t k, size_t *from, bool *unsure)
{
	struct pool p;
	struct window w;
	int64_t at[3];
	(void)name;
	int rc = read_pool(r, &r->rec[0], &p);
	if (rc < 0 || k > 0)
		return rc;
	for (size_t o = 0; o < r->rec[0].n; o++) {
		size_t plane, e;
		coordinates(&p, o, at, &plane);
		window(&p, at, &w);
		const double *x = p.x->v + plane;
		double top = largest(x, &p, &w, &e);
		from[o] = e == SIZE_MAX ? SIZE_MAX : plane + e;
		bool tie = false;
		for (int again = 0; again < 2; again++) /* find a tie, then mark all in it */
			for (int64_t i = w.lo[0]; i < w.hi[0]; i += w.step[0])
				for (int64_t j = w.lo[1]; j < w.hi[1]; j += w.step[1])
					for (int64_t c = w.lo[2]; c < w.hi[2]; c += w.step[2]) {
						size_t f = (size_t)((i * p.in[1] + j) * p.in[2] +
								    c);
						bool same = x[f] == top || isnan(x[f]);
						tie |= same && f != e;
						if (again && tie && same)
							unsure[plane + f] = true;
					}
	}
	return 0;
}

/* Planes do not depend on each other. */
static int
planes(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	struct pool p;
	(void)name;
	int rc = read_pool(r, &r->rec[0], &p);
	size_t plane = rc < 0 ? 0 : (size_t)(p.in[0] * p.in[1] * p.in[2]);
	if (plane == 0)
		return rc < 0 ? rc : acc_cannot(r, "its gradient could not be followed");
	size_t n = p.x->n / plane;
	*in = (struct acc_blocks){n, 1, plane, true, false, false};
	*out = (struct acc_blocks){n, 1, n == 0 ? 0 : r->rec[0].n / n, true, false, false};
	return 0;
}

/* What overlaps is added up, in 16 bits one after another (behaviour torch-pool-grad-16-bits). */
double
acc_pool_overlap(struct acc_replay *r, const struct acc_dense *out)
{
	struct pool p;
	double n = 1;
	if (r->op->eval != pool || out == NULL || read_pool(r, out, &p) < 0)
		return 1;
	for (uint32_t d = 0; d < p.nd; d++)
		n *= p.kind < ADAPTIVE_AVG ? ceil((double)p.kernel[d] / (double)p.stride[d])
		     : p.in[d] > 0         ? floor((double)p.out[d] / (double)p.in[d]) + 1
					   : 1;
	return n;
}

#define AVERAGE(n, d) \
	{ \
		.names = n, .cls = "pooling", .rounding = ACC_FEW, .eval = pool, .blocks = planes, \
		.which = AVG | (d) << DIMS_AT, \
		.sig = "input|self:block kernel_size stride padding ceil_mode count_include_pad " \
		       "divisor_override" \
	}
#define MAXIMUM(n, d) \
	{ \
		.names = n, .cls = "movement", .rounding = ACC_EXACT, .flags = ACC_GATHERS, \
		.eval = pool, .pick = pick, .which = MAX | (d) << DIMS_AT, \
		.sig = "input|self:pick kernel_size stride padding dilation ceil_mode " \
		       "return_indices" \
	}
/* ONNX' and OpenVINO's, of as many dimensions as their input has; the window is all that must be said. */
#define KERNEL " kernel_size|kernel_shape|kernel stride|strides padding|pads|pads_begin"
#define ENGINES \
	{.names = "AveragePool AvgPool", \
		.cls = "pooling", \
		.rounding = ACC_FEW, \
		.eval = pool, \
		.blocks = planes, \
		.which = AVG, \
		.sig = "input:block" KERNEL " ceil_mode count_include_pad divisor_override"}, \
	{ \
		.names = "MaxPool", .cls = "movement", .rounding = ACC_EXACT, \
		.flags = ACC_GATHERS, .eval = pool, .pick = pick, .which = MAX, \
		.sig = "input:pick" KERNEL " dilation|dilations ceil_mode return_indices" \
	}
#define ADAPTIVE(avg, max, d) \
	{.names = avg, \
		.cls = "pooling", \
		.rounding = ACC_FEW, \
		.eval = pool, \
		.blocks = planes, \
		.which = ADAPTIVE_AVG | (d) << DIMS_AT, \
		.sig = "input|self:block output_size"}, \
	{ \
		.names = max, .cls = "movement", .rounding = ACC_EXACT, .flags = ACC_GATHERS, \
		.eval = pool, .pick = pick, .which = ADAPTIVE_MAX | (d) << DIMS_AT, \
		.sig = "input|self:pick output_size" \
	}
#define POWER(n, d) \
	{ \
		.names = n, .cls = "pooling", .rounding = ACC_FEW, .eval = power_pool, .which = d, \
		.sig = "input:any norm_type kernel_size stride ceil_mode" \
	}
const struct acc_op acc_ops_pool[] = {
	POWER("lp_pool1d LPPool1d", 1),
	POWER("lp_pool2d LPPool2d", 2),
	POWER("lp_pool3d LPPool3d", 3),
	AVERAGE("avg_pool1d AvgPool1d", 1),
	AVERAGE("avg_pool2d AvgPool2d", 2),
	AVERAGE("avg_pool3d AvgPool3d", 3),
	MAXIMUM("max_pool1d MaxPool1d", 1),
	MAXIMUM("max_pool2d MaxPool2d", 2),
	MAXIMUM("max_pool3d MaxPool3d", 3),
	ENGINES,
	ADAPTIVE("adaptive_avg_pool1d AdaptiveAvgPool1d", "adaptive_max_pool1d AdaptiveMaxPool1d",
		1),
	ADAPTIVE("adaptive_avg_pool2d AdaptiveAvgPool2d", "adaptive_max_pool2d AdaptiveMaxPool2d",
		2),
	ADAPTIVE("adaptive_avg_pool3d AdaptiveAvgPool3d", "adaptive_max_pool3d AdaptiveMaxPool3d",
		3),
	{.names = NULL},
};
