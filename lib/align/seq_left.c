/* What is left over pairs in whatever order, the best first; and pairs of alike calls are
 * exchanged where values say so. */
#include "align/lists.h"
#include "align/seq.h"

#include <stdlib.h>

struct kin {
	uint64_t key;
	uint32_t call;
	bool b;
};

static int
cmp_kin(const void *x, const void *y)
{
	const struct kin *p = x, *q = y;
	if (p->key != q->key)
		return p->key < q->key ? -1 : 1;
	if (p->b != q->b)
		return p->b - q->b;
	return (p->call > q->call) - (p->call < q->call);
}

struct candidate {
	int points;
	uint32_t far; /* how far apart they stand */
	uint32_t x, y;
};

static int
cmp_candidate(const void *x, const void *y)
{
	const struct candidate *p = x, *q = y;
	if (p->points != q->points)
		return p->points > q->points ? -1 : 1;
	if (p->far != q->far)
		return p->far < q->far ? -1 : 1;
	if (p->x + p->y != q->x + q->y) /* the sides can be exchanged */
		return p->x + p->y < q->x + q->y ? -1 : 1;
	return p->x != q->x ? (p->x < q->x ? -1 : 1) : (p->y > q->y) - (p->y < q->y);
}

/* Where each call of a side would stand in the other: behind the mate of the last one before it. */
static void
expected(const uint32_t *mate, uint32_t n, uint32_t *where)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (mate[i] != ACC_NOMATE)
			at = mate[i] + 1;
		where[i] = at;
	}
}

static uint32_t
apart(uint32_t x, uint32_t y)
{
	return x > y ? x - y : y - x;
}

/* Out of order, what stands in another module is not the same call for its looks alone; nor is a copy of
 * another thing. */
static bool
known(const struct seq *s, uint32_t x, uint32_t y)
{
	const struct call *p = &s->a[x], *q = &s->b[y];
	if (p->moves && q->moves && acc_seq_value(p, q) <= -10 && acc_seq_flow(s, x, y) <= 0)
		return false;
	return p->scope == 0 || q->scope == 0 || p->scope == q->scope ||
	       acc_seq_value(p, q) >= 15 || acc_seq_flow(s, x, y) > 0 ||
	       (p->leaf != 0 && p->leaf == q->leaf);
}

enum { NEAREST = 64 };

/* Pairs of one kin that cross each other, and would be as good in order, are in order. */
static void
order_kin(struct seq *s, const struct kin *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i + 1; k < n && k <= i + NEAREST; k++) {
			const uint32_t x = p[i].call, z = p[k].call, y = s->ma[x], w = s->ma[z];
			if (y == ACC_NOMATE || w == ACC_NOMATE || y < w || !known(s, x, w) ||
				!known(s, z, y) ||
				acc_seq_points(s, x, w) + acc_seq_points(s, z, y) <
					acc_seq_points(s, x, y) + acc_seq_points(s, z, w))
				continue;
			acc_seq_mate(s, x, w, SEQ_LIKENESS);
			acc_seq_mate(s, z, y, SEQ_LIKENESS);
		}
}

/* Candidates of one kin: n of a, m of b. */
static int
pair_kin(struct seq *s, const struct kin *p, uint32_t n, const struct kin *q, uint32_t m,
	const uint32_t *where)
{
	size_t per = m < NEAREST ? m : NEAREST, nc = 0;
	struct candidate *c = malloc((n * per + 1) * sizeof *c);
	if (c == NULL)
		return acc_nomem(s->e);
	for (uint32_t i = 0, from = 0; i < n; i++) {
		while (from + per < m && q[from + per / 2].call < where[p[i].call])
			from++;
		for (uint32_t k = from; k < from + per; k++) {
			uint32_t x = p[i].call, y = q[k].call;
			uint32_t far = apart(y, where[x]) + apart(x, where[s->na + y]);
			int v = acc_seq_points(s, x, y);
			if (v >= SEQ_SURE && known(s, x, y))
				c[nc++] = (struct candidate){v, far, x, y};
		}
	}
	qsort(c, nc, sizeof *c, cmp_candidate);
	for (size_t i = 0; i < nc; i++)
		if (s->ma[c[i].x] == ACC_NOMATE && s->mb[c[i].y] == ACC_NOMATE)
			acc_seq_mate(s, c[i].x, c[i].y, SEQ_LIKENESS);
	order_kin(s, p, n);
	free(c);
	return 0;
}

