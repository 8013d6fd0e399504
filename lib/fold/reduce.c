/* What stands for a sum that each rank has a summand of: what a communication makes of it.
 *
 * A rank's part of a product, or the gradient of its own samples, is no tensor of the reference, and
 * statistics of a sum cannot be had from those of the summands. But a communication takes it on
 * every rank, as its statistics show, and gives the sum; and what then only scales it, where the
 * reference calls nothing like that, gives the mean. A bias that the reference's product takes is
 * added behind the communication, once. */
#include "fold/impl.h"

#include <math.h>

static uint64_t
digest(const struct fold_stat *s)
{
	uint64_t h = acc_hash(s->v, sizeof s->v);
	const double id[2] = {s->count, s->known};
	h ^= acc_hash(id, sizeof id);
	return h;
}

/* Is it told from others by its statistics? */
static bool
telling(const struct fold_stat *s)
{
	return s->known == (1 << ACC_FOLD_NSTAT) - 1 && s->v[ACC_FOLD_MAX] != s->v[ACC_FOLD_MIN];
}

static bool
equal(const struct fold_stat *a, const struct fold_stat *b)
{
	bool same = a->count == b->count && a->known == b->known;
	for (int i = 0; i < ACC_FOLD_NSTAT; i++)
		same &= a->v[i] == b->v[i];
	return same;
}

int
acc_fold_takers(struct acc_fold *f, struct fold_step *t, struct acc_err *e)
{
	int rc = 0;
	/* Ranks that are one of several of the reference's sum up with the others, too. */
	for (uint32_t i = 0; i < t->nv && rc == 0 && f->groups == 1; i++) {
		const struct fold_call *k = &f->device.call[t->call[t->v[i].rank]];
		for (uint32_t x = 0; x < k->n && (k->talks || k->scales || k->adds) && rc == 0;
			x++) {
			const struct fold_item *it = &f->device.item[k->first + x];
			/* What a buffer holds before it is filled may be what another one held. */
			if (!it->tensor || it->output || it->fills || !telling(&it->stat) ||
				t->v[i].mate != FOLD_NONE)
				continue;
			/* Two that take the same are told apart by nothing. */
			uint64_t h = digest(&it->stat);
			bool twice = acc_ids_get(&t->takers, h) != ACC_NOID;
			rc = acc_ids_put(&t->takers, h, twice ? FOLD_NONE - 1 : i, true, e);
		}
	}
	return rc;
}

/* Do all ranks of `by` take what they have in item `it` of v? */
static bool
takes(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint64_t pos, const struct fold_virtual *by)
{
	const struct fold_side *s = &f->device;
	for (uint32_t r = 0; r < f->mesh.zip; r++) {
		uint32_t a = t->call[v->rank + r], b = t->call[by->rank + r];
		const struct fold_item *own = a == FOLD_NONE
						      ? NULL
						      : acc_fold_item_at(s, &s->call[a], pos, 0);
		bool found = false;
		for (uint32_t i = 0; own != NULL && b != FOLD_NONE && i < s->call[b].n; i++) {
			const struct fold_item *it = &s->item[s->call[b].first + i];
			found |= it->tensor && !it->output && !it->fills &&
				 equal(&it->stat, &own->stat);
		}
		if (!found)
			return false;
	}
	return true;
}

const struct fold_item *
acc_fold_lacking(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	const struct fold_item *found = NULL;
	if (v->mate == FOLD_NONE || k->dir != FOLD_FORWARD)
		return NULL;
	const struct fold_call *mate = &f->reference.call[v->mate];
	for (uint32_t i = 0; i < mate->n; i++) {
		const struct fold_item *it = &f->reference.item[mate->first + i], *own;
		own = acc_fold_item_at(&f->device, k, it->pos, i);
		if (!it->tensor || it->output || (own != NULL && own->tensor))
			continue;
		if (found != NULL)
			return NULL;
		found = it;
	}
	return found;
}

/* Does this sum take, beside what is followed, something of the shape of that bias? */
static bool
adds_bias(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *taken,
	const struct fold_item *bias)
{
	uint32_t others = 0, like = 0;
	for (uint32_t i = 0; i < k->n && bias != NULL; i++) {
		const struct fold_item *it = &f->device.item[k->first + i];
		if (!it->tensor || it->output || equal(&it->stat, &taken->stat))
			continue;
		others++;
		like += it->stat.ndim == bias->stat.ndim;
	}
	return others == 1 && like == 1;
}

/* What all ranks hand item `it` of `at` to; NULL. */
static const struct fold_virtual *
next_of(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *at,
	const struct fold_item *it)
{
	uint32_t next = telling(&it->stat) ? acc_ids_get(&t->takers, digest(&it->stat)) : ACC_NOID;
	return next >= t->nv || &t->v[next] <= at || !takes(f, t, at, it->pos, &t->v[next])
		       ? NULL
		       : &t->v[next];
}

const struct fold_virtual *
acc_fold_taker(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i)
{
	const struct fold_side *s = &f->device;
	return next_of(f, t, v, &s->item[s->call[t->call[v->rank]].first + i]);
}

