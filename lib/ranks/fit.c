/* A tensor as a sum of others: least squares by Cholesky's factors. */
#include "ranks/fit.h"

#include <math.h>

/* What noise leaves of a tensor is less. */
static const double LEFT = 1e-3;
/* Of a term's square, what the others do not explain: products in bf16 part what is the same by 2^-6; 64 times the square
 * of that. */
static const double ALIKE = 0x1p-6;

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
			if (i == j && !(p > ALIKE * f->g[i][i]))
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
	const double rest = f->rest > 0 ? f->rest : LEFT;
	return f->dd > 0 && left <= rest * rest * f->dd;
}
