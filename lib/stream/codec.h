/* What the files of lib/stream share. */
#ifndef STREAM_CODEC_H
#define STREAM_CODEC_H

#include "acc/stream.h"

/* A record whose last field is a blob, all but the bytes of this blob. */
int acc_encode_but_blob(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e);
/* acc_decode of a record of which not all bytes are there: if its last field is a blob, the last
 * *rest bytes of this may lie beyond buf. Its length is that of all. */
int64_t acc_decode_open(const void *buf, size_t len, struct acc_rec *r, size_t *rest,
	struct acc_err *e);

#endif
