/* compared.h - rows of msprobe's compare table: pairs that were measured elsewhere
 *
 *	compare_result_*.csv, .xlsx       a column a figure, a row an argument of an op call
 *	compare_*.vis.db                  the same figures under the same names, in JSON
 */
#ifndef DUMP_COMPARED_H
#define DUMP_COMPARED_H

#include "acc/dump.h"

enum compared_mode { COMPARED_TENSOR, COMPARED_STATISTICS, COMPARED_MD5 };

/* What a row has, a text each; p is NULL where the table has no such column. */
enum compared_cell {
	CELL_NAME, /* of both sides, as the next: the device's is the first */
	CELL_DTYPE = 2,
	CELL_SHAPE = 4,
	CELL_GRAD = 6,
	CELL_MAX = 8,
	CELL_MIN = 10,
	CELL_MEAN = 12,
	CELL_NORM = 14,
	CELL_MD5 = 16,
	CELL_METRIC = 18, /* and CELL_NMETRIC of them, as acc_compared_column counts */
	CELL_NMETRIC = 14,
	CELL_RESULT = CELL_METRIC + CELL_NMETRIC,
	CELL_WHY,
	CELL_STACK,
	CELL_DATA,
	CELL_N
};

/* Which of them has this title; -1: none. In a table of statistics MaxRelativeErr is of the maximum. */
int acc_compared_column(struct acc_str title, enum compared_mode mode);
/* Does the row name a tensor of this side? */
bool acc_compared_has(const struct acc_str *cell, int side);
/* The pair of a row, which one side has at least: `scope` may be empty, seq as the context counts. 0 or < 0. */
int acc_compared_put(struct acc_dump_ctx *c, const struct acc_str *cell, enum compared_mode mode,
	const struct acc_str *scope, struct acc_arena *m, struct acc_err *e);
/* One side's tensor alone (side 0 or 1 of the cells). */
int acc_compared_put_one(struct acc_dump_ctx *c, const struct acc_str *cell, int side,
	struct acc_str scope, struct acc_arena *m, struct acc_err *e);

#endif
