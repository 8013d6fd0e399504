#include "acc/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A FIFO in a dump must not hang the open, a terminal must not become ours. */
enum { RDFLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

bool
acc_file_absent(int err)
{
	return err == ENOENT || err == ENOTDIR;
}

int
acc_dir_open(const char *path, struct acc_err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return acc_fail(e, ACC_EIO, "cannot open the folder %.150s:", path);
	return fd;
}

/* What a folder that could not be opened is. 0, or < 0. */
static int
no_folder(bool absent, const char *path, struct acc_err *e)
{
	return absent ? 0 : acc_fail(e, ACC_EIO, "cannot open the folder %.150s:", path);
}

int
acc_dir_try(const char *path, int *fd, struct acc_err *e)
{
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0)
		return 1;
	return no_folder(errno == ENOTDIR, path, e);
}

int
acc_dir_enter(int dirfd, const char *path, int *fd, struct acc_err *e)
{
	*fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd >= 0)
		return 1;
	return no_folder(acc_file_absent(errno) || errno == ELOOP, path, e);
}

int
acc_dir_has(int dirfd, const char *name, struct acc_err *e)
{
	struct stat st;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return acc_file_absent(errno) ? 0 : acc_fail(e, ACC_EIO, "cannot look for %.150s:", name);
}

/* Names may be longer than a message; their end says more. */
static int
refuse(struct acc_err *e, int code, const char *what, const char *path)
{
	int saved = errno;
	size_t n = strlen(path);
	const char *dots = n > 120 ? "..." : "";
	const char *tail = n > 120 ? path + n - 120 : path;
	errno = saved;
	if (code == ACC_EIO)
		acc_fail(e, code, "%s %s%s:", what, dots, tail);
	else
		acc_fail(e, code, "refused to open %s%s: %s", dots, tail, what);
	errno = saved;
	return code;
}

/* The next component of a path: its start, its length in *n; NULL at the end. */
static const char *
component(const char *p, size_t *n)
{
	while (*p == '/')
		p++;
	*n = strcspn(p, "/");
	return *n == 0 ? NULL : p;
}

static bool
climbs(const char *path)
{
	size_t n;
	for (const char *p = component(path, &n); p != NULL; p = component(p + n, &n))
		if (n == 2 && p[0] == '.' && p[1] == '.')
			return true;
	return false;
}

/* With O_DIRECTORY a link is ENOTDIR: say ELOOP, as for the last component. */
static int
link_errno(int dir, const char *name, int err)
{
	struct stat st;
	if (err == ENOTDIR && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISLNK(st.st_mode))
		return ELOOP;
	return err;
}

/* For kernels and sandboxes without openat2: component by component, following no link.
 * `path` is shorter than PATH_MAX, free of ".." and not absolute. < 0 and errno. */
