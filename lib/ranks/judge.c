/* What was the same on all ranks of a group, and parts: weights, their gradients, and what a
 * reduction, or the same draw of random numbers, should have made alike. */
#include "ranks/asked.h"
#include "acc/say.h"

#include <stdlib.h>
#include <string.h>

#include "replay/limits.h"

enum { MOST_ODD = 16 };

struct parting { /* a group, and what is found in it */
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_seen_call **peer, **room; /* room: for others */
	struct acc_map lines;   /* of code, whose calls were alike: their number, or dead */
	bool parted, drawn;     /* a reduction is missing; random numbers are others, */
	bool said;              /* where they must not be */
	uint64_t equal, differ; /* weights of the first step */
	const struct acc_replica_seen
		*odd[MOST_ODD]; /* some of those that differ, on the odd rank */
	uint32_t nodd;
	uint64_t varied;      /* of the equal ones, not one number everywhere */
	struct acc_joining j; /* gradients that are reduced */
};

static bool
marked_alike(const struct parting *p, uint32_t j)
{
	return acc_replicas_marked(p->t, p->g, p->peer, j);
}

#define SAY(p, ...) acc_say(&(p)->t->f->mem, __VA_ARGS__)

/* --- gradients that are joined --- */

/* What a reduction is given: the j-th of what was joined into its operand, or, with nothing joined, this
 * itself; NULL: there is none. */
static const struct acc_replica_seen *
operand(const struct acc_replicas *t, const struct acc_seen_call *c, uint32_t j)
{
	const struct acc_replica_seen *in = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++) /* what is filled is smaller */
		if (!t->seen[i].out && t->seen[i].n > (in == NULL ? 1 : in->n))
			in = &t->seen[i];
	const struct acc_seen_call *join = in == NULL ? NULL : acc_seen_joined(t, in);
	if (join == NULL)
		return j == 0 ? in : NULL;
	for (uint32_t i = join->first; i < join->first + join->n; i++)
		if (!t->seen[i].out && j-- == 0)
			return &t->seen[i];
	return NULL;
}

/* Of the j-th thing that the ranks join, whose weights are not the same. 1; 0: there is none; < 0. */
static int
unlike_weight(struct parting *p, uint32_t j, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_replica_seen *w[2] = {NULL, NULL};
	bool differ = false, known = true;
	for (uint32_t i = 0; i < p->g->n; i++) {
		const struct acc_replica_seen *s = operand(t, p->peer[i], j);
		bool flat = false;
		if (s == NULL)
			return 0;
		/* Gradients of several weights may be zeros, on this rank alone, too. */
		const struct acc_replica_seen *made = known ? acc_seen_gradient_in(t, s) : NULL;
		int rc = made == NULL ? 0 : acc_replicas_flat(t, made, &flat, e);
		if (rc < 0)
			return rc;
		const struct acc_replica_seen *found = flat ? NULL : acc_seen_weight(t, s);
		known &= found != NULL;
		if (!known)
			continue;
		w[i > 0] = i > 0 && differ ? w[1] : found;
		differ |= w[0]->mark != found->mark;
	}
	p->j.alike += known && !differ;
	p->j.unlike += known && differ;
	if (known && differ && p->j.unlike == 1) {
		p->j.reduction = p->peer[0];
		p->j.weight[0] = w[0];
		p->j.weight[1] = w[1];
	}
	return 1;
}

/* Has a rank that is none of the group the weight that the first one has? */
static bool
elsewhere(const struct parting *p, const struct acc_replica_seen *w)
{
	const struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = &t->call[w->call];
	for (size_t i = 0; i < t->f->nrank; i++) {
		bool inside = false;
		for (uint32_t j = 0; j < p->g->n; j++)
			inside |= p->g->rank[j] == t->f->rank[i];
		const struct acc_seen_call *other = inside ? NULL
							   : acc_replicas_call(t, c->k->step,
								     t->f->rank[i], c->k->key);
		for (uint32_t j = 0; other != NULL && j < other->n; j++)
			if (t->seen[other->first + j].pos == w->pos &&
				t->seen[other->first + j].mark == w->mark)
				return true;
	}
	return false;
}

