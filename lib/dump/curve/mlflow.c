/* MLflow's store in files, of one run:
 *
 *	metrics/train/loss     1795874370660 4.181416034698486 0      curve train/loss
 *	                       time in ms, value, step: one line a value, in the order in which they came
 *	params/learning_rate   0.003                                   one value, as text
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/config/param.h"
#include "dump/curve/curve.h"
#include "dump/folders.h"
#include "dump/place.h"
#include "io/lines.h"

/* What is in a file of the store. `name` is beneath its folder. */
typedef int file_fn(void *arg, const char *name, struct acc_bytes *b, struct acc_err *e);

struct store {
	struct acc_dump_ctx *c;
	char dir[PATH_MAX];
	file_fn *fn;
	void *arg;
};

/* 1: a file, read; 0: none, as a folder. */
static int
visit(struct store *s, int root, const char *name, struct acc_err *e)
{
	struct acc_err why = {0};
	int fd = acc_file_beneath(root, acc_str(name), &why);
	struct acc_bytes *b = fd < 0 ? NULL : acc_bytes_open(fd, name, false, &why);
	int rc = b == NULL ? why.code : s->fn(s->arg, name, b, &why);
	acc_bytes_close(b);
	if (rc == ACC_ENOMEM || rc == ACC_ESTOP)
		return rc == ACC_ENOMEM ? acc_nomem(e) : rc;
	if (rc < 0) {
		acc_err_in(&why, name);
		acc_err_in(&why, s->dir);
		acc_dump_trouble(s->c, &why);
	}
	return 0;
}

static int
visit_folder(struct store *s, struct folders *w, const struct folder *f, int dirfd,
	struct acc_err *e)
{
	const char **names;
	int64_t n = acc_dir_list(dirfd, &names, &w->mem, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		int fd;
		struct acc_err why = {0};
		const char *at = f->depth == 0 ? names[i]
					       : acc_arena_printf(&w->mem, "%s/%s", f->path + 2,
							 names[i]);
		if (at == NULL)
			return acc_nomem(e);
		int is_dir = acc_dir_enter(dirfd, names[i], &fd, &why);
		if (is_dir > 0)
			close(fd);
		rc = is_dir > 0 ? acc_folders_add(w, f, names[i], NULL, e)
				: visit(s, w->root, at, e);
	}
	return rc;
}

static int
walk(struct store *s, const char *path, file_fn *fn, void *arg, struct acc_err *e)
{
	struct folders w = {0};
	struct folder f;
	int fd;
	s->fn = fn;
	s->arg = arg;
	w.root = acc_dir_open(path, e);
	if (w.root < 0)
		return w.root;
	int rc = acc_folders_add(&w, NULL, NULL, NULL, e);
	while (rc == 0 && (rc = acc_folders_next(&w, &f, &fd, e)) > 0) {
		rc = visit_folder(s, &w, &f, fd, e);
		close(fd);
	}
	if (rc == 0)
		rc = acc_folders_missed(&w, e);
	acc_folders_release(&w);
	close(w.root);
	return rc;
}

static int
start(struct store *s, struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	/* Any file could be a parameter. */
	const int fd = acc_dir_open(path, e),
		  has = fd < 0 ? fd : acc_dir_has(fd, "../meta.yaml", e);
	if (fd >= 0)
		close(fd);
	if (has <= 0)
		return has < 0 ? has
			       : acc_fail(e, ACC_EFORMAT,
					 "no folder of a run of MLflow: no meta.yaml is beside it");
	s->c = c;
	return realpath(path, s->dir) == NULL ? acc_fail(e, ACC_EIO, "cannot find the folder:") : 0;
}

/* --- metrics --- */

/* "time value step", or without a step, as it was written before there were any. */
static int
put_line(struct curves *cv, const char *name, struct acc_str line, uint64_t at, struct acc_err *e)
{
	struct acc_str part[3];
	size_t n = 0;
	for (uint32_t i = 0; i < line.n && n < 3; n++) {
		const char *blank = memchr(line.p + i, ' ', line.n - i);
		part[n] = (struct acc_str){line.p + i,
			blank == NULL ? line.n - i : (uint32_t)(blank - line.p) - i};
		i += part[n].n + 1;
	}
	struct curve_point p = {.tag = acc_str(name), .cls = CURVE_GUESS, .at = at};
	struct acc_literal l;
	int64_t time;
	p.has_step = n == 3;
	p.counted = n == 2;
	p.step = (int64_t)at - 1;
	if (n < 2 || !acc_str_int(part[0], &time) || !acc_literal_all(part[1], &l) ||
		(n == 3 && !acc_str_int(part[2], &p.step)))
		return acc_fail(e, ACC_EFORMAT, "line %llu: no time, value and step",
			(unsigned long long)at);
	p.has_step = true;
	p.value = l.v;
	return acc_curve_put(cv, &p, e);
}

