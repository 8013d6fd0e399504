/* A record from its bytes.
 *
 * Reading is done here, not by msgpack-c: its unpacker allocates what a header announces (five
 * bytes can ask for 96 GB), and the scan that would have to come first finds everything that
 * decoding needs. Nothing is allocated here but the elements of arrays, of which each has at
 * least one byte in the input. */
#include "stream/codec.h"
#include "stream/item.h"

/* What comes behind the first byte b, 0xc0 to 0xdf. */
int
acc_take_long(struct acc_cursor *c, uint8_t b, struct acc_packed *it)
{
	/* Bytes behind 0xc0..0xdf that belong to the header; 255: not allowed in a record. */
	static const uint8_t extra[32] = {0, 255, 0, 0, 1, 2, 4, 255, 255, 255, 4, 8, 1, 2, 4, 8, 1,
		2, 4, 8, 255, 255, 255, 255, 255, 1, 2, 4, 2, 4, 2, 4};
	unsigned k = extra[b - 0xc0];
	if (k == 255)
		return acc_fail_at(c->e, ACC_EFORMAT, c->at,
			"MessagePack type 0x%02x is not "
			"allowed in a record",
			b);
	if (c->n - c->at < 1 + k)
		return 0;
	uint64_t v = acc_big(c->p + c->at + 1, k);
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
		it->wide = false;
		it->f = f;
	} else if (b == 0xcb) {
		it->type = REAL;
		it->wide = true;
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

int
acc_too_long(struct acc_cursor *c)
{
	return acc_fail_at(c->e, ACC_ELIMIT, c->at, "record of more than %d bytes", ACC_MAX_RECORD);
}

/* The bytes of a string or blob. */
int
acc_take_bytes(struct acc_cursor *c, uint64_t n, struct acc_str *out)
{
	if (n > ACC_MAX_RECORD || c->at + n > ACC_MAX_RECORD)
		return acc_too_long(c);
	const size_t left = c->n - c->at;
	if (left < n && !c->open)
		return 0;
	*out = (struct acc_str){n == 0 ? "" : (const char *)c->p + c->at, (uint32_t)n};
	c->rest = left < n ? n - left : 0;
	c->at += n - c->rest;
	return 1;
}

int
acc_take_text(struct acc_cursor *c, struct acc_str *out, const char *what)
{
	struct acc_packed it;
	size_t at = c->at;
	int rc = acc_take(c, &it);
	if (rc <= 0)
		return rc;
	if (it.type != STRING)
		return acc_fail_at(c->e, ACC_EFORMAT, at, "%s is not a string", what);
	return acc_take_bytes(c, it.u, out);
}

/* n elements, all integers or all strings; stored if m is not NULL. */
static int
array(struct acc_cursor *c, uint64_t n, struct acc_val *v, struct acc_arena *m)
{
	if (n > ACC_MAX_RECORD || c->at + n > ACC_MAX_RECORD)
		return acc_too_long(c);
	if (c->n - c->at < n)
		return 0;
	int64_t *ints = NULL;
	struct acc_str *texts = NULL;
	*v = (struct acc_val){.type = ACC_V_INTS, .n = (uint32_t)n};
	for (uint64_t i = 0; i < n; i++) {
		struct acc_packed it;
		size_t at = c->at;
		int rc = acc_take(c, &it);
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
			void *p = acc_alloc(m,
				n * (v->type == ACC_V_TEXTS ? sizeof *texts : sizeof *ints));
			if (p == NULL)
				return acc_nomem(c->e);
			if (v->type == ACC_V_TEXTS)
				v->texts = texts = p;
			else
				v->ints = ints = p;
		}
		if (v->type == ACC_V_TEXTS) {
			struct acc_str s;
			rc = acc_take_bytes(c, it.u, &s);
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

int
acc_take_value(struct acc_cursor *c, struct acc_val *v, struct acc_arena *m)
{
	struct acc_packed it;
	size_t at = c->at;
	int rc = acc_take(c, &it);
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
		v->n = it.wide;
		v->f = it.f;
		return 1;
	case STRING:
	case BINARY:
		v->type = it.type == BINARY ? ACC_V_BIN : ACC_V_TEXT;
		c->open = c->open && it.type == BINARY;
		return acc_take_bytes(c, it.u, &v->s);
	case ARRAY:
		return array(c, it.u, v, m);
	default:
		return acc_fail_at(c->e, ACC_EFORMAT, at, "a map inside a record");
	}
}

/* The same of up to 15 such integers, as a shape is: those of m. */
static uint32_t
common_ints(const uint8_t *q, struct acc_val *v, struct acc_arena *m)
{
	const uint32_t n = *q & 0x0f;
	int64_t *ints = (*q & 0xf0) == 0x90 && n > 0 ? acc_alloc(m, n * sizeof *ints) : NULL;
	uint32_t len = 1;
	if (ints == NULL)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t b = q[len];
		if (b < 0x80) {
			ints[i] = b;
			len++;
		} else if (b >= 0xcc && b <= 0xce) {
			const uint32_t size = 1U << (b - 0xcc);
			ints[i] = (int64_t)(acc_big(q + len + 1, 8) >> (64 - 8 * size));
			len += 1 + size;
		} else {
			return 0;
		}
	}
	*v = (struct acc_val){.type = ACC_V_INTS, .n = n, .ints = ints};
	return len;
}

/* Fields from f[i] on, up to f[n], as long as each has a key of up to 31 bytes and a common value,
 * and is not near the end of what was read. Which is the first one that is not passed. *like: as
 * acc_shape_next leaves it. */
static uint32_t
run(struct acc_cursor *c, struct acc_field *f, uint32_t i, uint32_t n,
	const struct acc_shape **like, struct acc_arena *m)
{
	enum { MOST = 1 + 31 + 2 + 255 };
	const uint8_t *p = c->p + c->at;
	const struct acc_shape *s = *like;
	size_t left = c->n - c->at;
	for (; i < n && left >= MOST; i++) {
		const bool as_before = s != NULL && acc_shape_has(s, i, p);
		if (!as_before && (*p & 0xe0) != 0xa0)
			break;
		const uint32_t nkey = *p & 0x1f;
		const uint8_t *q = p + 1 + nkey;
		uint32_t len = acc_common_value(q, &f[i].v);
		if (len == 0 && (len = common_ints(q, &f[i].v, m)) == 0)
			break;
		f[i].key = (struct acc_str){(const char *)p + 1, nkey};
		f[i].raw = q;
		f[i].nraw = len;
		p = q + len;
		left -= 1 + nkey + len;
		if (!as_before && s != NULL)
			s = acc_shape_next(s, f, i + 1);
	}
	c->at = (size_t)(p - c->p);
	*like = s;
	return i;
}

/* Walk one record; fill r if it is not NULL, and find out its shape if sh is not. Its length, 0
 * for more bytes, < 0. *rest: see acc_decode_open; NULL: it must be whole. once: refuse a key that
 * stands twice. */
static int64_t
walk(const void *buf, size_t len, struct acc_rec *r, struct acc_shapes *sh, size_t *rest, bool once,
	struct acc_err *e)
{
	struct acc_cursor c = {.p = buf, .n = len, .e = e};
	struct acc_packed it;
	struct acc_str kind;
	int rc = acc_take(&c, &it);
	if (rc <= 0)
		return rc;
	if (it.type != ARRAY || it.u != 2)
		return acc_fail_at(e, ACC_EFORMAT, 0, "not a record: no array of two");
	rc = acc_take_text(&c, &kind, "a record's kind");
	if (rc <= 0)
		return rc;
	rc = acc_take(&c, &it);
	if (rc <= 0)
		return rc;
	if (it.type != MAP)
		return acc_fail_at(e, ACC_EFORMAT, c.at, "a record's second half is not a map");
	if (it.u > ACC_MAX_FIELDS)
		return acc_fail_at(e, ACC_ELIMIT, c.at, "record of more than %d fields",
			ACC_MAX_FIELDS);
	if (r != NULL && (rc = acc_rec_start(r, kind)) < 0)
		return acc_nomem(e);
	struct acc_field *f = NULL, skipped;
	if (r != NULL && (f = acc_rec_room(r, (uint32_t)it.u)) == NULL)
		return acc_nomem(e);
	const struct acc_shape *like = sh == NULL ? NULL
						  : acc_shape_first(sh, kind, (uint32_t)it.u);
	for (uint32_t i = 0, n = (uint32_t)it.u; i < n; i++) {
		if (r != NULL)
			i = r->n = run(&c, f, i, n, &like, &r->mem);
		if (i == n)
			break;
		struct acc_field *g = r == NULL ? &skipped : &f[i];
		rc = acc_take_text(&c, &g->key, "a key");
		if (rc <= 0)
			return rc;
		size_t start = c.at;
		c.open = rest != NULL && i + 1 == n;
		rc = acc_take_value(&c, &g->v, r == NULL ? NULL : &r->mem);
		if (rc <= 0)
			return rc;
		g->raw = c.p + start;
		g->nraw = (uint32_t)(c.at - start);
		if (like != NULL && !acc_key_same(like->key[i], g->key))
			like = acc_shape_next(like, f, i + 1);
		if (r != NULL)
			r->n++;
	}
	if (rest != NULL)
		*rest = c.rest;
	if (c.at > ACC_MAX_RECORD)
		return acc_too_long(&c);
	if (once && like == NULL && acc_rec_once(r, e) < 0)
		return e == NULL ? ACC_EFORMAT : e->code;
	if (sh != NULL) {
		r->shape = like != NULL ? like->hash : acc_shape_new(sh, r);
		sh->holds = like != NULL ? like->holds : NULL;
	}
	return (int64_t)c.at;
}

/* Offsets in messages are within the record; the reader adds where the record began. */
int64_t
acc_scan(const void *buf, size_t len, struct acc_err *e)
{
	return walk(buf, len, NULL, NULL, NULL, false, e);
}

int64_t
acc_decode(const void *buf, size_t len, struct acc_rec *r, struct acc_err *e)
{
	return walk(buf, len, r, NULL, NULL, true, e);
}

int64_t
acc_decode_open(const void *buf, size_t len, struct acc_rec *r, struct acc_shapes *sh, size_t *rest,
	struct acc_err *e)
{
	return walk(buf, len, r, sh, rest, sh != NULL, e);
}

int
acc_raw_values(struct acc_rec *r, struct acc_err *e)
{
	for (uint32_t i = 0; i < r->n; i++) {
		struct acc_field *f = &r->f[i];
		if (acc_common_value(f->raw, &f->v) > 0 || common_ints(f->raw, &f->v, &r->mem) > 0)
			continue;
		struct acc_cursor c = {.p = f->raw, .n = f->nraw, .e = e};
		if (acc_take_value(&c, &f->v, &r->mem) <= 0)
			return acc_nomem(e);
	}
	return 0;
}
