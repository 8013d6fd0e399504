/* A table for a terminal, then the findings as sentences.
 *
 * Widths are taken from the first rows (HOLD of them); later rows are cut to these. Columns
 * that are empty in all of them are left out, and so are step and rank where all rows have the
 * same; if a later row has another, a new table begins. Where the terminal is too narrow, columns
 * that can be spared go first, then the widest cells are cut, with an ellipsis; where that is not
 * enough, a row becomes a block of lines: a table whose lines wrap cannot be read. */
#include "format/cells.h"
#include "acc/coverage.h"
#include "acc/say.h"
#include "acc/terminal.h"

#include <inttypes.h>
#include <stdlib.h>

/* No number is wider than the narrowest cell: one that is cut would be another number. */
enum { HOLD = 1000, GAP = 2, NARROWEST = 13, NAME = 48, OTHER = 20, HANG = 2 };

int
acc_table_begin(struct acc_table *t, const struct acc_style *style, struct acc_err *e)
{
	t->style = style;
	return acc_cells_open(&t->cells, &t->opt, true, e);
}

/* At most w columns of c, padded to w unless last. */
static void
cell(struct acc_table *s, struct acc_str c, size_t w, bool last, bool right)
{
	size_t have = acc_text_width(c);
	if (right && have < w)
		fprintf(s->out, "%*s", (int)(w - have), "");
	have = acc_text_put(s->out, c, w);
	if (!last && !right && have < w)
		fprintf(s->out, "%*s", (int)(w - have), "");
}

static bool
numeric(struct acc_str c)
{
	return c.n > 0 && (strchr("0123456789-+.", c.p[0]) != NULL || acc_str_is(c, "nan") ||
				  acc_str_is(c, "inf"));
}

/* A row as lines of title and value; what is empty is left out. */
static void
block(struct acc_table *s, const struct acc_str *c)
{
	size_t w = 0;
	for (size_t i = 0; i < s->cells.n; i++) {
		size_t have = acc_text_width(acc_str(s->cells.column[i].title));
		w = have > w ? have : w;
	}
	if (s->rows++ > 0)
		putc('\n', s->out);
	for (size_t i = 0; i < s->cells.n; i++) {
		if (c[i].n == 0 || s->place[i].p != NULL)
			continue;
		cell(s, acc_str(s->cells.column[i].title), w + GAP, false, false);
		acc_text_wrap(s->out, c[i], (size_t)s->opt.width, w + GAP, w + GAP);
		putc('\n', s->out);
	}
}

/* The columns that are shown, packed into `shown`; how many. */
static size_t
pack(const struct acc_table *s, const struct acc_str *c, struct acc_str *shown)
{
	size_t n = 0;
	for (size_t i = 0; i < s->cells.n; i++)
		if (s->width[i] > 0)
			shown[n++] = c[i];
	return n;
}

static void
line(struct acc_table *s, const struct acc_str *c, const char *color)
{
	if (s->style != NULL) {
		s->style->row(s->out, s->packed, pack(s, c, s->packed));
		return;
	}
	size_t last = s->cells.n;
	while (last > 0 && (s->width[last - 1] == 0 || c[last - 1].n == 0))
		last--;
	if (color != NULL)
		fputs(color, s->out);
	for (size_t i = 0; i < last && !s->blocks; i++) {
		if (s->width[i] == 0)
			continue;
		cell(s, c[i], s->width[i], i + 1 == last, numeric(c[i]));
		if (i + 1 < last)
			fprintf(s->out, "%*s", GAP, "");
	}
	if (s->blocks)
		block(s, c);
	if (color != NULL)
		fputs("\033[0m", s->out);
	if (!s->blocks)
		putc('\n', s->out);
}

static const struct {
	const char *bad, *name, *code;
} colors[2] = {{"error", ACC_MSG("red"), "\033[31m"}, {"warning", ACC_MSG("yellow"), "\033[33m"}};

static const char *
color_of(struct acc_table *s, const struct acc_str *c)
{
	for (size_t i = 0; s->opt.color && i < s->cells.n; i++)
		for (int k = 0; k < 2 && strcmp(s->cells.column[i].title, "bad") == 0; k++)
			if (acc_str_is(c[i], colors[k].bad)) {
				s->colored[k] = true;
				return colors[k].code;
			}
	return NULL;
}

