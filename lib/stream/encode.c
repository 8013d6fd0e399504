/* A record to its bytes; the only user of msgpack-c. */
#include "stream/codec.h"
#include "stream/item.h"
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

/* Is this the last value, as bytes? */
static inline bool
is_last(const uint8_t *p, uint32_t n, const struct acc_last *last)
{
	return last->have && last->n == n && acc_bytes_same(last->raw, p, n);
}

/* A value of the commonest forms, as pack_value has it, to q, where there is room for it: its length, or 0 where it is of
 * another form. */
static inline uint32_t
pack_common(uint8_t *q, const struct acc_val *v)
{
	if (v->type == ACC_V_TEXT && v->s.n <= UINT8_MAX) {
		const uint32_t n = v->s.n, head = n < 32 ? 1 : 2;
		q[0] = (uint8_t)(head == 1 ? 0xa0 | n : 0xd9);
		q[head - 1] = head == 1 ? q[0] : (uint8_t)n;
		acc_bytes_copy(q + head, v->s.p, n);
		return head + n;
	}
	if (v->type == ACC_V_INT && v->i >= 0 && v->i < 0x10000) {
		const bool one = v->i < 0x80, two = v->i < 0x100;
		q[0] = one ? (uint8_t)v->i : two ? 0xcc : 0xcd;
		q[1] = (uint8_t)(two ? v->i : v->i >> 8);
		q[2] = (uint8_t)v->i;
		return one ? 1 : two ? 2 : 3;
	}
	if (v->type == ACC_V_F64) {
		const float f = (float)v->f;
		const bool narrow = v->n == 0 && fabs(v->f) <= FLT_MAX && (double)f == v->f;
		uint64_t bits;
		uint32_t low;
		memcpy(&bits, &v->f, sizeof bits);
		memcpy(&low, &f, sizeof low);
		bits = narrow ? (uint64_t)low << 32 : bits;
		bits = acc_big((const uint8_t *)&bits, sizeof bits);
		q[0] = narrow ? 0xca : 0xcb;
		memcpy(q + 1, &bits, sizeof bits);
		return narrow ? 5 : 9;
	}
	if (v->type == ACC_V_BOOL || v->type == ACC_V_NIL) {
		q[0] = v->type == ACC_V_NIL ? 0xc0 : v->b ? 0xc3 : 0xc2;
		return 1;
	}
	return 0;
}

/* A field behind what was written, for which there is room, unless its value is the last one; is it there? */
static inline bool
put_value(const struct acc_field *f, struct acc_last *last, bool keep, struct acc_buf *out)
{
	const uint8_t *p = f->raw;
	uint8_t *to = out->p + out->n;
	uint32_t n = f->nraw;
	if (p == NULL && (n = pack_common(to, &f->v)) == 0) {
		struct acc_buf b = *out;
		pack_value(&b, &f->v);
		n = (uint32_t)(b.n - out->n);
	}
	if (is_last(p != NULL ? p : to, n, last))
		return false;
	if (p != NULL)
		acc_bytes_copy(to, p, n);
	out->n += n;
	if (keep) {
		last->have = n <= KEYLISTS_VALUE;
		last->n = n;
		if (last->have)
			acc_bytes_copy(last->raw, to, n);
	}
	return true;
}

/* A record: how many values are there, the number of its list, a bit for each key. */
static int
by_list(const struct acc_rec *r, const struct acc_keylist *k, struct acc_buf *out)
{
	const uint32_t nbits = (k->n + 7) / 8;
	size_t most = 4 * HEAD + nbits;
	for (uint32_t i = 0; i < k->n; i++)
		most += r->f[i].raw != NULL ? r->f[i].nraw : bound(&r->f[i].v);
	if (reserve(out, most) < 0)
		return ACC_ENOMEM;
	const size_t start = out->n;
	const bool few = k->n + 2 <= 15;
	out->n += few ? 1 : 3;
	msgpack_pack_uint32(INTO(out), k->number);
	msgpack_pack_bin(INTO(out), nbits);
	const size_t bits = out->n;
	out->n += nbits;
	uint32_t there = 2; /* and as many values */
	for (uint32_t i = 0; i < k->n;) {
		unsigned byte = 0;
		const uint32_t first = i, end = k->n - i < 8 ? k->n : i + 8;
		for (; i < end; i++) {
			byte |= (unsigned)put_value(&r->f[i], k->last[i], !k->same[i], out)
				<< (i - first);
		}
		out->p[bits + first / 8] = (uint8_t)byte;
		there += (uint32_t)__builtin_popcount(byte);
	}
	uint8_t *head = out->p + start;
	head[0] = few ? (uint8_t)(0x90 | there) : 0xdc;
	if (!few) {
		head[1] = (uint8_t)(there >> 8);
		head[2] = (uint8_t)there;
	}
	return 0;
}

int
acc_encode_listed(const struct acc_rec *r, uint64_t shape, struct acc_keylists *ls,
	struct acc_buf *out, struct acc_err *e)
{
	const uint32_t known = shape == 0 ? ACC_NOID : acc_ids_get(&ls->by_shape, shape);
	const struct acc_keylist *k = known == ACC_NOID ? NULL : ls->v[known];
	int rc = r->lost ? ACC_ENOMEM : 0;
	if (rc == 0 && k == NULL && shape != 0 && r->n <= ACC_MAX_FIELDS) {
		if (acc_rec_once(r, e) < 0)
			return ACC_EFORMAT;
		k = acc_keylist_new(ls, r, shape, &rc);
		if (k != NULL)
			rc = tell(k, out);
	}
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
