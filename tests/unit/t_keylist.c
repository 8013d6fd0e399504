/* Records by lists of keys: what is written reads back, in whatever pieces it comes; what is refused. */
#include "acc/file.h"
#include "acc/stream.h"
#include "io/crc.h"
#include "stream/codec.h"
#include "stream/keylist.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORDS = 3000, KEYS = 12, TEXT = 600 };

static uint64_t state = 1;

static uint32_t
draw(uint32_t n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % n;
}

static struct acc_val
draw_value(void)
{
	static char text[TEXT];
	static int64_t ints[300];
	static struct acc_str texts[40];
	/* Few of each, so that many are those of the record before. */
	const uint32_t n = draw(12) == 0 ? draw(TEXT) : 1 + draw(3);
	memset(text, 'a' + (int)draw(2), sizeof text);
	switch (draw(9)) {
	case 0:
		return acc_nil();
	case 1:
		return acc_bool(draw(2));
	case 2:
		return acc_int(draw(2) - (draw(5) == 0 ? INT64_C(1) << 40 : 1));
	case 3:
		return acc_f64(draw(3) == 0 ? NAN : draw(2) + 0.1);
	case 4:
		return acc_uint(draw(2) == 0 ? UINT64_MAX : 7);
	case 5:
		for (uint32_t i = 0; i < n && i < 300; i++)
			ints[i] = i * 1000;
		return acc_ints(ints, n < 300 ? n : 300);
	case 6:
		for (uint32_t i = 0; i < n && i < 40; i++)
			texts[i] = (struct acc_str){text, i};
		return acc_texts(texts, n < 40 ? n : 40);
	default:
		return acc_text((struct acc_str){text, n});
	}
}

/* Of a few kinds and keys, in a few orders: nothing here has a type that accstream(5) gives it. */
static void
draw_record(struct acc_rec *r)
{
	static const char *const kind[] = {"x-1", "x-2", "data", "x-3"};
	char key[32];
	acc_rec_start(r, acc_str(kind[draw(4)]));
	if (draw(4) > 0)
		acc_add(r, "", "name", acc_ctext(draw(2) ? "n" : "m"));
	const uint32_t skip = draw(3), n = draw(3) * 4;
	for (uint32_t i = 0; i < n; i++) {
		snprintf(key, sizeof key, "x%u", i * 3 + skip);
		acc_add(r, "", key, draw_value());
	}
	if (draw(2))
		acc_add(r, "", draw(2) ? "ab.name" : "b.name", acc_ctext(draw(2) ? "n" : "m"));
}

static bool
same(const struct acc_rec *a, const struct acc_rec *b)
{
	bool good = a->n == b->n && acc_str_eq(a->kind, b->kind);
	for (uint32_t i = 0; good && i < a->n; i++)
		good = acc_str_eq(a->f[i].key, b->f[i].key) && acc_val_eq(&a->f[i].v, &b->f[i].v);
	return good;
}

static struct acc_rd *
open_fd(int fd, struct acc_err *e)
{
	char name[32];
	snprintf(name, sizeof name, "/dev/fd/%d", fd);
	return acc_rd_open(name, e);
}

/* From a pipe, n bytes of a file in pieces of `step`. */
static int
in_pieces(int fd, size_t n, size_t step)
{
	int p[2];
	uint8_t *b = malloc(n);
	if (b == NULL || pipe(p) < 0 || pread(fd, b, n, 0) != (ssize_t)n)
		exit(1);
	const pid_t pid = fork();
	if (pid == 0) {
		close(p[0]);
		for (size_t at = 0; at < n; at += step)
			if (acc_file_write(p[1], b + at, n - at < step ? n - at : step, NULL) < 0)
				break;
		_exit(0);
	}
	close(p[1]);
	free(b);
	return p[0];
}

/* Does it read as the records that are drawn again? Through another writer, where there is one. */
static bool
reads(int fd, struct acc_wr *through)
{
	struct acc_err e = {0};
	struct acc_rec want = {0}, *r;
	struct acc_rd *rd = open_fd(fd, &e);
	bool good = rd != NULL;
	int rc = 1;
	state = 1;
	for (int i = 0; good && (rc = acc_rd_next(rd, &r, &e)) > 0; i++) {
		draw_record(&want);
		good = i < RECORDS && same(&want, r) &&
		       (through == NULL || acc_wr_put(through, r, &e) == 0);
	}
	if (!good || rc < 0)
		printf("# %s\n", e.msg);
	acc_rd_close(rd);
	acc_rec_release(&want);
	return good && rc == 0;
}

