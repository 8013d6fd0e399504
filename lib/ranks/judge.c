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
	bool drawn;                                /* random numbers are others, */
	bool said;                                 /* where they must not be */
	uint64_t equal, differ;                    /* weights of the first step */
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
	if (rc == 0)
		rc = ACC_RULE(t->f, parallel_inputs, acc_rule_part(t, p->g, p->peer, p->room, e));
	if (rc == 0 && !c->k->backward)
		rc = c->k->talks ? ACC_RULE(t->f, double_reduction,
					   acc_rule_reduction(t, p->g, p->peer, e))
				 : acc_rule_call(t, p->g, p->peer, e);
	if (rc < 0 || c->k->backward)
		return rc;
	if (c->k->talks && first && c->reduces && acc_seen_among(t, c, p->g))
		rc = acc_seen_unlike(t, p->g, p->peer, &p->j, e);
	if (rc < 0 || c->k->talks)
		return rc;
	if (c->info != NULL && c->info->cls == ACC_OP_RANDOM)
		return ACC_RULE(t->f, random_draw,
			acc_rule_draws(t, p->g, p->peer, &p->drawn, &p->said, e));
	rc = ACC_RULE(t->f, rank_number, acc_rule_after(t, p->g, p->peer, e));
	if (rc == 0)
		rc = ACC_RULE(t->f, random_draw, acc_rule_noise(t, p->g, p->peer, &p->said, e));
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
		rc = ACC_RULE(t->f, wrong_group,
			acc_rule_unlike(t, g, &p->j, p->varied, p->room, e));
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
		rc = acc_seen_twins(t, g, p.peer, e);
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0;
		i = t->call[i].next)
		if (acc_replicas_peers(t, g, &t->call[i], p.peer))
			rc = visit(&p, e);
	if (rc == 0 && !g->held)
		rc = judge_whole(&p, g, e);
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

static int
compare(struct acc_fleet *f, struct acc_err *e)
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
		rc = compare(f, e);
	return rc;
}
