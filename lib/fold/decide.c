/* What the parts of a tensor are together: by its layout, by what a communication makes of them, or the
 * part that is furthest from what it should be. */
#include "fold/impl.h"

#include <math.h>

double
acc_fold_distance(const struct acc_fold_stat *p, const struct acc_fold_stat *want)
{
	double size = 0, sum = 0;
	for (int i = 0; i < ACC_FOLD_NSTAT; i++)
		if (p->known & want->known & 1 << i) {
			size += fabs(want->v[i]);
			sum += fabs(p->v[i] - want->v[i]);
		}
	return isnan(sum) ? INFINITY : size > 0 ? sum / size : sum;
}

/* Of ranks that should all be alike, the one that is furthest from what it should be, if by rounding
 * alone: what is made of it is as far off. *alone: it is not, and all others are as they should. */
static uint32_t
furthest(const struct acc_fold *f, const struct acc_fold_stat *want, double tol, bool *alone)
{
	double most = 0;
	uint32_t which = 0, off = 0;
	for (uint32_t r = 0; r < f->mesh.zip && want != NULL; r++) {
		const struct acc_fold_stat *p = &f->part[r];
		double far = acc_fold_distance(p, want);
		off += acc_fold_same(p, 1, want, tol) == 0 && (p->known & want->known) != 0;
		which = far > most ? r : which;
		most = far > most ? far : most;
	}
	*alone = off == 1;
	return which;
}

/* What a call that only moves elements takes beside item i, from item *x on: its layout, and its parts in f->part; NULL:
 * nothing more. */
static const struct fold_item *
next_moved(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	uint32_t *x, struct acc_fold_layout *l, double *tol)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	for (; *x < k->n && k->moves && !k->talks; ++*x) {
		const struct fold_item *own = &f->device.item[k->first + *x],
				       *it = acc_fold_counterpart(f, t, v, *x);
		if (*x == i || !own->tensor || own->output || own->exact || it == NULL ||
			!acc_fold_gather(f, &f->mesh, t, v, *x))
			continue;
		*tol = own->tol > it->tol ? own->tol : it->tol;
		*l = acc_fold_choose(f, k, own, FOLD_STAT(it), *tol);
		return it;
	}
	return NULL;
}

/* What only moves elements hands on those of the rank whose input was taken, to the last bit. */
static uint32_t
as_taken(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	uint32_t rank)
{
	const struct fold_item *it;
	struct acc_fold_layout l;
	double tol;
	bool alone;
	for (uint32_t x = 0; (it = next_moved(f, t, v, i, &x, &l, &tol)) != NULL; x++)
		if (acc_fold_replicated(&l)) {
			rank = furthest(f, FOLD_STAT(it), tol, &alone);
			break;
		}
	acc_fold_gather(f, &f->mesh, t, v, i);
	return rank;
}

/* The rank with the place of r along the axes that split, and the first along those that do not; or,
 * of a rank `of` that is first along those that split, the one in its copy. */
static uint32_t
in_copy(const struct fold_mesh *m, const struct acc_fold_layout *l, uint32_t r, uint32_t of)
{
	uint32_t to = 0, stride = 1;
	for (int d = (int)m->n - 1; d >= 0; d--) {
		bool copies = l->at[d].kind == ACC_REPLICATE;
		to += (copies ? of : r) % m->size[d] * stride;
		stride *= m->size[d];
		r /= m->size[d];
		of /= m->size[d];
	}
	return to;
}

bool
acc_fold_replicated(const struct acc_fold_layout *l)
{
	for (uint32_t d = 0; d < l->n; d++)
		if (l->at[d].kind != ACC_REPLICATE && l->at[d].kind != ACC_ALONE)
			return false;
	return l->n > 0;
}

/* The place on the mesh of the kth part of one copy, which is a mesh of its own, beside its first. */
static uint32_t
spread(const struct fold_mesh *m, const struct fold_mesh *one, uint32_t k)
{
	uint32_t to = 0, stride = 1;
	for (int d = (int)m->n - 1; d >= 0; d--) {
		to += k % one->size[d] * stride;
		k /= one->size[d];
		stride *= m->size[d];
	}
	return to;
}

/* What is split along some axes of the mesh stands there as often as the others are long: the copy that is furthest
 * from what it should be, or this one, by its first rank. Each part is joined once. */
