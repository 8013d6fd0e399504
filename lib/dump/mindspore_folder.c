/* The tensors of one iteration of one graph: what files and statistic.csv say of them is joined,
 * put in order, and handed on. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/mindspore_folder.h"
#include "io/csv.h"

static const uint32_t NOROW = UINT32_MAX;

static int
nomem(struct acc_err *e)
{
	return acc_fail(e, ACC_ENOMEM, "out of memory");
}

static bool
has(int dirfd, const char *name)
{
	return faccessat(dirfd, name, F_OK, 0) == 0;
}

static struct acc_bytes *
open_file(const struct ms_folder *f, const char *name, struct acc_err *e)
{
	char path[2 * PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", f->dir, name);
	int fd = acc_file_beneath(f->dirfd, acc_str(name), e);
	if (fd < 0)
		acc_err_in(e, path);
	return fd < 0 ? NULL : acc_bytes_open(fd, path, false, e);
}

/* mapping.csv: what names that were too long for a file are called. No head. */
static void
read_mapping(struct ms_folder *f)
{
	const struct acc_str *cell;
	struct acc_err e = {0};
	size_t n;
	int rc;
	if (!has(f->dirfd, "mapping.csv"))
		return;
	struct acc_csv *csv = acc_csv_open(open_file(f, "mapping.csv", &e), &e);
	while (csv != NULL && (rc = acc_csv_next(csv, &cell, &n, &e)) > 0) {
		struct acc_str to = n < 2 ? (struct acc_str){"", 0} : cell[1];
		if (acc_str_ends(to, ".npy"))
			to.n -= 4;
		char *p = acc_arena_copy(&f->mem, to.p, to.n);
		struct acc_str from = cell[0];
		if (acc_str_ends(from, ".npy"))
			from.n -= 4;
		if (to.n > 0 && p != NULL)
			acc_map_put(&f->mapped, from, (uintptr_t)p);
	}
	acc_csv_close(csv);
	if (e.code != 0)
		acc_dump_trouble(f->c, &e);
}

static void
read_sheet(struct ms_folder *f)
{
	struct acc_err e = {0};
	if (!has(f->dirfd, "statistic.csv"))
		return;
	struct acc_bytes *b = open_file(f, "statistic.csv", &e);
	if (b != NULL)
		acc_ms_sheet(&f->sheet, b, &f->mem, &f->said, f->c, &e);
	if (e.code != 0) {
		char path[2 * PATH_MAX];
		snprintf(path, sizeof path, "%s/statistic.csv", f->dir);
		acc_err_in(&e, path);
		acc_dump_trouble(f->c, &e);
	}
}

static int
add(struct ms_folder *f, const struct ms_tensor *t, struct acc_err *e)
{
	return acc_buf_add(&f->tensors, t, sizeof *t) < 0 ? nomem(e) : 0;
}

/* What a file of this name is; false: nothing of ours. */
static bool
classify(struct ms_folder *f, const char *file, struct ms_tensor *t)
{
	*t = (struct ms_tensor){.file = file, .name = acc_str(file), .row = NOROW};
	if (acc_str_ends(t->name, ".npy")) {
		t->name.n -= 4;
		const uint64_t *to = acc_map_get(&f->mapped, t->name);
		if (to != NULL)
			t->name = acc_str((const char *)(uintptr_t)*to);
		t->kind = acc_ms_name(t->name, &t->n) ? MS_TENSOR : MS_LOOSE;
		return true;
	}
	bool json = acc_str_ends(t->name, ".json");
	const uint64_t *to = acc_map_get(&f->mapped, t->name);
	if (to != NULL)
		t->name = acc_str((const char *)(uintptr_t)*to);
	if (json) {
		t->name.n -= 5;
		if (acc_ms_name(t->name, &t->n) && acc_str_is(t->n.type, "Opdebug")) {
			t->kind = MS_DEBUG;
			return true;
		}
		const char *dot = memchr(t->name.p, '.', t->name.n);
		t->kind = MS_ARGS;
		if (dot == NULL || dot == t->name.p || acc_str_starts(t->name, "acl_dump_"))
			return false;
		t->n = (struct ms_name){.task = -1, .stream = -1, .time = -1, .io = "", .slot = -1};
		t->n.type = (struct acc_str){t->name.p, (uint32_t)(dot - t->name.p)};
		t->n.op = (struct acc_str){dot + 1, t->name.n - t->n.type.n - 1};
		return t->n.op.n > 0;
	}
	if (!acc_ms_name_all(t->name, &t->n))
		return false;
	t->kind = acc_str_is(t->n.type, "Opdebug") ? MS_DEBUG : MS_ALL;
	return true;
}

static int
gather(struct ms_folder *f, struct acc_err *e)
{
	const char **names;
	int64_t n = acc_dir_list(f->dirfd, &names, &f->mem, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct ms_tensor t;
		if (classify(f, names[i], &t))
			rc = add(f, &t, e);
		f->files += t.kind == MS_TENSOR || t.kind == MS_ALL || t.kind == MS_LOOSE;
	}
	return rc;
}

