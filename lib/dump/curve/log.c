/* Training logs: what is found, and how their lines are laid bare. */
#include "dump/curve/log.h"

#include <fcntl.h>
#include <unistd.h>

#include "dump/ctx.h"
#include "dump/curve/limits.h"
#include "dump/curve/log_place.h"
#include "dump/place.h"
#include "io/lines.h"

#define ROW(name) extern const struct log_grammar acc_log_grammar_##name;
#include "dump/curve/log_table.h"
#undef ROW

static const struct log_grammar *const grammars[] = {
#define ROW(name) &acc_log_grammar_##name,
#include "dump/curve/log_table.h"
#undef ROW
};
enum { NGRAMMARS = sizeof grammars / sizeof *grammars };

enum { HEAD_SURE = 60, SEARCH_SURE = 20, GUESS_SURE = 10, SEARCHED = 4 << 20 };

/* The words of all grammars, and which of them are whose. */
struct words {
	struct acc_sieve sieve;
	uint32_t of[NGRAMMARS];
};

static void
collect(struct words *w)
{
	*w = (struct words){0};
	for (int i = 0; i < NGRAMMARS; i++)
		for (int k = 0; k < 6 && grammars[i]->word[k] != NULL; k++)
			w->of[i] |= acc_sieve_add(&w->sieve, grammars[i]->word[k]);
}

