/* Arrays without a partner, where a fault may have changed all values: behind the last that has one; and before, what
 * leads to an end that differs though nothing agrees on the way there. */
#include "align/arrays.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* Pairs of which neither side crosses, as many as there are; v: the outputs of `side`, by their places. */
struct chain {
	uint32_t *v, n;
	uint32_t call; /* behind the last of the other side that has a partner at all */
};

/* Where the arrays stand in the order in which they were made, as most pairs say, that order's pairs; else none. */
static int
find_chain(const struct arrays *x, int side, struct chain *c, struct acc_err *e)
{
	const struct output *v = x->v[side];
	const uint32_t n = x->n[side];
	uint32_t pairs = 0, at = ACC_NOMATE;
	/* Of chains of each length the last; and what stands before an output in its chain. */
	uint32_t *tail = malloc(2 * ((size_t)n + 1) * sizeof *tail), *before = tail + n;
	c->n = c->call = 0;
	if (tail == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < n; i++) {
		/* A table that each layer makes anew is right behind a fault, too. */
		if (v[i].mate == ACC_NOMATE || v[i].again)
			continue;
		pairs++;
		c->call = v[i].mate + 1 > c->call ? v[i].mate + 1 : c->call;
		uint32_t lo = 0;
		ACC_LOWER(lo, c->n, v[tail[lo]].mate < v[i].mate);
		before[i] = lo == 0 ? ACC_NOMATE : tail[lo - 1];
		tail[lo] = i;
		if (lo == c->n) {
			c->n++;
			at = i;
		}
	}
	if (pairs < 3 || 3 * (uint64_t)c->n < 2 * (uint64_t)pairs)
		c->n = 0;
	for (uint32_t i = c->n; i-- > 0; at = before[at])
		c->v[i] = at;
	free(tail);
	return 0;
}

/* How well two fit of which values need not be the same; 0: not at all. */
static int
fit(const struct output *p, const struct output *q)
{
	const double d = acc_arrays_apart(p, q);
	if (p->count != q->count || p->real != q->real || p->dims != q->dims)
		return 0;
	const bool word = (p->word != 0 && (p->word == q->word || p->word == q->last_word)) ||
			  (p->last_word != 0 && p->last_word == q->word);
	return (word ? 6 : 0) + (d < 0.1 ? 6 : d < 0.5 ? 4 : d < 1 || isinf(d) ? 2 : 1);
}

/* Outputs of a side, by their places. */
struct some {
	uint32_t *v, n;
};

/* The best pairs in order of these, which have none: a table of the best sums from each on. */
static int
pair_order(struct arrays *x, const struct some *a, const struct some *b)
{
	enum { MOST = 2048 };
	const uint32_t n = a->n, m = b->n;
	if (n == 0 || m == 0 || n > MOST || m > MOST)
		return 0;
	int32_t *best = calloc((size_t)(n + 1) * (m + 1), sizeof *best);
	if (best == NULL)
		return acc_nomem(x->e);
	const size_t row = (size_t)m + 1;
	for (uint32_t i = n; i-- > 0;)
		for (uint32_t k = m; k-- > 0;) {
			const int points = fit(&x->v[0][a->v[i]], &x->v[1][b->v[k]]);
			int32_t *here = &best[i * row + k];
			*here = here[1] > here[row] ? here[1] : here[row];
			if (points > 0 && here[row + 1] + points >= *here)
				*here = here[row + 1] + points;
		}
	for (uint32_t i = 0, k = 0; i < n && k < m;) {
		struct output *p = &x->v[0][a->v[i]], *q = &x->v[1][b->v[k]];
		const int32_t *here = &best[i * row + k];
		const int points = fit(p, q);
		if (points > 0 && *here == here[row + 1] + points) {
			acc_arrays_mate(p, q, ACC_HOW_PLACE);
			i++, k++;
		} else if (*here == here[row]) {
			i++;
		} else {
			k++;
		}
	}
	free(best);
	return 0;
}

/* What has no partner of a side, from a place on and before another, and behind `all` or open; of one word alone, if
 * that is not 0. */
struct range {
	uint32_t from, to, all;
	uint64_t word;
};

static void
list(const struct arrays *x, int side, struct range r, const bool *open, struct some *out)
{
	const struct output *v = x->v[side];
	out->n = 0;
	for (uint32_t i = r.from; i < r.to; i++)
		if (v[i].mate == ACC_NOMATE && !v[i].again && (i >= r.all || open[i]) &&
			(r.word == 0 || v[i].word == r.word))
			out->v[out->n++] = i;
}

/* Of arrays of one word, add_2 before add_10, those whose numbers are between the ones of the last that has its partner before
 * a call and of the next that has it behind; into *to where that is. side: the arrays'. */
static void
by_number(const struct arrays *x, int side, uint32_t call, struct some *s, uint32_t *to)
{
	const struct output *v = x->v[side];
	uint32_t n = 0;
	int64_t last = INT64_MIN, next = INT64_MAX;
	*to = x->n[1 - side];
	for (uint32_t i = 0; i < x->n[side] && s->n > 0; i++) {
		if (v[i].mate == ACC_NOMATE || v[i].word != v[s->v[0]].word)
			continue;
		if (v[i].mate < call)
			last = v[i].number > last ? v[i].number : last;
		else if (v[i].mate < *to) {
			*to = v[i].mate;
			next = v[i].number;
		}
	}
	for (uint32_t i = 0; i < s->n; i++) {
		const uint32_t at = s->v[i];
		uint32_t k = n;
		if (v[at].number <= last || v[at].number >= next)
			continue;
		for (; k > 0 && v[s->v[k - 1]].number > v[at].number; k--)
			s->v[k] = s->v[k - 1];
		s->v[k] = at;
		n++;
	}
	s->n = n;
}

