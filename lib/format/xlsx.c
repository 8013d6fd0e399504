/* A spreadsheet: a first sheet with the findings and what the colours mean, then a sheet for each step
 * and rank. Rows are written as they come and lie in files until the end. */
#include "acc/file.h"
#include "format/xlsx.h"

#ifndef ACC_HAVE_XLSX

static int
begin(void *state, struct acc_err *e)
{
	(void)state;
	return acc_fail(e, ACC_EUNSUP,
		"this program was built without libxlsxwriter, and writes no"
		" spreadsheets");
}

#else

#include <sys/stat.h>
#include <errno.h>
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

/* Much of the library goes on without what it had no memory for, a colour, a column's width, a part's name,
 * and says so nowhere; errno, which is 0 where it is called, still does. */
static int
had_memory(int rc, struct acc_err *e)
{
	return rc == 0 && errno == ENOMEM ? acc_nomem(e) : rc;
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
			if (all)
				s->x->format_set_align(s->cell[l][k], LXW_ALIGN_VERTICAL_TOP);
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
	acc_xlsx_tables_release(s);
	acc_stacks_release(&s->stacks);
	acc_map_release(&s->places);
	acc_map_release(&s->bad);
	acc_buf_release(&s->text);
	acc_buf_release(&s->key);
	free(s->sheet);
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
	struct stat st;
	if (stat(path, &st) < 0)
		return acc_fail(e, ACC_EIO,
			"the spreadsheet cannot be written by %s, is /proc mounted?", path);
	s->book = s->x->workbook_new_opt(path, &o);
	if (s->book == NULL || errno == ENOMEM)
		return acc_nomem(e);
	/* The same records are the same bytes: made at the time that its members have in the archive. */
	lxw_doc_properties made = {.created = (time_t)315532800}; /* 1980-01-01 */
	int rc = acc_xlsx_done(s, s->x->workbook_set_properties(s->book, &made), e);
	if (rc < 0)
		return rc;
	s->front = s->x->workbook_add_worksheet(s->book, "Finding");
	return s->front == NULL || errno == ENOMEM ? acc_nomem(e) : styles(s, e);
}

static int
begin(void *state, struct acc_err *e)
{
	struct xlsx_book *s = state;
	s->fd = -1;
	s->x = acc_xlsx_load(e);
	s->asked = s->opt.ncolumns > 0 || s->opt.preset != NULL;
	errno = 0;
	return s->x == NULL ? ACC_EUNSUP : had_memory(open_book(s, e), e);
}

/* --- sheets */

/* The name of a record's sheet: of its kind, or the step and rank of either side. */
static void
place_of(const struct xlsx_book *s, const struct xlsx_table *t, const struct acc_rec *r, char *out,
	size_t size)
{
	static const char *const names[KINDS] = {"records", "curves", "points", "parameters",
		"records"};
	static const char *const sides[] = {"a.", "b.", ""};
	const struct acc_val *step = NULL, *rank = NULL;
	size_t n = 0;
	int64_t v;
	for (int i = 0; i < 3; i++) {
		step = step != NULL ? step : acc_get(r, sides[i], "step");
		rank = rank != NULL ? rank : acc_get(r, sides[i], "rank");
	}
	snprintf(out, size, "%s", s->asked ? "records" : names[t - s->table]);
	if (acc_xlsx_kind(r) == OF_CURVES || acc_xlsx_kind(r) == OF_POINTS)
		return;
	if (acc_as_int(step, &v))
		n = (size_t)snprintf(out, size, "step %" PRId64, v);
	if (acc_as_int(rank, &v) && n < size)
		snprintf(out + n, size - n, "%srank %" PRId64, n > 0 ? " " : "", v);
}

static struct xlsx_sheet *
add_sheet(struct xlsx_book *s, struct xlsx_table *t, const char *place, unsigned part,
	struct acc_err *e)
{
	if (!ACC_ROOM(s->sheet, s->cap, s->nsheets + 1, e))
		return NULL;
	struct xlsx_sheet *p = s->sheet;
	if (s->nsheets == SHEETS) {
		acc_fail(e, ACC_ELIMIT, "more than %d sheets: choose steps or ranks", SHEETS);
		return NULL;
	}
	p += s->nsheets;
	*p = (struct xlsx_sheet){0};
	snprintf(p->name, sizeof p->name, part > 1 ? "%.24s (%u)" : "%.24s", place, part);
	p->ws = s->x->workbook_add_worksheet(s->book, p->name);
	if (p->ws == NULL || p->ws->quoted_name == NULL) {
		acc_nomem(e);
		return NULL;
	}
	s->nsheets++;
	p->of = t;
	return acc_xlsx_titles(s, p, e) < 0 ? NULL : p;
}

/* Where a record's row goes; a new sheet where there is none, or the last is full. */
static struct xlsx_sheet *
sheet_for(struct xlsx_book *s, struct xlsx_table *t, const struct acc_rec *r, struct acc_err *e)
{
	char place[64];
	place_of(s, t, r, place, sizeof place);
	/* The number of its last sheet, and of how many. */
	uint64_t *at = acc_map_put(&s->places, acc_str(place), 0);
	if (at == NULL) {
		acc_nomem(e);
		return NULL;
	}
	if (*at != 0 && s->sheet[(*at >> 16) - 1].rows < ROWS)
		return &s->sheet[(*at >> 16) - 1];
	const unsigned part = (unsigned)(*at & 0xffff) + 1;
	struct xlsx_sheet *to = add_sheet(s, t, place, part, e);
	*at = (uint64_t)s->nsheets << 16 | part;
	return to;
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
	const char *text = acc_xlsx_plain(s, frames, NOTE);
	lxw_comment_options o = {.width = 480, .height = 180};
	if (text == NULL)
		return acc_nomem(e);
	for (char *p = (char *)s->text.p; (p = strstr(p, "; File ")) != NULL; p++)
		p[0] = p[1] = '\n';
	return acc_xlsx_done(s,
		s->x->worksheet_write_comment_opt(to->ws, to->rows,
			(lxw_col_t)acc_xlsx_names_at(to->of), text, &o),
		e);
}

