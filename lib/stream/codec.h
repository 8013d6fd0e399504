/* What the files of lib/stream share. */
#ifndef STREAM_CODEC_H
#define STREAM_CODEC_H

#include "acc/stream.h"
#include "stream/few.h"

/* A record whose last field is a blob, all but the bytes of this blob. */
int acc_encode_but_blob(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e);
/* --- sum.c: the checksum at the end ---
 * It is of all bytes before its own, but for the contents of large data: what passes payload on need not
 * look at it. */
enum { ACC_LARGE_DATA = 64 << 10 };
/* How many of a record's bytes, its last, the checksum leaves out. */
uint32_t acc_large_data(const struct acc_rec *r);
/* The end record of n records behind bytes with this checksum. */
int acc_encode_end(struct acc_buf *out, uint64_t n, int status, uint32_t crc, struct acc_err *e);
/* Is the checksum of the end record, whose len bytes stand at p, the one of these behind bytes with `crc`?
 * A stream of minor version 0 need have none. 0 or < 0. */
int acc_sum_check(int64_t minor, const struct acc_rec *end, const void *p, size_t len, uint32_t crc,
	struct acc_err *e);
/* --- shape.c: the kinds and keys of the records of a stream ---
 * Most records have those of one before. To see that takes a comparison for each key, while it
 * is read anyway; who reads the record then need not look at its keys again. */
struct acc_shape {
	uint64_t hash;
	struct acc_str kind;
	uint32_t n;
	const struct acc_str *key;
	const struct acc_shape_key *packed;
	const uint8_t *holds;   /* of each key, an enum acc_under */
	struct acc_shape *next; /* of those with the same number of fields */
};
/* A key of up to 31 bytes as MessagePack: its first 8 bytes, as far as there are so many, and its last 8;
 * of a longer one something that none has. */
struct acc_shape_key {
	uint64_t head, mask, tail;
	uint32_t n; /* of the key */
};
static inline uint64_t
acc_load8(const void *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}
/* Zero it to start. */
struct acc_shapes {
	struct acc_shape *by_n[64];
	uint32_t n;
	struct acc_arena mem;
	struct acc_buf id;
	const uint8_t *holds; /* of the record that was read last; NULL: its keys are new */
};
/* A key without the side that it is of, and which sides these are: bit 0: a, bit 1: b; 0: none. */
unsigned acc_key_sides(struct acc_str *key);
/* The first of this kind and number of fields, or NULL. */
const struct acc_shape *acc_shape_first(const struct acc_shapes *sh, struct acc_str kind,
	uint32_t n);
/* After `like` the next of the same kind and number of fields that has the first n keys of f;
 * NULL: there is none. */
const struct acc_shape *acc_shape_next(const struct acc_shape *like, const struct acc_field *f,
	uint32_t n);
/* Refuse a record with a key that stands twice, or says what another one does (a.x beside ab.x). 0 or < 0. */
int acc_rec_once(const struct acc_rec *r, struct acc_err *e);
/* The same, of many: only kinds and keys that are new are looked at. *hash: as acc_rec.shape. */
int acc_shape_check(struct acc_shapes *sh, const struct acc_rec *r, uint64_t *hash,
	struct acc_err *e);
/* The hash of a record's kind and keys, which no reader has seen. They are kept, unless these are too
 * many. */
uint64_t acc_shape_new(struct acc_shapes *sh, const struct acc_rec *r);
void acc_shapes_release(struct acc_shapes *sh);

/* --- holds.c: what stands under a key, and what records refer to --- */
enum acc_under {
	ACC_UNDER_ANY,
	ACC_UNDER_INT,
	ACC_UNDER_NUMBER,
	ACC_UNDER_STATISTIC,
	ACC_UNDER_TEXT,
	ACC_UNDER_INTS,
	ACC_UNDER_TEXTS,
	ACC_UNDER_SEQ, /* with the source, which tensor payload is of: of one that no file holds */
	ACC_UNDER_FILE,
	ACC_UNDER_STACK, /* from here on, the id of a record that stands before */
	ACC_UNDER_SOURCE,
	ACC_UNDER_SOURCES
};
enum acc_under acc_key_under(struct acc_str key);
/* Does it tell where payload is? */
static inline bool
acc_under_place(enum acc_under h)
{
	return h == ACC_UNDER_SEQ || h == ACC_UNDER_FILE || h == ACC_UNDER_SOURCE;
}
/* What has come of a stream. Zero it to start. */
struct acc_came {
	struct acc_ids stacks, sources; /* hashes of their ids */
	/* Hashes of tensors that no file holds: a list until payload comes, which of most streams never does. */
	struct acc_buf list;
	struct acc_ids tensors;
	bool payload;
	/* Of each side, the source that was named last, and its hash. */
	struct acc_came_source {
		char id[16];
		uint32_t n;
		uint64_t hash;
	} last[3];
};
/* Is each value of its key's type, and has come what it names? holds: of each key, or NULL. 0 or < 0. */
int acc_came_check(struct acc_came *seen, const struct acc_rec *r, const uint8_t *holds,
	struct acc_err *e);
/* Does more than what such records hold need looking at: do they name payload, or are they what others name? */
bool acc_came_keeps(struct acc_str kind);
/* The same of a record by a list, of which those values need be looked at that it does not share with the one
 * before. */
struct acc_keylists;
int acc_came_listed(struct acc_came *seen, const struct acc_rec *r, const struct acc_keylists *ls,
	struct acc_err *e);
void acc_came_release(struct acc_came *seen);

/* acc_decode, with the record's shape; sh may be NULL, of bytes that acc_encode made. If rest is not NULL, not all bytes need be there: if the
 * last field is a blob, the last *rest bytes of this may lie beyond buf. Its length is that of
 * all. */
int64_t acc_decode_open(const void *buf, size_t len, struct acc_rec *r, struct acc_shapes *sh,
	size_t *rest, struct acc_err *e);

/* The values of fields that have them as bytes alone, behind which KEYS_PAD more can be read: those of
 * acc_encode. 0 or < 0. */
int acc_raw_values(struct acc_rec *r, struct acc_err *e);

/* Does a record have key i of a shape at p? Of 32 bytes there, all can be read. */
static inline bool
acc_shape_has(const struct acc_shape *s, uint32_t i, const uint8_t *p)
{
	const struct acc_shape_key *k = &s->packed[i];
	if ((acc_load8(p) & k->mask) != k->head)
		return false;
	if (k->n < 8)
		return true;
	return acc_load8(p + k->n - 7) == k->tail &&
	       (k->n < 16 || acc_bytes_same(p + 8, s->key[i].p + 7, k->n - 15));
}

static inline bool
acc_key_same(struct acc_str a, struct acc_str b)
{
	return a.n == b.n && acc_bytes_same(a.p, b.p, a.n);
}

#endif
