/* Tables of which each rank has a part: what is looked up there is of one rank alone, and masked on all others before it is
 * summed up. */
#include "acc/say.h"
#include "ranks/asked.h"

#include <stdlib.h>
#include <string.h>

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Adds to `count`, of each element, whether it is a 1; *is: all are 0 or 1. */
static int
count_ones(struct acc_replicas *t, const struct acc_replica_seen *s, uint64_t first, size_t n,
	uint32_t *count, bool *is, struct acc_err *e)
{
	int rc = acc_seen_elements(t, s, first, n, t->a, is, e);
	for (size_t i = 0; i < n && rc == 0 && *is; i++) {
		*is = t->a[i] == 0 || t->a[i] == 1;
		count[i] += t->a[i] == 1;
	}
	return rc;
}

/* Is each element of the j-th tensor of the peers a 1 on one rank, and a 0 on all others, or the reverse? */
static int
deals_out(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, bool *is, struct acc_err *e)
{
	const uint64_t all = t->seen[peer[0]->first + j].n;
	uint32_t *count = malloc(ACC_CHUNK * sizeof *count);
	bool one = all > 0, but_one = one, known = true;
	int rc = count == NULL ? acc_nomem(e) : 0;
	for (uint64_t at = 0; at < all && rc == 0 && known && (one || but_one); at += ACC_CHUNK) {
		const size_t n = all - at < ACC_CHUNK ? (size_t)(all - at) : ACC_CHUNK;
		memset(count, 0, n * sizeof *count);
		for (uint32_t r = 0; r < g->n && rc == 0 && known; r++) {
			known = t->seen[peer[r]->first + j].n == all;
			if (known)
				rc = count_ones(t, &t->seen[peer[r]->first + j], at, n, count,
					&known, e);
		}
		for (size_t i = 0; i < n; i++) {
			one &= count[i] == 1;
			but_one &= count[i] == g->n - 1;
		}
	}
	free(count);
	*is = rc == 0 && known && (one || but_one);
	return rc;
}

/* Was it masked, of each element on all ranks but one? */
static int
is_masked(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *s,
	const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
	int rc = 0;
	*is = false;
	if (c == NULL || c->k->talks || c->k->backward || !acc_replicas_peers(t, g, c, peer))
		return 0;
	for (uint32_t j = 0; j < c->n && rc == 0 && !*is; j++)
		if (!t->seen[c->first + j].out && !t->seen[c->first + j].real &&
			t->seen[c->first + j].n == s->n && !acc_replicas_marked(t, g, peer, j))
			rc = deals_out(t, g, peer, j, is, e);
	return rc;
}

/* Has some row of what is summed up more than zeros on several ranks? */
static int
of_several(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, uint64_t rows, bool *is,
	struct acc_err *e)
{
	const uint64_t all = t->seen[peer[0]->first + j].n, width = rows == 0 ? 0 : all / rows;
	/* By the rank that has more than zeros there, from 1 on. */
	uint32_t *who = width == 0 ? NULL : calloc(rows, sizeof *who);
	int rc = width == 0 || who != NULL ? 0 : acc_nomem(e);
	*is = false;
	for (uint32_t r = 0; r < g->n && rc == 0 && who != NULL; r++) {
		const struct acc_replica_seen *s = &t->seen[peer[r]->first + j];
		struct acc_rec *rec;
		struct acc_fleet_tensor x = {0};
		rc = t->f->get(t->f->arg, s->line, &rec, e);
		if (rc == 0 && acc_fleet_tensor(rec, s->line, &x) < 0)
			rc = acc_nomem(e);
		for (uint64_t at = 0; at < all && rc == 0 && x.data && x.n == all;
			at += ACC_CHUNK) {
			const size_t n = all - at < ACC_CHUNK ? (size_t)(all - at) : ACC_CHUNK;
			const int got = acc_fleet_read(t->f, &x, at, n, t->a, e);
			for (size_t i = 0; i < n && got == 1; i++) {
				const uint64_t row = (at + i) / width;
				if (row >= rows || t->a[i] == 0 || who[row] == r + 1)
					continue;
				*is |= who[row] != 0;
				who[row] = r + 1;
			}
			rc = got < 0 ? got : 0;
		}
	}
	free(who);
	return rc;
}

/* Is the sum given on all ranks what the op call put out there? What is masked may stay as it was on some. */
static bool
sums_up(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *sum, const struct acc_seen_call *const *peer, uint32_t j)
{
	for (uint32_t r = 0; r < g->n; r++) {
		const struct acc_seen_call *c = acc_replicas_call(t, sum->k->step, g->rank[r],
			sum->k->key);
		const struct acc_replica_seen *in = c == NULL ? NULL : acc_seen_real(t, c, false);
		if (in == NULL || in->mark == 0 || in->mark != t->seen[peer[r]->first + j].mark)
			return false;
	}
	return true;
}

/* What takes, by numbers that were masked, elements of parts; given to the sum as it is. */
static int
lookup(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_replica_seen *out, const struct acc_seen_call *sum,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	bool parts = false, masked = false;
	int rc = 0;
	if (!acc_replicas_peers(t, g, c, peer) ||
		!sums_up(t, g, sum, peer, (uint32_t)(out - t->seen) - c->first))
		return 0;
	for (uint32_t j = 0; j < c->n; j++)
		parts |= !t->seen[c->first + j].out && t->seen[c->first + j].real &&
			 !acc_replicas_marked(t, g, peer, j);
	uint64_t rows = 0;
	for (uint32_t j = c->first; j < c->first + c->n && rc == 0 && parts && !masked; j++)
		if (!t->seen[j].out && !t->seen[j].real) {
			rc = is_masked(t, g, &t->seen[j], peer, &masked, e);
			rows = t->seen[j].n;
		}
	if (rc == 0 && masked && acc_replicas_peers(t, g, c, peer))
		rc = of_several(t, g, peer, (uint32_t)(out - t->seen) - c->first, rows, &masked, e);
	return rc < 0 || !masked
		       ? rc
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "is taken from each rank's part of a table by numbers that are masked on all"
					 " ranks but one, and not masked itself: %s sums up what the others took, too",
					 acc_replicas_name(t, sum->k->line, e)),
				 1, 0, e);
}

int
acc_rule_lookup(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *made = acc_seen_summand(t, g, c);
		if (made != NULL && c->k->step == t->step[0])
			rc = lookup(t, g, &t->call[made->call], made, c, room, e);
	}
	return rc;
}
