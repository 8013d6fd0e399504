#include "dump/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acc/file.h"

enum { LIMIT = 1 << 16, DEPTH = 12 };

static int
push(struct acc_buf *b, const struct folder *f, struct acc_err *e)
{
	return acc_buf_add(b, f, sizeof *f) < 0 ? acc_nomem(e) : 0;
}

int
acc_folders_add(struct folders *w, const struct folder *parent, const char *name, const void *what,
	struct acc_err *e)
{
	struct folder f = {.path = ".", .what = what};
	size_t limit = w->limit == 0 ? LIMIT : w->limit;
	if (w->queue.n / sizeof f >= limit)
		return acc_fail(e, ACC_ELIMIT, "more than %zu entries in folders", limit);
	if (parent != NULL) {
		f.depth = parent->depth + 1;
		f.path = acc_arena_printf(&w->mem, "%s/%s", parent->path, name);
	}
	return f.path == NULL ? acc_nomem(e) : push(&w->queue, &f, e);
}

static void
miss(struct folders *w, const struct acc_err *why)
{
	if (w->nmissed++ == 0 || (w->missed.code == ACC_EREFUSED && why->code != ACC_EREFUSED))
		w->missed = *why;
}

void
acc_folders_miss(struct folders *w, const struct folder *f, const struct acc_err *why)
{
	struct acc_err named = {0};
	acc_fail(&named, why->code, "%.120s: %.130s", f->path, why->msg);
	miss(w, &named);
}

/* Was it entered before, by another name? */
static int
again(struct folders *w, const struct stat *st, struct acc_err *e)
{
	const uint64_t id[2] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
	uint64_t *n = acc_map_put(&w->seen, (struct acc_str){(const char *)id, sizeof id}, 0);
	return n == NULL ? acc_nomem(e) : (*n)++ > 0;
}

/* 1: entered; 0: pass over; < 0. */
static int
enter(struct folders *w, const struct folder *f, bool link, int *fd, struct acc_err *e)
{
	struct stat st;
	struct acc_err why = {0};
	if (fstatat(w->root, f->path, &st, f->depth == 0 ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
		if (!acc_file_absent(errno)) { /* else it went away meanwhile */
			acc_fail(&why, ACC_EIO, "cannot stat %.200s:", f->path);
			miss(w, &why);
		}
		return 0;
	}
	if (S_ISLNK(st.st_mode) && !link)
		return push(&w->links, f, e);
	if (!S_ISDIR(st.st_mode) && !link)
		return 0;
	/* A link may lead anywhere; what it leads to is looked at once it is known to be inside. */
	*fd = acc_dir_beneath(w->root, f->path, &why);
	if (*fd < 0) {
		if (*fd != ACC_EIO || errno != ENOTDIR)
			miss(w, &why);
		return 0;
	}
	int seen = fstat(*fd, &st) < 0 ? acc_fail(e, ACC_EIO, "cannot stat %.200s:", f->path)
				       : again(w, &st, e);
	if (seen != 0)
		close(*fd);
	return seen < 0 ? seen : seen == 0;
}

int
acc_folders_next(struct folders *w, struct folder *f, int *fd, struct acc_err *e)
{
	int rc = 0;
	while (rc == 0) {
		bool link = w->at >= w->queue.n;
		struct acc_buf *b = link ? &w->links : &w->queue;
		size_t *at = link ? &w->links_at : &w->at;
		if (*at >= b->n)
			return 0;
		memcpy(f, b->p + *at, sizeof *f);
		*at += sizeof *f;
		rc = enter(w, f, link, fd, e);
		if (rc > 0 && f->depth > DEPTH) {
			struct acc_err why = {0};
			acc_fail(&why, ACC_ELIMIT, "%.160s: deeper than %d folders", f->path,
				DEPTH);
			if (w->limit == 0) /* else it was only to be told what this is */
				miss(w, &why);
			close(*fd);
			rc = 0;
		}
	}
	return rc;
}

int
acc_folders_missed(const struct folders *w, struct acc_err *e)
{
	char text[256];
	if (w->nmissed == 0)
		return 0;
	snprintf(text, sizeof text, "%s", w->missed.msg);
	if (w->nmissed > 1)
		return acc_fail(e, w->missed.code, "%.180s, and %zu more", text, w->nmissed - 1);
	return acc_fail(e, w->missed.code, "%s", text);
}

void
acc_folders_release(struct folders *w)
{
	acc_buf_release(&w->queue);
	acc_buf_release(&w->links);
	acc_map_release(&w->seen);
	acc_arena_release(&w->mem);
}
