/* Storages that are put together of parts: what is read, what is refused, what is checked. */
#include "acc/stream.h"
#include "payload/pay.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { FILES = 80, EACH = 40000 };

static char dir[] = "/tmp/t_parted.XXXXXX";
static float x[FILES][EACH];
static struct acc_str src[FILES], file[FILES];
static int64_t off[FILES], len[FILES], crc[FILES], fsize[FILES], mtime[FILES];
static char names[FILES][16];

static void
write_part(int i)
{
	char path[100];
	struct stat st;
	snprintf(names[i], sizeof names[i], "part%d", i);
	snprintf(path, sizeof path, "%s/%s", dir, names[i]);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || acc_file_write(fd, "head", 4, NULL) < 0 ||
		acc_file_write(fd, x[i], sizeof x[i], NULL) < 0 || fstat(fd, &st) < 0)
		exit(2);
	close(fd);
	src[i] = ACC_STR("s");
	file[i] = acc_str(names[i]);
	off[i] = 4;
	len[i] = sizeof x[i];
	crc[i] = (int64_t)crc32(0, (const void *)x[i], sizeof x[i]);
	fsize[i] = st.st_size;
	mtime[i] = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static struct acc_ref
refer(uint32_t n, const int64_t *rows, uint32_t nrows, uint32_t ndim, const int64_t *shape)
{
	struct acc_ref r = {.dtype = ACC_F32,
		.ndim = ndim,
		.enc = ACC_PARTS,
		.parts = {n, nrows, src, file, off, len, crc, fsize, mtime, rows}};
	uint64_t count = 0;
	if (acc_parts_count(&r.parts, 4, &count, NULL) < 0)
		count = 0;
	r.len = count * 4;
	memcpy(r.shape, shape, ndim * sizeof *shape);
	return r;
}

static struct acc_roots *
roots(void)
{
	struct acc_roots *r = acc_roots_open(NULL);
	struct acc_rec rec = {0};
	acc_rec_start(&rec, ACC_STR("source"));
	acc_put(&rec, "", "id", acc_ctext("s"));
	acc_put(&rec, "", "root", acc_ctext(dir));
	acc_roots_add(r, &rec, NULL);
	acc_rec_release(&rec);
	return r;
}

/* What a reader from the page alone makes of it. */
static size_t
expect(const int64_t *rows, uint32_t n, float *out)
{
	size_t k = 0;
	for (uint32_t i = 0; i < n;) {
		const int64_t m = rows[i], pieces = rows[i + 1];
		i += 2;
		for (int64_t r = 0; r < m; r++)
			for (int64_t p = 0; p < pieces; p++) {
				const int64_t *v = rows + i + 4 * p;
				for (int64_t e = 0; e < v[2]; e++)
					out[k++] = x[v[0]][v[1] + r * v[3] + e];
			}
		i += (uint32_t)pieces * 4;
	}
	return k;
}

static bool
reads(struct acc_roots *r, const struct acc_ref *ref, size_t count, size_t step, struct acc_err *e)
{
	static float want[FILES * EACH], got[ACC_CHUNK];
	struct acc_pay *p = acc_pay_open(r, ACC_STR("none"), ref, e);
	const void *at;
	bool same = p != NULL && acc_pay_count(p) == count &&
		    expect(ref->parts.rows, ref->parts.nrows, want) == count;
	for (size_t i = 0; i < count && same; i += step) {
		const size_t n = count - i < step ? count - i : step;
		same = acc_pay_read(p, i, n, got, &at, e) == 0 &&
		       memcmp(at, want + i, n * sizeof *want) == 0;
	}
	acc_pay_close(p);
	return same;
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define ROWS(...) ((const int64_t[]){__VA_ARGS__}), sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)

