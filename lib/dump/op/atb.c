/* What msprobe and its forerunners dump of ATB (Ascend Transformer Boost):
 *
 *	atb_dump_data/data/DEVICE_PID/ROUND/0_Layer/0_Operation/0_Kernel/before/intensor0.bin
 *	                                                                 after/outtensor0.bin
 *	atb_dump_data/data/DEVICE_PID/ROUND/statistic.csv
 */
#include "io/atb.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/op/atb.h"
#include "dump/folders.h"
#include "dump/op/mindspore.h"
#include "dump/place.h"
#include "dump/refer.h"
#include "io/dumpdata.h"

enum { PROBED = 4096 };

/* A file of an op's, and where it belongs. */
struct tensor {
	const char *dir; /* of the round, beneath the root: "./data/0_39943/0", "." */
	const char
		*below;   /* what lies between dir and the tensors' folder, with a '/' at its end */
	const char *op;   /* "0_Layer/1_Kernel", counted from the round, whatever the root is */
	const char *file; /* beneath dir: "0_Layer/1_Kernel/after/outtensor0.bin" */
	int64_t device, round, slot;
	bool out;
};

struct walk {
	struct acc_dump_ctx *c; /* NULL: is there anything? */
	const char *real;       /* absolute */
	struct folders folders;
	struct acc_buf found;  /* of struct tensor */
	struct acc_buf sheets; /* of struct tensor: dir of a statistic.csv */
};

/* "outtensor12.bin" */
static bool
is_tensor(struct acc_str file, struct tensor *t)
{
	static const char *const start[] = {"intensor", "outtensor", "inTensor", "outTensor"};
	if (!acc_str_ends(file, ".bin"))
		return false;
	for (int i = 0; i < 4; i++) {
		uint32_t n = (uint32_t)strlen(start[i]);
		struct acc_str num = {file.p + n, file.n - n - 4};
		if (acc_str_starts(file, start[i]) && file.n > n + 4 && num.p[0] >= '0' &&
			num.p[0] <= '9' && acc_str_int(num, &t->slot)) {
			t->out = i % 2 == 1;
			return true;
		}
	}
	return false;
}

/* "0_39943" with what follows it, a number: where a round begins. */
static bool
is_round(const char *s, size_t *len, int64_t *device, int64_t *round)
{
	size_t n = strcspn(s, "/"), under = strcspn(s, "_"), m;
	int64_t pid, dev, no;
	if (under >= n || s[n] != '/')
		return false;
	m = strcspn(s + n + 1, "/");
	*len = n + 1 + m;
	if (!acc_str_int((struct acc_str){s, (uint32_t)under}, &dev) || dev < 0 ||
		!acc_str_int((struct acc_str){s + under + 1, (uint32_t)(n - under - 1)}, &pid) ||
		!acc_str_int((struct acc_str){s + n + 1, (uint32_t)m}, &no) || no < 0)
		return false;
	*device = dev;
	*round = no;
	return true;
}

/* An op is named by its folder, without "before" and "after". */
static char *
op_name(struct walk *w, const char *below)
{
	char *op = acc_arena_copy(&w->folders.mem, below, strlen(below));
	char *slash = op == NULL ? NULL : strrchr(op, '/');
	const char *last = slash == NULL ? op : slash + 1;
	if (last != NULL && (strcmp(last, "before") == 0 || strcmp(last, "after") == 0)) {
		if (slash != NULL)
			*slash = '\0';
		else
			*op = '\0';
	}
	return op;
}

/* Where the round of a folder is; if none of the names says so, it is the root, which may be in
 * one itself. */
static int
locate(struct walk *w, const char *path, struct tensor *t)
{
	char all[2 * PATH_MAX];
	size_t root = strlen(w->real), len;
	const char *op = path[1] == '/' ? path + 2 : "", *below = op;
	t->device = t->round = -1;
	t->dir = ".";
	snprintf(all, sizeof all, "%s%s", w->real, path + 1);
	for (char *p = strchr(all, '/'); p != NULL; p = strchr(p + 1, '/')) {
		if (!is_round(p + 1, &len, &t->device, &t->round))
			continue;
		size_t end = (size_t)(p + 1 + len - all);
		op = all[end] == '/' ? all + end + 1 : "";
		if (end > root) {
			t->dir = acc_arena_printf(&w->folders.mem, ".%.*s", (int)(end - root),
				all + root);
			below = op;
		}
	}
	t->op = op_name(w, op);
	t->below = acc_arena_printf(&w->folders.mem, "%s%s", below, below[0] == '\0' ? "" : "/");
	return t->dir == NULL || t->op == NULL || t->below == NULL ? ACC_ENOMEM : 0;
}

