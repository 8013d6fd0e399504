#include "cli.h"
#include "acc/say.h"
#include "fmt_files.h"
#include "fmt_ranks.h"
#include "acc/known.h"
#include "acc/values.h"

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

/* The keys that the user named, and which of them occurred. */
static struct {
	struct asked_key {
		const char *key;
		bool seen;
	} * v;
	size_t n, cap, missing;
	bool rows; /* findings alone have few keys, and say that all is well */
} asked;

static void
ask(const char *key)
{
	for (size_t i = 0; i < asked.n; i++)
		if (strcmp(asked.v[i].key, key) == 0)
			return;
	if (!ACC_ROOM(asked.v, asked.cap, asked.n + 1, NULL))
		cli_nomem();
	asked.v[asked.n++] = (struct asked_key){key, strcmp(key, "kind") == 0};
	asked.missing += strcmp(key, "kind") != 0;
}

static void
look(const struct acc_rec *r)
{
	asked.rows |= !acc_rec_is(r, "finding");
	for (size_t i = 0; asked.missing > 0 && i < asked.n; i++)
		if (!asked.v[i].seen && acc_get(r, "", asked.v[i].key) != NULL) {
			asked.v[i].seen = true;
			asked.missing--;
		}
}

/* Keys that no program writes; a stream of a newer version may hold some that are new. */
static void
check_keys(void)
{
	struct acc_err e = {0};
	for (size_t i = 0; i < asked.n; i++)
		if (!asked.v[i].seen && acc_key_check(acc_str(asked.v[i].key), &e) < 0)
			cli_die("%s", cli_err(&e));
}

/* What only a program of the pipe can add. Of what a recorder may or may not know, such as the
 * rank, nobody expects anything. */
static bool
is_measure(struct acc_str key)
{
	struct acc_str s = key;
	if (acc_str_starts(s, "a.") || acc_str_starts(s, "b."))
		s = (struct acc_str){s.p + 2, s.n - 2};
	return !acc_key_speaks(key) &&
	       (acc_str_starts(s, "m.") || acc_str_starts(s, "s.") || acc_str_starts(s, "audit."));
}

/* Keys that exist, but not in this stream; one line. 2 where a column is empty that could not be
 * so if anything had been looked at: nobody may read it as zero. */
static int
say_missing(void)
{
	check_keys();
	char all[300] = "";
	int status = 0;
	for (size_t i = 0, n = 0; i < asked.n; i++) {
		if (asked.v[i].seen)
			continue;
		if (n < sizeof all)
			n += (size_t)snprintf(all + n, sizeof all - n, "%s'%s'", n > 0 ? ", " : "",
				asked.v[i].key);
		if (asked.rows && is_measure(acc_str(asked.v[i].key)))
			status = 2;
	}
	if (asked.rows && asked.missing > 0)
		cli_warn("no record has a field %s (-c all shows those that there are)", all);
	free(asked.v);
	return status;
}

/* --- the first rows alone --- */

static struct {
	uint64_t most; /* 0: all */
	uint64_t rows, left;
	bool said;
} top;

/* Behind the culprit, what adds error, too, mostly follows from it: one fault may be followed by hundreds. */
enum { BEHIND = 10 };
static struct {
	uint64_t most, rows, records; /* rows: of several ranks one may stand for their records */
	bool counted, said;
	char culprit[100];
} behind = {.most = UINT64_MAX};

/* Is this a row behind the first one of the op call that accfirstbad names? */
static bool
is_behind(const struct acc_rec *r)
{
	static const char *const rules[] = {"output", "input", "argument", "audit"};
	struct acc_str bad = acc_get_text(r, "", "bad"), rule = acc_get_text(r, "", "rule");
	bool judged = false;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		judged |= acc_str_is(rule, rules[i]);
	if (!judged)
		return false;
	if (behind.culprit[0] == '\0' && acc_str_is(bad, "error")) {
		struct acc_str key = acc_get_text(r, acc_rec_is(r, "pair") ? "a." : "", "key");
		if (key.n == 0)
			key = ACC_STR("the culprit");
		snprintf(behind.culprit, sizeof behind.culprit, "%.*s", ACC_PRS(key));
	}
	return behind.culprit[0] != '\0' && acc_str_is(bad, "warning");
}

