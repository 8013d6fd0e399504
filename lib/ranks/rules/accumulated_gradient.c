/* Gradients of a weight that several op calls of a line are given, as those of micro-batches are, and that op calls add
 * up: each counts once. */
#include "replay/limits.h"
#include "base/order.h"
#include "acc/say.h"
#include "ranks/asked.h"
#include "ranks/fit.h"

#include <math.h>
#include <stdlib.h>

enum {
	MOST_TERMS = 8,
	MOST_ELEMENTS = 4096,
	FEW_ELEMENTS = 8,
	MOST_WEIGHTS = 64,
	MOST_COUNTED = 1 << 20
};

struct terms {
	struct acc_replicas *t;
	const struct acc_replica_seen
		*term[MOST_TERMS + 1]; /* in their order, and what they end as */
	uint32_t n;
	double *x; /* MOST_ELEMENTS of each */
};

ACC_ORDER_OF(by_time, struct acc_replica_seen, call)

/* The gradients of all op calls that are given this weight; false: not all are known, or of one line. */
static bool
gradients_of(struct terms *m, const struct acc_replica_seen *w)
{
	const struct acc_replicas *t = m->t;
	const struct acc_seen_call *first = &t->call[w->call];
	m->n = 0;
	for (const struct acc_seen_call *c = first;
		c < t->call + t->f->ncall && acc_seen_beside(c, first); c++)
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			if (!t->seen[j].leaf || t->seen[j].mark != w->mark || c->k->talks ||
				c->behind)
				continue;
			const struct acc_replica_seen *g = acc_seen_gradient(t, c->k->step,
				c->k->rank, &t->seen[j]);
			if (m->n == MOST_TERMS || g == NULL || c->line == 0 ||
				c->line != first->line)
				return false;
			m->term[m->n++] = g;
		}
	if (m->n > 1)
		qsort(m->term, m->n, sizeof *m->term, by_time);
	return m->n > 1;
}

/* What op calls that add make of the last of them, one after another; NULL: nothing. */
static const struct acc_replica_seen *
end_of(const struct terms *m)
{
	const struct acc_replicas *t = m->t;
	const struct acc_replica_seen *at = m->term[m->n - 1];
	const struct acc_seen_call *from = &t->call[at->call];
	bool added = false;
	for (const struct acc_seen_call *c = from;
		c < t->call + t->f->ncall && acc_seen_beside(c, from); c++) {
		bool given = false;
		if (c->k->talks || c->k->backward || c->info == NULL || c->info->cls != ACC_OP_ADD)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			given |= !t->seen[j].out && t->seen[j].mark == at->mark;
		const struct acc_replica_seen *out = given ? acc_seen_real(t, c, true) : NULL;
		if (out == NULL || out->n != at->n || out->mark == 0)
			continue;
		at = out;
		added = true;
	}
	return added ? at : NULL;
}

static int
read_all(struct terms *m, size_t *some, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	int rc = 1;
	*some = m->term[0]->n < MOST_ELEMENTS ? (size_t)m->term[0]->n : MOST_ELEMENTS;
	for (uint32_t i = 0; i <= m->n && rc == 1; i++) {
		struct acc_fleet_tensor x;
		struct acc_rec *r;
		rc = t->f->get(t->f->arg, m->term[i]->line, &r, e);
		if (rc < 0)
			return rc;
		rc = acc_fleet_tensor(r, m->term[i]->line, &x);
		if (rc < 0)
			return acc_nomem(e);
		rc = rc == 1 && x.n == m->term[0]->n ? acc_fleet_read(t->f, &x, 0, *some,
							       m->x + (size_t)i * MOST_ELEMENTS, e)
						     : 0;
	}
	return rc;
}

/* How often each counts, as a whole number; false: one does by another. */
static bool
counts(const struct acc_fit *f, int *count)
{
	bool whole = true;
	for (uint32_t i = 0; i < f->n; i++) {
		const double c = f->c[i] / f->c[f->n - 1];
		whole &= c > -0.5 && c < MOST_COUNTED && fabs(c - rint(c)) <= LIMIT_RANKS_FACTOR;
		count[i] = whole ? (int)rint(c) : 0;
	}
	return whole;
}

static int
say(struct terms *m, const struct acc_rank_group *g, const int *count, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	const char *factors = "";
	for (uint32_t i = 0; i < m->n && factors != NULL; i++)
		factors = acc_arena_printf(&t->f->mem, "%s%s%d", factors, i == 0 ? "" : ", ",
			count[i]);
	if (factors == NULL)
		return acc_nomem(e);
	return acc_replicas_blame(t, g, m->term[m->n]->line,
		acc_say(&t->f->mem,
			"ends the sum of a weight's gradients, which %u op calls of one line make, and counts them %s"
			" times: each must count once",
			m->n, factors),
		1, 0, e);
}

