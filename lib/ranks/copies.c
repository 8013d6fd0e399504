/* On how many ranks of a communication is what it is given the same? Asked once for all of them: what is the same but for
 * noise has nearly the same norm, so in the order of norms only neighbours are compared. */
#include "ranks/near.h"
#include "ranks/trace.h"

#include <math.h>
#include <stdlib.h>

struct one {
	uint64_t mark;
	double norm,
		room; /* so far off may be the norm of what is the same; INFINITY: whatever it is */
	uint32_t peer, same;
};

static int
by_norm(const void *a, const void *b)
{
	const struct one *x = a, *y = b;
	return x->norm != y->norm   ? (x->norm > y->norm) - (x->norm < y->norm)
	       : x->mark != y->mark ? (x->mark > y->mark) - (x->mark < y->mark)
				    : (x->peer > y->peer) - (x->peer < y->peer);
}

/* Behind the last of those with the mark of the i-th. */
static uint32_t
run_end(const struct one *x, uint32_t n, uint32_t i)
{
	uint32_t end = i + 1;
	while (x[i].mark != 0 && end < n && x[end].mark == x[i].mark)
		end++;
	return end;
}

/* Fills x[].same of the peers' j-th tensors. 0 or < 0. */
static int
compare(struct acc_replicas *t, const struct acc_seen_call *const *peer, uint32_t n, uint32_t j,
	struct one *x, struct acc_err *e)
{
	const struct acc_rank_group two = {.n = 2};
	int rc = 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct acc_replica_seen *s = &t->seen[peer[i]->first + j];
		x[i] = (struct one){.mark = s->mark, .peer = i};
		rc = acc_replicas_norm(t, s, &x[i].norm, &x[i].room, e);
	}
	if (rc < 0)
		return rc;
	qsort(x, n, sizeof *x, by_norm);
	for (uint32_t i = 0, end; i < n && rc == 0; i = end) {
		end = run_end(x, n, i);
		for (uint32_t k = i; k < end; k++)
			x[k].same += end - i;
		for (uint32_t k = end, stop; k < n && rc == 0; k = stop) {
			const struct acc_seen_call *const pair[2] = {peer[x[i].peer],
				peer[x[k].peer]};
			bool same = false;
			stop = run_end(x, n, k);
			if (x[k].norm - x[i].norm > x[i].room + x[k].room)
				break;
			rc = acc_replicas_same(t, &two, pair, j, &same, e);
			for (uint32_t m = i; m < end && same; m++)
				x[m].same += stop - k;
			for (uint32_t m = k; m < stop && same; m++)
				x[m].same += end - i;
		}
	}
	return rc;
}

/* Of a tensor, by its number, in a group. */
static uint64_t
key_of(const struct acc_rank_group *g, uint32_t at)
{
	const uint64_t id[2] = {at, g->members};
	return acc_hash(id, sizeof id);
}

/* The same for all peers of a call, and kept; 0: not all are there. */
static int
count(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, uint32_t j, struct acc_err *e)
{
	struct one *x = NULL;
	const bool all = acc_replicas_peers(t, g, c, peer);
	const bool alike = all && acc_replicas_marked(t, g, peer, j);
	int rc = 0;
	if (!all)
		return acc_ids_put(&t->copies, key_of(g, c->first + j), 0, true, e);
	if (!alike) {
		x = calloc(g->n, sizeof *x);
		rc = x == NULL ? acc_nomem(e) : compare(t, peer, g->n, j, x, e);
	}
	for (uint32_t i = 0; i < g->n && rc == 0; i++)
		rc = acc_ids_put(&t->copies, key_of(g, peer[alike ? i : x[i].peer]->first + j),
			alike ? g->n : x[i].same, true, e);
	free(x);
	return rc;
}

int
acc_seen_copies(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *in, uint32_t *n, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[in->call];
	const uint32_t at = (uint32_t)(in - t->seen);
	int rc = 0;
	*n = acc_ids_get(&t->copies, key_of(g, at));
	if (*n == ACC_NOID) {
		const struct acc_seen_call **peer = malloc(g->n * sizeof *peer);
		rc = peer == NULL ? acc_nomem(e) : count(t, g, c, peer, at - c->first, e);
		free(peer);
		*n = rc < 0 ? 0 : acc_ids_get(&t->copies, key_of(g, at));
	}
	return rc < 0 ? rc : *n > 0;
}
