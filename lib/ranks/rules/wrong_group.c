/* Gradients that are joined are those of the same weight, in the same order. */
#include "ranks/asked.h"
#include "acc/say.h"

#include <string.h>

#include "replay/limits.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

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
unlike_weight(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, struct acc_joining *out,
	struct acc_err *e)
{
	const struct acc_replica_seen *w[2] = {NULL, NULL};
	bool differ = false, known = true;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_replica_seen *s = operand(t, peer[i], j);
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
	out->alike += known && !differ;
	out->unlike += known && differ;
	if (known && differ && out->unlike == 1) {
		out->reduction = peer[0];
		out->weight[0] = w[0];
		out->weight[1] = w[1];
	}
	return 1;
}

int
acc_seen_unlike(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_joining *out, struct acc_err *e)
{
	const uint64_t before = out->alike;
	int rc = 1;
	for (uint32_t j = 0; rc == 1; j++)
		rc = unlike_weight(t, g, peer, j, out, e);
	if (out->reduction == peer[0])
		out->beside = out->alike - before;
	return rc;
}

/* Has a rank that is none of the group the weight that the first one has? */
static bool
elsewhere(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w)
{
	const struct acc_seen_call *c = &t->call[w->call];
	for (size_t i = 0; i < t->f->nrank; i++) {
		bool inside = false;
		for (uint32_t j = 0; j < g->n; j++)
			inside |= g->rank[j] == t->f->rank[i];
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
by_parts(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *const *w, uint64_t varied)
{
	uint32_t n[2] = {0, 0};
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_seen_call *c = acc_replicas_call(t, t->call[w[0]->call].k->step,
			g->rank[i], t->call[w[0]->call].k->key);
		for (uint32_t j = 0; c != NULL && j < c->n; j++)
			for (int k = 0; k < 2; k++)
				n[k] += t->seen[c->first + j].pos == w[0]->pos &&
					t->seen[c->first + j].mark == w[k]->mark;
	}
	return n[0] > 1 && n[1] > 1 && n[0] + n[1] == g->n && varied > 0;
}

/* One weight, or all of them, are not what they should be; or some are joined that are others. */
int
acc_rule_unlike(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_joining *j,
	uint64_t varied, const struct acc_seen_call **room, struct acc_err *e)
{
	const struct acc_seen_call *c = j->reduction;
	const struct acc_replica_seen *const *w = j->weight;
	bool is = j->unlike > 1 && j->alike == 0 && varied > 0;
	int rc = is ? acc_replicas_moved(t, g, w[0], room, &is, e) : 0;
	if (j->unlike == 0 || rc < 0 || is)
		return rc;
	/* The first one has it, too: for another op call. */
	const bool both = acc_ids_get(&t->first,
				  acc_seen_place(t->call[w[0]->call].k->step,
					  t->call[w[0]->call].k->rank, w[1]->mark)) != ACC_NOID;
	/* The group is right for others that it joins with it; or nothing but gradients is of several ranks. */
	const bool right = (j->beside >= LIMIT_REPLICA_SCALED && j->beside >= 2 * j->unlike &&
				   !acc_seen_exchanged(t, &t->call[w[0]->call])) ||
			   (g->n == t->f->nrank && acc_seen_own_data(t, g));
	if ((right || ((j->unlike == 1 || j->alike == 0) && !by_parts(t, g, w, varied))) && !both &&
		!elsewhere(t, g, w[0]))
		return ACC_RULE(t->f, unequal_weight,
			acc_replicas_blame(t, g, w[1]->line,
				SAY(t,
					"is a weight that is not the same on rank %lld and on rank %lld, which join its"
					" gradients",
					(long long)t->call[w[0]->call].k->rank,
					(long long)t->call[w[1]->call].k->rank),
				1, 0, e));
	const char *a = acc_replicas_name(t, w[0]->line, e),
		   *b = acc_replicas_name(t, w[1]->line, e);
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].n > 1)
			return acc_replicas_blame(t, g, t->seen[i].line,
				strcmp(a, b) == 0
					? SAY(t,
						  "joins the gradients of weights that are not the same: that of"
						  " %s on rank %lld, of %s on rank %lld: is it the right group?",
						  a, (long long)t->call[w[0]->call].k->rank, b,
						  (long long)t->call[w[1]->call].k->rank)
					: SAY(t,
						  "joins the gradient of the weight of %s on rank %lld with that of %s"
						  " on rank %lld: is it the same order on all ranks?",
						  a, (long long)t->call[w[0]->call].k->rank, b,
						  (long long)t->call[w[1]->call].k->rank),
				1, 0, e);
	return t->lost;
}
