/* What the files that pair loose tensors share. */
#ifndef ALIGN_LOOSE_H
#define ALIGN_LOOSE_H

#include "align/impl.h"

enum { LOOSE_DIMS = 4 };

/* A tensor (or value) that belongs to no op call: a weight, a batch, the content of a file. */
struct loose {
	struct acc_str path; /* its name without that of the file */
	uint64_t key;        /* in the round that runs */
	uint64_t bytes;      /* checksum and data type; 0: unknown */
	uint32_t op, item;
	uint32_t ndim; /* axes of more than one element; above LOOSE_DIMS: not kept */
	int64_t shape[LOOSE_DIMS];
};

struct loose_side {
	struct acc_half *h;
	struct loose *v; /* those that have no partner yet, in order */
	uint32_t n, all; /* all: with those that had a partner before */
};

struct loosely {
	struct acc_joined *j;
	struct loose_side s[2];
	struct acc_arena mem;
	struct acc_err *e;
};

/* Leave out what has a partner now. */
void acc_loose_shrink(struct loose_side *s);
/* These two belong together. */
void acc_loose_mate(struct loosely *l, const struct loose *x, const struct loose *y,
	enum acc_align_how how);
/* One packed tensor against its parts. */
int acc_loose_parts(struct loosely *l);

#endif
