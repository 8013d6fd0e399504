/* A reference of several ranks, of another layout than the device's: it becomes one rank, too.
 *
 * What all of its ranks have is known without the device. Of what is split the statistics of the whole are
 * known, too, but not along which axis, nor by which factor: each way is tried against the device's, and the
 * calls of a line of code vote, as they do for the device. Then the reference is one rank (settle.c). */
#include "fold/impl.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_WAYS = 96 };
/* Ways in which the ranks' parts of a tensor may be a whole. */
struct ways {
	const struct fold_mesh *m;
	double tol;
	struct acc_fold_layout now;
	uint32_t n;
	struct way {
		struct acc_fold_layout layout;
		struct acc_fold_stat whole;
	} way[MOST_WAYS];
};

int
acc_fold_both(struct acc_fold *f, struct acc_err *e)
{
	f->both = calloc(1, sizeof *f->both);
	if (f->both == NULL)
		return acc_nomem(e);
	*f->both = (struct acc_fold){.spool = f->spool,
		.device = f->reference,
		.roots = f->roots,
		.groups = 1,
		.apart = 1,
		.turns = 1,
		.whole = true};
	f->reference = (struct fold_side){0};
	return 0;
}

uint32_t
acc_fold_abreast(const struct acc_fold *f)
{
	const struct fold_side *s = &f->device;
	const struct fold_step *t = &f->step[0];
	uint32_t n = f->nstep > 0;
	for (; f->nstep > 0 && n < t->nrank; n++) {
		const struct fold_segment *a = &s->segment[t->segment[0]],
					  *b = &s->segment[t->segment[n]];
		uint32_t both = 0;
		for (uint32_t i = a->first; i < a->first + a->n; i++)
			both += acc_fold_by_key(s, s->call[i].key, t->segment[n]) != FOLD_NONE;
		/* Ranks that hand tensors to each other are stages. */
		bool hands = false;
		for (uint32_t i = a->first; i < a->first + a->n; i++)
			hands |= s->call[i].peer == b->rank;
		if (hands || 4 * (uint64_t)both < 3 * (uint64_t)(a->n > b->n ? a->n : b->n))
			break;
	}
	return n > 0 && t->nrank % n == 0 ? n : f->nstep > 0 ? t->nrank : 0;
}

/* --- the ways --- */

static void
add_way(struct ways *w, const struct acc_fold_stat *whole, double scale)
{
	if (w->n == MOST_WAYS)
		return;
	struct way *x = &w->way[w->n++];
	*x = (struct way){w->now, *whole};
	x->layout.scale = scale;
	for (int i = 0; i < ACC_FOLD_NSTAT; i++)
		x->whole.v[i] *= scale;
}

/* Are their extremes the same, but for noise, of which there is `share` of what a tensor may be off by? Where most
 * of a tensor is one large number, as behind a mask, the other end is as precise as itself, and not as that is:
 * by four roundings of it in f32. */
static bool
same_ends(const struct acc_fold_stat *a, const struct acc_fold_stat *b, double share, double tol)
{
	static const int ends[2] = {ACC_FOLD_MAX, ACC_FOLD_MIN};
	const double rms = b->known & 1 << ACC_FOLD_NORM && b->count > 0
				   ? b->v[ACC_FOLD_NORM] / sqrt(b->count)
				   : 0;
	const double less = fmin(fabs(b->v[ACC_FOLD_MAX]), fabs(b->v[ACC_FOLD_MIN]));
	for (int i = 0; i < 2; i++) {
		const double x = a->v[ends[i]], y = b->v[ends[i]];
		if ((a->known & b->known & 1 << ends[i]) &&
			fabs(x - y) > share * tol * (fabs(y) + less) + FOLD_COPIES * tol * rms / 8)
			return false;
	}
	return true;
}

/* Are these one and the same, but for noise? */
static bool
twins(const struct acc_fold_stat *a, const struct acc_fold_stat *b, double tol)
{
	return a->count > 1 && acc_fold_same(a, 1, b, FOLD_COPIES * tol) == 2 &&
	       same_ends(a, b, FOLD_COPIES, tol);
}

