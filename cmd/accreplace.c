/* Bisection by the user's own run. The first n calls of the device get the bench's outputs, and the user's command
 * says whether the end agrees: it does not with none, it does with all. So somewhere between there is a call that
 * turns it, and about log2 of their number runs find it. What was asked of both sides of it convicts it: with right
 * values up to there the end is wrong, with this one, too, it is right. */
#include "acc/file.h"
#include "acc/replace.h"
#include "acc/say.h"
#include "cli.h"
#include "replace_run.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN = 256, DIFFERS, AGREES, ROOT, NAMES };

static const struct cli_opt options[] = {
	{RUN, "run", "CMD", "run this with ACC_FEED, the folder: 0 agrees, 1 not"},
	{'o', "output", "FOLDER", "write the tensors here, and leave them"},
	{DIFFERS, "differs", "NAME", "up to this one fed, the end was still wrong"},
	{AGREES, "agrees", "NAME", "up to this one fed, the end was right"},
	{NAMES, "names", NULL, "print what can be fed, in its order"},
	{'f', "format", "NAME", "how to print, see accfmt --list (table)"},
	{ROOT, "root", "FOLDER", "the files of a stream may be here (repeatable)"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accreplace",
	.synopsis = "[DEVICE BENCH | FILE]",
	.summary = "Feed an engine the bench's tensors, to find the call that makes its end wrong.",
	.opt = options,
	.notes = "DEVICE and BENCH are as for accdiff; FILE is what accdiff -f stream writes.\n"
		 "Exit status: 1 a call was found, 0 none yet, 2 trouble.\n"
		 "  accreplace --run=./end.sh device.npz bench\n",
};

static struct {
	struct acc_replace *x;
	struct acc_roots *roots;
	struct acc_arena mem;
	const struct acc_format *format;
	void *state; /* of that */
	int status;
	const char *command, *folder;
	const char *operands, *typed; /* as they are typed again; the folder */
	int dir;                      /* the folder, open */
	bool ours;                    /* it is to go */
	size_t lo, hi;                /* calls fed: the end is wrong, is right */
	unsigned runs;
} g = {.dir = -1};

/* --- the folder --- */

static const char marker[] = ".accreplace";

static void
clean_up(void)
{
	if (!g.ours)
		return;
	if (g.x != NULL && g.dir >= 0)
		acc_replace_clear(g.x, g.dir);
	if (rmdir(g.folder) < 0)
		cli_warn("%s: cannot be removed:", g.folder);
	g.ours = false;
}

static void
make_temporary(void)
{
	const char *t = acc_arena_printf(&g.mem, "%s/accreplace.XXXXXX", cli_tmpdir());
	if (t == NULL)
		cli_nomem();
	char *path = mkdtemp(acc_arena_copy(&g.mem, t, strlen(t)));
	char *whole = path == NULL ? NULL : realpath(path, NULL);
	if (whole == NULL)
		cli_die("%s: cannot be made:", t);
	g.folder = whole;
	g.ours = true;
	atexit(clean_up);
}

/* A new one, or one that was made here: what the names of tensors would overwrite is nobody else's then. */
static void
make_folder(const char *path)
{
	struct acc_err e = {0};
	struct stat st;
	if (mkdir(path, 0777) < 0) {
		if (errno != EEXIST)
			cli_die("%s:", path);
		g.dir = acc_dir_open(path, &e);
		if (g.dir < 0)
			cli_die_err(&e);
		if (fstatat(g.dir, marker, &st, AT_SYMLINK_NOFOLLOW) < 0)
			cli_die("%s: is there already, and accreplace did not make it", path);
		acc_replace_clear(g.x, g.dir);
		/* What else lies there an engine would be fed, too. */
		const int more = acc_dir_has_end(g.dir, ".npy", &e);
		if (more < 0)
			cli_die_err(&e);
		if (more > 0)
			cli_die("%s: holds arrays that are none of these recordings', and would be fed, too",
				path);
	} else if ((g.dir = acc_dir_open(path, &e)) < 0) {
		cli_die_err(&e);
	} else {
		const int fd = openat(g.dir, marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0 || close(fd) < 0)
			cli_die("%s/%s:", path, marker);
	}
	g.folder = realpath(path, NULL);
	if (g.folder == NULL)
		cli_die("%s:", path);
}

/* --- runs --- */

static void
feed(size_t n)
{
	struct acc_err e = {0};
	if (acc_replace_feed(g.x, g.dir, n, &e) < 0)
		cli_die_err(&e);
}

/* Does the end agree, with the first n calls fed? */
static bool
agrees(size_t n)
{
	feed(n);
	g.runs++;
	const int status = replace_run(g.command, g.folder);
	if (status > 1 && n == 0)
		cli_die("the command ended with status %d, with no tensor fed: 0 is that the end agrees, 1 that it does not",
			status);
	if (status > 1)
		cli_die("the command ended with status %d, fed up to %s: 0 is that the end agrees, 1 that it does not",
			status, acc_replace_name(g.x, n - 1));
	if (n == 0)
		cli_warn(status == 0 ? "run %u: with nothing fed the end agrees"
				     : "run %u: with nothing fed the end differs",
			g.runs);
	else
		cli_warn(status == 0 ? "run %u: fed up to %s the end agrees"
				     : "run %u: fed up to %s the end differs",
			g.runs, acc_replace_name(g.x, n - 1));
	return status == 0;
}

static bool
is_left(void)
{
	return g.hi - g.lo > 1;
}

/* Which to try: first what a judge accused, fed and then not, then the middle. */
static size_t
choose(void)
{
	const size_t c = acc_replace_accused(g.x);
	if (c != SIZE_MAX && c + 1 > g.lo && c + 1 < g.hi)
		return c + 1;
	if (c != SIZE_MAX && c > g.lo && c < g.hi)
		return c;
	return g.lo + (g.hi - g.lo) / 2;
}

/* --- what is said --- */

static void
say(const char *what, const char *rule, const char *name, const char *text)
{
	struct acc_err e = {0};
	struct acc_rec r = {0};
	if (text == NULL || acc_rec_start(&r, ACC_STR("finding")) < 0 ||
		(name != NULL && acc_put(&r, "", "name", acc_ctext(name)) < 0) ||
		acc_put(&r, "", "what", acc_ctext(what)) < 0 ||
		acc_put(&r, "", "rule", acc_ctext(rule)) < 0 ||
		acc_put_said(&r, "", "text", &g.mem, text) < 0)
		cli_nomem();
	if (cli_show(g.format, g.state, &r, &e) < 0)
		cli_die_err(&e);
	acc_rec_release(&r);
}

static const char *
runs(void)
{
	return g.runs == 0 ? "" : acc_say(&g.mem, " (%u runs)", g.runs);
}

static void
convict(void)
{
	size_t left;
	const char *name = acc_replace_name(g.x, g.hi - 1);
	const char *others = acc_replace_left(g.x, g.hi - 1, &left, &g.mem);
	const char *what = "what makes it is wrong";
	if (others == NULL)
		cli_nomem();
	/* What was not fed may be wrong itself, and reach the end past what was. */
	if (left > 0)
		what = acc_say(&g.mem,
			"what makes it is wrong, or one of %zu outputs before it that could not be fed (%s)",
			left, others);
	if (g.lo == 0)
		say("culprit", "replace", name,
			acc_say(&g.mem,
				"%s: %s: with nothing fed the end differs, with the bench's in its place it agrees%s",
				name, what, runs()));
	else
		say("culprit", "replace", name,
			acc_say(&g.mem,
				"%s: %s: with the bench's tensors in place up to %s the end differs, with this one, too, it agrees%s",
				name, what, acc_replace_name(g.x, g.lo - 1), runs()));
	say("next", "replace", name,
		acc_say(&g.mem,
			"next: mend what makes %s, and run this again: a fault before it shows only then",
			name));
	g.status = 1;
}

static void
narrow(void)
{
	if (g.lo == 0 && agrees(0)) {
		say("clean", "replace", NULL,
			"the end agrees with nothing fed: there is nothing to look for");
		return;
	}
	if (g.hi == acc_replace_count(g.x) && !agrees(g.hi))
		cli_die("fed with all %zu calls up to %s the end differs still: does the command put the arrays of ACC_FEED in place?",
			g.hi, acc_replace_name(g.x, g.hi - 1));
	while (is_left()) {
		const size_t n = choose();
		*(agrees(n) ? &g.hi : &g.lo) = n;
	}
	feed(g.lo);
	convict();
}

/* The user runs it, and says with --differs or --agrees what came of it. */
static void
by_hand(void)
{
	uint64_t bytes;
	if (!is_left()) {
		feed(g.lo);
		convict();
		return;
	}
	const size_t n = choose();
	const char *name = acc_replace_name(g.x, n - 1);
	feed(n);
	const size_t files = acc_replace_files(g.x, &bytes);
	const char *typed = acc_replace_typed(g.x, n - 1, &g.mem), *lo = "", *hi = "";
	if (g.lo > 0)
		lo = acc_arena_printf(&g.mem, " --differs=%s",
			acc_replace_typed(g.x, g.lo - 1, &g.mem));
	if (g.hi < acc_replace_count(g.x))
		hi = acc_arena_printf(&g.mem, " --agrees=%s",
			acc_replace_typed(g.x, g.hi - 1, &g.mem));
	const char *again = acc_arena_printf(&g.mem, "accreplace -o %s", g.typed);
	if (g.mem.lost)
		cli_nomem();
	say("next", "replace", name,
		acc_say(&g.mem,
			"next: run the engine with the %zu arrays of %s (%.3g MB), the bench's up to %s, in place of its own; if its end agrees, type: %s%s --agrees=%s %s; if it differs: %s --differs=%s%s %s",
			files, g.typed, (double)bytes / 1e6, name, again, lo, typed, g.operands,
			again, typed, hi, g.operands));
}

/* --- */

static size_t
place(const char *option, const char *name)
{
	const size_t i = acc_replace_find(g.x, name);
	if (i == SIZE_MAX)
		cli_die("%s=%s: no such tensor can be fed; --names prints those that can", option,
			name);
	return i + 1;
}

static void
names(void)
{
	for (size_t i = 0; i < acc_replace_count(g.x); i++) {
		const char *name = acc_replace_typed(g.x, i, &g.mem);
		if (name == NULL)
			cli_nomem();
		puts(name);
	}
	cli_printed();
}

static void
read_pairs(struct acc_in *in)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0)
		if (acc_replace_add(g.x, r, &e) < 0)
			cli_die_err(&e);
	if (rc < 0 || acc_replace_ready(g.x, &e) < 0)
		cli_die_err(&e);
	if (acc_replace_count(g.x) == 0)
		cli_die("no output of the device has a partner with elements: there is nothing to feed");
}

