/* decide.h - layouts: decide.c, alone.c, experts.c, groups.c, step.c, members.c, vote.c */
#ifndef FOLD_DECIDE_H
#define FOLD_DECIDE_H

#include "fold/state.h"

/* --- decide.c --- */
void acc_fold_decide(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, struct folded *d);
/* Of one rank, is it no micro-batch's, as what cuts the batch, and the optimizer? Then it is what it is. */
bool acc_fold_is_one(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v);
/* Has each rank all of it? */
bool acc_fold_replicated(const struct acc_fold_layout *l);

/* --- alone.c --- */
/* Which op calls are each rank's own, as those of experts: each is one of the reference. 1: some. */
int acc_fold_alone(struct acc_fold *f, struct acc_err *e);
/* Does each rank call this line for itself; or on tensors of these shapes, as a line that lays out all
 * weights does those of experts? */
bool acc_fold_is_alone(const struct acc_fold *f, const struct fold_call *k);
/* Is it a weight that can be told from others? first: nothing before it is a tensor. */
bool acc_fold_is_weight(const struct fold_call *k, const struct fold_item *it, bool first);
/* A forward call of a known line, that is no communication. */
bool acc_fold_is_own_work(const struct fold_call *k);
/* How many ranks call this line of code, and how many of these for themselves. */
int acc_fold_count_line(const struct acc_fold *f, const struct fold_call *k, uint32_t all,
	uint32_t own, struct acc_ids *seen, struct acc_ids *like, struct acc_err *e);
/* A line of code is so if most of its calls are. */
int acc_fold_settle_lines(struct acc_fold *f, const struct acc_ids *seen,
	const struct acc_ids *like, struct acc_err *e);
/* What lies between calls that are each rank's own is so, too, as what an expert does without weights:
 * it is made only of what they give, and they take what is made of it. */
int acc_fold_alone_between(struct acc_fold *f, struct acc_err *e);
/* So is what is made of gradients that they give alone, call by call: a line divides those of all weights. */
int acc_fold_alone_behind(struct acc_fold *f, struct acc_err *e);

/* The same experts may stand on every so many of the ranks of a mesh of one axis, which becomes one of two then:
 * which number each rank's is, of a call that is its own, says so. */
struct fold_pattern {
	uint32_t span, votes, all;
};
void acc_fold_add_pattern(struct fold_pattern *p, const uint32_t *id, uint32_t n);
void acc_fold_refine(struct acc_fold *f, const struct fold_pattern *p);

/* --- experts.c --- */
/* The same where the reference becomes one rank, too, on both sides, by their weights. 1: some. */
int acc_fold_experts(struct acc_fold *f, struct acc_err *e);

/* --- groups.c --- */
/* The steps, none of which are known yet: each group of ranks, and the reference's segment that they are. */
int acc_fold_list(struct acc_fold *f, struct acc_err *e);
void acc_fold_steps_free(struct acc_fold *f);
/* Of the reference, in its first step. */
uint32_t acc_fold_reference_ranks(const struct acc_fold *f);

/* The calls of an operator are numbered on over stages; gradients have the number of what they belong to. */
struct fold_numbers {
	struct acc_ids count, forward; /* calls of an operator so far; numbers of forward calls */
};
int acc_fold_number(const struct acc_fold *f, struct fold_numbers *n, const struct fold_call *k,
	struct fold_virtual *v, struct acc_err *e);
void acc_fold_numbers_release(struct fold_numbers *n);

/* --- step.c --- */
/* The virtual rank of each step under this mesh, and which calls are which of the reference. */
int acc_fold_steps(struct acc_fold *f, const struct fold_mesh *m, struct acc_err *e);
/* The virtual calls of a step on this mesh, none of them matched. 0 or < 0. */
int acc_fold_lay_out(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t,
	struct acc_err *e);

/* --- members.c --- */
/* What the optimizer of a stage is given, and gives, has the places of the same weights in what the reference's is. */
int acc_fold_members(struct acc_fold *f, struct acc_err *e);

/* --- vote.c --- */
/* Is it one of a list, which is joined, or is it one of what is taken apart, forward or backward? On another
 * rank it may stand for another place of the reference's list, as the tokens of another expert: shapes alone tell nothing. */
bool acc_fold_is_member(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it);
int acc_fold_vote(struct acc_fold *f, struct acc_err *e);
/* Is it a member of what an optimizer is given, or gives, of other weights than its counterpart is, as on a stage? What
 * stands at its place there is another weight's. */
bool acc_fold_of_others(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, const struct fold_item *own);
/* The reference's tensor that item i of v is a part of; NULL. */
const struct fold_item *acc_fold_counterpart(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i);
/* Are these said to be parts, which ranks hand to a sum over all of them: gradients? */
bool acc_fold_is_sum_of(const struct fold_call *k, const struct acc_fold_layout *l);
/* The layout of item i, whose parts are in f->part; want: the reference's or NULL. n 0: unknown. */
struct acc_fold_layout acc_fold_choose(struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it, const struct acc_fold_stat *want, double tol);
/* Of what one rank alone has: the factor that makes it the reference's, of gradients 1/n, too. 0: none. */
double acc_fold_alone_scale(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *own, const struct acc_fold_stat *part,
	const struct acc_fold_stat *want, double tol);
/* Is what is in f->part the reference's but for noise, or behind a fault, or that but for the factor that a group
 * of ranks makes? 1 where neither is near; 0: it may be summands, which are of one shape, too. */
double acc_fold_nearest_factor(struct acc_fold *f, const struct acc_fold_layout *l,
	const struct acc_fold_stat *want, double tol);
/* A tensor of this call is laid out so, which counts for its line of code. */
int acc_fold_say(struct acc_fold *f, const struct fold_call *k, const struct fold_item *own,
	const struct acc_fold_layout *l, struct acc_err *e);
/* Of another one nothing is known. */
int acc_fold_abstain(struct acc_fold *f, const struct fold_call *k, const struct fold_item *own,
	struct acc_err *e);
/* Of the shapes of a call's tensors. */
uint64_t acc_fold_shapes(const struct acc_fold *f, const struct fold_call *k);
/* Its class, or FOLD_NONE. */
uint32_t acc_fold_class(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it);
/* That of calls on tensors of the same shapes where the line alone is the same, whoever calls. */
uint32_t acc_fold_wide(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it);
/* The layout of most; n 0: they are at odds. */
struct acc_fold_layout acc_fold_winner(const struct fold_class *c);

#endif
