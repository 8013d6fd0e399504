/* What one op call shows beside the same one of the other ranks: sums of what is summed up already, a bias
 * that is added on each rank, a switch that is set on one; gradients that were not joined. */
#include "ranks/asked.h"
#include "acc/say.h"

#include <math.h>

enum { MOST_HOPS = 5, MOST_WALK = 64, MOST_OPERANDS = 3 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* --- reductions --- */

static bool
sums_up(const struct acc_seen_call *c)
{
	return c->k->talks && c->reduces && !c->average && !c->picks;
}

/* Of what is joined into one tensor: is some of it a sum over these ranks, and some a gradient as it was
 * made? *sum: such a part. */
static bool
mixed(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *join, const struct acc_replica_seen **sum)
{
	bool fresh = false;
	*sum = NULL;
	for (uint32_t i = join->first; i < join->first + join->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		if (s->out || s->mark == 0 || s->n < 2 || !s->real)
			continue;
		uint32_t by = acc_seen_reduced(t, s);
		const struct acc_seen_call *c = by == ACC_NOID ? NULL : &t->call[by];
		if (c != NULL && by < s->call && sums_up(c) && acc_seen_among(t, c, g))
			*sum = s;
		const struct acc_seen_call *maker = acc_seen_caller(t, acc_seen_maker(t, s));
		fresh |= c == NULL && maker != NULL && maker->k->backward;
	}
	return fresh && *sum != NULL;
}

int
acc_rule_reduction(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	const struct acc_replica_seen *out = acc_seen_output(t, c), *in = NULL, *sum;
	if (!sums_up(c) || !acc_seen_among(t, c, g) || out == NULL)
		return 0;
	uint32_t at = 0;
	for (uint32_t j = 0; j < c->n && in == NULL; j++)
		if (!t->seen[c->first + j].out && t->seen[c->first + j].n > 1) {
			in = &t->seen[c->first + j];
			at = j;
		}
	if (in == NULL || !in->real || c->scatters)
		return 0;
	const struct acc_seen_call *maker = acc_seen_caller(t, acc_seen_maker(t, in));
	const char *said = NULL, *name;
	if (maker != NULL && sums_up(maker) && acc_seen_among(t, maker, g)) {
		bool alike = acc_replicas_marked(t, g, peer, at);
		if (maker->scatters == alike) /* zeros, or there are other ranks */
			return 0;
		name = acc_replicas_name(t, maker->k->line, e);
		said = maker->scatters
			       ? SAY(t,
					 "sums up what %s has dealt out among the same ranks: each has"
					 " another part: is it the right group?",
					 name)
			       : SAY(t,
					 "sums up what %s has summed up among the same ranks: %u times"
					 " too large",
					 name, g->n);
		return acc_replicas_accuse(t, g, in, out->line, said, e);
	}
	const struct acc_seen_call *join = acc_seen_joined(t, in);
	if (join == NULL || !mixed(t, g, join, &sum))
		return 0;
	name = acc_replicas_name(t, join->k->line, e);
	return acc_replicas_accuse(t, g, sum, out->line,
		SAY(t,
			"sums up what %s joined: parts of it are sums over these ranks already,"
			" others are not",
			name),
		e);
}

/* --- op calls --- */

/* A switch or a number, of a layer with weights that are the same, or of dropout. */
static int
switches(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	bool layer = c->info != NULL && c->info->cls == ACC_OP_RANDOM;
	uint32_t odd = 0;
	for (uint32_t j = 0; j < c->n; j++)
		layer |= t->seen[c->first + j].leaf && acc_replicas_marked(t, g, peer, j);
	for (uint32_t i = 1; i < g->n; i++)
		odd = odd == 0 && peer[i]->switches != c->switches ? i : odd;
	const struct acc_replica_seen *out = odd == 0 ? NULL : acc_seen_output(t, peer[odd]);
	bool number = c->info != NULL &&
		      (c->info->cls == ACC_OP_MUL || c->info->cls == ACC_OP_ADD ||
			      c->info->cls == ACC_OP_MOVE);
	if (out == NULL || !layer || number || g->weights_differ || g->parts)
		return 0;
	return acc_replicas_blame(t, g, out->line,
		SAY(t,
			"is made with different switches or numbers on rank %lld and rank %lld, although "
			"their weights are the same",
			(long long)peer[odd]->k->rank, (long long)c->k->rank),
		1, 0, e);
}

/* Is it a product by parts of a weight? */
static bool
of_parts(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer)
{
	const struct acc_seen_call *c = peer[0];
	if (c->info == NULL || (strcmp(c->info->family, "linear") != 0 &&
				       strncmp(c->info->family, "conv", 4) != 0))
		return false;
	for (uint32_t j = 0; j < c->n; j++)
		if (t->seen[c->first + j].weight && !acc_replicas_marked(t, g, peer, j))
			return true;
	return false;
}

/* What an op call adds that is whole, the same on all ranks: a bias to a product by parts of a weight, or something
 * to what is another on each; NULL: it does not. */
static int
added_whole(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_replica_seen **whole,
	struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	const struct acc_replica_seen *same = NULL;
	bool parts = of_parts(t, g, peer), apart = parts, flat = false;
	int rc = 0;
	*whole = NULL;
	if (!parts && (c->info == NULL || c->info->cls != ACC_OP_ADD ||
			      acc_replicas_call(t, c->k->step, c->k->rank, c->k->twin) == NULL))
		return 0;
	for (uint32_t j = 0; j < c->n && rc == 0; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		enum acc_alike is = ACC_EQUAL;
		bool alike = false;
		if (s->out || !s->real || s->n < 2 || (parts && (!s->weight || j == 0)))
			continue;
		rc = acc_replicas_alike(t, g, peer, j, &is, e);
		apart |= is == ACC_APART;
		if (rc == 0 && is < ACC_APART)
			rc = acc_replicas_same(t, g, peer, j, &alike, e);
		same = alike ? s : same;
	}
	if (rc < 0 || same == NULL || !apart)
		return rc;
	rc = acc_replicas_flat(t, same, &flat, e);
	if (rc == 0 && !flat)
		rc = acc_seen_shared_out(t, g, acc_seen_caller(t, acc_seen_maker(t, same)), e);
	*whole = rc == 0 && !flat ? same : NULL;
	return rc < 0 ? rc : 0;
}

/* It is summed up over the ranks. */
static int
counted_often(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	const struct acc_replica_seen *out = acc_seen_output(t, c), *whole, *sum;
	uint32_t by = out == NULL || out->mark == 0 ? ACC_NOID
						    : acc_ids_get(&t->given, acc_seen_id(t, out));
	if (by == ACC_NOID || by < out->call || !sums_up(&t->call[by]) ||
		!acc_seen_among(t, &t->call[by], g))
		return 0;
	int rc = added_whole(t, g, peer, &whole, e);
	if (rc < 0 || whole == NULL)
		return rc;
	sum = acc_seen_output(t, &t->call[by]);
	uint32_t next = sum == NULL || sum->mark == 0
				? ACC_NOID
				: acc_ids_get(&t->scaled, acc_seen_id(t, sum));
	rc = next == ACC_NOID || next <= by ? 0 : acc_seen_shared_out(t, g, &t->call[next], e);
	return rc != 0 ? (rc < 0 ? rc : 0)
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "adds what is the same on all ranks to what is not; %s sums that up over the ranks: "
					 "the first is counted %u times",
					 acc_replicas_name(t, t->call[by].k->line, e), g->n),
				 1, 0, e);
}

