/* Of complex numbers: their absolute values, and transforms that give them. */
#include "replay/impl.h"

/* Of longer transforms and more of them the time is not worth it: terms, and elements of one. */
#define MOST_TERMS ((size_t)1 << 26)
#define LONGEST ((size_t)1 << 14)

static bool
known(enum acc_dtype t)
{
	return t == ACC_F32 || t == ACC_F64;
}

/* By hypot, or as the root of squares: of these a large one is Inf, and a small one may be 0. */
static int
modulus(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (x->ndim == 0 || x->shape[x->ndim - 1] != 2 || !known(out->dtype) ||
		x->dtype != out->dtype)
		return acc_cannot(r, "complex numbers of 16 bits, or real ones");
	if (acc_out_shape(r, out, x->shape, x->ndim - 1) < 0)
		return ACC_EUNSUP;
	const double unit = acc_unit(out->dtype), most = acc_max_of(out->dtype),
		     least = acc_tiny_of(out->dtype);
	const double *rec = r->rec[0].v;
	for (size_t i = 0; i < out->n; i++) {
		const double a = x->v[2 * i], b = x->v[2 * i + 1], y = hypot(a, b);
		out->v[i] = y;
		if (out->mag == NULL)
			continue;
		const bool beyond = !(y * (1 + 8 * unit) < sqrt(most)) && rec != NULL &&
				    isinf(rec[i]);
		/* NaN beside Inf is Inf by hypot, and NaN by squares. */
		out->mag[i] = beyond || isinf(y) ? INFINITY
			      : y > 0            ? 2 * y + 2 * least / y / unit
						 : 0;
	}
	return 0;
}

static int
pairs(struct acc_replay *r, const char *name, struct acc_blocks *in, struct acc_blocks *out)
{
	const size_t n = r->rec[0].n;
	(void)name;
	*in = (struct acc_blocks){n, 2, 1, true, false, false};
	*out = (struct acc_blocks){n, 1, 1, true, false, false};
	return 0;
}

/* How a transform of n elements is scaled; < 0: unknown. */
static double
scale(struct acc_replay *r, size_t n)
{
	struct acc_str norm = acc_str("backward");
	if (acc_arg_text(r, "norm", &norm) < 0)
		return -1;
	if (acc_str_is(norm, "backward"))
		return 1;
	if (acc_str_is(norm, "ortho"))
		return 1 / sqrt((double)n);
	return acc_str_is(norm, "forward") ? 1 / (double)n : -1;
}

struct transform {
	size_t given, n, half; /* elements of a row; as many as are transformed; of the result */
	size_t step;           /* from one to the next */
	double by;
	const double *wave; /* cosine and sine of each n-th of a turn */
	enum acc_dtype t;
};

/* One row. However it is computed, what is added up on the way is a sum of some of its terms, in a
 * logarithm of steps, each of which multiplies and adds. */
static void
one(const struct transform *f, const double *x, const double *rec, double *out, double *mag)
{
	const size_t have = f->given < f->n ? f->given : f->n;
	double all = 0;
	for (size_t i = 0; i < have; i++)
		all += fabs(x[i * f->step]);
	const double steps = 2 * (1 + log2((double)f->n)), most = acc_max_of(f->t);
	for (size_t k = 0; k < f->half; k++) {
		long double re = 0, im = 0;
		for (size_t i = 0, at = 0; i < have; i++, at = (at + k) % f->n) {
			re += (long double)x[i * f->step] * f->wave[2 * at];
			im -= (long double)x[i * f->step] * f->wave[2 * at + 1];
		}
		const size_t o = 2 * k * f->step;
		for (size_t c = 0; c < 2; c++) {
			out[o + c] = (double)(c == 0 ? re : im) * f->by;
			const bool beyond = !isfinite(all) || (!(all * 4 < most) && rec != NULL &&
								      !isfinite(rec[o + c]));
			if (mag != NULL)
				mag[o + c] = beyond ? INFINITY : steps * all * f->by;
		}
	}
}

/* wave, with what a long double has of pi. */
static const double *
turn(struct acc_replay *r, size_t n)
{
	double *w = acc_doubles(r, 2 * n);
	for (size_t i = 0; w != NULL && i < n; i++) {
		const long double at = 2 * acosl(-1) * (long double)i / (long double)n;
		w[2 * i] = (double)cosl(at);
		w[2 * i + 1] = (double)sinl(at);
	}
	return w;
}

static int
rfft(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	uint32_t dim;
	int64_t shape[ACC_DENSE_DIMS + 1], n;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_dim(r, "dim", x->ndim, -1, &dim) < 0)
		return ACC_EUNSUP;
	if (x->ndim == 0 || x->ndim == ACC_DENSE_DIMS || !known(out->dtype) ||
		acc_dtype_of(x->dtype)->cls == 'C')
		return acc_cannot(r,
			"no transform of real numbers to complex ones of 32 or 64 bits");
	n = x->shape[dim];
	if (acc_arg_int(r, "n", &n) < 0)
		return ACC_EUNSUP;
	if (n < 1 || n > (int64_t)LONGEST || out->n / 2 > MOST_TERMS / (size_t)n)
		return acc_cannot(r, "long transforms");
	memcpy(shape, x->shape, x->ndim * sizeof *shape);
	shape[dim] = n / 2 + 1;
	shape[x->ndim] = 2;
	if (acc_out_shape(r, out, shape, x->ndim + 1) < 0)
		return ACC_EUNSUP;
	struct transform f = {.given = (size_t)x->shape[dim],
		.n = (size_t)n,
		.half = (size_t)(n / 2 + 1),
		.step = 1,
		.by = scale(r, (size_t)n),
		.wave = turn(r, (size_t)n),
		.t = out->dtype};
	if (f.wave == NULL)
		return ACC_EUNSUP;
	if (f.by < 0)
		return acc_cannot(r, "an unknown scale of a transform");
	for (uint32_t d = dim + 1; d < x->ndim; d++)
		f.step *= (size_t)x->shape[d];
	const double *rec = r->rec[0].v;
	const size_t rows = f.step == 0 ? 0 : out->n / 2 / f.half / f.step;
	for (size_t i = 0; i < rows; i++)
		for (size_t c = 0; c < f.step; c++) {
			const size_t at = 2 * (i * f.half * f.step + c);
			one(&f, x->v + i * f.given * f.step + c, rec == NULL ? NULL : rec + at,
				out->v + at, out->mag == NULL ? NULL : out->mag + at);
		}
	return 0;
}

const struct acc_op acc_op_modulus = {.names = "abs",
	.sig = "input|x|self:block",
	.cls = "function",
	.rounding = ACC_FEW,
	.flags = ACC_KEEPS_NAN | ACC_BY_LENGTH | ACC_COMPLEX,
	.eval = modulus,
	.blocks = pairs};

const struct acc_op acc_ops_complex[] = {
	{.names = "rfft",
		.sig = "input|a:any n dim|axis norm",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.flags = ACC_COMPLEX,
		.eval = rfft},
	{.names = NULL},
};
