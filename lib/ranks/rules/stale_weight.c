/* Weights that stay as they are from one step to the next although an optimizer has changed what they come from: gathered,
 * or cast, before its step, and used again after it. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/asked.h"

/* Does the step of an optimizer of torch change a weight? PyTorch 2 hands it weights that want no gradient; what it puts out
 * are its lists, that of the weights first. 1; 0; < 0. */
static int
steps(struct acc_replicas *t, const struct acc_seen_call *c, struct acc_err *e)
{
	struct acc_optimizer_lists l;
	int rc = acc_seen_lists(t, c, &l, e);
	uint32_t out = c->first;
	while (rc == 1 && out < c->first + c->n && !t->seen[out].out)
		out++;
	for (uint32_t k = 0; rc == 1 && k < l.n[0] && out + k < c->first + c->n; k++)
		if (t->seen[out + k].mark != 0 && t->seen[l.first[0] + k].mark != 0 &&
			t->seen[out + k].mark != t->seen[l.first[0] + k].mark)
			return 1;
	return rc < 0 ? rc : 0;
}

/* Does an op call change a weight that it is given first in its place? */
static bool
changes(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *w = c->n == 0 || !c->in_place ? NULL : &t->seen[c->first],
				      *out = acc_seen_real(t, c, true);
	return w != NULL && out != NULL && !w->out && w->wants && w->n > 1 && w->mark != 0 &&
	       out->shape == w->shape && out->mark != 0 && out->mark != w->mark;
}

/* What changes a weight behind the backward pass of the first step: 1; 0: nothing does; < 0. */
static int
update_of(struct acc_replicas *t, int64_t rank, const struct acc_seen_call **out, struct acc_err *e)
{
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || !c->behind || c->k->backward || c->k->talks)
			continue;
		int rc = c->optimizer ? steps(t, c, e) : changes(t, c);
		*out = c;
		if (rc != 0)
			return rc;
	}
	return 0;
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
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[step] || c->k->backward || c->k->talks || c->behind)
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
		const struct acc_seen_call *c = NULL;
		int rc = update_of(t, g->rank[r], &c, e);
		if (rc == 1)
			rc = all_stay(t, g->rank[r], &some, r == 0 ? &first : &other, e);
		else
			return rc;
		if (rc < 0 || some < LIMIT_REPLICA_SCALED)
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
