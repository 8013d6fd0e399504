/* asked_gradients.h - what rules ask of gradients, of what joins and scales them */
#ifndef ACC_RANKS_ASKED_GRADIENTS_H
#define ACC_RANKS_ASKED_GRADIENTS_H

#include "ranks/near.h"

/* --- rules/gradient_divisor.c --- */
/* The one loss of a rank in the first step, a mean, or a sum, the gradient that it is given, and its value. 1; 0: there is
 * none, or several; < 0. */
int acc_seen_loss(struct acc_replicas *t, int64_t rank, bool sums,
	const struct acc_seen_call **found, const struct acc_replica_seen **seed, double *began,
	struct acc_err *e);
/* The only element of a tensor's record. 1; 0: it is not known; < 0. */
int acc_seen_number(struct acc_replicas *t, size_t line, double *v, struct acc_err *e);
/* A whole number, or one by it: what clips gradients, or undoes the scale of a loss, is one for all of them, and may not
 * be seen of those that are put together. */
bool acc_divides(double v);
/* By what a call multiplies, or divides, its tensor. 1; 0: it is not known; < 0. */
int acc_seen_factor(struct acc_replicas *t, const struct acc_seen_call *c, double *v,
	struct acc_err *e);
/* Is it scaled to its part of the ranks' sum? 1, 0, < 0. */
int acc_seen_shared_out(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, struct acc_err *e);
/* Do several ranks give what they have alike to communication of the backward pass, which sums it up, as that of
 * torch.distributed.nn does? Then gradients are as often what they were, and the loss may make up for it. */
int acc_seen_multiplied(struct acc_replicas *t, int64_t rank, bool *is, struct acc_err *e);
/* --- rules/gradient_exchange.c --- */
/* Its gradient's op call; NULL. */
const struct acc_seen_call *acc_seen_backward(const struct acc_replicas *t,
	const struct acc_seen_call *c);
/* Does it only move elements, outside of what autograd sees? */
bool acc_seen_moves(const struct acc_replicas *t, const struct acc_seen_call *c);
/* --- rules/gradient_factor.c --- */
struct acc_scale { /* what the gradients of weights end as */
	uint64_t
		n; /* of so many, which ranks of the group join; 0: not all are known, or not by one number */
	double factor; /* times the sum over them */
	size_t line;   /* of what scaled the first of them last */
};
int acc_seen_scale(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_scale *out, struct acc_err *e);

/* --- rules/micro_batches.c --- */
struct acc_joining { /* what reductions join is the sum of what several op calls make of a weight's gradient */
	uint64_t alike, unlike; /* so many: of weights that are the same on all ranks, or not */
	const struct acc_seen_call *reduction; /* the first of the latter, and two of its weights */
	const struct acc_replica_seen *weight[2];
	uint64_t beside; /* so many of the former are in the same reduction */
};
int acc_seen_sums(struct acc_replicas *t, const struct acc_rank_group *g, struct acc_joining *out,
	struct acc_err *e);
/* Weights of a rank that several op calls of one line are given, whose gradients reductions of the group are given, all of
 * them. *out is the caller's, to be freed. 0 or < 0. */
struct acc_accumulated {
	const struct acc_replica_seen *w; /* where it is given first */
	struct acc_replica_seen
		sum; /* what a reduction, or what scales it before, is given; of several the first */
	uint32_t last; /* the op call that makes the last of its gradients */
};
int acc_seen_accumulated(struct acc_replicas *t, const struct acc_rank_group *g, int64_t rank,
	struct acc_accumulated **out, size_t *n, struct acc_err *e);

#endif
