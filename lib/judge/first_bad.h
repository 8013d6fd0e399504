/* first_bad.h - the default judge: how much error an op call may add, and which one added more
 *
 * Everything is relative error e as accmetric measures it (see acc_item). A call may show
 * e <= 4 (floor + gain * cause), where cause is the worst of what it was given.
 * margin = log10(e / (floor + gain * cause)) - log10(4). limits.h has these numbers and their
 * sources.
 */
#ifndef JUDGE_FIRST_BAD_H
#define JUDGE_FIRST_BAD_H

#include <math.h>

#include "acc/judge.h"
#include "judge/case.h"
#include "judge/limits.h"
#include "judge/witness.h"

struct limit {
	double floor, gain;
	const char *from; /* where the floor comes from, in words */
};

/* What a call was given, gathered over its inputs. */
struct given {
	double rms, max; /* worst errors, as causes of what comes out */
	double max_abs;  /* largest and summed absolute errors, NaN where one is unknown */
	double sum_abs, sum_rel;
	double b_max;        /* largest magnitude among its inputs on the bench */
	double grad_rms;     /* root mean square of the largest incoming gradient, */
	double grad_rmse;    /* of its error, */
	double grad_abs;     /* by statistics, the largest known error of one of its elements; */
	uint64_t grad_count; /* and its number of elements */
	struct operand {     /* the first two of floats, of a product what is multiplied; */
		double rms;  /* backwards those of the forward call */
		double max_abs;
		uint64_t count;
	} operand[2];
	double mean;   /* the largest mean_off or slope */
	double slope;  /* summed: see acc_item.slope */
	double spread; /* the largest error that a slope has by chance */
	double rest;   /* see acc_item.rest */
	unsigned operands, inputs;
	bool exact;    /* everything has equal bits */
	bool unseen;   /* something was not measured */
	bool saved;    /* backwards, all that its forward call took and made was compared */
	bool inner;    /* something was not, but what it was made of was */
	bool permuted; /* the right numbers in other places */
	bool masks;    /* all tensors are masks */
	bool places;   /* some tensor is of places (or choices), known by statistics */
	bool unwritten; /* it writes to a part of what nobody wrote before, and the rest differs: see acc_left_out */
};

enum role { ROLE_OUT, ROLE_IN, ROLE_ARG };

/* Calls behind inputs that were not compared, whose own outputs were not compared either. */
enum { MAX_HIDDEN = 8 };
struct hidden {
	uint32_t call[MAX_HIDDEN];
	unsigned n;
	bool accused; /* accaudit accuses one of them */
	bool unmade;  /* nobody made such an input */
};

/* A record that shows more error than its op call may add. */
struct suspect {
	uint32_t call, item;
	uint32_t blame;    /* the call to name; differs where an op overwrote its input */
	uint32_t producer; /* item that made a bad input, or ACC_NOCALL */
	enum role role;
	double margin;       /* LIMIT_CERTAIN where infinite */
	double value, limit; /* e and 4 (floor + gain * cause) */
	double cause;        /* worst e of what the call was given */
	bool unseen;         /* something it was given was not measured */
	bool alone;          /* nothing that went in was compared */
	bool inner;          /* nor this, but what it was made of was */
	double flips;        /* see struct scan */
	bool weak;           /* may be how the device multiplies: too few products to tell */
	const char *from;
	bool own;      /* the statistics of the device's own inputs do not give it */
	bool slope;    /* its value is a slope, see acc_item */
	bool audit;    /* accaudit accuses it; value and limit are its own */
	bool first;    /* of those that stand out in its rank and step */
	bool permuted; /* something it was given holds the right numbers in other places */
	bool guess; /* it is recomputed, and not named for what the sides differ by: see first_bad.c */
	bool doubted; /* nor is this, for the user doubts its witness: */
	enum acc_witness_id witness;
	struct hidden hidden;
	const char *sum; /* of a gradient: "A.backward and B.backward", or NULL */
};

