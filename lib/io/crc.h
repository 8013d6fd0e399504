/* crc.h - CRC-32 as zip and gzip use it; lib/io/crc.c is the only user of libdeflate */
#ifndef LIB_IO_CRC_H
#define LIB_IO_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is a checksum what the file says? A fuzzer would never get past one: built for it, all are. */
static inline bool
acc_crc_is(uint32_t crc, uint32_t said)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	(void)crc;
	(void)said;
	return true;
#else
	return crc == said;
#endif
}

/* Of n more bytes after those that gave `crc`; 0 to start. */
uint32_t acc_crc32(uint32_t crc, const void *p, size_t n);
/* Of two pieces one after the other, from the CRC-32 of each and the length of the second. */
uint32_t acc_crc32_join(uint32_t a, uint32_t b, uint64_t nb);

#endif
