/* The pipeline in one word: which programs compare two dumps, checkpoints, logs or configurations,
 * and with which options. What they are is found out by the library (acc/operand.h); all the work
 * is theirs. */
#include "cli.h"
#include "acc/judge.h"
#include "acc/known.h"
#include "acc/metric.h"
#include "diff.h"
#include "diff_job.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HTML = 256,
	XLSX,
	MODULES,
	RENAME,
	MAP,
	STEPS,
	RANKS,
	ROOT,
	RULES,
	RTOL,
	ATOL,
	REGEX,
	NAME_REGEX,
	SORT,
	TOP,
	MISSING,
	NO_AUDIT,
	NO_FOLD,
	NO_RULE,
	DOUBT,
	GO_ON,
	IGNORE,
	BASELINE,
	NEW_BASELINE,
	BEFORE,
	NEXT,
	SCALE,
	PROFILE,
	EXPECT,
	STRICT,
	PRINT,
	FORMAT, /* and those behind it: of each format */
	MAX_OPTIONS = 64
};

static struct cli_opt options[MAX_OPTIONS] = {
	{'p', "preset", "NAME", "do as msprobe, msprobe-26, msprobe-8.3 or ptdbg does"},
	{'a', "all", NULL, "show every record, not only what is bad"},
	{'f', "format", "NAME", "how to print, see accfmt --list; or, for short:"},
};
/* The formats stand between. */
static const struct cli_opt other_options[] = {
	{HTML, "html", "FILE", "a page for a browser, too, of all records"},
	{XLSX, "xlsx", "FILE", "a spreadsheet, too"},
	{'c', "columns", "KEY,...", "keys to show, or msprobe"},
	{'n', "noise", "BENCH2", "a second run of the bench: what differs is noise"},
	{'s', "step", "LIST", "these steps only, such as 0,2-4"},
	{'r', "rank", "LIST", "these ranks only"},
	{'o', "op", "GLOB,...", "these op calls only"},
	{MODULES, "modules", NULL, "compare modules' calls, in place of op calls"},
	{RENAME, "rename", "RULE", "rename modules: OLD=NEW, s/REGEX/TEXT/, @FILE"},
	{MAP, "map", "FILE", "a mapping file of msprobe"},
	{STEPS, "steps", "A=B,...", "step A of the device belongs to step B of the bench"},
	{RANKS, "ranks", "A=B,...", "rank A of the device belongs to rank B of the bench"},
	{ROOT, "root", "OLD=NEW", "look for files of folder OLD in NEW"},
	{RULES, "rules", "FILE", "judge by the rules of this file"},
	{RTOL, "rtol", "X", "relative tolerance of m.outside"},
	{ATOL, "atol", "X", "absolute tolerance of m.outside"},
	{REGEX, "regex", "PATTERN", "read logs by a pattern with named groups"},
	{NAME_REGEX, "name-regex", "PATTERN",
		"read op, io ... from names of files, by named groups"},
	{SORT, "sort", "KEY", "sort by this key; -KEY: the largest first"},
	{TOP, "top", "N", "so many rows of a table (20)"},
	{MISSING, "allow-missing", "GLOB", "one side may lack these"},
	{'j', "threads", "N", "threads that measure and recompute"},
	{NO_AUDIT, "no-audit", NULL, "judge without recomputing what is suspected"},
	{NO_RULE, "no-rule", "ID", "switch this rule of accaudit or accfirstbad off"},
	{DOUBT, "doubt", "ID", "doubt only what this rule accuses"},
	{NO_FOLD, "no-fold", NULL, "leave the ranks of a side as they are"},
	{GO_ON, "go-on", NULL, "of job folders, go on behind the first cause"},
	{IGNORE, "ignore", "GLOB[=REASON]", "accuse no op call or weight of this name"},
	{BASELINE, "baseline", "FILE", "accept what is in FILE and not worse by now"},
	{NEW_BASELINE, "write-baseline", "FILE", "write what was found, for --baseline"},
	{NEXT, "next", "FILE", "write the recorder's settings for what to record next"},
	{BEFORE, "before", "OLD", "the device's dump before a change: what that mended"},
	{SCALE, "scale", "X", "multiply the limits by X, 1 or more"},
	{PROFILE, "profile", "FILE", "limits of what is recomputed: see accaudit(1)"},
	{EXPECT, "expect-ranks", "N", "trouble if the device lacks one of ranks 0 to N-1"},
	{STRICT, "strict", NULL, "exit 1 also for what is unmatched or a warning"},
	{PRINT, "print-pipeline", NULL, "print the pipeline for a shell, and run nothing"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accdiff",
	.synopsis = "DEVICE BENCH",
	.summary = "Compare two dumps, checkpoints, logs, configurations, or folders of these.",
	.opt = options,
	.notes = "DEVICE is the dump under test, BENCH the trusted one; one may be -, a stream.\n"
		 "Exit status: 0 nothing is bad, 1 something is, 2 trouble.\n",
};

/* Which programs an option is handed to. */
enum {
	READING = 1,
	ALIGNING = 2,
	MEASURING = 4,
	JUDGING = 8,
	PRINTING = 16,
	REPORTS = 32,
	AUDITING = 64,
	TENSORS = 128
};
static const struct {
	int key;
	unsigned to;
} handed[] = {
	{REGEX, READING},
	{NAME_REGEX, READING},
	{MODULES, ALIGNING | TENSORS},
	{RENAME, ALIGNING},
	{MAP, ALIGNING},
	{STEPS, ALIGNING},
	{RANKS, ALIGNING},
	{ROOT, MEASURING | JUDGING | TENSORS},
	{RTOL, MEASURING | TENSORS},
	{ATOL, MEASURING | TENSORS},
	{MISSING, JUDGING | TENSORS},
	{IGNORE, JUDGING | TENSORS},
	{BASELINE, JUDGING | TENSORS},
	{NEW_BASELINE, JUDGING | TENSORS},
	{BEFORE, TENSORS},
	{NEXT, JUDGING | TENSORS},
	{SCALE, JUDGING | TENSORS},
	{PROFILE, AUDITING | JUDGING},
	{EXPECT, TENSORS},
	{RULES, JUDGING},
	{NO_RULE, AUDITING | TENSORS},
	{DOUBT, AUDITING | TENSORS},
	{HTML, REPORTS},
	{XLSX, REPORTS},
	{SORT, PRINTING},
};

static void
make_options(void)
{
	const size_t others = sizeof other_options / sizeof *other_options;
	size_t n = 3;
	for (size_t i = 0; i < acc_nformats && n + others < MAX_OPTIONS; i++)
		if (!acc_formats[i]->file)
			options[n++] = (struct cli_opt){FORMAT + (int)i, acc_formats[i]->name, NULL,
				NULL};
	memcpy(options + n, other_options, sizeof other_options);
}

/* An option with its argument, for a program that knows what it means. */
static void
hand(struct diff_opt *o, int key, const char *arg)
{
	struct words *const lists[] = {&o->reading, &o->aligning, &o->measuring, &o->judging,
		&o->printing, &o->reports, &o->auditing};
	const struct cli_opt *known = other_options;
	unsigned to = 0;
	while (known->key != key && known->key != 0)
		known++;
	for (size_t i = 0; i < sizeof handed / sizeof *handed; i++)
		to |= handed[i].key == key ? handed[i].to : 0;
	/* A rule of the judge, or of the audit. */
	if ((key == NO_RULE || key == DOUBT) && cli_witness_use(NULL, false, arg))
		to = JUDGING | TENSORS;
	const char *word = arg == NULL ? diff_text("--%s", known->name)
				       : diff_text("--%s=%s", known->name, arg);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (to & 1u << i)
			cli_append(&lists[i]->v, &lists[i]->n, word);
	if (to & TENSORS)
		o->tensors = diff_text("--%s", known->name);
	if (key == EXPECT)
		o->expected = word;
}

/* What the programs below would refuse, each in its own way. */
static void
one_of(const char *option, const char *word, const char *const *known, size_t n)
{
	const char *all = "";
	for (size_t i = 0; i < n; i++) {
		if (strcmp(word, known[i]) == 0)
			return;
		all = diff_text("%s%s%s", all, i > 0 ? ", " : "", known[i]);
	}
	cli_die("%s: there is no '%s', but %s", option, word, all);
}

/* A whole number that begins with no 0, of at most so many digits. */
static bool
is_number(const char *s, size_t most)
{
	return s[0] != '0' && s[0] != '\0' && strlen(s) <= most &&
	       s[strspn(s, "0123456789")] == '\0';
}

/* "0,2-4" */
static size_t
list(const char *option, const char *s, int64_t **out)
{
	const char *p = s;
	bool ok = true, more = true;
	while (ok && more) {
		size_t n = strspn(p, "0123456789"), m = 0;
		p += n;
		if (*p == '-')
			m = strspn(p + 1, "0123456789");
		ok = n > 0 && (*p != '-' || m > 0);
		p += *p == '-' ? m + 1 : 0;
		more = *p == ',';
		p += more;
	}
	if (!ok || *p != '\0')
		cli_die("%s: '%s' is not a list such as 0,2-4", option, s);
	return cli_ints(option, s, out);
}

/* What is wrong with the columns is said before hours go by. What is measured only on request is
 * asked for by its column. */
static void
check_columns(struct diff_opt *o)
{
	struct acc_err e = {0};
	const char *columns = strncmp(o->columns, "maca", 4) == 0 ? "m.diff1,m.diff2" : o->columns;
	const char **key = NULL;
	size_t n = 0;
	bool set = strcmp(columns, "all") == 0;
	for (size_t i = 0; acc_columns_name(i) != NULL; i++)
		set |= strcmp(columns, acc_columns_name(i)) == 0;
	cli_list(columns, &key, &n);
	for (size_t i = 0; !set && i < n; i++)
		if (strcmp(key[i], "kind") != 0 && acc_key_check(acc_str(key[i]), &e) < 0)
			cli_die("%s", cli_err(&e));
	for (size_t i = 0; o->preset == NULL && i < acc_nmetrics; i++)
		for (size_t k = 0; k < n; k++)
			if (acc_metrics[i]->second != NULL &&
				strcmp(key[k], acc_metrics[i]->name) == 0)
				o->also = diff_text("%s%s%s", o->also == NULL ? "+" : o->also,
					o->also == NULL ? "" : ",", key[k]);
	free(key);
}

static void
check(struct diff_opt *o, const char *device, const char *bench)
{
	static const char *const presets[] = {"msprobe", "msprobe-26", "msprobe-8.3", "ptdbg"};
	static int64_t *steps, *ranks; /* as long as the program */
	const char *formats[32], *const side[] = {device, bench, o->noise, o->before};
	const size_t n = acc_nformats < 32 ? acc_nformats : 32;
	for (size_t i = 0; i < n; i++)
		formats[i] = acc_formats[i]->name;
	if (o->preset != NULL)
		one_of("--preset", o->preset, presets, 4);
	one_of("--format", o->format, formats, n);
	if (o->columns != NULL)
		check_columns(o);
	if (o->step != NULL)
		o->sel.nsteps = list("--step", o->step, &steps);
	if (o->rank != NULL)
		o->sel.nranks = list("--rank", o->rank, &ranks);
	o->sel.steps = steps, o->sel.ranks = ranks;
	if (o->top != NULL && !is_number(o->top, 9))
		cli_die("--top: '%s' is not a number of rows", o->top);
	if (o->threads != NULL && !is_number(o->threads, 4))
		cli_die("--threads: '%s' is not a number of threads", o->threads);
	if (strcmp(device, "-") == 0 && strcmp(bench, "-") == 0)
		cli_die("only one side can be standard input");
	if (o->noise != NULL && (strcmp(bench, "-") == 0 || strcmp(o->noise, "-") == 0))
		cli_die("with --noise, BENCH is read twice");
	if (o->noise != NULL && o->preset != NULL)
		cli_die("--noise cannot be combined with --preset");
	if (o->rules != NULL && o->preset != NULL)
		cli_die("only one of --preset and --rules");
	if (o->regex != NULL && o->name_regex != NULL)
		cli_die("only one of --regex and --name-regex");
	if (o->before != NULL && (strcmp(bench, "-") == 0 || strcmp(o->before, "-") == 0))
		cli_die("with --before, BENCH is read twice");
	if (o->before != NULL && (o->noise != NULL || o->preset != NULL || o->rules != NULL))
		cli_die("--before cannot be combined with --noise, --preset or --rules");
	for (size_t i = 0; i < 4; i++) {
		struct stat st;
		if (side[i] == NULL || strcmp(side[i], "-") == 0 || stat(side[i], &st) == 0)
			continue;
		if (acc_file_absent(errno))
			cli_die("%s: no such file or directory", side[i]);
		cli_die("%s: cannot open:", side[i]);
	}
}

/* Of what follows from the culprit a few rows do, where nobody asked for more. */
static void
choose_rows(struct diff_opt *o)
{
	if (strcmp(o->format, "table") != 0)
		return;
	if (o->all) {
		o->behind = "all";
		return;
	}
	if (o->top == NULL && o->columns == NULL && o->printing.n == 0)
		o->behind = "10";
	if (o->top == NULL)
		o->top = "20";
}

/* The programs beside this one come first, so that a copied folder works. Where it was called by its
 * bare name, it was found where they are. */
static void
find_programs(const char *argv0)
{
	const char *path = getenv("PATH"), *slash = strrchr(argv0, '/');
	struct stat st;
	if (slash == NULL)
		return;
	const char *here = slash == argv0 ? "/" : diff_text("%.*s", (int)(slash - argv0), argv0);
	if (stat(diff_text("%s/accdump-read", here), &st) < 0)
		return;
	if (path != NULL)
		here = diff_text("%s:%s", here, path);
	if (setenv("PATH", here, 1) < 0)
		cli_nomem();
}

/* Asked by LeakSanitizer alone: what accdiff makes lives until its end, which is soon. */
int __lsan_is_turned_off(void);
int
__lsan_is_turned_off(void)
{
	return 1;
}

int
main(int argc, char **argv)
{
	struct diff_opt o = {.format = "table", .kept = -1};
	const char *argv0 = argv[0];
	cli_language(argc, argv);
	uint8_t *use = NULL; /* for the ids to be known */
	make_options();
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;)
		if (key >= FORMAT)
			o.format = acc_formats[key - FORMAT]->name;
		else if (key == 'p')
			o.preset = optarg;
		else if (key == 'a')
			o.all = true;
		else if (key == 'f')
			o.format = optarg;
		else if (key == 'c')
			o.columns = optarg;
		else if (key == 'n')
			o.noise = optarg;
		else if (key == 's')
			o.step = optarg;
		else if (key == 'r')
			o.rank = optarg;
		else if (key == 'o')
			o.op = optarg;
		else if (key == 'j')
			o.threads = optarg;
		else if (key == TOP)
			o.top = optarg;
		else if (key == NO_AUDIT)
			o.no_audit = true;
		else if (key == NO_FOLD)
			o.no_fold = true;
		else if (key == GO_ON)
			o.go_on = true;
		else if (key == STRICT)
			o.strict = true;
		else if (key == PRINT)
			o.print = true;
		else {
			o.regex = key == REGEX ? optarg : o.regex;
			o.name_regex = key == NAME_REGEX ? optarg : o.name_regex;
			o.rules = key == RULES ? optarg : o.rules;
			o.before = key == BEFORE ? optarg : o.before;
			if ((key == NO_RULE || key == DOUBT) &&
				!cli_witness_use(NULL, false, optarg))
				cli_rule_use(&use, key == DOUBT, optarg, "accfirstbad");
			hand(&o, key, optarg);
		}
	if (argc - optind != 2)
		cli_usage("two dumps are needed, not %d", argc - optind);
	check(&o, argv[optind], argv[optind + 1]);
	free(use);
	choose_rows(&o);
	find_programs(argv0);
	return diff_job(&o, argv[optind], argv[optind + 1]);
}
