/* Where the elements of a whole weight lie: in boxes of its parts; and those of a part, which may itself
 * lie in pieces of flat tensors. */
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
			       !r->strided && r->len == s->count * acc_dtype_of(s->dtype)->size
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
	const size_t size = acc_dtype_of(s->dtype)->size;
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

struct tiled {
	const struct fold_part *parts;
	uint32_t npart, ntile, nstrip;
	const struct fold_tile *tile;
	const struct fold_tile **strip; /* those that the row goes through, in its order */
	uint32_t ndim, axis;            /* the last that is split */
	int64_t shape[ACC_FOLD_NDIM];
	uint64_t count, rows,
		inner;       /* rows: over the axes before; inner: elements behind the axis */
	uint64_t row, until; /* the strip is that of rows before `until` */
	/* The storages that it lies in: of part i those from stored[i] on. */
	uint32_t *stored, nstored;
	struct fold_stretch *run; /* of each, what of it is the part's; */
	int64_t *first;           /* and with which element of the part that begins */
	struct acc_buf rows_of;   /* as acc_parts has them */
	size_t last;              /* the last band */
	struct acc_arena *mem;    /* of what becomes the reference */
	struct acc_ref *ref;
	struct acc_str *src, *file;
	int64_t *off, *len, *crc32, *fsize, *mtime;
};

static void
tiled_release(struct tiled *t)
{
	free(t->strip);
	free(t->stored);
	free(t->run);
	free(t->first);
	acc_buf_release(&t->rows_of);
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
strip_of(struct tiled *t, uint64_t row, struct acc_err *e)
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
	return 0;
}

/* Is each tile a box of the whole, and of its part, and do they have as many elements as it? */
static bool
fits(const struct tiled *t)
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
split_axis(const struct tiled *t)
{
	for (uint32_t d = t->ndim; d-- > 1;)
		for (uint32_t i = 0; i < t->ntile; i++)
			if (t->tile[i].size[d] != t->shape[d] ||
				t->parts[t->tile[i].part].shape[d] != t->shape[d])
				return d;
	return 0;
}

/* --- its storages --- */

/* One more: all of a record, or a stretch of it. 1; 0: its elements do not lie there one behind the other;
 * or < 0. */
static int
add_stored(struct acc_fold *f, struct tiled *t, const struct fold_stretch *run, struct acc_err *e)
{
	const uint32_t i = t->nstored;
	struct acc_rec *r;
	struct acc_ref ref;
	uint64_t n;
	int rc = acc_fold_record(f, run->at, &r, e);
	rc = rc < 0 ? rc : acc_ref_get(r, "", &ref, e);
	if (rc <= 0)
		return rc;
	if (ref.dtype == ACC_NODTYPE || ref.enc != ACC_STORED ||
		!acc_count(ref.shape, ref.ndim, &n) ||
		(ref.strided &&
			(ref.block.n > 0 || !acc_contiguous(ref.shape, ref.stride, ref.ndim))) ||
		(i > 0 && (ref.dtype != t->ref->dtype || ref.big_endian != t->ref->big_endian)))
		return 0;
	t->run[i] = *run;
	if (run->n == UINT64_MAX)
		t->run[i].n = n;
	if (run->from > n || t->run[i].n > n - run->from)
		return acc_fail(e, ACC_EFORMAT, "a part of a flat tensor lies beyond its end");
	t->run[i].from += ref.first;
	const struct acc_str src = acc_get_text(r, "", "src");
	t->src[i] = acc_arena_str(t->mem, src);
	t->file[i] = acc_arena_str(t->mem, ref.file);
	t->off[i] = (int64_t)ref.off;
	t->len[i] = (int64_t)ref.len;
	t->crc32[i] = ref.has_crc ? (int64_t)ref.crc32 : -1;
	t->fsize[i] = (int64_t)ref.fsize;
	t->mtime[i] = ref.mtime_ns;
	t->ref->dtype = ref.dtype;
	t->ref->big_endian = ref.big_endian;
	t->nstored++;
	return t->src[i].p == NULL || t->file[i].p == NULL ? acc_nomem(e) : 1;
}

