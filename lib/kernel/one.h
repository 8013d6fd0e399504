/* one.h - what the comparison takes over from the one-sided pass */
#ifndef ACC_KERNEL_ONE_H
#define ACC_KERNEL_ONE_H

#include "kernel/row.h"

/* Count an all-finite block into *o. */
void acc_one_block(struct acc_one *o, const struct acc_blk1 *r, size_t n);
/* Is there something saturated in it? Then it is counted from its numbers. `largest` is the
 * dtype's largest finite value, 0 where saturation is not counted. */
bool acc_saturates(const struct acc_blk1 *r, double largest);
void acc_one_saturated(struct acc_one *o, const float *x, size_t n, double largest);
/* Any block, of any length: what is not finite is counted and taken as 0. *r is over the
 * finite ones; returns their number. */
size_t acc_one_odd_block(const struct acc_row *row, struct acc_one *o, struct acc_blk1 *r,
	const float *x, size_t n, double largest);
/* Lengthen a block to a multiple of ACC_QUAD with NaN, in `buf` where needed. That length. */
size_t acc_pad_block(const float **x, size_t n, float *buf);
/* The first set bit from `from` on, or at least n. */
size_t acc_next_bit(const uint64_t *bits, size_t from, size_t n);
/* |z|, without overflow or underflow on the way. */
double acc_modulus(double re, double im);
void acc_one_run(const struct acc_row *row, enum acc_dtype t, const void *p, size_t n,
	struct acc_one *out);
void acc_two_run(const struct acc_row *row, enum acc_dtype ta, const void *a, enum acc_dtype tb,
	const void *b, size_t n, uint64_t at, const struct acc_kernel_opt *opt, struct acc_one *oa,
	struct acc_one *ob, struct acc_two *out);

#endif
