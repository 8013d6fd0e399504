#include "stream/codec.h"
#include "acc/file.h"
#include "io/crc.h"
#include "stream/keylist.h"

#include <stdlib.h>

/* A blob of BLOB bytes at the end of a record is written from where it is. */
enum { FLUSH_AT = 128 << 10, BLOB = ACC_LARGE_DATA };

struct acc_wr {
	int fd;
	struct acc_buf buf;
	size_t summed;            /* bytes of it that are in */
	uint32_t crc;             /* the checksum so far */
	struct acc_shapes shapes; /* of records that no reader has seen */
	struct acc_keylists lists;
	uint64_t n;
	struct acc_err bad; /* sticky: after a failure nothing more is written */
};

static int
failed(struct acc_wr *wr, struct acc_err *e)
{
	if (e != NULL && e->code == 0)
		*e = wr->bad;
	return wr->bad.code;
}

/* Bring the checksum up to what is buffered: much at a time, which costs next to nothing. */
static void
sum(struct acc_wr *wr)
{
	wr->crc = acc_crc32(wr->crc, wr->buf.p + wr->summed, wr->buf.n - wr->summed);
	wr->summed = wr->buf.n;
}

int
acc_wr_flush(struct acc_wr *wr, struct acc_err *e)
{
	sum(wr);
	if (wr->bad.code == 0 && acc_file_write(wr->fd, wr->buf.p, wr->buf.n, &wr->bad) < 0)
		acc_err_in(&wr->bad, "standard output");
	wr->buf.n = wr->summed = 0;
	return failed(wr, e);
}

static int
put_blob(struct acc_wr *wr, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_str blob = r->f[r->n - 1].v.s;
	if (wr->bad.code != 0 || acc_encode_but_blob(r, &wr->buf, &wr->bad) < 0 ||
		acc_wr_flush(wr, NULL) < 0)
		return failed(wr, e);
	if (acc_large_data(r) == 0)
		wr->crc = acc_crc32(wr->crc, blob.p, blob.n);
	if (acc_file_write(wr->fd, blob.p, blob.n, &wr->bad) < 0)
		acc_err_in(&wr->bad, "standard output");
	return failed(wr, e);
}

static int
put(struct acc_wr *wr, const struct acc_rec *r, struct acc_err *e)
{
	uint64_t shape;
	if (r->n > 0 && r->f[r->n - 1].v.type == ACC_V_BIN && r->f[r->n - 1].v.s.n >= BLOB) {
		if (wr->bad.code == 0 && r->shape == 0 && !r->lost)
			acc_shape_check(&wr->shapes, r, &shape, &wr->bad);
		return put_blob(wr, r, e);
	}
	if (wr->bad.code == 0)
		acc_encode_listed(r, &wr->shapes, &wr->lists, &wr->buf, &wr->bad);
	if (wr->buf.n >= FLUSH_AT)
		return acc_wr_flush(wr, e);
	return failed(wr, e);
}

struct acc_wr *
acc_wr_open(int fd, const struct acc_str *log, size_t nlog, const char *self, struct acc_err *e)
{
	struct acc_wr *wr = calloc(1, sizeof *wr);
	struct acc_str *all = calloc(nlog + 1, sizeof *all);
	struct acc_rec head = {0};
	if (wr == NULL || all == NULL || acc_rec_start(&head, ACC_STR("acc")) < 0) {
		acc_nomem(e);
		goto fail;
	}
	wr->fd = fd;
	acc_pipe_widen(fd);
	if (nlog > 0)
		memcpy(all, log, nlog * sizeof *all);
	all[nlog] = acc_str(self);
	acc_add(&head, "", "v", acc_int(ACC_STREAM_V));
	acc_add(&head, "", "minor", acc_int(ACC_STREAM_MINOR));
	if (acc_add(&head, "", "log", acc_texts(all, (uint32_t)nlog + 1)) < 0 ||
		put(wr, &head, e) < 0)
		goto fail;
	acc_rec_release(&head);
	free(all);
	return wr;
fail:
	acc_rec_release(&head);
	free(all);
	acc_wr_close(wr);
	return NULL;
}

int
acc_wr_put(struct acc_wr *wr, const struct acc_rec *r, struct acc_err *e)
{
	wr->n++;
	return put(wr, r, e);
}

int
acc_wr_pass(struct acc_wr *wr, const struct acc_rec *r, struct acc_rd *rd, struct acc_err *e)
{
	const size_t rest = acc_rd_rest(rd);
	if (rest == 0)
		return acc_wr_put(wr, r, e);
	const struct acc_str blob = r->f[r->n - 1].v.s;
	wr->n++;
	if (wr->bad.code != 0 || acc_encode_but_blob(r, &wr->buf, &wr->bad) < 0)
		return failed(wr, e);
	sum(wr);
	if (acc_buf_add(&wr->buf, blob.p, blob.n - rest) < 0)
		acc_nomem(&wr->bad);
	wr->summed = wr->buf.n;
	if (acc_wr_flush(wr, e) == 0)
		acc_rd_move(rd, wr->fd, NULL, "standard output", &wr->bad);
	return failed(wr, e);
}

int
acc_wr_end(struct acc_wr *wr, int status, struct acc_err *e)
{
	sum(wr);
	if (wr->bad.code == 0)
		acc_encode_end(&wr->buf, wr->n, status, wr->crc, &wr->bad);
	return acc_wr_flush(wr, e);
}

void
acc_wr_close(struct acc_wr *wr)
{
	if (wr == NULL)
		return;
	acc_buf_release(&wr->buf);
	acc_shapes_release(&wr->shapes);
	acc_keylists_release(&wr->lists);
	free(wr);
}
