/* two.h - a comparison of one chunk, shared by its narrow (f32) and wide (double) halves */
#ifndef ACC_KERNEL_TWO_H
#define ACC_KERNEL_TWO_H

#include "kernel/one.h"

struct acc_two_job {
	const struct acc_row *row;
	const struct acc_kernel_opt *opt;
	enum acc_dtype ta, tb; /* of components */
	enum acc_dtype coarse; /* ACC_NODTYPE: two integers */
	const uint8_t *a, *b;
	const struct acc_codes *ca, *cb; /* of 8-bit floats */
	const struct acc_codes *cc;      /* of the coarse dtype */
	uint64_t at;
	unsigned per;            /* components of an element */
	bool real_a, real_b;     /* real against complex: the imaginary part is 0 */
	bool f32;                /* r and e in float */
	struct acc_one *oa, *ob; /* NULL: the sides' statistics are done elsewhere */
	struct acc_two *out;
};

/* What a block holds: the numbers that are compared, and the others. */
struct acc_kinds {
	size_t used;
	size_t equal; /* the same NaN or infinity on both sides */
	size_t diff, diff_unsigned;
};

/* Count a pair of which one or both are not finite. */
void acc_kinds_add(struct acc_kinds *k, double x, double y);
/* Add a block's sums and counts; it had `zeros` pairs of 0 in place of what is not used. */
void acc_two_job_add(struct acc_two_job *j, const struct acc_blk2 *r, const struct acc_kinds *k,
	size_t zeros);
void acc_two_job_add_ulps(struct acc_two_job *j, const struct acc_ulps *u,
	const struct acc_kinds *k, size_t zeros);
/* The row-major index of component i of the block at off. */
uint64_t acc_two_job_place(const struct acc_two_job *j, size_t off, size_t i);

void acc_two_narrow(struct acc_two_job *j, size_t n);
void acc_two_wide(struct acc_two_job *j, size_t n);

#endif
