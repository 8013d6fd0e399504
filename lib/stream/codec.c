/* One record and its bytes.
 *
 * Reading is done here, not by msgpack-c: its unpacker allocates what a header announces (five
 * bytes can ask for 96 GB), and the scan that must come first finds everything that decoding
 * needs. Nothing is allocated here but the elements of arrays, of which each has at least one
 * byte in the input. Writing is msgpack-c's. */
#include "acc/stream.h"

#include <msgpack.h>

struct cursor {
	const uint8_t *p;
	size_t n, at;
	struct acc_err *e;
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
	for (unsigned i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static int
signed_int(struct item *it, uint64_t v, unsigned bytes)
{
	/* Sign-extend. */
	uint64_t top = UINT64_C(1) << (bytes * 8 - 1);
	it->type = INTEGER;
	it->negative = (v & top) != 0;
	it->u = it->negative ? v | ~(top - 1) : v;
	return 1;
}

/* 1: an item header was read and passed; 0: more bytes are needed; < 0: no such item. */
static int
take(struct cursor *c, struct item *it)
{
	/* Bytes behind 0xc0..0xdf that belong to the header; 255: not allowed in a record. */
	static const uint8_t extra[32] = {0, 255, 0, 0, 1, 2, 4, 255, 255, 255, 4, 8, 1, 2, 4, 8,
		1, 2, 4, 8, 255, 255, 255, 255, 255, 1, 2, 4, 2, 4, 2, 4};
	if (c->at >= c->n)
		return 0;
	uint8_t b = c->p[c->at];
	*it = (struct item){.type = INTEGER, .u = b};
	if (b < 0xc0 || b >= 0xe0) {
		c->at++;
		if (b >= 0xe0)
			return signed_int(it, b, 1);
		if (b < 0x80)
			return 1;
		it->type = b < 0x90 ? MAP : b < 0xa0 ? ARRAY : STRING;
		it->u = b & (b < 0xa0 ? 0x0f : 0x1f);
		return 1;
	}
	unsigned k = extra[b - 0xc0];
	if (k == 255)
		return acc_fail_at(c->e, ACC_EFORMAT, c->at, "MessagePack type 0x%02x is not "
			"allowed in a record", b);
	if (c->n - c->at < 1 + k)
		return 0;
	uint64_t v = big(c->p + c->at + 1, k);
	c->at += 1 + k;
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
	} else if (b >= 0xd0 && b <= 0xd3) {
		return signed_int(it, v, k);
	} else if (b >= 0xd9) {
		it->type = b <= 0xdb ? STRING : b <= 0xdd ? ARRAY : MAP;
	}
	return 1;
}

static int
too_long(struct cursor *c)
{
	return acc_fail_at(c->e, ACC_ELIMIT, c->at, "record of more than %d bytes",
		ACC_MAX_RECORD);
}

/* The bytes of a string or blob. */
static int
bytes(struct cursor *c, uint64_t n, struct acc_str *out)
{
	if (n > ACC_MAX_RECORD || c->at + n > ACC_MAX_RECORD)
		return too_long(c);
	if (c->n - c->at < n)
		return 0;
	*out = (struct acc_str){n == 0 ? "" : (const char *)c->p + c->at, (uint32_t)n};
	c->at += n;
	return 1;
}

static int
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

static struct acc_val
integer(const struct item *it)
{
	return it->negative ? acc_int((int64_t)it->u) : acc_uint(it->u);
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
	*v = acc_ints(NULL, (uint32_t)n);
	for (uint64_t i = 0; i < n; i++) {
		struct item it;
		size_t at = c->at;
		int rc = take(c, &it);
		if (rc <= 0)
			return rc;
		if (i == 0 && it.type == STRING)
			*v = acc_texts(NULL, (uint32_t)n);
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
		*v = acc_nil();
		return 1;
	case BOOLEAN:
		*v = acc_bool(it.u != 0);
		return 1;
	case INTEGER:
		*v = integer(&it);
		return 1;
	case REAL:
		*v = acc_f64(it.f);
		return 1;
	case STRING:
	case BINARY:
		*v = acc_text((struct acc_str){"", 0});
		v->type = it.type == BINARY ? ACC_V_BIN : ACC_V_TEXT;
		return bytes(c, it.u, &v->s);
	case ARRAY:
		return array(c, it.u, v, m);
	default:
		return acc_fail_at(c->e, ACC_EFORMAT, at, "a map inside a record");
	}
}

/* Walk one record; fill r if it is not NULL. Its length, 0 for more bytes, < 0. */
static int64_t
walk(const void *buf, size_t len, struct acc_rec *r, struct acc_err *e)
{
	struct cursor c = {buf, len, 0, e};
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
	for (uint64_t i = 0, n = it.u; i < n; i++) {
		struct acc_field f = {0};
		rc = text(&c, &f.key, "a key");
		if (rc <= 0)
			return rc;
		size_t start = c.at;
		rc = value(&c, &f.v, r == NULL ? NULL : &r->mem);
		if (rc <= 0)
			return rc;
		if (r == NULL)
			continue;
		f.raw = c.p + start;
		f.nraw = (uint32_t)(c.at - start);
		rc = acc_rec_push(r, &f);
		if (rc < 0)
			return acc_fail(e, rc, "out of memory");
	}
	return c.at > ACC_MAX_RECORD ? too_long(&c) : (int64_t)c.at;
}

/* Offsets in messages are within the record; the reader adds where the record began. */
int64_t
acc_scan(const void *buf, size_t len, struct acc_err *e)
{
	return walk(buf, len, NULL, e);
}

int64_t
acc_decode(const void *buf, size_t len, struct acc_rec *r, struct acc_err *e)
{
	return walk(buf, len, r, e);
}

static int
append(void *b, const char *p, size_t n)
{
	return acc_buf_add(b, p, n);
}

static int
pack_text(msgpack_packer *pk, struct acc_str s)
{
	int rc = msgpack_pack_str(pk, s.n);
	return rc < 0 || s.n == 0 ? rc : msgpack_pack_str_body(pk, s.p, s.n);
}

static int
pack_value(msgpack_packer *pk, const struct acc_val *v)
{
	int rc = 0;
	switch (v->type) {
	case ACC_V_NIL:
		return msgpack_pack_nil(pk);
	case ACC_V_BOOL:
		return v->b ? msgpack_pack_true(pk) : msgpack_pack_false(pk);
	case ACC_V_INT:
		return msgpack_pack_int64(pk, v->i);
	case ACC_V_UINT:
		return msgpack_pack_uint64(pk, v->u);
	case ACC_V_F64:
		return msgpack_pack_double(pk, v->f);
	case ACC_V_TEXT:
		return pack_text(pk, v->s);
	case ACC_V_BIN:
		rc = msgpack_pack_bin(pk, v->s.n);
		return rc < 0 || v->s.n == 0 ? rc : msgpack_pack_bin_body(pk, v->s.p, v->s.n);
	case ACC_V_INTS:
		rc = msgpack_pack_array(pk, v->n);
		for (uint32_t i = 0; i < v->n && rc == 0; i++)
			rc = msgpack_pack_int64(pk, v->ints[i]);
		return rc;
	case ACC_V_TEXTS:
		rc = msgpack_pack_array(pk, v->n);
		for (uint32_t i = 0; i < v->n && rc == 0; i++)
			rc = pack_text(pk, v->texts[i]);
		return rc;
	}
	return ACC_EFORMAT;
}

/* The header of a string, in its shortest form: its length, written to p. */
static unsigned
text_header(uint8_t *p, uint32_t n)
{
	unsigned k = n < 32 ? 0 : n < 256 ? 1 : n < 65536 ? 2 : 4;
	p[0] = k == 0 ? (uint8_t)(0xa0 | n) : k == 1 ? 0xd9 : k == 2 ? 0xda : 0xdb;
	for (unsigned i = 0; i < k; i++)
		p[1 + i] = (uint8_t)(n >> 8 * (k - 1 - i));
	return 1 + k;
}

/* Field i, whose value is still the bytes that were read, and all fields behind it that stand
 * there as they were read: most records pass a filter with a field or two more. Without
 * msgpack-c, because here the bytes are many and the work is none. The next field, or < 0. */
static int64_t
pack_raw(const struct acc_rec *r, uint32_t i, struct acc_buf *out)
{
	const struct acc_field *f = &r->f[i];
	const char *end = (const char *)f->raw + f->nraw;
	bool behind = f->key.p + f->key.n == (const char *)f->raw;
	uint8_t head[5];
	for (i++; behind && i < r->n; i++) {
		const struct acc_field *g = &r->f[i];
		if (g->key.p + g->key.n != (const char *)g->raw ||
			g->key.p != end + text_header(head, g->key.n))
			break;
		end = (const char *)g->raw + g->nraw;
	}
	size_t n = (size_t)(end - (const char *)f->raw);
	if (acc_buf_reserve(out, sizeof head + f->key.n + n) < 0)
		return ACC_ENOMEM;
	uint8_t *p = out->p + out->n;
	p += text_header(p, f->key.n);
	if (f->key.n > 0)
		memcpy(p, f->key.p, f->key.n);
	memcpy(p + f->key.n, f->raw, n);
	out->n = (size_t)(p - out->p) + f->key.n + n;
	return i;
}

int
acc_encode(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e)
{
	size_t start = out->n;
	msgpack_packer pk;
	msgpack_packer_init(&pk, out, append);
	int rc = msgpack_pack_array(&pk, 2);
	if (rc == 0)
		rc = pack_text(&pk, r->kind);
	if (rc == 0)
		rc = msgpack_pack_map(&pk, r->n);
	for (uint32_t i = 0; i < r->n && rc == 0;) {
		const struct acc_field *f = &r->f[i];
		if (f->raw != NULL) {
			int64_t next = pack_raw(r, i, out);
			rc = next < 0 ? (int)next : 0;
			i = (uint32_t)next;
			continue;
		}
		rc = pack_text(&pk, f->key);
		if (rc == 0)
			rc = pack_value(&pk, &f->v);
		i++;
	}
	if (rc != 0)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	if (out->n - start > ACC_MAX_RECORD || r->n > ACC_MAX_FIELDS) {
		out->n = start;
		return acc_fail(e, ACC_ELIMIT, "record too large to write");
	}
	return 0;
}
