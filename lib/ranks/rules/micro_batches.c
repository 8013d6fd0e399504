/* Weights that several op calls of one line are given, as those of micro-batches are: the gradients of all of
 * them are joined over the ranks, each once. What a reduction is given is found again as a sum of them. */
#include "replay/limits.h"
#include "acc/say.h"
#include "base/order.h"
#include "ranks/asked.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_USES = 8, FEW_BY_MEAN = 3 };

struct use { /* a weight's gradients, in the order in which they were made */
	const struct acc_replica_seen *w; /* where it is given first */
	const struct acc_replica_seen *g[MOST_USES];
	double mean[MOST_USES][2]; /* and how far it may be off */
	uint32_t n;
	uint32_t joined;            /* which of them reductions are given: bits */
	const struct given *last;   /* of these reductions */
	const struct given *before; /* what that one is given was summed up by this one already */
	bool data;                  /* known from the elements */
};

struct given { /* a reduction, and its operand */
	const struct acc_seen_call *c;
	const struct acc_replica_seen *in, *out;
	double mean[2][2]; /* of what it is given, of what it makes */
	bool told, whole;  /* the first is known; and the second, which is of as many elements */
	bool known;        /* of which weight it is */
	bool of_all;       /* gradients of this one: */
	size_t of;
};

struct micro {
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	int64_t rank;
	struct use *use;
	struct given *red;
	size_t nuse, cap_use, nred, cap_red;
};

/* --- which weights, which reductions --- */

struct leaf {
	uint64_t mark, line;
	uint32_t at;
};

ACC_ORDER_2(by_mark, struct leaf, mark, at)

ACC_ORDER_OF(by_time, struct acc_replica_seen, call)

/* The op calls from `from` on are given the same weight. */
static int
add_use(struct micro *m, const struct leaf *from, size_t n, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	const struct acc_replica_seen *w = &t->seen[from->at];
	struct use u = {.w = w};
	bool flat = false;
	int rc = n < 2 || n > MOST_USES ? 0 : acc_replicas_flat(t, acc_seen_moved(t, w), &flat, e);
	if (rc < 0 || n < 2 || n > MOST_USES || flat)
		return rc;
	for (size_t i = 0; i < n; i++) {
		const struct acc_fleet_call *k = t->call[t->seen[from[i].at].call].k;
		u.g[u.n] = from[i].line != 0 && from[i].line == from->line
				   ? acc_seen_gradient(t, k->step, k->rank, &t->seen[from[i].at])
				   : NULL;
		if (u.g[u.n++] == NULL)
			return 0;
	}
	qsort(u.g, u.n, sizeof *u.g, by_time);
	for (uint32_t i = 0; i < u.n; i++) {
		bool known = false;
		rc = acc_replicas_mean(t, u.g[i], u.mean[i], &known, e);
		if (rc < 0 || !known)
			return rc;
	}
	if (!ACC_ROOM(m->use, m->cap_use, m->nuse + 1, e))
		return ACC_ENOMEM;
	m->use[m->nuse++] = u;
	return 0;
}

/* out: what it makes of `in`, or, where that is one of several, or scaled before, what it makes of all. */
static int
add_operand(struct micro *m, const struct acc_seen_call *c, const struct acc_replica_seen *given,
	const struct acc_replica_seen *out, struct acc_err *e)
{
	const struct acc_replica_seen *in = acc_seen_unscaled(m->t, given);
	struct given r = {.c = c, .in = in, .out = out};
	bool known = false;
	int rc = acc_replicas_mean(m->t, in, r.mean[0], &r.told, e);
	if (rc == 0 && out->n == in->n && in == given)
		rc = acc_replicas_mean(m->t, out, r.mean[1], &known, e);
	if (rc < 0)
		return rc;
	r.whole = known;
	if (!ACC_ROOM(m->red, m->cap_red, m->nred + 1, e))
		return ACC_ENOMEM;
	m->red[m->nred++] = r;
	return 0;
}

