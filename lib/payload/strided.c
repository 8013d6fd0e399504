/* An array of any strides, in row-major order.
 *
 * Reading element by element would cost a system call each (or, mapped, would hold the whole
 * file in memory). So a tile of at most 2 MiB of the row-major result is gathered at a time,
 * by runs along the dimension of smallest stride; a transposed matrix is then read in runs
 * of hundreds of elements. A dimension in blocks is two, in a tile: the blocks, and what lies in
 * them; and the last block, which may be cut short, apart. Dimensions that together fill a small
 * span of the file are read at once: rows of a tile of 16 by 16 are too short to be runs. What is
 * small lies in memory as a whole. */
#include "payload/pay.h"

#include "acc/file.h"

#include <stdlib.h>

enum { TILE = 2 << 20, SPAN = 64 << 10 };

struct acc_strided {
	int fd;
	uint8_t *mem;                    /* the storage, or NULL: in the file */
	struct acc_parted *parts;        /* it is put together of these, or NULL */
	const struct acc_scaled *scaled; /* or it is decoded; or NULL */
	uint64_t off;                    /* of element 0 of the storage, in the file or in mem */
	size_t size;
	uint32_t ndim;
	int64_t shape[ACC_MAXDIM], stride[ACC_MAXDIM];
	struct acc_block block;   /* its axis is one of these */
	struct acc_groups groups; /* of the first */
	uint64_t first, count;
	uint32_t split;      /* a tile takes `rows` of this dimension, all of those behind it */
	int64_t rows, inner; /* inner: elements of a row */
	uint64_t tile_at, tile_n;
	uint8_t *tile, *span;
};

/* Leave out dimensions of size 1, join those that continue each other. */
static void
simplify(struct acc_strided *s, const struct acc_ref *ref)
{
	int64_t dense = 1;
	int64_t stride[ACC_MAXDIM];
	for (uint32_t i = ref->ndim; i-- > 0;) {
		stride[i] = ref->strided ? ref->stride[i] : dense;
		dense *= ref->shape[i]; /* fits: the count does */
	}
	bool alone = false; /* the dimension before is in blocks */
	for (uint32_t i = 0; i < ref->ndim; i++) {
		const struct acc_block *b = &ref->block;
		const bool grouped = ref->groups.n > 0 && i == 0;
		const bool blocks = grouped || (b->n > 0 && b->axis == i && ref->shape[i] > b->n);
		int64_t whole;
		if (ref->shape[i] == 1)
			continue;
		uint32_t last = s->ndim - 1;
		if (grouped)
			s->groups = ref->groups;
		else if (blocks)
			s->block = (struct acc_block){s->ndim, b->n, b->stride};
		if (s->ndim > 0 && !blocks && !alone &&
			!__builtin_mul_overflow(ref->shape[i], stride[i], &whole) &&
			s->stride[last] == whole) {
			s->shape[last] *= ref->shape[i];
			s->stride[last] = stride[i];
			continue;
		}
		alone = blocks;
		s->shape[s->ndim] = ref->shape[i];
		s->stride[s->ndim++] = stride[i];
	}
	if (s->ndim == 0) {
		s->shape[0] = 1;
		s->stride[0] = 1;
		s->ndim = 1;
	}
}

/* Choose the tiles: as many rows of one dimension as fit. */
static void
tiles(struct acc_strided *s)
{
	const int64_t most = TILE / (int64_t)s->size;
	s->split = s->ndim - 1;
	s->inner = 1;
	while (s->split > 0 && s->shape[s->split] <= most / s->inner)
		s->inner *= s->shape[s->split--];
	s->rows = most / s->inner;
	if (s->rows > s->shape[s->split])
		s->rows = s->shape[s->split];
}