bool
acc_fold_are_copies(const struct acc_fold_stat *part, uint32_t n, double share, double tol)
{
	struct acc_fold_stat whole;
	if (!acc_fold_join(part, n, (struct acc_place){.kind = ACC_REPLICATE}, share * tol, &whole))
		return false;
	for (uint32_t i = 1; i < n; i++)
		if (!same_ends(&part[i], &part[0], share, tol))
			return false;
	return true;
}

bool
acc_fold_has_twin(const struct acc_fold_stat *part, uint32_t n, double tol)
{
	for (uint32_t i = 1; i < n; i++)
		if (twins(&part[0], &part[i], tol))
			return true;
	return false;
}

/* n parts at `from`, joined along this axis of the mesh and those before it; to: room behind. */
static void
descend(struct ways *w, int axis, const struct acc_fold_stat *from, uint32_t n,
	struct acc_fold_stat *to)
{
	if (axis < 0) {
		add_way(w, from, 1);
		return;
	}
	const uint32_t size = w->m->size[axis], left = n / size, ndim = from[0].ndim;
	/* One number may be a sum, or a mean; else what all have is not split. */
	const uint32_t last = from[0].count == 1 ? ndim + 1 : ndim;
	for (uint32_t c = 0; c <= last; c++) {
		struct acc_place p = {.kind = ACC_REPLICATE};
		bool fits = true;
		if (c > 0)
			p = c <= ndim ? (struct acc_place){ACC_SHARD, (uint8_t)(c - 1)}
				      : (struct acc_place){ACC_PARTIAL, 0};
		for (uint32_t i = 0; i < left && fits; i++)
			fits = acc_fold_join(&from[i * size], size, p, w->tol, &to[i]) &&
			       (c == 0 ? acc_fold_are_copies(&from[i * size], size, 1, w->tol)
				       : !acc_fold_has_twin(&from[i * size], size, w->tol));
		if (!fits)
			continue;
		w->now.at[axis] = p;
		descend(w, axis - 1, to, left, to + left);
		bool sure = c == 0;
		for (uint32_t i = 0; i < left && sure; i++)
			sure = acc_fold_are_copies(&from[i * size], size, FOLD_COPIES, w->tol);
		if (sure)
			return;
	}
}

/* Gradients, and losses, are as many times larger as the ranks' means are of fewer samples; so are those of what
 * one rank alone has, and sums over all ranks. */
static void
add_factors(struct ways *w, enum fold_factor factor)
{
	const uint32_t n = w->n;
	for (uint32_t i = 0; i < n; i++) {
		const struct way x = w->way[i];
		double all = 1;
		for (uint32_t d = 0; d < w->m->n; d++)
			if (x.layout.at[d].kind != ACC_REPLICATE || factor == FOLD_OF_COPIES) {
				all *= w->m->size[d];
				w->now = x.layout;
				if ((factor != FOLD_NO_FACTOR || x.whole.count == 1) &&
					w->m->size[d] > 1)
					add_way(w, &x.whole, 1.0 / w->m->size[d]);
			}
		w->now = x.layout;
		if (w->m->n > 1 && all > 1 && (factor != FOLD_NO_FACTOR || x.whole.count == 1))
			add_way(w, &x.whole, 1 / all);
	}
}

/* Of item i of a call of the reference. */
static void
find_ways(struct acc_fold *g, const struct fold_call *ref, uint32_t i, struct ways *w)
{
	const struct fold_step *t = &g->step[ref->segment];
	const struct fold_virtual *v = &t->v[ref->of];
	const struct fold_call *k = &g->device.call[t->call[v->rank]];
	const struct fold_item *own = &g->device.item[k->first + i];
	*w = (struct ways){.m = &g->mesh, .tol = own->tol};
	w->now.n = (uint8_t)g->mesh.n;
	if (!acc_fold_gather(g, &g->mesh, t, v, i))
		return;
	descend(w, (int)g->mesh.n - 1, g->part, g->mesh.zip, g->part + g->mesh.zip);
	add_factors(w, acc_fold_factor_of(g, k, v, own));
}

