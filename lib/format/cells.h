/* cells.h - records as rows of text cells, for the formats that are tables
 *
 * A set of columns is a list of keys, or a named set (a preset) whose cells are computed.
 * Which default set applies is decided by the first record that can be a row.
 */
#ifndef ACC_CELLS_H
#define ACC_CELLS_H

#include "acc/coverage.h"
#include "acc/format.h"
#include "format/stacks.h"

struct acc_column {
	const char *title;
	/* The cell, in m or borrowed from r. key is the title of the plain sets. */
	struct acc_str (*cell)(void *ctx, const struct acc_rec *r, const struct acc_column *c,
		struct acc_arena *m);
	const char *key;
};

/* A named set. */
struct acc_columns {
	const char *name;
	int (*open)(void **ctx, struct acc_err *e);
	/* Look at every record before it may become a row (stacks, sources). */
	int (*see)(void *ctx, const struct acc_rec *r, struct acc_err *e);
	bool (*is_row)(void *ctx, const struct acc_rec *r);
	/* Called once, with the first row. Ends with a NULL title. */
	const struct acc_column *(*columns)(void *ctx, const struct acc_rec *first);
	void (*close)(void *ctx);
};
extern const struct acc_columns acc_columns_msprobe, acc_columns_msprobe26, acc_columns_ptdbg,
	acc_columns_maca, acc_columns_maca_fwd;

struct acc_cells {
	size_t n; /* columns; 0 before the first row */
	const struct acc_column *column;
	struct acc_str *cell;          /* of the last row */
	const struct acc_columns *set; /* NULL: plain keys */
	void *ctx;
	struct acc_column *own;   /* columns made from the user's list */
	struct acc_arena mem;     /* of the last row */
	struct acc_stacks stacks; /* that were seen, if a column of own shows them */
	bool shows_stacks;
	bool for_people; /* short numbers, few columns */
	bool places;     /* step and rank say something only where they vary */
};
/* opt must outlive c. */
int acc_cells_open(struct acc_cells *c, const struct acc_format_opt *opt, bool for_people,
	struct acc_err *e);
/* 1: c->cell is the row of r, valid until the next call; 0: r is no row; < 0. */
int acc_cells_row(struct acc_cells *c, const struct acc_rec *r, struct acc_err *e);
void acc_cells_close(struct acc_cells *c);

/* Sources, stacks and payload are none. */
bool acc_is_row(const struct acc_rec *r);
/* A value as text that reads back exactly; arrays as [1, 2]; nil is empty. */
struct acc_str acc_cell_text(const struct acc_val *v, struct acc_arena *m);

/* Would a spreadsheet take the cell for a formula? It begins as one, and is no number. */
bool acc_cell_acts(struct acc_str s);

/* How many bytes at the start of s are printable ASCII and neither a nor b: nearly always all. */
uint32_t acc_plain_run(struct acc_str s, char a, char b);

/* --- formats that write a row as soon as it is there --- */
typedef void acc_row_fn(FILE *out, const struct acc_str *cell, size_t n);
struct acc_delim {
	ACC_FORMAT_STATE;
	acc_row_fn *row;
	struct acc_cells cells;
	bool titled;
};
int acc_delim_begin(struct acc_delim *d, acc_row_fn *row, struct acc_err *e);
int acc_delim_record(void *state, const struct acc_rec *r, struct acc_err *e);
void acc_delim_release(void *state);

/* --- tables for people: short numbers, no empty columns, findings as sentences --- */
struct acc_style { /* as markup; NULL: in columns, for a terminal */
	acc_row_fn *row;
	void (*after_titles)(FILE *out, size_t n);
	void (*text)(FILE *out, struct acc_str s);
};
struct acc_table {
	ACC_FORMAT_STATE;
	const struct acc_style *style;
	struct acc_cells cells;
	struct acc_arena held_mem;
	struct acc_str *held; /* HOLD rows of cells.n cells */
	size_t nheld;
	struct acc_str *packed; /* room for a row */
	size_t *width;          /* NULL until the first rows are printed */
	size_t *need;           /* what each column would take */
	struct acc_str *place;  /* of a column left out: what all rows have there; else p is NULL */
	bool *shown;            /* step or rank, once it varied */
	bool colored[2];        /* rows: red, yellow; since the legend */
	bool blocks;            /* the terminal is too narrow for a table */
	uint64_t rows;          /* sentences and blocks written */
	uint64_t carried;       /* curves that nobody judges, and that are not shown */
	struct acc_coverage cover[2]; /* what accaudit said of each side, or of the only one */
	bool judged;                  /* findings say what is to be said */
};
int acc_table_begin(struct acc_table *t, const struct acc_style *style, struct acc_err *e);
int acc_table_record(void *state, const struct acc_rec *r, struct acc_err *e);
int acc_table_end(void *state, int status, struct acc_err *e);
void acc_table_release(void *state);

#endif
