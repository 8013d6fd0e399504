/* What a loss is of: where all ranks have the same predictions, they have the same labels, but for those that a rank leaves
 * to the others. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Have two ranks other labels for the same elements? A negative one is none, and so may be one that stands, on either of
 * them, wherever they differ. */
static int
contradict(struct acc_replicas *t, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, bool *is, struct acc_err *e)
{
	double none[2] = {0, 0}; /* may stand for no label */
	bool any = false, may[2] = {true, true}, known = a->n == b->n;
	int rc = 0;
	for (uint64_t at = 0; at < a->n && rc == 0 && known; at += ACC_CHUNK) {
		const size_t n = a->n - at < ACC_CHUNK ? (size_t)(a->n - at) : ACC_CHUNK;
		rc = acc_seen_elements(t, a, at, n, t->a, &known, e);
		if (rc == 0 && known)
			rc = acc_seen_elements(t, b, at, n, t->b, &known, e);
		for (size_t i = 0; i < n && rc == 0 && known; i++) {
			const double x = t->a[i], y = t->b[i];
			if (x == y || x < 0 || y < 0)
				continue;
			none[0] = any ? none[0] : x;
			none[1] = any ? none[1] : y;
			for (int k = 0; k < 2; k++)
				may[k] &= none[k] == x || none[k] == y;
			any = true;
		}
	}
	*is = rc == 0 && known && any && !may[0] && !may[1];
	return rc;
}

/* Is one of the predictions the same on all ranks, and not one number? */
static int
is_shared(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, bool *is, struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	int rc = 0;
	*is = false;
	for (uint32_t j = 0; j < c->n && rc == 0 && !*is; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		bool flat = true;
		if (s->out || !s->real || s->n < 2 || !s->wants)
			continue;
		rc = acc_replicas_same(t, g, peer, j, is, e);
		if (rc == 0 && *is)
			rc = acc_replicas_flat(t, s, &flat, e);
		*is &= !flat;
	}
	return rc;
}

int
acc_rule_labels(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0];
	bool shared = false, other = false;
	uint32_t odd = 0;
	int rc = c->loss ? is_shared(t, g, peer, &shared, e) : 0;
	for (uint32_t j = 0; j < c->n && rc == 0 && shared && !other; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		for (uint32_t i = 1; i < g->n && rc == 0 && !s->out && !s->real && !other; i++) {
			rc = contradict(t, s, &t->seen[peer[i]->first + j], &other, e);
			odd = i;
		}
	}
	return rc < 0 || !other
		       ? rc
		       : acc_replicas_blame(t, g, t->seen[peer[odd]->first].line,
				 SAY(t,
					 "is the same on rank %lld as on rank %lld, and is compared with different labels "
					 "there",
					 (long long)peer[odd]->k->rank, (long long)c->k->rank),
				 1, 0, e);
}
