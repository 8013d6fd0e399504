/* What a chat or an agent needs of a stream: the verdict, its evidence, what was looked at and what was
 * not, what to type next; in at most forty lines, or as one JSON object. acc-brief(7) is the contract. */
#include "acc/coverage.h"
#include "acc/format.h"
#include "acc/say.h"
#include "acc/terminal.h"
#include "format/jsontext.h"
#include "format/opcalls.h"
#include "format/sides.h"

#include <inttypes.h>
#include <stdlib.h>

/* Of findings beside the first, of reasons why something was not looked at, of parts of the evidence. */
enum { REASONS = 6, PARTS = 10, NEXT = 3, TEXT = 300, COMMAND = 2000 };

struct list {
	struct acc_str v[PARTS];
	size_t n, left; /* not kept */
};

struct state {
	FILE *out;
	struct acc_format_opt opt;
	bool english; /* for a program */
	struct acc_opcalls ops;
	struct acc_rec first; /* the finding that matters most */
	int rank;             /* of it; see weigh */
	struct list others;   /* "what: text" */
	struct acc_sides sides;
	uint64_t weights; /* records of checkpoints */
	uint64_t records, measured, onesided, errors, warnings, curves, points, params;
	struct {
		char text[80];
		uint64_t n;
	} why[REASONS];
	uint64_t whys; /* all of them */
	struct acc_coverage cover[2];
	struct acc_str told; /* the judge's own "next" */
	struct acc_str fix;  /* what helps until the cause is mended */
	struct acc_arena mem;
};

static int
begin(void *state, struct acc_err *e)
{
	struct state *s = state;
	(void)e;
	s->rank = -1;
	return 0;
}

static void
push(struct list *l, struct acc_str t)
{
	if (l->n < PARTS)
		l->v[l->n++] = t;
	else
		l->left++;
}

/* What accuses before what doubts before what reassures. */
static int
weigh(struct acc_str what)
{
	static const char *const order[] = {"other", "accepted", "before", "next", "ranks", "clean",
		"audit", "unmatched", "warning", "missing", "rule", "difference", "overflow",
		"culprit"};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (acc_str_is(what, order[i]))
			return (int)i;
	return 0;
}

static void
push_other(struct state *s, const struct acc_rec *f)
{
	struct acc_str what = acc_get_text(f, "", "what"), text = acc_get_text(f, "", "text");
	if (acc_str_is(what, "next") && acc_str_is(acc_get_text(f, "", "rule"), "fix")) {
		s->fix = acc_arena_str(&s->mem, text);
	} else if (acc_str_is(what, "next")) {
		s->told = acc_arena_str(&s->mem, text);
	} else {
		const char *line = acc_arena_printf(&s->mem, "%.*s: %.*s", ACC_PRS(what),
			ACC_PRS(text));
		if (line != NULL)
			push(&s->others, acc_str(line));
	}
}

static int
finding(struct state *s, const struct acc_rec *r, struct acc_err *e)
{
	const int rank = weigh(acc_get_text(r, "", "what"));
	if (rank <= s->rank) {
		push_other(s, r);
		return 0;
	}
	if (s->rank >= 0)
		push_other(s, &s->first);
	s->rank = rank;
	return acc_rec_copy(&s->first, r) < 0 ? acc_nomem(e) : 0;
}

static void
reason(struct state *s, struct acc_str text)
{
	s->whys++;
	for (size_t i = 0; i < REASONS; i++) {
		if (s->why[i].n == 0)
			snprintf(s->why[i].text, sizeof s->why[i].text, "%.*s", ACC_PRS(text));
		if (strncmp(s->why[i].text, text.p,
			    text.n < sizeof s->why[i].text - 1 ? text.n
							       : sizeof s->why[i].text - 1) == 0) {
			s->why[i].n++;
			return;
		}
	}
}

