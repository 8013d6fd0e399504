/* A spreadsheet: a first sheet with the findings and what the colours mean, then a sheet for each step
 * and rank. Rows are written as they come and lie in files until the end. */
#include "acc/file.h"
#include "format/xlsx.h"

#ifndef ACC_HAVE_XLSX

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	(void)state;
	(void)out;
	(void)opt;
	return acc_fail(e, ACC_EUNSUP,
		"this program was built without libxlsxwriter, and writes no"
		" spreadsheets");
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	(void)state;
	(void)r;
	(void)e;
	return ACC_EUNSUP;
}

static int
end(void *state, int status, struct acc_err *e)
{
	(void)state;
	(void)status;
	(void)e;
	return ACC_EUNSUP;
}

static void
release(void *state)
{
	(void)state;
}

#else

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

int
acc_xlsx_done(const struct xlsx_book *s, lxw_error rc, struct acc_err *e)
{
	return rc == LXW_NO_ERROR ? 0
				  : acc_fail(e, ACC_EIO, "spreadsheet: %s", s->x->lxw_strerror(rc));
}

static lxw_format *
style(struct xlsx_book *s, uint32_t fill, uint32_t ink, bool bold)
{
	lxw_format *f = s->x->workbook_add_format(s->book);
	if (f == NULL)
		return NULL;
	if (fill != 0)
		s->x->format_set_bg_color(f, fill);
	if (ink != 0)
		s->x->format_set_font_color(f, ink);
	if (bold)
		s->x->format_set_bold(f);
	return f;
}

static int
styles(struct xlsx_book *s, struct acc_err *e)
{
	bool all = true;
	for (int l = 0; l < LEVELS; l++)
		for (int k = 0; k < SHAPES; k++) {
			s->cell[l][k] = style(s, acc_xlsx_looks[l].fill, acc_xlsx_looks[l].ink,
				l == ERROR);
			all &= s->cell[l][k] != NULL;
			if (k == SMALL && all)
				s->x->format_set_num_format(s->cell[l][k], "0.00E+00");
		}
	s->title = style(s, 0, 0, true);
	s->head = style(s, 0xDDE3EA, 0, true);
	s->bold = style(s, 0, 0, true);
	s->wrap = style(s, 0, 0, false);
	if (!all || s->title == NULL || s->head == NULL || s->bold == NULL || s->wrap == NULL)
		return acc_nomem(e);
	s->x->format_set_font_size(s->title, 14);
	s->x->format_set_bottom(s->head, LXW_BORDER_THIN);
	s->x->format_set_text_wrap(s->wrap);
	s->x->format_set_align(s->wrap, LXW_ALIGN_VERTICAL_TOP);
	return 0;
}

static void
release(void *state)
{
	struct xlsx_book *s = state;
	if (s->fd >= 0)
		close(s->fd);
	if (s->open)
		acc_cells_close(&s->cells);
	acc_stacks_release(&s->stacks);
	acc_map_release(&s->places);
	acc_buf_release(&s->text);
	acc_buf_release(&s->key);
	free(s->sheet);
	free(s->width);
	free(s);
}

static int
open_book(struct xlsx_book *s, struct acc_err *e)
{
	char path[32];
	lxw_workbook_options o = {.constant_memory = LXW_TRUE, .use_zip64 = LXW_TRUE};
	o.tmpdir = s->opt.tmpdir == NULL ? NULL : (char *)(uintptr_t)s->opt.tmpdir;
	/* It has no name; the library opens it once more by its number. */
	s->fd = acc_file_temp(s->opt.tmpdir != NULL ? s->opt.tmpdir : "/tmp", e);
	if (s->fd < 0)
		return s->fd;
	snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
	s->book = s->x->workbook_new_opt(path, &o);
	if (s->book == NULL)
		return acc_nomem(e);
	/* The same records are the same bytes: made at the time that its members have in the archive. */
	lxw_doc_properties made = {.created = (time_t)315532800}; /* 1980-01-01 */
	int rc = acc_xlsx_done(s, s->x->workbook_set_properties(s->book, &made), e);
	if (rc < 0)
		return rc;
	s->front = s->x->workbook_add_worksheet(s->book, "Finding");
	return s->front == NULL ? acc_nomem(e) : styles(s, e);
}

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	const struct acc_xlsx *x = acc_xlsx_load(e);
	struct xlsx_book *s = x == NULL ? NULL : calloc(1, sizeof *s);
	if (s == NULL)
		return x == NULL ? ACC_EUNSUP : acc_nomem(e);
	*s = (struct xlsx_book){.x = x, .out = out, .fd = -1, .opt = *opt};
	s->asked = opt->ncolumns > 0 || opt->preset != NULL;
	int rc = open_book(s, e);
	if (rc < 0) {
		release(s);
		return rc;
	}
	*state = s;
	return 0;
}

