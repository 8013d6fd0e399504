/* crc32c.h - CRC-32C (Castagnoli), as event files frame their records */
#ifndef LIB_IO_CRC32C_H
#define LIB_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of n more bytes after those that gave `crc`; 0 to start. */
uint32_t acc_crc32c(uint32_t crc, const void *p, size_t n);
/* As it stands in a file: turned by 15 bits and moved, so that a CRC of a CRC stays one. */
static inline uint32_t
acc_crc32c_mask(uint32_t crc)
{
	return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

#endif
