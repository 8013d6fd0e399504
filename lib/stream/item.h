/* item.h - MessagePack, item by item */
#ifndef STREAM_ITEM_H
#define STREAM_ITEM_H

#include "stream/codec.h"

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

/* A value as three words, which stay in registers: what is put together of smaller parts in memory and copied at once
 * has to wait until these are written. */
struct acc_words {
	uint64_t head, a, b;
};
_Static_assert(sizeof(struct acc_words) == sizeof(struct acc_val) &&
		       offsetof(struct acc_val, s) == offsetof(struct acc_words, a),
	"a value is three words");

static inline void
acc_words_put(struct acc_val *v, struct acc_words w)
{
	uint8_t *to = (uint8_t *)v;
	memcpy(to, &w.head, sizeof w.head);
	memcpy(to + 8, &w.a, sizeof w.a);
	memcpy(to + 16, &w.b, sizeof w.b);
}

static inline uint64_t
acc_two(uint32_t first, uint32_t second)
{
	const uint32_t both[2] = {first, second};
	uint64_t w;
	memcpy(&w, both, sizeof w);
	return w;
}

static inline uint32_t
acc_first(uint64_t w)
{
	uint32_t both[2];
	memcpy(both, &w, sizeof both);
	return both[0];
}

/* The value at q, of the commonest forms: an integer that is not negative and has up to 32 bits, a
 * double, a bool, nil or a string of up to 255 bytes. Its length; 0: it is another one. */
static inline uint32_t
acc_common_words(const uint8_t *q, struct acc_words *w)
{
	const uint8_t b = *q;
	if ((b & 0xe0) == 0xa0 || b == 0xd9) {
		const uint32_t head = b == 0xd9 ? 2 : 1, n = b == 0xd9 ? q[1] : b & 0x1f;
		const char *p = (const char *)q + head;
		*w = (struct acc_words){acc_two(ACC_V_TEXT, 0), (uint64_t)(uintptr_t)p,
			acc_two(n, 0)};
		return head + n;
	}
	if (b < 0x80) {
		*w = (struct acc_words){acc_two(ACC_V_INT, 0), b, 0};
		return 1;
	}
	if (b == 0xcb) {
		*w = (struct acc_words){acc_two(ACC_V_F64, 1), acc_big(q + 1, 8), 0};
		return 9;
	}
	if (b >= 0xcc && b <= 0xce) {
		const uint32_t n = 1U << (b - 0xcc);
		*w = (struct acc_words){acc_two(ACC_V_INT, 0), acc_big(q + 1, 8) >> (64 - 8 * n),
			0};
		return 1 + n;
	}
	if (b == 0xc2 || b == 0xc3) {
		const bool is[8] = {b & 1};
		*w = (struct acc_words){acc_two(ACC_V_BOOL, 0), acc_load8(is), 0};
		return 1;
	}
	if (b == 0xca) {
		const uint32_t bits = (uint32_t)acc_big(q + 1, 4);
		float f;
		double wide;
		memcpy(&f, &bits, sizeof f);
		wide = f;
		*w = (struct acc_words){acc_two(ACC_V_F64, 0), acc_load8(&wide), 0};
		return 5;
	}
	*w = (struct acc_words){acc_two(ACC_V_NIL, 0), 0, 0};
	return b == 0xc0;
}

static inline uint32_t
acc_common_value(const uint8_t *q, struct acc_val *v)
{
	struct acc_words w;
	const uint32_t n = acc_common_words(q, &w);
	acc_words_put(v, w);
	return n;
}

#endif
