#include "diff_plan.h"
#include "acc/say.h"
#include "cli.h"

#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FD_ALIGN = 3, FD_FOLD, FD_NOISE, FD_RANKS };

void
plan_open(struct pipeline *l, const struct plan *p)
{
	*l = (struct pipeline){.plan = p};
	for (size_t i = 0; i < NSAID; i++)
		l->said[i] = prog_memory();
}

void
plan_close(struct pipeline *l)
{
	for (size_t i = 0; i < NSAID; i++)
		close(l->said[i]);
}

struct prog *
plan_member(struct pipeline *l, enum said what, const char *name, struct prog *in)
{
	struct prog *p = prog_new(name, in);
	p->err = l->said[what];
	l->member[what] = p;
	return p;
}

static int
index_of(const struct pipeline *l, const struct side *s)
{
	return (int)(s - l->plan->side);
}

/* said: SAID_READ + 0 or 1, or RUN_SILENT. */
static struct prog *
reader(struct pipeline *l, const struct side *s, int said)
{
	const struct diff_opt *o = l->plan->opt;
	struct prog *p = prog_new("accdump-read", NULL);
	p->err = said < 0 ? said : l->said[said];
	prog_add_all(p, &o->reading);
	prog_add_set(p, "--step", o->step);
	prog_add_set(p, "--rank", o->rank);
	prog_add_set(p, "--op", o->op);
	prog_add_set(p, "--format", s->form);
	if (s->outputs)
		prog_add(p, "--outputs");
	prog_add(p, "--");
	prog_add(p, s->path);
	if (index_of(l, s) <= BENCH)
		prog_add_all(p, &o->beside[index_of(l, s)]);
	return p;
}

/* What accmetric has to say it says again of the pairs. */
static struct prog *
measured(struct pipeline *l, const struct side *s, int said)
{
	const struct plan *plan = l->plan;
	struct prog *p = reader(l, s, said);
	/* A dictionary is paired by its values, whichever run it is. */
	if (!(s->measured || (l->noise && plan->side[SECOND].measured)) ||
		(l->noise && !plan->side[SECOND].measured))
		return p;
	if (plan->unlike) {
		p = prog_new("accaudit", p);
		prog_add_all(p, &plan->opt->auditing);
		prog_add_two(p, "-j", plan->opt->threads);
	}
	p = prog_new("accmetric", p);
	prog_add(p, "-q");
	prog_add(p, "--measured");
	prog_add_two(p, "-j", plan->opt->threads);
	return p;
}

/* The folder of a file. */
static const char *
folder_of(const char *path)
{
	struct stat st;
	char *copy;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return path;
	copy = strdup(path);
	if (copy == NULL)
		cli_nomem();
	return dirname(copy);
}

static struct prog *
folded(struct pipeline *l, const struct side *s, const struct side *other, int said)
{
	struct prog *p = plan_member(l, SAID_FOLD + index_of(l, s), "accfold",
		measured(l, other, RUN_SILENT));
	if (l->plan->wholly)
		prog_add(p, "--whole");
	/* The judge sees one rank of them. */
	if (l->plan->opt->expected != NULL && s == &l->plan->side[DEVICE])
		prog_add(p, l->plan->opt->expected);
	prog_add_two(p, "-b", "-");
	prog_add_set(p, "--root", folder_of(s->path));
	prog_add_set(p, "--root", folder_of(other->path));
	p->side = measured(l, s, said);
	p->side_fd = FD_FOLD;
	prog_add(p, diff_text("/dev/fd/%d", FD_FOLD));
	return p;
}

struct prog *
plan_layout(struct pipeline *l, int side)
{
	const struct side *s = &l->plan->side[side];
	struct prog *p = folded(l, s, &l->plan->side[DEVICE + BENCH - side], RUN_SILENT);
	prog_add(p, "--print-layout");
	return p;
}

