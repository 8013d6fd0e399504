/* The gradient that losses begin with: of one that is divided by a number of the ranks it fits that number. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/asked.h"

#include <math.h>

enum { MOST_HOPS = 6 };

/* Does a call make a number of one, by a product, which wants a gradient as that does? */
static bool
scales(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *out = NULL;
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		out = t->seen[j].out ? &t->seen[j] : out;
	return c->info != NULL && c->info->cls == ACC_OP_MUL && out != NULL && out->n == 1 &&
	       out->wants;
}

/* What the op calls that are given a loss, one after the other, scale it by, if these are numbers and no tensors; *hops: how
 * many there are. 1; 0: not known; < 0. */
static int
scaled_by(struct acc_replicas *t, const struct acc_seen_call *loss, double *by, uint32_t *hops,
	struct acc_err *e)
{
	*by = 1;
	for (*hops = 0; *hops < MOST_HOPS; ++*hops) {
		const struct acc_replica_seen *out = NULL;
		for (uint32_t j = loss->first; j < loss->first + loss->n; j++)
			out = t->seen[j].out && t->seen[j].n == 1 && t->seen[j].mark != 0
				      ? &t->seen[j]
				      : out;
		if (out == NULL)
			return 0;
		const struct acc_seen_call *c = acc_seen_user(t, out, loss);
		uint32_t n = 0;
		double v = 1;
		if (c == NULL || c->k->backward || !scales(t, c))
			return c == NULL || c->k->backward || *hops > 0;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			n += !t->seen[j].out;
		if (n > 1)
			return 0;
		int rc = acc_seen_times(t, c, &v, e);
		if (rc != 1)
			return rc;
		*by *= v;
		loss = c;
	}
	return 0;
}

/* Has a rank as many losses as the first one? One that has a single micro-batch divides by nothing. */
static bool
as_many_losses(const struct acc_replicas *t, const struct acc_rank_group *g)
{
	uint32_t n[2] = {0, 0};
	bool same = true;
	for (uint32_t k = 0; k < g->n && same; k++) {
		n[k > 0] = 0;
		for (size_t i = acc_calls_of(t, g->rank[k]); i < t->f->ncall; i = t->call[i].next)
			n[k > 0] += t->call[i].loss && t->call[i].k->step == t->step[0];
		same = k == 0 || n[0] == n[1];
	}
	return same;
}

static int
began(struct acc_replicas *t, const struct acc_seen_call *loss, double *v, struct acc_err *e)
{
	const struct acc_seen_call *back = acc_seen_backward(t, loss);
	for (uint32_t j = back == NULL ? 0 : back->first; back != NULL && j < back->first + back->n;
		j++)
		if (!t->seen[j].out)
			return t->seen[j].n == 1 ? acc_seen_number(t, t->seen[j].line, v, e) : 0;
	return 0;
}

/* A rank that scales its loss by no number, where others, with as many labels, divide by a whole one. */
int
acc_rule_begins(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	const bool all = t->nstep > 0 && as_many_losses(t, g);
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && all; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i], *one = NULL, *other = NULL;
		double by[2] = {1, 1}, v[2] = {1, 1};
		uint32_t hops[2] = {0, 0};
		if (c->k->step != t->step[0] || !c->loss || !acc_replicas_peers(t, g, c, peer))
			continue;
		int rc = 1;
		for (uint32_t k = 0; k < g->n && rc == 1; k++) {
			double scale = 1, seed = 1;
			uint32_t n = 0;
			rc = scaled_by(t, peer[k], &scale, &n, e);
			rc = rc == 1 ? began(t, peer[k], &seed, e) : rc;
			rc = rc == 1 ? fabs(seed - scale) <= LIMIT_RANKS_ROUNDED * fabs(seed) : rc;
			const bool is = scale == 1;
			*(is ? &one : &other) = peer[k];
			by[!is] = scale;
			v[!is] = seed;
			hops[!is] = n;
		}
		if (rc < 0)
			return rc;
		/* A number that is 1 there, as that of micro-batches may be, is none that a rank forgets. */
		if (rc != 1 || one == NULL || other == NULL || !(by[1] < 1) ||
			!acc_divides(by[1]) || (hops[0] > 0 && hops[0] >= hops[1]))
			continue;
		return acc_replicas_blame(t, g, acc_seen_backward(t, one)->k->line,
			acc_say(&t->f->mem,
				"begins with the gradient %.6g on rank %lld, and with %.6g on rank %lld, which divides"
				" its loss by %.6g: the loss of rank %lld counts as many times as much",
				v[0], (long long)one->k->rank, v[1], (long long)other->k->rank,
				1 / by[1], (long long)one->k->rank),
			1, 0, e);
	}
	return 0;
}
