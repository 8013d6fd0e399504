#include "diff_job.h"
#include "acc/operand.h"
#include "acc/say.h"
#include "cli.h"
#include "diff_others.h"
#include "diff_pair.h"
#include "diff_run.h"
#include "diff_sum.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kinds[ACC_NHOLDS] = {"configuration", "log", "samples", "weights", "dump"};
static const char *const sides[2] = {"device", "bench"};

struct job {
	const struct diff_opt *opt;
	const char *folder[2];
	struct acc_holding held[2],
		noise; /* noise: of the second bench, if that is such a folder */
	struct words skipped;
	struct sum sum[ACC_NHOLDS];
	int out; /* what is printed waits there, for its sum comes first; -1: it is printed at once */
	const char *cause; /* the kind that may be it; NULL: none yet */
	int *kept;         /* of each part: its records */
	size_t parts, cap;
	int worst;
};

/* What is said of a job and is no result: between the tables, or beside the data. */
__attribute__((format(printf, 2, 3))) static void
say(const struct job *j, const char *fmt, ...)
{
	const bool table = strcmp(j->opt->format, "table") == 0;
	va_list ap;
	if (!table && !j->opt->print)
		fputs("accdiff: ", stderr);
	va_start(ap, fmt);
	if (j->out >= 0)
		vdprintf(j->out, acc_tr(fmt), ap);
	else
		vfprintf(table || j->opt->print ? stdout : stderr, acc_tr(fmt), ap);
	va_end(ap);
	if (j->out >= 0)
		dprintf(j->out, "\n");
	else
		putc('\n', table || j->opt->print ? stdout : stderr);
}

static void
say_alone(const struct job *j, enum acc_holds what, const struct acc_buf *alone)
{
	const struct couple *c = (const struct couple *)(const void *)alone->p;
	for (size_t side = 0; side < 2; side++)
		for (size_t i = 0; i < alone->n / sizeof *c; i++) {
			const struct acc_held_part *p = side == 0 ? c[i].a : c[i].b;
			if (p != NULL)
				say(j, "%s of the %s alone, not compared: %s", acc_tr(kinds[what]),
					acc_tr(sides[side]), diff_plain(p->name));
		}
}

static void
say_others(const struct job *j)
{
	const char *text[2] = {diff_others(&j->held[0]), diff_others(&j->held[1])};
	if (text[0][0] != '\0' || text[1][0] != '\0')
		say(j, "%s", "");
	if (strcmp(text[0], text[1]) == 0) {
		if (text[0][0] != '\0')
			say(j, "not read: %s", text[0]);
		return;
	}
	for (int i = 0; i < 2; i++)
		if (text[i][0] != '\0')
			say(j, "not read of the %s: %s", acc_tr(sides[i]), text[i]);
}

/* --- comparing --- */

static const char *
path_in(const struct job *j, int side, const struct acc_held_part *p)
{
	return p->name[0] == '\0' ? j->folder[side] : diff_text("%s/%s", j->folder[side], p->name);
}

/* What belongs to a part of the bench in its second run; NULL: nothing. */
static const char *
noise_of(const struct job *j, enum acc_holds what, const struct acc_held_part *p)
{
	const struct acc_holding two[2] = {j->held[1], j->noise};
	struct acc_buf couples = {0}, alone = {0};
	const char *path = NULL;
	struct stat st;
	pair_up(two, what, &couples, &alone);
	const struct couple *c = (const struct couple *)(const void *)couples.p;
	for (size_t i = 0; i < couples.n / sizeof *c; i++)
		if (c[i].a == p)
			path = diff_text("%s/%s", j->opt->noise, c[i].b->name);
	if (path == NULL && j->noise.n == 0)
		path = diff_text("%s/%s", j->opt->noise, p->name);
	acc_buf_release(&couples);
	acc_buf_release(&alone);
	return path == NULL || stat(path, &st) < 0 ? NULL : path;
}

/* What counts there are in the configurations tells what a loss may be divided by. Of forms that are the run's own, and
 * in its folder itself. */