/* What the colours of the rows mean, behind these. */
static void
legend(struct acc_table *s)
{
	if (!s->colored[0] && !s->colored[1])
		return;
	putc('\n', s->out);
	for (int k = 0; k < 2; k++)
		if (s->colored[k])
			fprintf(s->out, "%s%s%s\033[0m: %s", k == 1 && s->colored[0] ? ", " : "",
				colors[k].code, acc_tr(colors[k].name), colors[k].bad);
	putc('\n', s->out);
	s->colored[0] = s->colored[1] = false;
}

/* Columns that a narrow terminal can do without, the least useful first: some before names are cut
 * short, some before they are cut so short that they help nobody, some last of all. What the user asked for by name
 * is never dropped. */
static const char *const spare[] = {"why", "limit", "how", "m.ulp_max", "rule", "type", "m.rel_l2",
	"m.err_rms", "s.norm", "stat.min", NULL};
static const char *const last_spare[] = {"stat.max", "dtype", "a.dtype", "m.max_rel", "m.err_max",
	"at", "begin_rel", "final_rel", "s.mean", "b.where", "a.where", "note", NULL};
static const char *const needed[] = {"m.equal", "audit.limit", "audit.skip", "shape", "a.shape",
	NULL};

static size_t
total_width(const struct acc_table *s)
{
	size_t total = 0;
	for (size_t i = 0; i < s->cells.n; i++)
		total += s->width[i] > 0 ? s->width[i] + GAP : 0;
	return total;
}

static void
drop(struct acc_table *s, size_t room, const char *const *titles)
{
	for (; *titles != NULL && s->opt.ncolumns == 0; titles++)
		for (size_t i = 0; total_width(s) > room && i < s->cells.n; i++)
			if (strcmp(s->cells.column[i].title, *titles) == 0)
				s->width[i] = 0;
}

/* Names, which are in the first column that has any width, are left this much, others that. */
static void
shrink(struct acc_table *s, size_t room, size_t name, size_t other)
{
	while (total_width(s) > room) {
		size_t widest = s->cells.n, first = 0;
		while (first < s->cells.n && s->width[first] == 0)
			first++;
		for (size_t i = 0; i < s->cells.n; i++)
			if (s->width[i] > (i == first ? name : other) &&
				(widest == s->cells.n || s->width[i] > s->width[widest]))
				widest = i;
		if (widest == s->cells.n)
			return;
		s->width[widest]--;
	}
}

/* A column that went before a wider one did may come back into the room of that, the most useful first. */
static void
restore(struct acc_table *s, size_t room, const char *const *titles)
{
	size_t n = 0;
	while (titles[n] != NULL)
		n++;
	while (n-- > 0)
		for (size_t i = 0; i < s->cells.n; i++)
			if (s->width[i] == 0 && s->need[i] > 0 &&
				strcmp(s->cells.column[i].title, titles[n]) == 0 &&
				total_width(s) + s->need[i] + GAP <= room)
				s->width[i] = s->need[i];
}

/* What was cut before a column went may have the room of that: names first, then from the left. */
static void
widen(struct acc_table *s, size_t room)
{
	size_t total = total_width(s);
	for (size_t i = 0; i < s->cells.n && total < room; i++) {
		const size_t more = s->width[i] > 0 && s->need[i] > s->width[i]
					    ? s->need[i] - s->width[i]
					    : 0;
		const size_t given = more < room - total ? more : room - total;
		s->width[i] += given;
		total += given;
	}
}

static void
fit(struct acc_table *s)
{
	if (s->opt.width <= 0)
		return;
	const size_t room = (size_t)s->opt.width + GAP;
	drop(s, room, spare);
	shrink(s, room, NAME, OTHER);
	drop(s, room, last_spare);
	shrink(s, room, NAME, NARROWEST);
	drop(s, room, needed);
	shrink(s, room, NARROWEST, NARROWEST);
	widen(s, room);
	restore(s, room, needed);
	restore(s, room, last_spare);
	restore(s, room, spare);
}

/* Step and rank, where all rows have the same? Then it is remembered which; but which ranks said so is no
 * matter of course. */
static bool
is_constant(struct acc_table *s, size_t i)
{
	struct acc_str title = acc_str(s->cells.column[i].title);
	if (!s->cells.places || s->shown[i] || s->nheld == 0 ||
		!(acc_str_ends(title, "step") || acc_str_ends(title, "rank")))
		return false;
	for (size_t r = 1; r < s->nheld; r++)
		if (!acc_str_eq(s->held[i], s->held[r * s->cells.n + i]))
			return false;
	if (acc_str_ends(title, "rank") && strpbrk(s->held[i].p, "-,") != NULL)
		return false;
	s->place[i] = s->held[i];
	return true;
}