static int
walk(int dirfd, const char *path, int flags)
{
	char name[PATH_MAX];
	size_t n;
	int dir = dirfd, fd = -1;
	errno = ENOENT;
	for (const char *p = component(path, &n); p != NULL;) {
		memcpy(name, p, n);
		name[n] = '\0';
		p = component(p + n, &n);
		fd = openat(dir, name,
			p == NULL ? flags | O_NOFOLLOW
				  : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int err = fd < 0 ? link_errno(dir, name, errno) : 0;
		if (dir != dirfd)
			close(dir);
		errno = err;
		if (fd < 0)
			break;
		dir = fd;
	}
	return fd;
}

static int
beneath(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	for (int tries = 0; tries < 100; tries++) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
		if (fd >= 0)
			return (int)fd;
		if (errno == ENOSYS || errno == EPERM)
			return walk(dirfd, path, flags);
		/* EAGAIN: something was renamed meanwhile, so that the kernel is not sure. */
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return -1;
}

int
acc_dir_beneath(int dirfd, const char *path, struct acc_err *e)
{
	if (path[0] == '/' || climbs(path) || strlen(path) >= PATH_MAX)
		return refuse(e, ACC_EREFUSED, "it may leave the folder", path);
	int fd = beneath(dirfd, path, RDFLAGS | O_DIRECTORY);
	if (fd < 0 && errno == EXDEV)
		return refuse(e, ACC_EREFUSED, "a symbolic link leaves the folder", path);
	if (fd < 0 && errno == ELOOP)
		return refuse(e, ACC_EREFUSED, "symbolic links that are not followed", path);
	return fd < 0 ? refuse(e, ACC_EIO, "cannot open the folder", path) : fd;
}

int
acc_file_beneath(int dirfd, struct acc_str path, struct acc_err *e)
{
	char name[PATH_MAX];
	if (path.n >= sizeof name)
		return acc_fail(e, ACC_EREFUSED, "refused to open a path of %u bytes", path.n);
	if (path.n > 0)
		memcpy(name, path.p, path.n);
	name[path.n] = '\0';
	if (path.n == 0 || strlen(name) != path.n)
		return refuse(e, ACC_EREFUSED, "not a file name", name);
	if (name[0] == '/')
		return refuse(e, ACC_EREFUSED, "an absolute path leaves the folder", name);
	if (climbs(name))
		return refuse(e, ACC_EREFUSED, "\"..\" may leave the folder", name);
	int fd = beneath(dirfd, name, RDFLAGS);
	if (fd < 0 && errno == EXDEV)
		return refuse(e, ACC_EREFUSED, "a symbolic link leaves the folder", name);
	if (fd < 0 && errno == ELOOP)
		return refuse(e, ACC_EREFUSED, "symbolic links that are not followed", name);
	if (fd < 0 && errno == ENXIO)
		return refuse(e, ACC_EREFUSED, "not a regular file", name);
	if (fd < 0)
		return refuse(e, ACC_EIO, "cannot open", name);
	struct stat st;
	int code = fstat(fd, &st) < 0 ? ACC_EIO : S_ISREG(st.st_mode) ? 0 : ACC_EREFUSED;
	if (code == 0)
		return fd;
	refuse(e, code, code == ACC_EIO ? "cannot stat" : "not a regular file", name);
	const int saved = errno;
	close(fd);
	errno = saved;
	return code;
}

int64_t
acc_file_head(int dirfd, const char *name, void *buf, size_t n, struct acc_err *e)
{
	struct acc_err why = {0};
	int fd = acc_file_beneath(dirfd, acc_str(name), &why);
	if (fd == ACC_EIO && acc_file_absent(errno))
		return 0;
	int64_t got = fd < 0 ? fd : acc_file_peek(fd, buf, n, 0, &why);
	if (fd >= 0)
		close(fd);
	if (got < 0)
		acc_fail(e, (int)got, "%s%s%s", fd < 0 ? "" : name, fd < 0 ? "" : ": ", why.msg);
	return got;
}

int
acc_file_stat(int fd, struct acc_file_info *out, struct acc_err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return acc_fail(e, ACC_EIO, "cannot stat:");
	if (!S_ISREG(st.st_mode))
		return acc_fail(e, ACC_EREFUSED, "not a regular file");
	out->size = (uint64_t)st.st_size;
	out->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	out->ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	return 0;
}

int
acc_file_same(int fd, const struct acc_file_info *before, struct acc_err *e)
{
	struct acc_file_info now;
	int rc = acc_file_stat(fd, &now, e);
	if (rc < 0)
		return rc;
	if (now.size == before->size && now.mtime_ns == before->mtime_ns &&
		now.ctime_ns == before->ctime_ns)
		return 0;
	return acc_fail(e, ACC_EFORMAT,
		"changed while it was read; read it again when it is whole");
}

int64_t
acc_file_peek(int fd, void *buf, size_t n, uint64_t off, struct acc_err *e)
{
	uint8_t *p = buf;
	if (off > INT64_MAX || n > INT64_MAX - off)
		return acc_fail_at(e, ACC_EFORMAT, off, "impossible offset");
	while (n > 0) {
		ssize_t got = pread(fd, p, n, (off_t)off);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return acc_fail_at(e, ACC_EIO, off, "cannot read:");
		if (got == 0)
			break;
		p += got;
		n -= (size_t)got;
		off += (uint64_t)got;
	}
	return p - (uint8_t *)buf;
}

int
acc_file_pread(int fd, void *buf, size_t n, uint64_t off, struct acc_err *e)
{
	int64_t got = acc_file_peek(fd, buf, n, off, e);
	if (got >= 0 && (size_t)got < n)
		return acc_fail_at(e, ACC_ETRUNC, off + (uint64_t)got,
			"the file ends here, %zu more bytes were expected", n - (size_t)got);
	return got < 0 ? (int)got : 0;
}

bool
acc_file_again(int fd, bool writing)
{
	struct pollfd p = {.fd = fd, .events = writing ? POLLOUT : POLLIN};
	const int why = errno;
	if (why == EAGAIN)
		poll(&p, 1, -1);
	errno = why;
	return why == EINTR || why == EAGAIN;
}

int
acc_file_write(int fd, const void *buf, size_t n, struct acc_err *e)
{
	const uint8_t *p = buf;
	while (n > 0) {
		ssize_t put = write(fd, p, n);
		if (put < 0 && acc_file_again(fd, true))
			continue;
		if (put < 0)
			return acc_fail(e, ACC_EIO, "cannot write:");
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

int
acc_file_pwrite(int fd, const void *buf, size_t n, int64_t *off, struct acc_err *e)
{
	const uint8_t *p = buf;
	while (n > 0) {
		ssize_t put = pwrite(fd, p, n, (off_t)*off);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return acc_fail(e, ACC_EIO, "cannot write:");
		p += put;
		n -= (size_t)put;
		*off += put;
	}
	return 0;
}

void
acc_pipe_widen(int fd)
{
	/* Anything but a pipe refuses, as does a user's limit: then it stays as it is. */
	(void)fcntl(fd, F_SETPIPE_SZ, 1 << 20);
}

int
acc_file_temp(const char *dir, struct acc_err *e)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system has O_TMPFILE. */
	char name[PATH_MAX];
	if (snprintf(name, sizeof name, "%s/acc-XXXXXX", dir) >= (int)sizeof name)
		errno = ENAMETOOLONG;
	else if ((fd = mkostemp(name, O_CLOEXEC)) >= 0)
		unlink(name);
	if (fd < 0)
		return acc_fail(e, ACC_EIO, "cannot make a temporary file in %.150s:", dir);
	return fd;
}

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

int
acc_natural_cmp(const char *a, const char *b)
{
	const char *x = a, *y = b;
	while (*x != '\0' && *y != '\0') {
		if (!digit(*x) || !digit(*y)) {
			if (*x != *y)
				return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
			x++, y++;
			continue;
		}
		while (*x == '0')
			x++;
		while (*y == '0')
			y++;
		size_t nx = strspn(x, "0123456789"), ny = strspn(y, "0123456789");
		int d = nx != ny ? (nx < ny ? -1 : 1) : memcmp(x, y, nx);
		if (d != 0)
			return d;
		x += nx, y += ny;
	}
	if (*x != *y)
		return *x == '\0' ? -1 : 1;
	return strcmp(a, b); /* rank02 and rank2 */
}

static int
by_name(const void *a, const void *b)
{
	return acc_natural_cmp(*(char *const *)a, *(char *const *)b);
}

/* The names, unsorted, as pointers in *list. */
static int
gather(DIR *d, struct acc_buf *list, struct acc_arena *m, struct acc_err *e)
{
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(d);
		if (entry == NULL && errno != 0)
			return acc_fail(e, ACC_EIO, "cannot list the folder:");
		if (entry == NULL)
			return 0;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		const char *name = acc_arena_copy(m, entry->d_name, strlen(entry->d_name));
		if (name == NULL || acc_buf_add(list, &name, sizeof name) < 0)
			return acc_nomem(e);
	}
}

/* A descriptor of its own: closedir closes it, and readdir moves it. */
static DIR *
reopen(int dirfd, struct acc_err *e)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (d != NULL)
		return d;
	acc_fail(e, ACC_EIO, "cannot list the folder:");
	if (fd >= 0)
		close(fd);
	return NULL;
}

