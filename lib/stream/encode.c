/* A record to its bytes; the only user of msgpack-c. */
#include "stream/codec.h"
#include "stream/keylist.h"

#include <float.h>
#include <math.h>
#include <msgpack.h>

/* Where a packer writes to: room for what is packed has been made before. */
static inline int
append(void *buf, const char *p, size_t n)
{
	struct acc_buf *b = buf;
	acc_bytes_copy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

static inline int
reserve(struct acc_buf *b, size_t more)
{
	return b->cap - b->n >= more ? 0 : acc_buf_reserve(b, more);
}

/* msgpack-c's packer of a buffer. It is made where it is used, so that the compiler sees what it calls,
 * and compiles that in. */
#define INTO(b) (&(msgpack_packer){.data = (b), .callback = append})

enum { HEAD = 9 }; /* bytes before a value's content, at most */

static inline void
pack_text(struct acc_buf *b, struct acc_str s)
{
	msgpack_pack_str(INTO(b), s.n);
	append(b, s.p, s.n);
}

/* Bytes of a value, at most. */
static inline size_t
bound(const struct acc_val *v)
{
	size_t n = HEAD;
	if (v->type < ACC_V_TEXT)
		return n;
	if (v->type == ACC_V_TEXT || v->type == ACC_V_BIN)
		return n + v->s.n;
	if (v->type == ACC_V_INTS)
		return n + (size_t)v->n * HEAD;
	for (uint32_t i = 0; i < v->n; i++)
		n += HEAD + v->texts[i].n;
	return n;
}

static inline void
pack_value(struct acc_buf *b, const struct acc_val *v)
{
	switch (v->type) {
	case ACC_V_NIL:
		msgpack_pack_nil(INTO(b));
		return;
	case ACC_V_BOOL:
		v->b ? msgpack_pack_true(INTO(b)) : msgpack_pack_false(INTO(b));
		return;
	case ACC_V_INT:
		msgpack_pack_int64(INTO(b), v->i);
		return;
	case ACC_V_UINT:
		msgpack_pack_uint64(INTO(b), v->u);
		return;
	case ACC_V_F64: /* most statistics were computed in f32; what was read goes out as it came */
		if (v->n == 0 && fabs(v->f) <= FLT_MAX && (double)(float)v->f == v->f)
			msgpack_pack_float(INTO(b), (float)v->f);
		else
			msgpack_pack_double(INTO(b), v->f);
		return;
	case ACC_V_TEXT:
		pack_text(b, v->s);
		return;
	case ACC_V_BIN:
		msgpack_pack_bin(INTO(b), v->s.n);
		append(b, v->s.p, v->s.n);
		return;
	case ACC_V_INTS:
		msgpack_pack_array(INTO(b), v->n);
		for (uint32_t i = 0; i < v->n; i++)
			msgpack_pack_int64(INTO(b), v->ints[i]);
		return;
	case ACC_V_TEXTS:
		msgpack_pack_array(INTO(b), v->n);
		for (uint32_t i = 0; i < v->n; i++)
			pack_text(b, v->texts[i]);
		return;
	}
}

static int
pack_field(const struct acc_field *f, struct acc_buf *out)
{
	const bool raw = f->raw != NULL;
	if (reserve(out, HEAD + f->key.n + (raw ? f->nraw : bound(&f->v))) < 0)
		return ACC_ENOMEM;
	/* A copy, which no byte that is written can have changed. */
	struct acc_buf b = *out;
	pack_text(&b, f->key);
	if (raw)
		append(&b, (const char *)f->raw, f->nraw);
	else
		pack_value(&b, &f->v);
	out->n = b.n;
	return 0;
}

/* All of a record, or all but the bytes of its last field, a blob. */
static int
encode(const struct acc_rec *r, bool but_blob, struct acc_buf *out, struct acc_err *e)
{
	const uint32_t n = r->n - but_blob;
	size_t start = out->n, blob = but_blob ? r->f[n].v.s.n : 0;
	int rc = r->lost ? ACC_ENOMEM : acc_buf_reserve(out, 3 * HEAD + r->kind.n);
	if (rc == 0) {
		msgpack_pack_array(INTO(out), 2);
		pack_text(out, r->kind);
		msgpack_pack_map(INTO(out), r->n);
	}
	for (uint32_t i = 0; i < n && rc == 0; i++)
		rc = pack_field(&r->f[i], out);
	if (rc == 0 && but_blob)
		rc = acc_buf_reserve(out, 2 * HEAD + r->f[n].key.n);
	if (rc == 0 && but_blob) {
		pack_text(out, r->f[n].key);
		msgpack_pack_bin(INTO(out), blob);
	}
	if (rc != 0)
		return acc_nomem(e);
	if (out->n - start + blob > ACC_MAX_RECORD || r->n > ACC_MAX_FIELDS) {
		out->n = start;
		return acc_fail(e, ACC_ELIMIT, "record too large to write");
	}
	return 0;
}

int
acc_encode(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e)
{
	return encode(r, false, out, e);
}

int
acc_encode_but_blob(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e)
{
	return encode(r, true, out, e);
}

/* --- by lists --- */

/* What tells of a list: its number, the kind, the keys. */
static int
tell(const struct acc_keylist *k, struct acc_buf *out)
{
	size_t size = 4 * HEAD + k->kind.n;
	for (uint32_t i = 0; i < k->n; i++)
		size += HEAD + k->key[i].n;
	if (reserve(out, size) < 0)
		return ACC_ENOMEM;
	msgpack_pack_array(INTO(out), 3);
	msgpack_pack_uint32(INTO(out), k->number);
	pack_text(out, k->kind);
	msgpack_pack_array(INTO(out), k->n);
	for (uint32_t i = 0; i < k->n; i++)
		pack_text(out, k->key[i]);
	return 0;
}

/* The MessagePack of a scalar, as pack_value has it, as a word, the first byte lowest, and a ninth byte: they stay in
 * registers, where memory would have to be waited for. Its length; 0: it is no such value. */
static inline uint32_t
pack_word(const struct acc_val *v, uint64_t *word, uint8_t *ninth)
{
	if (v->type == ACC_V_F64) {
		const float f = (float)v->f;
		const bool narrow = v->n == 0 && fabs(v->f) <= FLT_MAX && (double)f == v->f;
		uint64_t bits;
		uint32_t low;
		memcpy(&bits, &v->f, sizeof bits);
		memcpy(&low, &f, sizeof low);
		*word = narrow ? (uint64_t)__builtin_bswap32(low) << 8 | 0xca
			       : __builtin_bswap64(bits) << 8 | 0xcb;
		*ninth = (uint8_t)bits;
		return narrow ? 5 : 9;
	}
	if (v->type == ACC_V_INT && v->i >= 0 && v->i <= UINT16_MAX) {
		const uint64_t i = (uint64_t)v->i;
		*word = i < 0x80    ? i
			: i < 0x100 ? i << 8 | 0xcc
				    : (i & 0xff) << 16 | i >> 8 << 8 | 0xcd;
		return i < 0x80 ? 1 : i < 0x100 ? 2 : 3;
	}
	if (v->type == ACC_V_BOOL || v->type == ACC_V_NIL) {
		*word = v->type == ACC_V_NIL ? 0xc0 : v->b ? 0xc3 : 0xc2;
		return 1;
	}
	return 0;
}

static inline void
put_word(uint8_t *p, uint64_t word)
{
	word = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
	memcpy(p, &word, sizeof word);
}

/* Are the first n <= 8 bytes there those of a word? */
static inline bool
is_word(const uint8_t *p, uint64_t word, uint32_t n)
{
	uint64_t there = acc_load8(p);
	there = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? there : __builtin_bswap64(there);
	return (there ^ word) << (64 - 8 * n) == 0;
}

/* n bytes at p were written as the value of a key. */
static inline void
keep_last(struct acc_last *last, const uint8_t *p, uint32_t n)
{
	last->have = n <= KEYLISTS_VALUE;
	last->n = last->have ? n : KEYLISTS_NONE;
	if (last->have)
		acc_bytes_copy(last->raw, p, n);
}

static inline bool
is_last(const struct acc_last *last, const uint8_t *p, uint32_t n)
{
	return last->n == n && acc_bytes_same(last->raw, p, n);
}

/* What a field takes at most, so that most need not be asked how much. */
enum { SHORT = 2 * HEAD + KEYLISTS_VALUE };

/* A value of any form and length. */
static __attribute__((noinline)) uint8_t *
put_any(const struct acc_field *f, struct acc_last *last, bool keep, size_t more, uint8_t *to,
	struct acc_buf *out)
{
	const size_t most = f->raw != NULL ? f->nraw : bound(&f->v);
	out->n = (size_t)(to - out->p);
	if (reserve(out, most + more) < 0)
		return NULL;
	to = out->p + out->n;
	struct acc_buf b = *out;
	if (f->raw != NULL)
		append(&b, (const char *)f->raw, f->nraw);
	else
		pack_value(&b, &f->v);
	const size_t n = b.n - out->n;
	if (n <= KEYLISTS_VALUE && is_last(last, to, (uint32_t)n))
		return to;
	if (keep)
		keep_last(last, to, (uint32_t)n);
	return to + n;
}

/* A field's value to `to`, where it has SHORT bytes and `more` behind them, unless it is the last one. What is behind
 * it; NULL: no memory. */
static inline uint8_t *
put_value(const struct acc_field *f, struct acc_last *last, bool keep, size_t more, uint8_t *to,
	struct acc_buf *out)
{
	const uint8_t *p = f->raw;
	uint8_t ninth = 0;
	uint64_t word;
	uint32_t n = f->nraw;
	if (p != NULL) {
		if (n > KEYLISTS_VALUE)
			return put_any(f, last, keep, more, to, out);
		if (is_last(last, p, n))
			return to;
		acc_bytes_copy(to, p, n);
	} else if (f->v.type == ACC_V_TEXT) {
		const struct acc_str s = f->v.s;
		const uint32_t head = s.n < 32 ? 1 : 2;
		const uint8_t first = (uint8_t)(s.n < 32 ? 0xa0 | s.n : 0xd9);
		if (s.n > KEYLISTS_VALUE - 2)
			return put_any(f, last, keep, more, to, out);
		n = head + s.n;
		if (last->n == n && last->raw[0] == first &&
			acc_bytes_same(last->raw + head, s.p, s.n))
			return to;
		to[1] = (uint8_t)s.n;
		to[0] = first;
		acc_bytes_copy(to + head, s.p, s.n);
	} else if ((n = pack_word(&f->v, &word, &ninth)) > 0) {
		if (last->n == n && is_word(last->raw, word, n < 8 ? n : 8) &&
			(n < 9 || last->raw[8] == ninth))
			return to;
		put_word(to, word);
		to[8] = ninth;
		if (keep) {
			last->have = true;
			last->n = n;
			put_word(last->raw, word);
			last->raw[8] = ninth;
		}
		return to + n;
	} else {
		return put_any(f, last, keep, more, to, out);
	}
	if (keep) {
		last->have = true;
		last->n = n;
		acc_last_copy(last, to, n);
	}
	return to + n;
}

/* A record: how many values are there, the number of its list, a bit for each key. */
static int
by_list(const struct acc_rec *r, const struct acc_keylist *k, struct acc_buf *out)
{
	const uint32_t nbits = (k->n + 7) / 8;
	const size_t most = (size_t)k->n * SHORT;
	if (reserve(out, 4 * HEAD + nbits + most) < 0)
		return ACC_ENOMEM;
	const size_t start = out->n;
	const bool few = k->n + 2 <= 15;
	out->n += few ? 1 : 3;
	msgpack_pack_uint32(INTO(out), k->number);
	msgpack_pack_bin(INTO(out), nbits);
	const size_t bits = out->n;
	uint8_t *to = out->p + bits + nbits;
	for (uint32_t i = 0; i < k->n;) {
		unsigned byte = 0, bit = 1;
		const uint32_t first = i, end = k->n - i < 8 ? k->n : i + 8;
		for (; i < end; i++, bit *= 2) {
			const size_t at = (size_t)(to - out->p); /* which may move */
			to = put_value(&r->f[i], k->last[i], !k->same[i], most, to, out);
			if (to == NULL)
				return out->n = start, ACC_ENOMEM;
			byte |= (size_t)(to - out->p) > at ? bit : 0;
		}
		out->p[bits + first / 8] = (uint8_t)byte;
	}
	out->n = (size_t)(to - out->p);
	uint8_t *head = out->p + start;
	const uint32_t there = 2 + acc_bytes_ones(out->p + bits, nbits); /* and as many values */
	head[0] = few ? (uint8_t)(0x90 | there) : 0xdc;
	if (!few) {
		head[1] = (uint8_t)(there >> 8);
		head[2] = (uint8_t)there;
	}
	return 0;
}

/* The list of a record's keys; of keys that are new it is told. Those who make records may know a shape by another
 * number than what its keys hash to: that is looked up once, so that no list is told twice. */
static const struct acc_keylist *
list_of(const struct acc_rec *r, struct acc_shapes *sh, struct acc_keylists *ls,
	struct acc_buf *out, int *rc, struct acc_err *e)
{
	uint64_t keys;
	uint32_t at = r->shape == 0 ? ACC_NOID : acc_ids_get(&ls->by_shape, r->shape);
	if (at != ACC_NOID)
		return ls->v[at];
	*rc = acc_shape_check(sh, r, &keys, e);
	if (*rc < 0 || keys == 0 || r->n > ACC_MAX_FIELDS)
		return NULL;
	at = acc_ids_get(&ls->by_shape, keys);
	const struct acc_keylist *k = at != ACC_NOID ? ls->v[at] : acc_keylist_new(ls, r, keys, rc);
	if (k != NULL && at == ACC_NOID)
		*rc = tell(k, out);
	if (k != NULL && *rc == 0 && r->shape != 0)
		*rc = acc_ids_put(&ls->by_shape, r->shape, k->number, true, NULL);
	return k;
}

int
acc_encode_listed(const struct acc_rec *r, struct acc_shapes *sh, struct acc_keylists *ls,
	struct acc_buf *out, struct acc_err *e)
{
	int rc = r->lost ? ACC_ENOMEM : 0;
	const struct acc_keylist *k = rc < 0 ? NULL : list_of(r, sh, ls, out, &rc, e);
	if (rc == ACC_EFORMAT)
		return rc;
	if (rc == 0 && (k == NULL || k->n != r->n))
		return acc_encode(r, out, e);
	const size_t start = out->n;
	if (rc == 0)
		rc = by_list(r, k, out);
	if (rc < 0)
		return acc_nomem(e);
	if (out->n - start > ACC_MAX_RECORD) {
		out->n = start;
		return acc_fail(e, ACC_ELIMIT, "record too large to write");
	}
	return 0;
}
