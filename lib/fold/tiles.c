/* The elements of a whole weight, read from boxes of its parts, in row-major order; and those of a part,
 * which may itself lie in pieces of flat tensors. */
#include "fold/weights.h"

#include <stdlib.h>

/* --- one part --- */

struct fold_source {
	struct acc_pay **pay; /* of each run */
	struct fold_stretch *run;
	uint64_t *first; /* of each run, the element of the part that it begins with */
	uint32_t n, hint;
	uint64_t count;
	enum acc_dtype dtype;
	struct acc_ref ref; /* of the first */
};

void
acc_source_close(struct fold_source *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; i < s->n && s->pay != NULL; i++)
		acc_pay_close(s->pay[i]);
	free(s->pay);
	free(s->run);
	free(s->first);
	free(s);
}

uint64_t
acc_source_count(const struct fold_source *s)
{
	return s->count;
}

enum acc_dtype
acc_source_dtype(const struct fold_source *s)
{
	return s->dtype;
}

const struct acc_ref *
acc_source_whole(const struct fold_source *s)
{
	const struct acc_ref *r = &s->ref;
	return s->n == 1 && s->run[0].from == 0 && s->run[0].n == acc_pay_count(s->pay[0]) &&
			       !r->strided && r->len == s->count * acc_dtypes[s->dtype].size
		       ? r
		       : NULL;
}

bool
acc_source_random(const struct fold_source *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!acc_pay_random(s->pay[i]))
			return false;
	return true;
}

/* 1; 0: it has no elements that could be read; or < 0. */
static int
open_run(struct acc_fold *f, struct fold_source *s, uint32_t i, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_ref ref;
	int rc = acc_fold_record(f, s->run[i].at, &r, e);
	rc = rc < 0 ? rc : acc_ref_get(r, "", &ref, e);
	if (rc <= 0 || ref.dtype == ACC_NODTYPE || (i > 0 && ref.dtype != s->dtype))
		return rc < 0 ? rc : 0;
	s->pay[i] = acc_pay_open(f->roots, acc_get_text(r, "", "src"), &ref, e);
	if (s->pay[i] == NULL)
		return e != NULL && e->code < 0 ? e->code : ACC_EIO;
	if (i == 0) {
		s->dtype = ref.dtype;
		s->ref = ref;
	}
	const uint64_t has = acc_pay_count(s->pay[i]);
	if (s->run[i].n == UINT64_MAX)
		s->run[i].n = has;
	s->first[i] = s->count;
	if (s->run[i].from > has || s->run[i].n > has - s->run[i].from)
		return acc_fail(e, ACC_EFORMAT, "a part of a flat tensor lies beyond its end");
	s->count += s->run[i].n;
	return 1;
}

struct fold_source *
acc_source_open(struct acc_fold *f, const struct fold_part *p, struct acc_err *e)
{
	const struct fold_stretch all = {.at = p->at, .n = UINT64_MAX};
	const struct fold_stretch *run = p->nrun > 0 ? p->run : &all;
	struct fold_source *s = calloc(1, sizeof *s);
	const uint32_t n = p->nrun > 0 ? p->nrun : 1;
	int rc = s == NULL ? ACC_ENOMEM : 1;
	if (rc > 0) {
		s->n = n;
		s->pay = calloc(n, sizeof(struct acc_pay *));
		s->run = calloc(n, sizeof *s->run);
		s->first = calloc(n, sizeof *s->first);
		rc = s->pay == NULL || s->run == NULL || s->first == NULL ? ACC_ENOMEM : 1;
	}
	if (rc == ACC_ENOMEM)
		acc_nomem(e);
	for (uint32_t i = 0; i < n && rc > 0; i++) {
		s->run[i] = run[i];
		rc = open_run(f, s, i, e);
	}
	if (rc <= 0) {
		acc_source_close(s);
		return NULL;
	}
	return s;
}

int
acc_source_read(struct fold_source *s, uint64_t first, size_t n, void *raw, const void **out,
	struct acc_err *e)
{
	const size_t size = acc_dtypes[s->dtype].size;
	uint32_t i = s->hint < s->n && s->first[s->hint] <= first ? s->hint : 0;
	if (first > s->count || n > s->count - first)
		return acc_fail(e, ACC_EFORMAT, "a part is longer than its shape");
	while (i + 1 < s->n && s->first[i + 1] <= first)
		i++;
	s->hint = i;
	if (first - s->first[i] + n <= s->run[i].n)
		return acc_pay_read(s->pay[i], s->run[i].from + first - s->first[i], n, raw, out,
			e);
	int rc = 0;
	for (size_t at = 0; at < n && rc == 0; i++) {
		uint64_t skip = first + at - s->first[i], left = s->run[i].n - skip;
		size_t k = left < n - at ? (size_t)left : n - at;
		uint8_t *to = (uint8_t *)raw + at * size;
		const void *p = to;
		if (k > 0)
			rc = acc_pay_read(s->pay[i], s->run[i].from + skip, k, to, &p, e);
		if (rc == 0 && p != to)
			memmove(to, p, k * size);
		at += k;
	}
	*out = raw;
	return rc;
}

