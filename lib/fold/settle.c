/* How the parts of a reference of several ranks lie on them: as its wholes are the device's.
 *
 * The calls of a line of code vote, of what is the device's for sure. What no call of a line shows is known where a
 * reduction gives the sum of what the ranks have, and where both sides' parts are the same, rank by rank. */
#include "fold/impl.h"

#include <math.h>
#include <stdlib.h>

/* An item of a call of the device, and what stands for it in the reference: of both the call of the first rank,
 * and the parts. */
struct couple {
	const struct fold_call *call, *ref;
	const struct fold_item *own, *part;
	struct fold_item *it; /* of the reference as one rank */
	const struct fold_step *step;
	const struct fold_virtual *v;
	uint32_t x; /* which item of that */
};

static bool
find_couple(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	struct couple *c)
{
	struct acc_fold *g = f->both;
	const struct fold_call *mate = &f->reference.call[v->mate];
	const struct fold_item *it = acc_fold_counterpart(f, t, v, i);
	*c = (struct couple){.call = &f->device.call[t->call[v->rank]],
		.step = &g->step[mate->segment]};
	c->own = &f->device.item[c->call->first + i];
	if (!c->own->tensor || it == NULL)
		return false;
	c->x = (uint32_t)(it - &f->reference.item[mate->first]);
	c->it = &f->reference.item[mate->first + c->x];
	c->v = &c->step->v[mate->of];
	c->ref = &g->device.call[c->step->call[c->v->rank]];
	c->part = &g->device.item[c->ref->first + c->x];
	return true;
}

/* Is it laid out so on the device, for sure, and what stands for it in the reference so? */
static bool
both_known(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct couple *c, struct acc_fold_layout *reference)
{
	struct acc_fold_layout l;
	const double tol = c->own->tol > c->it->tol ? c->own->tol : c->it->tol;
	const bool like = acc_fold_gather(f, &f->mesh, t, v, i) &&
			  acc_fold_like(f, &f->mesh, v->mate, c->it, tol,
				  acc_fold_factor_of(f, c->call, v, c->own), &l, reference) == 2;
	return like && !acc_fold_is_sum_of(c->ref, reference);
}

/* Has either side a layout for the line of code? */
static bool
settled(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	const uint32_t cls = acc_fold_class(f, k, it);
	return cls != FOLD_NONE && acc_fold_winner(&f->cls[cls]).n > 0;
}

/* Where the two sides' parts have the same shapes, rank by rank, and those of some ranks the same values, which are
 * no copies, both are laid out alike, whatever has become of the others. Along which axis nothing tells where all
 * are of one shape: then it is the last. */
static bool
are_alike(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct couple *c, struct acc_fold_layout *l)
{
	struct acc_fold *g = f->both;
	const double tol = c->own->tol > c->it->tol ? c->own->tol : c->it->tol;
	const struct acc_fold_stat *a = f->part, *b = g->part;
	uint32_t same = 0, axis = a->ndim;
	if (f->mesh.n != 1 || g->mesh.n != 1 || f->mesh.zip != g->mesh.zip || v->alone > 0 ||
		c->v->alone > 0 || !acc_fold_gather(f, &f->mesh, t, v, i) ||
		!acc_fold_gather(g, &g->mesh, c->step, c->v, c->x) || a->ndim == 0)
		return false;
	axis = a->ndim - 1;
	for (uint32_t r = 0; r < f->mesh.zip; r++) {
		for (uint32_t d = 0; d < a->ndim; d++) {
			if (a[r].ndim != b[r].ndim || a[r].shape[d] != b[r].shape[d])
				return false;
			axis = a[r].shape[d] != a[0].shape[d] ? d : axis;
		}
		same += acc_fold_same(&a[r], 1, &b[r], tol) == 2;
	}
	*l = (struct acc_fold_layout){.n = 1, .at = {{ACC_SHARD, (uint8_t)axis}}, .scale = 1};
	struct acc_fold_stat whole;
	return same > 0 && !acc_fold_has_twin(a, f->mesh.zip, tol) &&
	       !acc_fold_has_twin(b, g->mesh.zip, tol) &&
	       acc_fold_by_layout(f, &f->mesh, l, INFINITY, &whole);
}

static uint32_t
inputs_of(const struct fold_side *s, const struct fold_call *k)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < k->n; i++)
		n += s->item[k->first + i].tensor && !s->item[k->first + i].output;
	return n;
}

