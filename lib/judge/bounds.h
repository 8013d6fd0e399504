/* bounds.h - how much error an op call was given, and how much it may add */
#ifndef JUDGE_BOUNDS_H
#define JUDGE_BOUNDS_H

#include "judge/scan.h"

/* --- given.c: what a call was given --- */
/* Errors as causes: where integers differ, anything may follow. */
double acc_cause_of(const struct acc_item *it, bool largest);
/* The worst error of the last calls, 0 where there are none. */
double acc_recent(const struct scan *s, bool backward);
/* Where one side is fused, or the operators differ, what goes in (backwards: what comes out)
 * need not be the same thing on both sides, and counts only if it looks like it. */
bool acc_alike(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	double unit);
/* Tensors of both sides of which nothing can be compared, for their shapes. */
bool acc_other_shape(const struct acc_item *it);
/* Is there a number to judge by? Another checksum, after tensors that differ a little, is only
 * to be expected: it tells nothing. */
bool acc_comparable(struct scan *s, const struct acc_item *it);
/* This input counts. */
void acc_receive(struct given *g, const struct acc_item *it);
/* What a backward call also depends on: what its forward call took and made. */
void acc_receive_saved(const struct scan *s, const struct acc_call *k, struct given *g);
/* A tensor that only the device has, inside of what the bench computes in one call: was it made of
 * tensors that were compared, `depth` calls back at most? Then these are what the call was given. */
bool acc_receive_inside(struct scan *s, uint32_t call, const struct acc_item *it, double unit,
	struct given *g, int depth);
/* A communication that fills a buffer of its own brings in what other ranks hold, and their errors;
 * where they were not recorded, nothing is known of what arrived. */
void acc_receive_brought(struct scan *s, uint32_t call, double unit, struct given *g);

/* --- limit.c --- */
/* What an output of this call may add. */
struct limit acc_limit_output(const struct scan *s, const struct acc_call *k, double unit,
	enum acc_measure how);
/* The recorders compute mean and norm in the tensor's own dtype: two dumps of the same values
 * may differ by its rounding, by this much. In f32 the order of the sum shows. */
double acc_statistic_rounding(double unit);
/* Unit roundoff that counts for a call: of the coarsest dtype among its tensors. */
double acc_call_unit(const struct acc_case *c, const struct acc_call *k);
/* Of the dtype that most of the network computes in. */
double acc_network_unit(const struct acc_case *c);
/* Median error of the weights, and the unit of the weight that has it; 0 where there are none. */
double acc_weight_error(const struct acc_case *c, double *unit);
double acc_margin(double e, const struct limit *l, double cause);
/* Factors of operators nearly all of whose calls show larger noise, from s->excess: then it is
 * how this device computes (TF32, fast functions), and no call of them stands out. */
int acc_learn(struct scan *s, struct acc_err *e);
/* Does it sum up products? How the device multiplies then shows in it. */
bool acc_multiplies(const struct acc_call *k);
/* The operators of one kind of noise: an operator, or all that sum up products, which run on
 * the same units; its pass, its precision. */
uint64_t acc_noise_class(const struct acc_call *k, double unit);

/* Were there enough calls of its operators to learn one? */
bool acc_is_learned(const struct scan *s, const struct acc_call *k, double unit);
/* In this unit, does it multiply in TF32 or the like, as far as is seen? */
bool acc_is_coarse(const struct scan *s, double unit);
/* The factor that was learned for the operators of this call, 1 without one. */
double acc_learned(const struct scan *s, const struct acc_call *k, double unit);

/* --- bound.c --- */
/* Did this output's error come in with what it was made from? */
bool acc_carried(const struct acc_item *it, const struct acc_call *k, const struct given *g,
	double unit);
/* The largest absolute error that what moves, adds or only dampens can leave, or INFINITY. */
double acc_abs_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double unit);
/* How large a product's result is where the terms that it sums up do not cancel, from the sizes
 * of its factors: what its rounding errors are relative to. 0 where unknown. */
