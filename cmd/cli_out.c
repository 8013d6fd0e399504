/* What goes out: a stream, or on a terminal the table of accfmt. */
#include "cli.h"
#include "acc/say.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

int
cli_show(const struct acc_format *f, void *state, const struct acc_rec *r, struct acc_err *e)
{
	static struct acc_rec room;
	const struct acc_rec *shown = r;
	if (f->for_people && acc_rec_said(r, &room, &shown) < 0)
		return acc_nomem(e);
	return f->record(state, shown, e);
}

struct cli_out {
	struct acc_wr *wr; /* a stream; or, on a terminal, a table: */
	const struct acc_format *fmt;
	void *state;
	int status;
};

/* The command line as a shell would take it, for the stream's log. */
static char *
command_line(int argc, char **argv)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";
	struct acc_buf b = {0};
	for (int i = 0; i < argc; i++) {
		const char *a = argv[i];
		bool quote = a[0] == '\0' || strspn(a, plain) != strlen(a);
		int rc = i > 0 ? acc_buf_add(&b, " ", 1) : 0;
		if (quote)
			rc |= acc_buf_add(&b, "'", 1);
		for (; *a != '\0'; a++)
			rc |= *a == '\'' ? acc_buf_add(&b, "'\\''", 4) : acc_buf_add(&b, a, 1);
		if (quote)
			rc |= acc_buf_add(&b, "'", 1);
		if (rc < 0)
			cli_nomem();
	}
	if (acc_buf_add(&b, "", 1) < 0)
		cli_nomem();
	return (char *)b.p;
}

struct cli_out *
cli_out_open(const struct acc_str *log, size_t nlog, int argc, char **argv)
{
	struct acc_err e = {0};
	struct cli_out *o = calloc(1, sizeof *o);
	if (o == NULL)
		cli_nomem();
	if (isatty(STDOUT_FILENO)) {
		struct acc_format_opt opt = {0};
		cli_terminal(&opt);
		o->fmt = &acc_format_table;
		if (acc_format_open(o->fmt, &o->state, stdout, &opt, &e) < 0)
			cli_die_err(&e);
		return o;
	}
	char *cmd = command_line(argc, argv);
	o->wr = acc_wr_open(STDOUT_FILENO, log, nlog, cmd, &e);
	if (o->wr == NULL)
		cli_die_err(&e);
	free(cmd);
	return o;
}

struct acc_in *
cli_in_open(int argc, char **argv, struct cli_out **out)
{
	struct acc_err e = {0};
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	size_t nlog;
	if (in == NULL)
		cli_die_err(&e);
	const struct acc_str *log = acc_in_log(in, &nlog);
	*out = cli_out_open(log, nlog, argc, argv);
	return in;
}

void
cli_put(struct cli_out *o, const struct acc_rec *r)
{
	struct acc_err e = {0};
	if (r->lost)
		cli_nomem();
	int rc = o->wr != NULL ? acc_wr_put(o->wr, r, &e) : cli_show(o->fmt, o->state, r, &e);
	if (rc < 0)
		cli_die_err(&e);
}

void
cli_put_step(struct cli_out *o, const struct acc_rec *r)
{
	struct acc_err e = {0};
	cli_put(o, r);
	if (o->wr != NULL ? acc_wr_flush(o->wr, &e) < 0 : fflush(stdout) != 0)
		cli_die_err(&e);
}

void
cli_pass(struct cli_out *o, const struct acc_rec *r, struct acc_rd *rd)
{
	struct acc_err e = {0};
	if (acc_wr_pass(o->wr, r, rd, &e) < 0)
		cli_die_err(&e);
}

bool
cli_is_stream(const struct cli_out *o)
{
	return o->wr != NULL;
}

void
cli_status(struct cli_out *o, int status)
{
	if (status > o->status)
		o->status = status;
}

int
cli_finish(struct cli_out *o)
{
	struct acc_err e = {0};
	int status = o->status;
	int rc = o->wr != NULL ? acc_wr_end(o->wr, status, &e)
			       : acc_format_end(o->fmt, o->state, status, &e);
	if (rc < 0)
		cli_die_err(&e);
	if (o->fmt != NULL)
		acc_format_close(o->fmt, o->state);
	acc_wr_close(o->wr);
	free(o);
	/* A full disk may show only now. */
	if (fflush(stdout) != 0 || ferror(stdout) || close(STDOUT_FILENO) != 0)
		cli_die("standard output:");
	return status;
}
