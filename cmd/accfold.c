/* The ranks of a side become one, before accalign. */
#include "cli.h"
#include "acc/dump.h"
#include "acc/fold.h"
#include "acc/payload.h"
#include "expect.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { ROOT = 256, EXPECT_RANKS };

static const struct cli_opt options[] = {
	{'b', "bench", "BENCH", "the same network on fewer ranks (not for checkpoints)"},
	{'l', "layout", "FILE", "take the layouts in FILE, as -p prints them"},
	{'p', "print-layout", NULL, "print the layouts, and no records"},
	{ROOT, "root", "FOLDER", "a stream's files may be here (repeatable)"},
	{'w', "whole", NULL, "make one rank of a bench of several, too"},
	{EXPECT_RANKS, "expect-ranks", "N", "trouble if the dump lacks one of ranks 0 to N-1"},
	{'q', "quiet", NULL, "do not say on standard error what was found"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accfold",
	.synopsis = "-b BENCH [FILE ...]",
	.summary = "Fold the ranks of a dump into one, or into those of a bench with fewer;\n"
		   "put the parts of a checkpoint together.",
	.opt = options,
	.notes = "FILE is a stream or a dump; without one, standard input is read.\n"
		 "Example: accfold -b gpu_dump npu_dump | accalign - gpu_dump | accmetric | ...\n",
};

struct input {
	const char *path;
	bool reference;
	struct acc_fold *fold;
	struct cli_out *out;
	int status;
	struct acc_roots *roots;
	struct expected *ranks; /* NULL: of the reference nobody counts them */
	struct acc_arena *log;  /* NULL: the command lines that made it are not wanted */
	struct acc_str *made;
	size_t nmade;
};

static int
take(void *arg, struct acc_rec *r)
{
	struct input *in = arg;
	struct acc_err e = {0};
	if (in->ranks != NULL && (acc_rec_is(r, "tensor") || acc_rec_is(r, "arg")))
		expect_came(in->ranks, acc_get_int(r, "", "rank", -1));
	if (acc_fold_add(in->fold, in->reference, r, &e) < 0) {
		acc_err_in(&e, in->path);
		cli_die_err(&e);
	}
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	struct input *in = arg;
	cli_warn_err(e);
	in->status = e->code == ACC_ENOTE ? in->status : 2;
}

static bool
is_stream(const char *path)
{
	struct acc_err e = {0};
	struct stat st = {0};
	if (strcmp(path, "-") == 0)
		return true;
	if (stat(path, &st) < 0)
		cli_die("%s: cannot open:", path);
	if (!S_ISREG(st.st_mode))
		return !S_ISDIR(st.st_mode);
	uint8_t head[5];
	FILE *f = fopen(path, "re");
	size_t n = f == NULL ? 0 : fread(head, 1, sizeof head, f);
	if (f == NULL || ferror(f))
		cli_die("%s: cannot read:", path);
	fclose(f);
	(void)e;
	return n > 0 && head[0] != 0x1f && acc_is_stream(head, n);
}

/* Payload that comes in the stream is passed over: of such tensors statistics are folded. */
static void
read_stream(struct input *in, struct acc_rd *rd)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	while ((rc = acc_rd_next(rd, &r, &e)) > 0)
		if (!acc_rec_is(r, "data"))
			take(in, r);
	if (rc < 0)
		cli_die_err(&e);
	in->status = acc_rd_status(rd);
}

static void
read_dump(struct input *in)
{
	struct acc_err e = {0};
	acc_roots_foreign(in->roots, false);
	struct acc_dump_ctx *c = acc_dump_open(NULL, take, trouble, in, &e);
	if (c == NULL || acc_dump_read(c, in->path, NULL, &e) < 0)
		cli_die_err(&e);
	acc_dump_close(c);
}

static void
read_input(struct input *in)
{
	struct acc_err e = {0};
	if (!is_stream(in->path)) {
		read_dump(in);
		return;
	}
	/* Contents are copied: a stream names any folder. */
	acc_roots_foreign(in->roots, true);
	struct acc_rd *rd = acc_rd_open(in->path, &e);
	if (rd == NULL)
		cli_die_err(&e);
	read_stream(in, rd);
	const struct acc_val *log = in->log == NULL ? NULL : acc_rd_log(rd);
	if (log != NULL) {
		in->made = acc_alloc(in->log, (log->n + 1) * sizeof *in->made);
		for (; in->made != NULL && in->nmade < log->n; in->nmade++)
			in->made[in->nmade] = acc_arena_str(in->log, log->texts[in->nmade]);
		if (in->log->lost)
			cli_nomem();
	}
	acc_rd_close(rd);
}

/* What is folded, and the reference; the highest status. */
static int
read_all(struct input *in, int n, char *const *path, const char *bench)
{
	struct input ref = {.path = bench, .reference = true, .fold = in->fold, .roots = in->roots};
	int status = 0;
	for (int i = 0; i < n; i++) {
		in->path = path[i];
		read_input(in);
		status = in->status > status ? in->status : status;
	}
	if (bench != NULL)
		read_input(&ref);
	return ref.status > status ? ref.status : status;
}

