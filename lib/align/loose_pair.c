/* Pairs of loose tensors as they are made, by equal keys; what the rounds of loose.c share. */
#include "align/loose.h"

#include <stdlib.h>

void
acc_loose_mate(struct loosely *l, const struct loose *x, const struct loose *y,
	enum acc_align_how how)
{
	struct acc_joined *j = l->j;
	struct loose(*pair)[2] = acc_grow(l->pair, &l->pair_cap, (size_t)l->npair + 1, sizeof *pair,
		l->e);
	if (pair == NULL) {
		l->failed = true;
		return;
	}
	l->pair = pair;
	pair[l->npair][0] = *x;
	pair[l->npair++][1] = *y;
	acc_mate_items(j, x->item, y->item);
	j->a->item[x->item].how = j->b->item[y->item].how = (uint8_t)how;
	if (j->a->op[x->op].mate == ACC_NOMATE && j->b->op[y->op].mate == ACC_NOMATE)
		acc_mate_ops(j, x->op, y->op, acc_item_hows[how].how, acc_item_hows[how].sure);
}

int
acc_loose_tie(struct loosely *l, int side, const struct loose *x, const struct loose *y)
{
	struct acc_index *own = side == ACC_A ? l->j->a : l->j->b;
	own->item[x->item].mate = y->item;
	own->item[x->item].how = ACC_HOW_TIED;
	if (own->op[x->op].mate == ACC_NOMATE) {
		struct acc_align_call *op = &own->op[x->op];
		op->mate = y->op;
		op->how = acc_item_hows[ACC_HOW_TIED].how;
		op->sure = acc_item_hows[ACC_HOW_TIED].sure;
	}
	return 0;
}

void
acc_loose_shrink(struct loose_side *s)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->h->ix.item[s->v[i].item].mate == ACC_NOMATE)
			s->v[n++] = s->v[i];
	s->n = n;
}

int
acc_loose_cmp(const void *x, const void *y)
{
	const struct loose_key *p = x, *q = y;
	if (p->key != q->key)
		return p->key < q->key ? -1 : 1;
	return (p->at > q->at) - (p->at < q->at);
}

/* The places of one side, sorted by key; those without one left out. */
static uint32_t
sorted(const struct loose_side *s, struct loose_key *k)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->v[i].key != 0)
			k[n++] = (struct loose_key){.key = s->v[i].key, .at = i};
	if (n > 0)
		qsort(k, n, sizeof *k, acc_loose_cmp);
	return n;
}

uint32_t
acc_loose_run(const struct loose_key *k, uint32_t i, uint32_t n)
{
	uint32_t m = 1;
	while (i + m < n && k[i + m].key == k[i].key)
		m++;
	return m;
}

int64_t
acc_loose_pair(struct loosely *l, enum acc_align_how how, bool count_only, acc_loose_fits_fn *only)
{
	struct loose_key *p = malloc(((size_t)l->s[0].n + l->s[1].n + 1) * sizeof *p);
	if (p == NULL)
		return acc_nomem(l->e);
	uint32_t n = sorted(&l->s[0], p);
	struct loose_key *q = p + n;
	uint32_t m = sorted(&l->s[1], q);
	int64_t pairs = 0;
	for (uint32_t i = 0, t = 0; i < n && t < m;) {
		uint32_t ni = acc_loose_run(p, i, n), nt = acc_loose_run(q, t, m);
		bool first = p[i].key <= q[t].key, second = p[i].key >= q[t].key;
		for (uint32_t k = 0; first && second && ni == nt && k < ni; k++) {
			const struct loose *x = &l->s[0].v[p[i + k].at],
					   *y = &l->s[1].v[q[t + k].at];
			if (only != NULL && !only(x, y))
				continue;
			pairs++;
			if (!count_only)
				acc_loose_mate(l, x, y, how);
		}
		i += first ? ni : 0;
		t += second ? nt : 0;
	}
	free(p);
	if (!count_only) {
		acc_loose_shrink(&l->s[0]);
		acc_loose_shrink(&l->s[1]);
	}
	return pairs;
}

static bool
holds(const int64_t *shape, uint32_t n, int64_t extent, uint32_t often)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++)
		k += shape[i] == extent;
	return k >= often;
}

/* Extents in any order; one may be another, as that of a padded vocabulary is. */
bool
acc_loose_fits(const struct loose *x, const struct loose *y)
{
	uint32_t other = 0;
	if (x->ndim != y->ndim || x->ndim > LOOSE_DIMS)
		return x->count > 0 && x->count == y->count;
	for (uint32_t i = 0; i < x->ndim; i++) {
		uint32_t often = 0;
		for (uint32_t k = 0; k <= i; k++)
			often += x->shape[k] == x->shape[i];
		other += !holds(y->shape, y->ndim, x->shape[i], often);
	}
	return other == 0 || (other == 1 && x->ndim > 0) || x->count == y->count;
}
