/* Prints a stream: which rows, in which order, into which formats. */
#include "cli.h"
#include "acc/say.h"
#include "fmt_asked.h"
#include "fmt_files.h"
#include "fmt_rows.h"
#include "fmt_values.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	OPT_NO_HEADER = 256,
	OPT_TOP,
	OPT_BEHIND,
	OPT_VALUES,
	OPT_VOCABULARY,
	OPT_ROOT,
	OPT_BAD,
	OPT_FORMAT,
	MAX_OPTIONS = 48
};
enum { BEHIND = 10 }; /* rows behind the culprit that a table shows */

/* The table of formats stands behind the first. */
static char columns_help[128];
static struct cli_opt options[MAX_OPTIONS] = {
	{'f', "format", "NAME", "how to print: one of those of --list"},
};
static const struct cli_opt other_options[] = {
	{'c', "columns", "KEY,...", columns_help},
	{'s', "sort", "KEY", "sort by this key; -KEY: the largest first"},
	{OPT_BAD, "bad", NULL, "print of all rows those that are bad alone"},
	{OPT_TOP, "top", "N", "the first N rows alone, and how many more there are"},
	{OPT_BEHIND, "consequences", "N", "so many rows behind the culprit; all: all of them"},
	{OPT_VALUES, "values", "NAME", "what stands in this tensor around its worst element"},
	{OPT_VOCABULARY, "vocabulary", "FILE", "--values as text, by this tokenizer.json"},
	{OPT_ROOT, "root", "FOLDER", "with --values: the stream's files may be here"},
	{OPT_NO_HEADER, "no-header", NULL, "no line of column titles"},
	{'l', "list", NULL, "list the formats"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accfmt",
	.synopsis = "[FILE ...]",
	.summary = "Print a stream of records for people or for other tools.",
	.opt = options,
	.notes = "Reads standard input, or stream files, several of them merged.\n"
		 "The exit status is that of the stream.\n",
};

struct row {
	uint64_t at; /* in the spool */
	/* Stacks and sources stay in front: rows may need them. */
	enum { NO_ROW, NUMBER, TEXT, ABSENT } type;
	double number;
	char *text;
	size_t order;
};

static int sign = 1;

static int
compare(const void *p, const void *q)
{
	const struct row *a = p, *b = q;
	int d = (a->type > b->type) - (a->type < b->type);
	if (d == 0 && a->type == NUMBER) {
		/* NaN is the worst there can be: beyond every number. */
		if (isnan(a->number) || isnan(b->number))
			d = sign * ((isnan(a->number) != 0) - (isnan(b->number) != 0));
		else
			d = sign * ((a->number > b->number) - (a->number < b->number));
	} else if (d == 0 && a->type == TEXT) {
		d = sign * strcmp(a->text, b->text);
	}
	return d != 0 ? d : (a->order > b->order) - (a->order < b->order);
}

/* All records kept aside, to be sorted, or to learn all keys before the first is printed. */
struct kept {
	struct acc_spool *spool;
	struct row *row;
	size_t n, cap;
	struct acc_map seen;
	const char **keys;
	size_t nkeys;
	uint64_t rows, fields; /* for which all keys are columns */
	struct acc_arena mem;  /* of keys and texts */
};

/* A key that was not seen before becomes a column. */
static void
learn(struct kept *k, struct acc_str key)
{
	size_t before = k->seen.n;
	if (acc_map_put(&k->seen, key, 0) == NULL)
		cli_nomem();
	if (k->seen.n == before)
		return;
	char *copy = acc_arena_copy(&k->mem, key.p, key.n);
	if (copy == NULL)
		cli_nomem();
	cli_append(&k->keys, &k->nkeys, copy);
}

static bool
is_row(const struct acc_rec *r)
{
	return !acc_rec_is(r, "source") && !acc_rec_is(r, "stack") && !acc_rec_is(r, "data");
}

static void
keep(struct kept *k, const struct acc_rec *r, const char *sort)
{
	struct acc_err e = {0};
	if (!ACC_ROOM(k->row, k->cap, k->n + 1, NULL))
		cli_nomem();
	struct row *w = &k->row[k->n];
	*w = (struct row){.type = is_row(r) ? ABSENT : NO_ROW, .order = k->n};
	if (w->type == ABSENT)
		asked_look(r);
	k->n++;
	const struct acc_val *v = sort == NULL || w->type == NO_ROW ? NULL : acc_get(r, "", sort);
	struct acc_str s;
	if (acc_as_f64(v, &w->number)) {
		w->type = NUMBER;
	} else if (acc_as_text(v, &s)) {
		w->type = TEXT;
		w->text = acc_arena_copy(&k->mem, s.p, s.n);
		if (w->text == NULL)
			cli_nomem();
	}
	for (uint32_t i = 0; sort == NULL && w->type != NO_ROW && i < r->n; i++)
		learn(k, r->f[i].key);
	k->rows += sort == NULL && w->type != NO_ROW;
	k->fields += sort == NULL && w->type != NO_ROW ? r->n + (uint64_t)1 : 0;
	if (acc_spool_put(k->spool, r, &w->at, &e) < 0)
		cli_die_err(&e);
}

static int
put_kept(struct kept *k, const struct acc_format *f, void *state, struct acc_err *e)
{
	struct acc_rec *r;
	/* Who reads CSV counts its rows. */
	const bool blank = asked_nothing_yet() && f == acc_formats[0];
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < k->n; i++) {
		rc = acc_spool_get(k->spool, k->row[i].at, &r, e);
		if (rc >= 0 && !(blank && is_row(r) && !acc_rec_is(r, "finding")))
			rc = rows_put(f, state, r, e);
	}
	k->n = 0;
	return rc;
}