static uint32_t
furthest_copy(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, uint32_t only, const struct acc_fold_layout *l,
	const struct acc_fold_stat *want, struct acc_fold_stat *whole)
{
	struct acc_fold_stat *const all = f->part;
	struct fold_mesh one = f->mesh;
	double most = -1;
	uint32_t which = only == FOLD_NONE ? 0 : only;
	const bool has = acc_fold_gather(f, &f->mesh, t, v, i);
	for (uint32_t d = 0; d < one.n; d++)
		if (l->at[d].kind == ACC_REPLICATE) {
			one.zip /= one.size[d];
			one.size[d] = 1;
		}
	f->part = all + f->mesh.zip;
	for (uint32_t of = 0; of < f->mesh.zip && has; of++) {
		struct acc_fold_stat w;
		if (in_copy(&f->mesh, l, 0, of) != of || (only != FOLD_NONE && of != only))
			continue;
		for (uint32_t k = 0; k < one.zip; k++)
			f->part[k] = all[of + spread(&f->mesh, &one, k)];
		if (!acc_fold_by_layout(f, &one, l, INFINITY, &w) ||
			!(acc_fold_distance(&w, want) > most))
			continue;
		most = acc_fold_distance(&w, want);
		which = of;
		*whole = w;
	}
	f->part = all;
	return which;
}

/* Are copies along the same axes of the mesh? */
static bool
copied_alike(const struct acc_fold_layout *a, const struct acc_fold_layout *b)
{
	bool same = a->n == b->n;
	for (uint32_t d = 0; d < a->n && same; d++)
		same = (a->at[d].kind == ACC_REPLICATE) == (b->at[d].kind == ACC_REPLICATE);
	return same;
}

/* The same of copies: which of them was taken; FOLD_NONE: none, or of another layout. */
static uint32_t
copy_taken(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct acc_fold_layout *out)
{
	const struct fold_item *it;
	struct acc_fold_layout l;
	struct acc_fold_stat whole;
	double tol;
	uint32_t which = FOLD_NONE;
	for (uint32_t x = 0; (it = next_moved(f, t, v, i, &x, &l, &tol)) != NULL; x++)
		if (copied_alike(&l, out)) {
			which = furthest_copy(f, t, v, x, FOLD_NONE, &l, FOLD_STAT(it), &whole);
			break;
		}
	acc_fold_gather(f, &f->mesh, t, v, i);
	return which;
}

/* Is a tensor of this line of code like the reference's, or was its layout given? */
static bool
voted(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	uint32_t at = acc_fold_class(f, k, it);
	return at != ACC_NOID && acc_fold_winner(&f->cls[at]).n > 0;
}

/* What one rank alone has, by a factor that its line of code has. */
static void
alone(struct acc_fold *f, const struct fold_call *k, const struct fold_virtual *v, struct folded *d)
{
	uint32_t at = acc_fold_class(f, k, d->own);
	struct acc_fold_layout l = {.n = 0};
	if (at != ACC_NOID)
		l = acc_fold_winner(&f->cls[at]);
	double scale = l.n > 0 && l.at[0].kind == ACC_ALONE ? l.scale : 0;
	if (scale == 0 && d->want != NULL)
		scale = acc_fold_alone_scale(f, k, d->own, f->part, d->want, d->tol);
	/* Forward nothing is scaled, but what is made of gradients, of all ranks alike. */
	if (scale == 0 && k->late && l.n > 0 && acc_fold_replicated(&l))
		scale = l.scale;
	if (scale == 0 && k->late && d->want != NULL)
		scale = acc_fold_nearest_factor(f,
			&(struct acc_fold_layout){.n = 1, .at = {{ACC_REPLICATE, 0}}, .scale = 1},
			d->want, d->tol);
	scale = scale == 0 && k->dir == FOLD_FORWARD && !k->late ? 1 : scale;
	d->layout = (struct acc_fold_layout){.n = scale > 0,
		.at = {{ACC_ALONE, 0}},
		.scale = scale};
	d->rank = v->alone - 1;
	d->alone = true;
}

/* Is a tensor that this call takes beside item i split over the ranks? Then integers, such as the
 * places in a vocabulary that is split, are each rank's own. */
