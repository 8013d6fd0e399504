/* A tensor of MindSpore's checkpoints that is cut into several fields of the file. */
#include "payload/pay.h"

#include "acc/file.h"
#include "io/msckpt.h"

#include <stdlib.h>

struct piece {
	uint64_t at, off, len; /* in the tensor's bytes; in the file */
};

struct acc_pieces {
	int fd;
	struct acc_buf list; /* of struct piece */
};

struct acc_pieces *
acc_pieces_open(const struct acc_ref *ref, int fd, struct acc_err *e)
{
	struct acc_pieces *p = calloc(1, sizeof *p);
	struct acc_msckpt c = {.fd = fd, .at = ref->off, .end = ref->off + ref->clen};
	struct acc_msckpt_value v;
	uint64_t at = 0;
	if (p == NULL) {
		acc_nomem(e);
		return NULL;
	}
	p->fd = fd;
	int rc;
	while ((rc = acc_msckpt_next(&c, &v, e)) > 0) {
		const struct piece x = {at, v.off, v.len};
		if (v.len > ref->len - at || acc_buf_add(&p->list, &x, sizeof x) < 0) {
			rc = acc_fail(e, ACC_EFORMAT,
				"other pieces of the tensor than its record says");
			break;
		}
		at += v.len;
	}
	acc_msckpt_release(&c);
	if (rc == 0 && at != ref->len)
		rc = acc_fail(e, ACC_EFORMAT, "other pieces of the tensor than its record says");
	if (rc == 0)
		return p;
	acc_pieces_close(p);
	return NULL;
}

void
acc_pieces_close(struct acc_pieces *p)
{
	if (p == NULL)
		return;
	acc_buf_release(&p->list);
	free(p);
}

int
acc_pieces_read(const struct acc_pieces *p, uint64_t at, void *out, size_t n, struct acc_err *e)
{
	const struct piece *x = (const struct piece *)(const void *)p->list.p;
	size_t lo = 0, hi = p->list.n / sizeof *x;
	uint8_t *to = out;
	/* The last piece that begins at or before `at`. */
	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;
		if (x[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	for (hi = p->list.n / sizeof *x; n > 0 && lo < hi; lo++) {
		uint64_t skip = at - x[lo].at, have = x[lo].len - skip;
		size_t k = have < n ? (size_t)have : n;
		int rc = acc_file_pread(p->fd, to, k, x[lo].off + skip, e);
		if (rc < 0)
			return rc;
		to += k;
		at += k;
		n -= k;
	}
	return n == 0 ? 0 : acc_fail(e, ACC_ETRUNC, "ends before its tensor does");
}
