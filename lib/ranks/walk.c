/* The way back from a tensor, by op calls of elements, also through what ranks gathered or exchanged. */
#include "ranks/walk.h"

#include <string.h>

enum { MOST_HOPS = 10 };

bool
acc_seen_is_of(const struct acc_seen_call *c, const char *family)
{
	return c->info != NULL && !c->k->talks && !c->k->backward &&
	       strcmp(c->info->family, family) == 0;
}

static void
add(struct acc_walk *w, const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s, unsigned hops, bool beyond)
{
	const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
	if (c == NULL || c->k->backward || hops > MOST_HOPS || w->n == ACC_WALK_NODES)
		return;
	for (unsigned i = 0; i < w->n; i++)
		if (w->call[i] == c)
			return;
	const bool talks = c->k->talks;
	const bool steps = c->info != NULL && !acc_seen_is_of(c, "embedding") &&
			   (c->info->cls == ACC_OP_MOVE || c->info->cls == ACC_OP_ADD ||
				   c->info->cls == ACC_OP_MUL || c->info->cls == ACC_OP_RANDOM);
	if (talks ? beyond || !(c->gathers || c->exchanges) || !acc_seen_among(t, c, g) : !steps) {
		if (w->nend < ACC_WALK_NODES && !talks) {
			w->far[w->nend] = beyond;
			w->end[w->nend++] = c;
		}
		return;
	}
	w->talk = talks ? c : w->talk;
	w->beyond[w->n] = beyond || talks;
	w->hops[w->n] = hops;
	w->call[w->n++] = c;
}

void
acc_walk_back(struct acc_walk *w, const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s)
{
	w->n = w->nend = 0;
	w->talk = NULL;
	add(w, t, g, s, 0, false);
	for (unsigned i = 0; i < w->n; i++) {
		const struct acc_seen_call *c = w->call[i], *from;
		const bool parts = !c->k->talks && acc_seen_joins_parts(t, c);
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			if (t->seen[j].out || !t->seen[j].real || t->seen[j].n < 2)
				continue;
			from = parts ? acc_seen_caller(t, acc_seen_maker(t, &t->seen[j])) : NULL;
			if (!parts || (from != NULL && from->k->talks))
				add(w, t, g, &t->seen[j], w->hops[i] + 1, w->beyond[i]);
		}
	}
}

const struct acc_seen_call *
acc_walk_product(struct acc_walk *w, const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	const struct acc_replica_seen *in = acc_seen_real(t, c, false);
	if (in == NULL)
		return NULL;
	acc_walk_back(w, t, g, in);
	return w->talk == NULL && w->nend == 1 && w->end[0]->info != NULL &&
			       w->end[0]->info->cls == ACC_OP_CONTRACT
		       ? w->end[0]
		       : NULL;
}
