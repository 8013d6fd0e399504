/* item.h - what an item is, and a call, by what was measured of them */
#ifndef JUDGE_ITEM_H
#define JUDGE_ITEM_H

#include "judge/case.h"

/* --- item_is.c --- */
/* Is it what its op call was given? */
bool acc_is_input(const struct acc_item *it);
/* Do both sides have numbers that were compared? */
bool acc_is_measured(const struct acc_item *it);
/* Unit roundoff of the coarser side. */
double acc_item_unit(const struct acc_item *it);
/* Is the device's output not what its own inputs give, where the bench's is, or was not audited? */
bool acc_accused(const struct acc_item *it);
/* Is the device's output what its own inputs give? */
bool acc_acquitted(const struct acc_item *it);
/* Is the device's output what its own inputs give, and the bench's is not? */
bool acc_bench_wrong(const struct acc_item *it);
/* Does one side alone make zero of numbers below the normal ones, and is that all that differs? */
bool acc_is_flushed(const struct acc_item *it);
/* --- item_statistics.c --- */
/* Half a unit of the sixth digit of each of n numbers, where all have no more; else 0. */
void acc_open_digits(const double *x, int n, double *open);

/* What an item's own error is: what a cast to f16 leaves of the smallest numbers is none, but a cause
 * of what follows. */
static inline double
acc_item_error(const struct acc_item *it, bool largest)
{
	double e = largest ? it->max : it->rms;
	return it->left < e ? it->left : e;
}

/* Is there Inf on the device where the bench's numbers are finite, and beyond what the device's dtype holds? */
static inline bool
acc_overflows(const struct acc_item *it)
{
	return it->nonfinite && it->a_inf && !it->a_nan && it->dtype[ACC_A] != it->dtype[ACC_B] &&
	       isfinite(it->b_max) && it->b_max > acc_item_dtype(it, ACC_A)->max;
}

/* Does an absolute error become a relative one? */
static inline bool
acc_is_exponent(const struct acc_call *k)
{
	return k->response == ACC_OP_EXPONENT || k->response == ACC_OP_SOFTMAX;
}

/* Do some of its gradients go another way where what came forward is off? */
static inline bool
acc_passes_kink(const struct acc_call *k)
{
	return k->backward && (k->response == ACC_OP_KINK || k->response == ACC_OP_KINK_ROWS);
}

#endif
