/* By what the gradients of weights are scaled on their way to the optimizer: all by one number, however many ranks
 * join them, for one loss was scaled. */
#include "replay/limits.h"
#include "acc/say.h"
#include "ranks/account.h"
#include "ranks/scaling.h"

#include <math.h>
#include <stdlib.h>

static bool
equal(double a, double b)
{
	return fabs(a / b - 1) < 1e-6;
}

static size_t
as_many(const struct acc_ways *w, double factor)
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
one_less(struct acc_ways *w, const struct acc_rank_group *g, struct acc_err *e)
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

/* Does a rank divide something behind its backward pass that no op call made? It may be a gradient of several, or of more
 * than what an op call was given. */
static int
divides_unknown(struct acc_ways *w, bool *is, struct acc_err *e)
{
	const struct acc_replicas *t = w->t;
	*is = false;
	for (size_t i = acc_calls_of(t, w->rank); i < t->f->ncall && !*is; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		double v = 1;
		if (c->k->step != t->step[0] || !c->behind || c->info == NULL ||
			c->info->cls != ACC_OP_MUL)
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
static const struct acc_way *
of_copies(const struct acc_ways *w, const struct acc_rank_group *g, const struct acc_way *a,
	const struct acc_way *b)
{
	const struct acc_way *few = a->ranks < b->ranks ? a : b, *all = few == a ? b : a;
	const uint32_t n = few->joined ? few->ranks : 1;
	if (g->data_alike || all->ranks != g->n || n == g->n || !equal(all->factor * g->n, 1) ||
		!equal(few->factor * n, 1) || as_many(w, few->factor) < LIMIT_REPLICA_SCALED ||
		as_many(w, all->factor) < LIMIT_REPLICA_SCALED)
		return NULL;
	bool exchanged = true;
	for (size_t i = 0; i < w->n; i++) {
		if (w->way[i].ranks != (equal(w->way[i].factor, few->factor) ? few : all)->ranks)
			return NULL;
		exchanged &= w->way[i].ranks != few->ranks ||
			     acc_seen_exchanged(w->t, w->way[i].call);
	}
	return exchanged ? few : NULL;
}

/* Do two ranks make other gradients of the weights that an op call is given? */
static bool
makes_parts(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *w = &t->seen[i],
					      *o = acc_seen_there(t, w, c->k->step, g->rank[1]);
		if (!w->leaf || o == NULL || !o->leaf)
			continue;
		const struct acc_replica_seen *a = acc_seen_gradient(t, c->k->step, c->k->rank, w),
					      *b = acc_seen_gradient(t, c->k->step, g->rank[1], o);
		if (a != NULL && b != NULL && a->mark != b->mark)
			return true;
	}
	return false;
}

/* Weights that ranks which are given the same data make parts of a gradient of: the first whose gradient is a mean over them,
 * while that of three others, which they have parts of, ends as it is; *n: how many others. NULL: none. */
static const struct acc_way *
mean_of_parts(const struct acc_ways *w, const struct acc_rank_group *g, uint64_t *n)
{
	const struct acc_way *mean = NULL;
	*n = 0;
	for (size_t i = 0; i < w->n && g->data_alike && g->weights_differ; i++) {
		const struct acc_way *x = &w->way[i];
		*n += !x->joined && equal(x->factor, 1);
		if (mean == NULL && x->joined && x->ranks == g->n && equal(x->factor * g->n, 1) &&
			makes_parts(w->t, g, x->call))
			mean = x;
	}
	return *n < LIMIT_REPLICA_SCALED ? NULL : mean;
}

static int
say_mean(struct acc_ways *w, const struct acc_rank_group *g, const struct acc_way *mean, uint64_t n,
	struct acc_err *e)
{
	return acc_replicas_blame(w->t, g, mean->by,
		acc_say(&w->t->f->mem,
			"is a mean over %u ranks of parts of a weight's gradient, which they make of the same data;"
			" gradients of %llu other weights end as they are: it is %u"
			" times too small beside them",
			g->n, (unsigned long long)n, g->n),
		1, 0, e);
}

static int
say_copies(struct acc_ways *w, const struct acc_rank_group *g, const struct acc_way *few,
	struct acc_err *e)
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

/* The same, measured: of all weights that all ranks of the group hold, and no others, and only by a number that is no norm's.
 * 0 or < 0. */
static int
measured(struct acc_replicas *t, const struct acc_rank_group *g, struct acc_scale *out,
	struct acc_err *e)
{
	const struct acc_account *first = NULL;
	for (size_t i = 0; i < t->naccount; i++) {
		const struct acc_account *a = &t->account[i];
		uint32_t n = 0;
		if (t->call[a->d->call].k->rank != g->rank[0] || !acc_account_ends(t, a))
			continue;
		for (uint32_t k = 0; k < a->nrank && acc_account_has(a, k); k++)
			for (uint32_t r = 0; r < g->n; r++)
				n += g->rank[r] == a->rank[k];
		const double factor = acc_account_factor(a);
		const double simple = factor < 1 ? 1 / rint(1 / factor) : rint(factor);
		const bool known = n == g->n && a->nrank == n &&
				   fabs(factor / simple - 1) < LIMIT_RANKS_SIMPLE;
		if (!known || (out->n > 0 && out->factor != simple)) {
			out->n = 0;
			return 0;
		}
		first = first == NULL ? a : first;
		*out = (struct acc_scale){out->n + 1, simple, first->d->line};
	}
	return out->n == 0 ? 0 : acc_account_line(t, first, &out->line, e);
}

int
acc_seen_scale(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_scale *out, struct acc_err *e)
{
	struct acc_ways w = {.t = t, .rank = g->rank[0]};
	*out = (struct acc_scale){.n = 0};
	int rc = t->nstep == 0 ? 0 : acc_ways_collect(&w, g, room, e);
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
	if (rc == 0 && w.n == 0)
		rc = measured(t, g, out, e);
	free(w.way);
	return rc;
}

int
acc_rule_factor(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_ways w = {.t = t, .rank = g->rank[0]};
	const struct acc_way *odd = NULL;
	size_t most = 0, best = 0;
	int rc = t->nstep == 0 || g->n != t->f->nrank ? 0 : acc_ways_collect(&w, g, room, e);
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
	uint64_t others = 0;
	const struct acc_way *mean = rc == 0 ? mean_of_parts(&w, g, &others) : NULL;
	if (mean != NULL) {
		rc = say_mean(&w, g, mean, others, e);
		free(w.way);
		return rc;
	}
	bool two = odd != NULL && most + as_many(&w, odd->factor) == w.n;
	const struct acc_way *few = two ? of_copies(&w, g, &w.way[best], odd) : NULL;
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
		rc = acc_replicas_tell(t, g, again != NULL ? again->line : odd->by,
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
