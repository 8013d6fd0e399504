/* Stages of one pipeline that share a weight sum up their parts of its gradient. */
#include "acc/say.h"
#include "ranks/asked.h"

/* Do two ranks have a weight of so many elements alike, in the first step? */
static bool
share_weight(const struct acc_replicas *t, uint64_t n, int64_t a, int64_t b)
{
	for (size_t i = acc_calls_of(t, a); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		for (uint32_t j = c->first; j < c->first + c->n && c->k->step == t->step[0]; j++)
			if (t->seen[j].leaf && t->seen[j].n == n &&
				acc_ids_get(&t->first,
					acc_seen_place(c->k->step, b, t->seen[j].mark)) != ACC_NOID)
				return true;
	}
	return false;
}

/* The stages of one pipeline have parts of one gradient of a weight that they share: not a mean. */
int
acc_rule_shared(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (t->stage[acc_fleet_index(t->f, g->rank[i])] ==
				t->stage[acc_fleet_index(t->f, g->rank[k])])
				return 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *in = acc_seen_real(t, c, false);
		if (c->k->step != t->step[0] || !c->reduces || in == NULL ||
			!acc_seen_among(t, c, g) || !share_weight(t, in->n, g->rank[0], g->rank[1]))
			continue;
		int rc = acc_seen_averages(t, g, c, e);
		if (rc != 0)
			return rc < 0 ? rc
				      : acc_replicas_blame(t, g, acc_seen_real(t, c, true)->line,
						acc_say(&t->f->mem,
							"is a mean over stages of one pipeline, which have parts of one"
							" gradient of a weight that they share: it must be their sum,"
							" and is %u times too small",
							g->n),
						1, 0, e);
	}
	return 0;
}