struct scan {
	struct acc_case *c;
	struct acc_err *e;
	/* (id, pass) -> item that had these values last, of each side */
	struct acc_ids made[2];
	struct acc_ids
		kept[2];     /* (id, rank) -> what a step has written, of which the next are made */
	struct acc_ids twin; /* forward calls by acc_call.twin */
	struct acc_ids back; /* backward calls by the same */
	struct acc_ids user; /* (id, segment) -> the last forward input with these values */
	uint32_t *earlier;   /* of each such input the one before it, or ACC_NOCALL */
	struct acc_ids shared; /* (count, segment) -> the last weight that several calls take */
	uint32_t *alike;       /* of each such weight the one before it, or ACC_NOCALL */
	struct acc_ids
		largest; /* the same -> the gradient that differs most, relative to itself, */
	struct acc_ids furthest; /* in its own unit, */
	struct acc_ids greatest; /* and the largest; */
	struct acc_ids alone;    /* or one that only the bench has a record of */
	struct acc_map floor;    /* learned factor of an operator's floor, as a double's bits */
	double unit;             /* of the network's usual dtype */
	double noise;            /* times more noise than between two runs of the bench */
	double weights;          /* median error of the weights: not 0 where checkpoints differ; */
	double weight_unit;      /* and the unit of that weight, the coarser of its sides' */
	double recent[2][LIMIT_RECENT]; /* worst errors of the last calls, forward and backward */
	uint32_t nrecent[2];
	float size[LIMIT_RECENT]; /* root mean squares of what the last backward calls gave */
	float recent_stat[2][LIMIT_RECENT]; /* the same of outputs known by statistics, */
	float sorted_stat[2][LIMIT_RECENT]; /* and these by size */
	uint32_t nrecent_stat[2];
	/* while learning: (operator, excess) */
	struct excess {
		uint64_t op;
		double by;
		bool stat; /* of statistics */
	} * excess;
	uint32_t nexcess;
	size_t excess_cap;
	/* Of outputs that were recomputed, by class: how many times their limit their error is. */
	struct usual {
		uint64_t cls;
		float ratio;
	} * usual;
	uint32_t nusual;
	size_t usual_cap;
	bool learning;
	double finest;    /* of f32 products, the least that one shows, of the floor */
	bool coarse;      /* f32 products are no better than TF32, or nothing shows that they are */
	bool told;        /* one of them will be recomputed, as far as all are off alike */
	bool multiplied;  /* one of them came before, in this rank and step */
	bool back_before; /* the call before was backward */
	bool flipped; /* integers came out otherwise: choices between near-equal numbers fell so */
	bool ranked; /* places were found by rank, and only statistics of them are known: ties hide there */
	bool folded; /* ranks that accfold made one */
	bool wholes; /* of both sides: much is not compared */
	bool two;    /* they may be written otherwise, and what follows tells: see healed.c */
	double most; /* of the errors of elements that were seen in outputs of this step and rank */
	/* There, places that were chosen by values of ranks are not known to be the same, and some are likely to
	 * be others: statistics of what is made of them prove nothing. The first call that chose so. */
	bool astray;
	uint32_t strayed;
	bool rerouted; /* so did places of values: what was moved by them went another way */
	bool wild;     /* an output before has NaN or Inf where the bench's has none */
	bool noisy;    /* something before in this rank and step differs by more than nothing */
	struct suspect *suspect;
	uint32_t nsuspect;
	size_t suspect_cap;
	/* The share of the gradients of this rank and step that is wrong since kinks before them fell
	 * otherwise: see LIMIT_KINK. */
	double flips;
	bool chosen; /* an operator before that chose by values handed gradients on, by statistics */
	/* Of each call, decades from the limit, 0 at most; 1: that alone does not decide. Or NULL. */
	float *near;
	/* Of two programs, forward calls behind which values agree again, whatever pairing says of them; or NULL. */
	bool *cleared;
	bool parted; /* there is a forward call of the device behind which none do, up to the end */
	uint32_t unread; /* calls that differ, and were not recomputed for the time that it takes */
	uint32_t tie, ties; /* places of near-equal values: the first such item, and how many */
	double tie_given;   /* the error of what that one's call was given */
	uint32_t bench; /* the first item that stands out for the bench's fault, or ACC_NOCALL */
	struct acc_recompute *recompute;
	struct acc_ranks *ranks;
	uint64_t silent[ACC_NWITNESSES], demoted[ACC_NWITNESSES]; /* see acc_witness_use */
	size_t first_cap;
	uint32_t *first, nfirst; /* of each rank and step, the first call that stands out */
};

