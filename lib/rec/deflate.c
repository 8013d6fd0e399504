#include "rec/deflate.h"

#include <stdlib.h>

/* As members of zip files have it; level 1, for a training run waits. */
enum { RAW = -15, LEVEL = 1, MEMORY = 8, PIECE = 1 << 16 };

int
acc_deflate_open(struct deflate *d, struct acc_err *e)
{
	d->out = malloc(PIECE);
	if (d->out != NULL &&
		deflateInit2(&d->z, LEVEL, Z_DEFLATED, RAW, MEMORY, Z_DEFAULT_STRATEGY) == Z_OK)
		return 0;
	free(d->out);
	d->out = NULL;
	return acc_nomem(e);
}

void
acc_deflate_release(struct deflate *d)
{
	if (d->out != NULL)
		deflateEnd(&d->z);
	free(d->out);
}

int
acc_deflate_begin(struct deflate *d, struct acc_err *e)
{
	return deflateReset(&d->z) == Z_OK ? 0 : acc_nomem(e);
}

static int
run(struct deflate *d, struct sink *s, int how, struct acc_err *e)
{
	int rc = 0;
	do {
		d->z.next_out = d->out;
		d->z.avail_out = PIECE;
		deflate(&d->z, how);
		rc = acc_sink_bytes(s, d->out, PIECE - d->z.avail_out, e);
	} while (rc == 0 && d->z.avail_out == 0);
	return rc;
}

/* At most PIECEs of the queue come, so that the length fits zlib's type. */
int
acc_deflate_bytes(struct deflate *d, struct sink *s, const void *p, size_t n, struct acc_err *e)
{
	d->z.next_in = (z_const Bytef *)(uintptr_t)p;
	d->z.avail_in = (uInt)n;
	return run(d, s, Z_NO_FLUSH, e);
}

int
acc_deflate_end(struct deflate *d, struct sink *s, uint64_t *bytes, struct acc_err *e)
{
	d->z.avail_in = 0;
	int rc = run(d, s, Z_FINISH, e);
	*bytes = d->z.total_out;
	return rc;
}
