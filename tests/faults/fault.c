/* Preloaded into a program under test: the n-th call of a kind fails, or does less than asked.
 *
 *	FAULT_PROG=accfmt     only in the program of this name; others run as ever
 *	FAULT=KIND:N:HOW      in each process the N-th call of KIND fails with errno HOW, a number;
 *	                      "short": it reads or writes half of what it was asked for
 *	FAULT_TRACE=1         and say on stderr where that was, for addr2line -e PROG -fip
 *	FAULT_COUNTS=FILE     instead: append "KIND CALLS" at exit, for each kind
 *	FAULT_ORDER=N         of any program: a folder's entries come in another order, for each N
 *
 * What the C library calls within itself is not seen, but for memory. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { MEMORY, READ, WRITE, MAP, OPEN, STAT, CLOSE, LIST, SPLICE, THREAD, NKIND };
enum { SHORT = -1 };

static const char *const names[NKIND] = {"memory", "read", "write", "map", "open", "stat", "close",
	"list", "splice", "thread"};
static atomic_long count[NKIND];
static int on, kind = NKIND, how;
static long at;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static void
report(void)
{
	const char *file = getenv("FAULT_COUNTS");
	char line[64];
	on = 0;
	int fd = file == NULL ? -1
			      : (int)syscall(SYS_openat, AT_FDCWD, file,
					O_WRONLY | O_CREAT | O_APPEND, 0600);
	for (int k = 0; fd >= 0 && k < NKIND; k++) {
		int n = snprintf(line, sizeof line, "%s %ld\n", names[k], atomic_load(&count[k]));
		if (syscall(SYS_write, fd, line, n) != n)
			abort();
	}
}

__attribute__((constructor)) static void
start(void)
{
	const char *prog = getenv("FAULT_PROG"), *what = getenv("FAULT");
	char word[16];
	if (prog == NULL || strcmp(prog, program_invocation_short_name) != 0)
		return;
	if (getenv("FAULT_COUNTS") != NULL) {
		atexit(report);
		on = 1;
	} else if (what != NULL) {
		char text[16];
		if (sscanf(what, "%15[a-z]:%ld:%15s", word, &at, text) != 3)
			abort();
		for (kind = 0; kind < NKIND && strcmp(names[kind], word) != 0;)
			kind++;
		how = strcmp(text, "short") == 0 ? SHORT : atoi(text);
		on = 1;
	}
}

/* Is it the turn of this call? Then errno is set; SHORT: do less. */
static int
turn(enum kind k)
{
	if (!on)
		return 0;
	long n = atomic_fetch_add(&count[k], 1) + 1;
	if ((int)k != kind || n != at)
		return 0;
	if (getenv("FAULT_TRACE") != NULL) {
		void *frame[32];
		on = 0;
		backtrace_symbols_fd(frame, backtrace(frame, 32), 2);
	}
	if (how > 0)
		errno = how;
	return how;
}

