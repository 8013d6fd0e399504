/* Ranks that hold the same weights and join their gradients, so that only their data differ: what does not change
 * from step to step is no data, and the same on all of them; and data are not. */
#include "acc/say.h"
#include "ranks/asked.h"

#include <stdlib.h>

/* Gradients that are joined, or buffers of the gradients of a module. */
enum { FEW_JOINED = 4, FEW_BUFFERS = 2 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* The calls of the first rank in the first step. */
static bool
is_first(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	return c->k->rank == g->rank[0] && c->k->step == t->step[0];
}

/* --- what does not change --- */

bool
acc_seen_stays(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	bool same = t->nstep > 1;
	for (size_t i = 0; i < t->nstep && same; i++) {
		const struct acc_seen_call *c = acc_replicas_call(t, t->step[i], k->rank, k->key);
		bool found = false;
		for (uint32_t j = 0; c != NULL && j < c->n && !found; j++)
			found = t->seen[c->first + j].pos == s->pos &&
				t->seen[c->first + j].out == s->out &&
				t->seen[c->first + j].mark == s->mark;
		same = found;
	}
	return same;
}

/* Ranks that hold parts of a sequence have positions of their own. */
bool
acc_seen_own_data(const struct acc_replicas *t, const struct acc_rank_group *g)
{
	bool changes = false;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!is_first(t, g, c))
			continue;
		if (c->k->backward)
			break;
		if (c->k->talks && !c->hands_round && c->nmember != 1)
			return false;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			changes |= t->seen[j].data && !acc_seen_stays(t, &t->seen[j]);
	}
	return changes;
}

/* Does it stay as it is, or, at a place of weights, become much the same, as an average of weights does? */
static int
is_kept(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is, struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	const struct acc_seen_call *c = t->nstep > 1 && s->place
						? acc_replicas_call(t, t->step[1], k->rank, k->key)
						: NULL;
	*is = acc_seen_stays(t, s);
	for (uint32_t j = c == NULL ? 0 : c->first; c != NULL && !*is && j < c->first + c->n; j++)
		if (!t->seen[j].out && t->seen[j].pos == s->pos)
			return t->seen[j].shape == s->shape && t->seen[j].mark != 0
				       ? acc_replicas_persists(t, s, &t->seen[j], is, e)
				       : 0;
	return 0;
}

static int
unlike_constant(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, bool apart, struct acc_err *e)
{
	const struct acc_replica_seen *s = &t->seen[peer[0]->first + j];
	const struct acc_replica_seen *out = acc_seen_output(t, peer[0]);
	/* A buffer is the same for all samples: what it is given to makes more of it. */
	bool stays = true, buffer = apart && out != NULL && s->n < out->n;
	if (s->out || !s->raw || s->n < 2 || acc_replicas_marked(t, g, peer, j) ||
		!(s->place || buffer))
		return 0;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_replica_seen *x = &t->seen[peer[i]->first + j];
		bool kept = false;
		if (x->mark == 0 || x->shape != s->shape || acc_seen_maker(t, x) != NULL)
			return 0;
		int rc = is_kept(t, x, &kept, e);
		if (rc < 0 || !kept)
			return rc;
		stays &= acc_seen_stays(t, x);
	}
	bool mask = false;
	int rc = s->place ? 0
			  : acc_replicas_binary(t, &t->seen[peer[g->n - 1]->first + j], &mask, e);
	if (rc < 0 || mask) /* samples may be as long as before */
		return rc;
	uint32_t odd = acc_replicas_odd(t, g, peer, j);
	return acc_replicas_accuse(t, g, s, t->seen[peer[odd]->first + j].line,
		SAY(t,
			stays ? "is the same in all steps, and differs between rank %lld and rank %lld, whose "
				"weights are the same: what is no data, a frozen weight or a buffer, must be, too"
			      : "is a weight without a gradient, such as an average, and differs between rank %lld "
				"and rank %lld from the start, whose other weights are the same",
			(long long)peer[odd]->k->rank, (long long)peer[odd == 0]->k->rank),
		e);
}

/* --- data --- */