/* Of a weight of one rank. 1; 0: it is not known; < 0. */
static int
count_terms(struct terms *m, const struct acc_replica_seen *w, int *count, struct acc_err *e)
{
	size_t some;
	if (!gradients_of(m, w))
		return 0;
	struct acc_fit f = {.n = m->n};
	m->term[m->n] = end_of(m);
	int rc = m->term[m->n] == NULL ? 0 : read_all(m, &some, e);
	if (rc != 1 || some < (size_t)FEW_ELEMENTS * m->n)
		return rc < 0 ? rc : 0;
	for (size_t i = 0; i < some; i++) {
		double term[MOST_TERMS];
		for (uint32_t j = 0; j < m->n; j++)
			term[j] = m->x[(size_t)j * MOST_ELEMENTS + i];
		acc_fit_add(&f, term, m->x[(size_t)m->n * MOST_ELEMENTS + i]);
	}
	return acc_fit_solve(&f) && counts(&f, count);
}

/* One that counts several times; or not at all, on one rank alone: what none counts may be of another loss. */
static int
judge(struct terms *m, const struct acc_rank_group *g, const struct acc_replica_seen *w, bool *said,
	struct acc_err *e)
{
	const struct acc_replicas *t = m->t;
	const struct acc_seen_call *c = &t->call[w->call];
	const uint32_t j = (uint32_t)(w - t->seen) - c->first;
	int count[2][MOST_TERMS];
	const struct acc_replica_seen *end = NULL;
	uint32_t n = 0;
	for (uint32_t r = 0; r < g->n && !*said; r++) {
		const struct acc_seen_call *o = acc_replicas_call(t, c->k->step, g->rank[r],
			c->k->key);
		int rc = o == NULL || j >= o->n || !t->seen[o->first + j].leaf
				 ? 0
				 : count_terms(m, &t->seen[o->first + j], count[r > 0], e);
		if (rc != 1 || (r > 0 && m->n != n))
			return rc < 0 ? rc : 0;
		n = m->n;
		end = r == 0 ? m->term[n] : end;
		bool wrong = false, first = false;
		for (uint32_t i = 0; i < n; i++) {
			wrong |= count[r > 0][i] > 1 || (count[r > 0][i] == 0 && count[0][i] > 0);
			first |= r > 0 && count[0][i] == 0 && count[1][i] > 0;
		}
		m->term[n] = first && !wrong ? end : m->term[n];
		*said = wrong || first;
		rc = *said ? say(m, g, count[r > 0 && wrong], e) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

int
acc_rule_terms(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct terms m = {.t = t};
	struct acc_ids known = {0};
	unsigned tried = 0;
	bool said = false;
	int rc = 0;
	(void)room;
	if (t->scattered || t->nstep == 0 || g->n != t->f->nrank)
		return 0;
	m.x = malloc((size_t)(MOST_TERMS + 1) * MOST_ELEMENTS * sizeof *m.x);
	if (m.x == NULL)
		return acc_nomem(e);
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && !said;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || c->k->backward || c->k->talks)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n && rc == 0 && !said; j++) {
			const struct acc_replica_seen *w = &t->seen[j];
			if (!w->leaf || acc_ids_get(&known, w->mark) != ACC_NOID ||
				tried == MOST_WEIGHTS)
				continue;
			rc = acc_ids_put(&known, w->mark, j, false, e);
			if (rc < 0 || !gradients_of(&m, w))
				continue;
			tried++;
			rc = judge(&m, g, w, &said, e);
		}
	}
	acc_ids_release(&known);
	free(m.x);
	return rc;
}

/* --- what comes too late --- */

/* The operand of a sum in place that a reduction of the group made, and the gradient of a weight that it is added to, which no
 * reduction was given; false: it is none. */
static bool
adds_late(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, const struct acc_replica_seen **sum,
	const struct acc_replica_seen **own)
{
	*sum = *own = NULL;
	if (c->k->backward || c->k->talks || !c->in_place || c->info == NULL ||
		c->info->cls != ACC_OP_ADD)
		return false;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		if (s->out || !s->real || s->n < 2 || s->mark == 0)
			continue;
		const uint32_t by = acc_seen_reduced(t, s);
		const struct acc_seen_call *r = by == ACC_NOID ? NULL : &t->call[by];
		if (r != NULL && by < s->call && (*sum == NULL) &&
			(!r->k->talks || acc_seen_among(t, r, g)))
			*sum = s;
		else if (acc_seen_weight(t, s) != NULL && !acc_seen_given(t, s))
			*own = s;
	}
	const struct acc_replica_seen *out = acc_seen_real(t, c, true);
	return *sum != NULL && *own != NULL && out != NULL && !acc_seen_given(t, out);
}

int
acc_rule_late(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	const struct acc_seen_call *first = NULL;
	uint32_t n = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *sum, *own;
		bool far = false;
		if (c->k->step != t->step[0] || !adds_late(t, g, c, &sum, &own) ||
			!acc_replicas_peers(t, g, c, room) ||
			!acc_replicas_marked(t, g, room, (uint32_t)(sum - t->seen) - c->first))
			continue;
		int rc = acc_replicas_far(t, g, room, (uint32_t)(own - t->seen) - c->first, &far,
			e);
		if (rc < 0)
			return rc;
		n += far;
		first = far && first == NULL ? c : first;
	}
	return n < LIMIT_REPLICA_SCALED
		       ? 0
		       : acc_replicas_blame(t, g, acc_seen_real(t, first, true)->line,
				 acc_say(&t->f->mem,
					 "adds a gradient of a weight that differs between the ranks to what they summed up "
					 "already, as %u calls do, and no reduction is given the sum: gradients must be "
					 "joined when all are added up",
					 n),
				 1, 0, e);
}
