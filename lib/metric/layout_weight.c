/* Layouts that only weights have. The rows of a projection come by heads, and in a head two halves lie
 * one behind the other or side by side (rotary embeddings); q, k and v, or gate and up, are packed one
 * behind the other or by heads; the experts of a layer lie in one tensor, with gate and up. */
#include "metric/layout.h"

struct list {
	struct layout *v;
	size_t n;
};

static struct layout *
add(struct list *l, char side, const int64_t *view, uint8_t nview, const uint8_t *perm)
{
	if (l->n == MAX_WEIGHT_LAYOUTS)
		return NULL;
	struct layout *t = &l->v[l->n++];
	*t = (struct layout){.side = side, .part_dim = -1, .nview = nview, .reshaped = true};
	for (int i = 0; i < LAYOUT_DIMS; i++)
		t->perm[i] = (uint8_t)i;
	for (uint8_t i = 0; i < nview; i++)
		t->view[i] = view[i];
	for (uint8_t i = 0; perm != NULL && i < nview; i++)
		t->perm[i] = perm[i];
	t->permuted = perm != NULL;
	t->nperm = perm != NULL ? nview : 0;
	return t;
}

/* Axis d of a, split into x, y and z, of which two change places. */
static void
exchange(struct list *l, const struct acc_ref *a, uint32_t d, const int64_t split[3], int first,
	bool turned)
{
	int64_t view[LAYOUT_DIMS];
	uint8_t own[LAYOUT_DIMS], perm[LAYOUT_DIMS], n = 0, k = 0;
	const uint8_t at = (uint8_t)d;
	if (split[first] == 1 || split[first + 1] == 1)
		return;
	for (uint8_t i = 0; i < a->ndim; i++)
		if (i == d) {
			memcpy(view + n, split, 3 * sizeof *split);
			n = (uint8_t)(n + 3);
		} else {
			view[n++] = a->shape[i];
		}
	for (uint8_t i = 0; i < n; i++)
		own[i] = i;
	own[at + first] = (uint8_t)(at + first + 1);
	own[at + first + 1] = (uint8_t)(at + first);
	/* Transposed, the three come behind, or before, what is left of the two axes. */
	const uint8_t other = d == 0 ? 3 : 0;
	if (turned && d == 0)
		perm[k++] = other;
	for (uint8_t i = 0; i < n; i++)
		if (!turned || i != other)
			perm[k++] = own[i];
	if (turned && d != 0)
		perm[k++] = other;
	add(l, 'a', view, n, perm);
}

/* One side's memory in the order of its axes backwards, under the shape that it would have forwards: what was
 * transposed is written as it lies (behaviour safetensors-numpy-order). */
static void
backwards(struct list *l, const struct acc_ref *a)
{
	int64_t view[LAYOUT_DIMS];
	uint8_t perm[LAYOUT_DIMS], n = (uint8_t)a->ndim, wide = 0;
	for (uint8_t i = 0; i < n; i++) {
		view[i] = a->shape[n - 1 - i];
		perm[i] = (uint8_t)(n - 1 - i);
		wide = (uint8_t)(wide + (a->shape[i] > 1));
	}
	if (wide < 2)
		return;
	struct layout *t = add(l, 'a', view, n, perm);
	if (t != NULL)
		t->reshaped = false;
	t = add(l, 'a', NULL, 0, NULL);
	if (t == NULL)
		return;
	memcpy(t->perm, perm, n);
	t->permuted = true;
	t->nperm = n;
}

/* As many elements on both sides: a's own extents, or transposed. */
static void
regroup(struct list *l, const struct acc_ref *a, const struct acc_ref *b)
{
	enum { MOST_HEADS = 4096 }; /* whatever a shape claims */
	bool same = a->ndim == b->ndim &&
		    memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
	bool turned = a->ndim == 2 && b->ndim == 2 && a->shape[0] == b->shape[1] &&
		      a->shape[1] == b->shape[0];
	if (a->ndim == 0 || a->ndim + 2 > LAYOUT_DIMS)
		return;
	if (same)
		backwards(l, a);
	for (uint32_t d = 0; d < a->ndim && d < 2; d++)
		for (int64_t p = 2; p <= 3; p++) {
			const int64_t rows = a->shape[d] / p;
			if (a->shape[d] % p != 0)
				continue;
			for (int64_t g = 1;
				g <= rows && g <= MOST_HEADS && l->n < MAX_WEIGHT_LAYOUTS; g++) {
				if (rows % g != 0)
					continue;
				const int64_t m = rows / g, half[3] = {g, p, m},
					      pairs[3] = {g, m, p}, behind[3] = {p, g, m};
				for (int t = 0; t <= 1; t++) {
					if (t == 0 ? !same : !turned)
						continue;
					exchange(l, a, d, half, 1, t != 0);
					exchange(l, a, d, pairs, 1, t != 0);
					exchange(l, a, d, half, 0, t != 0);
					exchange(l, a, d, behind, 0, t != 0);
				}
			}
		}
}

