/* Arrays that may be larger than memory has room for. */
#include "acc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Up to here an array is one of malloc. */
enum { SPILL_LIMIT = 4 << 20 };

/* Blocks are reserved before they are mapped: a full disk is an error here, not a signal later. */
static int
extend(int fd, size_t size, struct acc_err *e)
{
	if (size > INT64_MAX / 2)
		return acc_nomem(e);
	int rc = posix_fallocate(fd, 0, (off_t)size);
	if (rc == 0)
		return 0;
	errno = rc;
	return acc_fail(e, ACC_EIO, "cannot reserve %zu bytes for temporary data:", size);
}

static bool
in_file(const struct acc_spill *s)
{
	return s->mapped && s->fd >= 0;
}

static void
let_go(struct acc_spill *s)
{
	if (s->mapped)
		munmap(s->p, s->size);
	else
		free(s->p);
	if (in_file(s))
		close(s->fd);
}

/* Memory that begins where a large page does, or MAP_FAILED. */
static void *
large(size_t size)
{
	enum { PAGE = 2 << 20 };
	char *p = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	if (p == MAP_FAILED)
		return p;
	const size_t before = (size_t)(-(uintptr_t)p % PAGE);
	if (before > 0)
		munmap(p, before);
	if (before < PAGE)
		munmap(p + before + size, PAGE - before);
	acc_large_pages(p + before, size);
	return p + before;
}

/* The file, and where it is mapped; or < 0. */
static int
in_new_file(const struct acc_spill *s, size_t size, void **p, struct acc_err *e)
{
	int fd = acc_file_temp(s->dir, e);
	int rc = fd < 0 ? fd : extend(fd, size, e);
	if (rc == 0) {
		*p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (*p != MAP_FAILED)
			return fd;
		rc = acc_fail(e, ACC_EIO, "cannot map a temporary file in %.150s:", s->dir);
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

static int
move(struct acc_spill *s, size_t size, bool file, struct acc_err *e)
{
	void *p = file ? MAP_FAILED : large(size);
	const int fd = file ? in_new_file(s, size, &p, e) : -1;
	if (file && fd < 0)
		return fd;
	if (p == MAP_FAILED)
		return acc_nomem(e);
	/* What is in the file already leaves memory while the rest is copied. */
	const size_t all = s->size < size ? s->size : size;
	for (size_t i = 0, n; i < all; i += n) {
		n = all - i < SPILL_LIMIT ? all - i : SPILL_LIMIT;
		memcpy((char *)p + i, (char *)s->p + i, n);
		if (file)
			(void)madvise((char *)p + i, n, MADV_DONTNEED);
	}
	let_go(s);
	*s = (struct acc_spill){.dir = s->dir,
		.p = p,
		.size = size,
		.fd = fd,
		.mapped = true,
		.keep = s->keep};
	return 0;
}

static int
remap(struct acc_spill *s, size_t size, struct acc_err *e)
{
	int rc = extend(s->fd, size, e);
	if (rc < 0)
		return rc;
	void *p = mremap(s->p, s->size, size, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		return acc_nomem(e);
	s->p = p;
	s->size = size;
	acc_spill_rest(s);
	return 0;
}

void *
acc_spill_room(struct acc_spill *s, size_t n, size_t size, struct acc_err *e)
{
	if (n > SIZE_MAX / 4 / size) {
		acc_nomem(e);
		return NULL;
	}
	size_t want = n * size;
	if (want <= s->size) {
		if (in_file(s) && want > s->rested + SPILL_LIMIT) {
			acc_spill_rest(s);
			s->rested = want;
		}
		return s->p;
	}
	if (want <= SPILL_LIMIT) {
		size_t cap = s->size;
		void *p = acc_grow(s->p, &cap, want, 1, e);
		if (p == NULL)
			return NULL;
		s->p = p;
		s->size = cap;
		return p;
	}
	const bool memory = want <= s->keep && !in_file(s);
	want = memory ? s->keep : want + want / 2; /* of memory what is not touched costs nothing */
	return (in_file(s) ? remap(s, want, e) : move(s, want, !memory, e)) < 0 ? NULL : s->p;
}

int
acc_spill_settle(struct acc_spill *s, struct acc_err *e)
{
	s->keep = 0;
	return s->size <= SPILL_LIMIT || in_file(s) ? 0 : move(s, s->size, true, e);
}

void
acc_spill_rest(const struct acc_spill *s)
{
	/* Of a file that others may map, this drops no data. Where it fails, all stays in memory. */
	if (in_file(s))
		(void)madvise(s->p, s->size, MADV_DONTNEED);
}

void
acc_spill_release(struct acc_spill *s)
{
	let_go(s);
	*s = (struct acc_spill){.dir = s->dir, .keep = s->keep};
}
