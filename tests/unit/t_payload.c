/* Bytes behind references: layouts, containers, and files that are not what a record says. */
#include "acc/file.h"
#include "payload/pay.h"
#include "tap.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

static char dir[] = "/tmp/t_payload.XXXXXX";

static void
put(const char *name, const void *p, size_t n)
{
	char path[100];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || acc_file_write(fd, p, n, NULL) < 0)
		exit(2);
	close(fd);
}

/* A reference to a row-major array that is the whole file, as a record of now would say. */
static struct acc_ref
refer(const char *name, enum acc_dtype t, uint32_t ndim, const int64_t *shape)
{
	struct acc_ref r = {.dtype = t, .ndim = ndim, .file = acc_str(name)};
	char path[100];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (stat(path, &st) == 0) {
		r.fsize = r.len = (uint64_t)st.st_size;
		r.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	}
	for (uint32_t i = 0; i < ndim; i++)
		r.shape[i] = shape[i];
	return r;
}

static struct acc_roots *
roots(const char *root, const char *move)
{
	struct acc_roots *r = acc_roots_open(NULL);
	struct acc_rec rec = {0};
	acc_rec_start(&rec, ACC_STR("source"));
	acc_put(&rec, "", "id", acc_ctext("s"));
	acc_put(&rec, "", "root", acc_ctext(root));
	if (move != NULL)
		ok(acc_roots_move(r, move, NULL) == 0, "a move is taken");
	ok(acc_roots_add(r, &rec, NULL) == 0, "a source is taken");
	acc_rec_release(&rec);
	return r;
}

/* All elements, in chunks of `step`. */
static bool
read_all(struct acc_roots *r, const struct acc_ref *ref, size_t step, void *out, struct acc_err *e)
{
	struct acc_pay *p = acc_pay_open(r, ACC_STR("s"), ref, e);
	if (p == NULL)
		return false;
	uint64_t n = acc_pay_count(p);
	uint8_t *to = out;
	bool good = true;
	for (uint64_t at = 0; good && at < n; at += step) {
		size_t k = n - at < step ? (size_t)(n - at) : step;
		const void *got;
		good = acc_pay_read(p, at, k, to, &got, e) == 0;
		if (good && got != to)
			memcpy(to, got, k * acc_dtype_of(ref->dtype)->size);
		to += k * acc_dtype_of(ref->dtype)->size;
	}
	acc_pay_close(p);
	return good;
}

static void
fails(struct acc_roots *r, const struct acc_ref *ref, int code, const char *what)
{
	struct acc_err e = {0};
	uint8_t buf[4096];
	char text[600];
	bool good = read_all(r, ref, 16, buf, &e);
	acc_err_text(&e, text, sizeof text);
	ok(!good && e.code == code && e.where[0] != '\0', "%s: %s", what, text);
}

/* Any layout, against walking the whole storage by index. */
static void
layout(struct acc_roots *r, const char *what, struct acc_ref ref, const float *storage)
{
	uint64_t n;
	acc_count(ref.shape, ref.ndim, &n);
	float *got = malloc(n * sizeof *got + 1);
	struct acc_err e = {0};
	bool good = read_all(r, &ref, 65536, got, &e);
	uint64_t bad = 0;
	for (uint64_t i = 0; good && i < n; i++) {
		int64_t at = (int64_t)ref.first;
		uint64_t rest = i;
		for (uint32_t d = ref.ndim; d-- > 0;) {
			int64_t k = (int64_t)(rest % (uint64_t)ref.shape[d]);
			if (ref.block.n > 0 && ref.block.axis == d) {
				at += k / ref.block.n * ref.block.stride;
				k %= ref.block.n;
			}
			at += k * ref.stride[d];
			rest /= (uint64_t)ref.shape[d];
		}
		bad += got[i] != storage[at];
	}
	ok(good && bad == 0, "%s%s%s", what, e.code != 0 ? ": " : "", e.msg);
	free(got);
}

