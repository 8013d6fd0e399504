/* Parts of the work alone, and what it is measured against.
 *
 *	part sum THREADS A B		sum up files of the same names in two folders
 *	part scalar A B			the metrics, in plain scalar C, of .npy files of f32
 *	part kernel DTYPE ISA		GB/s of the kernels, in the cache (ISA: "best" or a name)
 *	part loop			GB/s of the metrics in plain scalar C, in the cache, f32
 *	part isas			the instruction sets that the kernels can use here
 *	part json FILE			MB/s of the JSON reader
 *	part records FILE		millions of records a second, read and written again
 *	part digits			numbers to text, as many times as fast as printing 15, 16 and 17
 *					digits until one reads back as the number
 *	part forget DIR ...		drop the files beneath from the page cache
 *
 * Rates are by CPU time.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/json.h"
#include "acc/kernel.h"
#include "acc/stream.h"

enum { PIECE = 1 << 20, HEADER = 128 };

static void
die(const char *what)
{
	perror(what);
	exit(2);
}

/* Of this process: one thread works here, and others may be at work on the machine. */
static double
cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- pairs of files --- */

static char *pair_path[1 << 16][2];
static size_t npair;

static void
list(const char *a, const char *b)
{
	struct dirent **e;
	int n = scandir(a, &e, NULL, alphasort);
	if (n < 0)
		die(a);
	for (int i = 0; i < n; i++)
		if (e[i]->d_name[0] != '.' && npair < sizeof pair_path / sizeof *pair_path &&
			asprintf(&pair_path[npair][0], "%s/%s", a, e[i]->d_name) > 0 &&
			asprintf(&pair_path[npair][1], "%s/%s", b, e[i]->d_name) > 0)
			npair++;
}

typedef void piece_fn(void *arg, const void *a, const void *b, size_t n);

/* Both files of a pair in step, behind their first `skip` bytes. */
static void
walk(size_t i, off_t skip, char *buf[2], piece_fn *fn, void *arg)
{
	int fd[2];
	for (int s = 0; s < 2; s++)
		if ((fd[s] = open(pair_path[i][s], O_RDONLY)) < 0)
			die(pair_path[i][s]);
	for (off_t at = skip;; at += PIECE) {
		ssize_t n = pread(fd[0], buf[0], PIECE, at), m = pread(fd[1], buf[1], PIECE, at);
		if (n <= 0 || n != m)
			break;
		fn(arg, buf[0], buf[1], (size_t)n);
	}
	close(fd[0]);
	close(fd[1]);
}

static void
buffers(char *buf[2])
{
	for (int s = 0; s < 2; s++)
		if ((buf[s] = aligned_alloc(4096, PIECE)) == NULL)
			die("aligned_alloc");
}

/* --- sum --- */

static atomic_size_t next_pair;

static void
add_words(void *arg, const void *a, const void *b, size_t n)
{
	const uint64_t *x = a, *y = b;
	uint64_t s[8] = {0};
	for (size_t i = 0; i + 8 <= n / 8; i += 8)
		for (size_t k = 0; k < 8; k++)
			s[k] += x[i + k] + y[i + k];
	for (size_t k = 0; k < 8; k++)
		*(uint64_t *)arg += s[k];
}

static void *
summer(void *arg)
{
	char *buf[2];
	uint64_t sum = 0;
	buffers(buf);
	for (size_t i; (i = next_pair++) < npair;)
		walk(i, 0, buf, add_words, &sum);
	*(uint64_t *)arg = sum;
	return NULL;
}

static void
sum(int threads)
{
	pthread_t t[16];
	uint64_t part[16] = {0}, all = 0;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, summer, &part[i]) != 0)
			die("pthread_create");
	for (int i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		all += part[i];
	}
	printf("%llx\n", (unsigned long long)all);
}

/* --- the same metrics in plain scalar C --- */

struct one {
	uint64_t n, nan, posinf, neginf, zero, sat;
	double min, max, sum, sumsq;
};

