#include "stream/codec.h"
#include "acc/file.h"
#include "io/crc.h"
#include "stream/keylist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a large data record this much is read at once; one with less payload is read with what follows. */
enum { SIP = 4096 };

struct acc_rd {
	struct acc_bytes *in;
	struct acc_rec head, rec;
	struct acc_shapes shapes;
	struct acc_keylists lists;
	bool listed; /* of a version that has lists */
	struct acc_came seen;
	struct acc_buf head_bytes; /* the head's values point here */
	size_t pending, rest;      /* bytes of the record last handed out: read; not read yet */
	uint64_t summed;           /* the input up to there is in */
	uint32_t crc;              /* the checksum so far */
	bool open;                 /* it may have such */
	uint64_t n;                /* records handed out */
	int status;
	bool ended;
};

bool
acc_is_stream(const void *head, size_t n)
{
	static const uint8_t magic[5] = {0x92, 0xa3, 'a', 'c', 'c'};
	const uint8_t *p = head;
	return (n >= sizeof magic && memcmp(p, magic, sizeof magic) == 0) ||
	       (n >= 2 && p[0] == 0x1f && p[1] == 0x8b);
}

/* acc_decode into rd->rec, which may be left open. *told: it was no record, but told of a list. */
static int64_t
decode(struct acc_rd *rd, const uint8_t *p, size_t n, bool *told, struct acc_err *e)
{
	const struct acc_rec *r = &rd->rec;
	rd->lists.now = NULL;
	*told = rd->listed && acc_is_listed(p, n);
	if (*told) {
		int64_t len = acc_decode_listed(p, n, &rd->rec, &rd->lists, &rd->shapes, e);
		*told = rd->lists.now == NULL;
		return len;
	}
	if (!rd->open)
		return acc_decode_open(p, n, &rd->rec, &rd->shapes, NULL, e);
	int64_t len = acc_decode_open(p, n, &rd->rec, &rd->shapes, &rd->rest, e);
	if (len <= 0)
		rd->rest = 0;
	if (rd->rest > 0 && acc_large_data(r) == 0) {
		rd->rest = 0;
		return 0;
	}
	return len;
}

/* Bring the checksum up to `to`: of all that was read since, for what was skipped stays where it is until
 * more is read. */
static void
sum(struct acc_rd *rd, uint64_t to)
{
	const uint8_t *p;
	acc_bytes_peek(rd->in, &p);
	if (to <= rd->summed)
		return;
	const int64_t from = (int64_t)(rd->summed - acc_bytes_pos(rd->in));
	rd->crc = acc_crc32(rd->crc, p + from, (size_t)(to - rd->summed));
	rd->summed = to;
}

/* Large data is left out of it. */
static void
leave_out(struct acc_rd *rd)
{
	const uint64_t behind = acc_bytes_pos(rd->in) + rd->pending + rd->rest;
	const uint32_t large = acc_large_data(&rd->rec);
	if (large == 0 || rd->summed >= behind)
		return;
	sum(rd, behind - large);
	rd->summed = behind;
}

/* The next record into rd->rec: 1, 0 at the end of the input, < 0. */
static int
next(struct acc_rd *rd, struct acc_err *e)
{
	acc_bytes_skip(rd->in, rd->pending);
	rd->pending = 0;
	for (;;) {
		const uint8_t *p;
		size_t n = acc_bytes_peek(rd->in, &p);
		if (n > 0) {
			struct acc_err bad = {0};
			bool told;
			int64_t len = decode(rd, p, n, &told, &bad);
			if (len < 0) {
				bad.has_pos = true;
				bad.pos += acc_bytes_pos(rd->in);
				if (e != NULL && e->code == 0)
					*e = bad;
				return (int)len;
			}
			if (len > 0 && told) {
				acc_bytes_skip(rd->in, (size_t)len);
				continue;
			}
			if (len > 0) {
				rd->pending = (size_t)len;
				if (rd->lists.now == NULL)
					leave_out(rd);
				return 1;
			}
		}
		sum(rd, acc_bytes_pos(rd->in));
		int rc = acc_bytes_more(rd->in, &p, &n, e);
		if (rc < 0)
			return rc;
		if (rc == 0)
			return n == 0 ? 0
				      : acc_fail_at(e, ACC_ETRUNC, acc_bytes_pos(rd->in) + n,
						"ends inside a record: an earlier command failed?");
	}
}