struct acc_strided *
acc_strided_open(const struct acc_ref *ref, int fd, uint8_t *mem, struct acc_parted *parts,
	const struct acc_scaled *scaled, struct acc_err *e)
{
	struct acc_strided *s = calloc(1, sizeof *s);
	if (s == NULL) {
		acc_nomem(e);
		return NULL;
	}
	s->fd = fd;
	s->parts = parts;
	s->scaled = scaled;
	s->off = mem != NULL ? 0 : ref->off;
	s->size = acc_dtype_of(ref->dtype)->size;
	s->first = ref->first;
	acc_count(ref->shape, ref->ndim, &s->count);
	simplify(s, ref);
	tiles(s);
	s->tile = malloc((size_t)(s->rows * s->inner) * s->size);
	s->span = malloc(SPAN);
	if (s->tile == NULL || s->span == NULL) {
		acc_strided_close(s);
		acc_nomem(e);
		return NULL;
	}
	s->mem = mem;
	return s;
}

void
acc_strided_close(struct acc_strided *s)
{
	if (s == NULL)
		return;
	free(s->tile);
	free(s->span);
	free(s->mem);
	free(s);
}

static void
copy(uint8_t *to, const uint8_t *from, size_t size)
{
	switch (size) { /* a constant size is one instruction */
	case 1:
		*to = *from;
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	default:
		memcpy(to, from, size);
	}
}

/* n elements of the storage, which is not in memory, as they lie there. */
static int
fetch(struct acc_strided *s, int64_t at, int64_t n, struct acc_err *e)
{
	uint64_t touched = 0;
	if (s->parts != NULL) {
		int rc = acc_parted_read(s->parts, (uint64_t)at, (size_t)n, false, &touched,
			s->span, e);
		return rc < 0 ? rc : acc_parted_same(s->parts, touched, e);
	}
	if (s->scaled != NULL)
		return acc_scaled_read(s->scaled, (uint64_t)at, (size_t)n, s->span, e);
	return acc_file_pread(s->fd, s->span, (size_t)n * s->size, s->off + (uint64_t)at * s->size,
		e);
}

/* n elements of the storage from `at` on, `stride` apart, to places `step` elements apart. */
static int
run(struct acc_strided *s, int64_t at, int64_t n, int64_t stride, uint8_t *to, int64_t step,
	struct acc_err *e)
{
	const int64_t size = (int64_t)s->size;
	int64_t reach = stride < 0 ? -stride : stride;
	/* As many as lie within a span; if they are far apart, one at a time. */
	int64_t most = reach < SPAN / size ? (SPAN / size - 1) / (reach > 0 ? reach : 1) + 1 : 1;
	while (n > 0) {
		int64_t k = n < most ? n : most;
		int64_t lo = stride < 0 ? at + (k - 1) * stride : at;
		const uint8_t *from = s->span;
		if (s->mem != NULL) {
			from = s->mem + s->off + (uint64_t)(lo * size);
		} else {
			int rc = fetch(s, lo, (k - 1) * reach + 1, e);
			if (rc < 0)
				return rc;
		}
		from += (at - lo) * size;
		for (int64_t i = 0; i < k; i++)
			copy(to + i * step * size, from + i * stride * size, s->size);
		to += k * step * size;
		at += k * stride;
		n -= k;
	}
	return 0;
}

/* What a tile takes, or a part of it: how many of each dimension, how far apart in the storage and
 * in the tile. */
struct box {
	uint32_t n;
	struct box_dim {
		int64_t n, from, to;
	} d[ACC_MAXDIM + 1];
};

static int64_t
reach_of(const struct box_dim *d)
{
	int64_t r = d->from < 0 ? -d->from : d->from;
	return (d->n - 1) * r;
}

/* Those of widest steps first, and first of all those that stay where they are. */
static void
sort(struct box *b)
{
	for (uint32_t i = 1; i < b->n; i++) {
		const struct box_dim d = b->d[i];
		const uint64_t w = (uint64_t)(d.from < 0 ? -d.from : d.from) - 1;
		uint32_t k = i;
		for (; k > 0; k--) {
			const int64_t f = b->d[k - 1].from;
			if ((uint64_t)(f < 0 ? -f : f) - 1 >= w)
				break;
			b->d[k] = b->d[k - 1];
		}
		b->d[k] = d;
	}
}

/* From which dimension on all is read at once: as many as lie in a span, an eighth of which they
 * need. *extent: elements of the storage. */
