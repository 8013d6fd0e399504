/* Arrays behind the last that has a partner: there a fault may have changed all values. */
#include "align/arrays.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* Where the arrays stand in the order in which they were made, as most pairs say: the last pair in it; else
 * the arrays' place is UINT32_MAX. side: the arrays'. The calls' is that of the last of all pairs. */
static int
last_pair(const struct arrays *x, int side, uint32_t *array, uint32_t *call)
{
	const struct output *v = x->v[side];
	uint32_t n = x->n[side], pairs = 0, long_n = 0;
	uint32_t *tail = malloc(
		((size_t)n + 1) * sizeof *tail); /* of chains of each length: the call */
	if (tail == NULL)
		return acc_nomem(x->e);
	*array = UINT32_MAX;
	*call = 0;
	uint32_t last = 0;
	for (uint32_t i = 0; i < n; i++) {
		/* A table that each layer makes anew is right behind a fault, too. */
		if (v[i].mate == ACC_NOMATE || v[i].again)
			continue;
		pairs++;
		*call = v[i].mate + 1 > *call ? v[i].mate + 1 : *call;
		uint32_t lo = 0;
		ACC_LOWER(lo, long_n, tail[lo] < v[i].mate);
		tail[lo] = v[i].mate;
		if (lo == long_n)
			last = i;
		long_n += lo == long_n;
	}
	free(tail);
	if (pairs >= 3 && 3 * (uint64_t)long_n >= 2 * (uint64_t)pairs)
		*array = last + 1;
	return 0;
}

/* How well two fit of which values need not be the same; 0: not at all. */
static int
fit(const struct output *p, const struct output *q)
{
	const double d = acc_arrays_apart(p, q);
	if (p->count != q->count || p->real != q->real || p->dims != q->dims)
		return 0;
	return (p->word != 0 && p->word == q->word ? 6 : 0) + (d < 0.1                    ? 6
								      : d < 0.5           ? 4
								      : d < 1 || isinf(d) ? 2
											  : 1);
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

/* What has no partner of a side, from a place on; of one word alone, if that is not 0. */
static void
list(const struct arrays *x, int side, uint32_t from, uint64_t word, struct some *out)
{
	out->n = 0;
	for (uint32_t i = from; i < x->n[side]; i++)
		if (x->v[side][i].mate == ACC_NOMATE && !x->v[side][i].again &&
			(word == 0 || x->v[side][i].word == word))
			out->v[out->n++] = i;
}

/* Of arrays of one word, add_2 before add_10, those behind the last that has a partner. */
static void
by_number(const struct arrays *x, int side, struct some *s)
{
	const struct output *v = x->v[side];
	uint32_t n = 0;
	int64_t last = INT64_MIN;
	for (uint32_t i = 0; i < x->n[side] && s->n > 0; i++)
		if (v[i].mate != ACC_NOMATE && v[i].word == v[s->v[0]].word)
			last = v[i].number > last ? v[i].number : last;
	for (uint32_t i = 0; i < s->n; i++) {
		const uint32_t at = s->v[i];
		uint32_t k = n;
		if (v[at].number <= last)
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
pair_words(struct arrays *x, int side, uint32_t call, struct some both[2])
{
	const uint64_t most = 1 << 26; /* looks; of more arrays likeness has to do */
	int rc = 0;
	if ((uint64_t)x->n[0] * x->n[1] > most)
		return 0;
	for (uint32_t i = call; i < x->n[1 - side] && rc == 0; i++) {
		const struct output *q = &x->v[1 - side][i];
		if (q->mate != ACC_NOMATE || q->word == 0)
			continue;
		list(x, side, 0, q->word, &both[side]);
		by_number(x, side, &both[side]);
		list(x, 1 - side, i, q->word, &both[1 - side]);
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

int
acc_arrays_behind(struct arrays *x)
{
	const int side = x->side;
	uint32_t array = UINT32_MAX, call = 0;
	uint32_t *v = malloc(((size_t)x->n[0] + x->n[1] + 1) * sizeof *v);
	struct some both[2] = {{v, 0}, {v + (v == NULL ? 0 : x->n[0]), 0}};
	int rc = v == NULL ? acc_nomem(x->e) : last_pair(x, side, &array, &call);
	if (rc == 0 && array != UINT32_MAX) {
		list(x, side, array, 0, &both[side]);
		list(x, 1 - side, call, 0, &both[1 - side]);
		rc = pair_order(x, &both[0], &both[1]);
	} else if (rc == 0) {
		rc = pair_words(x, side, call, both);
		if (rc == 0)
			rc = acc_arrays_values(x, 0.3, call, ACC_HOW_PLACE);
	}
	if (rc == 0)
		pair_end(x, 1 - side);
	free(v);
	return rc;
}
