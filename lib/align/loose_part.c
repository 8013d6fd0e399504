/* A packed tensor (q, k and v in one weight) belongs to several of the other side: tensors that
 * stand one behind the other, and whose extents are its own but for one axis, along which they add
 * up. Where exactly each lies is found by its content, by whoever measures. */
#include "align/loose.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* Parts of a packed tensor; words of a name that are compared; places whose extremes are compared. */
enum { MOST_PARTS = 8, MOST_WORDS = 12, MOST_TRIES = 4096 };

/* A place at which parts of a shape that is wanted begin, under the first words of its name. */
struct place {
	uint64_t key; /* of that shape, and those words */
	uint32_t at;
	uint8_t axis;
	bool turned;
	uint32_t next; /* if one of its parts has a partner: a later place, which may have none */
};

struct places {
	struct place *v; /* by key, then in order */
	size_t n, cap;
};

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

static uint64_t
shape_key(const int64_t *shape, uint32_t ndim)
{
	return acc_hash(shape, ndim * sizeof *shape);
}

/* Up to its n-th dot; false: there are fewer. */
static bool
first_words(struct acc_str name, uint32_t n, struct acc_str *out)
{
	uint32_t i = 0;
	for (; n > 0 && i < name.n; i++)
		n -= name.p[i] == '.';
	*out = (struct acc_str){name.p, i};
	return n == 0;
}

/* Under each of its first words, so that layers stay together. */
static int
add_place(struct loosely *l, struct places *ps, const struct loose *t, uint64_t shape,
	struct place p)
{
	struct acc_str words;
	for (uint32_t w = 0; w <= MOST_WORDS && first_words(t->path, w, &words); w++) {
		if (!ACC_ROOM(ps->v, ps->cap, ps->n + 1, l->e))
			return ACC_ENOMEM;
		p.key = acc_hash_pair(shape, acc_hash(words.p, words.n));
		ps->v[ps->n++] = p;
	}
	return 0;
}