/* The function that this one stands before. */
#define NEXT(f) \
	static __typeof__(f) *next; \
	if (next == NULL) \
	*(void **)&next = dlsym(RTLD_NEXT, #f)

#define FAIL(k, v) \
	if (turn(k) > 0) \
	return (v)

/* Half, but not nothing. */
static size_t
less(size_t n)
{
	return n < 2 ? n : n / 2;
}

void *
malloc(size_t n)
{
	FAIL(MEMORY, NULL);
	return __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	FAIL(MEMORY, NULL);
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
	FAIL(MEMORY, NULL);
	return __libc_realloc(p, n);
}

void *
aligned_alloc(size_t align, size_t n)
{
	FAIL(MEMORY, NULL);
	return __libc_memalign(align, n);
}

/* The library's own calls of malloc by strdup are seen, as it is not built in. */

ssize_t
read(int fd, void *p, size_t n)
{
	NEXT(read);
	int t = turn(READ);
	return t > 0 ? -1 : next(fd, p, t == SHORT ? less(n) : n);
}

ssize_t
pread64(int fd, void *p, size_t n, off_t off)
{
	NEXT(pread64);
	int t = turn(READ);
	return t > 0 ? -1 : next(fd, p, t == SHORT ? less(n) : n, off);
}

ssize_t
pread(int fd, void *p, size_t n, off_t off)
{
	return pread64(fd, p, n, off);
}

ssize_t
write(int fd, const void *p, size_t n)
{
	NEXT(write);
	int t = turn(WRITE);
	return t > 0 ? -1 : next(fd, p, t == SHORT ? less(n) : n);
}

ssize_t
pwrite64(int fd, const void *p, size_t n, off_t off)
{
	NEXT(pwrite64);
	int t = turn(WRITE);
	return t > 0 ? -1 : next(fd, p, t == SHORT ? less(n) : n, off);
}

ssize_t
writev(int fd, const struct iovec *v, int n)
{
	NEXT(writev);
	int t = turn(WRITE);
	return t > 0 ? -1 : next(fd, v, t == SHORT && n > 1 ? n - 1 : n);
}

/* What stdio writes it writes by itself: here a call of fflush stands for it, and its last. */
int
fflush(FILE *f)
{
	NEXT(fflush);
	if (f == stderr)
		return next(f);
	int t = turn(WRITE);
	return t > 0 && how != EINTR ? EOF : next(f);
}

void *
mmap64(void *p, size_t n, int prot, int flags, int fd, off_t off)
{
	NEXT(mmap64);
	FAIL(MAP, MAP_FAILED);
	return next(p, n, prot, flags, fd, off);
}

void *
mmap(void *p, size_t n, int prot, int flags, int fd, off_t off)
{
	return mmap64(p, n, prot, flags, fd, off);
}

#define MODE \
	va_list ap; \
	va_start(ap, flags); \
	mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0; \
	va_end(ap)

int
open64(const char *path, int flags, ...)
{
	NEXT(open64);
	MODE;
	FAIL(OPEN, -1);
	return next(path, flags, mode);
}

int
open(const char *path, int flags, ...)
{
	MODE;
	return open64(path, flags, mode);
}

int
openat64(int dir, const char *path, int flags, ...)
{
	NEXT(openat64);
	MODE;
	FAIL(OPEN, -1);
	return next(dir, path, flags, mode);
}

int
openat(int dir, const char *path, int flags, ...)
{
	MODE;
	return openat64(dir, path, flags, mode);
}

int __openat64_2(int dir, const char *path, int flags);
int
__openat64_2(int dir, const char *path, int flags)
{
	return openat64(dir, path, flags);
}

int __open64_2(const char *path, int flags);
int
__open64_2(const char *path, int flags)
{
	return open64(path, flags);
}

FILE *
fopen64(const char *path, const char *mode)
{
	NEXT(fopen64);
	FAIL(OPEN, NULL);
	return next(path, mode);
}

FILE *
fopen(const char *path, const char *mode)
{
	return fopen64(path, mode);
}

DIR *
fdopendir(int fd)
{
	NEXT(fdopendir);
	FAIL(OPEN, NULL);
	return next(fd);
}

int
mkostemp64(char *path, int flags)
{
	NEXT(mkostemp64);
	FAIL(OPEN, -1);
	return next(path, flags);
}

int
dup(int fd)
{
	NEXT(dup);
	FAIL(OPEN, -1);
	return next(fd);
}

int
pipe2(int fd[2], int flags)
{
	NEXT(pipe2);
	FAIL(OPEN, -1);
	return next(fd, flags);
}

int
fcntl64(int fd, int cmd, ...)
{
	NEXT(fcntl64);
	va_list ap;
	va_start(ap, cmd);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	if (cmd == F_DUPFD_CLOEXEC || cmd == F_DUPFD)
		FAIL(OPEN, -1);
	return next(fd, cmd, arg);
}

/* openat2, which has no function. */
long
syscall(long nr, ...)
{
	NEXT(syscall);
	long a[6];
	va_list ap;
	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_openat2)
		FAIL(OPEN, -1);
	return next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int
stat64(const char *path, struct stat64 *st)
{
	NEXT(stat64);
	FAIL(STAT, -1);
	return next(path, st);
}

int
fstat64(int fd, struct stat64 *st)
{
	NEXT(fstat64);
	FAIL(STAT, -1);
	return next(fd, st);
}

int
fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	NEXT(fstatat64);
	FAIL(STAT, -1);
	return next(dir, path, st, flags);
}

