/* The rows of a spreadsheet: which columns they have, and their cells. */
#include "format/xlsx.h"

#ifdef ACC_HAVE_XLSX

#include <math.h>
#include <stdlib.h>

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

enum xlsx_kind
acc_xlsx_kind(const struct acc_rec *r)
{
	struct acc_str kind = r->kind;
	if (acc_rec_is(r, "pair")) {
		kind = acc_get_text(r, "a.", "kind");
		kind = kind.n > 0 ? kind : acc_get_text(r, "b.", "kind");
	}
	return acc_word_in("tensor arg call", kind) ? OF_CALLS
	       : acc_str_is(kind, "curve")          ? OF_CURVES
	       : acc_str_is(kind, "scalar")         ? OF_POINTS
	       : acc_str_is(kind, "param")          ? OF_PARAMETERS
						    : OF_OTHERS;
}

/* The columns wait for the first row, which says of what kind they are. */
static int
open_table(struct xlsx_book *s, struct xlsx_table *t, const struct acc_rec *r, struct acc_err *e)
{
	t->opt = s->opt;
	if (!s->asked && acc_rec_is(r, "pair") && acc_xlsx_kind(r) == OF_CALLS) {
		t->opt.columns = pair_keys;
		t->opt.ncolumns = sizeof pair_keys / sizeof *pair_keys;
	}
	t->open = true;
	return acc_cells_open(&t->cells, &t->opt, false, e);
}

int
acc_xlsx_row(struct xlsx_book *s, const struct acc_rec *r, struct xlsx_table **out,
	struct acc_err *e)
{
	struct xlsx_table *t = *out = &s->table[s->asked ? OF_CALLS : acc_xlsx_kind(r)];
	int rc = t->open || (!s->asked && !acc_is_row(r)) ? 0 : open_table(s, t, r, e);
	if (rc < 0 || !t->open)
		return rc;
	rc = acc_cells_row(&t->cells, r, e);
	if (rc > 0 && t->width == NULL) {
		t->width = calloc(t->cells.n + 1, sizeof *t->width);
		if (t->width == NULL)
			return acc_nomem(e);
	}
	return rc;
}

void
acc_xlsx_tables_release(struct xlsx_book *s)
{
	for (int i = 0; i < KINDS; i++) {
		if (s->table[i].open)
			acc_cells_close(&s->table[i].cells);
		free(s->table[i].width);
	}
}

size_t
acc_xlsx_names_at(const struct xlsx_table *t)
{
	return t->cells.n > 1 && strcmp(t->cells.column[0].title, "kind") == 0;
}

const char *
acc_xlsx_plain(struct xlsx_book *s, struct acc_str c, size_t most)
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
	const char *text = acc_xlsx_plain(s, c, TEXT - 1);
	if (text == NULL)
		return acc_nomem(e);
	s->cells += text[0] != '\0' || f != NULL;
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
	const struct acc_column *c = &to->of->cells.column[i];
	const struct acc_str text = to->of->cells.cell[i];
	const struct acc_val *of = c->key == NULL ? NULL : acc_get(r, "", c->key);
	double v;
	bool b;
	if (text.n == 0)
		return 0;
	const uint32_t wide = text.n > WIDEST ? WIDEST : text.n;
	if (wide > to->of->width[i])
		to->of->width[i] = wide;
	const bool number = numeric(r, c, text, &v), truth = acc_as_bool(of, &b);
	s->cells += number || truth;
	if (truth)
		return acc_xlsx_done(s,
			s->x->worksheet_write_boolean(to->ws, to->rows, (lxw_col_t)i, b,
				s->cell[level][PLAIN]),
			e);
	if (number)
		return acc_xlsx_done(s,
			s->x->worksheet_write_number(to->ws, to->rows, (lxw_col_t)i, v,
				s->cell[level][acc_xlsx_shape(v)]),
			e);
	return acc_xlsx_text(s, to->ws, to->rows, i, text, s->cell[level][PLAIN], e);
}

int
acc_xlsx_titles(struct xlsx_book *s, struct xlsx_sheet *to, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < to->of->cells.n && !s->opt.no_header && rc == 0; i++)
		rc = acc_xlsx_text(s, to->ws, 0, i, acc_str(to->of->cells.column[i].title), s->head,
			e);
	to->rows = to->filled = !s->opt.no_header;
	return rc;
}

int
acc_xlsx_cells(struct xlsx_book *s, struct xlsx_sheet *to, const struct acc_rec *r,
	enum xlsx_level level, struct acc_err *e)
{
	bool any = false;
	int rc = 0;
	for (size_t i = 0; i < to->of->cells.n && rc == 0; i++) {
		rc = put_cell(s, to, r, i, level, e);
		any |= to->of->cells.cell[i].n > 0;
	}
	to->filled += any;
	return rc;
}

int
acc_xlsx_finish(struct xlsx_book *s, const struct xlsx_sheet *p, struct acc_err *e)
{
	const struct xlsx_table *t = p->of;
	lxw_row_col_options hide = {.hidden = LXW_TRUE};
	int rc = 0;
	for (size_t i = 0; i < t->cells.n && rc == 0; i++) {
		const size_t title = strlen(t->cells.column[i].title) + 3; /* the filter's button */
		const size_t need = t->width[i] + 2;
		/* Who asked for a column sees that it is empty. */
		const bool hidden = !s->asked &&
				    (t->width[i] == 0 ||
					    strcmp(t->cells.column[i].title, "kind") == 0);
		rc = acc_xlsx_done(s,
			s->x->worksheet_set_column_opt(p->ws, (lxw_col_t)i, (lxw_col_t)i,
				(double)(need > title ? need : title), NULL, hidden ? &hide : NULL),
			e);
	}
	s->x->worksheet_freeze_panes(p->ws, !s->opt.no_header,
		(lxw_col_t)(acc_xlsx_names_at(t) + 1));
	/* On paper each page has the titles, and the names. */
	s->x->worksheet_set_landscape(p->ws);
	if (!s->opt.no_header)
		s->x->worksheet_repeat_rows(p->ws, 0, 0);
	s->x->worksheet_repeat_columns(p->ws, 0, (lxw_col_t)acc_xlsx_names_at(t));
	if (rc == 0 && !s->opt.no_header && p->rows > 1)
		rc = acc_xlsx_done(s,
			s->x->worksheet_autofilter(p->ws, 0, 0, p->rows - 1,
				(lxw_col_t)(t->cells.n - 1)),
			e);
	return rc;
}

#endif
