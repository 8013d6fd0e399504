/* By what the gradients of weights are scaled on their way to the optimizer: all by one number, however many ranks
 * join them, for one loss was scaled. */
#include "replay/limits.h"
#include "acc/say.h"
#include "replay/replica.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_HOPS = 8 };

static const double NEAR = 1e-3; /* what noise makes of a norm is less */

struct way {
	double factor;
	double before, after; /* by this much before it was joined, if it was, and after that */
	bool joined;
	uint32_t ranks;                    /* that joined it last */
	const struct acc_seen_call *call;  /* that the weight is given to */
	size_t line;                       /* what scaled it last, else joined it, else made it */
	size_t by;                         /* the same of what its factor counts */
	const struct acc_seen_call *again; /* sums up what is the same on several ranks; NULL */
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

/* On how many ranks of the group is what the call is given the same as here? Their sum is as often it. 1; 0: not known;
 * < 0. */
static int
copies(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_replica_seen *in, uint32_t *n, struct acc_err *e)
{
	const struct acc_rank_group two = {.n = 2};
	const struct acc_seen_call **peer = malloc(g->n * sizeof *peer);
	int rc = peer == NULL ? acc_nomem(e) : 0;
	bool all = rc == 0 && acc_replicas_peers(t, g, c, peer);
	*n = 0;
	for (uint32_t i = 0; i < g->n && all && rc == 0; i++) {
		const struct acc_seen_call *const pair[2] = {c, peer[i]};
		bool same = peer[i] == c;
		if (!same)
			rc = acc_replicas_same(t, &two, pair, (uint32_t)(in - t->seen) - c->first,
				&same, e);
		*n += same;
	}
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
	int rc = g == NULL || in == NULL ? 0 : copies(t, g, c, in, &same, e);
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

/* Follows a gradient. 1; 0: not all is known; < 0. */
static int
follow(struct ways *w, const struct acc_replica_seen *x, struct way *out, struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	const struct acc_seen_call *join = NULL; /* with others, at this place */
	uint32_t at = 0;
	bool scaled = false;
	*out = (struct way){.factor = 1, .before = 1, .after = 1, .line = x->line, .by = x->line};
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
		if (c->k->talks && out->again == NULL && fabs(out->factor / before) > 1 + NEAR)
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
is_told(struct ways *w, const struct acc_seen_call *const *peer, const struct acc_rank_group *g,
	uint32_t j, const struct acc_replica_seen *dw, bool *is, struct acc_err *e)
{
	struct acc_replicas *t = w->t;
	const struct acc_seen_call *back = &t->call[dw->call];
	bool part = !acc_replicas_marked(t, g, peer, j);
	uint32_t n = 0;
	*is = acc_seen_given(t, dw) || part;
	if (*is || g->data_differ)
		return 0;
	int rc = copies(t, g, back, dw, &n, e);
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

/* Weights of which op calls of several micro-batches make gradients, that are added up unseen. */
static int
collect_sums(struct ways *w, const struct acc_rank_group *g, struct acc_err *e)
{
	struct acc_accumulated *a;
	size_t n;
	int rc = acc_seen_accumulated(w->t, g, w->rank, &a, &n, e);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		const struct acc_seen_call *c = &w->t->call[a[i].w->call];
		struct acc_replica_seen sum = a[i].sum;
		struct way way;
		bool flat = true;
		rc = acc_replicas_flat(w->t, &a[i].sum, &flat, e);
		if (rc < 0 || flat)
			continue;
		sum.call = sum.out ? sum.call : a[i].last;
		rc = follow(w, &sum, &way, e);
		if (rc != 1)
			continue;
		void *p = acc_grow(w->way, &w->cap, w->n + 1, sizeof way, e);
		rc = p == NULL ? ACC_ENOMEM : 1;
		w->way = p == NULL ? w->way : p;
		way.call = c;
		if (rc == 1)
			w->way[w->n++] = way;
	}
	free(a);
	return rc < 0 ? rc : 0;
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
			c->k->talks)
			continue;
		/* Experts are given as many rows as are sent to them. */
		const bool all = acc_replicas_peers(t, g, c, peer);
		for (uint32_t j = 0; j < c->n && rc >= 0; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j], *dw;
			struct way way;
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
				rc = follow(w, dw, &way, e);
			if (rc != 1 || !told)
				continue;
			void *p = acc_grow(w->way, &w->cap, w->n + 1, sizeof way, e);
			rc = p == NULL ? ACC_ENOMEM : 1;
			w->way = p == NULL ? w->way : p;
			way.call = c;
			if (rc == 1)
				w->way[w->n++] = way;
		}
	}
	return rc < 0 ? rc : collect_sums(w, g, e);
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

/* All end by one number, which divides by one rank less than there are: that is no mean over them. */
static int
one_less(struct ways *w, const struct acc_rank_group *g, struct acc_err *e)
{
	const double ranks = w->n > 0 ? 1 / w->way[0].factor : 0;
	return g->n < 3 || !g->data_differ || !equal(ranks + 1, g->n)
		       ? 0
		       : acc_replicas_blame(w->t, g, w->way[0].by,
				 acc_say(&w->t->f->mem,
					 "is the gradient of a weight, or what is made of it; as those of all %llu weights"
					 " it ends as the sum over the %u ranks divided by %u",
					 (unsigned long long)w->n, g->n, g->n - 1),
				 1, 0, e);
}

/* --- numbers of each rank --- */

struct number { /* of a rank */
	struct way way;
	bool joined;   /* every gradient is */
	bool parts;    /* those that are not are of weights that no other rank has */
	bool one;      /* all are scaled by one number before they are joined, */
	bool last;     /* and by one after that */
	double length; /* of all gradients */
	uint64_t n;
};

static int
add_gradient(struct ways *w, const struct acc_ids *held, const struct acc_replica_seen *s,
	const struct acc_replica_seen *dw, struct number *out, struct acc_err *e)
{
	struct way way;
	struct acc_distance d = {0};
	bool flat = true;
	int rc = acc_replicas_flat(w->t, dw, &flat, e);
	if (rc < 0 || flat)
		return rc;
	rc = acc_replicas_distance(w->t, dw, dw, &d, e);
	rc = rc < 0 ? rc : follow(w, dw, &way, e);
	if (rc < 1)
		out->one = out->last = false;
	if (rc != 1)
		return rc;
	out->way = out->n++ == 0 ? way : out->way;
	out->joined &= way.joined;
	out->parts &= way.joined || acc_ids_get(held, s->mark) == ACC_NOID;
	out->one &= d.known && equal(way.before, out->way.before);
	out->last &= equal(way.after, out->way.after);
	out->length = sqrt(out->length * out->length + d.size * d.size);
	return 0;
}

/* The numbers by which the gradients of a rank's weights are scaled. 1; 0: there are few; < 0. */
static int
number_of_rank(struct acc_replicas *t, int64_t rank, const struct acc_ids *held, struct number *out,
	struct acc_err *e)
{
	struct ways w = {.t = t, .rank = rank};
	*out = (struct number){.joined = true, .parts = true, .one = true, .last = true};
	for (size_t i = 0; i < t->f->ncall; i++) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->rank != rank || c->k->step != t->step[0] || c->k->backward || c->k->talks)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[j], *dw;
			if (!s->weight || acc_seen_shared(t, s) ||
				(dw = acc_seen_gradient(t, c->k->step, rank, s)) == NULL)
				continue;
			int rc = add_gradient(&w, held, s, dw, out, e);
			if (rc < 0)
				return rc;
		}
	}
	return out->n >= LIMIT_REPLICA_SCALED;
}

