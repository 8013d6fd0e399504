/* What msprobe's data2db makes of its monitor's CSV, or of recordings: *.trend.db, a statistic a column.
 *
 *	trend_data	rank, step, target_id, metric_id, norm, max, ...
 *	names		monitoring_targets: a.weight, vpp_stage, micro_step; monitoring_metrics: grad_reduced
 *
 * The curves are called as those of the monitor's files: grad_reduced/a.weight/norm. A value beyond 1e9 was cut to that
 * by data2db, and infinity to one more; NULL stands for NaN, which a database has not.
 */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/curve/curve.h"
#include "dump/place.h"
#include "io/sqlite.h"

enum { STATS = 64, FIXED = 4 };
static const double cut = 1e9;

struct trend {
	struct curves cv;
	struct acc_map target, metric; /* id, as text -> offset in names */
	struct acc_buf names;          /* each terminated */
	char stat[STATS][64];
	int nstat;
	uint64_t rows;
};

static struct acc_str
id_key(int64_t id, char buf[24])
{
	return (struct acc_str){buf, (uint32_t)snprintf(buf, 24, "%lld", (long long)id)};
}

static int
keep(struct trend *t, struct acc_map *m, int64_t id, const char *text, size_t n, struct acc_err *e)
{
	char buf[24];
	const size_t at = t->names.n;
	if (acc_map_put(m, id_key(id, buf), at) == NULL || acc_buf_add(&t->names, text, n) < 0 ||
		acc_buf_add(&t->names, "", 1) < 0)
		return acc_nomem(e);
	return 0;
}

static const char *
name_of(const struct trend *t, const struct acc_map *m, const struct acc_val *id)
{
	char buf[24];
	const uint64_t *at = id->type != ACC_V_INT ? NULL : acc_map_get(m, id_key(id->i, buf));
	return at == NULL ? NULL : (const char *)t->names.p + *at;
}

static struct acc_str
text(struct acc_query *r, int column)
{
	struct acc_val v = acc_query_value(r, column);
	return v.type == ACC_V_TEXT && memchr(v.s.p, '\0', v.s.n) == NULL ? v.s : acc_str("");
}

/* Names of what was watched: "a.weight", and behind it what tells its stage and micro step. */
static int
read_names(struct trend *t, struct acc_sqlite *db, struct acc_err *e)
{
	char buf[4096];
	int rc;
	struct acc_query *r = acc_sqlite_query(db,
		"SELECT target_id, target_name, vpp_stage, micro_step FROM monitoring_targets", e);
	if (r == NULL)
		return e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0) {
		const struct acc_str name = text(r, 1);
		const struct acc_val id = acc_query_value(r, 0), vpp = acc_query_value(r, 2),
				     micro = acc_query_value(r, 3);
		int n = snprintf(buf, sizeof buf, "%.*s\n", name.n < 3900 ? (int)name.n : 3900,
			name.p);
		if (vpp.type == ACC_V_INT && vpp.i > 0)
			n += snprintf(buf + n, sizeof buf - (size_t)n, "/vpp%lld",
				(long long)vpp.i);
		if (micro.type == ACC_V_INT && micro.i > 0)
			n += snprintf(buf + n, sizeof buf - (size_t)n, "/micro%lld",
				(long long)micro.i);
		if (id.type == ACC_V_INT && name.n > 0 &&
			(rc = keep(t, &t->target, id.i, buf, (size_t)n, e)) < 0)
			break;
	}
	acc_query_close(r);
	r = rc < 0 ? NULL
		   : acc_sqlite_query(db, "SELECT metric_id, metric_name FROM monitoring_metrics",
			     e);
	if (r == NULL)
		return rc < 0 ? rc : e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0) {
		const struct acc_str name = text(r, 1);
		const struct acc_val id = acc_query_value(r, 0);
		if (id.type == ACC_V_INT && (rc = keep(t, &t->metric, id.i, name.p, name.n, e)) < 0)
			break;
	}
	acc_query_close(r);
	return rc;
}