/* A reduction of one gradient, or of several that were joined. */
static int
add_reduction(struct micro *m, const struct acc_seen_call *c, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	const struct acc_replica_seen *in = NULL, *out = NULL;
	int rc = 0;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		if (s->n < 2 || !s->real)
			continue;
		if (s->out)
			out = out == NULL ? s : out;
		else if (in == NULL || s->n > in->n)
			in = s;
	}
	if (in == NULL || out == NULL)
		return 0;
	const struct acc_seen_call *join = acc_seen_joined(t, in);
	if (join == NULL)
		return add_operand(m, c, in, out, e);
	for (uint32_t i = join->first; i < join->first + join->n && rc == 0; i++)
		if (!t->seen[i].out && t->seen[i].real && t->seen[i].n > 1)
			rc = add_operand(m, c, &t->seen[i], out, e);
	return rc;
}

static int
collect(struct micro *m, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	struct leaf *leaf = NULL;
	size_t n = 0, cap = 0;
	bool backward = false;
	int rc = 0;
	for (size_t i = acc_calls_of(t, m->rank); i < t->f->ncall && rc == 0; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		backward |= c->k->backward;
		if (c->k->talks && backward && c->reduces && !c->picks &&
			acc_seen_among(t, c, m->g))
			rc = add_reduction(m, c, e);
		for (uint32_t j = c->first;
			j < c->first + c->n && !c->k->talks && !c->behind && rc == 0; j++) {
			if (!t->seen[j].leaf)
				continue;
			void *p = acc_grow(leaf, &cap, n + 1, sizeof *leaf, e);
			rc = p == NULL ? ACC_ENOMEM : 0;
			leaf = p == NULL ? leaf : p;
			if (rc == 0)
				leaf[n++] = (struct leaf){acc_seen_moved(t, &t->seen[j])->mark,
					c->line, j};
		}
	}
	if (n > 1)
		qsort(leaf, n, sizeof *leaf, by_mark);
	for (size_t i = 0, end; i < n && rc == 0; i = end) {
		for (end = i + 1; end < n && leaf[end].mark == leaf[i].mark; end++)
			;
		rc = add_use(m, leaf + i, end - i, e);
	}
	free(leaf);
	return rc;
}

/* --- what a reduction is given --- */

/* Is it the sum of the gradients from..to, and of what `base` made, unless NULL? */
static int
is_sum(struct micro *m, const struct given *r, struct use *u, uint32_t from, uint32_t to,
	const struct given *base, bool *is, struct acc_err *e)
{
	const struct acc_replica_seen *term[MOST_USES + 1];
	double off = r->mean[0][0], room = r->mean[0][1];
	uint32_t n = 0;
	if (base != NULL) {
		term[n++] = base->out;
		off -= base->mean[1][0];
		room += base->mean[1][1];
	}
	for (uint32_t i = from; i < to; i++) {
		term[n++] = u->g[i];
		off -= u->mean[i][0];
		room += u->mean[i][1];
	}
	*is = n == 1 && term[0]->mark == r->in->mark;
	u->data |= *is;
	return n < 2 || !r->told || fabs(off) > room
		       ? 0
		       : acc_replicas_sum(m->t, r->in, term, n, is, &u->data, e);
}

/* Some of the gradients that are there when it is called, one after another. */
static int
match(struct micro *m, struct given *r, struct use *u, struct acc_err *e)
{
	uint32_t made = 0;
	bool is = false;
	int rc = 0;
	while (made < u->n && m->t->call + u->g[made]->call < r->c)
		made++;
	for (uint32_t n = made; n > 0 && rc == 0 && !is; n--)
		for (uint32_t from = 0; from + n <= made && rc == 0 && !is; from++) {
			rc = is_sum(m, r, u, from, from + n, NULL, &is, e);
			if (rc < 0 || is) {
				u->joined |= is ? ((1U << n) - 1) << from : 0;
				continue;
			}
			if (u->last == NULL || !u->last->whole || u->last->c->average ||
				u->before != NULL)
				continue;
			rc = is_sum(m, r, u, from, from + n, u->last, &is, e);
			u->before = is ? u->last : NULL;
		}
	if (is) {
		u->last = r;
		r->known = true;
	}
	return rc;
}