static void
shapes(struct acc_roots *r)
{
	static const size_t steps[] = {ACC_CHUNK, 4096, 999, 17};
	struct {
		const char *what;
		struct acc_ref ref;
	} v[] = {
		{"columns",
			refer(2, ROWS(400, 2, 0, 0, 100, 100, 1, 0, 100, 100), 2, DIMS(400, 200))},
		{"rows, the halves of each side by side",
			refer(2,
				ROWS(1, 4, 0, 0, 20000, 0, 1, 0, 20000, 0, 0, 20000, 20000, 0, 1,
					20000, 20000, 0),
				2, DIMS(400, 200))},
		{"a grid of bands, with gaps",
			refer(3, ROWS(7, 2, 0, 5, 3, 11, 1, 0, 8, 9, 3, 1, 2, 39, 11, 22), 2,
				DIMS(10, 11))},
		{"long pieces",
			refer(2, ROWS(4, 2, 0, 0, 9999, 9999, 1, 1, 9999, 9999), 2, DIMS(8, 9999))},
		{"one row again and again", refer(1, ROWS(50, 1, 0, 3, 10, 0), 2, DIMS(50, 10))},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct acc_err e = {0};
		bool good = true;
		for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
			good = good && reads(r, &v[i].ref, v[i].ref.len / 4, steps[k], &e);
		ok(good, "%s: %s", v[i].what, e.msg);
	}
	/* More files than are held open. */
	static int64_t rows[2 + FILES * 4] = {1, FILES};
	for (int i = 0; i < FILES; i++)
		memcpy(rows + 2 + i * 4, DIMS(i, 0, EACH, 0), 4 * sizeof *rows);
	struct acc_ref ref = refer(FILES, rows, 2 + FILES * 4, 1, DIMS(FILES * EACH));
	struct acc_err e = {0};
	ok(reads(r, &ref, (size_t)FILES * EACH, ACC_CHUNK, &e), "many files: %s", e.msg);
	/* Seen the other way round. */
	ref = v[0].ref;
	ref.strided = true;
	memcpy(ref.shape, DIMS(200, 400), 2 * sizeof *ref.shape);
	memcpy(ref.stride, DIMS(1, 200), 2 * sizeof *ref.stride);
	struct acc_pay *p = acc_pay_open(r, ACC_STR(""), &ref, &e);
	float one[3];
	const void *at;
	ok(p != NULL && acc_pay_read(p, 400, 3, one, &at, &e) == 0 && one[0] == x[0][1] &&
			one[1] == x[0][101] && one[2] == x[0][201],
		"a view of parts: %s", e.msg);
	ok(acc_pay_peek_each(p, (const uint64_t[]){400, 79999}, 2, one, &e) == 0 &&
			one[0] == x[0][1] && one[1] == x[1][39999],
		"and a look at two of its elements");
	acc_pay_close(p);
}

static void
refused(void)
{
	const struct {
		const char *what;
		const int64_t *rows;
		uint32_t n;
	} v[] = {
		{"a band without its pieces", ROWS(1, 1)},
		{"half a band", ROWS(1)},
		{"a piece cut short", ROWS(1, 1, 0, 0, 1)},
		{"no rows", ROWS(0, 1, 0, 0, 1, 0)},
		{"no pieces", ROWS(1, 0)},
		{"pieces without end", ROWS(1, INT64_MAX, 0, 0, 1, 0)},
		{"a part that is not there", ROWS(1, 1, 2, 0, 1, 0)},
		{"a part before the first", ROWS(1, 1, -1, 0, 1, 0)},
		{"beyond the part", ROWS(1, 1, 0, EACH, 1, 0)},
		{"a last row beyond it", ROWS(EACH, 1, 0, 0, 2, 1)},
		{"rows that wrap", ROWS(INT64_MAX, 1, 0, 0, 1, INT64_MAX)},
		{"more elements than can be counted", ROWS(INT64_MAX, 2, 0, 0, 2, 0, 0, 0, 2, 0)},
		{"an empty piece", ROWS(1, 1, 0, 0, 0, 0)},
		{"a way back", ROWS(2, 1, 0, 9, 1, -1)},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct acc_err e = {0};
		struct acc_parts p = {2, v[i].n, src, file, off, len, crc, fsize, mtime, v[i].rows};
		uint64_t n;
		ok(acc_parts_count(&p, 4, &n, &e) == ACC_EFORMAT, "%s: %s", v[i].what, e.msg);
	}
	/* Through a record. */
	struct acc_rec rec = {0};
	struct acc_ref ref = refer(2, ROWS(400, 2, 0, 0, 100, 100, 1, 0, 100, 100), 2,
			       DIMS(400, 200)),
		       got;
	struct acc_err e = {0};
	acc_rec_start(&rec, ACC_STR("tensor"));
	ok(acc_ref_put(&rec, &ref) == 0 && acc_ref_get(&rec, "", &got, &e) == 1 &&
			acc_parts_eq(&ref.parts, &got.parts) && got.len == ref.len,
		"there and back: %s", e.msg);
	acc_put(&rec, "", "shape", acc_ints(DIMS(401, 200), 2));
	ok(acc_ref_get(&rec, "", &got, &e) == ACC_EFORMAT, "a shape beyond its parts: %s", e.msg);
	acc_put(&rec, "", "shape", acc_ints(DIMS(400, 200), 2));
	static const char *const lists[] = {"part.off", "part.len", "part.fsize", "part.mtime",
		"part.crc32"};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct acc_rec other = {0};
		acc_rec_copy(&other, &rec);
		acc_put(&other, "", lists[i], acc_ints(DIMS(1, 2, 3), 3));
		e = (struct acc_err){0};
		ok(acc_ref_get(&other, "", &got, &e) == ACC_EFORMAT &&
				strstr(e.msg, lists[i]) != NULL,
			"three %s of two parts: %s", lists[i], e.msg);
		acc_rec_release(&other);
	}
	ref = refer(1, ROWS(INT64_C(1) << 34, 1, 0, 0, 1, 0), 1, DIMS(INT64_C(1) << 34));
	e = (struct acc_err){0};
	ok(acc_ref_check(&ref, &e) == ACC_ELIMIT, "one value again and again: %s", e.msg);
	acc_ref_forget(&rec);
	ok(!acc_ref_is(&rec) && acc_ref_get(&rec, "", &got, &e) == 0, "forgotten");
	acc_rec_release(&rec);
}