static bool
plain(struct acc_str s)
{
	for (uint32_t i = 0; i < s.n; i++)
		if (!(s.p[i] == '_' || (s.p[i] >= '0' && s.p[i] <= '9') ||
			    (s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z')))
			return false;
	return s.n > 0 && s.n < 64;
}

/* The statistics are the columns behind the four that name the row. */
static int
read_stats(struct trend *t, struct acc_sqlite *db, struct acc_err *e)
{
	int rc;
	struct acc_query *r = acc_sqlite_query(db, "PRAGMA table_info(trend_data)", e);
	if (r == NULL)
		return e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0) {
		const struct acc_str name = text(r, 1);
		if (acc_word_in("rank step target_id metric_id", name))
			continue;
		if (!plain(name) || t->nstat == STATS) {
			rc = acc_fail(e, ACC_EFORMAT,
				"no trends of msprobe: trend_data has a column '%.*s'",
				name.n < 40 ? (int)name.n : 40, name.p);
			break;
		}
		memcpy(t->stat[t->nstat], name.p, name.n);
		t->stat[t->nstat++][name.n] = '\0';
	}
	acc_query_close(r);
	return rc;
}

/* The row of global_stats says of each metric which statistics it has: "norm,max". What it has not is NULL,
 * and no NaN. */
static bool
has_stat(struct acc_str list, const char *stat)
{
	const size_t n = strlen(stat);
	for (uint32_t i = 0; i < list.n;) {
		uint32_t end = i;
		while (end < list.n && list.p[end] != ',')
			end++;
		if (end - i == n && memcmp(list.p + i, stat, n) == 0)
			return true;
		i = end + 1;
	}
	return false;
}

/* "metric stat" of those that a metric has. */
static int
read_lists(struct acc_map *have, struct trend *t, struct acc_sqlite *db, struct acc_err *e)
{
	int rc;
	struct acc_str name[STATS];
	char names[STATS][64];
	int n = 0;
	struct acc_query *r = acc_sqlite_query(db, "PRAGMA table_info(global_stats)", e);
	if (r == NULL)
		return e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0 && n < STATS) {
		const struct acc_str s = text(r, 1);
		snprintf(names[n], sizeof names[n], "%.*s", s.n < 63 ? (int)s.n : 63, s.p);
		name[n] = acc_str(names[n]);
		n++;
	}
	acc_query_close(r);
	r = rc < 0 ? NULL : acc_sqlite_query(db, "SELECT * FROM global_stats", e);
	if (r == NULL)
		return rc < 0 ? rc : e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0)
		for (int i = 0; i < n; i++)
			for (int k = 0; k < t->nstat; k++) {
				char key[160];
				const int len = snprintf(key, sizeof key, "%s %s", name[i].p,
					t->stat[k]);
				if (has_stat(text(r, i), t->stat[k]) &&
					acc_map_put(have, (struct acc_str){key, (uint32_t)len},
						1) == NULL) {
					acc_query_close(r);
					return acc_nomem(e);
				}
			}
	acc_query_close(r);
	return rc;
}

static double
value_of(const struct acc_val *v)
{
	double x = NAN;
	acc_as_f64(v, &x);
	return x > cut ? INFINITY : x < -cut ? -INFINITY : x;
}

static int
put_row(struct trend *t, struct acc_query *r, const struct acc_map *have, struct acc_err *e)
{
	const struct acc_val rank = acc_query_value(r, 0), step = acc_query_value(r, 1),
			     target = acc_query_value(r, 2), metric = acc_query_value(r, 3);
	const char *name = name_of(t, &t->target, &target), *kind = name_of(t, &t->metric, &metric);
	int rc = 0;
	t->rows++;
	if (name == NULL || kind == NULL || rank.type != ACC_V_INT || step.type != ACC_V_INT)
		return acc_fail(e, ACC_EFORMAT,
			"row %llu of trend_data names a target or metric that is not there",
			(unsigned long long)t->rows);
	if (!acc_dump_wants(t->cv.c, step.i, rank.i))
		return 0;
	const char *behind = strchr(name, '\n');
	for (int i = 0; i < t->nstat && rc == 0; i++) {
		char tag[4400], key[160];
		const struct acc_val v = acc_query_value(r, FIXED + i);
		struct curve_point p = {.step = step.i,
			.has_step = true,
			.has_rank = true,
			.rank = rank.i,
			.cls = CURVE_MONITOR,
			.at = t->rows,
			.value = value_of(&v)};
		const int k = snprintf(key, sizeof key, "%s %s", kind, t->stat[i]);
		if (v.type == ACC_V_NIL &&
			(k >= (int)sizeof key ||
				acc_map_get(have, (struct acc_str){key, (uint32_t)k}) == NULL))
			continue;
		const int n = snprintf(tag, sizeof tag, "%.100s/%.*s/%s%s", kind,
			(int)(behind - name), name, t->stat[i], behind + 1);
		p.tag = (struct acc_str){tag, n < (int)sizeof tag ? (uint32_t)n : sizeof tag - 1};
		rc = acc_curve_put(&t->cv, &p, e);
	}
	return rc;
}