static struct acc_ref
strided(const char *name, uint32_t ndim, const int64_t *shape, const int64_t *stride,
	uint64_t first)
{
	struct acc_ref ref = refer(name, ACC_F32, ndim, shape);
	ref.strided = true;
	ref.first = first;
	for (uint32_t i = 0; i < ndim; i++)
		ref.stride[i] = stride[i];
	return ref;
}

static struct acc_ref
blocked(struct acc_ref ref, uint32_t axis, int64_t n, int64_t stride)
{
	ref.block = (struct acc_block){axis, n, stride};
	return ref;
}

#define DIMS(...) \
	(const int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

static void
layouts(struct acc_roots *r)
{
	enum { BIG = 1500 * 1500 };
	float *x = malloc(BIG * sizeof *x);
	for (int i = 0; i < BIG; i++)
		x[i] = (float)i;
	put("small.bin", x, 240 * sizeof *x);
	put("big.bin", x, BIG * sizeof *x);
	layout(r, "a transposed matrix", strided("small.bin", 2, DIMS(12, 20), DIMS(1, 12), 0), x);
	layout(r, "three dimensions permuted, of a part",
		strided("small.bin", 3, DIMS(4, 5, 3), DIMS(1, 20, 7), 11), x);
	layout(r, "negative strides", strided("small.bin", 2, DIMS(10, 20), DIMS(-20, -1), 239), x);
	layout(r, "a broadcast row", strided("small.bin", 2, DIMS(6, 20), DIMS(0, 1), 3), x);
	layout(r, "a broadcast column", strided("small.bin", 2, DIMS(6, 20), DIMS(1, 0), 3), x);
	layout(r, "one element", strided("small.bin", 0, NULL, NULL, 7), x);
	layout(r, "contiguous by strides, from the middle",
		strided("small.bin", 3, DIMS(1, 10, 12), DIMS(77, 12, 1), 100), x);
	layout(r, "a large transposed matrix",
		strided("big.bin", 2, DIMS(1500, 1500), DIMS(1, 1500), 0), x);
	layout(r, "a large one, by steps of 3 backwards",
		strided("big.bin", 2, DIMS(500, 1500), DIMS(-3, 1500), 1499), x);
	layout(r, "a large column repeated",
		strided("big.bin", 2, DIMS(1500, 1000), DIMS(1500, 0), 5), x);
	layout(r, "four dimensions, outer ones fixed in a tile",
		strided("big.bin", 4, DIMS(3, 10, 500, 150), DIMS(750000, 1, 1500, 10), 0), x);
	/* Tiles of 4 by 5: of 11 by 13 elements there are 3 by 3, the last ones not full. */
	layout(r, "a small matrix in blocks",
		blocked(strided("small.bin", 2, DIMS(11, 13), DIMS(5, 1), 0), 1, 5, 60), x);
	layout(r, "the first axis in blocks",
		blocked(strided("small.bin", 3, DIMS(11, 2, 3), DIMS(1, 15, 5), 2), 0, 4, 30), x);
	layout(r, "one axis in blocks, backwards",
		blocked(strided("small.bin", 1, DIMS(21), DIMS(2), 200), 0, 3, -25), x);
	layout(r, "a diagonal in blocks",
		blocked(strided("small.bin", 2, DIMS(2, 11), DIMS(25, 6), 0), 1, 5, 50), x);
	layout(r, "no more than a block",
		blocked(strided("small.bin", 2, DIMS(3, 5), DIMS(7, 1), 0), 1, 5, 1 << 20), x);
	layout(r, "a large matrix in blocks, in several tiles",
		blocked(strided("big.bin", 2, DIMS(1403, 1499), DIMS(16, 1), 0), 1, 16, 1408 * 16),
		x);
	layout(r, "a large one, its first axis in blocks",
		blocked(strided("big.bin", 2, DIMS(1499, 1403), DIMS(1, 16), 0), 0, 16, 1408 * 16),
		x);
	layout(r, "a long axis in blocks, in several tiles",
		blocked(strided("big.bin", 1, DIMS(1200000), DIMS(1), 3), 0, 7, 13), x);
	layout(r, "outer blocks fixed in a tile",
		blocked(strided("big.bin", 3, DIMS(37, 90, 300), DIMS(1, 5000, 16), 0), 0, 16,
			700000),
		x);
	free(x);
}

static void
orders(struct acc_roots *r)
{
	static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	const struct {
		enum acc_dtype t;
		int64_t n;
		uint8_t want[16];
	} row[] = {
		{ACC_F16, 8, {2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15}},
		{ACC_F32, 4, {4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9, 16, 15, 14, 13}},
		{ACC_C64, 2, {4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9, 16, 15, 14, 13}},
		{ACC_F64, 2, {8, 7, 6, 5, 4, 3, 2, 1, 16, 15, 14, 13, 12, 11, 10, 9}},
		{ACC_U8, 16, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
	};
	put("order.bin", bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct acc_ref ref = refer("order.bin", row[i].t, 1, &row[i].n);
		uint8_t got[16];
		ref.big_endian = true;
		ok(read_all(r, &ref, 3, got, NULL) && memcmp(got, row[i].want, 16) == 0,
			"big-endian %s", acc_dtype_of(row[i].t)->name);
	}
	struct acc_ref none = refer("order.bin", ACC_F32, 2, DIMS(0, 7));
	struct acc_pay *p = acc_pay_open(r, ACC_STR("s"), &none, NULL);
	ok(p != NULL && acc_pay_count(p) == 0, "no elements");
	acc_pay_close(p);
}

static size_t
squeeze(const void *in, size_t n, uint8_t *out, size_t room)
{
	z_stream z = {0};
	deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
	z.next_in = (Bytef *)(uintptr_t)in;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = (uInt)room;
	deflate(&z, Z_FINISH);
	deflateEnd(&z);
	return z.total_out;
}

static void
compressed(struct acc_roots *r)
{
	enum { N = 200000 };
	float *x = malloc(N * sizeof *x), *got = malloc(N * sizeof *x);
	uint8_t *z = malloc(2 * N * sizeof *x);
	for (int i = 0; i < N; i++)
		x[i] = (float)(i * 7 % 1000);
	memset(z, 0xee, 100);
	size_t n = squeeze(x, N * sizeof *x, z + 100, 2 * N * sizeof *x - 100);
	put("z.bin", z, 100 + n);
	struct acc_ref ref = refer("z.bin", ACC_F32, 1, DIMS(N));
	ref.enc = ACC_DEFLATE;
	ref.off = 100;
	ref.clen = n;
	ref.len = N * sizeof *x;
	ok(read_all(r, &ref, 65536, got, NULL) && memcmp(x, got, N * sizeof *x) == 0, "deflated");
	struct acc_ref t = ref;
	t.strided = true;
	t.ndim = 2;
	t.shape[0] = 500;
	t.shape[1] = 400;
	t.stride[0] = 1;
	t.stride[1] = 500;
	layout(r, "deflated and transposed", t, x);
	t.has_crc = true;
	fails(r, &t, ACC_EFORMAT, "with a wrong checksum");
	struct acc_ref lie = ref;
	lie.clen = n / 2;
	struct acc_err e = {0};
	ok(!read_all(r, &lie, 65536, got, &e) && e.code == ACC_ETRUNC, "cut: %s", e.msg);
	lie = ref;
	lie.off = 101;
	lie.clen = n - 1;
	e = (struct acc_err){0};
	ok(!read_all(r, &lie, 65536, got, &e) && e.code < 0, "corrupt: %s", e.msg);
	struct acc_pay *p = acc_pay_open(r, ACC_STR("s"), &ref, NULL);
	const void *at;
	ok(!acc_pay_random(p) && acc_pay_read(p, 5, 3, got, &at, NULL) == ACC_EUSAGE,
		"deflated data is not read from the middle");
	acc_pay_close(p);
	free(x);
	free(got);
	free(z);
}

/* Between two chunks another content of the same size comes, and the time is set back. */
static void
rewritten(struct acc_roots *r, const float *x)
{
	struct acc_err e = {0};
	float got[8], one;
	const void *at;
	struct stat st;
	put("a.bin", x, 32);
	const struct acc_ref good = refer("a.bin", ACC_F32, 1, DIMS(8));
	struct acc_pay *p = acc_pay_open(r, ACC_STR("s"), &good, &e);
	ok(p != NULL && acc_pay_read(p, 0, 4, got, &at, &e) == 0, "the first half: %s", e.msg);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	char path[100];
	snprintf(path, sizeof path, "%s/a.bin", dir);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || fstat(fd, &st) < 0 || pwrite(fd, "other", 5, 0) != 5 ||
		futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim}) < 0)
		abort();
	close(fd);
	ok(acc_pay_read(p, 4, 4, got, &at, &e) == ACC_EFORMAT &&
			strstr(e.msg, "changed while") != NULL && strcmp(e.where, "a.bin") == 0,
		"a file that is written anew meanwhile: %s", e.msg);
	e = (struct acc_err){0};
	ok(acc_pay_peek(p, 0, 1, &one, &e) == ACC_EFORMAT,
		"also where a few elements are looked at");
	acc_pay_close(p);
}

