/* The reductions of one line, before ranks go backward: all sums, all means or all largest. */
#include "acc/say.h"
#include "ranks/asked.h"
#include "ranks/back.h"

#include <math.h>
#include <stdlib.h>

enum { FEW_OTHERS = 2 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Who made it. */
static const struct acc_seen_call *
maker_of_sum(const struct acc_replicas *t, const struct acc_seen_call *sum)
{
	return acc_seen_caller(t, acc_seen_made_for_sum(t, sum));
}

enum kind { KIND_UNKNOWN, KIND_SUM, KIND_MEAN, KIND_PICK };

/* What a reduction makes, with the number that scales it. < 0: failure. */
static int
kind_of(struct acc_replicas *t, const struct acc_seen_call *c, enum kind *out, struct acc_err *e)
{
	const double n = c->nmember == 0 ? (double)t->f->nrank : c->nmember;
	const struct acc_replica_seen *sum = acc_seen_real(t, c, true);
	const uint32_t next = sum == NULL || sum->mark == 0
				      ? ACC_NOID
				      : acc_ids_get(&t->scaled, acc_seen_id(t, sum));
	double v = 0;
	*out = sum == NULL  ? KIND_UNKNOWN
	       : c->picks   ? KIND_PICK
	       : c->average ? KIND_MEAN
			    : KIND_SUM;
	if (*out != KIND_SUM || next == ACC_NOID)
		return 0;
	if (next <= sum->call) { /* the same numbers as before: what scales these is not known */
		*out = KIND_UNKNOWN;
		return 0;
	}
	int rc = acc_seen_factor(t, &t->call[next], &v, e);
	if (rc == 1 && fabs(v * n - 1) < 1e-6)
		*out = KIND_MEAN;
	return rc < 0 ? rc : 0;
}

static int
say_kind(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call *like, enum kind kind, uint32_t n, struct acc_err *e)
{
	const char *name = acc_replicas_name(t, like->k->line, e);
	return acc_replicas_blame(t, g, acc_seen_real(t, c, true)->line,
		kind == KIND_MEAN
			? SAY(t, "is a mean over the ranks, while %u others of its line, such as %s, are none",
				  n, name)
		: kind == KIND_SUM
			? SAY(t, "is a sum over the ranks, while %u others of its line, such as %s, are none",
				  n, name)
			: SAY(t,
				  "is the largest or least of the ranks, while %u others of its line, such as %s, are sums"
				  " or means",
				  n, name),
		1, 0, e);
}

/* Of the reductions of a line, before ranks go backward: one that is another than all others. */
static int
judge_kinds(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_likes *all, size_t from, size_t to, struct acc_err *e)
{
	uint32_t n[KIND_PICK + 1] = {0};
	size_t at[KIND_PICK + 1] = {0};
	/* A loop over several sums, which one line joins, makes of each what it wants. */
	const struct acc_seen_call *made = maker_of_sum(t, &t->call[all->like[from].call]), *other;
	for (size_t i = from; i < to; i++) {
		enum kind kind;
		other = maker_of_sum(t, &t->call[all->like[i].call]);
		if (other == NULL || made == NULL || other->line != made->line)
			return 0;
		int rc = kind_of(t, &t->call[all->like[i].call], &kind, e);
		if (rc < 0)
			return rc;
		at[kind] = i;
		n[kind]++;
	}
	for (int k = KIND_SUM; k <= KIND_PICK && n[KIND_UNKNOWN] == 0; k++)
		for (int o = KIND_SUM; o <= KIND_PICK; o++)
			if (n[k] == 1 && o != k && n[o] >= FEW_OTHERS && n[o] + 1 == to - from)
				return say_kind(t, g, &t->call[all->like[at[k]].call],
					&t->call[all->like[at[o]].call], k, n[o], e);
	return 0;
}

int
acc_rule_kinds(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_seen_likes all = {.n = 0};
	uint32_t backward = 0;
	(void)room;
	if (t->nstep == 0 || g->n != t->f->nrank)
		return 0;
	while (backward < t->f->ncall &&
		!(t->call[backward].k->backward && t->call[backward].k->rank == g->rank[0]))
		backward++;
	int rc = acc_seen_likes_of(t, g->rank[0], &all, e);
	for (size_t i = 0, end; i < all.n && rc == 0; i = end) {
		const struct acc_seen_call *c = &t->call[all.like[i].call];
		end = acc_seen_likes_end(&all, i);
		if (c->k->talks && c->reduces && !c->scatters && all.like[end - 1].call < backward)
			rc = judge_kinds(t, g, &all, i, end, e);
	}
	free(all.like);
	return rc;
}
