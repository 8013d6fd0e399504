/* The folders of MindSpore's dumps, of all its modes, and of the drivers' that write the same
 * names:
 *
 *	rank_0/NET/GRAPH/ITERATION/     rank_0/NET/GRAPH/constants/
 *	rank_0/execution_order/ms_execution_order_graph_GRAPH.csv
 *	STEP/TIME/DEVICE/MODEL/MODEL_ID/ITERATION/
 *	rank_0/TIME/step_0/
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/folders.h"
#include "dump/jtree.h"
#include "dump/op/mindspore.h"
#include "dump/place.h"

enum { DEPTH = 8, PROBED = 4096, GRAPHS = 1 << 12 };

/* The orders of execution that a folder execution_order gives, for all that lies beside it. */
struct orders {
	struct orders *next, *owned; /* of those above; of all */
	int64_t graph;
	struct ms_order order;
	struct acc_str ran; /* its iterations, as they began, a number a line */
};

/* What is known of a folder from those above it. */
struct above {
	struct orders *orders;
	const char *device;
};

struct walk {
	struct acc_dump_ctx *c; /* NULL: is there anything? */
	const char *dir;        /* as given, without '/' at its end */
	const char *real;       /* absolute */
	struct folders folders;
	struct acc_buf found; /* of struct ms_place */
	struct orders *all;
	struct acc_arena mem;
};

static bool
is_number(struct acc_str s, int64_t *v)
{
	return s.n > 0 && s.p[0] >= '0' && s.p[0] <= '9' && acc_str_int(s, v);
}

/* "rank_3" with "rank_": 3, else -1. */
static int64_t
after(struct acc_str s, const char *word)
{
	size_t n = strlen(word);
	int64_t v;
	if (!acc_str_starts(s, word) ||
		!is_number((struct acc_str){s.p + n, s.n - (uint32_t)n}, &v))
		return -1;
	return v;
}

/* What the names of its last folders say of a place. */
static void
locate(const char *path, struct ms_place *p)
{
	struct acc_str part[PATH_MAX / 2];
	size_t n = 0, first;
	int64_t v;
	for (const char *s = path; *s != '\0';) {
		size_t len = strcspn(s, "/");
		if (len > 0)
			part[n++] = (struct acc_str){s, (uint32_t)len};
		s += len + (s[len] == '/');
	}
	first = n > DEPTH ? n - DEPTH : 0;
	p->step = p->rank = p->graph = -1;
	bool constants = n > 0 && acc_str_is(part[n - 1], "constants");
	if (n > 0 && !constants && is_number(part[n - 1], &v))
		p->step = v;
	if (n > 1 && (constants || p->step >= 0) && is_number(part[n - 2], &v))
		p->graph = v;
	for (size_t i = n; i-- > first;) {
		int64_t rank = after(part[i], "rank_"), step = after(part[i], "step_");
		if (rank < 0)
			rank = after(part[i], "device_");
		if (step < 0)
			step = after(part[i], "iteration_");
		if (p->rank < 0)
			p->rank = rank;
		if (p->step < 0 && !constants)
			p->step = step;
		/* STEP/TIME/DEVICE/...: the time is written as 20230522163020 */
		if (part[i].n == 14 && is_number(part[i], &v) && i + 1 < n &&
			is_number(part[i + 1], &v)) {
			p->rank = p->rank < 0 ? v : p->rank;
			if (i > first && is_number(part[i - 1], &v))
				p->step = v;
		}
	}
}

/* Folders that hold no tensors, and what is a file by its name. */
static bool
passed_over(const char *name)
{
	static const char *const ends[] = {".npy", ".csv", ".json", ".bin"};
	struct acc_str s = acc_str(name);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (acc_str_ends(s, ends[i]))
			return true;
	return strcmp(name, "graphs") == 0 || strcmp(name, "execution_order") == 0 ||
	       name[0] == '.';
}