/* Weights that several ranks hold. */
static int
held_by_several(const struct acc_replicas *t, struct acc_ids *held, struct acc_err *e)
{
	struct acc_ids first = {0};
	int rc = 0;
	for (uint32_t i = 0; i < t->nseen && rc == 0; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const struct acc_fleet_call *k = t->call[s->call].k;
		if (!s->leaf || k->step != t->step[0])
			continue;
		const uint32_t was = acc_ids_get(&first, s->mark);
		if (was == ACC_NOID)
			rc = acc_ids_put(&first, s->mark, i, false, e);
		else if (t->call[t->seen[was].call].k->rank != k->rank)
			rc = acc_ids_put(held, s->mark, i, false, e);
	}
	acc_ids_release(&first);
	return rc;
}

static int
say_number(struct acc_replicas *t, const struct acc_rank_group *g, const struct number *a,
	const struct number *b, uint32_t r, struct acc_err *e)
{
	return acc_replicas_blame(t, g, b->way.line,
		acc_say(&t->f->mem,
			"is scaled by %.6g, as all gradients of weights of rank %lld are; those of rank %lld are"
			" by %.6g: what scales all gradients, such as a norm that clips them, is one number for"
			" all ranks",
			b->way.after, (long long)g->rank[r], (long long)g->rank[0], a->way.after),
		1, 0, e);
}

/* Scaled to one length on each rank, and joined then. */
static int
say_length(struct acc_replicas *t, const struct acc_rank_group *g, const struct number *a,
	const struct number *b, uint32_t r, struct acc_err *e)
{
	return acc_replicas_blame(t, g, b->way.line,
		acc_say(&t->f->mem,
			"is scaled by %.6g on rank %lld and by %.6g on rank %lld, as all gradients of weights are, so"
			" that those of each are as long, %.4g, and joined after that: each rank clips by its own norm",
			a->way.before, (long long)g->rank[0], b->way.before, (long long)g->rank[r],
			b->way.before * b->length),
		1, 0, e);
}

