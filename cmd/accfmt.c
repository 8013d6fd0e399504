#include "acc/cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

static const struct cli_opt options[] = {
	{256, "json", NULL, "JSON Lines: an object a record"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accfmt",
	.synopsis = "[FILE ...]",
	.summary = "Print a stream for people or for other tools.",
	.opt = options,
};

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	const char *format = "json";
	while (cli_getopt(argc, argv, &cli) != -1)
		format = "json";
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	if (in == NULL)
		cli_die_err(&e);
	const struct acc_format *f = acc_format_find(format);
	struct acc_format_opt opt = {0};
	void *state;
	struct acc_rec *r;
	int rc = f->begin(&state, stdout, &opt, &e);
	while (rc >= 0 && (rc = acc_in_next(in, &r, &e)) > 0)
		rc = f->record(state, r, &e);
	if (rc >= 0)
		rc = f->end(state, acc_in_status(in), &e);
	if (rc < 0)
		cli_die_err(&e);
	f->release(state);
	int status = acc_in_status(in);
	acc_in_close(in);
	if (fflush(stdout) != 0 || ferror(stdout) || close(STDOUT_FILENO) != 0)
		cli_die("standard output:");
	return status;
}