static void
measure(struct acc_table *s)
{
	for (size_t i = 0; i < s->cells.n; i++) {
		size_t title = acc_text_width(acc_str(s->cells.column[i].title));
		s->width[i] = 0;
		for (size_t r = 0; r < s->nheld; r++) {
			size_t w = acc_text_width(s->held[r * s->cells.n + i]);
			s->width[i] = w > s->width[i] ? w : s->width[i];
		}
		if (s->width[i] > 0 && s->width[i] < title)
			s->width[i] = title;
		if (is_constant(s, i))
			s->width[i] = 0;
		s->need[i] = s->width[i];
	}
	fit(s);
	s->blocks = s->opt.width > 0 && total_width(s) > (size_t)s->opt.width + GAP;
}

/* Print what is held, once the widths are known. */
static int
settle(struct acc_table *s, struct acc_err *e)
{
	if (s->width != NULL || s->cells.n == 0)
		return 0;
	s->width = calloc(s->cells.n, sizeof *s->width);
	if (s->place == NULL) {
		s->place = calloc(s->cells.n, sizeof *s->place);
		s->shown = calloc(s->cells.n, sizeof *s->shown);
		s->packed = calloc(s->cells.n, sizeof *s->packed);
		s->need = calloc(s->cells.n, sizeof *s->need);
	}
	struct acc_str *title = calloc(s->cells.n, sizeof *title);
	if (s->width == NULL || s->place == NULL || s->shown == NULL || s->packed == NULL ||
		s->need == NULL || title == NULL) {
		free(title);
		return acc_nomem(e);
	}
	measure(s);
	for (size_t i = 0; i < s->cells.n; i++)
		title[i] = acc_str(s->cells.column[i].title);
	if (!s->opt.no_header && s->nheld > 0 && !s->blocks)
		line(s, title, s->opt.color ? "\033[1m" : NULL);
	if (!s->opt.no_header && s->nheld > 0 && s->style != NULL)
		s->style->after_titles(s->out, pack(s, title, s->packed));
	for (size_t r = 0; r < s->nheld; r++) {
		const struct acc_str *c = s->held + r * s->cells.n;
		line(s, c, color_of(s, c));
	}
	free(title);
	return 0;
}

/* A row of another step or rank than all before, of a column that was left out therefore: a table
 * with that column begins. */
static void
restart(struct acc_table *s)
{
	bool other = false;
	for (size_t i = 0; i < s->cells.n; i++)
		if (s->place[i].p != NULL && !acc_str_eq(s->place[i], s->cells.cell[i]))
			other = s->shown[i] = true;
	if (!other)
		return;
	putc('\n', s->out);
	free(s->width);
	s->width = NULL;
	memset(s->place, 0, s->cells.n * sizeof *s->place);
	s->nheld = 0;
	acc_arena_reset(&s->held_mem);
}

static int
hold(struct acc_table *s, struct acc_err *e)
{
	size_t n = s->cells.n;
	if (s->held == NULL)
		s->held = calloc(HOLD * n, sizeof *s->held);
	if (s->held == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < n; i++) {
		struct acc_str c = s->cells.cell[i];
		const char *p = acc_arena_copy(&s->held_mem, c.p, c.n);
		if (p == NULL)
			return acc_nomem(e);
		s->held[s->nheld * n + i] = (struct acc_str){p, c.n};
	}
	return ++s->nheld == HOLD ? settle(s, e) : 0;
}

/* Of the sentence about an op call, how many bytes stand before what the audit says of it, which has a
 * line of its own; 0: it says nothing. */
static size_t
before_audit(struct acc_str text)
{
	const char *audit = acc_tr("recomputed from its own inputs"), *at = text.p;
	while ((at = memmem(at, text.n - (size_t)(at - text.p), "; ", 2)) != NULL) {
		at += 2;
		if (acc_str_starts((struct acc_str){at, text.n - (uint32_t)(at - text.p)}, audit))
			return (size_t)(at - text.p);
	}
	return 0;
}