/* The whole of these parts if they lie along this axis of the tensor, counted from 1; 0: all have it. */
static bool
along(struct acc_fold *f, uint32_t axis, struct acc_fold_layout *l, struct acc_fold_stat *whole)
{
	*l = acc_fold_copies_of(f);
	for (uint32_t d = 0; axis > 0 && d < l->n; d++)
		l->at[d] = (struct acc_place){ACC_SHARD, (uint8_t)(axis - 1)};
	return acc_fold_by_layout(f, &f->mesh, l, INFINITY, whole);
}

/* Are its ranks in one row? Those of a mesh of two axes are that has the same experts on several. */
static bool
in_row(const struct acc_fold *f)
{
	return f->mesh.n == 1 || f->alone.n > 0;
}

/* Has a rank what this whole is? */
static bool
has_one(const struct acc_fold *f, const struct acc_fold_stat *whole, double tol)
{
	for (uint32_t r = 0; r < f->mesh.zip; r++)
		if (acc_fold_same(&f->part[r], 1, whole, tol) == 2)
			return true;
	return false;
}

/* Where what the parts of both sides may be has the same shape in one way alone, that is it, though a rank is wrong:
 * parts on both; or parts on one, and of the other's ranks, which should have it all, one has it. What all ranks of
 * the device have, and one of the reference's, too, all of those should have. */
static bool
by_shapes(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct couple *c, struct acc_fold_layout l[2])
{
	struct acc_fold *g = f->both;
	const double tol = c->own->tol > c->it->tol ? c->own->tol : c->it->tol;
	uint32_t ways = 0;
	if (acc_fold_is_member(f, c->call, c->own) || !in_row(f) || !in_row(g) || v->alone > 0 ||
		c->v->alone > 0 || c->own->exact || c->call->dir != FOLD_FORWARD || c->call->late ||
		c->call->talks || !acc_fold_gather(f, &f->mesh, t, v, i) ||
		!acc_fold_gather(g, &g->mesh, c->step, c->v, c->x) ||
		f->part[0].ndim != g->part[0].ndim)
		return false;
	const uint32_t n = f->part[0].ndim;
	for (uint32_t a = 0; a <= n; a++)
		for (uint32_t b = 0; b <= n; b++) {
			struct acc_fold_layout x, y;
			struct acc_fold_stat p, q;
			if (!along(f, a, &x, &p) || !along(g, b, &y, &q) ||
				memcmp(p.shape, q.shape, n * sizeof *p.shape) != 0)
				continue;
			l[0] = a == 0 && b == 0 ? x : l[0];
			l[1] = a == 0 && b == 0 ? y : l[1];
			if (a == 0 && b == 0)
				return acc_fold_are_copies(f->part, f->mesh.zip, FOLD_COPIES,
					       tol) &&
				       has_one(g, &p, tol);
			const bool one = a == 0   ? has_one(f, &q, tol)
					 : b == 0 ? has_one(g, &p, tol)
						  : true;
			if (!one)
				continue;
			ways++;
			l[0] = x;
			l[1] = y;
		}
	return ways == 1;
}

/* Of a virtual call, that of the reference as one rank. */
static struct fold_call *
called(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v)
{
	const size_t step = (size_t)(t - f->both->step), nth = (size_t)(v - t->v);
	return &f->reference.call[f->reference.segment[step].first + nth];
}

/* Which of the reference's the device has, too. */
static void
mark_mates(struct acc_fold *f)
{
	for (uint32_t i = 0; i < f->reference.ncall; i++)
		f->reference.call[i].mated = false;
	for (uint32_t s = 0; s < f->nstep; s++)
		for (uint32_t i = 0; i < f->step[s].nv; i++)
			if (f->step[s].v[i].mate != FOLD_NONE)
				f->reference.call[f->step[s].v[i].mate].mated = true;
}

/* What all ranks of the reference give a summand of, as a product over a part of its terms, is what a reduction
 * makes of it for all of them, if that is recorded, and the device's call takes as much: no bias is added later. */
