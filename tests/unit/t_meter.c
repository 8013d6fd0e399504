/* Measuring with threads: the same bits for any number of them, results in order, and what is
 * wrong with a side is said of that side. */
#include "acc/file.h"
#include "acc/payload.h"
#include "io/crc.h"
#include "tap.h"

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static char dir[] = "/tmp/t_meter.XXXXXX";
static struct acc_roots *roots;

static uint64_t
mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

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

static struct acc_ref
refer(const char *name, enum acc_dtype t, int64_t n)
{
	struct acc_ref r = {.dtype = t, .ndim = 1, .shape = {n}, .file = acc_str(name)};
	char path[100];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (stat(path, &st) == 0) {
		r.fsize = r.len = (uint64_t)st.st_size;
		r.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	}
	return r;
}

static struct acc_operand
side(const struct acc_ref *ref)
{
	return (struct acc_operand){.src = ACC_STR("s"), .ref = ref};
}

static struct acc_reading
measure(const struct acc_ref *a, const struct acc_ref *b, const struct acc_pool_opt *opt)
{
	static struct acc_reading out;
	struct acc_pool *m = acc_pool_open(roots, opt, NULL);
	acc_pool_add(m, NULL, side(a), side(b), 0, NULL);
	acc_pool_take(m, true, &out);
	acc_pool_close(m);
	return out;
}

enum { N = 300000, FILES = 8 };
static float *x, *y;

static void
make(void)
{
	x = malloc(N * sizeof *x);
	y = malloc(N * sizeof *y);
	for (size_t i = 0; i < N; i++) {
		y[i] = (float)((double)(int64_t)mix(i) * 0x1p-63);
		x[i] = y[i] * (1 + (float)((double)(int64_t)mix(i + N) * 0x1p-83));
	}
	x[70000] = INFINITY;
	y[200001] = NAN;
	put("a.bin", x, N * sizeof *x);
	put("b.bin", y, N * sizeof *y);
}

