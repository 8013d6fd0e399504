/* What an op call is given, beside what others of its line are given: what went through a reduction there goes through
 * one here, among as many ranks. */
#include "acc/say.h"
#include "ranks/asked.h"
#include "ranks/back.h"

#include <stdlib.h>

enum { MOST_LIKES = 8 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Is what an op call put out another on each rank, and not by its part of a weight? The gradient of that is all of it, and
 * what it makes of what is whole is a part of the columns. */
static int
is_apart(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *out,
	const struct acc_seen_call **room, bool *is, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[out->call];
	const struct acc_replica_seen *w = acc_seen_input(t, out);
	enum acc_alike how = ACC_EQUAL, part = ACC_EQUAL;
	bool columns = false;
	int rc = !acc_replicas_peers(t, g, c, room)
			 ? 0
			 : acc_replicas_alike(t, g, room, (uint32_t)(out - t->seen) - c->first,
				   &how, e);
	if (rc == 0 && how == ACC_APART && !c->k->backward)
		rc = acc_replicas_of_whole(t, g, c, room, &columns, e);
	if (rc == 0 && how == ACC_APART && w != NULL && w->weight) {
		c = &t->call[w->call];
		part = ACC_APART;
		if (acc_replicas_peers(t, g, c, room))
			rc = acc_replicas_alike(t, g, room, (uint32_t)(w - t->seen) - c->first,
				&part, e);
	}
	*is = how == ACC_APART && part != ACC_APART && !columns;
	return rc;
}

/* Does what a call puts out go into a reduction as it is? Then parts of a sum are what it is given. */
static bool
is_part_of_sum(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	const struct acc_replica_seen *out = acc_seen_real(t, c, true);
	const uint32_t by = out == NULL || out->mark == 0
				    ? ACC_NOID
				    : acc_ids_get(&t->given, acc_seen_id(t, out));
	return by != ACC_NOID && by > out->call && acc_seen_among(t, &t->call[by], g);
}

/* Does it come by a reduction among fewer ranks than its like does? Else NULL. */
static const struct acc_seen_call *
by_few(const struct acc_replicas *t, const struct acc_back *now, const struct acc_seen_call *then)
{
	const uint32_t all = (uint32_t)t->f->nrank;
	const struct acc_seen_call *c = now->n == 0 && now->ntalk == 1 ? now->talk[0] : NULL;
	return c != NULL && c->k->op == then->k->op && c->nmember != 0 &&
			       c->nmember < (then->nmember == 0 ? all : then->nmember)
		       ? c
		       : NULL;
}

static int
say_few(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *s,
	const struct acc_seen_call *few, const struct acc_replica_seen *like,
	const struct acc_seen_call *sum, struct acc_err *e)
{
	return acc_replicas_blame(t, g, s->line,
		SAY(t,
			"differs on some ranks: it comes from %s, among %u ranks; at %s, of the same line, "
			"it comes from %s, among %u: is it the right group?",
			acc_replicas_name(t, few->k->line, e), few->nmember,
			acc_replicas_name(t, t->call[like->call].k->line, e),
			acc_replicas_name(t, sum->k->line, e),
			sum->nmember == 0 ? (uint32_t)t->f->nrank : sum->nmember),
		1, 0, e);
}

static int
lost_reduction(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s, const struct acc_replica_seen *like,
	const struct acc_seen_call **room, bool *said, struct acc_err *e)
{
	struct acc_back now, then;
	const struct acc_seen_call *sum = NULL, *made;
	const struct acc_replica_seen *in, *same = NULL;
	acc_go_back(&then, t, like);
	for (unsigned i = 0; i < then.ntalk && sum == NULL; i++)
		if (then.talk[i]->reduces && !then.talk[i]->scatters)
			sum = then.talk[i];
	in = sum == NULL ? NULL : acc_seen_made_for_sum(t, sum);
	if (in == NULL || is_part_of_sum(t, g, &t->call[s->call]))
		return 0;
	made = acc_seen_caller(t, in);
	acc_go_back(&now, t, s);
	const struct acc_seen_call *few = by_few(t, &now, sum);
	if (few != NULL) {
		*said = true;
		return say_few(t, g, s, few, like, sum, e);
	}
	for (unsigned i = 0; i < now.ntalk; i++)
		if (now.talk[i]->reduces)
			return 0;
	/* The same of what it puts out: one gradient is the input's, another one a weight's. */
	for (unsigned i = 0; i < now.n && same == NULL; i++)
		if (now.call[i]->line == made->line && now.by[i]->pos == in->pos &&
			now.call[i]->k->backward == made->k->backward)
			same = now.by[i];
	bool apart = false;
	int rc = same == NULL ? 0 : is_apart(t, g, same, room, &apart, e);
	if (rc < 0 || !apart)
		return rc;
	*said = true;
	return acc_replicas_blame(t, g, s->line,
		SAY(t,
			"differs between the ranks: it is made of what %s put out, as it is; at %s, of the "
			"same line, what %s put out went through %s first: a reduction is missing",
			acc_replicas_name(t, same->line, e),
			acc_replicas_name(t, t->call[like->call].k->line, e),
			acc_replicas_name(t, made->k->line, e),
			acc_replicas_name(t, sum->k->line, e)),
		1, 0, e);
}

/* Is the j-th tensor of a call the same on all ranks, and not one number everywhere? */
static int
is_alike(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	uint32_t j, const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	bool flat = true;
	*is = false;
	if (!acc_replicas_peers(t, g, c, peer) || !acc_replicas_marked(t, g, peer, j))
		return 0;
	if (t->seen[c->first + j].n == 1)
		flat = false;
	int rc = flat ? acc_replicas_flat(t, &t->seen[c->first + j], &flat, e) : 0;
	*is = !flat;
	return rc;
}

/* A number that is each rank's own belongs there where what it scales is, too: is it given beside what is the same on all
 * ranks? */
static int
is_misplaced(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	uint32_t number, const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	int rc = 0;
	*is = t->seen[c->first + number].n != 1;
	for (uint32_t j = 0; j < c->n && rc == 0 && !*is; j++)
		if (j != number && !t->seen[c->first + j].out && t->seen[c->first + j].n > 1)
			rc = is_alike(t, g, c, j, peer, is, e);
	return rc;
}

/* An operand of a call, beside that of others of its line: one that is alike on all ranks, where this one is not. */
static int
judge_operand(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_likes *all, size_t at, size_t from, size_t to, uint32_t j,
	const struct acc_seen_call **room, bool *said, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[all->like[at].call];
	enum acc_alike how = ACC_EQUAL;
	bool is = false;
	int rc = acc_replicas_peers(t, g, c, room) && !acc_replicas_marked(t, g, room, j)
			 ? acc_replicas_alike(t, g, room, j, &how, e)
			 : 0;
	if (rc == 0 && how == ACC_APART)
		rc = is_misplaced(t, g, c, j, room, &is, e);
	how = is ? how : ACC_EQUAL;
	for (size_t i = at > from + MOST_LIKES ? at - MOST_LIKES : from;
		i < to && i <= at + MOST_LIKES && rc == 0 && how == ACC_APART && !*said; i++) {
		const struct acc_seen_call *like = &t->call[all->like[i].call];
		rc = i == at ? 0 : is_alike(t, g, like, j, room, &is, e);
		if (rc == 0 && i != at && is)
			rc = lost_reduction(t, g, &t->seen[c->first + j], &t->seen[like->first + j],
				room, said, e);
	}
	return rc;
}

int
acc_rule_roles(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_seen_likes all = {.n = 0};
	bool said = false;
	int rc = t->nstep == 0 ? 0 : acc_seen_likes_of(t, g->rank[0], &all, e);
	for (size_t i = 0, end; i < all.n && rc == 0; i = end) {
		end = acc_seen_likes_end(&all, i);
		for (size_t at = i; at < end && rc == 0 && end - i > 1; at++) {
			const struct acc_seen_call *c = &t->call[all.like[at].call];
			for (uint32_t j = 0; j < c->n && rc == 0 && !c->k->talks &&
					     !c->k->backward && !c->behind;
				j++) {
				const struct acc_replica_seen *s = &t->seen[c->first + j];
				if (!s->out && s->real && !s->leaf && s->mark != 0)
					rc = judge_operand(t, g, &all, at, i, end, j, room, &said,
						e);
			}
		}
	}
	free(all.like);
	return rc;
}
