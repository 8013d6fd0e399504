#include "audit/data_records.h"

#include <stdlib.h>

#include "payload/arrived.h"

struct piece { /* one data record */
	char src[24];
	int64_t seq;
	uint64_t off, at; /* in the tensor; in the file */
	uint32_t n;
	char side; /* 0: of no pair */
};

struct acc_data_records {
	struct acc_arrived *arrived;
	struct acc_buf piece; /* of struct piece */
};

struct acc_data_records *
acc_data_open(const char *tmpdir, struct acc_roots *roots, struct acc_err *e)
{
	struct acc_data_records *in = calloc(1, sizeof *in);
	if (in == NULL) {
		acc_nomem(e);
		return NULL;
	}
	in->arrived = acc_arrived_open(tmpdir, roots, e);
	if (in->arrived == NULL) {
		free(in);
		return NULL;
	}
	return in;
}

void
acc_data_close(struct acc_data_records *in)
{
	if (in == NULL)
		return;
	acc_arrived_close(in->arrived);
	acc_buf_release(&in->piece);
	free(in);
}

int
acc_data_take(struct acc_data_records *in, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_arrived_id id = acc_arrived_of(r);
	struct piece p = {.seq = id.seq, .side = id.side.n > 0 ? id.side.p[0] : 0};
	const struct acc_payload *whole = acc_arrived_find(in->arrived, &id);
	if (id.src.n >= sizeof p.src)
		return acc_fail(e, ACC_EFORMAT, "a data record with a source of %u bytes",
			id.src.n);
	if (id.src.n > 0)
		memcpy(p.src, id.src.p, id.src.n);
	int rc = 0;
	if (whole == NULL && (rc = acc_arrived_expect(in->arrived, &id, ACC_ARRIVED_ANY, e)) == 0)
		whole = acc_arrived_find(in->arrived, &id);
	if (rc < 0)
		return rc;
	p.off = whole->have;
	rc = acc_arrived_take(in->arrived, r, NULL, e);
	if (rc < 0)
		return rc;
	p.at = whole->at + p.off;
	p.n = (uint32_t)(whole->have - p.off);
	return acc_buf_add(&in->piece, &p, sizeof p) < 0 ? acc_nomem(e) : 0;
}

int
acc_data_refer(struct acc_data_records *in, struct acc_rec *r, struct acc_err *e)
{
	/* Of most streams no payload comes. */
	if (in->piece.n == 0 || !acc_rec_is(r, "tensor") || acc_get(r, "", "file") != NULL)
		return 0;
	const struct acc_arrived_id id = acc_arrived_of(r);
	const struct acc_payload *p = acc_arrived_find(in->arrived, &id);
	if (p == NULL)
		return 0;
	int rc = acc_put(r, "", "src", acc_ctext(ACC_ARRIVED_SOURCE));
	if (rc == 0)
		rc = acc_put(r, "", "file", acc_ctext(ACC_ARRIVED_FILE));
	if (rc == 0)
		rc = acc_put(r, "", "off", acc_uint(p->at));
	if (rc == 0)
		rc = acc_put(r, "", "len", acc_uint(p->have));
	/* The file is ours, and still grows: its size and time say nothing. */
	if (rc == 0)
		rc = acc_put(r, "", "fsize", acc_int(0));
	if (rc == 0)
		rc = acc_put(r, "", "mtime", acc_int(0));
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

int
acc_data_emit(struct acc_data_records *in, int (*emit)(void *arg, struct acc_rec *r), void *arg,
	struct acc_err *e)
{
	struct acc_rec r = {0};
	const size_t n = in->piece.n / sizeof(struct piece);
	char *buf = n > 0 ? malloc(ACC_MAX_RECORD) : NULL;
	int rc = n > 0 && buf == NULL ? acc_nomem(e) : 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct piece *p = (const struct piece *)(const void *)in->piece.p + i;
		rc = acc_arrived_read(in->arrived, p->at, buf, p->n, e);
		/* The record as it came. */
		if (rc == 0 && acc_data_start(&r, acc_str(p->src), p->seq, p->off,
				       (struct acc_str){&p->side, p->side != 0}, buf, p->n) < 0)
			rc = acc_nomem(e);
		if (rc == 0)
			rc = emit(arg, &r);
	}
	acc_rec_release(&r);
	free(buf);
	return rc;
}