struct naive {
	struct one a, b;
	uint64_t used, same, kinds, lt_1e3, lt_5e3, outside, b_zero, ulp_max, ulp[65];
	double dot, aa, bb, absd, dd, max_absd, rel, max_rel, ee, max_e;
	uint64_t max_absd_at, max_rel_at, max_e_at, at;
};

static void
count_one(struct one *o, float v)
{
	o->n++;
	if (isnan(v)) {
		o->nan++;
		return;
	}
	if (isinf(v)) {
		o->posinf += v > 0;
		o->neginf += v < 0;
		return;
	}
	o->zero += v == 0;
	o->sat += fabsf(v) == 0x1.fffffep127f;
	o->min = v < o->min ? v : o->min;
	o->max = v > o->max ? v : o->max;
	o->sum += v;
	o->sumsq += (double)v * v;
}

static int64_t
ordinal(float v)
{
	int32_t i;
	memcpy(&i, &v, sizeof i);
	return i < 0 ? INT64_C(-0x80000000) - i : i;
}

static void
count_two(struct naive *s, float x, float y)
{
	uint32_t i, j;
	memcpy(&i, &x, sizeof i);
	memcpy(&j, &y, sizeof j);
	s->same += i == j;
	if (!isfinite(x) || !isfinite(y)) {
		bool alike = (isnan(x) && isnan(y)) || x == y;
		s->kinds += !alike;
		s->outside += !alike;
		return;
	}
	double d = fabs((double)x - y), q = fabs((double)y);
	s->used++;
	s->dot += (double)x * y;
	s->aa += (double)x * x;
	s->bb += (double)y * y;
	s->absd += d;
	s->dd += d * d;
	if (d > s->max_absd) {
		s->max_absd = d;
		s->max_absd_at = s->at;
	}
	s->outside += !(d <= 1e-5 + 1.3e-6 * q);
	double e = d / (q + 0.5);
	s->ee += e * e;
	if (e > s->max_e) {
		s->max_e = e;
		s->max_e_at = s->at;
	}
	uint64_t u = (uint64_t)llabs(ordinal(x) - ordinal(y));
	s->ulp[u == 0 ? 0 : 64 - __builtin_clzll(u)]++;
	s->ulp_max = u > s->ulp_max ? u : s->ulp_max;
	if (y == 0) {
		s->b_zero += x != 0;
		s->lt_1e3 += d == 0;
		s->lt_5e3 += d == 0;
		return;
	}
	double r = d / q;
	s->rel += r;
	if (r > s->max_rel) {
		s->max_rel = r;
		s->max_rel_at = s->at;
	}
	s->lt_1e3 += r < 0.001;
	s->lt_5e3 += r < 0.005;
}

static void
count_piece(void *arg, const void *a, const void *b, size_t n)
{
	struct naive *s = arg;
	const float *x = a, *y = b;
	for (size_t i = 0; i < n / sizeof *x; i++, s->at++) {
		count_one(&s->a, x[i]);
		count_one(&s->b, y[i]);
		count_two(s, x[i], y[i]);
	}
}

static void
scalar(void)
{
	char *buf[2];
	buffers(buf);
	for (size_t i = 0; i < npair; i++) {
		struct naive s = {.a = {.min = INFINITY, .max = -INFINITY},
			.b = {.min = INFINITY, .max = -INFINITY}};
		walk(i, HEADER, buf, count_piece, &s);
		printf("%.9g %.9g %llu\n", s.dd, s.rel, (unsigned long long)s.ulp_max);
	}
}

/* --- in the cache --- */

/* The 8-bit float next to x. */
static uint8_t
nearest(enum acc_dtype t, double x)
{
	uint8_t best = 0;
	double least = INFINITY;
	for (int c = 0; c < 256; c++) {
		const uint8_t code = (uint8_t)c;
		const double off = fabs(acc_load_f64(t, &code) - x);
		if (off < least) {
			least = off;
			best = code;
		}
	}
	return best;
}

