/* keys.h - the kinds and keys of the records in a store, each combination once */
#ifndef STREAM_KEYS_H
#define STREAM_KEYS_H

#include "acc/stream.h"

/* Most combinations; bytes that can be read behind a value that was kept. */
enum { KEYS_MOST = 65536, KEYS_PAD = 16 };

/* Keys that stand together in a record. */
struct store_keys {
	struct acc_str kind;
	uint32_t n, name;                   /* name: which field that is; n: there is none */
	uint64_t shape;                     /* a hash of the kind and the keys */
	struct acc_str *key, *own, *shared; /* bare, with the store's prefix, and with "ab." */
	uint32_t *slot;                     /* the number of each key, the same in all records */
	uint32_t *twin; /* of "b.x" the last "a.x" before it, of "a.x" the last "x"; itself: none */
	/* Which field of the other side's keys, looked at last, has the same key; ACC_NOID: none. */
	const struct store_keys *other;
	uint32_t *same;
};

/* Zero it to start, but for the prefix. */
struct acc_keys {
	struct acc_str prefix;
	struct acc_arena mem;
	struct acc_ids by_shape;
	struct acc_map by_keys, slots; /* slots: the number of each key */
	struct store_keys **v;
	uint32_t n, last; /* last: the one that was found last */
	size_t cap;
	struct acc_buf id; /* to look up keys */
};
/* The number of a record's kind and keys; < 0: failure, of which e tells where it is ACC_EFORMAT. */
int64_t acc_keys_find(struct acc_keys *t, const struct acc_rec *r, struct acc_err *e);
void acc_keys_release(struct acc_keys *t);

#endif
