/* limits.h - every number that decides in lib/judge, with its source
 *
 * X(NAME, value, what it is, source) is LIMIT_NAME, a double; N the same as an integer constant.
 * accfirstbad --limits prints the table, and the table of accfirstbad(1) is compared with it.
 *
 * u is the unit roundoff of acc_unit. A limit moves because of a derivation or of a measurement
 * that can be made again; to fit a case is neither. Where the history shows no source, the
 * table says so. */
#ifndef JUDGE_LIMITS_H
#define JUDGE_LIMITS_H

#include "acc/base.h"

/* What changes of the answers to kept cases, tests/worth/worth.py. */
#define LIMIT_KEPT "of 296 kept cases "
/* No derivation and no measurement is on record. */
#define LIMIT_TRIED "set by experience on simulated faults (tests/data/make_regress.py)"

/* A cast rounds once: rms 0.6 u in f32, 1.2 u in 16 bits. Floors are what is usual; an error
 * may be LIMIT_MARGIN times as large. */
#define LIMIT_FLOORS(X, N) \
	X(MOVE_FLOOR, 1, "u: operators that move elements", \
		"a cast rounds once, by an rms of " \
		"0.6 u in f32 (uniform in half a step: 1 / sqrt(3)) and 1.2 u in 16 bits") \
	X(MOVE_GAIN, 1.3, "times the cause: the same", LIMIT_TRIED) \
	X(ELEMENT_FLOOR, 3, "u: elementwise arithmetic", LIMIT_KEPT "half doubts 1 more") \
	X(ELEMENT_FLOOR_16, 1.5, "u: the same in 16 bits", \
		"it computes in f32 and rounds once, " \
		"by an rms of 1.2 u; a quarter more for what f32 leaves inside") \
	X(OTHER_FLOOR, 8, "u: other operators, most backward calls", \
		LIMIT_KEPT \
		"half accuses 2 more and doubts 2 more; twice accuses 2 fewer and doubts 1 fewer") \
	X(OTHER_FLOOR_16, 3, "u: the same in 16 bits", \
		LIMIT_KEPT "half accuses 2 more; twice accuses 1 fewer and doubts 1 fewer") \
	X(OTHER_GAIN, 4, "times the cause: the same, and elementwise arithmetic", \
		LIMIT_KEPT "half doubts 3 more") \
	N(NORM_VALUES, 2, \
		"values of a channel at most: of batch_norm's gradient of so few statistics tell nothing", \
		"it divides by the difference of two, which may be as small as their errors") \
	X(BREAKS, 1e-3, \
		"of the largest number of its dtype: where the bench stays below, no sum overflows", \
		"what was summed up would have to cancel to a thousandth") \
	X(UNSEEN_FLOOR, 30, \
		"u: modules, of whose op calls nothing was compared; at least this where an input was not", \
		LIMIT_KEPT "half doubts 1 more; twice accuses 1 fewer") \
	X(UNSEEN_COARSE, 4, \
		"u: in 8 bits, where unseen-floor of bf16 is less, that much in its place", \
		"two factors that each may be off by a rounding, 2 u, and as much again") \
	X(UNSEEN_GAIN, 10, \
		"times the cause: the same; of an input that no recorded op call made, the largest error of those before it", \
		LIMIT_KEPT "half accuses 1 more, doubts 2 more and names another op call in 1") \
	X(TRACED_FLOOR, 0.5, "u: an input that some output is", \
		"nothing happens on the way; " \
		"room for the rounding of what is measured") \
	X(TRACED_GAIN, 1.05, "times the error of that output", "as traced-floor") \
	X(SUM_FLOOR, 6, "u: a gradient that is a sum", LIMIT_TRIED) \
	X(SUM_GAIN, 3, "times the error of a part: the same", LIMIT_TRIED) \
	X(UNTRACED_FLOOR, 20, \
		"u: an input that no recorded op call made; a number among the " \
		"arguments", \
		LIMIT_KEPT "half accuses 1 more") \
	X(UNTRACED_FLOOR_16, 4, "u: the same in 16 bits", \
		"11 calls in turn that are not recorded, each rounding by an rms of 1.2 u: 1.2 root 11") \
	X(WEIGHT_FLOOR, 2, "u: a weight", LIMIT_KEPT "half doubts 22 more") \
	X(WEIGHT_FLOOR_16, 0.5, "u: the same in 16 bits", \
		LIMIT_KEPT "half tells 2 otherwise; twice accuses 1 fewer and doubts 5 fewer") \
	X(WEIGHT_GAIN, 3, "times the median error of the weights", \
		"of tests/networks (106 faults, 112 right) twice names 2 faults fewer") \
	X(PASSED_GAIN, 0.3, "times the error of an input that the bench hands on as this output", \
		"4 times that is hardly more than what came in") \
	X(LOW_NETWORK, 0.05, \
		"u of the 16-bit dtype: f32 operators in a network of 16-bit numbers", \
		LIMIT_TRIED) \
	N(LOW_SHARE, 5, "of so many tensors one in 16 bits makes it such a network", LIMIT_TRIED) \
	X(STAT_BF16, 4e-3, "of a mean or norm in bf16: what its recorder rounded it by", \
		"recorders round " \
		"them to the dtype of the tensor, by 2^-8 = 3.9e-3 at most") \
	X(STAT_F16, 5e-4, "the same in f16", "as stat-bf16: 2^-11 = 4.9e-4 at most") \
	X(STAT_F32, 1e-6, "the same in f32", \
		"16 roundings of 2^-24: the order of the sum; " LIMIT_KEPT "half doubts 3 more") \
	N(NORM_LANES, 16, \
		"of n elements one in so many adds a rounding to a norm that is summed up in f16", \
		"of weights that were cast, the norm that torch 1.13 gives is off by " \
		"u (root n + n / 16) at most in 99 of 100") \
	N(NORM_SUMMANDS, 64, \
		"of n elements as large as the largest one in so many adds a rounding to a norm " \
		"that one side sums up over fewer", \
		"of torch's CPU, of 1,024 to a million elements: n / 66 at most, of equal ones") \
	X(NORM_LEAST, 2e-31, "the norm of elements whose largest square is less shows nothing", \
		"2^24 times the least square that f32 holds with all its digits") \
	X(ONE_ROUNDING, 0.35, \
		"u, times 1 + one-rounding-few / elements: operators in 16 bits " \
		"that were given equal bits", \
		LIMIT_KEPT \
		"half accuses 1 more, doubts 2 more and names another op call in 3; twice doubts 1 fewer") \
	X(ONE_ROUNDING_FEW, 2, "see one-rounding", \
		"a single element may be one step apart: 4 u, " \
		"half of it relative to |b| + the median of |b|, and 4 x 0.35 (1 + 2) = 4.2; so for " \
		"more, by the root of their mean square") \
	X(CHOICE, 0.05, "of the elements of integers and bools, from inexact inputs", \
		LIMIT_KEPT "twice accuses 1 fewer")