static uint32_t
list(const struct call *c, uint32_t n, const uint32_t *mate, bool b, struct kin *out)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++)
		if (mate[i] == ACC_NOMATE) {
			const uint64_t id[2] = {c[i].out, c[i].nobodys ? 0 : c[i].family};
			out[k++] = (struct kin){acc_hash(id, sizeof id), i, b};
		}
	return k;
}

int
acc_seq_left(struct seq *s)
{
	struct kin *kin = malloc(((size_t)s->na + s->nb + 1) * sizeof *kin);
	uint32_t *where = malloc(((size_t)s->na + s->nb + 1) * sizeof *where);
	int rc = kin == NULL || where == NULL ? acc_nomem(s->e) : 0;
	uint32_t n = 0;
	if (rc == 0) {
		expected(s->ma, s->na, where);
		expected(s->mb, s->nb, where + s->na);
		n = list(s->a, s->na, s->ma, false, kin);
		n += list(s->b, s->nb, s->mb, true, kin + n);
		qsort(kin, n, sizeof *kin, cmp_kin);
	}
	for (uint32_t i = 0; i < n && rc == 0;) {
		uint32_t na = 0, nb = 0;
		while (i + na < n && kin[i + na].key == kin[i].key && !kin[i + na].b)
			na++;
		while (i + na + nb < n && kin[i + na + nb].key == kin[i].key)
			nb++;
		if (na > 0 && nb > 0)
			rc = pair_kin(s, &kin[i], na, &kin[i + na], nb, where);
		i += na + nb;
	}
	free(kin);
	free(where);
	return rc;
}

/* The next step from *i on that has no mate. */
static bool
next_step(const struct seq *s, bool b, uint32_t *i)
{
	const struct acc_half *h = &s->j->al->h[b];
	const struct call *c = b ? s->b : s->a;
	const uint32_t *mate = b ? s->mb : s->ma, n = b ? s->nb : s->na;
	for (; *i < n; ++*i) {
		const uint32_t text = h->ix.op[c[*i].op].op_text;
		if (mate[*i] == ACC_NOMATE && text != ACC_NOMATE &&
			acc_lists_are_taken(h->names.v[text].text))
			return true;
	}
	return false;
}

/* What ranks share is of other shapes where they share it otherwise, and each way to start a program calls it from
 * elsewhere: neither shapes nor source tell that it is the same step. */
void
acc_seq_steps(struct seq *s)
{
	uint32_t n[2] = {0};
	for (int b = 0; b < 2; b++)
		for (uint32_t i = 0; next_step(s, b, &i); i++)
			n[b]++;
	if (n[0] != n[1])
		return;
	for (uint32_t x = 0, y = 0; next_step(s, false, &x) && next_step(s, true, &y); x++, y++)
		if (acc_seq_kin(&s->a[x], &s->b[y]))
			acc_seq_mate(s, x, y, SEQ_LIKENESS);
}

static bool
same_leaf(const struct call *x, const struct call *y)
{
	return x->leaf != 0 && x->leaf == y->leaf;
}

/* What a pair as it stands is worth, since the last exchange. */
struct worth {
	uint32_t since;
	int flow, points;
};

static const struct worth *
worth_of(const struct seq *s, struct worth *w, uint32_t i, uint32_t since)
{
	if (w[i].since != since)
		w[i] = (struct worth){since, acc_seq_flow(s, i, s->ma[i]),
			acc_seq_points(s, i, s->ma[i])};
	return &w[i];
}

/* Would the partners of calls i and k be better exchanged? It takes values that are almost the
 * same, the same weights, or the origin of inputs: values that are only less far apart are no
 * reason to believe that the order has changed. */
