/* What a reduction counts: means of unlike numbers of elements, which it takes for alike; norms of what each rank
 * has whole, beside those of its parts. */
#include "acc/say.h"
#include "ranks/asked.h"
#include "ranks/walk.h"

#include <stdlib.h>

enum { MOST_NODES = 512, FEW_NORMS = 2 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

static const struct acc_seen_call *
maker(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_replica_seen *made = acc_seen_maker(t, s);
	return made == NULL ? NULL : &t->call[made->call];
}

static const struct acc_replica_seen *
input(const struct acc_replicas *t, const struct acc_seen_call *c, bool out)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out == out && t->seen[i].real)
			return &t->seen[i];
	return NULL;
}

/* --- means --- */

/* The j-th mean that a rank gives to be joined, of how many elements each of it is; 0: it is none. */
static uint64_t
elements(const struct acc_replicas *t, const struct acc_seen_call *sum, uint32_t j)
{
	const struct acc_replica_seen *s = input(t, sum, false);
	const struct acc_seen_call *join = s == NULL ? NULL : acc_seen_joined(t, s);
	for (uint32_t i = join == NULL ? 0 : join->first; join != NULL && i < join->first + join->n;
		i++)
		if (!t->seen[i].out && j-- == 0)
			s = &t->seen[i];
	const struct acc_seen_call *c = s == NULL || (join == NULL && j > 0) ? NULL : maker(t, s);
	const struct acc_replica_seen *from = c == NULL || !c->mean ? NULL : input(t, c, false);
	return from == NULL || s->n < 2 ? 0 : from->n / s->n;
}

int
acc_seen_averages(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *sum, struct acc_err *e)
{
	const struct acc_replica_seen *out = input(t, sum, true);
	uint32_t next = out == NULL || out->mark == 0
				? ACC_NOID
				: acc_ids_get(&t->scaled, acc_seen_id(t, out));
	double v = 0;
	if (sum->average || next == ACC_NOID)
		return sum->average;
	int rc = acc_seen_factor(t, &t->call[next], &v, e);
	return rc != 1 ? rc : v * g->n > 1 - 1e-6 && v * g->n < 1 + 1e-6;
}

int
acc_rule_means(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, struct acc_err *e)
{
	uint64_t n[2] = {elements(t, sum[0], 0), 0};
	uint32_t odd = 0;
	for (uint32_t i = 1; i < g->n && n[0] > 0 && odd == 0; i++) {
		n[1] = elements(t, sum[i], 0);
		odd = n[1] > 0 && n[1] != n[0] ? i : 0;
	}
	const struct acc_replica_seen *out = odd == 0 ? NULL : input(t, sum[0], true);
	int rc = out == NULL ? 0 : acc_seen_averages(t, g, sum[0], e);
	return rc != 1 ? rc
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "averages means over %llu elements on rank %lld and over %llu on rank %lld:"
					 " sums and numbers must be joined, not means",
					 (unsigned long long)n[0], (long long)sum[0]->k->rank,
					 (unsigned long long)n[1], (long long)sum[odd]->k->rank),
				 1, 0, e);
}

/* --- norms --- */

/* Of a sum of squares, what made these; NULL: it is none. */
static const struct acc_seen_call *
squares(const struct acc_replicas *t, const struct acc_seen_call *sum)
{
	const struct acc_replica_seen *in = acc_seen_is_of(sum, "sum") ? input(t, sum, false)
								       : NULL;
	const struct acc_seen_call *c = in == NULL || in->n < 2 ? NULL : maker(t, in);
	const struct acc_replica_seen *x = NULL;
	if (c == NULL || acc_seen_is_of(c, "pow") || acc_seen_is_of(c, "square"))
		return c;
	if (c->info == NULL || c->info->cls != ACC_OP_MUL || c->k->talks || c->k->backward)
		return NULL;
	unsigned n = 0;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		if (t->seen[i].out)
			continue;
		if (x != NULL && x->mark != t->seen[i].mark)
			return NULL;
		x = &t->seen[i];
		n++;
	}
	return n == 2 ? c : NULL;
}