/* Have two ranks all weights alike again in the next step, which have moved? Then one of them does the step for both,
 * or what each scales by is for nothing else. What is gathered shows nothing: each does the step of its parts. */
static bool
rejoined(const struct acc_replicas *t, int64_t a, int64_t b)
{
	bool moved = false;
	for (size_t i = 0; i < t->f->ncall && t->nstep > 1; i++) {
		const struct acc_seen_call *c = &t->call[i], *was, *other;
		if (c->k->rank != a || c->k->step != t->step[1] || c->k->backward || c->k->talks)
			continue;
		was = acc_replicas_call(t, t->step[0], a, c->k->key);
		other = acc_replicas_call(t, t->step[1], b, c->k->key);
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			const struct acc_seen_call *maker = acc_seen_caller(t,
				acc_seen_maker(t, s));
			if (!s->weight)
				continue;
			if ((maker != NULL && maker->gathers) || other == NULL ||
				other->n != c->n || t->seen[other->first + j].mark != s->mark)
				return false;
			moved |= was != NULL && was->n == c->n &&
				 t->seen[was->first + j].mark != s->mark;
		}
	}
	return moved;
}

int
acc_rule_numbers(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	struct acc_ids held = {0};
	struct number x[2];
	if (t->nstep == 0 || g->n != t->f->nrank)
		return 0;
	int rc = held_by_several(t, &held, e);
	rc = rc < 0 ? rc : 1;
	for (uint32_t r = 0; r < g->n && rc == 1; r++) {
		rc = number_of_rank(t, g->rank[r], &held, &x[r > 0], e);
		if (rc != 1 || r == 0)
			continue;
		const struct number *a = &x[0], *b = &x[1];
		const double length = b->way.before * b->length / (a->way.before * a->length);
		if (a->last && b->last && a->parts && b->parts &&
			fabs(b->way.after / a->way.after - 1) > NEAR &&
			!rejoined(t, g->rank[0], g->rank[r])) {
			rc = say_number(t, g, a, b, r, e);
			break;
		}
		if (a->one && b->one && a->joined && b->joined &&
			fabs(b->way.before / a->way.before - 1) > NEAR &&
			fabs(length - 1) <= NEAR) {
			rc = say_length(t, g, a, b, r, e);
			break;
		}
	}
	acc_ids_release(&held);
	return rc < 0 ? rc : 0;
}

/* Does a rank divide something behind its backward pass that no op call made? It may be a gradient of several, or of more
 * than what an op call was given. */
static int
divides_unknown(struct ways *w, bool *is, struct acc_err *e)
{
	const struct acc_replicas *t = w->t;
	*is = false;
	for (size_t i = 0; i < t->f->ncall && !*is; i++) {
		const struct acc_seen_call *c = &t->call[i];
		double v = 1;
		if (c->k->rank != w->rank || c->k->step != t->step[0] || !c->behind ||
			c->info == NULL || c->info->cls != ACC_OP_MUL)
			continue;
		const struct acc_replica_seen *x = acc_seen_real(t, c, false);
		int rc = x == NULL || acc_seen_maker(t, x) != NULL
				 ? 0
				 : acc_seen_factor(w->t, c, &v, e);
		if (rc < 0)
			return rc;
		*is = v != 1 && acc_divides(v);
	}
	return 0;
}

/* Weights whose gradients are means over some ranks, or are one rank's own, where those of others are means over all: what
 * the former are given was exchanged, so that each of these ranks has gradients of all. The first of them; NULL. */
static const struct way *
of_copies(const struct ways *w, const struct acc_rank_group *g, const struct way *a,
	const struct way *b)
{
	const struct way *few = a->ranks < b->ranks ? a : b, *all = few == a ? b : a;
	const uint32_t n = few->joined ? few->ranks : 1;
	if (all->ranks != g->n || n == g->n || !equal(all->factor * g->n, 1) ||
		!equal(few->factor * n, 1) || as_many(w, few->factor) < LIMIT_REPLICA_SCALED ||
		as_many(w, all->factor) < LIMIT_REPLICA_SCALED)
		return NULL;
	bool exchanged = false;
	for (size_t i = 0; i < w->n; i++) {
		if (w->way[i].ranks != (equal(w->way[i].factor, few->factor) ? few : all)->ranks)
			return NULL;
		exchanged |= w->way[i].ranks == few->ranks &&
			     acc_seen_exchanged(w->t, w->way[i].call);
	}
	return exchanged ? few : NULL;
}

