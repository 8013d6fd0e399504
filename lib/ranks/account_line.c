/* Where gradients that optimizers are given are made as they are: the number that scaled them, or the reduction. */
#include "replay/limits.h"
#include "ranks/account.h"
#include "ranks/scaling.h"

#include <math.h>
#include <stdlib.h>

enum { START = 4, MOST_FLAT = 1 << 20 };

/* Do elements, none of which is zero, lie in others, each times the same number? */
static bool
lies_in(const double *all, size_t n, const double *x)
{
	for (size_t i = 0; i + START <= n; i++) {
		const double by = x[0] / all[i];
		size_t k = 1;
		while (k < START &&
			fabs(by * all[i + k] - x[k]) <= LIMIT_RANKS_ROUNDED * fabs(x[k]))
			k++;
		if (k == START && isfinite(by))
			return true;
	}
	return false;
}

/* A few of its elements, one behind the other. 1; 0: they are not known, or zero everywhere; < 0. */
static int
some_of(struct acc_replicas *t, const struct acc_account *a, double *all, double *x,
	struct acc_err *e)
{
	const size_t n = a->n < MOST_FLAT ? (size_t)a->n : MOST_FLAT;
	size_t k = 0, found = 0;
	bool known = false;
	int rc = acc_seen_elements(t, a->d, a->in_d, n, all, &known, e);
	if (rc < 0 || !known)
		return rc;
	while (k < n && found < START) {
		x[found] = all[k++];
		found = x[found] != 0 ? found + 1 : 0;
	}
	return found == START;
}

int
acc_account_reduction(struct acc_replicas *t, const struct acc_account *a,
	const struct acc_replica_seen **out, struct acc_err *e)
{
	const struct acc_seen_call *to = &t->call[a->d->call];
	double x[START], *all = malloc((size_t)MOST_FLAT * sizeof *all);
	int rc = all == NULL ? acc_nomem(e) : some_of(t, a, all, x, e);
	*out = NULL;
	for (uint32_t i = 0; i < t->nseen && rc == 1 && *out == NULL; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const struct acc_seen_call *c = &t->call[s->call];
		bool there = false;
		if (!s->out || !c->reduces || !acc_seen_beside(c, to) || s->n > MOST_FLAT ||
			s->n < START)
			continue;
		int got = acc_seen_elements(t, s, 0, s->n, all, &there, e);
		rc = got < 0 ? got : rc;
		if (got == 0 && there && lies_in(all, s->n, x))
			*out = s;
	}
	free(all);
	return rc < 0 ? rc : 0;
}

/* What made it of elements by a whole number, or one by it; 1, too, which divides by the wrong size of a group. */
static int
scaled_last(struct acc_replicas *t, const struct acc_account *a,
	const struct acc_replica_seen **out, struct acc_err *e)
{
	const struct acc_replica_seen *s = acc_seen_maker(t, a->d);
	const struct acc_seen_call *c = acc_seen_caller(t, s);
	double v = 0;
	*out = NULL;
	if (c == NULL || c->k->backward || c->k->talks || c->info == NULL ||
		c->info->cls != ACC_OP_MUL)
		return 0;
	int rc = acc_seen_factor(t, c, &v, e);
	if (rc == 1 && acc_divides(v))
		*out = s;
	return rc < 0 ? rc : 0;
}

int
acc_account_line(struct acc_replicas *t, const struct acc_account *a, size_t *line,
	struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[a->d->call].k;
	struct acc_ways w = {.t = t, .rank = k->rank};
	struct acc_way way;
	const size_t own = *line;
	const struct acc_replica_seen *sum, *scaled;
	int rc = scaled_last(t, a, &scaled, e);
	if (rc < 0 || scaled != NULL) {
		*line = scaled != NULL ? scaled->line : *line;
		return rc;
	}
	const uint32_t use = acc_ids_get(&t->first, acc_seen_place(k->step, k->rank, a->w->mark));
	for (uint32_t i = use == ACC_NOID ? 0 : t->call[use].first;
		use != ACC_NOID && i < t->call[use].first + t->call[use].n; i++) {
		const struct acc_replica_seen *dw = !t->seen[i].leaf ||
								    t->seen[i].mark != a->w->mark
							    ? NULL
							    : acc_seen_gradient(t, k->step, k->rank,
								      &t->seen[i]);
		rc = dw == NULL ? 0 : acc_way_follow(&w, dw, &way, e);
		if (rc < 0)
			return rc;
		/* What nothing is seen to scale may be scaled where it is not seen. */
		const bool seen = rc == 1 && (way.joined || acc_account_ranks(a) < 2) &&
				  fabs(way.factor / acc_account_factor(a) - 1) < LIMIT_RANKS_NORM;
		*line = dw == NULL || (way.by == dw->line && !seen) ? *line : way.by;
	}
	if (*line != own)
		return 0;
	rc = acc_account_reduction(t, a, &sum, e);
	*line = rc == 0 && sum != NULL ? sum->line : *line;
	return rc;
}
