/* The first sheet of a spreadsheet: the findings, what the colours mean, and which sheets there are. */
#include "acc/say.h"
#include "acc/terminal.h"
#include "format/xlsx.h"

#ifdef ACC_HAVE_XLSX

#include <inttypes.h>
#include <math.h>

const struct acc_xlsx_look acc_xlsx_looks[LEVELS] = {
	[FINE] = {"", ACC_MSG("explained by the inputs, or not judged"), 0, 0},
	[WARNING] = {"warning",
		ACC_MSG("adds error beyond its limit behind the first one, or may be wrong"),
		0xFFE9B8, 0x6B4400},
	[ERROR] = {"error", ACC_MSG("the first that is wrong, or beyond a rule's limit"), 0xF8CBC6,
		0x8A1414},
};

/* Columns of the first sheet. */
enum { COL_WHAT, COL_TEXT, COL_NAME, COL_NUMBERS, COL_FROM = 8, COLUMNS };
static const double widths[COLUMNS] = {22, 110, 38, 7, 7, 11, 11, 11, 34};

/* A row is as high as what is wrapped in it: not all programs look when they open the file. */
static int
make_room(struct xlsx_book *s, struct acc_str text, struct acc_str from, struct acc_err *e)
{
	const double lines[2] = {
		ceil((double)acc_text_width(text) / (widths[COL_TEXT] - 5)),
		ceil((double)acc_text_width(from) / (widths[COL_FROM] - 5)),
	};
	const double most = lines[0] > lines[1] ? lines[0] : lines[1];
	if (most < 2)
		return 0;
	return acc_xlsx_done(s,
		s->x->worksheet_set_row(s->front, s->line, most > 27 ? 409 : 15 * most, NULL), e);
}

/* A cell that leads to a row of another sheet. */
static int
leads(struct xlsx_book *s, size_t col, const struct xlsx_sheet *to, uint32_t row,
	struct acc_str text, lxw_format *f, struct acc_err *e)
{
	char url[80];
	snprintf(url, sizeof url, "internal:'%s'!A%" PRIu32, to->name, row + 1);
	const char *name = acc_xlsx_plain(s, text, TEXT - 1);
	if (name == NULL)
		return acc_nomem(e);
	s->cells++;
	return acc_xlsx_done(s,
		s->x->worksheet_write_url_opt(s->front, s->line, (lxw_col_t)col, url, f, name,
			NULL),
		e);
}

/* What findings are, for people. */
static const struct {
	const char *what, *says;
} labels[] = {
	{"culprit", ACC_MSG("first bad op call")},
	{"overflow", ACC_MSG("first overflow")},
	{"difference", ACC_MSG("first difference")},
	{"missing", ACC_MSG("not looked at")},
	{"rule", ACC_MSG("beyond a limit")},
	{"warning", ACC_MSG("worth a look")},
	{"clean", ACC_MSG("within tolerance")},
	{"audit", ACC_MSG("recomputed by itself")},
	{"unmatched", ACC_MSG("without a partner")},
	{"next", ACC_MSG("what to do next")},
	{"ranks", ACC_MSG("other steps and ranks")},
	{"accepted", ACC_MSG("accepted as it is")},
	{"before", ACC_MSG("before the change")},
	{"other", ACC_MSG("said besides")},
};

static struct acc_str
label(struct acc_str what)
{
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		if (acc_str_is(what, labels[i].what))
			return acc_str(acc_tr(labels[i].says));
	return what;
}

static int
line(struct xlsx_book *s, const char *name, struct acc_str text, lxw_format *first, lxw_format *f,
	struct acc_err *e)
{
	int rc = make_room(s, text, (struct acc_str){0}, e);
	if (rc == 0)
		rc = acc_xlsx_text(s, s->front, s->line, 0, acc_str(acc_tr(name)), first, e);
	if (rc == 0 && text.n > 0)
		rc = acc_xlsx_text(s, s->front, s->line, 1, text, f, e);
	s->line++;
	return rc;
}

