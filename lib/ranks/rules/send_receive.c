/* What one rank sends and another receives: it is used, and its gradient goes back, once. */
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_TERMS = 8, FEW_LIKE_IT = 2 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* --- what is received --- */

const struct acc_seen_call *
acc_seen_user(const struct acc_replicas *t, const struct acc_replica_seen *got,
	const struct acc_seen_call *after)
{
	for (const struct acc_seen_call *c = after + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, after); c++) {
		if (c->k->talks)
			continue;
		for (uint32_t i = c->first; i < c->first + c->n; i++)
			if (!t->seen[i].out && t->seen[i].mark == got->mark)
				return c;
	}
	return NULL;
}

static const struct acc_replica_seen *
received(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (uint32_t i = c->first; c->receives && i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].n > 1 && t->seen[i].real && t->seen[i].mark != 0)
			return &t->seen[i];
	return NULL;
}

/* What is sent, if it is real. */
static const struct acc_replica_seen *
sent(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (uint32_t i = c->first; c->sends && i < c->first + c->n; i++)
		if (!t->seen[i].out && t->seen[i].n > 1 && t->seen[i].real && t->seen[i].mark != 0)
			return &t->seen[i];
	return NULL;
}

/* Is anybody given it later, also in a step that begins behind it? So it may be where nothing more was recorded. */
static bool
is_used(const struct acc_replicas *t, const struct acc_replica_seen *got)
{
	const struct acc_seen_call *from = &t->call[got->call];
	bool more = false;
	for (const struct acc_seen_call *c = from + 1; c < t->call + t->f->ncall; c++) {
		if (c->k->rank != from->k->rank || c->k->step < from->k->step)
			continue;
		more |= !c->k->talks;
		for (uint32_t i = c->first; i < c->first + c->n; i++)
			if (!t->seen[i].out && t->seen[i].mark == got->mark)
				return true;
	}
	return !more;
}

/* The first call of a rank and step. */
static const struct acc_seen_call *
begin_of(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	while (c > t->call && acc_seen_beside(c - 1, c))
		c--;
	return c;
}

/* How many other calls of its line received what is used; 0: one more is not. */
static unsigned
others_used(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	unsigned n = 0;
	for (const struct acc_seen_call *o = begin_of(t, c);
		o < t->call + t->f->ncall && acc_seen_beside(o, c); o++) {
		const struct acc_replica_seen *x = o == c || o->line == 0 || o->line != c->line
							   ? NULL
							   : received(t, o);
		if (x != NULL && !is_used(t, x))
			return 0;
		n += x != NULL;
	}
	return n;
}

/* What came before it, and a line of code that is given that twice. */
static const struct acc_replica_seen *
used_twice(const struct acc_replicas *t, const struct acc_replica_seen *got,
	const struct acc_seen_call **line)
{
	const struct acc_seen_call *c = &t->call[got->call], *first, *second = NULL;
	const struct acc_replica_seen *other = NULL;
	for (const struct acc_seen_call *o = c;
		o-- > t->call && acc_seen_beside(o, c) && second == NULL;) {
		other = received(t, o);
		if (other == NULL || other->n != got->n || other->mark == got->mark)
			continue;
		first = acc_seen_user(t, other, o);
		for (second = first;
			second != NULL && (second == first || second->line != first->line);)
			second = acc_seen_user(t, other, second);
	}
	*line = second;
	return second == NULL || second->line == 0 ? NULL : other;
}

/* Does the pass backward go on with it? There gradients are added up by what records no op calls. */
static bool
enters_backward(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_seen_call *next = c + 1;
	while (next < t->call + t->f->ncall && acc_seen_beside(next, c) && next->k->talks)
		next++;
	return next < t->call + t->f->ncall && acc_seen_beside(next, c) && next->k->backward;
}

/* Nobody is given it, where what came before is used twice, or what else its line received is used. */
static int
unused(struct acc_replicas *t, const struct acc_replica_seen *got, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[got->call], *second;
	const struct acc_rank_group g = {.n = 1, .who = acc_fleet_ranks(t->f, &c->k->rank, 1)};
	if (is_used(t, got))
		return 0;
	const struct acc_replica_seen *other = used_twice(t, got, &second);
	bool flat = false; /* zeros are not known again */
	int rc = other == NULL ? 0 : acc_replicas_flat(t, other, &flat, e);
	if (rc < 0)
		return rc;
	if (other != NULL && !flat)
		return acc_replicas_accuse(t, &g, got, got->line,
			SAY(t,
				"is given to no op call; %s is given what %s received, as another call of its"
				" line was: should it be this?",
				acc_replicas_name(t, second->k->line, e),
				acc_replicas_name(t, other->line, e)),
			e);
	unsigned n = enters_backward(t, c) ? 0 : others_used(t, c);
	return n < FEW_LIKE_IT
		       ? 0
		       : acc_replicas_accuse(t, &g, got, got->line,
				 SAY(t,
					 "is given to no op call, although what the other %u calls of its line"
					 " received is",
					 n),
				 e);
}

/* --- its gradient --- */

enum way_back { BACK_UNKNOWN, BACK_SENT, BACK_LOST };

