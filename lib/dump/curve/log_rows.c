/* A guess: a table with a line of names, one of which is a step or an epoch, and rows among other lines.
 *
 *	  epoch    train_loss    valid_loss     dur          skorch, fastai, spaCy
 *	-------  ------------  ------------  ------
 *	      1        0.6905        0.6704  0.0123
 *
 *	      Epoch    GPU_mem   box_loss   cls_loss         YOLO, its names before each row
 *	        1/3      2.1G      1.4        2.4   640: 100%|###|
 *
 *	| step | loss |                                      Markdown, rich
 */
#include "dump/curve/log_pairs.h"

enum { COLUMNS = 48 };

static const char *const step_names[] = {"step", "steps", "global_step", "global step", "iter",
	"iteration", "iterations", "training step", "#"};
static const char *const epoch_names[] = {"epoch", "epochs", "e", "ep"};

/* The length of a mark between columns at p: |, or one of those that draw boxes. */
static uint32_t
mark(const char *p, const char *end)
{
	static const char *const marks[] = {"|", "\xe2\x94\x82", "\xe2\x94\x83", "\xe2\x95\x91"};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		size_t n = strlen(marks[i]);
		if ((size_t)(end - p) >= n && memcmp(p, marks[i], n) == 0)
			return (uint32_t)n;
	}
	return 0;
}

/* The cells of a line: between marks where it begins with one, else tabs, else two blanks. */
static int
cells(struct acc_str s, struct acc_str *out)
{
	s = acc_str_trim(s);
	const char *p = s.p, *end = p + s.n;
	const uint32_t first = s.n == 0 ? 0 : mark(p, end);
	const bool tabs = first == 0 && s.n > 0 && memchr(p, '\t', s.n) != NULL;
	int n = 0;
	p += first;
	while (p < end && n < COLUMNS) {
		const char *q = p;
		uint32_t gap = 0;
		for (; q < end; q++) {
			gap = first > 0 ? mark(q, end)
			      : tabs    ? *q == '\t'
					: 2 * (*q == ' ' && q + 1 < end && q[1] == ' ');
			if (gap > 0)
				break;
		}
		out[n++] = acc_str_trim((struct acc_str){p, (uint32_t)(q - p)});
		for (p = q + gap; first == 0 && !tabs && p < end && *p == ' '; p++)
			;
	}
	return n;
}

/* Are these names, and which of them is the step? -1: no. */
static int
step_column(const struct acc_str *c, int n)
{
	int step = -1, epoch = -1;
	struct acc_literal v;
	for (int i = 0; i < n; i++) {
		if (c[i].n > 64 || acc_literal_all(c[i], &v))
			return -1;
		if (step < 0 && ACC_LOG_IS(c[i], step_names))
			step = i;
		if (epoch < 0 && ACC_LOG_IS(c[i], epoch_names))
			epoch = i;
	}
	return n < 2 ? -1 : step >= 0 && step < 2 ? step : epoch == 0 ? 0 : -1;
}

/* "3", "3/10" */
static bool
count(struct acc_str c, int64_t *v)
{
	const char *p = c.p, *end = p + c.n;
	int64_t of;
	return c.n > 0 && acc_log_int(&p, end, v) &&
	       (p == end || (acc_log_char(&p, end, '/') && acc_log_int(&p, end, &of) && p == end));
}

/* A bar behind the row that has not come to its end: its numbers are not those of the whole step. */
static bool
unfinished(struct acc_str s)
{
	const char *p = acc_log_find(s, "%|");
	return p != NULL && (p - s.p < 3 || memcmp(p - 3, "100", 3) != 0);
}

static int
rows(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct acc_str c[COLUMNS], name[COLUMNS];
	struct acc_literal v;
	int64_t step;
	int n = cells(s, c), put = 0;
	if (step_column(c, n) >= 0 && s.n < sizeof g->guess.header) {
		memcpy(g->guess.header, s.p, s.n);
		g->guess.header[s.n] = '\0';
		return 0;
	}
	const int names = cells(acc_str(g->guess.header), name), at = step_column(name, names);
	if (at < 0 || n < names || !count(c[at], &step) || unfinished(s))
		return 0;
	for (int i = 0; i < names; i++)
		put += i != at && acc_literal_all(c[i], &v);
	if (put == 0)
		return 0;
	acc_log_step(g, step);
	g->epochs = ACC_LOG_IS(name[at], epoch_names);
	snprintf(g->guess.step, sizeof g->guess.step, "%.*s", ACC_PRS(name[at]));
	for (int i = 0; i < names; i++) {
		/* spaCy's epoch beside its step. */
		if (i == at || ACC_LOG_IS(name[i], epoch_names) || !acc_literal_all(c[i], &v))
			continue;
		int rc = acc_log_put(g, "", name[i], step, &v, CURVE_GUESS, e);
		if (rc < 0)
			return rc;
	}
	return 1;
}

const struct log_grammar acc_log_grammar_rows = {
	.name = "rows below names",
	.guess = 2,
	.line = rows,
};
