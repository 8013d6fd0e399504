/* item.h - MessagePack, item by item */
#ifndef STREAM_ITEM_H
#define STREAM_ITEM_H

#include "acc/stream.h"

struct acc_cursor {
	const uint8_t *p;
	size_t n, at;
	struct acc_err *e;
	bool open;   /* a blob may reach beyond n: */
	size_t rest; /* so many bytes */
};

/* What an item's first bytes say. */
struct acc_packed {
	enum { NIL, BOOLEAN, INTEGER, REAL, STRING, BINARY, ARRAY, MAP } type;
	bool negative, wide; /* wide: a float of 64 bits */
	uint64_t u;          /* integer's bits, string's length, number of elements; boolean */
	double f;
};

static inline uint64_t
acc_big(const uint8_t *p, unsigned n)
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
int acc_take_long(struct acc_cursor *c, uint8_t b, struct acc_packed *it);
/* 1: an item header was read and passed; 0: more bytes are needed; < 0: no such item. */
static inline int
acc_take(struct acc_cursor *c, struct acc_packed *it)
{
	if (c->at >= c->n)
		return 0;
	uint8_t b = c->p[c->at];
	it->negative = false;
	if (b >= 0xc0 && b < 0xe0)
		return acc_take_long(c, b, it);
	c->at++;
	it->type = b < 0x80 || b >= 0xe0 ? INTEGER : b < 0x90 ? MAP : b < 0xa0 ? ARRAY : STRING;
	it->negative = b >= 0xe0;
	it->u = b < 0x80   ? b
		: b < 0xa0 ? b & 0x0f
		: b < 0xc0 ? b & 0x1f
			   : (uint64_t)(int64_t)(int8_t)b;
	return 1;
}

int acc_too_long(struct acc_cursor *c);
/* The bytes of a string or blob. */
int acc_take_bytes(struct acc_cursor *c, uint64_t n, struct acc_str *out);
int acc_take_text(struct acc_cursor *c, struct acc_str *out, const char *what);
/* A value; the elements of an array are stored if m is not NULL. */
int acc_take_value(struct acc_cursor *c, struct acc_val *v, struct acc_arena *m);

/* The value at q, of the commonest forms: an integer that is not negative and has up to 32 bits, a
 * double, a bool, nil or a string of up to 255 bytes. Its length; 0: it is another one. */
static inline uint32_t
acc_common_value(const uint8_t *q, struct acc_val *v)
{
	const uint8_t b = *q;
	if ((b & 0xe0) == 0xa0 || b == 0xd9) {
		const uint32_t head = b == 0xd9 ? 2 : 1, n = b == 0xd9 ? q[1] : b & 0x1f;
		v->type = ACC_V_TEXT;
		v->s = (struct acc_str){(const char *)q + head, n};
		return head + n;
	}
	if (b < 0x80) {
		v->type = ACC_V_INT;
		v->i = b;
		return 1;
	}
	if (b == 0xcb) {
		const uint64_t bits = acc_big(q + 1, 8);
		v->type = ACC_V_F64;
		v->n = true;
		memcpy(&v->f, &bits, sizeof bits);
		return 9;
	}
	if (b >= 0xcc && b <= 0xce) {
		const uint32_t n = 1U << (b - 0xcc);
		v->type = ACC_V_INT;
		v->i = (int64_t)(acc_big(q + 1, 8) >> (64 - 8 * n));
		return 1 + n;
	}
	if (b == 0xc2 || b == 0xc3) {
		v->type = ACC_V_BOOL;
		v->b = b & 1;
		return 1;
	}
	if (b == 0xca) {
		const uint32_t bits = (uint32_t)acc_big(q + 1, 4);
		float f;
		memcpy(&f, &bits, sizeof bits);
		v->type = ACC_V_F64;
		v->n = false;
		v->f = f;
		return 5;
	}
	if (b == 0xc0)
		v->type = ACC_V_NIL;
	return b == 0xc0;
}

#endif
