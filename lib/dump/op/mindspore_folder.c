/* The tensors of one iteration of one graph: what files and statistic.csv say of them is joined,
 * put in order, and handed on. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/order.h"
#include "dump/op/mindspore_folder.h"
#include "io/csv.h"

static const uint32_t NOROW = UINT32_MAX;

static bool
has(const struct ms_folder *f, const char *name, struct acc_err *e)
{
	char path[2 * PATH_MAX];
	int rc = acc_dir_has(f->dirfd, name, e);
	snprintf(path, sizeof path, "%s/%s", f->dir, name);
	if (rc < 0)
		acc_err_in(e, path);
	return rc > 0;
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
	struct acc_csv *csv = NULL;
	if (has(f, "mapping.csv", &e))
		csv = acc_csv_open(open_file(f, "mapping.csv", &e), &e);
	while (csv != NULL && (rc = acc_csv_next(csv, &cell, &n, &e)) > 0) {
		struct acc_str to = n < 2 ? (struct acc_str){"", 0} : cell[1];
		if (acc_str_ends(to, ".npy"))
			to.n -= 4;
		char *p = acc_arena_copy(&f->mem, to.p, to.n);
		struct acc_str from = cell[0];
		if (acc_str_ends(from, ".npy"))
			from.n -= 4;
		if (p == NULL || (to.n > 0 && acc_map_put(&f->mapped, from, (uintptr_t)p) == NULL))
			acc_nomem(&e);
	}
	acc_csv_close(csv);
	if (e.code != 0)
		acc_dump_trouble(f->c, &e);
}

static void
read_sheet(struct ms_folder *f)
{
	struct acc_err e = {0};
	struct acc_bytes *b = NULL;
	if (has(f, "statistic.csv", &e))
		b = open_file(f, "statistic.csv", &e);
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
	return acc_buf_add(&f->tensors, t, sizeof *t) < 0 ? acc_nomem(e) : 0;
}

/* {op_type}.{op_name}.json */
static bool
is_args(struct acc_str s, struct ms_name *n)
{
	const char *dot = s.n == 0 ? NULL : memchr(s.p, '.', s.n);
	*n = (struct ms_name){.task = -1,
		.stream = -1,
		.time = -1,
		.slot = -1,
		.format = {"", 0},
		.dtype = {"", 0}};
	if (dot == NULL || dot == s.p || dot == s.p + s.n - 1 || acc_str_starts(s, "acl_dump_"))
		return false;
	n->type = (struct acc_str){s.p, (uint32_t)(dot - s.p)};
	n->op = (struct acc_str){dot + 1, s.n - n->type.n - 1};
	return true;
}

/* What a file of this name is. 1; 0: nothing of ours; < 0. */
static int
classify(struct ms_folder *f, const char *file, struct ms_tensor *t)
{
	struct ms_name n, *keep;
	*t = (struct ms_tensor){.file = file, .name = acc_str(file), .row = NOROW};
	const bool npy = acc_str_ends(t->name, ".npy"), json = acc_str_ends(t->name, ".json");
	t->name.n -= npy ? 4 : json ? 5 : 0;
	const uint64_t *to = acc_map_get(&f->mapped, t->name);
	if (to != NULL)
		t->name = acc_str((const char *)(uintptr_t)*to);
	if (npy)
		t->kind = acc_ms_name(t->name, &n) ? MS_TENSOR : MS_LOOSE;
	else if (json && acc_ms_name(t->name, &n) && acc_str_is(n.type, "Opdebug"))
		t->kind = MS_DEBUG;
	else if (json && is_args(t->name, &n))
		t->kind = MS_ARGS;
	else if (!json && acc_ms_name_all(t->name, &n))
		t->kind = acc_str_is(n.type, "Opdebug") ? MS_DEBUG : MS_ALL;
	else
		return 0;
	if (t->kind == MS_LOOSE)
		return 1;
	keep = acc_alloc(&f->mem, sizeof *keep);
	if (keep == NULL)
		return ACC_ENOMEM;
	*keep = n;
	t->n = keep;
	return 1;
}

