/* A side that does not keep a part of the forward pass, but computes it again for the backward pass,
 * numbers the backward calls by those of the second time. The other side has these calls once: the
 * pairs of the first time say which backward calls belong together. */
#include "align/seq.h"

#include <stdlib.h>

/* One side, and how to ask for what the forward calls of either led to. */
struct again {
	const struct acc_index *ix;
	const struct call *call;
	const uint32_t *mate;
	uint32_t n;
	bool b;
	acc_seq_back_fn *back;
	void *arg;
};

/* What a call does, of which values, with which results; the second time these are the very same, but
 * the stack is another one. 0: its results are not known, or like others. */
static uint64_t
key_of(const struct again *g, uint32_t x)
{
	const struct acc_align_call *op = &g->ix->op[g->call[x].op];
	uint64_t h[2] = {op->op_text, 0};
	bool known = false;
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		const struct acc_align_item *it = &g->ix->item[i];
		if (!it->has_shape)
			continue;
		uint64_t more[4] = {h[1], it->shape, it->print, (uint64_t)it->io};
		h[1] = acc_hash(more, sizeof more);
		known |= it->io == ACC_IO_OUT && it->print != 0;
	}
	return known ? acc_hash(h, sizeof h) : 0;
}

/* The calls of one side, and which of them is the first time of which. */
struct times {
	uint64_t *key;              /* 0: neither */
	uint32_t *first;            /* of a second time */
	struct acc_ids of[2], many; /* key -> first, second time; keys that have several */
};

static bool
is_second(const struct again *g, uint32_t x)
{
	return g->mate[x] == ACC_NOMATE;
}

static int
collect(const struct seq *s, const struct again *g, struct times *t)
{
	int rc = 0;
	for (uint32_t x = 0; x < g->n && rc == 0; x++) {
		uint32_t y = g->mate[x], back = g->back(g->arg, g->b, g->call[x].op);
		bool whole = y == ACC_NOMATE || s->how[g->b ? y : x] < SEQ_PACKED;
		/* The first time led to no backward call, the second to one. */
		bool can = (y == ACC_NOMATE) != (back == ACC_NOMATE) && whole;
		t->first[x] = ACC_NOMATE;
		t->key[x] = can ? key_of(g, x) : 0;
		if (t->key[x] == 0)
			continue;
		struct acc_ids *of = &t->of[is_second(g, x)];
		if (acc_ids_get(of, t->key[x]) != ACC_NOID)
			rc = acc_ids_put(&t->many, t->key[x], x, false, s->e);
		else
			rc = acc_ids_put(of, t->key[x], x, false, s->e);
	}
	return rc;
}

/* What has one first and one second time; then of those that have several, those that stand as far from
 * each other as the last that has one, or the next. */
static void
match(const struct again *g, struct times *t)
{
	for (uint32_t x = 0; x < g->n; x++)
		if (t->key[x] != 0 && is_second(g, x) &&
			acc_ids_get(&t->many, t->key[x]) == ACC_NOID)
			t->first[x] = acc_ids_get(&t->of[0], t->key[x]);
	for (int down = 0; down < 2; down++) {
		uint32_t apart = 0; /* 0: not known */
		for (uint32_t i = 0; i < g->n; i++) {
			uint32_t x = down ? g->n - 1 - i : i, f = t->first[x];
			if (t->key[x] == 0 || !is_second(g, x))
				continue;
			if (f == ACC_NOMATE && apart > 0 && apart <= x &&
				t->key[x - apart] == t->key[x] && !is_second(g, x - apart))
				t->first[x] = x - apart;
			else if (f != ACC_NOMATE)
				apart = x > f ? x - f : 0;
		}
	}
}

static int
mate_backward(struct seq *s, const struct again *g, uint32_t x, uint32_t f)
{
	struct acc_joined *j = s->j;
	uint32_t own = g->back(g->arg, g->b, g->call[x].op);
	uint32_t other = g->back(g->arg, !g->b, (g->b ? s->a : s->b)[g->mate[f]].op);
	uint32_t a = g->b ? other : own, b = g->b ? own : other;
	if (other == ACC_NOMATE || j->a->op[a].mate != ACC_NOMATE || j->b->op[b].mate != ACC_NOMATE)
		return 0;
	const struct acc_align_call *pair = &j->a->op[g->b ? s->a[g->mate[f]].op : g->call[f].op];
	acc_mate_ops(j, a, b, pair->how, pair->sure);
	return acc_seq_mate_items(j, a, b, s->e);
}

static int
one_side(struct seq *s, const struct again *g)
{
	struct times t = {.key = malloc(((size_t)g->n + 1) * sizeof *t.key),
		.first = malloc(((size_t)g->n + 1) * sizeof *t.first)};
	int rc = t.key == NULL || t.first == NULL ? acc_nomem(s->e) : collect(s, g, &t);
	if (rc == 0)
		match(g, &t);
	for (uint32_t x = 0; x < g->n && rc >= 0; x++)
		if (t.first[x] != ACC_NOMATE)
			rc = mate_backward(s, g, x, t.first[x]);
	acc_ids_release(&t.of[0]);
	acc_ids_release(&t.of[1]);
	acc_ids_release(&t.many);
	free(t.key);
	free(t.first);
	return rc < 0 ? rc : 0;
}

int
acc_seq_again(struct seq *s, acc_seq_back_fn *back, void *arg)
{
	const struct again a = {s->j->a, s->a, s->ma, s->na, false, back, arg};
	const struct again b = {s->j->b, s->b, s->mb, s->nb, true, back, arg};
	int rc = one_side(s, &a);
	return rc < 0 ? rc : one_side(s, &b);
}