static uint32_t
at_once(const struct acc_strided *s, const struct box *b, int64_t *extent)
{
	uint32_t first = b->n;
	int64_t n = 1;
	*extent = 1;
	while (first > 0) {
		const struct box_dim *d = &b->d[first - 1];
		const int64_t reach = reach_of(d);
		n *= d->n;
		if (*extent + reach > SPAN / (int64_t)s->size || (*extent + reach) / 8 > n)
			break;
		*extent += reach;
		first--;
	}
	return first;
}

/* The next of dimensions [first, end); false after the last. */
static bool
step(const struct box *b, uint32_t first, uint32_t end, int64_t *ix, int64_t *from, int64_t *to)
{
	for (uint32_t i = end; i-- > first;) {
		const struct box_dim *d = &b->d[i];
		*from += d->from;
		*to += d->to;
		if (++ix[i] < d->n)
			return true;
		*from -= d->n * d->from;
		*to -= d->n * d->to;
		ix[i] = 0;
	}
	return false;
}

/* Dimensions [first, end) of a box, whose lowest element is at `low` of the storage: all of them
 * are read, then put in place. */
static int
whole(struct acc_strided *s, const struct box *b, uint32_t first, int64_t at, int64_t extent,
	uint8_t *out, struct acc_err *e)
{
	const int64_t size = (int64_t)s->size;
	const struct box_dim *in = &b->d[b->n - 1];
	int64_t ix[ACC_MAXDIM + 1] = {0}, from = 0, to = 0, low = 0;
	for (uint32_t i = first; i < b->n; i++)
		low += b->d[i].from < 0 ? (b->d[i].n - 1) * b->d[i].from : 0;
	const uint8_t *bytes = s->span;
	if (s->mem != NULL) {
		bytes = s->mem + s->off + (uint64_t)((at + low) * size);
	} else {
		int rc = fetch(s, at + low, extent, e);
		if (rc < 0)
			return rc;
	}
	bytes -= low * size;
	do {
		const uint8_t *p = bytes + from * size;
		uint8_t *q = out + to * size;
		if (in->from == 1 && in->to == 1)
			memcpy(q, p, (size_t)(in->n * size));
		else
			for (int64_t i = 0; i < in->n; i++)
				copy(q + i * in->to * size, p + i * in->from * size, s->size);
	} while (step(b, first, b->n - 1, ix, &from, &to));
	return 0;
}

/* All of a box, from element `at` of the storage on. */
static int
gather(struct acc_strided *s, struct box *b, int64_t at, uint8_t *out, struct acc_err *e)
{
	int64_t ix[ACC_MAXDIM + 1] = {0}, from = 0, to = 0, extent;
	if (b->n == 0)
		b->d[b->n++] = (struct box_dim){1, 1, 1};
	sort(b);
	uint32_t inner = at_once(s, b, &extent);
	const struct box_dim *last = &b->d[b->n - 1];
	int rc;
	do {
		uint8_t *q = out + to * (int64_t)s->size;
		if (inner < b->n)
			rc = whole(s, b, inner, at + from, extent, q, e);
		else
			rc = run(s, at + from, last->n, last->from, q, last->to, e);
	} while (rc == 0 && step(b, 0, inner < b->n ? inner : b->n - 1, ix, &from, &to));
	return rc;
}

static int64_t
place(const struct acc_strided *s, uint32_t dim, int64_t i)
{
	const struct acc_block *b = &s->block;
	int64_t run;
	if (s->groups.n > 0 && dim == 0)
		return acc_grouped(&s->groups, i, &run) * s->stride[dim];
	if (b->n == 0 || b->axis != dim)
		return i * s->stride[dim];
	return i / b->n * b->stride + i % b->n * s->stride[dim];
}

/* A dimension in blocks, from index i on to `end`: the rest of a block, or whole blocks. How many
 * elements that is. */
