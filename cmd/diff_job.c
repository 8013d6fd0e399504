#include "diff_job.h"
#include "acc/operand.h"
#include "acc/say.h"
#include "cli.h"
#include "diff_run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kinds[ACC_NHOLDS] = {"configuration", "log", "weights", "dump"};
static const char *const sides[2] = {"device", "bench"};

struct couple {
	const char *a, *b; /* beneath the two folders; NULL: one is alone */
};

struct job {
	const struct diff_opt *opt;
	const char *folder[2];
	struct acc_holding held[2];
	struct words skipped;
	const char *cause; /* the kind that may be it; NULL: none yet */
	int *kept;         /* of each part: its records, for a report */
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
	vfprintf(table || j->opt->print ? stdout : stderr, acc_tr(fmt), ap);
	va_end(ap);
	putc('\n', table || j->opt->print ? stdout : stderr);
}

/* --- what belongs together --- */

static void
names_of(const struct acc_holding *held, enum acc_holds what, struct acc_nameset *out)
{
	for (size_t i = 0; i < held->n; i++)
		if (held->part[i].holds == what &&
			acc_nameset_add(out, acc_str(held->part[i].name), NULL) < 0)
			cli_nomem();
	acc_nameset_sort(out);
}

static void
add_couple(struct acc_buf *to, const char *a, const char *b)
{
	const struct couple c = {a, b};
	if (acc_buf_add(to, &c, sizeof c) < 0)
		cli_nomem();
}

/* Of one kind, by name; where each side has one more, these. `alone` gets the others. */
static void
pair_up(const struct acc_nameset side[2], struct acc_buf *couples, struct acc_buf *alone)
{
	const struct acc_nameset *a = &side[0], *b = &side[1];
	const char *one[2] = {NULL, NULL};
	size_t n[2] = {0, 0};
	for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
		int d = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->v[i], b->v[k]);
		if (d == 0)
			add_couple(couples, a->v[i], b->v[k]);
		else
			one[d > 0] = d < 0 ? a->v[i] : b->v[k], n[d > 0]++;
		if (d < 0)
			add_couple(alone, a->v[i], NULL);
		if (d > 0)
			add_couple(alone, NULL, b->v[k]);
		i += d <= 0;
		k += d >= 0;
	}
	if (n[0] == 1 && n[1] == 1) {
		add_couple(couples, one[0], one[1]);
		alone->n = 0;
	}
}

static void
say_alone(const struct job *j, enum acc_holds what, const struct acc_buf *alone)
{
	const struct couple *c = (const struct couple *)(const void *)alone->p;
	for (size_t side = 0; side < 2; side++)
		for (size_t i = 0; i < alone->n / sizeof *c; i++) {
			const char *name = side == 0 ? c[i].a : c[i].b;
			if (name != NULL)
				say(j, "%s of the %s alone, not compared: %s", acc_tr(kinds[what]),
					acc_tr(sides[side]), diff_plain(name));
		}
}

/* --- comparing --- */

static const char *
path_in(const struct job *j, int side, const char *name)
{
	return diff_text("%s/%s", j->folder[side], name);
}

/* A part gets the options that its kind knows. */
static struct diff_opt
options_of(const struct job *j, enum acc_holds what, const struct couple *c)
{
	const struct words none = {0};
	struct diff_opt o = *j->opt;
	struct stat st;
	o.reports = none;
	o.behind = o.behind != NULL && strcmp(o.behind, "all") == 0 ? o.behind : NULL;
	o.noise = o.noise == NULL || what == ACC_HOLDS_CONFIGURATION
			  ? NULL
			  : diff_text("%s/%s", o.noise, c->b);
	if (o.noise != NULL && stat(o.noise, &st) < 0)
		o.noise = NULL;
	if (what == ACC_HOLDS_CONFIGURATION) {
		o.aligning = none;
		o.step = o.rank = o.op = NULL;
		o.sel = (struct acc_select){0};
	}
	if (what == ACC_HOLDS_CONFIGURATION || what == ACC_HOLDS_LOG) {
		o.measuring = o.judging = none;
		o.tensors = o.threads = o.preset = NULL;
		o.no_audit = o.no_fold = o.strict = false;
	}
	if (what != ACC_HOLDS_DUMP)
		o.expected = NULL;
	return o;
}

struct call {
	struct diff_opt opt;
	const char *device, *bench;
};

static int
compare(void *arg)
{
	const struct call *c = arg;
	return diff_compare(&c->opt, c->device, c->bench);
}

