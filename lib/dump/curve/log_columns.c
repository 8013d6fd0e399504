/* A guess: columns of numbers, the first of them the step.
 *
 *	# step loss            or without names
 *	1 9.02
 *	2 8.75
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

/* The name of column i, counted from 0: of the line above the numbers, if it has as many. */
static struct acc_str
name_of(const struct log_guess *u, int i, int n, char buf[24])
{
	struct acc_str s = acc_str(u->header), c, found = {NULL, 0};
	int k = 0;
	for (; cell(&s, &c); k++)
		if (k == i)
			found = c;
	if (k == n && found.n > 0)
		return found;
	snprintf(buf, 24, n == 2 ? "loss" : "column%d", i + 1);
	return acc_str(buf);
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
