#include "dump/place.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "acc/file.h"
#include "dump/folders.h"

int64_t
acc_dump_place_number(const char *name, const char *word)
{
	size_t n = strlen(word);
	int64_t v;
	if (strncmp(name, word, n) != 0 || !acc_str_int(acc_str(name + n), &v) || v < 0)
		return -1;
	return v;
}

/* Queue the folders in dirfd that belong to a dump. Their number, or < 0. */
static int
descend(struct folders *w, const struct folder *f, const struct place_rule *rule, int dirfd,
	const struct place *p, struct acc_err *e)
{
	const char **names;
	int found = 0;
	int64_t n = acc_dir_list(dirfd, &names, &w->mem, e);
	for (int64_t i = 0; i < n; i++) {
		struct place q = *p, *keep;
		q.rank_level = false;
		if (!rule->level(names[i], &q))
			continue;
		q.depth++;
		keep = acc_alloc(&w->mem, sizeof *keep);
		if (keep == NULL)
			return acc_nomem(e);
		*keep = q;
		int rc = acc_folders_add(w, f, names[i], keep, e);
		if (rc < 0)
			return rc;
		found++;
	}
	return n < 0 ? (int)n : found;
}

/* A folder that cannot be looked into does not keep the others back. */
static int
visit(struct folders *w, const struct folder *f, const struct place_rule *rule, int fd,
	const struct place *p, place_fn *fn, void *arg, struct acc_err *e)
{
	struct acc_err why = {0};
	int holds = rule->holds(fd, &why);
	int below = holds != 0 || p->depth == rule->depth ? 0 : descend(w, f, rule, fd, p, &why);
	if (holds < 0 || below < 0) {
		int code = holds < 0 ? holds : below;
		if (code != ACC_EIO && code != ACC_EREFUSED)
			return acc_fail(e, code, "%s", why.msg);
		acc_folders_miss(w, f, &why);
		return 0;
	}
	return holds || (below == 0 && p->rank_level) ? fn(arg, fd, p, e) : 0;
}

int
acc_dump_each_place(int root, const struct place *first, const struct place_rule *rule,
	place_fn *fn, void *arg, struct acc_err *e)
{
	struct folders w = {.root = root};
	struct folder f;
	int fd, rc = acc_folders_add(&w, NULL, NULL, first, e);
	while (rc == 0 && (rc = acc_folders_next(&w, &f, &fd, e)) > 0) {
		struct place p = *(const struct place *)f.what;
		p.path = f.path;
		rc = visit(&w, &f, rule, fd, &p, fn, arg, e);
		close(fd);
	}
	if (rc == 0)
		rc = acc_folders_missed(&w, e);
	acc_folders_release(&w);
	return rc;
}

int
acc_dump_place_of(const char *path, const struct place_rule *rule, struct place *p,
	struct acc_err *e)
{
	char real[PATH_MAX], *last;
	*p = (struct place){.path = ".", .step = -1, .rank = -1, .proc = -1};
	if (realpath(path, real) == NULL)
		return acc_fail(e, ACC_EIO, "cannot find the folder:");
	/* The inner folder says it where two do. */
	for (int i = 0; i < rule->depth && (last = strrchr(real, '/')) != NULL; i++) {
		struct place q = {.step = -1, .rank = -1, .proc = -1};
		if (!rule->level(last + 1, &q))
			break;
		p->step = p->step < 0 ? q.step : p->step;
		if (p->rank < 0 && p->proc < 0) {
			p->rank = q.rank;
			p->proc = q.proc;
		}
		*last = '\0';
	}
	return 0;
}

int
acc_dump_real(const char *path, char *buf, const char **file, struct acc_err *e)
{
	if (realpath(path, buf) == NULL)
		return acc_fail(e, ACC_EIO, "cannot open:");
	char *slash = strrchr(buf, '/');
	if (slash == buf) { /* in the root folder, which has no name to be cut off */
		memmove(buf + 2, buf + 1, strlen(buf)); /* one byte more, and PATH_MAX has it */
		slash = buf + 1;
	}
	*slash = '\0';
	*file = slash + 1;
	return 0;
}

int
acc_dump_open_file(const char *path, char *buf, const char **file, struct acc_err *e)
{
	int rc = acc_dump_real(path, buf, file, e);
	int dir = rc < 0 ? rc : acc_dir_open(buf, e);
	if (dir < 0)
		return dir;
	int fd = acc_file_beneath(dir, acc_str(*file), e);
	close(dir);
	return fd;
}

int
acc_dump_open_place(const char *path, char *buf, const char **file, struct acc_err *e)
{
	int fd, rc = acc_dir_try(path, &fd, e);
	*file = NULL;
	snprintf(buf, PATH_MAX, "%s", path);
	if (rc == 0)
		rc = acc_dump_real(path, buf, file, e);
	else if (rc > 0)
		return fd;
	return rc < 0 ? rc : acc_dir_open(buf, e);
}

void
acc_dump_trim(const char *path, char *buf)
{
	snprintf(buf, PATH_MAX, "%s", path);
	for (size_t n = strlen(buf); n > 1 && buf[n - 1] == '/'; n--)
		buf[n - 1] = '\0';
}

/* --- what a reader of such a dump does --- */

static int
seek(void *arg, int dirfd, const struct place *p, struct acc_err *e)
{
	const struct place_rule *const *rule = arg;
	(void)p;
	return (*rule)->holds(dirfd, e);
}

int
acc_dump_has_place(int dirfd, const struct place_rule *rule, struct acc_err *e)
{
	const struct place top = {.path = "."};
	return acc_dump_each_place(dirfd, &top, rule, seek, &rule, e);
}

int
acc_dump_sure(int found, int sure)
{
	return found > 0 ? sure : found == ACC_EIO || found == ACC_ENOMEM ? -sure : 0;
}

int
acc_dump_probe_places(const struct acc_probe *p, const struct place_rule *rule, int sure)
{
	return acc_dump_sure(acc_dump_has_place(p->dirfd, rule, p->e), sure);
}

struct reading {
	struct acc_dump_ctx *c;
	const char *root;
	part_fn *fn;
	bool any;
};

static int
read_part(void *arg, int dirfd, const struct place *p, struct acc_err *e)
{
	struct reading *r = arg;
	char dir[PATH_MAX];
	r->any = true;
	snprintf(dir, sizeof dir, "%s%s", r->root, p->path + 1); /* it starts with "." */
	return r->fn(r->c, dirfd, dir, NULL, p, e);
}

int
acc_dump_read_places(struct acc_dump_ctx *c, const char *path, const struct place_rule *rule,
	part_fn *fn, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file;
	struct place top;
	struct reading r = {c, dir, fn, false};
	int fd = acc_dump_open_place(path, dir, &file, e);
	if (fd < 0)
		return fd;
	if (file == NULL)
		acc_dump_trim(path, dir);
	int rc = acc_dump_place_of(dir, rule, &top, e);
	if (rc == 0 && file != NULL) {
		rc = fn(c, fd, dir, file, &top, e);
	} else if (rc == 0) {
		rc = acc_dump_each_place(fd, &top, rule, read_part, &r, e);
		if (rc == 0 && !r.any)
			rc = acc_fail(e, ACC_EFORMAT, "there is no %s", rule->part);
	}
	close(fd);
	return rc;
}
