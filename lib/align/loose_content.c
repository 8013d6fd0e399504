/* Weights under names that nothing is known of: the same content belongs together. */
#include "align/limits.h"
#include "align/loose.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* --- the same content --- */

bool
acc_loose_close(const struct loose *x, const struct loose *y)
{
	const double norm = sqrt(x->square),
		     n = (double)(x->count < y->count ? x->count : y->count);
	if (!x->measured || !y->measured || x->max == x->min || y->max == y->min)
		return false;
	/* Roundings are independent of each other: of sums, their errors add up as squares do. 8 times
	 * that is left for what is no chance; the extremes are off by one rounding each. */
	return fabs(x->max - y->max) <= 2 * LIMIT_CAST * fabs(x->max) &&
	       fabs(x->min - y->min) <= 2 * LIMIT_CAST * fabs(x->min) &&
	       fabs(x->sum - y->sum) <= 8 * LIMIT_CAST * norm &&
	       fabs(x->square - y->square) <= 8 * LIMIT_CAST * 2 * x->square / sqrt(n);
}

static bool
same(const struct loose *x, const struct loose *y)
{
	return acc_loose_fits(x, y) && acc_loose_close(x, y);
}

ACC_ORDER_2(cmp_square, struct loose_key, square, at)

static bool
is_constant(const struct loose *x)
{
	return x->measured && x->max == x->min;
}

static bool
varies(const struct loose *x)
{
	return x->measured && x->max != x->min;
}

/* By how much the sum of squares of what is like x may be another: as acc_loose_close has it, of a padded
 * one with a quarter of the elements at least; of constants, as recorders print norms. */
static double
reach(const struct loose *x)
{
	const double n = fmax((double)x->count / 4, 1),
		     close = 16 * LIMIT_CAST * x->square / sqrt(n);
	return is_constant(x) ? fmax(close, 0x1p-10 * x->square) : close;
}

/* The first of n keys, sorted by squares, that is no smaller than this. */
static uint32_t
first_of(const struct loose_key *q, uint32_t n, double square)
{
	uint32_t lo = 0;
	ACC_LOWER(lo, n, q[lo].square < square);
	return lo;
}

/* Checksum, or the hash of all content; 0: unknown. */
static uint64_t
exact(const struct loosely *l, int side, uint32_t i, bool hash)
{
	const struct acc_align_item *it = &l->s[side].h->ix.item[l->s[side].v[i].item];
	if (!it->tensor || it->dims == 0)
		return 0;
	return hash ? it->print : l->s[side].v[i].bytes;
}

static uint32_t
sorted(const struct loosely *l, int side, const uint32_t *taken, bool hash, struct loose_key *k)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->s[side].n; i++) {
		uint64_t key = taken[i] != ACC_NOMATE ? 0 : exact(l, side, i, hash);
		if (key != 0)
			k[n++] = (struct loose_key){.key = key, .at = i};
	}
	if (n > 0)
		qsort(k, n, sizeof *k, acc_loose_cmp);
	return n;
}

static void
match_exact(const struct loosely *l, struct loose_matching *mt, bool hash, struct loose_key *p)
{
	uint32_t n = sorted(l, 0, mt->to, hash, p);
	struct loose_key *q = p + n;
	uint32_t m = sorted(l, 1, mt->from, hash, q);
	for (uint32_t i = 0, t = 0; i < n && t < m;) {
		uint32_t ni = acc_loose_run(p, i, n), nt = acc_loose_run(q, t, m);
		bool first = p[i].key <= q[t].key, second = p[i].key >= q[t].key;
		if (first && second && ni == 1 && nt == 1) {
			mt->to[p[i].at] = q[t].at;
			mt->from[q[t].at] = p[i].at;
		}
		i += first ? ni : 0;
		t += second ? nt : 0;
	}
}