static void
beside(const struct job *j, struct diff_opt *o)
{
	static const char own[] = "yaml json training_args shell toml wandb-config";
	for (int side = 0; side < 2; side++) {
		const struct acc_holding *h = &j->held[side];
		for (size_t i = 0; i < h->n; i++)
			if (h->part[i].holds == ACC_HOLDS_CONFIGURATION && !h->part[i].named &&
				h->part[i].name[0] != '\0' &&
				strchr(h->part[i].name, '/') == NULL &&
				acc_word_in(own, acc_str(h->part[i].form)))
				cli_append(&o->beside[side].v, &o->beside[side].n,
					path_in(j, side, &h->part[i]));
	}
}

/* A part gets the options that its kind knows. */
static struct diff_opt
options_of(const struct job *j, enum acc_holds what, const struct couple *c)
{
	const struct words none = {0};
	struct diff_opt o = *j->opt;
	o.part = true;
	o.settings = what == ACC_HOLDS_CONFIGURATION && strcmp(c->a->form, "log") == 0;
	o.entire = o.reports.n > 0;
	o.reports = none;
	o.form[0] = c->a->named ? c->a->form : NULL;
	o.form[1] = c->b->named ? c->b->form : NULL;
	o.behind = o.behind != NULL && strcmp(o.behind, "all") == 0 ? o.behind : NULL;
	o.noise = o.noise == NULL || what == ACC_HOLDS_CONFIGURATION ? NULL
								     : noise_of(j, what, c->b);
	if (what == ACC_HOLDS_CONFIGURATION) {
		o.aligning = none;
		o.step = o.rank = o.op = NULL;
		o.sel = (struct acc_select){0};
	}
	if (what <= ACC_HOLDS_SAMPLES) {
		o.measuring = o.judging = none;
		o.tensors = o.threads = o.preset = NULL;
		o.no_audit = o.no_fold = o.strict = false;
	}
	if (what != ACC_HOLDS_DUMP)
		o.expected = NULL;
	if (what == ACC_HOLDS_LOG && o.form[0] == NULL && o.form[1] == NULL)
		beside(j, &o);
	return o;
}

struct call {
	struct diff_opt opt;
	const char *device, *bench;
	int out; /* -1: as it is */
};

static int
compare(void *arg)
{
	const struct call *c = arg;
	if (c->out >= 0 && dup2(c->out, STDOUT_FILENO) < 0)
		cli_die("a temporary file:");
	return diff_compare(&c->opt, c->device, c->bench);
}

/* Where the records of the next part are kept: -1, nowhere. */
static int
keep(struct job *j)
{
	if (!ACC_ROOM(j->kept, j->cap, j->parts + 1, NULL))
		cli_nomem();
	j->kept[j->parts] = j->opt->print ? -1 : diff_stream_file();
	return j->kept[j->parts++];
}

static void
skip(struct job *j, enum acc_holds what, const struct couple *c)
{
	const char *two = diff_text("%s %s", diff_quoted(path_in(j, 0, c->a)),
		diff_quoted(path_in(j, 1, c->b)));
	if (strcmp(c->a->name, ".") == 0)
		two = diff_text("--go-on %s %s", diff_quoted(j->folder[0]),
			diff_quoted(j->folder[1]));
	cli_append(&j->skipped.v, &j->skipped.n,
		diff_text("\n  %s: accdiff %s", acc_tr(kinds[what]), two));
	j->sum[what].skipped = true;
}

static const char *
shown(const struct job *j, int side, const struct acc_held_part *p)
{
	return diff_plain(p->name[0] == '\0' ? j->folder[side] : p->name);
}

/* The status of one part. */
static int
compare_part(struct job *j, enum acc_holds what, const struct couple *c)
{
	struct call call = {.opt = options_of(j, what, c),
		.device = path_in(j, 0, c->a),
		.bench = path_in(j, 1, c->b),
		.out = j->out};
	const char *name = shown(j, 0, c->a), *bench = shown(j, 1, c->b);
	if (j->parts > 0 && j->out >= 0)
		dprintf(j->out, "\n");
	if (j->opt->print)
		fputs("# ", stdout);
	if (strcmp(name, bench) != 0)
		say(j, "== %s: %s", acc_tr(kinds[what]),
			diff_text(acc_tr("%s and %s"), name, bench));
	else
		say(j, "== %s: %s", acc_tr(kinds[what]), name);
	call.opt.kept = keep(j);
	int status = prog_call(compare, &call);
	if (status > 2)
		cli_die("%s: %s", name, diff_text(acc_tr("ended with status %d"), status));
	if (status > j->worst)
		j->worst = status;
	if (call.opt.kept >= 0)
		sum_part(&j->sum[what], what, status, name, call.opt.kept);
	return status;
}