static void
print_kept(struct kept *k, const struct acc_format *f, const struct acc_format_opt *opt,
	bool sorted)
{
	struct acc_err e = {0};
	void *state;
	if (sorted)
		qsort(k->row, k->n, sizeof *k->row, compare);
	int rc = acc_format_open(f, &state, stdout, opt, &e);
	if (rc >= 0)
		rc = put_kept(k, f, state, &e);
	if (rc >= 0)
		rc = rows_left(f, state, &e);
	if (rc >= 0)
		rc = acc_format_end(f, state, 0, &e);
	if (rc < 0)
		cli_die_err(&e);
	acc_format_close(f, state);
}

/* The next record, which goes into the files, too. */
static int
next(struct acc_in *in, struct acc_rec **r, struct acc_err *e)
{
	int rc = values_next(in, r, e);
	if (rc > 0)
		files_put(*r);
	return rc;
}

/* Nothing is printed. */
static void
print_none(struct acc_in *in)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	while ((rc = next(in, &r, &e)) > 0)
		if (is_row(r))
			asked_look(r);
	if (rc < 0)
		cli_die_err(&e);
	asked_check();
}

/* Of a recording that is followed each step is shown when it ends: a table of its own. */
static int
put_step(const struct acc_format *f, void **state, const struct acc_format_opt *opt,
	const struct acc_rec *r, struct acc_err *e)
{
	int rc = 0;
	if (f != acc_formats[0]) {
		rc = f->record(*state, r, e);
	} else {
		rc = rows_left(f, *state, e);
		rc = rc < 0 ? rc : acc_format_end(f, *state, 0, e);
		acc_format_close(f, *state);
		*state = NULL;
		printf("--- step %lld\n\n", (long long)acc_get_int(r, "", "step", -1));
		rc = rc < 0 ? rc : acc_format_open(f, state, stdout, opt, e);
		rows_begin();
	}
	if (rc == 0 && fflush(stdout) != 0)
		cli_die("standard output:");
	return rc;
}

static void
print_through(struct acc_in *in, const struct acc_format *f, struct acc_format_opt *opt)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	void *state = NULL;
	struct kept k = {.spool = acc_spool_open(cli_tmpdir(), &e)};
	bool waits = asked_nothing_yet() && !f->all_keys;
	int rc = k.spool == NULL ? -1 : waits ? 1 : acc_format_open(f, &state, stdout, opt, &e);
	while (rc >= 0 && (rc = next(in, &r, &e)) > 0) {
		if (is_row(r))
			asked_look(r);
		if (waits && asked_nothing_yet()) {
			keep(&k, r, "");
			continue;
		}
		/* The record is borrowed from the stream; those that were kept come from the spool. */
		if (waits)
			rc = acc_format_open(f, &state, stdout, opt, &e);
		if (waits && rc >= 0)
			rc = put_kept(&k, f, state, &e);
		waits = false;
		if (rc >= 0)
			rc = acc_rec_is(r, "step") ? put_step(f, &state, opt, r, &e)
						   : rows_put(f, state, r, &e);
	}
	if (waits && rc >= 0) {
		asked_check();
		rc = acc_format_open(f, &state, stdout, opt, &e);
		waits = false;
		if (rc >= 0)
			rc = put_kept(&k, f, state, &e);
	}
	if (waits || state == NULL)
		cli_die_err(&e);
	if (rc >= 0)
		rc = rows_left(f, state, &e);
	/* What was read before a failure is shown; then the failure is said. */
	if (files_end_one(f, state, rc < 0 ? 2 : acc_in_status(in), rc < 0 ? NULL : &e) < 0 ||
		rc < 0)
		cli_die_err(&e);
	acc_format_close(f, state);
	acc_spool_close(k.spool);
	acc_arena_release(&k.mem);
	free(k.row);
}