static void
sentence(struct acc_table *s, struct acc_str text)
{
	legend(s);
	if (s->rows++ > 0 || s->nheld > 0)
		putc('\n', s->out);
	if (s->style != NULL)
		s->style->text(s->out, text);
	else {
		const size_t n = before_audit(text);
		if (n > 0) {
			acc_text_wrap(s->out, (struct acc_str){text.p, n - 1}, (size_t)s->opt.width,
				0, HANG);
			fprintf(s->out, "\n%*s", HANG, "");
			text = (struct acc_str){text.p + n, text.n - n};
		}
		acc_text_wrap(s->out, text, (size_t)s->opt.width, n > 0 ? HANG : 0, HANG);
	}
	putc('\n', s->out);
}

/* Are findings rows, too, as their columns were chosen? */
static bool
as_row(const struct acc_table *s)
{
	for (size_t i = 0; i < s->opt.ncolumns; i++)
		if (strcmp(s->opt.columns[i], "text") == 0 ||
			strcmp(s->opt.columns[i], "what") == 0)
			return true;
	return false;
}

/* A curve of times or counters: a log may have hundreds, which would hide the others. */
static bool
carried(const struct acc_table *s, const struct acc_rec *r)
{
	struct acc_str c = acc_get_text(r, "", "class");
	return s->opt.ncolumns == 0 && acc_rec_is(r, "curve") && acc_get(r, "", "bad") == NULL &&
	       (acc_str_is(c, "time") || acc_str_is(c, "count"));
}

int
acc_table_record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_table *s = state;
	int rc;
	if (carried(s, r)) {
		s->carried++;
		return 0;
	}
	if (acc_rec_is(r, "finding") && !as_row(s)) {
		rc = settle(s, e);
		if (rc == 0)
			sentence(s, acc_get_text(r, "", "text"));
		s->judged |= !acc_str_is(acc_get_text(r, "", "what"), "unmatched");
	} else {
		bool pair = acc_rec_is(r, "pair");
		for (int side = 0; side < (pair ? 2 : 1); side++)
			acc_coverage_add(&s->cover[side], r, !pair ? "" : side == 0 ? "a." : "b.");
		rc = acc_cells_row(&s->cells, r, e);
		if (rc > 0 && s->width != NULL)
			restart(s);
		if (rc > 0 && s->width == NULL)
			rc = hold(s, e);
		else if (rc > 0)
			line(s, s->cells.cell, color_of(s, s->cells.cell));
	}
	if (rc >= 0 && ferror(s->out))
		rc = acc_fail(e, ACC_EIO, "standard output:");
	return rc < 0 ? rc : 0;
}

/* What accaudit judged, where no judge has said it. */
static int
audited(struct acc_table *s, struct acc_err *e)
{
	static const char *const of[] = {" of the device", " of the bench"};
	bool both = acc_coverage_any(&s->cover[1]);
	for (int side = 0; side < 2 && s->opt.ncolumns == 0 && !s->judged; side++) {
		if (!acc_coverage_any(&s->cover[side]))
			continue;
		const char *text = acc_coverage_text(&s->cover[side], &s->held_mem);
		text = text == NULL
			       ? NULL
			       : acc_say(&s->held_mem, "audit%s: %s", both ? of[side] : "", text);
		if (text == NULL)
			return acc_nomem(e);
		sentence(s, acc_shown(&s->held_mem, acc_str(text)));
	}
	return 0;
}

int
acc_table_end(void *state, int status, struct acc_err *e)
{
	struct acc_table *s = state;
	(void)status;
	int rc = settle(s, e);
	if (rc == 0)
		rc = audited(s, e);
	legend(s);
	if (rc == 0 && s->carried > 0)
		fprintf(s->out,
			acc_tr("\n%" PRIu64
			       " curve%s of times and counters: carried, not judged, and "
			       "not shown here\n"),
			s->carried, s->carried == 1 ? "" : "s");
	return rc;
}

void
acc_table_release(void *state)
{
	struct acc_table *s = state;
	acc_cells_close(&s->cells);
	acc_arena_release(&s->held_mem);
	free(s->held);
	free(s->width);
	free(s->place);
	free(s->shown);
	free(s->packed);
	free(s->need);
}

static int
begin(void *state, struct acc_err *e)
{
	return acc_table_begin(state, NULL, e);
}

const struct acc_format acc_format_table = {
	.name = "table",
	.for_people = true,
	.help = "a table, then the findings as sentences; the default",
	.size = sizeof(struct acc_table),
	.begin = begin,
	.record = acc_table_record,
	.end = acc_table_end,
	.release = acc_table_release,
};