static int
match_all(struct micro *m, bool whole, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < m->nred && rc == 0; i++)
		for (size_t j = 0; j < m->nuse && rc == 0 && !m->red[i].known; j++) {
			struct use *u = &m->use[j];
			if (m->red[i].in->n != u->g[0]->n)
				continue;
			if (!whole) {
				rc = u->joined == (1U << u->n) - 1 ? 0 : match(m, &m->red[i], u, e);
				continue;
			}
			rc = is_sum(m, &m->red[i], u, 0, u->n, NULL, &m->red[i].known, e);
			u->joined |= m->red[i].known ? (1U << u->n) - 1 : 0;
			m->red[i].of_all = m->red[i].known;
			m->red[i].of = j;
		}
	return rc;
}

/* --- what that says --- */

/* Is something reduced that may be this, and of which nobody knows who made it? */
static bool
open_question(const struct micro *m, const struct use *u)
{
	for (size_t i = 0; i < m->nred; i++)
		if (!m->red[i].known && m->red[i].in->n == u->g[0]->n &&
			acc_seen_maker(m->t, m->red[i].in) == NULL)
			return true;
	return false;
}

/* Are the gradients that no reduction is given given to one in a later step, as where these run beside the next one? */
static bool
joined_later(const struct micro *m, const struct use *u)
{
	bool all = true;
	for (uint32_t k = 0; k < u->n && all; k++) {
		bool later = u->joined >> k & 1;
		for (size_t i = 1; i < m->t->nstep && !later; i++)
			later = acc_ids_get(&m->t->given, acc_seen_place(m->t->step[i],
								  m->t->call[u->g[k]->call].k->rank,
								  u->g[k]->mark)) != ACC_NOID;
		all = later;
	}
	return all;
}

static bool
is_wrong(const struct micro *m, const struct use *u)
{
	return u->before != NULL || (u->joined != 0 && u->joined != (1U << u->n) - 1 &&
					    !open_question(m, u) && !joined_later(m, u));
}

static int
say(struct micro *m, const struct use *u, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	uint32_t lost = 0;
	while (u->joined >> lost & 1)
		lost++;
	const char *name = acc_replicas_name(t,
		u->before != NULL ? u->before->c->k->line : u->g[lost]->line, e);
	return acc_replicas_blame(t, m->g, u->last->out->line,
		u->before != NULL
			? acc_say(&t->f->mem,
				  "sums up what %s has summed up among these ranks already, with the gradient"
				  " of a later op call added to it: what was summed up counts %u"
				  " times; gradients must be joined when all are added up",
				  name, m->g->n)
			: acc_say(&t->f->mem,
				  "is not of all gradients of its weight, which %u op calls of one line are"
				  " given: that of %s is given to no reduction; gradients must be joined"
				  " when all are added up",
				  u->n, name),
		1, 0, e);
}

/* --- of the same weights on all ranks? --- */

static bool
has(const struct micro *m, uint64_t mark)
{
	bool found = false;
	for (size_t i = 0; i < m->nuse && !found; i++)
		found = m->use[i].w->mark == mark;
	return found;
}

/* Two weights may have the same gradient, as two biases of one sum have: only what a rank does not have at all is
 * another one. */
