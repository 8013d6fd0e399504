/* Ranks that hold parts of weights, of a sequence or of gradients: what they are given beside these is the same,
 * and what is drawn for parts is not. */
#include "replay/limits.h"
#include "acc/say.h"
#include "ranks/asked.h"

#include <math.h>

enum { MOST_HOPS = 24, MOST_SCALINGS = 8 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

static bool
is_sum(const struct acc_replicas *t, const struct acc_seen_call *c, const struct acc_rank_group *g)
{
	return c->k->talks && c->reduces && !c->picks && acc_seen_among(t, c, g);
}

/* --- other data --- */

struct way {               /* from a sum over the ranks back to what it is made of */
	bool parts, whole; /* it passed a part of a weight, and then a whole one */
	const struct acc_seen_call *at;
};

/* Of an op call, on all ranks: the input that is not the same, if one is. 1; 0: go no further; < 0. */
static int
back(struct acc_replicas *t, const struct acc_rank_group *g, struct way *w,
	const struct acc_seen_call **peer, const struct acc_replica_seen **next, struct acc_err *e)
{
	bool part = false, whole = false, alike = true;
	*next = NULL;
	if (!acc_replicas_peers(t, g, w->at, peer))
		return 0;
	for (uint32_t j = 0; j < w->at->n; j++) {
		const struct acc_replica_seen *s = &t->seen[w->at->first + j];
		enum acc_alike is = ACC_EQUAL;
		if (s->out || s->n < 2)
			continue;
		int rc = acc_replicas_alike(t, g, peer, j, &is, e);
		if (rc < 0)
			return rc;
		if (s->weight) {
			part |= is == ACC_APART;
			whole |= is == ACC_EQUAL;
			continue;
		}
		alike &= is < ACC_APART;
		if (is == ACC_APART && *next == NULL)
			*next = s;
	}
	w->whole |= whole && w->parts;
	w->parts |= part;
	return !alike && *next != NULL;
}

/* A sum of products by parts of weights: what these were given comes from data that are not the same, through
 * weights that are. */
static int
other_data(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, const struct acc_seen_call **peer,
	struct acc_err *e)
{
	const struct acc_replica_seen *s = acc_seen_real(t, sum[0], false);
	struct way w = {.at = NULL};
	const struct acc_replica_seen *from = s == NULL ? NULL : acc_seen_maker(t, s);
	int rc = 1;
	for (unsigned hops = 0; from != NULL && hops < MOST_HOPS; hops++) {
		w.at = &t->call[from->call];
		if (w.at->k->talks || w.at->k->backward)
			return 0;
		rc = back(t, g, &w, peer, &s, e);
		if (rc != 1)
			return rc;
		from = acc_seen_maker(t, s);
	}
	if (w.at == NULL || from != NULL || !w.whole || !s->data)
		return 0;
	const char *name = acc_replicas_name(t, sum[0]->k->line, e);
	const struct acc_replica_seen *out = acc_seen_real(t, w.at, true);
	return out == NULL
		       ? 0
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "is made of different data on each rank, by a weight that is the same on all; parts "
					 "of weights then multiply it, and %s sums that up: these ranks must be given the "
					 "same data",
					 name),
				 1, 0, e);
}

/* --- parts of gradients --- */

/* Is it a part of a gradient that was dealt out among the group, as numbers scaled it? */
static bool
dealt_out(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *x)
{
	for (unsigned hops = 0; x != NULL && hops < MOST_SCALINGS; hops++) {
		const struct acc_replica_seen *made = acc_seen_maker(t, x);
		const struct acc_seen_call *c = made == NULL ? NULL : &t->call[made->call];
		if (c == NULL || c->k->backward)
			return false;
		if (c->k->talks)
			return c->scatters && is_sum(t, c, g);
		if (c->info == NULL || c->info->cls != ACC_OP_MUL)
			return false;
		x = acc_seen_real(t, c, false);
	}
	return false;
}

static int
scaled_apart(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	const struct acc_replica_seen *x = acc_seen_real(t, c, false),
				      *out = acc_seen_real(t, c, true);
	double v[2], near = 0;
	if (c->info == NULL || c->info->cls != ACC_OP_MUL || x == NULL || out == NULL ||
		!dealt_out(t, g, x))
		return 0;
	int rc = acc_replicas_near(t, x, &near, e);
	for (uint32_t i = 0; i < g->n && rc >= 0; i++) {
		rc = acc_seen_factor(t, peer[i], &v[i > 0], e);
		if (rc != 1)
			return rc;
		if (i == 0 || fabs(v[1] - v[0]) <= near * fabs(v[0]))
			continue;
		return acc_replicas_blame(t, g, out->line,
			SAY(t,
				"is scaled by %.6g on rank %lld and by %.6g on rank %lld: these are parts of the"
				" same gradients, which one number must scale",
				v[0], (long long)c->k->rank, v[1], (long long)peer[i]->k->rank),
			fabs(v[1] / v[0] - 1), near, e);
	}
	return rc < 0 ? rc : 0;
}

