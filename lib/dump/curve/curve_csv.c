/* Curves in CSV: what the pages of TensorBoard and W&B save, W&B's history, MLflow's metrics,
 * msprobe's monitor, and whatever has a column of steps and others of numbers. */
#include <fcntl.h>
#include <limits.h>
#include <strings.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/curve/curve_csv.h"
#include "dump/curve/log_pairs.h"
#include "dump/curve/log_place.h"
#include "dump/place.h"
#include "dump/say.h"
#include "io/csv.h"

struct sheet {
	bool commas; /* numbers have a comma for a point */
	struct curves cv;
	const char *path;
	struct acc_csv *csv;
	struct acc_arena mem;
	struct column *col;
	size_t n;
	int step, name, value, micro, stage, run, rank, scope,
		shape;         /* columns; -1: there is none */
	bool monitor;          /* of msprobe, */
	struct acc_str prefix; /* which stands before its tags */
	enum curve_class cls;
	uint64_t points;
	int64_t row;       /* so far, where no column is one of steps */
	uint64_t last_run; /* hash of the run and rank of the row before */
	bool guarded;      /* said that rows of one step are of several things */
	int epoch; /* a column beside that of steps, which may count anew in each; -1; BY_EPOCH */
	bool part; /* the column of steps is of a batch within its epoch */
	struct log_count count;
	struct dump_said said;
	const char *head, *end; /* the file's first bytes */
};

static const char *const steps[] = {"step", "_step", "global_step", "iteration", "iter", "steps",
	"trainer/global_step", "current_steps",
	/* of stable-baselines3 and RLlib */
	"time/total_timesteps", "total_timesteps", "timesteps_total", "training_iteration",
	"total timesteps", NULL};
static const char *const part_steps[] = {"global_step", "total_timesteps", "total_steps",
	"timesteps", "steps", "step", "iteration", "iter", NULL};
static const char *const weak_steps[] = {"index", "epoch", "episode", NULL};
static const char *const counted[] = {"episode", "index", NULL};
static const char *const epochs[] = {"epoch", NULL};
static const char *const parts[] = {"batch", "batch_idx", "batch_id", "i", NULL};
static const char *const names_of[] = {"tag", "key", "metric", NULL};
static const char *const values[] = {"value", NULL};

static int
find(const struct acc_str *f, size_t n, const char *const *names)
{
	for (; *names != NULL; names++)
		for (size_t i = 0; i < n; i++) {
			struct acc_str s = acc_str_trim(f[i]);
			if (strlen(*names) == s.n && strncasecmp(*names, s.p, s.n) == 0)
				return (int)i;
		}
	return -1;
}

/* "total/steps", "train/global_step": behind a slash. */
static int
find_part(const struct acc_str *f, size_t n, const char *const *names)
{
	for (; *names != NULL; names++)
		for (size_t i = 0; i < n; i++) {
			const struct acc_str s = acc_str_trim(f[i]);
			const size_t len = strlen(*names);
			if (s.n > len && s.p[s.n - len - 1] == '/' &&
				strncasecmp(*names, s.p + s.n - len, len) == 0)
				return (int)i;
		}
	return -1;
}

static bool
is_monitor(const struct acc_str *f, size_t n)
{
	return n > 3 && acc_str_is(f[0], "vpp_stage") && acc_str_is(f[1], "name") &&
	       acc_str_is(f[2], "step");
}

/* Of the monitor's second version, a row is of a module and of what it took, made, ... (scope). */
static bool
is_monitor_v2(const struct acc_str *f, size_t n)
{
	return n > 4 && acc_str_is(f[0], "vpp_stage") && acc_str_is(f[1], "step") &&
	       acc_str_is(f[2], "module_name") && acc_str_is(f[3], "scope");
}

