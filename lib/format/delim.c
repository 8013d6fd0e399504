#include "format/cells.h"

#include <stdlib.h>

int
acc_delim_begin(struct acc_delim *d, acc_row_fn *row, struct acc_err *e)
{
	d->row = row;
	return acc_cells_open(&d->cells, &d->opt, false, e);
}

static int
titles(struct acc_delim *s, struct acc_err *e)
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
	struct acc_delim *s = state;
	int rc = acc_cells_row(&s->cells, r, e);
	if (rc <= 0)
		return rc;
	if (!s->titled && !s->opt.no_header && (rc = titles(s, e)) < 0)
		return rc;
	s->titled = true;
	s->row(s->out, s->cells.cell, s->cells.n);
	return ferror(s->out) ? acc_fail(e, ACC_EIO, "standard output:") : 0;
}

void
acc_delim_release(void *state)
{
	struct acc_delim *s = state;
	acc_cells_close(&s->cells);
}