static int
read_trend(struct trend *t, struct acc_sqlite *db, struct acc_err *e)
{
	struct acc_map have = {0};
	char sql[128 + STATS * 68] = "SELECT rank, step, target_id, metric_id";
	int rc = acc_sqlite_has(db, "trend_data", "rank step target_id metric_id", e);
	if (rc == 0)
		return acc_fail(e, ACC_EFORMAT,
			"no trends of msprobe: there is no table trend_data");
	if (rc > 0)
		rc = read_stats(t, db, e);
	if (rc == 0)
		rc = read_names(t, db, e);
	if (rc == 0)
		rc = read_lists(&have, t, db, e);
	size_t n = strlen(sql);
	for (int i = 0; i < t->nstat; i++)
		n += (size_t)snprintf(sql + n, sizeof sql - n, ", \"%s\"", t->stat[i]);
	snprintf(sql + n, sizeof sql - n, " FROM trend_data");
	struct acc_query *r = rc < 0 ? NULL : acc_sqlite_query(db, sql, e);
	if (rc == 0 && r == NULL)
		rc = e != NULL ? e->code : ACC_EFORMAT;
	while (rc == 0 && (rc = acc_query_next(r, e)) > 0)
		rc = put_row(t, r, &have, e);
	acc_query_close(r);
	acc_map_release(&have);
	if (rc == 0 && t->rows == 0)
		rc = acc_fail(e, ACC_EFORMAT, "no curves: trend_data has no rows");
	return rc;
}

static int
read_db(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct trend t = {.rows = 0};
	char dir[PATH_MAX], run[NAME_MAX + 1];
	const char *file;
	int dirfd = acc_dump_open_place(path, dir, &file, e);
	if (dirfd < 0)
		return dirfd;
	int fd = file == NULL ? acc_fail(e, ACC_EFORMAT, "a folder is no database")
			      : acc_sqlite_file(dirfd, file, e);
	close(dirfd);
	/* data2db names its files itself: the folder tells the run. */
	const char *slash = strrchr(dir, '/');
	snprintf(run, sizeof run, "%s", slash != NULL && slash[1] != '\0' ? slash + 1 : "run");
	const struct acc_source src = {.root = dir,
		.format = "trend.db",
		.task = "curves",
		ACC_NO_PLACE};
	struct acc_sqlite *db = fd < 0 ? NULL : acc_sqlite_open(fd, e);
	int rc = fd < 0 ? fd : db == NULL ? (e != NULL ? e->code : ACC_EFORMAT) : 0;
	if (rc == 0)
		rc = acc_curves_start(&t.cv, c, &src, run, file, '#', e);
	if (rc == 0)
		rc = read_trend(&t, db, e);
	acc_sqlite_close(db);
	if (fd >= 0)
		close(fd);
	acc_curves_release(&t.cv);
	acc_map_release(&t.target);
	acc_map_release(&t.metric);
	acc_buf_release(&t.names);
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	return !p->is_dir && acc_is_sqlite(p->head, p->nhead) && acc_str_ends(p->base, ".trend.db")
		       ? 95
		       : 0;
}

const struct acc_dump acc_dump_trend_db = {
	.name = "trend.db",
	.help = "curves that msprobe's data2db made of its monitor's CSV, or of recordings: *.trend.db",
	.probe = probe,
	.read = read_db,
};
