/* first_bad.h - the default judge: how much error an op call may add, and which one added more
 *
 * scan.h is what it knows, bounds.h what a call may do, traced.h who made what, tell.h what is said in the end.
 */
#ifndef JUDGE_FIRST_BAD_H
#define JUDGE_FIRST_BAD_H

#include "judge/bounds.h"
#include "judge/tell.h"
#include "judge/traced.h"

/* --- input.c; each 0 or < 0 --- */
/* An input, which is received, too. */
int acc_judge_input(struct scan *s, uint32_t call, uint32_t i, double unit, struct given *g);
/* The call's running means, and its arguments; worst: the largest margin of its outputs. */
int acc_judge_state(struct scan *s, uint32_t call, double unit, double worst);
int acc_judge_args(struct scan *s, uint32_t call, double unit, double worst, const struct given *g);
/* Of two frameworks, of which one has kernels: arguments that are not what the other one takes where they are not
 * given. */
int acc_judge_defaults(struct scan *s, uint32_t call, double worst);
/* 1 with the first of them; 0; < 0. */
int acc_other_default(struct scan *s, uint32_t call, uint32_t *item);

/* --- output.c; each 0 or < 0 --- */
/* An output that was compared; worst gets its margin, if that is larger. */
int acc_judge_output(struct scan *s, uint32_t call, uint32_t i, double unit, const struct given *g,
	double *worst);
/* One that was not: it may still be wrong for its inputs. */
int acc_judge_alone(struct scan *s, uint32_t call, uint32_t i, const struct given *g);

/* --- choose.c --- */
/* The earliest suspect that stands out, and by enough to be named if that is asked for; its index,
 * or ACC_NOCALL. */
uint32_t acc_choose(struct scan *s, bool name);

/* levels.c */
/* Why two programs cannot be judged, whose pairs of weights tell few levels, or do not; NULL: they can, or e says that
 * it failed. */
const char *acc_levels_apart(struct acc_case *c, bool few, struct acc_err *e);

#endif
