/* graph.h - the tensors of all ranks beside each other
 *
 * A tensor's mark is equal where its elements are, whatever its shape: of the checksum, or of the
 * statistics that were recorded. */
#ifndef ACC_RANKS_GRAPH_H
#define ACC_RANKS_GRAPH_H

#include "ranks/fleet.h"

struct acc_replica_seen { /* a tensor record */
	size_t line;
	uint64_t pos, mark, shape; /* hashes; mark 0: unknown */
	uint64_t n;                /* elements */
	uint32_t call;
	bool out;
	bool leaf;   /* it wants a gradient, and no op call of its rank and step made it */
	bool lone;   /* the same, of one element: none is a leaf */
	bool place;  /* it stands where its operator has weights */
	bool weight; /* a leaf at such a place: elsewhere an op call may be missing */
	bool data;   /* it wants none, and is of integers, or nobody made it */
	bool real;   /* floating point */
	bool wants;  /* a gradient */
	bool exact;  /* the mark is of the elements in their order, not of statistics */
	bool raw; /* wants none, and is made, if at all, of such tensors: it may yet be a weight */
	bool kept; /* wants no gradient, and stands, made by nobody, where its operator has weights: an average of
		    * weights, say; statistics of a batch are each rank's own */
	uint32_t
		again; /* of what is put out, the same elements that were put out before; ACC_NOID */
};

struct acc_seen_call {
	const struct acc_fleet_call *k;
	uint32_t first, n; /* of its tensors */
	uint32_t next;     /* call of its rank; the number of all behind the last */
	uint64_t args;     /* a hash of its arguments that are no tensors */
	uint64_t line;     /* of its operator and the stack it was called from; 0: unknown */
	const struct acc_op_info *info; /* NULL: unknown */
	bool optimizer;                 /* the step of one */
	bool module, hands_round;       /* hands_round: weights, from one rank to all */
	bool loss, sums;                /* a loss; that sums up */
	bool reduces, average, picks;   /* over ranks: all; their mean; no sum */
	bool scatters, gathers;         /* a part to each rank; from each */
	bool receives, exchanges;       /* from one rank; parts with each */
	bool sends;                     /* to one rank */
	bool to_one, elsewhere;         /* one rank has the sum; another one: here is none */
	uint64_t switches; /* a hash of its arguments that are no whole numbers, nor tensors */
	bool amid;         /* between the first backward call of its rank and step and the last */
	bool behind; /* the last backward call of its rank and step: what it is given gets no gradient */
	bool raw;         /* all that it was given is raw */
	uint64_t members; /* a hash of the ranks of its group; 0: none was recorded */
	uint32_t nmember; /* how many; 0: all */
	uint64_t meets;   /* the same on each rank of its group; 0: it is none */
	bool norm;        /* whose weights are whole on all ranks */
	bool batch;       /* a norm over the batch */
	bool in_place;    /* it writes to its first argument */
	bool begins;      /* in place, to a weight before it is used, which has no graph */
	bool mean, total, length,
		chooses; /* a mean of elements; their sum; the norm of a tensor; the largest, or k of them */
};

/* How two tensors of the same place on two ranks lie to each other. */
enum acc_alike { ACC_EQUAL, ACC_NEAR, ACC_APART, ACC_NOT_KNOWN };

struct acc_rank_group { /* ranks that may hold replicas */
	const int64_t *rank;
	uint32_t n;
	uint64_t members;                 /* as a call's */
	bool weights_differ, data_differ; /* in the first step */
	bool data_alike; /* what is seen of it; what is cut before it is used is not */
	bool parts;      /* a weight is of another shape, or not on all */
	bool held;       /* known by the weights that they hold alone, and not by communication */
	bool twins; /* all weights are the same, and all their gradients joined, to the same bits */
	const char *who;
};

