/* Arrays that may be larger than memory has room for. */
#include "acc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Up to here an array stays in memory. */
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

/* Out of memory into a file. */
static int
move(struct acc_spill *s, size_t size, struct acc_err *e)
{
	int fd = acc_file_temp(s->dir, e);
	if (fd < 0)
		return fd;
	void *p = MAP_FAILED;
	int rc = extend(fd, size, e);
	if (rc == 0) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			rc = acc_fail(e, ACC_EIO, "cannot map a temporary file in %.150s:", s->dir);
	}
	if (rc < 0) {
		close(fd);
		return rc;
	}
	memcpy(p, s->p, s->size);
	free(s->p);
	*s = (struct acc_spill){.dir = s->dir, .p = p, .size = size, .fd = fd, .mapped = true};
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
		if (s->mapped && want > s->rested + SPILL_LIMIT) {
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
	want += want / 2;
	return (s->mapped ? remap(s, want, e) : move(s, want, e)) < 0 ? NULL : s->p;
}

void
acc_spill_rest(const struct acc_spill *s)
{
	/* Of a file that others may map, this drops no data. Where it fails, all stays in memory. */
	if (s->mapped)
		(void)madvise(s->p, s->size, MADV_DONTNEED);
}

void
acc_spill_release(struct acc_spill *s)
{
	if (s->mapped) {
		munmap(s->p, s->size);
		close(s->fd);
	} else {
		free(s->p);
	}
	*s = (struct acc_spill){.dir = s->dir};
}
