/* Gradients that optimizers are given, as their account says: of all ranks that hold a weight, each has as large a part in
 * it, and so have those of all weights. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/account.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_HOPS = 3 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* --- the ranks of a weight --- */

/* Can the parts of two ranks at least be told in it, of which one is larger? even: or of which none is. */
static bool
is_uneven(const struct acc_account *a, bool *even)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->nrank; i++)
		n += a->copies[i] == 1 && acc_account_has(a, i);
	const bool same = !isnan(acc_account_factor(a));
	*even = n > 1 && same;
	return n > 1 && !same;
}

/* As it is printed. */
static bool
alike(double x, double y)
{
	char buf[2][16];
	snprintf(buf[0], sizeof buf[0], "%.3g", x);
	snprintf(buf[1], sizeof buf[1], "%.3g", y);
	return strcmp(buf[0], buf[1]) == 0;
}

/* "0.5 times that of ranks 0-6, 4 times that of rank 7" */
static const char *
shares_of(struct acc_arena *m, const struct acc_account *a)
{
	const char *all = "";
	for (uint32_t i = 0; i < a->nrank && all != NULL; i++) {
		const double share = acc_account_has(a, i) ? a->c[i] : 0;
		struct acc_which w = {.text = ""};
		bool before = false;
		for (uint32_t k = 0; k < a->nrank && !before; k++) {
			if (!alike(share, acc_account_has(a, k) ? a->c[k] : 0))
				continue;
			before = k < i;
			acc_which_add(m, &w, a->rank[k]);
		}
		if (before)
			continue;
		acc_which_end(m, &w);
		all = w.text == NULL
			      ? NULL
			      : acc_say(m, "%s%s%.3g times that of rank%s %s", all,
					i == 0 ? "" : ", ", share, w.n == 1 ? "" : "s", w.text);
	}
	return all;
}

static int
say_uneven(struct acc_replicas *t, const struct acc_account *a, uint64_t even, struct acc_err *e)
{
	const struct acc_rank_group g = {.rank = a->rank,
		.n = a->nrank,
		.who = acc_fleet_ranks(t->f, a->rank, a->nrank)};
	const struct acc_replica_seen *sum;
	const char *all = shares_of(&t->f->mem, a),
		   *to = !acc_account_ends(t, a) ? ""
						 : SAY(t, ", on its way to %s,",
							   acc_replicas_name(t, a->d->line, e));
	int rc = acc_account_reduction(t, a, &sum, e);
	return rc < 0 ? rc
		      : acc_replicas_blame(t, &g, sum == NULL ? a->d->line : sum->line,
				all == NULL || to == NULL
					? NULL
					: SAY(t,
						  "is%s the gradient of a weight that these ranks"
						  " hold: %s; those of %llu other weights have as much of each"
						  " rank's: is it averaged, or summed up, before all of it is there?",
						  to, all, (unsigned long long)even),
				1, 0, e);
}

static int
uneven(struct acc_replicas *t, struct acc_err *e)
{
	uint64_t even = 0, odd = 0;
	const struct acc_account *first = NULL;
	bool is = false;
	int rc = 0;
	for (size_t i = 0; i < t->naccount; i++) {
		const bool other = is_uneven(&t->account[i], &is);
		even += is;
		odd += other;
		first = first == NULL && other ? &t->account[i] : first;
	}
	if (even < LIMIT_REPLICA_SCALED || odd == 0 || odd >= even)
		return 0;
	const bool off = acc_rule_use(t->f, ACC_RULE_gradient_shares) == ACC_RULE_OFF;
	for (size_t i = 0; i < t->naccount && rc == 0 && !off; i++)
		if (is_uneven(&t->account[i], &is))
			rc = acc_ids_put(&t->mixed, t->account[i].w->mark, 1, true, e);
	return rc < 0 ? rc : say_uneven(t, first, even, e);
}

/* --- another weight's gradient --- */

static int
say_crossed(struct acc_replicas *t, const struct acc_account *a, const struct acc_replica_seen *own,
	const struct acc_replica_seen *other, struct acc_err *e)
{
	const int64_t who[2] = {t->call[own->call].k->rank, t->call[other->call].k->rank};
	const struct acc_rank_group g = {.rank = who, .n = 2, .who = acc_fleet_ranks(t->f, who, 2)};
	const struct acc_replica_seen *sum;
	int rc = acc_account_reduction(t, a, &sum, e);
	return rc < 0 ? rc
		      : acc_replicas_blame(t, &g, sum == NULL ? a->d->line : sum->line,
				SAY(t,
					"joins the gradients of weights that are not the same: that of"
					" %s on rank %lld, of %s on rank %lld: is it the right group?",
					acc_replicas_name(t, own->line, e), (long long)who[0],
					acc_replicas_name(t, other->line, e), (long long)who[1]),
				1, 0, e);
}