/* --- rows of statistic.csv to files --- */

struct mate {
	uint64_t id;
	int64_t time;
	uint32_t at;
	bool row;
};

static int
by_mate(const void *a, const void *b)
{
	const struct mate *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->row != y->row)
		return x->row ? 1 : -1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static uint64_t
identity(const struct ms_name *n, bool exact)
{
	const uint64_t id[] = {acc_hash(n->type.p, n->type.n), acc_hash(n->op.p, n->op.n),
		(uint64_t)n->slot, (uint64_t)n->io[0], exact ? (uint64_t)n->task : 0,
		exact ? (uint64_t)n->stream : 0, exact ? (uint64_t)n->time : 0};
	return acc_hash(id, sizeof id);
}

/* Rows and files of the same identity belong together, in the order of their times; where that
 * does not tell one from the other, their numbers must agree. */
static int
join(struct ms_folder *f, bool *taken, bool exact, struct acc_err *e)
{
	struct ms_tensor *t = ms_tensors(f);
	size_t n = ms_ntensors(f), k = 0;
	struct mate *m = malloc((n + f->sheet.n + 1) * sizeof *m);
	if (m == NULL)
		return nomem(e);
	for (size_t i = 0; i < n; i++)
		if (t[i].kind == MS_TENSOR && t[i].row == NOROW)
			m[k++] = (struct mate){identity(&t[i].n, exact), t[i].n.time, (uint32_t)i, false};
	for (size_t i = 0; i < f->sheet.n; i++)
		if (!taken[i])
			m[k++] = (struct mate){identity(&f->sheet.row[i].n, exact),
				f->sheet.row[i].n.time, (uint32_t)i, true};
	qsort(m, k, sizeof *m, by_mate);
	for (size_t i = 0, end; i < k; i = end) {
		size_t files = 0;
		for (end = i; end < k && m[end].id == m[i].id; end++)
			files += !m[end].row;
		size_t rows = end - i - files;
		if (rows != files && !(exact && rows > 0))
			continue;
		for (size_t j = 0; j < files && j < rows; j++) {
			t[m[i + j].at].row = m[i + files + j].at;
			taken[m[i + files + j].at] = true;
		}
	}
	free(m);
	return 0;
}

static int
add_rows(struct ms_folder *f, struct acc_err *e)
{
	bool *taken = calloc(f->sheet.n + 1, sizeof *taken);
	int rc = taken == NULL ? nomem(e) : 0;
	if (rc == 0 && f->files > 0)
		rc = join(f, taken, true, e);
	if (rc == 0 && f->files > 0)
		rc = join(f, taken, false, e);
	for (size_t i = 0; i < f->sheet.n && rc == 0; i++) {
		const struct ms_tensor t = {.kind = MS_TENSOR, .n = f->sheet.row[i].n,
			.row = (uint32_t)i};
		if (!taken[i])
			rc = add(f, &t, e);
	}
	free(taken);
	return rc;
}

/* --- op calls --- */

static int
by_time(const void *a, const void *b)
{
	const struct ms_tensor *x = a, *y = b;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->n.time != y->n.time)
		return x->n.time < y->n.time ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static int
by_call(const void *a, const void *b)
{
	const struct ms_tensor *x = a, *y = b;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->times != y->times)
		return x->times < y->times ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	int d = strcmp(x->n.io, y->n.io);
	if (d != 0)
		return d;
	if (x->n.slot != y->n.slot)
		return x->n.slot < y->n.slot ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* What is said of an overflow belongs to the kernel that was that task of that stream. */
static void
adopt_debug(struct ms_tensor *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; t[i].kind == MS_DEBUG && k < n; k++)
			if ((t[k].kind == MS_TENSOR || t[k].kind == MS_ALL) &&
				t[k].n.task == t[i].n.task && t[k].n.stream == t[i].n.stream) {
				t[i].n.type = t[k].n.type;
				t[i].n.op = t[k].n.op;
				break;
			}
}

/* Number the operators; those of loose files are apart from all others. */
static int
number_ops(struct ms_folder *f, struct acc_err *e)
{
	struct acc_map ops = {0};
	struct ms_tensor *t = ms_tensors(f);
	for (size_t i = 0; i < ms_ntensors(f); i++) {
		t[i].at = (uint32_t)i;
		t[i].op = UINT32_MAX;
		if (t[i].kind == MS_LOOSE)
			continue;
		const uint64_t id[2] = {acc_hash(t[i].n.type.p, t[i].n.type.n),
			acc_hash(t[i].n.op.p, t[i].n.op.n)};
		uint64_t *at = acc_map_put(&ops, (struct acc_str){(const char *)id, sizeof id},
			ops.n);
		if (at == NULL) {
			acc_map_release(&ops);
			return nomem(e);
		}
		t[i].op = (uint32_t)*at;
	}
	acc_map_release(&ops);
	return 0;
}