int
acc_rule_call(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	int rc = ACC_RULE(t->f, call_switch, switches(t, g, peer, e));
	if (rc == 0)
		rc = ACC_RULE(t->f, loss_labels, acc_rule_labels(t, g, peer, e));
	return rc < 0 ? rc : ACC_RULE(t->f, double_counted, counted_often(t, g, peer, e));
}

/* --- the loss --- */

/* Does it come from a reduction, by op calls of elements? */
static bool
from_reduction(const struct acc_replicas *t, const struct acc_replica_seen *s, unsigned hops)
{
	const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
	bool found = c != NULL && c->k->talks && c->reduces;
	if (c == NULL || c->k->talks || c->k->backward || hops == 0)
		return found;
	unsigned tried = 0;
	for (uint32_t i = c->first; i < c->first + c->n && !found && tried < MOST_OPERANDS; i++)
		if (!t->seen[i].out && t->seen[i].real && t->seen[i].n == s->n) {
			found = from_reduction(t, &t->seen[i], hops - 1);
			tried++;
		}
	return found;
}

struct walk { /* from the loss towards what makes it differ */
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_seen_call **peer;
	const struct acc_seen_call *meets;    /* where it met what a reduction made */
	const struct acc_replica_seen *found; /* and what has first as many elements */
	const struct acc_replica_seen *at;
	bool parts; /* it ends at a part of a weight, and what else is given there is the same on all */
};

