/* Records kept aside on disk until all are read.
 *
 * Records that follow each other are much alike: they have the same keys, and most of their
 * values. So the keys are kept once, in memory, and of each record the values that differ from
 * the last under the same key, and from those of the other side of a pair, in segments of a few
 * records that can be read alone. They come back as fields, a prefix before each key. */
#ifndef STREAM_STORE_H
#define STREAM_STORE_H

#include "acc/stream.h"

struct acc_store;
struct acc_store *acc_store_open(const char *tmpdir, const char *prefix, struct acc_err *e);
/* The number of a record's kind and keys, the same for all that have the same in the same order;
 * < 0: failure. */
int64_t acc_store_keys(struct acc_store *st, const struct acc_rec *r, struct acc_err *e);
/* Keep a record with these keys; *at is its handle. */
int acc_store_put(struct acc_store *st, const struct acc_rec *r, uint32_t keys, uint64_t *at,
	struct acc_err *e);

/* A record that was kept: valid until the next one is fetched. */
struct acc_stored {
	struct acc_str kind;
	uint32_t n;          /* fields */
	struct acc_str name; /* the field of this name, as MessagePack; empty: there is none */
	struct store_keys *keys;
	const struct store_value *v;
};
/* Cheap where handles are visited in rising order. */
int acc_store_get(struct acc_store *st, uint64_t at, struct acc_stored *out, struct acc_err *e);
/* Its fields behind those of out, each with its value as bytes alone: see acc_raw_values. 0 or < 0, see
 * acc_rec_fail. */
int acc_store_push(const struct acc_stored *r, struct acc_rec *out);
/* Of a pair, the fields of both sides, those that both have alike once, under "ab."; *which: a hash of which these
 * are. */
int acc_store_push_pair(const struct acc_stored *a, const struct acc_stored *b, struct acc_rec *out,
	uint64_t *which);
/* A hash of the kind and keys of a record. */
uint64_t acc_stored_shape(const struct acc_stored *r);
/* The same as a record, valid until the next call. */
int acc_store_rec(struct acc_store *st, uint64_t at, struct acc_rec **out, struct acc_err *e);
void acc_store_close(struct acc_store *st);

#endif
