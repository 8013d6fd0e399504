/* Weights of few bits in a grid, decoded as they are read, see io/grid.h; and a base to which the product of two thin
 * matrices is added, as LoRA has it. */
#include "payload/pay.h"

#include <math.h>
#include <stdlib.h>

#include "io/grid.h"

enum { TOGETHER = 1024 };

struct acc_gridded {
	struct acc_parted *parts;
	struct acc_grid g;
	uint64_t count;
	bool reach;
	double factor; /* with the divisor */
	enum acc_dtype scale_type;
	struct acc_grid_values of, inner; /* of codes; of scales that are codes */
	int32_t *index;
};

/* --- opening --- */

static int
take(struct acc_gridded *x, int64_t part, void *out, uint64_t n, struct acc_err *e)
{
	return acc_parted_bytes(x->parts, (uint32_t)part, 0, n, out, e);
}

static int
take_table(struct acc_gridded *x, int64_t part, uint32_t n, struct acc_grid_values *v,
	struct acc_err *e)
{
	int rc = take(x, part, v->value, n * sizeof *v->value, e);
	if (rc == 0)
		acc_grid_gaps(v, n);
	return rc;
}

static int
take_index(struct acc_gridded *x, struct acc_err *e)
{
	const struct acc_grid *g = &x->g;
	const uint64_t n = (uint64_t)(g->index_rows ? g->rows : g->cols);
	x->index = malloc(n * sizeof *x->index);
	return x->index == NULL ? acc_nomem(e)
				: take(x, g->index, x->index, n * sizeof *x->index, e);
}

static int
prepare(struct acc_gridded *x, struct acc_err *e)
{
	const struct acc_grid *g = &x->g;
	int rc = 0;
	x->scale_type = acc_grid_type(g->scale_type);
	x->factor = g->factor;
	if (g->kind >= ACC_CODE_FLOAT) {
		const enum acc_dtype t = acc_grid_type(g->kind - ACC_CODE_FLOAT);
		const uint32_t n = 1u << g->code.bits;
		for (uint32_t i = 0; i < n; i++)
			x->of.value[i] = (float)acc_load_f64(t, &(const uint8_t){(uint8_t)i});
		acc_grid_gaps(&x->of, n);
	}
	if (g->kind == ACC_CODE_TABLE)
		rc = take_table(x, g->table, 1u << g->code.bits, &x->of, e);
	if (rc == 0 && g->inner_table >= 0)
		rc = take_table(x, g->inner_table, 256, &x->inner, e);
	if (rc == 0 && g->divisor >= 0) {
		float by;
		rc = take(x, g->divisor, &by, sizeof by, e);
		x->factor /= rc == 0 ? by : 1;
	}
	return rc == 0 && g->index >= 0 ? take_index(x, e) : rc;
}

void
acc_gridded_close(struct acc_gridded *x)
{
	if (x == NULL)
		return;
	acc_parted_close(x->parts);
	free(x->index);
	free(x);
}

struct acc_gridded *
acc_gridded_open(struct acc_roots *r, const struct acc_ref *ref, struct acc_err *e)
{
	struct acc_gridded *x = calloc(1, sizeof *x);
	int rc = x == NULL ? acc_nomem(e) : acc_grid_read(&ref->parts, &x->g, &x->count, e);
	if (rc == 0 && (ref->dtype != ACC_F32 || ref->len != x->count * sizeof(float)))
		rc = acc_fail(e, ACC_EFORMAT, "another grid than its shape needs");
	if (rc == 0 && (x->parts = acc_parted_open_bytes(r, ref, e)) == NULL)
		rc = ACC_EIO;
	if (rc == 0) {
		x->reach = ref->reach;
		rc = x->count > 0 ? prepare(x, e) : 0;
	}
	if (rc < 0) {
		acc_gridded_close(x);
		return NULL;
	}
	return x;
}

/* --- reading --- */

