/* MLflow's store in SQLite, mlflow.db: the metrics and parameters of all its runs.
 *
 *	metrics   key, value, step, is_nan, run_uuid      an infinity is the largest double there is
 *	params    key, value, run_uuid
 *	runs      run_uuid, name, experiment_id, start_time, lifecycle_stage
 *
 * Identifiers are drawn at random: a run is called by its experiment, and the name that somebody gave it, or its
 * place in time among those that have none. Of a store with one run names are as they were logged.
 */
#include <fcntl.h>
#include <float.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/config/param.h"
#include "dump/curve/curve.h"
#include "dump/place.h"
#include "io/sqlite.h"

enum { RUNS = 4096 };

struct run {
	const char *id, *label;
	int64_t start;
};

struct store {
	struct acc_dump_ctx *c;
	const char *path;
	struct curve_file f;
	struct acc_sqlite *db;
	int fd;
	struct acc_arena mem;
	struct run *run;
	size_t n, cap;
};

static void
close_store(struct store *s)
{
	acc_sqlite_close(s->db);
	if (s->fd >= 0)
		close(s->fd);
	free(s->run);
	acc_arena_release(&s->mem);
}

static int
open_store(struct store *s, struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	*s = (struct store){.c = c, .path = path, .fd = -1};
	int rc = acc_dump_real(path, s->f.dir, &s->f.name, e);
	int dir = rc < 0 ? rc : acc_dir_open(s->f.dir, e);
	if (dir < 0)
		return dir;
	s->fd = acc_sqlite_file(dir, s->f.name, e);
	rc = s->fd < 0 ? s->fd : 0;
	close(dir);
	if (rc == 0 && (s->db = acc_sqlite_open(s->fd, e)) == NULL)
		rc = e->code;
	if (rc == 0 &&
		(rc = acc_sqlite_has(s->db, "metrics", "key value step is_nan run_uuid", e)) >= 0)
		rc = rc > 0 ? acc_sqlite_has(s->db, "runs",
				      "run_uuid name experiment_id start_time lifecycle_stage", e)
			    : 0;
	return rc < 0    ? rc
	       : rc == 0 ? acc_fail(e, ACC_EFORMAT, "no store of MLflow: it lacks its tables")
			 : 0;
}

static struct acc_str
text(struct acc_query *r, int column)
{
	struct acc_str s;
	struct acc_val v = acc_query_value(r, column);
	return acc_as_text(&v, &s) ? s : (struct acc_str){"", 0};
}

static int64_t
integer(struct acc_query *r, int column)
{
	int64_t i;
	struct acc_val v = acc_query_value(r, column);
	return acc_as_int(&v, &i) ? i : 0;
}

/* "fortunate-snail-394", as MLflow calls a run that nobody named. */
static bool
is_drawn(struct acc_str s)
{
	uint32_t i = 0, parts = 0;
	for (; parts < 2 && i < s.n; parts++) {
		const uint32_t from = i;
		while (i < s.n && s.p[i] >= 'a' && s.p[i] <= 'z')
			i++;
		if (i == from || i == s.n || s.p[i++] != '-')
			return false;
	}
	const uint32_t from = i;
	while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
		i++;
	return i > from && i == s.n;
}

static int
by_time(const void *a, const void *b)
{
	const struct run *p = a, *q = b;
	return p->start != q->start ? (p->start < q->start ? -1 : 1) : strcmp(p->id, q->id);
}

/* The name of an experiment, by its number; else that number. */
static const char *
experiment(struct store *s, int64_t id, struct acc_err *e)
{
	struct acc_query *r = acc_sqlite_query(s->db, "SELECT experiment_id, name FROM experiments",
		e);
	const char *name = NULL;
	int rc = r == NULL ? -1 : 1;
	while (name == NULL && rc > 0 && (rc = acc_query_next(r, e)) > 0)
		if (integer(r, 0) == id && text(r, 1).n > 0)
			name = acc_arena_copy(&s->mem, text(r, 1).p, text(r, 1).n);
	acc_query_close(r);
	return rc < 0         ? NULL
	       : name != NULL ? name
			      : acc_arena_printf(&s->mem, "%lld", (long long)id);
}

/* The runs that were not deleted, in the order of time, with what they are called. */
static int
runs(struct store *s, struct acc_err *e)
{
	struct acc_query *r = acc_sqlite_query(s->db,
		"SELECT run_uuid, name, experiment_id, start_time, lifecycle_stage FROM runs", e);
	int rc = r == NULL ? e->code : 1;
	while (rc > 0 && (rc = acc_query_next(r, e)) > 0) {
		if (acc_str_is(text(r, 4), "deleted"))
			continue;
		if (s->n == RUNS) {
			rc = acc_fail(e, ACC_ELIMIT, "more than %d runs", RUNS);
			break;
		}
		struct run *p = acc_grow(s->run, &s->cap, s->n + 1, sizeof *p, e);
		if (p == NULL) {
			rc = ACC_ENOMEM;
			break;
		}
		s->run = p;
		const struct acc_str id = text(r, 0), name = text(r, 1);
		const char *of = experiment(s, integer(r, 2), e);
		p[s->n] = (struct run){.id = acc_arena_copy(&s->mem, id.p, id.n),
			.start = integer(r, 3)};
		p[s->n].label = of == NULL ? NULL
				: is_drawn(name)
					? of
					: acc_arena_printf(&s->mem, "%s/%.*s", of, ACC_PRS(name));
		if (p[s->n].id == NULL || p[s->n].label == NULL)
			rc = e->code < 0 ? e->code : acc_nomem(e);
		s->n++;
	}
	acc_query_close(r);
	if (s->n > 1)
		qsort(s->run, s->n, sizeof *s->run, by_time);
	/* Those that have no name of their own, by their place among these. */
	for (size_t i = 0, k = 0; i < s->n && rc == 0; i++)
		if (strchr(s->run[i].label, '/') == NULL) {
			s->run[i].label = acc_arena_printf(&s->mem, "%s/%zu", s->run[i].label, ++k);
			rc = s->run[i].label == NULL ? acc_nomem(e) : 0;
		}
	return rc;
}