/* Two chunks as a trained model's tensors look: normal, the two sides alike but for noise. */
static void
fill(enum acc_dtype t, uint8_t *a, uint8_t *b)
{
	uint64_t s = 88172645463325252u;
	for (size_t i = 0; i < ACC_CHUNK; i++) {
		double v[2], z = 0;
		for (int k = 0; k < 5; k++) {
			s ^= s << 13, s ^= s >> 7, s ^= s << 17;
			double u = (double)(s >> 11) * 0x1p-53 - 0.5;
			z += k < 4 ? u * 1.732 : 0;
			v[1] = z;
			v[0] = z * (1 + 1e-3 * u);
		}
		for (int k = 0; k < 2; k++) {
			uint8_t *to = (k == 0 ? a : b) + i * acc_dtype_of(t)->size;
			float f = (float)v[k];
			uint32_t w;
			int64_t whole = (int64_t)(v[k] * 1e6);
			memcpy(&w, &f, sizeof w);
			if (t == ACC_F64)
				memcpy(to, &v[k], 8);
			else if (t == ACC_F32)
				memcpy(to, &f, 4);
			else if (t == ACC_BF16)
				memcpy(to, (char *)&w + 2, 2);
			else if (t == ACC_F16) {
				uint16_t h = (uint16_t)((w >> 16 & 0x8000) |
							((w & 0x7fffffff) < 113u << 23
									? 0
									: ((w & 0x7fffffff) -
										  (112u << 23)) >>
										  13));
				memcpy(to, &h, 2);
			} else if (acc_dtype_of(t)->cls == 'F') {
				to[0] = nearest(t, v[k]);
			} else { /* integers, little-endian */
				memcpy(to, &whole, acc_dtype_of(t)->size);
				if (t == ACC_BOOL)
					to[0] &= 1;
			}
		}
	}
}

static double
rate(piece_fn *fn, void *arg, const void *a, const void *b, size_t n)
{
	double begin = cpu_seconds(), s;
	uint64_t done = 0;
	do {
		for (int i = 0; i < 20; i++, done += 2 * n)
			fn(arg, a, b, n);
		s = cpu_seconds() - begin;
	} while (s < 0.5);
	return (double)done / s * 1e-9;
}

struct in_cache {
	enum acc_dtype t;
	struct acc_kernel_opt opt;
	struct acc_one a, b;
	struct acc_two two;
};

static void
measure(void *arg, const void *a, const void *b, size_t n)
{
	struct in_cache *c = arg;
	acc_kernel_two(c->t, a, c->t, b, n / acc_dtype_of(c->t)->size, 0, &c->opt, &c->a, &c->b,
		&c->two);
}

static int
kernel(const char *dtype, const char *isa)
{
	struct in_cache c = {.t = acc_dtype_find(acc_str(dtype)),
		.opt = {.rtol = 1.3e-6, .atol = 1e-5, .scale = 0.5}};
	if (c.t == ACC_NODTYPE || (strcmp(isa, "best") != 0 && acc_kernel_force(isa, NULL) < 0))
		return 2;
	size_t n = ACC_CHUNK * acc_dtype_of(c.t)->size;
	uint8_t *a = aligned_alloc(4096, n), *b = aligned_alloc(4096, n);
	if (a == NULL || b == NULL)
		die("aligned_alloc");
	fill(c.t, a, b);
	printf("%.3f\n", rate(measure, &c, a, b, n));
	return 0;
}

static void
loop(void)
{
	static struct naive s;
	size_t n = ACC_CHUNK * sizeof(float);
	uint8_t *a = aligned_alloc(4096, n), *b = aligned_alloc(4096, n);
	if (a == NULL || b == NULL)
		die("aligned_alloc");
	fill(ACC_F32, a, b);
	printf("%.3f\n", rate(count_piece, &s, a, b, n));
}

