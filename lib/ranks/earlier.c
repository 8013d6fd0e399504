/* A weight in an earlier step, and its gradient. */
#include "ranks/asked.h"

/* Of the part of a weight that is gathered: what a reduction makes of the gradient of the whole. */
static const struct acc_replica_seen *
gradient_of_part(const struct acc_replicas *t, int64_t step, int64_t rank,
	const struct acc_replica_seen *w)
{
	const struct acc_seen_call *c = acc_replicas_call(t, step, rank, t->call[w->call].k->key);
	const struct acc_replica_seen *whole = NULL, *g = NULL;
	for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].mark != 0 &&
			t->seen[i].n > (whole == NULL ? w->n : whole->n))
			whole = &t->seen[i];
	uint32_t use = whole == NULL ? ACC_NOID : acc_ids_get(&t->first, acc_seen_id(t, whole));
	c = use == ACC_NOID ? NULL : &t->call[use];
	for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
		if (t->seen[i].leaf && t->seen[i].mark == whole->mark)
			g = acc_seen_gradient(t, step, rank, &t->seen[i]);
	use = g == NULL || g->mark == 0 ? ACC_NOID : acc_ids_get(&t->given, acc_seen_id(t, g));
	c = use == ACC_NOID ? NULL : &t->call[use];
	for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].n == w->n)
			return &t->seen[i];
	return NULL;
}

const struct acc_replica_seen *
acc_seen_gradient(const struct acc_replicas *t, int64_t step, int64_t rank,
	const struct acc_replica_seen *w)
{
	if (w == NULL)
		return NULL;
	if (t->call[w->call].k->talks)
		return gradient_of_part(t, step, rank, w);
	const struct acc_seen_call *c = acc_replicas_call(t, step, rank, t->call[w->call].k->twin);
	for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++) {
		const struct acc_replica_seen *in = t->seen[i].out && t->seen[i].n == w->n
							    ? acc_seen_input(t, &t->seen[i])
							    : NULL;
		if (in != NULL && in->pos == w->pos)
			return &t->seen[i];
	}
	return NULL;
}

static const struct acc_replica_seen *
same_weight(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *w)
{
	for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
		if (t->seen[i].pos == w->pos && t->seen[i].n == w->n &&
			(t->seen[i].leaf || t->seen[i].lone || t->seen[i].kept))
			return &t->seen[i];
	return NULL;
}

static uint64_t
lined_at(int64_t step, int64_t rank, uint64_t line, uint32_t k)
{
	const uint64_t id[2] = {line, k};
	return acc_seen_place(step, rank, acc_hash(id, sizeof id));
}

/* Made when it is first asked for: most weights are found by the names of their calls. 0 or < 0. */
static int
index_lines(struct acc_replicas *t, struct acc_err *e)
{
	struct acc_ids count = {0};
	int rc = 0;
	for (uint32_t i = 0; i < t->f->ncall && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		const uint64_t id = lined_at(c->k->step, c->k->rank, c->line, UINT32_MAX);
		const uint32_t n = acc_ids_get(&count, id);
		if (c->line == 0 || c->k->backward)
			continue;
		rc = acc_ids_put(&count, id, n == ACC_NOID ? 1 : n + 1, true, e);
		if (rc == 0)
			rc = acc_ids_put(&t->lined,
				lined_at(c->k->step, c->k->rank, c->line, n == ACC_NOID ? 0 : n), i,
				false, e);
	}
	acc_ids_release(&count);
	return rc;
}

/* The op call that is as many calls of its line behind the first in another step; NULL. */
static const struct acc_seen_call *
of_line(struct acc_replicas *t, const struct acc_seen_call *c, int64_t step, int64_t rank)
{
	const uint32_t own = (uint32_t)(c - t->call);
	uint32_t at = 0, i;
	if (c->line == 0)
		return NULL;
	if (t->lined.n == 0 && index_lines(t, NULL) < 0) {
		t->lost = ACC_ENOMEM; /* no answer is not the answer that there is none */
		return NULL;
	}
	while ((i = acc_ids_get(&t->lined, lined_at(c->k->step, c->k->rank, c->line, at))) != own)
		if (i == ACC_NOID)
			return NULL;
		else
			at++;
	i = acc_ids_get(&t->lined, lined_at(step, rank, c->line, at));
	return i == ACC_NOID ? NULL : &t->call[i];
}

const struct acc_replica_seen *
acc_seen_before(struct acc_replicas *t, const struct acc_replica_seen *w, int64_t step,
	int64_t rank)
{
	const struct acc_seen_call *c = &t->call[w->call],
				   *named = acc_replicas_call(t, step, rank, c->k->key);
	const bool other = named != NULL && c->line != 0 && named->line != 0 &&
			   named->line != c->line;
	const struct acc_replica_seen *was = other ? NULL : same_weight(t, named, w);
	return was != NULL ? was : same_weight(t, of_line(t, c, step, rank), w);
}
