/* near.h - how two tensors of ranks lie to each other */
#ifndef ACC_RANKS_NEAR_H
#define ACC_RANKS_NEAR_H

#include "ranks/graph.h"

/* Of the j-th tensors of the peers: all to the bit; or how. */
bool acc_replicas_marked(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j);
int acc_replicas_alike(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, enum acc_alike *is, struct acc_err *e);
/* The same of two tensors: equal by their marks, or by their elements where statistics do not show it. 0 or < 0. */
int acc_seen_alike(struct acc_replicas *t, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, enum acc_alike *is, struct acc_err *e);
/* The peer whose j-th tensor is not that of most; of two, the second. */
uint32_t acc_replicas_odd(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j);
struct acc_distance {
	double d, size; /* norms: of the difference, of the second tensor */
	bool known;
};
/* Of two tensors; of statistics, at least so far they are apart. 0 or < 0. */
int acc_replicas_distance(struct acc_replicas *t, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, struct acc_distance *out, struct acc_err *e);
/* Of two ranks' weight now and before, one after the other: how far they parted, in parts of how far they
 * moved (twins: of its size), and how far they may; 0: it is not known. 0 or < 0. */
int acc_replicas_parted(struct acc_replicas *t, const struct acc_replica_seen *const w[4],
	bool twins, double *ratio, double *limit, struct acc_err *e);
/* The mean of a tensor in f32, as recorded, and how far that may be off; false: not known. < 0: failure. */
int acc_replicas_mean(struct acc_replicas *t, const struct acc_replica_seen *s, double mean[2],
	bool *known, struct acc_err *e);
/* Is it the sum of these, in f32? By the mean; then, where they were recorded (*data), by the elements. */
int acc_replicas_sum(struct acc_replicas *t, const struct acc_replica_seen *s,
	const struct acc_replica_seen *const *term, uint32_t n, bool *is, bool *data,
	struct acc_err *e);
/* Do the statistics alone show that they are further apart, in parts of b? 0 or < 0. */
int acc_replicas_known_apart(struct acc_replicas *t, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, double near, bool *is, struct acc_err *e);
/* Did it move, by its elements, less than a weight may in a step? 0 or < 0. */
int acc_replicas_persists(struct acc_replicas *t, const struct acc_replica_seen *s,
	const struct acc_replica_seen *later, bool *is, struct acc_err *e);
/* Further apart than what several products on the way round, in whatever arithmetic. 0 or < 0. */
int acc_replicas_far(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, bool *is, struct acc_err *e);
/* The same but for rounding; of statistics, to as many digits. 0 or < 0. */
int acc_replicas_same(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, bool *is, struct acc_err *e);
/* The norm of a tensor, and how far off it may be where it is the same as another one, for which that one's is added;
 * INFINITY: nothing is known of it. 0 or < 0. */
int acc_replicas_norm(struct acc_replicas *t, const struct acc_replica_seen *s, double *norm,
	double *room, struct acc_err *e);
/* How far rounding alone leads in the type of `s`, against the tensor's norm. 0 or < 0. */
int acc_replicas_near(struct acc_replicas *t, const struct acc_replica_seen *s, double *limit,
	struct acc_err *e);
/* All elements the same: parts of zeros are equal, too. Weights of norms are whole on all ranks. */
int acc_replicas_constant(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is,
	struct acc_err *e);
/* The same, of weights of norms, too. */
int acc_replicas_flat(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is,
	struct acc_err *e);
/* Of two numbers alone, as a mask is; false where no statistics are known. */
int acc_replicas_binary(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is,
	struct acc_err *e);
/* How a weight lies to what it may have been a step before. */
enum { ACC_KIN_ELEMENTS = 64 }; /* fewer show by chance what they are like */
struct acc_kinship {
	double like;  /* the correlation of their elements, */
	double apart; /* or how far their statistics are apart, in parts of its deviation */
	bool elements, statistics; /* known */
};
int acc_replicas_kin(struct acc_replicas *t, const struct acc_replica_seen *now,
	const struct acc_replica_seen *was, struct acc_kinship *out, struct acc_err *e);

#endif
