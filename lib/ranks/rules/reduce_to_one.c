/* A reduction that one rank has alone: the others have what they gave, and do not go on with it as that one does. */
#include "acc/say.h"
#include "ranks/asked.h"

/* The op call, with a gradient, that is given what a call put out, and the place where; NULL: there is none. */
static const struct acc_replica_seen *
used(const struct acc_replicas *t, const struct acc_seen_call *from,
	const struct acc_replica_seen *out)
{
	for (const struct acc_seen_call *c = from + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, from) && !c->k->backward; c++) {
		if (c->k->talks || acc_seen_backward(t, c) == NULL)
			continue;
		for (uint32_t i = c->first; i < c->first + c->n; i++)
			if (!t->seen[i].out && t->seen[i].mark == out->mark)
				return &t->seen[i];
	}
	return NULL;
}

static const struct acc_replica_seen *
result(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].real && t->seen[i].mark != 0)
			return &t->seen[i];
	return NULL;
}

/* On the rank that has the sum, and on one that has not, by the same op call. */
static int
judge(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *has,
	const struct acc_seen_call *lacks, bool *said, struct acc_err *e)
{
	const struct acc_replica_seen *sum = result(t, has), *own = result(t, lacks);
	const struct acc_replica_seen *x = sum == NULL ? NULL : used(t, has, sum),
				      *y = own == NULL ? NULL : used(t, lacks, own);
	*said = x != NULL && y != NULL && sum->mark != own->mark && x->pos == y->pos &&
		t->call[x->call].k->key == t->call[y->call].k->key;
	return !*said ? 0
		      : acc_replicas_blame(t, g, own->line,
				acc_say(&t->f->mem,
					"is no sum, which rank %lld has alone, and rank %lld goes on with it in %s, as that"
					" one does with the sum: all of them must have it",
					(long long)has->k->rank, (long long)lacks->k->rank,
					acc_replicas_name(t, y->line, e)),
				1, 0, e);
}

int
acc_rule_to_one(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	bool said = false;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]);
		i < t->f->ncall && rc == 0 && !said && t->nstep > 0; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i], *has = NULL;
		if (c->k->step != t->step[0] || !c->to_one || !acc_seen_among(t, c, g) ||
			!acc_replicas_peers(t, g, c, room))
			continue;
		for (uint32_t r = 0; r < g->n; r++)
			has = room[r]->elsewhere ? has : room[r];
		for (uint32_t r = 0; r < g->n && rc == 0 && !said && has != NULL; r++)
			if (room[r]->elsewhere)
				rc = judge(t, g, has, room[r], &said, e);
	}
	return rc;
}
