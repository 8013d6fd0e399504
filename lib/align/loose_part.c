/* A packed tensor (q, k and v in one weight) belongs to several of the other side: tensors that
 * stand one behind the other, and whose extents are its own but for one axis, along which they add
 * up. Where exactly each lies is found by its content, by whoever measures. */
#include "align/loose.h"

#include <math.h>

enum { MOST_PARTS = 8 };

/* How many words at the beginning of two names are the same: layers stay together. */
static uint32_t
likeness(struct acc_str p, struct acc_str q)
{
	uint32_t words = 0;
	for (uint32_t i = 0; i < p.n && i < q.n && p.p[i] == q.p[i]; i++)
		words += p.p[i] == '.';
	return words;
}

/* The extent of t along axis d of the packed tensor, if its others are equal; 0 if not. `turned`:
 * t is transposed. */
static int64_t
extent(const struct loose *pack, const struct loose *t, uint32_t d, bool turned)
{
	if (t->ndim != pack->ndim)
		return 0;
	for (uint32_t i = 0; i < pack->ndim; i++)
		if (i != d && t->shape[turned ? pack->ndim - 1 - i : i] != pack->shape[i])
			return 0;
	return t->shape[turned ? pack->ndim - 1 - d : d];
}

/* How many tensors from t on make up `pack`; 0 if they do not. */
static uint32_t
makes_up(const struct loose *pack, const struct loose *t, uint32_t n, uint32_t d, bool turned)
{
	int64_t sum = 0;
	for (uint32_t k = 0; k < n && k < MOST_PARTS; k++) {
		int64_t m = extent(pack, &t[k], d, turned);
		if (m <= 0 || m > pack->shape[d] - sum)
			return 0;
		sum += m;
		if (sum == pack->shape[d])
			return k > 0 ? k + 1 : 0;
	}
	return 0;
}

/* Are the extremes of the packed tensor those of all parts, as far as they are known? */
static bool
same_extremes(const struct acc_align_item *pack, const struct loose_side *s, const struct loose *t,
	uint32_t n)
{
	float most = -INFINITY, least = INFINITY;
	if ((pack->liked & 3) != 3)
		return true;
	for (uint32_t k = 0; k < n; k++) {
		const struct acc_align_item *it = &s->h->ix.item[t[k].item];
		if ((it->liked & 3) != 3)
			return true;
		most = fmaxf(most, it->like[ACC_LIKE_MAX]);
		least = fminf(least, it->like[ACC_LIKE_MIN]);
	}
	float wide = fabsf(most) + fabsf(least);
	return fabsf(most - pack->like[ACC_LIKE_MAX]) <= 0.01F * wide &&
	       fabsf(least - pack->like[ACC_LIKE_MIN]) <= 0.01F * wide;
}

/* The best place of the parts of `pack` among those that are free: their number. */
static uint32_t
find(const struct loose_side *s, const struct loose *pack, const struct acc_align_item *item,
	uint32_t *at)
{
	uint32_t best = 0, words = 0;
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t d = 0; d < pack->ndim; d++)
			for (int turned = 0; turned <= (pack->ndim == 2); turned++) {
				if (s->h->ix.item[s->v[i].item].mate != ACC_NOMATE)
					continue;
				uint32_t n = makes_up(pack, &s->v[i], s->n - i, d, turned != 0);
				if (n > 0 && !same_extremes(item, s, &s->v[i], n))
					n = 0;
				uint32_t w = n == 0 ? 0 : likeness(pack->path, s->v[i].path);
				for (uint32_t k = 0; k < n; k++)
					if (s->h->ix.item[s->v[i + k].item].mate != ACC_NOMATE)
						n = 0;
				if (n == 0 || (best > 0 && w <= words))
					continue;
				best = n;
				words = w;
				*at = i;
			}
	return best;
}

/* `packs` is the side that may have packed tensors. */
static int
one_way(struct loosely *l, int packs)
{
	const struct loose_side *p = &l->s[packs], *q = &l->s[1 - packs];
	for (uint32_t i = 0; i < p->n; i++) {
		const struct loose *pack = &p->v[i];
		uint32_t at = 0, n = 0;
		if (pack->ndim > 0 && pack->ndim <= LOOSE_DIMS &&
			p->h->ix.item[pack->item].mate == ACC_NOMATE)
			n = find(q, pack, &p->h->ix.item[pack->item], &at);
		/* The last stays the mate of the packed one on its own side; what else the device's
		 * packed tensor belongs to is kept apart. */
		for (uint32_t k = n; k-- > 0;) {
			const struct loose *t = &q->v[at + k];
			if (packs == ACC_A && k > 0 &&
				acc_share(l->j->scratch, pack->item, t->item, k, l->e) < 0)
				return ACC_ENOMEM;
			acc_loose_mate(l, packs == ACC_A ? pack : t, packs == ACC_A ? t : pack,
				ACC_HOW_PART);
		}
	}
	return 0;
}

int
acc_loose_parts(struct loosely *l)
{
	int rc = one_way(l, ACC_A);
	if (rc >= 0)
		rc = one_way(l, ACC_B);
	acc_loose_shrink(&l->s[0]);
	acc_loose_shrink(&l->s[1]);
	return rc;
}
