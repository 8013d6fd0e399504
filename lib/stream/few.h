/* few.h - bytes, most of which are few: a call would take longer than what it does */
#ifndef STREAM_FEW_H
#define STREAM_FEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Are n bytes equal? */
static inline bool
acc_bytes_same(const void *p, const void *q, size_t n)
{
	const uint8_t *a = p, *b = q;
	uint64_t u, v, w, x;
	uint32_t s, t, y, z;
	if (n > 16)
		return memcmp(a, b, n) == 0;
	if (n >= 8) {
		memcpy(&u, a, 8);
		memcpy(&v, b, 8);
		memcpy(&w, a + n - 8, 8);
		memcpy(&x, b + n - 8, 8);
		return ((u ^ v) | (w ^ x)) == 0;
	}
	if (n >= 4) {
		memcpy(&s, a, 4);
		memcpy(&t, b, 4);
		memcpy(&y, a + n - 4, 4);
		memcpy(&z, b + n - 4, 4);
		return ((s ^ t) | (y ^ z)) == 0;
	}
	return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/* Copy n bytes. */
static inline void
acc_bytes_copy(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *p = from;
	if (n > 128) {
		memcpy(t, p, n);
	} else if (n > 16) {
		for (size_t i = 0; i < n - 16; i += 16)
			memcpy(t + i, p + i, 16);
		memcpy(t + n - 16, p + n - 16, 16);
	} else if (n >= 8) {
		memcpy(t, p, 8);
		memcpy(t + n - 8, p + n - 8, 8);
	} else if (n >= 4) {
		memcpy(t, p, 4);
		memcpy(t + n - 4, p + n - 4, 4);
	} else {
		for (size_t i = 0; i < n; i++)
			t[i] = p[i];
	}
}

/* The bits that are set in n bytes. The instruction is not sure to be there, and its stand-in is a call for each. */
static inline uint32_t
acc_bytes_ones(const uint8_t *p, size_t n)
{
	uint32_t ones = 0;
	for (size_t i = 0; i < n; i += 8) {
		uint64_t x = 0;
		acc_bytes_copy(&x, p + i, n - i < 8 ? n - i : 8);
		x -= x >> 1 & UINT64_C(0x5555555555555555);
		x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
		x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
		ones += (uint32_t)(x * UINT64_C(0x0101010101010101) >> 56);
	}
	return ones;
}

#endif
