/* Gradients of weights that ranks have alike, of which a reduction is given most and not these, where no optimizer was
 * recorded that takes them: left out, where others of the backward pass before and behind them are reduced. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct left_out {
	uint64_t given; /* gradients that a reduction is given */
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
		l->given++;
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

/* One that is the last to be reduced, or the first, may be what a recording that ended early lacks, or another network's,
 * through which this one learns. */
static int
say(struct acc_replicas *t, const struct acc_rank_group *g, const struct left_out *l,
	struct acc_err *e)
{
	const struct acc_replica_seen *s = l->amid != NULL    ? l->amid
					   : l->front != NULL ? l->front
							      : l->tail;
	return acc_replicas_tell(t, g, s->line, l->amid != NULL,
		SAY(t,
			"is the gradient of a weight that is the same on these ranks, differs between them, "
			"and was given to no reduction, as those of %llu other weights are (left out: %llu)",
			(unsigned long long)l->given, (unsigned long long)l->n),
		e);
}

/* Is a weight used by several op calls, of which each gives a part of its gradient, or one that nobody asked for? Those
 * that are one number everywhere, as of norms at first, look the same. */
static int
is_shared(struct acc_replicas *t, const struct acc_seen_call *c, struct acc_err *e)
{
	for (uint32_t j = c->first; c->k->backward && j < c->first + c->n; j++) {
		const struct acc_replica_seen *w = t->seen[j].out ? acc_seen_input(t, &t->seen[j])
								  : NULL;
		bool flat = false;
		if (w == NULL || !w->weight || !w->wants || !acc_seen_shared(t, w))
			continue;
		int rc = acc_replicas_flat(t, w, &flat, e);
		if (rc < 0 || !flat)
			return rc < 0 ? rc : 1;
	}
	return 0;
}

int
acc_rule_unreduced(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct left_out l = {.n = 0};
	int rc = 0;
	/* What a later step shows is for others, which see what became of the weights. */
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep == 1;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->rank != g->rank[0])
			continue;
		if (!is_plain(t, c) || (rc = is_shared(t, c, e)) != 0)
			return rc < 0 ? rc : 0;
	}
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep == 1;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!c->k->backward)
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
