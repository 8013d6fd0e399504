/* Ranks that hold the same weights, and which no communication shows: copies of experts, say, whose gradients nobody
 * joined. */
#include "ranks/near.h"

#include <stdlib.h>

enum { FEW_WEIGHTS = 2, MOST_SETS = 64 };

struct set { /* ranks that have a weight */
	uint64_t sum;
	uint32_t n, at; /* at: a record of it */
};

struct holder {
	int64_t rank;
	uint32_t set;
};

struct held {
	struct acc_replicas *t;
	struct acc_ids ids; /* of weights: their sets */
	struct set *set;
	struct holder *holder; /* of all weights, in the order of their records */
	size_t nset, cap_set, nholder, cap_holder;
};

static uint32_t
set_of(struct held *h, const struct acc_replica_seen *s, struct acc_err *e)
{
	const struct acc_replicas *t = h->t;
	const uint64_t key[4] = {t->call[s->call].k->key, s->pos, s->mark, s->shape},
		       id = acc_hash(key, sizeof key);
	const uint32_t at = acc_ids_get(&h->ids, id);
	if (at != ACC_NOID)
		return at;
	void *p = acc_grow(h->set, &h->cap_set, h->nset + 1, sizeof *h->set, e);
	h->set = p == NULL ? h->set : p;
	if (p == NULL || acc_ids_put(&h->ids, id, (uint32_t)h->nset, false, e) < 0)
		return ACC_NOID;
	h->set[h->nset] = (struct set){.at = (uint32_t)(s - t->seen)};
	return (uint32_t)h->nset++;
}

/* All weights of the first step, by the ranks that have them. 0 or < 0. */
static int
collect(struct held *h, struct acc_err *e)
{
	const struct acc_replicas *t = h->t;
	struct acc_ids once = {0};
	int rc = 0;
	for (uint32_t i = 0; i < t->nseen && rc == 0; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const int64_t rank = t->call[s->call].k->rank;
		if (!s->weight || s->mark == 0 || t->call[s->call].k->step != t->step[0])
			continue;
		const uint32_t at = set_of(h, s, e);
		const uint64_t here = acc_seen_place(0, rank, at);
		if (at != ACC_NOID && acc_ids_get(&once, here) != ACC_NOID)
			continue;
		void *p = at == ACC_NOID ? NULL
					 : acc_grow(h->holder, &h->cap_holder, h->nholder + 1,
						   sizeof *h->holder, e);
		rc = p == NULL ? ACC_ENOMEM : acc_ids_put(&once, here, i, false, e);
		if (p == NULL)
			break;
		h->holder = p;
		h->holder[h->nholder++] = (struct holder){rank, at};
		h->set[at].sum += acc_hash(&rank, sizeof rank);
		h->set[at].n++;
	}
	acc_ids_release(&once);
	return rc;
}

static int
by_rank(const void *pa, const void *pb)
{
	const int64_t *a = pa, *b = pb;
	return (*a > *b) - (*a < *b);
}

static int
add(struct held *h, uint32_t set, struct acc_err *e)
{
	int64_t *rank = calloc(h->set[set].n, sizeof *rank);
	uint32_t n = 0;
	if (rank == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < h->nholder; i++)
		if (h->holder[i].set == set)
			rank[n++] = h->holder[i].rank;
	qsort(rank, n, sizeof *rank, by_rank);
	int rc = acc_replicas_group(h->t, rank, n, true, e);
	free(rank);
	return rc;
}

/* Several weights of the ranks that a set has, which are not one number? */
static int
several(struct held *h, size_t set, bool *is, struct acc_err *e)
{
	uint32_t same = 0;
	int rc = 0;
	for (size_t k = set; k < h->nset && rc == 0 && same < FEW_WEIGHTS; k++) {
		bool flat = true;
		if (h->set[k].sum == h->set[set].sum)
			rc = acc_replicas_flat(h->t, &h->t->seen[h->set[k].at], &flat, e);
		same += !flat;
	}
	*is = rc == 0 && same == FEW_WEIGHTS;
	return rc;
}

int
acc_replicas_held(struct acc_replicas *t, struct acc_err *e)
{
	struct held h = {.t = t};
	uint64_t done[MOST_SETS];
	size_t ndone = 0;
	int rc = t->nstep < 2 ? 0 : collect(&h, e);
	for (size_t i = 0; i < h.nset && rc == 0 && ndone < MOST_SETS; i++) {
		bool known = h.set[i].n < 2 || h.set[i].n == t->f->nrank, is = false;
		for (size_t k = 0; k < ndone && !known; k++)
			known = done[k] == h.set[i].sum;
		if (known)
			continue;
		done[ndone++] = h.set[i].sum;
		rc = several(&h, i, &is, e);
		if (rc == 0 && is)
			rc = add(&h, (uint32_t)i, e);
	}
	acc_ids_release(&h.ids);
	free(h.set);
	free(h.holder);
	return rc;
}