static bool
beside_split(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	bool split = false;
	for (uint32_t x = 0; x < k->n && v->mate != FOLD_NONE && !split; x++) {
		const struct fold_item *own = &f->device.item[k->first + x], *it;
		it = acc_fold_item_at(&f->reference, &f->reference.call[v->mate], own->pos, x);
		if (x == i || !own->tensor || own->output || it == NULL || !it->tensor ||
			!acc_fold_gather(f, &f->mesh, t, v, x))
			continue;
		struct acc_fold_layout l = acc_fold_choose(f, k, own, FOLD_STAT(it), own->tol);
		for (uint32_t d = 0; d < l.n; d++)
			split |= l.at[d].kind == ACC_SHARD;
	}
	acc_fold_gather(f, &f->mesh, t, v, i);
	return split;
}

bool
acc_fold_is_one(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v)
{
	const uint32_t *call = &t->call[v->rank];
	return acc_fold_in_time(&f->mesh) && call[0] == call[1];
}

void
acc_fold_decide(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	struct folded *d)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	*d = (struct folded){.own = &f->device.item[k->first + i],
		.lost = FOLD_NONE,
		.not_sum = FOLD_NONE,
		.apart = FOLD_NONE};
	acc_fold_known(&d->own->stat, &d->whole);
	d->it = acc_fold_counterpart(f, t, v, i);
	d->want = d->it != NULL ? acc_fold_known(&d->it->stat, &d->its_stat) : NULL;
	d->tol = d->want != NULL && d->it->tol > d->own->tol ? d->it->tol : d->own->tol;
	if (acc_fold_gather(f, &f->mesh, t, v, i))
		d->layout = acc_fold_is_one(f, t, v)
				    ? (struct acc_fold_layout){.n = 1,
					      .at = {{ACC_REPLICATE, 0}},
					      .scale = 1}
				    : acc_fold_choose(f, k, d->own, d->want, d->tol);
	if (acc_fold_lone(f, v))
		alone(f, k, v, d);
	if (d->layout.n == 0 || acc_fold_of_others(f, t, v, d->own) ||
		!acc_fold_by_layout(f, &f->mesh, &d->layout, INFINITY, &d->whole))
		d->layout.n = 0;
	if (d->layout.n > 0 && d->own->exact && !d->own->output && d->want != NULL &&
		acc_fold_same(&d->whole, 1, d->want, d->tol) == 0 && beside_split(f, t, v, i))
		d->layout.n = 0;
	/* Without its bias it is not what the reference's is, whatever the shapes are. */
	if (d->layout.n > 0 && d->own->output && acc_fold_lacking(f, t, v) != NULL &&
		!voted(f, k, d->own))
		d->layout.n = 0;
	if (d->want != NULL && (d->layout.n == 0 || (d->whole.known & (1 << ACC_FOLD_MAX)) == 0))
		d->by = acc_fold_reduced(f, t, v, i, &d->out, &d->talk);
	if (d->by != NULL) {
		struct acc_fold_stat sum;
		if (acc_fold_gather(f, &f->mesh, t, d->by, d->out) &&
			acc_fold_by_reduced(f, &f->mesh, d->want, d->own, d->tol, &d->made, &sum)) {
			d->whole = sum;
			d->layout = d->layout.n == 0 ? d->made : d->layout;
		} else {
			d->by = NULL;
		}
	} else if (acc_fold_replicated(&d->layout)) {
		if (v->alone == 0)
			d->rank = furthest(f, d->want, d->tol, &d->alone);
		if (v->alone == 0 && !d->alone && d->own->output)
			d->rank = as_taken(f, t, v, i, d->rank);
		const struct acc_fold_stat all = d->whole;
		d->whole = f->part[d->rank];
		memcpy(d->whole.shape, all.shape, sizeof all.shape);
		for (int n = 0; n < ACC_FOLD_NSTAT; n++)
			d->whole.v[n] *= d->layout.scale;
	} else if (d->layout.n > 1 && d->want != NULL) {
		const uint32_t only = d->own->output ? copy_taken(f, t, v, i, &d->layout)
						     : FOLD_NONE;
		d->rank = furthest_copy(f, t, v, i, only, &d->layout, d->want, &d->whole);
	}
}