#define LIMIT_MARGINS(X, N) \
	X(MARGIN, 4, "times floor + gain x cause: what an error may be", \
		LIMIT_KEPT \
		"half accuses 6 more, doubts 9 more and names another op call in 4; twice accuses 6 fewer, doubts 3 fewer and names another op call in 1") \
	X(MARGIN_MAX, 4, "times the floor: the floor of the largest error", \
		"the largest of " \
		"10,000 normal errors is 4 times their rms") \
	X(MARGIN_STAT, 2, \
		"instead of margin: forward, by statistics in 16 bits, of what neither adds nor " \
		"multiplies", \
		"of 20,000 such outputs of clean runs of tests/networks that teach, one in 1,000 is off " \
		"by 0.27 of what margin allows, the worst by 0.39") \
	N(RECENT, 32, "op calls before: whose errors an untraced input may have", LIMIT_TRIED) \
	X(CERTAIN, 9, "decades of the limit: what infinitely more counts as", \
		"a convention; it " \
		"is beyond what else occurs") \
	X(NAMED, 0.25, "decades of the limit: from here on an op call is named", \
		"of tests/networks that teach, where nothing could be recomputed, 30 of 48 below it are " \
		"right, 367 of 380 above it") \
	X(NAMED_INPUT, 0.4, \
		"decades of the limit: the same for an input whose maker is not known, or was not " \
		"compared, or that is known by statistics alone", \
		"of tests/networks that teach, none of 5 below it is right, 15 of 19 above it; of what " \
		"was not compared as little is known as of what is not there: of 84 clean runs of " \
		"tests/parallel one was at 2.3 times its limit") \
	X(NAMED_ARG, 1, \
		"decades of the limit: the same for an argument that one side alone gives", \
		"a convention: both sides are right for what they were given, but a right output may be " \
		"beyond its limit by less") \
	X(NAMED_BOTH, 1, "decades of the limit: the same where both sides fail the audit", \
		"as named-input: none of 5 below it is right") \
	X(KINK, 2, \
		"times the root of the cause: gradients of relu, max and the like are not named up to " \
		"here", \
		"of normal numbers with errors of e, a share of 0.8 e is on the other side, each as " \
		"wrong as it is large: an rms of root 0.8 e; twice that, where these are few") \
	X(KINK_FEW, 2, "elements more, or rows, where few are expected", \
		"by Poisson's law with 3 deviations: of 0.05 expected, 3 are met once in 50,000") \
	X(FLIPPED, 0.01, \
		"elements of a gradient, on average: where fewer are on the other side of a kink, none " \
		"is", \
		"of 100 sums one may have such an element") \
	X(OTHER_WEIGHT, 0.5, \
		"rms: once choices of places fell otherwise, a weight this far off is another one", \
		"of independent normal numbers of one size it is 0.8") \
	X(STRAY, 0.01, \
		"choices over split ranks that fall otherwise, as expected of the error: behind more " \
		"statistics prove nothing", \
		"one in a hundred runs") \
	X(NAMED_SHARE, 0.2, "of the largest decades: enough, too, where none has more", \
		LIMIT_TRIED) \
	X(STEP_U, 1.2, \
		"u, times the root of an operator's steps: what rounding each of them to 16 " \
		"bits leaves", \
		"one rounding to 16 bits has an rms of 1.2 u, and n in turn, of either sign, root n " \
		"times that") \
	X(STEP_MOST, 2, "u, times their number: the most that it leaves of one element", \
		"a rounding leaves 2 u at most, and all may be of one sign") \
	X(WRONG, 0.5, \
		"times limit / value: the share of verdicts that is wrong, and 1 - that the confidence", \
		"of tests/networks that teach, see its tables") \
	X(WRONG_AUDIT, 0.1, "the same where the audit fails", "as wrong") \
	X(WRONG_GUESS, 1, \
		"the same of inputs whose maker is unknown, of random numbers, and where both sides " \
		"fail the audit", \
		"as wrong") \
	X(ALONE, 2, \
		"times its limit: what fails the audit of one dump alone by less is a warning", \
		"with nothing beside it, it is a guess (wrong-guess): below twice its limit right as likely as wrong") \
	X(SURE, 0.9, "confidence: below it, the sentence says probably, and who else", "as wrong") \
	X(MEASURED, 10, \
		"cases that did not teach it: with fewer, a rule over ranks has no confidence", \
		"of 10 verdicts, all right, 7 in 10 at least are, with 95 %: the rule of three") \
	X(PLAIN, 1, \
		"decades of the limit: beside it, products no rougher than TF32 are not named", \
		LIMIT_TRIED) \
	X(SAME_INPUT, 4, "u: what a call was given is the same on both sides", \
		"two roundings to 16 bits, 2 u each at most") \
	X(UPDATE_NEAR, 0.5, "of itself: a weight is no further from what it was before a step", \
		"moments and other weights have nothing to do with it: 1 and more") \
	X(UPDATE_ALONG, 0.5, \
		"the square of the cosine of two steps that lead one way, as that of one and its multiple", \
		"what they have in common is more than what they have not") \
	X(UPDATE_CHANCE, 6, \
		"times the deviation of the cosine of n numbers by chance, the root of 1/n, so that it is none", \
		"six deviations are 1e-9 of a normal distribution") \
	X(UPDATE_GRADIENT, 0.001, "of itself: a gradient is the same on both sides", \
		"f32 leaves 1e-6; what is off by it moves a step in the median by no more than that") \
	X(UPDATE_STEP, 0.001, \
		"of itself, in the median: the step of an optimizer is another, or by update-times the gradient", \
		"of Adam's 1 - beta2^t f32 leaves 2^-24 / 1e-4, half of that behind the root: three times that") \
	X(UPDATE_TIMES, 10, "times what the gradient is off by: the same", \
		"an element that is a tenth as large as the rest is off by ten times as much of itself") \
	X(UPDATE_TENTH, 0.1, "of itself in the median, of one element in ten: the same", \
		"of normal gradients a tenth is below an eighth of the rest, where update-gradient moves a step " \
		"by a hundredth; ten times that") \
	X(OTHER_OUTPUT, 64, \
		"u: what a call then gives is another operator's, or of other arguments, if each side is right for " \
		"its own", \
		"8 times what other operators may add, and a kernel's sum of thousands") \
	X(STANDS_OUT, 8, \
		"times the root mean square of what both sides round: an element that differs by more", \
		"of a million errors by the normal law the largest is 4.9 times it, and one in 16 bits has 1.7 times" \
		" the mean's; as stands-out of accaudit") \
	X(ACQUIT, 0.5, \
		"of its limit in f32: an output that is further off is not right for that alone, but as the sides differ", \
		"half of often-rms of accaudit, 1e-6, is where fast functions are; twice, 1 kept fault passes") \
	X(ACQUIT_BENCH, 16, "times as far from what its inputs give as the bench: the same", \
		"two kernels of one kind are nearer to each other: of what rounds alike, the quotient is about 1") \
	X(OWN_PRODUCT, 8, \
		"units of what is summed up: a product that is so near to what its own inputs give is right", \
		"as once-rms of accaudit: what f32 leaves of it") \
	X(JUMP, 64, \
		"times the noise before it: an error that is larger is none of the noise of what follows", \
		"as other-output, by which equal inputs show another operator") \
	N(AUDIT_BATCH, 32, "suspects are recomputed at a time", "for the time that it takes") \
	N(AUDIT_MOST, 1024, "of all", "as audit-batch") \
	N(AUDIT_REST, 128, \
		"MiB of the device's tensors at least are recomputed where doubt is left, those nearest " \
		"to their limits first", \
		"for the time that it takes") \
	N(AUDIT_SHARE, 8, "of all its bytes one in so many at least, the same", \
		"recomputing a byte takes three to four times as long as reading it on both sides and comparing " \
		"it: make bench ONLY=differ") \
	N(AUDIT_PEERS, 8, \
		"others of the same class near each: what is usual is learned from them", \
		"a median of 9 stands a fault in 4") \
	N(USUAL_OUTPUTS, 9, \
		"outputs of a class that were recomputed: fewer do not tell what is usual", \
		"as audit-peers, and itself") \
	N(AUDIT_ROOM, 32, \
		"MiB of tensors, as doubles: op calls that need more at a time are " \
		"left to accaudit", \
		"half of the memory that a filter may take")

