/* side.h - the op calls of a side, by rank and step, and what is known of their tensors */
#ifndef FOLD_SIDE_H
#define FOLD_SIDE_H

#include "acc/fold.h"
#include "acc/payload.h"
#include "acc/stream.h"
#include "fold/limits.h"

#define FOLD_NONE UINT32_MAX
#define FOLD_NOWHERE UINT64_MAX

/* What is known of a tensor, as struct acc_fold_stat has it: there are millions, of few shapes. */
struct fold_stat {
	const int64_t *
		shape; /* of its side, or of that of the parts; ndim of ACC_FOLD_NDIM + 1: unknown */
	double count, v[ACC_FOLD_NSTAT];
	uint8_t ndim, known;
};

/* One record of an op call. */
struct fold_item {
	uint64_t at;  /* where its record is kept */
	uint64_t pos; /* hash of io and pos */
	struct fold_stat stat;
	double tol; /* half of the dtype's digits */
	bool tensor, output;
	bool exact;  /* of integers or bools */
	bool listed; /* one of a list */
	bool fills;  /* a buffer that the call fills: no input */
	bool moved;  /* it has the place of the reference's (members.c) */
	/* Of the reference: its ranks have parts of it, in a layout not yet known. Nothing is known of the whole then, but in
	 * v[ACC_FOLD_MAX] and v[ACC_FOLD_MIN] of `stat` stand the largest and the smallest of all parts; NAN: unknown. */
	bool split;
};

enum fold_dir { FOLD_FORWARD, FOLD_BACKWARD, FOLD_OTHER };

struct fold_call {
	uint64_t key, op, base; /* op: of operator and pass; base: of the operator */
	uint64_t twin;          /* of operator, number and pass */
	uint64_t line;          /* of the line of code; where stacks are unknown, of the shapes */
	int64_t call;
	int64_t peer; /* the rank that it hands a tensor to, or gets one from; -1 */
	uint32_t segment, first, n;
	uint32_t of; /* of a reference that was several ranks: the virtual call of its step */
	uint8_t dir;
	bool talks, hands; /* to other ranks; to one, as stages do */
	bool reduces;      /* what other ranks have, too */
	bool sums;         /* that, and gives it to all of them */
	bool scales, adds; /* a number; another tensor */
	bool moves;        /* elements alone */
	bool weighs;       /* one of its inputs is a weight */
	bool late;  /* behind the first gradient of its rank and step, or what hands that on */
	bool mated; /* there is such a call in the reference */
};

/* The op calls of one rank of one step, in order. */
struct fold_segment {
	int64_t step, rank;
	uint32_t first, n;
	bool back; /* a gradient was among them */
};

struct fold_side {
	struct fold_item *item;
	struct fold_call *call;
	struct fold_segment *segment;
	uint32_t nitem, ncall, nsegment;
	size_t item_cap, call_cap, segment_cap;
	struct acc_ids by_key, by_twin; /* with the segment, to calls */
	struct acc_ids by_shape;        /* to shapes, each of ACC_FOLD_NDIM and less, all in mem */
	const int64_t **shape;
	uint32_t nshape;
	size_t shape_cap;
	struct acc_arena mem;
};

#endif
