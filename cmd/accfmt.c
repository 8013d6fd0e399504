#include "acc/cli.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPT_JSON = 256, OPT_CSV, OPT_TSV, OPT_MD, OPT_TABLE, OPT_NO_HEADER };

static const struct cli_opt options[] = {
	{'f', "format", "NAME", "how to print: table, json, csv, tsv or md"},
	{OPT_TABLE, "table", NULL, "a table for people; the default"},
	{OPT_JSON, "json", NULL, "JSON Lines: an object a record"},
	{OPT_CSV, "csv", NULL, "comma-separated values"},
	{OPT_TSV, "tsv", NULL, "tab-separated values"},
	{OPT_MD, "md", NULL, "a Markdown table"},
	{'c', "columns", "KEY,...", "keys to show, in this order; or all, msprobe, ptdbg"},
	{'s', "sort", "KEY", "sort by this key; -KEY: the largest first"},
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

/* The keys that the user named, and which of them occurred. */
static struct {
	const char **key;
	bool *seen;
	size_t n, missing;
	bool rows; /* findings alone have few keys, and say that all is well */
} asked;

static void
ask(const char *key)
{
	for (size_t i = 0; i < asked.n; i++)
		if (strcmp(asked.key[i], key) == 0)
			return;
	asked.key = realloc(asked.key, (asked.n + 1) * sizeof *asked.key);
	asked.seen = realloc(asked.seen, (asked.n + 1) * sizeof *asked.seen);
	if (asked.key == NULL || asked.seen == NULL)
		cli_die("out of memory");
	asked.key[asked.n] = key;
	asked.seen[asked.n++] = strcmp(key, "kind") == 0;
	asked.missing += strcmp(key, "kind") != 0;
}

static void
look(const struct acc_rec *r)
{
	asked.rows |= !acc_rec_is(r, "finding");
	for (size_t i = 0; asked.missing > 0 && i < asked.n; i++)
		if (!asked.seen[i] && acc_get(r, "", asked.key[i]) != NULL) {
			asked.seen[i] = true;
			asked.missing--;
		}
}

/* Most often a slip of the pen; one line. */
static void
say_missing(void)
{
	char all[300] = "";
	for (size_t i = 0, n = 0; i < asked.n && n < sizeof all; i++)
		if (!asked.seen[i])
			n += (size_t)snprintf(all + n, sizeof all - n, "%s'%s'", n > 0 ? ", " : "",
				asked.key[i]);
	if (asked.rows && asked.missing > 0)
		cli_warn("no record has a field %s (-c all shows those that there are)", all);
	free(asked.key);
	free(asked.seen);
}

struct row {
	uint64_t at;           /* in the spool */
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
	struct acc_arena mem; /* of keys and texts */
};

/* A key that was not seen before becomes a column. */
static void
learn(struct kept *k, struct acc_str key)
{
	size_t before = k->seen.n;
	if (acc_map_put(&k->seen, key, 0) == NULL)
		cli_die("out of memory");
	if (k->seen.n == before)
		return;
	k->keys = realloc(k->keys, (k->nkeys + 1) * sizeof *k->keys);
	char *copy = acc_arena_copy(&k->mem, key.p, key.n);
	if (k->keys == NULL || copy == NULL)
		cli_die("out of memory");
	k->keys[k->nkeys++] = copy;
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
	if (k->n == k->cap) {
		k->cap = k->cap == 0 ? 1024 : k->cap * 2;
		k->row = realloc(k->row, k->cap * sizeof *k->row);
		if (k->row == NULL)
			cli_die("out of memory");
	}
	struct row *w = &k->row[k->n];
	*w = (struct row){.type = is_row(r) ? ABSENT : NO_ROW, .order = k->n};
	if (w->type == ABSENT)
		look(r);
	k->n++;
	const struct acc_val *v = sort == NULL || w->type == NO_ROW ? NULL : acc_get(r, "", sort);
	struct acc_str s;
	if (acc_as_f64(v, &w->number)) {
		w->type = NUMBER;
	} else if (acc_as_text(v, &s)) {
		w->type = TEXT;
		w->text = acc_arena_copy(&k->mem, s.p, s.n);
		if (w->text == NULL)
			cli_die("out of memory");
	}
	for (uint32_t i = 0; sort == NULL && i < r->n; i++)
		learn(k, r->f[i].key);
	if (acc_spool_put(k->spool, r, &w->at, &e) < 0)
		cli_die_err(&e);
}

static void
print_kept(struct kept *k, const struct acc_format *f, const struct acc_format_opt *opt,
	bool sorted)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	void *state;
	if (sorted)
		qsort(k->row, k->n, sizeof *k->row, compare);
	int rc = f->begin(&state, stdout, opt, &e);
	for (size_t i = 0; rc >= 0 && i < k->n; i++) {
		rc = acc_spool_get(k->spool, k->row[i].at, &r, &e);
		if (rc >= 0)
			rc = f->record(state, r, &e);
	}
	if (rc >= 0)
		rc = f->end(state, 0, &e);
	if (rc < 0)
		cli_die_err(&e);
	f->release(state);
}

