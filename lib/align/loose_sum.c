/* A packed tensor against its parts by content: whatever the order, the sums and the sums of squares of
 * the parts add up to its own, and its extremes are among theirs. So one part has the largest element,
 * one has the smallest, and what a third must hold is known. */
#include "align/limits.h"
#include "align/loose.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* The parts that are left, by sum of squares; by their largest and their smallest element. Some of them
 * may have a partner already. */
struct parts {
	const struct loose **v, **max, **min;
	uint32_t n, gone;
	const struct loose **first,
		**second; /* for one packed tensor: which may hold its extremes */
	uint32_t nfirst, nsecond;
	const struct acc_align_item *item;
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

ACC_ORDER_OF(cmp_max, struct loose, max)

ACC_ORDER_OF(cmp_min, struct loose, min)

static bool
alike(double x, double y)
{
	return fabs(x - y) <= 2 * LIMIT_CAST * fabs(x);
}

/* By how much the squares of something of this size may be off. */
static double
slack(const struct loose *pack)
{
	return 16 * LIMIT_CAST * pack->square / sqrt((double)pack->count);
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
		     fabs(sum - pack->sum) / (8 * LIMIT_CAST * sqrt(pack->square));
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

static bool
is_free(const struct parts *ps, const struct loose *t)
{
	return ps->item[t->item].mate == ACC_NOMATE;
}

/* All that have what is missing to the sum of squares. */
static void
third(const struct loose *pack, const struct parts *ps, const struct loose *a,
	const struct loose *b, struct found *f)
{
	double want = pack->square - a->square - (a == b ? 0 : b->square), s = 2 * slack(pack);
	uint32_t lo = 0;
	ACC_LOWER(lo, ps->n, ps->v[lo]->square < want - s);
	for (; lo < ps->n && ps->v[lo]->square <= want + s; lo++) {
		if (!is_free(ps, ps->v[lo]))
			continue;
		const struct loose *two[3] = {a, ps->v[lo], NULL}, *three[3] = {a, b, ps->v[lo]};
		consider(pack, a == b ? two : three, a == b ? 2 : 3, f);
	}
}

/* Those of a list by one extreme that have that of the packed tensor, as the list by squares has them. */
static uint32_t
holders(const struct parts *ps, const struct loose *pack, bool max, const struct loose **out)
{
	const struct loose *const *by = max ? ps->max : ps->min;
	const double x = max ? pack->max : pack->min, least = x - 2 * LIMIT_CAST * fabs(x);
	uint32_t lo = 0, n = 0;
	ACC_LOWER(lo, ps->n, (max ? by[lo]->max : by[lo]->min) < least);
	for (; lo < ps->n; lo++) {
		const double y = max ? by[lo]->max : by[lo]->min;
		if (y > x && !alike(x, y))
			break;
		if (alike(x, y) && by[lo]->count < pack->count && is_free(ps, by[lo]))
			out[n++] = by[lo];
	}
	if (n > 0)
		qsort(out, n, sizeof *out, cmp);
	return n;
}

static void
search(const struct loose *pack, struct parts *ps, struct found *f)
{
	enum { MOST = 4096 }; /* of which one has both extremes, and two are looked for */
	ps->nfirst = holders(ps, pack, true, ps->first);
	ps->nsecond = ps->nfirst == 0 ? 0 : holders(ps, pack, false, ps->second);
	for (uint32_t i = 0; i < ps->nfirst; i++) {
		const struct loose *a = ps->first[i];
		const bool both = alike(pack->min, a->min);
		const uint32_t n = !both ? ps->nsecond : ps->n - ps->gone <= MOST ? ps->n : 0;
		if (both)
			third(pack, ps, a, a, f);
		for (uint32_t k = 0; k < n; k++) {
			const struct loose *b = both ? ps->v[k] : ps->second[k],
					   *two[3] = {a, b, NULL};
			if (b == a || a->count + b->count > pack->count || !is_free(ps, b))
				continue;
			if (a->count + b->count == pack->count)
				consider(pack, two, 2, f);
			else
				third(pack, ps, a, b, f);
		}
	}
}

/* In the order of their names, which is that of their place. */
ACC_ORDER_OF(cmp_place, struct loose, item)

static int
make_parts(const struct loose_side *q, struct parts *ps, struct acc_err *e)
{
	const size_t room = (size_t)q->n + 1;
	*ps = (struct parts){.v = malloc(5 * room * sizeof *ps->v), .item = q->h->ix.item};
	if (ps->v == NULL)
		return acc_nomem(e);
	ps->max = ps->v + room;
	ps->min = ps->max + room;
	ps->first = ps->min + room;
	ps->second = ps->first + room;
	for (uint32_t i = 0; i < q->n; i++)
		if (q->v[i].measured && q->v[i].square > 0)
			ps->v[ps->n++] = &q->v[i];
	if (ps->n == 0)
		return 0;
	memcpy(ps->max, ps->v, ps->n * sizeof *ps->v);
	memcpy(ps->min, ps->v, ps->n * sizeof *ps->v);
	qsort(ps->v, ps->n, sizeof *ps->v, cmp);
	qsort(ps->max, ps->n, sizeof *ps->v, cmp_max);
	qsort(ps->min, ps->n, sizeof *ps->v, cmp_min);
	return 0;
}

/* So many more have a partner: once they are half of all, they leave the lists. */
static void
shrink(struct parts *ps, uint32_t gone)
{
	const struct loose **const list[] = {ps->v, ps->max, ps->min};
	uint32_t n = 0;
	ps->gone += gone;
	if (ps->gone * 2 <= ps->n)
		return;
	for (int i = 0; i < 3; i++) {
		n = 0;
		for (uint32_t k = 0; k < ps->n; k++)
			if (is_free(ps, list[i][k]))
				list[i][n++] = list[i][k];
	}
	ps->n = n;
	ps->gone = 0;
}

static int
one_way(struct loosely *l, int packs)
{
	struct loose_side *p = &l->s[packs], *q = &l->s[1 - packs];
	struct parts ps;
	int rc = make_parts(q, &ps, l->e);
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
		shrink(&ps, f.n);
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
