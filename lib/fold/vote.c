/* The layout of a line of code and argument: what most of its calls say. */
#include "fold/impl.h"

#include <math.h>

uint64_t
acc_fold_shapes(const struct acc_fold *f, const struct fold_call *k)
{
	uint64_t h = 0;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_stat *s = &f->device.item[k->first + i].stat;
		const uint64_t id[2] = {h, s->ndim <= ACC_FOLD_NDIM
						   ? acc_hash(s->shape, s->ndim * sizeof *s->shape)
						   : 0};
		h = acc_hash(id, sizeof id);
	}
	return h;
}

/* Where stacks are unknown, calls of one operator are told apart by the shapes of their tensors. */
static uint64_t
class_id(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	const uint64_t id[3] = {k->op, k->line == 0 ? acc_fold_shapes(f, k) : k->line, it->pos};
	return acc_hash(id, sizeof id);
}

/* Of one line of code whoever calls it, for tensors of the same shapes. */
static uint64_t
wide_id(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	const uint64_t id[4] = {k->op, acc_fold_shapes(f, k), it->pos,
		acc_ids_get(&f->spots, k->line)};
	return acc_hash(id, sizeof id);
}

uint32_t
acc_fold_class(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	return acc_ids_get(&f->by_class, class_id(f, k, it));
}

uint32_t
acc_fold_wide(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	return acc_ids_get(&f->by_class, wide_id(f, k, it));
}

/* Where there is none yet it is made. */
static struct fold_class *
class_of(struct acc_fold *f, uint64_t h, const struct fold_item *it, struct acc_err *e)
{
	uint32_t at = acc_ids_get(&f->by_class, h);
	if (at != ACC_NOID && f->cls[at].at == FOLD_NOWHERE)
		f->cls[at].at = it->at;
	if (at != ACC_NOID)
		return &f->cls[at];
	if (!ACC_ROOM(f->cls, f->cls_cap, (size_t)f->ncls + 1, e))
		return NULL;
	struct fold_class *c = f->cls;
	c += f->ncls;
	*c = (struct fold_class){.id = h, .at = it->at};
	return acc_ids_put(&f->by_class, h, f->ncls++, false, e) < 0 ? NULL : c;
}

static bool
same(const struct acc_fold_layout *a, const struct acc_fold_layout *b)
{
	bool equal = a->n == b->n && a->scale == b->scale && a->swapped == b->swapped &&
		     a->cut == b->cut && a->zeros == b->zeros;
	for (uint32_t d = 0; d < a->n && equal; d++)
		equal = a->at[d].kind == b->at[d].kind && a->at[d].axis == b->at[d].axis;
	return equal;
}

static void
add_vote(struct fold_class *c, const struct acc_fold_layout *l)
{
	uint32_t i = 0;
	while (i < c->n && !same(&c->vote[i].layout, l))
		i++;
	if (i == c->n && c->n < FOLD_VOTES) {
		c->vote[c->n].layout = *l;
		c->vote[c->n++].votes = 0;
	}
	if (i < c->n)
		c->vote[i].votes++;
}

double
acc_fold_alone_scale(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *own, const struct acc_fold_stat *part,
	const struct acc_fold_stat *want, double tol)
{
	double mean = 1.0 / f->mesh.zip;
	if (part->ndim > ACC_FOLD_NDIM || want->ndim > ACC_FOLD_NDIM)
		return 0;
	if (acc_fold_same(part, 1, want, tol) == 2)
		return 1;
	return acc_fold_factor(f, k, own) != FOLD_NO_FACTOR &&
			       acc_fold_same(part, mean, want, tol) == 2
		       ? mean
		       : 0;
}

