/* step.h - what the steps of optimizers share */
#ifndef REPLAY_OP_STEP_H
#define REPLAY_OP_STEP_H

#include "replay/impl.h"

/* A tensor by its names, and the place of its output; absent: NULL. */
struct acc_slot {
	const struct acc_dense *x;
	struct acc_dense *out;
};

/* The tensors that a step changes, in the order in which they are given. */
enum { STEP_PARAM, STEP_FIRST, STEP_SECOND, STEP_MOST, STEP_SLOTS };

/* Are they as many as the gradient has elements, and what is recorded of them, too? 0 or ACC_EUNSUP, said. */
int acc_step_check(struct acc_replay *r, const struct acc_slot *s, const struct acc_dense *g);
/* Element i of the output, where there is one; mag: what it was summed up of. */
void acc_step_store(const struct acc_slot *s, size_t i, double v, double mag);
/* What a rounding on the way is of, in a step of tensors of this dtype: that of f32, or its own where each op call of a
 * step writes it. */
double acc_step_unit(const struct acc_replay *r, enum acc_dtype t);
/* What the rounding of a bias correction 1 - beta^t is, in such units of it: beta^t is rounded near 1, but where a step is
 * many op calls Python computes it. */
double acc_step_correction(const struct acc_replay *r, double correction);
/* A number that has to be given. 0 or < 0, said. */
int acc_step_need(struct acc_replay *r, const char *name, double *out);

/* One step of one parameter, by what the call was told; counted: how many steps came before. 0 or < 0. */
typedef int acc_step_fn(struct acc_replay *r, const void *told, double counted,
	const struct acc_dense *grad, const struct acc_slot *s);
/* Of each parameter of lists; name: of these and of their states. 0 or < 0. */
int acc_step_each(struct acc_replay *r, struct acc_dense *out, const char *const *name,
	acc_step_fn *f, const void *told);

#endif
