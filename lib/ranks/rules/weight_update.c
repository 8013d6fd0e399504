/* Why a weight parts, where its own gradient does not tell: what ranks put together of what communication gave to all of
 * them is not the same, or has something of each rank's own in it; or their norms are given other weights, for they call
 * other layers. */
#include "acc/say.h"
#include "ranks/asked.h"

#include <stdlib.h>

enum { MOST_BACK = 64 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* The same op call on all ranks, whatever the sizes of its tensors; false: not on all. */
static bool
beside(const struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer)
{
	for (uint32_t i = 0; i < g->n; i++) {
		peer[i] = acc_replicas_call(t, c->k->step, g->rank[i], c->k->key);
		if (peer[i] == NULL || peer[i]->n != c->n || peer[i]->line != c->line)
			return false;
		for (uint32_t j = 0; j < c->n; j++)
			if (t->seen[peer[i]->first + j].pos != t->seen[c->first + j].pos ||
				t->seen[peer[i]->first + j].out != t->seen[c->first + j].out)
				return false;
	}
	return true;
}

/* Who made the j-th tensor of the peers, the same op call on all of them, which does not communicate; NULL. */
static const struct acc_seen_call *
maker_of(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j)
{
	const struct acc_seen_call *first = NULL;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_seen_call *c = acc_seen_caller(t,
			acc_seen_maker(t, &t->seen[peer[i]->first + j]));
		if (c == NULL || c->k->talks || (first != NULL && first->k->key != c->k->key))
			return NULL;
		first = first == NULL ? c : first;
	}
	return first;
}

/* The communication that gave the j-th tensor to one of the peers, whatever numbers scaled it; NULL: none did. */
static const struct acc_seen_call *
given_by(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j)
{
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_replica_seen *s = &t->seen[peer[i]->first + j];
		const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
		const uint32_t sum = s->mark == 0 || s->n < 2
					     ? ACC_NOID
					     : acc_ids_get(&t->reduced, acc_seen_id(t, s));
		if (sum != ACC_NOID && sum < s->call)
			c = &t->call[sum];
		if (c != NULL && (sum == (uint32_t)(c - t->call) || c->k->talks))
			return c;
	}
	return NULL;
}

struct cause {
	const struct acc_seen_call *at, *talk; /* NULL: none */
	bool pieces;                           /* all that it is given came from there */
};

/* What an op call is given that is not the same on all ranks. */
struct apart {
	const struct acc_seen_call *next, *mine,
		*others;          /* who made it; who gathered it; who gave what is alike */
	bool any, unknown, parts; /* parts: other communication gave it */
};

static int
look(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct apart *out, struct acc_err *e)
{
	*out = (struct apart){.next = NULL};
	for (uint32_t j = 0; j < peer[0]->n; j++) {
		const struct acc_replica_seen *s = &t->seen[peer[0]->first + j];
		enum acc_alike is = ACC_EQUAL;
		if (s->out || s->mark == 0)
			continue;
		int rc = acc_replicas_alike(t, g, peer, j, &is, e);
		if (rc < 0)
			return rc;
		const struct acc_seen_call *made = maker_of(t, g, peer, j),
					   *talk = given_by(t, g, peer, j);
		if (is != ACC_APART) {
			out->others = out->others == NULL ? talk : out->others;
			continue;
		}
		out->any = true;
		out->unknown |= made == NULL;
		if (made == NULL && talk != NULL) {
			out->parts |= talk->reduces || !talk->gathers ||
				      !acc_seen_among(t, talk, g);
			out->mine = out->mine == NULL ? talk : out->mine;
		}
		out->next = made != NULL && (out->next == NULL || made < out->next) ? made
										    : out->next;
	}
	return 0;
}

/* From what ranks made of the same op call back to where something enters that is not the same on all: the last op call
 * on the way that is given what came from all ranks. 0 or < 0. */
static int
back(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, struct cause *out, struct acc_err *e)
{
	*out = (struct cause){.at = NULL};
	for (unsigned hops = 0; c != NULL && !c->k->backward && hops < MOST_BACK; hops++) {
		struct apart a;
		int rc = beside(t, g, c, peer) ? look(t, g, peer, &a, e) : 1;
		if (rc < 0)
			return rc;
		if (rc > 0 || !a.any || a.parts) {
			out->at = NULL;
			return 0;
		}
		if (a.mine != NULL || a.others != NULL)
			*out = (struct cause){c, a.mine != NULL ? a.mine : a.others,
				a.mine != NULL};
		if (a.unknown)
			return 0;
		c = a.next;
	}
	return 0;
}

/* Is it given to no op call of its step afterwards, nor, as what a step leaves for the next one is, in that? */
static bool
is_last(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_seen_call *own = &t->call[s->call];
	for (const struct acc_seen_call *c = own + 1; c < t->call + t->f->ncall; c++)
		for (uint32_t i = c->first; i < c->first + c->n && c->k->rank == own->k->rank; i++)
			if (!t->seen[i].out && t->seen[i].mark == s->mark)
				return false;
	return true;
}

