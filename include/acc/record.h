/* record.h - the flat record: a kind and an ordered list of (key, value)
 *
 * Keys are found by linear search, once for all records of a shape, where that is known; for many
 * fields of many records there is acc_pick. A record that came from a stream remembers
 * the bytes of each value, so that a filter copies what it does not change.
 *
 * In a pair record, everything about one side stands under "a." (device) or "b." (bench), and what
 * both have alike may stand once, under "ab.". Functions therefore take a prefix: "", "a." or "b.",
 * and find what a side shares; who goes through the fields himself calls acc_rec_split before.
 */
#ifndef ACC_RECORD_H
#define ACC_RECORD_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum acc_type {
	ACC_V_NIL,
	ACC_V_BOOL,
	ACC_V_INT,  /* fits int64_t */
	ACC_V_UINT, /* only above INT64_MAX */
	ACC_V_F64,
	ACC_V_TEXT,
	ACC_V_BIN,
	ACC_V_INTS,
	ACC_V_TEXTS
};

struct acc_val {
	enum acc_type type;
	uint32_t
		n; /* elements of INTS or TEXTS; of F64: 1 where a stream had it in 64 bits, which then stay */
	union {
		bool b;
		int64_t i;
		uint64_t u;
		double f;
		struct acc_str s; /* TEXT, BIN */
		const int64_t *ints;
		const struct acc_str *texts;
	};
};

struct acc_field {
	struct acc_str key;
	struct acc_val v;
	const uint8_t *raw; /* msgpack of the value, if it came from a stream; else NULL */
	uint32_t nraw;
};

struct acc_rec {
	struct acc_str kind;
	struct acc_field *f;
	uint32_t n;
	size_t cap;
	/* A hash of the kind and the keys in their order, where a reader knows it; else 0. It goes
	 * when a field comes or goes. Who shortens f himself sets it to 0. */
	uint64_t shape;
	struct acc_arena mem; /* of everything put into this record */
	/* Memory ran out for something that was to be put into it, until it is started anew. What
	 * hands records on fails then, so that no field is left out where somebody did not look. */
	bool lost;
};

enum { ACC_MAX_RECORD = 4 << 20, ACC_MAX_FIELDS = 4096 };

/* Start empty, of this kind (copied). Keeps memory for the next round. 0 or ACC_ENOMEM. */
int acc_rec_start(struct acc_rec *r, struct acc_str kind);
void acc_rec_release(struct acc_rec *r);
static inline bool
acc_rec_is(const struct acc_rec *r, const char *kind)
{
	return acc_str_is(r->kind, kind);
}

/* Values to put. Strings and arrays are copied into the record by acc_put; a text that is NULL stands for
 * memory that ran out, and is not taken. */
struct acc_val acc_nil(void);
struct acc_val acc_bool(bool b);
struct acc_val acc_int(int64_t i);
struct acc_val acc_uint(uint64_t u); /* becomes ACC_V_INT where it fits */
struct acc_val acc_f64(double f);
struct acc_val acc_text(struct acc_str s);
struct acc_val acc_ctext(const char *s);
struct acc_val acc_ints(const int64_t *p, uint32_t n);
struct acc_val acc_texts(const struct acc_str *p, uint32_t n);

/* Say why one of the functions below failed with rc. Returns rc. */
int acc_rec_fail(struct acc_err *e, int rc);
/* Add prefix+key, or replace its value in place. 0, ACC_ENOMEM or ACC_ELIMIT. */
int acc_put(struct acc_rec *r, const char *prefix, const char *key, struct acc_val v);
/* The same without looking for an old value: the caller knows that there is none. */
int acc_add(struct acc_rec *r, const char *prefix, const char *key, struct acc_val v);
/* Room for n more fields (n <= ACC_MAX_FIELDS): where the first of them goes. They count once
 * r->n says so. NULL when memory runs out. */