/* Where the records of the next part are kept: -1, nowhere. */
static int
keep(struct job *j)
{
	struct acc_err e = {0};
	int *kept = acc_grow(j->kept, &j->cap, j->parts + 1, sizeof *kept, NULL);
	if (kept == NULL)
		cli_nomem();
	j->kept = kept;
	kept[j->parts] = j->opt->reports.n == 0 ? -1 : acc_file_temp(cli_tmpdir(), &e);
	if (j->opt->reports.n > 0 && kept[j->parts] < 0)
		cli_die_err(&e);
	return kept[j->parts++];
}

static void
skip(struct job *j, enum acc_holds what, const struct couple *c)
{
	const char *two = diff_text("%s %s", diff_quoted(path_in(j, 0, c->a)),
		diff_quoted(path_in(j, 1, c->b)));
	if (strcmp(c->a, ".") == 0)
		two = diff_text("--go-on %s %s", diff_quoted(j->folder[0]),
			diff_quoted(j->folder[1]));
	cli_append(&j->skipped.v, &j->skipped.n,
		diff_text("\n  %s: accdiff %s", acc_tr(kinds[what]), two));
}

/* The status of one part. */
static int
compare_part(struct job *j, enum acc_holds what, const struct couple *c)
{
	struct call call = {.opt = options_of(j, what, c),
		.device = path_in(j, 0, c->a),
		.bench = path_in(j, 1, c->b)};
	const char *other = "";
	if (j->parts > 0 && strcmp(j->opt->format, "table") == 0 && !j->opt->print)
		putchar('\n');
	if (strcmp(c->a, c->b) != 0)
		other = diff_text(acc_tr(" and %s"), diff_plain(c->b));
	if (j->opt->print)
		fputs("# ", stdout);
	say(j, "== %s: %s", acc_tr(kinds[what]), diff_text("%s%s", diff_plain(c->a), other));
	call.opt.kept = keep(j);
	int status = prog_call(compare, &call);
	if (status > 2)
		exit(status);
	if (status > j->worst)
		j->worst = status;
	return status;
}

static void
compare_kind(struct job *j, enum acc_holds what)
{
	struct acc_nameset side[2] = {{0}, {0}};
	struct acc_buf couples = {0}, alone = {0};
	const char *found = NULL;
	for (size_t i = 0; i < 2; i++)
		names_of(&j->held[i], what, &side[i]);
	pair_up(side, &couples, &alone);
	if (!j->opt->print)
		say_alone(j, what, &alone);
	const struct couple *c = (const struct couple *)(const void *)couples.p;
	for (size_t i = 0; i < couples.n / sizeof *c; i++)
		if (j->cause != NULL && !j->opt->go_on)
			skip(j, what, &c[i]);
		else if (compare_part(j, what, &c[i]) == 1 && what != ACC_HOLDS_LOG)
			found = kinds[what]; /* a log shows that something is wrong, and not what */
	if (found != NULL)
		j->cause = found;
	acc_buf_release(&couples);
	acc_buf_release(&alone);
	acc_nameset_release(&side[0]);
	acc_nameset_release(&side[1]);
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

static int
compare_jobs(struct job *j)
{
	const char *all = "";
	if (j->opt->reports.n > 0)
		more_handles();
	for (int what = 0; what < ACC_NHOLDS; what++)
		compare_kind(j, (enum acc_holds)what);
	for (size_t i = 0; i < j->skipped.n; i++)
		all = diff_text("%s%s", all, j->skipped.v[i]);
	if (all[0] != '\0')
		say(j, "not looked at, since the cause may be the %s (--go-on looks at all):%s",
			acc_tr(j->cause), all);
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
		option, diff_quoted(path_in(j, 0, j->held[0].part[0].name)),
		diff_quoted(path_in(j, 1, j->held[1].part[0].name)));
	fputc('\n', stderr);
	exit(2);
}

int
diff_job(const struct diff_opt *opt, const char *device, const char *bench)
{
	struct job j = {.opt = opt, .folder = {device, bench}};
	struct acc_err e = {0};
	int is[2] = {0, 0}, status;
	prog_signals();
	for (int i = 0; i < 2 && (i == 0 || is[0] > 0); i++) {
		is[i] = strcmp(j.folder[i], "-") == 0 ? 0
						      : acc_held_look(&j.held[i], j.folder[i], &e);
		if (is[i] < 0)
			cli_die_err(&e);
	}
	if (is[0] > 0 && is[1] > 0) {
		refuse(&j);
		say_missed(&j);
		status = compare_jobs(&j);
	} else {
		status = diff_compare(opt, device, bench);
	}
	acc_held_release(&j.held[0]);
	acc_held_release(&j.held[1]);
	if (fflush(stdout) != 0 || ferror(stdout))
		cli_die("standard output:");
	return status;
}