/* Does it scale what is followed by a number that was computed? */
static bool
by_tensor(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *taken)
{
	bool any = false;
	for (uint32_t i = 0; i < k->n && k->scales; i++) {
		const struct fold_item *it = &f->device.item[k->first + i];
		any |= it->tensor && !it->output && it->stat.count == 1 &&
		       !equal(&it->stat, &taken->stat);
	}
	return any;
}

/* The call that makes the sum, or the mean, of what all ranks have in item i of v; *kept: the last one before
 * that is scaled by a number that was computed, or NULL. */
static const struct fold_virtual *
follow(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, uint32_t *out, const struct fold_virtual **talk,
	const struct fold_virtual **kept, uint32_t *kept_out)
{
	enum { HOPS = 4 };
	const struct fold_side *s = &f->device;
	const struct fold_virtual *at = v;
	const struct fold_item *it = &s->item[s->call[t->call[v->rank]].first + i];
	const struct fold_item *bias = it->output ? acc_fold_lacking(f, t, v) : NULL;
	bool talked = false, added = bias == NULL;
	*kept = NULL;
	for (int hop = 0; hop < HOPS; hop++) {
		const struct fold_virtual *next = next_of(f, t, at, it);
		const struct fold_call *k = next == NULL ? NULL : &s->call[t->call[next->rank]];
		if (k == NULL || (k->adds && (added || !adds_bias(f, k, it, bias))))
			break;
		if (talked && added && *kept == NULL && by_tensor(f, k, it)) {
			*kept = at;
			*kept_out = *out;
		}
		at = next;
		if (k->talks && !talked && talk != NULL)
			*talk = at;
		talked |= k->talks;
		added |= k->adds;
		it = NULL;
		for (uint32_t x = 0; x < k->n && it == NULL; x++)
			if (s->item[k->first + x].tensor && s->item[k->first + x].output) {
				it = &s->item[k->first + x];
				*out = x;
			}
		if (it == NULL)
			return NULL;
	}
	return talked && added ? at : NULL;
}

bool
acc_fold_by_reduced(struct acc_fold *f, const struct fold_mesh *m, const struct acc_fold_stat *want,
	const struct fold_item *own, double tol, struct acc_fold_layout *l,
	struct acc_fold_stat *whole)
{
	/* A factor would hide that gradients are summed and not averaged. */
	if (acc_fold_solve(f, m, want, tol, m->n > 1 ? FOLD_OF_PARTS : FOLD_NO_FACTOR, l) == 2 ||
		acc_fold_by_shape(f, m, own, want, tol, l))
		return acc_fold_by_layout(f, m, l, INFINITY, whole);
	/* All should have it now, and have not the same: some were left out. */
	*l = (struct acc_fold_layout){.n = 1, .at = {{ACC_REPLICATE, 0}}, .scale = 1};
	if (m->n == 1 && acc_fold_by_layout(f, m, l, INFINITY, whole) &&
		whole->ndim == want->ndim &&
		memcmp(whole->shape, want->shape, want->ndim * sizeof *want->shape) == 0)
		return true;
	/* A shard of all its elements in a row. */
	*l = (struct acc_fold_layout){.n = (uint8_t)m->n, .scale = 1};
	for (uint32_t d = 0; d < m->n; d++)
		l->at[d] = (struct acc_place){ACC_SHARD, 0};
	if (m->n > 1 || f->part[0].ndim != 1 || !acc_fold_by_layout(f, m, l, tol, whole) ||
		whole->count != want->count)
		return false;
	whole->ndim = want->ndim;
	memcpy(whole->shape, want->shape, sizeof whole->shape);
	return true;
}

/* How far what is made of item i of v there is from the reference's. */
static double
distance(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct fold_virtual *by, uint32_t out)
{
	const struct fold_item *own = &f->device.item[f->device.call[t->call[v->rank]].first + i],
			       *it = acc_fold_counterpart(f, t, v, i);
	struct acc_fold_stat room, whole;
	struct acc_fold_layout l;
	const struct acc_fold_stat *want = it == NULL ? NULL : acc_fold_known(&it->stat, &room);
	return want != NULL && acc_fold_gather(f, &f->mesh, t, by, out) &&
			       acc_fold_by_reduced(f, &f->mesh, want, own,
				       own->tol > it->tol ? own->tol : it->tol, &l, &whole)
		       ? acc_fold_distance(&whole, want)
		       : INFINITY;
}

const struct fold_virtual *
acc_fold_reduced(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, uint32_t *out, const struct fold_virtual **talk)
{
	const struct fold_virtual *kept;
	uint32_t kept_out = 0;
	const struct fold_virtual *by = follow(f, t, v, i, out, talk, &kept, &kept_out);
	if (by == NULL || kept == NULL)
		return by;
	/* A norm that gradients are cut to is computed, and so is a number of tokens that they are divided by: the
	 * reference's is what is made before the one, and after the other. */
	const bool before = distance(f, t, v, i, kept, kept_out) < distance(f, t, v, i, by, *out);
	acc_fold_gather(f, &f->mesh, t, v, i);
	*out = before ? kept_out : *out;
	return before ? kept : by;
}