/* Is all that the ranks join when they go backward the same on all of them? Then how much of it is not one number; else 0. */
static int
all_same(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call **peer,
	uint32_t *n, struct acc_err *e)
{
	bool backward = false, same = true;
	int rc = 0;
	*n = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && same;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!is_first(t, g, c))
			continue;
		backward |= c->k->backward;
		const struct acc_replica_seen *in = NULL; /* what is filled is no larger */
		for (uint32_t k = c->first; k < c->first + c->n && c->k->talks && c->reduces &&
					    backward && acc_seen_among(t, c, g);
			k++)
			if (!t->seen[k].out && t->seen[k].real && t->seen[k].n > 1 &&
				(in == NULL || t->seen[k].n > in->n))
				in = &t->seen[k];
		bool flat = true;
		if (in == NULL)
			continue;
		same = acc_replicas_peers(t, g, c, peer);
		if (same)
			rc = acc_replicas_same(t, g, peer, (uint32_t)(in - t->seen) - c->first,
				&same, e);
		if (rc == 0 && same)
			rc = acc_replicas_flat(t, in, &flat, e);
		*n += !flat;
	}
	*n = rc == 0 && same ? *n : 0;
	return rc;
}

/* Integers of which no more than the extremes are known: by what is made of them, ranks are seen to have the same. */
static bool
is_hidden(const struct acc_replica_seen *s)
{
	return !s->out && !s->real && s->n > 1 && s->mark == 0;
}

/* The first thing that is made of data, if all that nobody made is the same on all ranks; NULL: it is not. Of hidden integers
 * what most are given to: positions are fewer than tokens. Where weights are gathered, parts of them look like data. */
static int
of_data(struct acc_replicas *t, const struct acc_rank_group *g, bool gathered,
	const struct acc_seen_call **peer, const struct acc_replica_seen **out, struct acc_err *e)
{
	uint64_t most = 0;
	*out = NULL;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!is_first(t, g, c) || c->k->backward || c->k->talks ||
			!acc_replicas_peers(t, g, c, peer))
			continue;
		const struct acc_replica_seen *made = acc_seen_output(t, c);
		const bool shows = made != NULL && made->mark != 0;
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			const bool hidden = shows && is_hidden(s);
			bool flat = true;
			if (!hidden && (!s->data || s->place || (gathered && s->real) ||
					       acc_seen_maker(t, s) != NULL))
				continue;
			const uint64_t n = s->n;
			s = hidden ? made : s;
			int rc = acc_replicas_flat(t, s, &flat, e);
			if (rc < 0 || !acc_replicas_marked(t, g, peer,
					      (uint32_t)(s - t->seen) - c->first)) {
				*out = NULL;
				return rc;
			}
			if (!flat && (*out == NULL || (hidden && n > most))) {
				*out = made;
				most = hidden ? n : UINT64_MAX;
			}
		}
	}
	return 0;
}

static int
same_data(struct acc_replicas *t, const struct acc_rank_group *g, uint32_t least,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	const struct acc_replica_seen *out;
	uint32_t joined = 0;
	int rc = of_data(t, g, least == FEW_BUFFERS, peer, &out, e);
	if (rc == 0 && out != NULL)
		rc = all_same(t, g, peer, &joined, e);
	return rc < 0 || joined < least
		       ? rc
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "is made of the same data on all ranks, whose weights are the same, too, and so is"
					 " each of the gradients that they join, %u: they do the same work",
					 joined),
				 1, 0, e);
}

/* --- the data of two of several --- */

/* Has the rank, of all that nobody made, the same as the first of the peers, and something that is not one number? */
static int
same_as(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call **peer,
	uint32_t a, uint32_t b, const struct acc_replica_seen **found, struct acc_err *e)
{
	*found = NULL;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!is_first(t, g, c) || c->k->talks || !acc_replicas_peers(t, g, c, peer))
			continue;
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *x = &t->seen[peer[a]->first + j],
						      *y = &t->seen[peer[b]->first + j];
			bool flat = true;
			if (!x->data || x->place || acc_seen_maker(t, x) != NULL ||
				acc_seen_stays(t, x))
				continue;
			if (x->mark != y->mark) {
				*found = NULL;
				return 0;
			}
			int rc = acc_replicas_flat(t, x, &flat, e);
			if (rc < 0)
				return rc;
			if (!flat && *found == NULL)
				*found = acc_seen_output(t, peer[b]);
		}
	}
	return 0;
}

