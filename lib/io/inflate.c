#include "acc/inflate.h"

#include <limits.h>
#include <stdlib.h>

#include <zlib.h>

struct acc_inflate {
	z_stream z;
};

struct acc_inflate *
acc_inflate_open(enum acc_inflate_form form, struct acc_err *e)
{
	struct acc_inflate *s = calloc(1, sizeof *s);
	/* Negative window bits: no header; 16 more: a gzip header and trailer. */
	int bits = form == ACC_INFLATE_RAW ? -MAX_WBITS : MAX_WBITS + 16;
	if (s == NULL || inflateInit2(&s->z, bits) != Z_OK) {
		free(s);
		acc_nomem(e);
		return NULL;
	}
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	inflateValidate(&s->z, 0); /* as acc_crc_is */
#endif
	return s;
}

static uInt
clamp(size_t n)
{
	return n > UINT_MAX ? UINT_MAX : (uInt)n;
}

int
acc_inflate_run(struct acc_inflate *s, const uint8_t *in, size_t *nin, uint8_t *out, size_t *nout,
	struct acc_err *e)
{
	z_stream *z = &s->z;
	uInt give = clamp(*nin), room = clamp(*nout);
	z->next_in = (Bytef *)(uintptr_t)in; /* zlib does not write to it */
	z->avail_in = give;
	z->next_out = out;
	z->avail_out = room;
	int rc = inflate(z, Z_NO_FLUSH);
	*nin = give - z->avail_in;
	*nout = room - z->avail_out;
	if (rc == Z_STREAM_END)
		return 1;
	if (rc == Z_OK ||
		rc == Z_BUF_ERROR) /* the latter: no progress without more room or input */
		return 0;
	if (rc == Z_MEM_ERROR)
		return acc_nomem(e);
	return acc_fail(e, ACC_EFORMAT, "corrupt compressed data: %s",
		z->msg != NULL ? z->msg : "unknown form");
}

int
acc_inflate_reset(struct acc_inflate *s, struct acc_err *e)
{
	if (inflateReset(&s->z) != Z_OK)
		return acc_fail(e, ACC_EFORMAT, "cannot restart inflating");
	return 0;
}

void
acc_inflate_close(struct acc_inflate *s)
{
	if (s == NULL)
		return;
	inflateEnd(&s->z);
	free(s);
}
