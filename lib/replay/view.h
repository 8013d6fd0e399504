/* view.h - an array seen through strides: what moves elements without looking at them */
#ifndef ACC_REPLAY_VIEW_H
#define ACC_REPLAY_VIEW_H

#include "acc/replay.h"

struct acc_view {
	uint32_t ndim;
	int64_t shape[ACC_DENSE_DIMS], stride[ACC_DENSE_DIMS];
	int64_t first; /* element that index (0, 0, ...) is at */
};
void acc_view_of(const struct acc_dense *d, struct acc_view *v);
size_t acc_view_count(const struct acc_view *v);
/* An evaluation that only notes where elements are (r->notes): those of one tensor are a view of
 * another. The tensors are called by their v, which is not read. */
struct acc_note {
	const double *whole, *part;
	struct acc_view v; /* of whole: the elements of part, in order */
	bool of_input;     /* whole is an input, and part an output; else the reverse */
};
enum { ACC_NOTES = 64 };
struct acc_notes {
	struct acc_note list[ACC_NOTES];
	uint32_t n;
};
/* 0, or < 0 with acc_cannot: there are too many. */
int acc_view_note(struct acc_replay *r, const double *whole, const struct acc_view *v,
	const double *part, bool of_input);
/* The output is all of the input, in order: copied, or noted. */
int acc_view_same(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *out);
/* Copy, row by row, or note; out must have the view's shape: < 0 with acc_cannot. */
int acc_view_copy(struct acc_replay *r, const struct acc_view *v, const double *from,
	const struct acc_dense *out);
/* The offsets of the view's elements, in order; NULL: acc_cannot was called. */
size_t *acc_view_offsets(struct acc_replay *r, const struct acc_view *v);

#endif