static int64_t
some_blocks(const struct acc_strided *s, int64_t i, int64_t end, int64_t to, struct box *b)
{
	const int64_t n = s->block.n, stride = s->stride[s->block.axis];
	if (s->groups.n > 0) {
		int64_t run;
		acc_grouped(&s->groups, i, &run);
		run = run < end - i ? run : end - i;
		if (run > 1)
			b->d[b->n++] = (struct box_dim){run, s->stride[0], to};
		return run;
	}
	int64_t k = n - i % n; /* of the block that i is in */
	if (k > end - i)
		k = end - i;
	const int64_t blocks = k == n ? (end - i) / n : 1;
	if (blocks > 1)
		b->d[b->n++] = (struct box_dim){blocks, s->block.stride, k * to};
	if (k > 1)
		b->d[b->n++] = (struct box_dim){k, stride, to};
	return blocks * k;
}

/* A tile: what it takes of all dimensions but the one in blocks, of which it takes [begin, end). */
struct tile {
	struct box box;
	int64_t at;   /* where its first element lies, but for the one in blocks */
	bool blocked; /* is there one? else end - begin is 1 */
	int64_t begin, end, to;
};

static struct tile
tile_at(const struct acc_strided *s, uint64_t t0, int64_t *rows)
{
	struct tile t = {.at = (int64_t)s->first, .end = 1};
	uint64_t rest = t0 / (uint64_t)s->inner;
	const int64_t row = (int64_t)(rest % (uint64_t)s->shape[s->split]);
	const int64_t left = s->shape[s->split] - row;
	*rows = left < s->rows ? left : s->rows;
	rest /= (uint64_t)s->shape[s->split];
	for (uint32_t i = s->split; i-- > 0;) {
		t.at += place(s, i, (int64_t)(rest % (uint64_t)s->shape[i]));
		rest /= (uint64_t)s->shape[i];
	}
	int64_t to = 1;
	for (uint32_t i = s->ndim; i-- > s->split;) {
		const int64_t first = i == s->split ? row : 0;
		const int64_t n = i == s->split ? *rows : s->shape[i];
		if (s->groups.n > 0 ? i == 0 : s->block.n > 0 && s->block.axis == i) {
			t.blocked = true;
			t.begin = first;
			t.end = first + n;
			t.to = to;
		} else {
			t.at += first * s->stride[i];
			if (n > 1)
				t.box.d[t.box.n++] = (struct box_dim){n, s->stride[i], to};
		}
		to *= n;
	}
	return t;
}

/* Gather the tile that starts at row-major element t0. */
static int
fill(struct acc_strided *s, uint64_t t0, struct acc_err *e)
{
	int64_t rows, n = 1;
	const struct tile t = tile_at(s, t0, &rows);
	int rc = 0;
	s->tile_at = t0;
	s->tile_n = 0;
	for (int64_t i = t.begin; i < t.end && rc == 0; i += n) {
		struct box b = t.box;
		int64_t at = t.at;
		if (t.blocked) {
			at += place(s, s->groups.n > 0 ? 0 : s->block.axis, i);
			n = some_blocks(s, i, t.end, t.to, &b);
		}
		rc = gather(s, &b, at, s->tile + (uint64_t)((i - t.begin) * t.to) * s->size, e);
	}
	if (rc == 0)
		s->tile_n = (uint64_t)(rows * s->inner);
	return rc;
}

int
acc_strided_read(struct acc_strided *s, uint64_t first, size_t n, void *out, struct acc_err *e)
{
	uint8_t *to = out;
	while (n > 0) {
		if (first < s->tile_at || first - s->tile_at >= s->tile_n) {
			int rc = fill(s, first - first % (uint64_t)s->inner, e);
			if (rc < 0)
				return rc;
		}
		uint64_t skip = first - s->tile_at, have = s->tile_n - skip;
		size_t k = have < n ? (size_t)have : n;
		memcpy(to, s->tile + skip * s->size, k * s->size);
		to += k * s->size;
		first += k;
		n -= k;
	}
	return 0;
}

int
acc_strided_peek(struct acc_strided *s, uint64_t index, void *out, struct acc_err *e)
{
	int64_t at = (int64_t)s->first;
	for (uint32_t i = s->ndim; i-- > 0;) {
		at += place(s, i, (int64_t)(index % (uint64_t)s->shape[i]));
		index /= (uint64_t)s->shape[i];
	}
	return run(s, at, 1, 1, out, 1, e);
}
