/* replace.h - the bench's tensors under the device's names, for an engine to go on from
 *
 * Of the pairs of a stream each output of the device that has a partner can be fed: the engine gets the bench's
 * values in place of its own. Outputs stand in the order of the stream, those of one call together; the first
 * `n` calls are fed, or not. What runs behind them then starts from what is right, so where the end begins to
 * agree the fault is.
 *
 * Names come from a dump: a file is NAME.npy, where all but letters, digits and _.:+-,=@, and a leading '.', are
 * %XX, so that no name leads out of the folder or means anything to a shell. Files hold the bench's values in the
 * device's shape and order of axes, as f32 or f64 where the device has another float, else in the bench's dtype.
 * Layer lib/replace, on base, stream, payload, metric. */
#ifndef ACC_REPLACE_H
#define ACC_REPLACE_H

#include "acc/payload.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_replace;
/* roots: borrowed; sources are learnt there. */
struct acc_replace *acc_replace_open(struct acc_roots *roots, struct acc_err *e);
/* A record of a stream of pairs, measured ones, as m.layout says how axes lie. 0 or < 0. */
int acc_replace_add(struct acc_replace *x, const struct acc_rec *r, struct acc_err *e);
/* All have come. 0; ACC_EUSAGE: they are of several steps or ranks. */
int acc_replace_ready(struct acc_replace *x, struct acc_err *e);
/* How many calls can be fed. */
size_t acc_replace_count(const struct acc_replace *x);
/* The name by which the device has the i-th; the name of its file, without .npy. */
const char *acc_replace_name(const struct acc_replace *x, size_t i);
const char *acc_replace_typed(const struct acc_replace *x, size_t i, struct acc_arena *m);
/* Which of them has this name, key, or name of a file; SIZE_MAX: none. */
size_t acc_replace_find(const struct acc_replace *x, const char *name);
/* Which one a judge accused, if any: SIZE_MAX. */
size_t acc_replace_accused(const struct acc_replace *x);
/* The device's outputs that cannot be fed, for they have no partner, before those of call n (the number of calls: all),
 * or all, where their order is not known: how many, and their names as "a, b, ..." in m, the nearest first. NULL: no
 * memory. */
const char *acc_replace_left(const struct acc_replace *x, size_t n, size_t *left,
	struct acc_arena *m);
/* The folder holds the first n calls' files after this, and of the others none. 0 or < 0. */
int acc_replace_feed(struct acc_replace *x, int dirfd, size_t n, struct acc_err *e);
/* It holds none of them any more, whatever failed before. */
void acc_replace_clear(struct acc_replace *x, int dirfd);
/* Files that are there now, and how many bytes they have. */
size_t acc_replace_files(const struct acc_replace *x, uint64_t *bytes);
void acc_replace_close(struct acc_replace *x);

#ifdef __cplusplus
}
#endif

#endif
