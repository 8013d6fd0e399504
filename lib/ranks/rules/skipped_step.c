/* Steps of an optimizer that one rank alone takes, between two communications. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct pace { /* of a rank: how many communications of a group, and steps of an optimizer between two of these */
	size_t at; /* the next call */
	uint64_t met, steps;
	const struct acc_seen_call *step; /* since the last communication; NULL: none */
	bool several;                     /* in one such interval */
};

/* Goes on to the next communication of the group, or to the end. */
static bool
pace(const struct acc_replicas *t, const struct acc_rank_group *g, struct pace *p)
{
	p->step = NULL;
	for (; p->at < t->f->ncall; p->at = t->call[p->at].next) {
		const struct acc_seen_call *c = &t->call[p->at];
		if (c->k->talks && acc_seen_among(t, c, g)) {
			p->met++;
			p->at = c->next;
			return true;
		}
		if (!c->optimizer)
			continue;
		p->several |= p->step != NULL && p->step->line == c->line;
		p->step = p->step == NULL ? c : p->step;
		p->steps++;
	}
	return false;
}

/* Between two communications of a group, one rank takes the step of its optimizer and another one does not, as where it
 * skips one for an overflow of its own. Where ranks take several of them in between, they go their own ways. */
int
acc_rule_skipped(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	for (uint32_t r = 1; r < g->n && !t->scattered; r++) {
		struct pace p[2] = {{.at = acc_calls_of(t, g->rank[0])},
			{.at = acc_calls_of(t, g->rank[r])}};
		const struct acc_seen_call *odd = NULL;
		int64_t lacks = 0;
		bool on[2], together = false;
		do {
			for (int k = 0; k < 2; k++)
				on[k] = pace(t, g, &p[k]);
			together |= p[0].step != NULL && p[1].step != NULL;
			if (odd == NULL && (p[0].step == NULL) != (p[1].step == NULL)) {
				odd = p[p[0].step == NULL].step;
				lacks = g->rank[p[0].step == NULL ? 0 : r];
			}
		} while (on[0] && on[1]);
		const struct acc_replica_seen *out = odd == NULL ? NULL
								 : acc_seen_real(t, odd, true);
		/* As many that never are in the same place may be before a communication on one rank, and behind it on the
		 * other; or they are of other networks, which are told of each other. */
		if (out == NULL || on[0] != on[1] || p[0].met == 0 || p[0].several ||
			p[1].several || p[0].steps == 0 || p[1].steps == 0 ||
			(p[0].steps == p[1].steps && (!together || g->weights_differ)))
			continue;
		return acc_replicas_blame(t, g, out->line,
			SAY(t,
				"is of a step of the optimizer that rank %lld takes and rank %lld does not: of %llu and"
				" %llu steps between the same communications",
				(long long)odd->k->rank, (long long)lacks,
				(unsigned long long)p[odd->k->rank != g->rank[0]].steps,
				(unsigned long long)p[odd->k->rank == g->rank[0]].steps),
			1, 0, e);
	}
	return 0;
}