/* The gradients of it that op calls make, whose sum is its gradient; false: not all are known. */
static bool
gradients_of(const struct acc_replicas *t, const struct acc_replica_seen *got,
	const struct acc_replica_seen **term, uint32_t *n)
{
	const struct acc_seen_call *from = &t->call[got->call];
	*n = 0;
	for (const struct acc_seen_call *c = from + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, from); c++)
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[j];
			if (s->out || s->mark != got->mark || !s->wants || c->k->talks ||
				c->k->backward ||
				acc_replicas_call(t, c->k->step, c->k->rank, c->k->twin) == NULL)
				continue;
			if (*n == MOST_TERMS || (term[*n] = acc_seen_gradient(t, c->k->step,
							 c->k->rank, s)) == NULL)
				return false;
			++*n;
		}
	return *n > 0;
}

/* Is what was received sent on, before the backward pass? Then its gradient has a term that is received, too. */
static bool
sent_on(const struct acc_replicas *t, const struct acc_replica_seen *got)
{
	const struct acc_seen_call *from = &t->call[got->call];
	for (const struct acc_seen_call *c = from + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, from) && !c->k->backward; c++) {
		const struct acc_replica_seen *s = sent(t, c);
		if (s != NULL && s->mark == got->mark)
			return true;
	}
	return false;
}

/* Are the terms, and one more that was received behind the first of them, what is sent? 1; 0; < 0. */
static int
sum_with_received(struct acc_replicas *t, const struct acc_replica_seen *s,
	const struct acc_replica_seen **term, uint32_t n, struct acc_err *e)
{
	const struct acc_seen_call *from = &t->call[term[0]->call];
	bool sum = false, data = false;
	int rc = 0;
	if (n == MOST_TERMS)
		return 0;
	while (from > t->call && acc_seen_beside(from - 1, from) && from->k->backward)
		from--; /* gradients may be received before this one is made */
	for (const struct acc_seen_call *c = from; c < &t->call[s->call] && rc == 0 && !sum; c++) {
		term[n] = received(t, c);
		if (term[n] != NULL && term[n]->n == s->n)
			rc = acc_replicas_sum(t, s, term, n + 1, &sum, &data, e);
	}
	return rc < 0 ? rc : sum;
}

/* Is it sent after it was made? */
static int
way_back(struct acc_replicas *t, const struct acc_replica_seen *got, enum way_back *is,
	const struct acc_replica_seen **last, struct acc_err *e)
{
	const struct acc_replica_seen *term[MOST_TERMS];
	double mean[2];
	bool known = false, flat = false, sum = false, data = false;
	uint32_t n;
	*is = BACK_UNKNOWN;
	if (!gradients_of(t, got, term, &n))
		return 0;
	const bool on = sent_on(t, got);
	*last = term[0];
	int rc = acc_replicas_mean(t, got, mean, &known, e);
	for (uint32_t i = 0; i < n && rc == 0 && !flat; i++) {
		*last = term[i]->call > (*last)->call ? term[i] : *last;
		rc = acc_replicas_flat(t, term[i], &flat, e);
	}
	if (rc < 0 || flat || !known)
		return rc;
	for (const struct acc_seen_call *c = &t->call[(*last)->call] + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, &t->call[got->call]) && !sum &&
		rc == 0;
		c++) {
		const struct acc_replica_seen *s = sent(t, c);
		if (s == NULL || s->n != got->n)
			continue;
		if (n == 1)
			sum = s->mark == term[0]->mark;
		else
			rc = acc_replicas_sum(t, s, term, n, &sum, &data, e);
		if (rc == 0 && !sum && on) {
			rc = sum_with_received(t, s, term, n, e);
			sum = rc == 1;
			rc = rc < 0 ? rc : 0;
		}
	}
	*is = sum ? BACK_SENT : BACK_LOST;
	return rc;
}

/* A send, behind an op call, of what another one of its line sends, too: as much as this; NULL. */
static const struct acc_replica_seen *
sent_twice(const struct acc_replicas *t, const struct acc_seen_call *from, uint64_t n)
{
	for (const struct acc_seen_call *c = from + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, from); c++) {
		const struct acc_replica_seen *s = sent(t, c), *x;
		for (const struct acc_seen_call *o = c + 1;
			s != NULL && s->n == n && c->line != 0 && o < t->call + t->f->ncall &&
			acc_seen_beside(o, c);
			o++)
			if (o->line == c->line && (x = sent(t, o)) != NULL && x->mark == s->mark)
				return s;
	}
	return NULL;
}

/* Does a rank send nothing in its backward pass, though another one made what it received with a gradient? */
static bool
sends_none(const struct acc_replicas *t, const struct acc_replica_seen *got)
{
	const struct acc_seen_call *own = &t->call[got->call];
	bool backward = false, wanted = false;
	for (const struct acc_seen_call *c = own;
		c < t->call + t->f->ncall && acc_seen_beside(c, own); c++) {
		backward |= c->k->backward;
		if (backward && (c->sends || c->exchanges || c->gathers || c->scatters))
			return false;
	}
	for (size_t i = 0; i < t->f->nrank && !wanted; i++) {
		const uint32_t by = acc_ids_get(&t->made,
			acc_seen_place(own->k->step, t->f->rank[i], got->mark));
		const struct acc_seen_call *c = by == ACC_NOID ? NULL : &t->call[t->seen[by].call];
		wanted = c != NULL && t->f->rank[i] != own->k->rank && !c->k->talks &&
			 !c->k->backward && acc_seen_backward(t, c) != NULL;
	}
	return backward && wanted;
}