static int
count(struct state *s, const struct acc_rec *r, struct acc_err *e)
{
	const bool pair = acc_rec_is(r, "pair");
	struct acc_str kind = !pair ? r->kind : acc_get_text(r, "a.", "kind");
	kind = kind.n > 0 ? kind : acc_get_text(r, "b.", "kind");
	const struct acc_str bad = acc_get_text(r, "", "bad"), skip = acc_get_text(r, "", "m.skip");
	s->curves += acc_rec_is(r, "curve");
	s->params += acc_str_is(kind, "param");
	s->points += acc_str_is(kind, "scalar");
	s->errors += acc_str_is(bad, "error");
	s->warnings += acc_str_is(bad, "warning");
	if (!acc_word_in("tensor arg", kind))
		return 0;
	if (acc_sides_see(&s->sides, r, acc_str_is(bad, "error"), &s->mem, e) < 0)
		return ACC_ENOMEM;
	s->weights += acc_sides_checkpoint(&s->sides, r, &s->mem);
	s->records++;
	s->measured += acc_get(r, "", "m.mode") != NULL;
	s->onesided += pair &&
		       (acc_get(r, "a.", "kind") == NULL || acc_get(r, "b.", "kind") == NULL);
	if (skip.n > 0)
		reason(s, skip);
	for (int side = 0; side < (pair ? 2 : 1); side++)
		acc_coverage_add(&s->cover[side], r, !pair ? "" : side == 0 ? "a." : "b.");
	return 0;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	int rc = acc_opcalls_add(&s->ops, r, e);
	if (rc == 0 && acc_rec_is(r, "finding"))
		rc = finding(s, r, e);
	else if (rc == 0 && acc_rec_is(r, "source"))
		rc = acc_sides_source(&s->sides, r, &s->mem, e);
	else if (rc == 0)
		rc = count(s, r, e);
	return rc < 0 || !s->mem.lost ? rc : acc_nomem(e);
}

/* --- what is said, in either form */

struct brief {
	const char *verdict, *means;
	struct acc_str name, source;
	struct list evidence, looked, not_looked, next;
};

static const char *tr(const struct state *s, const char *text) __attribute__((format_arg(2)));
static const char *
tr(const struct state *s, const char *text)
{
	return s->english ? text : acc_tr(text);
}

/* Where the first part of a sentence ends: at a "; " that stands in no parentheses. NULL: it is the last. */
static const char *
part_end(struct acc_str text)
{
	int depth = 0;
	for (uint32_t i = 0; i + 1 < text.n; i++) {
		depth += (text.p[i] == '(') - (text.p[i] == ')');
		if (depth <= 0 && text.p[i] == ';' && text.p[i + 1] == ' ')
			return text.p + i;
	}
	return NULL;
}

/* The parts of a sentence stand between "; ", but code has that, too: it comes last, behind "; at". */
static void
split(struct state *s, struct acc_str text, struct brief *b)
{
	const struct acc_str name = acc_get_text(&s->first, "", "name");
	const char *head = name.n == 0 ? NULL : memmem(text.p, text.n, name.p, name.n);
	if (head != NULL && head + name.n + 2 < text.p + text.n &&
		memcmp(head + name.n, ": ", 2) == 0)
		text = (struct acc_str){head + name.n + 2,
			(uint32_t)(text.p + text.n - head - name.n - 2)};
	const char *source = tr(s, "; at ") + 2;
	while (text.n > 0) {
		const char *at = part_end(text);
		const uint32_t n = at == NULL || acc_str_starts(text, source)
					   ? text.n
					   : (uint32_t)(at - text.p);
		if (!acc_str_starts(text, source))
			push(&b->evidence, (struct acc_str){text.p, n});
		else
			b->source = (struct acc_str){text.p + strlen(source),
				n - (uint32_t)strlen(source)};
		text = n + 2 >= text.n ? (struct acc_str){"", 0}
				       : (struct acc_str){text.p + n + 2, text.n - n - 2};
	}
}