#define LIMIT_LEARNING(X, N) \
	N(LEARN_CALLS, 3, "calls of an operator: fewer tell nothing of its usual noise", \
		"nearly all of them must be noisy: two faults cannot raise what three show") \
	N(LEARN_TAIL, 10, "of so many calls one may show less than the raised floor", LIMIT_TRIED) \
	N(LEARN_TAIL_STAT, 4, "the same of statistics", \
		"by statistics, calls may agree by " \
		"chance; " LIMIT_TRIED) \
	X(LEARN_PRODUCTS, 400, "times: the most that the floor of f32 products is raised", \
		"operands rounded to 10 bits (TF32, HF32) are off by an rms of 2^-11 / sqrt(3) each, " \
		"6,700 u together; 4 x 8 u x 400 is 1.9 times that") \
	X(TF32, 4.0e-4, "what products in TF32 leave of an element, of the size of their terms", \
		"as learn-products: root 2 times 2^-11 / sqrt(3)") \
	X(TF32_SEEN, 4, "times less is what statistics show of it", \
		"the error of the largest element, by that and the rms: of 20 to 1,000 normal numbers " \
		"it is 2 to 3 times the rms") \
	X(LEARN_OTHER, 4, "the same of other f32 operators", \
		"as most-compared of accaudit: beyond, it is another function, whatever all calls do") \
	X(LEARN_LOW, 2, "the same in 16 bits", LIMIT_TRIED) \
	X(LEARN_SAID, 16, "times: from here on, the raised floor of products is said", \
		LIMIT_TRIED) \
	X(WEIGHTS_SAID, 4, "u: from this median error of the weights on, it is said", \
		"as margin, of one rounding") \
	X(NOISE_MOST, 10, \
		"times the noise of two runs of the bench: the most that the device " \
		"may have", \
		LIMIT_TRIED) \
	N(NOISE_TAIL, 4, "one tensor in so many shows how much more it has", \
		"a fault is in what " \
		"follows it; three in four may follow") \
	X(NOISE_WEIGHT, 2, \
		"times two runs of the bench: a weight off by no more, and twice that in its worst " \
		"element, is inside", \
		"of 16 elements, chance passes it once in 600")