/* --- what is drawn for parts --- */

/* Of two ranks: are the same elements set to 0, of those that are none? */
static int
same_mask(struct acc_replicas *t, const struct acc_replica_seen *const s[4], bool *is,
	struct acc_err *e)
{
	enum { BLOCK = ACC_CHUNK / 2 };
	double *x[4] = {t->a, t->a + BLOCK, t->b, t->b + BLOCK};
	uint64_t zero = 0, kept = 0;
	int rc = 0;
	*is = s[0]->n == s[2]->n && s[0]->n == s[1]->n && s[0]->n == s[3]->n;
	for (uint64_t at = 0; at < s[0]->n && rc == 0 && *is; at += BLOCK) {
		size_t n = s[0]->n - at < BLOCK ? (size_t)(s[0]->n - at) : BLOCK;
		for (int i = 0; i < 4 && rc == 0 && *is; i++)
			rc = acc_seen_elements(t, s[i], at, n, x[i], is, e);
		for (size_t i = 0; i < n && rc == 0 && *is; i++) {
			if (x[0][i] == 0 || x[2][i] == 0)
				continue;
			zero += x[1][i] == 0;
			kept += x[1][i] != 0;
			*is &= (x[1][i] == 0) == (x[3][i] == 0);
		}
	}
	/* Of all masks that keep as many. */
	const double n = (double)(zero + kept), k = (double)zero;
	*is &= lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) > -log(LIMIT_REPLICA_MASK);
	return rc;
}

/* Who dealt out what a tensor is, or is with something, such as a bias, added to it; NULL. */
static const struct acc_seen_call *
dealer(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_seen_call *c = s == NULL ? NULL : acc_seen_caller(t, acc_seen_maker(t, s));
	if (c == NULL || c->k->talks || c->info == NULL || c->info->cls != ACC_OP_ADD)
		return c;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_seen_call *from = t->seen[i].out || t->seen[i].n != s->n
							   ? NULL
							   : acc_seen_caller(t,
								     acc_seen_maker(t,
									     &t->seen[i]));
		if (from != NULL && from->scatters)
			return from;
	}
	return NULL;
}

static int
drawn_alike(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct acc_replica_seen *in = acc_seen_real(t, peer[0], false),
				      *out = acc_seen_real(t, peer[0], true);
	const struct acc_seen_call *from = dealer(t, in);
	if (out == NULL || from == NULL || in->n != out->n || !from->scatters ||
		!is_sum(t, from, g) ||
		acc_replicas_marked(t, g, peer, (uint32_t)(in - t->seen) - peer[0]->first))
		return 0;
	bool is = true;
	int rc = 0;
	for (uint32_t i = 1; i < g->n && rc == 0 && is; i++)
		rc = same_mask(t,
			(const struct acc_replica_seen *const[]){in, out,
				acc_seen_real(t, peer[i], false), acc_seen_real(t, peer[i], true)},
			&is, e);
	return rc < 0 || !is
		       ? rc
		       : acc_replicas_blame(t, g, out->line,
				 "drops the same elements on all ranks, of parts that were dealt out among"
				 " them: each must draw random numbers of its own",
				 1, 0, e);
}

int
acc_rule_part(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	if (!c->k->backward && c->chooses)
		return ACC_RULE(t->f, routing, acc_rule_choice(t, g, peer, room, e));
	if (c->k->backward || c->k->step != t->step[0])
		return 0;
	if (c->k->talks) {
		int rc = !is_sum(t, c, g)
				 ? 0
				 : ACC_RULE(t->f, means_and_norms, acc_rule_means(t, g, peer, e));
		if (rc == 0 && is_sum(t, c, g))
			rc = ACC_RULE(t->f, means_and_norms, acc_rule_norms(t, g, peer, room, e));
		return rc == 0 && g->weights_differ && is_sum(t, c, g)
			       ? other_data(t, g, peer, room, e)
			       : rc;
	}
	return c->info != NULL && c->info->cls == ACC_OP_RANDOM ? drawn_alike(t, g, peer, e)
								: scaled_apart(t, g, peer, e);
}
