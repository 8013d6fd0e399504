/* One record and its bytes.
 *
 * Reading is done here, not by msgpack-c: its unpacker allocates what a header announces (five
 * bytes can ask for 96 GB), and the scan that must come first finds everything that decoding
 * needs. Nothing is allocated here but the elements of arrays, of which each has at least one
 * byte in the input. Writing is msgpack-c's. */
#include "stream/codec.h"

#include <msgpack.h>

struct cursor {
	const uint8_t *p;
	size_t n, at;
	struct acc_err *e;
	bool open;  /* a blob may reach beyond n: */
	size_t rest; /* so many bytes */
};

/* What an item's first bytes say. */
struct item {
	enum { NIL, BOOLEAN, INTEGER, REAL, STRING, BINARY, ARRAY, MAP } type;
	bool negative;
	uint64_t u; /* integer's bits, string's length, number of elements; boolean */
	double f;
};

static uint64_t
big(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;
	if (n == 8) {
		memcpy(&v, p, 8);
		return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(v) : v;
	}
	for (unsigned i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* What comes behind the first byte b, 0xc0 to 0xdf. */
static int
take_long(struct cursor *c, uint8_t b, struct item *it)
{
	/* Bytes behind 0xc0..0xdf that belong to the header; 255: not allowed in a record. */
	static const uint8_t extra[32] = {0, 255, 0, 0, 1, 2, 4, 255, 255, 255, 4, 8, 1, 2, 4, 8,
		1, 2, 4, 8, 255, 255, 255, 255, 255, 1, 2, 4, 2, 4, 2, 4};
	unsigned k = extra[b - 0xc0];
	if (k == 255)
		return acc_fail_at(c->e, ACC_EFORMAT, c->at, "MessagePack type 0x%02x is not "
			"allowed in a record", b);
	if (c->n - c->at < 1 + k)
		return 0;
	uint64_t v = big(c->p + c->at + 1, k);
	c->at += 1 + k;
	it->type = INTEGER;
	it->u = v;
	if (b == 0xc0) {
		it->type = NIL;
	} else if (b == 0xc2 || b == 0xc3) {
		it->type = BOOLEAN;
		it->u = b & 1;
	} else if (b <= 0xc6) {
		it->type = BINARY;
	} else if (b == 0xca) {
		uint32_t w = (uint32_t)v;
		float f;
		memcpy(&f, &w, sizeof f);
		it->type = REAL;
		it->f = f;
	} else if (b == 0xcb) {
		it->type = REAL;
		memcpy(&it->f, &v, sizeof it->f);
	} else if (b >= 0xd0 && b <= 0xd3) { /* sign-extend */
		uint64_t top = UINT64_C(1) << (k * 8 - 1);
		it->negative = (v & top) != 0;
		it->u = it->negative ? v | ~(top - 1) : v;
	} else if (b >= 0xd9) {
		it->type = b <= 0xdb ? STRING : b <= 0xdd ? ARRAY : MAP;
	}
	return 1;
}

/* 1: an item header was read and passed; 0: more bytes are needed; < 0: no such item. */
static inline int
take(struct cursor *c, struct item *it)
{
	if (c->at >= c->n)
		return 0;
	uint8_t b = c->p[c->at];
	it->negative = false;
	if (b >= 0xc0 && b < 0xe0)
		return take_long(c, b, it);
	c->at++;
	it->type = b < 0x80 || b >= 0xe0 ? INTEGER : b < 0x90 ? MAP : b < 0xa0 ? ARRAY : STRING;
	it->negative = b >= 0xe0;
	it->u = b < 0x80 ? b : b < 0xa0 ? b & 0x0f : b < 0xc0 ? b & 0x1f
							      : (uint64_t)(int64_t)(int8_t)b;
	return 1;
}

static int
too_long(struct cursor *c)
{
	return acc_fail_at(c->e, ACC_ELIMIT, c->at, "record of more than %d bytes",
		ACC_MAX_RECORD);
}

/* The bytes of a string or blob. */
static inline int
bytes(struct cursor *c, uint64_t n, struct acc_str *out)
{
	if (n > ACC_MAX_RECORD || c->at + n > ACC_MAX_RECORD)
		return too_long(c);
	const size_t left = c->n - c->at;
	if (left < n && !c->open)
		return 0;
	*out = (struct acc_str){n == 0 ? "" : (const char *)c->p + c->at, (uint32_t)n};
	c->rest = left < n ? n - left : 0;
	c->at += n - c->rest;
	return 1;
}

static inline int
text(struct cursor *c, struct acc_str *out, const char *what)
{
	struct item it;
	size_t at = c->at;
	int rc = take(c, &it);
	if (rc <= 0)
		return rc;
	if (it.type != STRING)
		return acc_fail_at(c->e, ACC_EFORMAT, at, "%s is not a string", what);
	return bytes(c, it.u, out);
}

/* n elements, all integers or all strings; stored if m is not NULL. */
static int
array(struct cursor *c, uint64_t n, struct acc_val *v, struct acc_arena *m)
{
	if (n > ACC_MAX_RECORD || c->at + n > ACC_MAX_RECORD)
		return too_long(c);
	if (c->n - c->at < n)
		return 0;
	int64_t *ints = NULL;
	struct acc_str *texts = NULL;
	*v = (struct acc_val){.type = ACC_V_INTS, .n = (uint32_t)n};
	for (uint64_t i = 0; i < n; i++) {
		struct item it;
		size_t at = c->at;
		int rc = take(c, &it);
		if (rc <= 0)
			return rc;
		if (i == 0 && it.type == STRING)
			v->type = ACC_V_TEXTS;
		bool fits = v->type == ACC_V_TEXTS
				    ? it.type == STRING
				    : it.type == INTEGER && (it.negative || it.u <= INT64_MAX);
		if (!fits)
			return acc_fail_at(c->e, ACC_EFORMAT, at,
				"an array holds something else than 64-bit integers or strings");
		if (i == 0 && m != NULL) {
			void *p = acc_alloc(m, n * (v->type == ACC_V_TEXTS ? sizeof *texts
									 : sizeof *ints));
			if (p == NULL)
				return acc_fail(c->e, ACC_ENOMEM, "out of memory");
			if (v->type == ACC_V_TEXTS)
				v->texts = texts = p;
			else
				v->ints = ints = p;
		}
		if (v->type == ACC_V_TEXTS) {
			struct acc_str s;
			rc = bytes(c, it.u, &s);
			if (rc <= 0)
				return rc;
			if (texts != NULL)
				texts[i] = s;
		} else if (ints != NULL) {
			ints[i] = (int64_t)it.u;
		}
	}
	return 1;
}

static int
value(struct cursor *c, struct acc_val *v, struct acc_arena *m)
{
	struct item it;
	size_t at = c->at;
	int rc = take(c, &it);
	if (rc <= 0)
		return rc;
	switch (it.type) {
	case NIL:
		v->type = ACC_V_NIL;
		return 1;
	case BOOLEAN:
		v->type = ACC_V_BOOL;
		v->b = it.u != 0;
		return 1;
	case INTEGER:
		v->type = it.negative || it.u <= INT64_MAX ? ACC_V_INT : ACC_V_UINT;
		v->u = it.u;
		return 1;
	case REAL:
		v->type = ACC_V_F64;
		v->f = it.f;
		return 1;
	case STRING:
	case BINARY:
		v->type = it.type == BINARY ? ACC_V_BIN : ACC_V_TEXT;
		c->open = c->open && it.type == BINARY;
		return bytes(c, it.u, &v->s);
	case ARRAY:
		return array(c, it.u, v, m);
	default:
		return acc_fail_at(c->e, ACC_EFORMAT, at, "a map inside a record");
	}
}

/* A field of the commonest form: a key of up to 31 bytes; a small integer, a double, a bool, nil
 * or a string of up to 255 bytes. false: it is another
 * one, or near the end of what was read, and nothing has been passed. */
static inline bool
common(struct cursor *c, struct acc_field *f)
{
	enum { MOST = 1 + 31 + 2 + 255 };
	const uint8_t *p = c->p + c->at;
	if (c->n - c->at < MOST || (*p & 0xe0) != 0xa0)
		return false;
	const uint32_t nkey = *p & 0x1f;
	const uint8_t *q = p + 1 + nkey;
	const uint8_t b = *q;
	uint32_t len = 1;
	if ((b & 0xe0) == 0xa0 || b == 0xd9) {
		const uint32_t head = b == 0xd9 ? 2 : 1, n = b == 0xd9 ? q[1] : b & 0x1f;
		f->v.type = ACC_V_TEXT;
		f->v.s = (struct acc_str){n == 0 ? "" : (const char *)q + head, n};
		len = head + n;
	} else if (b < 0x80) {
		f->v.type = ACC_V_INT;
		f->v.i = b;
	} else if (b == 0xcb) {
		uint64_t v = big(q + 1, 8);
		f->v.type = ACC_V_F64;
		memcpy(&f->v.f, &v, sizeof v);
		len = 9;
	} else if (b == 0xc2 || b == 0xc3) {
		f->v.type = ACC_V_BOOL;
		f->v.b = b & 1;
	} else if (b == 0xc0) {
		f->v.type = ACC_V_NIL;
	} else {
		return false;
	}
	f->key = (struct acc_str){nkey == 0 ? "" : (const char *)p + 1, nkey};
	f->raw = q;
	f->nraw = len;
	c->at = (size_t)(q - c->p) + len;
	return true;
}

/* Walk one record; fill r if it is not NULL. Its length, 0 for more bytes, < 0. *rest: see
 * acc_decode_open; NULL: it must be whole. */
static int64_t
walk(const void *buf, size_t len, struct acc_rec *r, size_t *rest, struct acc_err *e)
{
	struct cursor c = {.p = buf, .n = len, .e = e};
	struct item it;
	struct acc_str kind;
	int rc = take(&c, &it);
	if (rc <= 0)
		return rc;
	if (it.type != ARRAY || it.u != 2)
		return acc_fail_at(e, ACC_EFORMAT, 0, "not a record: no array of two");
	rc = text(&c, &kind, "a record's kind");
	if (rc <= 0)
		return rc;
	rc = take(&c, &it);
	if (rc <= 0)
		return rc;
	if (it.type != MAP)
		return acc_fail_at(e, ACC_EFORMAT, c.at, "a record's second half is not a map");
	if (it.u > ACC_MAX_FIELDS)
		return acc_fail_at(e, ACC_ELIMIT, c.at, "record of more than %d fields",
			ACC_MAX_FIELDS);
	if (r != NULL && (rc = acc_rec_start(r, kind)) < 0)
		return acc_fail(e, rc, "out of memory");
	struct acc_field *f = NULL, skipped;
	if (r != NULL && (f = acc_rec_room(r, (uint32_t)it.u)) == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	for (uint64_t i = 0, n = it.u; i < n; i++) {
		struct acc_field *g = r == NULL ? &skipped : &f[i];
		if (!common(&c, g)) {
			rc = text(&c, &g->key, "a key");
			if (rc <= 0)
				return rc;
			size_t start = c.at;
			c.open = rest != NULL && i + 1 == n;
			rc = value(&c, &g->v, r == NULL ? NULL : &r->mem);
			if (rc <= 0)
				return rc;
			g->raw = c.p + start;
			g->nraw = (uint32_t)(c.at - start);
		}
		if (r != NULL)
			r->n++;
	}
	if (rest != NULL)
		*rest = c.rest;
	return c.at > ACC_MAX_RECORD ? too_long(&c) : (int64_t)c.at;
}

/* Offsets in messages are within the record; the reader adds where the record began. */
int64_t
acc_scan(const void *buf, size_t len, struct acc_err *e)
{
	return walk(buf, len, NULL, NULL, e);
}

int64_t
acc_decode(const void *buf, size_t len, struct acc_rec *r, struct acc_err *e)
{
	return walk(buf, len, r, NULL, e);
}

int64_t
acc_decode_open(const void *buf, size_t len, struct acc_rec *r, size_t *rest, struct acc_err *e)
{
	return walk(buf, len, r, rest, e);
}

/* msgpack-c's packing, with an append that is compiled in: room for what is packed has been
 * made before. */
static inline int
append(struct acc_buf *b, const void *p, size_t n)
{
	if (n > 0)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

#define msgpack_pack_inline_func(name) static inline int pack##name
#define msgpack_pack_inline_func_cint(name) static inline int pack##name
#define msgpack_pack_inline_func_fixint(name) static inline int pack_fix##name
#define msgpack_pack_user struct acc_buf *
#define msgpack_pack_append_buffer(user, buf, len) return append(user, buf, len)
#include <msgpack/pack_template.h>

enum { HEAD = 9 }; /* bytes before a value's content, at most */

static void
pack_text(struct acc_buf *b, struct acc_str s)
{
	pack_str(b, s.n);
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

static void
pack_value(struct acc_buf *b, const struct acc_val *v)
{
	switch (v->type) {
	case ACC_V_NIL:
		pack_nil(b);
		return;
	case ACC_V_BOOL:
		v->b ? pack_true(b) : pack_false(b);
		return;
	case ACC_V_INT:
		pack_int64(b, v->i);
		return;
	case ACC_V_UINT:
		pack_uint64(b, v->u);
		return;
	case ACC_V_F64:
		pack_double(b, v->f);
		return;
	case ACC_V_TEXT:
		pack_text(b, v->s);
		return;
	case ACC_V_BIN:
		pack_bin(b, v->s.n);
		append(b, v->s.p, v->s.n);
		return;
	case ACC_V_INTS:
		pack_array(b, v->n);
		for (uint32_t i = 0; i < v->n; i++)
			pack_int64(b, v->ints[i]);
		return;
	case ACC_V_TEXTS:
		pack_array(b, v->n);
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
pack_raw(const struct acc_rec *r, uint32_t i, uint32_t n, struct acc_str prefix,
	struct acc_buf *out)
{
	const struct acc_field *f = &r->f[i];
	const char *end = (const char *)f->raw + f->nraw;
	const bool behind = f->key.p + f->key.n == (const char *)f->raw;
	for (i++; behind && prefix.n == 0 && i < n; i++) {
		const struct acc_field *g = &r->f[i];
		if (g->key.p + g->key.n != (const char *)g->raw ||
			g->key.p != end + text_header(g->key.n))
			break;
		end = (const char *)g->raw + g->nraw;
	}
	size_t size = (size_t)(end - (const char *)f->raw);
	if (acc_buf_reserve(out, HEAD + prefix.n + f->key.n + size) < 0)
		return ACC_ENOMEM;
	pack_str(out, prefix.n + f->key.n);
	append(out, prefix.p, prefix.n);
	append(out, f->key.p, f->key.n + (behind ? size : 0));
	if (!behind)
		append(out, f->raw, size);
	return i;
}

static int
pack_field(const struct acc_field *f, struct acc_str prefix, struct acc_buf *out)
{
	if (acc_buf_reserve(out, HEAD + prefix.n + f->key.n + bound(&f->v)) < 0)
		return ACC_ENOMEM;
	pack_str(out, prefix.n + f->key.n);
	append(out, prefix.p, prefix.n);
	append(out, f->key.p, f->key.n);
	pack_value(out, &f->v);
	return 0;
}

/* All of a record, or all but the bytes of its last field, a blob. */
static int
encode(const struct acc_rec *r, const char *prefix, bool but_blob, struct acc_buf *out,
	struct acc_err *e)
{
	const struct acc_str before = acc_str(prefix);
	const uint32_t n = r->n - but_blob;
	size_t start = out->n, blob = but_blob ? r->f[n].v.s.n : 0;
	int rc = acc_buf_reserve(out, 3 * HEAD + r->kind.n);
	if (rc == 0) {
		pack_array(out, 2);
		pack_text(out, r->kind);
		pack_map(out, r->n);
	}
	for (uint32_t i = 0; i < n && rc == 0;) {
		const struct acc_field *f = &r->f[i];
		if (f->raw != NULL) {
			int64_t next = pack_raw(r, i, n, before, out);
			rc = next < 0 ? (int)next : 0;
			i = (uint32_t)next;
			continue;
		}
		rc = pack_field(f, before, out);
		i++;
	}
	if (rc == 0 && but_blob)
		rc = acc_buf_reserve(out, 2 * HEAD + r->f[n].key.n);
	if (rc == 0 && but_blob) {
		pack_text(out, r->f[n].key);
		pack_bin(out, blob);
	}
	if (rc != 0)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	if (out->n - start + blob > ACC_MAX_RECORD || r->n > ACC_MAX_FIELDS) {
		out->n = start;
		return acc_fail(e, ACC_ELIMIT, "record too large to write");
	}
	return 0;
}

int
acc_encode(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e)
{
	return encode(r, "", false, out, e);
}

int
acc_encode_but_blob(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e)
{
	return encode(r, "", true, out, e);
}