static void
lies(struct acc_roots *r)
{
	float x[8] = {0};
	put("a.bin", x, sizeof x);
	struct acc_ref good = refer("a.bin", ACC_F32, 1, DIMS(8)), ref = good;
	float got[8];
	ok(read_all(r, &good, 8, got, NULL), "as it should be");
	ref.file = acc_str("none.bin");
	fails(r, &ref, ACC_EIO, "a missing file");
	ref.file = acc_str("../a.bin");
	fails(r, &ref, ACC_EREFUSED, "a path that climbs");
	ref.file = acc_str("/etc/passwd");
	fails(r, &ref, ACC_EREFUSED, "an absolute path");
	ref = good;
	ref.fsize++;
	fails(r, &ref, ACC_EFORMAT, "another size");
	ref = good;
	ref.mtime_ns--;
	fails(r, &ref, ACC_EFORMAT, "another time");
	ref = good;
	ref.shape[0] = 9;
	fails(r, &ref, ACC_EFORMAT, "a shape beyond the storage");
	ref.len = 36;
	fails(r, &ref, ACC_ETRUNC, "a storage beyond the file");
	ref = good;
	ref.off = UINT64_MAX - 8;
	fails(r, &ref, ACC_EFORMAT, "an offset that wraps");
	ref = good;
	ref.shape[0] = -1;
	fails(r, &ref, ACC_EFORMAT, "a negative dimension");
	ref = good;
	ref.dtype = ACC_NODTYPE;
	fails(r, &ref, ACC_EUNSUP, "no dtype");
	/* One value, seen again and again: 2^33 times, or 4,096 times each. */
	ref = strided("a.bin", 1, DIMS(INT64_C(1) << 33), DIMS(0), 0);
	ok(acc_ref_check(&ref, NULL) == 0, "2^33 views of one value");
	ref.shape[0]++;
	fails(r, &ref, ACC_ELIMIT, "one more");
	ref.shape[0] = 1000000000000;
	fails(r, &ref, ACC_ELIMIT, "10^12");
	ref = strided("a.bin", 1, DIMS(2), DIMS(INT64_MAX), 0);
	fails(r, &ref, ACC_EFORMAT, "a stride out of this world");
	struct acc_err e = {0};
	ok(acc_pay_open(r, ACC_STR("other"), &good, &e) == NULL && e.code == ACC_EFORMAT,
		"an unknown source: %s", e.msg);
	/* A file that shrinks after it was opened. */
	struct acc_pay *p = acc_pay_open(r, ACC_STR("s"), &good, NULL);
	put("a.bin", x, 12);
	const void *at;
	e = (struct acc_err){0};
	ok(acc_pay_read(p, 0, 8, got, &at, &e) == ACC_ETRUNC, "a file that shrinks: %s", e.msg);
	acc_pay_close(p);
	rewritten(r, x);
}