static int
is_part(int dirfd, const char *name, struct acc_err *e)
{
	struct ms_name n;
	struct acc_str s = acc_str(name);
	uint8_t head[64];
	if (strcmp(name, "statistic.csv") == 0) {
		int64_t got = acc_file_head(dirfd, name, head, sizeof head, e);
		return got < 0 ? (int)got : got > 0 && acc_ms_is_sheet(head, (size_t)got);
	}
	if (acc_str_ends(s, ".npy"))
		return acc_ms_name((struct acc_str){s.p, s.n - 4}, &n);
	if (acc_str_ends(s, ".json"))
		return acc_ms_name((struct acc_str){s.p, s.n - 5}, &n) &&
		       acc_str_is(n.type, "Opdebug");
	return acc_ms_name_all(s, &n);
}

/* .dump_metadata/config.json names the device. */
static const char *
read_device(int dirfd, struct acc_arena *m, struct acc_err *e)
{
	static const char file[] = ".dump_metadata/config.json";
	struct jnode *root;
	if (acc_dir_has(dirfd, file, e) <= 0 ||
		acc_jtree_file(dirfd, file, file, m, &root, e) < 0 || root == NULL)
		return NULL;
	struct acc_str t = acc_jtree_text(jtree_get(root, "device_target"));
	return acc_str_is(t, "Ascend") ? "npu"
	       : acc_str_is(t, "GPU")  ? "cuda"
	       : acc_str_is(t, "CPU")  ? "cpu"
				       : NULL;
}

/* Which iterations of a graph ran. */
static void
read_ran(struct walk *w, int dirfd, struct orders *o, struct acc_err *e)
{
	enum { MOST = 1 << 16 };
	char name[64], *text = acc_alloc(&w->mem, MOST);
	snprintf(name, sizeof name, "ms_global_execution_order_graph_%" PRId64 ".csv", o->graph);
	const int64_t n = text == NULL ? acc_nomem(e) : acc_file_head(dirfd, name, text, MOST, e);
	if (n > 0)
		o->ran = (struct acc_str){text, (uint32_t)n};
}

/* How often an iteration is among them. */
static uint32_t
count_runs(struct acc_str ran, int64_t step)
{
	uint32_t runs = 0;
	for (uint32_t i = 0, n; i < ran.n; i += n + 1) {
		const char *end = memchr(ran.p + i, '\n', ran.n - i);
		int64_t v;
		n = end == NULL ? ran.n - i : (uint32_t)(end - ran.p) - i;
		runs += is_number((struct acc_str){ran.p + i, n}, &v) && v == step;
	}
	return runs;
}

static int
read_order(struct walk *w, int dirfd, const struct folder *f, struct above *up, int64_t graph,
	const char *name, struct acc_err *e)
{
	struct acc_err bad = {0};
	char path[2 * PATH_MAX];
	struct orders *o = calloc(1, sizeof *o);
	if (o == NULL)
		return acc_nomem(e);
	*o = (struct orders){.next = up->orders, .owned = w->all, .graph = graph};
	up->orders = w->all = o;
	snprintf(path, sizeof path, "%s%s/execution_order/%s", w->dir, f->path + 1, name);
	int fd = acc_file_beneath(dirfd, acc_str(name), &bad);
	struct acc_bytes *b = fd < 0 ? NULL : acc_bytes_open(fd, path, false, &bad);
	if (b != NULL)
		acc_ms_order(&o->order, b, &bad);
	if (bad.code == 0)
		read_ran(w, dirfd, o, &bad);
	if (bad.code != 0) {
		acc_err_in(&bad, path);
		acc_dump_trouble(w->c, &bad);
	}
	return 0;
}

/* What a folder says of all that lies below it. */
static int
read_orders(struct walk *w, int dirfd, const struct folder *f, struct above *up, struct acc_err *e)
{
	static const char start[] = "ms_execution_order_graph_";
	const char **names;
	int there = acc_dir_has(dirfd, "execution_order", e);
	if (there <= 0)
		return there;
	int fd = acc_dir_beneath(dirfd, "execution_order", e);
	if (fd < 0)
		return fd;
	int64_t n = acc_dir_list(fd, &names, &w->mem, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && i < GRAPHS && rc == 0; i++) {
		struct acc_str s = acc_str(names[i]);
		int64_t graph;
		if (!acc_str_ends(s, ".csv") || !acc_str_starts(s, start))
			continue;
		s = (struct acc_str){s.p + sizeof start - 1, s.n - (uint32_t)sizeof start + 1 - 4};
		if (is_number(s, &graph))
			rc = read_order(w, fd, f, up, graph, names[i], e);
	}
	close(fd);
	return rc;
}

