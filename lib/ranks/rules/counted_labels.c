/* Labels that a reduction counts for what the ranks' losses are divided by: each once, as the losses have them. */
#include "acc/say.h"
#include "ranks/asked.h"

#include <stdlib.h>

enum { MOST_LABELS = 32, MOST_NODES = 64 };

struct labels {                        /* of a rank */
	uint64_t mark[MOST_LABELS], n; /* n: elements of all of them */
	uint32_t nmark;
	bool lost; /* more, or some that are not known to the element */
};

static void
add_labels(struct labels *x, const struct acc_replica_seen *s)
{
	x->lost |= x->nmark == MOST_LABELS || !s->exact;
	if (x->lost)
		return;
	x->mark[x->nmark++] = s->mark;
	x->n += s->n;
}

static bool
has_labels(const struct labels *x, const struct acc_replica_seen *s)
{
	bool found = false;
	for (uint32_t i = 0; i < x->nmark && !found; i++)
		found = x->mark[i] == s->mark;
	return found;
}

/* The labels that a number is made of, by sums of what is compared: those of the rank's own losses, and what nobody made,
 * unless it is cut. */
static void
counted(const struct acc_replicas *t, const struct acc_replica_seen *s, const struct labels *own,
	struct labels *out, uint32_t *nodes)
{
	const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
	const bool ends = c == NULL || has_labels(own, s);
	if (ends && !s->real && s->n > 1)
		add_labels(out, s);
	if (ends)
		return;
	out->lost |= c->k->talks || c->k->backward || ++*nodes > MOST_NODES;
	for (uint32_t i = c->first; i < c->first + c->n && !out->lost; i++) {
		if (t->seen[i].out)
			continue;
		out->lost |= c->info != NULL && c->info->cls == ACC_OP_MOVE && t->seen[i].n > s->n;
		counted(t, &t->seen[i], own, out, nodes);
	}
}

/* Those of a loss, which begins with the gradient 1. */
static int
of_loss(struct acc_replicas *t, const struct acc_seen_call *c, struct labels *out,
	struct acc_err *e)
{
	const struct acc_seen_call *back = acc_seen_backward(t, c);
	double began = 0;
	for (uint32_t j = back == NULL ? 0 : back->first; back != NULL && j < back->first + back->n;
		j++) {
		if (t->seen[j].out || t->seen[j].n != 1)
			continue;
		int rc = acc_seen_number(t, t->seen[j].line, &began, e);
		if (rc < 0)
			return rc;
	}
	out->lost |= began != 1 || !c->sums;
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		if (!t->seen[j].out && !t->seen[j].real && t->seen[j].n > 1)
			add_labels(out, &t->seen[j]);
	return 0;
}

/* Those of all ranks' losses in the first step. 0 or < 0. */
static int
of_losses(struct acc_replicas *t, const struct acc_rank_group *g, struct labels *own,
	struct acc_err *e)
{
	int rc = 0;
	for (uint32_t r = 0; r < g->n; r++)
		for (size_t i = acc_calls_of(t, g->rank[r]); i < t->f->ncall && rc == 0;
			i = t->call[i].next)
			if (t->call[i].k->step == t->step[0] && t->call[i].loss && !own[r].lost)
				rc = of_loss(t, &t->call[i], &own[r], e);
	return rc;
}

static bool
shared(const struct labels *a, const struct labels *b, bool all)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->nmark; i++) {
		uint32_t k = 0;
		while (k < b->nmark && b->mark[k] != a->mark[i])
			k++;
		n += k < b->nmark;
	}
	return all ? n == a->nmark && a->nmark == b->nmark : n > 0;
}

/* What a reduction of a number makes, if nothing scales that; NULL. */
static const struct acc_replica_seen *
total(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen **in)
{
	const struct acc_replica_seen *out = NULL;
	*in = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		*(t->seen[i].out ? &out : in) = t->seen[i].n == 1 ? &t->seen[i] : NULL;
	if (out == NULL || *in == NULL || c->average || c->picks)
		return NULL;
	const uint32_t next = acc_ids_get(&t->scaled, acc_seen_id(t, out));
	return next == ACC_NOID || acc_seen_real(t, &t->call[next], true) != NULL ? out : NULL;
}

/* own[g->n]: those of the losses, if *known. */
static int
judge(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	struct labels *own, struct labels *all, bool *known, struct acc_err *e)
{
	const struct acc_replica_seen *in, *out = total(t, c, &in);
	for (uint32_t i = 0; i < g->n && out != NULL; i++) {
		const struct acc_seen_call *o = acc_replicas_call(t, c->k->step, g->rank[i],
			c->k->key);
		const struct acc_replica_seen *x = NULL;
		uint32_t nodes = 0;
		all[i] = (struct labels){.n = 0};
		if (o == NULL || total(t, o, &x) == NULL)
			continue;
		int rc = *known ? 0 : of_losses(t, g, own, e);
		*known = true;
		if (rc < 0)
			return rc;
		counted(t, x, &own[i], &all[i], &nodes);
		if (all[i].lost || all[i].n == 0)
			continue;
		if (own[i].lost || own[i].nmark == 0 || all[i].n <= own[i].n)
			continue;
		for (uint32_t k = 0; k < i; k++)
			if (all[k].n > own[k].n && own[k].n > 0 && !all[k].lost && !own[k].lost &&
				shared(&all[i], &all[k], true) && !shared(&own[i], &own[k], false))
				return acc_replicas_blame(t, g, out->line,
					acc_say(&t->f->mem,
						"counts %llu labels of rank %lld and the same of rank %lld, whose losses"
						" have %llu of them each, others on each: they count twice",
						(unsigned long long)all[i].n, (long long)g->rank[k],
						(long long)g->rank[i],
						(unsigned long long)own[i].n),
					1, 0, e);
	}
	return 0;
}

int
acc_rule_counted(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	struct labels *own = calloc(2 * (size_t)g->n, sizeof *own);
	bool known = false;
	int rc = own == NULL ? acc_nomem(e) : 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step == t->step[0] && c->k->talks && c->reduces &&
			acc_seen_among(t, c, g))
			rc = judge(t, g, c, own, own + g->n, &known, e);
	}
	free(own);
	return rc;
}