/* Of weights the first that differ are enough: those of later steps follow from them. */
static void
compare_kind(struct job *j, enum acc_holds what)
{
	struct acc_buf couples = {0}, alone = {0};
	const char *found = NULL;
	pair_up(j->held, what, &couples, &alone);
	if (!j->opt->print)
		say_alone(j, what, &alone);
	const struct couple *c = (const struct couple *)(const void *)couples.p;
	for (size_t i = 0; i < couples.n / sizeof *c; i++) {
		const bool follows = what == ACC_HOLDS_WEIGHTS && found != NULL;
		if ((j->cause != NULL || follows) && !j->opt->go_on)
			skip(j, what, &c[i]);
		else if (compare_part(j, what, &c[i]) == 1 && what != ACC_HOLDS_LOG)
			found = kinds[what]; /* a log shows that something is wrong, and not what */
	}
	if (found != NULL && j->cause == NULL)
		j->cause = found;
	acc_buf_release(&couples);
	acc_buf_release(&alone);
}

/* One report of all that was compared. */
static void
report(struct job *j)
{
	struct prog *p = prog_new("accfmt", NULL);
	struct stat st;
	p->err = prog_memory();
	prog_add_all(p, &j->opt->reports);
	prog_add_two(p, "-c", j->opt->columns);
	prog_add(p, "--");
	for (size_t i = 0; i < j->parts; i++)
		if (fstat(j->kept[i], &st) == 0 && st.st_size > 0 &&
			fcntl(j->kept[i], F_SETFD, 0) == 0)
			prog_add(p, diff_text("/dev/fd/%d", j->kept[i]));
	int status = prog_run(p, STDOUT_FILENO);
	char *text = prog_read(p->err);
	for (char *save, *line = strtok_r(text, "\n", &save); line != NULL;
		line = strtok_r(NULL, "\n", &save)) {
		static const char dev[] = "/dev/fd/";
		const char *rest = line;
		if (strncmp(line, "accfmt: ", 8) == 0)
			rest = line + 8;
		const bool named = strncmp(rest, dev, sizeof dev - 1) == 0;
		char *end = (char *)rest;
		const long fd = named ? strtol(rest + sizeof dev - 1, &end, 10) : -1;
		size_t part = 0;
		while (named && part < j->parts && j->kept[part] != fd)
			part++;
		fprintf(stderr, "%s%s%s\n", rest != line ? "accdiff: " : "",
			named ? diff_text("part %zu", part + 1) : "", end);
	}
	free(text);
	if (status > 2)
		fprintf(stderr, "accfmt: %s\n", diff_text(acc_tr("ended with status %d"), status));
	status = status > 2 ? 2 : status;
	if (status > j->worst)
		j->worst = status;
}