/* --- cells */

/* The text as a cell may hold it, in s->text: what is not plain, and no line end or tab, is U+FFFD;
 * what is too long is cut. */
static const char *
plain(struct xlsx_book *s, struct acc_str c, size_t most)
{
	size_t n = 0;
	s->text.n = 0;
	int rc = 0;
	for (; c.n > 0 && n < most && rc == 0; n++) {
		int32_t code;
		const uint32_t len = acc_char(c, &code);
		const bool good = code == '\n' || code == '\t' ||
				  (acc_char_plain(code) && (code & 0xFFFE) != 0xFFFE);
		rc = good ? acc_buf_add(&s->text, c.p, len)
			  : acc_buf_add(&s->text, "\xef\xbf\xbd", 3);
		n += code > 0xFFFF; /* two, as Excel counts */
		c = (struct acc_str){c.p + len, c.n - len};
	}
	s->cut += c.n > 0 && most == TEXT - 1;
	return rc < 0 || acc_buf_add(&s->text, "", 1) < 0 ? NULL : (const char *)s->text.p;
}

int
acc_xlsx_text(struct xlsx_book *s, lxw_worksheet *ws, uint32_t row, size_t col, struct acc_str c,
	lxw_format *f, struct acc_err *e)
{
	const char *text = plain(s, c, TEXT - 1);
	if (text == NULL)
		return acc_nomem(e);
	return acc_xlsx_done(s, s->x->worksheet_write_string(ws, row, (lxw_col_t)col, text, f), e);
}

/* Is the whole cell a finite number, as Python or C print one? */
static bool
is_number(struct acc_str c, double *v)
{
	char buf[48], *stop;
	if (c.n == 0 || c.n >= sizeof buf || c.p[0] == '+' || c.p[0] == 'e')
		return false;
	memcpy(buf, c.p, c.n);
	buf[c.n] = '\0';
	if (strspn(buf, "0123456789+-.e") < c.n)
		return false;
	*v = strtod(buf, &stop);
	return *stop == '\0' && isfinite(*v);
}

/* 0 is exact, and 1e-12 is not 0: small and large ones are shown with their exponent. */
enum xlsx_shape
acc_xlsx_shape(double v)
{
	return v != 0 && (fabs(v) < 1e-3 || fabs(v) >= 1e7) ? SMALL : PLAIN;
}

/* What a number's cell holds is the number. Larger integers than a double holds stay texts. */
static bool
numeric(const struct acc_rec *r, const struct acc_column *c, struct acc_str text, double *v)
{
	const struct acc_val *of = c->key == NULL ? NULL : acc_get(r, "", c->key);
	if (of == NULL)
		return is_number(text, v);
	if (of->type == ACC_V_INT)
		return acc_as_f64(of, v) && fabs(*v) <= 9007199254740992.0;
	return of->type == ACC_V_F64 && acc_as_f64(of, v) && isfinite(*v);
}