static int
say(const struct acc_format *f, void *state, const struct acc_arena *m, const char *text,
	struct acc_err *e)
{
	static struct acc_rec r;
	if (acc_rec_start(&r, ACC_STR("finding")) < 0 ||
		acc_add(&r, "", "what", acc_ctext("other")) < 0 ||
		acc_put_said(&r, "", "text", m, text) < 0)
		cli_nomem();
	return cli_show(f, state, &r, e);
}

/* A row, which stands for n records. */
static int
put_one(const struct acc_format *f, void *state, const struct acc_rec *r, uint64_t n,
	struct acc_err *e)
{
	bool pair = acc_rec_is(r, "pair") || acc_rec_is(r, "tensor");
	if (pair && behind.counted && is_behind(r)) {
		behind.records += n;
		if (++behind.rows > behind.most)
			return 0;
	}
	if (pair && top.most > 0 && top.rows++ >= top.most) {
		top.left++;
		return 0;
	}
	return cli_show(f, state, r, e);
}

/* Do ranks that say alike get one row? Where bad rows alone are printed: others would change their order. */
static bool joins;
struct table {
	const struct acc_format *f;
	void *state;
};

static int
put_joined(void *arg, const struct acc_rec *r, uint64_t n, struct acc_err *e)
{
	const struct table *t = arg;
	return put_one(t->f, t->state, r, n, e);
}

static int
put_ranks(const struct acc_format *f, void *state, struct acc_err *e)
{
	struct table t = {f, state};
	return ranks_put(put_joined, &t, e);
}

/* Say how many rows were left out, before what is said of the whole. */
static int
say_left(const struct acc_format *f, void *state, struct acc_err *e)
{
	struct acc_arena mem = {0};
	int rc = put_ranks(f, state, e);
	if (rc >= 0 && behind.counted && behind.rows > 0 && !behind.said) {
		behind.said = true;
		const char *text = acc_say(&mem,
			"%llu record%s behind %s add%s error, too, as consequences do",
			(unsigned long long)behind.records, behind.records == 1 ? "" : "s",
			behind.culprit, behind.records == 1 ? "s" : "");
		if (text != NULL && behind.rows > behind.most)
			text = acc_say(&mem,
				"%s; the first %llu are shown (--consequences=all, and other"
				" formats, show the rest)",
				text, (unsigned long long)behind.most);
		rc = say(f, state, &mem, text, e);
	}
	if (rc >= 0 && top.left > 0 && !top.said) {
		top.said = true;
		rc = say(f, state, &mem,
			acc_say(&mem,
				"%llu more row%s not shown (--top, and other formats, show them)",
				(unsigned long long)top.left, top.left == 1 ? " is" : "s are"),
			e);
	}
	acc_arena_release(&mem);
	return rc;
}

static bool only_bad;

static int
put_row(const struct acc_format *f, void *state, const struct acc_rec *r, struct acc_err *e)
{
	static const char kinds[] = "pair tensor arg call";
	if (only_bad && acc_word_in(kinds, r->kind) && acc_get(r, "", "bad") == NULL)
		return 0;
	if (joins && ranks_take(r))
		return 0;
	int rc = 0;
	if (acc_rec_is(r, "finding"))
		rc = say_left(f, state, e);
	else if (joins && acc_word_in(kinds, r->kind)) {
		joins = false;
		rc = put_ranks(f, state, e);
	}
	return rc < 0 ? rc : put_one(f, state, r, 1, e);
}

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
			cli_nomem();
	}
	for (uint32_t i = 0; sort == NULL && w->type != NO_ROW && i < r->n; i++)
		learn(k, r->f[i].key);
	k->rows += sort == NULL && w->type != NO_ROW;
	k->fields += sort == NULL && w->type != NO_ROW ? r->n + (uint64_t)1 : 0;
	if (acc_spool_put(k->spool, r, &w->at, &e) < 0)
		cli_die_err(&e);
}

/* Has no record had any of the keys that were asked for? Nobody wants a table of nothing. */
static bool
nothing_yet(void)
{
	return asked.n > 0 && asked.missing == asked.n;
}