static void
begin(struct acc_in *in)
{
	struct acc_err e = {0};
	struct acc_format_opt opt = {.tmpdir = cli_tmpdir()};
	opt.log = acc_in_log(in, &opt.nlog);
	cli_terminal(&opt);
	if (acc_format_open(g.format, &g.state, stdout, &opt, &e) < 0)
		cli_die_err(&e);
}

/* What the command line asks for beside the command and the format. */
struct asked {
	const char *folder, *differs, *right, **root;
	size_t nroot;
	bool list;
};

static void
take_options(int argc, char **argv, struct asked *o)
{
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		if (key == RUN)
			g.command = optarg;
		if (key == 'o')
			o->folder = optarg;
		if (key == DIFFERS)
			o->differs = optarg;
		if (key == AGREES)
			o->right = optarg;
		if (key == 'f' && (g.format = acc_format_find(optarg)) == NULL)
			cli_usage("no format '%s'; accfmt --list shows them", optarg);
		if (key == ROOT)
			cli_append(&o->root, &o->nroot, optarg);
		o->list |= key == NAMES;
	}
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	/* As it was called: getopt is given the bare name. */
	const char *self = argv[0];
	struct asked o = {0};
	g.format = &acc_format_table;
	cli_language(argc, argv);
	take_options(argc, argv, &o);
	char *const *operand = argv + optind;
	const int n = argc - optind;
	if (n > 2)
		cli_usage("two recordings or one stream, not %d", n);
	if (g.command == NULL && o.folder == NULL && !o.list)
		cli_usage("what is to be done? --run=CMD, -o FOLDER or --names");
	g.roots = acc_roots_open(&e);
	g.x = g.roots == NULL ? NULL : acc_replace_open(g.roots, &e);
	if (g.x == NULL)
		cli_die_err(&e);
	struct acc_in *in = replace_open(self, operand, n, g.roots, o.root, o.nroot);
	read_pairs(in);
	replace_wait();
	if (o.list)
		names();
	g.operands = replace_quoted(&g.mem, operand, n);
	begin(in);
	if (o.folder != NULL)
		make_folder(o.folder),
			g.typed = replace_quoted(&g.mem, (char *const *)&o.folder, 1);
	else
		make_temporary();
	if (g.dir < 0 && (g.dir = acc_dir_open(g.folder, &e)) < 0)
		cli_die_err(&e);
	g.lo = o.differs == NULL ? 0 : place("--differs", o.differs);
	g.hi = o.right == NULL ? acc_replace_count(g.x) : place("--agrees", o.right);
	if (g.lo >= g.hi)
		cli_die("--differs is not before --agrees");
	if (g.command != NULL)
		narrow();
	else
		by_hand();
	clean_up();
	if (acc_format_end(g.format, g.state, g.status, &e) < 0)
		cli_die_err(&e);
	acc_format_close(g.format, g.state);
	acc_in_close(in);
	if (fflush(stdout) != 0)
		cli_die("standard output:");
	acc_replace_close(g.x);
	acc_roots_close(g.roots);
	free(o.root);
	acc_arena_release(&g.mem);
	return g.status;
}