#define LIMIT_CARRIED(X, N) \
	X(CARRIED_MOVE, 1.01, "times the largest absolute error of the inputs, moved", \
		"an absolute error moves along; room for the rounding of what is measured") \
	X(CARRIED_GAIN, 1.1, \
		"times the sum of those, added; of the largest relative errors, multiplied", \
		"errors add up; " LIMIT_KEPT "half accuses 1 more") \
	X(CARRIED_ADD_U, 8, \
		"u of the output's rms, the same; of the gradient of a bias, of what it sums up", \
		"as other-floor: what an operator may add of its own") \
	X(CARRIED_REL, 1, \
		"sum of the relative errors: from here on, an absolute bound stands for it", \
		"an error of 1 may be a flipped sign") \
	X(CARRIED_MUL_U, 4, "u, the same", "two roundings to 16 bits, 2 u each at most") \
	X(CARRIED_LOGITS, 2, \
		"times the largest absolute error of logits, of the gradient of a loss", \
		"relative to p it is at most dz - sum(p dz), of 1 - p less") \
	X(CARRIED_SUM, 3, "times root n of the incoming error, summed up backwards", \
		"the sum of " \
		"n errors of either sign has root n times their rms, 3 of which 0.3 % exceed") \
	X(BOUND, 1.5, \
		"times what the absolute errors of the inputs and the rounding of both " \
		"sides can leave", \
		LIMIT_KEPT \
		"half accuses 2 more, doubts 40 more and names another op call in 2; twice accuses 3 fewer and names another op call in 1") \
	X(BOUND_ERRORS, 1.05, "times the errors in that", \
		"they add up; room for the rounding of " \
		"what is measured") \
	X(BOUND_U, 4, "u of the largest magnitude in that", \
		"each side rounds by 2 u at most in " \
		"16 bits") \
	X(SLOPE_FEW, 0.25, \
		"of a norm is the largest magnitude at most where a common factor is looked for", \
		"16 elements or more are then of one size, and tell their scatter") \
	X(SLOPE_U, 2, "u of a common factor in 16 bits", \
		"a number that all elements are multiplied by rounds once, by 2 u at most") \
	X(BIAS_SCALE, 0.03, \
		"of the incoming gradient's rms: the least that a gradient of one " \
		"dimension is measured against", \
		LIMIT_TRIED) \
	X(PRODUCT_SCALE, 0.5, "of the size of its terms: the same of a product", \
		LIMIT_KEPT "twice doubts 1 fewer") \
	X(HIDDEN, 1000, "below zero: scores that are hidden from a softmax", \
		"exp(-745) is 0 even in f64, and masks in use (-1e4, -65504, the lowest number, -Inf) " \
		"are lower") \
	N(PASSED_TENSORS, 512, "tensors: op calls with more hand nothing on", \
		"optimizers, not " \
		"searched for the time that it takes") \
	X(SUM_U, 4, "u for each part of a gradient that is a sum, on the bench", \
		"each addition " \
		"rounds by 2 u at most in 16 bits, and so does what it adds") \
	N(SUM_EVIDENCE, 6, "elements that are not 0 prove such a sum", LIMIT_TRIED) \
	N(SUM_PARTS, 8, "parts at most", "all 2^8 subsets are tried") \
	N(SUM_USERS, 64, "users of a value are looked at", \
		"a constant may have thousands; for " \
		"the time that it takes") \
	X(VALUES_U, 4, "u: weights and batches known by statistics alone that agree", \
		"each side " \
		"rounds by 2 u at most in 16 bits") \
	X(VALUES_SMALL, 0.001, \
		"of its rms: a weight that is within torch.testing's tolerance and is off by more is another " \
		"one", \
		"the absolute part, 1e-5, is for numbers of about 1, and a scale or a moment of an optimizer " \
		"is all below it; what is merged in f32 is off by some u of f32") \
	X(REACH, 1, \
		"of what a quantized format's rounding may do to an element (m.reach): a weight in it that " \
		"is the bench's", \
		"half a step to the nearest number; up to one where the grid is longer on one side (Q4_0, " \
		"Q5_0) or its scale is searched; and what the scale's own rounding adds (lib/io/quant.c)") \
	X(REACH_CARRIED, 8, \
		"the same, where the rounding of a column is made up for by those behind it, as GPTQ does", \
		"what is carried on to a column is a sum of roundings of at most half a step each: up to 3.4 " \
		"of 65,000 elements, where activations have spectra from flat to k^-4 (tests/RESULTS.md); its " \
		"root mean square stays below one half") \
	X(REACH_RMS, 0.5, "of the same, in the root mean square (m.reach.rms)", \
		"rounding to the nearest is half a step at most") \
	X(REACH_ALONG, 2, \
		"of what such a weight is off by, a multiple of the weight (m.reach.along): with more it is larger by a " \
		"factor", \
		"rounding does not enlarge: 0 of 20 real quantizers on nine distributions (tests/weights/quantizers.py); " \
		"a factor gives one over what it is off by") \
	X(REACH_CUT, -5, "the same of one that is smaller", \
		"-1 where each number is the mean of what is rounded to it; a uniform weight that MXFP4 cuts from 8 to 6 " \
		"has -4.14, the most of a grid in use; -2.03 in that measurement") \
	X(FOLDED, 6, \
		"standard errors, as its elements are off: by no more may a column be off by a factor of its own " \
		"where it is folded into what comes before", \
		"roundings are independent: of 10,000,000 columns one is beyond 5.4 of a normal distribution") \
	X(ADAPTER_REST, 0.1, \
		"of what a weight is off by, in the root mean square, another factor of its adapter leaves at " \
		"most where it is named", \
		"it then explains 99 % of the sum of squares; of 144 weights that PEFT merged 136 leave less, " \
		"another adapter's product leaves 0.999 (tests/weights/adapters.py)") \
	X(ADAPTER_SCALE, 0.01, "of such a factor: nearer to 1 it is none", \
		"least squares has it to about adapter-rest / root n: of those 136 to 0.001") \
	X(EMPTIED, 0.5, \
		"of its rms: a weight that is within its format's rounding and lost so much is said to", \
		"half of its size; 2 bits lose 0.34 of Gaussian numbers (Lloyd and Max)") \
	X(VALUES_NOISE, 1e-7, "all values of a vector below it may be noise", \
		"biases whose gradient is 0 in exact arithmetic are what u of f32 leaves") \
	X(STAGES_SHARE, 0.1, \
		"of the forward calls of a side that hands nothing on so many have no partner on one that " \
		"does: stages against ranks that each do all", \
		"tests/parallel/make.py: of four stages with four micro-batches against four ranks with a " \
		"quarter of the batch each 0.28; of a pipeline of which one side's communication is not " \
		"recorded none") \
	X(EXPERTS_SHARE, 0.1, \
		"of the forward calls that take a weight a side that brings tokens to other ranks has so many " \
		"fewer: experts over the ranks against all of them on each", \
		"tests/parallel/make.py: two ranks with two of four experts each against two with four 0.24; " \
		"of two runs of one layout none") \
	X(SPLIT_SHARE, 0.02, \
		"of the forward tensors that both sides have so many are split along one axis: the sides " \
		"are laid out over ranks in different ways", \
		"tests/parallel/make.py: of two layouts 0.19 to 0.7 of them are, but where one is a " \
		"pipeline of the other; of two runs of one layout none is") \
	X(ONE_OVER, 1e-6, \
		"a factor is one over the number of ranks where their product is that near to 1", \
		"the quotient is rounded to f32 at worst: 6e-8 relative, printed with 6 digits or more") \
	X(BASELINE, 2, "times the value in a baseline is not worse", \
		"the noise of a run hides in a finding that is twice as large as it") \
	X(CUT_COUNT, 0.01, \
		"of itself: a factor so near to a whole number is one of ranks or parts, and one so near to another is that", \
		"that of two norms in 16 bits, 0.4 % each, is off by no more") \
	N(LOSS_SCALE, 7, \
		"all gradients times or over two to that and more: loss scaling, a warning", \
		"the least static scale that trainers use is 128, the usual first one 65,536") \
	X(HEALED, 0.25, \
		"of two programs, times the error, of 1 at most: what follows of it and is off by less agrees", \
		"of tests/networks (106 faults, 112 right) half accuses 1 right and names 2 faults fewer; set on " \
		"tests/unlike/make.py, seeds 0 to 3") \
	X(PROGRAM_END, 0.02, \
		"of the bench's values two programs may be apart where the forward pass ends, in f32 where products show " \
		"TF32; in 16 bits healed", \
		"by convention: of tests/unlike/make.py, seed 43, clean pairs are 3e-8 apart at most in f32, and " \
		"0.0016 in 16 bits") \
	X(PROGRAM_HEAD, 4.0e-4, \
		"the same in f32 where products show no TF32, and of what the last weight gives, by elements", \
		"as tf32: what one product in it would leave") \
	X(PART_U, 256, "u: statistics of two programs that are no further apart agree, in f32", \
		"of tests/unlike/make.py, seeds 41 and 42, clean pairs: of 1,260 outputs of the bench the nearest of " \
		"the device is within 256 u for 763, and within 65,536 u for no more") \
	X(PART_U_16, 6, "u: the same in 16 bits", \
		"the same pairs in 16 bits: of 1,526 outputs 1,504") \
	N(PART_CALLS, 12, \
		"op calls that compute at most: a longer stretch is not accused, unless it stands for", \
		"by convention: a norm, or an attention, that is written out has up to 12") \
	N(PART_BENCH, 2, "op calls of the bench that compute", "a norm and what follows it") \
	N(PROGRAM_LEAST, 10, \
		"of so many op calls of two programs one must be compared, or the end of the forward pass", \
		"by convention: less says nothing of the rest") \
	X(SAME_LABEL, 1e-9, \
		"of the sum of squares of two labels' differences: what its rounding may be", \
		"a few roundings of f64") \
	X(ANGLE, 0.5, "radians: so far off, an angle is another, and no longer rounded", \
		"sine and cosine then differ by up to 0.48; bf16 rounds a position by as much from 128 on, f16 from 1024") \
	N(MISSING_CALLS, 3, "op calls that one side lacks at its end: fewer are no sign", \
		"recorders that see the same run differ by one or two there (a backward call of the " \
		"first input, a last item())")

#define JUDGE_LIMITS(X, N) \
	LIMIT_MARGINS(X, N) LIMIT_FLOORS(X, N) LIMIT_LEARNING(X, N) LIMIT_CARRIED(X, N)

#define LIMIT_NOTHING(...)
#define LIMIT_DOUBLE(name, value, what, source) static const double LIMIT_##name = value;
#define LIMIT_COUNT(name, value, what, source) LIMIT_##name = value,
JUDGE_LIMITS(LIMIT_DOUBLE, LIMIT_NOTHING)
enum { JUDGE_LIMITS(LIMIT_NOTHING, LIMIT_COUNT) };

#endif
