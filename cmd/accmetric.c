#include "cli.h"
#include "acc/metric.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OPT_PRESET = 256, OPT_RTOL, OPT_ATOL, OPT_NOCHECK, OPT_ROOT, OPT_WHERE, OPT_MEASURED };

static const struct cli_opt options[] = {
	{'l', "list", NULL, "list the metrics with their definitions"},
	{'m', "metrics", "NAME,...", "these only; +NAME,...: besides those of one pass"},
	{OPT_WHERE, "where", NULL, "also where in a tensor the error sits: m.where"},
	{OPT_PRESET, "preset", "NAME", "as msprobe, msprobe-26, -8.3, ptdbg or msaccucmp does"},
	{OPT_RTOL, "rtol", "X", "relative tolerance of m.outside (default: by dtype)"},
	{OPT_ATOL, "atol", "X", "absolute tolerance of m.outside (default: by dtype)"},
	{'j', "threads", "N", "threads (default: one per CPU)"},
	{OPT_NOCHECK, "no-check", NULL, "do not verify the checksums of containers"},
	{OPT_MEASURED, "measured", NULL, "believe s.*: of weights of one s.hash, read none"},
	{OPT_ROOT, "root", "OLD=NEW", "look for files of folder OLD in NEW (repeatable)"},
	{'q', "quiet", NULL, "no progress"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accmetric",
	.synopsis = "[FILE ...]",
	.summary = "Measure the tensors and pairs of a stream: add s.* and m.* to its records.",
	.opt = options,
	.notes = "Example: accdump-read npu_dump | accalign - gpu_dump | accmetric | accfmt\n",
};

static struct cli_out *out;
static struct acc_roots *roots; // reachable when an option ends the program
static struct acc_measurer *measurer;
static bool quiet, ended; /* ended: all records are read */
static double start;      /* when the first came */
static uint64_t records;  /* that went out */

static double
seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One line that is written over, on a terminal, for what takes longer than a second. The time
 * left is known where standard input is a file, and when all of it is read. */
static void
progress(bool last)
{
	static double shown;
	double now = seconds(), left = 0;
	struct stat st;
	uint64_t waiting;
	if (shown == 0)
		shown = start;
	if (last && shown > start)
		fputs("\r\033[K", stderr);
	if (last || now - shown < (shown > start ? 0.2 : 1))
		return;
	shown = now;
	double bytes = (double)acc_measurer_bytes(measurer, &waiting), t = now - start;
	off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	if (ended && bytes > 0)
		left = t * (double)waiting / bytes;
	else if (at > 0 && fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		left = t * (double)(st.st_size - at) / (double)at;
	fprintf(stderr, "\r\033[K%s: %llu records", cli.prog, (unsigned long long)records);
	if (bytes > 0)
		fprintf(stderr, ", %.1f GB, %.2f GB/s", 1e-9 * bytes, 1e-9 * bytes / t);
	if (left > 0)
		fprintf(stderr, ", %.0f s left", left);
	fflush(stderr);
}

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	cli_put(out, r);
	records++;
	if (!quiet)
		progress(false);
	return 0;
}

static void
idle(void *arg)
{
	(void)arg;
	progress(false);
}

/* Where a folder is gone, each of its tensors says so: the first few do. */
enum { COMPLAINTS = 7 };
static uint64_t complaints;

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	struct acc_err said = *e;
	size_t n = strlen(said.msg);
	cli_status(out, 2);
	if (complaints++ >= COMPLAINTS)
		return;
	if (complaints == 1 && strstr(e->msg, "cannot open") != NULL)
		snprintf(said.msg + n, sizeof said.msg - n,
			" (if it was moved: --root OLD=NEW; if it lies on another host: accdump-read "
			"--inline there)");
	cli_warn_err(&said);
}

static void
say_more(void)
{
	if (complaints > COMPLAINTS)
		cli_warn("and %llu more tensors that could not be read",
			(unsigned long long)(complaints - COMPLAINTS));
}