/* One hash of one and a small number. */
static inline uint64_t
acc_id_with(uint64_t id, uint64_t n)
{
	return id ^ (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* --- where.c --- */
/* Where in a tensor the error sits: m.where* go into its record, if tensors are at hand. 0 or < 0. */
int acc_find_where(struct acc_case *c, uint32_t item, struct acc_err *e);

/* Is there Inf on the device where the bench's numbers are finite, and beyond what the device's dtype holds? */
static inline bool
acc_overflows(const struct acc_item *it)
{
	return it->nonfinite && it->a_inf && !it->a_nan && it->dtype[ACC_A] != it->dtype[ACC_B] &&
	       isfinite(it->b_max) && it->b_max > acc_item_dtype(it, ACC_A)->max;
}

/* Does an absolute error become a relative one? */
static inline bool
acc_is_exponent(const struct acc_call *k)
{
	return k->response == ACC_OP_EXPONENT || k->response == ACC_OP_SOFTMAX;
}

/* Do some of its gradients go another way where what came forward is off? */
static inline bool
acc_passes_kink(const struct acc_call *k)
{
	return k->backward && (k->response == ACC_OP_KINK || k->response == ACC_OP_KINK_ROWS);
}

/* Where sentences of this scan live. */
static inline struct acc_arena *
acc_mem(const struct scan *s)
{
	return &s->c->mem;
}

/* --- first_bad.c --- */
/* Is it no guess that a suspect's call is a pair? */
bool acc_is_sure(const struct scan *s, const struct suspect *x);
/* May what a suspect differs in be two things that are no pair? */
bool acc_is_guess(const struct scan *s, const struct suspect *x);
/* Is a suspect a call of a module, and does what that gives agree, or what the module around it does? */
bool acc_module_agrees(const struct acc_case *c, const struct suspect *x);
/* One more suspect, unless this walk is to learn. 0 or ACC_ENOMEM. */
int acc_suspect_add(struct scan *s, const struct suspect *x);
/* Where a second run of the bench tells the noise of this very tensor, no less is a fault. */
void acc_known_noise(const struct scan *s, const struct acc_item *it, double e, double e2,
	struct suspect *x);
/* What an item's own error is: what a cast to f16 leaves of the smallest numbers is none, but a cause
 * of what follows. */
static inline double
acc_item_error(const struct acc_item *it, bool largest)
{
	double e = largest ? it->max : it->rms;
	return it->left < e ? it->left : e;
}
/* Unit roundoff of the coarser side. */
double acc_item_unit(const struct acc_item *it);

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

/* --- input.c; each 0 or < 0 --- */
/* An input, which is received, too. */
int acc_judge_input(struct scan *s, uint32_t call, uint32_t i, double unit, struct given *g);
/* Suspect an argument, which is another one on the bench. 0 or < 0. */
int acc_suspect_argument(struct scan *s, uint32_t item, double margin, double value);
/* The call's running means, and its arguments; worst: the largest margin of its outputs. */
int acc_judge_state(struct scan *s, uint32_t call, double unit, double worst);
int acc_judge_args(struct scan *s, uint32_t call, double unit, double worst, const struct given *g);
/* Of two frameworks, of which one has kernels: arguments that are not what the other one takes where they are not
 * given. */
int acc_judge_defaults(struct scan *s, uint32_t call, double worst);

/* --- unread.c --- */
/* An input that differs and that nobody made: is nothing made of what differs, as its call copies other elements, or
 * writes over these? Memory that nobody wrote is such. */
bool acc_left_out(struct scan *s, uint32_t call, uint32_t i, double unit);
/* Is this output of a product's backward call the gradient that it was given, or of another shape, on one side alone? There the recorder
 * has hung on to a view behind the product, and what it made is not recorded. */
bool acc_is_of_view(const struct scan *s, uint32_t call, uint32_t i);
/* Or may the rest of it be such memory, of which the call has written a part? */
bool acc_written_partly(const struct scan *s, uint32_t call, uint32_t i);

/* --- output.c; each 0 or < 0 --- */
/* An output that was compared; worst gets its margin, if that is larger. */
int acc_judge_output(struct scan *s, uint32_t call, uint32_t i, double unit, const struct given *g,
	double *worst);
/* One that was not: it may still be wrong for its inputs. */
int acc_judge_alone(struct scan *s, uint32_t call, uint32_t i, const struct given *g);

/* --- choose.c --- */
/* The earliest suspect that stands out, and by enough to be named if that is asked for; its index,
 * or ACC_NOCALL. */
uint32_t acc_choose(struct scan *s, bool name);

/* --- healed.c --- */
/* Mark tensors that differ where what follows agrees again, as computed otherwise (apart); of those known by
 * statistics alone none. 0 or < 0. */
int acc_heal(struct acc_case *c, struct acc_err *e);
/* Then: what is marked is no pair any more, or none is. */
void acc_heal_settle(struct acc_case *c, bool apart);
/* Was a call given the same tensors on both sides, one at least? */
bool acc_given_alike(const struct acc_case *c, uint32_t call);

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

/* --- audit.c: what accaudit found of the sides --- */
/* Is the device's output not what its own inputs give, where the bench's is, or was not audited? */
bool acc_accused(const struct acc_item *it);
/* Is the device's output what its own inputs give? */
bool acc_acquitted(const struct acc_item *it);
/* Do all inputs of the operator, which the other side has in parts, agree, but perhaps not in their places? */
bool acc_given_otherwise(const struct acc_item *it, const struct suspect *x);
/* Is the device's output what its own inputs give, and the bench's is not? */
bool acc_bench_wrong(const struct acc_item *it);
/* Does one side alone make zero of numbers below the normal ones, and is that all that differs? */
bool acc_is_flushed(const struct acc_item *it);
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
/* Where nothing else is named: the first call that is taken for computed otherwise, though one changed argument
 * explains it. 0 or < 0. */
int acc_substitute_apart(struct scan *s, uint32_t *chosen, struct acc_err *e);
/* What torch calls the argument at a place: by its number in the signature, or as it is. */
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
/* The largest error (root mean square, absolute) of the gradient of a bias: it is a sum of the
 * incoming gradient, no product. INFINITY where it is none. */
double acc_bias_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double unit);
/* The largest slope of an output (see acc_item) that is no factor of the operator's own, or INFINITY. */
double acc_slope_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct limit *l, const struct given *g, double cause, double unit);
/* The largest mean_off of an output, or INFINITY. */
double acc_mean_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double cause, double unit);
/* The floor of a 16-bit operator that was given equal inputs, or INFINITY. */
double acc_one_rounding(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double unit);

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

