/* Fields by their keys, for who looks at the same ones of many records. */
#include "acc/record.h"

#include <stdlib.h>

enum { ABSENT = UINT16_MAX, MOST_SHAPES = 4096 };

struct acc_pick_shape {
	uint32_t n; /* fields of such a record */
	uint16_t *at;
};

static void
locate(const struct acc_pick *w, const struct acc_rec *r, uint16_t *at)
{
	for (uint32_t k = 0; k < w->n; k++)
		at[k] = ABSENT;
	for (uint32_t i = r->n; i-- > 0;)
		for (uint32_t k = 0; k < w->n; k++)
			if (acc_str_eq(r->f[i].key, w->key[k]))
				at[k] = (uint16_t)i;
}

/* Where the fields stand in this record, and in all of its shape. */
static const uint16_t *
places(struct acc_pick *w, const struct acc_rec *r)
{
	uint32_t i = r->shape == 0 ? ACC_NOID : acc_ids_get(&w->by_shape, r->shape);
	if (i != ACC_NOID && w->shape[i].n == r->n)
		return w->shape[i].at;
	if (w->other == NULL && (w->other = malloc(w->n * sizeof *w->other)) == NULL)
		return NULL;
	locate(w, r, w->other);
	if (r->shape == 0 || i != ACC_NOID || w->nshape == MOST_SHAPES)
		return w->other;
	struct acc_pick_shape *s = acc_grow(w->shape, &w->cap_shape, (size_t)w->nshape + 1,
		sizeof *s, NULL);
	if (s == NULL)
		return NULL;
	w->shape = s;
	if (acc_ids_put(&w->by_shape, r->shape, w->nshape, false, NULL) < 0)
		return NULL;
	s[w->nshape++] = (struct acc_pick_shape){r->n, w->other};
	w->other = NULL;
	return s[w->nshape - 1].at;
}

int
acc_pick_get(struct acc_pick *w, const struct acc_rec *r, const struct acc_val **v)
{
	const uint16_t *at = places(w, r);
	if (at == NULL)
		return ACC_ENOMEM;
	for (uint32_t k = 0; k < w->n; k++)
		v[k] = at[k] == ABSENT ? NULL : &r->f[at[k]].v;
	return 0;
}

void
acc_pick_release(struct acc_pick *w)
{
	for (uint32_t i = 0; i < w->nshape; i++)
		free(w->shape[i].at);
	free(w->shape);
	free(w->other);
	acc_ids_release(&w->by_shape);
	w->shape = NULL;
	w->other = NULL;
	w->nshape = 0;
}