/* The classes of its line of code, and of its line and shapes. */
static int
classes(struct acc_fold *f, const struct fold_call *k, const struct fold_item *own, uint32_t cls[2],
	struct acc_err *e)
{
	const uint64_t id[2] = {class_id(f, k, own), wide_id(f, k, own)};
	for (int i = 0; i < 2; i++) {
		struct fold_class *c = class_of(f, id[i], own, e);
		if (c == NULL)
			return ACC_ENOMEM;
		c->back = k->dir == FOLD_BACKWARD;
		c->wide = i > 0;
		cls[i] = (uint32_t)(c - f->cls);
	}
	return 0;
}

int
acc_fold_say(struct acc_fold *f, const struct fold_call *k, const struct fold_item *own,
	const struct acc_fold_layout *l, struct acc_err *e)
{
	uint32_t cls[2];
	int rc = classes(f, k, own, cls, e);
	for (int i = 0; i < 2 && rc == 0; i++)
		add_vote(&f->cls[cls[i]], l);
	return rc;
}

int
acc_fold_abstain(struct acc_fold *f, const struct fold_call *k, const struct fold_item *own,
	struct acc_err *e)
{
	uint32_t cls[2];
	int rc = classes(f, k, own, cls, e);
	for (int i = 0; i < 2 && rc == 0; i++)
		f->cls[cls[i]].blank++;
	return rc;
}

/* Integers of which the extremes alone are known, as recorders have them, such as positions: one call may be
 * laid out by chance so that these are the reference's, so that those that are not vote, too. */
static bool
is_ranged(const struct acc_fold *f, const struct fold_item *own, const struct fold_item *it)
{
	const uint8_t range = 1 << ACC_FOLD_MAX | 1 << ACC_FOLD_MIN;
	bool known = f->mesh.n == 1 && own->exact && it->exact && it->stat.known == range &&
		     it->stat.count > 1 && it->stat.v[ACC_FOLD_MAX] - it->stat.v[ACC_FOLD_MIN] > 1;
	for (uint32_t r = 0; r < f->mesh.zip; r++)
		known &= f->part[r].known == range && f->part[r].count > 1;
	return known;
}

/* A number that each rank makes of its part of the gradients, as the norm of a shard is: no sum of them is the
 * reference's, but by chance. */
static bool
is_ranks_number(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	bool others = false;
	for (uint32_t r = 1; r < f->mesh.zip; r++)
		others |= f->part[r].v[ACC_FOLD_MAX] != f->part[0].v[ACC_FOLD_MAX];
	return others && k->late && k->dir == FOLD_FORWARD && it->stat.count == 1;
}

/* For this layout, if it splits, else for none. */
static int
vote_range(int sure, struct acc_fold_layout *l)
{
	if (sure == 0 || l->n == 0 || l->at[0].kind != ACC_SHARD)
		*l = (struct acc_fold_layout){.n = 0};
	return 2;
}

static uint32_t
tensors_of(const struct fold_side *s, const struct fold_call *k, bool output)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *it = &s->item[k->first + i];
		n += it->tensor && it->output == output && (output || it->listed);
	}
	return n;
}

bool
acc_fold_of_others(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, const struct fold_item *own)
{
	const struct fold_side *d = &f->device, *r = &f->reference;
	const struct fold_call *k = &d->call[t->call[v->rank]];
	if (!k->late || k->dir != FOLD_FORWARD || !own->tensor || own->moved ||
		!(own->output || own->listed))
		return false;
	return v->mate == FOLD_NONE ? f->mesh.stages > 1 && tensors_of(d, k, own->output) > 1
				    : tensors_of(d, k, own->output) !=
					      tensors_of(r, &r->call[v->mate], own->output);
}

const struct fold_item *
acc_fold_counterpart(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i)
{
	const struct fold_side *d = &f->device, *r = &f->reference;
	const struct fold_call *k = &d->call[t->call[v->rank]];
	const struct fold_item *own = &d->item[k->first + i], *it;
	if (v->mate == FOLD_NONE)
		return NULL;
	if (acc_fold_of_others(f, t, v, own))
		return NULL;
	const struct fold_call *mate = &r->call[v->mate];
	/* What a tensor is cut into, or put together of, by ranks that are others on the two sides. */
	if (acc_fold_many(f) && (own->output ? k->moves : own->listed) &&
		tensors_of(d, k, own->output) != tensors_of(r, mate, own->output))
		return NULL;
	it = acc_fold_item_at(r, mate, own->pos, i);
	return it != NULL && it->tensor ? it : NULL;
}

