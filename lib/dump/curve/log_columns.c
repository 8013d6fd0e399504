/* A guess: columns of numbers, the first of them the step.
 *
 *	# step loss            or without names
 *	1 9.02
 *	2 8.75
 *
 * or a metric of MLflow's store in files, which is called as its file is: time in ms, value, step.
 *
 *	1795874370660 4.181416034698486 0
 */
#include "dump/curve/log_pairs.h"

enum { COLUMNS = 32 };

static bool
between(char c)
{
	return c == ' ' || c == '\t' || c == ',' || c == ';';
}

static bool
cell(struct acc_str *s, struct acc_str *out)
{
	const char *p = s->p, *end = p + s->n;
	while (p < end && between(*p))
		p++;
	const char *q = p;
	while (q < end && !between(*q))
		q++;
	*out = (struct acc_str){p, (uint32_t)(q - p)};
	*s = acc_log_from(*s, q);
	return q > p;
}

/* The cells of a line that are all numbers; 0 if one is none. */
static int
numbers(struct acc_str s, struct acc_literal v[COLUMNS])
{
	struct acc_str c;
	int n = 0;
	while (cell(&s, &c))
		if (n == COLUMNS || !acc_literal_all(c, &v[n++]))
			return 0;
	return n;
}

/* The next name of a header; where commas divide names, blanks do not. */
static bool
name(struct acc_str *s, char comma, struct acc_str *out)
{
	if (comma == '\0')
		return cell(s, out);
	const char *end = s->p + s->n, *q = s->n == 0 ? NULL : memchr(s->p, comma, s->n);
	*out = acc_str_trim((struct acc_str){s->p, (uint32_t)((q == NULL ? end : q) - s->p)});
	*s = q == NULL ? (struct acc_str){end, 0} : acc_log_from(*s, q + 1);
	return out->n > 0;
}

/* The name of column i, counted from 0: of the line above the numbers, if it has as many. */
static struct acc_str
name_of(const struct log_guess *u, int i, int n, char buf[24])
{
	struct acc_str s = acc_str(u->header), c, found = {NULL, 0};
	const char comma = strchr(u->header, ',') != NULL   ? ','
			   : strchr(u->header, ';') != NULL ? ';'
							    : '\0';
	int k = 0;
	for (; name(&s, comma, &c); k++)
		if (k == i)
			found = c;
	if (k == n && found.n > 0)
		return found;
	snprintf(buf, 24, n == 2 ? "loss" : "column%d", i + 1);
	return acc_str(buf);
}

/* metrics/train/loss is train/loss */
static struct acc_str
metric_of(const struct log_reader *g)
{
	static const char folder[] = "metrics/";
	const char *path = g->path == NULL ? "" : g->path, *at = strstr(path, folder),
		   *slash = strrchr(path, '/');
	return acc_str(at != NULL ? at + sizeof folder - 1 : slash != NULL ? slash + 1 : path);
}

static int
mlflow(struct log_reader *g, const struct acc_literal *v, struct acc_err *e)
{
	acc_log_step(g, v[2].i);
	snprintf(g->guess.step, sizeof g->guess.step, "third column");
	int rc = acc_log_put(g, "", metric_of(g), v[2].i, &v[1], CURVE_GUESS, e);
	return rc < 0 ? rc : 1;
}

static int
columns(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct acc_literal v[COLUMNS];
	int n = numbers(s, v);
	if (n < 2 || !(fabs(v[0].v) < 0x1p53) || v[0].v != floor(v[0].v)) {
		struct acc_str t = acc_str_trim(s);
		while (t.n > 0 && (*t.p == '#' || *t.p == '%'))
			t = acc_str_trim(acc_log_from(t, t.p + 1));
		snprintf(g->guess.header, sizeof g->guess.header, "%.*s", (int)t.n, t.p);
		return 0;
	}
	/* Milliseconds since 2001. */
	if (n == 3 && v[0].integer && v[0].i >= 1000000000000 && v[2].integer &&
		v[2].i < 1000000000000)
		return mlflow(g, v, e);
	int64_t step = (int64_t)v[0].v;
	acc_log_step(g, step);
	snprintf(g->guess.step, sizeof g->guess.step, "first column");
	for (int i = 1; i < n; i++) {
		char buf[24];
		struct acc_str tag = name_of(&g->guess, i, n, buf);
		int rc = acc_log_put(g, "", tag, step, &v[i], CURVE_GUESS, e);
		if (rc < 0)
			return rc;
	}
	return 1;
}

const struct log_grammar acc_log_grammar_columns = {
	.name = "columns of numbers",
	.guess = 3,
	.all = true,
	.line = columns,
};
