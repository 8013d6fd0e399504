/* torchao's tensors in few bits: qdata, scale and what else a subclass keeps, by the names of its attributes. Of
 * whole numbers, float8, and floats of 4 bits with scales for 16 or 32 of them (NVFP4, MX), these as they are or in the
 * tiles that products take. What lies in a kernel's own order is none of them, and stays apart as it is. */
#include "dump/weight/packed_impl.h"

#include <math.h>

static int64_t
blocks_of(int64_t n, int64_t size)
{
	return (n - 1) / size + 1;
}

static bool
is_pair(enum acc_dtype t)
{
	return t == ACC_U8 || t == ACC_F4E2M1X2;
}

/* Scales in tiles: of how many columns is a group, 32 of MX, 16 of NVFP4? 0: they are not. */
static int64_t
tiled(const struct acc_st_tensor *q, const struct acc_st_tensor *s, int64_t cols)
{
	const int64_t group = s->dtype == ACC_F8E8M0 ? 32 : 16;
	if (acc_dtype_of(s->dtype)->size != 1 || q->ndim != 2 || s->ndim != 2)
		return 0;
	return s->shape[0] == blocks_of(q->shape[0], ACC_TILE_ROWS) * 32 &&
			       s->shape[1] == blocks_of(cols, group * ACC_TILE_COLS) * 16
		       ? group
		       : 0;
}

bool
acc_packed_ao(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	struct packed_tensor *head)
{
	struct packed_tensor s, z;
	if (!acc_packed_find(p, stem, acc_packed_word(kind, 0), head) ||
		!acc_packed_find(p, stem, acc_packed_word(kind, 1), &s))
		return false;
	const struct acc_st_tensor *q = head->t;
	const uint32_t last = q->ndim - 1;
	if (q->ndim < 2 || acc_grid_type_of(s.t->dtype) < 0 ||
		(acc_packed_find(p, stem, acc_packed_word(kind, 2), &z) &&
			(z.t->dtype != ACC_I8 || q->dtype != ACC_I8)))
		return false;
	if (is_pair(q->dtype) && s.t->dtype != ACC_F8E4M3 && s.t->dtype != ACC_F8E8M0)
		return false;
	if (!is_pair(q->dtype) && q->dtype != ACC_I8 && q->dtype != ACC_F8E4M3 &&
		q->dtype != ACC_F8E5M2)
		return false;
	const int64_t cols = q->shape[last] * (is_pair(q->dtype) ? 2 : 1);
	bool same = s.t->ndim <= 1 || (s.t->ndim == q->ndim && cols > 0);
	for (uint32_t i = 0; i < last && same && s.t->ndim > 1; i++)
		same = s.t->shape[i] == q->shape[i] || s.t->shape[i] == 1;
	return (same &&
		       (s.t->ndim < 2 || (s.t->shape[last] > 0 && cols % s.t->shape[last] == 0))) ||
	       (cols > 0 && q->shape[0] > 0 && tiled(q, s.t, cols) > 0);
}

int
acc_packed_ao_grid(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct acc_grid *g, struct packed_weight *w)
{
	struct packed_tensor s, x;
	const struct acc_st_tensor *q = head->t;
	const bool pair = is_pair(q->dtype);
	const int64_t units = q->shape[q->ndim - 1];
	if (units < 1 || units > ACC_GRID_MOST / 2)
		return acc_fail(&w->bad, ACC_EFORMAT, "an impossible shape of its qdata");
	acc_packed_shape(w, g, q, pair ? units * 2 : units);
	g->code = (struct acc_grid_codes){acc_packed_add(p, w, head), pair ? 4 : 8, 8, 0, units,
		ACC_CODES_LOW};
	g->kind = q->dtype == ACC_I8
			  ? (int64_t)ACC_CODE_SIGNED
			  : ACC_CODE_FLOAT + acc_grid_type_of(pair ? ACC_F4E2M1 : q->dtype);
	g->scale = acc_packed_part(p, w, stem, acc_packed_word(kind, 1), &s);
	const int64_t group = tiled(q, s.t, g->cols);
	int rc = 0;
	if (group > 0) {
		g->tiled = 1;
		g->row_group = 1;
		g->col_group = group;
		g->scale_type = acc_grid_type_of(s.t->dtype);
		g->scale_pitch = blocks_of(g->cols, group * ACC_TILE_COLS);
	} else {
		rc = acc_packed_scaled(p, &s, g, w);
	}
	if (rc == 0 && acc_packed_find(p, stem, acc_packed_word(kind, 2), &x))
		g->zero = (struct acc_grid_codes){acc_packed_add(p, w, &x), 8, 8, 0, g->scale_pitch,
			ACC_CODES_LOW};
	if (rc == 0 && acc_packed_find(p, stem, acc_packed_word(kind, 3), &x)) {
		float by = 0;
		rc = acc_packed_bytes(p, &x, &by, sizeof by, &w->bad);
		g->factor = by;
		if (rc == 0 && (x.t->dtype != ACC_F32 || !isfinite(by)))
			rc = acc_fail(&w->bad, ACC_EFORMAT, "a per_tensor_scale that is none");
	}
	return rc;
}
