/* Numbers that scale all gradients of a rank, as a norm that clips them does: one for all ranks. */
#include "replay/limits.h"
#include "acc/say.h"
#include "ranks/scaling.h"

#include <math.h>

static bool
equal(double a, double b)
{
	return fabs(a / b - 1) < 1e-6;
}

struct number { /* of a rank */
	struct acc_way way;
	bool joined;   /* every gradient is */
	bool parts;    /* those that are not are of weights that no other rank has */
	bool one;      /* all are scaled by one number before they are joined, */
	bool last;     /* and by one after that */
	double length; /* of all gradients */
	uint64_t n;
};

static int
add_gradient(struct acc_ways *w, const struct acc_ids *held, const struct acc_replica_seen *s,
	const struct acc_replica_seen *dw, struct number *out, struct acc_err *e)
{
	struct acc_way way;
	struct acc_distance d = {0};
	bool flat = true;
	int rc = acc_replicas_flat(w->t, dw, &flat, e);
	if (rc < 0 || flat)
		return rc;
	rc = acc_replicas_distance(w->t, dw, dw, &d, e);
	rc = rc < 0 ? rc : acc_way_follow(w, dw, &way, e);
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
	struct acc_ways w = {.t = t, .rank = rank};
	*out = (struct number){.joined = true, .parts = true, .one = true, .last = true};
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || c->k->backward || c->k->talks)
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
	for (size_t i = acc_calls_of(t, a); i < t->f->ncall && t->nstep > 1; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i], *was, *other;
		if (c->k->step != t->step[1] || c->k->backward || c->k->talks)
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
			fabs(b->way.after / a->way.after - 1) > LIMIT_RANKS_NORM &&
			!rejoined(t, g->rank[0], g->rank[r])) {
			rc = say_number(t, g, a, b, r, e);
			break;
		}
		if (a->one && b->one && a->joined && b->joined &&
			fabs(b->way.before / a->way.before - 1) > LIMIT_RANKS_NORM &&
			fabs(length - 1) <= LIMIT_RANKS_NORM) {
			rc = say_length(t, g, a, b, r, e);
			break;
		}
	}
	acc_ids_release(&held);
	return rc < 0 ? rc : 0;
}
