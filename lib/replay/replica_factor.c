/* By what the gradients of weights are scaled on their way to the optimizer: all by one number, however many ranks
 * join them, for one loss was scaled. */
#include "replay/limits.h"
#include "acc/say.h"
#include "replay/replica.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_HOPS = 8 };

struct way {
	double factor;
	size_t line; /* what scaled it last, else joined it, else made it */
};

struct ways {
	struct acc_replicas *t;
	int64_t rank;
	struct way *way;
	size_t n, cap;
};

/* The group that a call is among; NULL: it was not recorded, or has ranks that were not. */
static const struct acc_rank_group *
group_of(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (size_t i = 0; i < t->ngroup; i++)
		if (acc_seen_among(t, c, &t->group[i]))
			return &t->group[i];
	return NULL;
}

/* The same on all ranks of the group, what the call is given: their sum is n times it. 1; 0: not known; < 0. */
static int
same_operand(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_replica_seen *in, bool *same, struct acc_err *e)
{
	const struct acc_seen_call **peer = malloc(g->n * sizeof *peer);
	int rc = peer == NULL ? acc_nomem(e) : 0;
	bool all = rc == 0 && acc_replicas_peers(t, g, c, peer);
	if (all)
		rc = acc_replicas_same(t, g, peer, (uint32_t)(in - t->seen) - c->first, same, e);
	free(peer);
	return rc < 0 ? rc : all;
}

/* The first call after it that joins, scales or moves it. */
static uint32_t
next_call(const struct acc_replicas *t, const struct acc_replica_seen *x)
{
	const struct acc_ids *by[] = {&t->given, &t->scaled, &t->taken};
	uint32_t next = ACC_NOID;
	for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
		uint32_t call = acc_ids_get(by[i], acc_seen_id(t, x));
		if (call != ACC_NOID && call > x->call && call < next)
			next = call;
	}
	return next;
}

/* What a reduction makes of its scale. 1; 0: it is not known; < 0. */
static int
reduced(struct acc_replicas *t, const struct acc_seen_call *c, const struct acc_replica_seen *x,
	double *factor, struct acc_err *e)
{
	const struct acc_rank_group *g = c->picks ? NULL : group_of(t, c);
	const struct acc_replica_seen *in = NULL;
	bool same = false;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		in = !t->seen[i].out && t->seen[i].mark == x->mark ? &t->seen[i] : in;
	int rc = g == NULL || in == NULL ? 0 : same_operand(t, g, c, in, &same, e);
	if (rc != 1)
		return rc;
	*factor *= (same ? g->n : 1) * (c->average ? 1.0 / g->n : 1);
	return 1;
}

/* Follows a gradient. 1; 0: not all is known; < 0. */
static int
follow(struct ways *w, const struct acc_replica_seen *x, struct way *out, struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	bool scaled = false;
	*out = (struct way){1, x->line};
	for (unsigned i = 0; i < MOST_HOPS; i++) {
		const uint64_t n = x->n;
		uint32_t next = x->mark == 0 ? ACC_NOID : next_call(t, x);
		const struct acc_seen_call *c = next == ACC_NOID ? NULL : &t->call[next];
		double v = 1;
		if (c == NULL)
			return x->mark != 0;
		bool mul = !c->k->talks && c->info != NULL && c->info->cls == ACC_OP_MUL;
		int rc = c->k->talks ? reduced(t, c, x, &out->factor, e)
			 : mul       ? acc_seen_factor(t, c, &v, e)
				     : 1;
		x = rc == 1 ? acc_seen_real(t, c, true) : x;
		if (rc != 1 || x == NULL)
			return rc < 0 ? rc : 0;
		out->factor *= v;
		if (mul || (c->k->talks && !scaled))
			out->line = x->line;
		scaled |= mul;
		if (!c->k->talks && x->n < n) /* what was joined is cut again */
			return 1;
	}
	return 0;
}

/* Can its gradient be scaled by what no record shows? Not where a reduction that is recorded joins it, nor where it
 * needs none: for a part of a weight, or the same on ranks that are given the same data. */
static int
is_told(struct ways *w, const struct acc_seen_call *const *peer, const struct acc_rank_group *g,
	uint32_t j, const struct acc_replica_seen *dw, bool *is, struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	const struct acc_seen_call *back = &t->call[dw->call];
	bool part = !acc_replicas_marked(t, g, peer, j);
	*is = acc_seen_given(t, dw) || part;
	return *is || g->data_differ ? 0 : (same_operand(t, g, back, dw, is, e) < 0 ? e->code : 0);
}