/* Where a tensor's place occurs again, its operator ran again. */
static int
number_calls(struct ms_folder *f, struct acc_err *e)
{
	struct acc_map seen = {0};
	struct ms_tensor *t = ms_tensors(f);
	size_t n = ms_ntensors(f);
	adopt_debug(t, n);
	int rc = number_ops(f, e);
	if (rc < 0)
		return rc;
	if (n > 0)
		qsort(t, n, sizeof *t, by_time);
	for (size_t i = 0; i < n && rc == 0; i++) {
		const int64_t place[3] = {t[i].op, t[i].n.slot,
			t[i].kind * 256 + (t[i].kind == MS_LOOSE ? 0 : t[i].n.io[0])};
		uint64_t *k = acc_map_put(&seen, (struct acc_str){(const char *)place, sizeof place}, 0);
		if (k == NULL)
			rc = nomem(e);
		else
			t[i].times = (uint32_t)(*k)++;
	}
	acc_map_release(&seen);
	if (n > 0)
		qsort(t, n, sizeof *t, by_call);
	return rc;
}

static int
by_start(const void *a, const void *b)
{
	const struct ms_call *x = a, *y = b;
	if (x->loose != y->loose)
		return x->loose ? 1 : -1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static int
by_order(const void *a, const void *b)
{
	const struct ms_call *x = a, *y = b;
	if (x->loose != y->loose)
		return x->loose ? 1 : -1;
	if (x->times != y->times)
		return x->times < y->times ? -1 : 1;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return by_start(a, b);
}

/* What the order of execution does not name stands behind what ran before it. */
static void
place_calls(struct ms_folder *f)
{
	uint32_t place = 0, times = 0;
	for (size_t i = 0; i < f->ncalls; i++) {
		struct ms_call *c = &f->calls[i];
		const uint64_t *at = c->loose ? NULL : acc_map_get(&f->order->at, f->first[c->first].n.op);
		if (at != NULL) {
			place = (uint32_t)*at + 1;
			times = c->times;
			c->scoped = f->order->name[*at];
		}
		c->place = place;
		c->times = times;
	}
	if (f->ncalls > 0)
		qsort(f->calls, f->ncalls, sizeof *f->calls, by_order);
}

static int
make_calls(struct ms_folder *f, struct acc_err *e)
{
	size_t n = ms_ntensors(f);
	int rc = number_calls(f, e);
	f->first = ms_tensors(f);
	f->calls = acc_alloc(&f->mem, (n + 1) * sizeof *f->calls);
	if (rc < 0 || f->calls == NULL)
		return rc < 0 ? rc : nomem(e);
	for (size_t i = 0; i < n; i++) {
		const struct ms_tensor *t = &f->first[i];
		struct ms_call *c = &f->calls[f->ncalls];
		bool same = i > 0 && t->kind != MS_LOOSE && t[-1].op == t->op &&
			t[-1].times == t->times;
		if (!same) {
			*c = (struct ms_call){.first = (uint32_t)i, .at = t->at, .times = t->times,
				.time = INT64_MAX, .loose = t->kind == MS_LOOSE};
			f->ncalls++;
		} else {
			c--;
		}
		c->n++;
		if (t->kind != MS_LOOSE && t->n.time >= 0 && t->n.time < c->time)
			c->time = t->n.time;
		f->timed |= c->time != INT64_MAX;
		c->at = t->at < c->at ? t->at : c->at;
	}
	if (f->ncalls > 0)
		qsort(f->calls, f->ncalls, sizeof *f->calls, by_start);
	if (f->order != NULL)
		place_calls(f);
	return 0;
}

int
acc_ms_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const struct ms_place *p,
	struct ms_count *count, struct acc_err *e)
{
	struct ms_folder f = {.c = c, .dirfd = dirfd, .dir = dir, .order = p->order, .count = count};
	read_mapping(&f);
	read_sheet(&f);
	int rc = gather(&f, e);
	if (rc == 0)
		rc = add_rows(&f, e);
	if (rc == 0)
		rc = make_calls(&f, e);
	if (rc == 0)
		rc = acc_ms_put(&f, p, e);
	acc_dump_say_rest(&f.said, c, dir);
	acc_buf_release(&f.tensors);
	acc_map_release(&f.mapped);
	free(f.sheet.row);
	acc_arena_release(&f.one);
	acc_arena_release(&f.mem);
	return rc;
}

int64_t
acc_ms_first_time(int dirfd)
{
	struct ms_folder f = {.dirfd = dirfd};
	int64_t first = INT64_MAX;
	if (gather(&f, NULL) == 0)
		for (size_t i = 0; i < ms_ntensors(&f); i++) {
			const struct ms_tensor *t = &ms_tensors(&f)[i];
			if (t->kind != MS_LOOSE && t->n.time >= 0 && t->n.time < first)
				first = t->n.time;
		}
	acc_buf_release(&f.tensors);
	acc_arena_release(&f.mem);
	return first;
}