/* The whole in this order of chunks, then its checksums. */
static int
sums(struct acc_roots *r, const struct acc_ref *ref, const int *order, int n, struct acc_err *e)
{
	static float got[ACC_CHUNK];
	struct acc_pay *p = acc_pay_open(r, ACC_STR(""), ref, e);
	int rc = p == NULL ? -1 : 0;
	for (int i = 0; i < n && rc == 0; i++) {
		const uint64_t at = (uint64_t)order[i] * 1000, left = acc_pay_count(p) - at;
		rc = acc_pay_fetch(p, at, left < 1000 ? (size_t)left : 1000, got, e);
	}
	rc = rc < 0 ? rc : acc_pay_sums(p, e);
	acc_pay_close(p);
	return rc;
}

static void
damaged(struct acc_roots *r)
{
	struct acc_ref ref = refer(2, ROWS(400, 2, 0, 0, 100, 100, 1, 0, 100, 100), 2,
		DIMS(400, 200));
	int up[80], down[80], apart[80];
	struct acc_err e = {0};
	for (int i = 0; i < 80; i++) {
		up[i] = i;
		down[i] = 79 - i;
		apart[i] = i % 2 == 0 ? i / 2 : 40 + i / 2;
	}
	ok(sums(r, &ref, up, 80, &e) == 0 && sums(r, &ref, down, 80, &e) == 0 &&
			sums(r, &ref, apart, 80, &e) == 0,
		"checksums that are right: %s", e.msg);
	crc[1] ^= 1;
	int *const order[] = {up, down, apart};
	for (int i = 0; i < 3; i++) {
		e = (struct acc_err){0};
		ok(sums(r, &ref, order[i], 80, &e) == ACC_EFORMAT && strcmp(e.where, "part1") == 0,
			"one that is not, in any order: %s: %s", e.where, e.msg);
	}
	e = (struct acc_err){0};
	ok(sums(r, &ref, up, 79, &e) == 0, "of half a part nothing is known");
	crc[1] = -1;
	ok(sums(r, &ref, up, 80, &e) == 0, "nor of one without");
	fsize[1]++;
	ok(sums(r, &ref, up, 80, &e) < 0 && strstr(e.msg, "changed since") != NULL,
		"a part of another size: %s", e.msg);
	fsize[1]--;
	file[1] = ACC_STR("none");
	e = (struct acc_err){0};
	ok(sums(r, &ref, up, 80, &e) < 0 && strcmp(e.where, "none") == 0,
		"a part that is missing: %s: %s", e.where, e.msg);
	file[1] = acc_str(names[1]);
	/* What is not a whole dtype long is not checked. */
	len[0] -= 2;
	ok(acc_parts_count(&ref.parts, 4, &(uint64_t){0}, &e) == ACC_EFORMAT,
		"a part that is too short");
	len[0] += 2;
}

int
main(void)
{
	if (mkdtemp(dir) == NULL)
		return 2;
	for (int i = 0; i < FILES; i++) {
		for (int k = 0; k < EACH; k++)
			x[i][k] = (float)(i * EACH + k);
		write_part(i);
	}
	struct acc_roots *r = roots();
	shapes(r);
	refused();
	damaged(r);
	acc_roots_close(r);
	char cmd[64];
	snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
	return system(cmd) != 0 ? 2 : done();
}
