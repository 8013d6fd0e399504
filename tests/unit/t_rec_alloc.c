/* A call of libaccrec allocates nothing. */
#include "acc/rec.h"
#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

/* The allocations of this thread alone are counted, where the C library lets a program do it. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(ACC_STATIC)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define OTHERS 1
#endif
#endif
#ifndef OTHERS
#define COUNTS 1
#endif
#endif

static _Thread_local int allocations;

#ifdef COUNTS
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *
malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *grown(void *p, size_t n) __asm__("realloc");

void *
grown(void *p, size_t n)
{
	allocations++;
	return __libc_realloc(p, n);
}
#endif

enum { N = 300, CALLS = 500 };

static struct acc_rec_item
tensor(const char *pos, const float *p, const int64_t *stride, int detail)
{
	static const int64_t shape[] = {N, N};
	return (struct acc_rec_item){.type = ACC_REC_TENSOR,
		.io = "in",
		.pos = pos,
		.dtype = "float32",
		.ndim = 2,
		.shape = shape,
		.stride = stride,
		.data = p,
		.detail = detail};
}

static int
record(struct acc_recording *r, float *x, int times)
{
	static const int64_t turned[] = {1, N}, size[] = {2, 3, 4};
	const char *frame[] = {"File a.py, line 3, in f, \n return g(x)", "File a.py, line 9"};
	struct acc_rec_item item[] = {tensor("0", x, NULL, ACC_REC_FULL),
		tensor("1", x, turned, ACC_REC_FULL), tensor("2", x, NULL, ACC_REC_STATISTICS),
		tensor("3", x, turned, ACC_REC_HASH), tensor("4", x, NULL, ACC_REC_FEW),
		tensor("5", x, NULL, ACC_REC_DESCRIPTION),
		{.type = ACC_REC_FLOAT, .io = "kw", .pos = "alpha", .f = 0.5},
		{.type = ACC_REC_TEXT, .io = "kw", .pos = "mode", .text = "nearest"},
		{.type = ACC_REC_INTS, .io = "in", .pos = "6", .ndim = 3, .shape = size}};
	int rc = 0;
	for (int i = 0; i < times && rc == 0; i++) {
		struct acc_rec_call c = {.op = "Tensor.g",
			.call = i,
			.pass = "forward",
			.scope = "Module.a.A.forward.0"};
		x[i % N] = (float)i; /* other elements each time */
		rc = acc_rec_stack(r, frame, 2, &c.stack);
		rc |= acc_rec_call(r, &c, item, sizeof item / sizeof *item);
		if (i % 100 == 99)
			rc |= acc_rec_step(r, i / 100);
	}
	return rc;
}

int
main(void)
{
	static float x[N * N];
	const struct acc_rec_options opt = {.rank = 0, .queue = 1 << 20};
	char why[200], dir[] = "/tmp/accrecXXXXXX", cmd[100];
	if (mkdtemp(dir) == NULL)
		return 1;
	struct acc_recording *r = acc_rec_open(dir, &opt, why, sizeof why);
	ok(r != NULL, "a recording");
	ok(record(r, x, 1) == 0, "a call");
#ifdef COUNTS
	ok(allocations > 0, "those of a begin are counted");
#endif
	allocations = 0;
	int rc = record(r, x, CALLS);
#ifdef COUNTS
	ok(rc == 0 && allocations == 0, "%d calls of nine arguments allocate nothing (%d)", CALLS,
		allocations);
#else
	ok(rc == 0, "%d calls of nine arguments", CALLS);
#endif
	ok(acc_rec_close(r, NULL, 0) == 0, "closed");
	snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
	ok(system(cmd) == 0, "nothing is left");
	return done();
}