double acc_product_scale(const struct acc_call *k, const struct acc_item *it,
	const struct given *g);
/* The size of the terms that a mean, sum or difference is made of: they may cancel, and then it has
 * the errors of its terms, and of their rounding. 0 where it is none. */
double acc_sum_scale(const struct acc_call *k, const struct acc_item *it, const struct given *g);
/* The largest slope of an output (see acc_item) that is no factor of the operator's own, or INFINITY. */
double acc_slope_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct limit *l, const struct given *g, double cause, double unit);
/* The largest mean_off of an output, or INFINITY. */
double acc_mean_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double cause, double unit);
/* The floor of a 16-bit operator that was given equal inputs, or INFINITY. */
double acc_one_rounding(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double unit);

/* --- noise_step.c --- */
/* Is this output, by statistics, a bias of which an optimizer that divides by the root of mean squares has made no more
 * than steps of noise, so that it is no further from the bench's than these? */
bool acc_is_noise_step(struct acc_case *c, uint32_t call, const struct acc_item *it);

/* --- statistics.c --- */
/* An output's error, by statistics, as the calls are walked. */
void acc_stat_seen(struct scan *s, bool backward, double e);
/* The median of the last ones; 0 where there are none. */
double acc_stat_usual(const struct scan *s, bool backward);
/* The size of the terms that a gradient known by statistics is a sum of, 0 where it is none. */
double acc_stat_gradient_scale(const struct acc_call *k, const struct acc_item *it,
	const struct given *g);

/* The error of elements, where statistics of what was given show e: products in TF32 leave more. */
double acc_stat_element(const struct scan *s, double e, double unit);
/* What statistics would show of that, were it not for chance. */
double acc_stat_unseen(const struct scan *s, double unit);
/* The root mean square of the errors of elements that statistics of an output do not show, of itself. */
double acc_stat_rest(const struct scan *s, const struct acc_call *k, double cause, double unit);
/* The size of the terms that an output known by statistics is made of, where they may cancel; or 0. */
double acc_stat_terms(const struct acc_call *k, const struct acc_item *it, const struct given *g);

/* Torch sums up the squares of f16 in f16 on CPUs, in lanes: the error of n additions, up to where what is added no
 * longer counts, with squares rounded by `tiny`. Recorders of another dtype do not have it: tiny is 0. */
double acc_stat_norm_rounding(double tiny, double norm, double n);

/* --- relation.c --- */
/* By how many times what rounding leaves this output, known by statistics, is not on the device what
 * those of its inputs there give; 0 to 1: it is. -1: nothing follows from them, or on the bench it
 * is not so either. whole: it says all that there is of the output. */
double acc_relation(const struct scan *s, uint32_t call, const struct acc_item *it, bool *whole);

/* --- witness.c --- */
/* What this witness has made of a suspect: it is named, or, where it is switched off, nothing is. */
void acc_witness_switch(struct scan *s, enum acc_witness_id id, const struct suspect *before,
	struct suspect *x);
/* What recomputation says of an output. */
void acc_witness_audit(struct scan *s, const struct acc_item *it, struct suspect *x);
/* Is a suspect one, or is its witness switched off? */
bool acc_witness_heard(struct scan *s, struct suspect *x);
/* For the caller, how often those that are switched off would have spoken. */
void acc_witness_count(const struct scan *s);
/* The share of its verdicts that was right, of cases that did not teach it; NAN: of too few. */
double acc_witness_share(enum acc_witness_id id);
/* Does one that excuses before anything is judged? */
bool acc_witness_excuses(const struct scan *s, enum acc_witness_id id);
/* A finding of one that found no suspect, of this kind and rule; a warning, where it is doubted. NULL: it is switched off,
 * which is counted, or there is no memory, which e has. */
struct acc_finding *acc_witness_find(struct scan *s, enum acc_witness_id id, const char *what,
	const char *rule, struct acc_err *e);

#endif
