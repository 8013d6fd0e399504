/* The same call on other ranks. */
#include "ranks/trace.h"

/* The call of another rank that is this one's: of communication among the whole group, what meets it there. */
static const struct acc_seen_call *
peer_of(const struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	int64_t rank)
{
	if (c->meets == 0 || !acc_seen_among(t, c, g))
		return acc_replicas_call(t, c->k->step, rank, c->k->key);
	uint32_t i = acc_ids_get(&t->met, acc_seen_place(c->k->step, rank, c->meets));
	return i == ACC_NOID ? NULL : &t->call[i];
}

const struct acc_replica_seen *
acc_seen_there(const struct acc_replicas *t, const struct acc_replica_seen *s, int64_t step,
	int64_t rank)
{
	const struct acc_seen_call *c = &t->call[s->call],
				   *o = acc_replicas_call(t, step, rank, c->k->key);
	const uint32_t j = (uint32_t)(s - t->seen) - c->first;
	return o == NULL || j >= o->n || t->seen[o->first + j].pos != s->pos ||
			       t->seen[o->first + j].shape != s->shape
		       ? NULL
		       : &t->seen[o->first + j];
}

static const struct acc_seen_call *
forward_of(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	return c->k->backward ? acc_replicas_call(t, c->k->step, c->k->rank, c->k->twin) : c;
}

/* Do they learn the same: what wants a gradient, and nobody made, is the same, or was in the first step? */
static bool
learn_alike(const struct acc_replicas *t, const struct acc_seen_call *a,
	const struct acc_seen_call *b)
{
	bool any = false, same = a != NULL && b != NULL && a->n == b->n;
	for (uint32_t j = 0; same && j < a->n; j++) {
		const struct acc_replica_seen *x = &t->seen[a->first + j],
					      *y = &t->seen[b->first + j];
		same = x->leaf == y->leaf && (!x->leaf || x->mark == y->mark);
		any |= x->leaf;
	}
	return same && any;
}

/* Data may be larger on one rank than on another, for one line of code and the same weights: what differs otherwise, as
 * experts do, is not the same op call. */
static bool
of_one_line(const struct acc_replicas *t, const struct acc_seen_call *a,
	const struct acc_seen_call *b)
{
	a = a->k->talks ? NULL : forward_of(t, a);
	b = forward_of(t, b);
	if (a == NULL || b == NULL || a->line == 0 || a->line != b->line)
		return false;
	return learn_alike(t, a, b) ||
	       learn_alike(t, acc_replicas_call(t, t->step[0], a->k->rank, a->k->key),
		       acc_replicas_call(t, t->step[0], b->k->rank, b->k->key));
}

static bool
is_peer(const struct acc_replicas *t, const struct acc_seen_call *a, const struct acc_seen_call *b)
{
	bool unlike = false;
	if (b == NULL || b->n != a->n)
		return false;
	for (uint32_t j = 0; j < a->n; j++) {
		const struct acc_replica_seen *x = &t->seen[a->first + j],
					      *y = &t->seen[b->first + j];
		bool same = x->shape == y->shape;
		if (x->pos != y->pos || x->out != y->out ||
			(!same && (x->real != y->real || x->leaf || y->leaf)))
			return false;
		unlike |= !same;
	}
	return !unlike || of_one_line(t, a, b);
}

bool
acc_replicas_peers(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, const struct acc_seen_call **peer)
{
	for (uint32_t i = 0; i < g->n; i++) {
		peer[i] = peer_of(t, g, c, g->rank[i]);
		if (!is_peer(t, c, peer[i]))
			return false;
	}
	return true;
}
