/* walk.h - the way back from a tensor, by op calls of elements */
#ifndef ACC_RANKS_WALK_H
#define ACC_RANKS_WALK_H

#include "ranks/asked.h"

enum { ACC_WALK_NODES = 64 };

/* The op calls of elements that a tensor is made by, to what is no such one: a product, say; beyond: before what ranks
 * gathered or exchanged. */
struct acc_walk {
	const struct acc_seen_call *call[ACC_WALK_NODES], *end[ACC_WALK_NODES];
	unsigned hops[ACC_WALK_NODES];
	bool beyond[ACC_WALK_NODES], far[ACC_WALK_NODES]; /* of calls, of ends */
	unsigned n, nend;
	const struct acc_seen_call *talk; /* that gave it; NULL: none */
};

/* From s back, among a group: through one gather or exchange on each way. */
void acc_walk_back(struct acc_walk *w, const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s);
/* The product that a call's first operand is, but for op calls of elements; NULL. *w: the way to it. */
const struct acc_seen_call *acc_walk_product(struct acc_walk *w, const struct acc_replicas *t,
	const struct acc_rank_group *g, const struct acc_seen_call *c);
/* Is it an op call of this family, which neither communicates nor is of a backward pass? */
bool acc_seen_is_of(const struct acc_seen_call *c, const char *family);

#endif