static bool
add_norm(const struct acc_replicas *t, const struct acc_seen_call *c, uint32_t *norm, uint32_t *n)
{
	const uint32_t at = (uint32_t)(c - t->call);
	uint32_t i = 0;
	while (i < *n && norm[i] != at)
		i++;
	norm[i] = at;
	*n += i == *n;
	return *n < ACC_MOST_NORMS;
}

bool
acc_seen_norms(const struct acc_replicas *t, const struct acc_replica_seen *s, uint32_t *norm,
	uint32_t *n, uint32_t *nodes)
{
	const struct acc_seen_call *c = maker(t, s);
	const uint32_t was = *n;
	if (c == NULL || c->k->talks || c->k->backward || ++*nodes > MOST_NODES)
		return false;
	if (c->length)
		return add_norm(t, c, norm, n);
	bool any = false;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *x = &t->seen[i];
		if (x->out || !x->real)
			continue;
		any = x->n <= ACC_MOST_NORMS && acc_seen_norms(t, x, norm, n, nodes);
		if (!any)
			break;
	}
	const struct acc_seen_call *of = any ? NULL : squares(t, c);
	if (of == NULL)
		return any;
	*n = was;
	return add_norm(t, of, norm, n);
}

/* Is this op call, of its rank, among those of another? */
static bool
among(const struct acc_replicas *t, const struct acc_seen_call *c, const uint32_t *norm, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (t->call[norm[i]].k->key == c->k->key)
			return true;
	return false;
}

/* Is the norm of this very tensor among those of another rank, by whatever call? */
static bool
has_same(const struct acc_replicas *t, const struct acc_replica_seen *x, const uint32_t *norm,
	uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_replica_seen *y = input(t, &t->call[norm[i]], false);
		if (y != NULL && y->n == x->n && y->mark != 0 && y->mark == x->mark)
			return true;
	}
	return false;
}

/* Sorts the norms of the first rank: what they are of is the same on all ranks, which all count it, or is
 * not. */
static int
sort_norms(struct acc_replicas *t, const struct acc_rank_group *g, const uint32_t *norm,
	const uint32_t *n, const struct acc_seen_call **peer, uint64_t count[2],
	const struct acc_seen_call **whole, uint32_t *times, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t j = 0; j < n[0] && rc == 0; j++) {
		const struct acc_seen_call *c = &t->call[norm[j]];
		const struct acc_replica_seen *x = input(t, c, false);
		bool same = false, flat = true,
		     all = x != NULL && x->n > 1 && acc_replicas_peers(t, g, c, peer);
		for (uint32_t i = 1; i < g->n && all; i++)
			all = among(t, c, norm + (size_t)i * ACC_MOST_NORMS, n[i]);
		if (all)
			rc = acc_replicas_same(t, g, peer, (uint32_t)(x - t->seen) - c->first,
				&same, e);
		uint32_t having = same ? g->n : 1;
		/* Stages that share a weight count other calls before its norm. */
		for (uint32_t i = 1; i < g->n && x != NULL && x->n > 1 && !same; i++)
			having += has_same(t, x, norm + (size_t)i * ACC_MOST_NORMS, n[i]);
		same = having > 1;
		if (rc == 0 && (all || same))
			rc = acc_replicas_flat(t, x, &flat, e);
		if (rc < 0 || flat)
			continue;
		count[!same]++;
		*times = *whole == NULL && same ? having : *times;
		*whole = *whole == NULL && same ? c : *whole;
	}
	return rc;
}

/* How many ranks of the group have the same of each of the norms' tensors as the first; 0: not as many of each. */
static int
holders(struct acc_replicas *t, const struct acc_rank_group *g, const uint32_t *norm, uint32_t n,
	const struct acc_seen_call **peer, uint32_t *out, struct acc_err *e)
{
	*out = 0;
	for (uint32_t j = 0; j < n; j++) {
		const struct acc_seen_call *c = &t->call[norm[j]];
		const struct acc_replica_seen *x = input(t, c, false);
		bool flat = true;
		uint32_t same = 0;
		int rc = x == NULL || x->n < 2 || x->mark == 0 || !acc_replicas_peers(t, g, c, peer)
				 ? 0
				 : acc_replicas_flat(t, x, &flat, e);
		if (rc < 0)
			return rc;
		for (uint32_t i = 0; i < g->n && !flat; i++)
			same += t->seen[peer[i]->first + (x - t->seen) - c->first].mark == x->mark;
		if (flat || (*out > 0 && *out != same)) {
			*out = 0;
			return 0;
		}
		*out = same;
	}
	return 0;
}

