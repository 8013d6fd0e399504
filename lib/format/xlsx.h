/* xlsx.h - what the files of the spreadsheet share */
#ifndef ACC_FORMAT_XLSX_H
#define ACC_FORMAT_XLSX_H

#include "format/cells.h"
#include "format/xlsxlib.h"

#ifdef ACC_HAVE_XLSX

/* Excel's: rows of a sheet, characters of a cell. Of the sheets each has a file open until the end. */
enum { ROWS = 1048576, TEXT = 32767, SHEETS = 500 };
/* A note makes a sheet slow to open: that many op calls have one, and those that are bad. */
enum { NOTES = 3000, NOTE = 4000, WIDEST = 46 };
/* So many bad rows are remembered, for what leads to them. */
enum { REMEMBERED = 10000 };

enum xlsx_level { FINE, WARNING, ERROR, LEVELS };
enum xlsx_shape { PLAIN, SMALL, SHAPES };

/* Rows of one kind have the same columns, and sheets of their own; where columns are asked for, all. */
enum xlsx_kind { OF_CALLS, OF_CURVES, OF_POINTS, OF_PARAMETERS, OF_OTHERS, KINDS };
struct xlsx_table {
	bool open; /* cells are */
	struct acc_format_opt opt;
	struct acc_cells cells;
	uint32_t *width; /* of each column; 0: it is empty */
};

struct xlsx_sheet {
	lxw_worksheet *ws;
	struct xlsx_table *of;
	char name[32];
	uint32_t rows, filled; /* with the titles; those that have a cell */
	uint64_t bad[LEVELS];
	uint32_t worst; /* the first row that is an error, or else a warning; 0: none */
	enum xlsx_level worst_level;
};

struct xlsx_book {
	ACC_FORMAT_STATE;
	const struct acc_xlsx *x;
	int fd; /* of the file that the library writes: it wants a name, and to go back in it */
	lxw_workbook *book;
	lxw_worksheet *front;
	uint64_t cells; /* that were written, on all sheets */
	lxw_format *cell[LEVELS][SHAPES], *title, *head, *wrap, *bold;
	bool asked; /* for columns */
	struct xlsx_table table[KINDS];
	struct acc_stacks stacks;
	struct acc_map places; /* step and rank -> index of its last sheet */
	struct acc_map bad;    /* op call -> its first bad row: sheet << 32 | row */
	struct xlsx_sheet *sheet;
	size_t nsheets, cap;
	struct acc_buf text; /* of a cell, terminated */
	struct acc_buf key;  /* of the last op call */
	uint64_t notes, unnoted, cut;
	uint32_t line; /* of the first sheet */
};

/* What a level's cells look like, and mean. */
extern const struct acc_xlsx_look {
	const char *name, *means;
	uint32_t fill, ink;
} acc_xlsx_looks[LEVELS];

/* What the library returned, as an error of ours: 0 or < 0. */
int acc_xlsx_done(const struct xlsx_book *s, lxw_error rc, struct acc_err *e);
/* The text as a cell may hold it, in s->text: what is not plain, and no line end or tab, is U+FFFD; behind
 * `most` characters it is cut. NULL: memory ran out. */
const char *acc_xlsx_plain(struct xlsx_book *s, struct acc_str c, size_t most);
/* Write a text: what is not plain, and no line end or tab, becomes U+FFFD; what is too long is cut. */
int acc_xlsx_text(struct xlsx_book *s, lxw_worksheet *ws, uint32_t row, size_t col,
	struct acc_str c, lxw_format *f, struct acc_err *e);
enum xlsx_shape acc_xlsx_shape(double v);
/* --- the rows. Of which kind is a record? */
enum xlsx_kind acc_xlsx_kind(const struct acc_rec *r);
/* The table that a record is a row of, its cells made: 1; it is no row: 0; < 0. */
int acc_xlsx_row(struct xlsx_book *s, const struct acc_rec *r, struct xlsx_table **t,
	struct acc_err *e);
/* The titles of a new sheet; write the cells that were made. 0 or < 0. */
int acc_xlsx_titles(struct xlsx_book *s, struct xlsx_sheet *to, struct acc_err *e);
int acc_xlsx_cells(struct xlsx_book *s, struct xlsx_sheet *to, const struct acc_rec *r,
	enum xlsx_level level, struct acc_err *e);
/* Widths, filters, the frozen head; columns that are empty everywhere are hidden. 0 or < 0. */
int acc_xlsx_finish(struct xlsx_book *s, const struct xlsx_sheet *p, struct acc_err *e);
/* Of each table its memory. */
void acc_xlsx_tables_release(struct xlsx_book *s);
/* The column that names a row: the first, or the one behind the kind. */
size_t acc_xlsx_names_at(const struct xlsx_table *t);
/* Of what a finding names, its first bad row, as acc_xlsx_book's bad has it; 0: there is none. */
uint64_t acc_xlsx_bad_row(struct xlsx_book *s, const struct acc_rec *finding);
/* --- the first sheet: a finding, as it comes; then the legend and the list of sheets. 0 or < 0. */
int acc_xlsx_finding(struct xlsx_book *s, const struct acc_rec *r, struct acc_err *e);
int acc_xlsx_front(struct xlsx_book *s, struct acc_err *e);
/* Is what the library wrote to s->fd whole? 0 or < 0. */
int acc_xlsx_check(const struct xlsx_book *s, struct acc_err *e);

#endif
#endif
