/* What the files that pair loose tensors share. */
#ifndef ALIGN_LOOSE_H
#define ALIGN_LOOSE_H

#include "align/impl.h"

enum { LOOSE_DIMS = 4, LOOSE_INDICES = 6 };

/* The numbers in a name, in order. */
struct loose_index {
	int32_t v[LOOSE_INDICES];
	uint32_t n;
};

/* A tensor (or value) that belongs to no op call: a weight, a batch, the content of a file. */
struct loose {
	struct acc_str path; /* its name without that of the file, as the rules have it by now */
	uint64_t key;        /* in the round that runs */
	uint64_t bytes;      /* checksum and data type; 0: unknown */
	uint64_t count;      /* elements; 0: unknown */
	uint32_t op, item;
	uint32_t ndim; /* axes of more than one element; above LOOSE_DIMS: not kept */
	int64_t shape[LOOSE_DIMS];
	/* Its extremes, sum and sum of squares: none of them depends on the order of its elements. */
	bool measured;
	double max, min, sum, square;
};

struct loose_side {
	struct acc_half *h;
	struct loose *v; /* those that have no partner yet, in order; at first all */
	uint32_t n, all; /* all: with those that have a partner */
};

struct loosely {
	struct acc_joined *j;
	struct loose_side s[2];
	const struct acc_known_names *known; /* or NULL */
	int drop[2];                         /* words before the names that the other side lacks */
	struct loose (*pair)[2];             /* what was paired so far */
	uint32_t npair;
	size_t pair_cap;
	struct acc_arena mem;
	struct acc_err *e;
	bool failed; /* memory ran out where nothing could be said */
};

/* --- loose_pair.c --- */
/* Leave out what has a partner now. */
void acc_loose_shrink(struct loose_side *s);
/* These two belong together. */
void acc_loose_mate(struct loosely *l, const struct loose *x, const struct loose *y,
	enum acc_align_how how);
/* x of that side belongs to y, too, which has a partner. 0. */
int acc_loose_tie(struct loosely *l, int side, const struct loose *x, const struct loose *y);
/* May these two be the same weight? The same extents in any order, or all but one. */
bool acc_loose_fits(const struct loose *x, const struct loose *y);
/* Pair equal keys that are as often on both sides, in order, or only count them; only, or NULL:
 * those of which it is true. Their number or < 0. */
typedef bool acc_loose_fits_fn(const struct loose *x, const struct loose *y);
int64_t acc_loose_pair(struct loosely *l, enum acc_align_how how, bool count_only,
	acc_loose_fits_fn *only);
/* A name with # for each of its numbers, in out; the numbers in at. Without memory "", and l has failed. */
struct acc_str acc_loose_template(struct loosely *l, struct acc_buf *out, struct acc_str s,
	struct loose_index *at);

/* loose_number.c: of names that are no more than numbers, which shapes or contents contradict: all is paired anew. 1: so it is. */
int acc_loose_numbers(struct loosely *l);
/* loose_state.c: the states of optimizers, whose numbers may be other parameters' on the two sides. 0 or < 0. */
int acc_loose_states(struct loosely *l);
/* loose_known.c: names of known programs. 1: names have changed. */
int acc_loose_known(struct loosely *l);
/* Several that have one name, and one of the other side that has it. */
int acc_loose_joined(struct loosely *l);
/* loose_content.c: the same content. */
int acc_loose_content(struct loosely *l);
/* Is the content of y that of x, up to a cast? */
bool acc_loose_close(const struct loose *x, const struct loose *y);
/* What may be paired by content: for each tensor of the device one of the bench, if there is no other
 * choice on either side. */
struct loose_matching {
	uint32_t *to, *from; /* of each: its place on the other side, or ACC_NOMATE */
};

/* loose_pattern.c: content that stands under the name of something else is no pair. */
int acc_loose_doubt(struct loosely *l, struct loose_matching *mt);
/* What has no partner belongs to what the names of the pairs say. */
int acc_loose_pattern(struct loosely *l);
/* loose_sum.c: a packed tensor and two or three others whose content it is made up of. */
int acc_loose_sums(struct loosely *l);
/* loose_part.c: the same by extents alone. */
int acc_loose_parts(struct loosely *l);

/* A place of one side, to be sorted by a key, then by where it stands. */
struct loose_key {
	uint64_t key;
	double square; /* of those that are compared by content: its sum of squares */
	uint32_t at;
};
int acc_loose_cmp(const void *x, const void *y);
/* How many keys from k[i] on are the same. */
uint32_t acc_loose_run(const struct loose_key *k, uint32_t i, uint32_t n);

#endif