/* What stands between two carriage returns, with these words: 1: of a grammar; 0; < 0. */
static int
segment(struct log_reader *g, struct acc_str s, const struct words *w, uint32_t has,
	struct acc_err *e)
{
	if (g->array.open) {
		int rc = acc_log_array_line(g, s, e);
		if (rc != 0)
			return rc;
	}
	g->by = -1;
	g->counted = g->kept = g->so_far = g->epochs = false;
	g->has_rank = acc_log_rank(&s, &g->rank);
	for (int i = 0; i < NGRAMMARS; i++) {
		bool asked = grammars[i]->guess > 0 ? g->guess.of == i + 1 : (w->of[i] & has) != 0;
		int rc = asked ? grammars[i]->line(g, s, e) : 0;
		if (rc > 0) {
			g->by = i;
			g->found |= UINT64_C(1) << i;
			g->trainer = g->trainer || grammars[i]->trainer;
		}
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
one_line(struct log_reader *g, struct acc_str s, const struct words *w, struct acc_buf *buf,
	struct acc_err *e)
{
	struct acc_regex *re = g->dry ? NULL : g->cv.c->pattern;
	while (s.n > 0 && *s.p == '\0')
		s = (struct acc_str){s.p + 1, s.n - 1};
	uint32_t has = re != NULL ? 0 : acc_sieve_find(&w->sieve, s);
	int rc = 0;
	if (re == NULL && !g->array.open && has == 0 && g->guess.of == 0 && g->unread == NULL)
		return 0;
	struct acc_buf own = {0};
	if (acc_log_plain(&s, buf) < 0 || (g->commas && acc_log_points(&s, &own) < 0))
		rc = acc_nomem(e);
	/* A carriage return ends a line that was to be overwritten. */
	while (rc >= 0 && s.n > 0) {
		const char *cr = memchr(s.p, '\r', s.n);
		struct acc_str part = {s.p, cr == NULL ? s.n : (uint32_t)(cr - s.p)}, rest;
		while (rc >= 0 && part.n > 0) {
			acc_log_after_bar(&part, &rest);
			rc = re != NULL ? acc_log_pattern(g, re, part, e)
					: segment(g, part, w, has, e);
			if (rc == 0 && re == NULL && g->unread != NULL && !g->kept)
				acc_log_unread(g->unread, part, g->line);
			part = rest;
		}
		s = cr == NULL ? (struct acc_str){s.p, 0} : acc_log_from(s, cr + 1);
	}
	acc_buf_release(&own);
	return rc;
}

/* Of a last line without its end, what stands before its last carriage return: the rest may be a
 * part of a line, with 1 where 12.4375 was to come. Said where it would have been looked at. An object of JSON that
 * is closed is whole. */
static struct acc_str
without_rest(struct log_reader *g, struct acc_str s, const struct words *w)
{
	const char *cr = s.n == 0 ? NULL : memrchr(s.p, '\r', s.n);
	uint32_t whole = cr == NULL ? 0 : (uint32_t)(cr + 1 - s.p);
	struct acc_str rest = {s.p + whole, s.n - whole};
	if (acc_log_is_object(rest))
		return s;
	if (rest.n > 0 && (g->cv.c->pattern != NULL || g->array.open || g->guess.of > 0 ||
				  acc_sieve_find(&w->sieve, rest) != 0))
		acc_curve_cut(g->cv.c, g->path, g->line);
	return (struct acc_str){s.p, whole};
}

static int
read_lines(struct log_reader *g, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_lines lines = {.b = b};
	struct acc_buf buf = {0};
	struct words words;
	struct acc_str s;
	int rc;
	collect(&words);
	while ((rc = acc_lines_next(&lines, &s, e)) > 0) {
		g->line = lines.no;
		if (lines.too_long)
			acc_log_trouble(g, "it has more than %d MiB, its rest is left out",
				ACC_LINE_LIMIT >> 20);
		if (lines.cut)
			s = without_rest(g, s, &words);
		rc = one_line(g, s, &words, &buf, e);
		if (rc < 0)
			break;
	}
	if (rc == 0)
		acc_curve_grown(g->cv.c, b, g->path);
	acc_log_array_end(g);
	if (rc >= 0 && !g->guess.behind.on)
		rc = acc_log_let_go(g, g->bar.seen ? g->bar.n : g->ordinal, e);
	acc_log_release(g);
	acc_buf_release(&buf);
	return rc < 0 ? rc : 0;
}

/* The next line of n bytes at *p. */
static bool
next_line(const uint8_t **p, const uint8_t *end, struct acc_str *s)
{
	if (*p >= end)
		return false;
	const uint8_t *nl = memchr(*p, '\n', (size_t)(end - *p));
	*s = (struct acc_str){(const char *)*p, (uint32_t)((nl == NULL ? end : nl) - *p)};
	*p = nl == NULL ? end : nl + 1;
	return true;
}

/* What a dry run over the beginning of a log found. */
struct survey {
	uint64_t found;          /* grammars, a bit each */
	uint64_t losses[2];      /* numbers called a loss: of known lines, of guessed ones */
	unsigned lines, guessed; /* that are no comments */
	bool moved;              /* guessed lines are of several steps */
};

/* Read these bytes without handing anything on. */
static void
dry_run(struct log_reader *d, const struct words *w, const uint8_t *p, size_t n, struct survey *out)
{
	struct acc_buf buf = {0};
	struct acc_str s;
	int64_t lists = 0, first = 0;
	bool placed = false;
	*out = (struct survey){0};
	for (const uint8_t *end = p + n; next_line(&p, end, &s);) {
		struct acc_str t = acc_str_trim(s);
		uint64_t losses = d->losses;
		out->lines += t.n > 0 && *t.p != '#';
		lists = d->lists;
		d->by = -1;
		one_line(d, s, w, &buf, NULL);
		bool guessed = d->by >= 0 && grammars[d->by]->guess > 0;
		out->losses[guessed] += d->losses - losses;
		if (guessed) {
			out->moved = out->moved || (out->guessed > 0 && d->guess.at != first);
			first = out->guessed++ == 0 ? d->guess.at : first;
		}
		if (d->has_step && !placed) {
			placed = true;
			d->first_step = d->step > lists ? d->step - lists : 0;
		}
	}
	out->found = d->found;
	acc_log_release(d);
	acc_buf_release(&buf);
}

/* Would these bytes bear out the guess of this grammar, where others know this much? What is always the same is no
 * curve, a column that falls and rises no step; lines that name one step again and again are
 * counted, where that is an epoch. */
static bool
borne_out(int grammar, const struct words *w, const uint8_t *p, size_t n, bool known, bool commas,
	struct log_reader *d)
{
	const struct log_grammar *g = grammars[grammar];
	const struct log_reader start = {.dry = true, .guess.of = grammar + 1, .commas = commas};
	struct survey v;
	*d = start;
	dry_run(d, w, p, n, &v);
	const bool none = v.guessed == 0 && g == &acc_log_grammar_guess;
	if (none || (d->guess.again > d->guess.losses / LOG_AGAIN_SHARE &&
			    d->guess.losses >= LOG_COUNTED_LEAST)) {
		*d = start;
		d->guess.ordinal = !none;
		d->guess.stepless = none;
		dry_run(d, w, p, n, &v);
		if (none && v.guessed < LOG_COUNTED_LEAST)
			return false;
	}
	return v.moved && (d->guess.varied || v.losses[1] > 0) && v.guessed >= g->guess &&
	       d->guess.again <= d->guess.losses / LOG_AGAIN_SHARE &&
	       (!g->all || (v.guessed >= v.lines - v.lines / 10 - 1 &&
				   d->guess.falls <= v.guessed / 4)) &&
	       (!known || v.losses[1] > v.losses[0]);
}

/* What do these bytes of a log hold? Sets found, trainer and guess, and step: such that a list
 * of norms before the first step belongs to the right one. A line or two of a known form among
 * those of another program do not make the log the known one's: its losses do. whole: they are all. */
static void
survey(struct log_reader *g, const uint8_t *p, size_t n, bool whole)
{
	g->commas = acc_log_commas(p, n);
	struct log_reader d = {.dry = true, .commas = g->commas};
	struct words words;
	struct survey v;
	uint64_t aside = 0;
	collect(&words);
	dry_run(&d, &words, p, n, &v);
	for (int i = 0; i < NGRAMMARS; i++)
		aside |= (uint64_t)grammars[i]->aside << i;
	bool known = (v.found & ~aside) != 0;
	for (int i = 0; i < NGRAMMARS && g->guess.of == 0; i++) {
		struct log_reader other;
		if (grammars[i]->guess > 0 &&
			borne_out(i, &words, p, n, known, g->commas, &other)) {
			g->guess.of = i + 1;
			d = other;
		}
	}
	g->found = d.found;
	g->trainer = d.trainer;
	g->dicts = d.dicts;
	g->step = d.first_step;
	g->count.anew = d.count.anew;
	g->guess.ordinal = d.guess.ordinal;
	g->guess.stepless = d.guess.stepless;
	/* Where steps go on over epochs, they fall only where a run begins. */
	g->guess.headed = d.guess.headers_fell >= LOG_ONWARD &&
			  d.guess.headers_fell > d.guess.headers / 2;
	g->guess.in_episode = d.guess.in_episode;
	g->guess.strict = d.guess.loose > 0 && !d.guess.ordinal;
	if (whole && g->guess.of > 0) {
		g->guess.behind = d.guess.behind;
		acc_log_end_behind(&g->guess.behind);
	}
	g->bar.of = d.bar.clumped ? 0 : d.bar.of;
}

/* A log that was cut while it was written to begins with the NULs of what was there. */
static bool
is_text(const uint8_t **p, size_t *n)
{
	while (*n > 0 && **p == '\0') {
		++*p;
		--*n;
	}
	return *n > 0 && memchr(*p, '\0', *n) == NULL;
}

static int
probe(const struct acc_probe *p)
{
	struct log_reader g = {0};
	const uint8_t *head = p->head;
	size_t n = p->nhead;
	if (p->is_dir || !is_text(&head, &n))
		return 0;
	survey(&g, head, n, false);
	return g.trainer ? HEAD_SURE : g.found != 0 ? SEARCH_SURE : 0;
}

/* Buffer the first few MiB, or what there is, without consuming it. */
static int
fill(struct acc_bytes *b, const uint8_t **p, size_t *n, struct acc_err *e)
{
	int rc = 1;
	*n = 0;
	while (rc > 0 && *n < SEARCHED)
		rc = acc_bytes_more(b, p, n, e);
	return rc < 0 ? rc : 0;
}

/* The noise before the first line may be long. */
static int
search(const struct acc_probe *p)
{
	struct log_reader g = {0};
	const uint8_t *head;
	size_t n;
	if (p->is_dir || p->nhead == 0)
		return 0;
	int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct acc_bytes *b = fd < 0 ? NULL : acc_bytes_open(fd, p->path, true, p->e);
	int rc = b != NULL ? fill(b, &head, &n, p->e)
		 : fd >= 0 ? p->e->code
			   : acc_fail(p->e, ACC_EIO, "cannot open:");
	if (rc == 0 && is_text(&head, &n))
		survey(&g, head, n, false);
	acc_bytes_close(b);
	return acc_dump_sure(rc < 0 ? rc : g.found != 0 || g.guess.of > 0,
		g.found != 0 ? SEARCH_SURE : GUESS_SURE);
}

/* How an unknown log was understood, in one line. */
static void
say_guess(struct log_reader *g)
{
	char names[120];
	if (g->guess.of == 0 || g->points == 0)
		return;
	acc_curves_names(&g->cv, names, sizeof names);
	acc_dump_note(g->cv.c, g->path,
		"no known trainer's log, guessed: the step is '%s', the curves are %s"
		" (--regex reads it otherwise)",
		g->guess.step, names);
}

/* msrun_log/worker_3.log, log/rank_3/info.log */
static int64_t
rank_of(const char *dir, const char *name)
{
	char stem[64];
	snprintf(stem, sizeof stem, "%.*s", (int)strcspn(name, "."), name);
	int64_t rank = acc_dump_place_number(stem, "worker_");
	const char *slash = strrchr(dir, '/');
	return rank >= 0 || slash == NULL ? rank : acc_dump_place_number(slash + 1, "rank_");
}

static int
read_log(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct curve_file f;
	struct log_unread unread = {0};
	struct log_reader g = {.path = path, .unread = &unread};
	const uint8_t *head;
	size_t n;
	int rc = acc_curve_open(&f, path, e);
	if (rc < 0)
		return rc;
	rc = fill(f.b, &head, &n, e);
	if (rc == 0 && c->pattern == NULL && is_text(&head, &n))
		survey(&g, head, n, n < SEARCHED);
	struct acc_source s = {.root = f.dir,
		.format = "log",
		.task = "curves",
		.step = -1,
		.rank = rank_of(f.dir, f.name),
		.proc = -1};
	g.ranked = s.rank >= 0;
	if (rc == 0)
		rc = acc_curves_start(&g.cv, c, &s, f.run, f.name, ':', e);
	if (rc == 0)
		rc = read_lines(&g, f.b, e);
	acc_dump_say_rest(&g.said, c, path);
	if (rc == 0)
		say_guess(&g);
	if (rc == 0 && (g.guess.of > 0 || g.dict_falls > 0))
		acc_curves_say_again(&g.cv, path);
	if (rc == 0 && g.points > 0)
		acc_log_say_unread(&unread, c, path);
	if (rc == 0 && g.points == 0)
		rc = acc_fail(e, ACC_EFORMAT,
			c->pattern != NULL ? "no line matches the pattern"
					   : "no line of a known training log");
	acc_bytes_close(f.b);
	acc_curves_release(&g.cv);
	return rc;
}

const struct acc_dump acc_dump_training_log = {
	.name = "log",
	.help = "a log: Megatron, MindFormers, DeepSpeed, torchtitan, verl ...",
	.probe = probe,
	.search = search,
	.read = read_log,
};
