/* arrived.h - gradients of the bench's that come to the device's optimizer as they are */
#ifndef JUDGE_ARRIVED_H
#define JUDGE_ARRIVED_H

#include "judge/case.h"

struct acc_step_norm {
	double norm; /* the bench's */
	double off;  /* relative to it */
};

/* What was compared: the gradients that optimizers are given, and what has one element, as what cuts gradients to a norm
 * multiplies them by. */
struct acc_stepped {
	struct acc_step_norm *gradient, *factor;
	uint32_t ngradient, nfactor;
	size_t gradients, factors; /* room */
};

/* The norm of a record's tensor on a side, as recorded, or as measured. */
bool acc_side_norm(const struct acc_rec *r, int side, double *norm);
/* Fills an empty one, which the caller frees in any case. 0 or < 0. */
int acc_find_arrived(struct acc_case *c, struct acc_stepped *a, struct acc_err *e);
void acc_arrived_free(struct acc_stepped *a);
/* A gradient of this norm on the bench is so many times as large on the device where it was made. Is the optimizer given the
 * bench's none the less: the same on both sides, which on the bench is this one, or this one times a factor that is the same on
 * both, too? Without the latter a cut to a norm hides how large it was. */
bool acc_has_arrived(const struct acc_stepped *a, double norm, double times);

#endif