static sigjmp_buf jump;

static void
own_handler(int sig)
{
	(void)sig;
	siglongjmp(jump, 1);
}

/* A mapping whose file shrinks, and the program's own handler of the same signal. */
static void
torn(void)
{
	enum { SIZE = 3 << 20 };
	char path[100];
	uint8_t *bytes = malloc(SIZE);
	memset(bytes, 7, SIZE);
	put("torn.bin", bytes, SIZE);
	snprintf(path, sizeof path, "%s/torn.bin", dir);
	struct sigaction own = {.sa_handler = own_handler}, now;
	sigaction(SIGBUS, &own, NULL);
	int fd = open(path, O_RDONLY);
	struct acc_mapped *m = acc_mapped_open(fd, 4096 + 5, SIZE - 5000);
	volatile const uint8_t *at = acc_mapped_at(m, 0);
	volatile const uint8_t *other = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	ok(acc_guard_install() && acc_guard_install(), "the handler is installed, and counted");
	acc_guard_remove();
	acc_guard_enter(NULL, m);
	ok(at[0] == 7 && at[SIZE - 5001] == 7 && !acc_mapped_torn(m), "a mapping is the file");
	acc_mapped_drop(m, SIZE - 5000);
	ok(at[0] == 7 && at[2 << 20] == 7, "what was given back can still be read");
	if (truncate(path, 100) < 0)
		exit(2);
	ok(at[2 << 20] == 0 && acc_mapped_torn(m), "what is gone is zeros, and a mark");
	if (sigsetjmp(jump, 1) == 0) {
		ok(false, "byte %d behind the end was read", other[SIZE - 1]);
	} else {
		ok(true, "a fault elsewhere goes to the handler that was there");
	}
	acc_guard_enter(NULL, NULL);
	acc_guard_remove();
	sigaction(SIGBUS, NULL, &now);
	ok(now.sa_handler == own_handler, "the handler that was there is back");
	signal(SIGBUS, SIG_DFL);
	acc_mapped_close(m);
	munmap((void *)(uintptr_t)other, SIZE);
	close(fd);
	free(bytes);
}