/* Queries, keys and values by groups on one side, and one behind the other on the other: two queries or
 * more of a group share a key and a value. */
static void
grouped(struct list *l, const struct acc_ref *a, const struct acc_ref *b)
{
	enum { MOST_GROUPS = 256, MOST_SHARING = 64 };
	const int64_t rows = a->ndim > 0 ? a->shape[0] : 0;
	if (a->ndim == 0 || a->ndim != b->ndim || a->strided ||
		memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) != 0)
		return;
	for (int64_t g = 1; g <= MOST_GROUPS && g <= rows; g++)
		for (int64_t q = 2; q <= MOST_SHARING && rows % g == 0 && g > 1; q++) {
			const int64_t head = rows / g / (q + 2);
			if (rows / g % (q + 2) != 0)
				continue;
			for (int apart = 0; apart <= 1; apart++) {
				struct layout *t = add(l, 'a', NULL, 0, NULL);
				if (t == NULL)
					return;
				t->reshaped = false;
				t->groups = (struct acc_groups){g, {q * head, head, head},
					apart != 0};
			}
		}
}

static void
heads_of(struct layout *t, int64_t from, int64_t n)
{
	if (t == NULL)
		return;
	t->part_dim = 1;
	t->part_start = from;
	t->part_len = n;
}

/* Queries, or keys, of a tensor that has them by groups, with their value, where the two sides have the rows of
 * a head in another order: halves one behind the other, or side by side. */
static void
packed(struct list *l, char side, const struct acc_ref *big, const struct acc_ref *small)
{
	enum { MOST_GROUPS = 256, MOST_SHARING = 64 };
	const int64_t rows = big->shape[0], columns = big->shape[1], own = small->shape[0];
	static const uint8_t perm[5] = {0, 1, 3, 2, 4};
	if (columns != small->shape[1] || own <= 0 || rows <= own || big->strided)
		return;
	for (int64_t g = 1; g <= MOST_GROUPS && g <= own; g++)
		for (int64_t q = 1; q <= MOST_SHARING && rows % g == 0 && own % g == 0; q++) {
			const int64_t head = rows / g / (q + 2),
				      many = head > 0 ? own / g / head : 0;
			if (rows / g % (q + 2) != 0 || head < 4 || head % 2 != 0 ||
				own / g % head != 0 || (many != q && many != 1))
				continue;
			const int64_t halves[5] = {g, q + 2, 2, head / 2, columns},
				      pairs[5] = {g, q + 2, head / 2, 2, columns};
			for (int key = many != q; key <= (many == 1); key++) {
				heads_of(add(l, side, halves, 5, perm), key != 0 ? q : 0, many);
				heads_of(add(l, side, pairs, 5, perm), key != 0 ? q : 0, many);
			}
		}
}

/* The same of a tensor that has all queries, all keys and all values one behind the other. */
static void
stacked(struct list *l, char side, const struct acc_ref *big, const struct acc_ref *small)
{
	enum { MOST_HEAD = 4096 };
	const int64_t rows = big->shape[0], columns = big->shape[1], own = small->shape[0];
	const int64_t start[2] = {0, rows - 2 * own};
	static const uint8_t perm[4] = {0, 2, 1, 3};
	if (columns != small->shape[1] || own <= 0 || rows <= own || big->strided)
		return;
	for (int key = 0; key <= (start[1] > 0); key++)
		for (int64_t head = 4; head <= own && head <= MOST_HEAD; head += 2) {
			if (own % head != 0 || rows % head != 0 || start[key] % head != 0)
				continue;
			const int64_t halves[4] = {rows / head, 2, head / 2, columns},
				      pairs[4] = {rows / head, head / 2, 2, columns};
			for (int k = 0; k < 2; k++) {
				struct layout *t = add(l, side, k == 0 ? halves : pairs, 4, perm);
				heads_of(t, start[key] / head, own / head);
				if (t != NULL)
					t->part_dim = 0;
			}
		}
}

