/* What can be read from its start alone: a compressed member, by deflate or zstd, protobuf's numbers of any length, or an array in
 * chunks. Never beyond the length that the record announces. */
#include "payload/pay.h"

#include "acc/file.h"
#include "acc/inflate.h"
#include "io/unzstd.h"

#include <stdlib.h>

struct acc_deflated {
	struct acc_inflate *z; /* or NULL: */
	struct acc_unzstd *zstd;
	struct acc_chunked *chunks;
	size_t number;     /* bytes of each element, of protobuf's */
	size_t size;       /* of any element */
	int fd;            /* the caller's */
	uint64_t at, left; /* compressed bytes not read yet */
	size_t used, have; /* of in */
	bool ended;
	uint8_t in[65536];
};

struct acc_deflated *
acc_deflated_open(struct acc_roots *roots, const struct acc_ref *ref, int fd, struct acc_err *e)
{
	struct acc_deflated *d = calloc(1, sizeof *d);
	if (d == NULL) {
		acc_nomem(e);
		return NULL;
	}
	d->fd = fd;
	d->at = ref->off;
	d->left = ref->clen;
	d->size = acc_dtype_of(ref->dtype)->size;
	d->number = ref->enc == ACC_VARINT ? d->size : 0;
	if (ref->enc == ACC_CHUNKS)
		d->chunks = acc_chunked_open(roots, ref, e);
	else if (ref->enc == ACC_ZSTD)
		d->zstd = acc_unzstd_open(e);
	else if (ref->enc == ACC_DEFLATE)
		d->z = acc_inflate_open(ACC_INFLATE_RAW, e);
	if (d->z == NULL && d->zstd == NULL && d->chunks == NULL && d->number == 0) {
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
	acc_chunked_close(d->chunks);
	free(d);
}

/* The next bytes, where those that are there are used up. */
static int
refill(struct acc_deflated *d, struct acc_err *e)
{
	if (d->used < d->have || d->left == 0)
		return 0;
	d->have = d->left < sizeof d->in ? (size_t)d->left : sizeof d->in;
	d->used = 0;
	int rc = acc_file_pread(d->fd, d->in, d->have, d->at, e);
	if (rc < 0)
		return rc;
	d->at += d->have;
	d->left -= d->have;
	return 0;
}

/* n elements, each the low bytes of a number; one that is less than 0 is spelled in 64 bits. */
static int
read_numbers(struct acc_deflated *d, uint8_t *to, size_t n, struct acc_err *e)
{
	enum { BITS = 70 }; /* of ten bytes, the longest */
	for (size_t i = 0; i < n; i++, to += d->number) {
		uint64_t v = 0;
		uint8_t byte = 0x80;
		for (unsigned shift = 0; byte >= 0x80; shift += 7) {
			int rc = refill(d, e);
			if (rc < 0)
				return rc;
			if (d->used == d->have || shift == BITS)
				return acc_fail_at(e, ACC_EFORMAT, d->at,
					"other numbers than its shape needs");
			byte = d->in[d->used++];
			v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		}
		for (size_t k = 0; k < d->number; k++)
			to[k] = (uint8_t)(v >> 8 * k);
	}
	return 0;
}

int
acc_deflated_read(struct acc_deflated *d, void *out, size_t n, struct acc_err *e)
{
	uint8_t *to = out;
	if (d->chunks != NULL)
		return acc_chunked_read(d->chunks, n / d->size, to, e);
	if (d->number > 0)
		return read_numbers(d, out, n / d->number, e);
	while (n > 0) {
		int failed = refill(d, e);
		if (failed < 0)
			return failed;
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
