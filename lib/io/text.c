#include "io/parse.h"

/* The length of the UTF-8 sequence at p (n bytes are left), or 0. */
static size_t
sequence(const uint8_t *p, size_t n)
{
	/* The range of the second byte shuts out overlong forms, surrogates, > U+10FFFF. */
	uint8_t c = p[0], lo = 0x80, hi = 0xbf;
	size_t len = c < 0x80                ? 1
		     : c >= 0xc2 && c < 0xe0 ? 2
		     : c >= 0xe0 && c < 0xf0 ? 3
		     : c >= 0xf0 && c < 0xf5 ? 4
					     : 0;
	if (c == 0xe0)
		lo = 0xa0;
	else if (c == 0xed)
		hi = 0x9f;
	else if (c == 0xf0)
		lo = 0x90;
	else if (c == 0xf4)
		hi = 0x8f;
	if (len > n || (len > 1 && (p[1] < lo || p[1] > hi)))
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

size_t
acc_utf8_check(const uint8_t *p, size_t n)
{
	size_t i = 0, len = 1;
	while (i < n && (len = sequence(p + i, n - i)) > 0)
		i += len;
	return i;
}

/* The four hexadecimal digits at p (n bytes are left), or -1. */
static int32_t
hex4(const uint8_t *p, size_t n)
{
	int32_t v = 0;
	for (size_t i = 0; i < 4; i++) {
		if (i >= n)
			return -1;
		uint8_t c = p[i], low = c | 0x20;
		if (c >= '0' && c <= '9')
			v = v * 16 + c - '0';
		else if (low >= 'a' && low <= 'f')
			v = v * 16 + low - 'a' + 10;
		else
			return -1;
	}
	return v;
}

static uint8_t *
put_utf8(uint8_t *o, int32_t u)
{
	if (u < 0x80) {
		*o++ = (uint8_t)u;
		return o;
	}
	if (u < 0x800) {
		*o++ = (uint8_t)(0xc0 | u >> 6);
	} else {
		if (u < 0x10000) {
			*o++ = (uint8_t)(0xe0 | u >> 12);
		} else {
			*o++ = (uint8_t)(0xf0 | u >> 18);
			*o++ = (uint8_t)(0x80 | (u >> 12 & 0x3f));
		}
		*o++ = (uint8_t)(0x80 | (u >> 6 & 0x3f));
	}
	*o++ = (uint8_t)(0x80 | (u & 0x3f));
	return o;
}

/* The escape whose letter is at p: append it at *o. The bytes used, or 0. */
static size_t
escape(const uint8_t *p, size_t n, uint8_t **o)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (*p != 'u') {
		const char *f = *p == '\0' ? NULL : strchr(from, *p);
		if (f == NULL)
			return 0;
		*(*o)++ = (uint8_t)to[f - from];
		return 1;
	}
	int32_t u = hex4(p + 1, n - 1), low = -1;
	if (u < 0)
		return 0;
	if (u < 0xd800 || u > 0xdfff) {
		*o = put_utf8(*o, u);
		return 5;
	}
	if (u < 0xdc00 && n > 6 && p[5] == '\\' && p[6] == 'u')
		low = hex4(p + 7, n - 7);
	if (low >= 0xdc00 && low <= 0xdfff) {
		*o = put_utf8(*o, 0x10000 + (u - 0xd800) * 0x400 + (low - 0xdc00));
		return 11;
	}
	*o = put_utf8(*o, 0xfffd);
	return 5;
}

/* Is what stands behind the mark a text? It has a line's end, and no control characters, single halves of pairs or what
 * is no character. */
static bool
is_text16(const uint8_t *p, size_t n, bool big)
{
	bool ended = false, half = false;
	for (size_t i = 2; i + 1 < n; i += 2) {
		const unsigned u = big ? (unsigned)p[i] << 8 | p[i + 1]
				       : (unsigned)p[i + 1] << 8 | p[i];
		const bool low = u >= 0xdc00 && u < 0xe000;
		if ((u < 0x20 && strchr("\t\n\r\033", (int)u) == NULL) || u == 0 || u >= 0xfffe ||
			low != half)
			return false;
		half = u >= 0xd800 && u < 0xdc00;
		ended = ended || u == '\n';
	}
	return ended;
}

bool
acc_utf16_starts(const uint8_t *p, size_t n, bool *big)
{
	enum { LOOKED = 1024 };
	*big = n >= 4 && p[0] == 0xfe && p[1] == 0xff;
	if (n < 4 || (!*big && (p[0] != 0xff || p[1] != 0xfe)))
		return false;
	/* A mark, then a character of ASCII: numbers in two bytes each begin so, too, and no text. */
	if (*big ? p[2] == 0 && p[3] - 9U < 0x76 : p[3] == 0 && p[2] - 9U < 0x76)
		return true;
	return is_text16(p, n < LOOKED ? n : LOOKED, *big);
}

size_t
acc_utf16(const uint8_t *p, size_t n, bool big, bool last, uint8_t *out, size_t *len)
{
	uint8_t *o = out;
	size_t i = 0;
	for (; i + 1 < n; i += 2) {
		int32_t u = big ? p[i] << 8 | p[i + 1] : p[i + 1] << 8 | p[i], low = 0;
		if (u >= 0xd800 && u < 0xdc00) {
			if (i + 3 >= n && !last)
				break;
			if (i + 3 < n)
				low = big ? p[i + 2] << 8 | p[i + 3] : p[i + 3] << 8 | p[i + 2];
		}
		if (low >= 0xdc00 && low <= 0xdfff) {
			u = 0x10000 + (u - 0xd800) * 0x400 + (low - 0xdc00);
			i += 2;
		} else if (u >= 0xd800 && u <= 0xdfff) {
			u = 0xfffd;
		}
		if (u != 0xfeff)
			o = put_utf8(o, u);
	}
	*len = (size_t)(o - out);
	return last ? n : i;
}

size_t
acc_json_unescape(const uint8_t *p, size_t n, uint8_t *out, size_t *len)
{
	/* No escape is shorter than what it stands for. */
	const uint8_t *q = p, *end = p + n;
	uint8_t *o = out;
	while (q < end) {
		const uint8_t *slash = memchr(q, '\\', (size_t)(end - q));
		size_t run = (size_t)((slash == NULL ? end : slash) - q), used;
		memcpy(o, q, run);
		o += run;
		q += run;
		if (slash == NULL)
			break;
		used = escape(q + 1, (size_t)(end - q - 1), &o);
		if (used == 0)
			break;
		q += 1 + used;
	}
	*len = (size_t)(o - out);
	return (size_t)(q - p);
}
