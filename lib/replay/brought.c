#include "replay/brought.h"

#include <stdlib.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/stream.h"

static const char SOURCE[] = "payload in the stream";

struct piece { /* one data record */
	char src[24];
	int64_t seq;
	uint64_t off, at; /* in the tensor; in the file */
	uint32_t n;
};

struct acc_brought {
	int fd;
	uint64_t end;
	struct acc_buf piece;  /* of struct piece */
	struct acc_map index;  /* tensor to its first piece */
};

struct acc_brought *
acc_brought_open(const char *tmpdir, struct acc_roots *roots, struct acc_err *e)
{
	struct acc_brought *in = calloc(1, sizeof *in);
	if (in == NULL) {
		acc_fail(e, ACC_ENOMEM, "out of memory");
		return NULL;
	}
	in->fd = acc_file_temp(tmpdir, e);
	if (in->fd < 0 || acc_roots_add_fd(roots, SOURCE, in->fd, e) < 0) {
		acc_err_in(e, tmpdir);
		acc_brought_close(in);
		return NULL;
	}
	return in;
}

void
acc_brought_close(struct acc_brought *in)
{
	if (in == NULL)
		return;
	if (in->fd >= 0)
		close(in->fd);
	acc_buf_release(&in->piece);
	acc_map_release(&in->index);
	free(in);
}

static struct piece *
pieces(const struct acc_brought *in, size_t *n)
{
	*n = in->piece.n / sizeof(struct piece);
	return (struct piece *)(void *)in->piece.p;
}

static struct acc_str
key_of(const struct acc_rec *r, char buf[64])
{
	struct acc_str src = acc_get_text(r, "", "src");
	int n = snprintf(buf, 64, "%lld %.*s", (long long)acc_get_int(r, "", "seq", -1),
		(int)(src.n < 24 ? src.n : 24), src.p);
	return (struct acc_str){buf, (uint32_t)n};
}

int
acc_brought_take(struct acc_brought *in, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_val *data = acc_get(r, "", "data");
	struct acc_str src = acc_get_text(r, "", "src");
	struct piece p = {.seq = acc_get_int(r, "", "seq", -1), .at = in->end,
		.off = (uint64_t)acc_get_int(r, "", "off", 0)};
	char key[64];
	size_t n;
	if (data == NULL || data->type != ACC_V_BIN || src.n >= sizeof p.src)
		return acc_fail(e, ACC_EFORMAT, "a data record without data");
	if (src.n > 0)
		memcpy(p.src, src.p, src.n);
	p.n = data->s.n;
	const struct piece *last = pieces(in, &n);
	last = n > 0 ? last + n - 1 : NULL;
	bool next = last != NULL && last->seq == p.seq && strcmp(last->src, p.src) == 0;
	if (p.off != (next ? last->off + last->n : 0))
		return acc_fail(e, ACC_EFORMAT, "a data record that does not continue its tensor");
	if (!next && acc_map_put(&in->index, key_of(r, key), n) == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	int rc = acc_file_write(in->fd, data->s.p, data->s.n, e);
	if (rc < 0) {
		acc_err_in(e, "temporary file");
		return rc;
	}
	in->end += p.n;
	return acc_buf_add(&in->piece, &p, sizeof p) < 0
		? acc_fail(e, ACC_ENOMEM, "out of memory") : 0;
}

int
acc_brought_refer(struct acc_brought *in, struct acc_rec *r, struct acc_err *e)
{
	char key[64];
	size_t n;
	if (!acc_rec_is(r, "tensor") || acc_get(r, "", "file") != NULL)
		return 0;
	const uint64_t *first = acc_map_get(&in->index, key_of(r, key));
	if (first == NULL)
		return 0;
	const struct piece *p = pieces(in, &n) + *first, *end = pieces(in, &n) + n;
	uint64_t len = 0, at = p->at;
	for (const struct piece *q = p; q < end && q->seq == p->seq && strcmp(q->src, p->src) == 0; q++)
		len += q->n;
	int rc = acc_put(r, "", "src", acc_ctext(SOURCE));
	if (rc == 0)
		rc = acc_put(r, "", "file", acc_ctext("payload"));
	if (rc == 0)
		rc = acc_put(r, "", "off", acc_uint(at));
	if (rc == 0)
		rc = acc_put(r, "", "len", acc_uint(len));
	/* The file is ours, and still grows: its size and time say nothing. */
	if (rc == 0)
		rc = acc_put(r, "", "fsize", acc_int(0));
	if (rc == 0)
		rc = acc_put(r, "", "mtime", acc_int(0));
	return rc < 0 ? acc_fail(e, rc, "out of memory") : 0;
}

int
acc_brought_emit(struct acc_brought *in, int (*emit)(void *arg, struct acc_rec *r), void *arg,
	struct acc_err *e)
{
	struct acc_rec r = {0};
	size_t n;
	const struct piece *p = pieces(in, &n);
	char *buf = n > 0 ? malloc(ACC_MAX_RECORD) : NULL;
	int rc = n > 0 && buf == NULL ? acc_fail(e, ACC_ENOMEM, "out of memory") : 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct acc_field data = {.key = ACC_STR("data"),
			.v = {.type = ACC_V_BIN, .s = {buf, p[i].n}}};
		rc = acc_file_pread(in->fd, buf, p[i].n, p[i].at, e);
		if (rc == 0 && (acc_rec_start(&r, ACC_STR("data")) < 0 ||
				acc_add(&r, "", "src", acc_ctext(p[i].src)) < 0 ||
				acc_add(&r, "", "seq", acc_int(p[i].seq)) < 0 ||
				acc_add(&r, "", "off", acc_uint(p[i].off)) < 0 ||
				acc_rec_push(&r, &data) < 0))
			rc = acc_fail(e, ACC_ENOMEM, "out of memory");
		if (rc == 0)
			rc = emit(arg, &r);
	}
	acc_rec_release(&r);
	free(buf);
	return rc;
}