static int
emit(void *arg, const struct acc_rec *r)
{
	cli_put(arg, r);
	return 0;
}

static void
print_layout(struct acc_fold *f)
{
	struct acc_err e = {0};
	struct acc_buf text = {0};
	if (acc_fold_print(f, &text, &e) < 0)
		cli_die_err(&e);
	fwrite(text.p, 1, text.n, stdout);
	acc_buf_release(&text);
}

/* A weight that is not there is trouble; what else a checkpoint has is not. */
static void
say_weights(const struct acc_fold *f, struct cli_out *out, bool quiet)
{
	struct acc_fold_weights w;
	acc_fold_weights(f, &w);
	if (w.lost > 0) {
		cli_status(out, 2);
		cli_warn("%llu weight%s could not be put together, first %s: %s",
			(unsigned long long)w.lost, w.lost == 1 ? "" : "s", w.first, w.why);
	}
	if (w.others > 0 && !quiet)
		cli_warn("%llu tensors beside the model are left out (optimizer, random numbers)",
			(unsigned long long)w.others);
}

/* What the command line asks for beside the inputs. */
struct asked {
	const char *bench, *layout, **folders;
	size_t nfolders;
	bool print, quiet;
	struct expected ranks;
};

static void
take_options(int argc, char **argv, struct asked *o, struct acc_fold *f)
{
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;)
		if (key == 'b')
			o->bench = optarg;
		else if (key == 'l')
			o->layout = optarg;
		else if (key == 'p')
			o->print = true;
		else if (key == 'w')
			acc_fold_whole(f);
		else if (key == ROOT)
			cli_append(&o->folders, &o->nfolders, optarg);
		else if (key == EXPECT_RANKS)
			expect_open(&o->ranks, optarg);
		else
			o->quiet = true;
}

/* A layout that was given; its text stays the caller's. */
static void
take_layout(struct acc_fold *f, const char *path, struct acc_buf *text)
{
	struct acc_err e = {0};
	if (path == NULL)
		return;
	cli_text_file(path, text);
	if (acc_fold_given(f, (struct acc_str){(char *)text->p, (uint32_t)text->n}, path, &e) < 0)
		cli_die_err(&e);
}

/* Finds the layouts. True: there are some, or the tensors are a checkpoint's. */
static bool
find(struct acc_fold *f, const struct asked *o)
{
	struct acc_err e = {0};
	const int found = acc_fold_find(f, &e);
	if (found < 0)
		cli_die_err(&e);
	struct acc_fold_weights weights;
	const bool checkpoint = acc_fold_weights(f, &weights);
	if (o->bench == NULL && !checkpoint)
		cli_die("%s (--bench names one)", acc_fold_why(f));
	if (found == 0 && !o->quiet)
		cli_warn("the ranks are left as they are: %s", acc_fold_why(f));
	if (o->print) {
		if (found > 0)
			print_layout(f);
		acc_fold_close(f);
		cli_printed();
	}
	return checkpoint;
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct asked o = {0};
	struct acc_fold *f = acc_fold_open(cli_tmpdir(), &e);
	if (f == NULL)
		cli_die_err(&e);
	take_options(argc, argv, &o, f);
	struct acc_roots *roots = acc_roots_open(&e);
	if (roots == NULL ||
		acc_roots_allow_all(roots, o.folders, o.nfolders, argv + optind, &e) < 0 ||
		acc_fold_tensors(f, roots) < 0)
		cli_die_err(&e);
	struct acc_buf given = {0};
	take_layout(f, o.layout, &given);
	static char dash[] = "-";
	char *const standard[] = {dash};
	char *const *path = optind < argc ? argv + optind : standard;
	/* Of several inputs, a rank each, no one's command lines are those of what comes out. */
	struct acc_arena mem = {0};
	const int n = optind < argc ? argc - optind : 1;
	struct input in = {.fold = f,
		.roots = roots,
		.ranks = &o.ranks,
		.log = n == 1 ? &mem : NULL};
	const int status = read_all(&in, n, path, o.bench);
	const bool checkpoint = find(f, &o);
	struct cli_out *out = cli_out_open(in.made, in.nmade, argc, argv);
	acc_arena_release(&mem);
	cli_status(out, status);
	if (acc_fold_run(f, emit, out, &e) < 0)
		cli_die_err(&e);
	uint64_t unread;
	const struct acc_err *why = acc_fold_trouble(f, &unread);
	if (unread > 0 && !o.quiet) {
		cli_warn("%llu tensors are folded by their statistics: %s",
			(unsigned long long)unread, cli_err(why));
	}
	if (checkpoint)
		say_weights(f, out, o.quiet);
	expect_say(&o.ranks, out);
	expect_close(&o.ranks);
	acc_buf_release(&given);
	free((void *)o.folders);
	acc_fold_close(f);
	acc_roots_close(roots);
	return cli_finish(out);
}