static struct prog *
parted(struct pipeline *l, const struct side *s, const struct side *other, int said)
{
	struct prog *p = plan_member(l, SAID_PARTS + index_of(l, s), "accfold",
		measured(l, s, said));
	prog_add_set(p, "--root", folder_of(s->path));
	if (s->g.flat && strcmp(other->path, "-") != 0)
		prog_add_set(p, "--bench", other->path);
	return p;
}

static struct prog *
read_side(struct pipeline *l, const struct side *s, const struct side *other, int said)
{
	if (s->folded && !l->noise)
		return folded(l, s, other, said);
	if (s->parted && !l->noise)
		return parted(l, s, other, said);
	return measured(l, s, said);
}

struct prog *
plan_pairs(struct pipeline *l)
{
	const struct plan *plan = l->plan;
	struct prog *p = prog_new("accalign", reader(l, &plan->side[BENCH], RUN_SILENT));
	prog_add_all(p, &plan->opt->aligning);
	p->side = reader(l, &plan->side[DEVICE], RUN_SILENT);
	p->side_fd = FD_ALIGN;
	prog_add(p, diff_text("/dev/fd/%d", FD_ALIGN));
	prog_add(p, "-");
	return p;
}

struct prog *
plan_measure(struct pipeline *l, const struct side *a, const struct side *b)
{
	const struct plan *plan = l->plan;
	const struct diff_opt *o = plan->opt;
	struct prog *p = plan_member(l, SAID_ALIGN, "accalign",
		read_side(l, b, a, l->noise ? RUN_SILENT : SAID_READ + BENCH));
	prog_add_all(p, &o->aligning);
	prog_add_set(p, "--preset", o->preset);
	p->side = read_side(l, a, b, SAID_READ + DEVICE);
	p->side_fd = FD_ALIGN;
	prog_add(p, diff_text("/dev/fd/%d", FD_ALIGN));
	prog_add(p, "-");
	if (plan->holds != ACC_HOLDS_DUMP && !plan->gradients)
		return p;
	p = plan_member(l, SAID_METRIC, "accmetric", p);
	if (isatty(STDERR_FILENO))
		p->err = RUN_OWN; /* it shows its progress */
	prog_add_all(p, &o->measuring);
	prog_add_set(p, "--preset", o->preset);
	if (plan->side[DEVICE].measured || plan->side[BENCH].measured)
		prog_add(p, "--measured");
	prog_add_two(p, "-m", o->also);
	if (plan->holds == ACC_HOLDS_DUMP)
		prog_add_two(p, "-j", o->threads);
	return p;
}

/* A report has all records, beside a table of what is bad; of configurations, what differs. */
static bool
is_entire(const struct plan *plan, bool *only_bad)
{
	static const char whole[] = "html xlsx stream tree dot junit brief brief-json";
	const struct diff_opt *o = plan->opt;
	const bool report = o->reports.n > 0 || o->entire;
	*only_bad = false;
	if (plan->holds == ACC_HOLDS_CONFIGURATION)
		return o->all;
	if (acc_word_in(whole, acc_str(o->format)))
		return true;
	*only_bad = report && !o->all;
	return o->all || report;
}

struct prog *
plan_judge(struct pipeline *l)
{
	const struct plan *plan = l->plan;
	const struct diff_opt *o = plan->opt;
	const bool dump = plan->holds == ACC_HOLDS_DUMP;
	bool only_bad;
	struct prog *p = plan_member(l, SAID_JUDGE, plan->judge,
		plan_measure(l, &plan->side[DEVICE], &plan->side[BENCH]));
	prog_add_all(p, &o->judging);
	if (o->expected != NULL && !plan->side[DEVICE].folded)
		prog_add(p, o->expected);
	prog_add_set(p, "--preset", o->preset);
	/* Where in its tensor the culprit's error sits is for the judge without rules. */
	if (dump && o->preset == NULL && o->rules == NULL)
		prog_add(p, "--where");
	if (o->noise != NULL) {
		prog_add_set(p, "--noise", diff_text("/dev/fd/%d", FD_NOISE));
		p->file = plan->noise;
		p->file_fd = FD_NOISE;
	}
	if (o->before != NULL) {
		prog_add_set(p, "--before", diff_text("/dev/fd/%d", FD_NOISE));
		p->file = plan->before;
		p->file_fd = FD_NOISE;
	}
	if (is_entire(plan, &only_bad))
		prog_add(p, "--all");
	if (plan->holds == ACC_HOLDS_CONFIGURATION && o->part)
		prog_add(p, "--apart");
	if (dump && o->strict)
		prog_add(p, "--strict");
	if (o->no_audit)
		prog_add(p, "--no-audit");
	if (dump)
		prog_add_two(p, "-j", o->threads);
	return p;
}

