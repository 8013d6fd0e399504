/* The source of bytes: plain and gzip'd, through files and slow pipes. */
#include "acc/file.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define IO "tests/data/io/"

/* What make_io.py packs into one.gz. */
static bool
plain(const uint8_t *p, size_t n, size_t first)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != 97 + ((first + i) * 7 + (first + i) / 1000) % 26)
			return false;
	return true;
}

/* All of it, consuming `step` bytes at a time, into *out: what acc_bytes_more said last. */
static int
drain(struct acc_bytes *b, size_t step, struct acc_buf *out, struct acc_err *e)
{
	static const uint8_t zeros[ACC_BYTES_PAD];
	const uint8_t *p;
	size_t n;
	int rc;
	do {
		rc = acc_bytes_more(b, &p, &n, e);
		if (rc >= 0 &&
			(acc_bytes_peek(b, &p) != n || memcmp(p + n, zeros, sizeof zeros) != 0))
			return -99;
		for (; rc >= 0 && n > 0 && (n >= step || rc == 0); n = acc_bytes_peek(b, &p)) {
			size_t take = n < step ? n : step;
			acc_buf_add(out, p, take);
			acc_bytes_skip(b, take);
			if (acc_bytes_pos(b) != out->n)
				return -99;
		}
	} while (rc > 0);
	return rc;
}

static struct acc_bytes *
open_file(const char *name, struct acc_err *e)
{
	return acc_bytes_open(open(name, O_RDONLY), name, true, e);
}

static void
whole(const char *name, size_t step)
{
	struct acc_err e = {0};
	struct acc_buf got = {0};
	struct acc_bytes *b = open_file(name, &e);
	int rc = b == NULL ? -99 : drain(b, step, &got, &e);
	ok(rc == 0 && got.n == 300000 && plain(got.p, got.n, 0), "%s by %zu: %d %zu %s", name, step,
		rc, got.n, e.msg);
	acc_bytes_close(b);
	acc_buf_release(&got);
}

static struct acc_bytes *
from_memory(const void *p, size_t n, bool gunzip, struct acc_err *e)
{
	int fd = memfd_create("t_bytes", MFD_CLOEXEC);
	if (acc_file_write(fd, p, n, NULL) < 0)
		return NULL;
	lseek(fd, 0, SEEK_SET);
	return acc_bytes_open(fd, "memory", gunzip, e);
}

static void
text(const void *p, size_t n, const char *want, int code, uint64_t pos)
{
	struct acc_err e = {0};
	struct acc_buf got = {0};
	struct acc_bytes *b = from_memory(p, n, true, &e);
	int rc = b == NULL ? e.code : drain(b, 1, &got, &e);
	struct acc_str s = {got.n > 0 ? (char *)got.p : "", (uint32_t)got.n};
	ok(rc == code && acc_str_is(s, want) &&
			(code == 0 || (e.pos == pos && strcmp(e.where, "memory") == 0)),
		"%zu bytes hold '%.6s': %d byte %d: %s", n, want, rc, (int)e.pos, e.msg);
	acc_bytes_close(b);
	acc_buf_release(&got);
}

static size_t
load(const char *name, uint8_t *p, size_t size)
{
	int fd = open(name, O_RDONLY);
	ssize_t n = read(fd, p, size);
	close(fd);
	return n < 0 ? 0 : (size_t)n;
}

/* Every prefix of a gzip member is too short. */
static void
prefixes(void)
{
	uint8_t file[4096];
	size_t n = load(IO "one.gz", file, sizeof file), bad = 0;
	for (size_t i = 3; i < n; i++) {
		struct acc_err e = {0};
		struct acc_buf got = {0};
		struct acc_bytes *b = from_memory(file, i, true, &e);
		if (b == NULL || drain(b, 1000, &got, &e) != ACC_ETRUNC || e.pos != i ||
			!plain(got.p, got.n, 0))
			bad++;
		acc_bytes_close(b);
		acc_buf_release(&got);
	}
	ok(n > 1000 && bad == 0, "%zu prefixes of %zu are taken for whole", bad, n);
}