static int
crossed(struct acc_replicas *t, struct acc_err *e)
{
	for (size_t i = 0; i < t->ncrossed; i++) {
		const struct acc_account *a = &t->crossed[i];
		const int64_t rank = t->call[a->d->call].k->rank;
		const struct acc_replica_seen *own = NULL, *other = NULL;
		for (uint32_t k = 0; k < a->nrank; k++) {
			if (!acc_account_has(a, k))
				continue;
			own = a->rank[k] == rank ? a->of[k] : own;
			other = a->of[k]->mark != a->w->mark ? a->of[k] : other;
		}
		if (own != NULL && other != NULL)
			return say_crossed(t, a, own, other, e);
	}
	return 0;
}

/* --- the number of ranks --- */

/* Is what is given this weight, or what only moves its elements before, given what ranks exchange, too? */
static bool
is_exchanged(const struct acc_replicas *t, const struct acc_replica_seen *w)
{
	const struct acc_seen_call *c = &t->call[w->call];
	for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
		if (acc_seen_exchanged(t, c))
			return true;
		const struct acc_replica_seen *out = c->info == NULL || c->info->cls != ACC_OP_MOVE
							     ? NULL
							     : acc_seen_real(t, c, true);
		const struct acc_seen_call *next = out == NULL ? NULL : acc_seen_user(t, out, c);
		if (next == NULL)
			return false;
		c = next;
	}
	return false;
}

/* A number of ranks, of which the run has so many times as many. */
static bool
by_ranks(const struct acc_replicas *t, double times)
{
	const double n = rint(times);
	return n >= 2 && n <= (double)t->f->nrank && t->f->nrank % (size_t)n == 0 &&
	       fabs(times / n - 1) < LIMIT_REPLICA_EQUAL;
}

struct wholes {        /* the weights that all ranks have a part in */
	double factor; /* of all; NAN: they have several */
	uint64_t n;
};

struct fews {                  /* and those that fewer have: */
	uint64_t right, wrong; /* by the same factor, or times a number of ranks, */
	bool other;            /* or by another one */
	bool exchanged;        /* some are given what ranks exchange */
	double ratio;          /* of the wrong ones */
	const struct acc_account *first;
};

static int
wholes(struct acc_replicas *t, struct wholes *out, struct acc_err *e)
{
	struct acc_ids known = {0};
	int rc = 0;
	*out = (struct wholes){.n = 0};
	for (size_t i = 0; i < t->naccount && rc == 0; i++) {
		const struct acc_account *a = &t->account[i];
		if (!acc_account_ends(t, a) || acc_account_ranks(a) != t->f->nrank)
			continue;
		const double factor = acc_account_factor(a);
		out->factor = out->n == 0 || fabs(factor / out->factor - 1) < LIMIT_REPLICA_EQUAL
				      ? factor
				      : NAN;
		out->n += acc_ids_get(&known, a->w->mark) == ACC_NOID;
		rc = acc_ids_put(&known, a->w->mark, 1, true, e);
	}
	acc_ids_release(&known);
	return rc;
}

static int
fews(struct acc_replicas *t, double right, struct fews *out, struct acc_err *e)
{
	struct acc_ids known = {0};
	int rc = 0;
	*out = (struct fews){.first = NULL};
	for (size_t i = 0; i < t->naccount && rc == 0; i++) {
		const struct acc_account *a = &t->account[i];
		if (!acc_account_ends(t, a) || acc_account_ranks(a) == t->f->nrank)
			continue;
		const double ratio = acc_account_factor(a) / right;
		const bool is = fabs(ratio - 1) < LIMIT_REPLICA_EQUAL;
		const bool wrong = by_ranks(t, ratio < 1 ? 1 / ratio : ratio) &&
				   (out->first == NULL ||
					   fabs(ratio / out->ratio - 1) < LIMIT_REPLICA_EQUAL);
		out->other |= !is && !wrong;
		if (acc_ids_get(&known, a->w->mark) != ACC_NOID)
			continue;
		rc = acc_ids_put(&known, a->w->mark, 1, false, e);
		out->right += is;
		out->wrong += wrong;
		out->exchanged |= wrong && is_exchanged(t, a->w);
		if (wrong && out->first == NULL) {
			out->first = a;
			out->ratio = ratio;
		}
	}
	acc_ids_release(&known);
	return rc;
}