static int
gather(struct ms_folder *f, struct acc_err *e)
{
	const char **names;
	int64_t n = acc_dir_list(f->dirfd, &names, &f->mem, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct ms_tensor t;
		rc = classify(f, names[i], &t);
		f->files += rc > 0 &&
			    (t.kind == MS_TENSOR || t.kind == MS_ALL || t.kind == MS_LOOSE);
		rc = rc > 0 ? add(f, &t, e) : rc < 0 ? acc_nomem(e) : 0;
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
		(uint64_t)n->slot, (uint64_t)n->io, exact ? (uint64_t)n->task : 0,
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
		return acc_nomem(e);
	for (size_t i = 0; i < n; i++)
		if (t[i].kind == MS_TENSOR && t[i].row == NOROW)
			m[k++] = (struct mate){identity(t[i].n, exact), t[i].n->time, (uint32_t)i,
				false};
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
	int rc = taken == NULL ? acc_nomem(e) : 0;
	if (rc == 0 && f->files > 0)
		rc = join(f, taken, true, e);
	if (rc == 0 && f->files > 0)
		rc = join(f, taken, false, e);
	for (size_t i = 0; i < f->sheet.n && rc == 0; i++) {
		const struct ms_tensor t = {.kind = MS_TENSOR,
			.n = &f->sheet.row[i].n,
			.row = (uint32_t)i};
		if (!taken[i])
			rc = add(f, &t, e);
	}
	free(taken);
	return rc;
}

/* --- op calls --- */

/* The time of a tensor; loose files have none. */
static int64_t
time_of(const struct ms_tensor *t)
{
	return t->n == NULL ? -1 : t->n->time;
}

static int
by_slot(const struct ms_tensor *x, const struct ms_tensor *y)
{
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->n == NULL || y->n == NULL)
		return 0;
	if (x->n->io != y->n->io)
		return x->n->io < y->n->io ? -1 : 1;
	return (x->n->slot > y->n->slot) - (x->n->slot < y->n->slot);
}

static int
by_place(const void *a, const void *b)
{
	const struct ms_tensor *x = a, *y = b;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	int d = by_slot(x, y);
	if (d != 0)
		return d;
	if (time_of(x) != time_of(y))
		return time_of(x) < time_of(y) ? -1 : 1;
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
	int d = by_slot(x, y);
	return d != 0 ? d : x->at < y->at ? -1 : 1;
}

