/* loss.h - what losses share: how their terms are reduced */
#ifndef ACC_LOSS_H
#define ACC_LOSS_H

#include "replay/impl.h"

enum { ACC_LOSS_NONE, ACC_LOSS_MEAN, ACC_LOSS_SUM };

/* The terms of a loss, as they are summed up, or kept each where nothing is reduced: then `out` has
 * its shape before. */
struct acc_loss {
	int how;
	double sum, abs, weight, sq;
	double carry; /* what the sum was rounded by */
	double step;  /* of a rounding, in units of abs */
	double rough; /* of the next term: the size of what is rounded on the way to it, each time */
	size_t at;
	const double *rec; /* where nothing is reduced, what was recorded; or NULL */
	struct acc_dense *out;
};
/* From the arguments reduction, size_average and reduce. 0, or < 0: acc_cannot was called. */
int acc_loss_reduction(struct acc_replay *r, int *how);
/* The next term; mag: of the sizes of what is rounded on the way to it. */
void acc_loss_count(struct acc_loss *t, double term, double mag, double weight);
/* The sum, or that over `divisor` for a mean. 0, or < 0: acc_cannot was called. */
int acc_loss_finish(struct acc_replay *r, struct acc_loss *t, double divisor);

/* The gradients of the terms, as that of the loss makes them: the sum of their squares. */
double acc_loss_terms2(struct acc_replay *r, const struct acc_dense *g);
/* And, of targets that are probabilities, of what logarithms that were kept are rounded by, as a gradient. */
double acc_loss_kept2(struct acc_replay *r, const struct acc_dense *g);
/* By how many roundings what a loss of weighted classes is divided by is off. */
double acc_loss_divisor(struct acc_replay *r);

#endif