/* Weights that few ranks have, such as experts, and that are given what ranks exchange, get gradients of all ranks' losses, as
 * those have that all ranks have: where these are means over all ranks, theirs are divided by as many. */
static int
experts(struct acc_replicas *t, struct acc_err *e)
{
	struct wholes all;
	struct fews few;
	int rc = wholes(t, &all, e);
	if (rc < 0 || all.n < LIMIT_REPLICA_WHOLE || isnan(all.factor))
		return rc;
	rc = fews(t, all.factor, &few, e);
	if (rc < 0 || few.first == NULL || few.other || !few.exchanged ||
		few.wrong + few.right < LIMIT_REPLICA_SCALED)
		return rc;
	const struct acc_account *a = few.first;
	const struct acc_rank_group g = {.rank = a->rank,
		.n = a->nrank,
		.who = acc_fleet_ranks(t->f, a->rank, a->nrank)};
	size_t line = a->d->line;
	rc = acc_account_line(t, a, &line, e);
	return rc < 0 ? rc
		      : acc_replicas_blame(t, &g, line,
				SAY(t,
					"is the gradient of one of %llu weights that %u of %zu ranks have, and which are"
					" given what ranks exchange, so that they hold parts of all ranks' losses; it ends"
					" as %.6g times the sum of theirs, and those of %llu weights that all have, or that"
					" are given such, as %.6g times: it is %.6g times too %s beside them",
					(unsigned long long)few.wrong, acc_account_ranks(a),
					t->f->nrank, acc_account_factor(a),
					(unsigned long long)(all.n + few.right), all.factor,
					few.ratio < 1 ? 1 / few.ratio : few.ratio,
					few.ratio < 1 ? "small" : "large"),
				1, 0, e);
}

/* --- the stages of one model --- */

/* The number that gradients of all weights end with that this rank alone has; NAN: there are too few, or several. */
static double
own_factor(const struct acc_replicas *t, int64_t rank, const struct acc_account **first)
{
	double factor = NAN;
	uint64_t n = 0;
	*first = NULL;
	for (size_t i = 0; i < t->naccount; i++) {
		const struct acc_account *a = &t->account[i];
		const double own = acc_account_factor(a);
		if (!acc_account_ends(t, a) || a->nrank != 1 || a->rank[0] != rank)
			continue;
		*first = n == 0 ? a : *first;
		factor = n == 0 || fabs(own / factor - 1) < LIMIT_REPLICA_EQUAL ? own : NAN;
		n++;
	}
	return n < LIMIT_REPLICA_SCALED ? NAN : factor;
}

/* Stages that share a weight have one loss: what scales the gradients of one scales those of all. Is each stage's part in the
 * weight that they share scaled as its own weights are, each by another number? */
static int
stages(struct acc_replicas *t, struct acc_err *e)
{
	for (size_t i = 0; i < t->naccount; i++) {
		const struct acc_account *a = &t->account[i], *own[2];
		bool even;
		if (!acc_account_ends(t, a) || a->nrank != 2 || !is_uneven(a, &even))
			continue;
		const double f[2] = {own_factor(t, a->rank[0], &own[0]),
			own_factor(t, a->rank[1], &own[1])};
		if (!(fabs(a->c[0] / f[0] - 1) < LIMIT_REPLICA_EQUAL) ||
			!(fabs(a->c[1] / f[1] - 1) < LIMIT_REPLICA_EQUAL))
			continue;
		const int odd = fabs(log(f[1])) > fabs(log(f[0])); /* what is as it was is right */
		const struct acc_rank_group g = {.rank = a->rank,
			.n = 2,
			.who = acc_fleet_ranks(t->f, a->rank, 2)};
		size_t line = own[odd]->d->line;
		int rc = acc_account_line(t, own[odd], &line, e);
		return rc < 0 ? rc
			      : acc_replicas_blame(t, &g, line,
					SAY(t,
						"is the gradient of a weight of rank %lld, or what is made of it, and ends as"
						" %.6g times what it is, as those of all its weights; those of rank %lld end as"
						" %.6g times, although these ranks share a weight, and so a loss",
						(long long)a->rank[odd], f[odd],
						(long long)a->rank[!odd], f[!odd]),
					1, 0, e);
	}
	return 0;
}

int
acc_rule_mix(struct acc_replicas *t, struct acc_err *e)
{
	int rc = acc_replicas_account(t, e);
	if (rc == 0)
		rc = uneven(t, e);
	if (rc == 0)
		rc = crossed(t, e);
	if (rc == 0)
		rc = experts(t, e);
	return rc < 0 ? rc : stages(t, e);
}
