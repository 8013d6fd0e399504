/* A table for a terminal, then the findings as sentences.
 *
 * Widths are taken from the first rows (HOLD of them); later rows are cut to these. Columns
 * that are empty in all of them are left out. Where the terminal is too narrow, columns that
 * can be spared go first, then the widest cells are cut, with an ellipsis: a table whose lines
 * wrap cannot be read. */
#include "format/cells.h"

#include <inttypes.h>
#include <stdlib.h>

enum { HOLD = 1000, GAP = 2, NARROWEST = 6 };

struct state {
	FILE *out;
	struct acc_format_opt opt;
	struct acc_cells cells;
	struct acc_arena held_mem;
	struct acc_str *held; /* HOLD rows of cells.n cells */
	size_t nheld;
	size_t *width;        /* NULL until the first rows are printed */
	uint64_t rows;
	uint64_t carried;     /* curves that nobody judges, and that are not shown */
};

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	struct state *s = calloc(1, sizeof *s);
	if (s == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	s->out = out;
	s->opt = *opt;
	*state = s;
	return acc_cells_open(&s->cells, &s->opt, true, e);
}

/* Columns on the screen: a code point counts one, the wide ones of East Asia two. */
static size_t
width_of(struct acc_str s)
{
	size_t w = 0;
	for (uint32_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if ((c & 0xc0) != 0x80)
			w += c >= 0xe3 && c <= 0xed ? 2 : 1;
	}
	return w;
}

/* At most w columns of s, padded to w unless last; control characters become '?'. */
static void
cell(struct state *s, struct acc_str c, size_t w, bool last, bool right)
{
	size_t have = width_of(c), at = 0;
	bool cut = have > w;
	if (right && !cut)
		fprintf(s->out, "%*s", (int)(w - have), "");
	for (uint32_t i = 0; i < c.n; i++) {
		unsigned char b = (unsigned char)c.p[i];
		if ((b & 0xc0) != 0x80) {
			size_t one = b >= 0xe3 && b <= 0xed ? 2 : 1;
			if (cut && at + one > w - 1)
				break;
			at += one;
		}
		putc(b < 0x20 || b == 0x7f ? '?' : b, s->out);
	}
	if (cut) {
		fputs("\xe2\x80\xa6", s->out);
		at++;
	}
	if (!last && !(right && !cut))
		fprintf(s->out, "%*s", (int)(w - at), "");
}

static bool
numeric(struct acc_str c)
{
	return c.n > 0 && (strchr("0123456789-+.", c.p[0]) != NULL || acc_str_is(c, "nan") ||
				  acc_str_is(c, "inf"));
}

static void
line(struct state *s, const struct acc_str *c, const char *color)
{
	size_t last = s->cells.n;
	while (last > 0 && (s->width[last - 1] == 0 || c[last - 1].n == 0))
		last--;
	if (color != NULL)
		fputs(color, s->out);
	for (size_t i = 0; i < last; i++) {
		if (s->width[i] == 0)
			continue;
		cell(s, c[i], s->width[i], i + 1 == last, numeric(c[i]));
		if (i + 1 < last)
			fprintf(s->out, "%*s", GAP, "");
	}
	if (color != NULL)
		fputs("\033[0m", s->out);
	putc('\n', s->out);
}

static const char *
color_of(const struct state *s, const struct acc_str *c)
{
	for (size_t i = 0; s->opt.color && i < s->cells.n; i++)
		if (strcmp(s->cells.column[i].title, "bad") == 0)
			return acc_str_is(c[i], "error") ? "\033[31m"
			       : acc_str_is(c[i], "warning") ? "\033[33m" : NULL;
	return NULL;
}

/* Columns that a narrow terminal can do without, the least useful first: a name that is cut
 * short helps nobody. What the user asked for by name is never dropped. */
static const char *const spare[] = {"why", "limit", "m.ulp_max", "rule", "type", "m.rel_l2", "s.norm", "stat.min",
	"stat.max", "m.max_rel", "dtype", "a.dtype", "at", "begin_rel", "final_rel"};

static size_t
total_width(const struct state *s)
{
	size_t total = 0;
	for (size_t i = 0; i < s->cells.n; i++)
		total += s->width[i] > 0 ? s->width[i] + GAP : 0;
	return total;
}