static int
vote_call(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v, struct acc_err *e)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *own = &f->device.item[k->first + i];
		struct acc_fold_layout l;
		if (!own->tensor)
			continue;
		uint32_t cls[2];
		int rc = classes(f, k, own, cls, e);
		if (rc < 0)
			return rc;
		const struct fold_item *it = acc_fold_counterpart(f, t, v, i);
		if (it == NULL || !acc_fold_gather(f, &f->mesh, t, v, i))
			continue;
		double tol = own->tol > it->tol ? own->tol : it->tol;
		double scale = !acc_fold_lone(f, v) ? 0
						    : acc_fold_alone_scale(f, k, own, f->part,
							      FOLD_STAT(it), tol);
		if (scale > 0)
			l = (struct acc_fold_layout){.n = 1,
				.at = {{ACC_ALONE, 0}},
				.scale = scale};
		int sure = scale > 0 ? 2 : 0;
		if (sure == 0 && !acc_fold_lone(f, v) && !acc_fold_one_has_all(f, &f->mesh))
			sure = acc_fold_solve(f, &f->mesh, FOLD_STAT(it), tol,
				acc_fold_factor_of(f, k, v, own), &l);
		if (sure < 2 && v->alone == 0 && is_ranged(f, own, it))
			sure = vote_range(sure, &l);
		if (sure < 2 && v->alone == 0 && is_ranks_number(f, k, it)) {
			l = (struct acc_fold_layout){.n = 0};
			sure = 2;
		}
		if (sure == 2) {
			add_vote(&f->cls[cls[0]], &l);
			add_vote(&f->cls[cls[1]], &l);
		}
	}
	return 0;
}

/* The factor of most gradients that are split: by how many ranks the loss is a mean, which shapes alone
 * do not tell. */
static double
back_scale(const struct acc_fold *f)
{
	uint32_t votes[2] = {0, 0};
	double scale = 0;
	for (uint32_t i = 0; i < f->ncls; i++)
		for (uint32_t k = 0; k < f->cls[i].n; k++) {
			const struct acc_fold_layout *l = &f->cls[i].vote[k].layout;
			bool split = false;
			for (uint32_t d = 0; d < l->n; d++)
				split |= l->at[d].kind == ACC_SHARD;
			if (!f->cls[i].back || !split || f->cls[i].wide)
				continue;
			votes[l->scale == 1] += f->cls[i].vote[k].votes;
			scale = l->scale == 1 ? scale : l->scale;
		}
	return votes[0] + votes[1] == 0 ? 0 : votes[1] >= votes[0] ? 1 : scale;
}

int
acc_fold_vote(struct acc_fold *f, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep; s++)
		for (uint32_t i = 0; i < f->step[s].nv && rc == 0; i++)
			rc = vote_call(f, &f->step[s], &f->step[s].v[i], e);
	f->back = back_scale(f);
	return rc;
}

struct acc_fold_layout
acc_fold_winner(const struct fold_class *c)
{
	uint32_t all = 0, best = 0;
	if (c->is_given)
		return c->given;
	for (uint32_t i = 0; i < c->n; i++) {
		all += c->vote[i].votes;
		best = c->vote[i].votes > c->vote[best].votes ? i : best;
	}
	/* What is the same on all ranks is known at once: the others do not vote, and count. */
	all += all > 0 && acc_fold_replicated(&c->vote[best].layout) ? c->blank : 0;
	/* Two thirds: a line that is laid out in two ways is not settled by one call more. */
	if (all == 0 || 3 * c->vote[best].votes < 2 * all)
		return (struct acc_fold_layout){.n = 0};
	return c->vote[best].layout;
}

