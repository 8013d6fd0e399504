/* sample.h - samples of two rollouts are joined apart from all else, for they have no order */
#ifndef ALIGN_SAMPLE_H
#define ALIGN_SAMPLE_H

#include "align/impl.h"

struct acc_samples;
struct acc_samples *acc_samples_open(const char *tmpdir,
	struct acc_err *e); /* tmpdir is borrowed */
void acc_samples_close(struct acc_samples *s);
/* Keep one. 0 or < 0. */
int acc_samples_add(struct acc_samples *s, enum acc_side side, const struct acc_rec *r,
	struct acc_err *e);
/* Hand out the pairs, in the order of the device; then what only the bench has. */
int acc_samples_run(struct acc_samples *s, acc_align_fn *fn, void *arg, struct acc_err *e);

#endif
