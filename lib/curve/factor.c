/* One number between the two runs: losses summed on one side and averaged on the other, divided by
 * another count of tokens, micro-batches or ranks. */
#include "curve/curve.h"
#include "acc/say.h"
#include "curve/limits.h"

#include <math.h>

/* Device by bench, and how precisely that is known, as a part of it. */
static bool
ratio(const struct acc_point *p, double *r, double *tol)
{
	double a = p->v[CURVE_A], b = p->v[CURVE_B];
	if (!acc_curve_finite(p) || a == 0 || b == 0)
		return false;
	*r = a / b;
	*tol = LIMIT_RATIO_ROUNDING + p->res[CURVE_A] / fabs(a) + p->res[CURVE_B] / fabs(b);
	return *tol < LIMIT_FACTOR_LEAST;
}

/* The same factor at all points, up to noise of a hundredth of what it makes. */
static bool
constant(const struct curve *c, struct acc_curve_factor *out)
{
	double r, tol, sum = 0, far = 0;
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++) {
		if (c->p[i].has != 3)
			continue;
		if (!ratio(&c->p[i], &r, &tol))
			return false;
		sum += r;
		out->tol = n++ == 0 || tol < out->tol ? tol : out->tol;
	}
	out->value = n == 0 ? 1 : sum / (double)n;
	for (size_t i = 0; i < c->n; i++)
		if (c->p[i].has == 3 && ratio(&c->p[i], &r, &tol)) {
			far = fmax(far, fabs(r / out->value - 1));
			if (fabs(r - out->value) >
				tol * out->value + LIMIT_RATIO_NOISE * fabs(out->value - 1))
				return false;
		}
	out->tol = fmax(out->tol, far);
	return n >= LIMIT_FACTOR_POINTS && fabs(out->value - 1) > LIMIT_FACTOR_LEAST;
}

/* The loss and the gradient's norm have the same factor, each step perhaps another: that of the
 * first step. */
static bool
shared(const struct curve *loss, const struct curve *norm, struct acc_curve_factor *out)
{
	size_t n = 0;
	bool differs = false;
	for (size_t i = 0; i < loss->n; i++) {
		double r, tol, q, qtol;
		const struct acc_point *p = acc_curve_at(norm, loss->p[i].step);
		if (p == NULL || !ratio(&loss->p[i], &r, &tol) || !ratio(p, &q, &qtol))
			continue;
		/* Later steps start from other weights. */
		if (fabs(q / r - 1) > tol + qtol) {
			if (n < LIMIT_FACTOR_POINTS)
				return false;
			break;
		}
		if (n++ == 0) {
			*out = (struct acc_curve_factor){.value = r, .tol = tol};
			differs = fabs(r - 1) > LIMIT_FACTOR_LEAST;
		}
		out->varies = out->varies || fabs(r / out->value - 1) > 2 * (tol + out->tol);
	}
	out->norm = true;
	return n > 0 && differs;
}

/* At the first point alone a whole number, for what learns from summed losses goes another way: so near to one that
 * chance makes it once in a hundred. */
static bool
whole(const struct curve *c, struct acc_curve_factor *out)
{
	const struct acc_point *p = acc_curve_at(c, c->f.begin);
	double r, tol;
	if (p == NULL || !ratio(p, &r, &tol))
		return false;
	const double over = fmax(r, 1 / r), n = round(over);
	*out = (struct acc_curve_factor){.value = r, .tol = tol, .first = true};
	return n >= 2 && 2 * n * tol <= LIMIT_WHOLE_CHANCE && fabs(over / n - 1) <= tol;
}

bool
acc_curve_factor(const struct curve *loss, const struct curve *norm, struct acc_curve_factor *out)
{
	double r, tol;
	*out = (struct acc_curve_factor){0};
	if (loss == NULL || loss->f.n == 0)
		return false;
	if (norm != NULL && shared(loss, norm, out))
		return true;
	if (!constant(loss, out))
		return norm == NULL && whole(loss, out);
	const struct acc_point *p = norm == NULL ? NULL : acc_curve_at(norm, loss->f.begin);
	out->norm_agrees = p != NULL && ratio(p, &r, &tol) && fabs(r - 1) <= LIMIT_RATIO_NOISE;
	return true;
}

/* "256", "10/11", "1.0976": the simplest fraction that it may be. */
const char *
acc_curve_fraction(struct acc_arena *mem, const struct acc_curve_factor *f)
{
	for (int q = 1; q <= LIMIT_DENOMINATOR; q++) {
		double p = round(f->value * q);
		/* Of tolerances this wide any number is a fraction. */
		if (p < 1 || p > 1 << 20 || fabs(p / (f->value * q) - 1) > f->tol ||
			q * q * f->tol > LIMIT_FRACTION_CHANCE)
			continue;
		return q == 1 ? acc_arena_printf(mem, "%.0f", p)
			      : acc_arena_printf(mem, "%.0f/%d", p, q);
	}
	return acc_arena_printf(mem, "%.5g", f->value);
}
