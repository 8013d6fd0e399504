/* Moments of what all ranks have: where the mean was joined over the ranks and taken off, what is made of the rest, a
 * deviation, is joined, too. */
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_HOPS = 6, MOST_NODES = 48 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct way { /* the op calls that something is made by, up to communication */
	const struct acc_replica_seen *at[MOST_NODES];
	unsigned hops[MOST_NODES], n;
};

static void
add(struct way *w, const struct acc_replica_seen *s, unsigned hops)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->at[i]->mark == s->mark)
			return;
	if (w->n == MOST_NODES || hops > MOST_HOPS || s->mark == 0)
		return;
	w->hops[w->n] = hops;
	w->at[w->n++] = s;
}

/* Operands, and theirs; `few`: only those of as few elements. */
static void
go_back(struct way *w, const struct acc_replicas *t, const struct acc_replica_seen *s, bool few)
{
	w->n = 0;
	add(w, s, 0);
	for (unsigned i = 0; i < w->n; i++) {
		const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, w->at[i]));
		for (uint32_t j = c == NULL ? 0 : c->first;
			c != NULL && !c->k->talks && j < c->first + c->n; j++)
			if (!t->seen[j].out && t->seen[j].real && (!few || t->seen[j].n <= s->n))
				add(w, &t->seen[j], w->hops[i] + 1);
	}
}

/* The only real tensor that it pools into fewer elements, a sum or a norm; NULL: it does not. */
static const struct acc_replica_seen *
pooled(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *in = NULL, *out = NULL;
	if (c->k->talks || c->k->backward || c->loss ||
		(c->info != NULL &&
			(c->info->cls == ACC_OP_MOVE || c->info->cls == ACC_OP_CONTRACT)))
		return NULL;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		if (!s->real || (s->out ? out : in) != NULL)
			return NULL;
		*(s->out ? &out : &in) = s;
	}
	return in == NULL || out == NULL || out->n >= in->n ? NULL : in;
}

/* The reduction of a moment of this shape that it contains; NULL: none. */
static const struct acc_seen_call *
joined(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *x, uint64_t shape)
{
	struct way w;
	go_back(&w, t, x, false);
	for (unsigned i = 1; i < w.n; i++) {
		const struct acc_replica_seen *made = acc_seen_maker(t, w.at[i]);
		const struct acc_seen_call *c = acc_seen_caller(t, made);
		if (c != NULL && c->k->talks && c->reduces && !c->scatters &&
			acc_seen_among(t, c, g) && made->shape == shape && made->n < x->n)
			return c;
	}
	return NULL;
}

/* What pools something made of x, on the way back from y, and that is given to no reduction. */
static const struct acc_replica_seen *
own_moment(const struct acc_replicas *t, const struct acc_replica_seen *y,
	const struct acc_replica_seen *x)
{
	struct way w, of;
	go_back(&w, t, y, true);
	for (unsigned i = 0; i < w.n; i++) {
		const struct acc_replica_seen *made = acc_seen_maker(t, w.at[i]),
					      *in = made == NULL ? NULL
								 : pooled(t, &t->call[made->call]);
		if (made == NULL || acc_seen_given(t, made) || t->call[made->call].k->talks)
			return NULL;
		if (in == NULL)
			continue;
		go_back(&of, t, in, false);
		for (unsigned k = 0; k < of.n; k++)
			if (of.at[k]->mark == x->mark)
				return made;
	}
	return NULL;
}

/* x and what has fewer elements, of one op call of elements. */
static int
pair(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call **peer,
	const struct acc_replica_seen *x, const struct acc_replica_seen *y, struct acc_err *e)
{
	const struct acc_replica_seen *own = own_moment(t, y, x);
	const struct acc_seen_call *sum = own == NULL ? NULL : joined(t, g, x, own->shape),
				   *c = own == NULL ? NULL : &t->call[own->call];
	enum acc_alike is = ACC_EQUAL;
	if (sum == NULL || !acc_replicas_peers(t, g, c, peer))
		return 0;
	int rc = acc_replicas_alike(t, g, peer, (uint32_t)(own - t->seen) - c->first, &is, e);
	return rc < 0 || is != ACC_APART
		       ? rc
		       : acc_replicas_blame(t, g, own->line,
				 SAY(t,
					 "is each rank's own, although it is made of what a moment was taken off that %s"
					 " joined over the ranks: a reduction is missing",
					 acc_replicas_name(t, sum->k->line, e)),
				 1, 0, e);
}

int
acc_rule_moments(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || c->k->talks || c->info == NULL ||
			c->info->cls != ACC_OP_MUL)
			continue;
		if (c->k->backward)
			break;
		for (uint32_t j = c->first; j < c->first + c->n && rc == 0; j++)
			for (uint32_t k = c->first; k < c->first + c->n && rc == 0; k++)
				if (!t->seen[j].out && !t->seen[k].out && t->seen[j].real &&
					t->seen[k].real && t->seen[k].n < t->seen[j].n &&
					t->seen[j].mark != 0)
					rc = pair(t, g, room, &t->seen[j], &t->seen[k], e);
	}
	return rc;
}
