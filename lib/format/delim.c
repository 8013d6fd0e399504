#include "format/cells.h"

#include <stdlib.h>

struct state {
	acc_row_fn *row;
	FILE *out;
	struct acc_format_opt opt;
	struct acc_cells cells;
	bool titled;
};

int
acc_delim_begin(void **state, acc_row_fn *row, FILE *out, const struct acc_format_opt *opt,
	struct acc_err *e)
{
	struct state *s = calloc(1, sizeof *s);
	if (s == NULL)
		return acc_nomem(e);
	s->row = row;
	s->out = out;
	s->opt = *opt;
	*state = s;
	return acc_cells_open(&s->cells, &s->opt, false, e);
}

static int
titles(struct state *s, struct acc_err *e)
{
	struct acc_str *t = calloc(s->cells.n + 1, sizeof *t);
	if (t == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < s->cells.n; i++)
		t[i] = acc_str(s->cells.column[i].title);
	s->row(s->out, t, s->cells.n);
	free(t);
	return 0;
}

int
acc_delim_record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	int rc = acc_cells_row(&s->cells, r, e);
	if (rc <= 0)
		return rc;
	if (!s->titled && !s->opt.no_header && (rc = titles(s, e)) < 0)
		return rc;
	s->titled = true;
	s->row(s->out, s->cells.cell, s->cells.n);
	return ferror(s->out) ? acc_fail(e, ACC_EIO, "standard output:") : 0;
}

int
acc_delim_end(void *state, int status, struct acc_err *e)
{
	(void)state;
	(void)status;
	(void)e;
	return 0;
}

void
acc_delim_release(void *state)
{
	struct state *s = state;
	acc_cells_close(&s->cells);
	free(s);
}
