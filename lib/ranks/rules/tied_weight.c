/* Weights that two stages share, for op calls of their own. */
#include "ranks/asked.h"

/* Are two tensors of a rank, which are the same, not so in a later step? */
static bool
goes_apart(struct acc_replicas *t, const struct acc_replica_seen *s,
	const struct acc_replica_seen *x)
{
	const int64_t rank = t->call[s->call].k->rank;
	for (size_t i = 1; i < t->nstep; i++) {
		const struct acc_replica_seen *a = acc_seen_before(t, s, t->step[i], rank),
					      *b = acc_seen_before(t, x, t->step[i], rank);
		if (a != NULL && b != NULL && a->mark != b->mark)
			return true;
	}
	return false;
}

/* Is it on its own rank in another place, too, where it is another in a later step? What several calls are given alike at
 * first, as an average of weights is, or what a norm makes of one, need not stay so. */
static bool
is_copied(struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_seen_call *own = &t->call[s->call], *from = own;
	while (from > t->call && (t->scattered || acc_seen_beside(from - 1, own)))
		from--;
	for (const struct acc_seen_call *c = from; c < t->call + t->f->ncall; c++) {
		if (!acc_seen_beside(c, own)) {
			if (!t->scattered)
				break;
			continue;
		}
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			const struct acc_replica_seen *x = &t->seen[j];
			if (x->mark == s->mark && (x->leaf || x->kept) && x != s &&
				goes_apart(t, s, x))
				return true;
		}
	}
	return false;
}

/* Weights that two ranks hold for different calls, as two stages do the embedding. */
static int
tied(struct acc_replicas *t, const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	struct acc_err *e)
{
	const struct acc_fleet_call *ka = t->call[a->call].k, *kb = t->call[b->call].k;
	const int64_t rank[2] = {ka->rank < kb->rank ? ka->rank : kb->rank,
		ka->rank < kb->rank ? kb->rank : ka->rank};
	struct acc_rank_group g = {.rank = rank, .n = 2, .who = acc_fleet_ranks(t->f, rank, 2)};
	int rc = 0;
	for (size_t i = 1; i < t->nstep && rc == 0; i++) {
		const struct acc_replica_seen *x = acc_seen_before(t, a, t->step[i], ka->rank),
					      *y = acc_seen_before(t, b, t->step[i], kb->rank);
		if (x != NULL && y != NULL && x->mark != y->mark && !is_copied(t, a) &&
			!is_copied(t, b))
			rc = acc_replicas_drift(t, &g, t->step[i - 1], x, y, e);
	}
	return rc;
}

int
acc_replicas_tied(struct acc_replicas *t, struct acc_err *e)
{
	struct acc_ids first = {0};
	int rc = 0;
	for (uint32_t i = 0; i < t->nseen && rc == 0 && t->nstep > 1; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const struct acc_fleet_call *k = t->call[s->call].k;
		/* What the first step alone has, as it is made ready, tells nothing. */
		if (!s->leaf || k->step != t->step[0] || t->call[s->call].norm ||
			acc_seen_before(t, s, t->step[1], k->rank) == NULL)
			continue;
		uint32_t was = acc_ids_get(&first, s->mark);
		const struct acc_replica_seen *a = was == ACC_NOID ? NULL : &t->seen[was];
		if (a == NULL)
			rc = acc_ids_put(&first, s->mark, i, false, e);
		else if (t->call[a->call].k->rank != k->rank && t->call[a->call].k->key != k->key)
			rc = tied(t, a, s, e);
	}
	acc_ids_release(&first);
	return rc;
}