static void
one_pair(void)
{
	struct acc_ref a = refer("a.bin", ACC_F32, N), b = refer("b.bin", ACC_F32, N);
	struct acc_reading r = measure(&a, &b,
		&(struct acc_pool_opt){.threads = 1, .rtol = -1, .atol = -1});
	struct acc_one oa, ob, one;
	struct acc_two two, part;
	struct acc_kernel_opt opt = {.rtol = r.rtol, .atol = r.atol, .scale = r.scale};
	uint64_t chunk[(N + ACC_CHUNK - 1) / ACC_CHUNK];
	acc_one_init(&oa);
	acc_one_init(&ob);
	acc_two_init(&two);
	for (size_t at = 0, k = 0; at < N; at += ACC_CHUNK, k++) {
		size_t n = N - at < ACC_CHUNK ? N - at : ACC_CHUNK;
		struct acc_one other;
		acc_kernel_two(ACC_F32, x + at, ACC_F32, y + at, n, at, &opt, &one, &other, &part);
		acc_one_merge(&oa, &one);
		acc_one_merge(&ob, &other);
		acc_two_merge(&two, &part);
		chunk[k] = XXH3_64bits(x + at, n * sizeof *x);
	}
	ok(r.has_a && r.has_b && r.has_two, "a pair has all three results");
	ok(memcmp(&oa, &r.a, sizeof oa) == 0 && memcmp(&ob, &r.b, sizeof ob) == 0 &&
			memcmp(&two, &r.two, sizeof two) == 0,
		"they are the kernel's, chunk by chunk");
	ok(r.hash_a == XXH3_64bits(chunk, sizeof chunk),
		"the content hash is of the chunks' hashes");
	ok(r.rtol == 1.3e-6 && r.atol == 1e-5, "torch's tolerances for f32");
	/* The places, as accstream(5) defines them: 300000 div 32 = 9375. */
	bool same = true;
	for (uint32_t i = 0; i < ACC_NFEW; i++) {
		uint32_t at = i * 9375 + (i * 2654435761u) % 9375;
		same &= memcmp(&r.few_a[i], &x[at], sizeof *x) == 0 &&
			memcmp(&r.few_b[i], &y[at], sizeof *y) == 0;
	}
	ok(same && acc_few_at(ACC_NFEW, 31) == 31, "a few elements are those of their places");
	static const struct {
		enum acc_dtype a, b;
		double rtol, atol;
	} tol[] = {{ACC_F32, ACC_BF16, 1.6e-2, 1e-5}, {ACC_F16, ACC_F32, 1e-3, 1e-5},
		{ACC_C128, ACC_C128, 1e-7, 1e-7}, {ACC_I64, ACC_I64, 0, 0},
		{ACC_I32, ACC_F64, 1e-7, 1e-7}, {ACC_F8E4M3, ACC_F8E4M3, 1.6e-2, 1e-5}};
	for (size_t i = 0; i < sizeof tol / sizeof *tol; i++) {
		struct acc_ref ta = refer("a.bin", tol[i].a, 100),
			       tb = refer("b.bin", tol[i].b, 100);
		struct acc_reading w = measure(&ta, &tb,
			&(struct acc_pool_opt){.threads = 1, .rtol = -1, .atol = -1});
		ok(w.rtol == tol[i].rtol && w.atol == tol[i].atol,
			"torch's tolerances for %s and %s", acc_dtype_of(tol[i].a)->name,
			acc_dtype_of(tol[i].b)->name);
	}
	/* The sample: 64 runs of 64. y is uniform in (-1, 1). */
	double s[4096];
	size_t k = 0;
	for (size_t i = 0; i < 64; i++)
		for (size_t j = 0; j < 64; j++)
			s[k++] = (double)fabsf(y[(N - 64) * i / 63 + j]);
	size_t below = 0, equal = 0;
	for (size_t i = 0; i < k; i++) {
		below += s[i] < r.scale;
		equal += s[i] == r.scale;
	}
	ok(r.sampled && equal == 1 && below == 2047, "the scale is the sample's lower median");
	r = measure(&a, NULL, &(struct acc_pool_opt){.threads = 1, .rtol = -1, .atol = -1});
	ok(r.has_a && !r.has_b && !r.has_two && memcmp(&oa, &r.a, sizeof oa) == 0, "one tensor");
	struct acc_ref shorter = refer("b.bin", ACC_F32, N - 1);
	r = measure(&a, &shorter,
		&(struct acc_pool_opt){.threads = 2, .map = true, .rtol = -1, .atol = -1});
	ok(r.has_a && r.has_b && !r.has_two && memcmp(&oa, &r.a, sizeof oa) == 0 && r.b.n == N - 1,
		"sides of different lengths are measured, not compared");
}

/* Many tensors of all lengths, some strided, some missing, some with checksums. */
static uint64_t
many(unsigned threads, bool *in_order)
{
	static struct acc_reading r;
	struct acc_pool *m = acc_pool_open(roots,
		&(struct acc_pool_opt){.threads = threads,
			.map = threads % 2 == 0,
			.rtol = 1e-3,
			.atol = 1e-6},
		NULL);
	uint64_t digest = 0, next = 0, added = 0;
	*in_order = true;
	while (next < 600) {
		uint64_t i = added;
		struct acc_ref a = refer("a.bin", ACC_F32,
			(int64_t)(mix(i) % (i % 40 == 0 ? N : 5000)));
		struct acc_ref b = refer(i % 50 == 7 ? "none.bin" : "b.bin", ACC_F32, a.shape[0]);
		b.len = a.len;
		if (i % 5 == 1) {
			a.ndim = b.ndim = 2;
			a.strided = b.strided = true;
			a.shape[0] = b.shape[0] = 1 + (int64_t)(i % 37);
			a.shape[1] = b.shape[1] = 300;
			a.stride[0] = 1;
			a.stride[1] = b.shape[0];
			b.stride[0] = 301;
			b.stride[1] = 2;
		}
		int rc = added < 600 ? acc_pool_add(m, (void *)(uintptr_t)i, side(&a), side(&b),
					       1e-3, NULL)
				     : 1;
		if (rc == 0) {
			added++;
			continue;
		}
		acc_pool_take(m, true, &r);
		*in_order &= (uintptr_t)r.tag == next++;
		const bool missing = (uintptr_t)r.tag % 50 == 7;
		*in_order &= r.has_a && r.has_b != missing && r.has_two != missing;
		digest = mix(digest ^ XXH3_64bits(&r.a, sizeof r.a) ^ r.hash_a);
		if (r.has_two)
			digest = mix(digest ^ XXH3_64bits(&r.two, sizeof r.two) ^ r.hash_b);
	}
	ok(acc_pool_take(m, true, &r) == 0, "%u threads: no results left", threads);
	acc_pool_close(m);
	return digest;
}

