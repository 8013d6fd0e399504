/* Lines of code that each rank calls for itself, as those of its own experts: the reference has a call
 * for each rank's. */
#include "fold/impl.h"

static uint64_t
line_id(const struct fold_call *k, uint64_t shapes)
{
	const uint64_t id[3] = {k->base, k->line, shapes};
	return acc_hash(id, sizeof id);
}

bool
acc_fold_is_alone(const struct acc_fold *f, const struct fold_call *k)
{
	return f->alone.n > 0 &&
	       (acc_ids_get(&f->alone, line_id(k, 0)) != ACC_NOID ||
		       acc_ids_get(&f->alone, line_id(k, acc_fold_shapes(f, k))) != ACC_NOID);
}

/* Does this call, on one rank alone, take what one of the reference takes, or, where that is a single
 * tensor, also give what it gives? */
static bool
is_one(const struct acc_fold *f, const struct fold_call *k, const struct fold_call *o)
{
	uint32_t sure = 0;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *own = &f->device.item[k->first + i], *it;
		it = acc_fold_item_at(&f->reference, o, own->pos, i);
		if (!own->tensor || it == NULL || !it->tensor || (own->output && sure > 1))
			continue;
		double tol = own->tol > it->tol ? own->tol : it->tol;
		int like = own->stat.ndim > ACC_FOLD_NDIM || it->stat.ndim > ACC_FOLD_NDIM
				   ? 0
				   : acc_fold_same(&own->stat, 1, &it->stat, tol);
		if (like == 0)
			return false;
		sure += like == 2;
	}
	return sure > 1;
}

static bool
holds(const struct acc_fold *f, const struct fold_call *k)
{
	bool any = false;
	for (uint32_t i = 0; i < k->n; i++)
		any |= f->device.item[k->first + i].output &&
		       f->device.item[k->first + i].stat.count > 0;
	return any;
}

/* On how many ranks is it one of the reference's calls that no other rank's is? *all: of those where it
 * has elements, as experts without tokens have not. */
static uint32_t
ranks_alone(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t *all)
{
	const struct fold_segment *g = &f->reference.segment[t->reference];
	uint32_t n = 0, before = FOLD_NONE;
	for (uint32_t r = 0; r < f->mesh.zip; r++) {
		uint32_t call = t->call[v->rank + r], found = FOLD_NONE;
		if (call == FOLD_NONE)
			continue;
		const struct fold_call *k = &f->device.call[call];
		if (!holds(f, k))
			continue;
		++*all;
		for (uint32_t i = g->first; i < g->first + g->n && found == FOLD_NONE; i++)
			if (f->reference.call[i].op == k->op && is_one(f, k, &f->reference.call[i]))
				found = i;
		n += found != FOLD_NONE && found != before;
		before = found;
	}
	return n;
}

/* Is it, of all ranks together, what the reference has? */
static bool
folds(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	bool any = false;
	for (uint32_t i = 0; i < k->n && v->mate != FOLD_NONE && !any; i++) {
		const struct fold_item *own = &f->device.item[k->first + i], *it;
		struct acc_fold_layout l;
		it = acc_fold_item_at(&f->reference, &f->reference.call[v->mate], own->pos, i);
		any = own->tensor && it != NULL && it->tensor &&
		      acc_fold_gather(f, &f->mesh, t, v, i) && !acc_fold_one_has_all(f, &f->mesh) &&
		      acc_fold_solve(f, &f->mesh, &it->stat, own->tol, false, &l) == 2;
	}
	return any;
}

/* How many ranks call this line of code, and how many of these for themselves. */
static int
count_alone(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v,
	struct acc_ids *seen, struct acc_ids *like, struct acc_err *e)
{
	struct fold_call *k = &f->device.call[t->call[v->rank]];
	k->mated = v->mate != FOLD_NONE;
	if (k->dir != FOLD_FORWARD || k->talks || k->line == 0)
		return 0;
	const uint64_t id[2] = {line_id(k, 0), line_id(k, acc_fold_shapes(f, k))};
	uint32_t of = 0, n = folds(f, t, v) ? 0 : ranks_alone(f, t, v, &of);
	int rc = 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		uint32_t all = acc_ids_get(seen, id[i]), is = acc_ids_get(like, id[i]);
		all = (all == ACC_NOID ? 0 : all) + (of > 0 ? of : f->mesh.zip);
		is = (is == ACC_NOID ? 0 : is) + n;
		rc = acc_ids_put(seen, id[i], all, true, e);
		rc = rc < 0 ? rc : acc_ids_put(like, id[i], is, true, e);
	}
	return rc;
}

int
acc_fold_alone(struct acc_fold *f, struct acc_err *e)
{
	struct acc_ids seen = {0}, like = {0};
	const struct fold_mesh *m = &f->mesh;
	bool may = m->n == 1 && m->micro == 1 && m->stages == 1;
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep && may; s++)
		for (uint32_t i = 0; i < f->step[s].nv && rc == 0; i++)
			if (f->step[s].reference != FOLD_NONE)
				rc = count_alone(f, &f->step[s], &f->step[s].v[i], &seen, &like, e);
	/* A line of code is so if most of its calls are. */
	for (uint32_t i = 0; i < f->device.ncall && rc == 0; i++)
		for (int x = 0; x < 2 && rc == 0; x++) {
			const struct fold_call *k = &f->device.call[i];
			uint64_t id = line_id(k, x == 0 ? 0 : acc_fold_shapes(f, k));
			uint32_t all = acc_ids_get(&seen, id), is = acc_ids_get(&like, id);
			if (all != ACC_NOID && is != ACC_NOID && is > 0 && 2 * (uint64_t)is >= all)
				rc = acc_ids_put(&f->alone, id, 1, true, e);
		}
	acc_ids_release(&seen);
	acc_ids_release(&like);
	return rc < 0 ? rc : f->alone.n > 0;
}