/* Does a part of the group have it as the first rank has, and another as the second: each of several ranks? Others,
 * which all have alike, show that all began alike. */
static bool
by_parts(const struct parting *p)
{
	const struct acc_replicas *t = p->t;
	const struct acc_replica_seen *const *w = p->j.weight;
	uint32_t n[2] = {0, 0};
	for (uint32_t i = 0; i < p->g->n; i++) {
		const struct acc_seen_call *c = acc_replicas_call(t, t->call[w[0]->call].k->step,
			p->g->rank[i], t->call[w[0]->call].k->key);
		for (uint32_t j = 0; c != NULL && j < c->n; j++)
			for (int k = 0; k < 2; k++)
				n[k] += t->seen[c->first + j].pos == w[0]->pos &&
					t->seen[c->first + j].mark == w[k]->mark;
	}
	return n[0] > 1 && n[1] > 1 && n[0] + n[1] == p->g->n && p->varied > 0;
}

/* One weight, or all of them, are not what they should be; or some are joined that are others. */
static int
say_unlike(struct parting *p, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = p->j.reduction;
	const struct acc_replica_seen *const *w = p->j.weight;
	bool is = p->j.unlike > 1 && p->j.alike == 0 && p->varied > 0;
	int rc = is ? acc_replicas_moved(t, p->g, w[0], p->room, &is, e) : 0;
	if (p->j.unlike == 0 || rc < 0 || is)
		return rc;
	/* The first one has it, too: for another op call. */
	const bool both = acc_ids_get(&t->first,
				  acc_seen_place(t->call[w[0]->call].k->step,
					  t->call[w[0]->call].k->rank, w[1]->mark)) != ACC_NOID;
	/* The group is right for others that it joins with it; or nothing but gradients is of several ranks. */
	const bool right = (p->j.beside >= LIMIT_REPLICA_SCALED && p->j.beside >= 2 * p->j.unlike &&
				   !acc_seen_exchanged(t, &t->call[w[0]->call])) ||
			   (p->g->n == t->f->nrank && acc_seen_own_data(t, p->g));
	if ((right || ((p->j.unlike == 1 || p->j.alike == 0) && !by_parts(p))) && !both &&
		!elsewhere(p, w[0]))
		return ACC_RULE(t->f, unequal_weight,
			acc_replicas_blame(p->t, p->g, w[1]->line,
				SAY(p,
					"is a weight that is not the same on rank %lld and on rank %lld, which join its"
					" gradients",
					(long long)t->call[w[0]->call].k->rank,
					(long long)t->call[w[1]->call].k->rank),
				1, 0, e));
	const char *a = acc_replicas_name(t, w[0]->line, e),
		   *b = acc_replicas_name(t, w[1]->line, e);
	for (uint32_t j = 0; j < c->n; j++)
		if (t->seen[c->first + j].out && t->seen[c->first + j].n > 1)
			return acc_replicas_blame(p->t, p->g, t->seen[c->first + j].line,
				strcmp(a, b) == 0
					? SAY(p,
						  "joins the gradients of weights that are not the same: that of"
						  " %s on rank %lld, of %s on rank %lld: is it the right group?",
						  a, (long long)t->call[w[0]->call].k->rank, b,
						  (long long)t->call[w[1]->call].k->rank)
					: SAY(p,
						  "joins the gradient of the weight of %s on rank %lld with that of %s"
						  " on rank %lld: is it the same order on all ranks?",
						  a, (long long)t->call[w[0]->call].k->rank, b,
						  (long long)t->call[w[1]->call].k->rank),
				1, 0, e);
	return t->lost;
}

/* Was this tensor, on its rank, made from a weight that is not the same on all? */
static bool
from_shard(const struct parting *p, const struct acc_seen_call *maker)
{
	const struct acc_replicas *t = p->t;
	for (uint32_t j = 0; j < maker->n; j++) {
		const struct acc_replica_seen *s = &t->seen[maker->first + j];
		const struct acc_seen_call *other = acc_replicas_call(t, maker->k->step,
			p->g->rank[p->g->n - 1], maker->k->key);
		if (s->weight && other != NULL && other->n == maker->n &&
			t->seen[other->first + j].mark != s->mark)
			return true;
	}
	return false;
}