static int
put_cell(struct xlsx_book *s, struct xlsx_sheet *to, const struct acc_rec *r, size_t i,
	enum xlsx_level level, struct acc_err *e)
{
	const struct acc_column *c = &s->cells.column[i];
	const struct acc_str text = s->cells.cell[i];
	const struct acc_val *of = c->key == NULL ? NULL : acc_get(r, "", c->key);
	double v;
	bool b;
	if (text.n == 0)
		return 0;
	const uint32_t wide = text.n > WIDEST ? WIDEST : text.n;
	if (wide > s->width[i])
		s->width[i] = wide;
	if (acc_as_bool(of, &b))
		return acc_xlsx_done(s,
			s->x->worksheet_write_boolean(to->ws, to->rows, (lxw_col_t)i, b,
				s->cell[level][PLAIN]),
			e);
	if (numeric(r, c, text, &v))
		return acc_xlsx_done(s,
			s->x->worksheet_write_number(to->ws, to->rows, (lxw_col_t)i, v,
				s->cell[level][acc_xlsx_shape(v)]),
			e);
	return acc_xlsx_text(s, to->ws, to->rows, i, text, s->cell[level][PLAIN], e);
}

/* --- sheets */

/* Of either side; "" where no record says. */
static void
place_of(const struct acc_rec *r, char *out, size_t size)
{
	static const char *const sides[] = {"a.", "b.", ""};
	const struct acc_val *step = NULL, *rank = NULL;
	size_t n = 0;
	int64_t v;
	for (int i = 0; i < 3; i++) {
		step = step != NULL ? step : acc_get(r, sides[i], "step");
		rank = rank != NULL ? rank : acc_get(r, sides[i], "rank");
	}
	out[0] = '\0';
	if (acc_rec_is(r, "curve") || acc_str_is(acc_get_text(r, "a.", "kind"), "scalar") ||
		acc_str_is(acc_get_text(r, "b.", "kind"), "scalar") || acc_rec_is(r, "scalar"))
		return;
	if (acc_as_int(step, &v))
		n = (size_t)snprintf(out, size, "step %" PRId64, v);
	if (acc_as_int(rank, &v) && n < size)
		snprintf(out + n, size - n, "%srank %" PRId64, n > 0 ? " " : "", v);
}

static struct xlsx_sheet *
add_sheet(struct xlsx_book *s, const char *place, unsigned part, struct acc_err *e)
{
	struct xlsx_sheet *p = acc_grow(s->sheet, &s->cap, s->nsheets + 1, sizeof *p, e);
	if (p == NULL)
		return NULL;
	s->sheet = p;
	if (s->nsheets == SHEETS) {
		acc_fail(e, ACC_ELIMIT, "more than %d sheets: choose steps or ranks", SHEETS);
		return NULL;
	}
	p += s->nsheets;
	*p = (struct xlsx_sheet){0};
	snprintf(p->name, sizeof p->name, part > 1 ? "%.24s (%u)" : "%.24s",
		place[0] != '\0' ? place : "records", part);
	p->ws = s->x->workbook_add_worksheet(s->book, p->name);
	if (p->ws == NULL) {
		acc_nomem(e);
		return NULL;
	}
	s->nsheets++;
	for (size_t i = 0; i < s->cells.n && !s->opt.no_header; i++)
		if (acc_xlsx_text(s, p->ws, 0, i, acc_str(s->cells.column[i].title), s->head, e) <
			0)
			return NULL;
	p->rows = p->filled = !s->opt.no_header;
	return p;
}

/* Where a record's row goes; a new sheet where there is none, or the last is full. */
static struct xlsx_sheet *
sheet_for(struct xlsx_book *s, const struct acc_rec *r, struct acc_err *e)
{
	char place[64];
	place_of(r, place, sizeof place);
	/* The number of its last sheet, and of how many. */
	uint64_t *at = acc_map_put(&s->places, acc_str(place), 0);
	if (at == NULL) {
		acc_nomem(e);
		return NULL;
	}
	if (*at != 0 && s->sheet[(*at >> 16) - 1].rows < ROWS)
		return &s->sheet[(*at >> 16) - 1];
	const unsigned part = (unsigned)(*at & 0xffff) + 1;
	struct xlsx_sheet *to = add_sheet(s, place, part, e);
	*at = (uint64_t)s->nsheets << 16 | part;
	return to;
}

