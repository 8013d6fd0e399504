/* Averages of weights over the ranks: where ranks go their own ways for some steps, weights part between two averages
 * by design. */
#include "replay/limits.h"
#include "ranks/asked.h"

/* Is it much the same as the weight? A gradient is not, but its statistics may be near by chance: enough to excuse. */
static int
is_near(struct acc_replicas *t, const struct acc_replica_seen *s, const struct acc_replica_seen *w,
	bool *is, struct acc_err *e)
{
	struct acc_distance d = {0};
	const struct acc_seen_call *maker = acc_seen_caller(t, acc_seen_maker(t, s));
	bool apart = maker != NULL && maker->k->backward;
	*is = false;
	/* What was made of the weight itself, as by its optimizer, however far it moved. */
	for (uint32_t j = maker == NULL || maker->k->backward || maker->k->talks ? UINT32_MAX
										 : maker->first;
		j != UINT32_MAX && j < maker->first + maker->n && !*is; j++)
		*is = !t->seen[j].out && t->seen[j].mark == w->mark && t->seen[j].n == s->n;
	if (*is && maker->behind)
		return 0;
	*is = false;
	int rc = apart ? 0 : acc_replicas_known_apart(t, s, w, LIMIT_REPLICA_MOST, &apart, e);
	if (rc < 0 || apart)
		return rc;
	rc = acc_replicas_distance(t, s, w, &d, e);
	*is = d.known && d.size > 0 && d.d < LIMIT_REPLICA_MOST * d.size;
	return rc;
}

/* The reduction behind the backward pass of this weight's rank and step that is given the weight as it then is. */
static int
average_of(struct acc_replicas *t, const struct acc_replica_seen *w,
	const struct acc_seen_call **found, struct acc_err *e)
{
	const struct acc_seen_call *from = &t->call[w->call];
	bool backward = false, is = false;
	int rc = 0;
	*found = NULL;
	while (from > t->call && acc_seen_beside(from - 1, from))
		from--;
	for (const struct acc_seen_call *c = from;
		!t->scattered && c < t->call + t->f->ncall && acc_seen_beside(c, from) && rc == 0 &&
		*found == NULL;
		c++) {
		const struct acc_replica_seen *in = backward && c->k->talks && c->reduces
							    ? acc_seen_real(t, c, false)
							    : NULL;
		backward |= c->k->backward;
		if (in == NULL || c->picks || c->scatters || in->shape != w->shape)
			continue;
		rc = is_near(t, in, w, &is, e);
		*found = is ? c : NULL;
	}
	return rc;
}

int
acc_replicas_apart_by_design(struct acc_replicas *t, const struct acc_replica_seen *w,
	const struct acc_replica_seen *later, int64_t rank, bool *is, struct acc_err *e)
{
	const struct acc_seen_call *c = NULL;
	int rc = average_of(t, w, &c, e);
	*is = c != NULL && !acc_seen_joins(t, c, t->call[w->call].k->rank, rank);
	if (rc < 0 || c != NULL)
		return rc;
	rc = average_of(t, later, &c, e);
	*is = c != NULL;
	return rc;
}