/* A loss among the names: what was logged, if no row says when. */
static bool
has_loss(const struct acc_str *f, size_t n)
{
	bool found = false;
	for (size_t i = 0; i < n; i++)
		found = found || acc_log_is_loss(acc_str_trim(f[i]));
	return found;
}

/* Which columns are no curves of their own. < 0: none is one of steps. */
static int
roles(struct sheet *s, const struct acc_str *f, size_t n, struct acc_err *e)
{
	static const char *const runs[] = {"run", "run_uuid", "run_id", NULL};
	static const char *const ranks[] = {"rank", "global_rank", NULL};
	bool second = is_monitor_v2(f, n);
	s->monitor = is_monitor(f, n) || second;
	static const char *const shapes[] = {"shape", NULL};
	s->name = s->stage = s->micro = s->run = s->scope = s->rank = s->shape = -1;
	s->step = find(f, n, steps);
	s->epoch = find(f, n, epochs);
	/* "episode,reward,steps": how long each was. */
	const int whole = find(f, n, counted);
	if (s->step >= 0 && whole >= 0 &&
		acc_csv_falls(s->head, s->end, whole) < acc_csv_falls(s->head, s->end, s->step))
		s->step = whole;
	if (s->step < 0 && s->epoch >= 0 && (s->step = find(f, n, parts)) >= 0)
		s->part = true;
	if (s->step < 0)
		s->step = find_part(f, n, part_steps);
	if (s->step < 0)
		s->step = find(f, n, weak_steps);
	if (s->step == s->epoch)
		s->epoch = s->step < 0 ? -1 : BY_EPOCH;
	if (n < 2 || (s->step < 0 && !has_loss(f, n)))
		return acc_fail(e, ACC_EFORMAT, "no curves: no column is one of steps");
	s->value = find(f, n, values);
	if (s->monitor) {
		int next = second ? 4 : 3;
		s->stage = 0;
		s->name = second ? 2 : 1;
		s->scope = second ? 3 : -1;
		s->micro = acc_str_is(f[next], "micro_step") ? next : -1;
		s->cls = CURVE_MONITOR;
		s->shape = find(f, n, shapes);
	} else if (s->value >= 0 && (s->name = find(f, n, names_of)) >= 0) {
		s->run = find(f, n, runs);
	} else {
		s->run = find(f, n, runs);
	}
	if (!s->monitor)
		s->rank = find(f, n, ranks);
	return 0;
}

/* Is there nothing of a curve in the i-th column? */
static bool
left_out(const struct sheet *s, int i, struct acc_str name)
{
	if (i == s->step || i == s->name || i == s->stage || i == s->micro || i == s->run ||
		i == s->scope || i == s->rank)
		return true;
	if (s->monitor)
		return acc_str_is(name, "shape") || acc_str_is(name, "dtype");
	return name.n == 0 || acc_str_is(name, "Wall time") || (s->name >= 0 && i != s->value);
}

/* What the header says of each column. */
static int
columns(struct sheet *s, const struct acc_str *f, size_t n, const char *file, struct acc_err *e)
{
	struct acc_str stem = acc_str(file);
	int rc = roles(s, f, n, e);
	if (rc < 0)
		return rc;
	if (acc_str_ends(stem, ".csv"))
		stem.n -= 4;
	s->n = n;
	s->col = acc_alloc(&s->mem, n * sizeof *s->col);
	stem.p = acc_arena_copy(&s->mem, stem.p, stem.n);
	if (s->col == NULL || stem.p == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < n; i++) {
		struct column *c = &s->col[i];
		struct acc_str name = acc_str_trim(f[i]);
		*c = (struct column){.leave = left_out(s, (int)i, name),
			.last = INT64_MIN,
			.whole = INT64_MIN};
		c->tag = acc_arena_str(&s->mem, name);
		if (c->tag.p == NULL)
			return acc_nomem(e);
		if (s->name < 0 && s->value >= 0 && n <= 3 && !c->leave)
			acc_csv_from_name(stem, c);
		else if (s->name < 0)
			acc_csv_from_wandb(c);
	}
	s->prefix = s->monitor ? acc_csv_kind(stem) : stem;
	return 0;
}