/* May these parts be laid out so? The values of what all ranks have may differ. */
static bool
fits(struct acc_fold *f, const struct acc_fold_layout *l, const struct acc_fold_stat *want)
{
	struct acc_fold_stat whole;
	return acc_fold_by_layout(f, &f->mesh, l, INFINITY, &whole) &&
	       (want == NULL || (whole.ndim == want->ndim &&
					memcmp(whole.shape, want->shape,
						whole.ndim * sizeof *whole.shape) == 0));
}

/* The layout of most of those votes that may be, and of those for none: tensors of the same shape may be whole in one place
 * and parts in another. */
static struct acc_fold_layout
fitting(struct acc_fold *f, const struct fold_class *c, const struct acc_fold_stat *want)
{
	struct fold_class some = {.n = 0};
	for (uint32_t i = 0; i < c->n; i++)
		if (c->vote[i].layout.n == 0 || (c->vote[i].layout.at[0].kind != ACC_ALONE &&
							fits(f, &c->vote[i].layout, want)))
			some.vote[some.n++] = c->vote[i];
	return acc_fold_winner(&some);
}

bool
acc_fold_is_member(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	uint32_t n = 0;
	if (!it->output || !k->moves)
		return it->listed && !it->output;
	for (uint32_t i = 0; i < k->n; i++)
		n += f->device.item[k->first + i].tensor && f->device.item[k->first + i].output;
	return n > 1;
}

double
acc_fold_nearest_factor(struct acc_fold *f, const struct acc_fold_layout *l,
	const struct acc_fold_stat *want, double tol)
{
	const double near = 1.25; /* factors are 2 apart at least */
	const uint8_t norm = 1 << ACC_FOLD_NORM;
	const double scale[2] = {1, 1.0 / f->mesh.zip};
	struct acc_fold_stat whole;
	if (!acc_fold_by_layout(f, &f->mesh, l, tol, &whole) || !(whole.known & want->known & norm))
		return 0;
	for (int i = 0; i < 2; i++) {
		double a = whole.v[ACC_FOLD_NORM] * scale[i], b = want->v[ACC_FOLD_NORM];
		if (a <= b * near && b <= a * near)
			return scale[i];
	}
	return 1;
}

/* Is it, where the reference has nothing to tell it by and several ranks, too, said to be the same on all ranks,
 * and is not? Most of what a line lays out may be, and the rest flat parts of weights. */
static bool
belied(struct acc_fold *f, const struct acc_fold_layout *l, const struct acc_fold_stat *want)
{
	struct acc_fold_stat whole;
	return want == NULL && (f->groups > 1 || f->both != NULL) && acc_fold_replicated(l) &&
	       !acc_fold_by_layout(f, &f->mesh, l, FOLD_NOISE, &whole);
}

/* Is an input, or what only moves one, said to be the same on all ranks, another on each of three and more? One rank's
 * fault does not do that: it is each rank's own, as the weights of its experts are, beside others of the line. */
static bool
are_own(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it,
	const struct acc_fold_layout *l, double tol)
{
	return acc_fold_replicated(l) && f->mesh.zip > 2 && k->dir == FOLD_FORWARD && !k->late &&
	       (!it->output || k->moves) && !it->exact &&
	       !acc_fold_has_twin(f->part, f->mesh.zip, tol);
}

/* What an optimizer is given of each weight is in the order of the weights: what all ranks have alike, of the reference's
 * shape, is its member, whatever it holds; or parts that have this shape along one axis alone. */
