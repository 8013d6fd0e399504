#include "io/lora.h"

static bool
holds(const struct acc_parts *p, const struct acc_lora_matrix *m, int64_t n)
{
	const enum acc_dtype t = acc_grid_type(m->type);
	return m->part >= 0 && m->part < (int64_t)p->n && acc_dtype_of(t)->cls == 'F' &&
	       n <= p->len[m->part] / acc_dtype_of(t)->size;
}

int
acc_lora_read(const struct acc_parts *p, struct acc_lora *l, uint64_t *count, struct acc_err *e)
{
	if (p->nrows != ACC_LORA_N || p->rows == NULL)
		return acc_fail(e, ACC_EFORMAT, "field 'part.rows' is no adapter");
	memcpy(l, p->rows, sizeof *l);
	if (l->rows < 0 || l->rows > ACC_GRID_MOST || l->cols < 0 || l->cols > ACC_GRID_MOST ||
		l->rank < 0 || l->rank > ACC_GRID_MOST || l->rows * l->rank > ACC_LORA_MOST ||
		l->cols * l->rank > ACC_LORA_MOST || !holds(p, &l->base, l->rows * l->cols) ||
		!holds(p, &l->left, l->rows * l->rank) || !holds(p, &l->right, l->rank * l->cols) ||
		l->base.turned != 0)
		return acc_fail(e, ACC_EFORMAT,
			"matrices of an adapter that do not fit its weight");
	*count = (uint64_t)(l->rows * l->cols);
	return 0;
}