/* The tensors of a folder "before" or "after" of an op. */
static int
add_tensors(struct walk *w, const struct folder *f, const char **names, int64_t n,
	struct acc_err *e)
{
	struct tensor t = {0};
	int rc = 0;
	bool located = false;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		if (!is_tensor(acc_str(names[i]), &t))
			continue;
		if (w->c == NULL)
			return 1;
		if (!located)
			rc = locate(w, f->path, &t);
		located = true;
		t.file = rc < 0 ? NULL
				: acc_arena_printf(&w->folders.mem, "%s%s", t.below, names[i]);
		if (t.file == NULL || acc_buf_add(&w->found, &t, sizeof t) < 0)
			rc = acc_nomem(e);
	}
	return rc;
}

static int
add_sheet(struct walk *w, const struct folder *f, int dirfd, struct acc_err *e)
{
	struct tensor t = {0};
	struct acc_err bad = {0};
	uint8_t head[64];
	int64_t n = acc_file_head(dirfd, "statistic.csv", head, sizeof head, &bad);
	if (n < 0 && w->c == NULL)
		return n == ACC_EREFUSED ? 0 : acc_fail(e, (int)n, "%s", bad.msg);
	if (n < 0) {
		acc_err_in(&bad, w->real);
		acc_dump_trouble(w->c, &bad);
	} else if (n == 0 && w->c != NULL) {
		char dir[2 * PATH_MAX];
		snprintf(dir, sizeof dir, "%s%s", w->real, f->path + 1);
		acc_dump_say_empty(w->c, dir, "statistic.csv");
	}
	if (n <= 0 || !acc_atb_is_sheet(head, (size_t)n))
		return 0;
	if (w->c == NULL)
		return 1;
	int rc = locate(w, f->path, &t);
	t.dir = f->path;
	if (rc < 0 || acc_buf_add(&w->sheets, &t, sizeof t) < 0)
		return acc_nomem(e);
	return 0;
}

static int
visit(struct walk *w, int dirfd, const struct folder *f, struct acc_err *e)
{
	const char **names;
	int64_t n = acc_dir_list(dirfd, &names, &w->folders.mem, e);
	int rc = n < 0 ? (int)n : add_tensors(w, f, names, n, e);
	for (int64_t i = 0; i < n && rc == 0; i++) {
		if (strcmp(names[i], "statistic.csv") == 0)
			rc = add_sheet(w, f, dirfd, e);
		else if (strchr(names[i], '.') == NULL)
			rc = acc_folders_add(&w->folders, f, names[i], NULL, e);
	}
	return rc;
}

static int
walk(struct walk *w, struct acc_err *e)
{
	struct folder f;
	int fd, rc = acc_folders_add(&w->folders, NULL, NULL, NULL, e);
	while (rc == 0 && (rc = acc_folders_next(&w->folders, &f, &fd, e)) > 0) {
		rc = visit(w, fd, &f, e);
		close(fd);
	}
	return rc;
}

static void
release(struct walk *w)
{
	acc_folders_release(&w->folders);
	acc_buf_release(&w->found);
	acc_buf_release(&w->sheets);
}

static int
probe(const struct acc_probe *p)
{
	if (!p->is_dir)
		return acc_atb_is(p->head, p->nhead) ? 92 : 0;
	struct walk w = {.real = "", .folders = {.root = p->dirfd, .limit = PROBED}};
	int rc = walk(&w, p->e);
	if (rc == 0)
		rc = acc_folders_missed(&w.folders, p->e);
	release(&w);
	return acc_dump_sure(rc, 89);
}

/* Path by path; what is in a folder comes before the folder itself, as an op ends after those
 * that it is made of. Inputs before outputs. */
static int
by_run(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->round != y->round)
		return x->round < y->round ? -1 : 1;
	int d = acc_natural_cmp(x->dir, y->dir);
	if (d != 0)
		return d;
	const char *s = x->op, *t = y->op;
	while (*s != '\0' && *t != '\0') {
		char p[256], q[256];
		size_t n = strcspn(s, "/"), m = strcspn(t, "/");
		snprintf(p, sizeof p, "%.*s", (int)n, s);
		snprintf(q, sizeof q, "%.*s", (int)m, t);
		d = acc_natural_cmp(p, q);
		if (d != 0)
			return d;
		s += n + (s[n] == '/');
		t += m + (t[m] == '/');
	}
	if (*s != *t)
		return *s == '\0' ? 1 : -1;
	if (x->out != y->out)
		return x->out ? 1 : -1;
	return (x->slot > y->slot) - (x->slot < y->slot);
}

static int
put(struct atb *a, const struct tensor *t, struct acc_err *e)
{
	char path[2 * PATH_MAX];
	struct atb_place p = {.out = t->out,
		.slot = t->slot,
		.key = acc_str(t->op),
		.file = acc_str(t->file)};
	snprintf(path, sizeof path, "%s/%s", a->dir, t->file);
	return acc_atb_put(a, &p, NULL, path, e);
}

