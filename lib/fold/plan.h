/* plan.h - in which order parts stand, and whose elements follow a record */
#ifndef FOLD_PLAN_H
#define FOLD_PLAN_H

#include "fold/step.h"

/* Slices of a part, along the axis of the split. */
struct fold_piece {
	uint32_t part;
	uint64_t start, n;
};

/* In what order slices of the parts are a whole; n 0: one part behind the other. */
struct fold_pieces {
	const struct fold_piece *p;
	uint32_t n;
};

/* What the calls of one line of code say of one argument; or, where those of a line say nothing, those
 * that have other callers, as stages have, and take tensors of the same shapes. */
enum { FOLD_VOTES = 6 };
struct fold_class {
	uint64_t id;
	uint64_t at; /* a record of it */
	uint32_t n;
	struct {
		struct acc_fold_layout layout;
		uint32_t votes;
	} vote[FOLD_VOTES];
	uint32_t
		blank; /* calls of whose layout nothing is known, where others' that all ranks have is */
	struct acc_fold_layout given; /* n 0: not given */
	bool is_given, back;          /* back: of gradients */
	bool wide;                    /* whoever calls */
	bool in_turn;                 /* of that: somewhere the parts stand one behind the other */
	uint32_t summed, unsummed;    /* of that: outputs that a communication takes, or none */
	uint32_t talk;                /* the last of these, of the first rank */
};

/* In what order the parts stand in the whole, where an axis is split: found once, of a tensor that is the reference's.
 * Of a line of code, argument and axis: true for all of the same length; of one shape of it, as where a line lays
 * out all weights; of one tensor, such as tokens sorted by their experts. */
struct fold_order {
	struct fold_piece *piece;
	uint32_t npiece;
	bool theirs; /* they are of the parts of a reference that is several ranks: it has more of them */
	uint32_t right, wrong; /* tensors that are in this order, and that are not */
	bool plain;            /* one part behind the other */
	bool sure;             /* the first that was tried is plain, and not by chance */
	bool as_line;          /* of one shape: it is that of the line */
	double bits;           /* it is so by chance in one of 2 to the power of these */
};

/* Whose parts may stand in another order than one behind the other: of two sides of several ranks those along the
 * later axis, such as heads against samples; along one axis those of which there are more, and of as many nothing
 * tells. */
enum fold_whose { FOLD_MINE, FOLD_THEIRS, FOLD_NOBODY };

/* A tensor whose elements follow its record. */
struct fold_plan {
	uint32_t step, virtual, item; /* the parts: of this call */
	uint32_t order; /* its pieces; FOLD_NONE: one part, or a sum, or one behind the other */
	struct acc_place place;
	uint32_t rank; /* the only part, or the first of n, each so many ranks further */
	uint32_t n, stride;
	/* Where another axis of the mesh splits it, too: so many such rows of parts, one behind the other along an
	 * earlier axis of the tensor; 0 or 1: one. */
	struct {
		uint32_t n, stride;
		uint8_t axis;
	} row;
	enum fold_whose whose;
	bool rows; /* of one part: those of its first axis stand in another order */
	double scale;
	int64_t cut; /* of the axis; 0: all */
	int64_t seq;
};

/* May the elements of a tensor be given, and are they? */
struct fold_sight {
	uint64_t id
		[2]; /* equal for what is the same tensor of the first rank, and of the reference, as
			 * statistics show; 0: unknown */
	uint64_t call; /* equal for the forward and the backward of one call */
	uint8_t dtype;
	bool readable, seen, output, back, first; /* first: of its call */
	bool counts;                              /* what is made of it is as far off as it is */
	bool blank, summand; /* its layout is unknown; a reduction takes it here */
	bool nobody;         /* it is not the reference's that stands in its place */
};

#endif
