/* Which elements of the parts are which of the reference: in what order parts stand is found line of code by
 * line of code, of tensors that are the reference's.
 *
 * Where the reference was several ranks, too, whose parts are fewer says what the order is: one behind the other.
 * So it is the same whichever side is folded. */
#include "fold/impl.h"

#include <math.h>
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
	const struct acc_fold_stat *part = &first->stat;
	bool all = first->stat.ndim <= ACC_FOLD_NDIM;
	for (uint32_t r = 0; r < p->n && all; r++) {
		const struct fold_item *it = acc_fold_part_of(f, t, v, first->pos,
			rank + r * p->stride);
		all = it != NULL && it->tensor && it->stat.ndim == first->stat.ndim;
		at[r] = all ? it->at : 0;
		part = all && r == 0 ? &it->stat : part;
	}
	*slices = 1;
	for (uint32_t d = 0; d < p->row.axis && d < part->ndim; d++)
		*slices *= (uint64_t)part->shape[d];
	struct fold_whole *w = all ? acc_whole_open(f, at, p->n, p->place, part, p->scale, e)
				   : NULL;
	free(at);
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
			&want->stat, 1, e);
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
fit(struct acc_fold *f, const struct fold_whole *w, uint32_t cls)
{
	const struct fold_class *c = &f->cls[cls];
	uint64_t all = 0, used = 0;
	for (uint32_t i = 0; i < c->npiece; i++)
		all += c->piece[i].n;
	struct fold_piece *p = acc_grow(f->fitted, &f->fitted_cap, (size_t)c->npiece + 1, sizeof *p,
		NULL);
	if (p == NULL || all == 0 || w->axis > UINT32_MAX || all > UINT32_MAX)
		return NULL;
	f->fitted = p;
	for (uint32_t i = 0; i < c->npiece; i++) {
		const struct fold_piece *o = &c->piece[i];
		p[i] = (struct fold_piece){o->part, o->start * w->axis / all, o->n * w->axis / all};
		if (o->start * w->axis % all != 0 || o->n * w->axis % all != 0 || o->part >= w->n ||
			p[i].start + p[i].n > (uint64_t)w->len[o->part])
			return NULL;
		used += p[i].n;
	}
	return used == w->axis ? p : NULL;
}

static bool
fitted(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *w,
	struct fold_pieces *out)
{
	const struct fold_piece *all = NULL;
	for (uint32_t k = 0; k < (w->nrow > 0 ? w->nrow : 1); k++) {
		all = fit(f, w->nrow > 0 ? w->row[k] : w, p->cls);
		if (all == NULL || (k > 0 && w->row[k]->axis != w->row[0]->axis))
			return false;
	}
	*out = (struct fold_pieces){all, f->cls[p->cls].npiece};
	return true;
}

bool
acc_fold_pieces(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *w,
	struct fold_pieces *out)
{
	*out = (struct fold_pieces){.n = 0};
	return p->cls == FOLD_NONE || p->place.kind != ACC_SHARD || p->whose != FOLD_MINE ||
	       f->cls[p->cls].npiece == 0 || (!f->cls[p->cls].theirs && fitted(f, p, w, out));
}

