/* An array of any strides, in row-major order.
 *
 * Reading element by element would cost a system call each (or, mapped, would hold the whole
 * file in memory). So a tile of at most 2 MiB of the row-major result is gathered at a time,
 * by runs along the dimension of smallest stride; a transposed matrix is then read in runs
 * of hundreds of elements. What is small lies in memory as a whole. */
#include "payload/pay.h"

#include "acc/file.h"

#include <stdlib.h>

enum { TILE = 2 << 20, SPAN = 64 << 10 };

struct acc_strided {
	int fd;
	uint8_t *mem; /* the storage, or NULL: in the file */
	uint64_t off; /* of element 0 of the storage, in the file or in mem */
	size_t size;
	uint32_t ndim;
	int64_t shape[ACC_MAXDIM], stride[ACC_MAXDIM];
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
	for (uint32_t i = 0; i < ref->ndim; i++) {
		int64_t whole;
		if (ref->shape[i] == 1)
			continue;
		uint32_t last = s->ndim - 1;
		if (s->ndim > 0 && !__builtin_mul_overflow(ref->shape[i], stride[i], &whole) &&
			s->stride[last] == whole) {
			s->shape[last] *= ref->shape[i];
			s->stride[last] = stride[i];
			continue;
		}
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
acc_strided_open(const struct acc_ref *ref, int fd, uint8_t *mem, struct acc_err *e)
{
	struct acc_strided *s = calloc(1, sizeof *s);
	if (s == NULL) {
		acc_nomem(e);
		return NULL;
	}
	s->fd = fd;
	s->off = mem != NULL ? 0 : ref->off;
	s->size = acc_dtypes[ref->dtype].size;
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
			int rc = acc_file_pread(s->fd, s->span,
				(size_t)(((k - 1) * reach + 1) * size),
				s->off + (uint64_t)(lo * size), e);
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

/* The dimension to read along: the smallest stride that is not 0. */
static uint32_t
run_dim(const struct acc_strided *s)
{
	uint32_t best = s->split;
	int64_t least = INT64_MAX;
	for (uint32_t i = s->split; i < s->ndim; i++) {
		int64_t r = s->stride[i] < 0 ? -s->stride[i] : s->stride[i];
		int64_t n = i == s->split ? s->rows : s->shape[i];
		if (r != 0 && n > 1 && r < least) {
			least = r;
			best = i;
		}
	}
	return best;
}

/* Gather the tile that starts at row-major element t0. */
static int
fill(struct acc_strided *s, uint64_t t0, struct acc_err *e)
{
	int64_t n[ACC_MAXDIM] = {0}, ix[ACC_MAXDIM] = {0}, step[ACC_MAXDIM] = {0};
	uint64_t rest = t0 / (uint64_t)s->inner;
	int64_t at = (int64_t)s->first;
	int64_t row = (int64_t)(rest % (uint64_t)s->shape[s->split]);
	at += row * s->stride[s->split];
	rest /= (uint64_t)s->shape[s->split];
	for (uint32_t i = s->split; i-- > 0;) {
		at += (int64_t)(rest % (uint64_t)s->shape[i]) * s->stride[i];
		rest /= (uint64_t)s->shape[i];
	}
	int64_t left = s->shape[s->split] - row;
	for (uint32_t i = s->ndim; i-- > s->split;) {
		n[i] = i > s->split ? s->shape[i] : left < s->rows ? left : s->rows;
		step[i] = i == s->ndim - 1 ? 1 : step[i + 1] * n[i + 1];
	}
	s->tile_at = t0;
	s->tile_n = (uint64_t)(n[s->split] * s->inner);
	const uint32_t along = run_dim(s);
	for (;;) {
		int64_t from = at, to = 0;
		for (uint32_t i = s->split; i < s->ndim; i++)
			if (i != along) {
				from += ix[i] * s->stride[i];
				to += ix[i] * step[i];
			}
		int rc = run(s, from, n[along], s->stride[along], s->tile + (uint64_t)to * s->size,
			step[along], e);
		if (rc < 0) {
			s->tile_n = 0;
			return rc;
		}
		uint32_t i = s->ndim;
		while (i-- > s->split)
			if (i != along) {
				if (++ix[i] < n[i])
					break;
				ix[i] = 0;
			}
		if (i + 1 == s->split) /* i wraps at 0 */
			return 0;
	}
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
		at += (int64_t)(index % (uint64_t)s->shape[i]) * s->stride[i];
		index /= (uint64_t)s->shape[i];
	}
	return run(s, at, 1, 1, out, 1, e);
}
