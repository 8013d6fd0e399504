/* Lines of code that each rank calls for itself, as those of its own experts: the reference has a call
 * for each rank's. */
#include "fold/impl.h"

#include <stdlib.h>

static uint64_t
line_id(const struct fold_call *k, uint64_t shapes)
{
	const uint64_t id[3] = {k->base, k->line, shapes};
	return acc_hash(id, sizeof id);
}

/* Of a call, whatever others of its line do. */
static uint64_t
call_id(const struct fold_call *k)
{
	const uint64_t id[3] = {k->key, UINT64_MAX, k->dir};
	return acc_hash(id, sizeof id);
}

bool
acc_fold_is_alone(const struct acc_fold *f, const struct fold_call *k)
{
	return f->alone.n > 0 &&
	       ((k->late && acc_ids_get(&f->alone, call_id(k)) != ACC_NOID) ||
		       acc_ids_get(&f->alone, line_id(k, 0)) != ACC_NOID ||
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
		double scale = acc_fold_alone_scale(f, k, own, FOLD_STAT(own), FOLD_STAT(it), tol);
		int like = own->stat.ndim > ACC_FOLD_NDIM || it->stat.ndim > ACC_FOLD_NDIM ? 0
			   : scale > 0                                                     ? 2
				       : acc_fold_same(FOLD_STAT(own), 1, FOLD_STAT(it), tol);
		if (like == 0)
			return false;
		sure += like == 2;
	}
	return sure > 1;
}

bool
acc_fold_is_weight(const struct fold_call *k, const struct fold_item *it, bool first)
{
	return k->weighs && !first && it->tensor && !it->output && acc_fold_digest(&it->stat) != 0;
}

/* Does it take the weights of one of the reference's, which no noise changes, whatever tokens there are?
 * 0: no; 1; -1: it takes none that can be told from others. */
static int
weighs_the_same(const struct acc_fold *f, const struct fold_call *k, const struct fold_call *o)
{
	bool any = false, first = true;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *own = &f->device.item[k->first + i], *it;
		if (!acc_fold_is_weight(k, own, first)) {
			first &= !own->tensor;
			continue;
		}
		it = acc_fold_item_at(&f->reference, o, own->pos, i);
		if (it == NULL || !it->tensor || it->stat.ndim > ACC_FOLD_NDIM ||
			acc_fold_same(FOLD_STAT(own), 1, FOLD_STAT(it), own->tol) != 2)
			return 0;
		any = true;
	}
	return any ? 1 : -1;
}

bool
acc_fold_is_own_work(const struct fold_call *k)
{
	return k->dir == FOLD_FORWARD && !k->talks && k->line != 0;
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

/* The reference's call that this one is, by its weights, or, where it has none, by what it takes. */
static uint32_t
the_one(const struct acc_fold *f, const struct fold_segment *g, const struct fold_call *k)
{
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct fold_call *o = &f->reference.call[i];
		int same = o->op == k->op ? weighs_the_same(f, k, o) : 0;
		if (same > 0 || (same < 0 && is_one(f, k, o)))
			return i;
	}
	return FOLD_NONE;
}

/* On how many ranks is it one of the reference's calls that no other rank's is? *all: of those where it
 * has elements, as experts without tokens have not. */
static uint32_t
ranks_alone(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t *all)
{
	const struct fold_segment *g = &f->reference.segment[t->reference];
	uint32_t n = 0, before = FOLD_NONE;
	bool shared = false;
	for (uint32_t r = 0; r < f->mesh.zip; r++) {
		uint32_t call = t->call[v->rank + r];
		if (call == FOLD_NONE || !holds(f, &f->device.call[call]))
			continue;
		++*all;
		uint32_t found = the_one(f, g, &f->device.call[call]);
		shared |= found != FOLD_NONE && found == before;
		n += found != FOLD_NONE;
		before = found;
	}
	/* Where one rank alone has elements, there is none that could share them. */
	return shared || (*all == 1 && !f->device.call[t->call[v->rank]].weighs) ? 0 : n;
}

/* Is it, of all ranks together, what the reference has? Of summands there is but the mean, which one expert's
 * weights have by chance where those of the others add up to nearly nothing. */
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
		      acc_fold_solve(f, &f->mesh, FOLD_STAT(it), own->tol, FOLD_NO_FACTOR, &l) ==
			      2 &&
		      l.at[0].kind != ACC_PARTIAL;
	}
	return any;
}

