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
/* Copy, row by row; out must have the view's shape: < 0 with acc_cannot. */
int acc_view_copy(struct acc_replay *r, const struct acc_view *v, const double *from,
	const struct acc_dense *out);
/* The offsets of the view's elements, in order; NULL: acc_cannot was called. */
size_t *acc_view_offsets(struct acc_replay *r, const struct acc_view *v);

#endif
