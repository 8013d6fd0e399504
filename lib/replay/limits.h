/* limits.h - how large the error of an audited output may be, and when a cause is believed
 *
 * X(NAME, value, what it is, source) is LIMIT_NAME, a double; N the same as an integer constant.
 * accaudit --limits prints the table, and the table of accaudit(1) is compared with it.
 *
 * A unit is the rounding that the operator cannot avoid, see accaudit(1). Where the history shows
 * neither a derivation nor a measurement, the table says so. */
#ifndef REPLAY_LIMITS_H
#define REPLAY_LIMITS_H

#include "acc/base.h"

/* No derivation and no measurement is on record. */
#define LIMIT_TRIED "set by experience on simulated faults; tests/data/make_networks.py scores it"

#define AUDIT_ERRORS(X, N) \
	X(EXACT_RMS, 0.5, "units: what is copied, compared or cast to integers", \
		"any number below 1: right is 0, wrong is 1 at least") \
	X(EXACT_MAX, 0.5, "units: the largest error, the same", "as exact-rms") \
	X(ONCE_RMS, 8, "units: an operator that rounds once, in f32", \
		"rounding to nearest is 0.6; " LIMIT_TRIED) \
	X(ONCE_MAX, 32, "units: the largest error, the same", "as once-rms; there it is 1") \
	X(OFTEN_RMS, 40, "units: one that rounds more often, in f32", LIMIT_TRIED) \
	X(OFTEN_MAX, 200, "units: the largest error, the same", LIMIT_TRIED) \
	X(LOW_RMS, 1.6, "units: forward in 16 bits", "it computes in f32 and rounds once: 1.2") \
	N(LOW_FEW, 32, "elements: of fewer, the rms may be low-few-rms", \
		"the squares of roundings are " \
		"0.7 in the mean (mantissas lie evenly in the logarithm) and 4 at most: the mean of n " \
		"exceeds 1.6^2 with a probability below exp(-0.42 n), by Hoeffding") \
	X(LOW_FEW_RMS, 2.1, "units: the same of few elements", \
		"one right rounding may be 2, and what " \
		"is computed in f32 on the way is added") \
	X(LOW_MAX, 4, "units: the largest error, the same", \
		"twice that of rounding to nearest, 2") \
	X(LOW_STEP, 2, "units of a step: and as much, where each step may round to 16 bits", \
		"one right rounding may be 2") \
	X(LOW_ONCE, 2.2, "units: the largest error of what rounds once, in 16 bits", \
		"2, and a tenth for f32 inside; sigmoid and softmax with each step rounded have 2.6 to " \
		"4.4") \
	N(LOW_STEP_CALLS, 2, \
		"calls forward at least that only rounding every step explains: then all do so", \
		"a fault is in one; of several operators in turn it is learn-calls") \
	X(SLOPE_CHANCE, 6, \
		"times the deviation of chance: a factor that all elements have, in 16 bits", \
		"by the normal law 2e-9 an output; all that is nearly equal counts as one") \
	X(SLOPE_ROUNDING, 1.1547, "units: the deviation of one rounding", \
		"2 over the root of 3: evenly within 2 at most") \
	X(SLOPE_LEAST, 0.125, "units: a factor this near to 1 is none", LIMIT_TRIED) \
	N(SLOPE_CALLS, 4, \
		"if more than one output in so many has one, the device rounds to one side", \
		LIMIT_TRIED) \
	X(LOW_BACK_RMS, 4, "units: backward in 16 bits", \
		"of the op calls that are kept twice passes 3 faults (tests/worth)") \
	X(LOW_BACK_MAX, 10, "units: the largest error, the same", \
		"of tests/networks (106 faults, 112 right) twice names 1 fault fewer") \
	X(STEPS_BACK, 6, \
		"times that: the gradients of what is several operators in turn, in 16 bits", \
		"each rounds what it gives, forward and backward: of attention with its projections " \
		"some 12, and in that of softmax differences of two are left: the root of 16; half as much again, as " \
		"torch's recurrent cells in bf16 are off by up to 4.9 such") \
	X(LOW_WORK, 0x1p-18, "rounding on the way, in 16 bits", \
		"it is done in f32: 64 times " \
		"2^-24, between often-rms and often-max")

