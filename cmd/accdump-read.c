#include "cli.h"
#include "acc/behaviour.h"
#include "acc/dump.h"
#include "acc/payload.h"
#include "acc/terminal.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

static const struct cli_opt options[] = {
	{'o', "op", "GLOB[,..]", "op calls, by key, operator or name"},
	{256, "from", "GLOB", "first op call, by key or operator"},
	{257, "to", "GLOB", "last op call, inclusive"},
	{'k', "kind", "GLOB[,..]", "kinds of records: tensor, arg, ..."},
	{'p', "pass", "GLOB[,..]", "forward, backward, grad, debug"},
	{'i', "io", "GLOB[,..]", "in, kw, out, param, grad"},
	{'s', "step", "LIST", "steps, such as 0,2-4"},
	{'r', "rank", "LIST", "ranks (process ids where ranks are unknown)"},
	{'f', "format", "NAME", "the dump format, instead of recognising it"},
	{259, "regex", "PATTERN", "read logs by a pattern with named groups"},
	{262, "name-regex", "PATTERN", "read op, io ... from the names of files"},
	{263, "follow", NULL, "read a recording while it is written, step by step"},
	{258, "inline", NULL, "put the tensors' contents into the stream"},
	{266, "outputs", NULL, "arrays of no call are what calls of their names made"},
	{264, "keep", "GLOB[,..]", "--inline of these op calls; of others statistics"},
	{260, "root", "FOLDER", "with --inline: a stream's files may be here"},
	{261, "probe", NULL, "only say which format each operand has"},
	{265, "known", NULL, "list what tools really do; operands: tools"},
	{'l', "list", NULL, "list the dump formats"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accdump-read",
	.synopsis = "DUMP ...",
	.summary = "Read dumps, logs and configurations as a stream of records, in their order.",
	.opt = options,
	.notes = "DUMP is a folder or a file; - is standard input. Globs are those of the shell.\n"
		 "Example: accdump-read -r 0 -o 'Functional.linear.*' npu_dump | accfmt\n",
};

/* The words that a record can have there (accstream(5)): a pattern that fits none of them is a slip
 * of the pen. */
static void
check_words(const char *opt, const char *const *pattern, size_t n, const char *const *word)
{
	char all[128] = "";
	for (size_t i = 0, at = 0; word[i] != NULL && at < sizeof all; i++)
		at += (size_t)snprintf(all + at, sizeof all - at, "%s%s",
			i == 0                ? ""
			: word[i + 1] == NULL ? " and "
					      : ", ",
			word[i]);
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;
		if (strncmp(pattern[i], "x-", 2) == 0) /* of a user's own kind */
			continue;
		while (word[k] != NULL && !acc_glob(pattern[i], acc_str(word[k])))
			k++;
		if (word[k] == NULL)
			cli_usage("%s: '%s' is none of %s", opt, pattern[i], all);
	}
}

static const char *const kind_words[] = {"tensor", "arg", "call", "scalar", "param", "stack",
	"sample", "source", "pair", "curve", "finding", NULL};
static const char *const pass_words[] = {"forward", "backward", "grad", "debug", NULL};
static const char *const io_words[] = {"in", "kw", "out", "param", "grad", NULL};

struct job {
	struct acc_dump_ctx *ctx;
	struct acc_inline *payload; /* NULL: by reference */
	const char **keep;          /* op calls whose contents it takes; NULL: of all */
	size_t nkeep;
	struct cli_out *out;
	int argc;
	char **argv;
	bool outputs; /* arrays of no call become outputs */
	bool trouble;
};

/* The head names the commands that made a stream which is read as a dump, so it is written
 * when the first record comes. */
static struct cli_out *
output(struct job *j)
{
	if (j->out == NULL) {
		size_t n;
		const struct acc_str *log = acc_dump_log(j->ctx, &n);
		j->out = cli_out_open(log, n, j->argc, j->argv);
	}
	return j->out;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	struct job *j = arg;
	cli_warn_err(e);
	j->trouble = j->trouble || e->code != ACC_ENOTE;
}

static bool
kept(const struct job *j, const struct acc_rec *r)
{
	struct acc_str key = acc_get_text(r, "", "key");
	bool yes = j->keep == NULL;
	for (size_t i = 0; i < j->nkeep && !yes; i++)
		yes = acc_glob(j->keep[i], key);
	return yes;
}

/* Of a tensor its contents, or its statistics. */
static void
take(struct job *j, struct acc_rec *r)
{
	struct acc_err e = {0};
	acc_roots_foreign(acc_inline_roots(j->payload), acc_dump_foreign(j->ctx));
	if (kept(j, r)) {
		if (acc_inline_take(j->payload, r, &e) < 0)
			cli_die_err(&e);
		return;
	}
	if (acc_inline_statistics(j->payload, r, &e) < 0) {
		char why[300];
		acc_err_text(&e, why, sizeof why);
		acc_put(r, "", "err", acc_ctext(why));
		trouble(j, &e);
	}
}

