/* A compressed member, by deflate or zstd, decompressed from its start and never beyond the length that the record
 * announces. */
#include "payload/pay.h"

#include "acc/file.h"
#include "acc/inflate.h"
#include "io/unzstd.h"

#include <stdlib.h>

struct acc_deflated {
	struct acc_inflate *z; /* or NULL: */
	struct acc_unzstd *zstd;
	int fd;            /* the caller's */
	uint64_t at, left; /* compressed bytes not read yet */
	size_t used, have; /* of in */
	bool ended;
	uint8_t in[65536];
};

struct acc_deflated *
acc_deflated_open(const struct acc_ref *ref, int fd, struct acc_err *e)
{
	struct acc_deflated *d = calloc(1, sizeof *d);
	if (d == NULL) {
		acc_nomem(e);
		return NULL;
	}
	d->fd = fd;
	d->at = ref->off;
	d->left = ref->clen;
	if (ref->enc == ACC_ZSTD)
		d->zstd = acc_unzstd_open(e);
	else
		d->z = acc_inflate_open(ACC_INFLATE_RAW, e);
	if (d->z == NULL && d->zstd == NULL) {
		free(d);
		return NULL;
	}
	return d;
}

void
acc_deflated_close(struct acc_deflated *d)
{
	if (d == NULL)
		return;
	acc_inflate_close(d->z);
	acc_unzstd_close(d->zstd);
	free(d);
}

int
acc_deflated_read(struct acc_deflated *d, void *out, size_t n, struct acc_err *e)
{
	uint8_t *to = out;
	while (n > 0) {
		if (d->used == d->have && d->left > 0) {
			d->have = d->left < sizeof d->in ? (size_t)d->left : sizeof d->in;
			int rc = acc_file_pread(d->fd, d->in, d->have, d->at, e);
			if (rc < 0)
				return rc;
			d->at += d->have;
			d->left -= d->have;
			d->used = 0;
		}
		size_t nin = d->have - d->used, nout = n;
		int rc = 1;
		if (!d->ended)
			rc = d->z != NULL
				     ? acc_inflate_run(d->z, d->in + d->used, &nin, to, &nout, e)
				     : acc_unzstd_run(d->zstd, d->in + d->used, &nin, to, &nout, e);
		if (rc < 0)
			return rc;
		if (d->ended || (nout == 0 && (rc == 1 || (nin == 0 && d->left == 0))))
			return acc_fail_at(e, ACC_ETRUNC, d->at,
				"the compressed data ends before its tensor");
		d->ended = rc == 1;
		d->used += nin;
		to += nout;
		n -= nout;
	}
	return 0;
}
