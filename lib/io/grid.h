/* grid.h - weights of few bits each, of which groups share a scale and a zero point that lie in tensors of their own
 *
 * As GPTQ, AWQ, compressed-tensors, bitsandbytes and models in FP8 have them:
 *	value = (code - zero) * scale * factor
 * A grid says which tensor of a reference's parts holds what, and how codes are packed there. It travels in a stream,
 * as the numbers of part.rows, so that nothing in it is believed.
 */
#ifndef ACC_IO_GRID_H
#define ACC_IO_GRID_H

#include "acc/tensor.h"

/* Codes of `bits` in units of 8 or 32 bits (little endian), as they follow each other along one axis of the grid.
 * A row has `pitch` units; where they are packed along the rows, a row of units is that of several rows. */
struct acc_grid_codes {
	int64_t part; /* -1: there are none */
	int64_t bits, unit;
	int64_t along; /* 0: the columns of a row; 1: the rows of a column */
	int64_t pitch;
	int64_t order; /* of ACC_CODES_* */
};
enum {
	ACC_CODES_LOW,
	ACC_CODES_AWQ,
	ACC_CODES_HIGH
}; /* which bits come first: the low ones, ... */

/* What a code is: a number, one with a sign, a place in a table of f32, or a float of acc_grid_type. */
enum { ACC_CODE_UNSIGNED, ACC_CODE_SIGNED, ACC_CODE_TABLE, ACC_CODE_FLOAT };
enum { ACC_GRID_MOST = INT32_MAX, ACC_GRID_INDEX = 1 << 24 };
enum { ACC_TILE_ROWS = 128, ACC_TILE_COLS = 4, ACC_TILE = ACC_TILE_ROWS * ACC_TILE_COLS };

/* All of it, as so many int64_t. */
struct acc_grid {
	int64_t rows, cols;
	int64_t row_group, col_group;           /* of elements that share a scale */
	int64_t kind;                           /* ACC_CODE_FLOAT + a number of acc_grid_type */
	struct acc_grid_codes code, zero;       /* zero: of groups by groups */
	int64_t add;                            /* to each zero */
	int64_t scale, scale_type, scale_pitch; /* a part, of acc_grid_type; scales in a row */
	int64_t index, index_rows; /* a part of i32: of each column (row) its group; or -1 */
	int64_t table;             /* of ACC_CODE_TABLE */
	int64_t divisor;           /* a part: one f32; or -1 */
	/* Scales of 8 bits that are places in a table of 256, with a scale each `inner_group`, and an offset. */
	int64_t inner_table, inner_scale, inner_group; /* -1: none */
	double inner_offset, factor;
	/* Scales of a byte lie in tiles of 128 rows by 4 columns, as NVIDIA's products take them (cuBLAS, "1D block scaling
	 * factors layout"): scale_pitch of these side by side. */
	int64_t tiled;
};
enum { ACC_GRID_N = sizeof(struct acc_grid) / sizeof(int64_t) };

/* The types of scales and of codes that are floats, by their numbers; ACC_NODTYPE: there is none. */
enum acc_dtype acc_grid_type(int64_t number);
/* < 0: it has none. */
int64_t acc_grid_type_of(enum acc_dtype t);
/* Does dtype.raw say that a weight was one of these? */
bool acc_grid_named(struct acc_str raw);
/* And one whose quantizers make up for the rounding of a column in those behind it? */
bool acc_grid_carries(struct acc_str raw);
/* Is each part as long as it says? *count: its elements. 0 or ACC_EFORMAT. */
int acc_grid_read(const struct acc_parts *p, struct acc_grid *g, uint64_t *count,
	struct acc_err *e);
/* Values of the codes of a table or of floats, and how far apart those beside each are. */
struct acc_grid_values {
	float value[256], gap[256];
};
void acc_grid_gaps(struct acc_grid_values *v, uint32_t n);
/* n codes of a row from column `col` on, of the bytes from unit `from` of its row on: one behind the other. */
void acc_codes_unpack(const struct acc_grid_codes *c, const uint8_t *bytes, uint64_t from,
	int64_t col, size_t n, uint32_t *out);

#endif