static void say(struct state *s, struct list *l, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void
say(struct state *s, struct list *l, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = acc_say_v(&s->mem, fmt, ap);
	va_end(ap);
	if (text != NULL)
		push(l, acc_str(text));
}

/* A command is said whole or not at all: half a name in quotes would be another command. */
static void
suggest(struct list *l, const char *text)
{
	if (text != NULL && strlen(text) <= COMMAND)
		push(l, acc_str(text));
	else if (text != NULL)
		push(l, ACC_STR("accdiff --all DEVICE BENCH"));
}

static void
verdict(const struct state *s, int status, struct brief *b)
{
	const struct acc_str what = acc_get_text(&s->first, "", "what");
	const bool accuses = s->rank >= 0 && acc_accuses(what);
	b->verdict = status > 1                                                  ? "trouble"
		     : accuses                                                   ? "different"
		     : s->errors > 0                                             ? "different"
		     : s->rank < 0                                               ? "unjudged"
		     : acc_word_in("warning unmatched", what) || s->warnings > 0 ? "doubtful"
										 : "same";
	b->means = status > 1    ? accuses ? "something is wrong, and not all could be compared"
					   : "not all could be compared, and nothing is named"
		   : accuses     ? "something is wrong"
		   : s->rank < 0 ? "no judge has looked at these records"
		   : strcmp(b->verdict, "doubtful") == 0
			   ? "nothing is named, but something needs a look"
			   : "what was compared agrees within its limits";
}

static void
looked(struct state *s, struct brief *b)
{
	const char *where = "";
	if (s->ops.nplaces == 1 && s->ops.place[0].name[0] != '\0')
		where = acc_say(&s->mem, " of %s", s->ops.place[0].name);
	else if (s->ops.nplaces > 1)
		where = acc_say(&s->mem, " of %zu steps or ranks", s->ops.nplaces);
	if (s->records > 0 && s->weights == s->records)
		say(s, &b->looked,
			"%zu tensors%s: %" PRIu64 " measured, %" PRIu64 " error, %" PRIu64
			" warning",
			s->ops.n, where == NULL ? "" : where, s->measured, s->errors, s->warnings);
	else if (s->records > 0)
		say(s, &b->looked,
			"%zu op calls%s: %" PRIu64 " records, %" PRIu64 " measured, %" PRIu64
			" error, %" PRIu64 " warning",
			s->ops.n, where == NULL ? "" : where, s->records, s->measured, s->errors,
			s->warnings);
	if (s->records > 0 && s->errors + s->warnings == s->records)
		say(s, &b->not_looked,
			"here is only what is bad: accfirstbad --all passes on the rest");
	if (s->points > 0)
		say(s, &b->looked, "%" PRIu64 " points of curves", s->points);
	if (s->curves > 0)
		say(s, &b->looked, "%" PRIu64 " curves", s->curves);
	if (s->params > 0)
		say(s, &b->looked, "%" PRIu64 " parameters", s->params);
	if (s->onesided > 0)
		say(s, &b->not_looked, "%" PRIu64 " records that one side alone has", s->onesided);
	for (size_t i = 0; i < REASONS && s->why[i].n > 0; i++)
		say(s, &b->not_looked, "%" PRIu64 " not measured: %s", s->why[i].n, s->why[i].text);
	for (int side = 0; side < 2; side++)
		if (acc_coverage_any(&s->cover[side])) {
			const char *t = acc_coverage_text(&s->cover[side], &s->mem);
			say(s, &b->looked, "recomputed%s: %s",
				!acc_coverage_any(&s->cover[1]) ? ""
				: side == 0                     ? ", device"
								: ", bench",
				t == NULL ? "" : t);
		}
	if (s->records > 0 && s->measured + s->onesided < s->records && s->whys == 0)
		say(s, &b->not_looked, "%" PRIu64 " records without measures",
			s->records - s->measured - s->onesided);
}

/* The text without the head it begins with. */
static struct acc_str
behind(struct acc_str text, const char *head)
{
	const uint32_t n = acc_str_starts(text, head) ? (uint32_t)strlen(head) : 0;
	return (struct acc_str){text.p + n, text.n - n};
}

static void
next(struct state *s, int status, struct brief *b)
{
	const struct acc_str what = acc_get_text(&s->first, "", "what");
	struct acc_str side[2];
	acc_sides_operands(&s->sides, &s->opt, &s->mem, side);
	const struct acc_str device = side[0], bench = side[1];
	const uint64_t *call = acc_map_get(&s->ops.by_key, b->name);
	/* By itself it can be compared again. */
	const struct acc_opcall *own = call == NULL ? NULL : &s->ops.v[*call];
	const bool is_call = own != NULL && own->error >= 0 && !own->parted;
	if (s->told.n > 0)
		push(&b->next, behind(s->told, tr(s, "next: ")));
	int64_t dump;
	if (acc_as_int(acc_get(&s->first, "", "dump"), &dump))
		say(s, &b->next,
			"dump step %" PRId64 " of both runs, then: accdiff DEVICE_DUMP BENCH_DUMP",
			dump);
	else if (s->rank < 0)
		suggest(&b->next, acc_arena_printf(&s->mem, "accdiff -f brief %.*s %.*s",
					  ACC_PRS(device), ACC_PRS(bench)));
	else if (acc_accuses(what) && is_call) {
		const char *glob = acc_arena_printf(&s->mem, "%.*s*", ACC_PRS(b->name));
		/* Each side is read by its own name. */
		const struct acc_str other = acc_sides_other(&s->sides, b->name);
		const char *both = other.n == 0 ? glob
						: acc_arena_printf(&s->mem, "%.*s*,%.*s*",
							  ACC_PRS(b->name), ACC_PRS(other));
		const struct acc_str op = acc_shell_word(acc_str(glob == NULL ? "" : glob),
					     &s->mem),
				     ops = acc_shell_word(acc_str(both == NULL ? "" : both),
					     &s->mem);
		suggest(&b->next, acc_arena_printf(&s->mem, "accdiff --all --op=%.*s %.*s %.*s",
					  ACC_PRS(ops), ACC_PRS(device), ACC_PRS(bench)));
		/* Weights under other names were paired by what all of them hold. */
		if (!own->hidden && (other.n == 0 || s->weights == 0))
			suggest(&b->next,
				acc_arena_printf(&s->mem,
					"accdump-read %.*s | accalign - %.*s | accmetric |"
					" accfmt --values=%.*s --root=/",
					ACC_PRS(device), ACC_PRS(bench), ACC_PRS(op)));
	} else if (acc_accuses(what))
		say(s, &b->next, "set right what the evidence names, and compare again");
	else if (status > 1)
		say(s, &b->next, "set right what standard error says, and compare again");
	else
		say(s, &b->next, "nothing, or a later step, or another rank");
	if (s->fix.n > 0)
		push(&b->next, behind(s->fix, tr(s, "next: ")));
}

static int
make(struct state *s, int status, struct brief *b, struct acc_err *e)
{
	*b = (struct brief){0};
	struct acc_frame f;
	verdict(s, status, b);
	if (s->rank >= 0) {
		b->name = acc_get_text(&s->first, "", "name");
		split(s, acc_get_text(&s->first, "", "text"), b);
		if (b->source.n == 0 &&
			acc_frame_own(&s->ops.stacks, acc_get_text(&s->first, "", "stack"), &f)) {
			const char *at = acc_arena_printf(&s->mem, "%.*s:%.*s in %.*s: %.*s",
				ACC_PRS(f.file), ACC_PRS(f.line), ACC_PRS(f.fn), ACC_PRS(f.code));
			b->source = acc_str(at);
		}
	}
	looked(s, b);
	next(s, status, b);
	return s->mem.lost ? acc_nomem(e) : 0;
}

/* --- forty lines */

static void
line(struct state *s, const char *head, struct acc_str text, size_t most)
{
	fputs(tr(s, head), s->out);
	acc_text_put(s->out, acc_shown(&s->mem, text), most);
	putc('\n', s->out);
}

static void
lines(struct state *s, const char *head, const struct list *l, size_t most)
{
	for (size_t i = 0; i < l->n && i < most; i++)
		line(s, head, l->v[i], strcmp(head, "next: ") == 0 ? SIZE_MAX : TEXT);
	const size_t left = l->left + (l->n > most ? l->n - most : 0);
	if (left > 0)
		fprintf(s->out, tr(s, "%s... and %zu more\n"), tr(s, head), left);
}

static int
end_text(void *state, int status, struct acc_err *e)
{
	struct state *s = state;
	struct brief b;
	int64_t v;
	double value, limit;
	int rc = make(s, status, &b, e);
	if (rc < 0)
		return rc;
	fprintf(s->out, tr(s, "verdict: %s (%s)\n"), tr(s, b.verdict), tr(s, b.means));
	if (s->rank >= 0) {
		line(s, "finding: ", acc_get_text(&s->first, "", "what"), TEXT);
		if (b.name.n > 0)
			line(s, "name: ", b.name, TEXT);
		if (acc_as_int(acc_get(&s->first, "", "step"), &v))
			fprintf(s->out, tr(s, "step: %" PRId64 "\n"), v);
		if (acc_as_int(acc_get(&s->first, "", "rank"), &v))
			fprintf(s->out, tr(s, "rank: %" PRId64 "\n"), v);
		if (b.source.n > 0)
			line(s, "source: ", b.source, TEXT);
		if (acc_as_f64(acc_get(&s->first, "", "value"), &value) &&
			acc_as_f64(acc_get(&s->first, "", "limit"), &limit)) {
			fputs(tr(s, "rule: "), s->out);
			acc_text_put(s->out, acc_get_text(&s->first, "", "rule"), TEXT);
			fprintf(s->out, tr(s, ", value %.6g, limit %.6g"), value, limit);
			line(s, ", from ", acc_get_text(&s->first, "", "limit_from"), TEXT);
		}
		if (acc_as_f64(acc_get(&s->first, "", "confidence"), &value))
			fprintf(s->out, tr(s, "confidence: %.4g\n"), value);
		lines(s, "evidence: ", &b.evidence, PARTS);
		/* The lines that the evidence leaves. */
		lines(s, "also: ", &s->others, 6 + PARTS - b.evidence.n);
	}
	lines(s, "looked at: ", &b.looked, 4);
	lines(s, "not looked at: ", &b.not_looked, 4);
	lines(s, "next: ", &b.next, NEXT);
	return 0;
}

/* --- one object */

static void
field(FILE *out, const char *name)
{
	fprintf(out, ",\"%s\":", name);
}

static void
array(FILE *out, const char *name, const struct list *l)
{
	field(out, name);
	putc('[', out);
	for (size_t i = 0; i < l->n; i++) {
		if (i > 0)
			putc(',', out);
		acc_json_string(out, l->v[i], false);
	}
	putc(']', out);
}

static int
end_json(void *state, int status, struct acc_err *e)
{
	static const char *const keys[] = {"what", "name", "io", "pos", "step", "rank", "rule",
		"value", "limit", "limit_from", "confidence", "ranked", "text"};
	struct state *s = state;
	struct brief b;
	int rc = make(s, status, &b, e);
	if (rc < 0)
		return rc;
	fprintf(s->out, "{\"brief\":1,\"verdict\":\"%s\",\"means\":\"%s\",\"status\":%d", b.verdict,
		b.means, status);
	for (size_t i = 0; s->rank >= 0 && i < sizeof keys / sizeof *keys; i++) {
		const struct acc_val *v = acc_get(&s->first, "", keys[i]);
		if (v == NULL)
			continue;
		field(s->out, keys[i]);
		acc_json_value(s->out, v, false);
	}
	if (b.source.n > 0) {
		field(s->out, "source");
		acc_json_string(s->out, b.source, false);
	}
	array(s->out, "evidence", &b.evidence);
	array(s->out, "also", &s->others);
	fprintf(s->out, ",\"also_left\":%zu", s->others.left);
	array(s->out, "looked_at", &b.looked);
	array(s->out, "not_looked_at", &b.not_looked);
	array(s->out, "next", &b.next);
	fputs("}\n", s->out);
	return 0;
}

static void
release(void *state)
{
	struct state *s = state;
	acc_opcalls_release(&s->ops);
	acc_rec_release(&s->first);
	acc_sides_release(&s->sides);
	acc_arena_release(&s->mem);
}

static int
begin_json(void *state, struct acc_err *e)
{
	((struct state *)state)->english = true;
	return begin(state, e);
}

const struct acc_format acc_format_brief = {
	.name = "brief",
	.for_people = true,
	.help = "verdict, evidence and what is next, in 40 lines",
	.all_keys = true,
	.size = sizeof(struct state),
	.begin = begin,
	.record = record,
	.end = end_text,
	.release = release,
};

const struct acc_format acc_format_brief_json = {
	.name = "brief-json",
	.help = "the same as one JSON object",
	.all_keys = true,
	.size = sizeof(struct state),
	.begin = begin_json,
	.record = record,
	.end = end_json,
	.release = release,
};
