/* Fields by their keys, for who looks at the same ones of many records. */
#include "acc/record.h"

#include <stdlib.h>

enum { MOST_SHAPES = 4096 };

/* Which of the keys a record has, and in which field. */
struct acc_pick_place {
	uint16_t key, field;
};

struct acc_pick_shape {
	uint32_t n, nplace; /* fields of such a record; of w->key */
	struct acc_pick_place *place;
};

static uint32_t
locate(const struct acc_pick *w, const struct acc_rec *r, struct acc_pick_place *place)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < w->n; k++)
		for (uint32_t i = 0; i < r->n; i++)
			if (acc_key_says(r->f[i].key, w->key[k])) {
				place[n++] = (struct acc_pick_place){(uint16_t)k, (uint16_t)i};
				break;
			}
	return n;
}

/* Where the fields stand in this record, and in all of its shape; NULL when memory runs out. */
static const struct acc_pick_shape *
places(struct acc_pick *w, const struct acc_rec *r)
{
	uint32_t i = r->shape == 0 ? ACC_NOID : acc_ids_get(&w->by_shape, r->shape);
	if (i != ACC_NOID && w->shape[i].n == r->n)
		return &w->shape[i];
	const bool keep = r->shape != 0 && i == ACC_NOID && w->nshape < MOST_SHAPES;
	struct acc_pick_shape *s = acc_grow(w->shape, &w->cap_shape, (size_t)w->nshape + 1,
		sizeof *s, NULL);
	if (s == NULL)
		return NULL;
	w->shape = s;
	s += w->nshape; /* the one behind them is that of the last record without a shape */
	if (w->other == NULL && (w->other = malloc(w->n * sizeof *w->other)) == NULL)
		return NULL;
	*s = (struct acc_pick_shape){r->n, locate(w, r, w->other), w->other};
	if (!keep)
		return s;
	if (acc_ids_put(&w->by_shape, r->shape, w->nshape, false, NULL) < 0)
		return NULL;
	w->nshape++;
	w->other = NULL;
	return s;
}

int
acc_pick_get(struct acc_pick *w, const struct acc_rec *r, const struct acc_val **v)
{
	const struct acc_pick_shape *s = places(w, r);
	if (s == NULL)
		return ACC_ENOMEM;
	memset(v, 0, w->n * sizeof *v);
	for (uint32_t k = 0; k < s->nplace; k++)
		v[s->place[k].key] = &r->f[s->place[k].field].v;
	return 0;
}

void
acc_pick_release(struct acc_pick *w)
{
	for (uint32_t i = 0; i < w->nshape; i++)
		free(w->shape[i].place);
	free(w->shape);
	free(w->other);
	acc_ids_release(&w->by_shape);
	w->shape = NULL;
	w->other = NULL;
	w->nshape = 0;
}
