#include "rec/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/stream.h"
#include "io/crc.h"
#include "stream/codec.h"

/* PAGE: where elements of a page and more begin, so that they can be mapped; LINE: others.
 * FLUSH: of what waits. */
enum { PAGE = 4096, LINE = 64, FLUSH = 1 << 20 };

struct sink_kept {
	uint64_t seq, off, bytes;
};

static int
write_out(struct sink *s, int fd, const char *name, struct acc_buf *b, struct acc_err *e)
{
	int rc = acc_file_write(fd, b->p, b->n, e);
	b->n = 0;
	if (rc < 0)
		acc_err_in(e, name[0] != '\0' ? name : s->where);
	return rc;
}

int
acc_sink_flush(struct sink *s, struct acc_err *e)
{
	int rc = s->bytes.n > 0 ? write_out(s, s->data, s->file, &s->bytes, e) : 0;
	return rc < 0 || s->index.n == 0 ? rc : write_out(s, s->fd, s->where, &s->index, e);
}

static int
encode(struct sink *s, const struct acc_rec *r, struct acc_err *e)
{
	const size_t start = s->index.n;
	if (acc_encode(r, &s->index, e) < 0)
		return acc_err_in(e, s->where), -1;
	s->crc = acc_crc32(s->crc, s->index.p + start, s->index.n - start - acc_large_data(r));
	return s->index.n < FLUSH ? 0 : acc_sink_flush(s, e);
}

int
acc_sink_put(struct sink *s, const struct acc_rec *r, struct acc_err *e)
{
	s->nrec++;
	return encode(s, r, e);
}

/* The id of a source is a hash of its fields. */
static int
name_source(struct sink *s, struct acc_rec *source)
{
	struct acc_buf b = {0};
	char hex[17];
	int rc = 0;
	for (uint32_t i = 0; i < source->n; i++) {
		rc |= acc_buf_add(&b, source->f[i].key.p, source->f[i].key.n);
		rc |= acc_buf_add(&b, "", 1);
		rc |= acc_buf_add(&b, source->f[i].v.s.p, source->f[i].v.s.n);
		rc |= acc_buf_add(&b, "", 1);
	}
	acc_hex16(acc_hash(b.p, b.n), hex);
	memcpy(s->src, hex, 8);
	acc_buf_release(&b);
	return rc | acc_add(source, "", "id", acc_ctext(s->src));
}

int
acc_sink_start(struct sink *s, const char *program, struct acc_rec *source, struct acc_err *e)
{
	struct acc_rec head = {0};
	const struct acc_str log = acc_str(program);
	int rc = acc_rec_start(&head, ACC_STR("acc"));
	rc |= acc_add(&head, "", "v", acc_int(ACC_STREAM_PLAIN));
	rc |= acc_add(&head, "", "minor", acc_int(ACC_STREAM_MINOR));
	rc |= acc_add(&head, "", "log", acc_texts(&log, 1));
	rc |= name_source(s, source);
	if (rc < 0)
		acc_nomem(e);
	else if ((rc = encode(s, &head, e)) == 0 && (rc = acc_sink_put(s, source, e)) == 0)
		rc = acc_sink_flush(s, e);
	acc_rec_release(&head);
	return rc;
}

/* The step is whole: who follows the recording need not wait for more of it. */
static int
put_mark(struct sink *s, struct acc_err *e)
{
	struct acc_rec r = {0};
	int rc = acc_rec_start(&r, ACC_STR("step"));
	rc |= acc_add(&r, "", "step", acc_int(s->step));
	rc = rc < 0 ? acc_nomem(e) : acc_sink_put(s, &r, e);
	acc_rec_release(&r);
	return rc;
}

int
acc_sink_step(struct sink *s, int64_t step, struct acc_err *e)
{
	int rc = s->dir >= 0 && s->seq > s->begun ? put_mark(s, e) : 0;
	rc = rc < 0 ? rc : acc_sink_flush(s, e);
	s->begun = s->seq;
	s->step = step;
	if (s->dir < 0 || rc < 0)
		return rc;
	if (s->data >= 0 && close(s->data) < 0)
		rc = acc_fail(e, ACC_EIO, "cannot close:");
	s->data = -1;
	s->at = 0;
	if (rc < 0)
		acc_err_in(e, s->file);
	snprintf(s->file, sizeof s->file, "rank%lld.step%lld.data",
		(long long)(s->rank < 0 ? 0 : s->rank), (long long)step);
	return rc;
}