/* One op call back. *more: there is another one. */
static int
back(struct walk *w, bool *more, struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	const struct acc_replica_seen *apart = NULL, *same = NULL;
	const struct acc_seen_call *c = acc_seen_caller(t, w->at);
	unsigned n = 0;
	bool leaf = false;
	int rc = 0;
	*more = false;
	if (!acc_replicas_peers(t, w->g, c, w->peer))
		return 0;
	for (uint32_t j = 0; j < c->n && rc == 0; j++) {
		const struct acc_replica_seen *s = &t->seen[w->peer[0]->first + j];
		enum acc_alike is;
		if (s->out || !s->real)
			continue;
		rc = acc_replicas_alike(t, w->g, w->peer, j, &is, e);
		leaf |= is == ACC_APART && s->leaf;
		if (is == ACC_APART) {
			apart = s;
			n++;
		} else if (is < ACC_APART && s->n == w->at->n && s->n > 1 &&
			   from_reduction(t, s, MOST_HOPS))
			same = s;
	}
	if (rc < 0 || n != 1)
		return rc;
	w->parts = leaf;
	if (leaf)
		return 0;
	if (w->meets != NULL && w->found == NULL && apart->n != w->at->n)
		w->found = w->at;
	if (w->meets == NULL && same != NULL && apart->n == w->at->n)
		w->meets = c;
	const struct acc_replica_seen *from = acc_seen_maker(t, apart);
	*more = from != NULL && !acc_seen_caller(t, from)->k->talks;
	w->at = *more ? from : w->at;
	return 0;
}

/* The last number that a rank makes in the first step before it goes backward. */
static const struct acc_replica_seen *
loss_of(const struct acc_replicas *t, int64_t rank)
{
	const struct acc_replica_seen *last = NULL;
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || c->k->talks)
			continue;
		if (c->k->backward)
			return last;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			if (t->seen[j].out && t->seen[j].n == 1 && t->seen[j].real)
				last = &t->seen[j];
	}
	return NULL;
}

int
acc_rule_loss(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct walk w = {.t = t, .g = g, .peer = room};
	enum acc_alike is = ACC_EQUAL;
	bool more = t->nstep > 0 && g->weights_differ;
	int rc = 0;
	w.at = more ? loss_of(t, g->rank[0]) : NULL;
	/* What is summed up over the ranks afterwards may be another on each. */
	if (w.at == NULL || acc_seen_given(t, w.at) ||
		!acc_replicas_peers(t, g, acc_seen_caller(t, w.at), room))
		return 0;
	rc = acc_replicas_alike(t, g, room, (uint32_t)(w.at - t->seen) - room[0]->first, &is, e);
	/* A mean hides what its terms show. */
	more = is == ACC_NEAR || is == ACC_APART;
	for (unsigned i = 0; rc == 0 && more && i < MOST_WALK; i++)
		rc = back(&w, &more, e);
	if (rc < 0 || w.found == NULL || !w.parts)
		return rc;
	const char *name = acc_replicas_name(t, w.meets->k->line, e);
	return acc_replicas_blame(t, g, w.found->line,
		SAY(t,
			"differs between the ranks, and so is the loss, although only parts of weights "
			"differ; %s joins it with what a reduction made the same: a reduction is missing",
			name),
		1, 0, e);
}