static int
read_head(struct acc_rd *rd, struct acc_err *e)
{
	const uint8_t *p;
	struct acc_err bad = {0};
	int rc = next(rd, &bad);
	if (rc == ACC_EFORMAT)
		return acc_fail_at(e, ACC_EFORMAT, 0,
			"not a stream of records: of a dump, a log or "
			"a configuration, accdump-read makes one");
	if (rc < 0) {
		if (e != NULL)
			*e = bad;
		return rc;
	}
	if (rc == 0)
		return acc_fail(e, ACC_ETRUNC, "empty: an earlier command failed?");
	if (!acc_rec_is(&rd->rec, "acc"))
		return acc_fail_at(e, ACC_EFORMAT, 0, "not an acc stream: no head record");
	acc_bytes_peek(rd->in, &p);
	rc = acc_buf_add(&rd->head_bytes, p, rd->pending);
	if (rc < 0)
		return acc_nomem(e);
	if (acc_decode(rd->head_bytes.p, rd->head_bytes.n, &rd->head, e) < 0)
		return e != NULL && e->code != 0 ? e->code : ACC_ENOMEM;
	int64_t v = acc_get_int(&rd->head, "", "v", 0);
	if (v < 1)
		return acc_fail(e, ACC_EFORMAT, "not an acc stream: the head has no version");
	if (v > ACC_STREAM_V)
		return acc_fail(e, ACC_EVERSION,
			"stream version %lld, newer than the %d that "
			"this program reads: update acctools",
			(long long)v, ACC_STREAM_V);
	rd->listed = v >= ACC_STREAM_LISTED;
	const struct acc_val *minor = acc_get(&rd->head, "", "minor"),
			     *log = acc_get(&rd->head, "", "log");
	const bool odd = minor != NULL && minor->type != ACC_V_INT;
	/* An array without elements is one of either type. */
	if (odd || (log != NULL && log->type != ACC_V_TEXTS &&
			   (log->type != ACC_V_INTS || log->n > 0)))
		return acc_fail(e, ACC_EFORMAT,
			"the head's '%s' is of another type than accstream(5) has it",
			odd ? "minor" : "log");
	return 0;
}

struct acc_rd *
acc_rd_open(const char *path, struct acc_err *e)
{
	bool std = strcmp(path, "-") == 0;
	const char *name = std ? "standard input" : path;
	int fd = std ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		acc_fail(e, ACC_EIO, "cannot open:");
		acc_err_in(e, name);
		return NULL;
	}
	struct stat st;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		acc_fail(e, ACC_EFORMAT,
			"a folder, not a stream of records: of a dump accdump-read "
			"makes one");
		acc_err_in(e, name);
		return NULL;
	}
	struct acc_rd *rd = calloc(1, sizeof *rd);
	if (rd == NULL) {
		close(fd);
		acc_nomem(e);
		return NULL;
	}
	acc_pipe_widen(fd);
	rd->in = acc_bytes_open(fd, name, true, e);
	if (rd->in == NULL || read_head(rd, e) < 0) {
		acc_err_in(e, name);
		acc_rd_close(rd);
		return NULL;
	}
	return rd;
}

static int
check_end(struct acc_rd *rd, struct acc_err *e)
{
	int64_t n = acc_get_int(&rd->rec, "", "n", -1);
	int64_t st = acc_get_int(&rd->rec, "", "st", -1);
	if (n < 0 || (uint64_t)n != rd->n)
		return acc_fail(e, ACC_EFORMAT,
			"the end record counts %lld records, there are "
			"%llu: records were lost",
			(long long)n, (unsigned long long)rd->n);
	if (st < 0 || st > 2)
		return acc_fail(e, ACC_EFORMAT, "the end record has no status of 0, 1 or 2");
	rd->status = (int)st;
	const uint8_t *p;
	sum(rd, acc_bytes_pos(rd->in));
	acc_bytes_peek(rd->in, &p);
	int rc = acc_sum_check(acc_get_int(&rd->head, "", "minor", 0), &rd->rec, p, rd->pending,
		rd->crc, e);
	if (rc == 0)
		rc = next(rd, e);
	if (rc > 0)
		rc = acc_fail(e, ACC_EFORMAT,
			"goes on after its end record: streams are joined "
			"as operands of a filter, not with cat");
	rd->ended = rc == 0;
	return rc;
}

