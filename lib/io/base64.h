/* base64.h - bytes spelled in base64 (RFC 4648, section 4), with its padding */
#ifndef IO_BASE64_H
#define IO_BASE64_H

#include "acc/base.h"

/* How many bytes n characters spell, of which the last two are c[0] and c[1]; -1: n is no multiple of 4. */
int64_t acc_base64_length(uint64_t n, const char c[2]);
/* n characters, a multiple of 4, into out, which has room for 3 of each 4. How many bytes, or -1: they are none. */
int64_t acc_base64_decode(const char *in, size_t n, uint8_t *out);

#endif