/* Parts that several ranks hold, but not all. */
static int
held_by_some(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *out, const uint32_t *norm, uint32_t n,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	uint32_t same = 0;
	int rc = n < FEW_NORMS || (out->mark != 0 &&
					  acc_ids_get(&t->scaled, acc_seen_id(t, out)) != ACC_NOID)
			 ? 0
			 : holders(t, g, norm, n, peer, &same, e);
	return rc < 0 || same < 2 || same >= g->n
		       ? rc
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "sums up norms of %u parts over %u ranks, although each of them is the same on"
					 " %u of these: it counts as often; is it the right group?",
					 n, g->n, same),
				 1, 0, e);
}

/* Of tensors that all ranks have whole, the norm is the same on all: nothing is to be summed up. */
static int
all_whole(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, uint64_t n, struct acc_err *e)
{
	const struct acc_replica_seen *a = input(t, sum[0], false);
	bool same = a != NULL && a->mark != 0;
	for (uint32_t i = 1; i < g->n && same; i++) {
		const struct acc_replica_seen *b = input(t, sum[i], false);
		same = b != NULL && b->mark == a->mark;
	}
	int rc = same ? acc_seen_averages(t, g, sum[0], e) : 1;
	return rc != 0 ? (rc < 0 ? rc : 0)
		       : acc_replicas_blame(t, g, input(t, sum[0], true)->line,
				 SAY(t,
					 "sums up norms of %llu tensors, all of which are whole, and the same, on all"
					 " ranks: they count %u times",
					 (unsigned long long)n, g->n),
				 1, 0, e);
}

int
acc_rule_norms(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *sum, const struct acc_seen_call **peer,
	struct acc_err *e)
{
	const struct acc_replica_seen *out = input(t, sum[0], true);
	if (out == NULL || out->n != 1 || sum[0]->average)
		return 0;
	uint32_t *norm = malloc((size_t)g->n * (ACC_MOST_NORMS + 1) * sizeof *norm),
		 *n = norm == NULL ? NULL : norm + (size_t)g->n * ACC_MOST_NORMS;
	uint64_t count[2] = {0, 0};
	uint32_t times = g->n;
	const struct acc_seen_call *whole = NULL;
	bool all = norm != NULL;
	int rc = norm == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < g->n && all; i++) {
		const struct acc_replica_seen *x = input(t, sum[i], false);
		uint32_t nodes = 0;
		n[i] = 0;
		all = x != NULL &&
		      acc_seen_norms(t, x, norm + (size_t)i * ACC_MOST_NORMS, &n[i], &nodes);
	}
	if (all)
		rc = sort_norms(t, g, norm, n, peer, count, &whole, &times, e);
	if (rc == 0 && all)
		rc = held_by_some(t, g, out, norm, n[0], peer, e);
	free(norm);
	if (rc == 0 && all && count[0] > 0 && count[1] == 0)
		return all_whole(t, g, sum, count[0], e);
	if (rc < 0 || count[0] == 0 || count[1] == 0)
		return rc;
	const char *name = acc_replicas_name(t, whole->k->line, e);
	return acc_replicas_blame(t, g, out->line,
		SAY(t,
			times == g->n
				? "sums up norms of %llu tensors that are whole, and the same, on all ranks, as %s"
				  " is, with those of %llu parts: the former count %u times; one rank alone must"
				  " count them"
				: "sums up norms of %llu tensors that are the same on several ranks, as %s is, with"
				  " those of %llu others: the former count %u times; one rank alone must count them",
			(unsigned long long)count[0], name, (unsigned long long)count[1], times),
		1, 0, e);
}