static void
compare_sums(const struct acc_rank_group *g, const struct micro *m, struct acc_joining *out)
{
	for (size_t k = 0; k < m[0].nred; k++) {
		const struct acc_replica_seen *w[2] = {NULL, NULL};
		bool known = true, differ = false;
		for (uint32_t i = 0; i < g->n && known; i++) {
			const struct given *r = &m[i].red[k];
			known = m[i].nred == m[0].nred && r->known;
			if (!known)
				break;
			const struct acc_replica_seen *found = m[i].use[r->of].w;
			w[i > 0] = i > 0 && differ ? w[1] : found;
			known = w[0]->n == found->n &&
				(w[0]->mark == found->mark ||
					(!has(&m[i], w[0]->mark) && !has(&m[0], found->mark)));
			differ |= w[0]->mark != found->mark;
		}
		out->alike += known && !differ;
		out->unlike += known && differ;
		if (known && differ && out->unlike == 1)
			*out = (struct acc_joining){.alike = out->alike,
				.unlike = 1,
				.reduction = m[0].red[k].c,
				.weight = {w[0], w[1]}};
	}
}

int
acc_seen_sums(struct acc_replicas *t, const struct acc_rank_group *g, struct acc_joining *out,
	struct acc_err *e)
{
	struct micro *m = calloc(g->n, sizeof *m);
	int rc = m == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < g->n && rc == 0 && t->nstep > 0; i++) {
		m[i] = (struct micro){.t = t, .g = g, .rank = g->rank[i]};
		rc = collect(&m[i], e);
		if (rc == 0)
			rc = match_all(&m[i], true, e);
	}
	if (rc == 0)
		compare_sums(g, m, out);
	for (uint32_t i = 0; m != NULL && i < g->n; i++) {
		free(m[i].use);
		free(m[i].red);
	}
	free(m);
	return rc;
}

int
acc_seen_accumulated(struct acc_replicas *t, const struct acc_rank_group *g, int64_t rank,
	struct acc_accumulated **out, size_t *n, struct acc_err *e)
{
	struct micro m = {.t = t, .g = g, .rank = rank};
	size_t cap = 0;
	int rc = collect(&m, e);
	*out = NULL;
	*n = 0;
	if (rc == 0)
		rc = match_all(&m, true, e);
	if (rc == 0)
		rc = match_all(&m, false, e);
	for (size_t j = 0; j < m.nuse && rc == 0; j++) {
		const struct use *u = &m.use[j];
		const struct acc_replica_seen *sum = u->g[0];
		if (u->joined != (1U << u->n) - 1 || u->before != NULL)
			continue;
		for (size_t i = 0; i < m.nred; i++)
			sum = m.red[i].known && m.red[i].of == j && m.red[i].of_all ? m.red[i].in
										    : sum;
		void *p = acc_grow(*out, &cap, *n + 1, sizeof **out, e);
		rc = p == NULL ? ACC_ENOMEM : 0;
		*out = p == NULL ? *out : p;
		if (rc == 0)
			(*out)[(*n)++] = (struct acc_accumulated){u->w, *sum, u->g[u->n - 1]->call};
	}
	free(m.use);
	free(m.red);
	return rc;
}

/* The gradients of one rank; *said: something is wrong. */
static int
judge_rank(struct acc_replicas *t, const struct acc_rank_group *g, int64_t rank, bool *said,
	struct acc_err *e)
{
	struct micro m = {.t = t, .g = g, .rank = rank};
	const struct use *wrong = NULL;
	uint32_t n = 0;
	int rc = collect(&m, e);
	if (rc == 0)
		rc = match_all(&m, true, e);
	if (rc == 0)
		rc = match_all(&m, false, e);
	for (size_t i = 0; i < m.nuse && rc == 0; i++)
		if (is_wrong(&m, &m.use[i])) {
			/* The means of a few may be equal by chance. */
			n += m.use[i].data ? FEW_BY_MEAN : 1;
			wrong = wrong == NULL || m.use[i].last->c < wrong->last->c ? &m.use[i]
										   : wrong;
		}
	*said = rc == 0 && n >= FEW_BY_MEAN;
	if (*said)
		rc = say(&m, wrong, e);
	free(m.use);
	free(m.red);
	return rc;
}

int
acc_rule_micro(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	bool said = false;
	int rc = 0;
	(void)room;
	for (uint32_t i = 0; i < g->n && rc == 0 && !said && t->nstep > 0; i++)
		rc = judge_rank(t, g, g->rank[i], &said, e);
	return rc;
}