static int
count(struct acc_ids *ids, uint64_t id, uint32_t more, struct acc_err *e)
{
	uint32_t n = acc_ids_get(ids, id);
	return acc_ids_put(ids, id, (n == ACC_NOID ? 0 : n) + more, true, e);
}

int
acc_fold_count_line(const struct acc_fold *f, const struct fold_call *k, uint32_t all, uint32_t own,
	struct acc_ids *seen, struct acc_ids *like, struct acc_err *e)
{
	const uint64_t id[2] = {line_id(k, 0), line_id(k, acc_fold_shapes(f, k))};
	int rc = 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		rc = count(seen, id[i], all, e);
		rc = rc < 0 ? rc : count(like, id[i], own, e);
	}
	return rc;
}

static int
count_alone(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v,
	struct acc_ids *seen, struct acc_ids *like, struct acc_err *e)
{
	struct fold_call *k = &f->device.call[t->call[v->rank]];
	k->mated = v->mate != FOLD_NONE;
	if (!acc_fold_is_own_work(k))
		return 0;
	uint32_t of = 0, n = folds(f, t, v) ? 0 : ranks_alone(f, t, v, &of);
	return acc_fold_count_line(f, k, of > 0 ? of : f->mesh.zip, n, seen, like, e);
}

int
acc_fold_settle_lines(struct acc_fold *f, const struct acc_ids *seen, const struct acc_ids *like,
	struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < f->device.ncall && rc == 0; i++)
		for (int x = 0; x < 2 && rc == 0; x++) {
			const struct fold_call *k = &f->device.call[i];
			uint64_t id = line_id(k, x == 0 ? 0 : acc_fold_shapes(f, k));
			uint32_t all = acc_ids_get(seen, id), is = acc_ids_get(like, id);
			if (all != ACC_NOID && is != ACC_NOID && is > 0 && 2 * (uint64_t)is >= all)
				rc = acc_ids_put(&f->alone, id, 1, true, e);
		}
	return rc;
}

/* A tensor of a rank; 0: it cannot be told from others. */
static uint64_t
tensor_id(const struct fold_call *k, const struct fold_item *it)
{
	const uint64_t id[2] = {acc_fold_digest(&it->stat), k->segment};
	return !it->tensor || it->exact || id[0] == 0 ? 0 : acc_hash(id, sizeof id);
}

static int
mark(const struct acc_fold *f, const struct fold_call *k, bool output, struct acc_ids *to,
	struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < k->n && rc == 0; i++) {
		const struct fold_item *it = &f->device.item[k->first + i];
		uint64_t id = it->output == output ? tensor_id(k, it) : 0;
		if (id != 0)
			rc = acc_ids_put(to, id, 1, true, e);
	}
	return rc;
}

/* Of its inputs or outputs that can be told from others, are some in the set, or all? */
static bool
meets(const struct acc_fold *f, const struct fold_call *k, bool output, const struct acc_ids *set,
	bool all)
{
	uint32_t n = 0, in = 0;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *it = &f->device.item[k->first + i];
		uint64_t id = it->output == output ? tensor_id(k, it) : 0;
		n += id != 0;
		in += id != 0 && acc_ids_get(set, id) != ACC_NOID;
	}
	return in > 0 && (!all || in == n);
}

int
acc_fold_alone_between(struct acc_fold *f, struct acc_err *e)
{
	struct acc_ids given = {0}, taken = {0}, seen = {0}, like = {0};
	const struct fold_call *c = f->device.call;
	int rc = 0;
	for (uint32_t i = 0; i < f->device.ncall && rc == 0; i++)
		if (acc_fold_is_own_work(&c[i]) &&
			(acc_fold_is_alone(f, &c[i]) || meets(f, &c[i], false, &given, true)))
			rc = mark(f, &c[i], true, &given, e);
	for (uint32_t i = f->device.ncall; i-- > 0 && rc == 0;) {
		if (!acc_fold_is_own_work(&c[i]))
			continue;
		bool own = acc_fold_is_alone(f, &c[i]),
		     leads = meets(f, &c[i], true, &taken, false);
		bool between = leads && meets(f, &c[i], false, &given, true);
		if (own || leads)
			rc = mark(f, &c[i], false, &taken, e);
		if (rc == 0 && holds(f, &c[i]))
			rc = count(&seen, line_id(&c[i], 0), 1, e);
		if (rc == 0 && (between || own))
			rc = count(&like, line_id(&c[i], 0), 1, e);
	}
	rc = rc < 0 ? rc : acc_fold_settle_lines(f, &seen, &like, e);
	acc_ids_release(&given);
	acc_ids_release(&taken);
	acc_ids_release(&seen);
	acc_ids_release(&like);
	return rc;
}

