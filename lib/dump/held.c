/* A job's folder holds several of configurations, logs, weights and dumps, as somebody left them. */
#include "acc/operand.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/glance.h"

enum { DEPTH = 3 };

struct entry {
	const char *form; /* of what is recognised; NULL: a folder that is not */
	const char *name; /* beneath the top */
};

struct walk {
	struct acc_holding *j;
	const char *top;
	struct acc_buf found; /* of struct entry */
};

static void
miss(struct acc_holding *j, const struct acc_err *why)
{
	if (j->nmissed++ == 0)
		j->missed = *why;
}

/* The format of a file or folder, or NULL; < 0 where memory ran out. What cannot be told is kept. */
static int
form_of(struct acc_holding *j, const char *path, const char **form, struct acc_err *e)
{
	struct acc_err why = {0};
	const struct acc_dump *d = acc_dump_probe(path, &why);
	*form = d != NULL ? d->name : NULL;
	if (d == NULL && why.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (d == NULL && why.code != ACC_EFORMAT && why.code != ACC_ETRUNC)
		miss(j, &why);
	return 0;
}

static const char *
joined(struct acc_arena *m, const char *folder, const char *name)
{
	return strcmp(folder, ".") == 0 ? acc_arena_copy(m, name, strlen(name))
					: acc_arena_printf(m, "%s/%s", folder, name);
}

/* One entry of a folder. */
static int
take(struct walk *w, int dirfd, const char *folder, const char *name, struct acc_err *e)
{
	struct acc_holding *j = w->j;
	struct stat st;
	struct acc_err why = {0};
	struct entry x = {.name = joined(&j->mem, folder, name)};
	const char *path = x.name == NULL ? NULL : joined(&j->mem, w->top, x.name);
	if (path == NULL)
		return acc_nomem(e);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (!acc_file_absent(errno)) { /* else it went away meanwhile */
			acc_fail(&why, ACC_EIO, "cannot stat:");
			acc_err_in(&why, path);
			miss(j, &why);
		}
		return 0;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	int rc = form_of(j, path, &x.form, e);
	if (rc == 0 && (x.form != NULL || S_ISDIR(st.st_mode)) &&
		acc_buf_add(&w->found, &x, sizeof x) < 0)
		rc = acc_nomem(e);
	return rc;
}

/* What is recognised in a folder, then what is below the folders in it that are not. */
static int
below(struct walk *w, const char *folder, int depth, struct acc_err *e)
{
	struct acc_arena *m = &w->j->mem;
	struct acc_err why = {0};
	const char *path = joined(m, w->top, folder), **names;
	const size_t from = w->found.n;
	int rc = 0, fd = path == NULL ? acc_nomem(e) : acc_dir_open(path, &why);
	int64_t n = fd < 0 ? fd : acc_dir_list(fd, &names, m, &why);
	for (int64_t i = 0; rc == 0 && i < n; i++)
		if (names[i][0] != '.')
			rc = take(w, fd, folder, names[i], e);
	if (fd >= 0)
		close(fd);
	if (n < 0 && (path == NULL || why.code == ACC_ENOMEM))
		return acc_nomem(e);
	if (n < 0) {
		acc_err_in(&why, path);
		miss(w->j, &why);
	}
	for (size_t at = from, end = w->found.n; rc == 0 && depth < DEPTH && at < end;
		at += sizeof(struct entry)) {
		struct entry x;
		memcpy(&x, w->found.p + at, sizeof x);
		if (x.form == NULL)
			rc = below(w, x.name, depth + 1, e);
	}
	return rc;
}

/* Belongs this file to what the folder is as a whole? */
static bool
of_whole(const char *whole, const char *form, const char *name)
{
	static const char *const ones[] = {"dcp", "*.distcp", "megatron", "*.distcp", "hand",
		"manifest.csv", "hand", "manifest.jsonl"};
	if (whole == NULL)
		return false;
	for (size_t i = 0; i < sizeof ones / sizeof *ones; i += 2)
		if (strcmp(whole, ones[i]) == 0 && acc_glob(ones[i + 1], acc_str(name)))
			return true;
	return strcmp(whole, form) == 0 ||
	       (strcmp(whole, "hand") == 0 && acc_word_in("npy pt", acc_str(form)));
}

/* 0 or < 0. */
static int
kind_of(const char *path, const char *form, enum acc_holds *holds, struct acc_err *e)
{
	const struct acc_str f = acc_str(form);
	int params = 0;
	*holds = ACC_HOLDS_DUMP;
	if (acc_word_in("yaml json training_args shell env pip python", f))
		*holds = ACC_HOLDS_CONFIGURATION;
	else if (acc_word_in("log trainer_state golden tfevents csv", f))
		*holds = ACC_HOLDS_LOG;
	else if (acc_word_in("safetensors dcp megatron universal msckpt", f))
		*holds = ACC_HOLDS_WEIGHTS;
	else if (acc_word_in("npy npz pt hand", f) && (params = acc_glance_params(path, e)) > 0)
		*holds = ACC_HOLDS_WEIGHTS;
	return params < 0 ? params : 0;
}

static int
add(struct walk *w, const char *name, const char *form, struct acc_err *e)
{
	struct acc_holding *j = w->j;
	struct acc_held_part *part = acc_grow(j->part, &j->cap, j->n + 1, sizeof *part, e);
	const char *path = strcmp(name, ".") == 0 ? w->top : joined(&j->mem, w->top, name);
	if (part == NULL || path == NULL)
		return acc_nomem(e);
	j->part = part;
	part[j->n].name = name;
	return kind_of(path, form, &part[j->n++].holds, e);
}

/* Of several kinds? */
static bool
is_mixed(const struct acc_holding *j)
{
	for (size_t i = 1; i < j->n; i++)
		if (j->part[i].holds != j->part[0].holds)
			return true;
	return false;
}

int
acc_held_look(struct acc_holding *j, const char *path, struct acc_err *e)
{
	/* What a recorder wrote is one, whatever lies in it. */
	static const char parts[] = "npy npz pt hand safetensors dcp megatron universal msckpt";
	struct walk w = {.j = j, .top = path};
	struct stat st;
	const char *whole;
	if (stat(path, &st) < 0)
		return acc_file_absent(errno) ? 0 : acc_fail(e, ACC_EIO, "cannot stat:");
	if (!S_ISDIR(st.st_mode))
		return 0;
	int rc = form_of(j, path, &whole, e);
	if (rc < 0 || (whole != NULL && !acc_word_in(parts, acc_str(whole))))
		return rc;
	rc = below(&w, ".", 1, e);
	if (rc == 0 && whole != NULL)
		rc = add(&w, ".", whole, e);
	for (size_t at = 0; rc == 0 && at < w.found.n; at += sizeof(struct entry)) {
		struct entry x;
		memcpy(&x, w.found.p + at, sizeof x);
		if (x.form != NULL && !of_whole(whole, x.form, x.name))
			rc = add(&w, x.name, x.form, e);
	}
	acc_buf_release(&w.found);
	return rc < 0 ? rc : is_mixed(j);
}

void
acc_held_release(struct acc_holding *j)
{
	free(j->part);
	acc_arena_release(&j->mem);
	*j = (struct acc_holding){0};
}