/* Of expert i the `at`-th along axis d. */
static void
one_of(struct layout *t, int64_t i, int d, int64_t at)
{
	if (t == NULL)
		return;
	t->part_dim = 0;
	t->part_start = i;
	t->part_len = 1;
	t->cut = true;
	t->cut_dim = d;
	t->cut_start = at;
	t->cut_len = 1;
}

/* One of several matrices that are joined in an expert's, in a tensor of all experts. */
static void
experts(struct list *l, char side, const struct acc_ref *big, const struct acc_ref *small)
{
	enum { MOST_JOINED = 4 };
	static const uint8_t behind[4] = {0, 2, 3, 1}, between[4] = {0, 3, 2, 1};
	const int64_t e = big->shape[0], r = big->shape[1], c = big->shape[2];
	const int64_t rows = small->shape[0], columns = small->shape[1];
	const bool behind_it = columns == c && r % rows == 0 && r / rows > 1 &&
			       r / rows <= MOST_JOINED;
	const bool turned = columns == r && c % rows == 0 && c / rows > 1 &&
			    c / rows <= MOST_JOINED;
	for (int64_t i = 0; i < e && (behind_it || turned) && l->n < MAX_WEIGHT_LAYOUTS; i++) {
		const int64_t k = behind_it ? r / rows : 0, kt = turned ? c / rows : 0;
		const int64_t one[4] = {e, k, rows, c}, two[4] = {e, r, kt, rows},
			      mixed[4] = {e, r, rows, kt};
		for (int64_t at = 0; at < k; at++)
			one_of(add(l, side, one, 4, NULL), i, 1, at);
		for (int64_t at = 0; at < kt; at++) {
			one_of(add(l, side, two, 4, behind), i, 2, at);
			one_of(add(l, side, mixed, 4, between), i, 3, at);
		}
	}
}

/* The smaller one's axes of heads joined to those of a matrix or a vector. */
static void
flattened(struct list *l, const struct acc_ref *a, const struct acc_ref *b, bool large)
{
	const struct acc_ref *big = large ? a : b, *small = large ? b : a;
	struct acc_ref flat = *small;
	if (small->ndim != big->ndim + 1 || small->ndim < 2 ||
		l->n + MAX_LAYOUTS > MAX_WEIGHT_LAYOUTS)
		return;
	for (uint32_t d = 0; d + 1 < small->ndim; d++) {
		flat.ndim = 0;
		for (uint32_t i = 0; i < small->ndim; i++)
			if (i == d + 1)
				flat.shape[flat.ndim - 1] *= small->shape[i];
			else
				flat.shape[flat.ndim++] = small->shape[i];
		if (l->n + MAX_LAYOUTS > MAX_WEIGHT_LAYOUTS)
			return;
		size_t n = acc_layouts(large ? a : &flat, large ? &flat : b, l->v + l->n);
		for (size_t i = 0; i < n; i++)
			l->v[l->n + i].reshaped = true;
		l->n += n;
	}
}

size_t
acc_weight_layouts(const struct acc_ref *a, const struct acc_ref *b,
	struct layout out[MAX_WEIGHT_LAYOUTS])
{
	struct list l = {out, 0};
	uint64_t na, nb;
	if (!acc_count(a->shape, a->ndim, &na) || !acc_count(b->shape, b->ndim, &nb) || na == 0 ||
		nb == 0)
		return 0;
	if (na == nb) {
		regroup(&l, a, b);
		grouped(&l, a, b);
		return l.n;
	}
	const struct acc_ref *big = na > nb ? a : b, *small = na > nb ? b : a;
	if (big->ndim == 3 && small->ndim == 2)
		experts(&l, na > nb ? 'a' : 'b', big, small);
	if (big->ndim == 2 && small->ndim == 2) {
		packed(&l, na > nb ? 'a' : 'b', big, small);
		stacked(&l, na > nb ? 'a' : 'b', big, small);
	}
	flattened(&l, a, b, na > nb);
	return l.n;
}