struct acc_field *acc_rec_room(struct acc_rec *r, uint32_t n);
/* Append a field as it is: nothing is copied, the caller keeps what it points to. */
int acc_rec_push(struct acc_rec *r, const struct acc_field *f);
/* Add every field of src under a prefix; values are borrowed from src, not copied. */
int acc_rec_append(struct acc_rec *r, const char *prefix, const struct acc_rec *src);
/* A deep copy, as long-lived as dst. */
int acc_rec_copy(struct acc_rec *dst, const struct acc_rec *src);
/* Of a pair, each field that the sides share becomes one of each, in the order in which the device has
 * them. 0, ACC_ENOMEM or ACC_ELIMIT. */
int acc_rec_split(struct acc_rec *r);
/* Does a side share the field under this key ("ab.shape") with the other? */
static inline bool
acc_is_shared(struct acc_str key)
{
	return key.n > 3 && key.p[0] == 'a' && key.p[1] == 'b' && key.p[2] == '.';
}
/* Is this what a record says under `key`, or what its sides do: "a.shape" is, of "ab.shape"? */
bool acc_key_says(struct acc_str said, struct acc_str key);
/* Remove a field; absent is fine. */
void acc_del(struct acc_rec *r, const char *prefix, const char *key);

/* NULL where absent. Borrowed from the record. */
const struct acc_val *acc_get_str(const struct acc_rec *r, struct acc_str prefix,
	struct acc_str key);
static inline const struct acc_val *
acc_get(const struct acc_rec *r, const char *prefix, const char *key)
{
	return acc_get_str(r, acc_str(prefix), acc_str(key));
}
/* Which of many keys is it? For switch: (length, first byte, last byte) tell them apart; that it
 * is the one must still be checked. */
#define ACC_KEY(n, first, last) ((uint32_t)(n) << 16 | (uint32_t)(first) << 8 | (uint32_t)(last))
static inline uint32_t
acc_key(struct acc_str k)
{
	return k.n == 0 ? 0 : ACC_KEY(k.n, (uint8_t)k.p[0], (uint8_t)k.p[k.n - 1]);
}
/* Read a value as a type; false (and *out untouched) where v is NULL or of another type.
 * A number of any kind reads as f64, an int never from a float. */
bool acc_as_bool(const struct acc_val *v, bool *out);
bool acc_as_int(const struct acc_val *v, int64_t *out);
bool acc_as_f64(const struct acc_val *v, double *out);
bool acc_as_text(const struct acc_val *v, struct acc_str *out);
/* A text field, or an empty string where absent; the int or dflt. */
static inline struct acc_str
acc_get_text(const struct acc_rec *r, const char *prefix, const char *key)
{
	struct acc_str s = {"", 0};
	acc_as_text(acc_get(r, prefix, key), &s);
	return s;
}
static inline int64_t
acc_get_int(const struct acc_rec *r, const char *prefix, const char *key, int64_t dflt)
{
	acc_as_int(acc_get(r, prefix, key), &dflt);
	return dflt;
}
/* The values of certain keys, of many records: where they stand is looked up once for all records
 * of one shape. Set key and n, and zero the rest, to start. */
struct acc_pick {
	const struct acc_str *key;
	uint32_t n;
	uint32_t nshape;
	size_t cap_shape;
	struct acc_ids by_shape;
	struct acc_pick_shape *shape;
	struct acc_pick_place *other; /* room for the next */
};
/* v[i] becomes the first value under key[i], or NULL. 0 or ACC_ENOMEM. */
int acc_pick_get(struct acc_pick *w, const struct acc_rec *r, const struct acc_val **v);
void acc_pick_release(struct acc_pick *w);
/* The same value? NaN equals NaN, 1 equals 1.0, -0.0 equals 0.0. */
bool acc_val_eq(const struct acc_val *a, const struct acc_val *b);

#ifdef __cplusplus
}
#endif

#endif