/* A leaf at a place that is no operator's weights', as experts' are in products, is one if it is much the same in the
 * next step: what a rank receives, or computes again, is not. */
static int
is_weight(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is, struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	const struct acc_seen_call *c = t->nstep < 2
						? NULL
						: acc_replicas_call(t, t->step[1], k->rank, k->key);
	*is = s->weight;
	for (uint32_t j = c == NULL ? 0 : c->first;
		c != NULL && s->leaf && !*is && j < c->first + c->n; j++)
		if (t->seen[j].leaf && t->seen[j].pos == s->pos)
			return acc_replicas_persists(t, s, &t->seen[j], is, e);
	return 0;
}

static int
collect(struct ways *w, const struct acc_rank_group *g, const struct acc_seen_call **peer,
	struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	int rc = 0;
	for (size_t i = 0; i < t->f->ncall && rc >= 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->rank != w->rank || c->k->step != t->step[0] || c->k->backward ||
			c->k->talks || !acc_replicas_peers(t, g, c, peer))
			continue;
		for (uint32_t j = 0; j < c->n && rc >= 0; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j], *dw;
			struct way way;
			bool told = false, flat = true, is = false;
			if (!s->leaf || acc_ids_get(&t->shared, acc_seen_id(t, s)) != ACC_NOID ||
				(dw = acc_seen_gradient(t, c->k->step, c->k->rank, s)) == NULL)
				continue;
			rc = is_weight(t, s, &is, e);
			if (rc == 0 && is)
				rc = acc_replicas_flat(t, dw, &flat, e);
			if (rc == 0 && !flat)
				rc = is_told(w, peer, g, j, dw, &told, e);
			if (rc == 0 && told)
				rc = follow(w, dw, &way, e);
			if (rc != 1 || !told)
				continue;
			void *p = acc_grow(w->way, &w->cap, w->n + 1, sizeof way, e);
			rc = p == NULL ? ACC_ENOMEM : 1;
			w->way = p == NULL ? w->way : p;
			if (rc == 1)
				w->way[w->n++] = way;
		}
	}
	return rc < 0 ? rc : 0;
}

static bool
equal(double a, double b)
{
	return fabs(a / b - 1) < 1e-6;
}

static size_t
as_many(const struct ways *w, double factor)
{
	size_t n = 0;
	for (size_t i = 0; i < w->n; i++)
		n += equal(w->way[i].factor, factor);
	return n;
}

/* Is one the other, as often as a group has ranks? */
static bool
by_ranks(const struct acc_replicas *t, double ratio)
{
	bool is = false;
	for (size_t i = 0; i < t->ngroup && !is; i++)
		is = equal(ratio, t->group[i].n) || equal(ratio, 1.0 / t->group[i].n);
	return is;
}

int
acc_rule_factor(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct ways w = {.t = t, .rank = g->rank[0]};
	const struct way *odd = NULL;
	size_t most = 0, best = 0;
	int rc = t->nstep == 0 || g->n != t->f->nrank ? 0 : collect(&w, g, room, e);
	for (size_t i = 0; i < w.n; i++) {
		size_t n = as_many(&w, w.way[i].factor);
		best = n > most ? i : best;
		most = n > most ? n : most;
	}
	for (size_t i = w.n; i-- > 0;)
		odd = equal(w.way[i].factor, w.way[best].factor) ? odd : &w.way[i];
	bool two = odd != NULL && most >= LIMIT_REPLICA_WEIGHTS && w.n - most < most &&
		   most + as_many(&w, odd->factor) == w.n;
	double ratio = two ? odd->factor / w.way[best].factor : 1;
	if (rc == 0 && two && by_ranks(t, ratio))
		rc = acc_replicas_blame(t, g, odd->line,
			acc_say(&t->f->mem,
				"is the gradient of a weight, or what is made of it, and ends as %.6g times what"
				" the ranks make together; those of %llu other weights end as %.6g times that: it"
				" is %.6g times too %s",
				odd->factor, (unsigned long long)most, w.way[best].factor,
				ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? "large" : "small"),
			1, 0, e);
	free(w.way);
	return rc;
}