/* n codes of a row from a column on. */
static int
codes(const struct acc_gridded *x, const struct acc_grid_codes *c, int64_t row, int64_t col,
	size_t n, uint32_t *out, struct acc_err *e)
{
	uint8_t bytes[TOGETHER * 8 + 8] = {0};
	const uint64_t unit = (uint64_t)c->unit / 8;
	if (!c->along) {
		const uint64_t from = (uint64_t)(col * c->bits / c->unit),
			       to = (uint64_t)(((col + (int64_t)n) * c->bits + c->unit - 1) /
					       c->unit);
		/* AWQ's order is within a word. */
		int rc = acc_parted_bytes(x->parts, (uint32_t)c->part,
			((uint64_t)(row * c->pitch) + from) * unit, (to - from) * unit, bytes, e);
		if (rc == 0)
			acc_codes_unpack(c, bytes, from, col, n, out);
		return rc;
	}
	const int64_t bit = row * c->bits, shift = bit % c->unit;
	uint64_t at = (uint64_t)(bit / c->unit * c->pitch + col) * unit;
	const bool two = shift + c->bits > c->unit;
	uint8_t *const next = bytes + n * unit;
	int rc = acc_parted_bytes(x->parts, (uint32_t)c->part, at, n * unit, bytes, e);
	at += (uint64_t)c->pitch * unit;
	if (rc == 0 && two)
		rc = acc_parted_bytes(x->parts, (uint32_t)c->part, at, n * unit, next, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		uint64_t v = 0;
		for (uint64_t k = 0; k < unit; k++)
			v |= (uint64_t)bytes[i * unit + k] << 8 * k |
			     (two ? (uint64_t)next[i * unit + k] << (8 * k + (uint64_t)c->unit)
				  : 0);
		out[i] = (uint32_t)(v >> shift) & ((1u << c->bits) - 1);
	}
	return rc;
}

/* A scale, and by how much its own rounding may have moved it. */
struct scale {
	double value, off;
};

static struct scale
plain_scale(const struct acc_gridded *x, const uint8_t *raw)
{
	const double v = acc_load_f64(x->scale_type, raw);
	return (struct scale){v, 0.5 * acc_dtype_of(x->scale_type)->eps * fabs(v)};
}

/* The same of scales in tiles, of which a row has four bytes in each. */
static int
tiled_scales(const struct acc_gridded *x, int64_t row, int64_t col, size_t n, struct scale *out,
	struct acc_err *e)
{
	/* A group has 16 columns at least. */
	uint8_t raw[(TOGETHER / 16 / ACC_TILE_COLS + 2) * ACC_TILE];
	const uint64_t in = (uint64_t)(row % 32 * 16 + row % ACC_TILE_ROWS / 32 * ACC_TILE_COLS),
		       first = (uint64_t)col / ACC_TILE_COLS,
		       last = ((uint64_t)col + n - 1) / ACC_TILE_COLS;
	int rc = acc_parted_bytes(x->parts, (uint32_t)x->g.scale,
		((uint64_t)(row / ACC_TILE_ROWS * x->g.scale_pitch) + first) * ACC_TILE + in,
		(last - first) * ACC_TILE + ACC_TILE_COLS, raw, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		const uint64_t at = (uint64_t)col + i;
		out[i] = plain_scale(x,
			raw + (at / ACC_TILE_COLS - first) * ACC_TILE + at % ACC_TILE_COLS);
	}
	return rc;
}

/* Scales of a row of groups from a column of these on. */
static int
scales(const struct acc_gridded *x, int64_t row, int64_t col, size_t n, struct scale *out,
	struct acc_err *e)
{
	const struct acc_grid *g = &x->g;
	const uint64_t size = acc_dtype_of(x->scale_type)->size,
		       at = (uint64_t)(row * g->scale_pitch + col);
	uint8_t raw[TOGETHER * 8];
	float inner[TOGETHER];
	uint64_t first = 0;
	if (g->tiled != 0)
		return tiled_scales(x, row, col, n, out, e);
	int rc = acc_parted_bytes(x->parts, (uint32_t)g->scale, at * size, n * size, raw, e);
	if (rc == 0 && g->inner_table >= 0) {
		first = at / (uint64_t)g->inner_group;
		const uint64_t last = (at + n - 1) / (uint64_t)g->inner_group;
		rc = acc_parted_bytes(x->parts, (uint32_t)g->inner_scale, first * sizeof *inner,
			(last - first + 1) * sizeof *inner, inner, e);
	}
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (g->inner_table >= 0) {
			const float by = inner[(at + i) / (uint64_t)g->inner_group - first];
			out[i].value = (double)x->inner.value[raw[i]] * by + g->inner_offset;
			out[i].off = 0.5 * x->inner.gap[raw[i]] * fabs((double)by);
		} else {
			out[i] = plain_scale(x, raw + i * size);
		}
	}
	return rc;
}

