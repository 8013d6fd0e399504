/* The parts of a planned tensor, opened, and the pieces that its order makes of them. */
#include "fold/impl.h"

#include <stdlib.h>

const struct fold_item *
acc_fold_part_of(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint64_t pos, uint32_t rank)
{
	uint32_t call = t->call[v->rank + rank];
	return call == FOLD_NONE ? NULL
				 : acc_fold_item_at(&f->device, &f->device.call[call], pos, 0);
}

/* A row of parts, from this rank on; *slices: how many the tensor has before the axis of the rows. */
static struct fold_whole *
open_row(struct acc_fold *f, const struct fold_plan *p, uint32_t rank, uint64_t *slices,
	struct acc_err *e)
{
	const struct fold_step *t = &f->step[p->step];
	const struct fold_virtual *v = &t->v[p->virtual];
	const struct fold_item *first =
		&f->device.item[f->device.call[t->call[v->rank]].first + p->item];
	uint64_t *at = calloc(p->n, sizeof *at);
	if (at == NULL) {
		acc_nomem(e);
		return NULL;
	}
	const struct fold_item *part = first;
	bool all = first->stat.ndim <= ACC_FOLD_NDIM;
	for (uint32_t r = 0; r < p->n && all; r++) {
		const struct fold_item *it = acc_fold_part_of(f, t, v, first->pos,
			rank + r * p->stride);
		all = it != NULL && it->tensor && it->stat.ndim == first->stat.ndim;
		at[r] = all ? it->at : 0;
		part = all && r == 0 ? it : part;
	}
	*slices = 1;
	for (uint32_t d = 0; all && d < p->row.axis && d < part->stat.ndim; d++)
		*slices *= (uint64_t)part->stat.shape[d];
	const struct acc_place rows = {.kind = ACC_SHARD};
	struct fold_whole *w = all ? acc_whole_open(f, at, p->n, p->rows ? rows : p->place,
					     FOLD_STAT(part), p->scale, e)
				   : NULL;
	free(at);
	if (w != NULL && p->cut > 0)
		acc_whole_cut(w, p->cut);
	return w;
}

struct fold_whole *
acc_fold_open_plan(struct acc_fold *f, const struct fold_plan *p, struct acc_err *e)
{
	uint64_t slices;
	if (p->row.n < 2)
		return open_row(f, p, p->rank, &slices, e);
	struct fold_whole **row = calloc(p->row.n, sizeof(struct fold_whole *)), *w = NULL;
	uint32_t n = 0;
	for (; row != NULL && n < p->row.n; n++) {
		row[n] = open_row(f, p, p->rank + n * p->row.stride, &slices, e);
		if (row[n] == NULL)
			break;
	}
	if (row == NULL)
		acc_nomem(e);
	else if (n == p->row.n)
		w = acc_whole_rows(row, n, slices, e);
	else
		while (n > 0)
			acc_whole_close(row[--n]);
	free((void *)row);
	return w;
}

struct fold_whole *
acc_fold_open_want(struct acc_fold *f, const struct fold_item *want, struct acc_err *e)
{
	struct fold_plan p;
	if (f->both == NULL)
		return acc_whole_open(f, &want->at, 1, (struct acc_place){.kind = ACC_REPLICATE},
			FOLD_STAT(want), 1, e);
	if (!acc_fold_both_plan(f, want, &p))
		return NULL;
	return acc_fold_open_plan(f->both, &p, e);
}

/* Why elements cannot be read is said once. */
void
acc_fold_note(struct acc_fold *f, const struct acc_err *e)
{
	if (e->code != 0 && f->trouble.code == 0)
		f->trouble = *e;
	f->ntrouble += e->code != 0;
}

/* Pieces of a tensor of another length; NULL: they do not fit. */
static const struct fold_piece *
fit(struct acc_fold *f, const struct fold_whole *w, const struct fold_order *o)
{
	uint64_t all = 0, used = 0;
	for (uint32_t i = 0; i < o->npiece; i++)
		all += o->piece[i].n;
	struct fold_piece *p = acc_grow(f->fitted, &f->fitted_cap, (size_t)o->npiece + 1, sizeof *p,
		NULL);
	if (p == NULL || all == 0 || w->axis > UINT32_MAX || all > UINT32_MAX)
		return NULL;
	f->fitted = p;
	for (uint32_t i = 0; i < o->npiece; i++) {
		const struct fold_piece *x = &o->piece[i];
		p[i] = (struct fold_piece){x->part, x->start * w->axis / all, x->n * w->axis / all};
		if (x->start * w->axis % all != 0 || x->n * w->axis % all != 0 || x->part >= w->n ||
			p[i].start + p[i].n > (uint64_t)w->len[x->part])
			return NULL;
		used += p[i].n;
	}
	return used == w->axis ? p : NULL;
}

static bool
fitted(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *w,
	struct fold_pieces *out)
{
	const struct fold_order *o = &f->order[p->order];
	const struct fold_piece *all = NULL;
	for (uint32_t k = 0; k < (w->nrow > 0 ? w->nrow : 1); k++) {
		all = fit(f, w->nrow > 0 ? w->row[k] : w, o);
		if (all == NULL || (k > 0 && w->row[k]->axis != w->row[0]->axis))
			return false;
	}
	*out = (struct fold_pieces){all, o->npiece};
	return true;
}

bool
acc_fold_pieces(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *w,
	struct fold_pieces *out)
{
	*out = (struct fold_pieces){.n = 0};
	return p->order == FOLD_NONE || (p->place.kind != ACC_SHARD && !p->rows) ||
	       p->whose != FOLD_MINE || f->order[p->order].npiece == 0 ||
	       (!f->order[p->order].theirs && fitted(f, p, w, out));
}

bool
acc_fold_their_pieces(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *ref,
	struct fold_pieces *out)
{
	*out = (struct fold_pieces){.n = 0};
	return p->order == FOLD_NONE || p->whose != FOLD_THEIRS || f->order[p->order].npiece == 0 ||
	       (f->order[p->order].theirs && fitted(f, p, ref, out));
}

/* How many parts have an order. */
static uint32_t
in_order(const struct fold_plan *p)
{
	return p->place.kind == ACC_SHARD ? p->n : 1;
}

enum fold_whose
acc_fold_whose(const struct acc_fold *f, const struct fold_plan *p, const struct fold_item *want)
{
	struct fold_plan theirs;
	if (f->both == NULL || want == NULL)
		return FOLD_MINE;
	if (!acc_fold_both_plan(f, want, &theirs))
		return FOLD_NOBODY;
	const uint32_t mine = in_order(p), other = in_order(&theirs);
	if (mine == 1 || other == 1)
		return mine > 1 ? FOLD_MINE : other > 1 ? FOLD_THEIRS : FOLD_NOBODY;
	if (p->place.axis != theirs.place.axis)
		return p->place.axis > theirs.place.axis ? FOLD_MINE : FOLD_THEIRS;
	return mine > other ? FOLD_MINE : mine < other ? FOLD_THEIRS : FOLD_NOBODY;
}
