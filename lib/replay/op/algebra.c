/* Inverses and determinants of small matrices, by elimination with pivots. */
#include "replay/impl.h"

/* Of larger ones the time is not worth it. */
#define LARGEST 256

enum { INVERSE, LOGDET, DET };

/* One matrix as its factors: v holds both, perm the rows. The sign of the permutation, or 0 where it is singular. */
static int
factors(double *v, size_t n, size_t *perm)
{
	int sign = 1;
	for (size_t i = 0; i < n; i++)
		perm[i] = i;
	for (size_t k = 0; k < n; k++) {
		size_t top = k;
		for (size_t i = k + 1; i < n; i++)
			top = fabs(v[i * n + k]) > fabs(v[top * n + k]) ? i : top;
		if (!(fabs(v[top * n + k]) > 0))
			return 0;
		for (size_t j = 0; top != k && j < n; j++) {
			const double x = v[k * n + j];
			v[k * n + j] = v[top * n + j];
			v[top * n + j] = x;
		}
		const size_t row = perm[k];
		perm[k] = perm[top];
		perm[top] = row;
		sign = top != k ? -sign : sign;
		for (size_t i = k + 1; i < n; i++) {
			const double by = v[i * n + k] /= v[k * n + k];
			for (size_t j = k + 1; j < n; j++)
				v[i * n + j] -= by * v[k * n + j];
		}
	}
	return sign;
}

static void
invert(const double *lu, size_t n, const size_t *perm, double *out)
{
	for (size_t c = 0; c < n; c++) {
		for (size_t i = 0; i < n; i++) {
			double x = perm[i] == c;
			for (size_t j = 0; j < i; j++)
				x -= lu[i * n + j] * out[j * n + c];
			out[i * n + c] = x;
		}
		for (size_t i = n; i-- > 0;) {
			double x = out[i * n + c];
			for (size_t j = i + 1; j < n; j++)
				x -= lu[i * n + j] * out[j * n + c];
			out[i * n + c] = x / lu[i * n + i];
		}
	}
}

/* |X| |A|, an element; what elimination rounds is that times the inverse. */
static double
through(const double *x, const double *a, size_t n, size_t i, size_t j)
{
	double sum = 0;
	for (size_t k = 0; k < n; k++)
		sum += fabs(x[i * n + k]) * fabs(a[k * n + j]);
	return sum;
}

static void
magnitudes(const double *x, const double *a, size_t n, double *row, double *mag)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++)
			row[k] = through(x, a, n, i, k);
		for (size_t j = 0; j < n; j++) {
			mag[i * n + j] = 0;
			for (size_t k = 0; k < n; k++)
				mag[i * n + j] += row[k] * fabs(x[k * n + j]);
		}
	}
}

/* The logarithm of the determinant, or this itself; and what its terms are known by. */
static double
determinant(const struct acc_replay *r, const double *lu, size_t n, int sign, double *terms)
{
	double log_of = 0, all = 1;
	for (size_t i = 0; i < n && sign != 0; i++) {
		log_of += log(fabs(lu[i * n + i]));
		*terms += fabs(log(fabs(lu[i * n + i])));
		all *= lu[i * n + i];
		sign = lu[i * n + i] < 0 && r->op->which == LOGDET ? -sign : sign;
	}
	if (r->op->which == DET)
		return sign * all;
	return sign < 0 ? NAN : sign == 0 ? -INFINITY : log_of;
}

static void
one(struct acc_replay *r, const double *a, size_t n, double *room, size_t *perm, double *out,
	double *mag)
{
	double *lu = room, *x = lu + n * n, *row = x + n * n, terms = 1, trace = 0;
	bool finite = true;
	for (size_t i = 0; i < n * n; i++) {
		lu[i] = a[i];
		finite &= isfinite(a[i]);
	}
	const int sign = finite ? factors(lu, n, perm) : 0;
	if (sign != 0)
		invert(lu, n, perm, x);
	if (r->op->which == INVERSE) {
		for (size_t i = 0; i < n * n; i++)
			out[i] = sign != 0 ? x[i] : NAN;
		if (mag != NULL && sign != 0)
			magnitudes(x, a, n, row, mag);
		return;
	}
	out[0] = finite ? determinant(r, lu, n, sign, &terms) : NAN;
	for (size_t i = 0; i < n && sign != 0; i++)
		trace += through(x, a, n, i, i);
	if (mag != NULL)
		mag[0] = (terms + trace) * (r->op->which == DET ? fabs(out[0]) : 1);
}

static int
algebra(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	const bool whole = r->op->which == INVERSE;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (x->ndim < 2 || x->shape[x->ndim - 1] != x->shape[x->ndim - 2] ||
		x->shape[x->ndim - 1] > LARGEST)
		return acc_cannot(r, "no square matrices, or large ones");
	if (acc_out_shape(r, out, x->shape, whole ? x->ndim : x->ndim - 2) < 0)
		return ACC_EUNSUP;
	const size_t n = (size_t)x->shape[x->ndim - 1], each = whole ? n * n : 1;
	double *room = acc_doubles(r, 2 * n * n + n);
	size_t *perm = acc_offsets(r, n, 1);
	if (room == NULL || perm == NULL)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n / (each > 0 ? each : 1); i++)
		one(r, x->v + i * n * n, n, room, perm, out->v + i * each,
			out->mag == NULL ? NULL : out->mag + i * each);
	return 0;
}

#define ROW(n, w) \
	{ \
		.names = n, .sig = "input|self|A:any", .cls = "product", .rounding = ACC_FEW, \
		.eval = algebra, .which = w \
	}
const struct acc_op acc_ops_algebra[] = {
	ROW("inv inverse", INVERSE),
	ROW("logdet", LOGDET),
	ROW("det", DET),
	{.names = NULL},
};