/* A report of many parts needs a handle for each. */
static void
more_handles(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* The line that sums it up, and what waited for it. */
static void
print_all(struct job *j)
{
	const char *line = sum_line(j->sum, j->held);
	char buf[65536];
	struct acc_err e = {0};
	int64_t n;
	if (line != NULL && j->out < 0)
		say(j, "%s", line);
	if (j->out < 0)
		return;
	if (line != NULL)
		printf("%s\n\n", line);
	for (uint64_t at = 0; (n = acc_file_peek(j->out, buf, sizeof buf, at, &e)) > 0;
		at += (uint64_t)n)
		if (fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
			cli_die("standard output:");
	if (n < 0)
		cli_die_err(&e);
}

/* Folders of which no part has a partner are not the same. */
static void
refuse_strangers(const struct job *j)
{
	enum { SHOWN = 8 };
	for (int i = 0; i < 2; i++) {
		const struct acc_holding *h = &j->held[i];
		for (size_t k = 0; k < h->n && k < SHOWN; k++)
			cli_warn("%s",
				diff_text(acc_tr("the %s has: %s %s%s%s%s"), acc_tr(sides[i]),
					acc_tr(kinds[h->part[k].holds]), shown(j, i, &h->part[k]),
					h->part[k].run != NULL ? " (" : "",
					h->part[k].run != NULL ? diff_plain(h->part[k].run) : "",
					h->part[k].run != NULL ? ")" : ""));
		if (h->n > SHOWN)
			cli_warn("%s", diff_text(acc_tr("the %s has: %zu more"), acc_tr(sides[i]),
					       h->n - SHOWN));
	}
	cli_die("nothing to compare: of what they hold nothing belongs together; name one of each side:"
		" accdiff DEVICE/... BENCH/...");
}

static int
compare_jobs(struct job *j)
{
	const char *all = "";
	more_handles();
	if (strcmp(j->opt->format, "table") == 0 && !j->opt->print)
		j->out = diff_stream_file();
	for (int what = 0; what < ACC_NHOLDS; what++)
		compare_kind(j, (enum acc_holds)what);
	if (j->parts == 0)
		refuse_strangers(j);
	for (size_t i = 0; i < j->skipped.n; i++)
		all = diff_text("%s%s", all, j->skipped.v[i]);
	if (all[0] != '\0')
		say(j, "not looked at, since the cause may be the %s (--go-on looks at all):%s",
			acc_tr(j->cause), all);
	if (!j->opt->print)
		say_others(j);
	print_all(j);
	if (j->opt->reports.n > 0 && j->parts > 0 && !j->opt->print)
		report(j);
	free(j->kept);
	return j->worst;
}

/* What cannot be looked at may be what differs. */
static void
say_missed(struct job *j)
{
	for (size_t i = 0; i < 2; i++)
		if (j->held[i].nmissed > 0) {
			cli_warn_err(&j->held[i].missed);
			if (j->held[i].nmissed > 1)
				cli_warn("%s: and %zu more that cannot be looked at", j->folder[i],
					j->held[i].nmissed - 1);
			j->worst = 2;
		}
}

/* These options are for one kind. */
static void
refuse(const struct job *j)
{
	const struct diff_opt *o = j->opt;
	const char *option = o->regex != NULL ? "--regex" : "--name-regex";
	if (o->rules != NULL)
		option = diff_text("--rules%s", o->reading.n > 0 ? option : "");
	else if (o->reading.n == 0)
		return;
	fprintf(stderr, "accdiff: ");
	fprintf(stderr, acc_tr("%s: for one of what these folders hold, such as\n  accdiff %s %s"),
		option, diff_quoted(path_in(j, 0, &j->held[0].part[0])),
		diff_quoted(path_in(j, 1, &j->held[1].part[0])));
	fputc('\n', stderr);
	exit(2);
}

/* A folder in which nothing is read says what is in it; an empty one that it is. */
static void
refuse_unread(const struct job *j, int side)
{
	const struct acc_holding *h = &j->held[side];
	struct acc_err e = {0};
	if (h->n > 0 || h->nother == 0 || acc_dump_probe(j->folder[side], &e) != NULL)
		return;
	cli_die("%s: nothing in this folder is read: %s", j->folder[side], diff_others(h));
}

/* Has it weights, and no dump? */
static bool
is_model(const struct acc_holding *h)
{
	bool weights = false, dump = false;
	for (size_t i = 0; i < h->n; i++) {
		weights |= h->part[i].holds == ACC_HOLDS_WEIGHTS;
		dump |= h->part[i].holds == ACC_HOLDS_DUMP;
	}
	return weights && !dump;
}

/* One side is a run's folder, the other one thing: that is compared with what the folder has of its kind. */
static bool
take_single(struct job *j, int side)
{
	const struct acc_glance_opt opt = {.sel = &j->opt->sel};
	struct acc_holding *h = &j->held[side];
	struct acc_glance g = {0};
	struct acc_err e = {0};
	const struct acc_dump *d = acc_dump_probe(j->folder[side], &e);
	if (strcmp(j->folder[side], "-") == 0 || d == NULL)
		return false;
	if (acc_glance(&g, j->folder[side], &opt, &e) < 0)
		cli_die_err(&e);
	/* An archive of arrays by name, which calls none of them a weight, may well be a model's. */
	const bool arrays = strcmp(d->name, "npz") == 0 && is_model(&j->held[!side]);
	const struct acc_held_part one = {"", d->name, false,
		g.holds == ACC_HOLDS_DUMP && (g.params || arrays) ? ACC_HOLDS_WEIGHTS : g.holds,
		NULL};
	acc_glance_release(&g);
	acc_held_release(h);
	h->part = acc_grow(NULL, &h->cap, 1, sizeof *h->part, NULL);
	if (h->part == NULL)
		cli_nomem();
	h->part[h->n++] = one;
	return true;
}

static bool
prints_settings(const struct job *j, const char *path)
{
	const struct acc_glance_opt opt = {.sel = &j->opt->sel};
	struct acc_glance g = {0};
	struct acc_err e = {0};
	if (acc_glance(&g, path, &opt, &e) < 0)
		cli_die_err(&e);
	const bool both = g.settings;
	acc_glance_release(&g);
	return both;
}

/* A log that prints the arguments of its run is a configuration, too. */
static void
add_settings(struct job *j, int side)
{
	struct acc_holding *h = &j->held[side];
	for (size_t i = 0, n = h->n; i < n; i++) {
		struct acc_held_part one = h->part[i];
		if (one.holds != ACC_HOLDS_LOG || strcmp(one.form, "log") != 0 ||
			!prints_settings(j, path_in(j, side, &one)))
			continue;
		one.holds = ACC_HOLDS_CONFIGURATION;
		h->part = acc_grow(h->part, &h->cap, h->n + 1, sizeof *h->part, NULL);
		if (h->part == NULL)
			cli_nomem();
		h->part[h->n++] = one;
	}
}

static bool
has_settings(const struct acc_holding *h)
{
	bool found = false;
	for (size_t i = 0; i < h->n; i++)
		found = found || h->part[i].holds == ACC_HOLDS_CONFIGURATION;
	return found;
}

/* Where the other side has none, there is nothing to compare them with. */
static void
settle_settings(struct job *j)
{
	const size_t n[2] = {j->held[0].n, j->held[1].n};
	for (int i = 0; i < 2; i++)
		add_settings(j, i);
	if (!has_settings(&j->held[0]) || !has_settings(&j->held[1]))
		for (int i = 0; i < 2; i++)
			j->held[i].n = n[i];
}

/* Beside a folder of single files, one with nothing in it is why they are not compared. */
static void
refuse_empty(const char *side, const char *folder)
{
	char where[4096];
	struct acc_err e = {0};
	const int fd = acc_dir_open(folder, NULL);
	if (fd >= 0 && acc_dir_has_end(fd, "", &e) == 0)
		acc_fail(&e, ACC_EFORMAT, "an empty folder");
	if (fd >= 0)
		close(fd);
	if (e.code != 0) {
		snprintf(where, sizeof where, "%s: %s", side, folder);
		acc_err_in(&e, where);
		cli_die_err(&e);
	}
}

int
diff_job(const struct diff_opt *opt, const char *device, const char *bench)
{
	struct job j = {.opt = opt, .folder = {device, bench}, .out = -1};
	struct acc_err e = {0};
	int is[2] = {0, 0}, status;
	prog_signals();
	for (int i = 0; i < 2; i++) {
		is[i] = strcmp(j.folder[i], "-") == 0 ? 0
						      : acc_held_look(&j.held[i], j.folder[i], &e);
		if (is[i] < 0)
			cli_die_err(&e);
	}
	if (opt->noise != NULL && acc_held_look(&j.noise, opt->noise, &e) < 0)
		cli_die_err(&e);
	for (int i = 0; i < 2; i++)
		refuse_unread(&j, i);
	if (is[0] != is[1])
		is[is[0] > 0] = take_single(&j, is[0] > 0);
	else if (is[0] == 0 && opt->reading.n == 0 && opt->rules == NULL &&
		 strcmp(device, "-") != 0 && strcmp(bench, "-") != 0 &&
		 prints_settings(&j, device) && prints_settings(&j, bench))
		is[0] = is[1] = take_single(&j, 0) && take_single(&j, 1);
	if (is[0] > 0 && is[1] > 0) {
		refuse(&j);
		settle_settings(&j);
		say_missed(&j);
		status = compare_jobs(&j);
	} else {
		refuse_empty(sides[0], device);
		refuse_empty(sides[1], bench);
		status = diff_compare(opt, device, bench);
	}
	acc_held_release(&j.held[0]);
	acc_held_release(&j.held[1]);
	acc_held_release(&j.noise);
	if (fflush(stdout) != 0 || ferror(stdout))
		cli_die("standard output:");
	return status;
}