static void
list(void)
{
	for (size_t i = 0; i < acc_nmetrics; i++) {
		const struct acc_metric *m = acc_metrics[i];
		char text[256];
		snprintf(text, sizeof text, "%s%s%s%s%s", m->help, m->unit[0] != '\0' ? " [" : "",
			m->unit, m->unit[0] != '\0' ? "]" : "",
			m->second != NULL ? " (only with -m or --preset)" : "");
		cli_item(m->name, 20, text);
	}
	cli_printed();
}

static const char **names; /* of -m */
static size_t nnames;
static bool where;

static void
choose(struct acc_measurer_opt *opt)
{
	const struct acc_metric **row = calloc(nnames + acc_nmetrics, sizeof *row);
	if (row == NULL)
		cli_nomem();
	for (size_t i = 0; i < acc_nmetrics; i++)
		if (where && strncmp(acc_metrics[i]->name, "m.where", 7) == 0)
			row[opt->n++] = acc_metrics[i];
	for (size_t i = 0; i < nnames; i++) {
		row[opt->n] = acc_metric_find(names[i]);
		if (row[opt->n++] == NULL)
			cli_usage("-m: there is no metric '%s' (accmetric -l lists them)",
				names[i]);
	}
	opt->metrics = row;
}

static double
tolerance(const char *opt, const char *arg)
{
	double v = cli_f64(opt, arg);
	if (!(v >= 0))
		cli_usage("%s: '%s' is negative", opt, arg);
	return v;
}

static void
take_options(int argc, char **argv, struct acc_measurer_opt *opt)
{
	struct acc_err e = {0};
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		if (key == 'l')
			list();
		else if (key == 'm') {
			opt->also |= optarg[0] == '+';
			cli_list(optarg + (optarg[0] == '+'), &names, &nnames);
		} else if (key == OPT_WHERE)
			where = true;
		else if (key == OPT_PRESET && !acc_metric_preset(optarg, &opt->preset))
			cli_usage(
				"--preset: '%s' is not msprobe, msprobe-26, msprobe-8.3, ptdbg or msaccucmp",
				optarg);
		else if (key == OPT_RTOL)
			opt->rtol = tolerance("--rtol", optarg);
		else if (key == OPT_ATOL)
			opt->atol = tolerance("--atol", optarg);
		else if (key == 'j')
			opt->threads = (unsigned)cli_int("-j", optarg, 1, 1024);
		else if (key == OPT_NOCHECK)
			opt->no_check = true;
		else if (key == OPT_MEASURED)
			opt->measured = true;
		else if (key == OPT_ROOT && acc_roots_move(roots, optarg, &e) < 0)
			cli_usage("--root: %s", cli_err(&e));
		else if (key == 'q')
			quiet = true;
	}
	opt->also |= where && nnames == 0;
	if (nnames > 0 || where)
		choose(opt);
	if ((nnames > 0 || where) && opt->preset != ACC_PRESET_NONE)
		cli_usage("%s and --preset exclude each other", where ? "--where" : "-m");
}

static void
measure(struct acc_in *in)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0) {
		if (start == 0)
			start = seconds();
		const bool step = acc_rec_is(r, "step");
		if ((step ? acc_measurer_end(measurer, &e) : acc_measurer_put(measurer, r, &e)) < 0)
			cli_die_err(&e);
		if (step)
			cli_put_step(out, r);
	}
	ended = true;
	if (rc < 0 || acc_measurer_end(measurer, &e) < 0)
		cli_die_err(&e);
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_measurer_opt opt = {.rtol = -1, .atol = -1};
	quiet = !isatty(STDERR_FILENO);
	roots = acc_roots_open(&e);
	if (roots == NULL)
		cli_die_err(&e);
	take_options(argc, argv, &opt);
	opt.tmpdir = cli_tmpdir();
	struct acc_in *in = cli_in_open(argc, argv, &out);
	acc_in_leave_open(in);
	opt.in = in;
	opt.idle = quiet ? NULL : idle;
	measurer = acc_measurer_open(roots, &opt, emit, trouble, NULL, &e);
	if (measurer == NULL)
		cli_die_err(&e);
	measure(in);
	if (!quiet)
		progress(true);
	say_more();
	cli_status(out, acc_in_status(in));
	acc_measurer_close(measurer);
	acc_roots_close(roots);
	acc_in_close(in);
	free((void *)opt.metrics);
	return cli_finish(out);
}
