/* brought.h - payload that comes in the stream, after all records: kept in an unlinked file, from
 * which tensors are read as from any other, and passed on at the end. */
#ifndef ACC_REPLAY_BROUGHT_H
#define ACC_REPLAY_BROUGHT_H

#include "acc/payload.h"

struct acc_brought;
struct acc_brought *acc_brought_open(const char *tmpdir, struct acc_roots *roots,
	struct acc_err *e);
int acc_brought_take(struct acc_brought *in, const struct acc_rec *data, struct acc_err *e);
/* A tensor record that refers to no file, and whose payload came, refers to it from now on. */
int acc_brought_refer(struct acc_brought *in, struct acc_rec *tensor, struct acc_err *e);
int acc_brought_emit(struct acc_brought *in, int (*emit)(void *arg, struct acc_rec *r), void *arg,
	struct acc_err *e);
void acc_brought_close(struct acc_brought *in);

#endif