bool
acc_fold_their_pieces(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *ref,
	struct fold_pieces *out)
{
	*out = (struct fold_pieces){.n = 0};
	return p->cls == FOLD_NONE || p->whose != FOLD_THEIRS || f->cls[p->cls].npiece == 0 ||
	       (f->cls[p->cls].theirs && fitted(f, p, ref, out));
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

/* One part behind the other? */
static bool
plain(const struct fold_class *c, uint32_t parts)
{
	bool is = c->npiece == 0 || c->npiece == parts;
	for (uint32_t i = 0; i < c->npiece && is; i++)
		is = c->piece[i].part == i && c->piece[i].start == 0;
	return is;
}

/* The class of its line and shapes, which every tensor that has a class has. */
static uint32_t
wide_of(const struct acc_fold *f, const struct fold_plan *p)
{
	const struct fold_step *t = &f->step[p->step];
	const struct fold_call *k = &f->device.call[t->call[t->v[p->virtual].rank]];
	return acc_fold_wide(f, k, &f->device.item[k->first + p->item]);
}

static int
find_order(struct fold_class *c, const struct fold_plan *p, struct fold_whole *w,
	struct fold_whole *ref, double tol, struct acc_err *e)
{
	if (c->npiece > 0 || p->whose == FOLD_NOBODY ||
		(p->whose == FOLD_MINE && p->place.kind != ACC_SHARD))
		return 0;
	c->theirs = p->whose == FOLD_THEIRS;
	int rc = c->theirs ? acc_whole_order(ref, w, tol, &c->piece, &c->npiece, e)
			   : acc_whole_order(w, ref, tol, &c->piece, &c->npiece, e);
	return rc < 0 ? rc : 0;
}

/* What one tensor, which is as the reference's, says of the order of the parts in its class: the
 * first that is found stands, else the ranks' own, and the others are or are not in it. */
static int
learn_order(struct acc_fold *f, const struct fold_plan *p, const struct fold_item *it, double tol,
	struct acc_err *e)
{
	struct acc_err own = {0};
	struct fold_whole *w = acc_fold_open_plan(f, p, &own);
	struct fold_whole *ref = w == NULL ? NULL : acc_fold_open_want(f, it, &own);
	struct fold_class *c = &f->cls[p->cls];
	double *error = ref == NULL ? NULL : calloc(w->n, sizeof *error), all = 1;
	int rc = ref == NULL ? 0 : error == NULL ? acc_nomem(&own) : 1;
	if (rc > 0 && find_order(c, p, w, ref, tol, &own) < 0)
		rc = own.code;
	struct fold_pieces piece, theirs;
	bool fits = rc > 0 && w->count == ref->count && acc_fold_pieces(f, p, w, &piece) &&
		    acc_fold_their_pieces(f, p, ref, &theirs);
	/* Element by element, not by sums alone. */
	if (fits)
		rc = acc_whole_errors(w, piece, ref, theirs, error, &all, &own);
	bool right = fits && rc >= 0 && sqrt(all) <= (tol > FOLD_NOISE ? tol : FOLD_NOISE);
	bool turn = right && plain(c, c->theirs ? ref->n / (ref->nrow > 0 ? ref->nrow : 1) : p->n);
	c->first |= turn && c->right + c->wrong == 0;
	c->right += right;
	c->wrong += !right;
	f->cls[wide_of(f, p)].in_turn |= turn && p->place.kind == ACC_SHARD;
	free(error);
	acc_whole_close(ref);
	acc_whole_close(w);
	acc_fold_note(f, &own);
	return rc == ACC_ENOMEM ? acc_nomem(e) : 0;
}

/* Most tensors of a line of code are in this order: one that is not is wrong. Those behind a fault are
 * not tried, so that of a fault in the second call there is one of each: where the first is in the
 * ranks' order, as what is sorted is not, that is the order. */
static bool
ordered(const struct fold_class *c)
{
	return c->right > 0 && (c->first || c->right > 2 * c->wrong);
}

/* Of stages of one rank: what a stage has is the whole tensor, or its micro-batches one behind the
 * other; if they are so in one line of code they are in others that call the same, though behind a
 * fault each may be in an order of its own. */
static bool
in_turn(const struct acc_fold *f, const struct fold_plan *p)
{
	return f->both == NULL &&
	       (f->mesh.zip == 1 || (f->mesh.ranks == 1 && f->cls[wide_of(f, p)].in_turn));
}

static int
order_item(struct acc_fold *f, uint32_t step, uint32_t i, uint32_t x, struct acc_err *e)
{
	enum { TRIES = 6 };
	struct fold_step *t = &f->step[step];
	const struct fold_virtual *v = &t->v[i];
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	const struct fold_item *own = &f->device.item[k->first + x],
			       *it = acc_fold_counterpart(f, t, v, x);
	uint32_t cls = own->tensor ? acc_fold_class(f, k, own) : FOLD_NONE;
	if (cls == FOLD_NONE || it == NULL || f->cls[cls].right + f->cls[cls].wrong >= TRIES ||
		!acc_fold_gather(f, &f->mesh, t, v, x))
		return 0;
	double tol = own->tol > it->tol ? own->tol : it->tol;
	struct acc_fold_layout l = acc_fold_choose(f, k, own, &it->stat, tol);
	struct acc_fold_stat whole;
	struct fold_plan p = {.step = step, .virtual = i, .item = x, .cls = cls, .scale = l.scale};
	/* What a communication gives stands for a sum, but where the reference may have one, too. */
	if (!acc_fold_axis(&f->mesh, &l, &p) || (p.place.kind == ACC_PARTIAL && f->both == NULL) ||
		!acc_fold_by_layout(f, &f->mesh, &l, tol, &whole) ||
		acc_fold_same(&whole, 1, &it->stat, tol) == 0)
		return 0;
	p.whose = acc_fold_whose(f, &p, it);
	return learn_order(f, &p, it, tol, e);
}

bool
acc_fold_choose_order(const struct acc_fold *f, struct fold_plan *p)
{
	if (p->cls == FOLD_NONE)
		return true;
	bool turn = in_turn(f, p), known = turn || ordered(&f->cls[p->cls]);
	p->cls = turn ? FOLD_NONE : p->cls;
	return known;
}

int
acc_fold_orders(struct acc_fold *f, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep && f->roots != NULL; s++)
		for (uint32_t i = 0; i < f->step[s].nv; i++) {
			const struct fold_virtual *v = &f->step[s].v[i];
			uint32_t n = f->device.call[f->step[s].call[v->rank]].n;
			for (uint32_t x = 0; x < n && v->mate != FOLD_NONE && rc == 0; x++)
				rc = order_item(f, s, i, x, e);
		}
	return rc;
}
