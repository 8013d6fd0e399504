/* say.h - what is said of a record */
#ifndef ACC_RANKS_SAY_H
#define ACC_RANKS_SAY_H

#include "ranks/graph.h"

/* The op call of a record, in the fleet's memory; never NULL: after a failure, what is said next fails. */
const char *acc_replicas_name(struct acc_replicas *t, size_t line, struct acc_err *e);
/* Say of a record what is wrong; said NULL: memory ran out. 0 or < 0. */
int acc_replicas_blame(struct acc_replicas *t, const struct acc_rank_group *g, size_t line,
	const char *said, double value, double limit, struct acc_err *e);
/* The same, or, where what shows it is little, a doubt. 0 or < 0. */
int acc_replicas_tell(struct acc_replicas *t, const struct acc_rank_group *g, size_t line,
	bool sure, const char *said, struct acc_err *e);
/* The same, unless `s`, by which it was found, is one number everywhere: zeros are found again where they are
 * others. */
int acc_replicas_accuse(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s, size_t line, const char *said, struct acc_err *e);

#endif
