/* keylist.h - records by the list of their keys, see accstream(5)
 *
 * A list is told once and has a number. A record that names it has no keys, and of its values those
 * alone that are other ones than the last under their key. Writer and reader keep the same lists and the
 * same last values. */
#ifndef STREAM_KEYLIST_H
#define STREAM_KEYLIST_H

#include "acc/stream.h"

/* Most lists, keys of all of them together, and bytes of a value that is kept as the last one. */
enum { KEYLISTS_MOST = 1024, KEYLISTS_KEYS = 65536, KEYLISTS_VALUE = 255 };

/* The last value under a key. */
enum { KEYLISTS_NONE = INT32_MAX };
struct acc_last {
	bool have;
	uint32_t n;       /* of a writer KEYLISTS_NONE where it has none */
	struct acc_val v; /* for readers; arrays stand in mem */
	struct acc_arena mem;
	uint8_t raw[KEYLISTS_VALUE + 1]; /* n bytes of MessagePack */
};

/* Copy a value's n bytes, up to KEYLISTS_VALUE. Behind p so many can be read that they are copied 16 at a time. */
static inline void
acc_last_copy(struct acc_last *last, const uint8_t *p, uint32_t n)
{
	uint32_t i = 0;
	do {
		memcpy(last->raw + i, p + i, 16);
		i += 16;
	} while (i < n);
}

struct acc_keylist {
	struct acc_str kind;
	uint32_t n, number;
	uint64_t shape; /* as acc_rec.shape */
	const struct acc_str *key;
	struct acc_last **last; /* of each key */
	uint8_t *same; /* of each key, is it a side's name, which is `name` where it is left out? */
	uint8_t *holds; /* of each key, an enum acc_under */
	/* Does a record of it come to what has come, and of no side, the device's and the bench's, which key says where
	 * payload is; KEYLISTS_KEYS: none. See holds.c. */
	bool comes;
	struct acc_keylist_place {
		uint32_t src, seq, file;
	} place[3];
};

/* Zero it to start. */
struct acc_keylists {
	struct acc_keylist **v;
	uint32_t n, nlast;
	size_t cap, cap_last;
	uint64_t keys;
	struct acc_map numbers; /* of keys in last */
	struct acc_last **last;
	struct acc_ids by_shape;
	struct acc_arena mem;
	/* Of a reader, the list of the record that was read last, NULL: it had its keys, or was a list;
	 * and which of its values were there. */
	const struct acc_keylist *now;
	const uint8_t *there;
};

/* The keys of a record that has a shape, whose keys are known to stand once. NULL: there are too many, or memory
 * ran out, which rc tells: 0 or ACC_ENOMEM. */
struct acc_keylist *acc_keylist_new(struct acc_keylists *ls, const struct acc_rec *r,
	uint64_t shape, int *rc);
/* May records of this kind have a list? */
bool acc_keylist_may(struct acc_str kind);
void acc_keylists_release(struct acc_keylists *ls);

/* Append a record, by its list where it may have one, with what tells of a list that is new. Its shape is 0 where its
 * keys are not known to stand once; sh has the shapes of those that were looked at. */
struct acc_shapes;
int acc_encode_listed(const struct acc_rec *r, struct acc_shapes *sh, struct acc_keylists *ls,
	struct acc_buf *out, struct acc_err *e);
/* Is what begins here a list, or a record by one? Of the n > 0 bytes that are there. */
static inline bool
acc_is_listed(const uint8_t *p, size_t n)
{
	if ((p[0] & 0xf0) != 0x90)
		return p[0] == 0xdc || p[0] == 0xdd;
	return n == 1 ? p[0] != 0x92 : (p[1] & 0xe0) != 0xa0 && p[1] != 0xd9;
}
struct acc_shapes;
/* As acc_decode_open of what acc_is_listed. ls->now is its list; of a list that was told NULL. */
int64_t acc_decode_listed(const void *buf, size_t len, struct acc_rec *r, struct acc_keylists *ls,
	struct acc_shapes *sh, struct acc_err *e);

#endif