/* What the tensors from s->v[at] on make up along this axis, two, three ... of them, if it is wanted. */
static int
add_places(struct loosely *l, const struct loose_side *s, struct place p,
	const struct acc_ids *wanted, struct places *ps)
{
	const struct loose *t = &s->v[p.at];
	struct loose pack = {.ndim = t->ndim};
	for (uint32_t i = 0; i < t->ndim; i++)
		pack.shape[i] = t->shape[p.turned ? t->ndim - 1 - i : i];
	int64_t sum = 0;
	for (uint32_t k = 0; k < s->n - p.at && k < MOST_PARTS; k++) {
		const int64_t m = extent(&pack, &t[k], p.axis, p.turned);
		if (m <= 0 || m > INT64_MAX - sum)
			return 0;
		sum += m;
		struct loose whole = pack;
		whole.shape[p.axis] = sum;
		const uint64_t key = shape_key(whole.shape, whole.ndim);
		if (k > 0 && acc_ids_get(wanted, key) != ACC_NOID &&
			add_place(l, ps, t, key, p) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

static int
cmp_place(const void *x, const void *y)
{
	const struct place *p = x, *q = y;
	if (p->key != q->key)
		return p->key < q->key ? -1 : 1;
	if (p->at != q->at)
		return p->at < q->at ? -1 : 1;
	return p->axis != q->axis ? p->axis - q->axis : p->turned - q->turned;
}

static bool
are_free(const struct loose_side *s, const struct loose *t, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (s->h->ix.item[t[k].item].mate != ACC_NOMATE)
			return false;
	return true;
}

/* All places of q at which parts of what p holds begin. */
static int
find_places(struct loosely *l, const struct loose_side *p, const struct loose_side *q,
	struct places *ps)
{
	struct acc_ids wanted = {0};
	int rc = 0;
	for (uint32_t i = 0; i < p->n && rc == 0; i++)
		if (p->v[i].ndim > 0 && p->v[i].ndim <= LOOSE_DIMS && are_free(p, &p->v[i], 1))
			rc = acc_ids_put(&wanted, shape_key(p->v[i].shape, p->v[i].ndim), i, true,
				l->e);
	for (uint32_t i = 0; i < q->n && rc == 0; i++)
		for (uint32_t d = 0; d < q->v[i].ndim && q->v[i].ndim <= LOOSE_DIMS; d++)
			for (int turned = 0; turned <= (q->v[i].ndim == 2) && rc == 0; turned++)
				rc = add_places(l, q,
					(struct place){.at = i,
						.axis = (uint8_t)d,
						.turned = turned != 0},
					&wanted, ps);
	acc_ids_release(&wanted);
	if (ps->n > 0)
		qsort(ps->v, ps->n, sizeof *ps->v, cmp_place);
	for (size_t i = 0; i < ps->n; i++)
		ps->v[i].next = (uint32_t)i;
	return rc;
}

/* The first at or behind i that has no partner as far as is known. */
static uint32_t
next_free(const struct places *ps, uint32_t i)
{
	while (i < ps->n && ps->v[i].next != i) {
		const uint32_t k = ps->v[i].next;
		if (k < ps->n)
			ps->v[i].next = ps->v[k].next;
		i = k;
	}
	return i;
}

/* The first place of this key: the number of parts, or 0. */
static uint32_t
find_under(const struct loose_side *s, const struct places *ps, uint64_t key,
	const struct loose *pack, const struct acc_align_item *item, uint32_t *at)
{
	size_t lo = 0;
	ACC_LOWER(lo, ps->n, ps->v[lo].key < key);
	uint32_t tries = 0;
	for (uint32_t i = next_free(ps, (uint32_t)lo); i < ps->n && ps->v[i].key == key;
		i = next_free(ps, i + 1)) {
		const struct place *p = &ps->v[i];
		const uint32_t n = makes_up(pack, &s->v[p->at], s->n - p->at, p->axis, p->turned);
		if (!are_free(s, &s->v[p->at], n)) {
			ps->v[i].next = i + 1;
		} else if (n > 0 && same_extremes(item, s, &s->v[p->at], n)) {
			*at = p->at;
			return n;
		} else if (++tries == MOST_TRIES) {
			return 0;
		}
	}
	return 0;
}

/* The best place of the parts of `pack` among those that are free, the first of those whose names begin
 * with most of its words: their number. */
static uint32_t
find(const struct loose_side *s, const struct places *ps, const struct loose *pack,
	const struct acc_align_item *item, uint32_t *at)
{
	const uint64_t shape = shape_key(pack->shape, pack->ndim);
	struct acc_str words;
	uint32_t n = 0;
	for (uint32_t w = MOST_WORDS + 1; w-- > 0 && n == 0;)
		if (first_words(pack->path, w, &words))
			n = find_under(s, ps, acc_hash_pair(shape, acc_hash(words.p, words.n)),
				pack, item, at);
	return n;
}

/* `packs` is the side that may have packed tensors. */
static int
one_way(struct loosely *l, int packs)
{
	const struct loose_side *p = &l->s[packs], *q = &l->s[1 - packs];
	struct places ps = {0};
	int rc = find_places(l, p, q, &ps);
	for (uint32_t i = 0; i < p->n && ps.n > 0 && rc == 0; i++) {
		const struct loose *pack = &p->v[i];
		uint32_t at = 0, n = 0;
		if (pack->ndim > 0 && pack->ndim <= LOOSE_DIMS && are_free(p, pack, 1))
			n = find(q, &ps, pack, &p->h->ix.item[pack->item], &at);
		/* The last stays the mate of the packed one on its own side; what else the device's
		 * packed tensor belongs to is kept apart. */
		for (uint32_t k = n; k-- > 0 && rc == 0;) {
			const struct loose *t = &q->v[at + k];
			if (packs == ACC_A && k > 0)
				rc = acc_share(l->j->scratch, pack->item, t->item, k, l->e);
			if (rc == 0)
				acc_loose_mate(l, packs == ACC_A ? pack : t,
					packs == ACC_A ? t : pack, ACC_HOW_PART);
		}
	}
	free(ps.v);
	return rc;
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
