/* deflate.h - elements compressed on their way into a recording */
#ifndef REC_DEFLATE_H
#define REC_DEFLATE_H

#include <zlib.h>

#include "rec/sink.h"

struct deflate {
	z_stream z;
	uint8_t *out;
};

/* For one tensor after another. 0 or < 0. */
int acc_deflate_open(struct deflate *d, struct acc_err *e);
void acc_deflate_release(struct deflate *d);
int acc_deflate_begin(struct deflate *d, struct acc_err *e);
int acc_deflate_bytes(struct deflate *d, struct sink *s, const void *p, size_t n,
	struct acc_err *e);
/* The rest: *bytes is how many all have become. */
int acc_deflate_end(struct deflate *d, struct sink *s, uint64_t *bytes, struct acc_err *e);

#endif
