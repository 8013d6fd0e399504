#include "diff.h"
#include "acc/say.h"
#include "cli.h"
#include "diff_plan.h"
#include "diff_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static struct acc_arena kept; /* until the end */

const char *
diff_text(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *s = n < 0 ? NULL : acc_alloc(&kept, (size_t)n + 1);
	if (s == NULL)
		cli_nomem();
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

const char *
diff_plain(const char *text)
{
	struct acc_str s = acc_str(text);
	char *out = acc_arena_copy(&kept, text, s.n), *at = out;
	if (out == NULL)
		cli_nomem();
	for (uint32_t n; s.n > 0; s = (struct acc_str){s.p + n, s.n - n}) {
		int32_t code;
		n = acc_char(s, &code);
		if (acc_char_plain(code)) {
			memcpy(at, s.p, n);
			at += n;
		} else {
			*at++ = '?';
		}
	}
	*at = '\0';
	return out;
}

/* $'...', as bash, zsh, ksh and the newer POSIX have it. */
static const char *
escaped(const char *s)
{
	char *out = acc_alloc(&kept, 4 * strlen(s) + 4), *at = out;
	if (out == NULL)
		cli_nomem();
	at += sprintf(at, "$'");
	for (; *s != '\0'; s++) {
		const unsigned char c = (unsigned char)*s;
		if (c == '\'' || c == '\\')
			at += sprintf(at, "\\%c", c);
		else if (c < ' ' || c > '~')
			at += sprintf(at, "\\%03o", c);
		else
			*at++ = (char)c;
	}
	strcpy(at, "'");
	return out;
}

const char *
diff_quoted(const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_./=+:,@%-";
	const char *out = "'";
	if (s[0] != '\0' && s[strspn(s, plain)] == '\0')
		return s;
	if (strcmp(diff_plain(s), s) != 0)
		return escaped(s);
	for (const char *at = s;; at++) {
		const size_t n = strcspn(at, "'");
		out = diff_text("%s%.*s%s", out, (int)n, at, at[n] == '\'' ? "'\\''" : "'");
		at += n;
		if (*at == '\0')
			return out;
	}
}

int
diff_stream_file(void)
{
	struct acc_err e = {0};
	int fd = acc_file_temp(cli_tmpdir(), &e);
	if (fd < 0)
		cli_die_err(&e);
	return fd;
}

/* --- the pipeline, printed --- */

/* What is asked of the older dump: all that is judged, and nothing written. */
static struct diff_opt
older(const struct diff_opt *opt)
{
	struct diff_opt o = *opt;
	o.before = NULL;
	o.all = true;
	o.judging = (struct words){NULL, 0};
	for (size_t i = 0; i < opt->judging.n; i++)
		if (strncmp(opt->judging.v[i], "--write-baseline", 16) != 0 &&
			strncmp(opt->judging.v[i], "--next", 6) != 0)
			cli_append(&o.judging.v, &o.judging.n, opt->judging.v[i]);
	return o;
}

static void
print_line(struct plan *p)
{
	struct pipeline l;
	struct prog *noise = NULL;
	const struct diff_opt o = older(p->opt);
	struct plan before = {.opt = &o, .noise = -1, .before = -1};
	struct pipeline lb;
	plan_open(&l, p);
	plan_open(&lb, &before);
	if (p->opt->noise != NULL) {
		l.noise = true;
		noise = plan_measure(&l, &p->side[SECOND], &p->side[BENCH]);
		l.noise = false;
	}
	if (p->opt->before != NULL) {
		side_look(&before, p->opt->before, p->side[BENCH].path);
		side_prepare(&before);
		noise = plan_judge(&lb);
	}
	prog_print(plan_show(&l, plan_judge(&l), -1), noise);
	plan_close(&lb);
	plan_close(&l);
}

/* What only a run can tell is said, and what would be run then. */
static void
print_instead(struct plan *p, const char *when)
{
	printf("# %s\n# ", acc_tr(when));
	print_line(p);
}

static void
print_pipeline(struct plan *p)
{
	print_line(p);
	if (side_asks(p)) {
		struct plan other = *p;
		side_unlike(&other, 100);
		if (other.side[DEVICE].measured || other.side[BENCH].measured)
			print_instead(&other, "where one record in 5 has no partner:");
		other = *p;
		side_in_parts(&other, DEVICE);
		print_instead(&other,
			"where the device takes its batch in parts, one after another:");
	}
	if (ranks_ask(p)) {
		struct pipeline l;
		printf("# %s\n# ", acc_tr("and what the device's ranks say of each other:"));
		plan_open(&l, p);
		prog_print(ranks_plan(&l, &p->side[DEVICE]), NULL);
		plan_close(&l);
	}
	if (p->both_ranked) {
		struct plan other = *p;
		other.side[DEVICE].folded = other.side[BENCH].folded = other.wholly = true;
		side_measure_bare(&other);
		print_instead(&other,
			"where the two sides are laid out over ranks in different ways:");
	}
}

/* --- and run --- */

/* How many of 100 records have no partner; *guess: does order alone say of some what belongs together? *parts: the side that has so many more records of backward passes, or else of
 * forward passes, that it may make several for each of the other's, or -1. */
static int
alone(struct plan *p, bool *guess, int *parts)
{
	const double likely = 0.8;
	enum { FORWARD, BACKWARD, NPASSES };
	struct pipeline l;
	struct acc_err e = {0};
	struct acc_rec *r;
	uint64_t n = 0, single = 0, of[NPASSES][2] = {{0}};
	int fd = diff_stream_file();
	plan_open(&l, p);
	prog_run(plan_pairs(&l), fd);
	plan_close(&l);
	/* What the programs say is said again by those that compare. */
	struct acc_rd *rd = acc_rd_open(diff_text("/dev/fd/%d", fd), &e);
	while (rd != NULL && acc_rd_next(rd, &r, &e) > 0) {
		if (acc_rec_is(r, "source") || acc_rec_is(r, "stack") || acc_rec_is(r, "data"))
			continue;
		n++;
		single += acc_str_starts(acc_get_text(r, "", "how"), "only");
		double sure = 1;
		acc_as_f64(acc_get(r, "", "sure"), &sure);
		*guess |= sure < likely && acc_str_is(acc_get_text(r, "", "how"), "order");
		static const char *const prefix[] = {"a.", "b."};
		for (int i = DEVICE; i <= BENCH; i++) {
			const struct acc_str pass = acc_get_text(r, prefix[i], "pass");
			of[BACKWARD][i] += acc_str_is(pass, "backward");
			of[FORWARD][i] += acc_str_is(pass, "forward");
		}
	}
	acc_rd_close(rd);
	close(fd);
	const uint64_t *few = of[of[BACKWARD][DEVICE] + of[BACKWARD][BENCH] > 0];
	*parts = 2 * few[DEVICE] > 3 * few[BENCH]   ? DEVICE
		 : 2 * few[BENCH] > 3 * few[DEVICE] ? BENCH
						    : -1;
	return (int)(100 * single / (n + (n == 0)));
}

/* Does this side take the batch of the other in parts, one after another? */
static bool
in_parts(const struct plan *p, int side)
{
	struct plan trial = *p;
	struct pipeline l;
	side_in_parts(&trial, side);
	plan_open(&l, &trial);
	const int fd = prog_memory();
	prog_run(plan_layout(&l, side), fd);
	char *text = prog_read(fd);
	const bool yes = strstr(text, " batches=") != NULL;
	free(text);
	close(fd);
	plan_close(&l);
	return yes;
}

/* Two programs; or one, and one that takes its batch in parts. */
static void
look_at_pairs(struct plan *p)
{
	int parts;
	bool guess = false;
	const int share = alone(p, &guess, &parts);
	if (side_asks(p))
		side_unlike(p, share);
	if (guess)
		side_measure_bare(p);
	if (parts >= 0 && p->opt->noise == NULL && !p->opt->no_fold && in_parts(p, parts))
		side_in_parts(p, parts);
}

/* The bench's two runs, for the judge. */
static void
measure_noise(struct plan *p)
{
	struct pipeline l;
	p->noise = diff_stream_file();
	plan_open(&l, p);
	l.noise = true;
	if (prog_run(plan_measure(&l, &p->side[SECOND], &p->side[BENCH]), p->noise) != 0)
		plan_said_members(&l);
	plan_said_reading(&l);
	plan_close(&l);
}

/* Ranks of two layouts, of which none are some of the other's, as where one side is split by tensors and
 * the other by the batch: then both sides become one. */
static int
judge_ranks(struct plan *p, struct pipeline *l)
{
	int judged = diff_stream_file();
	prog_run(plan_judge(l), judged); /* the stream tells its status on */
	if (!p->both_ranked || !plan_in_two_layouts(l))
		return judged;
	p->side[DEVICE].folded = p->side[BENCH].folded = p->wholly = true;
	p->side[DEVICE].measured = p->side[BENCH].measured = p->unlike = false;
	side_measure_bare(p);
	plan_close(l);
	plan_open(l, p);
	int whole = diff_stream_file();
	prog_run(plan_judge(l), whole);
	if (!plan_in_two_layouts(l))
		judged = whole;
	return judged;
}

/* The records of a part of a job, for a report of all of it. */
static void
keep(int from, int to)
{
	struct stat st;
	off_t at = 0;
	if (fstat(from, &st) < 0)
		cli_die("a temporary file:");
	while (at < st.st_size)
		if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0 && errno != EINTR)
			cli_die("a temporary file:");
}

