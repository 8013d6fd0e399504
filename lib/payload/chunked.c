/* An array in chunks, read in its own order: so each chunk is read in its own order, too, and no more than a buffer of
 * each of those that lie beside each other is held. */
#include "payload/pay.h"

#include "io/chunks.h"

#include <stdlib.h>
#include <unistd.h>

/* Chunks that are open at a time. */
enum { BESIDE = 64 };

struct chunk {
	int fd; /* -1: it is none, or of zeros */
	bool is, zeros;
	struct acc_deflated *z; /* NULL: as it is */
	struct acc_file_info info;
	uint64_t off, done; /* elements that were read or left out */
};

struct acc_chunked {
	struct acc_roots *roots;
	struct acc_arena mem;
	struct acc_ref ref;
	struct acc_chunks c;
	uint64_t at; /* the next element */
	int64_t row; /* of chunks that are open */
	size_t size;
	struct chunk open[BESIDE];
};

static int
close_all(struct acc_chunked *x, struct acc_err *e)
{
	int rc = 0;
	for (uint64_t i = 0; i < x->c.beside && i < BESIDE; i++) {
		struct chunk *k = &x->open[i];
		if (k->fd >= 0) {
			if (rc == 0 && e != NULL)
				rc = acc_file_same(k->fd, &k->info, e);
			close(k->fd);
		}
		acc_deflated_close(k->z);
		*k = (struct chunk){.fd = -1};
	}
	return rc;
}

void
acc_chunked_close(struct acc_chunked *x)
{
	if (x == NULL)
		return;
	close_all(x, NULL);
	acc_arena_release(&x->mem);
	free(x);
}

struct acc_chunked *
acc_chunked_open(struct acc_roots *r, const struct acc_ref *ref, struct acc_err *e)
{
	struct acc_chunked *x = calloc(1, sizeof *x);
	if (x == NULL) {
		acc_nomem(e);
		return NULL;
	}
	for (size_t i = 0; i < BESIDE; i++)
		x->open[i].fd = -1;
	x->roots = r;
	x->row = -1;
	x->ref = *ref;
	x->size = acc_dtype_of(ref->dtype)->size;
	int rc = acc_parts_copy(&x->mem, &x->ref.parts) < 0 ? acc_nomem(e)
							    : acc_chunks_read(&x->ref, &x->c, e);
	if (rc == 0 && x->c.beside > BESIDE)
		rc = acc_fail(e, ACC_EUNSUP, "more than %d chunks beside each other", BESIDE);
	if (rc == 0)
		return x;
	acc_chunked_close(x);
	return NULL;
}

static int
open_chunk(struct acc_chunked *x, struct chunk *k, uint64_t i, struct acc_err *e)
{
	const struct acc_parts *p = &x->ref.parts;
	bool moved = false;
	*k = (struct chunk){.fd = -1, .is = true, .zeros = p->len[i] == 0};
	if (k->zeros)
		return 0;
	k->fd = acc_roots_open_file(x->roots, p->src[i], p->file[i], &moved, e);
	struct acc_ref own = {.dtype = x->ref.dtype,
		.off = (uint64_t)p->off[i],
		.len = x->c.zstd ? x->c.one * x->size : (uint64_t)p->len[i],
		.clen = (uint64_t)p->len[i],
		.enc = x->c.zstd ? ACC_ZSTD : ACC_STORED,
		.fsize = (uint64_t)p->fsize[i],
		.mtime_ns = p->mtime[i]};
	int rc = k->fd < 0 ? k->fd : acc_file_stat(k->fd, &k->info, e);
	if (rc == 0)
		rc = acc_pay_check(&own, &k->info, moved, e);
	k->off = own.off;
	if (rc == 0 && x->c.zstd && (k->z = acc_deflated_open(x->roots, &own, k->fd, e)) == NULL)
		rc = -1;
	return rc;
}

/* n elements of a chunk from `from` on, which is not before what was read of it. */
static int
take(const struct acc_chunked *x, struct chunk *k, uint64_t from, uint64_t n, uint8_t *out,
	struct acc_err *e)
{
	uint8_t rest[4096];
	int rc = 0;
	if (k->zeros) {
		memset(out, 0, n * x->size);
	} else if (k->z == NULL) {
		rc = acc_file_pread(k->fd, out, n * x->size, k->off + from * x->size, e);
	} else {
		for (uint64_t left = (from - k->done) * x->size, m; left > 0 && rc == 0;
			left -= m) {
			m = left < sizeof rest ? left : sizeof rest;
			rc = acc_deflated_read(k->z, rest, (size_t)m, e);
		}
		if (rc == 0)
			rc = acc_deflated_read(k->z, out, n * x->size, e);
	}
	k->done = from + n;
	return rc;
}

int
acc_chunked_read(struct acc_chunked *x, uint64_t n, uint8_t *out, struct acc_err *e)
{
	const uint32_t ndim = x->ref.ndim;
	const int64_t *shape = x->ref.shape, *chunk = x->c.shape;
	int rc = 0;
	if (n > x->c.count - x->at)
		return acc_fail(e, ACC_EFORMAT, "elements that the chunks do not have");
	for (uint64_t got; n > 0 && rc == 0; n -= got, x->at += got, out += got * x->size) {
		uint64_t rest = x->at, which = 0, in = 0, many = 1, wide = 1;
		int64_t row = 0;
		got = 1;
		for (uint32_t i = ndim; i-- > 0;) {
			const int64_t k = (int64_t)(rest % (uint64_t)shape[i]), c = k / chunk[i],
				      end = (c + 1) * chunk[i] < shape[i] ? (c + 1) * chunk[i]
									  : shape[i];
			rest /= (uint64_t)shape[i];
			if (i + 1 == ndim)
				got = (uint64_t)(end - k);
			if (i == 0)
				row = c;
			else
				which += (uint64_t)c * many;
			in += (uint64_t)(k % chunk[i]) * wide;
			many *= i == 0 ? 1 : (uint64_t)((shape[i] + chunk[i] - 1) / chunk[i]);
			wide *= (uint64_t)chunk[i];
		}
		got = got < n ? got : n;
		if (row != x->row)
			rc = close_all(x, e);
		x->row = row;
		struct chunk *k = &x->open[which];
		const uint64_t part = (uint64_t)row * x->c.beside + which;
		if (rc == 0 && !k->is)
			rc = open_chunk(x, k, part, e);
		if (rc == 0)
			rc = take(x, k, in, got, out, e);
		if (rc < 0 && e != NULL && part < x->ref.parts.n) {
			char name[256] = "";
			const struct acc_str file = x->ref.parts.file[part];
			memcpy(name, file.p, file.n < sizeof name ? file.n : sizeof name - 1);
			acc_err_in(e, name);
		}
	}
	if (rc == 0 && x->at == x->c.count)
		rc = close_all(x, e);
	return rc;
}