/* An engine's array by the name of its tensor: what a call of that name made. */
static void
as_output(struct acc_rec *r)
{
	if (!acc_rec_is(r, "tensor") || acc_get(r, "", "pass") != NULL ||
		acc_str_is(acc_get_text(r, "", "io"), "in"))
		return;
	const struct acc_str name = acc_get_text(r, "", "name");
	int rc = acc_put(r, "", "key", acc_text(name));
	if (rc == 0)
		rc = acc_put(r, "", "op", acc_text(name));
	if (rc == 0)
		rc = acc_put(r, "", "pass", acc_ctext("forward"));
	if (rc == 0)
		rc = acc_put(r, "", "io", acc_ctext("out"));
	if (rc == 0)
		rc = acc_put(r, "", "pos", acc_ctext("0"));
	if (rc < 0)
		cli_nomem();
}

static int
emit(void *arg, struct acc_rec *r)
{
	struct job *j = arg;
	if (j->outputs)
		as_output(r);
	if (j->payload != NULL)
		take(j, r);
	if (acc_rec_is(r, "step"))
		cli_put_step(output(j), r);
	else
		cli_put(output(j), r);
	return 0;
}

/* What a stream names is copied out of its own folder only, and of those that the user names. */
static void
allow(struct job *j, char *const *operand, const char *const *folder, size_t n)
{
	struct acc_roots *roots = acc_inline_roots(j->payload);
	struct acc_err e = {0};
	if (acc_roots_allow_all(roots, folder, n, operand, &e) < 0)
		cli_die_err(&e);
}

/* After all records. */
static int
emit_data(void *arg, struct acc_rec *r)
{
	cli_put(output(arg), r);
	return 0;
}

static void
list_formats(void)
{
	for (size_t i = 0; i < acc_ndumps; i++) {
		struct acc_buf b = {0};
		cli_item(acc_dumps[i]->name, 13, acc_dumps[i]->help);
		for (size_t k = 0; k < acc_nforms; k++)
			if (strcmp(acc_forms[k].format, acc_dumps[i]->name) == 0 &&
				(acc_buf_add(&b, b.n > 0 ? "; " : "", b.n > 0 ? 2 : 0) < 0 ||
					acc_buf_add(&b, acc_forms[k].what,
						strlen(acc_forms[k].what)) < 0))
				cli_nomem();
		if (b.n > 0 && acc_buf_add(&b, "", 1) < 0)
			cli_nomem();
		if (b.n > 0)
			cli_item("", 13, (const char *)b.p);
		acc_buf_release(&b);
	}
	cli_printed();
}

/* Is a behaviour asked for: is a word part of its tool's name, or a pattern of its id? */
static bool
is_asked(const struct acc_behaviour *b, char *const *word)
{
	bool yes = *word == NULL;
	for (; *word != NULL && !yes; word++)
		yes = strcasestr(b->tool, *word) != NULL || acc_glob(*word, acc_str(b->id));
	return yes;
}

static void
list_known(char *const *word)
{
	size_t n = 0;
	for (size_t i = 0; i < acc_nbehaviours; i++) {
		const struct acc_behaviour *b = &acc_behaviours[i];
		if (!is_asked(b, word))
			continue;
		printf("%s%s (%s %s)\n", n++ == 0 ? "" : "\n", b->id, b->tool, b->versions);
		cli_item("", 1, b->what);
		cli_item("", 1, b->effect);
		if (strcmp(b->does, "-") != 0)
			cli_item("", 1, b->does);
	}
	if (n == 0)
		cli_die("no behaviour is known of a tool or id '%s'", *word);
	cli_printed();
}

/* "FORMAT<tab>PATH" of each that is recognised, the path as it is, unless a terminal would obey it. A name that is
 * no line is said. */
static void
probe_all(char *const *path)
{
	const bool terminal = isatty(STDOUT_FILENO);
	bool trouble = false;
	for (; *path != NULL; path++) {
		struct acc_err e = {0};
		const struct acc_dump *d = acc_dump_probe(*path, &e);
		if (d == NULL && e.code == ACC_ENOMEM)
			cli_nomem();
		if (d == NULL && e.code != ACC_EFORMAT) {
			cli_warn_err(&e);
			trouble = true;
		}
		if (d == NULL)
			continue;
		if (!terminal && strpbrk(*path, "\t\n") != NULL) {
			cli_warn(
				"%s: a tab or line end in its name, which no line of --probe can have",
				*path);
			trouble = true;
			continue;
		}
		printf("%s\t", d->name);
		if (terminal)
			acc_text_put(stdout, acc_str(*path), SIZE_MAX);
		else
			fputs(*path, stdout);
		putchar('\n');
	}
	if (trouble && fflush(stdout) == 0)
		exit(2);
	cli_printed();
}

