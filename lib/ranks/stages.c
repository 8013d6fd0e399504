/* Which ranks are the stages of a pipeline: what a rank begins with comes from the one before it. */
#include "ranks/collective.h"
#include "ranks/asked.h"

#include <stdlib.h>

struct start { /* how a rank begins the first step */
	const struct acc_seen_call
		*receives; /* numbers, before it has used a weight; NULL: it does not */
	bool uses, talks, sends, gives; /* a weight; with one rank; gives: what it made by one */
};

static void
note_start(const struct acc_replicas *t, const struct acc_seen_call *c, struct start *s)
{
	if (c->receives && !s->talks && acc_seen_real(t, c, true) != NULL) {
		s->talks = true;
		s->receives = s->uses ? NULL : c;
	}
	if (c->sends && !s->sends && acc_seen_real(t, c, false) != NULL) {
		s->sends = true;
		s->gives = s->uses;
	}
	for (uint32_t j = c->first; j < c->first + c->n && !c->begins; j++)
		s->uses |= t->seen[j].leaf;
}

/* The rank that a rank begins with what it receives from, where that one had made it by weights; else nrank. */
static int
giver_of(struct acc_replicas *t, const struct start *start, size_t i, size_t *giver,
	struct acc_err *e)
{
	struct acc_collective got = {.peer = -1};
	bool known = false;
	int rc = start[i].receives == NULL
			 ? 0
			 : acc_collective_read(t->f, start[i].receives->k, &got, &known, e);
	size_t from = rc == 0 && known ? acc_fleet_index(t->f, got.peer) : t->f->nrank;
	*giver = from < t->f->nrank && start[from].gives ? from : t->f->nrank;
	return rc;
}

int
acc_replicas_stages(struct acc_replicas *t, struct acc_err *e)
{
	const size_t n = t->f->nrank;
	size_t *giver = calloc(n, sizeof *giver);
	struct start *start = calloc(n, sizeof *start);
	int rc = 0;
	t->stage = calloc(n, sizeof *t->stage);
	if (giver == NULL || start == NULL || t->stage == NULL)
		rc = acc_nomem(e);
	for (size_t i = 0; i < t->f->ncall && rc == 0; i++)
		if (t->call[i].k->step == t->step[0])
			note_start(t, &t->call[i],
				&start[acc_fleet_index(t->f, t->call[i].k->rank)]);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = giver_of(t, start, i, &giver[i], e);
	for (size_t i = 0; i < n && rc == 0;
		i++) /* no further than all ranks, if they form a ring */
		for (size_t at = giver[i]; at < n && t->stage[i] < n; at = giver[at])
			t->stage[i]++;
	free(giver);
	free(start);
	return rc;
}
