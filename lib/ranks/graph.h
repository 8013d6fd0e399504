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
/* By what a tensor with this mark is found, of any rank. */
uint64_t acc_seen_place(int64_t step, int64_t rank, uint64_t mark);

/* What a step leaves for the next one, as it was and something more, is the same on all ranks where it was
 * (running_state.c). 0 or < 0. */
int acc_rule_state(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
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
/* Why a weight, which two ranks had alike in `step` and have not any more, parts, if its gradient does not tell: a state or
 * a number of its update (optimizer_state.c). *said: it was found, and is said. 0 or < 0. */
int acc_replicas_update_apart(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *w, const struct acc_replica_seen *const now[2], bool *said,
	struct acc_err *e);
/* The rates of optimizers are the same on all ranks, if they were. 0 or < 0. */
int acc_rule_rates(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Weights that are averaged over the ranks (weight_average.c): do they part from another rank's until a later step's
 * average, or for good, as they are averaged over others? Is the average of this one divided by the number of ranks?
 * 0 or < 0. */
int acc_replicas_apart_by_design(struct acc_replicas *t, const struct acc_replica_seen *w,
	const struct acc_replica_seen *later, int64_t rank, bool *is, struct acc_err *e);
int acc_rule_average(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, struct acc_err *e);
/* What all ranks make of what one sends is in its gradient (adjoint.c). 0 or < 0. */
int acc_rule_adjoint(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What is whole is no part: no sum of it, nor is it gathered with one (double_counted.c). 0 or < 0. */
int acc_rule_whole(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Gradients of micro-batches that are added up count once each (accumulated_gradient.c). 0 or < 0. */
int acc_rule_terms(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Gradients that are brought to fewer numbers before they are summed up (projected_gradient.c). 0 or < 0. */
int acc_rule_project(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Parts of columns that are gathered (gathered_columns.c). 0 or < 0. */
int acc_rule_columns(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What is looked up in parts of a table (split_embedding.c). 0 or < 0. */
int acc_rule_lookup(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Moments that are joined over the ranks, all of them (joined_moments.c). 0 or < 0. */
int acc_rule_moments(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Does it join what came from other ranks? With the rank's own part, which stays as it is. */
bool acc_seen_joins_parts(const struct acc_replicas *t, const struct acc_seen_call *c);
/* Is a call given what ranks exchanged or gathered, by few op calls from there? */
bool acc_seen_exchanged(const struct acc_replicas *t, const struct acc_seen_call *c);
/* Is one given activations that the ranks of a group summed up, by few op calls from there? */
bool acc_seen_summed(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_rank_group *g);
/* What stages make of the gradients of a weight that they share (same_parameter.c). 0 or < 0. */
int acc_rule_shared(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What goes through a reduction in one call of a line does in all (wrong_group.c). 0 or < 0. */
int acc_rule_roles(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What an op call is given came from the ranks of one group, as in others of its line. */
int acc_rule_groups(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);

/* The reductions of a line are sums, means or largest, all of them. */
int acc_rule_kinds(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);

/* What an op call makes other on each rank of what is the same on all (random_draw.c): by random numbers that it draws
 * (*drawn: there are such; *said: where they must not be), or is given (*said as before), or by a number. 0 or < 0. */
int acc_rule_draws(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, bool *drawn, bool *said, struct acc_err *e);
int acc_rule_noise(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, bool *said, struct acc_err *e);
int acc_rule_after(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
/* Rules of what a call is given and makes, on all ranks of a group (double_reduction.c). 0 or < 0. */
int acc_rule_call(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
int acc_rule_reduction(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
/* The labels of what is the same on all ranks (loss_labels.c). 0 or < 0. */
int acc_rule_labels(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
/* The loss of ranks that share data and parts of weights is the same. */
int acc_rule_loss(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Weights whose gradients are joined, as their shapes show, are the same (gradient_shapes.c); sets g->twins. */
int acc_rule_shapes(struct acc_replicas *t, struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
struct acc_joining { /* what reductions join is the sum of what several op calls make of a weight's gradient */
	uint64_t alike, unlike; /* so many: of weights that are the same on all ranks, or not */
	const struct acc_seen_call *reduction; /* the first of the latter, and two of its weights */
	const struct acc_replica_seen *weight[2];
	uint64_t beside; /* so many of the former are in the same reduction */
};
int acc_seen_sums(struct acc_replicas *t, const struct acc_rank_group *g, struct acc_joining *out,
	struct acc_err *e);
/* Gradients of all micro-batches are joined, each once (micro_batches.c). */
int acc_rule_micro(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What is sent and received (send_receive.c). */
int acc_rule_pairs(struct acc_replicas *t, struct acc_err *e);
/* Weights that are not the same on all ranks, of a group where no gradients are seen to be joined: so many are
 * the same, so many not (odd_weight.c). */
int acc_rule_odd(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *const *odd, uint32_t nodd, uint64_t equal, uint64_t differ,
	const struct acc_seen_call **room, struct acc_err *e);
/* Of a weight whose gradients nothing joins: are the others of its line parts? Then it is one, and not the right one. */
int acc_replicas_same_part(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, const struct acc_seen_call **room, bool *said,
	struct acc_err *e);
/* Is this input the same in all steps, of which there are several (data_parallel.c)? */
bool acc_seen_stays(const struct acc_replicas *t, const struct acc_replica_seen *s);
/* Does all that the first rank of a group makes of its data stay its own until it goes backward, and do these change from
 * step to step (data_parallel.c)? */
bool acc_seen_own_data(const struct acc_replicas *t, const struct acc_rank_group *g);
/* What is exchanged or gathered, and its gradients (gradient_exchange.c). */
int acc_rule_dual(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Parts of weights, sequences, gradients (parallel_inputs.c). */
int acc_rule_part(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e);
/* What chooses the largest, as routers do (routing.c). 0 or < 0. */
int acc_rule_choice(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e);
/* Ranks whose weights are the same, and which join so many gradients of them (data_parallel.c). */
int acc_rule_twins(struct acc_replicas *t, const struct acc_rank_group *g, uint64_t joined,
	const struct acc_seen_call **room, struct acc_err *e);
/* All gradients of weights are scaled by one number (gradient_factor.c). */
int acc_rule_factor(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
struct acc_scale { /* what the gradients of weights end as */
	uint64_t
		n; /* of so many, which ranks of the group join; 0: not all are known, or not by one number */
	double factor; /* times the sum over them */
	size_t line;   /* of what scaled the first of them last */
};
int acc_seen_scale(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_scale *out, struct acc_err *e);
/* The number by which all gradients of a rank are scaled is one for all ranks. 0 or < 0. */
int acc_rule_numbers(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What a reduction counts (means_and_norms.c). */
int acc_rule_means(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, struct acc_err *e);
int acc_rule_norms(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, const struct acc_seen_call **peer,
	struct acc_err *e);
/* Gradients that stages receive are those of what they sent. */
int acc_rule_stages(struct acc_replicas *t, struct acc_err *e);

/* Of one rank and step? Its calls lie one behind the other, if they are not scattered. */
static inline bool
acc_seen_beside(const struct acc_seen_call *a, const struct acc_seen_call *b)
{
	return a->k->rank == b->k->rank && a->k->step == b->k->step;
}

/* Is this call one among the group? */
bool acc_seen_among(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_rank_group *g);
/* A line of code and what its call is given: one line may call an operator for several things. */
uint64_t acc_seen_form(const struct acc_replicas *t, const struct acc_seen_call *c, uint64_t line);
/* The line of a call; of a backward call, whose stack is that of all, its forward call's. 0: unknown. */
uint64_t acc_seen_line(const struct acc_replicas *t, const struct acc_seen_call *c);
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
/* The gradient of a weight, on a rank: what its backward call puts out; of a part that is
 * gathered, what a reduction made of it. NULL: not known. */
const struct acc_replica_seen *acc_seen_gradient(const struct acc_replicas *t, int64_t step,
	int64_t rank, const struct acc_replica_seen *w);
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
/* What a tensor is found by in `made`, `given` and `reduced`. */
uint64_t acc_seen_id(const struct acc_replicas *t, const struct acc_replica_seen *s);

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
/* On how many ranks of the group, which the call that is given it is among, is it the same as here? Their sum is as often
 * it. 1; 0: not known; < 0. */
int acc_seen_copies(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *in, uint32_t *n, struct acc_err *e);
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

/* How a weight lies to what it may have been a step before. */
enum { ACC_KIN_ELEMENTS = 64 }; /* fewer show by chance what they are like */
struct acc_kinship {
	double like;  /* the correlation of their elements, */
	double apart; /* or how far their statistics are apart, in parts of its deviation */
	bool elements, statistics; /* known */
};
int acc_replicas_kin(struct acc_replicas *t, const struct acc_replica_seen *now,
	const struct acc_replica_seen *was, struct acc_kinship *out, struct acc_err *e);
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
/* Two ranks' weight now, which was alike in an earlier step: blamed where it parts. 0 or < 0. */
int acc_replicas_drift(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b, struct acc_err *e);
/* Two ranks' weight, which was alike in `step` and is not any more: what made that of the second as it is is blamed, and the
 * number of an optimizer that is another (weight_update.c). 0 or < 0. */
int acc_replicas_say_update(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	const struct acc_replica_seen *update, double ratio, double limit, struct acc_err *e);
/* Of a weight in the last step before it parts: says why, where what follows its gradient shows it (weight_update.c).
 * 0 or < 0. */
int acc_replicas_cause(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, bool *said, struct acc_err *e);
/* Of a part of a weight that is gathered: does it stay as it was on some ranks, while those of others move? */
int acc_rule_stale(struct acc_replicas *t, const struct acc_rank_group *g, int64_t last,
	const struct acc_seen_call *const *peer, struct acc_err *e);
/* Of all ranks that hold a weight, are the gradients in the one that an optimizer is given as often as each other's
 * (gradient_shares.c)? 0 or < 0. */
int acc_rule_mix(struct acc_replicas *t, struct acc_err *e);
/* A weight's gradient is another on this other rank: the part of a gradient that makes it so, of what both have alike in the
 * forward pass (partial_gradient.c); NULL: not known. 0 or < 0. */
int acc_replicas_partial(struct acc_replicas *t, const struct acc_replica_seen *w, int64_t rank,
	const struct acc_replica_seen **found, struct acc_err *e);
/* Each weight with the first one that is like it, if that one's rank has another in its place. */
int acc_replicas_tied(struct acc_replicas *t, struct acc_err *e);

/* Its gradient's op call; NULL. */
const struct acc_seen_call *acc_seen_backward(const struct acc_replicas *t,
	const struct acc_seen_call *c);
/* Does it only move elements, outside of what autograd sees? */
bool acc_seen_moves(const struct acc_replicas *t, const struct acc_seen_call *c);
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
/* Do the ranks hold parts of a sequence: does attention of the first take keys from all of them, which weights that all
 * have made of what each has (sequence_positions.c)? 0 or < 0. */
int acc_seen_sequence(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, bool *is, struct acc_err *e);
/* Then positions are other ones on each. 0 or < 0. */
int acc_rule_sequence(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Labels of rows of each rank, of columns of all (contrastive_labels.c). 0 or < 0. */
int acc_rule_contrast(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What a step leaves for the next one: gathered before it is done, or lost (stale_shard.c). 0 or < 0. */
int acc_rule_kept(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Does a rank go on with a sum that another one has alone (reduce_to_one.c)? 0 or < 0. */
int acc_rule_to_one(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* The first op call behind this one, in its step, that is given a tensor and does not communicate; NULL: none. */
const struct acc_seen_call *acc_seen_user(const struct acc_replicas *t,
	const struct acc_replica_seen *got, const struct acc_seen_call *after);
/* Is what a reduction made a mean over the ranks, by itself or as it is divided by their number? 1, 0, < 0. */
int acc_seen_averages(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *sum, struct acc_err *e);
/* Is anything exchanged in the backward pass, if it is in the forward pass (missing_backward.c)? 0 or < 0. */
int acc_rule_back(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What ranks give each other wants a gradient where it is made, is cut off from it, and given to nothing else; and what is made
 * of it goes on to the loss: so it gets none, which is doubted (missing_backward.c). 0 or < 0. */
int acc_rule_cut_off(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* How many labels there are that are none of those that a loss ignores (loss_divisor.c). 1; 0: not known; < 0. */
int acc_seen_labels(struct acc_replicas *t, const struct acc_seen_call *loss, double *n,
	struct acc_err *e);
/* The number, among its arguments, that a product multiplies by. 1; 0; < 0. */
int acc_seen_times(struct acc_replicas *t, const struct acc_seen_call *c, double *v,
	struct acc_err *e);
/* How the ranks of a group work together from the backward pass of the first step on (optimizer_state.c). */
enum acc_work {
	ACC_WORK_ALONE,
	ACC_WORK_SHARED,
	ACC_WORK_PARTS
}; /* they join something; each is dealt a part */
enum acc_work acc_seen_work(const struct acc_replicas *t, const struct acc_rank_group *g);
/* The weights, and then the gradients, that an optimizer of torch is given: its first two lists (optimizer_gradients.c). 1; 0: they
 * are no such; < 0. */
struct acc_optimizer_lists {
	uint32_t first[2], n[2];
};
int acc_seen_lists(struct acc_replicas *t, const struct acc_seen_call *c,
	struct acc_optimizer_lists *out, struct acc_err *e);
/* Some gradients are left out where others are reduced, and no optimizer shows it (rules/unreduced_gradient.c). 0 or < 0. */
int acc_rule_unreduced(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Do all ranks take the step of an optimizer that is given nothing, though there are gradients (idle_optimizer.c)? 0 or < 0. */
int acc_rule_idle(struct acc_replicas *t, struct acc_err *e);
/* Are the gradients that optimizers are given the same where the weights are (optimizer_gradients.c)? 0 or < 0. */
int acc_rule_gradients(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Does one rank take a step of its optimizer between two communications, and another one not (optimizer_state.c)? 0 or
 * < 0. */
int acc_rule_skipped(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* What a tensor was before numbers scaled it. */
const struct acc_replica_seen *acc_seen_unscaled(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* What stands in the second step where a weight does in the first: there two that began as the same numbers have moved apart.
 * Itself, where there is none (trace.c). */
const struct acc_replica_seen *acc_seen_moved(const struct acc_replicas *t,
	const struct acc_replica_seen *s);
/* Are several op calls given it? Then its gradient is the sum of several. */
bool acc_seen_shared(const struct acc_replicas *t, const struct acc_replica_seen *s);
/* Weights of a rank that several op calls of one line are given, whose gradients reductions of the group are given, all of
 * them (micro_batches.c). *out is the caller's, to be freed. 0 or < 0. */
struct acc_accumulated {
	const struct acc_replica_seen *w; /* where it is given first */
	struct acc_replica_seen
		sum; /* what a reduction, or what scales it before, is given; of several the first */
	uint32_t last; /* the op call that makes the last of its gradients */
};
int acc_seen_accumulated(struct acc_replicas *t, const struct acc_rank_group *g, int64_t rank,
	struct acc_accumulated **out, size_t *n, struct acc_err *e);
/* Do all weights stay as they were, though an optimizer has changed what it updates (stale_weight.c)? 0 or < 0. */
int acc_rule_stay(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Gradients that are added when the others are joined already (accumulated_gradient.c). 0 or < 0. */
int acc_rule_late(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Is what ranks join clipped by norms of their own before (means_and_norms.c)? 0 or < 0. */
int acc_rule_clipped(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Means by counts that are each rank's own (local_mean.c): said as a doubt. 0 or < 0. */
int acc_rule_doubt(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* By what losses are divided (loss_divisor.c). 0 or < 0. */
int acc_rule_total(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
int acc_rule_divided(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
int acc_rule_begins(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Do the losses have all labels that a reduction counts (counted_labels.c)? 0 or < 0. */
int acc_rule_counted(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Do ranks that hold parts of weights, or of a sequence, divide the terms of their loss by one number, once? 0 or
 * < 0. */
int acc_rule_own_counts(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* Do several ranks give what they have alike to communication of the backward pass, which sums it up, as that of
 * torch.distributed.nn does? Then gradients are as often what they were, and the loss may make up for it. */
int acc_seen_multiplied(struct acc_replicas *t, int64_t rank, bool *is, struct acc_err *e);
/* Are gradients scaled as the ranks' losses ask for? 0 or < 0. */
int acc_fleet_divisor(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);

#endif