static int
put_kept(struct kept *k, const struct acc_format *f, void *state, struct acc_err *e)
{
	struct acc_rec *r;
	/* Who reads CSV counts its rows. */
	const bool blank = nothing_yet() && f == acc_formats[0];
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < k->n; i++) {
		rc = acc_spool_get(k->spool, k->row[i].at, &r, e);
		if (rc >= 0 && !(blank && is_row(r) && !acc_rec_is(r, "finding")))
			rc = put_row(f, state, r, e);
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
	int rc = f->begin(&state, stdout, opt, &e);
	if (rc >= 0)
		rc = put_kept(k, f, state, &e);
	if (rc >= 0)
		rc = say_left(f, state, &e);
	if (rc >= 0)
		rc = f->end(state, 0, &e);
	if (rc < 0)
		cli_die_err(&e);
	f->release(state);
}

/* The next record, in which each side has its own fields. */
static int
next_split(struct acc_in *in, struct acc_rec **r, struct acc_err *e)
{
	int rc = acc_in_next(in, r, e);
	int split = rc > 0 ? acc_rec_split(*r) : 0;
	return split < 0 ? acc_rec_fail(e, split) : rc;
}

/* The next record, which goes into the files, too. */
static int
next(struct acc_in *in, struct acc_rec **r, struct acc_err *e)
{
	int rc = next_split(in, r, e);
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
			look(r);
	if (rc < 0)
		cli_die_err(&e);
	check_keys();
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
		rc = say_left(f, *state, e);
		rc = rc < 0 ? rc : f->end(*state, 0, e);
		f->release(*state);
		*state = NULL;
		printf("--- step %lld\n\n", (long long)acc_get_int(r, "", "step", -1));
		rc = rc < 0 ? rc : f->begin(state, stdout, opt, e);
		top.rows = top.left = behind.rows = behind.records = 0;
		top.said = behind.said = false;
		behind.culprit[0] = '\0';
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
	bool waits = nothing_yet() && !f->all_keys;
	int rc = k.spool == NULL ? -1 : waits ? 1 : f->begin(&state, stdout, opt, &e);
	while (rc >= 0 && (rc = next(in, &r, &e)) > 0) {
		if (is_row(r))
			look(r);
		if (waits && nothing_yet()) {
			keep(&k, r, "");
			continue;
		}
		/* The record is borrowed from the stream; those that were kept come from the spool. */
		if (waits)
			rc = f->begin(&state, stdout, opt, &e);
		if (waits && rc >= 0)
			rc = put_kept(&k, f, state, &e);
		waits = false;
		if (rc >= 0)
			rc = acc_rec_is(r, "step") ? put_step(f, &state, opt, r, &e)
						   : put_row(f, state, r, &e);
	}
	if (waits && rc >= 0) {
		check_keys();
		rc = f->begin(&state, stdout, opt, &e);
		waits = false;
		if (rc >= 0)
			rc = put_kept(&k, f, state, &e);
	}
	if (waits || state == NULL)
		cli_die_err(&e);
	if (rc >= 0)
		rc = say_left(f, state, &e);
	/* What was read before a failure is shown; then the failure is said. */
	if (files_end_one(f, state, rc < 0 ? 2 : acc_in_status(in), rc < 0 ? NULL : &e) < 0 ||
		rc < 0)
		cli_die_err(&e);
	f->release(state);
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
	check_keys();
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

/* What a stream names is read for people out of its own folder only, and of those that they name. */
static void
allow(struct acc_roots *roots, char *const *operand, const char *const *folder, size_t n)
{
	struct acc_err e = {0};
	if (acc_roots_allow_all(roots, folder, n, operand, &e) < 0)
		cli_die_err(&e);
}

static void
print_values(struct acc_in *in, const char *name, const struct acc_vocabulary *v,
	char *const *operand, const char *const *folder, size_t n)
{
	struct acc_err e = {0};
	struct acc_roots *roots = acc_roots_open(&e);
	struct acc_rec *r;
	bool any = false;
	int rc;
	if (roots == NULL)
		cli_die_err(&e);
	acc_roots_foreign(roots, true);
	allow(roots, operand, folder, n);
	while ((rc = next_split(in, &r, &e)) > 0) {
		if (acc_rec_is(r, "source"))
			rc = acc_roots_add(roots, r, &e);
		else if (acc_values_match(r, name)) {
			any = true;
			rc = v == NULL ? acc_values_print(roots, r, stdout, &e)
				       : acc_values_text(roots, r, v, stdout, &e);
		}
		if (rc < 0)
			break;
	}
	if (rc < 0)
		cli_die_err(&e);
	acc_roots_close(roots);
	if (!any && acc_in_status(in) < 2)
		cli_die("--values: no tensor has the name '%s'", name);
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_format_opt opt = {0};
	const char *format = NULL, *sort = NULL, *columns = NULL, *values = NULL;
	const char **folders = NULL;
	size_t nfolders = 0, folders_cap = 0;
	struct acc_vocabulary *vocabulary = NULL;
	bool only_list = false, asked_behind = false;
	cli_language(argc, argv);
	make_options();
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		if (key >= OPT_FORMAT && optarg != NULL && strcmp(optarg, "-") != 0)
			files_add(acc_formats[key - OPT_FORMAT], optarg);
		else if (key >= OPT_FORMAT)
			format = acc_formats[key - OPT_FORMAT]->name;
		else if (key == 'f')
			format = optarg;
		else if (key == 'c')
			columns = optarg;
		else if (key == 's')
			sort = optarg;
		else if (key == OPT_TOP)
			top.most = (uint64_t)cli_int("--top", optarg, 1, INT64_MAX);
		else if (key == OPT_BAD)
			only_bad = true;
		else if (key == OPT_VALUES)
			values = optarg;
		else if (key == OPT_VOCABULARY) {
			acc_vocabulary_close(vocabulary);
			vocabulary = acc_vocabulary_open(optarg, &e);
			if (vocabulary == NULL)
				cli_die_err(&e);
		} else if (key == OPT_ROOT) {
			folders = acc_grow(folders, &folders_cap, nfolders + 1, sizeof *folders,
				NULL);
			if (folders == NULL)
				cli_nomem();
			folders[nfolders++] = optarg;
		} else if (key == OPT_BEHIND && strcmp(optarg, "all") == 0)
			asked_behind = behind.counted = true;
		else if (key == OPT_BEHIND) {
			asked_behind = behind.counted = true;
			behind.most = (uint64_t)cli_int("--consequences", optarg, 0, INT64_MAX);
		} else if (key == 'l')
			only_list = true;
		else
			opt.no_header = true;
	}
	/* Who wants files alone asks for no format. */
	const bool prints = format != NULL || !files_any();
	if (format == NULL)
		format = acc_formats[0]->name;
	const struct acc_format *f = acc_format_find(format);
	if (f == NULL)
		no_format(format);
	if (sort != NULL && sort[0] == '-') {
		sign = -1;
		sort++;
	}
	if (!asked_behind && f == acc_formats[0] && columns == NULL && sort == NULL &&
		top.most == 0) {
		behind.counted = true;
		behind.most = BEHIND;
	}
	joins = f == acc_formats[0] && columns == NULL && sort == NULL;
	bool all = columns != NULL && strcmp(columns, "all") == 0;
	if (all && f->all_keys) {
		all = false;
		columns = NULL;
	}
	if (all && sort != NULL)
		cli_usage("--columns=all and --sort do not go together");
	const char **keys = NULL;
	if (is_set(columns))
		opt.preset = columns;
	else if (columns != NULL && !all)
		cli_list(columns, &keys, &opt.ncolumns);
	opt.columns = keys;
	for (size_t i = 0; i < opt.ncolumns; i++)
		ask(keys[i]);
	if (sort != NULL)
		ask(sort);
	if (only_list) {
		check_keys();
		list();
	}
	if (values != NULL && files_any())
		cli_usage("--values prints, and writes no report");
	if (vocabulary != NULL && values == NULL)
		cli_usage("--vocabulary is for --values");
	if (nfolders > 0 && values == NULL)
		cli_usage("--root is for --values");
	cli_terminal(&opt);
	opt.tmpdir = cli_tmpdir();
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	if (in == NULL)
		cli_die_err(&e);
	opt.log = acc_in_log(in, &opt.nlog);
	if (prints || files_any())
		files_guard(f);
	files_begin(&opt);
	if (values != NULL)
		print_values(in, values, vocabulary, argv + optind, folders, nfolders);
	else if (!prints)
		print_none(in);
	else if (all || sort != NULL)
		print_all(in, f, &opt, sort);
	else
		print_through(in, f, &opt);
	files_end(acc_in_status(in));
	int status = say_missing();
	if (acc_in_status(in) > status)
		status = acc_in_status(in);
	acc_in_close(in);
	acc_vocabulary_close(vocabulary);
	free(keys);
	free(folders);
	if (fflush(stdout) != 0 || ferror(stdout) || close(STDOUT_FILENO) != 0)
		cli_die("standard output:");
	return status;
}