/* What ranks leave for the optimizer of a weight, as its shape shows, is not the same: the first reason. */
static int
left(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *w,
	const struct acc_seen_call **peer, struct cause *out, struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[w->call].k;
	bool backward = false;
	int rc = 0;
	*out = (struct cause){.at = NULL};
	for (size_t i = acc_calls_of(t, k->rank); i < t->f->ncall && rc == 0; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *s;
		struct cause found;
		if (c->k->step != k->step)
			continue;
		backward |= c->k->backward;
		s = backward && !c->k->backward && !c->k->talks ? acc_seen_real(t, c, true) : NULL;
		if (s == NULL || s->shape != w->shape || !is_last(t, s))
			continue;
		rc = back(t, g, c, peer, &found, e);
		if (rc == 0 && found.at != NULL && (out->at == NULL || found.at < out->at))
			*out = found;
	}
	return rc;
}

/* The first norm that is given something that is the same on all ranks, and another weight on each; NULL. */
static int
other_layer(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_seen_call **peer, const struct acc_replica_seen **out, struct acc_err *e)
{
	*out = NULL;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		bool apart = false, alike = false;
		if (c->k->step != step || c->k->backward || !c->norm ||
			!acc_replicas_peers(t, g, c, peer))
			continue;
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			enum acc_alike is = ACC_EQUAL;
			if (s->out || s->n < 2)
				continue;
			int rc = acc_replicas_alike(t, g, peer, j, &is, e);
			if (rc < 0)
				return rc;
			apart |= s->weight && is == ACC_APART;
			alike |= !s->place && is < ACC_APART;
		}
		if (apart && alike) {
			*out = acc_seen_output(t, peer[g->n - 1]);
			return 0;
		}
	}
	return 0;
}

int
acc_replicas_cause(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, bool *said, struct acc_err *e)
{
	const struct acc_seen_call **peer = malloc(g->n * sizeof *peer);
	const struct acc_fleet_call *k = t->call[w->call].k;
	const struct acc_replica_seen *layer = NULL, *out;
	struct cause by = {.at = NULL};
	int rc = peer == NULL ? acc_nomem(e) : left(t, g, w, peer, &by, e);
	if (rc == 0 && by.at == NULL && g->weights_differ)
		rc = other_layer(t, g, k->step, peer, &layer, e);
	free(peer);
	out = by.at == NULL ? layer : acc_seen_output(t, by.at);
	*said = rc == 0 && out != NULL;
	if (!*said)
		return rc;
	const char *name = acc_replicas_name(t, w->line, e);
	return acc_replicas_blame(t, g, out->line,
		by.at != NULL && !by.pieces
			? SAY(t,
				  "is made of what %s gave to all ranks and of what each has of its own, and goes into "
				  "no reduction: the weight of %s differs between the ranks afterwards",
				  acc_replicas_name(t, by.talk->k->line, e), name)
		: by.at != NULL
			? SAY(t,
				  "is put together differently on each rank, of what %s gathered for all of them: the "
				  "weight of %s differs between the ranks afterwards",
				  acc_replicas_name(t, by.talk->k->line, e), name)
			: SAY(t,
				  "is made of what is the same on all ranks, by a weight that differs between them: do "
				  "they call other layers? the weight of %s diverges",
				  name),
		1, 0, e);
}

/* --- what made a weight other --- */

/* Of two steps of optimizers, the first number that they are given and that is not the same, as a text; "": there is none.
 * NULL: no memory, or a record could not be got. */
static const char *
other_number(struct acc_replicas *t, const struct acc_seen_call *const c[2], struct acc_err *e)
{
	for (size_t i = 0; i < c[0]->k->n; i++) {
		struct acc_rec *r;
		double v[2];
		if (t->f->get(t->f->arg, c[0]->k->line + i, &r, e) < 0)
			return NULL;
		if (!acc_str_is(acc_get_text(r, "", "io"), "kw") ||
			!acc_as_f64(acc_get(r, "", "value"), &v[0]))
			continue;
		const char *pos = acc_say(&t->f->mem, "%.*s", ACC_PRS(acc_get_text(r, "", "pos")));
		if (pos == NULL)
			return NULL;
		for (size_t k = 0; k < c[1]->k->n; k++) {
			if (t->f->get(t->f->arg, c[1]->k->line + k, &r, e) < 0)
				return NULL;
			if (acc_str_is(acc_get_text(r, "", "io"), "kw") &&
				acc_str_is(acc_get_text(r, "", "pos"), pos) &&
				acc_as_f64(acc_get(r, "", "value"), &v[1]) && v[0] != v[1])
				return acc_say(&t->f->mem, ": its %s is %.6g, and %.6g there", pos,
					v[0], v[1]);
		}
	}
	return "";
}

int
acc_replicas_say_update(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	const struct acc_replica_seen *update, double ratio, double limit, struct acc_err *e)
{
	const struct acc_fleet_call *ka = t->call[a->call].k, *kb = t->call[b->call].k;
	const struct acc_replica_seen *other = acc_seen_made_in(t, a, step);
	const struct acc_seen_call *const by[2] = {acc_seen_caller(t, update),
		acc_seen_caller(t, other)};
	const char *number = by[1] != NULL && by[0]->optimizer && by[1]->optimizer
				     ? other_number(t, by, e)
				     : "";
	return acc_replicas_blame(t, g, update->line,
		number == NULL
			? NULL
			: acc_say(&t->f->mem,
				  "is the weight of %s in step %lld, which was the same on these ranks in step %lld, "
				  "and that differs between rank %lld and rank %lld since then%s",
				  acc_replicas_name(t, a->line, e), (long long)ka->step,
				  (long long)step, (long long)kb->rank, (long long)ka->rank,
				  number),
		ratio, limit, e);
}