static int
find_sum(struct acc_fold *f, const struct couple *c, struct acc_err *e)
{
	struct acc_fold *g = f->both;
	struct fold_laid *laid = &f->laid[c->it - f->reference.item];
	if (!c->it->split || laid->sum || !c->part->output || c->ref->dir != FOLD_FORWARD ||
		c->ref->talks || c->v->alone > 0 ||
		inputs_of(&f->device, c->call) != inputs_of(&g->device, c->ref))
		return 0;
	const struct fold_virtual *by = acc_fold_taker(g, c->step, c->v, c->x);
	/* A reduction that the device has, too, has summands there. */
	if (by != NULL && called(f, c->step, by)->mated)
		return 0;
	const struct fold_call *k = by == NULL ? NULL : &g->device.call[c->step->call[by->rank]];
	const struct acc_fold_layout all = acc_fold_copies_of(g);
	for (uint32_t i = 0; k != NULL && k->reduces && i < k->n; i++) {
		struct acc_fold_stat sum;
		const struct fold_item *out = &g->device.item[k->first + i];
		if (!out->tensor || !out->output || !acc_fold_gather(g, &g->mesh, c->step, by, i) ||
			!acc_fold_are_copies(g->part, g->mesh.zip, FOLD_COPIES, out->tol) ||
			!acc_fold_by_layout(g, &g->mesh, &all, FOLD_COPIES * out->tol, &sum) ||
			sum.count != c->part->stat.count)
			continue;
		laid->sum = true;
		laid->layout = all;
		laid->virtual = (uint32_t)(by - c->step->v);
		laid->item = i;
		c->it->split = false;
		const struct acc_fold_stat *part = FOLD_STAT(c->part);
		sum.ndim = part->ndim;
		memcpy(sum.shape, part->shape, sizeof sum.shape);
		return acc_fold_keep(&g->device, c->it, &sum, e);
	}
	return 0;
}

/* Where the calls of a line have weights in several layouts, the line has none, but each of them its own. */
enum pass { SUMS, VOTE, ALIKE, OWN };

/* Of what stands for the items of a call of the device. */
static int
settle_item(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	enum pass pass, struct acc_err *e)
{
	struct acc_fold *g = f->both;
	struct couple c;
	struct acc_fold_layout to = acc_fold_copies_of(g);
	int rc = 0;
	if (!find_couple(f, t, v, i, &c))
		return 0;
	if (pass == SUMS)
		return find_sum(f, &c, e);
	if (f->laid[c.it - f->reference.item].sum)
		return 0;
	if (pass == ALIKE) {
		struct acc_fold_layout l[2];
		if (!c.it->split || settled(g, c.ref, c.part))
			return 0;
		const bool alike = are_alike(f, t, v, i, &c, &to);
		if (alike)
			l[0] = l[1] = to;
		if (alike || by_shapes(f, t, v, i, &c, l)) {
			rc = acc_fold_say(g, c.ref, c.part, &l[1], e);
			rc = rc < 0 ? rc : acc_fold_say(f, c.call, c.own, &l[0], e);
		}
		return rc;
	}
	const bool known = !c.it->split || both_known(f, t, v, i, &c, &to);
	if (pass == VOTE)
		return known && (c.it->split || c.it->stat.known != 0)
			       ? acc_fold_say(g, c.ref, c.part, &to, e)
			       : acc_fold_abstain(g, c.ref, c.part, e);
	if (c.it->split && known && acc_fold_gather(g, &g->mesh, c.step, c.v, c.x) &&
		acc_fold_choose(g, c.ref, c.part, NULL, c.part->tol).n == 0) {
		struct acc_fold_stat whole;
		c.it->split = false;
		f->laid[c.it - f->reference.item].layout = to;
		if (acc_fold_by_layout(g, &g->mesh, &to, INFINITY, &whole))
			rc = acc_fold_keep(&g->device, c.it, &whole, e);
	}
	return rc;
}

static int
settle_call(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v, enum pass pass,
	struct acc_err *e)
{
	const uint32_t n = f->device.call[t->call[v->rank]].n;
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++)
		rc = settle_item(f, t, v, i, pass, e);
	return rc;
}

static int
settle_calls(struct acc_fold *f, enum pass pass, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep; s++)
		for (uint32_t i = 0; i < f->step[s].nv && rc == 0; i++)
			if (f->step[s].v[i].mate != FOLD_NONE)
				rc = settle_call(f, &f->step[s], &f->step[s].v[i], pass, e);
	return rc;
}