static enum xlsx_level
level_of(const struct acc_rec *r)
{
	struct acc_str bad = acc_get_text(r, "", "bad");
	return acc_str_is(bad, "error") ? ERROR : acc_str_is(bad, "warning") ? WARNING : FINE;
}

/* What a finding may name, and on which step and rank; a finding itself has these at its top. */
static int
bad_name(const struct acc_rec *r, bool place, struct acc_buf *out)
{
	static const char *const sides[] = {"a.", "b.", ""};
	static const char *const keys[] = {"key", "tag", "name"};
	const bool finding = acc_rec_is(r, "finding");
	struct acc_str name = {0};
	char at[64];
	int64_t v[2] = {INT64_MIN, INT64_MIN};
	for (int k = finding ? 2 : 0; k < 3 && name.n == 0; k++)
		for (int i = 0; i < 3 && name.n == 0; i++)
			name = acc_get_text(r, sides[i], keys[k]);
	for (int i = 0; i < 3; i++) {
		if (v[0] == INT64_MIN)
			v[0] = acc_get_int(r, sides[i], "step", INT64_MIN);
		if (v[1] == INT64_MIN)
			v[1] = acc_get_int(r, sides[i], "rank", INT64_MIN);
	}
	const int n = place ? snprintf(at, sizeof at, "\n%" PRId64 "/%" PRId64, v[0], v[1]) : 0;
	out->n = 0;
	return acc_buf_add(out, name.p, name.n) < 0 ? -1 : acc_buf_add(out, at, (size_t)n);
}

/* Bad rows are few; of a stream of nothing else the first are remembered. */
static int
remember(struct xlsx_book *s, struct xlsx_sheet *to, const struct acc_rec *r, enum xlsx_level level,
	struct acc_err *e)
{
	if (level == FINE)
		return 0;
	if (to->worst == 0 || level > to->worst_level) {
		to->worst = to->rows;
		to->worst_level = level;
	}
	for (int place = 0; place < 2 && s->bad.n < REMEMBERED; place++) {
		const uint64_t at = (uint64_t)(to - s->sheet + 1) << 32 | to->rows;
		if (bad_name(r, place, &s->text) < 0 ||
			acc_map_put(&s->bad,
				(struct acc_str){(const char *)s->text.p, (uint32_t)s->text.n},
				at) == NULL)
			return acc_nomem(e);
	}
	return 0;
}

uint64_t
acc_xlsx_bad_row(struct xlsx_book *s, const struct acc_rec *finding)
{
	for (int place = 1; place >= 0; place--) {
		if (bad_name(finding, place, &s->text) < 0)
			return 0;
		const uint64_t *at = acc_map_get(&s->bad,
			(struct acc_str){(const char *)s->text.p, (uint32_t)s->text.n});
		if (at != NULL)
			return *at;
	}
	return 0;
}

static int
row(struct xlsx_book *s, const struct acc_rec *r, struct acc_err *e)
{
	struct xlsx_table *t;
	int rc = acc_xlsx_row(s, r, &t, e);
	if (rc <= 0)
		return rc;
	struct xlsx_sheet *to = sheet_for(s, t, r, e);
	if (to == NULL)
		return ACC_ENOMEM;
	const enum xlsx_level level = level_of(r);
	rc = acc_xlsx_cells(s, to, r, level, e);
	if (rc == 0)
		rc = note(s, to, r, level, e);
	if (rc == 0)
		rc = remember(s, to, r, level, e);
	to->bad[level]++;
	to->rows++;
	return rc;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct xlsx_book *s = state;
	int rc = acc_stacks_see(&s->stacks, r, e);
	errno = 0;
	if (rc == 0 && acc_rec_is(r, "finding"))
		rc = acc_xlsx_finding(s, r, e);
	else if (rc == 0)
		rc = row(s, r, e);
	return had_memory(rc, e);
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
	errno = 0;
	int rc = acc_xlsx_front(s, e);
	for (size_t i = 0; i < s->nsheets && rc == 0; i++)
		rc = acc_xlsx_finish(s, &s->sheet[i], e);
	rc = had_memory(rc, e);
	/* It frees the book, whatever comes of it. */
	errno = 0;
	const lxw_error closed = s->x->workbook_close(s->book);
	if (rc == 0 && closed != LXW_NO_ERROR && errno != 0)
		rc = acc_fail(e, ACC_EIO, "cannot write the spreadsheet:");
	if (rc == 0)
		rc = had_memory(acc_xlsx_done(s, closed, e), e);
	if (rc == 0)
		rc = acc_xlsx_check(s, e);
	return rc == 0 ? copy(s, e) : rc;
}

#endif

const struct acc_format acc_format_xlsx = {
	.name = "xlsx",
	.for_people = true,
	.help = "a spreadsheet: findings, then each step and rank",
	.file = true,
	.begin = begin,
#ifdef ACC_HAVE_XLSX
	.size = sizeof(struct xlsx_book),
	.record = record,
	.end = end,
	.release = release,
#else
	.size = sizeof(struct acc_format_state),
#endif
};
