/* unzstd.h - streaming decompression of zstd; lib/io/unzstd.c is the only user of libzstd
 *
 * The library is loaded when something is so compressed: a program that is copied to a cluster starts where it is
 * not. What was built without its header, or is linked statically, says so then. */
#ifndef ACC_IO_UNZSTD_H
#define ACC_IO_UNZSTD_H

#include "acc/base.h"

#ifdef __has_include
#if __has_include(<zstd.h>)
#define ACC_HAVE_ZSTD 1
#endif
#endif

struct acc_unzstd;
struct acc_unzstd *acc_unzstd_open(struct acc_err *e);
/* As acc_inflate_run. Frames that need a window of more than 8 MiB are refused. */
int acc_unzstd_run(struct acc_unzstd *z, const uint8_t *in, size_t *nin, uint8_t *out, size_t *nout,
	struct acc_err *e);
void acc_unzstd_close(struct acc_unzstd *z);

#endif
