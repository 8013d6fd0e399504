/* The stream as it came: for the next program of a pipe, where accfmt stands in it. */
#include "acc/format.h"
#include "acc/stream.h"

#include <stdio.h>

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	if (opt->preset != NULL || opt->ncolumns > 0)
		return acc_fail(e, ACC_EUSAGE, "a stream has no columns");
	/* What stands in the buffer of `out` goes before what is written to its descriptor. */
	if (fflush(out) != 0)
		return acc_fail(e, ACC_EIO, "standard output:");
	*state = acc_wr_open(fileno(out), opt->log, opt->nlog, "accfmt -f stream", e);
	return *state == NULL ? e->code : 0;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	return acc_wr_put(state, r, e);
}

static int
end(void *state, int status, struct acc_err *e)
{
	return acc_wr_end(state, status, e);
}

static void
release(void *state)
{
	acc_wr_close(state);
}

const struct acc_format acc_format_stream = {
	.name = "stream",
	.help = "the records as they are, as accstream(5) has them",
	.all_keys = true,
	.begin = begin,
	.record = record,
	.end = end,
	.release = release,
};
