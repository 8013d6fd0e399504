/* asked.h - the rules as functions, and what they ask of each other; each 0 or < 0 where nothing else is said */
#ifndef ACC_RANKS_ASKED_H
#define ACC_RANKS_ASKED_H

#include "ranks/near.h"
#include "ranks/asked_gradients.h"
#include "ranks/group_rules.h"
#include "ranks/say.h"
#include "ranks/trace.h"

/* --- rules/data_parallel.c --- */
/* Is this input the same in all steps, of which there are several? */
bool acc_seen_stays(const struct acc_replicas *t, const struct acc_replica_seen *s);
/* Does all that the first rank of a group makes of its data stay its own until it goes backward, and do these change from
 * step to step? */
bool acc_seen_own_data(const struct acc_replicas *t, const struct acc_rank_group *g);
/* Ranks whose weights are the same, and which join so many gradients of them. */
int acc_rule_twins(struct acc_replicas *t, const struct acc_rank_group *g, uint64_t joined,
	const struct acc_seen_call **room, struct acc_err *e);
/* --- rules/double_reduction.c --- */
/* Rules of what a call is given and makes, on all ranks of a group. 0 or < 0. */
int acc_rule_call(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
int acc_rule_reduction(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
/* The loss of ranks that share data and parts of weights is the same. */
int acc_rule_loss(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* --- twins.c --- */
/* Are the weights the same, and all their gradients joined, as their shapes show? Sets g->twins. 0 or < 0. */
int acc_seen_twins(struct acc_replicas *t, struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e);
/* --- rules/gradient_shares.c --- */
/* Of all ranks that hold a weight, are the gradients in the one that an optimizer is given as often as each other's
 *? 0 or < 0. */
int acc_rule_mix(struct acc_replicas *t, struct acc_err *e);
/* --- rules/idle_optimizer.c --- */
/* Do all ranks take the step of an optimizer that is given nothing, though there are gradients? 0 or < 0. */
int acc_rule_idle(struct acc_replicas *t, struct acc_err *e);
/* --- rules/loss_divisor.c --- */
/* How many labels there are that are none of those that a loss ignores. 1; 0: not known; < 0. */
int acc_seen_labels(struct acc_replicas *t, const struct acc_seen_call *loss, double *n,
	struct acc_err *e);
/* The number, among its arguments, that a product multiplies by. 1; 0; < 0. */
int acc_seen_times(struct acc_replicas *t, const struct acc_seen_call *c, double *v,
	struct acc_err *e);
/* --- rules/loss_labels.c --- */
/* The labels of what is the same on all ranks. 0 or < 0. */
int acc_rule_labels(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
/* --- rules/means_and_norms.c --- */
/* What a reduction counts. */
int acc_rule_means(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, struct acc_err *e);
int acc_rule_norms(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, const struct acc_seen_call **peer,
	struct acc_err *e);
/* Is what a reduction made a mean over the ranks, by itself or as it is divided by their number? 1, 0, < 0. */
int acc_seen_averages(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *sum, struct acc_err *e);
enum { ACC_MOST_NORMS = 256 };
/* Norms, or sums of squares, that a number is made of, by sums and products of numbers: op calls, added to norm; nodes: looked
 * at so far. false: it is made of something else. */
bool acc_seen_norms(const struct acc_replicas *t, const struct acc_replica_seen *s, uint32_t *norm,
	uint32_t *n, uint32_t *nodes);
/* --- rules/odd_weight.c --- */
/* Weights that are not the same on all ranks, of a group where no gradients are seen to be joined: so many are
 * the same, so many not. */
int acc_rule_odd(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *const *odd, uint32_t nodd, uint64_t equal, uint64_t differ,
	const struct acc_seen_call **room, struct acc_err *e);
/* Of a weight whose gradients nothing joins: are the others of its line parts? Then it is one, and not the right one. */
int acc_replicas_same_part(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, const struct acc_seen_call **room, bool *said,
	struct acc_err *e);
/* --- rules/optimizer_gradients.c --- */
/* The weights, and then the gradients, that an optimizer of torch is given: its first two lists. 1; 0: they
 * are no such; < 0. */
struct acc_optimizer_lists {
	uint32_t first[2], n[2];
};
int acc_seen_lists(struct acc_replicas *t, const struct acc_seen_call *c,
	struct acc_optimizer_lists *out, struct acc_err *e);
/* --- rules/optimizer_state.c --- */
/* Why a weight, which two ranks had alike in `step` and have not any more, parts, if its gradient does not tell: a state or
 * a number of its update. *said: it was found, and is said. 0 or < 0. */
int acc_replicas_update_apart(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *w, const struct acc_replica_seen *const now[2], bool *said,
	struct acc_err *e);
/* How the ranks of a group work together from the backward pass of the first step on. */
enum acc_work {
	ACC_WORK_ALONE,
	ACC_WORK_SHARED,
	ACC_WORK_PARTS
}; /* they join something; each is dealt a part */
enum acc_work acc_seen_work(const struct acc_replicas *t, const struct acc_rank_group *g);
/* --- rules/parallel_inputs.c --- */
/* Parts of weights, sequences, gradients. */
int acc_rule_part(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e);
/* --- rules/random_draw.c --- */
/* What an op call makes other on each rank of what is the same on all: by random numbers that it draws
 * (*drawn: there are such; *said: where they must not be), or is given (*said as before), or by a number. 0 or < 0. */
int acc_rule_draws(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, bool *drawn, bool *said, struct acc_err *e);
int acc_rule_noise(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, bool *said, struct acc_err *e);
int acc_rule_after(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e);
/* --- rules/routing.c --- */
/* What chooses the largest, as routers do. 0 or < 0. */
int acc_rule_choice(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e);
/* --- rules/send_receive.c --- */
/* What is sent and received. */
int acc_rule_pairs(struct acc_replicas *t, struct acc_err *e);
/* Gradients that stages receive are those of what they sent. */
int acc_rule_stages(struct acc_replicas *t, struct acc_err *e);
/* The first op call behind this one, in its step, that is given a tensor and does not communicate; NULL: none. */
const struct acc_seen_call *acc_seen_user(const struct acc_replicas *t,
	const struct acc_replica_seen *got, const struct acc_seen_call *after);
/* --- rules/sequence_positions.c --- */
/* Do the ranks hold parts of a sequence: does attention of the first take keys from all of them, which weights that all
 * have made of what each has? 0 or < 0. */
int acc_seen_sequence(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, bool *is, struct acc_err *e);
/* --- averages.c --- */
/* Weights that are averaged over the ranks: do they part from another rank's until a later step's average, or for good, as
 * they are averaged over others? 0 or < 0. */
int acc_replicas_apart_by_design(struct acc_replicas *t, const struct acc_replica_seen *w,
	const struct acc_replica_seen *later, int64_t rank, bool *is, struct acc_err *e);
/* --- rules/weight_drift.c --- */
/* Two ranks' weight now, which was alike in an earlier step: blamed where it parts. 0 or < 0. */
int acc_replicas_drift(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b, struct acc_err *e);
/* --- rules/weight_update.c --- */
/* Two ranks' weight, which was alike in `step` and is not any more: what made that of the second as it is is blamed, and the
 * number of an optimizer that is another. 0 or < 0. */
int acc_replicas_say_update(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	const struct acc_replica_seen *update, double ratio, double limit, struct acc_err *e);
/* Of a weight in the last step before it parts: says why, where what follows its gradient shows it.
 * 0 or < 0. */
int acc_replicas_cause(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, bool *said, struct acc_err *e);
/* --- back.c --- */
/* Does it join what came from other ranks? With the rank's own part, which stays as it is. */
bool acc_seen_joins_parts(const struct acc_replicas *t, const struct acc_seen_call *c);
/* Is a call given what ranks exchanged or gathered, by few op calls from there? */
bool acc_seen_exchanged(const struct acc_replicas *t, const struct acc_seen_call *c);
/* Is one given activations that the ranks of a group summed up, by few op calls from there? */
bool acc_seen_summed(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_rank_group *g);
/* --- earlier.c --- */
/* The gradient of a weight, on a rank: what its backward call puts out; of a part that is
 * gathered, what a reduction made of it. NULL: not known. */
const struct acc_replica_seen *acc_seen_gradient(const struct acc_replicas *t, int64_t step,
	int64_t rank, const struct acc_replica_seen *w);
/* The same tensor of the same call in an earlier step, in which there may have been others of its operator before it. */
const struct acc_replica_seen *acc_seen_before(struct acc_replicas *t,
	const struct acc_replica_seen *w, int64_t step, int64_t rank);
/* --- rules/tied_weight.c --- */
/* Each weight with the first one that is like it, if that one's rank has another in its place. */
int acc_replicas_tied(struct acc_replicas *t, struct acc_err *e);
/* --- rules/wrong_group.c --- */
/* What a reduction of the group is given, of as many weights as it joins. 0 or < 0. */
int acc_seen_unlike(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_joining *out, struct acc_err *e);
/* One weight, or all of them, are not what they should be; or some are joined that are others. varied: weights that are the
 * same, and not one number everywhere. 0 or < 0. */
int acc_rule_unlike(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_joining *j, uint64_t varied, const struct acc_seen_call **room,
	struct acc_err *e);

#endif