/* Has another rank what the first one has, though by this layout it is another part, or summand? Or something else,
 * though by this layout it is the same? */
static bool
mistakes(const struct acc_fold *f, const struct fold_mesh *m, const struct acc_fold_layout *l,
	double tol)
{
	for (uint32_t r = 1; r < m->zip; r++) {
		uint32_t at = r;
		bool other = false;
		for (int d = (int)m->n - 1; d >= 0; d--) {
			other |= at % m->size[d] != 0 && l->at[d].kind != ACC_REPLICATE;
			at /= m->size[d];
		}
		if (other ? twins(&f->part[0], &f->part[r], tol)
			  : !same_ends(&f->part[r], &f->part[0], 1, tol))
			return true;
	}
	return false;
}

/* Where statistics leave open along which axis both sides are split, it is the last that it may be, as those of
 * weights and heads stand behind the batch: any rule would do, if it says the same whichever side is asked. */
static bool
sooner(const struct acc_fold_stat *a, const struct acc_fold_stat *b)
{
	for (uint32_t d = 0; d < a->ndim && a->ndim == b->ndim; d++)
		if (a->shape[d] != b->shape[d])
			return a->shape[d] < b->shape[d];
	return false;
}

int
acc_fold_like(struct acc_fold *f, const struct fold_mesh *m, uint32_t call,
	const struct fold_item *it, double tol, enum fold_factor factor, struct acc_fold_layout *l,
	struct acc_fold_layout *reference)
{
	struct ways w;
	bool turned = false;
	int best = -1;
	if (!it->split)
		return it->stat.known == 0 ? -1
					   : acc_fold_solve(f, m, FOLD_STAT(it), tol, factor, l);
	const struct fold_call *ref = &f->reference.call[call];
	find_ways(f->both, ref, (uint32_t)(it - &f->reference.item[ref->first]), &w);
	const struct acc_fold_stat *whole = NULL;
	for (uint32_t i = 0; i < w.n; i++) {
		struct acc_fold_layout own = {.n = 0};
		/* A loss of all ranks is a mean of theirs, which was added last; the sum is, too, of a sum. */
		const struct way *way = &w.way[it->stat.count == 1 ? w.n - 1 - i : i];
		if (way->whole.known == 0)
			continue;
		int sure = acc_fold_solve(f, m, &way->whole, tol, factor, &own);
		if (sure > 0 && mistakes(f, m, &own, tol))
			continue;
		/* Axes in their order before the other way round. */
		bool turns = best == 2 && turned && !own.swapped;
		if (sure < best || (sure == best && !turns &&
					   (own.swapped != turned || !sooner(&way->whole, whole))))
			continue;
		turned = own.swapped;
		whole = &way->whole;
		best = sure;
		*l = own;
		*reference = way->layout;
	}
	if (best > 0)
		acc_fold_straighten(f->both, &f->both->mesh, reference);
	return best;
}

void
acc_fold_ends(const struct acc_fold_stat *part, uint32_t n, double ends[2])
{
	const uint8_t both = 1 << ACC_FOLD_MAX | 1 << ACC_FOLD_MIN;
	ends[0] = -INFINITY;
	ends[1] = INFINITY;
	for (uint32_t i = 0; i < n; i++) {
		if (part[i].count == 0)
			continue;
		const bool known = (part[i].known & both) == both;
		ends[0] = known ? fmax(ends[0], part[i].v[ACC_FOLD_MAX]) : NAN;
		ends[1] = known ? fmin(ends[1], part[i].v[ACC_FOLD_MIN]) : NAN;
		if (!(isfinite(ends[0]) && isfinite(ends[1])))
			break;
	}
}

/* --- the reference as one rank --- */

