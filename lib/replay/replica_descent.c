/* Where what an op call is given comes from: ranks that do the same op calls take it, in all calls of a line of code,
 * from the same lines, each in its own way. Where all but one of them do so, that one took something else. */
#include "acc/say.h"
#include "replay/replica.h"

#include <stdlib.h>

enum { MOST_LIKES = 8, FEW_ELEMENTS = 4 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct descent {
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_seen_call **peer, **other;
	const struct acc_seen_like *like;
	unsigned most; /* of the worst: so many likes it is unlike, */
	bool apart;    /* and what it took is not what the other ranks took */
	const struct acc_replica_seen *worst, *with;
};

/* --- what an operand comes from --- */

/* Is a call of one line on all ranks? Who sends first, and who receives, may be told by an if. */
static bool
is_of_all(const struct descent *d, const struct acc_seen_call *c)
{
	const uint64_t line = acc_seen_line(d->t, c);
	bool same = line != 0 && !c->k->talks;
	for (uint32_t r = 0; r < d->g->n && same; r++) {
		const struct acc_seen_call *o = acc_replicas_call(d->t, c->k->step, d->g->rank[r],
			c->k->key);
		same = o != NULL && acc_seen_line(d->t, o) == line;
	}
	return same;
}

/* Its number among what its call puts out. */
static uint32_t
number(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	uint32_t n = 0;
	for (const struct acc_replica_seen *o = &t->seen[t->call[s->call].first]; o < s; o++)
		n += o->out;
	return n;
}

/* The last that put this out before, and, with again, what put out the same before that; NULL: nobody. */
static const struct acc_replica_seen *
put_out(const struct acc_replicas *t, const struct acc_replica_seen *s,
	const struct acc_replica_seen *after)
{
	uint32_t i = after == NULL ? acc_ids_get(&t->latest, acc_seen_id(t, s)) : after->again;
	while (i != ACC_NOID && t->seen[i].call >= s->call)
		i = t->seen[i].again;
	return i == ACC_NOID ? NULL : &t->seen[i];
}

/* Put out by one line, in the same place of it? */
static bool
is_like(const struct descent *d, const struct acc_replica_seen *x, const struct acc_replica_seen *y)
{
	const struct acc_replicas *t = d->t;
	const struct acc_seen_call *a = &t->call[x->call], *b = &t->call[y->call];
	if (a->k->op != b->k->op || a->k->backward != b->k->backward ||
		number(t, x) != number(t, y))
		return false;
	return acc_seen_line(t, a) == acc_seen_line(t, b) || !is_of_all(d, a) || !is_of_all(d, b);
}

/* Did its op call put out the same in several places? As slices of what occurs twice. */
static bool
is_twice(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	return s != NULL && s->again != ACC_NOID && t->seen[s->again].call == s->call;
}

enum origin { ORIGIN_ONE, ORIGIN_OTHER, ORIGIN_UNKNOWN };

/* Do both come from one line, and from the same place of it? What an op call left as it was, such as a mask of nothing,
 * or moved, where statistics alone are known, is of several: then it is not known. */
static enum origin
compare_origins(const struct descent *d, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b)
{
	const struct acc_replicas *t = d->t;
	const struct acc_replica_seen *x = put_out(t, a, NULL), *y = put_out(t, b, NULL);
	if (is_twice(t, x) || is_twice(t, y))
		return ORIGIN_UNKNOWN;
	if (x != NULL && y != NULL && is_like(d, x, y))
		return ORIGIN_ONE;
	for (; x != NULL; x = put_out(t, a, x))
		for (y = put_out(t, b, NULL); y != NULL; y = put_out(t, b, y))
			if (is_like(d, x, y))
				return ORIGIN_UNKNOWN;
	return ORIGIN_OTHER;
}

/* --- the votes --- */

/* Do all ranks do the same op calls in the first step? Stages of a pipeline do not. */
static bool
do_the_same(const struct acc_replicas *t, const struct acc_rank_group *g)
{
	size_t n[2] = {0, 0};
	for (size_t i = 0; i < t->f->ncall; i++) {
		const struct acc_fleet_call *k = t->call[i].k;
		if (k->step != t->step[0])
			continue;
		for (uint32_t r = 0; r < g->n; r++) {
			n[r > 0] += k->rank == g->rank[r];
			if (k->rank == g->rank[0] && !t->call[i].k->talks &&
				acc_replicas_call(t, k->step, g->rank[r], k->key) == NULL)
				return false;
		}
	}
	return n[0] > 0 && n[1] == n[0] * (g->n - 1);
}

/* Is it known on all ranks of what op call these are? Of a sum of gradients, which no record is of, it is not; zeros,
 * and other numbers that are all the same, are found where they are others. 1, 0, < 0. */
static int
is_told(struct descent *d, uint32_t j, struct acc_err *e)
{
	struct acc_replicas *t = d->t;
	for (uint32_t r = 0; r < 2 * d->g->n; r++) {
		const struct acc_seen_call *c = r < d->g->n ? d->peer[r] : d->other[r - d->g->n];
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		bool flat = true;
		if (s->out || !s->real || s->mark == 0 || s->n < FEW_ELEMENTS ||
			put_out(t, s, NULL) == NULL)
			return 0;
		int rc = acc_replicas_flat(t, s, &flat, e);
		if (rc < 0 || flat)
			return rc;
	}
	return 1;
}

struct odd { /* the only rank on which two calls of a line are given what is of other origin */
	uint32_t rank, n; /* n: 1, or there is none */
	uint32_t j;
};

static int
compare(struct descent *d, struct odd *out, struct acc_err *e)
{
	const struct acc_replicas *t = d->t;
	*out = (struct odd){.n = 0};
	for (uint32_t r = 0; r < d->g->n; r++)
		for (uint32_t j = 0; j < d->peer[r]->n; j++) {
			const struct acc_replica_seen *a = &t->seen[d->peer[r]->first + j],
						      *b = &t->seen[d->other[r]->first + j];
			const enum origin is = a->out || a->n < FEW_ELEMENTS
						       ? ORIGIN_ONE
						       : compare_origins(d, a, b);
			int rc = is == ORIGIN_ONE ? 0 : is_told(d, j, e);
			if (rc < 0)
				return rc;
			if (rc == 0)
				continue;
			*out = (struct odd){r, out->n + (is == ORIGIN_UNKNOWN ? d->g->n : 1), j};
			break;
		}
	return 0;
}

/* An op call beside others of its line, its likes. */
static int
judge_call(struct descent *d, size_t at, size_t first, size_t end, struct acc_err *e)
{
	struct acc_replicas *t = d->t;
	unsigned likes = 0;
	struct odd odd = {.n = 0}, o;
	const struct acc_seen_call *with = NULL;
	for (size_t i = first; i < end; i++) {
		const struct acc_seen_call *c = &t->call[d->like[i].call];
		if (i == at || !acc_replicas_peers(t, d->g, c, d->other))
			continue;
		int rc = compare(d, &o, e);
		if (rc < 0)
			return rc;
		if (o.n > 1) /* by design: the first of a loop, the next ones */
			continue;
		if (o.n == 0 || (odd.n > 0 && (o.rank != odd.rank || o.j != odd.j)))
			return 0;
		with = odd.n == 0 ? d->other[o.rank] : with;
		odd = o;
		likes++;
	}
	if (likes == 0)
		return 0;
	const struct acc_replica_seen *s = &t->seen[d->peer[odd.rank]->first + odd.j];
	const bool apart = compare_origins(d, s, &t->seen[d->peer[odd.rank == 0]->first + odd.j]) ==
			   ORIGIN_OTHER;
	if (likes < d->most || (likes == d->most && d->apart >= apart))
		return 0;
	d->most = likes;
	d->apart = apart;
	d->worst = s;
	d->with = &t->seen[with->first + odd.j];
	return 0;
}

static int
judge_line(struct descent *d, size_t from, size_t to, struct acc_err *e)
{
	int rc = 0;
	for (size_t at = from; at < to && rc == 0; at++) {
		const size_t first = at - from > MOST_LIKES / 2 ? at - MOST_LIKES / 2 : from,
			     end = to - first > MOST_LIKES ? first + MOST_LIKES : to;
		const struct acc_seen_call *c = &d->t->call[d->like[at].call];
		if (acc_replicas_peers(d->t, d->g, c, d->peer))
			rc = judge_call(d, at, first, end, e);
	}
	return rc;
}

static const char *
origin(struct acc_replicas *t, const struct acc_replica_seen *s, struct acc_err *e)
{
	const struct acc_replica_seen *made = acc_seen_maker(t, s);
	const char *name = acc_replicas_name(t, made->line, e);
	const uint32_t n = number(t, made);
	return n == 0 ? name : SAY(t, "output %u of %s", n, name);
}

static int
say(struct descent *d, struct acc_err *e)
{
	struct acc_replicas *t = d->t;
	const char *a = origin(t, d->worst, e), *b = origin(t, d->with, e),
		   *c = acc_replicas_name(t, d->with->line, e);
	if (a == NULL || b == NULL)
		return acc_nomem(e);
	return acc_replicas_blame(t, d->g, d->worst->line,
		SAY(t,
			"comes from %s here; at %s, of the same line, it comes from %s; on all other ranks"
			" both calls are given what one line made: is it the right one?",
			a, c, b),
		1, 0, e);
}

int
acc_rule_descent(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct descent d = {.t = t, .g = g, .peer = room};
	if (t->nstep == 0 || t->scattered || !do_the_same(t, g))
		return 0;
	d.other = malloc(g->n * sizeof *d.other);
	struct acc_seen_likes all = {.n = 0};
	int rc = d.other == NULL ? acc_nomem(e) : acc_seen_likes_of(t, g->rank[0], &all, e);
	d.like = all.like;
	for (size_t i = 0; i < all.n && rc == 0; i = acc_seen_likes_end(&all, i))
		rc = judge_line(&d, i, acc_seen_likes_end(&all, i), e);
	if (rc == 0 && d.worst != NULL)
		rc = say(&d, e);
	free(d.other);
	free(all.like);
	return rc;
}