/* --- records and JSON --- */

static int
json(const char *path)
{
	struct acc_err e = {0};
	struct acc_json_tok t;
	int fd = open(path, O_RDONLY), rc = -1;
	double begin = cpu_seconds();
	struct acc_bytes *b = fd < 0 ? NULL : acc_bytes_open(fd, path, true, &e);
	struct acc_json *j = b == NULL ? NULL : acc_json_open(b, false, &e);
	while (j != NULL && (rc = acc_json_next(j, &t, &e)) > 0)
		;
	if (rc < 0)
		die(path);
	printf("%.1f\n", (double)acc_bytes_pos(b) / (cpu_seconds() - begin) * 1e-6);
	return 0;
}

static int
records(const char *path)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	uint64_t n = 0;
	int rc = -1, out = open("/dev/null", O_WRONLY);
	double begin = cpu_seconds();
	struct acc_rd *rd = acc_rd_open(path, &e);
	struct acc_wr *wr = acc_wr_open(out, NULL, 0, "part", &e);
	while (rd != NULL && wr != NULL && (rc = acc_rd_next(rd, &r, &e)) > 0)
		n += acc_wr_put(wr, r, &e) == 0;
	if (rc < 0)
		die(path);
	printf("%.3f\n", (double)n / (cpu_seconds() - begin) * 1e-6);
	return 0;
}

/* --- numbers to text --- */

static void
digits(void)
{
	enum { N = 1 << 20 };
	uint64_t x = 88172645463325252, length = 0;
	double seconds[2], sum = 0;
	char text[40];
	for (int way = 0; way < 2; way++) {
		const double begin = cpu_seconds();
		for (int i = 0; i < N; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			const double v = (double)x * 0x1p-64;
			if (way == 0) {
				double back = 0;
				for (int k = 15; k <= 17 && back != v; k++) {
					snprintf(text, sizeof text, "%.*g", k, v);
					back = strtod(text, NULL);
				}
				sum += back;
			} else {
				length += (uint64_t)acc_f64_repr(v, text, sizeof text);
			}
		}
		seconds[way] = cpu_seconds() - begin;
	}
	if (sum < N / 3.0 || length < 10 * (uint64_t)N)
		die("digits");
	printf("%.1f\n", seconds[0] / seconds[1]);
}

/* --- the page cache --- */

static int
forget(const char *path, const struct stat *st, int type, struct FTW *unused)
{
	(void)st, (void)unused;
	int fd = type == FTW_F ? open(path, O_RDONLY) : -1;
	if (fd < 0)
		return 0;
	/* Only what is on the disk already can be dropped. */
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (strcmp(what, "sum") == 0 && argc == 5) {
		int n = atoi(argv[2]);
		list(argv[3], argv[4]);
		sum(n < 1 ? 1 : n > 16 ? 16 : n);
	} else if (strcmp(what, "scalar") == 0 && argc == 4) {
		list(argv[2], argv[3]);
		scalar();
	} else if (strcmp(what, "kernel") == 0 && argc == 4) {
		return kernel(argv[2], argv[3]);
	} else if (strcmp(what, "loop") == 0) {
		loop();
	} else if (strcmp(what, "isas") == 0) {
		const char *name[ACC_KERNEL_ROWS];
		size_t n = acc_kernel_isas(name);
		for (size_t i = 0; i < n; i++)
			puts(name[i]);
	} else if (strcmp(what, "json") == 0 && argc == 3) {
		return json(argv[2]);
	} else if (strcmp(what, "records") == 0 && argc == 3) {
		return records(argv[2]);
	} else if (strcmp(what, "digits") == 0) {
		digits();
	} else if (strcmp(what, "forget") == 0) {
		for (int i = 2; i < argc; i++)
			nftw(argv[i], forget, 16, FTW_PHYS);
	} else {
		fputs("usage: see the head of tests/bench/part.c\n", stderr);
		return 2;
	}
	return 0;
}
