/* Data records whose bytes stay in the pipe: moved on, skipped, read after all, cut short. */
#include "acc/file.h"
#include "acc/stream.h"
#include "stream/codec.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 200000, SMALL = 100 };

static struct acc_buf stream;
static uint8_t payload[BIG];

static void
add(const struct acc_rec *r)
{
	acc_encode(r, &stream, NULL);
}

static void
add_data(const char *kind, size_t n, bool first)
{
	struct acc_rec r = {0};
	const struct acc_field data = {.key = ACC_STR("data"),
		.v = {.type = ACC_V_BIN, .s = {(char *)payload, (uint32_t)n}}};
	acc_rec_start(&r, acc_str(kind));
	if (first)
		acc_rec_push(&r, &data);
	acc_add(&r, "", "seq", acc_int(7));
	if (!first)
		acc_rec_push(&r, &data);
	add(&r);
	acc_rec_release(&r);
}

static void
make(void)
{
	struct acc_rec r = {0};
	for (size_t i = 0; i < BIG; i++)
		payload[i] = (uint8_t)(i * i >> 7);
	acc_rec_start(&r, ACC_STR("acc"));
	acc_add(&r, "", "v", acc_int(1));
	add(&r);
	add_data("data", BIG, false);
	add_data("data", SMALL, false);
	add_data("data", BIG, false);
	add_data("data", BIG, true);    /* its bytes do not come last */
	add_data("x-data", BIG, false); /* is no payload */
	add_data("data", BIG, false);
	acc_rec_start(&r, ACC_STR("end"));
	acc_add(&r, "", "n", acc_int(6));
	acc_add(&r, "", "st", acc_int(1));
	add(&r);
	acc_rec_release(&r);
}

/* The first n bytes of the stream from a pipe, in pieces of at most `step`. */
static struct acc_rd *
from_pipe(size_t n, size_t step, pid_t *pid)
{
	int p[2];
	char name[32];
	if (pipe(p) < 0 || (*pid = fork()) < 0)
		exit(1);
	if (*pid == 0) {
		close(p[0]);
		for (size_t at = 0; at < n; at += step)
			if (acc_file_write(p[1], stream.p + at, n - at < step ? n - at : step,
				    NULL) < 0)
				break;
		_exit(0);
	}
	close(p[1]);
	snprintf(name, sizeof name, "/dev/fd/%d", p[0]);
	struct acc_rd *rd = acc_rd_open(name, NULL);
	close(p[0]);
	return rd;
}

static bool
holds(int fd, int64_t at, size_t n)
{
	uint8_t *p = malloc(n);
	bool good = p != NULL && acc_file_pread(fd, p, n, (uint64_t)at, NULL) == 0 &&
		    memcmp(p, payload, n) == 0;
	free(p);
	return good;
}

/* Take the open record's bytes into fd at `at`. */
static bool
move(struct acc_rd *rd, const struct acc_rec *r, int fd, int64_t at, struct acc_err *e)
{
	const struct acc_str s = acc_get(r, "", "data")->s;
	int64_t to = at;
	return acc_file_pwrite(fd, s.p, s.n - acc_rd_rest(rd), &to, e) == 0 &&
	       acc_rd_move(rd, fd, &to, "file", e) == 0 && to == at + s.n;
}

static void
all(size_t step, int fd)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	pid_t pid;
	struct acc_rd *rd = from_pipe(stream.n, step, &pid);
	ok(acc_rd_next_open(rd, &r, &e) == 1 && acc_rec_is(r, "data") &&
			acc_get_int(r, "", "seq", 0) == 7 && acc_get(r, "", "data")->s.n == BIG &&
			move(rd, r, fd, 10, &e) && holds(fd, 10, BIG),
		"in pieces of %zu: moved to a file %s", step, e.msg);
	ok(acc_rd_next_open(rd, &r, &e) == 1 && acc_get(r, "", "data")->s.n == SMALL &&
			move(rd, r, fd, 3, &e) && holds(fd, 3, SMALL),
		"a short one %s", e.msg);
	ok(acc_rd_next_open(rd, &r, &e) == 1 && acc_rd_rest(rd) > 0, "one that is skipped");
	bool good = acc_rd_next_open(rd, &r, &e) == 1 && acc_rd_rest(rd) == 0;
	ok(good && memcmp(acc_get(r, "", "data")->s.p, payload, BIG) == 0,
		"bytes that do not come last are read %s", e.msg);
	good = acc_rd_next_open(rd, &r, &e) == 1 && acc_rd_rest(rd) == 0;
	ok(good && acc_rec_is(r, "x-data") && memcmp(r->f[1].v.s.p, payload, BIG) == 0,
		"and those of another kind %s", e.msg);
	/* Where the writer is quicker, all of it has come already with the one before. */
	good = acc_rd_next_open(rd, &r, &e) == 1 && acc_rd_whole(rd, &r, &e) == 1 &&
	       acc_rd_rest(rd) == 0;
	ok(good && memcmp(acc_get(r, "", "data")->s.p, payload, BIG) == 0,
		"what was open can be read %s", e.msg);
	ok(acc_rd_next_open(rd, &r, &e) == 0 && acc_rd_status(rd) == 1, "the end %s", e.msg);
	acc_rd_close(rd);
	waitpid(pid, NULL, 0);
}

static void
cut(int fd)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	pid_t pid;
	for (int i = 0; i < 2; i++) {
		e = (struct acc_err){0};
		struct acc_rd *rd = from_pipe(BIG - 1000, 1000, &pid);
		bool opened = acc_rd_next_open(rd, &r, &e) == 1;
		bool done = i == 0 ? move(rd, r, fd, 0, &e) : acc_rd_next_open(rd, &r, &e) >= 0;
		ok(opened && !done && e.code == ACC_ETRUNC, "cut short, %s: %s",
			i == 0 ? "moved" : "skipped", e.msg);
		acc_rd_close(rd);
		waitpid(pid, NULL, 0);
	}
	e = (struct acc_err){0};
	struct acc_rd *rd = from_pipe(stream.n, 1000, &pid);
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int64_t at = 0;
	ok(full >= 0 && acc_rd_next_open(rd, &r, &e) == 1 &&
			acc_rd_move(rd, full, &at, "the disk", &e) == ACC_EIO &&
			strcmp(e.where, "the disk") == 0,
		"what cannot be written is said: %s %s", e.where, e.msg);
	close(full);
	acc_rd_close(rd);
	waitpid(pid, NULL, 0);
}

int
main(void)
{
	struct acc_err e = {0};
	int fd = acc_file_temp("/tmp", &e);
	make();
	ok(fd >= 0, "a file %s", e.msg);
	all(1 << 20, fd);
	all(4096, fd);
	all(777, fd);
	cut(fd);
	/* Of each beginning of a record, the same as of all of it. */
	struct acc_rec r = {0};
	size_t rest = 0, head = 0, bad = 0;
	int64_t whole = acc_scan(stream.p, stream.n, NULL);
	const uint8_t *p = stream.p + whole;
	for (size_t n = 0; n < 300; n++) {
		int64_t len = acc_decode_open(p, n, &r, NULL, &rest, NULL);
		if (len == 0)
			head = n + 1;
		else
			bad += len != (int64_t)n || r.f[1].v.s.n != BIG || rest != BIG - (n - head);
	}
	ok(bad == 0 && head > 10 && head < 40, "a blob of which only the length is there: %zu",
		head);
	acc_rec_release(&r);
	acc_buf_release(&stream);
	close(fd);
	return done();
}