/* The column that names a row: the first, or the one behind the kind. */
static size_t
names_at(const struct xlsx_book *s)
{
	return s->cells.n > 1 && strcmp(s->cells.column[0].title, "kind") == 0;
}

/* The stack of an op call, as a note on its first row. */
static int
note(struct xlsx_book *s, const struct xlsx_sheet *to, const struct acc_rec *r,
	enum xlsx_level level, struct acc_err *e)
{
	static const char *const sides[] = {"a.", "b.", ""};
	struct acc_str key = {0}, stack = {0};
	for (int i = 0; i < 3; i++) {
		key = key.n > 0 ? key : acc_get_text(r, sides[i], "key");
		stack = stack.n > 0 ? stack : acc_get_text(r, sides[i], "stack");
	}
	const struct acc_str last = {(const char *)s->key.p, (uint32_t)s->key.n};
	if (stack.n == 0 || (acc_str_eq(key, last) && level == FINE))
		return 0;
	s->key.n = 0;
	if (acc_buf_add(&s->key, key.p, key.n) < 0)
		return acc_nomem(e);
	if (level == FINE && s->notes >= NOTES) {
		s->unnoted++;
		return 0;
	}
	s->notes += level == FINE;
	struct acc_str frames = acc_stacks_get(&s->stacks, stack);
	const char *text = plain(s, frames, NOTE);
	lxw_comment_options o = {.width = 480, .height = 180};
	if (text == NULL)
		return acc_nomem(e);
	for (char *p = (char *)s->text.p; (p = strstr(p, "; File ")) != NULL; p++)
		p[0] = p[1] = '\n';
	return acc_xlsx_done(s,
		s->x->worksheet_write_comment_opt(to->ws, to->rows, (lxw_col_t)names_at(s), text,
			&o),
		e);
}

/* What people look at of pairs of tensors, the verdict first; what is empty is hidden. */
static const char *const pair_keys[] = {"name", "bad", "rule", "value", "limit", "m.err_max",
	"m.err_rms", "m.max_abs", "m.max_rel", "m.rel_l2", "m.one_minus_cosine", "m.ulp_max",
	"m.same", "m.nonfinite", "m.norm_relerr", "m.max_relerr", "m.min_relerr", "m.mean_relerr",
	"m.equal", "m.worst", "m.where", "a.dtype", "b.dtype", "a.shape", "b.shape", "a.s.min",
	"b.s.min", "a.s.max", "b.s.max", "a.s.mean", "b.s.mean", "a.s.norm", "b.s.norm",
	"a.stat.min", "b.stat.min", "a.stat.max", "b.stat.max", "a.stat.mean", "b.stat.mean",
	"a.stat.norm", "b.stat.norm", "a.value", "b.value", "a.audit.ok", "a.audit.err",
	"a.audit.limit", "a.audit.cause", "note", "how", "b.name", "a.step", "a.rank", "a.seq",
	"a.scope", "m.skip", "limit_from", "why"};

/* The columns wait for the first row, which says of what kind they are. */
static int
open_cells(struct xlsx_book *s, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str kind = acc_get_text(r, "a.", "kind");
	kind = kind.n > 0 ? kind : acc_get_text(r, "b.", "kind");
	if (!s->asked && acc_word_in("tensor arg", kind)) {
		s->opt.columns = pair_keys;
		s->opt.ncolumns = sizeof pair_keys / sizeof *pair_keys;
	}
	s->open = true;
	return acc_cells_open(&s->cells, &s->opt, false, e);
}

static enum xlsx_level
level_of(const struct acc_rec *r)
{
	struct acc_str bad = acc_get_text(r, "", "bad");
	return acc_str_is(bad, "error") ? ERROR : acc_str_is(bad, "warning") ? WARNING : FINE;
}

