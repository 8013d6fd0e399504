/* witness.h - what the default judge accuses or excuses by, by name
 *
 * WITNESS(id, principle, needs, level, what it holds). One that accuses stands in `witness` of the finding; of
 * an output the strongest does. In which order they are heard, and what excuses what, stands in hear() of output.c;
 * recomputation is heard last. --no-rule and --doubt take the ids, accfirstbad(1) has an entry for each.
 * Principles:
 *	ROUNDING an op call adds no more error than its kind and dtype explain
 *	BOUND    what an operator does to numbers bounds what it does to their errors
 *	OWN      what comes out follows from what the call's own side gave it
 *	GIVEN    what a call is given is what was made for it
 *	CHOICE   of near-equal values another one may be chosen
 *	NEWS     an error that is explained already is no news
 *	PROGRAMS two programs of one network have the same values where they meet */
#ifndef JUDGE_WITNESS_H
#define JUDGE_WITNESS_H

#define ACC_WITNESSES(WITNESS) \
	WITNESS(usual_error, ROUNDING, NOTHING, ACCUSES, \
		"an output is off by no more than its operator, its dtype and its inputs explain") \
	WITNESS(bench_noise, ROUNDING, NOTHING, EXCUSES, \
		"two runs of the bench differ as much in this tensor") \
	WITNESS(absolute_error, BOUND, ELEMENTS, ACCUSES, \
		"what moves, adds or has a known slope makes absolute errors no larger") \
	WITNESS(error_slope, BOUND, ELEMENTS, ACCUSES, \
		"errors of rounding have either sign, and cancel over the elements") \
	WITNESS(error_mean, BOUND, ELEMENTS, ACCUSES, \
		"errors of rounding have either sign, and cancel in a mean") \
	WITNESS(other_places, BOUND, ELEMENTS, ACCUSES, \
		"numbers that came in the right places stand in the right places") \
	WITNESS(finite_sum, BOUND, NOTHING, ACCUSES, "what is finite adds up to what is") \
	WITNESS(rounded_angle, BOUND, ELEMENTS, ACCUSES, \
		"what an angle is made of is not rounded so far that the angle is another") \
	WITNESS(own_statistics, OWN, STATISTICS, ACCUSES, \
		"the statistics of an output follow from those of the device's own inputs") \
	WITNESS(other_shape, OWN, NOTHING, ACCUSES, \
		"an output of equal arguments and inputs of equal shapes has the bench's shape") \
	WITNESS(acquitted, OWN, RECOMPUTED, EXCUSES, \
		"an output that its own recorded inputs give is right") \
	WITNESS(hidden_nan, OWN, ELEMENTS, EXCUSES, \
		"a tool that is known to lose a NaN was given one") \
	WITNESS(own_formula, BOUND, ELEMENTS, EXCUSES, \
		"what a tool is known to compute by a formula of its own is off as that rounds") \
	WITNESS(noise_step, BOUND, NOTHING, EXCUSES, \
		"a bias's gradient that is noise is a step of the learning rate, of either sign") \
	WITNESS(recomputed, OWN, RECOMPUTED, ACCUSES, \
		"an output is what its own recorded inputs give") \
	WITNESS(made_input, GIVEN, NOTHING, ACCUSES, \
		"an input is no further off than the output that it is") \
	WITNESS(unmade_input, GIVEN, NOTHING, ACCUSES, \
		"an input that no op call made is no further off than the op calls before it") \
	WITNESS(gradient_sum, GIVEN, NOTHING, ACCUSES, \
		"a gradient that is a sum of others has their errors") \
	WITNESS(equal_weight, GIVEN, NOTHING, ACCUSES, "weights are the same on both sides") \
	WITNESS(norm_state, GIVEN, NOTHING, ACCUSES, \
		"where outputs differ, running means and variances do not") \
	WITNESS(equal_argument, GIVEN, NOTHING, ACCUSES, \
		"where outputs differ, numbers, flags and modes of the op call do not") \
	WITNESS(shards, GIVEN, NOTHING, ACCUSES, \
		"the parts that the ranks of one side have are together what each of the other has whole") \
	WITNESS(unfed, GIVEN, NOTHING, ACCUSES, \
		"an optimizer that is given weights and gradients on one side is on the other") \
	WITNESS(other_choice, CHOICE, NOTHING, EXCUSES, \
		"of values that are equal but for noise another place may be found or taken") \
	WITNESS(counted_places, CHOICE, STATISTICS, EXCUSES, \
		"how often each place was chosen differs with the choice") \
	WITNESS(carried_error, NEWS, ELEMENTS, EXCUSES, \
		"what is moved or added keeps its absolute error, what is multiplied its relative one") \
	WITNESS(handed_on, NEWS, NOTHING, EXCUSES, \
		"an output that is what another op call gave has that one's error") \
	WITNESS(parted_programs, PROGRAMS, ELEMENTS, ACCUSES, \
		"what one program makes of values that agree is what the other makes of them") \
	WITNESS(program_end, PROGRAMS, NOTHING, ACCUSES, \
		"two programs of one network end in the same values") \
	WITNESS(weight_step, PROGRAMS, ELEMENTS, ACCUSES, \
		"weights that agree before the step of an optimizer agree behind it") \
	WITNESS(scaled_loss, PROGRAMS, ELEMENTS, ACCUSES, \
		"the loss is what the bench's op call gives, and no multiple of it") \
	WITNESS(cut_gradients, PROGRAMS, NOTHING, ACCUSES, \
		"what gradients are multiplied by before the optimizer is the bench's, too") \
	WITNESS(lost_reduction, PROGRAMS, NOTHING, ACCUSES, \
		"what the ranks of one side join, those of the other do, too") \
	WITNESS(other_constant, PROGRAMS, NOTHING, DOUBTS, \
		"a number that no op call makes is the same on both sides") \
	WITNESS(quiet_argument, GIVEN, NOTHING, DOUBTS, \
		"an argument that has a default is the same on both sides, though rounding hides what it does") \
	WITNESS(few_levels, PROGRAMS, NOTHING, EXCUSES, \
		"weights of few levels make others of all that two programs could be paired by") \
	WITNESS(computed_otherwise, PROGRAMS, NOTHING, EXCUSES, \
		"what lies between values that agree may be computed otherwise") \
	WITNESS(axis_order, PROGRAMS, NOTHING, EXCUSES, \
		"axes may lie in another order, if they do so throughout") \
	WITNESS(inverse_mask, PROGRAMS, ELEMENTS, EXCUSES, \
		"a mask may say what to take or what to leave out") \
	WITNESS(hidden_scores, PROGRAMS, ELEMENTS, EXCUSES, \
		"what a softmax leaves nothing of may be any number") \
	WITNESS(ignored_labels, PROGRAMS, ELEMENTS, EXCUSES, \
		"labels that a loss leaves out may be any number")

#define ACC_WITNESS_ENUM(id, principle, needs, level, what) ACC_WITNESS_##id,
enum acc_witness_id { ACC_WITNESSES(ACC_WITNESS_ENUM) ACC_NWITNESSES };

#endif