static size_t
length(int fd)
{
	return (size_t)lseek(fd, 0, SEEK_CUR);
}

static void
round_trip(void)
{
	int fd[2] = {memfd_create("a", 0), memfd_create("b", 0)};
	struct acc_rec r = {0};
	struct acc_err e = {0};
	struct acc_buf plain = {0};
	struct acc_wr *wr = acc_wr_open(fd[0], NULL, 0, "x", &e);
	bool good = wr != NULL;
	state = 1;
	for (int i = 0; good && i < RECORDS; i++) {
		draw_record(&r);
		good = acc_wr_put(wr, &r, &e) == 0 && acc_encode(&r, &plain, NULL) == 0;
	}
	ok(good && acc_wr_end(wr, 0, &e) == 0, "records of every type, in many shapes");
	acc_wr_close(wr);
	ok(length(fd[0]) < plain.n * 9 / 10, "%zu bytes, %zu with their keys", length(fd[0]),
		plain.n);
	wr = acc_wr_open(fd[1], NULL, 0, "x", &e);
	ok(reads(fd[0], wr) && acc_wr_end(wr, 0, &e) == 0, "read back the same");
	acc_wr_close(wr);
	ok(length(fd[1]) == length(fd[0]) && reads(fd[1], NULL),
		"and so they do from what a filter writes of them");
	static const size_t step[] = {1, 7, 4093};
	for (int i = 0; i < 3; i++) {
		const int p = in_pieces(fd[0], length(fd[0]), step[i]);
		ok(reads(p, NULL), "in pieces of %zu bytes", step[i]);
		close(p);
		while (wait(NULL) > 0)
			;
	}
	acc_buf_release(&plain);
	acc_rec_release(&r);
	close(fd[0]);
	close(fd[1]);
}

/* A stream of these bytes behind the head of version v: why is it refused? */
static void
refused(const char *what, int v, const void *p, size_t n, const char *why)
{
	const uint8_t head[] = {0x92, 0xa3, 'a', 'c', 'c', 0x82, 0xa1, 'v', (uint8_t)v, 0xa5, 'm',
		'i', 'n', 'o', 'r', 0};
	static const uint8_t rest[300]; /* so that it is not read the long way alone */
	static const uint8_t end[] = {0x92, 0xa3, 'e', 'n', 'd', 0x80};
	char got[2][sizeof((struct acc_err *)0)->msg] = {{0}};
	for (int way = 0; way < 2; way++) {
		int fd = memfd_create("x", 0);
		struct acc_err e = {0};
		struct acc_rec *r;
		if (write(fd, head, sizeof head) < 0 || write(fd, p, n) < 0 ||
			(way == 1 && write(fd, rest, sizeof rest) < 0) ||
			write(fd, end, sizeof end) < 0)
			exit(1);
		struct acc_rd *rd = open_fd(fd, &e);
		while (rd != NULL && acc_rd_next(rd, &r, &e) > 0)
			;
		snprintf(got[way], sizeof got[way], "%s", e.msg);
		acc_rd_close(rd);
		close(fd);
	}
	ok(strstr(got[0], why) != NULL && strstr(got[1], why) != NULL, "%s: %s, %s", what, got[0],
		got[1]);
}
#define REFUSED(what, bytes, why) refused(what, 3, bytes, sizeof(bytes) - 1, why)
#define LIST "\x93\x00\xa1x\x92\xa1j\xa1k"