/* What is empty in a table of all keys grows with rows times keys: a record of 4,000 keys among 200,000 of one makes
 * 800 MB of 3. So many empty cells there may be for each that holds something, and so many in any case. */
enum { EMPTY_PER_CELL = 16, EMPTY_FREE = 16 << 20 };

static void
check_table(const struct kept *k)
{
	uint64_t cells = k->rows * k->nkeys; /* both are of what lies in memory */
	if (cells > k->fields * (EMPTY_PER_CELL + 1) + EMPTY_FREE)
		cli_die("all keys as columns: %llu rows of %zu, of which %llu cells hold something: too many that are "
			"empty (-f json has each record with its own keys, -c KEY,... names columns)",
			(unsigned long long)k->rows, k->nkeys, (unsigned long long)k->fields);
}

static void
print_all(struct acc_in *in, const struct acc_format *f, struct acc_format_opt *opt,
	const char *sort)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	struct kept k = {.spool = acc_spool_open(cli_tmpdir(), &e)};
	int rc = k.spool == NULL ? -1 : 0;
	bool all = sort == NULL;
	if (all)
		learn(&k, ACC_STR("kind"));
	while (rc >= 0 && (rc = next(in, &r, &e)) > 0)
		if (!all || is_row(r) || acc_rec_is(r, "stack"))
			keep(&k, r, sort);
	if (rc < 0)
		cli_die_err(&e);
	asked_check();
	if (all) {
		check_table(&k);
		opt->columns = k.keys;
		opt->ncolumns = k.nkeys;
	}
	print_kept(&k, f, opt, !all);
	acc_spool_close(k.spool);
	acc_map_release(&k.seen);
	acc_arena_release(&k.mem);
	free(k.keys);
	free(k.row);
}

static void
list(void)
{
	for (size_t i = 0; i < acc_nformats; i++)
		cli_item(acc_formats[i]->name, 8, acc_formats[i]->help);
	cli_printed();
}

/* "table, json and md" */
static void
format_names(char *out, size_t size)
{
	for (size_t i = 0, n = 0; i < acc_nformats && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s",
			i == 0                  ? ""
			: i + 1 == acc_nformats ? " and "
						: ", ",
			acc_formats[i]->name);
}

static _Noreturn void
no_format(const char *name)
{
	char all[192] = "";
	format_names(all, sizeof all);
	cli_usage("no format named '%s'; there are %s", name, all);
}

/* An option for each format, and what the others list. */
static void
make_options(void)
{
	const size_t others = sizeof other_options / sizeof *other_options;
	size_t n = 1;
	for (size_t i = 0; i < acc_nformats && n + others < MAX_OPTIONS; i++)
		options[n++] = (struct cli_opt){OPT_FORMAT + (int)i, acc_formats[i]->name,
			acc_formats[i]->file ? "FILE" : NULL, acc_formats[i]->help};
	memcpy(options + n, other_options, sizeof other_options);
	size_t at = (size_t)snprintf(columns_help, sizeof columns_help, "%s", acc_tr("keys, all"));
	for (size_t i = 0; acc_columns_name(i) != NULL && at < sizeof columns_help; i++)
		at += (size_t)snprintf(columns_help + at, sizeof columns_help - at, ", %s",
			acc_columns_name(i));
}

static bool
is_set(const char *columns)
{
	for (size_t i = 0; columns != NULL && acc_columns_name(i) != NULL; i++)
		if (strcmp(columns, acc_columns_name(i)) == 0)
			return true;
	return false;
}

/* What the user asked for. */
struct job {
	struct acc_format_opt opt;
	struct rows_wanted rows;
	const char *format, *sort, *columns, *values;
	const char **folders;
	size_t nfolders, folders_cap;
	struct acc_vocabulary *vocabulary;
	bool list, behind, all; /* behind: --consequences; all: all keys are columns */
	const char **keys;
};