struct prog *
plan_show(struct pipeline *l, struct prog *in, int from)
{
	const struct diff_opt *o = l->plan->opt;
	bool only_bad;
	struct prog *p = plan_member(l, SAID_FMT, "accfmt", in);
	p->from = from;
	prog_add_all(p, &o->printing);
	prog_add_all(p, &o->reports);
	prog_add_two(p, "-f", o->format);
	prog_add_set(p, "--top", o->top);
	is_entire(l->plan, &only_bad);
	if (only_bad)
		prog_add(p, "--bad");
	prog_add_set(p, "--consequences", o->behind);
	prog_add_two(p, "-c", o->columns);
	return p;
}

struct prog *
plan_reader(struct pipeline *l, const struct side *s)
{
	return reader(l, s, RUN_SILENT);
}

void
plan_show_too(struct prog *show, int fd)
{
	prog_add(show, diff_text("/dev/fd/%d", FD_RANKS));
	prog_add(show, "-");
	show->file = fd;
	show->file_fd = FD_RANKS;
}

/* --- what they said --- */

/* Lines that begin with `from` begin with `to`. */
static void
put_line(const char *line, size_t n, const char *from, const char *to)
{
	const size_t k = strlen(from);
	const bool other = n >= k && memcmp(line, from, k) == 0;
	fprintf(stderr, "%s%.*s\n", other ? to : "", (int)(other ? n - k : n),
		other ? line + k : line);
}

static const char *
side_name(const struct pipeline *l, int i)
{
	return acc_tr(l->noise && i == DEVICE ? "second bench" : l->plan->side[i].name);
}

static void
put_all(const char *text, const char *from, const char *to)
{
	for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		put_line(text, n, from, to);
	}
}

void
plan_said_reading(struct pipeline *l)
{
	for (int i = DEVICE; i <= BENCH; i++) {
		char *text = prog_read(l->said[SAID_READ + i]);
		put_all(text, "accdump-read: ", diff_text("accdiff: %s: ", side_name(l, i)));
		/* What it said itself is enough. */
		const struct acc_err *e = side_failed(&l->plan->side[i]);
		if (text[0] == '\0' && e != NULL && !l->noise)
			fprintf(stderr, "accdiff: %s: %s\n", side_name(l, i), cli_err(e));
		free(text);
	}
}

void
plan_said_folding(struct pipeline *l)
{
	char *text[2];
	for (int i = DEVICE; i <= BENCH; i++)
		text[i] = prog_read(l->said[SAID_FOLD + i]);
	/* What keeps both sides from becoming one is one thing. */
	const bool one = strcmp(text[DEVICE], text[BENCH]) == 0;
	for (int i = DEVICE; i <= BENCH; i++) {
		if (!one || i == DEVICE)
			put_all(text[i], "accfold: ",
				one ? "accdiff: " : diff_text("accdiff: %s: ", side_name(l, i)));
		free(text[i]);
	}
}

/* Does a line say but that an earlier program failed? */
static bool
blames_earlier(const char *line, size_t n)
{
	const char *tail = strstr(acc_tr("no end record: an earlier command failed?"), ": ");
	const size_t k = tail == NULL ? 0 : strlen(tail);
	return k > 0 && n >= k && memcmp(line + n - k, tail, k) == 0;
}