int
acc_dir_has_end(int dirfd, const char *suffix, struct acc_err *e)
{
	DIR *d = reopen(dirfd, e);
	struct dirent *entry;
	bool found = false;
	if (d == NULL)
		return ACC_EIO;
	for (errno = 0; !found && (entry = readdir(d)) != NULL; errno = 0)
		found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			acc_str_ends(acc_str(entry->d_name), suffix);
	int rc = found ? 1 : errno == 0 ? 0 : acc_fail(e, ACC_EIO, "cannot list the folder:");
	closedir(d);
	return rc;
}

int64_t
acc_dir_list(int dirfd, const char ***names, struct acc_arena *m, struct acc_err *e)
{
	DIR *d = reopen(dirfd, e);
	if (d == NULL)
		return ACC_EIO;
	struct acc_buf list = {0};
	int64_t n = gather(d, &list, m, e);
	if (n == 0) {
		n = (int64_t)(list.n / sizeof **names);
		*names = acc_alloc(m, list.n);
		if (*names == NULL)
			n = acc_nomem(e);
		else if (n > 0) {
			memcpy(*names, list.p, list.n);
			qsort(*names, (size_t)n, sizeof **names, by_name);
		}
	}
	acc_buf_release(&list);
	closedir(d);
	return n;
}