static void
option(struct job *j, int key)
{
	struct acc_err e = {0};
	if (key >= OPT_FORMAT && optarg != NULL && strcmp(optarg, "-") != 0) {
		files_add(acc_formats[key - OPT_FORMAT], optarg);
		return;
	}
	if (key >= OPT_FORMAT) {
		j->format = acc_formats[key - OPT_FORMAT]->name;
		return;
	}
	switch (key) {
	case 'f':
		j->format = optarg;
		break;
	case 'c':
		j->columns = optarg;
		break;
	case 's':
		j->sort = optarg;
		break;
	case 'l':
		j->list = true;
		break;
	case OPT_TOP:
		j->rows.top = (uint64_t)cli_int("--top", optarg, 1, INT64_MAX);
		break;
	case OPT_BAD:
		j->rows.bad = true;
		break;
	case OPT_VALUES:
		j->values = optarg;
		break;
	case OPT_VOCABULARY:
		acc_vocabulary_close(j->vocabulary);
		j->vocabulary = acc_vocabulary_open(optarg, &e);
		if (j->vocabulary == NULL)
			cli_die_err(&e);
		break;
	case OPT_ROOT:
		if (!ACC_ROOM(j->folders, j->folders_cap, j->nfolders + 1, NULL))
			cli_nomem();
		j->folders[j->nfolders++] = optarg;
		break;
	case OPT_BEHIND:
		j->behind = j->rows.counted = true;
		if (strcmp(optarg, "all") != 0)
			j->rows.behind = (uint64_t)cli_int("--consequences", optarg, 0, INT64_MAX);
		break;
	case OPT_NO_HEADER:
		j->opt.no_header = true;
	}
}

/* What options mean together, for the format that was chosen. */
static void
settle(struct job *j, const struct acc_format *f)
{
	if (j->sort != NULL && j->sort[0] == '-') {
		sign = -1;
		j->sort++;
	}
	const bool plain = f == acc_formats[0] && j->columns == NULL && j->sort == NULL;
	j->rows.joins = plain;
	if (!j->behind && plain && j->rows.top == 0) {
		j->rows.counted = true;
		j->rows.behind = BEHIND;
	}
	rows_want(&j->rows);
	j->all = j->columns != NULL && strcmp(j->columns, "all") == 0;
	if (j->all && f->all_keys) {
		j->all = false;
		j->columns = NULL;
	}
	if (j->all && j->sort != NULL)
		cli_usage("--columns=all and --sort do not go together");
	if (is_set(j->columns))
		j->opt.preset = j->columns;
	else if (j->columns != NULL && !j->all)
		cli_list(j->columns, &j->keys, &j->opt.ncolumns);
	j->opt.columns = j->keys;
	for (size_t i = 0; i < j->opt.ncolumns; i++)
		asked_add(j->keys[i]);
	if (j->sort != NULL)
		asked_add(j->sort);
	if (j->list) {
		asked_check();
		list();
	}
	if (j->values != NULL && files_any())
		cli_usage("--values prints, and writes no report");
	if (j->vocabulary != NULL && j->values == NULL)
		cli_usage("--vocabulary is for --values");
	if (j->nfolders > 0 && j->values == NULL)
		cli_usage("--root is for --values");
	cli_terminal(&j->opt);
	j->opt.tmpdir = cli_tmpdir();
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct job job = {.rows = {.behind = UINT64_MAX}};
	cli_language(argc, argv);
	make_options();
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;)
		option(&job, key);
	/* Who wants files alone asks for no format. */
	const bool prints = job.format != NULL || !files_any();
	const struct acc_format *f = job.format == NULL ? acc_formats[0]
							: acc_format_find(job.format);
	if (f == NULL)
		no_format(job.format);
	settle(&job, f);
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	if (in == NULL)
		cli_die_err(&e);
	job.opt.log = acc_in_log(in, &job.opt.nlog);
	if (prints || files_any())
		files_guard(f);
	files_begin(&job.opt);
	if (job.values != NULL)
		values_print(in, job.values, job.vocabulary, argv + optind, job.folders,
			job.nfolders);
	else if (!prints)
		print_none(in);
	else if (job.all || job.sort != NULL)
		print_all(in, f, &job.opt, job.sort);
	else
		print_through(in, f, &job.opt);
	files_end(acc_in_status(in));
	int status = asked_missing();
	if (acc_in_status(in) > status)
		status = acc_in_status(in);
	acc_in_close(in);
	acc_vocabulary_close(job.vocabulary);
	free(job.keys);
	free(job.folders);
	if (fflush(stdout) != 0 || ferror(stdout) || close(STDOUT_FILENO) != 0)
		cli_die("standard output:");
	return status;
}