static int
row(struct xlsx_book *s, const struct acc_rec *r, struct acc_err *e)
{
	int rc = s->open || (!s->asked && !acc_is_row(r)) ? 0 : open_cells(s, r, e);
	if (rc < 0 || !s->open)
		return rc;
	rc = acc_cells_row(&s->cells, r, e);
	if (rc <= 0)
		return rc;
	if (s->width == NULL) {
		s->width = calloc(s->cells.n + 1, sizeof *s->width);
		if (s->width == NULL)
			return acc_nomem(e);
	}
	struct xlsx_sheet *to = sheet_for(s, r, e);
	if (to == NULL)
		return ACC_ENOMEM;
	const enum xlsx_level level = level_of(r);
	rc = 0;
	for (size_t i = 0; i < s->cells.n && rc == 0; i++)
		rc = put_cell(s, to, r, i, level, e);
	if (rc == 0)
		rc = note(s, to, r, level, e);
	for (size_t i = 0; i < s->cells.n; i++)
		if (s->cells.cell[i].n > 0) {
			to->filled++;
			break;
		}
	to->bad[level]++;
	to->rows++;
	return rc;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct xlsx_book *s = state;
	int rc = acc_stacks_see(&s->stacks, r, e);
	if (rc == 0 && acc_rec_is(r, "finding"))
		rc = acc_xlsx_finding(s, r, e);
	else if (rc == 0)
		rc = row(s, r, e);
	return rc;
}

/* Widths, filters, the frozen head; columns that are empty everywhere are hidden. */
static int
finish(struct xlsx_book *s, const struct xlsx_sheet *p, struct acc_err *e)
{
	lxw_row_col_options hide = {.hidden = LXW_TRUE};
	int rc = 0;
	for (size_t i = 0; i < s->cells.n && rc == 0; i++) {
		const size_t title = strlen(s->cells.column[i].title) + 3; /* the filter's button */
		const size_t need = s->width[i] + 2;
		/* Who asked for a column sees that it is empty. */
		const bool hidden = !s->asked &&
				    (s->width[i] == 0 ||
					    strcmp(s->cells.column[i].title, "kind") == 0);
		rc = acc_xlsx_done(s,
			s->x->worksheet_set_column_opt(p->ws, (lxw_col_t)i, (lxw_col_t)i,
				(double)(need > title ? need : title), NULL, hidden ? &hide : NULL),
			e);
	}
	s->x->worksheet_freeze_panes(p->ws, !s->opt.no_header, (lxw_col_t)(names_at(s) + 1));
	if (rc == 0 && !s->opt.no_header && p->rows > 1)
		rc = acc_xlsx_done(s,
			s->x->worksheet_autofilter(p->ws, 0, 0, p->rows - 1,
				(lxw_col_t)(s->cells.n - 1)),
			e);
	return rc;
}

static int
copy(struct xlsx_book *s, struct acc_err *e)
{
	char buf[65536];
	int64_t n;
	for (uint64_t at = 0; (n = acc_file_peek(s->fd, buf, sizeof buf, at, e)) > 0;
		at += (uint64_t)n)
		if (fwrite(buf, 1, (size_t)n, s->out) != (size_t)n)
			return acc_fail(e, ACC_EIO, "cannot write:");
	return n < 0 ? (int)n : 0;
}

static int
end(void *state, int status, struct acc_err *e)
{
	struct xlsx_book *s = state;
	(void)status;
	int rc = acc_xlsx_front(s, e);
	for (size_t i = 0; i < s->nsheets && rc == 0; i++)
		rc = finish(s, &s->sheet[i], e);
	/* It frees the book, whatever comes of it. */
	const lxw_error closed = s->x->workbook_close(s->book);
	if (rc == 0)
		rc = acc_xlsx_done(s, closed, e);
	if (rc == 0)
		rc = acc_xlsx_check(s, e);
	return rc == 0 ? copy(s, e) : rc;
}

#endif

const struct acc_format acc_format_xlsx = {
	.name = "xlsx",
	.help = "a spreadsheet: findings, then each step and rank",
	.file = true,
	.begin = begin,
	.record = record,
	.end = end,
	.release = release,
};
