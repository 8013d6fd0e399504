/* What a product is given beside what others of its line are: what came from the ranks of one group there does not come
 * from those of another here. */
#include "acc/say.h"
#include "ranks/asked.h"
#include "ranks/back.h"

#include <stdlib.h>

enum { MOST_LIKES = 8, MOST_OPERANDS = 8 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* The communication that it comes from, if that is of one group; NULL: it is not. */
static const struct acc_seen_call *
came_by(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	struct acc_back b;
	if (s->out || !s->real || s->n < 2 || s->leaf)
		return NULL;
	acc_go_back(&b, t, s);
	for (unsigned i = 0; i < b.ntalk; i++)
		if (b.talk[i]->members == 0 || b.talk[i]->members != b.talk[0]->members)
			return NULL;
	return b.lost || b.ntalk == 0 ? NULL : b.talk[0];
}

/* A product of what ranks exchanged: its factors belong to the same data. What is added up may come by several
 * groups, one after another. */
static bool
is_product(const struct acc_seen_call *c)
{
	return !c->k->talks && !c->k->backward && c->info != NULL &&
	       (c->info->cls == ACC_OP_CONTRACT || c->info->cls == ACC_OP_ATTEND);
}

/* All that c is given, and that its like is, came by the ranks of one group, but one thing: by those of another. */
static const struct acc_seen_call *
other_group(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_seen_call *like, const struct acc_seen_call **beside)
{
	const struct acc_seen_call *odd = NULL, *usual = NULL, *was = NULL;
	for (uint32_t j = 0; j < c->n && j < MOST_OPERANDS; j++) {
		const struct acc_seen_call *x = came_by(t, &t->seen[c->first + j]),
					   *y = came_by(t, &t->seen[like->first + j]);
		if (x == NULL || y == NULL)
			continue;
		if (x->members == y->members) {
			if (usual != NULL && usual->members != x->members)
				return NULL;
			usual = x;
			continue;
		}
		if (odd != NULL || x->line != y->line || x->line == 0)
			return NULL;
		odd = x;
		was = y;
	}
	*beside = usual;
	return usual == NULL || odd == NULL || was->members != usual->members ? NULL : odd;
}

static const char *
who(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (size_t i = 0; i < t->ngroup; i++)
		if (t->group[i].members == c->members)
			return t->group[i].who;
	return "?";
}

static int
say_group(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call *like, const struct acc_seen_call *odd,
	const struct acc_seen_call *beside, struct acc_err *e)
{
	const struct acc_replica_seen *out = acc_seen_real(t, odd, true);
	return out == NULL
		       ? 0
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "comes from ranks %s; what %s is given beside it comes from ranks %s, by %s, as"
					 " all does that %s, of the same line, is given: is it the right group?",
					 who(t, odd), acc_replicas_name(t, c->k->line, e),
					 who(t, beside), acc_replicas_name(t, beside->k->line, e),
					 acc_replicas_name(t, like->k->line, e)),
				 1, 0, e);
}

int
acc_rule_groups(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	struct acc_seen_likes all = {.n = 0};
	const struct acc_seen_call *first = NULL, *odd, *beside;
	int rc = t->nstep == 0 || t->ngroup < 2 || g->n != t->f->nrank
			 ? 0
			 : acc_seen_likes_of(t, g->rank[0], &all, e);
	uint32_t at = ACC_NOID;
	for (size_t i = 0, from = 0; i < all.n && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[all.like[i].call];
		from = all.like[i].form == all.like[from].form ? from : i;
		for (size_t k = i; k-- > from && i - k <= MOST_LIKES && is_product(c);) {
			const struct acc_seen_call *o = &t->call[all.like[k].call];
			for (int way = 0; way < 2; way++) {
				odd = other_group(t, way ? o : c, way ? c : o, &beside);
				if (odd == NULL || (uint32_t)(odd - t->call) >= at)
					continue;
				at = (uint32_t)(odd - t->call);
				first = way ? o : c;
				rc = say_group(t, g, first, way ? c : o, odd, beside, e);
			}
		}
	}
	free(all.like);
	return rc;
}