/* A call whose line was alike on all ranks so far is not: was it given what a reduction made, and is
 * now given what parts of a weight made, as they are? */
static int
lost_reduction(struct parting *p, uint32_t sibling, uint32_t j, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = p->peer[0], *was = &t->call[sibling];
	if (was->n != c->n || t->seen[c->first + j].out)
		return 0;
	const struct acc_replica_seen *x = acc_seen_maker(t, &t->seen[c->first + j]),
				      *y = acc_seen_maker(t, &t->seen[was->first + j]);
	const struct acc_seen_call *now = x == NULL ? NULL : &t->call[x->call],
				   *then = y == NULL ? NULL : &t->call[y->call];
	if (now == NULL || then == NULL || !then->k->talks)
		return 0;
	const uint32_t all = (uint32_t)t->f->nrank, few = now->nmember == 0 ? all : now->nmember,
		       many = then->nmember == 0 ? all : then->nmember;
	bool whole = false;
	int rc = now->k->talks ? 0 : acc_replicas_of_whole(t, p->g, now, p->room, &whole, e);
	if (rc < 0 || whole ||
		(now->k->talks ? now->k->op != then->k->op || few >= many : !from_shard(p, now)))
		return rc;
	const char *a = acc_replicas_name(t, now->k->line, e),
		   *b = acc_replicas_name(t, then->k->line, e),
		   *d = acc_replicas_name(t, was->k->line, e);
	p->parted = true;
	if (now->k->talks)
		return acc_replicas_blame(p->t, p->g, t->seen[c->first + j].line,
			SAY(p,
				"differs on some ranks: it comes from %s, among %u ranks; at %s, of the same line, "
				"it comes from %s, among %u: is it the right group?",
				a, few, d, b, many),
			1, 0, e);
	return acc_replicas_blame(p->t, p->g, t->seen[c->first + j].line,
		SAY(p,
			"differs between the ranks: it comes from %s and its part of a weight, as it is; at "
			"%s, of the same line, it comes from %s: a reduction is missing",
			a, d, b),
		1, 0, e);
}

/* The line of code that a call is of: its calls have been alike, or have not. */
static int
line_of_code(struct parting *p, struct acc_err *e)
{
	const struct acc_seen_call *c = p->peer[0];
	uint64_t id = acc_seen_form(p->t, c, c->line);
	uint64_t *was = acc_map_put(&p->lines, (struct acc_str){(char *)&id, sizeof id}, 0);
	enum acc_alike is = ACC_EQUAL;
	uint32_t at = 0;
	int rc = 0;
	if (was == NULL)
		return acc_nomem(e);
	if (*was == ACC_NOID) /* dead */
		return 0;
	for (uint32_t j = 0; j < c->n && rc == 0 && is < ACC_APART; j++) {
		rc = acc_replicas_alike(p->t, p->g, p->peer, j, &is, e);
		at = j;
	}
	if (rc == 0 && is == ACC_APART && *was > 0)
		rc = lost_reduction(p, (uint32_t)*was - 1, at, e);
	*was = is >= ACC_APART ? ACC_NOID : (uint64_t)(c - p->t->call) + 1;
	return rc;
}

/* --- a group --- */

/* A weight of the first step. */
static int
weight(struct parting *p, uint32_t j, struct acc_err *e)
{
	bool flat = true;
	if (marked_alike(p, j)) {
		p->equal++;
		int rc = p->varied > 0 ? 0
				       : acc_replicas_flat(p->t, &p->t->seen[p->peer[0]->first + j],
						 &flat, e);
		p->varied += !flat;
		return rc;
	}
	p->differ++;
	const struct acc_replica_seen *s =
		&p->t->seen[p->peer[acc_replicas_odd(p->t, p->g, p->peer, j)]->first + j];
	if (s->weight && p->nodd < MOST_ODD)
		p->odd[p->nodd++] = s;
	return 0;
}