/* --- item.c --- */
/* Half a unit of the sixth digit of each of n numbers, where all have no more; else 0. */
void acc_open_digits(const double *x, int n, double *open);

/* --- relation.c --- */
/* By how many times what rounding leaves this output, known by statistics, is not on the device what
 * those of its inputs there give; 0 to 1: it is. -1: nothing follows from them, or on the bench it
 * is not so either. whole: it says all that there is of the output. */
double acc_relation(const struct scan *s, uint32_t call, const struct acc_item *it, bool *whole);

/* --- trace.c --- */
bool acc_is_input(const struct acc_item *it);
/* Do both sides have numbers that were compared? */
bool acc_is_measured(const struct acc_item *it);
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

/* --- angle.c --- */
/* Where nothing else is named: 1 with a finding, and its call, if positions or angles are rounded to 16 bits on the
 * device alone, and a sine or cosine takes others; 0; < 0. */
int acc_say_angle(struct acc_case *c, uint32_t *call, struct acc_err *e);

/* --- update.c --- */
/* Where nothing else is named: 1 with a finding, and the bench's call, if an optimizer makes other weights of the
 * same weights and gradients; 0; < 0. */
int acc_say_update(struct scan *s, uint32_t *call, struct acc_err *e);

/* --- accept.c --- */
/* Leave out the suspects that are known and accepted. */
int acc_accept_suspects(struct scan *s, struct acc_err *e);

/* --- masked.c --- */
/* Scores that the two sides hide by other numbers, where a softmax leaves nothing of either, get the
 * error of those that are not hidden. 0 or < 0. */
int acc_forgive_masks(struct acc_case *c, struct acc_err *e);
/* explain.c: outputs where a side's tool is known to lose a NaN that both were given; and to say it. 0 or < 0. */
int acc_know_nans(struct acc_case *c, struct acc_err *e);
int acc_say_nans(struct acc_case *c, struct acc_err *e);
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
/* --- masked.c --- */
/* The finding about them. */
int acc_say_masks(struct acc_case *c, struct acc_err *e);

/* --- next.c --- */
/* Where the dump holds too little: the finding that says what to record again. */
int acc_say_next(struct scan *s, uint32_t chosen, struct acc_err *e);

#endif
