/* A run's or a job's folder holds configurations, logs, weights and dumps, as programs and people left
 * them, and much that is none of these. */
#include "acc/operand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/say.h"
#include "dump/curve/curve.h"
#include "dump/foreign.h"
#include "dump/glance.h"
#include "dump/recognise.h"

enum { COPIES = 512, COPY = 1 << 22 };

/* What several files make up, and where others may lie beside. What a recorder wrote is one. */
static const char weights[] =
	"npy npz pt hand safetensors gguf onnx pt2 hdf5 flax dcp megatron universal msckpt";
/* Of these a folder is read with the folders in it. */
static const char deep[] = "hand safetensors gguf dcp megatron universal msckpt";
static const char configurations[] =
	"yaml json training_args shell env pip python toml mlflow-params mlflow-db-params wandb-config";
static const char logs[] =
	"log trainer_state golden tfevents csv mlflow-metrics mlflow-db wandb swanlab";

struct entry {
	const char *form; /* of what is recognised; NULL: a folder that is not */
	const char
		*whole; /* the format of the folder that it lies in, where that reads it; or NULL */
	const char *name; /* beneath the top */
	bool inside;      /* a folder that is looked into */
	bool covered;     /* what a folder above is read as a whole reads the weights here, too */
	bool events;      /* the folder of an event file */
};

struct walk {
	struct acc_holding *j;
	const char *top;
	struct acc_buf found; /* of struct entry */
	bool direct;          /* weights lie in the top itself */
};

static void
miss(struct acc_holding *j, const struct acc_err *why)
{
	if (j->nmissed++ == 0)
		j->missed = *why;
}

static const char *
joined(struct acc_arena *m, const char *folder, const char *name)
{
	return strcmp(folder, ".") == 0 ? acc_arena_copy(m, name, strlen(name))
					: acc_arena_printf(m, "%s/%s", folder, name);
}

static bool
is_in(const char *forms, const char *form)
{
	return form != NULL && acc_word_in(forms, acc_str(form));
}

static int
add_other(struct acc_holding *j, const char *name, const char *what, struct acc_err *e)
{
	if (!ACC_ROOM(j->other, j->cap_other, j->nother + 1, e))
		return acc_nomem(e);
	j->other[j->nother++] = (struct acc_held_other){name, what};
	return 0;
}

/* Belongs this file to what the folder is as a whole? */
static bool
of_whole(const char *whole, const char *form, const char *name)
{
	static const char *const ones[] = {"dcp", "*.distcp", "megatron", "*.distcp", "hand",
		"manifest.csv", "hand", "manifest.jsonl", "safetensors", "*.safetensors.index.json",
		"pt", "*.bin.index.json"};
	if (whole == NULL)
		return false;
	for (size_t i = 0; i < sizeof ones / sizeof *ones; i += 2)
		if (strcmp(whole, ones[i]) == 0 && acc_glob(ones[i + 1], acc_str(name)))
			return true;
	return strcmp(whole, form) == 0 || (strcmp(whole, "hand") == 0 && is_in("npy pt", form));
}

/* The same by its name, so that not every file of a large recording is opened. */
static bool
of_whole_named(const char *whole, const char *name)
{
	static const char *const ends[] = {"npy", ".npy", "hand", ".npy", "npz", ".npz",
		"safetensors", ".safetensors", "gguf", ".gguf"};
	for (size_t i = 0; whole != NULL && i < sizeof ends / sizeof *ends; i += 2)
		if (strcmp(whole, ends[i]) == 0 && acc_str_ends(acc_str(name), ends[i + 1]))
			return true;
	return false;
}

static const char *
base_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash == NULL ? name : slash + 1;
}

/* The checkpoints of a run are compared one by one. */
static bool
is_checkpoint(const struct entry *x)
{
	return x->inside && is_in("safetensors pt", x->form) &&
	       acc_str_starts(acc_str(base_of(x->name)), "checkpoint-");
}

/* --- what is recognised --- */

/* The format of a file or folder, or NULL; < 0 where memory ran out. A folder's event files hide
 * nothing: they are looked for apart. What cannot be told is kept. */
