/* cause.h - what an error looks like: parts of cause.c and cause_args.c */
#ifndef ACC_REPLAY_CAUSE_H
#define ACC_REPLAY_CAUSE_H

#include "replay/impl.h"

/* Root mean square of rec - (scale ref + shift), in units of rounding; shift may be NULL. */
double acc_residue(const struct acc_dense *rec, const double *ref, double scale,
	const double *shift);
/* Nearer than this, it is what was computed. */
double acc_residue_most(const struct acc_dense *rec);
/* The factor that brings ref nearest to rec - shift. */
double acc_residue_factor(const struct acc_dense *rec, const double *ref, const double *shift);

/* Which argument, changed in a usual way, gives what was recorded of output 0: a sentence, or
 * NULL. ref: what the arguments give as they are. */
const char *acc_cause_argument(struct acc_trial *t, const struct acc_dense *rec, const double *ref);

#endif
