/* Ranks that have the same weights, and join as many gradients of each shape as they have weights of it, to the same bits,
 * are one network, whoever adds up what several op calls make of a gradient. */
#include "ranks/asked.h"

struct counting {
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_seen_call **peer;
	struct acc_ids known;   /* weights, by their mark */
	struct acc_map weights; /* how many there are of a shape */
	struct acc_map
		joined; /* how many gradients of a shape are summed up, to the same bits on all ranks */
	uint64_t alike, unlike; /* weights that are not one number everywhere */
};

static int
add(struct acc_map *m, uint64_t shape, struct acc_err *e)
{
	uint64_t *n = acc_map_put(m, (struct acc_str){(char *)&shape, sizeof shape}, 0);
	if (n == NULL)
		return acc_nomem(e);
	++*n;
	return 0;
}

static uint64_t
number(const struct acc_map *m, uint64_t shape)
{
	const uint64_t *n = acc_map_get(m, (struct acc_str){(char *)&shape, sizeof shape});
	return n == NULL ? 0 : *n;
}

static int
weights(struct counting *k, const struct acc_seen_call *c, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t j = 0; j < c->n && rc == 0; j++) {
		const struct acc_replica_seen *s = &k->t->seen[c->first + j];
		bool flat = false, same = acc_replicas_marked(k->t, k->g, k->peer, j);
		if (!s->leaf || acc_ids_get(&k->known, s->mark) != ACC_NOID)
			continue;
		rc = acc_ids_put(&k->known, s->mark, c->first + j, false, e);
		if (rc == 0 && same)
			rc = acc_replicas_flat(k->t, s, &flat, e);
		if (rc == 0 && !flat)
			rc = add(&k->weights, s->shape, e);
		k->alike += same && !flat;
		k->unlike += !same;
	}
	return rc;
}

static int
reduction(struct counting *k, const struct acc_seen_call *c, struct acc_err *e)
{
	const struct acc_replica_seen *in = acc_seen_real(k->t, c, false),
				      *out = acc_seen_real(k->t, c, true);
	if (!c->reduces || c->picks || c->scatters || !acc_seen_among(k->t, c, k->g) ||
		in == NULL || out == NULL)
		return 0;
	return acc_replicas_marked(k->t, k->g, k->peer, (uint32_t)(out - k->t->seen) - c->first)
		       ? add(&k->joined, in->shape, e)
		       : 0;
}

static bool
all_joined(const struct counting *k)
{
	for (size_t i = 0; i < k->known.cap; i++) {
		if (!k->known.slot[i].used)
			continue;
		uint64_t shape = k->t->seen[k->known.slot[i].v].shape;
		if (number(&k->joined, shape) < number(&k->weights, shape))
			return false;
	}
	return true;
}

int
acc_seen_twins(struct acc_replicas *t, struct acc_rank_group *g, const struct acc_seen_call **room,
	struct acc_err *e)
{
	struct counting k = {.t = t, .g = g, .peer = room};
	bool backward = false;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0 && rc == 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		backward |= c->k->backward;
		if (c->k->backward || !acc_replicas_peers(t, g, c, room))
			continue;
		if (!c->k->talks)
			rc = weights(&k, c, e);
		else if (backward)
			rc = reduction(&k, c, e);
	}
	g->twins = rc == 0 && k.unlike == 0 && k.alike > 0 && !g->parts && all_joined(&k);
	acc_ids_release(&k.known);
	acc_map_release(&k.weights);
	acc_map_release(&k.joined);
	return rc;
}