static int
put_metric(void *arg, const char *name, struct acc_bytes *b, struct acc_err *e)
{
	struct curves *cv = arg;
	struct acc_lines l = {.b = b};
	struct acc_str line;
	int rc = 1;
	cv->file = acc_str(name);
	cv->nwhere = 0;
	while (rc > 0 && (rc = acc_lines_next(&l, &line, e)) > 0)
		if (line.n > 0) {
			const int put = put_line(cv, name, line, l.no, e);
			rc = put < 0 ? put : 1;
		}
	return rc;
}

static int
read_metrics(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct store s;
	struct curves cv = {0};
	int rc = start(&s, c, path, e);
	const struct acc_source src = {.root = s.dir,
		.format = "mlflow-metrics",
		.task = "curves",
		ACC_NO_PLACE};
	if (rc == 0)
		rc = acc_curves_start(&cv, c, &src, "metrics", "metrics", ':', e);
	if (rc == 0)
		rc = walk(&s, path, put_metric, &cv, e);
	acc_curves_release(&cv);
	return rc;
}

/* --- parameters --- */

static int
put_param(void *arg, const char *name, struct acc_bytes *b, struct acc_err *e)
{
	struct params *ps = arg;
	const uint8_t *p;
	size_t n;
	struct acc_buf text = {0};
	int rc = 1;
	while (rc > 0 && text.n <= PARAM_FILE_LIMIT && (rc = acc_bytes_more(b, &p, &n, e)) > 0) {
		if (acc_buf_add(&text, p, n) < 0)
			rc = acc_nomem(e);
		acc_bytes_skip(b, n);
	}
	while (text.n > 0 && text.p[text.n - 1] == '\n')
		text.n--;
	const struct param one = {.key = acc_str(name),
		.value = {text.n == 0 ? "" : (const char *)text.p, (uint32_t)text.n},
		.line = 1};
	if (rc >= 0)
		rc = acc_params_add(ps, &one, e);
	acc_buf_release(&text);
	return rc;
}

static int
read_params(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct store s;
	struct params ps = {.c = c, .f.name = "params"};
	int rc = start(&s, c, path, e);
	if (rc == 0)
		rc = walk(&s, path, put_param, &ps, e);
	if (rc == 0) {
		snprintf(ps.f.dir, sizeof ps.f.dir, "%s", s.dir);
		rc = acc_params_put(&ps, "mlflow-params", acc_params_own(&ps), "no parameter", e);
	}
	acc_params_close(&ps);
	return rc;
}

/* --- */

/* A folder of this name in that of a run, which has its record. */
static int
is_store(const struct acc_probe *p, const char *name)
{
	int n = p->is_dir ? acc_dir_has_end(p->dirfd, "", p->e) : 0;
	if (n <= 0)
		return n < 0 ? -90 : 0;
	/* The path may end in a slash or a dot. */
	char real[PATH_MAX];
	const char *slash = realpath(p->path, real) == NULL ? NULL : strrchr(real, '/');
	if (slash == NULL || strcmp(slash + 1, name) != 0)
		return 0;
	return acc_dump_sure(acc_dir_has(p->dirfd, "../meta.yaml", p->e), 90);
}

static int
probe_metrics(const struct acc_probe *p)
{
	return is_store(p, "metrics");
}

static int
probe_params(const struct acc_probe *p)
{
	return is_store(p, "params");
}

const struct acc_dump acc_dump_mlflow_metrics = {
	.name = "mlflow-metrics",
	.help = "the folder metrics of a run in MLflow's store in files",
	.probe = probe_metrics,
	.read = read_metrics,
};

const struct acc_dump acc_dump_mlflow_params = {
	.name = "mlflow-params",
	.help = "the folder params of a run in MLflow's store in files",
	.probe = probe_params,
	.read = read_params,
};