/* A writer that gives a byte at a time, so that no read begins or ends where it would suit. */
static void
slowly(const char *name, size_t want, bool gunzip, int flags)
{
	uint8_t file[4096];
	size_t n = load(name, file, sizeof file);
	int fds[2];
	if (pipe(fds) < 0)
		return;
	pid_t child = fork();
	if (child == 0) {
		close(fds[0]);
		for (size_t i = 0; i < n; i++) {
			if (write(fds[1], file + i, 1) != 1)
				_exit(1);
			if (i < 20)
				usleep(5000); /* long enough for the reader to take it alone */
		}
		_exit(0);
	}
	close(fds[1]);
	fcntl(fds[0], F_SETFL, flags);
	struct acc_err e = {0};
	struct acc_buf got = {0};
	struct acc_bytes *b = acc_bytes_open(fds[0], "pipe", gunzip, &e);
	int rc = b == NULL ? e.code : drain(b, 7, &got, &e);
	ok(rc == 0 && got.n == want, "%s through a slow pipe: %zu %s", name, got.n, e.msg);
	acc_bytes_close(b);
	acc_buf_release(&got);
	waitpid(child, NULL, 0);
}

/* More than a pipe holds that does not block, and a reader that takes its time. */
static void
unwilling(void)
{
	static uint8_t buf[300000];
	int fds[2], status = 1;
	if (pipe(fds) < 0)
		return;
	pid_t child = fork();
	if (child == 0) {
		size_t all = 0;
		close(fds[1]);
		usleep(20000);
		for (ssize_t n; (n = read(fds[0], buf, sizeof buf)) > 0;)
			all += (size_t)n;
		_exit(all == sizeof buf ? 0 : 1);
	}
	close(fds[0]);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	struct acc_err e = {0};
	int rc = acc_file_write(fds[1], buf, sizeof buf, &e);
	close(fds[1]);
	waitpid(child, &status, 0);
	ok(rc == 0 && status == 0, "a pipe that does not block takes all, too %s", e.msg);
}

/* Heads of 16 bytes, each with 4,000 bytes behind that are moved: reading a head never takes in
 * what the next move could splice. Out into a pipe, or into a file that refuses to be spliced to. */
static void
heads(bool append)
{
	uint8_t buf[4 * 4016];
	int in[2], out[2] = {-1, -1};
	size_t most = 0;
	for (size_t i = 0; i < sizeof buf; i++)
		buf[i] = (uint8_t)(i * 7);
	if (pipe(in) < 0 || write(in[1], buf, sizeof buf) != sizeof buf || pipe(out) < 0)
		return;
	close(in[1]);
	struct acc_err e = {0};
	struct acc_bytes *b = acc_bytes_open(in[0], "in", false, &e);
	const int fd = append ? acc_file_temp("/tmp", &e) : out[1];
	if (append)
		fcntl(fd, F_SETFL, O_APPEND);
	int rc = b == NULL ? -1 : 0;
	for (int i = 0; i < 4 && rc == 0; i++) {
		const uint8_t *p;
		size_t n = 0;
		acc_bytes_limit(b, 100);
		while (n < 16 && (rc = acc_bytes_more(b, &p, &n, &e)) > 0)
			;
		most = i > 0 && n > most ? n : most;
		acc_bytes_skip(b, 16);
		rc = acc_bytes_move(b, 4000, fd, NULL, "out", &e);
	}
	ok(rc == 0 && most <= 100, "moved %s: heads of at most %zu bytes %s",
		append ? "to a file that appends" : "to a pipe", most, e.msg);
	size_t bad = 0, got = 0;
	uint8_t back[16000];
	if (append)
		lseek(fd, 0, SEEK_SET);
	for (ssize_t n = 1; n > 0 && got<sizeof back; got += n> 0 ? (size_t)n : 0)
		n = read(append ? fd : out[0], back + got, sizeof back - got);
	for (size_t i = 0; i < got; i++)
		bad += back[i] != buf[i / 4000 * 4016 + 16 + i % 4000];
	ok(got == sizeof back && bad == 0, "all arrived: %zu, wrong %zu", got, bad);
	acc_bytes_close(b);
	if (append)
		close(fd);
	close(out[0]);
	close(out[1]);
}