/* The weights of a call, and what else ranks may hold alike. */
static int
weights(struct parting *p, int64_t last, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = p->peer[0];
	bool first = t->nstep > 0 && c->k->step == t->step[0];
	int rc = 0;
	for (uint32_t j = 0; j < c->n && rc == 0; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		/* A number may be the same by chance, where ranks hold parts. */
		if (!s->leaf && !s->kept && (!s->lone || p->g->weights_differ || p->g->parts))
			continue;
		if (first && s->leaf)
			rc = weight(p, j, e);
		if (rc == 0 && first && s->weight && !p->g->parts && p->g->n == t->f->nrank)
			rc = ACC_RULE(t->f, weight_average, acc_rule_average(t, p->g, s, e));
		for (uint32_t i = 1; i < p->g->n && last != INT64_MIN && rc == 0; i++)
			rc = ACC_RULE(t->f, weight_drift,
				acc_replicas_drift(t, p->g, last, &t->seen[c->first + j],
					&t->seen[p->peer[i]->first + j], e));
	}
	return rc;
}

static int
visit(struct parting *p, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = p->peer[0];
	int64_t last = acc_replicas_step_before(t, c->k->step);
	bool first = t->nstep > 0 && c->k->step == t->step[0];
	int rc = weights(p, last, e);
	if (p->g->held)
		return rc;
	if (rc == 0 && c->gathers && last != INT64_MIN)
		rc = ACC_RULE(t->f, frozen_shard, acc_rule_stale(t, p->g, last, p->peer, e));
	if (rc == 0)
		rc = ACC_RULE(t->f, parallel_inputs, acc_rule_part(t, p->g, p->peer, p->room, e));
	if (rc == 0 && !c->k->backward)
		rc = c->k->talks ? ACC_RULE(t->f, double_reduction,
					   acc_rule_reduction(t, p->g, p->peer, e))
				 : acc_rule_call(t, p->g, p->peer, e);
	if (rc < 0 || c->k->backward)
		return rc;
	rc = c->k->talks && first && c->reduces && acc_seen_among(t, c, p->g);
	const uint64_t alike_before = p->j.alike;
	for (uint32_t j = 0; rc == 1; j++)
		rc = unlike_weight(p, j, e);
	if (p->j.reduction == c)
		p->j.beside = p->j.alike - alike_before;
	if (rc < 0 || c->k->talks)
		return rc;
	if (c->info != NULL && c->info->cls == ACC_OP_RANDOM)
		return ACC_RULE(t->f, random_draw,
			acc_rule_draws(t, p->g, p->peer, &p->drawn, &p->said, e));
	rc = ACC_RULE(t->f, rank_number, acc_rule_after(t, p->g, p->peer, e));
	if (rc == 0)
		rc = ACC_RULE(t->f, random_draw, acc_rule_noise(t, p->g, p->peer, &p->said, e));
	if (rc == 0 && c->line != 0 && !p->parted && !p->drawn)
		rc = ACC_RULE(t->f, missing_reduction, line_of_code(p, e));
	return rc;
}

/* Which ranks hold the same weights, and are given the same data? */
static void
look(struct acc_replicas *t, struct acc_rank_group *g, const struct acc_seen_call **peer)
{
	const struct parting p = {.t = t, .g = g, .peer = peer};
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || c->k->backward)
			continue;
		if (!acc_replicas_peers(t, g, c, peer)) {
			/* A part of another shape is one, too. */
			for (uint32_t j = 0; j < c->n; j++) {
				g->parts |= t->seen[c->first + j].leaf;
				g->weights_differ |= t->seen[c->first + j].weight;
			}
			continue;
		}
		/* What else is given to an op call, such as indices of a rank's own heads, is no data. */
		bool learns = c->loss;
		for (uint32_t j = 0; j < c->n; j++)
			learns |= t->seen[c->first + j].leaf;
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			g->weights_differ |= s->weight && !marked_alike(&p, j);
			const bool data = learns && s->data;
			const bool alike = data && marked_alike(&p, j);
			g->data_differ |= data && !alike;
			g->data_alike |= alike;
		}
	}
	g->data_alike &= !g->data_differ;
}

