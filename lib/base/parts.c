#include "acc/tensor.h"

static int
wrong(struct acc_err *e)
{
	return acc_fail(e, ACC_EFORMAT, "field 'part.rows' does not say what its parts are");
}

/* Do the rows of a piece lie within its part? */
static bool
is_within(const struct acc_parts *p, uint64_t size, const int64_t *piece, int64_t rows)
{
	int64_t reach, end;
	return piece[0] >= 0 && piece[0] < (int64_t)p->n && piece[1] >= 0 && piece[2] > 0 &&
	       piece[3] >= 0 && !__builtin_mul_overflow(rows - 1, piece[3], &reach) &&
	       !__builtin_add_overflow(reach, piece[1], &end) &&
	       !__builtin_add_overflow(end, piece[2], &end) &&
	       (uint64_t)end <= (uint64_t)p->len[piece[0]] / size;
}

int
acc_parts_count(const struct acc_parts *p, uint64_t size, uint64_t *count, struct acc_err *e)
{
	int64_t all = 0;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->off[i] < 0 || p->len[i] < 0 || p->fsize[i] < 0 ||
			p->len[i] > INT64_MAX - p->off[i] ||
			(p->crc32 != NULL && p->crc32[i] > UINT32_MAX))
			return acc_fail(e, ACC_EFORMAT, "impossible place of a part");
	for (uint32_t i = 0; i < p->nrows;) {
		if (p->nrows - i < ACC_BAND)
			return wrong(e);
		const int64_t rows = p->rows[i], n = p->rows[i + 1];
		int64_t row = 0;
		i += ACC_BAND;
		if (rows <= 0 || n <= 0 || n > (int64_t)(p->nrows - i) / ACC_PIECE)
			return wrong(e);
		for (int64_t k = 0; k < n; k++, i += ACC_PIECE)
			if (!is_within(p, size, p->rows + i, rows) ||
				__builtin_add_overflow(row, p->rows[i + 2], &row))
				return wrong(e);
		if (__builtin_mul_overflow(row, rows, &row) ||
			__builtin_add_overflow(all, row, &all))
			return wrong(e);
	}
	if (all > INT64_MAX / (int64_t)size)
		return wrong(e);
	*count = (uint64_t)all;
	return 0;
}

static int
copy(struct acc_arena *m, const int64_t **v, uint32_t n)
{
	if (*v == NULL || n == 0)
		return 0;
	int64_t *to = acc_alloc(m, n * sizeof *to);
	if (to == NULL)
		return ACC_ENOMEM;
	memcpy(to, *v, n * sizeof *to);
	*v = to;
	return 0;
}

static int
copy_texts(struct acc_arena *m, const struct acc_str **v, uint32_t n)
{
	struct acc_str *to = acc_alloc(m, n * sizeof *to);
	if (to == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		to[i] = acc_arena_str(m, (*v)[i]);
		if (to[i].p == NULL)
			return ACC_ENOMEM;
	}
	*v = to;
	return 0;
}

int
acc_parts_copy(struct acc_arena *m, struct acc_parts *p)
{
	if (p->n == 0)
		return 0;
	const int64_t **numbers[] = {&p->off, &p->len, &p->crc32, &p->fsize, &p->mtime};
	int rc = copy_texts(m, &p->src, p->n);
	rc = rc < 0 ? rc : copy_texts(m, &p->file, p->n);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers && rc == 0; i++)
		rc = copy(m, numbers[i], p->n);
	return rc < 0 ? rc : copy(m, &p->rows, p->nrows);
}

static bool
same(const int64_t *a, const int64_t *b, uint32_t n)
{
	return a == NULL || b == NULL ? a == b : memcmp(a, b, n * sizeof *a) == 0;
}

bool
acc_parts_eq(const struct acc_parts *a, const struct acc_parts *b)
{
	const uint32_t n = a->n;
	if (n != b->n || a->nrows != b->nrows)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!acc_str_eq(a->src[i], b->src[i]) || !acc_str_eq(a->file[i], b->file[i]))
			return false;
	return same(a->off, b->off, n) && same(a->len, b->len, n) && same(a->crc32, b->crc32, n) &&
	       same(a->fsize, b->fsize, n) && same(a->mtime, b->mtime, n) &&
	       same(a->rows, b->rows, a->nrows);
}
