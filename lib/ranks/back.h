/* back.h - the way back from a tensor to the communication that it came by */
#ifndef ACC_RANKS_BACK_H
#define ACC_RANKS_BACK_H

#include "ranks/graph.h"

enum { ACC_BACK_MOST = 64 };

struct acc_back { /* the op calls that something is made by, up to communication */
	const struct acc_seen_call *call[ACC_BACK_MOST], *talk[ACC_BACK_MOST];
	const struct acc_replica_seen *by[ACC_BACK_MOST]; /* what the call put out on this way */
	unsigned hops[ACC_BACK_MOST];
	unsigned n, ntalk;
	bool lost; /* there are more */
};

/* Up to the communication, or a few hops: by numbers where s is one, else by tensors; of what was gathered or exchanged, the
 * rank's own part is no way. */
void acc_go_back(struct acc_back *b, const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* What a reduction sums up, as an op call put it out; NULL: it is not known. */
const struct acc_replica_seen *acc_seen_made_for_sum(const struct acc_replicas *t,
	const struct acc_seen_call *sum);

#endif
