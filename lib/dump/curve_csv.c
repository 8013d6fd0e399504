/* Curves in CSV: what the pages of TensorBoard and W&B save, W&B's history, MLflow's metrics,
 * msprobe's monitor, and whatever has a column of steps and others of numbers. */
#include <unistd.h>

#include "dump/curve.h"
#include "dump/place.h"
#include "dump/say.h"
#include "io/csv.h"

enum { COLUMNS = 65536 };

/* How a column is used. */
enum use { LEAVE, VALUE };

struct column {
	enum use use;
	struct acc_str tag; /* VALUE: of the column, or what stands behind the row's name */
	struct acc_str run; /* n is 0: that of the file */
};

struct sheet {
	struct curves cv;
	const char *path;
	struct acc_csv *csv;
	struct acc_arena mem;
	struct column *col;
	size_t n;
	int step, name, value, micro, stage, run; /* columns; -1: there is none */
	struct acc_str prefix;                    /* of the tags of msprobe's monitor */
	enum curve_class cls;
	uint64_t points;
	struct dump_said said;
};

static bool
is(struct acc_str s, const char *const *names)
{
	s = acc_str_trim(s);
	for (; *names != NULL; names++)
		if (strlen(*names) == s.n && strncasecmp(*names, s.p, s.n) == 0)
			return true;
	return false;
}

static const char *const steps[] = {"step", "_step", "global_step", "iteration", "iter", "steps",
	"trainer/global_step", "current_steps", NULL};
static const char *const weak_steps[] = {"index", "epoch", NULL};
static const char *const names_of[] = {"tag", "key", "metric", NULL};
static const char *const values[] = {"value", NULL};