static int
form_of(struct acc_holding *j, const char *path, bool folder, const char **form, uint8_t *head,
	size_t *nhead, struct acc_err *e)
{
	struct acc_err why = {0};
	const struct acc_dump *d = acc_dump_probe_but(path, folder ? "tfevents" : NULL, head, nhead,
		&why);
	*form = d != NULL ? d->name : NULL;
	if (d == NULL && why.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (d == NULL && why.code != ACC_EFORMAT && why.code != ACC_ETRUNC)
		miss(j, &why);
	return 0;
}

/* A file of settings in which there are none, as most scripts are: 1; 0; < 0: memory ran out. */
static int
is_bare(const char *path, const char *form, struct acc_err *e)
{
	const struct acc_glance_opt opt = {0};
	struct acc_glance g = {0};
	if (!is_in("shell python env pip", form))
		return 0;
	int rc = acc_glance(&g, path, &opt, e);
	const bool none = g.n == 0 && g.failed.code == 0;
	acc_glance_release(&g);
	return rc < 0 ? rc : none;
}

static int
take_file(struct walk *w, const char *path, const char *base, struct entry *x, struct acc_err *e)
{
	uint8_t head[DUMP_HEAD];
	size_t nhead = 0;
	if (of_whole_named(x->whole, base)) {
		w->direct |= strchr(x->name, '/') == NULL;
		return 0;
	}
	/* Read with the model that names it. */
	if (acc_str_ends(acc_str(base), ".onnx.data") || acc_str_ends(acc_str(base), ".onnx_data"))
		return 0;
	int rc = form_of(w->j, path, false, &x->form, head, &nhead, e);
	const char *what = acc_run_clutter(acc_str(base), head, nhead);
	const struct foreign *f = acc_foreign(head, nhead);
	if (rc == 0 && what == NULL && x->form != NULL && (rc = is_bare(path, x->form, e)) > 0)
		what = ACC_MSG("no settings in it");
	if (rc < 0)
		return rc;
	if (x->form != NULL && what == NULL)
		return acc_buf_add(&w->found, x, sizeof *x) < 0 ? acc_nomem(e) : 0;
	if (nhead == 0)
		return 0; /* an empty file is no loss, and what could not be opened is missed */
	return add_other(w->j, x->name, what != NULL ? what : f != NULL ? f->what : NULL, e);
}

static int
take_folder(struct walk *w, const char *path, struct entry *x, struct acc_err *e)
{
	uint8_t head[DUMP_HEAD];
	size_t nhead;
	int rc = form_of(w->j, path, true, &x->form, head, &nhead, e);
	x->inside = x->form == NULL || is_in(weights, x->form);
	x->covered |= is_in(deep, x->whole) && is_in(weights, x->form) && !is_checkpoint(x);
	if (rc == 0 && acc_buf_add(&w->found, x, sizeof *x) < 0)
		rc = acc_nomem(e);
	return rc;
}

/* One entry of a folder. */
static int
take(struct walk *w, int dirfd, const struct entry *in, const char *name, struct acc_err *e)
{
	struct acc_holding *j = w->j;
	struct stat st;
	struct acc_err why = {0};
	struct entry x = {.name = joined(&j->mem, in->name, name),
		.whole = in->form,
		.covered = in->covered && !is_checkpoint(in)};
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
	if (S_ISDIR(st.st_mode))
		return take_folder(w, path, &x, e);
	return S_ISREG(st.st_mode) ? take_file(w, path, name, &x, e) : 0;
}

/* What is recognised in a folder. */
static int
list(struct walk *w, const struct entry *in, bool *events, struct acc_err *e)
{
	struct acc_arena *m = &w->j->mem;
	struct acc_err why = {0};
	const char *path = joined(m, w->top, in->name), **names;
	int rc = 0, fd = path == NULL ? acc_nomem(e) : acc_dir_open(path, &why);
	int64_t n = fd < 0 ? fd : acc_dir_list(fd, &names, m, &why);
	for (int64_t i = 0; rc == 0 && i < n; i++)
		if (acc_events_named(names[i]))
			*events = true;
		else if (names[i][0] != '.' || strcmp(names[i], ".hydra") == 0)
			rc = take(w, fd, in, names[i], e);
	if (fd >= 0)
		close(fd);
	if (n < 0 && (path == NULL || why.code == ACC_ENOMEM))
		return acc_nomem(e);
	if (n < 0) {
		acc_err_in(&why, path);
		miss(w->j, &why);
	}
	return rc;
}

/* The same of the folders in it. Those of a folder of events belong to it, as its reader has it. */
static int
below(struct walk *w, const struct entry *in, int depth, struct acc_err *e)
{
	const size_t from = w->found.n;
	struct entry x = *in;
	int rc = list(w, in, &x.events, e);
	const size_t end = w->found.n;
	if (rc == 0 && x.events && !in->events && acc_buf_add(&w->found, &x, sizeof x) < 0)
		rc = acc_nomem(e);
	for (size_t at = from; rc == 0 && depth < ACC_HELD_DEPTH && at < end; at += sizeof x) {
		struct entry y;
		memcpy(&y, w->found.p + at, sizeof y);
		y.events = x.events;
		if (y.inside)
			rc = below(w, &y, depth + 1, e);
	}
	return rc;
}

/* --- what is compared --- */

/* 0 or < 0. */
static int
kind_of(const char *path, const char *form, enum acc_holds *holds, struct acc_err *e)
{
	int params = 0;
	*holds = ACC_HOLDS_DUMP;
	if (is_in(configurations, form))
		*holds = ACC_HOLDS_CONFIGURATION;
	else if (is_in(logs, form))
		*holds = ACC_HOLDS_LOG;
	else if (is_in("samples_json samples_pt samples_npz", form))
		*holds = ACC_HOLDS_SAMPLES;
	else if (is_in("safetensors gguf onnx pt2 hdf5 flax dcp megatron universal msckpt", form))
		*holds = ACC_HOLDS_WEIGHTS;
	else if (is_in("npy npz pt hand", form) && (params = acc_glance_params(path, e)) > 0)
		*holds = ACC_HOLDS_WEIGHTS;
	return params < 0 ? params : 0;
}

/* MLflow's folder of a run beside its metrics/ and params/: what it is called. 0 or < 0. */
static int
run_of(struct acc_arena *m, const char *path, const char *form, const char **run, struct acc_err *e)
{
	char name[4096], text[256];
	const char *slash = strrchr(path, '/');
	*run = NULL;
	if (!is_in("mlflow-params mlflow-metrics", form) || slash == NULL ||
		snprintf(name, sizeof name, "%.*s/tags/mlflow.runName", (int)(slash - path),
			path) >= (int)sizeof name)
		return 0;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return acc_file_absent(errno) || errno == ELOOP
			       ? 0
			       : acc_fail(e, ACC_EIO, "%s: cannot open:", name);
	const int64_t n = acc_file_peek(fd, text, sizeof text, 0, e);
	close(fd);
	if (n <= 0)
		return (int)n;
	*run = acc_arena_copy(m, text, (size_t)n);
	return *run == NULL ? acc_nomem(e) : 0;
}

static int
add(struct walk *w, const char *name, const char *form, bool named, struct acc_err *e)
{
	struct acc_holding *j = w->j;
	struct acc_held_part *part = acc_grow(j->part, &j->cap, j->n + 1, sizeof *part, e);
	const char *path = strcmp(name, ".") == 0 ? w->top : joined(&j->mem, w->top, name);
	if (part == NULL || path == NULL)
		return acc_nomem(e);
	j->part = part;
	part = &part[j->n++];
	*part = (struct acc_held_part){name, form, named, ACC_HOLDS_DUMP, NULL};
	int rc = kind_of(path, form, &part->holds, e);
	return rc < 0 ? rc : run_of(&j->mem, path, form, &part->run, e);
}

static int
add_entry(struct walk *w, const struct entry *x, struct acc_err *e)
{
	const bool part = x->form != NULL &&
			  (is_checkpoint(x) || !(of_whole(x->whole, x->form, x->name) ||
						       (x->covered && is_in(weights, x->form))));
	if (x->events)
		return add(w, x->name, "tfevents", x->form != NULL, e);
	if (!part)
		return 0;
	/* One file is both, of which the first of its names is what it is taken for. */
	const char *other = strcmp(x->form, "wandb") == 0       ? "wandb-config"
			    : strcmp(x->form, "mlflow-db") == 0 ? "mlflow-db-params"
								: NULL;
	int rc = other != NULL ? add(w, x->name, other, true, e) : 0;
	return rc < 0 ? rc : add(w, x->name, x->form, x->inside, e);
}

/* The bytes of a part's file, or NULL: too large, or it cannot be read, which its reader will say. */
static const struct acc_buf *
bytes_of(const struct walk *w, const char *name, struct acc_buf *b)
{
	struct acc_err why = {0};
	struct stat st;
	const char *path = joined(&w->j->mem, w->top, name);
	int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	b->n = 0;
	if (fd < 0)
		return NULL;
	int64_t n = -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= COPY &&
		acc_buf_reserve(b, (size_t)st.st_size + 1) == 0)
		n = acc_file_peek(fd, b->p, (size_t)st.st_size, 0, &why);
	close(fd);
	b->n = n < 0 ? 0 : (size_t)n;
	return n < 0 ? NULL : b;
}