static void
fit(struct state *s)
{
	if (s->opt.width <= 0)
		return;
	const size_t room = (size_t)s->opt.width + GAP;
	for (size_t k = 0; s->opt.ncolumns == 0 && k < sizeof spare / sizeof *spare; k++)
		for (size_t i = 0; total_width(s) > room && i < s->cells.n; i++)
			if (strcmp(s->cells.column[i].title, spare[k]) == 0)
				s->width[i] = 0;
	while (total_width(s) > room) {
		size_t widest = 0;
		for (size_t i = 1; i < s->cells.n; i++)
			if (s->width[i] > s->width[widest])
				widest = i;
		if (s->width[widest] <= NARROWEST)
			break;
		s->width[widest]--;
	}
}

/* Print what is held, once the widths are known. */
static int
settle(struct state *s, struct acc_err *e)
{
	if (s->width != NULL || s->cells.n == 0)
		return 0;
	s->width = calloc(s->cells.n, sizeof *s->width);
	struct acc_str *title = calloc(s->cells.n, sizeof *title);
	if (s->width == NULL || title == NULL) {
		free(title);
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	}
	for (size_t r = 0; r < s->nheld; r++)
		for (size_t i = 0; i < s->cells.n; i++) {
			size_t w = width_of(s->held[r * s->cells.n + i]);
			if (w > s->width[i])
				s->width[i] = w;
		}
	for (size_t i = 0; i < s->cells.n; i++) {
		title[i] = acc_str(s->cells.column[i].title);
		if (s->width[i] > 0 && s->width[i] < title[i].n)
			s->width[i] = title[i].n;
	}
	fit(s);
	if (!s->opt.no_header && s->nheld > 0)
		line(s, title, s->opt.color ? "\033[1m" : NULL);
	for (size_t r = 0; r < s->nheld; r++) {
		const struct acc_str *c = s->held + r * s->cells.n;
		line(s, c, color_of(s, c));
	}
	free(title);
	return 0;
}

static int
hold(struct state *s, struct acc_err *e)
{
	size_t n = s->cells.n;
	if (s->held == NULL)
		s->held = calloc(HOLD * n, sizeof *s->held);
	if (s->held == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct acc_str c = s->cells.cell[i];
		const char *p = acc_arena_copy(&s->held_mem, c.p, c.n);
		if (p == NULL)
			return acc_fail(e, ACC_ENOMEM, "out of memory");
		s->held[s->nheld * n + i] = (struct acc_str){p, c.n};
	}
	return ++s->nheld == HOLD ? settle(s, e) : 0;
}

static void
sentence(struct state *s, const struct acc_rec *r)
{
	struct acc_str t = acc_get_text(r, "", "text");
	if (s->rows++ > 0 || s->nheld > 0)
		putc('\n', s->out);
	for (uint32_t i = 0; i < t.n; i++) {
		unsigned char b = (unsigned char)t.p[i];
		putc((b < 0x20 && b != '\n') || b == 0x7f ? '?' : b, s->out);
	}
	putc('\n', s->out);
}

/* A curve of times or counters: a log may have hundreds, which would hide the others. */
static bool
carried(const struct state *s, const struct acc_rec *r)
{
	struct acc_str c = acc_get_text(r, "", "class");
	return s->opt.ncolumns == 0 && acc_rec_is(r, "curve") && acc_get(r, "", "bad") == NULL &&
	       (acc_str_is(c, "time") || acc_str_is(c, "count"));
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	int rc;
	if (carried(s, r)) {
		s->carried++;
		return 0;
	}
	if (acc_rec_is(r, "finding") && s->opt.ncolumns == 0) {
		rc = settle(s, e);
		if (rc == 0)
			sentence(s, r);
	} else {
		rc = acc_cells_row(&s->cells, r, e);
		if (rc > 0 && s->width == NULL)
			rc = hold(s, e);
		else if (rc > 0)
			line(s, s->cells.cell, color_of(s, s->cells.cell));
	}
	if (rc >= 0 && ferror(s->out))
		rc = acc_fail(e, ACC_EIO, "standard output:");
	return rc < 0 ? rc : 0;
}

static int
end(void *state, int status, struct acc_err *e)
{
	struct state *s = state;
	(void)status;
	int rc = settle(s, e);
	if (rc == 0 && s->carried > 0)
		fprintf(s->out, "\n%" PRIu64 " times and counters are carried, not judged, and not "
			"shown here\n", s->carried);
	return rc;
}

static void
release(void *state)
{
	struct state *s = state;
	acc_cells_close(&s->cells);
	acc_arena_release(&s->held_mem);
	free(s->held);
	free(s->width);
	free(s);
}

const struct acc_format acc_format_table = {
	.name = "table",
	.help = "a table for a terminal, then the findings as sentences (the default)",
	.begin = begin,
	.record = record,
	.end = end,
	.release = release,
};
