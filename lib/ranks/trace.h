/* trace.h - the way of a tensor through the op calls of its rank, and to the other ranks */
#ifndef ACC_RANKS_TRACE_H
#define ACC_RANKS_TRACE_H

#include "ranks/graph.h"

/* Why a gradient of `weight` is another on each rank of a group that holds parts of weights, if what they computed alike
 * parts in the forward pass (forward_parts.c); *said: it was found, and is said. 0 or < 0. */
int acc_replicas_spoiled(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *dw, const char *weight, bool *said, struct acc_err *e);
/* Elements of a tensor from the first on; *known: they were recorded. 0 or < 0. */
int acc_seen_elements(struct acc_replicas *t, const struct acc_replica_seen *s, uint64_t first,
	size_t n, double *out, bool *known, struct acc_err *e);
/* Of a sum, or a mean, over the ranks of a group, on its first one: what an op call of the forward pass, or behind the
 * backward one, made and it sums up. NULL: it is none, or sums up something else. */
const struct acc_replica_seen *acc_seen_summand(const struct acc_replicas *t,
	const struct acc_rank_group *g, const struct acc_seen_call *c);
/* Does a call join what both ranks have (local_steps.c)? */
bool acc_seen_joins(const struct acc_replicas *t, const struct acc_seen_call *c, int64_t a,
	int64_t b);
/* Does all that moved since `step` part between the rank of w and another one, which held the same weights then and
 * joined no gradients? 0 or < 0. */
int acc_replicas_own_ways(struct acc_replicas *t, int64_t step, const struct acc_replica_seen *w,
	int64_t rank, bool *is, struct acc_err *e);
/* Is this call one among the group? */
bool acc_seen_among(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_rank_group *g);
/* The call of a tensor; NULL of NULL. */
const struct acc_seen_call *acc_seen_caller(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* Its first output of more than one element; its first real tensor of more; NULL: none. */
const struct acc_replica_seen *acc_seen_output(const struct acc_replicas *t,
	const struct acc_seen_call *c);
const struct acc_replica_seen *acc_seen_real(const struct acc_replicas *t,
	const struct acc_seen_call *c, bool out);
/* The input whose gradient a backward call puts out: recorders number gradients as the inputs, or leave out what
 * is no tensor. NULL: not known. */
const struct acc_replica_seen *acc_seen_input(const struct acc_replicas *t,
	const struct acc_replica_seen *gradient);
/* What a backward call put out of which this was made, on its way to the optimizer; NULL: not known. */
const struct acc_replica_seen *acc_seen_gradient_in(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* The weight whose gradient this is; NULL: not known. */
const struct acc_replica_seen *acc_seen_weight(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* Who put this out before; NULL: nobody. */
const struct acc_replica_seen *acc_seen_maker(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* What put these elements out last in that step, on this rank; NULL: nobody. */
const struct acc_replica_seen *acc_seen_made_in(const struct acc_replicas *t,
	const struct acc_replica_seen *s, int64_t step);
/* The step before this one; INT64_MIN: there is none. */
int64_t acc_replicas_step_before(const struct acc_replicas *t, int64_t step);
/* The op call that only moved elements into what this was before numbers scaled it; NULL: none. */
const struct acc_seen_call *acc_seen_joined(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* Of what was joined by this call, and made into `flat` then, the k-th part, as op calls cut it out again, in the same
 * order; NULL: they do not. */
const struct acc_replica_seen *acc_seen_piece(const struct acc_replicas *t,
	const struct acc_replica_seen *flat, const struct acc_seen_call *join, uint32_t k);
/* The call of the reduction that made it, or what it is cut out of; ACC_NOID: none. */
uint32_t acc_seen_reduced(const struct acc_replicas *t, const struct acc_replica_seen *s);
/* Is it, or what it is made part of, given to a reduction? */
bool acc_seen_given(const struct acc_replicas *t, const struct acc_replica_seen *s);
/* Is it, or what it is made part of, by other reductions, too, given to one that this rank takes part in? *last: that
 * one, or the last of the others; NULL: none. */
bool acc_seen_joined_with(const struct acc_replicas *t, const struct acc_replica_seen *s,
	int64_t rank, const struct acc_seen_call **last);
/* On how many ranks of the group, which the call that is given it is among, is it the same as here? Their sum is as often
 * it. 1; 0: not known; < 0. */
int acc_seen_copies(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *in, uint32_t *n, struct acc_err *e);
/* Which stages of a pipeline the ranks are (same_parameter.c). 0 or < 0. */
int acc_replicas_stages(struct acc_replicas *t, struct acc_err *e);
/* Two ranks' weight now and before, one after the other, which was equal then: is it one that both hold? */
int acc_replicas_one(struct acc_replicas *t, const struct acc_replica_seen *const w[4], bool *is,
	struct acc_err *e);
/* A weight that is another on each rank: was it, earlier in the step, the same on all of them, which have moved it
 * since, each to where its own loss is larger? 0 or < 0. */
int acc_replicas_moved(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, const struct acc_seen_call **room, bool *is,
	struct acc_err *e);
/* Is it a product of what is the same on all ranks? Then it has a part of the columns, and is no part of a sum. */
int acc_replicas_of_whole(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, const struct acc_seen_call **room, bool *is,
	struct acc_err *e);
/* A weight's gradient is another on this other rank: the part of a gradient that makes it so, of what both have alike in the
 * forward pass (partial_gradient.c); NULL: not known. 0 or < 0. */
int acc_replicas_partial(struct acc_replicas *t, const struct acc_replica_seen *w, int64_t rank,
	const struct acc_replica_seen **found, struct acc_err *e);
/* What a tensor was before numbers scaled it. */
const struct acc_replica_seen *acc_seen_unscaled(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* What stands in the second step where a weight does in the first: there two that began as the same numbers have moved apart.
 * Itself, where there is none (trace.c). */
const struct acc_replica_seen *acc_seen_moved(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* Are several op calls given it? Then its gradient is the sum of several. */
bool acc_seen_shared(const struct acc_replicas *t, const struct acc_replica_seen *s);

#endif
