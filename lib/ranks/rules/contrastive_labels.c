/* Rows of each rank beside columns that were gathered from all: which column belongs to a row is not the same on all
 * ranks. */
#include "acc/say.h"
#include "ranks/asked.h"
#include "ranks/walk.h"

/* Are these columns gathered, of what an op call makes of data, as weights are not? */
static bool
is_gathered(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s)
{
	struct acc_walk w;
	bool made = false;
	acc_walk_back(&w, t, g, s);
	for (unsigned i = 0; i < w.nend; i++)
		made |= w.far[i];
	return w.talk != NULL && w.talk->gathers && made;
}

/* Rows that are other ones on each rank, of a product with columns that are gathered? */
static int
of_columns(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	bool rows = false, columns = false;
	*is = false;
	if (!acc_replicas_peers(t, g, c, peer))
		return 0;
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		enum acc_alike how = ACC_EQUAL;
		if (s->out || !s->real || s->n < 2)
			continue;
		int rc = acc_replicas_alike(t, g, peer, j, &how, e);
		if (rc < 0)
			return rc;
		rows |= how == ACC_APART;
		columns |= how < ACC_APART && is_gathered(t, g, s);
	}
	*is = rows && columns;
	return 0;
}

/* Of labels that are the same on all ranks: of which rank's rows are the columns? g->n: of several. */
static int
owner(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *labels,
	uint32_t *out, struct acc_err *e)
{
	bool known = labels->n <= ACC_CHUNK;
	int rc = known ? acc_seen_elements(t, labels, 0, (size_t)labels->n, t->a, &known, e) : 0;
	*out = g->n;
	for (uint64_t i = 0; i < labels->n && rc == 0 && known; i++) {
		const double at = t->a[i] / (double)labels->n;
		if (at < 0 || at >= g->n || (i > 0 && *out != (uint32_t)at)) {
			*out = g->n;
			break;
		}
		*out = (uint32_t)at;
	}
	return rc;
}

int
acc_rule_contrast(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || !c->loss)
			continue;
		struct acc_walk w;
		const struct acc_seen_call *product = acc_walk_product(&w, t, g, c);
		bool is = false;
		int rc = product == NULL ? 0 : of_columns(t, g, product, room, &is, e);
		if (rc < 0)
			return rc;
		if (!is || !acc_replicas_peers(t, g, c, room))
			continue;
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			uint32_t of = g->n;
			bool flat = true;
			if (s->out || s->real || s->n < 2 || !s->exact ||
				!acc_replicas_marked(t, g, room, j))
				continue;
			rc = acc_replicas_flat(t, s, &flat, e);
			if (rc == 0 && !flat)
				rc = owner(t, g, s, &of, e);
			if (rc < 0)
				return rc;
			if (of == g->n)
				continue;
			const uint32_t odd = of == 0;
			return acc_replicas_blame(t, g, t->seen[room[odd]->first + j].line,
				acc_say(&t->f->mem,
					"names columns that rank %lld gave, as on all other ranks, each of which has"
					" rows of its own, and columns of all",
					(long long)g->rank[of]),
				1, 0, e);
		}
	}
	return 0;
}
