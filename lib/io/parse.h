/* parse.h - the parts of a JSON text that need no reader: strings and numbers
 *
 * Whatever is scanned here is followed by at least ACC_BYTES_PAD zeros.
 */
#ifndef ACC_IO_PARSE_H
#define ACC_IO_PARSE_H

#include <endian.h>

#include "acc/base.h"

enum { ACC_NUMBER_LIMIT = 4096 }; /* characters of a number */

/* Eight characters, the first one in the lowest bits; a byte repeated eight times. */
static inline uint64_t
acc_load8(const uint8_t *p)
{
	uint64_t w;
	memcpy(&w, p, sizeof w);
	return le64toh(w);
}
#define ACC_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Behind up to eight blanks, which most often follow a line's end, or one another. */
static inline const uint8_t *
acc_blanks(const uint8_t *p)
{
	uint64_t other = acc_load8(p) ^ ACC_EACH(' ');
	return other == 0 ? p + 8 : p + __builtin_ctzll(other) / 8;
}

/* Behind white space. */
static inline const uint8_t *
acc_white(const uint8_t *p)
{
	while (*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p = acc_blanks(p + 1);
	return p;
}

/* The number of characters of a string that stand for themselves: up to a quote, a backslash or a control
 * character. *seen collects their bits (a high one: not ASCII). The lowest high bit of each
 * mask is exact, those above it may be false. */
static inline size_t
acc_run(const uint8_t *p, uint64_t *seen)
{
	for (const uint8_t *q = p;; q += 8) {
		uint64_t w = acc_load8(q), quote = w ^ ACC_EACH('"'), slash = w ^ ACC_EACH('\\');
		uint64_t hit = ((quote - ACC_EACH(1)) & ~quote) | ((slash - ACC_EACH(1)) & ~slash) |
			       ((w - ACC_EACH(0x20)) & ~w);
		*seen |= w;
		hit &= ACC_EACH(0x80);
		if (hit != 0)
			return (size_t)(q - p) + (size_t)__builtin_ctzll(hit) / 8;
	}
}

/* The offset of the first byte that begins no UTF-8 sequence, or n. */
size_t acc_utf8_check(const uint8_t *p, size_t n);

/* Does a text in UTF-16 begin so? */
bool acc_utf16_starts(const uint8_t *p, size_t n, bool *big);
/* UTF-16 into UTF-8, marks of byte order left out, half pairs as U+FFFD: *len bytes in out, which has
 * room for 3 / 2 n. The bytes used; `last`: what is left over is no character. */
size_t acc_utf16(const uint8_t *p, size_t n, bool big, bool last, uint8_t *out, size_t *len);
/* Replace the escapes of a JSON string's n bytes; `out` has room for n. A half of a surrogate
 * pair alone becomes U+FFFD: UTF-8 cannot hold it. Returns the offset of the first escape
 * that JSON does not know, or n; *len is the length of what was written. */
size_t acc_json_unescape(const uint8_t *p, size_t n, uint8_t *out, size_t *len);

static inline bool
acc_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* Are these eight characters digits? Either sum leaves the high bit clear for digits alone. */
static inline bool
acc_eight_digits(uint64_t w)
{
	return (((w + ACC_EACH(0x46)) | (w - ACC_EACH('0'))) & ACC_EACH(0x80)) == 0;
}

/* Their value: neighbours are joined to pairs, these to fours, these to eight. */
static inline uint64_t
acc_eight_value(uint64_t w)
{
	w = ((w & ACC_EACH(0x0f)) * (10 * 256 + 1)) >> 8;
	w = ((w & UINT64_C(0x00ff00ff00ff00ff)) * (100 * 65536 + 1)) >> 16;
	return ((w & UINT64_C(0x0000ffff0000ffff)) * ((UINT64_C(10000) << 32) + 1)) >> 32;
}

/* Digits from q on, up to what is none, behind those of *w. */
static inline const uint8_t *
acc_digits(const uint8_t *q, uint64_t *w)
{
	for (uint64_t eight = acc_load8(q); acc_eight_digits(eight); eight = acc_load8(q += 8))
		*w = *w * 100000000 + acc_eight_value(eight);
	for (; acc_digit(*q); q++)
		*w = *w * 10 + (uint64_t)(*q - '0');
	return q;
}

/* A number as JSON defines it, taken apart. */
struct acc_number {
	uint64_t w;    /* all digits as one integer, modulo 2^64 */
	size_t digits; /* their number, without leading zeros */
	int exp10;     /* the value is w * 10^exp10 */
	bool negative, real;
	const char *bad; /* what is wrong with it */
};
/* Returns the end of what looks like one. */
const uint8_t *acc_number_scan(const uint8_t *p, struct acc_number *v);
/* The double next to it, ties to even, as Python's float(). `s` is the literal, of at most
 * ACC_NUMBER_LIMIT characters. */
double acc_number_f64(const struct acc_number *v, const uint8_t *s, size_t n);

#endif