static int
add_part(struct acc_fold *f, struct tiled *t, uint32_t part, struct acc_err *e)
{
	const struct fold_part *p = &t->parts[part];
	const struct fold_stretch all = {.at = p->at, .n = UINT64_MAX};
	uint64_t n, have = 0;
	int rc = 1;
	t->stored[part] = t->nstored;
	for (uint32_t i = 0; i < (p->nrun > 0 ? p->nrun : 1) && rc > 0; i++) {
		const uint32_t at = t->nstored;
		rc = add_stored(f, t, p->nrun > 0 ? &p->run[i] : &all, e);
		t->first[at] = (int64_t)have;
		have += rc > 0 ? t->run[at].n : 0;
	}
	return rc <= 0 ? rc : acc_count(p->shape, p->ndim, &n) && n == have;
}

static int
add_parts(struct acc_fold *f, struct tiled *t, struct acc_err *e)
{
	size_t n = 0;
	int rc = 1;
	for (uint32_t i = 0; i < t->npart; i++)
		n += t->parts[i].nrun > 0 ? t->parts[i].nrun : 1;
	int64_t **numbers[] = {&t->off, &t->len, &t->crc32, &t->fsize, &t->mtime};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		*numbers[i] = acc_alloc(t->mem, (n + 1) * sizeof(int64_t));
		rc = *numbers[i] == NULL ? ACC_ENOMEM : rc;
	}
	t->src = acc_alloc(t->mem, (n + 1) * sizeof *t->src);
	t->file = acc_alloc(t->mem, (n + 1) * sizeof *t->file);
	t->stored = calloc((size_t)t->npart + 1, sizeof *t->stored);
	t->run = calloc(n + 1, sizeof *t->run);
	t->first = calloc(n + 1, sizeof *t->first);
	if (rc < 0 || t->src == NULL || t->file == NULL || t->stored == NULL || t->run == NULL ||
		t->first == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < t->npart && rc > 0; i++)
		rc = add_part(f, t, i, e);
	t->stored[t->npart] = t->nstored;
	return rc;
}

/* --- its rows --- */

/* Where in its part the tile's piece of this row begins. */
static uint64_t
begin_of(const struct tiled *t, const struct fold_tile *k)
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

/* One more band, or more rows of the last. */
static int
add_band(struct tiled *t, const int64_t *band, struct acc_err *e)
{
	const size_t n = ACC_BAND + (size_t)band[1] * ACC_PIECE;
	const bool any = t->rows_of.n > 0;
	int64_t *last = any ? (int64_t *)(void *)(t->rows_of.p + t->last) : NULL;
	bool goes_on = any && last[1] == band[1];
	for (size_t i = ACC_BAND; i < n && goes_on; i += ACC_PIECE)
		goes_on = last[i] == band[i] && last[i + 2] == band[i + 2] && band[i + 3] > 0 &&
			  last[i + 3] == band[i + 3] &&
			  last[i + 1] + last[0] * last[i + 3] == band[i + 1];
	if (goes_on) {
		last[0] += band[0];
		return 0;
	}
	t->last = t->rows_of.n;
	return acc_buf_add(&t->rows_of, band, n * sizeof *band) < 0 ? acc_nomem(e) : 0;
}

/* The storage in which element `at` of a part lies. */
static uint32_t
stored_at(const struct tiled *t, uint32_t part, int64_t at)
{
	uint32_t i = t->stored[part];
	while (i + 1 < t->stored[part + 1] && t->first[i + 1] <= at)
		i++;
	return i;
}

/* Some of n rows from `row` of the strip on: as many as do not lead from one storage into the next, or one
 * that does. How many, or < 0. */
static int64_t
add_rows(struct tiled *t, int64_t row, int64_t n, struct acc_err *e)
{
	struct acc_buf band = {0};
	const int64_t head[ACC_BAND] = {0, 0};
	int rc = acc_buf_add(&band, head, sizeof head);
	int64_t pieces = 0;
	for (uint32_t i = 0; i < t->nstrip; i++) {
		const struct fold_tile *k = t->strip[i];
		const int64_t hop = t->axis == 0
					    ? 0
					    : t->parts[k->part].shape[t->axis] * (int64_t)t->inner;
		int64_t at = (int64_t)begin_of(t, k) + row * hop,
			left = k->size[t->axis] * (int64_t)t->inner;
		while (left > 0 && rc == 0) {
			const uint32_t s = stored_at(t, k->part, at);
			const int64_t rest = t->first[s] + (int64_t)t->run[s].n - at;
			const int64_t take = rest < left ? rest : left;
			const int64_t piece[ACC_PIECE] = {s,
				(int64_t)t->run[s].from + at - t->first[s], take, hop};
			/* The rows behind it that still end in this storage. */
			const int64_t more = rest < left ? 1
					     : hop > 0   ? (rest - left) / hop + 1
							 : n;
			n = more < n ? more : n;
			rc = acc_buf_add(&band, piece, sizeof piece);
			pieces++;
			at += take;
			left -= take;
		}
	}
	if (rc == 0 && pieces > 0) {
		int64_t *v = (int64_t *)(void *)band.p;
		v[0] = n;
		v[1] = pieces;
		rc = add_band(t, v, e);
	}
	acc_buf_release(&band);
	return rc < 0 ? acc_nomem(e) : n;
}

