/* collective.h - a communication as one rank recorded it */
#ifndef ACC_RANKS_COLLECTIVE_H
#define ACC_RANKS_COLLECTIVE_H

#include "ranks/fleet.h"

enum acc_collective_kind {
	ACC_ALL_REDUCE,
	ACC_REDUCE_SCATTER,
	ACC_ALL_GATHER,
	ACC_ALL_TO_ALL,
	ACC_BROADCAST,
	ACC_SEND,
	ACC_RECV
};
enum acc_reduction { ACC_REDUCE_SUM, ACC_REDUCE_AVG, ACC_REDUCE_MAX, ACC_REDUCE_MIN };

/* Tensors, one behind the other as if they were one. */
struct acc_vector {
	struct acc_fleet_tensor *t;
	size_t nt, cap;
	uint64_t n; /* elements of all */
};

struct acc_collective {
	const struct acc_fleet_call *call;
	enum acc_collective_kind kind;
	enum acc_reduction op;
	uint64_t set; /* equal for calls that may be parts of one */
	uint64_t
		pair; /* the same for those of all steps that are sent from one rank to another; 0: it is none */
	const int64_t *member; /* of its group, as recorded; NULL: all ranks */
	uint32_t nmember;
	int64_t peer;              /* of what has a source or destination */
	struct acc_vector in, out; /* operands before, results after */
	size_t before;             /* the record of what is filled, before; SIZE_MAX: none */
	const int64_t *in_split, *out_split; /* of all_to_all_single; NULL: even */
	uint32_t nin_split, nout_split;
	bool async;      /* what was recorded may not be the result */
	const char *why; /* not understood: why; NULL: it is */
};

/* Reads a call; *known: whether it is one of these at all. 0 or < 0. */
int acc_collective_read(struct acc_fleet *f, const struct acc_fleet_call *k,
	struct acc_collective *c, bool *known, struct acc_err *e);

/* Calls that are one communication, in the order of the ranks in their group. */
struct acc_meeting {
	const struct acc_collective **c; /* n of them */
	uint32_t n;
	const char *who; /* the ranks */
	bool recorded;   /* the group was, or it is two that send and receive */
};
/* Recompute it: a result for each tensor of each rank's output goes to `say`. 0 or < 0. */
typedef int acc_meeting_say_fn(void *arg, const struct acc_collective *c,
	const struct acc_fleet_verdict *v, struct acc_err *e);
int acc_meeting_check(struct acc_fleet *f, const struct acc_meeting *m,
	const struct acc_collective *all, size_t nall, acc_meeting_say_fn *say, void *arg,
	struct acc_err *e);
/* The same where statistics alone are known, which contradict it or do not. The dtypes are one. */
int acc_meeting_statistics(struct acc_fleet *f, const struct acc_meeting *m,
	const struct acc_collective *all, acc_meeting_say_fn *say, void *arg, struct acc_err *e);

#endif
