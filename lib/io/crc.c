#include "io/crc.h"

#include <libdeflate.h>

uint32_t
acc_crc32(uint32_t crc, const void *p, size_t n)
{
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