static int
open_data(struct sink *s, struct acc_err *e)
{
	s->data = s->dir >= 0
			  ? openat(s->dir, s->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)
			  : memfd_create("acc", MFD_CLOEXEC);
	if (s->data >= 0)
		return 0;
	if (s->dir >= 0 && errno == EEXIST)
		acc_fail(e, ACC_EIO, "this step was recorded already:");
	else
		acc_fail(e, ACC_EIO, "cannot make:");
	acc_err_in(e, s->dir >= 0 ? s->file : s->where);
	return ACC_EIO;
}

int
acc_sink_begin(struct sink *s, uint64_t bytes, uint64_t *off, struct acc_err *e)
{
	static const uint8_t zeros[PAGE];
	uint64_t align = bytes < PAGE ? LINE : PAGE;
	if (s->data < 0 && open_data(s, e) < 0)
		return ACC_EIO;
	int rc = acc_sink_bytes(s, zeros, (size_t)(-s->at & (align - 1)), e);
	*off = s->at;
	return rc;
}

int
acc_sink_bytes(struct sink *s, const void *p, size_t n, struct acc_err *e)
{
	s->at += n;
	if (s->bytes.n + n < FLUSH)
		return acc_buf_add(&s->bytes, p, n) < 0 ? acc_nomem(e) : 0;
	int rc = write_out(s, s->data, s->file, &s->bytes, e);
	if (rc == 0 && (rc = acc_file_write(s->data, p, n, e)) < 0)
		acc_err_in(e, s->file[0] != '\0' ? s->file : s->where);
	return rc;
}

int
acc_sink_keep(struct sink *s, uint64_t off, uint64_t bytes, struct acc_err *e)
{
	struct sink_kept k = {s->seq, off, bytes};
	return acc_buf_add(&s->kept, &k, sizeof k) < 0 ? acc_nomem(e) : 0;
}

/* The elements of one tensor, a mebibyte at a time. */
static int
put_kept(struct sink *s, const struct sink_kept *k, const uint8_t *memory, struct acc_err *e)
{
	struct acc_rec r = {0};
	int rc = 0;
	for (uint64_t at = 0; at < k->bytes && rc == 0; at += ACC_MAX_DATA) {
		uint64_t n = k->bytes - at < ACC_MAX_DATA ? k->bytes - at : ACC_MAX_DATA;
		rc = acc_data_start(&r, acc_str(s->src), (int64_t)k->seq, at, (struct acc_str){0},
			memory + k->off + at, (size_t)n);
		rc = rc < 0 ? acc_nomem(e) : acc_sink_put(s, &r, e);
	}
	acc_rec_release(&r);
	return rc;
}

static int
put_all_kept(struct sink *s, struct acc_err *e)
{
	const struct sink_kept *k = (const struct sink_kept *)s->kept.p;
	const size_t n = s->kept.n / sizeof *k;
	int rc = acc_sink_flush(s, e);
	if (n == 0 || s->at == 0 || rc < 0)
		return rc;
	uint8_t *memory = mmap(NULL, s->at, PROT_READ, MAP_SHARED, s->data, 0);
	if (memory == MAP_FAILED)
		return acc_nomem(e);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_kept(s, &k[i], memory, e);
	munmap(memory, s->at);
	return rc;
}

int
acc_sink_end(struct sink *s, int status, struct acc_err *e)
{
	int rc = s->dir < 0 ? put_all_kept(s, e) : s->seq > s->begun ? put_mark(s, e) : 0;
	if (rc == 0 && (rc = acc_encode_end(&s->index, s->nrec, status, s->crc, e)) < 0)
		acc_err_in(e, s->where);
	return rc < 0 ? rc : acc_sink_flush(s, e);
}

void
acc_sink_release(struct sink *s)
{
	if (s->data >= 0)
		close(s->data);
	if (s->dir >= 0)
		close(s->dir);
	if (s->own && s->fd >= 0)
		close(s->fd);
	acc_buf_release(&s->index);
	acc_buf_release(&s->bytes);
	acc_buf_release(&s->kept);
}