/* None of it keeps the tensors back. */
static int
read_above(struct walk *w, int dirfd, const struct folder *f, struct above *up, struct acc_err *e)
{
	struct acc_err bad = {0}, other = {0};
	const char *device = read_device(dirfd, &w->mem, &other);
	up->device = device != NULL ? device : up->device;
	int rc = read_orders(w, dirfd, f, up, &bad);
	if (bad.code == ACC_ENOMEM || other.code == ACC_ENOMEM)
		return acc_nomem(e);
	for (int i = 0; i < 2; i++, bad = other) {
		char path[2 * PATH_MAX];
		if (bad.code == 0)
			continue;
		snprintf(path, sizeof path, "%s%s", w->dir, f->path + 1);
		acc_err_in(&bad, path);
		acc_dump_trouble(w->c, &bad);
		rc = 0;
	}
	return rc;
}

/* Note the folder as a place with tensors. */
static int
note(struct walk *w, const struct folder *f, const struct above *up, struct acc_err *e)
{
	char path[2 * PATH_MAX];
	struct ms_place p = {.path = f->path, .device = up->device};
	snprintf(path, sizeof path, "%s%s", w->real, f->path + 1);
	locate(path, &p);
	for (const struct orders *o = up->orders; o != NULL && p.order == NULL; o = o->next)
		if (o->graph == p.graph && o->order.n > 0) {
			p.order = &o->order;
			p.runs = count_runs(o->ran, p.step);
		}
	return acc_buf_add(&w->found, &p, sizeof p) < 0 ? acc_nomem(e) : 0;
}

/* A folder is none of ours by an empty statistic.csv alone, but it was to be one. */
static int
say_empty(const struct walk *w, int dirfd, const struct folder *f, struct acc_err *e)
{
	char dir[2 * PATH_MAX], first;
	int rc = acc_dir_has(dirfd, "statistic.csv", e);
	int64_t n = rc > 0 ? acc_file_head(dirfd, "statistic.csv", &first, 1, e) : 1;
	if (rc < 0 || n < 0)
		return rc < 0 ? rc : (int)n;
	if (n > 0)
		return 0;
	snprintf(dir, sizeof dir, "%s%s", w->dir, f->path + 1);
	acc_dump_say_empty(w->c, dir, "statistic.csv");
	return 0;
}

/* Queue what is in a folder. 1: for a probe, enough. */
static int
visit(struct walk *w, int dirfd, const struct folder *f, struct acc_err *e)
{
	const char **names;
	int part = 0, rc = 0;
	struct above *up = acc_alloc(&w->mem, sizeof *up);
	int64_t n = acc_dir_list(dirfd, &names, &w->mem, e);
	if (n < 0 || up == NULL)
		return n < 0 ? (int)n : acc_nomem(e);
	*up = f->what == NULL ? (struct above){0} : *(const struct above *)f->what;
	/* What cannot be looked at is one for the reading, which says so. */
	for (int64_t i = 0; i < n && part == 0; i++) {
		struct acc_err bad = {0};
		part = is_part(dirfd, names[i], &bad);
		if (w->c == NULL && part < 0)
			part = part == ACC_EREFUSED ? 0 : acc_fail(e, part, "%s", bad.msg);
	}
	if (w->c == NULL && part != 0)
		return part;
	if (w->c != NULL)
		rc = read_above(w, dirfd, f, up, e);
	if (rc == 0 && part)
		rc = note(w, f, up, e);
	else if (rc == 0 && w->c != NULL)
		rc = say_empty(w, dirfd, f, e);
	for (int64_t i = 0; i < n && rc == 0; i++)
		if (!passed_over(names[i]))
			rc = acc_folders_add(&w->folders, f, names[i], up, e);
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
	for (struct orders *o = w->all, *next; o != NULL; o = next) {
		next = o->owned;
		acc_ms_order_release(&o->order);
		free(o);
	}
	acc_folders_release(&w->folders);
	acc_buf_release(&w->found);
	acc_arena_release(&w->mem);
}

