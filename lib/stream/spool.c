/* Records kept aside on disk, so that a judge of a million records stays small. */
#include "acc/stream.h"
#include "acc/file.h"

#include <stdlib.h>
#include <unistd.h>

enum { SPOOL_BUF = 256 << 10 };

struct acc_spool {
	int fd;
	struct acc_buf out;   /* not yet written */
	uint64_t written;     /* bytes in the file */
	struct acc_buf in;    /* a window of the file */
	uint64_t in_at;       /* where it begins */
	struct acc_rec rec;
};

struct acc_spool *
acc_spool_open(const char *tmpdir, struct acc_err *e)
{
	struct acc_spool *sp = calloc(1, sizeof *sp);
	if (sp == NULL) {
		acc_fail(e, ACC_ENOMEM, "out of memory");
		return NULL;
	}
	sp->fd = acc_file_temp(tmpdir, e);
	if (sp->fd < 0) {
		acc_err_in(e, tmpdir);
		free(sp);
		return NULL;
	}
	return sp;
}

static int
flush(struct acc_spool *sp, struct acc_err *e)
{
	int rc = acc_file_write(sp->fd, sp->out.p, sp->out.n, e);
	if (rc < 0) {
		acc_err_in(e, "temporary file");
		return rc;
	}
	sp->written += sp->out.n;
	sp->out.n = 0;
	return 0;
}

int
acc_spool_put(struct acc_spool *sp, const struct acc_rec *r, uint64_t *at, struct acc_err *e)
{
	return acc_spool_put_as(sp, r, "", at, e);
}

int
acc_spool_put_as(struct acc_spool *sp, const struct acc_rec *r, const char *prefix, uint64_t *at,
	struct acc_err *e)
{
	*at = sp->written + sp->out.n;
	int rc = acc_encode_as(r, prefix, &sp->out, e);
	if (rc < 0)
		return rc;
	return sp->out.n >= SPOOL_BUF ? flush(sp, e) : 0;
}

/* Bytes [at, at + want) of the file into the window, as far as they exist. */
static int
load(struct acc_spool *sp, uint64_t at, size_t want, struct acc_err *e)
{
	if (want > sp->written - at)
		want = (size_t)(sp->written - at);
	sp->in.n = 0;
	int rc = acc_buf_reserve(&sp->in, want);
	if (rc < 0)
		return acc_fail(e, rc, "out of memory");
	rc = acc_file_pread(sp->fd, sp->in.p, want, at, e);
	if (rc < 0) {
		acc_err_in(e, "temporary file");
		return rc;
	}
	sp->in.n = want;
	sp->in_at = at;
	return 0;
}

int
acc_spool_get(struct acc_spool *sp, uint64_t at, struct acc_rec **out, struct acc_err *e)
{
	int rc = sp->out.n > 0 ? flush(sp, e) : 0;
	if (rc < 0)
		return rc;
	if (at >= sp->written)
		return acc_fail(e, ACC_EUSAGE, "no record at %llu in the temporary file",
			(unsigned long long)at);
	for (size_t want = SPOOL_BUF;; want *= 2) {
		if (at >= sp->in_at && at < sp->in_at + sp->in.n) {
			size_t skip = (size_t)(at - sp->in_at);
			int64_t len = acc_decode(sp->in.p + skip, sp->in.n - skip, &sp->rec, e);
			if (len < 0)
				return (int)len;
			if (len > 0) {
				*out = &sp->rec;
				return 1;
			}
			if (sp->in_at + sp->in.n == sp->written && skip == 0)
				return acc_fail(e, ACC_ETRUNC, "the temporary file was cut short");
		}
		rc = load(sp, at, want, e);
		if (rc < 0)
			return rc;
	}
}

void
acc_spool_close(struct acc_spool *sp)
{
	if (sp == NULL)
		return;
	close(sp->fd);
	acc_buf_release(&sp->out);
	acc_buf_release(&sp->in);
	acc_rec_release(&sp->rec);
	free(sp);
}
