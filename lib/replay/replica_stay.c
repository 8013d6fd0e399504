/* Weights that stay as they are from one step to the next although an optimizer has changed what they come from: gathered,
 * or cast, before its step, and used again after it. */
#include "acc/say.h"
#include "replay/limits.h"
#include "replay/replica.h"

/* What changes a weight in its place behind the backward pass of the first step; NULL. */
static const struct acc_seen_call *
update_of(const struct acc_replicas *t, int64_t rank)
{
	for (size_t i = 0; i < t->f->ncall; i++) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->rank != rank || c->k->step != t->step[0] || !c->behind ||
			c->k->backward || c->k->talks)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[j];
			bool changed = s->out && s->real && s->wants && s->n > 1 && s->mark != 0,
			     given = false;
			for (uint32_t k = c->first; k < c->first + c->n && changed; k++) {
				given |= !t->seen[k].out && t->seen[k].wants &&
					 t->seen[k].shape == s->shape;
				changed = t->seen[k].out || t->seen[k].mark != s->mark;
			}
			if (changed && given)
				return c;
		}
	}
	return NULL;
}

/* Is it a weight in f32, in which no step is too small to be seen, and not one number? 1; 0; < 0. */
static int
is_weight(struct acc_replicas *t, const struct acc_replica_seen *s, struct acc_err *e)
{
	struct acc_fleet_tensor x;
	struct acc_rec *r;
	bool flat = true;
	if (s->out || !s->real || !s->wants || !s->place || s->n < 2 || s->mark == 0)
		return 0;
	int rc = acc_replicas_flat(t, s, &flat, e);
	if (rc < 0 || flat)
		return rc;
	rc = t->f->get(t->f->arg, s->line, &r, e);
	if (rc == 0)
		rc = acc_fleet_tensor(r, s->line, &x);
	return rc < 0 ? acc_nomem(e) : rc == 1 && x.dtype == ACC_F32;
}

/* What op calls of the forward pass are given as weights: those of the first step that have a gradient are kept in `had`; of the
 * second step, how many are among these. *n is 0 where one is not. */
static int
weights_of(struct acc_replicas *t, int64_t rank, size_t step, struct acc_ids *had, uint64_t *n,
	const struct acc_replica_seen **first, struct acc_err *e)
{
	*n = 0;
	for (size_t i = 0; i < t->f->ncall; i++) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->rank != rank || c->k->step != t->step[step] || c->k->backward ||
			c->k->talks || c->behind)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[j];
			const struct acc_replica_seen *dw = step > 0 ? NULL
								     : acc_seen_gradient(t,
									       c->k->step, rank, s);
			bool flat = step == 0 && dw == NULL;
			int rc = is_weight(t, s, e);
			if (rc == 1 && dw != NULL)
				rc = acc_replicas_flat(t, dw, &flat, e) < 0 ? -1 : 1;
			if (rc == 1 && step == 0 && !flat)
				rc = acc_ids_put(had, s->mark, 1, true, e) < 0 ? -1 : 1;
			if (rc < 0)
				return e->code;
			if (rc == 0 || step == 0)
				continue;
			if (acc_ids_get(had, s->mark) == ACC_NOID) {
				*n = 0;
				return 0;
			}
			*first = *n == 0 ? s : *first;
			++*n;
		}
	}
	return 0;
}

/* How many weights of a rank are as they were; 0: one moved. */
static int
all_stay(struct acc_replicas *t, int64_t rank, uint64_t *n, const struct acc_replica_seen **first,
	struct acc_err *e)
{
	struct acc_ids had = {0};
	int rc = weights_of(t, rank, 0, &had, n, first, e);
	if (rc == 0)
		rc = weights_of(t, rank, 1, &had, n, first, e);
	acc_ids_release(&had);
	return rc;
}

int
acc_rule_stay(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	const struct acc_replica_seen *first = NULL, *other;
	const struct acc_seen_call *by = NULL;
	uint64_t n = 0, some;
	(void)room;
	for (uint32_t r = 0; r < g->n && t->nstep > 1 && g->n == t->f->nrank; r++) {
		const struct acc_seen_call *c = update_of(t, g->rank[r]);
		int rc = c == NULL ? 0
				   : all_stay(t, g->rank[r], &some, r == 0 ? &first : &other, e);
		if (rc < 0 || c == NULL || some < LIMIT_REPLICA_SCALED)
			return rc;
		n = r == 0 ? some : n;
		by = r == 0 ? c : by;
	}
	return by == NULL
		       ? 0
		       : acc_replicas_blame(t, g, first->line,
				 acc_say(&t->f->mem,
					 "is a weight as it was in the step before, as all %llu are that have a gradient,"
					 " though %s has changed what it updates: what was gathered or copied before that"
					 " step is used after it",
					 (unsigned long long)n,
					 acc_replicas_name(t, by->k->line, e)),
				 1, 0, e);
}