/* Findings come last; what there is of them stands in the order in which they came. */
int
acc_xlsx_finding(struct xlsx_book *s, const struct acc_rec *r, struct acc_err *e)
{
	static const char *const keys[] = {"step", "rank", "value", "limit", "confidence", NULL};
	static const char accusing[] = "culprit overflow difference rule missing";
	const struct acc_str what = acc_get_text(r, "", "what");
	const enum xlsx_level level = acc_word_in(accusing, what)   ? ERROR
				      : acc_str_is(what, "warning") ? WARNING
								    : FINE;
	lxw_format *f = s->cell[level][PLAIN];
	const struct acc_str text = acc_get_text(r, "", "text"), name = acc_get_text(r, "", "name"),
			     from = acc_get_text(r, "", "limit_from");
	int rc = 0;
	if (s->line == 0) {
		rc = line(s, ACC_MSG("Findings"), (struct acc_str){0}, s->title, NULL, e);
		static const char *const titles[] = {"what", "text", ACC_MSG("op call"), "step",
			"rank", "value", "limit", ACC_MSG("confidence"), ACC_MSG("limit from")};
		for (size_t i = 0; i < sizeof titles / sizeof *titles && rc == 0; i++)
			rc = acc_xlsx_text(s, s->front, s->line, i, acc_str(acc_tr(titles[i])),
				s->head, e);
		s->line++;
	}
	/* It finds the row of s->text, which the cells use then. */
	const uint64_t at = name.n > 0 && level != FINE ? acc_xlsx_bad_row(s, r) : 0;
	if (rc == 0)
		rc = make_room(s, text, from, e);
	if (rc == 0)
		rc = acc_xlsx_text(s, s->front, s->line, COL_WHAT, label(what), f, e);
	if (rc == 0)
		rc = acc_xlsx_text(s, s->front, s->line, COL_TEXT, text, s->wrap, e);
	if (rc == 0 && at != 0)
		rc = leads(s, COL_NAME, &s->sheet[(at >> 32) - 1], (uint32_t)at, name, f, e);
	else if (rc == 0)
		rc = acc_xlsx_text(s, s->front, s->line, COL_NAME, name, f, e);
	for (size_t i = 0; keys[i] != NULL && rc == 0; i++) {
		double v;
		const bool number = acc_as_f64(acc_get(r, "", keys[i]), &v) && isfinite(v);
		s->cells += number;
		if (number)
			rc = acc_xlsx_done(s,
				s->x->worksheet_write_number(s->front, s->line,
					(lxw_col_t)(COL_NUMBERS + i), v,
					s->cell[FINE][acc_xlsx_shape(v)]),
				e);
	}
	if (rc == 0)
		rc = acc_xlsx_text(s, s->front, s->line, COL_FROM, from, s->wrap, e);
	s->line++;
	return rc;
}

static int
legend(struct xlsx_book *s, struct acc_err *e)
{
	char text[400];
	int rc = 0;
	s->line++;
	rc = line(s, ACC_MSG("Colours"), (struct acc_str){0}, s->bold, NULL, e);
	for (int l = ERROR; l >= FINE && rc == 0; l--)
		rc = line(s, l == FINE ? ACC_MSG("no colour") : acc_xlsx_looks[l].name,
			acc_str(acc_tr(acc_xlsx_looks[l].means)), s->cell[l][PLAIN], s->wrap, e);
	snprintf(text, sizeof text,
		acc_tr("stacks, on the first row of an op call%s; numbers below 0.001 are shown with their "
		       "exponent, and 0 is exactly 0"),
		s->unnoted > 0 ? acc_tr(" (of the first 3,000, and of bad ones)") : "");
	if (rc == 0)
		rc = line(s, ACC_MSG("notes"), acc_str(text), s->bold, s->wrap, e);
	if (rc == 0 && s->cut > 0) {
		snprintf(text, sizeof text,
			acc_tr("%" PRIu64 " texts are longer than a cell holds"), s->cut);
		rc = line(s, ACC_MSG("cut"), acc_str(text), s->bold, s->wrap, e);
	}
	return rc;
}

static int
contents(struct xlsx_book *s, struct acc_err *e)
{
	char text[200];
	s->line++;
	int rc = s->nsheets > 0 ? line(s, ACC_MSG("Sheets"), (struct acc_str){0}, s->bold, NULL, e)
				: 0;
	for (size_t i = 0; i < s->nsheets && rc == 0; i++) {
		const struct xlsx_sheet *p = &s->sheet[i];
		snprintf(text, sizeof text,
			acc_tr("%" PRIu64 " records: %" PRIu64 " error, %" PRIu64 " warning"),
			p->bad[FINE] + p->bad[WARNING] + p->bad[ERROR], p->bad[ERROR],
			p->bad[WARNING]);
		/* In this mode the parts of a row must come from left to right. */
		rc = leads(s, 0, p, p->worst, acc_str(p->name), NULL, e);
		if (rc == 0)
			rc = acc_xlsx_text(s, s->front, s->line, 1, acc_str(text),
				s->cell[p->bad[ERROR] > 0     ? ERROR
					: p->bad[WARNING] > 0 ? WARNING
							      : FINE][PLAIN],
				e);
		s->line++;
	}
	return rc;
}

int
acc_xlsx_front(struct xlsx_book *s, struct acc_err *e)
{
	int rc = 0;
	if (s->line == 0)
		rc = line(s, ACC_MSG("No findings"),
			acc_str(acc_tr("no judge has looked at these records")), s->title, s->wrap,
			e);
	if (rc == 0)
		rc = legend(s, e);
	if (rc == 0)
		rc = contents(s, e);
	s->x->worksheet_set_landscape(s->front);
	s->x->worksheet_fit_to_pages(s->front, 1, 0);
	for (size_t i = 0; i < COLUMNS && rc == 0; i++)
		rc = acc_xlsx_done(s,
			s->x->worksheet_set_column_opt(s->front, (lxw_col_t)i, (lxw_col_t)i,
				widths[i], NULL, NULL),
			e);
	return rc;
}

#endif