/* After so many ranks the same ones again, and none of them twice; 0: not so. */
static uint32_t
period_of(const uint32_t *id, uint32_t n)
{
	uint32_t p = 1;
	while (p < n && id[p] != id[0])
		p++;
	for (uint32_t r = 0; r < n; r++) {
		if (id[r] != id[r % p])
			return 0;
		for (uint32_t q = r + 1; q < p; q++)
			if (id[q] == id[r])
				return 0;
	}
	return n % p == 0 && p > 1 ? p : 0;
}

void
acc_fold_add_pattern(struct fold_pattern *p, const uint32_t *id, uint32_t n)
{
	const uint32_t span = period_of(id, n);
	p->all++;
	if (p->votes == 0)
		p->span = span;
	p->votes += span == p->span;
}

void
acc_fold_refine(struct acc_fold *f, const struct fold_pattern *p)
{
	struct fold_mesh *m = &f->mesh;
	if (p->span < 2 || p->span >= m->zip || m->zip % p->span != 0 || 2 * p->votes <= p->all)
		return;
	m->n = 2;
	m->size[0] = m->zip / p->span;
	m->size[1] = p->span;
}

/* Of the reference's calls, which each rank's is: of those that take weights. */
static int
find_pattern(struct acc_fold *f, struct acc_err *e)
{
	struct fold_pattern p = {.span = 0};
	uint32_t *id = calloc((size_t)f->mesh.zip + 1, sizeof *id);
	if (id == NULL)
		return acc_nomem(e);
	for (uint32_t s = 0; s < f->nstep; s++)
		for (uint32_t i = 0; i < f->step[s].nv && f->step[s].reference != FOLD_NONE; i++) {
			const struct fold_step *t = &f->step[s];
			const struct fold_segment *g = &f->reference.segment[t->reference];
			const uint32_t *call = &t->call[t->v[i].rank];
			bool all = true;
			for (uint32_t r = 0; r < f->mesh.zip && all; r++) {
				const struct fold_call *k = &f->device.call[call[r]];
				all = call[r] != FOLD_NONE && k->weighs &&
				      acc_fold_is_own_work(k) && acc_fold_is_alone(f, k);
				id[r] = all ? the_one(f, g, k) : FOLD_NONE;
				all &= id[r] != FOLD_NONE;
			}
			if (all)
				acc_fold_add_pattern(&p, id, f->mesh.zip);
		}
	free(id);
	acc_fold_refine(f, &p);
	return 0;
}

int
acc_fold_alone_behind(struct acc_fold *f, struct acc_err *e)
{
	struct acc_ids given = {0};
	const struct fold_call *c = f->device.call;
	int rc = 0;
	for (uint32_t i = 0; i < f->device.ncall && rc == 0; i++) {
		const bool own = c[i].dir == FOLD_BACKWARD && acc_fold_is_alone(f, &c[i]);
		/* So is their sum over the ranks that have the same experts. */
		const bool behind = c[i].dir == FOLD_FORWARD && c[i].late &&
				    meets(f, &c[i], false, &given, true);
		if (behind)
			rc = acc_ids_put(&f->alone, call_id(&c[i]), 1, true, e);
		if (rc == 0 && (own || behind))
			rc = mark(f, &c[i], true, &given, e);
	}
	acc_ids_release(&given);
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
	rc = rc < 0 ? rc : acc_fold_settle_lines(f, &seen, &like, e);
	if (rc == 0 && f->alone.n > 0)
		rc = acc_fold_alone_between(f, e);
	if (rc == 0 && f->alone.n > 0)
		rc = find_pattern(f, e);
	acc_ids_release(&seen);
	acc_ids_release(&like);
	return rc < 0 ? rc : f->alone.n > 0;
}
