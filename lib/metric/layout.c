#include "metric/layout.h"

#include <stdio.h>

enum { MAX_HEADS = 4096 };

struct list {
	struct layout *v;
	size_t n;
};

struct dims {
	int64_t n[LAYOUT_DIMS];
	uint8_t at[LAYOUT_DIMS]; /* which axis of the tensor */
	uint32_t count;
};

/* The axes of more than one element; false where they are too many. */
static bool
axes(const int64_t *shape, uint32_t ndim, struct dims *d)
{
	d->count = 0;
	if (ndim > LAYOUT_DIMS)
		return false;
	for (uint32_t i = 0; i < ndim; i++)
		if (shape[i] != 1) {
			d->at[d->count] = (uint8_t)i;
			d->n[d->count++] = shape[i];
		}
	return true;
}

static bool
same_shape(const int64_t *p, uint32_t np, const int64_t *q, uint32_t nq)
{
	return np == nq && (np == 0 || memcmp(p, q, np * sizeof *p) == 0);
}

/* Do the extents of `fine`, in the order p, join to those of `coarse`? */
static bool
joins(const struct dims *fine, const uint8_t *p, const struct dims *coarse)
{
	uint32_t k = 0;
	int64_t n = 1;
	for (uint32_t i = 0; i < fine->count; i++) {
		if (k == coarse->count)
			return false;
		n *= fine->n[p[i]];
		if (n > coarse->n[k])
			return false;
		if (n == coarse->n[k]) {
			k++;
			n = 1;
		}
	}
	return k == coarse->count;
}

/* The next permutation in order; false after the last. */
static bool
next(uint8_t *p, uint32_t n)
{
	uint32_t i = n, k = n;
	while (i > 1 && p[i - 2] > p[i - 1])
		i--;
	if (i <= 1)
		return false;
	while (p[k - 1] < p[i - 2])
		k--;
	uint8_t t = p[i - 2];
	p[i - 2] = p[k - 1];
	p[k - 1] = t;
	for (k = n; i < k; i++, k--) {
		t = p[i - 1];
		p[i - 1] = p[k - 1];
		p[k - 1] = t;
	}
	return true;
}

static struct layout *
add(struct list *l, char side)
{
	if (l->n == MAX_LAYOUTS)
		return NULL;
	struct layout *t = &l->v[l->n++];
	*t = (struct layout){.side = side, .part_dim = -1};
	for (int i = 0; i < LAYOUT_DIMS; i++)
		t->perm[i] = (uint8_t)i;
	return t;
}

/* The extents that come out. */
static uint32_t
result(const struct layout *l, const int64_t *shape, uint32_t ndim, int64_t *out)
{
	uint32_t n = l->nview > 0 ? l->nview : ndim;
	const int64_t *from = l->nview > 0 ? l->view : shape;
	for (uint32_t i = 0; i < n; i++)
		out[i] = l->perm[i] == l->part_dim ? l->part_len : from[l->perm[i]];
	return n;
}

static void
finish(struct layout *l, const struct acc_ref *from, const struct acc_ref *to)
{
	int64_t out[LAYOUT_DIMS];
	uint32_t n = result(l, from->shape, from->ndim, out);
	l->reshaped = !same_shape(out, n, to->shape, to->ndim);
}