static int
add_all_rows(struct tiled *t, struct acc_err *e)
{
	int64_t done = 1;
	for (uint64_t row = 0; row < t->rows && t->count > 0; row = t->until) {
		if (strip_of(t, row, e) < 0)
			return ACC_EFORMAT;
		const int64_t n = (int64_t)(t->until - row);
		for (int64_t i = 0; i < n; i += done)
			if ((done = add_rows(t, i, n - i, e)) < 0)
				return (int)done;
	}
	return 1;
}

/* A pair has two of them, and much else. */
static bool
is_short(const struct tiled *t)
{
	size_t n = 9 * (t->rows_of.n / sizeof(int64_t) + 5 * (size_t)t->nstored);
	for (uint32_t i = 0; i < t->nstored; i++)
		n += (size_t)t->src[i].n + t->file[i].n + 10;
	return n < ACC_MAX_RECORD / 2 - (64 << 10);
}

static int
finish(struct tiled *t, struct acc_err *e)
{
	int64_t *rows = acc_alloc(t->mem, t->rows_of.n + sizeof *rows);
	if (rows == NULL)
		return acc_nomem(e);
	if (!is_short(t))
		return acc_fail(e, ACC_ELIMIT, "it is in too many parts");
	if (t->rows_of.n > 0)
		memcpy(rows, t->rows_of.p, t->rows_of.n);
	struct acc_ref *r = t->ref;
	r->ndim = t->ndim;
	memcpy(r->shape, t->shape, t->ndim * sizeof *r->shape);
	r->enc = ACC_PARTS;
	r->len = t->count * acc_dtype_of(r->dtype)->size;
	r->fsize = (uint64_t)t->fsize[0];
	r->parts = (struct acc_parts){.n = t->nstored,
		.nrows = (uint32_t)(t->rows_of.n / sizeof *rows),
		.src = t->src,
		.file = t->file,
		.off = t->off,
		.len = t->len,
		.crc32 = t->crc32,
		.fsize = t->fsize,
		.mtime = t->mtime,
		.rows = rows};
	return 1;
}

int
acc_tiles_ref(struct acc_fold *f, const struct fold_part *parts, uint32_t npart,
	const struct fold_tile *tile, uint32_t ntile, const int64_t *shape, uint32_t ndim,
	struct acc_arena *m, struct acc_ref *ref, struct acc_err *e)
{
	struct tiled t = {.parts = parts,
		.npart = npart,
		.tile = tile,
		.ntile = ntile,
		.ndim = ndim,
		.strip = calloc((size_t)ntile + 1, sizeof(const struct fold_tile *)),
		.rows = 1,
		.inner = 1,
		.mem = m,
		.ref = ref};
	bool known = ndim > 0 && ndim <= ACC_FOLD_NDIM && acc_count(shape, ndim, &t.count);
	if (known)
		memcpy(t.shape, shape, ndim * sizeof *shape);
	*ref = (struct acc_ref){.dtype = ACC_NODTYPE};
	int rc = t.strip == NULL ? acc_nomem(e) : known && fits(&t) ? 1 : no_whole(e);
	rc = rc < 0 ? rc : add_parts(f, &t, e);
	t.axis = rc > 0 ? split_axis(&t) : 0;
	for (uint32_t d = 0; d < ndim && rc > 0; d++)
		if (d < t.axis)
			t.rows *= (uint64_t)shape[d];
		else if (d > t.axis)
			t.inner *= (uint64_t)shape[d];
	rc = rc <= 0 ? rc : add_all_rows(&t, e);
	rc = rc <= 0 ? rc : finish(&t, e);
	tiled_release(&t);
	return rc;
}
