/* crc.h - CRC-32 as zip and gzip use it; lib/io/crc.c is the only user of libdeflate */
#ifndef LIB_IO_CRC_H
#define LIB_IO_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Of n more bytes after those that gave `crc`; 0 to start. */
uint32_t acc_crc32(uint32_t crc, const void *p, size_t n);

#endif