/* --- a whole --- */

struct fold_tiled {
	struct fold_source **part;
	const struct fold_part *parts;
	uint32_t npart, ntile, nstrip;
	struct fold_tile *tile;
	const struct fold_tile **strip; /* those that the row goes through, in its order */
	uint32_t ndim, axis;            /* the last that is split */
	int64_t shape[ACC_FOLD_NDIM];
	uint64_t count, rows,
		inner;       /* rows: over the axes before; inner: elements behind the axis */
	uint64_t row, until; /* the strip is that of rows before `until` */
	uint32_t at;         /* in the strip: the tile, */
	uint64_t in;         /* and how many of its elements in this row are done */
	void *raw;
	enum acc_dtype dtype;
};

void
acc_tiled_close(struct fold_tiled *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; i < t->npart && t->part != NULL; i++)
		acc_source_close(t->part[i]);
	free(t->part);
	free(t->tile);
	free(t->strip);
	free(t->raw);
	free(t);
}

static int
no_whole(struct acc_err *e)
{
	return acc_fail(e, ACC_EFORMAT, "its parts do not make up a whole");
}

static int
by_begin(const void *x, const void *y, void *axis)
{
	const struct fold_tile *a = *(const struct fold_tile *const *)x;
	const struct fold_tile *b = *(const struct fold_tile *const *)y;
	uint32_t d = *(const uint32_t *)axis;
	return (a->begin[d] > b->begin[d]) - (a->begin[d] < b->begin[d]);
}

/* The tiles that this row goes through: one behind the other, each element once. */
static int
strip_of(struct fold_tiled *t, uint64_t row, struct acc_err *e)
{
	int64_t c[ACC_FOLD_NDIM] = {0}, at = 0, last = INT64_MAX;
	uint64_t rest = row;
	for (uint32_t d = t->axis; d-- > 0; rest /= (uint64_t)t->shape[d])
		c[d] = (int64_t)(rest % (uint64_t)t->shape[d]);
	t->nstrip = 0;
	for (uint32_t i = 0; i < t->ntile; i++) {
		const struct fold_tile *k = &t->tile[i];
		bool in = k->size[t->axis] > 0;
		for (uint32_t d = 0; d < t->axis && in; d++)
			in = c[d] >= k->begin[d] && c[d] - k->begin[d] < k->size[d];
		if (in)
			t->strip[t->nstrip++] = k;
	}
	qsort_r(t->strip, t->nstrip, sizeof(const struct fold_tile *), by_begin, &t->axis);
	for (uint32_t i = 0; i < t->nstrip; i++) {
		const struct fold_tile *k = t->strip[i];
		if (k->begin[t->axis] != at)
			return no_whole(e);
		at += k->size[t->axis];
		if (t->axis > 0 && k->begin[t->axis - 1] + k->size[t->axis - 1] < last)
			last = k->begin[t->axis - 1] + k->size[t->axis - 1];
	}
	if (at != t->shape[t->axis])
		return no_whole(e);
	t->row = row;
	t->until = t->axis == 0 ? 1 : row + (uint64_t)(last - c[t->axis - 1]);
	t->at = 0;
	t->in = 0;
	return 0;
}

/* Is each tile a box of the whole, and of its part, and do they have as many elements as it? */
static bool
fits(const struct fold_tiled *t)
{
	uint64_t sum = 0, n;
	for (uint32_t i = 0; i < t->ntile; i++) {
		const struct fold_tile *k = &t->tile[i];
		const struct fold_part *p = k->part < t->npart ? &t->parts[k->part] : NULL;
		if (p == NULL || p->ndim != t->ndim || !acc_count(k->size, t->ndim, &n) ||
			n > t->count - sum)
			return false;
		for (uint32_t d = 0; d < t->ndim; d++)
			if (k->begin[d] < 0 || k->from[d] < 0 || k->begin[d] > t->shape[d] ||
				k->size[d] > t->shape[d] - k->begin[d] ||
				k->from[d] > p->shape[d] || k->size[d] > p->shape[d] - k->from[d])
				return false;
		sum += n;
	}
	return sum == t->count;
}

/* The last axis along which a tile is less than all of the whole, or of its part. */
static uint32_t
split_axis(const struct fold_tiled *t)
{
	for (uint32_t d = t->ndim; d-- > 1;)
		for (uint32_t i = 0; i < t->ntile; i++)
			if (t->tile[i].size[d] != t->shape[d] ||
				t->parts[t->tile[i].part].shape[d] != t->shape[d])
				return d;
	return 0;
}

