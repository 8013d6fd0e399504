/* A packed tensor against its parts by content: whatever the order, the sums and the sums of squares of
 * the parts add up to its own, and its extremes are among theirs. So one part has the largest element,
 * one has the smallest, and what a third must hold is known. */
#include "align/loose.h"

#include <math.h>
#include <stdlib.h>

static const double CAST = 0x1p-9; /* of bf16 */

/* The parts that are left, by sum of squares. */
struct parts {
	const struct loose **v;
	uint32_t n;
};

struct found {
	const struct loose *part[3];
	uint32_t n;
	double far; /* of the best: how far off, in what a cast may do */
	bool two;   /* another is as good */
};

static int
cmp(const void *x, const void *y)
{
	const struct loose *p = *(const struct loose *const *)x,
			   *q = *(const struct loose *const *)y;
	if (p->square != q->square)
		return p->square < q->square ? -1 : 1;
	return (p->item > q->item) - (p->item < q->item);
}

static bool
alike(double x, double y)
{
	return fabs(x - y) <= 2 * CAST * fabs(x);
}

/* By how much the squares of something of this size may be off. */
static double
slack(const struct loose *pack)
{
	return 16 * CAST * pack->square / sqrt((double)pack->count);
}

static void
consider(const struct loose *pack, const struct loose *const part[3], uint32_t n, struct found *f)
{
	double sum = 0, square = 0, max = -INFINITY, min = INFINITY;
	uint64_t count = 0;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < i; k++)
			if (part[k] == part[i])
				return;
		sum += part[i]->sum;
		square += part[i]->square;
		count += part[i]->count;
		max = fmax(max, part[i]->max);
		min = fmin(min, part[i]->min);
	}
	double far = fabs(square - pack->square) / slack(pack) +
		     fabs(sum - pack->sum) / (8 * CAST * sqrt(pack->square));
	if (count != pack->count || !alike(pack->max, max) || !alike(pack->min, min) || far > 2)
		return;
	bool same = f->n == n;
	for (uint32_t i = 0; i < n && same; i++) {
		bool in = false;
		for (uint32_t k = 0; k < n; k++)
			in |= f->part[k] == part[i];
		same = in;
	}
	if (same || (f->n > 0 && far >= 4 * f->far + 0x1p-10))
		return;
	f->two = f->n > 0 && f->far < 4 * far + 0x1p-10;
	if (f->n > 0 && far >= f->far)
		return;
	f->n = n;
	f->far = far;
	for (uint32_t i = 0; i < n; i++)
		f->part[i] = part[i];
}

/* All that have what is missing to the sum of squares. */
static void
third(const struct loose *pack, const struct parts *ps, const struct loose *a,
	const struct loose *b, struct found *f)
{
	double want = pack->square - a->square - (a == b ? 0 : b->square), s = 2 * slack(pack);
	uint32_t lo = 0, hi = ps->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (ps->v[mid]->square < want - s)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < ps->n && ps->v[lo]->square <= want + s; lo++) {
		const struct loose *two[3] = {a, ps->v[lo], NULL}, *three[3] = {a, b, ps->v[lo]};
		consider(pack, a == b ? two : three, a == b ? 2 : 3, f);
	}
}

static void
search(const struct loose *pack, const struct parts *ps, struct found *f)
{
	enum { MOST = 4096 }; /* of which one has both extremes, and two are looked for */
	for (uint32_t i = 0; i < ps->n; i++) {
		const struct loose *a = ps->v[i];
		if (!alike(pack->max, a->max) || a->count >= pack->count)
			continue;
		bool both = alike(pack->min, a->min);
		if (both)
			third(pack, ps, a, a, f);
		for (uint32_t k = 0; k < ps->n && (!both || ps->n <= MOST); k++) {
			const struct loose *b = ps->v[k], *two[3] = {a, b, NULL};
			if (b == a || a->count + b->count > pack->count ||
				(!both && !alike(pack->min, b->min)))
				continue;
			if (a->count + b->count == pack->count)
				consider(pack, two, 2, f);
			else
				third(pack, ps, a, b, f);
		}
	}
}

/* In the order of their names, which is that of their place. */
static int
cmp_place(const void *x, const void *y)
{
	const struct loose *p = *(const struct loose *const *)x,
			   *q = *(const struct loose *const *)y;
	return (p->item > q->item) - (p->item < q->item);
}

static int
one_way(struct loosely *l, int packs)
{
	struct loose_side *p = &l->s[packs], *q = &l->s[1 - packs];
	struct parts ps = {.v = malloc(((size_t)q->n + 1) * sizeof *ps.v)};
	int rc = ps.v == NULL ? acc_nomem(l->e) : 0;
	for (uint32_t i = 0; i < q->n && rc == 0; i++)
		if (q->v[i].measured && q->v[i].square > 0)
			ps.v[ps.n++] = &q->v[i];
	if (ps.n > 0)
		qsort(ps.v, ps.n, sizeof *ps.v, cmp);
	for (uint32_t i = 0; i < p->n && rc == 0; i++) {
		const struct loose *pack = &p->v[i];
		struct found f = {.n = 0};
		if (pack->measured && pack->max != pack->min)
			search(pack, &ps, &f);
		if (f.n == 0 || f.two)
			continue;
		qsort(f.part, f.n, sizeof *f.part, cmp_place);
		for (uint32_t k = f.n; k-- > 0 && rc == 0;) {
			const struct loose *t = f.part[k];
			if (packs == ACC_A && k > 0)
				rc = acc_share(l->j->scratch, pack->item, t->item, k, l->e);
			acc_loose_mate(l, packs == ACC_A ? pack : t, packs == ACC_A ? t : pack,
				ACC_HOW_PART);
		}
		uint32_t n = 0;
		for (uint32_t k = 0; k < ps.n; k++)
			if (q->h->ix.item[ps.v[k]->item].mate == ACC_NOMATE)
				ps.v[n++] = ps.v[k];
		ps.n = n;
	}
	free(ps.v);
	acc_loose_shrink(p);
	acc_loose_shrink(q);
	return rc;
}

int
acc_loose_sums(struct loosely *l)
{
	int rc = one_way(l, ACC_A);
	return rc == 0 ? one_way(l, ACC_B) : rc;
}
