/* matrix.h - a matrix by tables of offsets, read along the index whose elements are neighbours (matrix.c) */
#ifndef REPLAY_MATRIX_H
#define REPLAY_MATRIX_H

#include "replay/impl.h"

struct matrix {
	struct acc_window w;
	size_t na, nb; /* A[a, b] */
	const size_t *ta, *tb;
	bool turned; /* lines are along a, one for each b */
	bool apart;  /* no index has acc_neighbours: lines are gathered */
	double *line;
};

int acc_matrix(struct acc_trial *t, const struct acc_sealed *v, const size_t *ta, size_t na,
	const size_t *tb, size_t nb, struct matrix *m);

/* What to make of a matrix in one pass. NULL: not wanted. */
struct matrix_request {
	const double *vb, *wb; /* ra[a] = sum_b A vb, ra2[a] = sum_b f(A) wb */
	double *ra, *ra2;
	const double *va, *wa; /* rb[b] = sum_a A va, rb2[b] = sum_a g(A) wa */
	double *rb, *rb2;
	bool fsquare, gsquare; /* f, g are the square; else the magnitude */
	const size_t *ia, *ib; /* rows and columns to keep, rising: [nia][nb], [nib][na] */
	size_t nia, nib;
	double *keep_a, *keep_b;
	bool some; /* of lines along b, a quarter: of the others ra2 is NaN */
};

int acc_matrix_pass(struct acc_trial *t, struct matrix *m, size_t base,
	const struct matrix_request *w);
/* p may be NULL. */
void acc_zero(double *p, size_t n);

static inline const struct acc_sealed *
acc_as_sealed(const double *v)
{
	return (const struct acc_sealed *)(const void *)v;
}

#endif
