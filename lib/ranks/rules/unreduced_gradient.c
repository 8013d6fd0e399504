/* Gradients of weights that ranks have alike, of which a reduction is given most and not these, where no optimizer was
 * recorded that takes them: they are what a recording that ends early lacks, if they are the last to be reduced, and
 * else were left out. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/graph.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct left_out {
	uint64_t given; /* gradients that a reduction is given */
	uint32_t first,
		last; /* the calls that take the first and the last of these, as the backward pass makes them */
	const struct acc_replica_seen *front, *amid,
		*tail; /* the first left out before, between and behind these */
	uint64_t n;    /* so many are left out */
};

/* Is it known what each reduction behind the backward pass joins, no sum of several gradients of one weight, and does
 * nothing else use gradients? */
static bool
is_plain(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *w = c->n == 0 ? NULL : &t->seen[c->first];
	if (c->optimizer || c->scatters || (c->in_place && c->behind && w != NULL && w->wants))
		return false;
	for (uint32_t j = c->first; c->reduces && (c->amid || c->behind) && j < c->first + c->n;
		j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		if (!s->out && s->real && s->n > 1 && acc_seen_gradient_in(t, s) == NULL)
			return false;
	}
	return true;
}

/* Have all ranks of the group the weight whose gradient this is alike, and the gradient not? 1, 0, < 0. */
static int
is_of_all(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *s,
	const struct acc_seen_call **room, struct acc_err *e)
{
	const struct acc_replica_seen *w = s->out ? acc_seen_input(t, s) : NULL;
	const struct acc_seen_call *c = acc_seen_caller(t, s);
	enum acc_alike is = ACC_EQUAL;
	bool flat = false;
	if (w == NULL || !w->weight || !w->wants || w->n != s->n ||
		!acc_replicas_peers(t, g, acc_seen_caller(t, w), room) ||
		!acc_replicas_marked(t, g, room, (uint32_t)(w - t->seen) - room[0]->first) ||
		!acc_replicas_peers(t, g, c, room))
		return 0;
	int rc = acc_replicas_alike(t, g, room, (uint32_t)(s - t->seen) - c->first, &is, e);
	if (rc == 0 && is == ACC_APART)
		rc = acc_replicas_flat(t, s, &flat, e);
	return rc < 0 ? rc : is == ACC_APART && !flat;
}

static void
note(const struct acc_replicas *t, const struct acc_replica_seen *s, struct left_out *l)
{
	const uint64_t id = acc_seen_id(t, s);
	if (acc_seen_given(t, s)) {
		const uint32_t by = acc_ids_get(&t->given, id);
		l->first = l->given++ == 0 ? by : l->first;
		l->last = by;
		l->amid = l->amid == NULL ? l->tail : l->amid;
		l->tail = NULL;
		return;
	}
	/* What is added to another's is reduced with that. */
	if (acc_ids_get(&t->taken, id) != ACC_NOID || acc_ids_get(&t->entered, id) != ACC_NOID)
		return;
	l->n++;
	if (l->given == 0)
		l->front = l->front == NULL ? s : l->front;
	else
		l->tail = l->tail == NULL ? s : l->tail;
}

static int
say(struct acc_replicas *t, const struct acc_rank_group *g, const struct left_out *l,
	struct acc_err *e)
{
	/* Reductions go through the weights forward or backward: a recording that ended early lacks the last. */
	const bool known = l->first != ACC_NOID && l->last != ACC_NOID && l->first != l->last;
	const struct acc_replica_seen *s = l->amid != NULL      ? l->amid
					   : !known             ? NULL
					   : l->first < l->last ? l->front
								: l->tail;
	const bool sure = s != NULL;
	s = sure ? s : l->front != NULL ? l->front : l->tail;
	return acc_replicas_tell(t, g, s->line, sure,
		SAY(t,
			"is the gradient of a weight that these ranks have alike, is another on each of them, and was"
			" given to no reduction, as those of %llu other weights are (left out: %llu)",
			(unsigned long long)l->given, (unsigned long long)l->n),
		e);
}

int
acc_rule_unreduced(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct left_out l = {.n = 0};
	int rc = 0;
	/* What a later step shows is for others, which see what became of the weights. */
	for (size_t i = 0; i < t->f->ncall && t->nstep == 1; i++)
		if (t->call[i].k->rank == g->rank[0] && !is_plain(t, &t->call[i]))
			return 0;
	for (size_t i = 0; i < t->f->ncall && t->nstep == 1; i++) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->rank != g->rank[0] || !c->k->backward)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			rc = is_of_all(t, g, &t->seen[j], room, e);
			if (rc < 0)
				return rc;
			if (rc > 0)
				note(t, &t->seen[j], &l);
		}
	}
	return l.n == 0 || l.given < LIMIT_REPLICA_SCALED || l.n > l.given ? 0 : say(t, g, &l, e);
}
