/* By what a gradient is scaled on its way to the optimizer: by reductions, numbers, and as often as ranks have it alike. */
#include "ranks/scaling.h"
#include "replay/limits.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_HOPS = 8 };

/* The group that a call is among; NULL: it was not recorded, or has ranks that were not. */
static const struct acc_rank_group *
group_of(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (size_t i = 0; i < t->ngroup; i++)
		if (acc_seen_among(t, c, &t->group[i]))
			return &t->group[i];
	return NULL;
}

/* The first call after it that joins, scales or moves it. */
static uint32_t
next_call(const struct acc_replicas *t, const struct acc_replica_seen *x)
{
	const struct acc_ids *by[] = {&t->given, &t->scaled, &t->taken};
	uint32_t next = ACC_NOID;
	for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
		uint32_t call = acc_ids_get(by[i], acc_seen_id(t, x));
		/* A hook is given a gradient before what makes several of them has made the last. */
		const bool hooked = call != ACC_NOID && x->out && t->call[call].amid &&
				    t->call[call].k->talks && t->call[x->call].k->backward;
		if (call != ACC_NOID && (call > x->call || hooked) && call < next)
			next = call;
	}
	return next;
}

/* What a reduction makes of its scale. 1; 0: it is not known; < 0. */
static int
reduced(struct acc_replicas *t, const struct acc_seen_call *c, const struct acc_replica_seen *x,
	double *factor, uint32_t *ranks, struct acc_err *e)
{
	const struct acc_rank_group *g = c->picks ? NULL : group_of(t, c);
	const struct acc_replica_seen *in = NULL;
	uint32_t same = 0;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		in = !t->seen[i].out && t->seen[i].mark == x->mark ? &t->seen[i] : in;
	int rc = g == NULL || in == NULL ? 0 : acc_seen_copies(t, g, in, &same, e);
	if (rc != 1)
		return rc;
	*factor *= same * (c->average ? 1.0 / g->n : 1);
	*ranks = g->n;
	return 1;
}

/* Where a tensor stands among what a call joins. */
static uint32_t
place(const struct acc_replicas *t, const struct acc_seen_call *join, uint64_t mark)
{
	uint32_t k = 0;
	for (uint32_t i = join->first; i < join->first + join->n; i++) {
		if (!t->seen[i].out && t->seen[i].mark == mark)
			return k;
		k += !t->seen[i].out;
	}
	return k;
}

int
acc_way_follow(struct acc_ways *w, const struct acc_replica_seen *x, struct acc_way *out,
	struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	const struct acc_seen_call *join = NULL; /* with others, at this place */
	uint32_t at = 0;
	bool scaled = false;
	*out = (struct acc_way){.factor = 1,
		.before = 1,
		.after = 1,
		.line = x->line,
		.by = x->line};
	for (unsigned i = 0; i < MOST_HOPS; i++) {
		const struct acc_replica_seen *was = x;
		uint32_t next = x->mark == 0 ? ACC_NOID : next_call(t, x);
		const struct acc_seen_call *c = next == ACC_NOID ? NULL : &t->call[next];
		double v = 1;
		const double before = out->factor;
		if (c == NULL || c->elsewhere)
			return c == NULL && x->mark != 0;
		bool mul = !c->k->talks && c->info != NULL && c->info->cls == ACC_OP_MUL;
		int rc = c->k->talks ? reduced(t, c, x, &out->factor, &out->ranks, e)
			 : mul       ? acc_seen_factor(t, c, &v, e)
				     : 1;
		x = rc == 1 ? acc_seen_real(t, c, true) : x;
		if (rc != 1 || x == NULL)
			return rc < 0 ? rc : 0;
		out->factor *= acc_divides(v) ? v : 1;
		out->joined |= c->k->talks;
		out->after = c->k->talks ? 1 : out->after * v;
		out->before *= out->joined ? 1 : v;
		if (mul || (c->k->talks && !scaled))
			out->line = x->line;
		if (c->k->talks && out->again == NULL &&
			fabs(out->factor / before) > 1 + LIMIT_RANKS_NORM)
			out->again = c;
		if ((mul && v != 1 && acc_divides(v)) || (c->k->talks && !scaled))
			out->by = x->line;
		scaled |= mul;
		if (!c->k->talks && x->n > was->n) {
			join = join == NULL ? c : NULL;
			at = place(t, c, was->mark);
		} else if (!c->k->talks && x->n < was->n) { /* what was joined is cut again */
			x = join == NULL ? NULL : acc_seen_piece(t, was, join, at);
			if (x == NULL)
				return 1;
			join = NULL;
		}
	}
	return 0;
}

