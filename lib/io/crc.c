#include "io/crc.h"

#include <libdeflate.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { FOLD = 256 };

/* Fold as much as possible of the input, by 256 bytes at a time, into the last 256 bytes: these
 * have the same remainder (Gopal and others, Intel 2009). libdeflate does so too, but in
 * registers of 16 bytes before its version 1.19. */
#define CLMUL __attribute__((target("avx512f,pclmul,vpclmulqdq")))

CLMUL static inline __m512i
step(__m512i r, const uint8_t *next)
{
	/* x^(2048 + 32) and x^(2048 - 32) modulo the polynomial, bits reversed, times x. */
	const __m512i k = _mm512_set4_epi64(0x1322d1430, 0x11542778a, 0x1322d1430, 0x11542778a);
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(r, k, 0x00),
		_mm512_clmulepi64_epi128(r, k, 0x11), _mm512_loadu_si512(next), 0x96);
}

CLMUL static uint32_t
fold(uint32_t crc, const uint8_t *p, size_t n)
{
	uint8_t last[FOLD];
	const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
	__m512i a = _mm512_xor_si512(_mm512_loadu_si512(p), before);
	__m512i b = _mm512_loadu_si512(p + 64), c = _mm512_loadu_si512(p + 128);
	__m512i d = _mm512_loadu_si512(p + 192);
	for (p += FOLD, n -= FOLD; n >= FOLD; p += FOLD, n -= FOLD) {
		a = step(a, p);
		b = step(b, p + 64);
		c = step(c, p + 128);
		d = step(d, p + 192);
	}
	_mm512_storeu_si512(last, a);
	_mm512_storeu_si512(last + 64, b);
	_mm512_storeu_si512(last + 128, c);
	_mm512_storeu_si512(last + 192, d);
	crc = libdeflate_crc32(UINT32_MAX, last, sizeof last);
	return n == 0 ? crc : libdeflate_crc32(crc, p, n);
}
#endif

uint32_t
acc_crc32(uint32_t crc, const void *p, size_t n)
{
#if defined(__x86_64__)
	if (n >= 4 * FOLD && __builtin_cpu_supports("vpclmulqdq") &&
		__builtin_cpu_supports("avx512f"))
		return fold(crc, p, n);
#endif
	/* libdeflate takes NULL as "start anew". */
	return n == 0 ? crc : libdeflate_crc32(crc, p, n);
}

/* Polynomials over GF(2), modulo that of CRC-32, bit 31 the constant term. */
static uint32_t
multiply(uint32_t a, uint32_t b)
{
	uint32_t p = 0;
	for (uint32_t m = 1u << 31; m != 0; m >>= 1) {
		if (a & m)
			p ^= b;
		b = b & 1 ? (b >> 1) ^ 0xedb88320 : b >> 1;
	}
	return p;
}

uint32_t
acc_crc32_join(uint32_t a, uint32_t b, uint64_t nb)
{
	/* a times x^(8 nb): square x^8 along the bits of nb. */
	for (uint32_t x = 1u << 23; nb > 0; nb >>= 1, x = multiply(x, x))
		if (nb & 1)
			a = multiply(x, a);
	return a ^ b;
}
