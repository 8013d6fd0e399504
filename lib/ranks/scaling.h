/* scaling.h - by what the gradients of weights are scaled on their way to the optimizer */
#ifndef ACC_RANKS_SCALING_H
#define ACC_RANKS_SCALING_H

#include "ranks/asked.h"

struct acc_way {
	double factor;
	double before, after; /* by this much before it was joined, if it was, and after that */
	bool joined;
	uint32_t ranks;                    /* that joined it last */
	const struct acc_seen_call *call;  /* that the weight is given to */
	size_t line;                       /* what scaled it last, else joined it, else made it */
	size_t by;                         /* the same of what its factor counts */
	const struct acc_seen_call *again; /* sums up what is the same on several ranks; NULL */
};

struct acc_ways {
	struct acc_replicas *t;
	int64_t rank;
	struct acc_way *way;
	size_t n, cap;
};

/* Follows a gradient through what joins, scales and moves it. 1; 0: not all is known; < 0. */
int acc_way_follow(struct acc_ways *w, const struct acc_replica_seen *x, struct acc_way *out,
	struct acc_err *e);
/* The ways of all gradients of a rank's weights in the first step, as far as they are known; w->way is the caller's. 0 or < 0. */
int acc_ways_collect(struct acc_ways *w, const struct acc_rank_group *g,
	const struct acc_seen_call **peer, struct acc_err *e);

#endif
