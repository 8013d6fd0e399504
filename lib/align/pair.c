/* What ways of pairing are made of. */
#include "align/impl.h"

#include <stdlib.h>

void
acc_scratch_free(struct acc_scratch *s)
{
	if (s == NULL)
		return;
	free(s->slot);
	free(s->next);
	free(s->ids);
	free(s->mate);
	free(s->share);
	free(s);
}

int
acc_share(struct acc_scratch *s, uint32_t a, uint32_t b, uint32_t nth, struct acc_err *e)
{
	if (!ACC_ROOM(s->share, s->share_cap, (size_t)s->nshare + 1, e))
		return ACC_ENOMEM;
	s->share[s->nshare++] = (struct acc_shared_texts){a, b, nth};
	return 0;
}

const struct acc_how acc_item_hows[ACC_HOW_N] = {[ACC_HOW_NAME] = {"name", 1},
	[ACC_HOW_RULE] = {"rule", 1},
	[ACC_HOW_PATH] = {"path", 0.9},
	[ACC_HOW_CONTENT] = {"content", 0.9},
	[ACC_HOW_PATTERN] = {"pattern", 0.8},
	[ACC_HOW_TIED] = {"tied", 0.9},
	[ACC_HOW_PART] = {"part", 0.8},
	[ACC_HOW_FUSED] = {"fused", 0.8},
	[ACC_HOW_ORDER] = {"order", 0.5},
	[ACC_HOW_PLACE] = {"place", 0.8}};

void
acc_mate_ops(struct acc_joined *j, uint32_t a, uint32_t b, const char *how, double sure)
{
	struct acc_align_call *x = &j->a->op[a], *y = &j->b->op[b];
	x->mate = b;
	y->mate = a;
	x->how = y->how = how;
	x->sure = y->sure = sure;
}

void
acc_mate_items(struct acc_joined *j, uint32_t a, uint32_t b)
{
	j->a->item[a].mate = b;
	j->b->item[b].mate = a;
}

static struct acc_slot *
find(struct acc_slot *slot, size_t mask, uint64_t id)
{
	size_t i = (id ^ id >> 32) & mask;
	while (slot[i].head != ACC_NOMATE && slot[i].id != id)
		i = (i + 1) & mask;
	return &slot[i];
}

/* A table from number to a list of the places in b where it stands. */
static int
tabulate(struct acc_scratch *s, const uint64_t *b, uint32_t from, uint32_t nb, size_t *mask,
	struct acc_err *e)
{
	size_t cap = 16;
	while (cap < (size_t)(nb - from) * 2)
		cap *= 2;
	if (!ACC_ROOM(s->slot, s->nslot, cap, e))
		return ACC_ENOMEM;
	struct acc_slot *slot = s->slot;
	if (!ACC_ROOM(s->next, s->nnext, nb, e))
		return ACC_ENOMEM;
	for (size_t i = 0; i < cap; i++)
		slot[i].head = ACC_NOMATE;
	*mask = cap - 1;
	for (uint32_t i = from; i < nb; i++) {
		struct acc_slot *t = find(slot, *mask, b[i]);
		s->next[i] = ACC_NOMATE;
		if (t->head == ACC_NOMATE)
			*t = (struct acc_slot){b[i], i, i};
		else
			t->tail = s->next[t->tail] = i;
	}
	return 0;
}

int
acc_pair_equal(struct acc_scratch *s, const uint64_t *a, uint32_t na, const uint64_t *b,
	uint32_t nb, uint32_t *mate, struct acc_err *e)
{
	uint32_t same = 0;
	/* As long as both lists agree, the first that is free is the one opposite. */
	for (; same < na && same < nb && a[same] == b[same]; same++)
		mate[same] = same;
	for (uint32_t i = same; i < na; i++)
		mate[i] = ACC_NOMATE;
	if (same == na || same == nb)
		return 0;
	size_t mask;
	int rc = tabulate(s, b, same, nb, &mask, e);
	if (rc < 0)
		return rc;
	for (uint32_t i = same; i < na; i++) {
		struct acc_slot *t = find(s->slot, mask, a[i]);
		/* An empty list keeps its slot: its tail says that it is one. */
		if (t->head == ACC_NOMATE || t->tail == ACC_NOMATE)
			continue;
		mate[i] = t->head;
		if (t->head == t->tail)
			t->tail = ACC_NOMATE;
		else
			t->head = s->next[t->head];
	}
	return 0;
}

/* Room for n numbers and n mates. */
static int
room(struct acc_scratch *s, size_t n, struct acc_err *e)
{
	if (!ACC_ROOM(s->ids, s->nids, n, e))
		return ACC_ENOMEM;
	if (!ACC_ROOM(s->mate, s->nmate, n, e))
		return ACC_ENOMEM;
	return 0;
}

int
acc_mate_by(struct acc_joined *j, uint32_t a, uint32_t b,
	uint64_t (*id)(const struct acc_align_item *), struct acc_err *e)
{
	const struct acc_align_call *x = &j->a->op[a], *y = &j->b->op[b];
	struct acc_scratch *s = j->scratch;
	int rc = room(s, (size_t)x->n + y->n + 1, e);
	acc_align_turn(j->al, &j->turns);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < x->n; i++)
		s->ids[i] = id(&j->a->item[x->first + i]);
	for (uint32_t i = 0; i < y->n; i++)
		s->ids[x->n + i] = id(&j->b->item[y->first + i]);
	rc = acc_pair_equal(s, s->ids, x->n, s->ids + x->n, y->n, s->mate, e);
	for (uint32_t i = 0; i < x->n && rc >= 0; i++)
		if (s->mate[i] != ACC_NOMATE)
			acc_mate_items(j, x->first + i, y->first + s->mate[i]);
	return rc;
}

int
acc_mate_calls(struct acc_joined *j, const uint64_t *ida, const uint64_t *idb,
	uint64_t (*id)(const struct acc_align_item *), const char *how, double sure,
	struct acc_err *e)
{
	uint32_t *mate = malloc(((size_t)j->na + 1) * sizeof *mate);
	if (mate == NULL)
		return acc_nomem(e);
	int rc = acc_pair_equal(j->scratch, ida, j->na, idb, j->nb, mate, e);
	for (uint32_t i = 0; i < j->na && rc >= 0; i++) {
		if (mate[i] == ACC_NOMATE)
			continue;
		uint32_t a = j->aop[i], b = j->bop[mate[i]];
		acc_mate_ops(j, a, b, how, sure);
		rc = acc_mate_by(j, a, b, id, e);
	}
	free(mate);
	return rc;
}
