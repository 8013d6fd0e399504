/* The backward pass has made gradients of weights, and the step of the optimizer behind it is given none of them, on no rank:
 * so it is where parts of weights are gathered, and no gradient comes back to these parts. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Of a rank's first step, the last gradient of what stands where its operator has weights, if all steps of its optimizers are
 * behind the backward pass and are given no tensor; *step: the first of these. NULL. */
static const struct acc_replica_seen *
gradient_for_nobody(const struct acc_replicas *t, int64_t rank, const struct acc_seen_call **step)
{
	const struct acc_replica_seen *last = NULL;
	*step = NULL;
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		if (c->optimizer && (c->n > 0 || !c->behind))
			return NULL;
		if (c->optimizer && *step == NULL)
			*step = c;
		for (uint32_t j = c->first; j < c->first + c->n && c->k->backward; j++) {
			const struct acc_replica_seen *w = t->seen[j].out && t->seen[j].n > 1
								   ? acc_seen_input(t, &t->seen[j])
								   : NULL;
			last = w != NULL && w->place && w->wants ? &t->seen[j] : last;
		}
	}
	return *step == NULL ? NULL : last;
}

int
acc_rule_idle(struct acc_replicas *t, struct acc_err *e)
{
	const struct acc_rank_group *all = NULL;
	const struct acc_replica_seen *of = NULL;
	const struct acc_seen_call *step = NULL;
	for (size_t i = 0; i < t->ngroup; i++)
		if (t->group[i].n == t->f->nrank)
			all = &t->group[i];
	if (all == NULL || t->nstep == 0)
		return 0;
	for (uint32_t i = all->n; i-- > 0;) {
		of = gradient_for_nobody(t, all->rank[i], &step);
		if (of == NULL)
			return 0;
	}
	return acc_replicas_blame(t, all, of->line,
		SAY(t,
			"is the gradient of a weight, and %s, behind it, is given no gradient at all, on no rank: none"
			" has reached what the optimizer updates",
			acc_replicas_name(t, step->k->line, e)),
		1, 0, e);
}
