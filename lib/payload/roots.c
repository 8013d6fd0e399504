#include "payload/pay.h"

#include "acc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct root {
	const char *path;
	int fd; /* -1: not opened yet */
	bool moved;
	bool here;    /* it was recorded on this host, or nobody says where */
	int file;     /* what stands for every file of it, or -1 */
	bool foreign; /* a stream named it: only what is beneath an allowed folder is read */
};

struct allowed {
	const char *path; /* real; "" is the root of all */
	int fd;
};

struct move {
	const char *old, *new;
};

/* Workers of a pool look folders up while the reader of a stream adds sources. */
struct acc_roots {
	pthread_mutex_t lock;
	struct acc_arena mem;
	struct acc_map index; /* id to place in root */
	struct root *root;
	size_t n, cap;
	struct move *move;
	size_t nmove, cap_move;
	struct allowed *allow;
	size_t nallow, cap_allow;
	bool foreign; /* sources that are added */
};

struct acc_roots *
acc_roots_open(struct acc_err *e)
{
	struct acc_roots *r = calloc(1, sizeof *r);
	if (r == NULL || pthread_mutex_init(&r->lock, NULL) != 0) {
		free(r);
		acc_nomem(e);
		return NULL;
	}
	return r;
}

void
acc_roots_close(struct acc_roots *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->n; i++)
		if (r->root[i].fd >= 0)
			close(r->root[i].fd);
	for (size_t i = 0; i < r->nallow; i++)
		close(r->allow[i].fd);
	pthread_mutex_destroy(&r->lock);
	free(r->allow);
	free(r->root);
	free(r->move);
	acc_map_release(&r->index);
	acc_arena_release(&r->mem);
	free(r);
}

int
acc_roots_move(struct acc_roots *r, const char *old_new, struct acc_err *e)
{
	const char *eq = strchr(old_new, '=');
	if (eq == NULL || eq == old_new || eq[1] == '\0')
		return acc_fail(e, ACC_EUSAGE, "'%.100s' is not OLD=NEW", old_new);
	if (!ACC_ROOM(r->move, r->cap_move, r->nmove + 1, e))
		return ACC_ENOMEM;
	struct move *m = r->move;
	size_t n = (size_t)(eq - old_new);
	while (n > 1 && old_new[n - 1] == '/')
		n--;
	m[r->nmove].old = acc_arena_copy(&r->mem, old_new, n);
	m[r->nmove].new = acc_arena_copy(&r->mem, eq + 1, strlen(eq + 1));
	if (m[r->nmove].old == NULL || m[r->nmove].new == NULL)
		return acc_nomem(e);
	r->nmove++;
	return 0;
}

/* The path after the first move that applies, to whole components only. */
static const char *
moved(struct acc_roots *r, const char *path)
{
	for (size_t i = 0; i < r->nmove; i++) {
		size_t n = strlen(r->move[i].old);
		if (strncmp(path, r->move[i].old, n) != 0)
			continue;
		if (path[n] == '\0' || path[n] == '/' || path[n - 1] == '/')
			return acc_arena_printf(&r->mem, "%s%s%s", r->move[i].new,
				path[n - 1] == '/' ? "/" : "", path + n);
	}
	return path;
}

static int
add(struct acc_roots *r, struct acc_str id, struct acc_str path, struct acc_err *e)
{
	uint64_t *at = acc_map_get(&r->index, id);
	if (at != NULL && acc_str_is(path, r->root[*at].path))
		return 0;
	if (at != NULL)
		return acc_fail(e, ACC_EFORMAT, "source '%.*s' has two different roots",
			id.n > 40 ? 40 : (int)id.n, id.p);
	if (!ACC_ROOM(r->root, r->cap, r->n + 1, e))
		return ACC_ENOMEM;
	const char *copy = acc_arena_copy(&r->mem, path.p, path.n);
	if (copy == NULL || acc_map_put(&r->index, id, r->n) == NULL)
		return acc_nomem(e);
	r->root[r->n++] = (struct root){copy, -1, false, true, -1, r->foreign};
	return 0;
}