static int
find(const struct acc_str *f, size_t n, const char *const *names)
{
	for (; *names != NULL; names++) {
		const char *const one[] = {*names, NULL};
		for (size_t i = 0; i < n; i++)
			if (is(f[i], one))
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

/* A copy that outlives the record. */
static struct acc_str
keep(struct sheet *s, struct acc_str t)
{
	return (struct acc_str){acc_arena_copy(&s->mem, t.p, t.n), t.n};
}

/* "run-RUN-tag-TAG.csv", as TensorBoard's page names what it saves. */
static void
from_name(struct sheet *s, struct acc_str stem, struct column *c)
{
	static const char mid[] = "-tag-";
	c->tag = stem;
	if (!acc_str_starts(stem, "run-"))
		return;
	const char *p = memmem(stem.p, stem.n, mid, sizeof mid - 1);
	if (p == NULL || p + sizeof mid - 1 == stem.p + stem.n)
		return;
	c->run = (struct acc_str){stem.p + 4, (uint32_t)(p - stem.p) - 4};
	p += sizeof mid - 1;
	c->tag = (struct acc_str){p, (uint32_t)(stem.p + stem.n - p)};
	(void)s;
}

/* "run - metric", as W&B's page names its columns. The columns of least and largest value of
 * what it drew as one point say nothing new. */
static void
wandb_column(struct column *c, struct acc_str t)
{
	const char *p = NULL;
	for (uint32_t i = 0; i + 3 < t.n; i++)
		if (memcmp(t.p + i, " - ", 3) == 0)
			p = t.p + i;
	c->tag = t;
	if (acc_str_ends(t, "__MIN") || acc_str_ends(t, "__MAX"))
		c->use = LEAVE;
	if (p == NULL)
		return;
	c->run = (struct acc_str){t.p, (uint32_t)(p - t.p)};
	c->tag = (struct acc_str){p + 3, (uint32_t)(t.p + t.n - p - 3)};
	if (c->tag.n > 0 && c->tag.p[0] == '_')
		c->use = LEAVE;
}

/* What the header says of each column. */
static int
columns(struct sheet *s, const struct acc_str *f, size_t n, const char *file,
	struct acc_err *e)
{
	bool monitor = is_monitor(f, n);
	struct acc_str stem = acc_str(file);
	if (acc_str_ends(stem, ".csv"))
		stem.n -= 4;
	s->n = n;
	s->col = acc_alloc(&s->mem, n * sizeof *s->col);
	if (s->col == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	s->step = find(f, n, steps);
	if (s->step < 0)
		s->step = find(f, n, weak_steps);
	if (s->step < 0 || n < 2)
		return acc_fail(e, ACC_EFORMAT, "no curves: no column is one of steps");
	s->name = monitor ? 1 : find(f, n, names_of);
	s->value = find(f, n, values);
	s->stage = monitor ? 0 : -1;
	s->micro = monitor && acc_str_is(f[3], "micro_step") ? 3 : -1;
	s->run = !monitor && s->name >= 0 ? find(f, n, (const char *const[]){"run", "run_uuid",
		"run_id", NULL}) : -1;
	if (!monitor && (s->name < 0 || s->value < 0))
		s->name = -1;
	bool tensorboard = s->name < 0 && s->value >= 0 && n <= 3;
	for (size_t i = 0; i < n; i++) {
		struct acc_str t = keep(s, acc_str_trim(f[i]));
		struct column *c = &s->col[i];
		*c = (struct column){.use = VALUE, .tag = t};
		if (t.p == NULL)
			return acc_fail(e, ACC_ENOMEM, "out of memory");
		int k = (int)i;
		if (k == s->step || k == s->name || k == s->stage || k == s->micro || k == s->run ||
			t.n == 0 || (!monitor && s->name >= 0 && k != s->value) ||
			acc_str_is(t, "Wall time") || (monitor && (acc_str_is(t, "shape") ||
			acc_str_is(t, "dtype"))))
			c->use = LEAVE;
		else if (tensorboard)
			from_name(s, keep(s, stem), c);
		else if (!monitor && s->name < 0)
			wandb_column(c, t);
	}
	if (monitor) {
		/* grad_reduced_0-99.csv */
		s->prefix = keep(s, stem);
		while (s->prefix.n > 0 && strchr("0123456789-", s->prefix.p[s->prefix.n - 1]) != NULL)
			s->prefix.n--;
		while (s->prefix.n > 0 && s->prefix.p[s->prefix.n - 1] == '_')
			s->prefix.n--;
		s->cls = CURVE_METRIC;
	}
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
row_tag(struct sheet *s, const struct acc_str *f, const struct column *c, char *buf,
	size_t size)
{
	struct acc_literal l;
	struct acc_str name = f[s->name];
	if (s->prefix.n == 0)
		return name;
	int n = snprintf(buf, size, "%.*s/%.*s/%.*s", ACC_PRS(s->prefix), ACC_PRS(name),
		ACC_PRS(c->tag));
	if (s->stage >= 0 && acc_literal_all(f[s->stage], &l) && l.v != 0 && n < (int)size)
		n += snprintf(buf + n, size - (size_t)n, "/vpp%.*s", ACC_PRS(f[s->stage]));
	if (s->micro >= 0 && n < (int)size)
		n += snprintf(buf + n, size - (size_t)n, "/micro%.*s", ACC_PRS(f[s->micro]));
	return (struct acc_str){buf, n < (int)size ? (uint32_t)n : (uint32_t)size - 1};
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

static int
put_row(struct sheet *s, const struct acc_str *f, size_t n, struct acc_err *e)
{
	char buf[4096];
	struct curve_point p = {.cls = s->cls, .at = acc_csv_line(s->csv), .has_step = true};
	struct acc_str run = s->cv.run;
	int last = s->step > s->name ? s->step : s->name, rc = 0;
	if (n != s->n || (size_t)last >= n) {
		trouble(s, "left out, it has another number of columns:", f[0]);
		return 0;
	}
	if (!step_of(f[s->step], &p.step)) {
		if (f[s->step].n > 0)
			trouble(s, "left out, the step is no integer:", f[s->step]);
		return 0;
	}
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct column *c = &s->col[i];
		struct acc_literal l;
		if (c->use == LEAVE || !acc_literal_all(f[i], &l))
			continue;
		p.tag = s->name < 0 ? c->tag : row_tag(s, f, c, buf, sizeof buf);
		s->cv.run = c->run.n > 0 ? c->run : s->run >= 0 ? f[s->run] : run;
		p.value = l.v;
		rc = p.tag.n == 0 ? 0 : acc_curve_put(&s->cv, &p, e);
		s->points++;
	}
	s->cv.run = run;
	return rc;
}

static int
rows(struct sheet *s, const char *file, struct acc_err *e)
{
	const struct acc_str *f;
	size_t n;
	int rc = acc_csv_next(s->csv, &f, &n, e);
	if (rc == 0)
		return acc_fail(e, ACC_EFORMAT, "no curves: the file is empty");
	if (rc > 0)
		rc = columns(s, f, n, file, e);
	while (rc >= 0 && (rc = acc_csv_next(s->csv, &f, &n, e)) > 0)
		rc = put_row(s, f, n, e);
	return rc;
}

/* msprobe's monitor: TIME-rank3-ID/grad_reduced_0-9.csv, rank_3/... */
static int64_t
rank_of(const char *dir)
{
	const char *slash = strrchr(dir, '/'), *p = slash == NULL ? NULL : strstr(slash, "rank");
	char number[24];
	if (p == NULL)
		return -1;
	p += strlen("rank");
	p += *p == '_';
	snprintf(number, sizeof number, "%.*s", (int)strspn(p, "0123456789"), p);
	return acc_dump_place_number(number, "");
}

static int
read_csv(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct curve_file f;
	struct sheet s = {.path = path, .cls = CURVE_GUESS};
	int rc = acc_curve_open(&f, path, e);
	if (rc < 0)
		return rc;
	struct acc_source src = {.root = f.dir, .format = "csv", .task = "curves", .step = -1,
		.rank = rank_of(f.dir), .proc = -1};
	s.csv = acc_csv_open(f.b, e);
	rc = s.csv == NULL ? (e != NULL ? e->code : ACC_EIO)
			   : acc_curves_start(&s.cv, c, &src, f.run, f.name, ':', e);
	if (rc == 0)
		rc = rows(&s, f.name, e);
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
	if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		p += 3;
	for (const char *start = p; p < end && n < max; p++) {
		if (*p == '\0')
			return 0;
		quoted = quoted != (*p == '"');
		if (quoted || (*p != ',' && *p != '\n'))
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

static int
probe(const struct acc_probe *p)
{
	struct acc_str f[64];
	const char *head = (const char *)p->head;
	bool named = acc_str_ends(p->base, ".csv");
	if (p->is_dir || p->nhead == 0)
		return 0;
	size_t n = header(head, head + p->nhead, f, 64);
	if (n < 2)
		return 0;
	if (is_monitor(f, n) || (acc_str_is(f[0], "Wall time") && find(f, n, steps) == 1))
		return 90;
	if (find(f, n, steps) >= 0)
		return named ? 70 : 40;
	return named && find(f, n, weak_steps) == 0 ? 50 : 0;
}

const struct acc_dump acc_dump_curve_csv = {
	.name = "csv",
	.help = "curves in CSV: TensorBoard, W&B, msprobe's monitor, a column of steps",
	.probe = probe,
	.read = read_csv,
};
