#include "dump/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "acc/file.h"

int64_t
acc_dump_place_number(const char *name, const char *word)
{
	size_t n = strlen(word);
	int64_t v;
	if (strncmp(name, word, n) != 0 || !acc_str_int(acc_str(name + n), &v) || v < 0)
		return -1;
	return v;
}

struct walk {
	struct acc_arena mem;
	struct acc_buf queue; /* of struct place; breadth first keeps the order */
	const struct place_rule *rule;
};

/* Queue the folders in dirfd that belong to a dump. Their number, or < 0. */
static int
descend(struct walk *w, int dirfd, const struct place *p, struct acc_err *e)
{
	const char **names;
	int found = 0;
	int64_t n = acc_dir_list(dirfd, &names, &w->mem, e);
	for (int64_t i = 0; i < n; i++) {
		struct place q = *p;
		q.rank_level = false;
		if (!w->rule->level(names[i], &q))
			continue;
		q.depth++;
		q.path = acc_arena_printf(&w->mem, "%s/%s", p->path, names[i]);
		if (q.path == NULL || acc_buf_add(&w->queue, &q, sizeof q) < 0)
			return acc_fail(e, ACC_ENOMEM, "out of memory");
		found++;
	}
	return n < 0 ? (int)n : found;
}

int
acc_dump_each_place(int root, const struct place *first, const struct place_rule *rule,
	place_fn *fn, void *arg, struct acc_err *e)
{
	struct walk w = {.rule = rule};
	int rc = acc_buf_add(&w.queue, first, sizeof *first);
	for (size_t i = 0; rc == 0 && i < w.queue.n / sizeof(struct place); i++) {
		struct place p;
		memcpy(&p, w.queue.p + i * sizeof p, sizeof p);
		int fd = openat(root, p.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOTDIR && p.depth > 0)
			continue;
		if (fd < 0) {
			rc = acc_fail(e, ACC_EIO, "cannot open the folder %.150s:", p.path);
			break;
		}
		bool holds = rule->holds(fd);
		int below = holds || p.depth == rule->depth ? 0 : descend(&w, fd, &p, e);
		if (below < 0)
			rc = below;
		else if (holds || (below == 0 && p.rank_level))
			rc = fn(arg, fd, &p, e);
		close(fd);
	}
	acc_buf_release(&w.queue);
	acc_arena_release(&w.mem);
	return rc;
}

void
acc_dump_place_of(const char *path, const struct place_rule *rule, struct place *p)
{
	char real[PATH_MAX], *last;
	*p = (struct place){.path = ".", .step = -1, .rank = -1, .proc = -1};
	if (realpath(path, real) == NULL)
		return;
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

bool
acc_dump_dir_has(int dirfd, const char *suffix)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;
	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (struct dirent *n; !found && (n = readdir(d)) != NULL;)
		found = strcmp(n->d_name, ".") != 0 && strcmp(n->d_name, "..") != 0 &&
			acc_str_ends(acc_str(n->d_name), suffix);
	closedir(d);
	return found;
}