/* Of each rank a number, the same where what nobody made is the same in the first step; 0: there is none. */
static void
digests(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **peer, uint64_t *digest)
{
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!is_first(t, g, c) || c->k->talks || !acc_replicas_peers(t, g, c, peer))
			continue;
		for (uint32_t k = 0; k < g->n; k++)
			for (uint32_t j = 0; j < c->n; j++) {
				const struct acc_replica_seen *s = &t->seen[peer[k]->first + j];
				const uint64_t both[] = {digest[k], s->mark};
				if (s->data && !s->place && acc_seen_maker(t, s) == NULL &&
					!acc_seen_stays(t, s))
					digest[k] = acc_hash(both, sizeof both);
			}
	}
}

/* Two ranks with the same data, or all are compared that might have; *pairs: 0, 1, or more. */
static int
find_pairs(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **peer, const uint64_t *digest, uint32_t *pairs, uint32_t *a,
	const struct acc_replica_seen **found, struct acc_err *e)
{
	struct acc_ids first = {0}, alike = {0};
	int rc = 0;
	for (uint32_t j = 0; j < g->n && rc == 0 && *pairs < 2; j++) {
		const uint32_t i = acc_ids_get(&first, digest[j]),
			       known = acc_ids_get(&alike, digest[j]);
		const struct acc_replica_seen *x = NULL;
		if (digest[j] == 0 || known != ACC_NOID) {
			*pairs += digest[j] != 0 && known == 1;
			continue;
		}
		rc = i == ACC_NOID ? acc_ids_put(&first, digest[j], j, false, e)
				   : same_as(t, g, peer, i, j, &x, e);
		if (rc == 0 && i != ACC_NOID)
			rc = acc_ids_put(&alike, digest[j], x != NULL, false, e);
		*a = x != NULL && *pairs == 0 ? i : *a;
		*found = x != NULL && *pairs == 0 ? x : *found;
		*pairs += x != NULL;
	}
	acc_ids_release(&first);
	acc_ids_release(&alike);
	return rc;
}

/* Of three ranks and more, whose data nobody else is given, two have the same, and another has other data. */
static int
repeated_data(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	const struct acc_replica_seen *found = NULL;
	uint32_t pairs = 0, a = 0;
	uint64_t *digest = g->n < 3 ? NULL : calloc(g->n, sizeof *digest);
	if (digest == NULL)
		return g->n < 3 ? 0 : acc_nomem(e);
	digests(t, g, peer, digest);
	int rc = find_pairs(t, g, peer, digest, &pairs, &a, &found, e);
	free(digest);
	/* Pairs of ranks that share data have it by design. */
	return rc < 0 || pairs != 1
		       ? rc
		       : acc_replicas_blame(t, g, found->line,
				 SAY(t,
					 "is made of the same data as on rank %lld, in the first step, although all other"
					 " ranks have data of their own",
					 (long long)g->rank[a]),
				 1, 0, e);
}

int
acc_rule_twins(struct acc_replicas *t, const struct acc_rank_group *g, uint64_t joined,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = 0;
	if (g->weights_differ || g->parts || t->nstep == 0 || (joined > 0 && joined < FEW_JOINED))
		return 0;
	/* Ranks that keep parts of weights gather them first: what op calls take is no rank's own. */
	if (joined == 0)
		return same_data(t, g, FEW_BUFFERS, room, e);
	bool apart = acc_seen_own_data(t, g);
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!is_first(t, g, c) || c->k->backward || c->k->talks ||
			!acc_replicas_peers(t, g, c, room))
			continue;
		for (uint32_t j = 0; j < c->n && rc == 0; j++)
			rc = unlike_constant(t, g, room, j, apart, e);
	}
	if (rc == 0 && apart && t->ngroup == 1)
		rc = repeated_data(t, g, room, e);
	return rc < 0 ? rc : same_data(t, g, 1, room, e);
}