/* In no order: the arrays named by an operator, by their numbers. side: the arrays'. */
static int
pair_words(struct arrays *x, int side, uint32_t behind, const bool *open, struct some both[2])
{
	const uint64_t most = 1 << 26; /* looks; of more arrays likeness has to do */
	int rc = 0;
	if ((uint64_t)x->n[0] * x->n[1] > most)
		return 0;
	for (uint32_t i = 0; i < x->n[1 - side] && rc == 0; i++) {
		const struct output *q = &x->v[1 - side][i];
		if (q->mate != ACC_NOMATE || q->word == 0 || (i < behind && !open[i]))
			continue;
		const struct range arrays = {0, x->n[side], 0, q->word};
		struct range calls = {i, 0, behind, q->word};
		list(x, side, arrays, NULL, &both[side]);
		by_number(x, side, i, &both[side], &calls.to);
		list(x, 1 - side, calls, open, &both[1 - side]);
		rc = pair_order(x, &both[0], &both[1]);
	}
	return rc;
}

/* The end of the calls, where that has no partner: one of its shape, the nearest, and of these the last. */
static void
pair_end(struct arrays *x, int calls)
{
	const struct output *v = x->v[calls];
	uint32_t end = x->n[calls], best = ACC_NOMATE;
	double least = INFINITY;
	while (end > 0 && (!v[end - 1].real || v[end - 1].count < 2))
		end--;
	if (end == 0 || v[end - 1].mate != ACC_NOMATE)
		return;
	for (uint32_t i = 0; i < x->n[1 - calls]; i++) {
		const struct output *p = &x->v[1 - calls][i];
		if (p->mate != ACC_NOMATE || fit(p, &v[end - 1]) == 0)
			continue;
		const double d = acc_arrays_apart(p, &v[end - 1]);
		if (best == ACC_NOMATE || d <= least)
			best = i;
		least = fmin(least, d);
	}
	if (best != ACC_NOMATE)
		acc_arrays_mate(&x->v[0][calls == 0 ? end - 1 : best],
			&x->v[1][calls == 0 ? best : end - 1], ACC_HOW_PLACE);
}

/* Between two of a chain that agree: arrays, and calls that are open; and behind the last. */
static int
pair_gaps(struct arrays *x, int side, const struct chain *c, const bool *open, struct some both[2])
{
	struct range arrays = {0, 0, 0, 0}, calls = {0, 0, c->call, 0};
	int rc = 0;
	for (uint32_t i = 0; i <= c->n && rc == 0; i++) {
		const bool last = i == c->n;
		arrays.to = last ? x->n[side] : c->v[i];
		calls.to = last ? x->n[1 - side] : x->v[side][c->v[i]].mate;
		list(x, side, arrays, NULL, &both[side]);
		list(x, 1 - side, calls, open, &both[1 - side]);
		rc = pair_order(x, &both[0], &both[1]);
		arrays.from = arrays.to + 1;
		calls.from = calls.to + 1;
	}
	return rc;
}

/* What is open though what was made before it agrees, as of a module that stands behind those within, whose results
 * were made before theirs: the nearest of what has no partner, before what agrees behind it. */
static void
pair_late(struct arrays *x, int side, const struct chain *c, const bool *open)
{
	const double far = 0.5;
	struct output *v = x->v[side], *m = x->v[1 - side];
	for (uint32_t i = 0, to = 0; i < x->n[1 - side]; i++) {
		while (to < c->n && v[c->v[to]].mate < i)
			to++;
		const uint32_t end = to < c->n ? c->v[to] : x->n[side];
		uint32_t best = ACC_NOMATE;
		double least = far;
		for (uint32_t k = 0; k < end && open[i] && m[i].mate == ACC_NOMATE && !m[i].again;
			k++) {
			const double d = acc_arrays_apart(&v[k], &m[i]);
			if (v[k].mate != ACC_NOMATE || v[k].again || fit(&v[k], &m[i]) == 0 ||
				!(d < least))
				continue;
			best = k;
			least = d;
		}
		if (best != ACC_NOMATE)
			acc_arrays_mate(side == 0 ? &v[best] : &m[i], side == 0 ? &m[i] : &v[best],
				ACC_HOW_PLACE);
	}
}

int
acc_arrays_behind(struct arrays *x)
{
	const int side = x->side;
	const size_t n = (size_t)x->n[0] + x->n[1] + 1;
	uint32_t *v = malloc(2 * n * sizeof *v);
	bool *open = calloc(n, sizeof *open);
	struct some both[2] = {{v, 0}, {v + (v == NULL ? 0 : x->n[0]), 0}};
	struct chain c = {.v = v + (v == NULL ? 0 : n)};
	int rc = v == NULL || open == NULL ? acc_nomem(x->e) : find_chain(x, side, &c, x->e);
	if (rc == 0)
		rc = acc_arrays_open(x, 1 - side, open);
	if (rc == 0 && c.n > 0) {
		rc = pair_gaps(x, side, &c, open, both);
		if (rc == 0)
			pair_late(x, side, &c, open);
	} else if (rc == 0) {
		rc = pair_words(x, side, c.call, open, both);
		if (rc == 0)
			rc = acc_arrays_values(x, 0.3, c.call, ACC_HOW_PLACE);
	}
	if (rc == 0)
		pair_end(x, 1 - side);
	free(open);
	free(v);
	return rc;
}