static void
threads(void)
{
	static const unsigned n[] = {1, 2, 3, 4, 8};
	const char *isa[ACC_KERNEL_ROWS];
	size_t rows = acc_kernel_isas(isa);
	uint64_t first = 0;
	for (size_t k = 0; k < rows; k++) {
		acc_kernel_force(isa[k], NULL);
		for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
			bool in_order;
			uint64_t d = many(n[i], &in_order);
			if (i == 0 && k == 0)
				first = d;
			ok(in_order, "%s, %u threads: in order, failures where they belong", isa[k],
				n[i]);
			ok(d == first, "%s, %u threads: the same bits", isa[k], n[i]);
		}
	}
	printf("# digest %016llx\n", (unsigned long long)first);
}

static void
checksums(void)
{
	struct acc_pool_opt opt = {.threads = 2, .map = true, .rtol = -1, .atol = -1};
	struct acc_ref a = refer("a.bin", ACC_F32, N);
	a.has_crc = true;
	a.crc32 = (uint32_t)crc32(0, (const Bytef *)x, N * sizeof *x);
	struct acc_reading r = measure(&a, NULL, &opt);
	ok(r.has_a, "a right checksum, joined over chunks");
	ok(acc_crc32_join(acc_crc32(0, x, 12345), acc_crc32(0, (char *)x + 12345, 54321), 54321) ==
			acc_crc32(0, x, 12345 + 54321),
		"joining");
	int bad = 0;
	for (size_t n = 0; n < 2000; n += 7)
		for (size_t at = 0; at < 3; at++) {
			const Bytef *p = (const Bytef *)x + at;
			bad += acc_crc32((uint32_t)n, p, n) != crc32(n, p, (uInt)n);
		}
	ok(bad == 0, "as zlib's, of any length from any start");
	a.crc32 ^= 0x10;
	r = measure(&a, NULL, &opt);
	ok(!r.has_a && r.err_a.code == ACC_EFORMAT, "a wrong one: %s: %s", r.err_a.where,
		r.err_a.msg);
	opt.no_check = true;
	r = measure(&a, NULL, &opt);
	ok(r.has_a, "a wrong one that is not looked at");
	opt.no_check = false;
	a.shape[0]--;
	r = measure(&a, NULL, &opt);
	ok(r.has_a, "a part of a storage is not checked");
}