static void
trouble(struct sheet *s, const char *what, struct acc_str text)
{
	struct acc_err bad = {0};
	acc_fail(&bad, ACC_EFORMAT, "line %llu: %s '%.*s'",
		(unsigned long long)acc_csv_line(s->csv), what, text.n < 60 ? (int)text.n : 60,
		text.p);
	acc_err_in(&bad, s->path);
	acc_dump_say(&s->said, s->cv.c, &bad);
}

/* The tag of a row that names what its numbers are of: PREFIX/NAME/COLUMN of the monitor. */
static struct acc_str
row_tag(struct sheet *s, const struct acc_str *f, const struct column *c, char *buf, size_t size)
{
	struct acc_literal l;
	struct acc_str name = f[s->name];
	if (!s->monitor)
		return name;
	const struct acc_str scope = s->scope >= 0 ? f[s->scope] : (struct acc_str){"", 0};
	int n = snprintf(buf, size, "%.*s%s%.*s%s%.*s/%.*s", ACC_PRS(s->prefix),
		s->prefix.n > 0 ? "/" : "", ACC_PRS(name), scope.n > 0 ? "/" : "", ACC_PRS(scope),
		ACC_PRS(c->tag));
	if (n >= 0 && s->stage >= 0 && acc_literal_all(f[s->stage], &l) && l.v > 0 && n < (int)size)
		n += snprintf(buf + n, size - (size_t)n, "/vpp%.*s", ACC_PRS(f[s->stage]));
	if (s->micro >= 0 && n < (int)size)
		n += snprintf(buf + n, size - (size_t)n, "/micro%.*s", ACC_PRS(f[s->micro]));
	return (struct acc_str){buf, n < (int)size ? (uint32_t)n : (uint32_t)size - 1};
}

/* A number, by the sheet's point. */
static bool
number(const struct sheet *s, struct acc_str f, struct acc_literal *l)
{
	char plain[64];
	const char *comma = s->commas && f.n > 0 ? memchr(f.p, ',', f.n) : NULL;
	if (comma == NULL || f.n > sizeof plain)
		return acc_literal_all(f, l);
	memcpy(plain, f.p, f.n);
	plain[comma - f.p] = '.';
	return acc_literal_all((struct acc_str){plain, f.n}, l);
}

/* pandas writes a column of integers that has a gap as 3.0 */
static bool
step_of(struct acc_str s, int64_t *step)
{
	struct acc_literal l;
	if (!acc_literal_all(s, &l))
		return false;
	*step = l.i;
	if (l.integer)
		return true;
	if (!(l.v >= -9e15 && l.v <= 9e15) || l.v != floor(l.v))
		return false;
	*step = (int64_t)l.v;
	return true;
}

/* Does the i-th column tell this row from the one before it? By a text, such as a module's name,
 * or by another integer, such as a layer's. */
static bool
tells_apart(const struct column *c, struct acc_str f)
{
	struct acc_literal l;
	if (c->leave || f.n == 0)
		return false;
	if (!acc_literal_all(f, &l))
		return true;
	return l.integer && c->whole != INT64_MIN && c->whole != l.i;
}

/* Which run and rank a row is of. */
static uint64_t
run_of(const struct sheet *s, const struct acc_str *f)
{
	static const struct acc_str none = {"", 0};
	const struct acc_str run = s->run < 0 ? none : f[s->run],
			     rank = s->rank < 0 ? none : f[s->rank];
	const uint64_t id[2] = {acc_hash(run.p, run.n), acc_hash(rank.p, rank.n)};
	return acc_hash(id, sizeof id);
}