int
faccessat(int dir, const char *path, int mode, int flags)
{
	NEXT(faccessat);
	FAIL(STAT, -1);
	return next(dir, path, mode, flags);
}

char *
realpath(const char *path, char *out)
{
	NEXT(realpath);
	FAIL(STAT, NULL);
	return next(path, out);
}

char *__realpath_chk(const char *path, char *out, size_t n);
char *
__realpath_chk(const char *path, char *out, size_t n)
{
	(void)n;
	return realpath(path, out);
}

int
close(int fd)
{
	NEXT(close);
	int t = turn(CLOSE), err = errno;
	if (t <= 0)
		return next(fd);
	next(fd); /* on Linux it is closed whatever it says */
	errno = err;
	return -1;
}

/* The entries of the folders that are being read, in another order; one is handed out a call. */
enum { LISTED = 16 };
static struct listed {
	DIR *d;
	struct dirent64 *v[4096];
	int n, next;
} listed[LISTED];
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;

static struct listed *
listed_of(DIR *d)
{
	for (int i = 0; i < LISTED; i++)
		if (listed[i].d == d)
			return &listed[i];
	return NULL;
}

static void
shuffle(struct listed *l, unsigned seed)
{
	for (int i = l->n - 1; i > 0; i--) {
		seed = seed * 1664525u + 1013904223u;
		int k = (int)((seed >> 8) % ((unsigned)i + 1));
		struct dirent64 *swap = l->v[i];
		l->v[i] = l->v[k];
		l->v[k] = swap;
	}
}

static struct dirent64 *
reordered(DIR *d, unsigned seed, struct dirent64 *(*next)(DIR *))
{
	pthread_mutex_lock(&listing);
	struct listed *l = listed_of(d);
	if (l == NULL && (l = listed_of(NULL)) != NULL) {
		struct dirent64 *e;
		l->d = d;
		l->n = l->next = 0;
		while ((e = next(d)) != NULL) {
			if (l->n == (int)(sizeof l->v / sizeof *l->v))
				abort();
			l->v[l->n] = __libc_malloc(sizeof *e);
			memcpy(l->v[l->n++], e, e->d_reclen);
		}
		shuffle(l, seed);
	}
	if (l == NULL)
		abort();
	struct dirent64 *e = l->next < l->n ? l->v[l->next++] : NULL;
	pthread_mutex_unlock(&listing);
	return e;
}

int
closedir(DIR *d)
{
	NEXT(closedir);
	pthread_mutex_lock(&listing);
	struct listed *l = listed_of(d);
	if (l != NULL)
		l->d = NULL; /* that its entries stay is no matter, in a test */
	pthread_mutex_unlock(&listing);
	return next(d);
}

struct dirent64 *
readdir64(DIR *d)
{
	NEXT(readdir64);
	const char *order = getenv("FAULT_ORDER");
	FAIL(LIST, NULL);
	return order == NULL ? next(d) : reordered(d, (unsigned)atoi(order), next);
}

struct dirent *
readdir(DIR *d)
{
	return (struct dirent *)(void *)readdir64(d);
}

ssize_t
splice(int in, off64_t *inoff, int out, off64_t *outoff, size_t n, unsigned flags)
{
	NEXT(splice);
	int t = turn(SPLICE);
	return t > 0 ? -1 : next(in, inoff, out, outoff, t == SHORT ? less(n) : n, flags);
}

int
pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	NEXT(pthread_create);
	int t = turn(THREAD);
	return t > 0 ? t : next(id, attr, fn, arg);
}
