/* The state of a format, from the first record to the last: without the table, which holds every format. */
#include "acc/format.h"

#include <stdlib.h>

int
acc_format_open(const struct acc_format *f, void **state, FILE *out,
	const struct acc_format_opt *opt, struct acc_err *e)
{
	struct acc_format_state *s = *state = calloc(1, f->size);
	if (s == NULL)
		return acc_nomem(e);
	s->out = out;
	s->opt = *opt;
	const int rc = f->begin == NULL ? 0 : f->begin(s, e);
	if (rc < 0) {
		acc_format_close(f, s);
		*state = NULL;
	}
	return rc;
}

int
acc_format_end(const struct acc_format *f, void *state, int status, struct acc_err *e)
{
	return f->end == NULL ? 0 : f->end(state, status, e);
}

void
acc_format_close(const struct acc_format *f, void *state)
{
	if (state != NULL && f->release != NULL)
		f->release(state);
	free(state);
}