/* Steps that begin anew in each epoch are counted through. */
static int64_t
through(struct sheet *s, const struct acc_str *f, int64_t step)
{
	struct log_place at = {.has_step = true, .has_epoch = true, .step = step, .anew = s->part};
	if (s->epoch < 0 || s->monitor || s->name >= 0 || s->run >= 0 ||
		!step_of(f[s->epoch], &at.epoch))
		return step;
	if (!s->part && s->count.seen && step == s->count.step)
		return s->count.through;
	return acc_count_through(&s->count, &at);
}

/* A second row of the same step, told from the first by a column: a layout that is not known. One
 * curve would be made of many. A row is looked at once. */
static void
guard(struct sheet *s, const struct acc_str *f, size_t n, size_t number, int64_t step, bool *looked)
{
	if (s->name >= 0 || s->guarded || s->last_run != run_of(s, f) ||
		s->col[number].last != step || *looked)
		return;
	*looked = true;
	for (size_t i = 0; i < n && !s->guarded; i++)
		if (tells_apart(&s->col[i], f[i])) {
			s->guarded = true;
			trouble(s,
				"several rows of one step, told apart by a column of a layout"
				" that is not known:",
				s->col[i].tag);
		}
}

static int
put_row(struct sheet *s, const struct acc_str *f, size_t n, struct acc_err *e)
{
	char buf[4096];
	struct curve_point p = {.cls = s->cls, .at = acc_csv_line(s->csv), .has_step = true};
	p.epochs = s->epoch == BY_EPOCH;
	struct acc_str run = s->cv.run;
	int last = s->step > s->name ? s->step : s->name, rc = 0;
	bool looked = false;
	if (n != s->n || last >= (int)n) {
		trouble(s, "left out, it has a different number of columns:", f[0]);
		return 0;
	}
	p.counted = s->step < 0;
	if (p.counted) {
		p.step = ++s->row;
	} else if (!step_of(f[s->step], &p.step)) {
		if (f[s->step].n > 0)
			trouble(s, "left out, the step is no integer:", f[s->step]);
		return 0;
	}
	p.step = through(s, f, p.step);
	/* The first version's row of a tensor that is not there has nothing but nan, its shape, too. */
	if (s->shape >= 0 && acc_str_is(f[s->shape], "nan"))
		return 0;
	p.has_rank = s->rank >= 0 && step_of(f[s->rank], &p.rank) && p.rank >= 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct column *c = &s->col[i];
		struct acc_literal l;
		if (c->leave || !number(s, f[i], &l))
			continue;
		guard(s, f, n, i, p.step, &looked);
		c->last = p.step;
		c->whole = l.integer ? l.i : INT64_MIN;
		p.tag = s->name < 0 ? c->tag : row_tag(s, f, c, buf, sizeof buf);
		s->cv.run = c->run.n > 0 ? c->run : s->run >= 0 ? f[s->run] : run;
		p.value = l.v;
		rc = p.tag.n == 0 ? 0 : acc_curve_put(&s->cv, &p, e);
		s->points++;
	}
	s->last_run = run_of(s, f);
	s->cv.run = run;
	return rc;
}

static int
rows(struct sheet *s, const struct curve_file *file, const char *run, struct acc_err *e)
{
	const struct acc_str *f;
	size_t n;
	int rc = acc_csv_next(s->csv, &f, &n, e);
	if (rc == 0)
		return acc_fail(e, ACC_EFORMAT, "no curves: the file is empty");
	if (rc > 0)
		rc = columns(s, f, n, file->name, e);
	/* The monitor begins a file every few steps: they are one run. */
	const char *slash = strrchr(file->dir, '/');
	if (s->monitor && run == NULL && slash != NULL)
		s->cv.run = acc_str(slash + 1);
	while (rc >= 0 && (rc = acc_csv_next(s->csv, &f, &n, e)) > 0) {
		if (!acc_csv_cut(s->csv))
			rc = put_row(s, f, n, e);
		else
			acc_curve_cut(s->cv.c, s->path, acc_csv_line(s->csv));
	}
	return rc;
}

