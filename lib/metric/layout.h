/* layout.h - in which order two tensors hold the same numbers (inside lib/metric)
 *
 * From two shapes, the ways in which one tensor could be viewed so that element by element, in
 * row-major order, it is the other: axes in another order, axes split or joined, a part of a
 * packed tensor. Which of them it is, if any, only the content tells. */
#ifndef ACC_METRIC_LAYOUT_H
#define ACC_METRIC_LAYOUT_H

#include "metric/side.h"

enum { LAYOUT_DIMS = 8, MAX_LAYOUTS = 256, MAX_WEIGHT_LAYOUTS = 1024 };

/* One tensor viewed as torch would: t.view(...).narrow(...).permute(...).reshape(...). */
struct layout {
	char side;     /* which one: 'a' or 'b' */
	uint8_t nview; /* 0: its own shape */
	int64_t view[LAYOUT_DIMS];
	int part_dim; /* < 0: all of it */
	int64_t part_start, part_len;
	bool cut; /* and a part of a second axis */
	int cut_dim;
	int64_t cut_start, cut_len;
	struct acc_groups groups; /* of the first axis; then there is nothing of the others here */
	bool permuted, reshaped;
	/* The part is the beginning of the whole; is what is behind it padding, all zero or each index
	 * like the last? "all", "some", "no"; NULL: it is no such part. */
	const char *padded;
	uint8_t nperm, perm[LAYOUT_DIMS];
};

/* The layouts that fit the shapes, but row-major order as it is: their number. The likeliest
 * first; beyond MAX_LAYOUTS they are left out. */
size_t acc_layouts(const struct acc_ref *a, const struct acc_ref *b,
	struct layout out[MAX_LAYOUTS]);
/* Layouts that only weights have: rows of heads or of joined weights side by side or one behind the
 * other, experts in one tensor. */
size_t acc_weight_layouts(const struct acc_ref *a, const struct acc_ref *b,
	struct layout out[MAX_WEIGHT_LAYOUTS]);
/* The tensor so viewed; false where blocks cannot be viewed so. */
bool acc_layout_view(const struct layout *l, const struct acc_ref *ref, struct acc_ref *out);
/* As m.layout has it. */
void acc_layout_text(const struct layout *l, char *buf, size_t size);

/* How far apart two tensors are, in the spread of b: |a - b| / |b - mean b|. Infinite where NaN
 * or infinities differ; NaN where b is constant and a is not the same. */
double acc_layout_far(const struct acc_reading *r);
/* Does it look as if row-major order were the right one? */
bool acc_layout_right(double direct);
/* Are tensors of n elements that are so far apart the same content in another order? `direct`:
 * how far apart they are in row-major order, infinite where that is none. */
bool acc_layout_is(double far, double direct, uint64_t n);
/* The layout in which a sample of the two agrees best: 1, or 0 where none does. *ref: the tensor
 * so viewed. What cannot be read has none, nor what is compressed beyond 8 MiB. */
int acc_layout_find(struct acc_roots *roots, const struct side *a, const struct side *b,
	struct layout *l, struct acc_ref *ref);

#endif
