/* fit.h - a tensor as a sum of others, each times a number */
#ifndef ACC_RANKS_FIT_H
#define ACC_RANKS_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACC_FIT_TERMS = 16 };

struct acc_fit {
	uint32_t n;  /* terms; set before the first element */
	double rest; /* so much of the tensor's norm may be left; 0: what noise in f32 leaves */
	double g[ACC_FIT_TERMS][ACC_FIT_TERMS], b[ACC_FIT_TERMS]; /* scalar products */
	double dd;                                                /* of the tensor with itself */
	size_t elements;
	double c[ACC_FIT_TERMS]; /* the numbers, when it was solved */
};

/* An element: of each term, and of the tensor. */
void acc_fit_add(struct acc_fit *f, const double *term, double d);
/* Least squares; false: terms depend on each other, or more is left than noise leaves. */
bool acc_fit_solve(struct acc_fit *f);

#endif
