/* A tensor as a sum of others: least squares by Cholesky's factors. */
#include "ranks/fit.h"
#include "replay/limits.h"

#include <math.h>

void
acc_fit_add(struct acc_fit *f, const double *term, double d)
{
	f->elements++;
	f->dd += d * d;
	for (uint32_t i = 0; i < f->n; i++) {
		f->b[i] += term[i] * d;
		for (uint32_t j = 0; j < f->n; j++)
			f->g[i][j] += term[i] * term[j];
	}
}

bool
acc_fit_solve(struct acc_fit *f)
{
	double l[ACC_FIT_TERMS][ACC_FIT_TERMS] = {{0}}, y[ACC_FIT_TERMS], left = f->dd;
	for (uint32_t i = 0; i < f->n; i++) {
		double v = f->b[i];
		for (uint32_t j = 0; j <= i; j++) {
			double p = f->g[i][j];
			for (uint32_t k = 0; k < j; k++)
				p -= l[i][k] * l[j][k];
			if (i == j && !(p > LIMIT_FIT_ALIKE * f->g[i][i]))
				return false;
			l[i][j] = i == j ? sqrt(p) : p / l[j][j];
		}
		for (uint32_t k = 0; k < i; k++)
			v -= l[i][k] * y[k];
		y[i] = v / l[i][i];
		left -= y[i] * y[i];
	}
	for (uint32_t i = f->n; i-- > 0;) {
		double v = y[i];
		for (uint32_t k = i + 1; k < f->n; k++)
			v -= l[k][i] * f->c[k];
		f->c[i] = v / l[i][i];
	}
	const double rest = f->rest > 0 ? f->rest : LIMIT_FIT_LEFT;
	return f->dd > 0 && left <= rest * rest * f->dd;
}
