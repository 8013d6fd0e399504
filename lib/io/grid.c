#include "io/grid.h"

#include <math.h>

/* Only added to: streams have the numbers. */
static const enum acc_dtype types[] = {ACC_F32, ACC_F16, ACC_BF16, ACC_F64, ACC_F8E4M3, ACC_F8E5M2,
	ACC_F8E4M3FNUZ, ACC_F8E5M2FNUZ, ACC_F4E2M1, ACC_F8E8M0, ACC_U8};
enum { NTYPES = sizeof types / sizeof *types };

_Static_assert(sizeof(double) == sizeof(int64_t), "a grid is so many integers");

enum acc_dtype
acc_grid_type(int64_t number)
{
	return number >= 0 && number < NTYPES ? types[number] : ACC_NODTYPE;
}

int64_t
acc_grid_type_of(enum acc_dtype t)
{
	for (int64_t i = 0; i < NTYPES; i++)
		if (types[i] == t)
			return i;
	return -1;
}

static bool
begins(struct acc_str s, const char *name)
{
	return s.n >= strlen(name) && memcmp(s.p, name, strlen(name)) == 0;
}

bool
acc_grid_named(struct acc_str raw)
{
	return begins(raw, "GPTQ") || begins(raw, "AWQ") || begins(raw, "compressed-tensors") ||
	       begins(raw, "FP8 in blocks") || begins(raw, "bitsandbytes") ||
	       begins(raw, "torchao");
}

bool
acc_grid_carries(struct acc_str raw)
{
	return begins(raw, "GPTQ") || begins(raw, "compressed-tensors integers");
}

static bool
is_part(const struct acc_parts *p, int64_t part)
{
	return part >= 0 && part < (int64_t)p->n;
}

/* Has the part so many bytes at least, (rows - 1) * pitch + cols of this size? All of them are below 2^31. */
static bool
holds(const struct acc_parts *p, int64_t part, int64_t rows, int64_t pitch, int64_t cols,
	int64_t size)
{
	int64_t n;
	return is_part(p, part) && pitch >= 0 && pitch <= ACC_GRID_MOST &&
	       !__builtin_mul_overflow((rows - 1) * pitch + cols, size, &n) && n <= p->len[part];
}

/* Are codes for so many rows and columns there? */
static bool
is_packed(const struct acc_parts *p, const struct acc_grid_codes *c, int64_t rows, int64_t cols)
{
	const bool ordered = c->order == ACC_CODES_LOW ||
			     (c->order == ACC_CODES_AWQ && c->bits == 4 && c->unit == 32 &&
				     c->along == 0) ||
			     (c->order == ACC_CODES_HIGH && c->bits == 4 && c->unit == 8 &&
				     c->along == 0);
	if (c->bits < 1 || c->bits > 8 || (c->unit != 8 && c->unit != 32) || c->bits > c->unit ||
		(c->along != 0 && c->along != 1) || !ordered || (c->unit == 8 && 8 % c->bits != 0))
		return false;
	const int64_t n = ((c->along ? rows : cols) * c->bits + c->unit - 1) / c->unit;
	return holds(p, c->part, c->along ? n : rows, c->pitch, c->along ? cols : n, c->unit / 8);
}

/* How many groups an axis has. */
static int64_t
groups(int64_t n, int64_t group)
{
	return (n - 1) / group + 1;
}

