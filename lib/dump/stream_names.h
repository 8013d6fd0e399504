/* stream_names.h - tensors of a stream that say by name which went in */
#ifndef DUMP_STREAM_NAMES_H
#define DUMP_STREAM_NAMES_H

#include "acc/base.h"
#include "acc/record.h"

struct acc_stream_names;
struct acc_stream_names *acc_stream_names_new(struct acc_err *e);
void acc_stream_names_free(struct acc_stream_names *s);
/* Replace "from" by what it names, and remember what is named ("as"). 0 or < 0. */
int acc_stream_names_resolve(struct acc_stream_names *s, struct acc_rec *r, struct acc_err *e);
/* Who else has the payload of a data record, one after the other: *at is 0 at first; *seq: its number. false: no more. */
bool acc_stream_names_next(const struct acc_stream_names *s, const struct acc_rec *data,
	uint64_t *at, int64_t *seq);

#endif