/* Those that are close to exactly one of the other side; constants are to none. */
static int
match_close(const struct loosely *l, struct loose_matching *mt, struct loose_key *q)
{
	uint32_t m = 0;
	uint32_t *only = calloc((size_t)l->s[0].n + l->s[1].n + 1, sizeof *only), *often;
	if (only == NULL)
		return acc_nomem(l->e);
	often = only + l->s[0].n;
	for (uint32_t i = 0; i < l->s[1].n; i++)
		if (mt->from[i] == ACC_NOMATE && varies(&l->s[1].v[i]))
			q[m++] = (struct loose_key){.square = l->s[1].v[i].square, .at = i};
	if (m > 0)
		qsort(q, m, sizeof *q, cmp_square);
	for (uint32_t i = 0; i < l->s[0].n; i++) {
		const struct loose *x = &l->s[0].v[i];
		const double wide = reach(x);
		uint32_t found = 0, at = 0;
		only[i] = ACC_NOMATE;
		if (mt->to[i] != ACC_NOMATE || !varies(x))
			continue;
		for (uint32_t k = first_of(q, m, x->square - wide);
			k < m && q[k].square <= x->square + wide; k++)
			if (same(x, &l->s[1].v[q[k].at])) {
				found++;
				at = q[k].at;
				often[at]++;
			}
		if (found == 1)
			only[i] = at;
	}
	for (uint32_t i = 0; i < l->s[0].n; i++)
		if (only[i] != ACC_NOMATE && often[only[i]] == 1) {
			mt->to[i] = only[i];
			mt->from[only[i]] = i;
		}
	free(only);
	return 0;
}

/* --- several of the same content --- */

/* As many on both sides, in order: what is as it was made (ones, zeros), tied weights. */
static int
by_kind(struct loosely *l)
{
	int64_t n = 0;
	for (int what = 0; what < 3 && n >= 0; what++) {
		for (int s = 0; s < 2; s++)
			for (uint32_t i = 0; i < l->s[s].n; i++) {
				struct loose *t = &l->s[s].v[i];
				const struct acc_align_item *it = &l->s[s].h->ix.item[t->item];
				double constant = t->max + 0.0;
				uint64_t bits;
				memcpy(&bits, &constant, sizeof bits);
				t->key = what < 2 ? exact(l, s, i, what == 1)
					 : t->measured && t->max == t->min && it->tensor
						 ? acc_hash_pair(bits, it->dims) | 1
						 : 0;
			}
		n = acc_loose_pair(l, ACC_HOW_CONTENT, false, NULL);
	}
	return n < 0 ? (int)n : 0;
}

static bool
alike(const struct loose *x, const struct loose *y)
{
	return same(x, y) || (is_constant(x) && is_constant(y) && x->max == y->max && x->ndim > 0 &&
				     x->count == y->count);
}

/* The first place from k on whose tensor has no partner yet: next[k] is k, or one behind that is nearer to it. */
static uint32_t
unpaired(uint32_t *next, uint32_t k)
{
	while (next[k] != k)
		k = next[k] = next[next[k]];
	return k;
}

/* What x is most likely, of those without a partner the one that stands first: its place in q, or m. Of one sum
 * of squares they are in order, so that behind one that is alike the others need no look. */
static uint32_t
first_alike(const struct loosely *l, const struct loose *x, const struct loose_key *q, uint32_t m,
	uint32_t *next)
{
	const double wide = reach(x);
	uint32_t best = m;
	for (uint32_t k = unpaired(next, first_of(q, m, x->square - wide));
		k < m && q[k].square <= x->square + wide;) {
		const bool nearer = best == m || q[k].at < q[best].at;
		uint32_t to = k + 1;
		if (nearer && alike(x, &l->s[1].v[q[k].at]))
			best = k;
		if (best == k || !nearer)
			to = first_of(q, m, nextafter(q[k].square, INFINITY));
		k = unpaired(next, to > k ? to : k + 1);
	}
	return best;
}