#define AUDIT_LEARNING(X, N) \
	N(LEARN_CALLS, 3, "calls of a class: fewer tell nothing of its usual error", \
		"the median of the two others must not be one fault") \
	X(LEARN, 6, "times the median error of the other calls: what an error may be", \
		LIMIT_TRIED) \
	X(LEARN_LOW, 2.5, "the same of the rms in 16 bits, where the median is usual", \
		"errors are of the final rounding, whose rms is nearly the same everywhere; of tests/networks (106 " \
		"faults, 112 right) twice accuses 1 right") \
	X(LEARN_USUAL, 2.0 / 3, "of the limit: up to there a median in 16 bits is usual", \
		"of tests/networks (106 faults, 112 right) half accuses 1 right") \
	X(LEARN_ROUGH, 12, "the same of gradients of a class that rounds every step to 16 bits", \
		"twice learn: where they are summed up in 16 bits, some are far off; " LIMIT_TRIED) \
	N(FORM_SAMPLES, 256, \
		"elements of an f32 product at most tell the arithmetic of its operands", \
		"for the time that it takes") \
	N(FORM_LEAST, 6, "elements at least", \
		"what is left must be a ninth of the mean square; of " \
		"6 errors of another origin, rounding other operands adds as often as it takes away") \
	X(MOST_PRODUCTS, 0x1p14, "units: the most that an rms is raised to, of products", \
		"TF32 and HF32 round their operands by 2^-11, 2^13 units; twice that") \
	X(MOST_OTHER, 0x1p10, "units: the same of others in f32", \
		"of the op calls that are kept twice passes 2 faults (tests/worth)") \
	X(MOST_COMPARED, 4, "times the limit: the same of others in f32, beside a bench", \
		"as margin of accfirstbad: beyond, it is another function, whatever all calls do") \
	X(MOST_LOW, 16, "units: the same in 16 bits", LIMIT_TRIED) \
	N(ROUGH_CALLS, 2, \
		"a class in 16 bits rounds every step to 16 bits if more than one call " \
		"in so many is beyond its rms", \
		LIMIT_TRIED) \
	N(ROUGH_MAX_CALLS, 5, "or one in so many is beyond its largest error", LIMIT_TRIED) \
	X(PROFILE, 2, "times what a profile says of an operator: what its error may be", \
		"as it was written, of some inputs; of others of the kind, twice") \
	X(LOW_NETWORK_RMS, 0.05, "units of bf16: f32 products where most are in 16 bits", \
		LIMIT_TRIED) \
	X(LOW_NETWORK_MAX, 0.25, "units of bf16: the largest error, the same", LIMIT_TRIED)

#define AUDIT_CAUSES(X, N) \
	X(CAUSE_LEFT, 200, "units left in f32: less, and a cause is believed", \
		"the largest error of often-max") \
	X(CAUSE_LEFT_LOW, 6, "units left in 16 bits, the same", LIMIT_TRIED) \
	N(CAUSE_SHARE, 3, "no more than one in so many parts of the error may be left", \
		LIMIT_TRIED) \
	N(FACTOR_ELEMENTS, 3, "elements: fewer show no factor", \
		"one number fits one element, and two by chance") \
	X(FACTOR_NEAR, 1e-3, "a factor this near to a number is that number, near 1 none", \
		LIMIT_TRIED) \
	X(FACTOR_NEAR_UNITS, 8, "units: and this near to 1 it is none", "once-rms") \
	X(STANDS_OUT, 8, \
		"times the largest error of other elements: one that differs from the bench stands out by it", \
		"of a million errors by the normal law the largest is 1.4 times that of 4,000; five times that") \
	X(SPOT, 64, "units of an element and of their mean size: beyond, an element is wrong", \
		"twice once-max") \
	X(VARIANCE_NEAR, 0.1, "of the change that n - 1 for n makes: how near it must be", \
		LIMIT_TRIED) \
	X(ONE_PASS, 16, \
		"times the squares less the mean: those of the elements at least, where one pass shows", \
		"a mean of four deviations") \
	X(ONE_PASS_ROUNDINGS, 64, \
		"roundings of the sum of squares: an error of as many, or an nth, is that of one pass", \
		"some 0.1 to 8 by the order of the sum; where the mean is large, 16 bits on the way are thousands") \
	N(ROUNDING_SAMPLES, 4096, "elements in 16 bits at most tell how they are rounded", \
		"for the time that it takes") \
	N(ROUNDING_LEAST, 64, \
		"elements at least that two numbers are next to: fewer tell nothing", \
		"of so many within a quarter of a number rounding by chance leaves none at the nearer one with" \
		" 2e-4, and none of rounding to the nearest is at the other") \
	N(ROUNDING_TIES, 12, \
		"halves that another rule takes elsewhere: all of them away from zero is that rule", \
		"by chance one in 4,000 tensors has as many") \
	X(ROUNDING_OUTER, 0.125, \
		"of the elements within a quarter of a number: so many are at the farther one by chance", \
		"the mean of that quarter; half and twice of it, which of 64 has one in 10") \
	X(ROUGH_LEAST, 0x1p-14, "rms in f32: from here on it may be computed in 16 bits", \
		"an eighth of the rounding of f16, 2^-11") \
	X(ROUGH_MOST, 0x1p-7, "rms in f32: up to here", "twice the rounding of bf16, 2^-8")