static struct acc_fold_layout
given_each(struct acc_fold *f, const struct fold_call *k, const struct fold_item *it,
	const struct acc_fold_stat *want, double tol)
{
	struct acc_fold_layout l = acc_fold_copies_of(f);
	const bool each = k->late && !it->output && it->stat.count > 1 && want != NULL;
	if (each && fits(f, &l, want))
		l.n = acc_fold_are_copies(f->part, f->mesh.zip, FOLD_COPIES, tol) ? l.n : 0;
	else if (!each || !acc_fold_by_shape(f, &f->mesh, it, want, tol, &l))
		l.n = 0;
	return l;
}

static struct acc_fold_layout
choose(struct acc_fold *f, const struct fold_call *k, const struct fold_item *it,
	const struct acc_fold_stat *want, double tol)
{
	uint32_t at = acc_fold_class(f, k, it);
	const struct fold_class *c = at == ACC_NOID ? NULL : &f->cls[at];
	struct acc_fold_layout l = {.n = 0};
	if (c != NULL)
		l = acc_fold_winner(c);
	if ((c != NULL && c->is_given && l.n == 0) ||
		(l.n > 0 && fits(f, &l, want) && !belied(f, &l, want) &&
			!are_own(f, k, it, &l, tol)))
		return l;
	if (want != NULL &&
		acc_fold_solve(f, &f->mesh, want, tol, acc_fold_factor(f, k, it), &l) == 2)
		return l;
	/* Shapes alone may agree by chance. */
	if (f->mesh.zip > 1 && acc_fold_is_member(f, k, it))
		return given_each(f, k, it, want, tol);
	/* All calls with its callers are behind a fault, or are at odds, as those that lay out weights;
	 * others, or those of its shapes, are not. */
	at = c != NULL && acc_fold_winner(c).n > 0 ? ACC_NOID : acc_fold_wide(f, k, it);
	if (at != ACC_NOID) {
		l = fitting(f, &f->cls[at], want);
		if (l.n > 0)
			return l;
	}
	if (want != NULL && acc_fold_by_shape(f, &f->mesh, it, want, tol, &l)) {
		enum fold_factor factor = acc_fold_factor(f, k, it);
		if (factor != FOLD_NO_FACTOR && k->dir != FOLD_BACKWARD)
			l.scale = acc_fold_nearest_factor(f, &l, want, tol);
		else if (factor == FOLD_OF_PARTS && l.at[0].kind == ACC_SHARD)
			/* One rank's parts count as they stand, where no gradient says otherwise. */
			l.scale = f->back == 0 && acc_fold_in_time(&f->mesh) ? 1 : f->back;
		l.n = l.scale > 0 ? l.n : 0;
		return l;
	}
	/* What is the same on all ranks is most likely that. */
	l = (struct acc_fold_layout){.n = (uint8_t)f->mesh.n, .scale = 1};
	for (uint32_t d = 0; d < f->mesh.n; d++)
		l.at[d].kind = ACC_REPLICATE;
	struct acc_fold_stat whole;
	/* But where the reference has several ranks, too, it may have other parts, or another factor. */
	const bool guess = want == NULL &&
			   (!acc_fold_many(f) ||
				   (!acc_fold_is_member(f, k, it) &&
					   acc_fold_factor(f, k, it) == FOLD_NO_FACTOR));
	if (guess && acc_fold_by_layout(f, &f->mesh, &l, tol, &whole))
		return l;
	return (struct acc_fold_layout){.n = 0};
}

bool
acc_fold_is_sum_of(const struct fold_call *k, const struct acc_fold_layout *l)
{
	return k->sums && k->late && l->n == 1 && l->at[0].kind == ACC_SHARD;
}

/* Of one rank's micro-batches the gradients of what they share, which is no longer where there are more samples, add
 * up: by the factor of all gradients; those that are recorded of weights, which the optimizer takes, as they are. */