/* msprobe's monitor: TIME-rank3-ID/grad_reduced_0-9.csv, rank_3/..., module_rank3.csv */
static int64_t
rank_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *p = strstr(slash == NULL ? path : slash, "rank");
	char number[24];
	if (p == NULL)
		return -1;
	p += strlen("rank");
	p += *p == '_';
	snprintf(number, sizeof number, "%.*s", (int)strspn(p, "0123456789"), p);
	return acc_dump_place_number(number, "");
}

/* An open file. `run`: that of a whole folder, or NULL. */
static int
read_file(struct acc_dump_ctx *c, struct curve_file *f, const char *path, const char *run,
	struct acc_err *e)
{
	struct sheet s = {.path = path, .cls = CURVE_GUESS};
	struct acc_source src = {.root = f->dir,
		.format = "csv",
		.task = "curves",
		.step = -1,
		.rank = rank_of(f->dir),
		.proc = -1};
	if (src.rank < 0)
		src.rank = rank_of(f->name);
	s.csv = acc_csv_open(f->b, e);
	if (s.csv != NULL) {
		const uint8_t *head;
		const size_t n = acc_bytes_peek(f->b, &head);
		const char sep = acc_csv_divides((const char *)head, (const char *)head + n);
		s.head = (const char *)head;
		s.end = s.head + n;
		acc_csv_separator(s.csv, sep);
		s.commas = sep == ';';
	}
	int rc = s.csv == NULL ? (e != NULL ? e->code : ACC_EIO)
			       : acc_curves_start(&s.cv, c, &src, run != NULL ? run : f->run,
					 f->name, ':', e);
	if (rc == 0)
		rc = rows(&s, f, run, e);
	if (rc == 0)
		acc_curve_grown(c, f->b, path);
	acc_dump_say_rest(&s.said, c, path);
	if (rc == 0 && s.points == 0)
		rc = acc_fail(e, ACC_EFORMAT, "no curves: no column holds numbers");
	acc_csv_close(s.csv);
	acc_curves_release(&s.cv);
	acc_arena_release(&s.mem);
	return rc;
}

/* The names in a file's first bytes, without their quotes; their number. */
static size_t
header(const char *p, const char *end, struct acc_str *f, size_t max)
{
	size_t n = 0;
	bool quoted = false;
	const char sep = acc_csv_divides(p, end);
	if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		p += 3;
	for (const char *start = p; p < end && n < max; p++) {
		if (*p == '\0')
			return 0;
		quoted = quoted != (*p == '"');
		if (quoted || (*p != sep && *p != '\n'))
			continue;
		struct acc_str s = acc_str_trim((struct acc_str){start, (uint32_t)(p - start)});
		if (s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"')
			s = (struct acc_str){s.p + 1, s.n - 2};
		f[n++] = s;
		start = p + 1;
		if (*p == '\n')
			break;
	}
	return n;
}

/* A file of msprobe's monitor? */
static int
has_monitor(int dirfd, const char *name, struct acc_err *e)
{
	char head[64] = "";
	struct acc_str f[5];
	if (!acc_str_ends(acc_str(name), ".csv"))
		return 0;
	struct acc_err bad = {0};
	int64_t n = acc_file_head(dirfd, name, head, sizeof head, &bad);
	if (n < 0 && n != ACC_EREFUSED)
		return acc_fail(e, (int)n, "%s", bad.msg);
	size_t names = n > 0 ? header(head, head + n, f, 5) : 0;
	return is_monitor(f, names) || is_monitor_v2(f, names);
}

/* The monitor's files in a folder, by their steps; their number, or < 0. fn may be NULL. */
static int
monitors(int dirfd, int (*fn)(void *arg, int dirfd, const char *name), void *arg, struct acc_err *e)
{
	const char **names;
	struct acc_arena m = {0};
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	int found = 0, rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0 && (fn != NULL || found == 0); i++) {
		rc = has_monitor(dirfd, names[i], e);
		found += rc > 0;
		if (rc > 0)
			rc = fn != NULL ? fn(arg, dirfd, names[i]) : 0;
	}
	acc_arena_release(&m);
	return rc < 0 ? rc : found;
}