#define AUDIT_RANKS(X, N) \
	X(REPLICA_MOST, 0.25, \
		"of a step of the optimizer, or of a tensor: further than by rounding two ranks are apart", \
		"weights of 16 bits move by half of their last place: where one in 16 is rounded the" \
		" other way, they are so far apart; what is not reduced is by 1") \
	X(REPLICA_FEW, 0.125, "the same of weights in f32, and of statistics", \
		"products in TF32 part gradients by 2^-10: one in 1,000 has another sign then, and of a" \
		" step that is all signs, as the first of Adam, two ranks are apart by 2 times the root" \
		" of that, 0.06; twice that") \
	X(REPLICA_ELEMENTS, 0x1p-4, \
		"of the elements of a weight in f32: rounding parts fewer by half of their step", \
		"products in bf16 part gradients by up to 2^-6: one in 80 has another sign then; four" \
		" times that and more") \
	X(REPLICA_STATISTIC, 0x1p-18, \
		"of a weight in f32, or of a statistic of it: what rounding may part it by", \
		"64 roundings of 2^-24: a step is less than a weight, and its noise a small part of it") \
	X(REPLICA_KIN, 0.5, \
		"correlation of a weight with itself in the step before, or deviations its statistics moved:" \
		" less, or more, is another", \
		"of 64 elements that are unlike, one in 10,000 has so much; a step by a fifth of the weight" \
		" leaves 0.98, and moves its largest element by two fifths of the deviation") \
	X(STATISTIC_F32, 1e-6, "of a mean or norm: what its recorder rounded it by", \
		"16 roundings of 2^-24: the order of the sum, as stat-f32 of accfirstbad") \
	X(STATISTIC_F16, 5e-4, "the same of f16", \
		"recorders round them to the dtype of the tensor, by 2^-11") \
	X(STATISTIC_BF16, 4e-3, "the same of bf16", "as statistic-f16: 2^-8") \
	N(STATISTIC_LANES, 16, \
		"of n elements one in so many adds a rounding to a norm that is summed up in f16", \
		"as norm-lanes of accfirstbad: of weights that were cast, the norm that torch 1.13 gives is" \
		" off by 2^-11 (root n + n / 16) at most in 99 of 100") \
	X(STATISTIC_FACTOR, 0.02, \
		"how near a quotient of two means must be known to be called a factor", \
		"the number of ranks, or an nth: up to 16 ranks, neighbours are 6 % apart") \
	X(REPLICA_MASK, 1e-6, "two masks of parts are the same by chance less often", \
		"of all masks that keep as many of the elements, one is the same; a step draws hundreds") \
	N(REPLICA_WEIGHTS, 8, "weights that are alike: fewer do not show that one must be", \
		"a layer of a transformer has as many") \
	N(REPLICA_SCALED, 3, \
		"gradients that end by one number which meets exactly: fewer do not show what it is", \
		"a weight and a bias may be apart by design, the third is of another layer") \
	X(REPLICA_UNEVEN, 0.1, \
		"of their mean: numbers by which ranks' gradients are in one are unlike", \
		"a fit leaves 1e-3 of the norm, and 2^-6 of a term's square is its own: 8e-3 at most") \
	X(REPLICA_EQUAL, 2e-3, \
		"numbers that so much of them parts are the same, as is a number of ranks", \
		"in f32 they meet to 1e-4 at most, where a gradient goes through f16: 20 times that") \
	N(REPLICA_WHOLE, 2, \
		"weights that all ranks have: of fewer none shows by what gradients end", \
		"beside replica-scaled others, each number is measured: a second one that is the same is no chance") \
	X(RANKS_STATISTIC, 1e-4, "of a statistic: ranks whose tensors are so near are the same", \
		"what f32 rounds of them is far less; " LIMIT_TRIED) \
	X(RANKS_ROUNDED, 1e-5, "of a number that is summed up in f32: so near is the same", \
		"some 160 roundings of 2^-24") \
	X(RANKS_SIMPLE, 1e-4, \
		"of a number that is measured: so near to a whole one, or one by it, is that", \
		"as replica-equal: in f32 they meet to 1e-4 at most") \
	X(RANKS_NORM, 1e-3, "of a norm, or of a number and what was recorded of it: the same", \
		"what noise makes of a norm is less; " LIMIT_TRIED) \
	X(RANKS_FACTOR, 1e-2, "of a factor that is measured through noise: the same", \
		"what noise makes of a factor is less: as replica-uneven, 8e-3 at most") \
	X(RANKS_NONE, 0.02, "of the largest number of a fit: less is none", \
		"twice ranks-factor; " LIMIT_TRIED) \
	X(RANKS_LOW, 0x1p-8, "of a gradient in 16 bits: what rounding takes it off", \
		"bf16 rounds by 2^-8 at most") \
	X(RANKS_LOW_SUM, 0x1p-7, "the same of a sum of such", "one rounding more") \
	X(RANKS_SMALL, 0.1, \
		"of the root mean square: elements that are smaller do not show where others lie", \
		LIMIT_TRIED) \
	X(FIT_LEFT, 1e-3, "of the norm: what a fit leaves where it explains a gradient", \
		"what noise leaves is less; " LIMIT_TRIED) \
	X(FIT_ALIKE, 0x1p-6, \
		"of a term's square: what others leave of it at least, else it is one of them", \
		"products in bf16 part what is the same by 2^-6: 64 times the square of that")