/* Of which group an element of an axis is. */
static int
group_of(const struct acc_gridded *x, bool rows, int64_t i, int64_t *out, struct acc_err *e)
{
	const struct acc_grid *g = &x->g;
	*out = i / (rows ? g->row_group : g->col_group);
	if (x->index == NULL || (g->index_rows != 0) != rows)
		return 0;
	const int64_t size = acc_dtype_of(x->scale_type)->size;
	*out = x->index[i];
	/* Rows of scales, or one of them: as many as there are. */
	const int64_t most = x->parts == NULL
				     ? 0
				     : acc_parted_size(x->parts, (uint32_t)g->scale) / size;
	if (*out < 0 || *out >= (rows && g->scale_pitch > 0 ? most / g->scale_pitch : most))
		return acc_fail(e, ACC_EFORMAT, "its index names a group that it does not have");
	return 0;
}

struct row {
	uint32_t code[TOGETHER];
	struct scale scale[TOGETHER]; /* of groups from `first` on */
	uint32_t zero[TOGETHER];
	int64_t group[TOGETHER], first;
};

/* The scales and zero points of those groups that n columns are in. */
static int
fill(const struct acc_gridded *x, int64_t row, int64_t col, size_t n, struct row *w,
	struct acc_err *e)
{
	const struct acc_grid *g = &x->g;
	int64_t gr, last = 0;
	int rc = group_of(x, true, row, &gr, e);
	w->first = INT64_MAX;
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = group_of(x, false, col + (int64_t)i, &w->group[i], e);
		w->first = w->group[i] < w->first ? w->group[i] : w->first;
		last = w->group[i] > last ? w->group[i] : last;
	}
	if (rc < 0)
		return rc;
	if (last - w->first >= TOGETHER)
		return acc_fail(e, ACC_EUNSUP, "an index whose groups lie more than %d apart",
			TOGETHER);
	const size_t k = (size_t)(last - w->first) + 1;
	rc = scales(x, gr, w->first, k, w->scale, e);
	if (rc == 0 && g->zero.part >= 0)
		rc = codes(x, &g->zero, gr, w->first, k, w->zero, e);
	return rc == 0 ? codes(x, &g->code, row, col, n, w->code, e) : rc;
}

static void
decode(const struct acc_gridded *x, const struct row *w, size_t n, float *out)
{
	const struct acc_grid *g = &x->g;
	const uint32_t sign = 1u << (g->code.bits - 1);
	for (size_t i = 0; i < n; i++) {
		const int64_t k = w->group[i] - w->first;
		const struct scale s = w->scale[k];
		double zero = (double)g->add, v, gap = 1;
		if (g->zero.part >= 0) {
			const uint32_t zsign = 1u << (g->zero.bits - 1);
			const uint32_t z = w->zero[k];
			zero += g->kind == ACC_CODE_SIGNED ? (double)(z ^ zsign) - zsign : z;
			/* What was one less than 0 is that of all bits. */
			if (g->kind == ACC_CODE_UNSIGNED && g->add > 0)
				zero = (double)((z + (uint32_t)g->add) & (zsign * 2 - 1));
		}
		if (g->kind == ACC_CODE_SIGNED) {
			v = (double)(w->code[i] ^ sign) - sign;
		} else if (g->kind == ACC_CODE_UNSIGNED) {
			v = w->code[i];
		} else {
			v = x->of.value[w->code[i]];
			gap = x->of.gap[w->code[i]];
		}
		v -= zero;
		/* AWQ cuts a group to half of its range at most (max_shrink of _compute_best_clip): what is at an end,
		 * or next to it where the zero point is rounded, may have been twice as far out. */
		if (g->code.order == ACC_CODES_AWQ &&
			(w->code[i] <= 1 || w->code[i] >= 2 * sign - 2))
			gap += fabs(v);
		out[i] = (float)(x->reach
					 ? (gap * fabs(s.value) + fabs(v) * s.off) * fabs(x->factor)
					 : v * s.value * x->factor);
	}
}

int
acc_gridded_read(const struct acc_gridded *x, uint64_t first, size_t n, float *out,
	struct acc_err *e)
{
	const uint64_t cols = (uint64_t)x->g.cols;
	struct row w;
	if (first > x->count || n > x->count - first)
		return acc_fail(e, ACC_EFORMAT, "elements that the grid does not have");
	while (n > 0) {
		const uint64_t row = first / cols, col = first % cols;
		size_t k = cols - col < n ? (size_t)(cols - col) : n;
		k = k < TOGETHER ? k : TOGETHER;
		int rc = fill(x, (int64_t)row, (int64_t)col, k, &w, e);
		if (rc < 0)
			return rc;
		decode(x, &w, k, out);
		out += k;
		first += k;
		n -= k;
	}
	return acc_parted_unchanged(x->parts, e);
}