/* Each checkpoint has the configuration again. */
static bool
is_copy(const struct walk *w, size_t i, struct acc_buf *a, struct acc_buf *b)
{
	const struct acc_held_part *p = w->j->part;
	const char *base = base_of(p[i].name);
	bool read = false;
	for (size_t k = 0; k < i && k < COPIES; k++) {
		if (p[k].holds != ACC_HOLDS_CONFIGURATION || p[k].form != p[i].form ||
			strcmp(base_of(p[k].name), base) != 0)
			continue;
		if (!read && bytes_of(w, p[i].name, a) == NULL)
			return false;
		read = true;
		if (bytes_of(w, p[k].name, b) != NULL && a->n == b->n &&
			memcmp(a->p, b->p, a->n) == 0)
			return true;
	}
	return false;
}

/* The folder of checkpoint-N/trainer_state.json, up to N; its number, or -1. */
static int64_t
checkpoint(const char *name, size_t *n)
{
	static const char word[] = "checkpoint-";
	const char *slash = strrchr(name, '/');
	const char *at = slash;
	int64_t number;
	while (at != NULL && at > name && at[-1] != '/')
		at--;
	*n = slash == NULL ? 0 : (size_t)(slash + 1 - name);
	if (at == NULL || strncmp(at, word, sizeof word - 1) != 0)
		return -1;
	*n = (size_t)(at - name);
	at += sizeof word - 1;
	return acc_str_int((struct acc_str){at, (uint32_t)(slash - at)}, &number) ? number : -1;
}