/* The lines of one member, those that say why it failed, or (first) the first of any. True: one was
 * shown. */
static bool
put_member(struct pipeline *l, int what, bool first)
{
	const char *from = "accfold: ", *to = NULL;
	const char *own = diff_text("accalign: %s: ", acc_tr("standard input"));
	const struct prog *p = l->member[what];
	char *text = prog_read(l->said[what]);
	bool any = false;
	if (what >= SAID_ALIGN)
		from = "accalign: /dev/fd/3: ";
	to = diff_text("accdiff: %s: ",
		side_name(l, what >= SAID_ALIGN ? DEVICE : what - SAID_PARTS));
	for (const char *s = text; *s != '\0' && !(any && first);) {
		const size_t n = strcspn(s, "\n");
		const bool bench = n >= strlen(own) && memcmp(s, own, strlen(own)) == 0;
		if (first || !blames_earlier(s, n)) {
			put_line(s, n, bench ? own : from,
				bench ? diff_text("accdiff: %s: ", side_name(l, BENCH)) : to);
			any = true;
		}
		s += n + (s[n] == '\n');
	}
	free(text);
	if (p != NULL && p->status > 2 && p->status != 141 && !(any && first)) {
		const char *how = diff_text(acc_tr("ended with status %d"), p->status);
		fprintf(stderr, "%s: %s\n", p->argv.v[0], how);
		any = true;
	}
	return any;
}

/* On a full machine there may be no room for what a member said: its status is all there is. */
static void
say_unsaid(struct pipeline *l, bool said)
{
	for (int i = SAID_PARTS; i < NSAID && !said; i++) {
		const struct prog *p = l->member[i];
		if (p == NULL || p->status != 2 || pwrite(l->said[i], "", 1, 0) == 1)
			continue;
		fprintf(stderr, "%s: %s\n", p->argv.v[0],
			diff_text(acc_tr("ended with status %d"), p->status));
		said = true;
	}
}

void
plan_said_members(struct pipeline *l)
{
	bool any = false;
	for (int i = SAID_PARTS; i < NSAID; i++)
		any |= put_member(l, i, false);
	for (int i = SAID_PARTS; i < NSAID && !any; i++)
		any = put_member(l, i, true);
	l->said_own = any;
	say_unsaid(l, any);
}

/* Has it said this, up to the first number of it? */
static bool
has_said(const struct pipeline *l, enum said what, const char *message)
{
	const char *words = acc_tr(message);
	char *text = prog_read(l->said[what]), *start = strndup(words, strcspn(words, "%"));
	if (start == NULL)
		cli_nomem();
	const bool yes = strstr(text, start) != NULL;
	free(start);
	free(text);
	return yes;
}

bool
plan_in_two_layouts(const struct pipeline *l)
{
	return has_said(l, SAID_JUDGE,
		"the two sides are laid out over ranks in different ways: nothing was judged");
}

bool
plan_left_gradients(const struct pipeline *l)
{
	return has_said(l, SAID_JUDGE,
		"gradients that optimizers are given were not compared, %llu of %llu: how their parts lie on the ranks is not known;"
		" are they reduced?");
}

bool
plan_measured(const struct pipeline *l)
{
	bool all = true;
	for (int i = SAID_PARTS; i < SAID_JUDGE; i++)
		all &= l->member[i] == NULL || l->member[i]->status < 2;
	return all;
}

bool
plan_audited_nothing(const struct pipeline *l)
{
	return has_said(l, SAID_METRIC,
		       "nothing was audited: of %llu outputs none could be, the first since: %s") ||
	       has_said(l, SAID_METRIC,
		       "nothing was audited: no output of an op call with a pass and its arguments"
		       " (pass, io: accstream(5)) is in the stream");
}