/* Not limits: the values that an argument is tried with when a call gives another output, in this order.
 * X(name, where they are usual, the values). */
#define AUDIT_USUAL(X) \
	X("eps", "norms of torch; of T5 and ViT; of BERT; Adam; norms of Keras; L2Normalize", \
		1e-5, 1e-6, 1e-12, 1e-8, 1e-3, 1e-2) \
	X("eps_in_root", "Adagrad of MindSpore, torch, Keras and optax", 1e-8, 1e-10, 1e-7) \
	X("weight_decay", "torch's AdamW; language models; ResNet; VGG; ViT; ConvNeXt", 0.01, 0.1, \
		1e-4, 5e-4, 0.05, 1e-3) \
	X("rho", "Adadelta of torch; its paper", 0.9, 0.95, 0.99) \
	X("alpha", "RMSprop of torch, of Keras and MindSpore", 0.9, 0.99) \
	X("beta1", "Adam; GANs", 0.9, 0.95, 0.5) \
	X("beta2", "Adam; language models", 0.999, 0.95, 0.99, 0.98) \
	X("momentum_decay", "NAdam of torch", 0.004) \
	X("initial_accumulator_value", "Adagrad of Keras, optax and MindSpore; of torch", 0.1, 0)

#define AUDIT_LIMITS(X, N) \
	AUDIT_ERRORS(X, N) AUDIT_LEARNING(X, N) AUDIT_CAUSES(X, N) AUDIT_RANKS(X, N)

#define LIMIT_NOTHING(...)
#define LIMIT_DOUBLE(name, value, what, source) static const double LIMIT_##name = value;
#define LIMIT_COUNT(name, value, what, source) LIMIT_##name = value,
AUDIT_LIMITS(LIMIT_DOUBLE, LIMIT_NOTHING)
enum { AUDIT_LIMITS(LIMIT_NOTHING, LIMIT_COUNT) };

#endif