static const struct run *
run_of(const struct store *s, struct acc_str id)
{
	for (size_t i = 0; i < s->n; i++)
		if (acc_str_is(id, s->run[i].id))
			return &s->run[i];
	return NULL;
}

/* NaN is a 0 that is marked, an infinity the largest number. */
static bool
value_of(struct acc_query *r, double *v)
{
	struct acc_val f = acc_query_value(r, 1);
	if (!acc_as_f64(&f, v))
		return false;
	*v = integer(r, 3) != 0 ? NAN : *v >= DBL_MAX ? INFINITY : *v <= -DBL_MAX ? -INFINITY : *v;
	return true;
}

static int
metrics(struct store *s, struct curves *cv, struct acc_err *e)
{
	struct acc_query *r = acc_sqlite_query(s->db,
		"SELECT key, value, step, is_nan, run_uuid FROM metrics", e);
	int rc = r == NULL ? e->code : 1;
	for (uint64_t at = 1; rc > 0 && (rc = acc_query_next(r, e)) > 0; at++) {
		struct curve_point p = {.tag = text(r, 0), .cls = CURVE_GUESS, .at = at};
		const struct run *of = run_of(s, text(r, 4));
		p.has_step = true;
		p.step = integer(r, 2);
		if (of == NULL || !value_of(r, &p.value))
			continue; /* of a run that was deleted */
		cv->run = acc_str(s->n > 1 ? of->label : "mlflow");
		const int put = acc_curve_put(cv, &p, e);
		rc = put < 0 ? put : 1;
	}
	acc_query_close(r);
	return rc;
}

static int
read_metrics(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct store s;
	struct curves cv = {0};
	int rc = open_store(&s, c, path, e);
	const struct acc_source src = {.root = s.f.dir,
		.format = "mlflow-db",
		.task = "curves",
		ACC_NO_PLACE};
	if (rc == 0)
		rc = runs(&s, e);
	if (rc == 0)
		rc = acc_curves_start(&cv, c, &src, "mlflow", s.f.name, '#', e);
	if (rc == 0)
		rc = metrics(&s, &cv, e);
	acc_curves_release(&cv);
	close_store(&s);
	return rc;
}

static int
params(struct store *s, struct params *ps, struct acc_err *e)
{
	struct acc_query *r = acc_sqlite_query(s->db, "SELECT key, value, run_uuid FROM params", e);
	int rc = r == NULL ? e->code : 1;
	for (uint64_t at = 1; rc > 0 && (rc = acc_query_next(r, e)) > 0; at++) {
		const struct run *of = run_of(s, text(r, 2));
		const struct acc_str key = text(r, 0);
		if (of == NULL)
			continue;
		const char *full = s->n > 1 ? acc_arena_printf(&ps->mem, "%s.%.*s", of->label,
						      ACC_PRS(key))
					    : acc_arena_copy(&ps->mem, key.p, key.n);
		const struct param p = {.key = acc_str(full == NULL ? "" : full),
			.value = text(r, 1),
			.line = at,
			.record = true};
		const int put = full == NULL ? acc_nomem(e) : acc_params_add(ps, &p, e);
		rc = put < 0 ? put : 1;
	}
	acc_query_close(r);
	return rc;
}

static int
read_params(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct store s;
	struct params ps = {.c = c};
	int rc = open_store(&s, c, path, e);
	ps.f = s.f;
	if (rc == 0)
		rc = acc_sqlite_has(s.db, "params", "key value run_uuid", e);
	if (rc > 0)
		rc = runs(&s, e);
	if (rc == 0)
		rc = params(&s, &ps, e);
	if (rc == 0)
		rc = acc_params_put(&ps, "mlflow-db-params", acc_params_own(&ps), "no parameter",
			e);
	acc_params_close(&ps);
	close_store(&s);
	return rc;
}

/* Its tables stand in the first pages as text, but not all in a head: a database of such a name, or that names
 * the tables early. */
static bool
is_store(const struct acc_probe *p)
{
	return !p->is_dir && acc_is_sqlite(p->head, p->nhead) &&
	       (acc_str_starts(p->base, "mlflow") || acc_str_starts(p->base, "mlruns") ||
		       (memmem(p->head, p->nhead, "run_uuid", 8) != NULL &&
			       memmem(p->head, p->nhead, "metrics", 7) != NULL));
}

static int
probe_metrics(const struct acc_probe *p)
{
	return is_store(p) ? 95 : 0;
}

/* The same file; it is asked for by name. */
static int
probe_params(const struct acc_probe *p)
{
	return is_store(p) ? 90 : 0;
}

const struct acc_dump acc_dump_mlflow_db = {
	.name = "mlflow-db",
	.help = "the metrics of the runs in MLflow's store in SQLite, mlflow.db",
	.probe = probe_metrics,
	.read = read_metrics,
};

const struct acc_dump acc_dump_mlflow_db_params = {
	.name = "mlflow-db-params",
	.help = "the parameters of the runs in the same file",
	.probe = probe_params,
	.read = read_params,
};