int
main(void)
{
	char path[120], move[150];
	if (mkdtemp(dir) == NULL)
		return 2;
	struct acc_roots *r = roots(dir, NULL);
	layouts(r);
	orders(r);
	compressed(r);
	lies(r);
	torn();
	acc_roots_close(r);
	/* Relocated, a copy with another time is fine, one of another size is not. */
	float x[8] = {1};
	float got[8];
	put("m.bin", x, sizeof x);
	snprintf(move, sizeof move, "/nowhere/else/=%s", dir);
	r = roots("/nowhere/else", move);
	struct acc_ref ref = refer("m.bin", ACC_F32, 1, DIMS(8));
	ref.mtime_ns -= 5;
	ok(read_all(r, &ref, 8, got, NULL) && got[0] == 1, "a relocated file");
	ref.fsize++;
	fails(r, &ref, ACC_EFORMAT, "a relocated file of another size");
	ok(acc_roots_move(r, "nonsense", NULL) == ACC_EUSAGE, "OLD=NEW is asked for");
	acc_roots_close(r);
	r = roots("/nowhere/elsewhere", move);
	ok(!read_all(r, &ref, 8, got, NULL), "a move is of whole names");
	acc_roots_close(r);
	snprintf(path, sizeof path, "rm -r %s", dir);
	if (system(path) != 0)
		return 2;
	return done();
}