int
acc_grid_read(const struct acc_parts *p, struct acc_grid *g, uint64_t *count, struct acc_err *e)
{
	if (p->nrows != ACC_GRID_N || p->rows == NULL)
		return acc_fail(e, ACC_EFORMAT, "field 'part.rows' is no grid");
	memcpy(g, p->rows, sizeof *g);
	if (g->rows < 0 || g->rows > ACC_GRID_MOST || g->cols < 0 || g->cols > ACC_GRID_MOST)
		return acc_fail(e, ACC_EFORMAT, "an impossible shape of a grid");
	*count = (uint64_t)(g->rows * g->cols);
	if (*count == 0)
		return 0;
	bool good = g->row_group > 0 && g->col_group > 0 && g->kind >= 0 &&
		    g->kind < ACC_CODE_FLOAT + NTYPES && g->add >= -65536 && g->add <= 65536 &&
		    acc_grid_type(g->scale_type) != ACC_NODTYPE &&
		    is_packed(p, &g->code, g->rows, g->cols);
	const enum acc_dtype code = g->kind < ACC_CODE_FLOAT
					    ? ACC_U8
					    : acc_grid_type(g->kind - ACC_CODE_FLOAT);
	if (!good || acc_dtype_of(code)->size > 1 ||
		(g->kind >= ACC_CODE_FLOAT && g->code.bits != (code == ACC_F4E2M1 ? 4 : 8)))
		return acc_fail(e, ACC_EFORMAT, "codes that are not as its grid says");
	/* With an index, how many groups its axis has is what it says; each is looked at when it is used. */
	int64_t gr = groups(g->rows, g->row_group), gc = groups(g->cols, g->col_group);
	if (g->index >= 0) {
		const int64_t n = g->index_rows ? g->rows : g->cols;
		good = n <= ACC_GRID_INDEX && holds(p, g->index, 1, 0, n, 4);
		*(g->index_rows ? &gr : &gc) = 1;
	}
	const int64_t size = acc_dtype_of(acc_grid_type(g->scale_type))->size;
	if (g->tiled != 0)
		good = good && g->tiled == 1 && size == 1 && g->index < 0 && g->zero.part < 0 &&
		       g->inner_table < 0 && g->col_group >= 16 &&
		       g->scale_pitch == groups(gc, ACC_TILE_COLS) &&
		       holds(p, g->scale, groups(gr, ACC_TILE_ROWS), ACC_TILE * g->scale_pitch,
			       ACC_TILE * g->scale_pitch, 1);
	else
		good = good && holds(p, g->scale, gr, g->scale_pitch, gc, size);
	if (g->zero.part >= 0)
		good = good && is_packed(p, &g->zero, gr, gc);
	if (g->kind == ACC_CODE_TABLE)
		good = good && holds(p, g->table, 1, 0, 1 << g->code.bits, 4);
	if (g->divisor >= 0)
		good = good && holds(p, g->divisor, 1, 0, 1, 4);
	if (g->inner_table >= 0)
		good = good && g->inner_group > 0 && g->scale_type == acc_grid_type_of(ACC_U8) &&
		       holds(p, g->inner_table, 1, 0, 256, 4) &&
		       holds(p, g->inner_scale, 1, 0,
			       groups((gr - 1) * g->scale_pitch + gc, g->inner_group), 4);
	return good ? 0
		    : acc_fail(e, ACC_EFORMAT,
			      "scales or zero points that are not as its grid says");
}

void
acc_grid_gaps(struct acc_grid_values *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		float below = INFINITY, above = INFINITY;
		for (uint32_t k = 0; k < n; k++) {
			const float d = v->value[k] - v->value[i];
			above = d > 0 && d < above ? d : above;
			below = d < 0 && -d < below ? -d : below;
		}
		const float gap = isinf(below)                    ? above
				  : isinf(above) || below > above ? below
								  : above;
		v->gap[i] = isfinite(gap) ? gap : 0;
	}
}

void
acc_codes_unpack(const struct acc_grid_codes *c, const uint8_t *bytes, uint64_t from, int64_t col,
	size_t n, uint32_t *out)
{
	/* In which nibble of a word of eight AWQ has each of its elements. */
	static const uint8_t awq[8] = {0, 4, 1, 5, 2, 6, 3, 7};
	const uint32_t mask = (1u << c->bits) - 1;
	for (size_t i = 0; i < n; i++) {
		const uint64_t x = (uint64_t)col + i;
		uint64_t bit = x * (uint64_t)c->bits - from * (uint64_t)c->unit;
		if (c->order == ACC_CODES_AWQ)
			bit = (x / 8 * 32 + 4u * awq[x % 8]) - from * 32;
		else if (c->order == ACC_CODES_HIGH)
			bit ^= 4;
		uint32_t v = bytes[bit / 8];
		if (bit % 8 + (uint64_t)c->bits > 8)
			v |= (uint32_t)bytes[bit / 8 + 1] << 8;
		out[i] = v >> bit % 8 & mask;
	}
}