static bool
adds_up(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it,
	const struct acc_fold_stat *want, struct acc_fold_layout *l)
{
	const bool whole = k->dir == FOLD_OTHER && !k->talks;
	if (!acc_fold_in_time(&f->mesh) || want == NULL || it->stat.ndim != want->ndim ||
		it->stat.ndim > ACC_FOLD_NDIM || it->stat.count < 2 ||
		memcmp(it->stat.shape, want->shape, want->ndim * sizeof *want->shape) != 0 ||
		!(whole || (k->dir == FOLD_BACKWARD && l->n == 0)))
		return false;
	*l = (struct acc_fold_layout){.n = 1,
		.at = {{ACC_PARTIAL, 0}},
		.scale = whole || f->back == 0 ? 1 : f->back};
	return true;
}

/* The n-th tensor that a call takes (or gives). */
static const struct fold_item *
nth_of(const struct fold_side *s, const struct fold_call *k, bool output, uint32_t n)
{
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *it = &s->item[k->first + i];
		if (it->output == output && n-- == 0)
			return it;
	}
	return NULL;
}

/* Of summands that are split, statistics do not tell which axis of the mesh adds up; but a weight's gradient is split
 * as the weight is. */
static void
as_weight(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it,
	struct acc_fold_layout *l)
{
	const struct fold_side *s = &f->device;
	if (k->dir != FOLD_BACKWARD || !it->output || l->n < 2)
		return;
	const uint32_t at = acc_fold_by_twin(s, acc_fold_twin(k->base, k->call, FOLD_FORWARD),
		k->segment);
	uint32_t n = 0;
	for (uint32_t i = k->first; &s->item[i] < it; i++)
		n += s->item[i].output;
	const struct fold_item *w = at == ACC_NOID ? NULL : nth_of(s, &s->call[at], false, n);
	const uint32_t cls = w == NULL ? ACC_NOID : acc_fold_class(f, &s->call[at], w);
	if (cls == ACC_NOID || w->stat.count != it->stat.count)
		return;
	const struct acc_fold_layout of = acc_fold_winner(&f->cls[cls]);
	for (uint32_t a = 0; a < l->n && of.n == l->n; a++)
		for (uint32_t b = 0; b < l->n; b++)
			if (of.at[a].kind == ACC_REPLICATE && l->at[a].kind == ACC_SHARD &&
				l->at[b].kind == ACC_PARTIAL && of.at[b].kind == ACC_SHARD &&
				of.at[b].axis == l->at[a].axis &&
				f->mesh.size[a] == f->mesh.size[b]) {
				const struct acc_place p = l->at[a];
				l->at[a] = l->at[b];
				l->at[b] = p;
			}
}

/* Are these gradients, of which none is the reference's and which are nearly the same alone, no copies? In 16 bits those
 * of two ranks' samples may be as near. */
static bool
are_summands(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it,
	const struct acc_fold_stat *want, double tol, const struct acc_fold_layout *l)
{
	if (k->dir != FOLD_BACKWARD || !it->output || want == NULL || !acc_fold_replicated(l) ||
		acc_fold_are_copies(f->part, f->mesh.zip, FOLD_COPIES, tol))
		return false;
	for (uint32_t r = 0; r < f->mesh.zip; r++)
		if (acc_fold_same(&f->part[r], l->scale, want, tol) == 2)
			return false;
	return true;
}

struct acc_fold_layout
acc_fold_choose(struct acc_fold *f, const struct fold_call *k, const struct fold_item *it,
	const struct acc_fold_stat *want, double tol)
{
	struct acc_fold_layout l = choose(f, k, it, want, tol);
	struct acc_fold_stat whole;
	if (adds_up(f, k, it, want, &l))
		return l;
	/* Others of the line may be filled up by zeros, and this by something else, which elements tell. */
	if (l.cut > 0 && l.zeros && want != NULL && f->roots != NULL)
		l.zeros = acc_fold_by_layout(f, &f->mesh, &l, tol, &whole) &&
			  acc_fold_same(&whole, 1, want, tol) > 0;
	if (acc_fold_is_sum_of(k, &l) || are_summands(f, k, it, want, tol, &l))
		l.n = 0;
	as_weight(f, k, it, &l);
	return l;
}
