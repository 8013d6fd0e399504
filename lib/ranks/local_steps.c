/* Ranks that go their own ways: where two of them, which hold the same weights, join no gradients in a step, all that
 * moves parts, and that is how the run is made, as local steps, gossip and servers that wait for nobody are. It is no op
 * call's fault; that of one weight among many is, and ranks that exchange nothing at all lack what should join them. */
#include "replay/limits.h"
#include "ranks/asked.h"

/* Is the rank one of those that the call joins? */
static bool
is_member(const struct acc_replicas *t, const struct acc_seen_call *c, int64_t rank)
{
	for (size_t i = 0; i < t->ngroup && c->members != 0; i++)
		for (uint32_t j = 0; t->group[i].members == c->members && j < t->group[i].n; j++)
			if (t->group[i].rank[j] == rank)
				return true;
	return c->members == 0;
}

bool
acc_seen_joins(const struct acc_replicas *t, const struct acc_seen_call *c, int64_t a, int64_t b)
{
	return is_member(t, c, a) && is_member(t, c, b);
}

/* Has one of them, behind its backward pass, a reduction of more than a number, as losses are? Whoever takes part in it:
 * where gradients are joined, they may be so in the wrong group. */
static bool
joins_any(const struct acc_replicas *t, int64_t step, int64_t a, int64_t b)
{
	for (int k = 0; k < 2; k++) {
		bool backward = false;
		for (size_t i = acc_calls_of(t, k ? b : a); i < t->f->ncall; i = t->call[i].next) {
			const struct acc_seen_call *c = &t->call[i];
			if (c->k->step != step)
				continue;
			backward |= c->k->backward;
			if (backward && c->reduces && acc_seen_real(t, c, false) != NULL)
				return true;
		}
	}
	return false;
}

/* Does one of them, in any step, exchange more than numbers behind its backward pass? */
static bool
exchange(const struct acc_replicas *t, int64_t a, int64_t b)
{
	for (int k = 0; k < 2; k++) {
		const struct acc_seen_call *last = NULL;
		for (size_t i = acc_calls_of(t, k ? b : a); i < t->f->ncall; i = t->call[i].next) {
			const struct acc_seen_call *c = &t->call[i];
			if (c->k->backward)
				last = c;
			else if (c->k->talks && last != NULL && acc_seen_beside(last, c) &&
				 acc_seen_real(t, c, false) != NULL)
				return true;
		}
	}
	return false;
}

struct ways {                   /* weights of one rank beside another's */
	uint64_t other;         /* not alike in the step before */
	uint64_t alike, parted; /* those that moved, in this step */
};

static const struct acc_replica_seen *
at(const struct acc_replicas *t, const struct acc_replica_seen *w, int64_t step, int64_t rank)
{
	const struct acc_replica_seen *there = acc_seen_there(t, w, step, rank);
	return there != NULL && there->leaf ? there : NULL;
}

/* The weight that a rank has in a step with these values, wherever; NULL: none. */
static const struct acc_replica_seen *
alike(const struct acc_replicas *t, const struct acc_replica_seen *w, int64_t step, int64_t rank)
{
	const uint32_t use = acc_ids_get(&t->first, acc_seen_place(step, rank, w->mark));
	const struct acc_seen_call *c = use == ACC_NOID ? NULL : &t->call[use];
	for (uint32_t j = c == NULL ? 0 : c->first; c != NULL && j < c->first + c->n; j++)
		if (t->seen[j].leaf && t->seen[j].mark == w->mark)
			return &t->seen[j];
	return NULL;
}

static void
count(const struct acc_replicas *t, const struct acc_replica_seen *w, int64_t step, int64_t rank,
	struct ways *n)
{
	const struct acc_fleet_call *k = t->call[w->call].k;
	const struct acc_replica_seen *was = at(t, w, step, k->rank),
				      *b0 = was == NULL ? NULL : alike(t, was, step, rank),
				      *b = b0 == NULL ? NULL : at(t, b0, k->step, rank);
	if (was != NULL && b0 == NULL)
		n->other += at(t, was, step, rank) != NULL;
	if (b == NULL)
		return;
	if (w->mark != b->mark)
		n->parted++;
	else if (w->mark != was->mark)
		n->alike++;
}

/* Are the optimizers of both given the same gradients in a later step, three and more, of weights that are not the same any
 * more? Then they join them, and one step alone is left out. 1; 0; < 0. */
static int
join_again(struct acc_replicas *t, int64_t step, int64_t a, int64_t b, struct acc_err *e)
{
	uint64_t n = 0;
	for (size_t i = acc_calls_of(t, a); i < t->f->ncall && n < LIMIT_REPLICA_SCALED;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i],
					   *o = c->k->step <= step || !c->optimizer
							? NULL
							: acc_replicas_call(t, c->k->step, b,
								  c->k->key);
		struct acc_optimizer_lists l, m;
		int rc = o == NULL ? 0 : acc_seen_lists(t, c, &l, e);
		rc = rc == 1 ? acc_seen_lists(t, o, &m, e) : rc;
		if (rc < 0)
			return rc;
		for (uint32_t k = 0; rc == 1 && k < l.n[0] && k < m.n[0]; k++) {
			const struct acc_replica_seen *w = &t->seen[l.first[0] + k],
						      *v = &t->seen[m.first[0] + k],
						      *g = &t->seen[l.first[1] + k],
						      *h = &t->seen[m.first[1] + k];
			n += w->n > 1 && w->mark != v->mark && g->mark != 0 && g->mark == h->mark;
		}
	}
	return n >= LIMIT_REPLICA_SCALED;
}

int
acc_replicas_own_ways(struct acc_replicas *t, int64_t step, const struct acc_replica_seen *w,
	int64_t rank, bool *is, struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[w->call].k;
	const uint64_t id = acc_seen_place(step, k->rank, acc_seen_place(k->step, rank, 1));
	const uint32_t known = acc_ids_get(&t->roles, id);
	struct ways n = {0};
	*is = known == 1;
	if (known != ACC_NOID)
		return 0;
	for (size_t i = acc_calls_of(t, k->rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != k->step)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			if (t->seen[j].leaf)
				count(t, &t->seen[j], step, rank, &n);
	}
	*is = n.other == 0 && n.parted > n.alike && !joins_any(t, step, k->rank, rank) &&
	      exchange(t, k->rank, rank);
	int rc = *is ? join_again(t, step, k->rank, rank, e) : 0;
	if (rc < 0)
		return rc;
	*is &= rc == 0;
	return acc_ids_put(&t->roles, id, *is, false, e);
}