/* As long as the system's clock of files needs to move on. */
static void
tick(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void
write_at(int fd, const char *s, off_t at)
{
	if (pwrite(fd, s, strlen(s), at) != (ssize_t)strlen(s))
		abort();
}

/* Open a file of 300,000 bytes, read a part, let `meanwhile` happen, read the rest: its code, or
 * the number of bytes that were read. */
static int64_t
meanwhile(void (*change)(int fd), bool growing, uint64_t *grown)
{
	char name[] = "/tmp/acc-t-bytes-XXXXXX", line[101];
	int fd = mkstemp(name);
	const uint8_t *p;
	size_t n = 0;
	struct acc_err e = {0};
	memset(line, 'a', 100);
	line[100] = '\0';
	for (int i = 0; i < 3000; i++)
		write_at(fd, line, i * 100);
	tick();
	struct acc_bytes *b = acc_bytes_open(open(name, O_RDONLY), name, true, &e);
	int rc = b == NULL || (growing && acc_bytes_growing(b, &e) < 0) ? -1 : 1;
	if (rc > 0)
		rc = acc_bytes_more(b, &p, &n, &e);
	if (change != NULL)
		change(fd);
	while (rc > 0)
		rc = acc_bytes_more(b, &p, &n, &e);
	*grown = rc == 0 ? acc_bytes_grown(b) : 0;
	if (rc < 0 && (strcmp(e.where, name) != 0 || strstr(e.msg, "changed while") == NULL))
		rc = -99;
	acc_bytes_close(b);
	close(fd);
	unlink(name);
	return rc < 0 ? rc : (int64_t)n;
}

static void
grow(int fd)
{
	write_at(fd, "more", 300000);
}

static void
rewrite_begin(int fd)
{
	write_at(fd, "b", 0);
}

static void
rewrite_and_grow(int fd)
{
	grow(fd);
	rewrite_begin(fd);
}

/* Its time is set back, as rsync does: the inode's own cannot be. */
static void
rewrite_secretly(int fd)
{
	struct stat st;
	fstat(fd, &st);
	rewrite_begin(fd);
	futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim});
}

static void
cut(int fd)
{
	if (ftruncate(fd, 200000) < 0)
		abort();
}

static void
changes(void)
{
	uint64_t grown;
	ok(meanwhile(NULL, false, &grown) == 300000, "a file that stays as it is");
	ok(meanwhile(NULL, true, &grown) == 300000 && grown == 0, "a log that stays");
	ok(meanwhile(grow, true, &grown) == 300000 && grown == 4,
		"of a log that grows what it had is read");
	ok(meanwhile(grow, false, &grown) == ACC_EFORMAT, "another file that grows is refused");
	ok(meanwhile(rewrite_begin, false, &grown) == ACC_EFORMAT, "written anew");
	ok(meanwhile(rewrite_secretly, false, &grown) == ACC_EFORMAT,
		"written anew, its time set back");
	ok(meanwhile(cut, false, &grown) == ACC_EFORMAT, "cut");
	ok(meanwhile(rewrite_begin, true, &grown) == ACC_EFORMAT, "a log written anew");
	ok(meanwhile(rewrite_and_grow, true, &grown) == ACC_EFORMAT, "a log written anew, longer");
	ok(meanwhile(cut, true, &grown) == ACC_EFORMAT, "a log that was cut");
}

int
main(void)
{
	whole(IO "one.gz", 1);
	whole(IO "one.gz", 4096);
	whole(IO "one.gz", 299999); /* the buffer must grow */
	uint8_t file[4096];
	size_t n = load(IO "many.gz", file, sizeof file);
	text(file, n, "abcdef\n", 0, 0);
	text(file, n - 513, "abcdef\n", ACC_ETRUNC, n - 513);
	n = load(IO "garbage.gz", file, sizeof file);
	text(file, n, "abc", ACC_EFORMAT, n - 3);
	n = load(IO "badsum.gz", file, sizeof file);
	text(file, n, "abc", ACC_EFORMAT, n - 4);
	text("", 0, "", 0, 0);
	text("a", 1, "a", 0, 0);
	text("\x1f\x8b", 2, "\x1f\x8b", 0, 0);
	text("\x1f\x8b\x07 no gzip", 11, "\x1f\x8b\x07 no gzip", 0, 0);
	prefixes();
	slowly(IO "one.gz", 300000, true, 0);
	slowly(IO "one.gz", 1220, false, 0);
	slowly(IO "npy.tsv", 714, true, 0);
	slowly(IO "one.gz", 300000, true, O_NONBLOCK);
	slowly(IO "npy.tsv", 714, false, O_NONBLOCK);
	unwilling();
	heads(false);
	heads(true);
	struct acc_err e = {0};
	ok(open_file("/", &e) == NULL && e.code == ACC_EIO && strcmp(e.where, "/") == 0,
		"a folder: %s", e.msg);
	e = (struct acc_err){0};
	ok(acc_bytes_open(-1, "absent", true, &e) == NULL && e.code == ACC_EIO, "no file: %s",
		e.msg);
	acc_bytes_close(NULL);
	changes();
	return done();
}