int
acc_rd_next(struct acc_rd *rd, struct acc_rec **out, struct acc_err *e)
{
	if (rd->ended)
		return 0;
	int rc = rd->rest == 0 ? 1 : acc_rd_whole(rd, out, e);
	if (rc > 0)
		rc = next(rd, e);
	const bool own = rd->lists.now == NULL; /* none by a list is one of the stream's own */
	if (rc == 0)
		rc = acc_fail(e, ACC_ETRUNC, "no end record: an earlier command failed?");
	else if (rc > 0 && own && acc_rec_is(&rd->rec, "end"))
		rc = check_end(rd, e);
	else if (rc > 0 && own && acc_rec_is(&rd->rec, "acc"))
		rc = acc_fail(e, ACC_EFORMAT, "a second head record");
	else if (rc > 0) {
		rd->n++;
		*out = &rd->rec;
		struct acc_err bad = {0};
		if ((rd->lists.now != NULL ? acc_came_listed(&rd->seen, &rd->rec, &rd->lists, &bad)
					   : acc_came_check(&rd->seen, &rd->rec, rd->shapes.holds,
						     &bad)) < 0) {
			bad.has_pos = true;
			bad.pos = acc_bytes_pos(rd->in);
			rc = bad.code;
			if (e != NULL && e->code == 0)
				*e = bad;
		}
	}
	if (rc < 0)
		acc_err_in(e, acc_bytes_name(rd->in));
	return rc;
}

int
acc_rd_next_open(struct acc_rd *rd, struct acc_rec **out, struct acc_err *e)
{
	rd->open = true;
	int rc = acc_rd_next(rd, out, e);
	rd->open = false;
	const struct acc_rec *r = &rd->rec;
	acc_bytes_limit(rd->in, rc > 0 && acc_large_data(r) > 0 ? SIP : SIZE_MAX);
	return rc;
}

size_t
acc_rd_rest(const struct acc_rd *rd)
{
	return rd->rest;
}

int
acc_rd_whole(struct acc_rd *rd, struct acc_rec **out, struct acc_err *e)
{
	int rc = 1;
	if (rd->rest > 0) {
		rd->pending = rd->rest = 0;
		rd->open = false;
		acc_bytes_limit(rd->in, SIZE_MAX);
		rc = next(rd, e);
	}
	*out = &rd->rec;
	return rc < 0 ? acc_err_in(e, acc_bytes_name(rd->in)), rc : rc;
}

int
acc_rd_move(struct acc_rd *rd, int fd, int64_t *off, const char *name, struct acc_err *e)
{
	size_t n = rd->rest;
	acc_bytes_skip(rd->in, rd->pending); /* all that is in the checksum of it is in */
	rd->pending = rd->rest = 0;
	return acc_bytes_move(rd->in, n, fd, off, name, e);
}

int
acc_rd_status(const struct acc_rd *rd)
{
	return rd->status;
}

const struct acc_val *
acc_rd_log(const struct acc_rd *rd)
{
	const struct acc_val *v = acc_get(&rd->head, "", "log");
	return v != NULL && v->type == ACC_V_TEXTS ? v : NULL;
}

const char *
acc_rd_name(const struct acc_rd *rd)
{
	return acc_bytes_name(rd->in);
}

void
acc_rd_park(struct acc_rd *rd)
{
	acc_bytes_park(rd->in);
}

void
acc_rd_close(struct acc_rd *rd)
{
	if (rd == NULL)
		return;
	acc_bytes_close(rd->in);
	acc_rec_release(&rd->head);
	acc_rec_release(&rd->rec);
	acc_shapes_release(&rd->shapes);
	acc_keylists_release(&rd->lists);
	acc_came_release(&rd->seen);
	acc_buf_release(&rd->head_bytes);
	free(rd);
}
