/* number.h - numbers of a dtype; what is none, and what is left out (left.c) */
#ifndef REPLAY_NUMBER_H
#define REPLAY_NUMBER_H

#include <math.h>

#include "replay/job.h"

/* --- numbers --- */
/* Of what an operator computes with on its way to a result of this unit. */
double acc_work_unit(double unit);
/* So many of these are one of that: what is rounded to its dtype on the way adds itself so often
 * to mag, and r remembers that mag holds such. */
double acc_roundings(struct acc_replay *r, enum acc_dtype t);
/* What the recorder of a mean rounds it by, and that of a norm of n elements, in parts of it. */
double acc_mean_rounding(enum acc_dtype t);
double acc_norm_rounding(enum acc_dtype t, uint64_t n);
/* The smallest number that is not rounded away. */
double acc_tiny_of(enum acc_dtype t);
/* One element rounded to a dtype, as the hardware does to nearest; overflow gives infinity. */
double acc_round_to(enum acc_dtype t, double x);
double acc_max_of(enum acc_dtype t);
/* The size of its largest element that is finite, 1 at least. */
double acc_largest(const struct acc_dense *x);
bool acc_is_float(enum acc_dtype t);
/* Uniform in [0, 2^64), from a counter: the same for any number of threads. */
uint64_t acc_mix(uint64_t x);

/* --- what is not a number, and what is left out (left.c) --- */
enum acc_fate {
	ACC_NUMBER, /* both are numbers, to be compared */
	ACC_RIGHT,
	ACC_WRONG,
	ACC_LEFT /* nobody knows */
};
struct acc_range {
	enum acc_dtype dtype;
	bool cast; /* the operator is one */
	double unit;
	double own;    /* the largest number of the result's dtype, */
	double narrow; /* of the narrowest that it was in before, */
	double sums;   /* and of what it is summed up in */
};
struct acc_range acc_range_of(enum acc_dtype own, double unit, double narrow);
/* What was recorded, what it should be, and the size of what is summed up. */
enum acc_fate acc_fate_of(const struct acc_range *g, double rec, double ref, double abs);
/* The same of a result, which may be of any dtype: a whole number wraps, saturates ..., as the library has it. */
enum acc_fate acc_fate_beyond(const struct acc_range *g, double rec, double ref, double abs);
/* Further apart than rounding takes two sides? */
bool acc_differs(double unit, double rec, double other);
/* The other side's elements of one that is in memory; or through a window. NULL: there are none. */
const double *acc_other_values(struct acc_audit_job *j, struct acc_arena *mem,
	const struct acc_held *h);
struct acc_sealed *acc_other_open(struct acc_audit_job *j, const struct acc_held *h);
void acc_left_add(struct acc_left *to, const struct acc_left *more);
void acc_others_shut(struct acc_audit_job *j);

#endif
