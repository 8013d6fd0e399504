/* A record to its bytes; the only user of msgpack-c. */
#include "stream/codec.h"

#include <float.h>
#include <math.h>
#include <msgpack.h>

/* Where a packer writes to: room for what is packed has been made before. */
static inline int
append(void *buf, const char *p, size_t n)
{
	struct acc_buf *b = buf;
	uint8_t *to = b->p + b->n;
	/* Most are few: a call would take longer than the copy. */
	if (n > 16) {
		memcpy(to, p, n);
	} else if (n >= 8) {
		memcpy(to, p, 8);
		memcpy(to + n - 8, p + n - 8, 8);
	} else if (n >= 4) {
		memcpy(to, p, 4);
		memcpy(to + n - 4, p + n - 4, 4);
	} else {
		for (size_t i = 0; i < n; i++)
			to[i] = p[i];
	}
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
static size_t
bound(const struct acc_val *v)
{
	size_t n = HEAD;
	if (v->type == ACC_V_TEXT || v->type == ACC_V_BIN)
		n += v->s.n;
	else if (v->type == ACC_V_INTS)
		n += (size_t)v->n * HEAD;
	for (uint32_t i = 0; v->type == ACC_V_TEXTS && i < v->n; i++)
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

/* The length of the header of a string of n bytes. */
static unsigned
text_header(uint32_t n)
{
	return n < 32 ? 1 : n < 256 ? 2 : n < 65536 ? 3 : 5;
}

/* Field i of n, whose value is still the bytes that were read, and all behind it that stand
 * there as they were read: most records pass a filter with a field or two more. The next
 * field, or < 0. */
static int64_t
pack_raw(const struct acc_rec *r, uint32_t i, uint32_t n, struct acc_buf *out)
{
	const struct acc_field *f = &r->f[i];
	const char *end = (const char *)f->raw + f->nraw;
	const bool behind = f->key.p + f->key.n == (const char *)f->raw;
	for (i++; behind && i < n; i++) {
		const struct acc_field *g = &r->f[i];
		if (g->key.p + g->key.n != (const char *)g->raw ||
			g->key.p != end + text_header(g->key.n))
			break;
		end = (const char *)g->raw + g->nraw;
	}
	size_t size = (size_t)(end - (const char *)f->raw);
	if (reserve(out, HEAD + f->key.n + size) < 0)
		return ACC_ENOMEM;
	msgpack_pack_str(INTO(out), f->key.n);
	append(out, f->key.p, f->key.n + (behind ? size : 0));
	if (!behind)
		append(out, (const char *)f->raw, size);
	return i;
}

static int
pack_field(const struct acc_field *f, struct acc_buf *out)
{
	if (reserve(out, HEAD + f->key.n + bound(&f->v)) < 0)
		return ACC_ENOMEM;
	/* A copy, which no byte that is written can have changed. */
	struct acc_buf b = *out;
	pack_text(&b, f->key);
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
	for (uint32_t i = 0; i < n && rc == 0;) {
		const struct acc_field *f = &r->f[i];
		if (f->raw != NULL) {
			int64_t next = pack_raw(r, i, n, out);
			rc = next < 0 ? (int)next : 0;
			i = (uint32_t)next;
			continue;
		}
		rc = pack_field(f, out);
		i++;
	}
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
