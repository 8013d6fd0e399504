/* A recording while it is written: each rank's stream is a file that grows.
 *
 * What is there of a step is kept until its step record is there, for until then the file of its
 * elements grows. Of several ranks, the one that is furthest behind is waited for, so that the ranks of
 * a step come together. A writer holds a lock on its stream as long as it lives; where it has none any
 * more, and no end is there, it has died. */
#include "dump/op/record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "acc/stream.h"
#include "io/crc.h"
#include "stream/codec.h"

enum { READ = 1 << 18, WAIT_NS = 20 * 1000 * 1000 };

struct tail {
	char name[64];
	struct record_rank k;
	int fd;
	uint64_t off;       /* bytes of the file that were read */
	struct acc_buf buf; /* those that were not handed on, */
	size_t seen;        /* and how many of them are whole records */
	uint64_t n;         /* records, but head and end */
	uint32_t crc;       /* of those that were seen */
	int64_t minor;      /* version of the stream */
	int64_t done;       /* steps that are whole; INT64_MAX: nothing more will come */
	int64_t step;       /* the last of them */
	bool head, locked;
	struct acc_rec rec;
	struct acc_err bad; /* why nothing more will come, where that is no end */
};

struct tails {
	struct acc_dump_ctx *c;
	const char *folder;
	int dirfd;
	struct tail **t; /* by their names */
	size_t n, cap;
	int64_t told; /* step records */
};

static bool
known(const struct tails *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->t[i]->name, name) == 0)
			return true;
	return false;
}

static int
add(struct tails *f, const char *name, struct acc_err *e)
{
	struct tail **all = acc_grow(f->t, &f->cap, f->n + 1, sizeof *all, e);
	struct tail *t = all == NULL ? NULL : calloc(1, sizeof *t);
	f->t = all == NULL ? f->t : all;
	if (t == NULL)
		return acc_nomem(e);
	f->t[f->n++] = t;
	snprintf(t->name, sizeof t->name, "%s", name);
	acc_record_start(&t->k, f->c, f->dirfd, f->folder, name);
	t->fd = acc_file_beneath(f->dirfd, acc_str(name), e);
	return t->fd < 0 ? t->fd : 0;
}

/* Ranks start one after another. */
static int
look(struct tails *f, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **name;
	int64_t n = acc_dir_list(f->dirfd, &name, &m, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++)
		if (acc_record_rank(name[i]) >= 0 && strlen(name[i]) < sizeof f->t[0]->name &&
			acc_dump_wants(f->c, -1, acc_record_rank(name[i])) && !known(f, name[i]))
			rc = add(f, name[i], e);
	acc_arena_release(&m);
	return rc;
}

/* 1: there is more in t->buf; 0: not yet; < 0. */
static int
more(struct tail *t, struct acc_err *e)
{
	if (acc_buf_reserve(&t->buf, READ) < 0)
		return acc_nomem(e);
	int64_t n = acc_file_peek(t->fd, t->buf.p + t->buf.n, READ, t->off, e);
	if (n <= 0)
		return (int)n;
	t->buf.n += (size_t)n;
	t->off += (uint64_t)n;
	return 1;
}

/* The lock comes before the first byte, but a moment behind the file. */
static bool
alive(const struct tail *t)
{
	struct flock any = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	struct acc_file_info info = {0};
	if (t->head && !t->locked)
		return true; /* nobody knows */
	if (fcntl(t->fd, F_GETLK, &any) < 0 || any.l_type != F_UNLCK)
		return true;
	return !t->head && acc_file_stat(t->fd, &info, NULL) == 0 && info.size == 0 &&
	       info.mtime_ns / 1000000000 > time(NULL) - 2;
}

static int
check_end(const struct tail *t, size_t len, struct acc_err *e)
{
	if (acc_get_int(&t->rec, "", "n", -1) != (int64_t)t->n)
		return acc_fail(e, ACC_EFORMAT,
			"its end does not count its records: it is damaged");
	int rc = acc_sum_check(t->minor, &t->rec, t->buf.p + t->seen, len, t->crc, e);
	return rc < 0 ? rc : acc_dump_heard(t->k.c, NULL, (int)acc_get_int(&t->rec, "", "st", 2));
}

static int
check_head(struct tail *t, struct acc_err *e)
{
	t->head = true;
	const int64_t v = acc_get_int(&t->rec, "", "v", 0);
	t->minor = acc_get_int(&t->rec, "", "minor", 0);
	if (!acc_rec_is(&t->rec, "acc") || v < 1 || v > ACC_STREAM_PLAIN)
		return acc_fail(e, ACC_EFORMAT, "no stream of records of this version");
	return acc_dump_heard(t->k.c, acc_get(&t->rec, "", "log"), 0);
}