int
acc_roots_add(struct acc_roots *r, const struct acc_rec *source, struct acc_err *e)
{
	struct acc_str id = acc_get_text(source, "", "id"), path = acc_get_text(source, "", "root");
	struct acc_str host = acc_get_text(source, "", "host");
	char here[256] = "";
	if (id.n == 0)
		return acc_fail(e, ACC_EFORMAT, "a source record without id");
	bool known = host.n > 0 && gethostname(here, sizeof here - 1) == 0;
	pthread_mutex_lock(&r->lock);
	int rc = add(r, id, path, e);
	if (rc == 0 && known)
		r->root[*acc_map_get(&r->index, id)].here = acc_str_is(host, here);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
acc_roots_add_fd(struct acc_roots *r, const char *id, int fd, struct acc_err *e)
{
	pthread_mutex_lock(&r->lock);
	int rc = add(r, acc_str(id), acc_str(id), e);
	if (rc == 0)
		r->root[*acc_map_get(&r->index, acc_str(id))].file = fd;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
acc_roots_file(struct acc_roots *r, struct acc_str src, struct acc_err *e)
{
	pthread_mutex_lock(&r->lock);
	const uint64_t *at = acc_map_get(&r->index, src);
	int fd = at == NULL ? -1 : r->root[*at].file;
	pthread_mutex_unlock(&r->lock);
	if (fd < 0)
		return -1;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? acc_fail(e, ACC_EIO, "temporary file:") : fd;
}

static int
open_root(struct acc_roots *r, struct acc_str src, bool *was_moved, struct acc_err *e)
{
	const uint64_t *at = acc_map_get(&r->index, src);
	if (at == NULL)
		return acc_fail(e, ACC_EFORMAT, "no source record named '%.*s' before",
			src.n > 40 ? 40 : (int)src.n, src.p);
	struct root *root = &r->root[*at];
	if (root->path[0] == '\0')
		return acc_fail(e, ACC_EFORMAT, "the source has no folder");
	if (root->fd < 0) {
		const char *path = moved(r, root->path);
		if (path == NULL)
			return acc_nomem(e);
		root->moved = path != root->path;
		root->fd = acc_dir_open(path, e);
		/* A folder of another host's name is not there. */
		if (root->fd < 0 && e != NULL && !root->here)
			e->sys = ENOENT;
		if (root->fd < 0)
			return ACC_EIO;
	}
	*was_moved = root->moved;
	return root->fd;
}

/* A file of a source that a stream named: opened beneath a folder that may be read for it. */
static int
open_foreign(const struct acc_roots *r, const char *root, struct acc_str file, struct acc_err *e)
{
	char real[PATH_MAX], path[PATH_MAX];
	if (realpath(root, real) == NULL)
		return acc_fail(e, ACC_EIO, "cannot open the folder %.150s:", root);
	int n = snprintf(path, sizeof path, "%s/%.*s", strcmp(real, "/") == 0 ? "" : real,
		ACC_PRS(file));
	for (size_t i = 0; i < r->nallow && n < (int)sizeof path; i++) {
		const size_t k = strlen(r->allow[i].path);
		if (strncmp(path, r->allow[i].path, k) == 0 && path[k] == '/')
			return acc_file_beneath(r->allow[i].fd, acc_str(path + k + 1), e);
	}
	return acc_fail(e, ACC_EREFUSED,
		"refused: a stream names it, and it is not in the stream's folder; "
		"--root=%.100s allows it",
		root);
}

int
acc_roots_open_file(struct acc_roots *r, struct acc_str src, struct acc_str file, bool *was_moved,
	struct acc_err *e)
{
	pthread_mutex_lock(&r->lock);
	int fd = open_root(r, src, was_moved, e);
	const struct root *root = fd < 0 ? NULL : &r->root[*acc_map_get(&r->index, src)];
	const bool foreign = root != NULL && root->foreign;
	const char *path = root == NULL ? "" : root->path;
	pthread_mutex_unlock(&r->lock);
	if (fd < 0)
		return fd;
	return foreign ? open_foreign(r, path, file, e) : acc_file_beneath(fd, file, e);
}

int
acc_roots_allow(struct acc_roots *r, const char *folder, struct acc_err *e)
{
	char real[PATH_MAX];
	if (!ACC_ROOM(r->allow, r->cap_allow, r->nallow + 1, e))
		return ACC_ENOMEM;
	struct allowed *p = r->allow;
	p += r->nallow;
	p->fd = acc_dir_open(folder, e);
	if (p->fd < 0)
		return p->fd;
	r->nallow++;
	if (realpath(folder, real) == NULL)
		return acc_fail(e, ACC_EIO, "cannot find the folder %.150s:", folder);
	p->path = acc_arena_copy(&r->mem, real, strcmp(real, "/") == 0 ? 0 : strlen(real));
	return p->path == NULL ? acc_nomem(e) : 0;
}

static int
allow_beside(struct acc_roots *r, const char *file, struct acc_err *e)
{
	struct stat st;
	if (stat(file, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	char *copy = strdup(file);
	int rc = copy == NULL ? acc_nomem(e) : acc_roots_allow(r, dirname(copy), e);
	free(copy);
	return rc;
}

int
acc_roots_allow_all(struct acc_roots *r, const char *const *folder, size_t n, char *const *operand,
	struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = acc_roots_allow(r, folder[i], e);
	for (; *operand != NULL && rc == 0; operand++)
		rc = allow_beside(r, *operand, e);
	return rc;
}

void
acc_roots_foreign(struct acc_roots *r, bool foreign)
{
	r->foreign = foreign;
}