static int
run_pipeline(struct plan *p)
{
	struct pipeline l;
	struct prog *last;
	bool failed = false, bad = false;
	int convicted = ranks_ask(p) ? ranks_convicted(p, &failed, &bad) : -1;
	plan_open(&l, p);
	if (p->both_ranked || p->opt->kept >= 0) {
		int judged = judge_ranks(p, &l);
		if (p->opt->kept >= 0)
			keep(judged, p->opt->kept);
		if (lseek(judged, 0, SEEK_SET) < 0)
			cli_die("a temporary file:");
		last = plan_show(&l, NULL, judged);
	} else {
		last = plan_show(&l, plan_judge(&l), -1);
	}
	if (convicted >= 0)
		plan_show_too(last, convicted);
	int status = prog_run(last, STDOUT_FILENO);
	/* That the bench could not be asked is no trouble where the ranks have said what is wrong. */
	if (status == 2 && bad && (plan_in_two_layouts(&l) || plan_left_gradients(&l)) &&
		plan_measured(&l))
		status = 1;
	if (failed && status < 2)
		status = 2;
	/* All that a reader says it says before its stream ends. */
	plan_said_reading(&l);
	plan_said_folding(&l);
	plan_said_members(&l);
	plan_close(&l);
	for (size_t i = 0; i < NSIDES; i++)
		if (side_failed(&p->side[i]) != NULL && status < 2)
			status = 2;
	return status > 2 && status != 141 ? 2 : status;
}