struct acc_replicas {
	struct acc_fleet *f;
	struct acc_replica_seen *seen;
	struct acc_seen_call *call; /* as the fleet's */
	size_t nseen, cap_seen;
	bool scattered;         /* the calls of a rank and step do not lie one behind the other */
	struct acc_ids at;      /* calls by step, rank and key */
	struct acc_ids met;     /* and those that communicate by what they meet */
	struct acc_ids times;   /* how often a group has met, by step and rank */
	struct acc_ids made;    /* tensors that were put out, by step, rank and mark */
	struct acc_ids latest;  /* the last of those that are the same */
	struct acc_ids given;   /* operands of reductions, the same way: their calls */
	struct acc_ids reduced; /* and results, and what numbers make of these */
	struct acc_ids scaled;  /* what is given to calls that may scale it: these calls */
	struct acc_ids entered; /* gradients that backward calls are given: the first such record */
	struct acc_ids gathered; /* what is given to be gathered: these calls */
	struct acc_ids taken;    /* what is joined, cut or scaled: by these calls */
	struct acc_ids first;    /* the call that a weight is first given to */
	struct acc_ids shared;   /* and another one: its gradient is the sum of several */
	struct acc_ids used;     /* the first call that is given a weight, by step and rank */
	uint32_t *begin;         /* the first call of each rank */
	int64_t *step;           /* rising */
	size_t nstep, cap_step;
	struct acc_rank_group *group;
	size_t ngroup, cap_group;
	struct acc_ids grouped; /* those that there are, by their members */
	struct acc_ids roles;   /* what was asked of two ranks or steps: 1 or 0 */
	struct acc_ids
		lined; /* calls by step, rank, line and how many of that there are before; see weight_drift.c */
	struct acc_ids
		drawn; /* see forward_parts.c: by step, rank and group, a call; or behind the last */
	struct acc_ids amid;   /* see gradient_divisor.c */
	struct acc_ids copies; /* see copies.c: of tensors, by their number */
	struct acc_ids mixed;  /* marks of weights of which acc_rule_mix has said why they part */
	struct acc_account *account; /* see account.h */
	size_t naccount;
	struct acc_account *crossed; /* those that have gradients of other weights in them */
	size_t ncrossed;
	size_t *stage; /* of each rank, in a pipeline: 0 begins */
	double *a, *b; /* ACC_CHUNK elements each */
	int lost;      /* < 0: a name could not be got */
};

/* Sets what the operator's name says, where k, info and behind are set (op_kind.c). */
void acc_seen_name(struct acc_seen_call *c, struct acc_str op);
/* Reads all records. 0 or < 0. */
int acc_replicas_read(struct acc_replicas *t, struct acc_err *e);
void acc_replicas_release(struct acc_replicas *t);
/* Adds a group, if there is none of these ranks. 0 or < 0. */
int acc_replicas_group(struct acc_replicas *t, const int64_t *rank, uint32_t n, bool held,
	struct acc_err *e);
/* Adds those of ranks that hold the same weights, two and more that are not one number (holders.c). 0 or < 0. */
int acc_replicas_held(struct acc_replicas *t, struct acc_err *e);
/* The first call of a rank, from which `next` leads to its others; the number of all: there is none. */
uint32_t acc_calls_of(const struct acc_replicas *t, int64_t rank);
/* The same call on another rank, or in another step; NULL: there is none. */
const struct acc_seen_call *acc_replicas_call(const struct acc_replicas *t, int64_t step,
	int64_t rank, uint64_t key);
/* The same tensor, of as many elements in each axis, of the same call on another rank, or in another step; NULL: there is none. */
const struct acc_replica_seen *acc_seen_there(const struct acc_replicas *t,
	const struct acc_replica_seen *s, int64_t step, int64_t rank);
/* The calls of a group's ranks that this one is of, with the same tensors; of one line of code, data may be larger on
 * some of them, and are apart then. false: not on all. */
bool acc_replicas_peers(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, const struct acc_seen_call **peer);
/* By what a tensor with this mark is found, of any rank. */
uint64_t acc_seen_place(int64_t step, int64_t rank, uint64_t mark);
/* Of one rank and step? Its calls lie one behind the other, if they are not scattered. */
static inline bool
acc_seen_beside(const struct acc_seen_call *a, const struct acc_seen_call *b)
{
	return a->k->rank == b->k->rank && a->k->step == b->k->step;
}
struct acc_seen_like { /* an op call, by its line and form */
	uint64_t form;
	uint32_t call;
};
struct acc_seen_likes { /* those of one form one behind the other, in their order */
	struct acc_seen_like *like;
	size_t n, cap;
};
/* All op calls of a rank in the first step whose line is known; `like` is to be freed. 0 or < 0. */
int acc_seen_likes_of(const struct acc_replicas *t, int64_t rank, struct acc_seen_likes *out,
	struct acc_err *e);
/* Where those of its form end. */
size_t acc_seen_likes_end(const struct acc_seen_likes *all, size_t i);
/* What a tensor is found by in `made`, `given` and `reduced`. */
uint64_t acc_seen_id(const struct acc_replicas *t, const struct acc_replica_seen *s);

#endif