static bool
better_crossed(const struct seq *s, struct worth *worth, uint32_t since, uint32_t i, uint32_t k)
{
	uint32_t x = s->ma[i], y = s->ma[k];
	const struct call *p = &s->a[i], *q = &s->a[k], *u = &s->b[x], *w = &s->b[y];
	const struct worth *one = worth_of(s, worth, i, since), *two = worth_of(s, worth, k, since);
	bool reason = (acc_seq_value(p, w) >= 15 && acc_seq_value(q, u) >= 15) ||
		      (same_leaf(p, w) && same_leaf(q, u) && !same_leaf(p, u)) ||
		      acc_seq_flow(s, i, y) + acc_seq_flow(s, k, x) > one->flow + two->flow;
	return reason &&
	       acc_seq_points(s, i, y) + acc_seq_points(s, k, x) > one->points + two->points + 10;
}

/* Pairs of the same kin that stand near each other. */
int
acc_seq_uncross(struct seq *s)
{
	enum { REACH = 64 };
	struct worth *worth = calloc((size_t)s->na + 1, sizeof *worth);
	uint32_t since = 1;
	if (worth == NULL)
		return acc_nomem(s->e);
	for (uint32_t i = 0; i < s->na; i++)
		for (uint32_t k = i + 1; k < s->na && k < i + REACH; k++) {
			const struct call *p = &s->a[i], *q = &s->a[k];
			uint32_t x = s->ma[i], y = s->ma[k];
			if (x == ACC_NOMATE || y == ACC_NOMATE || p->out != q->out ||
				p->family != q->family || s->b[x].out != s->b[y].out ||
				s->how[i] == SEQ_RULE || s->how[k] == SEQ_RULE ||
				!better_crossed(s, worth, since, i, k))
				continue;
			acc_seq_mate(s, i, y, SEQ_LIKENESS);
			acc_seq_mate(s, k, x, SEQ_LIKENESS);
			since++;
		}
	free(worth);
	return 0;
}

/* Is there a call that takes a result of call `maker` of c, near behind it, and has a partner that
 * takes (1), or does not take (-1), a result of the other maker there? 0: there is none. The operands of a difference
 * have places. */
static int
same_use(const struct call *c, uint32_t n, const uint32_t *mate, uint32_t maker,
	const struct call *d, uint32_t other)
{
	enum { REACH = 64 };
	int use = 0;
	for (uint32_t i = maker + 1; i < n && i < maker + REACH; i++)
		for (int t = 0; t < SEQ_INS && mate[i] != ACC_NOMATE; t++) {
			if (c[i].from[t] == ACC_NOMATE || c[i].from[t] / SEQ_OUTS != maker)
				continue;
			for (int u = 0; u < SEQ_INS; u++)
				if (d[mate[i]].from[u] != ACC_NOMATE &&
					d[mate[i]].from[u] / SEQ_OUTS == other &&
					(t == u || !acc_seq_ordered(&c[i], &d[mate[i]])))
					return 1;
			use = -1;
		}
	return use;
}

/* A call whose values are wrong still takes what its partner takes, or its result still goes where
 * that of its partner goes. Where neither is so, and values differ, the two are different calls; and
 * copies of different things belong together in no case. */
void
acc_seq_reject(struct seq *s)
{
	for (uint32_t i = 0; i < s->na; i++) {
		uint32_t k = s->ma[i];
		if (k == ACC_NOMATE || s->how[i] == SEQ_RULE || s->how[i] == SEQ_PACKED ||
			acc_seq_flow(s, i, k) >= 0 || acc_seq_value(&s->a[i], &s->b[k]) > -10)
			continue;
		bool copies = acc_seq_moves(s->j->a, &s->a[i]) && acc_seq_moves(s->j->b, &s->b[k]);
		int use = copies ? -1
				 : same_use(s->a, s->na, s->ma, i, s->b, k) +
					   same_use(s->b, s->nb, s->mb, k, s->a, i);
		if (use < 0)
			s->ma[i] = s->mb[k] = ACC_NOMATE;
	}
}