/* The device's older dump against the bench, judged, for the judge. */
static void
judge_older(struct plan *p, const char *bench)
{
	const struct diff_opt o = older(p->opt);
	struct plan plan = {.opt = &o, .noise = -1, .before = -1};
	struct pipeline l;
	side_look(&plan, p->opt->before, bench);
	side_prepare(&plan);
	if (plan.holds != p->holds)
		cli_die("%s: not of the kind that is compared", p->opt->before);
	if (side_asks_parts(&plan))
		look_at_pairs(&plan);
	plan_open(&l, &plan);
	p->before = judge_ranks(&plan, &l);
	plan_said_reading(&l);
	plan_said_folding(&l);
	plan_said_members(&l);
	plan_close(&l);
}

int
diff_compare(const struct diff_opt *opt, const char *device, const char *bench)
{
	struct plan plan = {.opt = opt, .noise = -1, .before = -1};
	side_look(&plan, device, bench);
	const bool prepared = side_prepare(&plan);
	if (opt->print) {
		print_pipeline(&plan);
		return prepared ? 0 : 2;
	}
	if (side_asks_parts(&plan) || side_asks_states(&plan))
		look_at_pairs(&plan);
	if (opt->noise != NULL)
		measure_noise(&plan);
	if (opt->before != NULL)
		judge_older(&plan, bench);
	int status = run_pipeline(&plan);
	return status < 2 && !prepared ? 2 : status;
}
