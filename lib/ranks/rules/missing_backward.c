/* What is exchanged, or received, in the forward pass wants a gradient, and nothing goes back. */
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_HOPS = 8, FEW_MOVES = 4 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Who made a tensor, before its elements were moved, in an op call with a backward pass; NULL: nobody. */
static const struct acc_seen_call *
graded(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	for (unsigned hops = 0; s != NULL && hops < MOST_HOPS; hops++) {
		const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s)), *back;
		const struct acc_replica_seen *from = NULL;
		if (c == NULL || c->k->talks || c->k->backward)
			return NULL;
		back = acc_seen_backward(t, c);
		if (back != NULL)
			return c;
		if (c->info == NULL || c->info->cls != ACC_OP_MOVE)
			return NULL;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			if (!t->seen[j].out && t->seen[j].real && t->seen[j].n > 1)
				from = from == NULL ? &t->seen[j] : from;
		s = from;
	}
	return NULL;
}

/* What an exchange is given, of more than one number; NULL. */
static const struct acc_replica_seen *
operand(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *in = NULL;
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		if (!t->seen[j].out && t->seen[j].real && t->seen[j].n > 1 &&
			acc_seen_maker(t, &t->seen[j]) != NULL)
			in = &t->seen[j];
	return in;
}

/* Is what came of it given to an op call as something that wants a gradient? What is detached is not. */
static bool
is_wanted(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *out = acc_seen_output(t, c);
	for (const struct acc_seen_call *o = c + 1; out != NULL && o < t->call + t->f->ncall &&
						    acc_seen_beside(o, c) && !o->k->backward;
		o++)
		for (uint32_t j = o->first; j < o->first + o->n; j++)
			if (!t->seen[j].out && t->seen[j].mark == out->mark && t->seen[j].wants)
				return acc_seen_backward(t, o) != NULL;
	return false;
}

/* Is a tensor given to a call behind this one as what wants a gradient? */
static bool
is_given(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *s)
{
	for (const struct acc_seen_call *o = c + 1;
		o < t->call + t->f->ncall && acc_seen_beside(o, c); o++)
		for (uint32_t j = o->first; j < o->first + o->n && !o->k->backward && !o->k->talks;
			j++)
			if (!t->seen[j].out && t->seen[j].mark == s->mark && t->seen[j].wants)
				return true;
	return false;
}

/* Does a call behind this one, with a backward pass, use a tensor, or what comes of it, that wants no gradient any more? */
static bool
goes_on(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *s)
{
	for (unsigned hops = 0; s != NULL && s->mark != 0 && hops < FEW_MOVES && !is_given(t, c, s);
		hops++) {
		const struct acc_replica_seen *next = NULL;
		for (const struct acc_seen_call *o = c + 1;
			o < t->call + t->f->ncall && acc_seen_beside(o, c); o++) {
			bool given = false;
			for (uint32_t j = o->first; j < o->first + o->n; j++)
				given |= !t->seen[j].out && t->seen[j].mark == s->mark;
			if (!given || o->k->backward || o->k->talks)
				continue;
			if (acc_seen_backward(t, o) != NULL)
				return true;
			next = next == NULL ? acc_seen_real(t, o, true) : next;
		}
		s = next;
	}
	return false;
}

int
acc_rule_cut_off(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || !(c->gathers || c->exchanges) || c->amid ||
			c->behind || c->k->backward || !acc_seen_among(t, c, g))
			continue;
		const struct acc_replica_seen *in = operand(t, c),
					      *made = in == NULL ? NULL : acc_seen_maker(t, in);
		const struct acc_seen_call *by = acc_seen_caller(t, made);
		bool flat = true;
		if (by == NULL || by->k->talks || by->k->backward || !made->wants ||
			is_given(t, by, made) || !goes_on(t, c, acc_seen_output(t, c)))
			continue;
		int rc = acc_replicas_flat(t, made, &flat, e);
		if (rc < 0 || !flat)
			return rc < 0 ? rc
				      : acc_fleet_doubts(t->f, acc_seen_output(t, c)->line,
						SAY(t,
							"comes of what %s made, which wants a gradient and is given to nothing else,"
							" and wants none: what the ranks make of it gives it none, although it goes"
							" on to the loss",
							acc_replicas_name(t, by->k->line, e)),
						e);
	}
	return 0;
}

int
acc_rule_back(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	const struct acc_seen_call *first = NULL;
	bool backward = false, flat = true;
	(void)room;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		backward |= c->k->backward;
		if (backward && !c->behind &&
			(c->exchanges || c->gathers || c->scatters || c->sends || c->receives))
			return 0;
		if (c->exchanges && acc_seen_among(t, c, g) && first == NULL) {
			const struct acc_replica_seen *in = operand(t, c);
			first = in != NULL && graded(t, in) != NULL && is_wanted(t, c) ? c : NULL;
		}
	}
	const struct acc_replica_seen *out = first == NULL ? NULL : acc_seen_output(t, first);
	if (out == NULL || !backward)
		return 0;
	int rc = acc_replicas_flat(t, out, &flat, e);
	return rc < 0 || flat
		       ? rc
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t, "is exchanged with the other ranks, wants a gradient, and no exchange is"
					" behind the first backward call: what the ranks make of it does not come"
					" back"),
				 1, 0, e);
}