/* Who makes records may know their shape by another number than a reader does: the list is told once. */
static void
known_otherwise(void)
{
	static const uint64_t shape[] = {0, 77, 77, 0, 78};
	struct acc_keylists ls = {0};
	struct acc_shapes sh = {0};
	struct acc_buf out = {0};
	struct acc_rec r = {0};
	size_t told = 0;
	bool good = true;
	for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
		acc_rec_start(&r, ACC_STR("x-1"));
		acc_add(&r, "", "a", acc_int((int64_t)i));
		acc_add(&r, "", "b", acc_int(5));
		r.shape = shape[i];
		good &= acc_encode_listed(&r, &sh, &ls, &out, NULL) == 0;
		told = i == 0 ? out.n : told;
	}
	ok(good && ls.n == 1 && out.n < told + 4 * 8, "a list is told once: %u lists, %zu bytes",
		ls.n, out.n);
	acc_rec_start(&r, ACC_STR("x-1"));
	acc_add(&r, "", "a", acc_int(1));
	acc_add(&r, "", "a", acc_int(2));
	struct acc_err e = {0};
	ok(acc_encode_listed(&r, &sh, &ls, &out, &e) == ACC_EFORMAT && ls.n == 1,
		"a key that stands twice is refused: %s", e.msg);
	acc_rec_release(&r);
	acc_buf_release(&out);
	acc_keylists_release(&ls);
	acc_shapes_release(&sh);
}

int
main(void)
{
	round_trip();
	known_otherwise();
	REFUSED("a record of a list that has not come", "\x92\x00\xc4\x01\x00",
		"that has not come");
	REFUSED("a list that is not the next", "\x93\x01\xa1x\x91\xa1k", "is not the next");
	REFUSED("a list with a key twice", "\x93\x00\xa1x\x92\xa1k\xa1k", "has the key 'k' twice");
	REFUSED("a list for the end",
		"\x93\x00\xa3"
		"end\x91\xa1k",
		"which have none");
	REFUSED("a list for payload",
		"\x93\x00\xa4"
		"data\x91\xa1k",
		"which have none");
	REFUSED("a list of 4,097 keys", "\x93\x00\xa1x\xdc\x10\x01", "more than 4096 fields");
	REFUSED("a list whose keys are no strings", "\x93\x00\xa1x\x91\x01",
		"a key is not a string");
	REFUSED("a list without an array", "\x93\x00\xa1x\x80", "is none");
	REFUSED("a value that never came", LIST "\x93\x00\xc4\x01\x01\x05", "leaves out its 'k'");
	REFUSED("a long value is no last one",
		"\x93\x00\xa1x\x91\xa1j"
		"\x93\x00\xc4\x01\x01\xda\x01\x00"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		"\x92\x00\xc4\x01\x00",
		"leaves out its 'j'");
	REFUSED("fewer values than bits", LIST "\x93\x00\xc4\x01\x03\x05",
		"other values than its list has keys");
	REFUSED("more values than bits", LIST "\x94\x00\xc4\x01\x01\x05\x05",
		"other values than its list has keys");
	REFUSED("a bit behind the last key", LIST "\x95\x00\xc4\x01\x07\x05\x05\x05",
		"other values than its list has keys");
	REFUSED("bytes of bits that are too many", LIST "\x94\x00\xc4\x02\x03\x00\x05\x05",
		"other values than its list has keys");
	REFUSED("no bits", LIST "\x93\x00\x05\x05", "nothing says which");
	REFUSED("a number alone", LIST "\x91\x00\xc4\x00", "nothing says which");
	REFUSED("a negative number", LIST "\x92\xff\xc4\x00", "neither a kind nor a list");
	REFUSED("a map in a record", LIST "\x93\x00\xc4\x01\x01\x80", "a map inside a record");
	REFUSED("a value of another type than its key's",
		"\x93\x00\xa1x\x91\xa3seq\x93\x00\xc4\x01\x01\xa1x", "'seq' is of another type");
	refused("a list in a stream of version 2", 2, LIST, sizeof LIST - 1, "no array of two");
	struct acc_buf many = {0};
	for (int i = 0; i <= KEYLISTS_MOST; i++) {
		const uint8_t list[] = {0x93, 0xcd, (uint8_t)(i >> 8), (uint8_t)i, 0xa1, 'x', 0x91,
			0xcd, 0, 0};
		acc_buf_add(&many, list, sizeof list - 3);
		const uint8_t key[] = {0xa2, (uint8_t)(i >> 8), (uint8_t)i};
		acc_buf_add(&many, key, sizeof key);
	}
	refused("1,025 lists", 3, many.p, many.n, "more than 1024 lists");
	acc_buf_release(&many);
	return done();
}