/* Whatever the number: the first with the first. */
static int
by_likeness(struct loosely *l, struct loose_key *q)
{
	uint32_t m = 0;
	uint32_t *next = malloc(((size_t)l->s[1].n + 1) * sizeof *next);
	if (next == NULL)
		return acc_nomem(l->e);
	for (uint32_t i = 0; i < l->s[1].n; i++)
		if (l->s[1].v[i].measured && l->j->b->item[l->s[1].v[i].item].mate == ACC_NOMATE)
			q[m++] = (struct loose_key){.square = l->s[1].v[i].square, .at = i};
	if (m > 0)
		qsort(q, m, sizeof *q, cmp_square);
	for (uint32_t k = 0; k <= m; k++)
		next[k] = k;
	for (uint32_t i = 0; i < l->s[0].n && m > 0; i++) {
		const struct loose *x = &l->s[0].v[i];
		/* One number that is as another's says nothing. */
		const bool may = varies(x) || (x->measured && x->ndim > 0);
		const uint32_t k = may ? first_alike(l, x, q, m, next) : m;
		if (k == m)
			continue;
		next[k] = k + 1;
		acc_loose_mate(l, x, &l->s[1].v[q[k].at], ACC_HOW_CONTENT);
	}
	free(next);
	acc_loose_shrink(&l->s[0]);
	acc_loose_shrink(&l->s[1]);
	return 0;
}

/* The first pair of which both are what x is. */
static uint32_t
same_as_both(const struct loosely *l, int side, const struct loose *x, const struct loose_key *q,
	uint32_t m)
{
	const double wide = reach(x);
	uint32_t best = ACC_NOMATE;
	for (uint32_t k = first_of(q, m, x->square - wide);
		k < m && q[k].square <= x->square + wide; k++)
		if (q[k].at < best && same(x, &l->pair[q[k].at][1 - side]) &&
			same(x, &l->pair[q[k].at][side]))
			best = q[k].at;
	return best;
}

/* What one side has twice, and the other, where the two are tied, once. */
static int
by_ties(struct loosely *l)
{
	struct loose_key *q = malloc(((size_t)l->npair + 1) * sizeof *q);
	int rc = q == NULL ? acc_nomem(l->e) : 0;
	for (int s = 0; s < 2 && rc == 0; s++) {
		uint32_t m = 0;
		for (uint32_t k = 0; k < l->npair; k++)
			if (varies(&l->pair[k][1 - s]))
				q[m++] = (struct loose_key){.square = l->pair[k][1 - s].square,
					.at = k};
		if (m > 0)
			qsort(q, m, sizeof *q, cmp_square);
		for (uint32_t i = 0; i < l->s[s].n && rc == 0; i++) {
			const struct loose *x = &l->s[s].v[i];
			uint32_t k = ACC_NOMATE;
			if (varies(x) && x->ndim >= 2)
				k = same_as_both(l, s, x, q, m);
			if (k == ACC_NOMATE)
				continue;
			const struct loose *other = &l->pair[k][1 - s];
			if (s == ACC_B)
				rc = acc_share(l->j->scratch, other->item, x->item, UINT32_MAX - i,
					l->e);
			if (rc == 0)
				rc = acc_loose_tie(l, s, x, other);
		}
		acc_loose_shrink(&l->s[s]);
	}
	free(q);
	return rc;
}

int
acc_loose_content(struct loosely *l)
{
	size_t n = (size_t)l->s[0].n + l->s[1].n + 1;
	struct loose_matching mt = {.to = malloc(n * sizeof *mt.to)};
	struct loose_key *k = malloc(n * sizeof *k);
	int rc = mt.to == NULL || k == NULL ? acc_nomem(l->e) : 0;
	if (rc == 0) {
		mt.from = mt.to + l->s[0].n;
		for (size_t i = 0; i < n; i++)
			mt.to[i] = ACC_NOMATE;
		match_exact(l, &mt, false, k);
		match_exact(l, &mt, true, k);
		rc = match_close(l, &mt, k);
	}
	if (rc == 0)
		rc = acc_loose_doubt(l, &mt);
	for (uint32_t i = 0; i < l->s[0].n && rc == 0; i++)
		if (mt.to[i] != ACC_NOMATE)
			acc_loose_mate(l, &l->s[0].v[i], &l->s[1].v[mt.to[i]], ACC_HOW_CONTENT);
	free(mt.to);
	acc_loose_shrink(&l->s[0]);
	acc_loose_shrink(&l->s[1]);
	if (rc == 0)
		rc = acc_loose_pattern(l);
	if (rc == 0)
		rc = by_kind(l);
	if (rc == 0)
		rc = by_likeness(l, k);
	free(k);
	return rc == 0 ? by_ties(l) : rc;
}