/* What is said of an overflow belongs to the kernel that was that task of that stream. */
static void
adopt_debug(struct ms_tensor *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; t[i].kind == MS_DEBUG && k < n; k++)
			if ((t[k].kind == MS_TENSOR || t[k].kind == MS_ALL) &&
				t[k].n->task == t[i].n->task && t[k].n->stream == t[i].n->stream) {
				t[i].n = t[k].n;
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
		const uint64_t id[2] = {acc_hash(t[i].n->type.p, t[i].n->type.n),
			acc_hash(t[i].n->op.p, t[i].n->op.n)};
		uint64_t *at = acc_map_put(&ops, (struct acc_str){(const char *)id, sizeof id},
			ops.n);
		if (at == NULL) {
			acc_map_release(&ops);
			return acc_nomem(e);
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
	struct ms_tensor *t = ms_tensors(f);
	size_t n = ms_ntensors(f);
	adopt_debug(t, n);
	int rc = number_ops(f, e);
	if (rc < 0 || n == 0)
		return rc;
	qsort(t, n, sizeof *t, by_place);
	for (size_t i = 1; i < n; i++)
		if (t[i].kind != MS_DEBUG && t[i].op == t[i - 1].op &&
			by_slot(&t[i], &t[i - 1]) == 0)
			t[i].times = t[i - 1].times + 1;
	qsort(t, n, sizeof *t, by_call);
	return 0;
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

/* A kernel that an operator was expanded to: those of one name and run, and where it stands in the order; how many of the
 * kernels of no such operator ran before it. */
struct expanded {
	uint64_t name;
	uint32_t place, call, before;
};

ACC_ORDER_3(by_name_place, struct expanded, name, place, call)

/* How far such a kernel, by when it ran, is from a place: in kernels whose names are known. */
static uint64_t
off_place(const struct expanded *e, uint32_t place, const uint32_t *before)
{
	return (uint64_t)llabs((long long)before[place] - (long long)e->before);
}

static bool
is_expanded(const struct ms_folder *f, const struct ms_call *c, uint64_t *name)
{
	static const char start[] = "Expand__", number[] = "-op";
	const struct acc_str op = f->first[c->first].n == NULL || c->loose
					  ? (struct acc_str){"", 0}
					  : f->first[c->first].n->op;
	uint32_t end = op.n;
	while (end > 0 && op.p[end - 1] >= '0' && op.p[end - 1] <= '9')
		end--;
	*name = acc_hash((uint64_t[]){acc_hash(op.p, end), c->times}, 16);
	return acc_str_starts(op, start) && c->time != INT64_MAX && c->scoped.n > 0 &&
	       end > sizeof number && memcmp(op.p + end - 3, number, 3) == 0;
}

/* The expanded calls, in v; before[place]: how many of the others stand before it in a run. */
static size_t
list_expanded(const struct ms_folder *f, struct expanded *v, uint32_t *before, uint32_t places)
{
	uint32_t ran = 0, times = 0;
	uint64_t name;
	size_t n = 0;
	for (size_t i = 0; i < f->ncalls; i++) {
		const struct ms_call *c = &f->calls[i];
		ran = c->times == times ? ran : 0;
		times = c->times;
		if (is_expanded(f, c, &name)) {
			v[n++] = (struct expanded){name, c->place, (uint32_t)i, ran};
			continue;
		}
		ran += !c->loose && c->place < places;
		if (!c->loose && c->place + 1 < places && c->times == 0)
			before[c->place + 1]++;
	}
	for (uint32_t p = 1; p < places; p++)
		before[p] += before[p - 1];
	return n;
}

/* The kernels of expanded operators (Expand__SumExt_ReduceSum-op0) may have other numbers in the order of execution than
 * in the names of files: among those of one name the times of files tell, where the numbers fit these less. What is given
 * early may run early. The calls stand in the order of their times. Behaviour ms-expand-renumbered. */
static int
place_expanded(struct ms_folder *f, struct acc_err *e)
{
	const uint32_t places = f->order->n + 2;
	struct expanded *v = acc_alloc(&f->mem, 2 * (f->ncalls + 1) * sizeof *v), *to;
	uint32_t *before = acc_alloc(&f->mem, places * sizeof *before);
	if (v == NULL || before == NULL)
		return acc_nomem(e);
	memset(before, 0, places * sizeof *before);
	const size_t n = list_expanded(f, v, before, places);
	to = v + n;
	memcpy(to, v, n * sizeof *v);
	for (size_t i = 0; i < n; i++) /* as they ran */
		to[i].place = to[i].call;
	qsort(v, n, sizeof *v, by_name_place);
	qsort(to, n, sizeof *to, by_name_place);
	for (size_t i = 0, k; i < n; i = k) {
		uint64_t own = 0, timed = 0;
		for (k = i; k < n && v[k].name == v[i].name; k++) {
			own += off_place(&v[k], v[k].place, before);
			timed += off_place(&to[k], v[k].place, before);
		}
		for (size_t j = i; j < k && timed < own; j++)
			f->calls[to[j].call].place = v[j].place;
	}
	return 0;
}

/* What the order of execution does not name stands behind what ran before it. */
static int
place_calls(struct ms_folder *f, struct acc_err *e)
{
	uint32_t place = 0, times = 0;
	for (size_t i = 0; i < f->ncalls; i++) {
		struct ms_call *c = &f->calls[i];
		const uint64_t *at = c->loose
					     ? NULL
					     : acc_map_get(&f->order->at, f->first[c->first].n->op);
		if (at != NULL) {
			place = (uint32_t)*at + 1;
			times = c->times;
			c->scoped = f->order->name[*at];
		}
		c->place = place;
		c->times = times;
	}
	const int rc = place_expanded(f, e);
	if (f->ncalls > 0)
		qsort(f->calls, f->ncalls, sizeof *f->calls, by_order);
	return rc;
}

/* MindSpore adds to what lies in a folder: where an iteration ran more than once, the last time is meant. It begins
 * with the first of the calls that each time made one. Behaviour ms-runs-in-one-folder. */
static int
keep_last_run(struct ms_folder *f, uint32_t runs, struct acc_err *e)
{
	uint32_t *ran = runs < 2 ? NULL : acc_alloc(&f->mem, (f->ncalls + 1) * sizeof *ran);
	int64_t begin = INT64_MAX;
	size_t n = 0;
	if (runs < 2 || ran == NULL)
		return runs < 2 ? 0 : acc_nomem(e);
	memset(ran, 0, (f->ncalls + 1) * sizeof *ran);
	for (size_t i = 0; i < f->ncalls; i++)
		if (!f->calls[i].loose)
			ran[f->first[f->calls[i].first].op]++;
	for (size_t i = 0; i < f->ncalls; i++) {
		const struct ms_call *c = &f->calls[i];
		if (!c->loose && c->times + 1 == runs && c->time < begin &&
			ran[f->first[c->first].op] == runs)
			begin = c->time;
	}
	if (begin == INT64_MAX)
		return 0;
	acc_dump_note(f->c, f->dir,
		"%u runs wrote here, one on top of another: the last is read; record each into a folder of its own (%s)",
		runs, "ms-runs-in-one-folder");
	for (size_t i = 0; i < f->ncalls; i++) {
		struct ms_call c = f->calls[i];
		const uint32_t each = c.loose ? 0 : ran[f->first[c.first].op] / runs;
		if (!c.loose && c.time < begin)
			continue;
		c.times -= c.times < each * (runs - 1) ? c.times : each * (runs - 1);
		f->calls[n++] = c;
	}
	f->ncalls = n;
	return 0;
}

/* Does the i-th tensor belong to the op call of the one before it? */
static bool
same_call(const struct ms_tensor *t, size_t i)
{
	return i > 0 && t[i].kind != MS_LOOSE && t[i - 1].op == t[i].op &&
	       t[i - 1].times == t[i].times;
}

static int
make_calls(struct ms_folder *f, uint32_t runs, struct acc_err *e)
{
	size_t n = ms_ntensors(f), calls = 1;
	int rc = number_calls(f, e);
	f->first = ms_tensors(f);
	for (size_t i = 0; i < n && rc == 0; i++)
		calls += !same_call(f->first, i);
	f->calls = acc_alloc(&f->mem, calls * sizeof *f->calls);
	if (rc < 0 || f->calls == NULL)
		return rc < 0 ? rc : acc_nomem(e);
	for (size_t i = 0; i < n; i++) {
		const struct ms_tensor *t = &f->first[i];
		struct ms_call *c = &f->calls[f->ncalls];
		if (!same_call(f->first, i)) {
			*c = (struct ms_call){.first = (uint32_t)i,
				.at = t->at,
				.times = t->times,
				.time = INT64_MAX,
				.loose = t->kind == MS_LOOSE};
			f->ncalls++;
		} else {
			c--;
		}
		c->n++;
		if (time_of(t) >= 0 && time_of(t) < c->time)
			c->time = time_of(t);
		f->timed |= c->time != INT64_MAX;
		c->at = t->at < c->at ? t->at : c->at;
	}
	if (f->ncalls > 0)
		qsort(f->calls, f->ncalls, sizeof *f->calls, by_start);
	rc = keep_last_run(f, runs, e);
	return rc == 0 && f->order != NULL ? place_calls(f, e) : rc;
}

int
acc_ms_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const struct ms_place *p,
	struct ms_count *count, struct acc_err *e)
{
	struct ms_folder f = {.c = c,
		.dirfd = dirfd,
		.dir = dir,
		.order = p->order,
		.count = count,
		.cpu = p->device == NULL || strcmp(p->device, "cpu") == 0};
	read_mapping(&f);
	read_sheet(&f);
	int rc = gather(&f, e);
	if (rc == 0)
		rc = add_rows(&f, e);
	if (rc == 0)
		rc = make_calls(&f, p->runs, e);
	if (rc == 0)
		rc = acc_ms_put(&f, p, e);
	acc_dump_say_rest(&f.said, c, dir);
	acc_buf_release(&f.tensors);
	acc_map_release(&f.mapped);
	acc_map_release(&f.made);
	free(f.sheet.row);
	acc_arena_release(&f.one);
	acc_arena_release(&f.mem);
	return rc;
}

int
acc_ms_first_time(int dirfd, int64_t *first, struct acc_err *e)
{
	struct ms_folder f = {.dirfd = dirfd};
	int rc = gather(&f, e);
	*first = INT64_MAX;
	for (size_t i = 0; rc == 0 && i < ms_ntensors(&f); i++) {
		const struct ms_tensor *t = &ms_tensors(&f)[i];
		if (time_of(t) >= 0 && time_of(t) < *first)
			*first = time_of(t);
	}
	acc_buf_release(&f.tensors);
	acc_arena_release(&f.mem);
	return rc;
}
