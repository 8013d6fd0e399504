/* A part of a weight that has a gradient moves before it is gathered again. */
#include "acc/say.h"
#include "ranks/asked.h"

int
acc_rule_stale(struct acc_replicas *t, const struct acc_rank_group *g, int64_t last,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct acc_replica_seen *stale = NULL, *moved = NULL, *x, *was;
	if (!acc_seen_among(t, peer[0], g))
		return 0;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_seen_call *c = peer[i],
					   *old = acc_replicas_call(t, last, c->k->rank, c->k->key);
		x = was = NULL;
		for (uint32_t j = c->first; j < c->first + c->n; j++) /* what is filled is larger */
			if (!t->seen[j].out && t->seen[j].real &&
				(x == NULL || t->seen[j].n <= x->n))
				x = &t->seen[j];
		for (uint32_t j = old == NULL ? 0 : old->first;
			old != NULL && x != NULL && j < old->first + old->n; j++)
			if (!t->seen[j].out && t->seen[j].pos == x->pos && t->seen[j].n == x->n)
				was = &t->seen[j];
		if (was == NULL || x->mark == 0 || was->mark == 0)
			return 0;
		const struct acc_replica_seen *dw = acc_seen_gradient_of_part(t, last, c->k->rank,
			was);
		bool flat = true;
		int rc = dw == NULL ? 0 : acc_replicas_flat(t, dw, &flat, e);
		if (rc < 0 || flat)
			return rc;
		*(x->mark == was->mark ? &stale : &moved) = x;
	}
	return stale == NULL || moved == NULL
		       ? 0
		       : acc_replicas_accuse(t, g, stale, stale->line,
				 acc_say(&t->f->mem,
					 "is rank %lld's part of a weight, as it was in step %lld, although it has a"
					 " gradient and that of rank %lld has moved: is it gathered before the step of"
					 " the optimizer?",
					 (long long)t->call[stale->call].k->rank, (long long)last,
					 (long long)t->call[moved->call].k->rank),
				 e);
}
