/* traced.h - who made what: the way of values through the op calls, and what recomputation says of them */
#ifndef JUDGE_TRACED_H
#define JUDGE_TRACED_H

#include "judge/scan.h"

/* --- trace.c --- */
/* The latest earlier item of the pass of k that holds these values on this side, or what a step before has written;
 * ACC_NOCALL. */
uint32_t acc_maker(const struct scan *s, int side, const struct acc_call *k, uint64_t id);
/* From here on, this item holds its values; one that is known already stays, unless replaced.
 * Of the device's nobody asks while learning. */
int acc_remember(struct scan *s, const struct acc_call *k, uint32_t item, bool replace);
/* This call's items will be asked for: fetch what is known of them into the cache. */
void acc_remember_soon(const struct scan *s, const struct acc_call *k);
/* The call to blame for an input whose maker is fine: one that overwrote it in place, one that
 * only the device has; else the call itself. */
uint32_t acc_overwriter(const struct scan *s, uint32_t call, const struct acc_item *it);
/* Who made what this call was given, where that was not compared: those that accaudit did not find
 * right. */
void acc_hidden(const struct scan *s, uint32_t call, struct hidden *out);
/* The same values on the device, and on the bench, in both records? */
bool acc_same_pair(const struct acc_item *x, const struct acc_item *y);
/* The input of this call that the bench hands on unchanged as this output, or NULL. */
const struct acc_item *acc_passed_through(const struct acc_case *c, uint32_t call,
	const struct acc_item *out);
/* Is this output's error no news, because something else made it? */
bool acc_handed_on(const struct scan *s, uint32_t call, const struct acc_item *it);

/* --- sum.c --- */
/* A gradient that is the sum of others, as the bench's copies of a few elements prove. */
struct sum {
	uint32_t part[LIMIT_SUM_PARTS]; /* items */
	unsigned n;
	double cause;     /* worst error of a part */
	double off;       /* how far the device's copy is from the sum of the device's parts */
	double bench_off; /* the same on the bench: rounding */
};
/* Inputs of forward calls, and backward calls, as they are walked. 0 or ACC_ENOMEM. */
int acc_sum_learn(struct scan *s, uint32_t call);
/* Is this input of a backward call a sum of gradients that the calls give to which its forward
 * call's output went? 1, 0, or < 0. */
int acc_sum_find(struct scan *s, uint32_t call, uint32_t item, struct sum *out, struct acc_err *e);
/* Is this input of a call that is not backward the gradient of a weight that several calls take,
 * the sum of what those give? 1, 0, or < 0. */
int acc_sum_of_weight(struct scan *s, uint32_t call, uint32_t item, struct sum *out,
	struct acc_err *e);
/* The largest error of a gradient of this size that a backward call of the same step gave, or 0. */
double acc_gradients_error(const struct scan *s, uint32_t item);
/* The largest error, in its own unit, that a sum of gradients of this size may have that backward
 * calls of the same step gave, or 0; infinite where some of those were not compared. */
double acc_gradients_sum(const struct scan *s, uint32_t item, double unit);
void acc_sum_release(struct scan *s);

/* --- healed.c --- */
/* Mark tensors that differ where what follows agrees again, as computed otherwise (apart); of those known by
 * statistics alone none. 0 or < 0. */
int acc_heal(struct acc_case *c, struct acc_err *e);
/* Then: what is marked is no pair any more (talks: of communications alone), or none is. */
void acc_heal_settle(struct acc_case *c, bool apart, bool talks);
/* What rounding leaves of what agrees before a call of the forward pass: no jump is counted. 0 or < 0. */
int acc_noise_before(struct acc_case *c, uint32_t call, double *noise, struct acc_err *e);
/* How far what a call was given is off, in roundings: INFINITY: that is not known of all, or there is nothing. */
double acc_given_off(const struct acc_case *c, uint32_t call);
/* Was a call given the same tensors on both sides, one at least? */
bool acc_given_alike(const struct acc_case *c, uint32_t call);
/* Is what goes in the same, in both programs, and what comes out not, however little of that is left behind it? What is
 * no longer the same to the last digits is as far from the limit of what comes out as what is; but a single number may be
 * another for a factor that stands elsewhere. */
bool acc_differs_by_itself(const struct scan *s, uint32_t call);

/* --- made_up.c --- */
/* Is what a call is told (it NULL), or a single number that goes back through it, made up for by what follows? */
bool acc_is_made_up_for(const struct acc_case *c, uint32_t call, const struct acc_item *it,
	double unit);

/* --- guess.c, module.c --- */
/* Is it no guess that a suspect's call is a pair? */
bool acc_is_sure(const struct scan *s, const struct suspect *x);
/* May what a suspect differs in be two things that are no pair? */
bool acc_is_guess(const struct scan *s, const struct suspect *x);
/* Is a suspect a call of a module, and does what that gives agree, or what the module around it does? */
bool acc_module_agrees(const struct acc_case *c, const struct suspect *x);

/* --- audit.c: what accaudit found of the sides --- */
/* Is it right for what it was given, as the bench's is, which is the same, and yet another? */
bool acc_is_other_answer(const struct scan *s, const struct acc_item *it, const struct suspect *x);
/* Do all inputs of the operator, which the other side has in parts, agree, but perhaps not in their places? */
bool acc_given_otherwise(const struct acc_item *it, const struct suspect *x);
/* What is usual of those that were recomputed. 0 or ACC_ENOMEM. */
int acc_audit_learn(struct scan *s);
/* Let accaudit decide, if it judged: margin, value, limit. */
void acc_audit_suspect(const struct scan *s, const struct acc_item *it, struct suspect *x);
/* "of the device is not what its own inputs give: off by ..." of this side; brief: behind how far
 * the sides are apart. NULL: no memory, or reading fails. */