static int
start_round(struct atb *a, const struct walk *w, const struct tensor *t, const char *task,
	struct acc_err *e)
{
	char dir[2 * PATH_MAX];
	acc_map_release(&a->count);
	if (a->dirfd >= 0)
		close(a->dirfd);
	snprintf(dir, sizeof dir, "%s%s", w->real, t->dir + 1);
	a->dir = acc_arena_printf(&a->dirs, "%s", dir);
	a->dirfd = acc_dir_beneath(w->folders.root, t->dir, e);
	const struct acc_source s = {.root = dir,
		.format = "atb",
		.framework = "atb",
		.device = "npu",
		.task = task,
		.level = "L2",
		.step = t->round,
		.rank = t->device,
		.proc = -1};
	if (a->dirfd < 0 || a->dir == NULL)
		return a->dirfd < 0 ? a->dirfd : acc_nomem(e);
	return acc_dump_source(a->c, &s, e);
}

static int
put_tensors(struct walk *w, struct atb *a, struct acc_err *e)
{
	struct tensor *t = (struct tensor *)(void *)w->found.p;
	size_t n = w->found.n / sizeof *t;
	int rc = 0;
	if (n > 0)
		qsort(t, n, sizeof *t, by_run);
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (!acc_dump_wants(a->c, t[i].round, t[i].device))
			continue;
		if (a->dirfd < 0 || i == 0 || strcmp(t[i].dir, t[i - 1].dir) != 0)
			rc = start_round(a, w, &t[i], "tensor", e);
		if (rc == 0)
			rc = put(a, &t[i], e);
	}
	return rc;
}

/* Of rounds whose tensors were saved, statistics say no more. */
static int
put_sheets(struct walk *w, struct atb *a, struct acc_err *e)
{
	struct tensor *s = (struct tensor *)(void *)w->sheets.p;
	const struct tensor *t = (const struct tensor *)(const void *)w->found.p;
	size_t n = w->sheets.n / sizeof *s, nt = w->found.n / sizeof *t;
	int rc = 0;
	if (n > 0)
		qsort(s, n, sizeof *s, by_run);
	for (size_t i = 0; i < n && rc == 0; i++) {
		bool saved = false;
		for (size_t k = 0; k < nt && !saved; k++)
			saved = strcmp(t[k].dir, s[i].dir) == 0;
		if (saved || !acc_dump_wants(a->c, s[i].round, s[i].device))
			continue;
		rc = start_round(a, w, &s[i], "statistics", e);
		if (rc == 0)
			rc = acc_atb_sheet(a, e);
	}
	return rc;
}

static int
read_folder(struct acc_dump_ctx *c, int fd, const char *path, struct acc_err *e)
{
	char real[PATH_MAX];
	struct walk w = {.c = c, .real = real, .folders = {.root = fd}};
	struct atb a = {.c = c, .dirfd = -1};
	struct acc_err missed = {0};
	int rc = realpath(path, real) == NULL ? acc_fail(e, ACC_EIO, "cannot find the folder:") : 0;
	if (rc == 0)
		rc = walk(&w, e);
	if (rc == 0)
		rc = put_tensors(&w, &a, e);
	if (rc == 0)
		rc = put_sheets(&w, &a, e);
	acc_dump_say_rest(&a.said, c, path);
	if (rc == 0 && acc_folders_missed(&w.folders, &missed) < 0) {
		acc_err_in(&missed, path);
		acc_dump_trouble(c, &missed);
	}
	acc_atb_release(&a);
	release(&w);
	return rc;
}

static int
read_atb(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file;
	struct tensor t = {.slot = 0, .out = true};
	int dirfd = acc_dump_open_place(path, dir, &file, e), rc;
	if (dirfd < 0)
		return dirfd;
	if (file == NULL) {
		rc = read_folder(c, dirfd, path, e);
		close(dirfd);
		return rc;
	}
	struct atb a = {.c = c, .dirfd = dirfd, .dir = dir};
	struct atb_place p = {.key = acc_str(file), .file = acc_str(file)};
	if (acc_str_ends(p.key, ".bin"))
		p.key.n -= 4;
	is_tensor(p.file, &t);
	p.out = t.out;
	p.slot = t.slot;
	const struct acc_source s = {.root = dir,
		.format = "atb",
		.framework = "atb",
		.device = "npu",
		.task = "tensor",
		.level = "L2",
		ACC_NO_PLACE};
	rc = acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = acc_atb_put(&a, &p, NULL, path, e);
	acc_atb_release(&a);
	return rc;
}

const struct acc_dump acc_dump_atb = {
	.name = "atb",
	.help = "ATB: a tensor's .bin file, or the folders of a dump",
	.probe = probe,
	.read = read_atb,
};