static const struct fold_laid *
laid_of(const struct acc_fold *f, const struct fold_item *it)
{
	return &f->laid[it - f->reference.item];
}

/* Which item of which virtual call it is. */
static const struct fold_item *
recorded(const struct acc_fold *f, const struct fold_item *it, struct fold_plan *p)
{
	const struct acc_fold *g = f->both;
	const struct fold_call *ref = &f->reference.call[laid_of(f, it)->call];
	const struct fold_step *t = &g->step[ref->segment];
	*p = (struct fold_plan){.step = ref->segment,
		.virtual = ref->of,
		.item = (uint32_t)(it - &f->reference.item[ref->first]),
		.order = FOLD_NONE};
	return &g->device.item[g->device.call[t->call[t->v[ref->of].rank]].first + p->item];
}

bool
acc_fold_both_plan(const struct acc_fold *f, const struct fold_item *it, struct fold_plan *p)
{
	const struct fold_laid *l = laid_of(f, it);
	recorded(f, it, p);
	p->virtual = l->sum ? l->virtual : p->virtual;
	p->item = l->sum ? l->item : p->item;
	p->scale = l->layout.scale;
	return acc_fold_axis(&f->both->mesh, &l->layout, p);
}

bool
acc_fold_stored_whole(const struct acc_fold *f, const struct fold_item *it)
{
	return f->both == NULL ||
	       (acc_fold_replicated(&laid_of(f, it)->layout) && laid_of(f, it)->layout.scale == 1);
}

const struct fold_stat *
acc_fold_recorded(const struct acc_fold *f, const struct fold_item *it)
{
	struct fold_plan p;
	return f->both == NULL ? &it->stat : &recorded(f, it, &p)->stat;
}

/* Room for what is found. */
static int
make_laid(struct acc_fold *f, struct acc_err *e)
{
	free(f->laid);
	f->laid = calloc((size_t)f->reference.nitem + 1, sizeof *f->laid);
	for (uint32_t c = 0; c < f->reference.ncall && f->laid != NULL; c++) {
		const struct fold_call *ref = &f->reference.call[c];
		for (uint32_t i = 0; i < ref->n; i++)
			f->laid[ref->first + i].call = c;
	}
	return f->laid == NULL ? acc_nomem(e) : 0;
}

int
acc_fold_both_settle(struct acc_fold *f, struct acc_err *e)
{
	struct acc_fold *g = f->both;
	struct fold_side *r = &f->reference;
	int rc = make_laid(f, e);
	mark_mates(f);
	for (uint32_t i = 0; i < g->nstep && rc == 0; i++)
		rc = acc_fold_takers(g, &g->step[i], e);
	rc = rc < 0 ? rc : settle_calls(f, SUMS, e);
	rc = rc < 0 ? rc : settle_calls(f, VOTE, e);
	rc = rc < 0 ? rc : settle_calls(f, ALIKE, e);
	rc = rc < 0 ? rc : settle_calls(f, OWN, e);
	for (uint32_t c = 0; c < r->ncall && rc == 0; c++) {
		const struct fold_call *ref = &r->call[c];
		const struct fold_step *t = &g->step[ref->segment];
		const struct fold_virtual *v = &t->v[ref->of];
		const struct fold_call *k = &g->device.call[t->call[v->rank]];
		for (uint32_t i = 0; i < ref->n && rc == 0; i++) {
			struct fold_item *it = &r->item[ref->first + i];
			struct acc_fold_layout l = {.n = 0};
			struct fold_laid *laid = &f->laid[ref->first + i];
			if (!it->split && it->stat.known != 0 && laid->layout.n == 0)
				laid->layout = acc_fold_copies_of(g);
			if (!it->split)
				continue;
			const struct fold_item *own = &g->device.item[k->first + i];
			if (acc_fold_gather(g, &g->mesh, t, v, i))
				l = acc_fold_choose(g, k, own, NULL, own->tol);
			struct acc_fold_stat whole, unknown = *FOLD_STAT(it);
			unknown.ndim = ACC_FOLD_NDIM + 1;
			it->split = false;
			const bool known = l.n > 0 &&
					   acc_fold_by_layout(g, &g->mesh, &l, INFINITY, &whole);
			if (known)
				laid->layout = l;
			rc = acc_fold_keep(&g->device, it, known ? &whole : &unknown, e);
		}
	}
	return rc;
}