/* What the user asked for, beside what the job knows. */
struct wish {
	struct acc_select sel;
	const char **ops, **kinds, **passes, **ios;
	int64_t *steps, *ranks;
	const char *format, *pattern, *names;
	const char **folders;
	size_t nfolders;
	bool with_payload, probing, following, known;
};

static void
option(struct wish *w, struct job *job, int key)
{
	switch (key) {
	case 'o':
		cli_list(optarg, &w->ops, &w->sel.nops);
		break;
	case 256:
		w->sel.from = optarg;
		break;
	case 257:
		w->sel.to = optarg;
		break;
	case 'k':
		cli_list(optarg, &w->kinds, &w->sel.nkinds);
		break;
	case 'p':
		cli_list(optarg, &w->passes, &w->sel.npasses);
		break;
	case 'i':
		cli_list(optarg, &w->ios, &w->sel.nios);
		break;
	case 's':
		w->sel.nsteps = cli_ints("--step", optarg, &w->steps);
		break;
	case 'r':
		w->sel.nranks = cli_ints("--rank", optarg, &w->ranks);
		break;
	case 'f':
		w->format = optarg;
		break;
	case 259:
		w->pattern = optarg;
		break;
	case 262:
		w->names = optarg;
		break;
	case 258:
		w->with_payload = true;
		break;
	case 266:
		job->outputs = true;
		break;
	case 263:
		w->following = true;
		break;
	case 264:
		w->with_payload = true;
		cli_list(optarg, &job->keep, &job->nkeep);
		break;
	case 260:
		cli_append(&w->folders, &w->nfolders, optarg);
		break;
	case 261:
		w->probing = true;
		break;
	case 265:
		w->known = true;
		break;
	case 'l':
		list_formats();
	}
}

/* Do the options and operands go together? What prints something else than a dump ends here. */
static void
check(struct wish *w, char **operand, int n)
{
	struct acc_select *sel = &w->sel;
	if (w->known)
		list_known(operand);
	check_words("--kind", w->kinds, sel->nkinds, kind_words);
	check_words("--pass", w->passes, sel->npasses, pass_words);
	check_words("--io", w->ios, sel->nios, io_words);
	if (w->pattern != NULL && w->names != NULL)
		cli_usage("only one of --regex and --name-regex");
	if (n == 0)
		cli_usage("no dump is named");
	if (w->following && (w->with_payload || n > 1))
		cli_usage("--follow: of one recording, and without --inline");
	if (w->probing)
		probe_all(operand);
	sel->ops = w->ops, sel->kinds = w->kinds, sel->passes = w->passes, sel->ios = w->ios;
	sel->steps = w->steps, sel->ranks = w->ranks;
}

static void
open_job(struct job *job, const struct wish *w, char **operand)
{
	struct acc_err e = {0};
	job->ctx = acc_dump_open(&w->sel, emit, trouble, job, &e);
	if (job->ctx == NULL)
		cli_die_err(&e);
	if (w->following)
		acc_dump_follow(job->ctx);
	if (w->pattern != NULL && acc_dump_pattern(job->ctx, w->pattern, &e) < 0)
		cli_die_err(&e);
	if (w->names != NULL && acc_dump_names(job->ctx, w->names, &e) < 0)
		cli_die_err(&e);
	if (w->with_payload && (job->payload = acc_inline_open(cli_tmpdir(), &e)) == NULL)
		cli_die_err(&e);
	if (w->with_payload)
		allow(job, operand, w->folders, w->nfolders);
}

int
main(int argc, char **argv)
{
	struct job job = {.argc = argc, .argv = argv};
	struct wish w = {0};
	struct acc_err e = {0};
	for (int c; (c = cli_getopt(argc, argv, &cli)) != -1;)
		option(&w, &job, c);
	check(&w, argv + optind, argc - optind);
	open_job(&job, &w, argv + optind);
	for (int i = optind; i < argc; i++) {
		e = (struct acc_err){0};
		if (acc_dump_read(job.ctx, argv[i], w.format, &e) < 0)
			trouble(&job, &e);
	}
	e = (struct acc_err){0};
	if (w.with_payload && acc_inline_data(job.payload, emit_data, trouble, &job, &e) < 0)
		cli_die_err(&e);
	if (acc_dump_count(job.ctx) == 0 && !job.trouble) {
		cli_warn("no record: the dump is empty, or nothing in it was selected");
		job.trouble = true;
	}
	cli_status(output(&job), job.trouble ? 2 : acc_dump_status(job.ctx));
	acc_dump_close(job.ctx);
	acc_inline_close(job.payload);
	free(w.folders), free(job.keep), free(w.ops), free(w.kinds), free(w.passes), free(w.ios),
		free(w.steps), free(w.ranks);
	return cli_finish(job.out);
}