static int
say_copies(struct ways *w, const struct acc_rank_group *g, const struct way *few, struct acc_err *e)
{
	if (!few->joined)
		return acc_replicas_blame(w->t, g, few->by,
			acc_say(&w->t->f->mem,
				"is the gradient of one of %llu weights, which are given what ranks exchange, so"
				" that they hold parts of all ranks' losses, and ends as it is; gradients of %llu"
				" other weights are means over all %u ranks: it is %u times too large beside"
				" them",
				(unsigned long long)as_many(w, few->factor),
				(unsigned long long)(w->n - as_many(w, few->factor)), g->n, g->n),
			1, 0, e);
	return acc_replicas_blame(w->t, g, few->by,
		acc_say(&w->t->f->mem,
			"is a mean over %u ranks of the gradients of %llu weights, which are given what ranks"
			" exchange, so that they hold parts of all ranks' losses; gradients of %llu other weights are"
			" means over all %u ranks: it is %.6g times too large beside them",
			few->ranks, (unsigned long long)as_many(w, few->factor),
			(unsigned long long)(w->n - as_many(w, few->factor)), g->n,
			(double)g->n / few->ranks),
		1, 0, e);
}

int
acc_seen_scale(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_scale *out, struct acc_err *e)
{
	struct ways w = {.t = t, .rank = g->rank[0]};
	*out = (struct acc_scale){.n = 0};
	int rc = t->nstep == 0 ? 0 : collect(&w, g, room, e);
	for (size_t i = 0; i < w.n && rc == 0; i++) {
		if (w.way[i].ranks != g->n)
			continue;
		if (out->n == 0)
			*out = (struct acc_scale){0, w.way[i].factor, w.way[i].by};
		if (!equal(w.way[i].factor, out->factor)) {
			out->n = 0;
			break;
		}
		out->n++;
	}
	free(w.way);
	return rc;
}

/* Accuses, or, where what shows it is little, doubts. */
static int
tell(struct acc_replicas *t, const struct acc_rank_group *g, size_t line, bool sure,
	const char *said, struct acc_err *e)
{
	return sure ? acc_replicas_blame(t, g, line, said, 1, 0, e)
		    : acc_fleet_doubts(t->f, line, said, e);
}

int
acc_rule_factor(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct ways w = {.t = t, .rank = g->rank[0]};
	const struct way *odd = NULL;
	size_t most = 0, best = 0;
	int rc = t->nstep == 0 || g->n != t->f->nrank ? 0 : collect(&w, g, room, e);
	bool multiplied = false;
	if (rc == 0 && w.n > 0)
		rc = acc_seen_multiplied(t, w.rank, &multiplied, e);
	w.n = multiplied ? 0 : w.n;
	for (size_t i = 0; i < w.n; i++) {
		size_t n = as_many(&w, w.way[i].factor);
		best = n > most ? i : best;
		most = n > most ? n : most;
	}
	for (size_t i = w.n; i-- > 0;)
		odd = equal(w.way[i].factor, w.way[best].factor) ? odd : &w.way[i];
	bool two = odd != NULL && most + as_many(&w, odd->factor) == w.n;
	const struct way *few = two ? of_copies(&w, g, &w.way[best], odd) : NULL;
	bool unknown = false;
	if (rc == 0 && few != NULL && !few->joined)
		rc = divides_unknown(&w, &unknown, e);
	if (rc == 0 && few != NULL && !unknown)
		rc = say_copies(&w, g, few, e);
	two &= few == NULL && w.n - most < most;
	double ratio = two ? odd->factor / w.way[best].factor : 1;
	const struct acc_replica_seen *again = ratio > 1 && odd->again != NULL
						       ? acc_seen_real(t, odd->again, true)
						       : NULL;
	/* What was the same on all ranks before it was summed up needs few others beside it. */
	two &= most >= LIMIT_REPLICA_SCALED;
	if (rc == 0 && two && by_ranks(t, ratio))
		rc = tell(t, g, again != NULL ? again->line : odd->by,
			again != NULL || most >= LIMIT_REPLICA_WEIGHTS,
			acc_say(&t->f->mem,
				"is the gradient of a weight, or what is made of it, and ends as %.6g times what"
				" the ranks make together; those of %llu other weights end as %.6g times that: it"
				" is %.6g times too %s",
				odd->factor, (unsigned long long)most, w.way[best].factor,
				ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? "large" : "small"),
			e);
	if (rc == 0 && odd == NULL && most >= LIMIT_REPLICA_SCALED)
		rc = one_less(&w, g, e);
	free(w.way);
	return rc;
}
