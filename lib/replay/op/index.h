/* index.h - what x[index] means */
#ifndef ACC_REPLAY_INDEX_H
#define ACC_REPLAY_INDEX_H

#include "acc/replay.h"

/* Which elements of x an index means: a tensor of their numbers, with the shape of x[index].
 * < 0 with acc_cannot. */
int acc_index_places(struct acc_replay *r, const struct acc_dense *x, const struct acc_value *idx,
	struct acc_dense *out);

#endif
