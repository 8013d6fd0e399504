/* Where gradients that optimizers are given are made as they are: the number that scaled them, or the reduction. */
#include "replay/limits.h"
#include "replay/replica_account.h"
#include "replay/replica_ways.h"

#include <math.h>
#include <stdlib.h>

enum { START = 4, MOST_FLAT = 1 << 20 };

static const double SEEN = 1e-3; /* a number, as recorded and as measured */

int
acc_account_reduction(struct acc_replicas *t, const struct acc_account *a,
	const struct acc_replica_seen **out, struct acc_err *e)
{
	const struct acc_seen_call *to = &t->call[a->d->call];
	double x[START], *all = malloc((size_t)MOST_FLAT * sizeof *all);
	bool known = false;
	int rc = all == NULL ? acc_nomem(e)
			     : acc_seen_elements(t, a->d, a->in_d, START, x, &known, e);
	*out = NULL;
	for (uint32_t i = 0; i < t->nseen && rc == 0 && known && *out == NULL; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const struct acc_seen_call *c = &t->call[s->call];
		bool there = false;
		if (!s->out || !c->reduces || !acc_seen_beside(c, to) || s->n > MOST_FLAT ||
			s->n < START)
			continue;
		rc = acc_seen_elements(t, s, 0, s->n, all, &there, e);
		if (rc == 0 && there && acc_account_find(all, s->n, x, START, 0) != SIZE_MAX)
			*out = s;
	}
	free(all);
	return rc;
}

int
acc_account_line(struct acc_replicas *t, const struct acc_account *a, size_t *line,
	struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[a->d->call].k;
	struct acc_ways w = {.t = t, .rank = k->rank};
	struct acc_way way;
	const size_t own = *line;
	const struct acc_replica_seen *sum;
	const uint32_t use = acc_ids_get(&t->first, acc_seen_place(k->step, k->rank, a->w->mark));
	for (uint32_t i = use == ACC_NOID ? 0 : t->call[use].first;
		use != ACC_NOID && i < t->call[use].first + t->call[use].n; i++) {
		const struct acc_replica_seen *dw = !t->seen[i].leaf ||
								    t->seen[i].mark != a->w->mark
							    ? NULL
							    : acc_seen_gradient(t, k->step, k->rank,
								      &t->seen[i]);
		int rc = dw == NULL ? 0 : acc_way_follow(&w, dw, &way, e);
		if (rc < 0)
			return rc;
		/* What nothing is seen to scale may be scaled where it is not seen. */
		const bool seen = rc == 1 && (way.joined || acc_account_ranks(a) < 2) &&
				  fabs(way.factor / acc_account_factor(a) - 1) < SEEN;
		*line = dw == NULL || (way.by == dw->line && !seen) ? *line : way.by;
	}
	if (*line != own)
		return 0;
	int rc = acc_account_reduction(t, a, &sum, e);
	*line = rc == 0 && sum != NULL ? sum->line : *line;
	return rc;
}
