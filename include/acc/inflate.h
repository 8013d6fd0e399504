/* inflate.h - streaming decompression; lib/io/inflate.c is the only user of zlib */
#ifndef ACC_INFLATE_H
#define ACC_INFLATE_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum acc_inflate_form { ACC_INFLATE_RAW, ACC_INFLATE_GZIP };

struct acc_inflate;
struct acc_inflate *acc_inflate_open(enum acc_inflate_form form, struct acc_err *e);
/* Consume from in[0..*nin) and produce into out[0..*nout); both are set to what was used.
 * 1: the deflate stream ended (a gzip member's checksum was right); 0: go on; < 0: corrupt. */
int acc_inflate_run(struct acc_inflate *z, const uint8_t *in, size_t *nin, uint8_t *out,
	size_t *nout, struct acc_err *e);
/* Start a new stream of the same form (the next gzip member). */
int acc_inflate_reset(struct acc_inflate *z, struct acc_err *e);
void acc_inflate_close(struct acc_inflate *z);

#ifdef __cplusplus
}
#endif

#endif