/* Stored, deflated, big-endian, transposed: the same numbers give the same results. */
static void
same_content(void)
{
	struct acc_pool_opt opt = {.threads = 2, .map = true, .rtol = -1, .atol = -1};
	struct acc_ref a = refer("a.bin", ACC_F32, N), b = refer("b.bin", ACC_F32, N);
	struct acc_reading want = measure(&a, &b, &opt), got;
	uint8_t *z = malloc(2 * N * sizeof *y);
	z_stream s = {0};
	deflateInit2(&s, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
	s.next_in = (Bytef *)y;
	s.avail_in = N * sizeof *y;
	s.next_out = z;
	s.avail_out = 2 * N * sizeof *y;
	deflate(&s, Z_FINISH);
	put("z.bin", z, s.total_out);
	struct acc_ref bz = refer("z.bin", ACC_F32, N);
	bz.enc = ACC_DEFLATE;
	bz.clen = bz.len;
	bz.len = N * sizeof *y;
	bz.has_crc = true;
	bz.crc32 = (uint32_t)crc32(0, (const Bytef *)y, N * sizeof *y);
	deflateEnd(&s);
	got = measure(&a, &bz, &opt);
	ok(got.has_two && memcmp(&got.two, &want.two, sizeof got.two) == 0 &&
			got.hash_b == want.hash_b && got.scale == want.scale,
		"deflated");
	bz.crc32++;
	got = measure(&a, &bz, &opt);
	ok(got.has_a && !got.has_b && !got.has_two && got.hash_a == want.hash_a,
		"deflated, with a wrong checksum");
	for (size_t i = 0; i < N; i++) {
		uint32_t w;
		memcpy(&w, &y[i], 4);
		w = __builtin_bswap32(w);
		memcpy(z + 4 * i, &w, 4);
	}
	put("be.bin", z, N * 4);
	struct acc_ref be = refer("be.bin", ACC_F32, N);
	be.big_endian = true;
	be.has_crc = true;
	be.crc32 = (uint32_t)crc32(0, z, N * 4);
	got = measure(&a, &be, &opt);
	ok(got.has_two && memcmp(&got.two, &want.two, sizeof got.two) == 0 &&
			got.hash_b == want.hash_b,
		"big-endian, checksum of the stored bytes");
	for (size_t i = 0; i < N; i++)
		memcpy(z + 4 * (i % 600 * 500 + i / 600), &y[i], 4);
	put("t.bin", z, N * 4);
	struct acc_ref t = refer("t.bin", ACC_F32, 500);
	t.ndim = 2;
	t.shape[1] = 600;
	t.strided = true;
	t.stride[0] = 1;
	t.stride[1] = 500;
	got = measure(&a, &t, &opt);
	ok(got.has_two && memcmp(&got.two, &want.two, sizeof got.two) == 0 &&
			got.hash_b == want.hash_b && got.scale == want.scale,
		"transposed");
	free(z);
}

/* A file that shrinks after its record was made is caught at opening; one that shrinks while
 * it is measured gives an error or the old bytes, never a crash. */
static void
shrinking(void)
{
	put("a.bin", x, 1000);
	struct acc_ref a = refer("a.bin", ACC_F32, N);
	a.len = N * sizeof(float); /* as if the check came too early */
	struct acc_reading r = measure(&a, NULL,
		&(struct acc_pool_opt){.threads = 2, .map = true, .rtol = -1, .atol = -1});
	ok(!r.has_a && r.err_a.code == ACC_ETRUNC, "a shorter file: %s: %s", r.err_a.where,
		r.err_a.msg);
	/* Shrinking over and over while it is measured. */
	enum { BIG = 16 << 20 };
	char path[100];
	bool good = true, cut = false;
	char *ones = malloc(BIG);
	memset(ones, 1, BIG);
	snprintf(path, sizeof path, "%s/a.bin", dir);
	for (int i = 0; i < 20 && !(cut && i > 5); i++) {
		put("a.bin", ones, BIG);
		a = refer("a.bin", ACC_F32, BIG / 4);
		struct acc_pool *m = acc_pool_open(roots,
			&(struct acc_pool_opt){.threads = 2, .map = true, .rtol = -1, .atol = -1},
			NULL);
		acc_pool_add(m, NULL, side(&a), side(NULL), 0, NULL);
		usleep((useconds_t)(i * 100));
		good &= truncate(path, 5000) == 0;
		static struct acc_reading out;
		good &= acc_pool_take(m, true, &out) == 1;
		good &= out.has_a ? out.a.zero == 0 && out.a.n == BIG / 4
				  : out.err_a.code == ACC_ETRUNC || out.err_a.code == ACC_EFORMAT;
		cut |= !out.has_a && strstr(out.err_a.msg, "became shorter") != NULL;
		acc_pool_close(m);
	}
	free(ones);
	ok(good, "a file that shrinks while it is measured%s", cut ? ", caught in the act" : "");
}

/* The same bytes are read once, if the record says which file it was. */
static void
again(void)
{
	static const float v[4] = {1, 2, 3, 4}, w[4] = {5, 6, 7, 8};
	struct acc_reading r[5];
	put("again.bin", v, sizeof v);
	const struct acc_ref a = refer("again.bin", ACC_F32, 4), b = refer("b.bin", ACC_F32, N);
	struct acc_ref tail = a, unknown = a;
	tail.shape[0] = 3;
	tail.first = 1;
	unknown.fsize = 0;
	unknown.mtime_ns = 0;
	struct acc_pool *m = acc_pool_open(roots,
		&(struct acc_pool_opt){.threads = 1, .no_check = true, .rtol = -1, .atol = -1},
		NULL);
	int tags[5], n = 0;
	const struct acc_ref *first[2] = {&a, &unknown}, *then[3] = {&a, &tail, &unknown};
	for (int i = 0; i < 2; i++)
		acc_pool_add(m, &tags[i], side(first[i]), side(NULL), 0, NULL);
	while (n < 2 && acc_pool_take(m, true, &r[n]) == 1)
		n++;
	put("again.bin", w, sizeof w);
	for (int i = 0; i < 3; i++)
		acc_pool_add(m, &tags[2 + i], side(then[i]), side(NULL), 0, NULL);
	for (int i = 0; i < 300; i++)
		acc_pool_add(m, NULL, side(&b), side(NULL), 0, NULL);
	while (n < 5 && acc_pool_take(m, true, &r[n]) == 1)
		n++;
	ok(n == 5 && r[2].tag == &tags[2] && r[2].has_a && r[2].a.max == 4 &&
			r[2].hash_a == r[0].hash_a,
		"the same tensor is not read again");
	ok(n == 5 && !r[3].has_a, "another part of it is");
	ok(n == 5 && !r[1].has_a && !r[4].has_a && r[4].err_a.code == ACC_EREFUSED,
		"what may be another file is refused: %s", r[4].err_a.msg);
	acc_pool_close(m);
}

/* What is like an earlier one is not measured: who waits for that is not left waiting for these. */
static void
alike(void)
{
	const struct acc_ref a = refer("a.bin", ACC_F32, 1250);
	static struct acc_reading r;
	int n = 0;
	alarm(120);
	for (int i = 0; i < 200; i++) {
		struct acc_pool *m = acc_pool_open(roots,
			&(struct acc_pool_opt){.threads = 1,
				.no_check = true,
				.rtol = -1,
				.atol = -1},
			NULL);
		for (int j = 0; j < 4; j++)
			acc_pool_add(m, NULL, side(&a), side(NULL), 0, NULL);
		while (acc_pool_take(m, true, &r) == 1)
			n += r.has_a;
		acc_pool_close(m);
	}
	alarm(0);
	ok(n == 800, "a tensor and three like it, 200 times: all are there");
}

static atomic_bool go;

static void
wait_for_go(void *tag)
{
	while (!atomic_load(&go))
		usleep(1000);
	atomic_fetch_add((atomic_int *)tag, 1);
}

/* Work of another kind, between two tensors; waiting for it. */
static void
tasks(void)
{
	struct acc_ref a = refer("a.bin", ACC_F32, 1250);
	static struct acc_reading r[3];
	atomic_int done = 0;
	struct acc_pool *m = acc_pool_open(roots,
		&(struct acc_pool_opt){.threads = 2, .map = true, .rtol = -1, .atol = -1}, NULL);
	ok(acc_pool_wait(m, 60), "there is nothing to wait for");
	acc_pool_add_task(m, wait_for_go, &done, NULL);
	acc_pool_add(m, NULL, side(&a), side(NULL), 0, NULL);
	acc_pool_add_task(m, wait_for_go, &done, NULL);
	ok(!acc_pool_wait(m, 0.01) && acc_pool_take(m, false, &r[0]) == 0 &&
			atomic_load(&done) == 0,
		"what takes long is waited for, but not longer than is said");
	atomic_store(&go, true);
	ok(acc_pool_wait(m, 60) && acc_pool_take(m, false, &r[0]) == 1 && r[0].tag == &done,
		"then it is there");
	ok(acc_pool_take(m, true, &r[1]) == 1 && r[1].tag == NULL && r[1].has_a &&
			acc_pool_take(m, true, &r[2]) == 1 && r[2].tag == &done &&
			atomic_load(&done) == 2 && acc_pool_bytes(m) == 0,
		"all in their order, equal tasks done twice");
	acc_pool_close(m);
}

int
main(void)
{
	char cmd[100];
	if (mkdtemp(dir) == NULL)
		return 2;
	struct acc_rec rec = {0};
	roots = acc_roots_open(NULL);
	acc_rec_start(&rec, ACC_STR("source"));
	acc_put(&rec, "", "id", acc_ctext("s"));
	acc_put(&rec, "", "root", acc_ctext(dir));
	acc_roots_add(roots, &rec, NULL);
	acc_rec_release(&rec);
	make();
	one_pair();
	threads();
	checksums();
	same_content();
	again();
	shrinking();
	alike();
	tasks();
	acc_roots_close(roots);
	free(x);
	free(y);
	snprintf(cmd, sizeof cmd, "rm -r %s", dir);
	if (system(cmd) != 0)
		return 2;
	return done();
}