static void
print_through(struct acc_in *in, const struct acc_format *f, const struct acc_format_opt *opt)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	void *state;
	int rc = f->begin(&state, stdout, opt, &e);
	while (rc >= 0 && (rc = acc_in_next(in, &r, &e)) > 0) {
		if (is_row(r))
			look(r);
		rc = f->record(state, r, &e);
	}
	/* What was read before a failure is shown; then the failure is said. */
	if (f->end(state, rc < 0 ? 2 : acc_in_status(in), rc < 0 ? NULL : &e) < 0 || rc < 0)
		cli_die_err(&e);
	f->release(state);
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
	while (rc >= 0 && (rc = acc_in_next(in, &r, &e)) > 0)
		if (!all || is_row(r))
			keep(&k, r, sort);
	if (rc < 0)
		cli_die_err(&e);
	if (all) {
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

static _Noreturn void
no_format(const char *name)
{
	char all[128] = "";
	for (size_t i = 0, n = 0; i < acc_nformats && n < sizeof all; i++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i == 0 ? "" :
			i + 1 == acc_nformats ? " and " : ", ", acc_formats[i]->name);
	cli_usage("no format is called '%s'; there are %s", name, all);
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_format_opt opt = {0};
	const char *format = "table", *sort = NULL, *columns = NULL;
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		static const char *const names[] = {"json", "csv", "tsv", "md", "table"};
		if (key >= OPT_JSON && key <= OPT_TABLE)
			format = names[key - OPT_JSON];
		else if (key == 'f')
			format = optarg;
		else if (key == 'c')
			columns = optarg;
		else if (key == 's')
			sort = optarg;
		else if (key == 'l')
			list();
		else
			opt.no_header = true;
	}
	const struct acc_format *f = acc_format_find(format);
	if (f == NULL)
		no_format(format);
	if (sort != NULL && sort[0] == '-') {
		sign = -1;
		sort++;
	}
	bool all = columns != NULL && strcmp(columns, "all") == 0;
	/* JSON Lines show all keys anyway. */
	if (all && strcmp(format, "json") == 0) {
		all = false;
		columns = NULL;
	}
	if (all && sort != NULL)
		cli_usage("--columns=all and --sort do not go together");
	const char **keys = NULL;
	if (columns != NULL && (strcmp(columns, "msprobe") == 0 || strcmp(columns, "ptdbg") == 0))
		opt.preset = columns;
	else if (columns != NULL && !all)
		cli_list(columns, &keys, &opt.ncolumns);
	opt.columns = keys;
	for (size_t i = 0; i < opt.ncolumns; i++)
		ask(keys[i]);
	if (sort != NULL)
		ask(sort);
	cli_terminal(&opt);
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	if (in == NULL)
		cli_die_err(&e);
	if (all || sort != NULL)
		print_all(in, f, &opt, sort);
	else
		print_through(in, f, &opt);
	say_missing();
	int status = acc_in_status(in);
	acc_in_close(in);
	free(keys);
	if (fflush(stdout) != 0 || ferror(stdout) || close(STDOUT_FILENO) != 0)
		cli_die("standard output:");
	return status;
}
