/* What the terms of a loss are divided by, where each rank has some of them: one number, once. */
#include "replay/limits.h"
#include "acc/say.h"
#include "ranks/asked.h"

#include <math.h>

struct count {                          /* what a rank's loss, a sum, is divided by */
	const struct acc_seen_call *by; /* that made, or is given, this number */
	size_t line;
	double began; /* the gradient of the loss: one by the number */
};

/* A reduction that made the number made it for all ranks. 1; 0: there is none; < 0. */
static int
count_of(struct acc_replicas *t, int64_t rank, struct count *out, struct acc_err *e)
{
	const struct acc_seen_call *loss;
	const struct acc_replica_seen *seed;
	*out = (struct count){.by = NULL};
	int rc = acc_seen_loss(t, rank, true, &loss, &seed, &out->began, e);
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall && rc == 1; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		double v = 0;
		if (c->k->step != t->step[0])
			continue;
		if (c->k->backward)
			break;
		for (uint32_t j = c->first; j < c->first + c->n && rc == 1; j++) {
			const struct acc_replica_seen *s = &t->seen[j];
			if (s->n != 1 || s->wants || (c->k->talks && !s->out))
				continue;
			rc = acc_seen_number(t, s->line, &v, e);
			if (rc < 0)
				return rc;
			const bool is = rc == 1 && fabs(v * out->began - 1) <= 1e-6;
			if (is && (out->by == NULL || c->k->talks)) {
				out->by = c;
				out->line = s->line;
			}
			rc = 1;
		}
	}
	return rc == 1 ? out->by != NULL : rc;
}

/* Each divides by what it counted itself. */
static int
say_own(struct acc_replicas *t, const struct acc_rank_group *g, const struct count *a,
	const struct count *b, struct acc_err *e)
{
	return acc_replicas_blame(t, g, a->line,
		acc_say(&t->f->mem,
			"is what the loss is divided by, %.6g on rank %lld and %.6g on rank %lld: these ranks hold parts"
			" of one model or sequence, and the terms of their loss must be divided by one number, such as"
			" the sum of these",
			rint(1 / a->began), (long long)a->by->k->rank, rint(1 / b->began),
			(long long)b->by->k->rank),
		1, 0, e);
}

/* All divide by what they counted together: their gradients must be summed up, and not averaged then. */
static int
say_twice(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_scale *s,
	const struct count *a, struct acc_err *e)
{
	return acc_replicas_blame(t, g, s->line,
		acc_say(&t->f->mem,
			"is %.6g times the sum of gradients over the ranks, as those of all %llu weights are, and the"
			" losses, which are sums, are divided by %.6g, which %s made for all these ranks: %u times too"
			" small",
			s->factor, (unsigned long long)s->n, rint(1 / a->began),
			acc_replicas_name(t, a->by->k->line, e), g->n),
		1, 0, e);
}

int
acc_rule_own_counts(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_scale s = {.n = 0};
	struct count first = {.by = NULL}, other, odd = {.by = NULL};
	bool sequence = false;
	int rc = t->nstep > 0;
	for (uint32_t i = 0; i < g->n && rc == 1; i++) {
		rc = count_of(t, g->rank[i], i == 0 ? &first : &other, e);
		if (rc == 1 && i > 0 && other.by->k->key != first.by->k->key)
			rc = 0;
		if (rc == 1 && i > 0 && odd.by == NULL &&
			fabs(other.began / first.began - 1) > 1e-6)
			odd = other;
	}
	rc = rc == 1 ? acc_seen_scale(t, g, room, &s, e) : (rc < 0 ? rc : 0);
	const bool together = first.by != NULL && first.by->k->talks;
	if (rc < 0 || s.n < (together ? (uint64_t)LIMIT_REPLICA_SCALED : LIMIT_REPLICA_WEIGHTS))
		return rc;
	if (together)
		return !acc_seen_among(t, first.by, g) || fabs(s.factor * g->n - 1) > 1e-6
			       ? 0
			       : say_twice(t, g, &s, &first, e);
	if (odd.by == NULL)
		return 0;
	rc = acc_seen_sequence(t, g, room, &sequence, e);
	return rc < 0 || !(sequence || (g->weights_differ && fabs(s.factor - 1) <= 1e-6))
		       ? rc
		       : say_own(t, g, &first, &odd, e);
}
