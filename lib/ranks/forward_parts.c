/* Ranks that hold parts of weights, or are given the same data, and of which a gradient is another on each: what they
 * computed alike before has parted in the forward pass. What follows is computed as if it had not. */
#include "acc/say.h"
#include "ranks/asked.h"

#include <stdlib.h>

enum { MOST_BACK = 64, MOST_TRIED = 16 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* What an op call is given on all ranks. */
struct given {
	const struct acc_seen_call *next; /* who made what is apart; NULL */
	bool alone;                       /* something is apart that nobody made */
	bool alike;                       /* something that was made is the same */
	bool summed;                      /* of that, something over these ranks */
	bool weights;                     /* weights, or the parts of one, are apart */
};

static int
look(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct given *out, struct acc_err *e)
{
	*out = (struct given){.next = NULL};
	for (uint32_t j = 0; j < peer[0]->n; j++) {
		const struct acc_replica_seen *s = &t->seen[peer[0]->first + j];
		const struct acc_seen_call *maker = acc_seen_caller(t, acc_seen_maker(t, s));
		enum acc_alike is = ACC_EQUAL;
		if (s->out || s->n < 2)
			continue;
		int rc = acc_replicas_alike(t, g, peer, j, &is, e);
		if (rc < 0)
			return rc;
		if (s->place || s->leaf) {
			out->weights |= is >= ACC_APART;
			continue;
		}
		const bool sum = maker != NULL && maker->k->talks && maker->reduces &&
				 !maker->scatters && acc_seen_among(t, maker, g);
		out->alike |= is < ACC_APART && maker != NULL;
		out->summed |= is < ACC_APART && sum;
		out->alone |= is == ACC_APART && maker == NULL;
		if (is == ACC_APART && maker != NULL && (out->next == NULL || maker < out->next))
			out->next = maker;
	}
	return 0;
}

struct origin {
	const struct acc_seen_call *at; /* NULL: there is none */
	const char *what;
};

static const char own[] =
	"is made of something else on each rank, which nobody made, beside what is the same";
static const char added[] =
	"is made of a sum over the ranks, which is the same on all, and of a part that each has, which"
	" nothing sums up";
static const char drawn[] =
	"differs between the ranks, though what it is made of is the same: random numbers "
	"that should be the same on all";

/* From an op call back to the first one that was given something else on each rank. Where that comes from parts of
 * weights, it is the last on the way that puts it together with what was summed up. */
static int
back(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, struct origin *out, struct acc_err *e)
{
	const struct acc_seen_call *mixed = NULL, *met = NULL;
	for (unsigned hops = 0; c != NULL && hops < MOST_BACK; hops++) {
		struct given is;
		if (c->k->talks || c->k->backward || !acc_replicas_peers(t, g, c, peer))
			return 0;
		int rc = look(t, g, peer, &is, e);
		if (rc < 0)
			return rc;
		met = is.alike ? c : met;
		if (is.next == NULL && is.alone && met != NULL && !is.weights)
			*out = (struct origin){met, own};
		else if (is.next == NULL && is.weights && mixed != NULL)
			*out = (struct origin){mixed, added};
		mixed = is.next != NULL && is.summed ? c : mixed;
		c = is.next;
	}
	return 0;
}

/* Is an op call given some of these, as they are the same on all ranks, and something else that is not? */
static int
meets(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_ids *alike, bool *given,
	bool *apart, struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	int rc = 0;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		*given |= !t->seen[i].out && t->seen[i].n > 1 &&
			  acc_ids_get(alike, t->seen[i].mark) != ACC_NOID;
	for (uint32_t j = 0; j < c->n && *given && rc == 0; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		enum acc_alike is = ACC_EQUAL;
		if (s->out || s->n < 2 || s->place || s->leaf)
			continue;
		rc = acc_replicas_alike(t, g, peer, j, &is, e);
		*apart |= is == ACC_APART;
	}
	return rc;
}

/* It is looked for from a few weights of a step alone: each looks through the step. */
static int
is_spared(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *from,
	bool *is, struct acc_err *e)
{
	const uint64_t id = acc_seen_place(from->k->step, from->k->rank,
		~acc_hash(g->rank, g->n * sizeof *g->rank));
	const uint32_t tried = acc_ids_get(&t->drawn, id);
	*is = tried != ACC_NOID && tried >= MOST_TRIED;
	return *is ? 0 : acc_ids_put(&t->drawn, id, tried == ACC_NOID ? 1 : tried + 1, true, e);
}

/* From an op call on to the first that puts what is the same on all ranks, which it made, together with something that
 * is not, and nobody made. */
static int
ahead(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *from,
	const struct acc_seen_call **peer, struct origin *out, struct acc_err *e)
{
	struct acc_ids alike = {0};
	bool spared = false;
	int rc = is_spared(t, g, from, &spared, e);
	if (rc < 0 || spared)
		return rc;
	for (const struct acc_seen_call *c = from;
		c < t->call + t->f->ncall && rc == 0 && out->at == NULL && acc_seen_beside(c, from);
		c++) {
		bool given = c == from, apart = false;
		if (c->k->talks || c->k->backward || c->module ||
			!acc_replicas_peers(t, g, c, peer))
			continue;
		if (c != from)
			rc = meets(t, g, peer, &alike, &given, &apart, e);
		if (rc == 0 && given && apart)
			rc = back(t, g, c, peer, out, e);
		if (out->what != own)
			*out = (struct origin){.at = NULL};
		for (uint32_t j = 0; j < c->n && rc == 0 && given && !apart; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			if (s->out && s->n > 1 && acc_replicas_marked(t, g, peer, j))
				rc = acc_ids_put(&alike, s->mark, 1, false, e);
		}
	}
	acc_ids_release(&alike);
	return rc;
}

/* Is all that these calls are given the same to the bit, and are their arguments? Extremes alone say little of
 * integers. */
static bool
same_given(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer)
{
	bool same = acc_seen_real(t, peer[0], false) != NULL;
	for (uint32_t i = 1; i < g->n; i++)
		same &= peer[i]->args == peer[0]->args;
	for (uint32_t j = 0; j < peer[0]->n && same; j++) {
		const struct acc_replica_seen *s = &t->seen[peer[0]->first + j];
		same = s->out || ((s->real || s->exact) && acc_replicas_marked(t, g, peer, j));
	}
	return same;
}

/* The first op call of a step that gives something else on each rank, though all it was given is the same. It is
 * asked of each weight that parts. */
static int
draws(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_fleet_call *of,
	const struct acc_seen_call **peer, struct origin *out, struct acc_err *e)
{
	const uint64_t id = acc_seen_place(of->step, of->rank,
		acc_hash(g->rank, g->n * sizeof *g->rank));
	const uint32_t asked = acc_ids_get(&t->drawn, id);
	if (asked != ACC_NOID) {
		if (asked < t->f->ncall)
			*out = (struct origin){&t->call[asked], drawn};
		return 0;
	}
	for (size_t i = acc_calls_of(t, of->rank); i < t->f->ncall && out->at == NULL;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *x = acc_seen_real(t, c, true);
		enum acc_alike is = ACC_EQUAL;
		if (c->k->step != of->step || c->k->talks || c->k->backward || c->module ||
			x == NULL || !acc_replicas_peers(t, g, c, peer) || !same_given(t, g, peer))
			continue;
		int rc = acc_replicas_alike(t, g, peer, (uint32_t)(x - t->seen) - c->first, &is, e);
		if (rc < 0)
			return rc;
		if (is == ACC_APART)
			*out = (struct origin){c, drawn};
	}
	return acc_ids_put(&t->drawn, id,
		out->at == NULL ? (uint32_t)t->f->ncall : (uint32_t)(out->at - t->call), false, e);
}

/* Of ranks that hold parts of weights. */
static int
of_parts(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *dw,
	const struct acc_seen_call **peer, struct origin *out, bool *said, struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[dw->call].k;
	const struct acc_seen_call *c = acc_replicas_call(t, k->step, k->rank, k->twin);
	const struct acc_replica_seen *w = acc_seen_input(t, dw);
	int rc = w == NULL ? 0
			   : ACC_CAUSE(t->f, odd_weight,
				     acc_replicas_same_part(t, g, w, peer, said, e));
	if (rc == 0 && !*said)
		rc = back(t, g, c, peer, out, e);
	if (rc == 0 && !*said && out->at == NULL && c != NULL)
		rc = ahead(t, g, c, peer, out, e);
	return rc;
}

int
acc_replicas_spoiled(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *dw, const char *weight, bool *said, struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[dw->call].k;
	struct origin from = {.at = NULL};
	*said = false;
	if (!g->weights_differ && g->data_differ)
		return 0;
	const struct acc_seen_call **peer = malloc(g->n * sizeof *peer);
	int rc = peer == NULL ? acc_nomem(e) : 0;
	/* Ranks of other data draw other numbers; of parts of weights another rule says it. */
	if (rc == 0 && !g->weights_differ)
		rc = draws(t, g, k, peer, &from, e);
	else if (rc == 0)
		rc = of_parts(t, g, dw, peer, &from, said, e);
	free(peer);
	if (*said)
		return rc;
	const struct acc_replica_seen *out = from.at == NULL ? NULL : acc_seen_output(t, from.at);
	*said = rc == 0 && out != NULL;
	return !*said ? rc
		      : acc_replicas_blame(t, g, out->line,
				SAY(t, "%s: what follows is computed as if it still were, and the weight of %s diverges",
					from.what, weight),
				1, 0, e);
}