/* a's own axes, in another order, are b's, or join to them. */
static void
reorder(struct list *l, const struct acc_ref *a, const struct dims *x, const struct acc_ref *b,
	const struct dims *y)
{
	uint8_t p[LAYOUT_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
	while (next(p, x->count)) {
		struct layout *t = joins(x, p, y) ? add(l, 'a') : NULL;
		if (t == NULL)
			continue;
		t->permuted = true;
		t->nperm = (uint8_t)a->ndim;
		for (uint32_t i = 0; i < x->count; i++)
			t->perm[x->at[i]] = x->at[p[i]];
		finish(t, a, b);
	}
}

/* b's axes, in another order, join to a's: a is split first. */
static void
split(struct list *l, const struct acc_ref *a, const struct dims *x, const struct acc_ref *b,
	const struct dims *y)
{
	uint8_t p[LAYOUT_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
	while (next(p, y->count)) {
		struct layout *t = joins(y, p, x) ? add(l, 'a') : NULL;
		if (t == NULL)
			continue;
		t->permuted = true;
		t->nview = t->nperm = (uint8_t)y->count;
		for (uint32_t i = 0; i < y->count; i++) {
			t->view[i] = y->n[p[i]];
			t->perm[p[i]] = (uint8_t)i;
		}
		finish(t, a, b);
	}
}

static int64_t
gcd(int64_t x, int64_t y)
{
	while (y != 0) {
		int64_t t = x % y;
		x = y;
		y = t;
	}
	return x;
}

/* Elements [start, start + len) of each of g equal pieces of axis d of `big`. */
static void
add_part(struct list *l, char side, const struct acc_ref *big, uint32_t d, int64_t g, int64_t start,
	int64_t len, const uint8_t *perm, const struct acc_ref *small)
{
	struct layout *t = add(l, side);
	if (t == NULL)
		return;
	t->part_dim = (int)(g > 1 ? d + 1 : d);
	t->part_start = start;
	t->part_len = len;
	if (g > 1) {
		t->nview = (uint8_t)(big->ndim + 1);
		for (uint32_t i = 0; i < big->ndim; i++)
			t->view[i > d ? i + 1 : i] = big->shape[i];
		t->view[d] = g;
		t->view[d + 1] = big->shape[d] / g;
	}
	/* Where an axis is split, what it was split into stays together. */
	for (uint32_t i = 0; perm != NULL && i < big->ndim; i++) {
		t->permuted = true;
		t->perm[t->nperm++] = (uint8_t)(perm[i] + (g > 1 && perm[i] > d));
		if (g > 1 && perm[i] == d)
			t->perm[t->nperm++] = (uint8_t)(d + 1);
	}
	finish(t, big, small);
}

/* All parts of axis d that have the extents of the smaller tensor. */
static void
parts(struct list *l, char side, const struct acc_ref *big, uint32_t d, int64_t len,
	const struct acc_ref *small)
{
	int64_t cut[LAYOUT_DIMS], total = big->shape[d];
	struct dims x, y;
	uint8_t p[LAYOUT_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7}, full[LAYOUT_DIMS];
	memcpy(cut, big->shape, big->ndim * sizeof *cut);
	cut[d] = len;
	if (!axes(cut, big->ndim, &x) || !axes(small->shape, small->ndim, &y) || x.count != y.count)
		return;
	for (bool first = true; first || next(p, x.count); first = false) {
		if (!joins(&x, p, &y))
			continue;
		for (uint8_t i = 0; i < big->ndim; i++)
			full[i] = i;
		for (uint32_t i = 0; i < x.count; i++)
			full[x.at[i]] = x.at[p[i]];
		/* Packed by heads, or groups of them; of a matrix, transposed, too. */
		int64_t most = (first || big->ndim == 2) && big->ndim < LAYOUT_DIMS
				       ? gcd(len, total)
				       : 1;
		most = most < MAX_HEADS ? most : MAX_HEADS;
		for (int64_t g = 1; g <= most && l->n < MAX_LAYOUTS; g++) {
			if (len % g != 0 || total % g != 0)
				continue;
			int64_t part = len / g, piece = total / g, step = gcd(part, piece);
			for (int64_t at = 0; at + part <= piece && l->n < MAX_LAYOUTS; at += step)
				add_part(l, side, big, d, g, at, part, first ? NULL : full, small);
		}
	}
}

size_t
acc_layouts(const struct acc_ref *a, const struct acc_ref *b, struct layout out[MAX_LAYOUTS])
{
	enum { MOST = 6 }; /* axes that are permuted: 720 orders */
	struct list l = {out, 0};
	struct dims x, y;
	uint64_t na, nb;
	if (!acc_count(a->shape, a->ndim, &na) || !acc_count(b->shape, b->ndim, &nb) || na == 0 ||
		nb == 0 || !axes(a->shape, a->ndim, &x) || !axes(b->shape, b->ndim, &y) ||
		x.count > MOST || y.count > MOST)
		return 0;
	if (na == nb) {
		if (x.count >= y.count)
			reorder(&l, a, &x, b, &y);
		else
			split(&l, a, &x, b, &y);
		return l.n;
	}
	const struct acc_ref *big = na > nb ? a : b, *small = na > nb ? b : a;
	uint64_t large = na > nb ? na : nb, few = na > nb ? nb : na;
	for (uint32_t d = 0; d < big->ndim; d++) {
		uint64_t rest = large / (uint64_t)big->shape[d];
		if (few % rest == 0)
			parts(&l, na > nb ? 'a' : 'b', big, d, (int64_t)(few / rest), small);
	}
	return l.n;
}

/* An axis of a view, or of the tensor. */
struct axis {
	int64_t stride, n, blocks; /* n: elements of a block, `blocks` apart; 0: none */
};

/* Split the inner `extent` elements off an axis: they are *in, and it is what is left. Blocks can
 * be split where one divides the other. */
static bool
split_off(struct axis *x, int64_t extent, struct axis *in)
{
	*in = *x;
	if (x->n == 0) {
		x->stride *= extent;
	} else if (x->n % extent == 0) {
		in->n = in->blocks = 0;
		x->n /= extent;
		x->stride *= extent;
		if (x->n == 1)
			*x = (struct axis){x->blocks, 0, 0};
	} else if (extent % x->n == 0) {
		x->stride = x->blocks * (extent / x->n);
		x->n = x->blocks = 0;
	} else {
		return false;
	}
	return true;
}

/* The axes of the view, each of shape[i] elements; n axes. */
static bool
view_axes(const struct layout *l, const struct acc_ref *ref, int64_t *shape, struct axis *out,
	uint32_t n)
{
	int64_t left = 1, dense = 1; /* left: of the axis of the tensor that is being split */
	struct axis x = {0};
	uint32_t k = ref->ndim;
	/* What lies in order is one axis for a view, whose axes need not be within those that it has. */
	if (l->nview > 0 && !ref->strided && ref->block.n == 0)
		for (x.stride = 1; k > 0;)
			left *= ref->shape[--k];
	/* From the last axis to the first. Where there is no view, each is split into itself. */
	for (uint32_t i = n; i-- > 0;) {
		while (left == 1 && k > 0) {
			const struct acc_block *b = &ref->block;
			left = ref->shape[--k];
			x = (struct axis){ref->strided ? ref->stride[k] : dense, 0, 0};
			if (b->n > 0 && b->axis == k && left > b->n)
				x = (struct axis){x.stride, b->n, b->stride};
			dense *= ref->shape[k];
			if (l->nview == 0)
				break;
		}
		shape[i] = l->nview > 0 ? l->view[i] : left;
		if (shape[i] == left)
			out[i] = x;
		else if (!split_off(&x, shape[i], &out[i]))
			return false;
		left /= shape[i];
	}
	return true;
}

bool
acc_layout_view(const struct layout *l, const struct acc_ref *ref, struct acc_ref *out)
{
	int64_t shape[LAYOUT_DIMS];
	struct axis x[LAYOUT_DIMS];
	uint32_t n = l->nview > 0 ? l->nview : ref->ndim;
	*out = *ref;
	if (l->groups.n > 0) {
		int64_t dense = 1;
		if (ref->strided)
			return false;
		out->strided = true;
		out->groups = l->groups;
		for (uint32_t i = ref->ndim; i-- > 0; dense *= ref->shape[i])
			out->stride[i] = dense;
		return true;
	}
	if (!view_axes(l, ref, shape, x, n))
		return false;
	if (l->part_dim >= 0) {
		const struct axis *p = &x[l->part_dim];
		const int64_t at = l->part_start;
		if (p->n > 0 && at % p->n != 0)
			return false;
		out->first += (uint64_t)(p->n > 0 ? at / p->n * p->blocks : at * p->stride);
		shape[l->part_dim] = l->part_len;
	}
	if (l->cut) {
		if (x[l->cut_dim].n > 0)
			return false;
		out->first += (uint64_t)(l->cut_start * x[l->cut_dim].stride);
		shape[l->cut_dim] = l->cut_len;
	}
	out->ndim = n;
	out->strided = true;
	out->block = (struct acc_block){0};
	for (uint32_t i = 0; i < n; i++) {
		const struct axis *from = &x[l->perm[i]];
		out->shape[i] = shape[l->perm[i]];
		out->stride[i] = from->stride;
		if (from->n > 0 && out->shape[i] > from->n)
			out->block = (struct acc_block){i, from->n, from->blocks};
	}
	return true;
}

static size_t
numbers(char *buf, size_t size, const char *name, const int64_t *v, uint32_t n)
{
	size_t k = (size_t)snprintf(buf, size, ".%s(", name);
	for (uint32_t i = 0; i < n && k < size; i++)
		k += (size_t)snprintf(buf + k, size - k, "%lld%s", (long long)v[i],
			i + 1 < n ? "," : ")");
	return k < size ? k : size - 1;
}

void
acc_layout_text(const struct layout *l, char *buf, size_t size)
{
	size_t k = (size_t)snprintf(buf, size, "%c", l->side);
	if (l->nview > 0)
		k += numbers(buf + k, size - k, "view", l->view, l->nview);
	if (l->groups.n > 0) {
		const int64_t g[4] = {l->groups.n, l->groups.part[0], l->groups.part[1],
			l->groups.part[2]};
		numbers(buf + k, size - k, l->groups.apart ? "group" : "ungroup", g, 4);
		return;
	}
	if (l->part_dim >= 0) {
		const int64_t part[3] = {l->part_dim, l->part_start, l->part_len};
		k += numbers(buf + k, size - k, "part", part, 3);
	}
	if (l->cut) {
		const int64_t cut[3] = {l->cut_dim, l->cut_start, l->cut_len};
		k += numbers(buf + k, size - k, "part", cut, 3);
	}
	if (l->permuted) {
		int64_t p[LAYOUT_DIMS];
		for (uint32_t i = 0; i < l->nperm; i++)
			p[i] = l->perm[i];
		k += numbers(buf + k, size - k, "permute", p, l->nperm);
	}
	if (l->reshaped)
		snprintf(buf + k, size - k, ".reshape");
}
