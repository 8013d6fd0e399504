/* measured.h - what witnesses of the default judge were measured to be worth
 *
 * MEASURED(id, right, of): of so many op calls that it named, in cases that did not teach it, so many were right;
 * tests/RESULTS.md has the table, tests/networks/run, tests/programs/score.py and tests/record/layouts.py made it. A witness that is not here
 * was not measured. */
#ifndef JUDGE_MEASURED_H
#define JUDGE_MEASURED_H

#define ACC_WITNESS_MEASURED(MEASURED) \
	MEASURED(usual_error, 254, 265) \
	MEASURED(absolute_error, 4, 4) \
	MEASURED(error_slope, 14, 14) \
	MEASURED(error_mean, 3, 7) \
	MEASURED(own_statistics, 15, 16) \
	MEASURED(recomputed, 275, 279) \
	MEASURED(made_input, 15, 22) \
	MEASURED(unmade_input, 14, 14) \
	MEASURED(equal_weight, 32, 33) \
	MEASURED(equal_argument, 86, 88) \
	MEASURED(parted_programs, 360, 432) \
	MEASURED(program_end, 20, 30) \
	MEASURED(shards, 12, 12) \
	MEASURED(unfed, 1, 1)

#endif