static int
holds(int dirfd, struct acc_err *e)
{
	return monitors(dirfd, NULL, NULL, e);
}

/* rank_3, Nov21_10-00-00-rank3-ID */
static bool
level(const char *name, struct place *p)
{
	p->rank = rank_of(name);
	return p->rank >= 0;
}

static const struct place_rule rule = {level, holds, 1, ".csv"};

struct folder {
	struct acc_dump_ctx *c;
	const char *root, *run;
	struct curve_file f;
	struct acc_err *e;
};

static int
read_monitor(void *arg, int dirfd, const char *name)
{
	struct folder *d = arg;
	char path[2 * PATH_MAX];
	struct acc_err bad = {0};
	d->f.name = name;
	snprintf(path, sizeof path, "%s/%s", d->f.dir, name);
	int rc = acc_curve_open_at(&d->f, dirfd, &bad);
	if (rc == 0)
		rc = read_file(d->c, &d->f, path, d->run, &bad);
	if (rc < 0 && bad.code == 0)
		return rc;
	if (rc < 0) {
		acc_err_in(&bad, path);
		acc_dump_trouble(d->c, &bad);
	}
	return 0;
}

static int
read_place(void *arg, int dirfd, const struct place *p, struct acc_err *e)
{
	struct folder *d = arg;
	if (!acc_dump_wants(d->c, -1, p->rank))
		return 0;
	snprintf(d->f.dir, sizeof d->f.dir, "%s%s", d->root, p->path + 1);
	int rc = monitors(dirfd, read_monitor, d, e);
	return rc < 0 ? rc : 0;
}

static int
read_csv(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char root[PATH_MAX];
	struct folder d = {.c = c, .root = root};
	struct place top = {.path = ".", .step = -1, .rank = -1, .proc = -1};
	int fd, rc = acc_dir_try(path, &fd, e);
	if (rc == 0) {
		rc = acc_curve_open(&d.f, path, e);
		return rc < 0 ? rc : read_file(c, &d.f, path, NULL, e);
	}
	if (rc < 0)
		return rc;
	rc = realpath(path, root) == NULL ? acc_fail(e, ACC_EIO, "cannot find the folder:") : 0;
	const char *slash = rc < 0 ? NULL : strrchr(root, '/');
	d.run = slash == NULL ? "" : slash + 1;
	if (rc == 0)
		rc = acc_dump_each_place(fd, &top, &rule, read_place, &d, e);
	close(fd);
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	struct acc_str f[64];
	const char *head = (const char *)p->head;
	bool named = acc_str_ends(p->base, ".csv");
	if (p->is_dir)
		return acc_dump_probe_places(p, &rule, 80);
	size_t n = p->nhead == 0 ? 0 : header(head, head + p->nhead, f, 64);
	if (n < 2)
		return 0;
	if (is_monitor(f, n) || is_monitor_v2(f, n) ||
		(acc_str_is(f[0], "Wall time") && find(f, n, steps) == 1))
		return 90;
	if (find(f, n, steps) >= 0)
		return named ? 70 : 40;
	if (named && find_part(f, n, part_steps) >= 0)
		return 60;
	return named && find(f, n, weak_steps) == 0                                     ? 50
	       : has_loss(f, n) && (named || acc_csv_numbers(head, head + p->nhead, n)) ? 30
											: 0;
}

const struct acc_dump acc_dump_curve_csv = {
	.name = "csv",
	.help = "curves in CSV: TensorBoard, W&B, msprobe's monitor, a column of steps",
	.probe = probe,
	.read = read_csv,
};
