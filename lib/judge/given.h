/* given.h - what a call was given, and what it may add to that */
#ifndef JUDGE_GIVEN_H
#define JUDGE_GIVEN_H

#include "judge/item.h"

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
	unsigned heard; /* inputs that were compared, or what they were made of */
	bool exact;     /* everything has equal bits */
	bool unseen;    /* something was not measured */
	bool saved;     /* backwards, all that its forward call took and made was compared */
	bool inner;     /* something was not, but what it was made of was */
	bool permuted;  /* the right numbers in other places */
	bool masks;     /* all tensors are masks */
	bool places;    /* some tensor is of places (or choices), known by statistics */
	uint64_t
		part; /* elements of the largest tensor of which one side has but a part, as of a batch */
	bool unwritten; /* it writes to a part of what nobody wrote before, and the rest differs: see acc_left_out */
};

#endif
