/* What the files of lib/stream share. */
#ifndef STREAM_CODEC_H
#define STREAM_CODEC_H

#include "acc/stream.h"

/* A record whose last field is a blob, all but the bytes of this blob. */
int acc_encode_but_blob(const struct acc_rec *r, struct acc_buf *out, struct acc_err *e);

#endif
