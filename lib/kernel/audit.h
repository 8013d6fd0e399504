/* audit.h - the loops in which an audit spends its time, once for every instruction set
 *
 * Sums are taken in 16 lanes, element i in lane i mod 16, folded by halves: the bits depend on
 * no instruction set. Nothing here traps on numbers that are not finite.
 */
#ifndef ACC_KERNEL_AUDIT_H
#define ACC_KERNEL_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "acc/tensor.h"

/* How an output is measured. Error of one element: |rec - ref| over
 * unit |ref| + work mag + tiny; and once more with `coarse` in place of work. */
struct acc_ruler {
	double unit, work, coarse, tiny;
	double max; /* what is larger, or not finite, is for the caller to look at */
};

struct acc_block_err { /* of a block */
	double sum2, max, coarse2, coarse_max;
};

/* Sums along a row of a matrix and down its columns at once; see freivalds.c. All of n elements. */
struct acc_line {
	const double *u, *w;         /* for dot: sum a u, sum f(a) w */
	double p, q;                 /* for add: p a, q f(a) */
	double *to, *to2;            /* where they are added to */
	bool dot_square, add_square; /* there, f is a^2, else |a| */
};

struct acc_affine {
	double mean, scale, size;
	const double *w, *b; /* each of n, or one for all */
	bool each;
};

/* From values at an element, above and below it: the gradient, how uncertain that is, and whether
 * there is a kink (1, else 0). down, fdown NULL: there is none. */
struct acc_slope {
	const double *x, *up, *down, *f, *fup, *fdown, *g;
	double kink, saves; /* relative difference of both sides; uncertainty in parts of g */
	double *ref, *more, *skip;
};

enum acc_audit_binary { ACC_AUDIT_ADD, ACC_AUDIT_SUB, ACC_AUDIT_MUL, ACC_AUDIT_DIV };

struct acc_audit_row {
	void (*bf16)(const void *p, size_t n, double *out);
	void (*f16)(const void *p, size_t n, double *out);
	void (*f32)(const void *p, size_t n, double *out);
	/* n <= ACC_AUDIT_BLOCK elements. false: one is larger than max or not finite. mag, more
	 * (added to what is divided by) NULL: 0. */
	bool (*judge)(const struct acc_ruler *y, const double *rec, const double *ref,
		const double *mag, const double *more, size_t n, struct acc_block_err *out);
	/* Derivatives of n elements, times g; see acc_slope. */
	void (*slope)(const struct acc_slope *s, size_t n);
	/* *dot += sum x y; *abs += sum |x y| */
	void (*dot)(const double *x, const double *y, size_t n, double *dot, double *abs);
	/* u NULL: no dot; to NULL: no additions. dot[0], dot[1] are added to. */
	void (*line)(const double *a, size_t n, const struct acc_line *l, double *dot);
	/* An operand with step 0 is one number. */
	void (*binary)(enum acc_audit_binary which, const double *x, size_t xstep, const double *y,
		size_t ystep, size_t n, double *out);
	void (*exp)(const double *x, double less, size_t n, double *out); /* of x - less */
	/* The largest, or NaN if one is. */
	double (*top)(const double *x, size_t n);
	/* y[i] /= sum; mag (NULL: not wanted) is that times |x - top|, where this is finite. */
	void (*part)(double *y, const double *x, double top, double sum, size_t n, double *mag);
	/* out = (x - mean) scale w + b, and mag = (|x| + size) scale |w| + |b|; w, b NULL: 1, 0 */
	void (*affine)(const double *x, size_t n, const struct acc_affine *f, double *out,
		double *mag);
	double (*sum)(const double *x, size_t n, double *abs);
	double (*squares)(const double *x, double less, size_t n);
	bool (*finite)(const double *x, size_t n);
};
enum { ACC_AUDIT_BLOCK = 512 };

/* Those of the row that runs, see acc_kernel_isa. */
const struct acc_audit_row *acc_audit_row(void);
extern const struct acc_audit_row acc_audit_base;
#if defined(__x86_64__)
extern const struct acc_audit_row acc_audit_avx2, acc_audit_avx512;
#endif

#endif
