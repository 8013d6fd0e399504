#include "io/crc32c.h"

#include <string.h>

/* Half a byte at a time: for machines whose processor has no instruction for it. */
static uint32_t
portable(uint32_t crc, const uint8_t *p, size_t n)
{
	static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6,
		0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		crc = table[crc & 15] ^ (crc >> 4);
		crc = table[crc & 15] ^ (crc >> 4);
	}
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2,crc32"))) static uint32_t
native(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t c = crc, w;
	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&w, p, 8);
		c = __builtin_ia32_crc32di(c, w);
	}
	for (crc = (uint32_t)c; n > 0; p++, n--)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}
#endif

uint32_t
acc_crc32c(uint32_t crc, const void *p, size_t n)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~native(~crc, p, n);
#endif
	return ~portable(~crc, p, n);
}
