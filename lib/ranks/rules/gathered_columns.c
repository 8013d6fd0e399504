/* Products of what is whole by parts of a weight are parts of the columns, for all rows: gathered, they stand beside each
 * other, not one below the other. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* The last axis of a tensor; 0: it has none. < 0: failure. */
static int
columns_of(struct acc_replicas *t, const struct acc_replica_seen *s, uint64_t *n, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, s->line, &r, e);
	const struct acc_val *v = rc < 0 ? NULL : acc_get(r, "", "shape");
	*n = v != NULL && v->type == ACC_V_INTS && v->n > 0 && v->ints[v->n - 1] > 0
		     ? (uint64_t)v->ints[v->n - 1]
		     : 0;
	return rc;
}

/* The part that is gathered, which a product by a part of a weight made of what is whole; NULL: it is none. */
static int
part_of(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, const struct acc_replica_seen **part, struct acc_err *e)
{
	const struct acc_seen_call *by = NULL;
	bool whole = false, apart = false, flat = true;
	*part = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i],
					      *made = s->out ? NULL : acc_seen_maker(t, s);
		if (made != NULL && (*part == NULL || s->n < (*part)->n)) {
			*part = s;
			by = &t->call[made->call];
		}
	}
	int rc = by == NULL || by->k->talks || by->k->backward
			 ? 0
			 : acc_replicas_of_whole(t, g, by, peer, &whole, e);
	if (rc == 0 && whole && acc_replicas_peers(t, g, by, peer))
		for (uint32_t j = 0; j < by->n; j++)
			apart |= t->seen[by->first + j].weight &&
				 !acc_replicas_marked(t, g, peer, j);
	if (rc == 0 && apart)
		rc = acc_replicas_flat(t, *part, &flat, e);
	*part = flat ? NULL : *part;
	return rc;
}

/* Does it join what was gathered? */
static bool
joins(const struct acc_replicas *t, const struct acc_seen_call *o, const struct acc_seen_call *c)
{
	unsigned parts = 0;
	for (uint32_t i = o->first; i < o->first + o->n && !o->k->talks; i++)
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			if (!t->seen[i].out && t->seen[j].out &&
				t->seen[i].mark == t->seen[j].mark && t->seen[i].mark != 0) {
				parts++;
				break;
			}
	return parts > 1;
}

/* Has it the same elements in the same order? Statistics do not tell. */
static int
in_order(struct acc_replicas *t, const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	bool *is, struct acc_err *e)
{
	struct acc_distance d = {0};
	*is = a->mark == b->mark;
	if (!*is || (a->exact && b->exact))
		return 0;
	int rc = acc_replicas_persists(t, a, b, is, e); /* by elements, if there are any */
	if (rc == 0 && *is)
		rc = acc_replicas_distance(t, a, b, &d, e);
	*is &= d.known && d.d == 0;
	return rc;
}

/* What holds all parts one behind the other, and has rows of all of them: each has several. */
static int
below(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_replica_seen *part, const struct acc_replica_seen **found,
	struct acc_err *e)
{
	const struct acc_seen_call *end = t->call + t->f->ncall;
	const struct acc_replica_seen *whole = NULL;
	uint64_t columns = 0, n = 0;
	int rc = columns_of(t, part, &columns, e);
	*found = NULL;
	if (rc < 0 || columns == 0 || part->n / columns < 2)
		return rc;
	for (const struct acc_seen_call *o = c; o < end && acc_seen_beside(o, c) && rc == 0; o++) {
		const bool joined = whole == NULL && (o == c || joins(t, o, c));
		for (uint32_t i = o->first; i < o->first + o->n && rc == 0 && *found == NULL; i++) {
			const struct acc_replica_seen *s = &t->seen[i];
			bool same = false;
			if (s->n != part->n * g->n || s->mark == 0)
				continue;
			rc = columns_of(t, s, &n, e);
			if (joined && s->out && n == columns)
				whole = s;
			if (rc == 0 && whole != NULL && n == columns * g->n)
				rc = in_order(t, whole, s, &same, e);
			*found = same ? s : NULL;
		}
	}
	return rc;
}

int
acc_rule_columns(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]);
		i < t->f->ncall && rc == 0 && t->nstep > 0 && !t->scattered; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *part = NULL, *found = NULL;
		if (c->k->step != t->step[0] || !c->gathers || c->hands_round ||
			!acc_seen_among(t, c, g))
			continue;
		rc = part_of(t, g, c, room, &part, e);
		if (rc == 0 && part != NULL)
			rc = below(t, g, c, part, &found, e);
		if (rc == 0 && found != NULL)
			rc = acc_replicas_blame(t, g, found->line,
				SAY(t,
					"has the parts that %s gathered one behind the other, with rows of all of them: they"
					" are parts of the columns of one product, and belong beside each other",
					acc_replicas_name(t, c->k->line, e)),
				1, 0, e);
	}
	return rc;
}
