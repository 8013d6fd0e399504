/* tell.h - what is said of the suspects, and of what is no difference */
#ifndef JUDGE_TELL_H
#define JUDGE_TELL_H

#include "judge/scan.h"

/* --- sentence.c --- */
/* How bad: "is off by up to ...", in mem. NULL: no memory. */
const char *acc_how_bad(struct acc_arena *m, const struct acc_rec *r, const struct acc_item *it);
/* What is wrong with a suspect, in mem. NULL: no memory, or reading fails. */
const char *acc_sentence(struct scan *s, const struct suspect *x, struct acc_err *e);

/* --- culprit.c --- */
/* How many verdicts of this kind, and this far beyond the limit, are right: see limits.h. sums: only
 * checksums tell, or there is no op call. */
double acc_confidence(const struct scan *s, const struct suspect *x, bool sums);
/* The finding that names a suspect; `chosen` is its index. */
int acc_say_culprit(struct scan *s, uint32_t chosen, struct acc_err *e);
/* A warning about a suspect, of this call, by this rule: its text is how far it is off, for the caller to go on
 * with. */
int acc_warn_of(struct scan *s, const struct suspect *x, uint32_t call, const char *rule,
	struct acc_finding **out, struct acc_err *e);
/* The finding about one that is beyond its limit by too little to be named. */
int acc_say_unsure(struct scan *s, uint32_t first, struct acc_err *e);
/* The warning about one whose witness the user doubts. */
int acc_say_doubted(struct scan *s, uint32_t first, struct acc_err *e);
/* Verdicts for the records of all suspects; the culprit's are errors. chosen is ACC_NOCALL where
 * none is named. */
int acc_mark_suspects(struct scan *s, uint32_t chosen, struct acc_err *e);

/* --- clean.c --- */
/* The finding about choices between near-equal values, where one comes before the culprit or there is
 * none. */
int acc_say_ties(struct scan *s, const struct suspect *culprit, struct acc_err *e);
/* How far everything agrees: up to the culprit, or all of it; and settings. */
int acc_say_clean(struct scan *s, const struct suspect *culprit, struct acc_err *e);
/* Do most weights differ, and are most of these the bench's but for the rounding of a format of few levels? */
bool acc_weights_are_rounded(const struct scan *s);

/* --- programs.c --- */
/* Of two programs: how much was compared, and, where there is no culprit, how the forward pass ends. */
int acc_say_programs(struct scan *s, const struct suspect *culprit, struct acc_err *e);
/* How far two programs may be apart in what the last weight gives: in 16 bits each call before may round, by either
 * sign. */
double acc_end_limit(double unit, uint32_t calls);

/* --- constant.c --- */
/* The warning that the first thing that differs at all was made by nobody, and so is not noise; of
 * the item `said` (ACC_NOCALL: none) a finding tells already. */
int acc_say_constant(struct scan *s, uint32_t said, struct acc_err *e);

/* --- quiet.c --- */
/* Where nothing else is named: the first call that is right by its own value of an argument that has a default, and wrong
 * by the bench's, becomes a suspect, *chosen. 0 or < 0. */
int acc_shown_argument(struct scan *s, uint32_t *chosen);
/* The warning about arguments that differ, where nothing is named and no output is off by more than rounding explains. */
int acc_say_quiet(struct scan *s, struct acc_err *e);

/* --- angle.c --- */
/* Where nothing else is named: 1 with a finding, and its call, if positions or angles are rounded to 16 bits on the
 * device alone, and a sine or cosine takes others; 0; < 0. */
int acc_say_angle(struct scan *s, uint32_t *call, struct acc_err *e);

/* --- summed.c --- */
/* Of ranks that accfold made one: a sum over them that is lost, wrong or no mean is named in place of what takes or gives its
 * summands. */
int acc_say_sums(struct scan *s, struct acc_err *e);

/* --- lost.c --- */
/* Findings `missing`, rule reduction: at the end of what one side makes of a value stands a communication, or a division
 * by the number of ranks, that the other side does not call. */
int acc_say_lost(struct scan *s, struct acc_err *e);

/* --- update.c --- */
/* Where nothing else is named: 1 with a finding, and the bench's call, if an optimizer makes other weights of the
 * same weights and gradients; 0; < 0. */
int acc_say_update(struct scan *s, uint32_t *call, struct acc_err *e);

/* --- reduced.c --- */
/* A culprit of this call, by whose loss or gradients the sides are a factor apart, without its text: where that runs is in
 * *src and *where. NULL: e says why. */
struct acc_finding *acc_scaled_find(struct scan *s, const struct acc_call *k, const char **src,
	const char **where, struct acc_err *e);

/* --- scaler.c --- */
struct suspect;
/* Of ranks that are folded: 1 with a finding, and the call, if the loss is multiplied on one side alone by what all gradients
 * are off by, of which this suspect is one; 0; < 0. */
int acc_say_scaler(struct scan *s, const struct suspect *x, uint32_t *call, struct acc_err *e);

/* --- masked.c --- */
/* Scores that the two sides hide by other numbers, where a softmax leaves nothing of either, get the
 * error of those that are not hidden. 0 or < 0. */
int acc_forgive_masks(struct acc_case *c, struct acc_err *e);
/* explain.c: outputs where a side's tool is known to lose a NaN that both were given; and to say it. 0 or < 0. */
int acc_know_nans(struct acc_case *c, struct acc_err *e);
int acc_say_nans(struct acc_case *c, struct acc_err *e);
/* The finding about them. */
int acc_say_masks(struct acc_case *c, struct acc_err *e);

/* --- ignored.c --- */
/* Labels that differ in nothing but the number that the loss of each side ignores are the same, and so is that
 * number where they are made. 0 or < 0. */
int acc_forgive_labels(struct acc_case *c, struct acc_err *e);
/* The finding about them. */
int acc_say_labels(struct acc_case *c, struct acc_err *e);

/* --- inverse.c --- */
/* Masks of two operators, each of which takes what the other leaves out, are no difference. 0 or < 0. */
int acc_forgive_inverses(struct acc_case *c, struct acc_err *e);

/* --- orders.c --- */
/* Numbers in the same other order of axes as those of pairs whose shapes show it are in their places. 0 or < 0. */
int acc_forgive_orders(struct acc_case *c, struct acc_err *e);

/* --- next.c --- */
/* Where the dump holds too little: the finding that says what to record again. */
int acc_say_next(struct scan *s, uint32_t chosen, struct acc_err *e);

/* --- where.c --- */
/* Where in a tensor the error sits: m.where* go into its record, if tensors are at hand. 0 or < 0. */
int acc_find_where(struct acc_case *c, uint32_t item, struct acc_err *e);

/* --- accept.c --- */
/* Leave out the suspects that are known and accepted. */
int acc_accept_suspects(struct scan *s, struct acc_err *e);

#endif
/* Is the device's a node of an engine's graph, by its own name? 1, 0, or < 0. */
int acc_is_node(struct acc_case *c, const struct acc_item *it, struct acc_err *e);
