/* What clips gradients is one norm, of all that is joined: not each rank's own. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* The number that an op call scales by, if it is made of norms that this rank has alone; NULL. */
static const struct acc_replica_seen *
clips(const struct acc_replicas *t, const struct acc_seen_call *c, uint32_t *norm)
{
	const struct acc_replica_seen *number = NULL;
	uint32_t n = 0, nodes = 0;
	if (c == NULL || c->k->talks || c->k->backward || c->info == NULL ||
		c->info->cls != ACC_OP_MUL)
		return NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (!t->seen[i].out && t->seen[i].n == 1 && t->seen[i].mark != 0)
			number = &t->seen[i];
	return number != NULL && acc_seen_norms(t, number, norm, &n, &nodes) && n > 0 ? number
										      : NULL;
}

/* Ranks that hold parts of the same gradients, and scale them by norms of their own. */
static int
clipped_parts(struct acc_replicas *t, const struct acc_rank_group *g, uint32_t *norm,
	struct acc_err *e)
{
	const struct acc_seen_call *first = NULL;
	double was = 0, v = 0;
	for (uint32_t r = 0; r < g->n; r++)
		for (size_t i = acc_calls_of(t, g->rank[r]); i < t->f->ncall; i = t->call[i].next) {
			const struct acc_seen_call *c = &t->call[i];
			const bool may = c->k->step == t->step[0] && c->behind && c->in_place &&
					 (first == NULL || c->line == first->line) &&
					 acc_seen_real(t, c, true) != NULL;
			const struct acc_replica_seen *number = may ? clips(t, c, norm) : NULL;
			int rc = number == NULL ? 0 : acc_seen_number(t, number->line, &v, e);
			if (rc < 0)
				return rc;
			if (rc == 0)
				continue;
			if (first == NULL) {
				first = c;
				was = v;
			}
			if (c->k->rank == first->k->rank || v == was)
				continue;
			return acc_replicas_blame(t, g, acc_seen_real(t, c, true)->line,
				SAY(t,
					"is scaled by %.6g on rank %lld and by %.6g on rank %lld, which are made of each"
					" rank's own norms: these ranks hold parts of the same gradients, and one norm, of"
					" all parts, must clip them",
					was, (long long)first->k->rank, v, (long long)c->k->rank),
				1, 0, e);
		}
	return 0;
}

/* What a reduction joins was scaled on each rank by a norm of its own: norms that clip are of what is joined. */
int
acc_rule_clipped(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	uint32_t norm[ACC_MOST_NORMS];
	bool backward = false;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		backward |= c->k->backward;
		const struct acc_replica_seen *in = backward && c->k->talks && c->reduces &&
								    acc_seen_among(t, c, g)
							    ? acc_seen_real(t, c, false)
							    : NULL;
		const struct acc_seen_call *join = in == NULL ? NULL : acc_seen_joined(t, in),
					   *by = in == NULL ? NULL
							    : acc_seen_caller(t,
								      acc_seen_maker(t, in));
		const struct acc_replica_seen *number = clips(t, by, norm);
		for (uint32_t j = join == NULL ? 0 : join->first;
			join != NULL && number == NULL && j < join->first + join->n; j++) {
			by = t->seen[j].out ? NULL
					    : acc_seen_caller(t, acc_seen_maker(t, &t->seen[j]));
			number = clips(t, by, norm);
		}
		if (number == NULL || !acc_replicas_peers(t, g, by, room))
			continue;
		double v[2] = {0, 0};
		uint32_t odd = 0;
		for (uint32_t r = 1; r < g->n && odd == 0; r++)
			odd = t->seen[room[r]->first + (number - t->seen) - by->first].mark !=
					      number->mark
				      ? r
				      : 0;
		int rc = odd == 0 ? 0 : acc_seen_number(t, number->line, &v[0], e);
		if (rc == 1)
			rc = acc_seen_number(t,
				t->seen[room[odd]->first + (number - t->seen) - by->first].line,
				&v[1], e);
		if (rc != 1)
			return rc;
		return acc_replicas_blame(t, g, acc_seen_real(t, by, true)->line,
			SAY(t,
				"is scaled by %.6g on rank %lld and by %.6g on rank %lld, which are made of each"
				" rank's own norms, and joined after that: each rank clips by its own norm",
				v[0], (long long)g->rank[0], v[1], (long long)g->rank[odd]),
			1, 0, e);
	}
	return t->nstep > 0 && acc_seen_work(t, g) == ACC_WORK_PARTS ? clipped_parts(t, g, norm, e)
								     : 0;
}
