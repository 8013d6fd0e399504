/* Arrays behind the last that has a partner: there a fault may have changed all values. */
#include "align/arrays.h"

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
		if (v[i].mate == ACC_NOMATE)
			continue;
		pairs++;
		*call = v[i].mate + 1 > *call ? v[i].mate + 1 : *call;
		uint32_t lo = 0, hi = long_n;
		while (lo < hi) {
			const uint32_t mid = lo + (hi - lo) / 2;
			if (tail[mid] < v[i].mate)
				lo = mid + 1;
			else
				hi = mid;
		}
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

/* The best pairs in order of what has none from a and b on: a table of the best sums from there on. */
static int
pair_order(struct arrays *x, uint32_t a, uint32_t b)
{
	enum { MOST = 2048 };
	const uint32_t n = x->n[0] > a ? x->n[0] - a : 0, m = x->n[1] > b ? x->n[1] - b : 0;
	if (n == 0 || m == 0 || n > MOST || m > MOST)
		return 0;
	int32_t *best = calloc((size_t)(n + 1) * (m + 1), sizeof *best);
	if (best == NULL)
		return acc_nomem(x->e);
	const size_t row = (size_t)m + 1;
	for (uint32_t i = n; i-- > 0;)
		for (uint32_t k = m; k-- > 0;) {
			const struct output *p = &x->v[0][a + i], *q = &x->v[1][b + k];
			int32_t *here = &best[i * row + k];
			const bool open = p->mate == ACC_NOMATE && q->mate == ACC_NOMATE;
			const int points = open ? fit(p, q) : 0;
			*here = here[1] > here[row] ? here[1] : here[row];
			if (points > 0 && here[row + 1] + points >= *here)
				*here = here[row + 1] + points;
		}
	for (uint32_t i = 0, k = 0; i < n && k < m;) {
		const struct output *p = &x->v[0][a + i], *q = &x->v[1][b + k];
		const int32_t *here = &best[i * row + k];
		const int points = p->mate == ACC_NOMATE && q->mate == ACC_NOMATE ? fit(p, q) : 0;
		if (points > 0 && *here == here[row + 1] + points) {
			acc_arrays_mate(&x->v[0][a + i++], &x->v[1][b + k++], ACC_HOW_PLACE);
		} else if (*here == here[row]) {
			i++;
		} else {
			k++;
		}
	}
	free(best);
	return 0;
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
	const int side = acc_arrays_look(x->j->a, x->j->aop, x->j->na) == ARRAYS ? 0 : 1;
	uint32_t array = UINT32_MAX, call = 0;
	int rc = last_pair(x, side, &array, &call);
	if (rc == 0 && array != UINT32_MAX)
		rc = pair_order(x, side == 0 ? array : call, side == 0 ? call : array);
	else if (rc == 0)
		rc = acc_arrays_values(x, 0.3, call, ACC_HOW_PLACE);
	if (rc == 0)
		pair_end(x, 1 - side);
	return rc;
}
