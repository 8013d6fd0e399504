/* Tensors of one place on several ranks: the same to the bit, but for rounding, or apart; and which rank is the odd one. */
#include "ranks/near.h"

bool
acc_replicas_marked(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j)
{
	const struct acc_replica_seen *s = t->seen;
	uint64_t mark = s[peer[0]->first + j].mark;
	for (uint32_t i = 1; i < g->n; i++)
		if (s[peer[i]->first + j].mark != mark)
			return false;
	return mark != 0;
}

int
acc_seen_alike(struct acc_replicas *t, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, enum acc_alike *is, struct acc_err *e)
{
	struct acc_distance d = {0};
	*is = ACC_EQUAL;
	if (a->mark != 0 && a->mark == b->mark)
		return 0;
	double near = 0;
	bool apart = a->shape != b->shape;
	int rc = a->real && !apart ? acc_replicas_near(t, a, &near, e) : 0;
	if (rc == 0 && !apart && a->real && a->n >= ACC_CHUNK) /* few elements are read as fast */
		rc = acc_replicas_known_apart(t, b, a, near, &apart, e);
	if (rc == 0 && !apart)
		rc = acc_replicas_distance(t, b, a, &d, e);
	if (rc < 0)
		return rc;
	if (apart)
		*is = ACC_APART;
	else if (!d.known)
		*is = ACC_NOT_KNOWN;
	else if (d.d > 0)
		*is = a->real && d.d <= near * d.size ? ACC_NEAR : ACC_APART;
	return 0;
}

int
acc_replicas_alike(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, enum acc_alike *is, struct acc_err *e)
{
	const struct acc_replica_seen *s = t->seen, *a = &s[peer[0]->first + j];
	int rc = 0;
	*is = ACC_EQUAL;
	for (uint32_t i = 1; i < g->n && rc == 0 && *is < ACC_APART; i++) {
		enum acc_alike one = ACC_EQUAL;
		rc = acc_seen_alike(t, a, &s[peer[i]->first + j], &one, e);
		*is = one > *is ? one : *is;
	}
	return rc;
}

uint32_t
acc_replicas_odd(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j)
{
	const struct acc_replica_seen *s = t->seen;
	uint32_t best = g->n - 1, least = UINT32_MAX;
	for (uint32_t i = g->n; i-- > 0;) {
		uint32_t same = 0;
		for (uint32_t k = 0; k < g->n; k++)
			same += s[peer[i]->first + j].mark == s[peer[k]->first + j].mark;
		if (same < least) {
			least = same;
			best = i;
		}
	}
	return best;
}