struct acc_fold_layout
acc_fold_copies_of(const struct acc_fold *g)
{
	struct acc_fold_layout all = {.n = (uint8_t)g->mesh.n, .scale = 1};
	for (uint32_t d = 0; d < g->mesh.n; d++)
		all.at[d].kind = ACC_REPLICATE;
	return all;
}

/* What all ranks have is known at once, but for a factor. */
static int
fill_item(struct acc_fold *g, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	struct fold_item *it, struct acc_err *e)
{
	const struct acc_fold_layout all = acc_fold_copies_of(g);
	double ends[2] = {NAN, NAN};
	struct acc_fold_stat whole;
	if (!it->tensor || g->mesh.zip == 1)
		return 0;
	if (acc_fold_factor_of(g, &g->device.call[t->call[v->rank]], v, it) != FOLD_OF_COPIES &&
		acc_fold_gather(g, &g->mesh, t, v, i) &&
		acc_fold_are_copies(g->part, g->mesh.zip, FOLD_COPIES, it->tol) &&
		acc_fold_by_layout(g, &g->mesh, &all, FOLD_COPIES * it->tol, &whole))
		return acc_fold_keep(&g->device, it, &whole, e);
	it->split = true;
	if (acc_fold_gather(g, &g->mesh, t, v, i))
		acc_fold_ends(g->part, g->mesh.zip, ends);
	it->stat.known = 0;
	it->stat.v[ACC_FOLD_MAX] = ends[0];
	it->stat.v[ACC_FOLD_MIN] = ends[1];
	return 0;
}

static int
add_call(struct acc_fold *f, uint32_t step, uint32_t of, struct fold_numbers *n, struct acc_err *e)
{
	struct acc_fold *g = f->both;
	const struct fold_step *t = &g->step[step];
	struct fold_virtual *v = &t->v[of];
	const struct fold_call *k = &g->device.call[t->call[v->rank]];
	struct fold_side *r = &f->reference;
	int rc = acc_fold_number(g, n, k, v, e);
	struct fold_call *c = acc_grow(r->call, &r->call_cap, (size_t)r->ncall + 1, sizeof *c, e);
	if (rc < 0 || c == NULL)
		return ACC_ENOMEM;
	r->call = c;
	if (!ACC_ROOM(r->item, r->item_cap, (size_t)r->nitem + k->n + 1, e))
		return ACC_ENOMEM;
	c += r->ncall;
	*c = *k;
	c->segment = step;
	c->first = r->nitem;
	c->of = of;
	c->call = v->number >= 0 ? v->number : c->call;
	c->twin = acc_fold_twin(c->base, c->call, c->dir);
	for (uint32_t i = 0; i < k->n && rc == 0; i++) {
		r->item[r->nitem] = g->device.item[k->first + i];
		rc = fill_item(g, t, v, i, &r->item[r->nitem++], e);
	}
	rc = rc < 0 ? rc : acc_fold_index(r, r->ncall, e);
	r->ncall++;
	return rc;
}

int
acc_fold_both_build(struct acc_fold *f, const struct fold_mesh *m, struct acc_err *e)
{
	struct acc_fold *g = f->both;
	struct fold_side *r = &f->reference;
	g->mesh = *m;
	acc_fold_side_release(r);
	int rc = acc_fold_steps(g, m, e);
	for (uint32_t s = 0; s < g->nstep && rc == 0; s++) {
		struct fold_numbers n = {.count = {0}};
		if (!ACC_ROOM(r->segment, r->segment_cap, (size_t)r->nsegment + 1, e))
			return ACC_ENOMEM;
		r->segment[r->nsegment++] = (struct fold_segment){.step = g->step[s].step,
			.rank = g->device.segment[g->step[s].segment[0]].rank,
			.first = r->ncall};
		for (uint32_t i = 0; i < g->step[s].nv && rc == 0; i++)
			rc = add_call(f, s, i, &n, e);
		r->segment[s].n = r->ncall - r->segment[s].first;
		acc_fold_numbers_release(&n);
	}
	return rc;
}
