/* The stream as it came: for the next program of a pipe, where accfmt stands in it. */
#include "acc/format.h"
#include "acc/stream.h"

#include <stdio.h>

struct state {
	ACC_FORMAT_STATE;
	struct acc_wr *wr;
};

static int
begin(void *state, struct acc_err *e)
{
	struct state *s = state;
	if (s->opt.preset != NULL || s->opt.ncolumns > 0)
		return acc_fail(e, ACC_EUSAGE, "a stream has no columns");
	/* What stands in the buffer of `out` goes before what is written to its descriptor. */
	if (fflush(s->out) != 0)
		return acc_fail(e, ACC_EIO, "standard output:");
	s->wr = acc_wr_open(fileno(s->out), s->opt.log, s->opt.nlog, "accfmt -f stream", e);
	return s->wr == NULL ? e->code : 0;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	return acc_wr_put(((struct state *)state)->wr, r, e);
}

static int
end(void *state, int status, struct acc_err *e)
{
	return acc_wr_end(((struct state *)state)->wr, status, e);
}

static void
release(void *state)
{
	acc_wr_close(((struct state *)state)->wr);
}

const struct acc_format acc_format_stream = {
	.name = "stream",
	.help = "the records as they are, as accstream(5) has them",
	.all_keys = true,
	.size = sizeof(struct state),
	.begin = begin,
	.record = record,
	.end = end,
	.release = release,
};