/* Those of a group as a whole, in their order. */
static const struct {
	enum acc_rank_rule_id id;
	acc_group_rule *judge;
} rules[] = {
#define ROW(id, function) {ACC_RULE_##id, function},
	ACC_GROUP_RULES(ROW)
#undef ROW
};

/* What is said of the group as a whole. */
static int
judge_whole(struct parting *p, struct acc_rank_group *g, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	int rc = p->j.alike + p->j.unlike == 0 ? acc_seen_sums(t, g, &p->j, e) : 0;
	if (rc == 0)
		rc = p->j.alike + p->j.unlike > 0
			     ? 0
			     : ACC_RULE(t->f, odd_weight,
				       acc_rule_odd(t, g, p->odd, p->nodd, p->equal, p->differ,
					       p->room, e));
	if (rc == 0)
		rc = ACC_RULE(t->f, wrong_group, say_unlike(p, e));
	if (rc == 0 && p->j.unlike == 0)
		rc = ACC_RULE(t->f, data_parallel, acc_rule_twins(t, g, p->j.alike, p->room, e));
	if (rc == 0)
		rc = ACC_RULE(t->f, unequal_loss, acc_rule_loss(t, g, p->peer, e));
	for (size_t i = 0; i < sizeof rules / sizeof *rules && rc == 0; i++) {
		acc_rule_enter(t->f, rules[i].id);
		rc = acc_rule_leave(t->f, rules[i].judge(t, g, p->room, e));
	}
	return rc;
}

static int
judge(struct acc_replicas *t, struct acc_rank_group *g, struct acc_err *e)
{
	struct parting p = {.t = t, .g = g, .peer = malloc(2 * g->n * sizeof *p.peer)};
	p.room = p.peer == NULL ? NULL : p.peer + g->n;
	int rc = p.peer == NULL ? acc_nomem(e) : 0;
	if (rc == 0)
		look(t, g, p.peer);
	if (rc == 0 && !g->held)
		rc = ACC_RULE(t->f, gradient_shapes, acc_rule_shapes(t, g, p.peer, e));
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0;
		i = t->call[i].next)
		if (acc_replicas_peers(t, g, &t->call[i], p.peer))
			rc = visit(&p, e);
	if (rc == 0 && !g->held)
		rc = judge_whole(&p, g, e);
	acc_map_release(&p.lines);
	free(p.peer);
	return rc;
}

/* Stages, all ranks together, and those that hold the same weights. */
static int
find_groups(struct acc_replicas *t, struct acc_err *e)
{
	const struct acc_fleet *f = t->f;
	int rc = acc_replicas_stages(t, e);
	if (rc == 0 && f->nrank < UINT32_MAX)
		rc = acc_replicas_group(t, f->rank, (uint32_t)f->nrank, false, e);
	return rc == 0 ? acc_replicas_held(t, e) : rc;
}

int
acc_fleet_replicas(struct acc_fleet *f, struct acc_err *e)
{
	struct acc_replicas t = {.f = f};
	int rc = acc_replicas_read(&t, e);
	if (rc == 0 && t.call != NULL)
		rc = find_groups(&t, e);
	if (rc == 0)
		rc = ACC_RULE(f, gradient_shares, acc_rule_mix(&t, e));
	if (rc == 0)
		rc = ACC_RULE(f, idle_optimizer, acc_rule_idle(&t, e));
	for (size_t i = 0; i < t.ngroup && rc == 0; i++)
		rc = judge(&t, &t.group[i], e);
	if (rc == 0)
		rc = ACC_RULE(f, tied_weight, acc_replicas_tied(&t, e));
	if (rc == 0)
		rc = ACC_RULE(f, stage_gradient, acc_rule_stages(&t, e));
	if (rc == 0)
		rc = ACC_RULE(f, send_receive, acc_rule_pairs(&t, e));
	acc_replicas_release(&t);
	return rc;
}

int
acc_fleet_judge(struct acc_fleet *f, struct acc_err *e)
{
	int rc = f->nrank < 2 ? 0 : ACC_RULE(f, collective, acc_fleet_collectives(f, e));
	if (rc == 0 && f->nrank > 1)
		rc = acc_fleet_replicas(f, e);
	return rc;
}