/* The next record that is whole, behind those seen. Its step record or end: 1; another: 0 with *len > 0;
 * none: 0 with *len == 0. */
static int
see(struct tail *t, int64_t *len, struct acc_err *e)
{
	const struct acc_rec *r = &t->rec;
	*len = acc_decode(t->buf.p + t->seen, t->buf.n - t->seen, &t->rec, e);
	if (*len <= 0)
		return (int)*len;
	if (!acc_rec_is(r, "end"))
		t->crc = acc_crc32(t->crc, t->buf.p + t->seen, (size_t)*len - acc_large_data(r));
	if (!t->head)
		return check_head(t, e);
	if (acc_rec_is(r, "end")) {
		t->done = INT64_MAX;
		int rc = check_end(t, (size_t)*len, e);
		return rc < 0 ? rc : 1;
	}
	t->n++;
	if (acc_rec_is(r, "source"))
		t->locked = acc_get(r, "", "locked") != NULL;
	if (!acc_rec_is(r, "step"))
		return 0;
	t->step = acc_get_int(r, "", "step", -1);
	t->done++;
	return 1;
}

/* Whole records up to the end of a step: 1; its writer is not so far: 0; < 0: nothing more will come. */
static int
fill(struct tail *t, struct acc_err *e)
{
	bool lives = true;
	for (;;) {
		int64_t len = 0;
		int rc = t->buf.n > t->seen ? see(t, &len, e) : 0;
		if (rc < 0)
			return rc;
		t->seen += (size_t)len;
		if (rc > 0)
			return 1;
		if (len > 0)
			continue;
		rc = more(t, e);
		if (rc < 0 || (rc == 0 && !lives))
			return rc < 0 ? rc
				      : acc_fail(e, ACC_ETRUNC,
						"no end record, and its writer is gone");
		if (rc == 0 && (lives = alive(t)))
			return 0;
		/* It may have written the end before it went: look once more. */
	}
}

/* Hand on what was seen. */
static int
hand(struct tail *t, struct acc_err *e)
{
	int rc = t->k.known ? acc_dump_source(t->k.c, &t->k.source, e) : 0;
	size_t at = 0;
	while (rc == 0 && at < t->seen) {
		int64_t len = acc_decode(t->buf.p + at, t->seen - at, &t->rec, e);
		if (len <= 0)
			return len < 0 ? (int)len : ACC_EFORMAT;
		at += (size_t)len;
		if (!acc_rec_is(&t->rec, "acc") && !acc_rec_is(&t->rec, "end"))
			rc = acc_record_take(&t->k, &t->rec, e);
	}
	memmove(t->buf.p, t->buf.p + t->seen, t->buf.n - t->seen);
	t->buf.n -= t->seen;
	t->seen = 0;
	return rc;
}

static struct tail *
hindmost(const struct tails *f)
{
	struct tail *t = NULL;
	for (size_t i = 0; i < f->n; i++)
		if (f->t[i]->done < INT64_MAX && (t == NULL || f->t[i]->done < t->done))
			t = f->t[i];
	return t;
}

/* A step that no rank is behind. */
static int
tell(struct tails *f, struct acc_err *e)
{
	const struct tail *t = hindmost(f);
	if (t == NULL || t->done <= f->told)
		return 0;
	f->told = t->done;
	return acc_dump_step(f->c, t->step, e);
}

static int
follow(struct tails *f, struct acc_err *e)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	char where[280];
	int rc;
	while ((rc = look(f, e)) == 0) {
		struct tail *t = hindmost(f);
		if (t == NULL)
			break;
		int got = fill(t, &t->bad);
		if (got == 0) {
			nanosleep(&wait, NULL);
			continue;
		}
		rc = hand(t, e);
		if (rc == 0 && got < 0) {
			snprintf(where, sizeof where, "%.200s/%s", f->folder, t->name);
			acc_err_in(&t->bad, where);
			acc_dump_trouble(f->c, &t->bad);
			t->done = INT64_MAX;
		}
		if (rc == 0)
			rc = tell(f, e);
		if (rc < 0)
			break;
	}
	return rc;
}

int
acc_record_follow(struct acc_dump_ctx *c, const char *folder, struct acc_err *e)
{
	struct tails f = {.c = c, .folder = folder, .dirfd = acc_dir_open(folder, e)};
	int rc = f.dirfd < 0 ? f.dirfd : follow(&f, e);
	for (size_t i = 0; i < f.n; i++) {
		if (f.t[i]->fd >= 0)
			close(f.t[i]->fd);
		acc_buf_release(&f.t[i]->buf);
		acc_rec_release(&f.t[i]->rec);
		acc_record_end(&f.t[i]->k);
		free(f.t[i]);
	}
	free(f.t);
	if (f.dirfd >= 0)
		close(f.dirfd);
	return rc;
}