static int
probe(const struct acc_probe *p)
{
	if (!p->is_dir)
		return acc_ms_is_sheet(p->head, p->nhead) ? 95 : 0;
	struct walk w = {.dir = p->path,
		.real = "",
		.folders = {.root = p->dirfd, .limit = PROBED}};
	int rc = walk(&w, p->e);
	if (rc == 0)
		rc = acc_folders_missed(&w.folders, p->e);
	release(&w);
	return acc_dump_sure(rc, 88);
}

/* Ranks, steps, then graphs in the order in which they began. */
static int
by_place(const void *a, const void *b)
{
	const struct ms_place *x = a, *y = b;
	const int64_t key[][2] = {{x->rank, y->rank}, {x->step, y->step}, {x->time, y->time},
		{x->graph, y->graph}};
	for (size_t i = 0; i < sizeof key / sizeof *key; i++)
		if (key[i][0] != key[i][1])
			return key[i][0] < key[i][1] ? -1 : 1;
	return acc_natural_cmp(x->path, y->path);
}

static int
open_place(struct walk *w, const struct ms_place *p, char *dir, size_t size, struct acc_err *e)
{
	snprintf(dir, size, "%s%s", w->dir, p->path + 1);
	return acc_dir_beneath(w->folders.root, p->path, e);
}

static bool
same_step(const struct ms_place *a, const struct ms_place *b)
{
	return a->rank == b->rank && a->step == b->step;
}

static int
sort_places(struct walk *w, struct ms_place *p, size_t n, struct acc_err *e)
{
	char dir[2 * PATH_MAX];
	if (n == 0)
		return 0;
	qsort(p, n, sizeof *p, by_place);
	for (size_t i = 0; i < n; i++) {
		/* Only of several graphs it matters which came first. */
		if ((i == 0 || !same_step(&p[i], &p[i - 1])) &&
			(i + 1 == n || !same_step(&p[i], &p[i + 1])))
			continue;
		int fd = open_place(w, &p[i], dir, sizeof dir, e);
		int rc = fd < 0 ? fd : acc_ms_first_time(fd, &p[i].time, e);
		if (fd >= 0)
			close(fd);
		if (rc < 0)
			return rc;
	}
	qsort(p, n, sizeof *p, by_place);
	return 0;
}

static int
read_places(struct walk *w, struct acc_err *e)
{
	struct ms_place *p = (struct ms_place *)(void *)w->found.p;
	size_t n = w->found.n / sizeof *p;
	struct ms_count count = {0};
	char dir[2 * PATH_MAX];
	int rc = sort_places(w, p, n, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (!acc_dump_wants(w->c, p[i].step, p[i].rank))
			continue;
		if (i == 0 || !same_step(&p[i], &p[i - 1]))
			acc_map_release(&count.of);
		int fd = open_place(w, &p[i], dir, sizeof dir, e);
		rc = fd < 0 ? fd : acc_ms_folder(w->c, fd, dir, &p[i], &count, e);
		if (fd >= 0)
			close(fd);
	}
	acc_map_release(&count.of);
	return rc;
}

static int
read_dump(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX], real[PATH_MAX];
	const char *file = NULL;
	struct walk w = {.c = c, .dir = dir, .real = real};
	struct acc_err missed = {0};
	/* A statistic.csv stands for the folder that it is of. */
	int fd = acc_dump_open_place(path, dir, &file, e);
	if (fd < 0)
		return fd;
	for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
		dir[n - 1] = '\0';
	int rc = realpath(dir, real) == NULL ? acc_fail(e, ACC_EIO, "cannot find the folder:") : 0;
	w.folders.root = fd;
	if (rc == 0)
		rc = walk(&w, e);
	if (rc == 0)
		rc = read_places(&w, e);
	if (rc == 0 && acc_folders_missed(&w.folders, &missed) < 0) {
		acc_err_in(&missed, dir);
		acc_dump_trouble(c, &missed);
	}
	close(fd);
	release(&w);
	return rc;
}

const struct acc_dump acc_dump_mindspore = {
	.name = "mindspore",
	.help = "MindSpore Dump: a root, a folder of a rank or iteration, statistic.csv",
	.probe = probe,
	.read = read_dump,
};
