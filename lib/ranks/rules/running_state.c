/* What a step leaves for the next one: what it was, scaled or moved, and something more, as the average of what ranks
 * make. Where the ranks had it alike, they have it alike afterwards; and what all of them made anew, all go on with. */
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_HOPS = 6, MOST_NODES = 32, FEW_ELEMENTS = 4 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

static const struct acc_replica_seen *
before(const struct acc_replicas *t, const struct acc_replica_seen *s, int64_t step)
{
	return acc_seen_there(t, s, step, t->call[s->call].k->rank);
}

/* Is it made of that by op calls that scale, add or move elements? */
static bool
is_made_of(const struct acc_replicas *t, const struct acc_replica_seen *s, uint64_t mark)
{
	const struct acc_seen_call *todo[MOST_NODES] = {&t->call[s->call]};
	unsigned hops[MOST_NODES] = {0}, n = 1;
	for (unsigned i = 0; i < n; i++) {
		const struct acc_seen_call *c = todo[i];
		if (c->k->talks || c->k->backward || c->info == NULL ||
			(c->info->cls != ACC_OP_ADD && c->info->cls != ACC_OP_MUL &&
				c->info->cls != ACC_OP_MOVE))
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			if (t->seen[j].out || t->seen[j].n < 2)
				continue;
			if (t->seen[j].mark == mark)
				return true;
			const struct acc_seen_call *from = acc_seen_caller(t,
				acc_seen_maker(t, &t->seen[j]));
			if (from == NULL || n == MOST_NODES || hops[i] == MOST_HOPS)
				continue;
			hops[n] = hops[i] + 1;
			todo[n++] = from;
		}
	}
	return false;
}

/* Is it, on this rank, what the step before left of what it was then? */
static bool
is_left(const struct acc_replicas *t, const struct acc_replica_seen *s, int64_t step,
	const struct acc_replica_seen **was)
{
	*was = before(t, s, step);
	if (s->out || !s->real || s->n < 2 || s->wants || s->mark == 0 || *was == NULL ||
		(*was)->mark == 0 || acc_seen_maker(t, s) != NULL ||
		acc_seen_maker(t, *was) != NULL)
		return false;
	const struct acc_replica_seen *made = acc_seen_made_in(t, s, step);
	return made != NULL && is_made_of(t, made, (*was)->mark);
}

static int
state(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, int64_t step, struct acc_err *e)
{
	const struct acc_replica_seen *was, *first = NULL;
	enum acc_alike is = ACC_EQUAL;
	for (uint32_t r = 0; r < g->n; r++) {
		if (!is_left(t, &t->seen[peer[r]->first + j], step, &was))
			return 0;
		first = first == NULL ? was : first;
		if (was->mark != first->mark)
			return 0;
	}
	int rc = acc_replicas_alike(t, g, peer, j, &is, e);
	if (rc < 0 || is != ACC_APART)
		return rc;
	const uint32_t other = acc_replicas_odd(t, g, peer, j);
	const struct acc_replica_seen *odd = &t->seen[peer[other]->first + j];
	bool design = false;
	rc = acc_replicas_own_ways(t, step, odd, peer[other == 0]->k->rank, &design, e);
	if (rc < 0 || design)
		return rc;
	const struct acc_replica_seen *made = acc_seen_made_in(t, odd, step);
	return acc_replicas_accuse(t, g, first, odd->line,
		SAY(t,
			"was the same on all ranks in step %lld, and is not since then: %s made it there of what it"
			" was and of what each rank has of its own: a reduction is missing",
			(long long)step, acc_replicas_name(t, made->line, e)),
		e);
}

/* Is it, on each rank, what nobody made in this step, and that all had alike in the one before? */
static bool
was_alike(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, int64_t step)
{
	const struct acc_replica_seen *first = NULL;
	for (uint32_t r = 0; r < g->n; r++) {
		const struct acc_replica_seen *s = &t->seen[peer[r]->first + j],
					      *was = before(t, s, step);
		if (!s->real || s->n < FEW_ELEMENTS || s->wants || s->mark == 0 || was == NULL ||
			was->mark == 0 || acc_seen_maker(t, s) != NULL ||
			acc_seen_maker(t, was) != NULL)
			return false;
		first = first == NULL ? was : first;
		if (was->mark != first->mark)
			return false;
	}
	return true;
}

/* What a rank made in that step by an op call of the same line, the same but for rounding; NULL: nothing. */
static int
made_too(struct acc_replicas *t, int64_t rank, const struct acc_replica_seen *made,
	const struct acc_seen_call **found, struct acc_err *e)
{
	const struct acc_seen_call *own = &t->call[made->call];
	const uint32_t j = (uint32_t)(made - t->seen) - own->first;
	const int64_t both[2] = {own->k->rank, rank};
	const struct acc_rank_group g = {.rank = both, .n = 2};
	bool same = false;
	int rc = 0;
	*found = NULL;
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall && rc == 0 && !same;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i], *const two[2] = {own, c};
		if (c->k->step != own->k->step || c->n != own->n || c->k->op != own->k->op ||
			c->line != own->line || t->seen[c->first + j].shape != made->shape)
			continue;
		rc = acc_replicas_same(t, &g, two, j, &same, e);
		*found = same ? c : NULL;
	}
	return rc;
}

/* All ranks made it anew in a step, alike; in the next, some are given that, and the others what it was before. */
static int
kept(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, int64_t step, struct acc_err *e)
{
	const struct acc_replica_seen *stayed = NULL, *made = NULL;
	const struct acc_seen_call *lost = NULL;
	if (!was_alike(t, g, peer, j, step))
		return 0;
	for (uint32_t r = 0; r < g->n; r++) {
		const struct acc_replica_seen *s = &t->seen[peer[r]->first + j],
					      *anew = acc_seen_made_in(t, s, step);
		if (s->mark == before(t, s, step)->mark)
			stayed = stayed == NULL ? s : stayed;
		else if (anew == NULL)
			return 0;
		else
			made = made == NULL ? anew : made;
	}
	bool flat = true;
	int rc = stayed == NULL || made == NULL
			 ? 0
			 : made_too(t, t->call[stayed->call].k->rank, made, &lost, e);
	if (rc == 0 && lost != NULL)
		rc = acc_replicas_flat(t, made, &flat, e);
	return rc < 0 || flat
		       ? rc
		       : acc_replicas_accuse(t, g, before(t, stayed, step), stayed->line,
				 SAY(t,
					 "is what it was in step %lld, although %s made it anew there, as on the other ranks,"
					 " which go on with that: this one has lost it",
					 (long long)step, acc_replicas_name(t, lost->k->line, e)),
				 e);
}

int
acc_rule_state(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = 0;
	size_t at = 0; /* the step */
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && t->nstep > 1;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->backward || c->k->talks || c->batch)
			continue;
		while (t->step[at] != c->k->step)
			at = (at + 1) % t->nstep;
		for (uint32_t j = 0; at > 0 && j < c->n && rc == 0; j++) {
			const int64_t last = t->step[at - 1];
			if (t->seen[c->first + j].out || !acc_replicas_peers(t, g, c, room))
				continue;
			rc = state(t, g, room, j, last, e);
			if (rc == 0)
				rc = kept(t, g, room, j, last, e);
		}
	}
	return rc;
}