const char *acc_audit_text(struct acc_case *c, const struct acc_item *it, int side, bool brief,
	struct acc_err *e);
/* Why the audit does not decide, "" where it does, or was not asked for; NULL: no memory, or
 * reading fails. */
const char *acc_audit_open_question(struct scan *s, const struct suspect *x, struct acc_err *e);
/* fix.c: findings `next`, rule fix: what the vendors' accounts do about the culprit (or ACC_NOCALL), and about a
 * constant that was warned of since finding `first`. */
int acc_say_fixes(struct scan *s, uint32_t chosen, uint32_t first, struct acc_err *e);
/* The finding that the bench itself is wrong, if it is. */
int acc_say_bench(struct scan *s, struct acc_err *e);

/* --- recompute.c --- */
/* Recompute some suspects: the one that would be named, and others after it. 1: their items know
 * more now; 0: there is nothing more to do; < 0. */
int acc_recompute(struct scan *s, uint32_t chosen, struct acc_err *e);
/* The same of others that differ and come before a call (ACC_NOCALL: of all), every one or only those for
 * which their limits do not decide, the nearest to them first, up to what may be read for it. On the bench
 * only what fails on the device. */
int acc_recompute_rest(struct scan *s, uint32_t before, bool every, struct acc_err *e);
/* Is its operator known? */
bool acc_recompute_knows(const struct acc_recompute *t, uint32_t call);
void acc_recompute_close(struct acc_recompute *t);

/* --- substitute.c --- */
/* What the bench's call of another framework takes the device's output for: the cause that the audit finds for it,
 * or "". */
int acc_substitute(struct scan *s, uint32_t call, const char **cause, struct acc_err *e);
/* The same of this tensor of the device alone, in place of an output of the bench's. */
int acc_substitute_with(struct scan *s, uint32_t call, uint32_t bench, uint32_t device,
	const char **cause, struct acc_err *e);
/* Is it an optimizer's step of the bench, over lists of parameters? */
bool acc_call_steps(const struct acc_call *k);
bool acc_call_steps_on(const struct acc_call *k, int side);
/* Where nothing else is named: the first call that is taken for computed otherwise, though one changed argument
 * explains it. 0 or < 0. */
int acc_substitute_apart(struct scan *s, uint32_t *chosen, struct acc_err *e);
/* reduced.c: finding of a loss that agrees, and is scaled behind it to another reduction's. 1: made, 0 or < 0. */
int acc_say_reduced(struct scan *s, uint32_t *call, struct acc_err *e);
/* Loss scaling multiplies by a power of two, 128 at least, and divides behind the backward pass: is this one, to `off` of it? */
bool acc_is_loss_scale(double times, double off);
/* What torch calls an argument: by its number in the signature, by another of its names, or as it is. */
struct acc_str acc_default_name(struct acc_str op, struct acc_str pos);
/* Is it what torch's function has at that place, or by that name, where it is not given? */
bool acc_is_usual(struct acc_str op, struct acc_str pos, const struct acc_val *v);
/* Is an argument that both sides give one axis, counted from either end? 1, 0, or < 0. */
int acc_same_axis(struct scan *s, uint32_t call, const struct acc_item *arg);
/* The number that the bench gives of the call at a place, for what the device gives by that name: 1, 0, or < 0. */
int acc_bench_argument(struct scan *s, uint32_t call, const struct acc_rec *device, double *value);
/* text, and, where this value of an argument of an operator is the default of the device's framework, that. The
 * texts must stay while records are read. NULL: no memory, or it could not be read. */
const char *acc_say_default(struct scan *s, uint32_t call, struct acc_str op, struct acc_str pos,
	const struct acc_val *value, const char *text, struct acc_err *e);
/* The product that one call of the bench has, too, where what stands out is only added to it, and rightly;
 * ACC_NOCALL. */
uint32_t acc_inner_product(const struct scan *s, const struct suspect *x);

/* --- unread.c --- */
/* An input that differs and that nobody made: is nothing made of what differs, as its call copies other elements, or
 * writes over these? Memory that nobody wrote is such. */
bool acc_left_out(struct scan *s, uint32_t call, uint32_t i, double unit);
/* Is this output of a product's backward call the gradient that it was given, or of another shape, on one side alone? There the recorder
 * has hung on to a view behind the product, and what it made is not recorded. */
bool acc_is_of_view(const struct scan *s, uint32_t call, uint32_t i);
/* Or may the rest of it be such memory, of which the call has written a part? */
bool acc_written_partly(const struct scan *s, uint32_t call, uint32_t i);

#endif
/* --- shards.c --- */
/* Where nothing else is named: 1 with a finding, and its call, if what the ranks of one side have parts of is together not
 * what those of the other have whole; 0; < 0. */
int acc_say_shards(struct scan *s, uint32_t *call, struct acc_err *e);

/* The same, if an optimizer is given tensors on one side alone. */
int acc_say_unfed(struct scan *s, uint32_t *call, struct acc_err *e);

struct acc_behaviour;
/* Is a side of this pair of that tool, in the version that was seen, operator and dtype, too? 1, 0 or < 0. */
int acc_is_of(struct acc_case *c, const struct acc_item *it, const struct acc_behaviour *b,
	struct acc_err *e);
/* coarse.c: outputs that differ by no more than the formula of a side's tool rounds; and to say it. 0 or < 0. */
int acc_know_laws(struct acc_case *c, struct acc_err *e);
int acc_say_laws(struct acc_case *c, struct acc_err *e);
