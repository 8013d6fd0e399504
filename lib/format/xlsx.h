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

enum xlsx_level { FINE, WARNING, ERROR, LEVELS };
enum xlsx_shape { PLAIN, SMALL, SHAPES };

struct xlsx_sheet {
	lxw_worksheet *ws;
	char name[32];
	uint32_t rows, filled; /* with the titles; those that have a cell */
	uint64_t bad[LEVELS];
};

struct xlsx_book {
	const struct acc_xlsx *x;
	FILE *out;
	int fd; /* of the file that the library writes: it wants a name, and to go back in it */
	lxw_workbook *book;
	lxw_worksheet *front;
	lxw_format *cell[LEVELS][SHAPES], *title, *head, *wrap, *bold;
	struct acc_format_opt opt;
	bool asked; /* for columns */
	bool open;  /* cells are */
	struct acc_cells cells;
	struct acc_stacks stacks;
	struct acc_map places; /* step and rank -> index of its last sheet */
	struct xlsx_sheet *sheet;
	size_t nsheets, cap;
	uint32_t *width;     /* of each column; 0: it is empty */
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
/* Write a text: what is not plain, and no line end or tab, becomes U+FFFD; what is too long is cut. */
int acc_xlsx_text(struct xlsx_book *s, lxw_worksheet *ws, uint32_t row, size_t col,
	struct acc_str c, lxw_format *f, struct acc_err *e);
enum xlsx_shape acc_xlsx_shape(double v);
/* --- the first sheet: a finding, as it comes; then the legend and the list of sheets. 0 or < 0. */
int acc_xlsx_finding(struct xlsx_book *s, const struct acc_rec *r, struct acc_err *e);
int acc_xlsx_front(struct xlsx_book *s, struct acc_err *e);
/* Is what the library wrote to s->fd whole? 0 or < 0. */
int acc_xlsx_check(const struct xlsx_book *s, struct acc_err *e);

#endif
#endif