/* Can its gradient be scaled by what no record shows? Not where a reduction that is recorded joins it, nor where it
 * needs none: for a part of a weight, or the same on ranks that are given the same data. */
static int
is_told(struct acc_ways *w, const struct acc_seen_call *const *peer, const struct acc_rank_group *g,
	uint32_t j, const struct acc_replica_seen *dw, bool *is, struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	bool part = !acc_replicas_marked(t, g, peer, j);
	uint32_t n = 0;
	*is = acc_seen_given(t, dw) || part;
	if (*is || g->data_differ)
		return 0;
	int rc = acc_seen_copies(t, g, dw, &n, e);
	*is = n == g->n;
	return rc < 0 ? rc : 0;
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
keep(struct acc_ways *w, const struct acc_way *way, struct acc_err *e)
{
	if (!ACC_ROOM(w->way, w->cap, w->n + 1, e))
		return ACC_ENOMEM;
	w->way[w->n++] = *way;
	return 0;
}

/* Weights of which op calls of several micro-batches make gradients, that are added up unseen. */
static int
collect_sums(struct acc_ways *w, const struct acc_rank_group *g, struct acc_err *e)
{
	struct acc_accumulated *a;
	size_t n;
	int rc = acc_seen_accumulated(w->t, g, w->rank, &a, &n, e);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		const struct acc_seen_call *c = &w->t->call[a[i].w->call];
		struct acc_replica_seen sum = a[i].sum;
		struct acc_way way;
		bool flat = true;
		rc = acc_replicas_flat(w->t, &a[i].sum, &flat, e);
		if (rc < 0 || flat)
			continue;
		sum.call = sum.out ? sum.call : a[i].last;
		rc = acc_way_follow(w, &sum, &way, e);
		if (rc != 1)
			continue;
		way.call = c;
		rc = keep(w, &way, e);
	}
	free(a);
	return rc < 0 ? rc : 0;
}

int
acc_ways_collect(struct acc_ways *w, const struct acc_rank_group *g,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	int rc = 0;
	for (size_t i = acc_calls_of(t, w->rank); i < t->f->ncall && rc >= 0; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || c->k->backward || c->k->talks)
			continue;
		/* Experts are given as many rows as are sent to them. */
		const bool all = acc_replicas_peers(t, g, c, peer);
		for (uint32_t j = 0; j < c->n && rc >= 0; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j], *dw;
			struct acc_way way;
			bool told = false, flat = true, is = false;
			if (!s->leaf || acc_seen_shared(t, s) ||
				(dw = acc_seen_gradient(t, c->k->step, c->k->rank, s)) == NULL)
				continue;
			rc = is_weight(t, s, &is, e);
			if (rc == 0 && is)
				rc = acc_replicas_flat(t, dw, &flat, e);
			told = !all && acc_seen_given(t, dw);
			if (rc == 0 && !flat && all)
				rc = is_told(w, peer, g, j, dw, &told, e);
			if (rc == 0 && told)
				rc = acc_way_follow(w, dw, &way, e);
			if (rc != 1 || !told)
				continue;
			way.call = c;
			rc = keep(w, &way, e);
		}
	}
	return rc < 0 ? rc : collect_sums(w, g, e);
}