/* Where the gradients of what else its line received are sent, this one is, too. */
static int
sent_back(struct acc_replicas *t, const struct acc_replica_seen *got, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[got->call];
	const struct acc_replica_seen *last = NULL, *other;
	enum way_back is;
	unsigned n = 0;
	int rc = way_back(t, got, &is, &last, e);
	if (rc < 0 || is != BACK_LOST || c->line == 0)
		return rc;
	for (const struct acc_seen_call *o = begin_of(t, c);
		o < t->call + t->f->ncall && acc_seen_beside(o, c) && rc == 0; o++) {
		const struct acc_replica_seen *x = o->line == c->line ? received(t, o) : NULL;
		rc = x == NULL ? 0 : way_back(t, x, &is, &other, e);
		n += x != NULL && is == BACK_SENT;
	}
	const struct acc_rank_group g = {.n = 1, .who = acc_fleet_ranks(t->f, &c->k->rank, 1)};
	const struct acc_replica_seen *twice = n == 0 ? NULL : sent_twice(t, c, got->n);
	bool flat = true; /* zeros are sent for what is none */
	if (rc == 0 && twice != NULL)
		rc = acc_replicas_flat(t, twice, &flat, e);
	if (rc == 0 && !flat)
		return acc_replicas_blame(t, &g, twice->line,
			SAY(t,
				"is sent more than once, while the gradient of what %s received, which %s makes, is"
				" sent to nobody",
				acc_replicas_name(t, c->k->line, e),
				acc_replicas_name(t, last->line, e)),
			1, 0, e);
	if (rc == 0 && n == 0 && sends_none(t, got))
		return acc_replicas_blame(t, &g, last->line,
			SAY(t,
				"makes the gradient of what %s received, which another rank made in an op call with a backward pass; nothing"
				" is sent in the backward pass",
				acc_replicas_name(t, got->line, e)),
			1, 0, e);
	return rc < 0 || n == 0
		       ? rc
		       : acc_replicas_blame(t, &g, last->line,
				 SAY(t,
					 "makes the gradient of what %s received, which is sent to nobody; those"
					 " of what other calls of its line received, %u, are",
					 acc_replicas_name(t, got->line, e), n),
				 1, 0, e);
}

/* It was sent there before: does nobody get what a later call of the line that made it put out? */
static int
sent_again(struct acc_replicas *t, const struct acc_replica_seen *s, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[s->call], *was = NULL, *other = NULL;
	const struct acc_replica_seen *made = acc_seen_maker(t, s), *x = NULL;
	for (const struct acc_seen_call *o = c;
		o-- > t->call && acc_seen_beside(o, c) && was == NULL;) {
		x = sent(t, o);
		was = x != NULL && x->mark == s->mark && o->args == c->args ? o : NULL;
	}
	if (was == NULL || made == NULL || t->call[made->call].line == 0)
		return 0;
	const struct acc_seen_call *maker = &t->call[made->call];
	for (const struct acc_seen_call *o = maker + 1; o < c && other == NULL; o++) {
		if (o->line != maker->line || o->k->backward)
			continue;
		x = NULL;
		for (uint32_t i = o->first; i < o->first + o->n; i++)
			x = t->seen[i].out && t->seen[i].n == s->n ? &t->seen[i] : x;
		bool used = x == NULL || x->mark == s->mark || acc_seen_user(t, x, o) != NULL;
		for (const struct acc_seen_call *p = o;
			p < t->call + t->f->ncall && acc_seen_beside(p, o) && !used; p++) {
			const struct acc_replica_seen *y = sent(t, p);
			used = y != NULL && y->mark == x->mark;
		}
		other = used ? NULL : o;
	}
	if (other == NULL)
		return 0;
	const struct acc_rank_group g = {.n = 1, .who = acc_fleet_ranks(t->f, &c->k->rank, 1)};
	return acc_replicas_accuse(t, &g, s, s->line,
		SAY(t,
			"is sent a second time, after %s; what %s put out is given to nobody: should it"
			" be this?",
			acc_replicas_name(t, was->k->line, e),
			acc_replicas_name(t, other->k->line, e)),
		e);
}

int
acc_rule_pairs(struct acc_replicas *t, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < t->f->ncall && !t->scattered && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *got = received(t, c), *gave = sent(t, c);
		if (c->k->step == t->step[0] && got != NULL) {
			rc = unused(t, got, e);
			rc = rc < 0 ? rc : sent_back(t, got, e);
		} else if (c->k->step == t->step[0] && gave != NULL)
			rc = sent_again(t, gave, e);
	}
	return rc;
}