/* A state holds the log from its run's first step on: of those of one run the last is enough. */
static bool
is_earlier(const struct acc_holding *j, size_t i)
{
	const struct acc_held_part *p = j->part;
	size_t n, m;
	int64_t mine = checkpoint(p[i].name, &n);
	for (size_t k = 0; mine >= 0 && k < j->n; k++) {
		if (k == i || strcmp(p[k].form, "trainer_state") != 0)
			continue;
		int64_t other = checkpoint(p[k].name, &m);
		if (m == n && memcmp(p[k].name, p[i].name, n) == 0 && (other < 0 || other > mine))
			return true;
	}
	return false;
}

static void
drop_repeated(struct walk *w)
{
	struct acc_holding *j = w->j;
	struct acc_buf a = {0}, b = {0};
	bool *gone = acc_alloc(&j->mem, j->n + 1);
	size_t n = 0;
	for (size_t i = 0; gone != NULL && i < j->n; i++)
		gone[i] = j->part[i].holds == ACC_HOLDS_CONFIGURATION     ? is_copy(w, i, &a, &b)
			  : strcmp(j->part[i].form, "trainer_state") == 0 ? is_earlier(j, i)
									  : false;
	for (size_t i = 0; gone != NULL && i < j->n; i++)
		if (!gone[i])
			j->part[n++] = j->part[i];
	j->n = gone == NULL ? j->n : n;
	acc_buf_release(&a);
	acc_buf_release(&b);
}

/* Does the folder consist of checkpoints, and has no weights of its own? */
static bool
in_checkpoints(const struct walk *w, const char *form)
{
	bool found = false;
	if (!is_in("safetensors", form) || w->direct)
		return false;
	for (size_t at = 0; at < w->found.n; at += sizeof(struct entry)) {
		struct entry x;
		memcpy(&x, w->found.p + at, sizeof x);
		found |= is_checkpoint(&x);
	}
	return found;
}

/* Is all that was found the folder itself, which is read as one? Weights of whatever format in a folder of weights,
 * as those of ranks, are its own, but a run's checkpoints. */
static bool
is_one(const struct acc_holding *j, const char *whole)
{
	bool own = true, self = j->n == 0;
	for (size_t i = 0; i < j->n; i++) {
		const struct acc_held_part *p = &j->part[i];
		const bool top = strcmp(p->name, ".") == 0;
		own &= top || (whole != NULL && p->holds >= ACC_HOLDS_WEIGHTS &&
				      strstr(p->name, "checkpoint-") == NULL);
		self |= top;
	}
	return self && (j->n <= 1 || own);
}
int
acc_held_look(struct acc_holding *j, const char *path, struct acc_err *e)
{
	struct walk w = {.j = j, .top = path};
	struct entry top = {.name = ".", .inside = true};
	struct stat st;
	uint8_t head[DUMP_HEAD];
	size_t nhead;
	if (stat(path, &st) < 0)
		return acc_file_absent(errno) ? 0 : acc_fail(e, ACC_EIO, "cannot stat:");
	if (!S_ISDIR(st.st_mode))
		return 0;
	int rc = form_of(j, path, true, &top.form, head, &nhead, e);
	if (rc < 0 || (top.form != NULL && !is_in(weights, top.form)))
		return rc;
	rc = below(&w, &top, 1, e);
	if (rc == 0 && top.form != NULL && !in_checkpoints(&w, top.form))
		rc = add(&w, ".", top.form, false, e);
	for (size_t at = 0; rc == 0 && at < w.found.n; at += sizeof(struct entry)) {
		struct entry x;
		memcpy(&x, w.found.p + at, sizeof x);
		rc = add_entry(&w, &x, e);
	}
	for (size_t i = 0; rc == 0 && i < j->n; i++)
		j->part[i].named |= strcmp(j->part[i].name, ".") == 0 && j->n > 1;
	if (rc == 0)
		drop_repeated(&w);
	acc_buf_release(&w.found);
	return rc < 0 ? rc : !is_one(j, top.form);
}

void
acc_held_release(struct acc_holding *j)
{
	free(j->part);
	free(j->other);
	acc_arena_release(&j->mem);
	*j = (struct acc_holding){0};
}