/* 1; 0: a part has no elements that can be read; or < 0. */
static int
open_parts(struct acc_fold *f, struct fold_tiled *t, struct acc_err *e)
{
	for (uint32_t i = 0; i < t->npart; i++) {
		uint64_t n;
		struct acc_err own = {0};
		t->part[i] = acc_source_open(f, &t->parts[i], &own);
		if (t->part[i] == NULL && own.code < 0) {
			*e = own;
			return own.code;
		}
		if (t->part[i] == NULL || (t->ntile > 1 && !acc_source_random(t->part[i])) ||
			!acc_count(t->parts[i].shape, t->parts[i].ndim, &n) ||
			n != acc_source_count(t->part[i]) ||
			(i > 0 && acc_source_dtype(t->part[i]) != t->dtype))
			return 0;
		t->dtype = acc_source_dtype(t->part[i]);
	}
	return 1;
}

struct fold_tiled *
acc_tiled_open(struct acc_fold *f, const struct fold_part *parts, uint32_t npart,
	struct fold_tile *tile, uint32_t ntile, const int64_t *shape, uint32_t ndim,
	struct acc_err *e)
{
	struct fold_tiled *t = calloc(1, sizeof *t);
	if (t == NULL) {
		free(tile);
		acc_nomem(e);
		return NULL;
	}
	*t = (struct fold_tiled){.parts = parts,
		.npart = npart,
		.tile = tile,
		.ntile = ntile,
		.ndim = ndim,
		.part = calloc((size_t)npart + 1, sizeof(struct fold_source *)),
		.strip = calloc((size_t)ntile + 1, sizeof(const struct fold_tile *)),
		.raw = malloc(ACC_CHUNK * 16),
		.rows = 1,
		.inner = 1};
	bool known = ndim > 0 && ndim <= ACC_FOLD_NDIM && acc_count(shape, ndim, &t->count);
	if (known)
		memcpy(t->shape, shape, ndim * sizeof *shape);
	int rc = t->part == NULL || t->strip == NULL || t->raw == NULL ? acc_nomem(e)
		 : known && fits(t)                                    ? 1
								       : no_whole(e);
	rc = rc < 0 ? rc : open_parts(f, t, e);
	t->axis = rc > 0 ? split_axis(t) : 0;
	for (uint32_t d = 0; d < ndim && rc > 0; d++)
		if (d < t->axis)
			t->rows *= (uint64_t)shape[d];
		else if (d > t->axis)
			t->inner *= (uint64_t)shape[d];
	/* Each row is looked at before the first is read. */
	for (uint64_t row = 0; row < t->rows && rc > 0 && t->count > 0; row = t->until)
		rc = strip_of(t, row, e) < 0 ? ACC_EFORMAT : rc;
	if (rc > 0 && t->count > 0)
		rc = strip_of(t, 0, e) < 0 ? ACC_EFORMAT : rc;
	if (rc <= 0) {
		acc_tiled_close(t);
		return NULL;
	}
	return t;
}

uint64_t
acc_tiled_count(const struct fold_tiled *t)
{
	return t->count;
}

enum acc_dtype
acc_tiled_dtype(const struct fold_tiled *t)
{
	return t->dtype;
}

/* Where in its part the tile's piece of this row begins. */
static uint64_t
begin_of(const struct fold_tiled *t, const struct fold_tile *k)
{
	const struct fold_part *p = &t->parts[k->part];
	int64_t c[ACC_FOLD_NDIM] = {0};
	uint64_t rest = t->row, at = 0;
	for (uint32_t d = t->axis; d-- > 0; rest /= (uint64_t)t->shape[d])
		c[d] = (int64_t)(rest % (uint64_t)t->shape[d]) - k->begin[d] + k->from[d];
	c[t->axis] = k->from[t->axis];
	for (uint32_t d = 0; d <= t->axis; d++)
		at = at * (uint64_t)p->shape[d] + (uint64_t)c[d];
	return at * t->inner;
}

int
acc_tiled_next(struct fold_tiled *t, uint8_t *out, size_t room, size_t *n, struct acc_err *e)
{
	const size_t size = acc_dtypes[t->dtype].size;
	int rc = 0;
	*n = 0;
	while (*n < room && t->row < t->rows && t->count > 0 && rc == 0) {
		const struct fold_tile *k = t->strip[t->at];
		uint64_t run = (uint64_t)k->size[t->axis] * t->inner, left = run - t->in;
		size_t take = left < room - *n ? (size_t)left : room - *n;
		const void *p = NULL;
		if (take > 0)
			rc = acc_source_read(t->part[k->part], begin_of(t, k) + t->in, take, t->raw,
				&p, e);
		if (rc == 0 && take > 0)
			memcpy(out + *n * size, p, take * size);
		*n += take;
		t->in += take;
		if (t->in < run)
			continue;
		t->in = 0;
		if (++t->at < t->nstrip)
			continue;
		t->at = 0;
		if (++t->row == t->until && t->row < t->rows)
			rc = rc == 0 ? strip_of(t, t->row, e) : rc;
	}
	return rc;
}
