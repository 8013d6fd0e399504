/* The elements of a whole tensor, read from its parts, in row-major order. */
#include "fold/impl.h"

#include <math.h>
#include <stdlib.h>

#include "acc/kernel.h"
#include "base/order.h"

void
acc_whole_close(struct fold_whole *w)
{
	if (w == NULL)
		return;
	for (uint32_t i = 0; i < w->nrow; i++)
		acc_whole_close(w->row[i]);
	free((void *)w->row);
	for (uint32_t i = 0; i < w->n && w->part != NULL; i++)
		acc_pay_close(w->part[i]);
	free(w->part);
	free(w->len);
	free(w->raw);
	free(w->sum);
	free(w);
}

static struct fold_whole *
new_whole(uint32_t n, struct acc_err *e)
{
	struct fold_whole *w = calloc(1, sizeof *w);
	if (w == NULL) {
		acc_nomem(e);
		return NULL;
	}
	w->part = calloc(n, sizeof(struct acc_pay *));
	w->len = calloc(n, sizeof *w->len);
	w->raw = malloc(ACC_CHUNK * 16);
	w->sum = malloc(ACC_CHUNK * sizeof *w->sum);
	if (w->part == NULL || w->len == NULL || w->raw == NULL || w->sum == NULL) {
		acc_nomem(e);
		acc_whole_close(w);
		return NULL;
	}
	w->n = n;
	return w;
}

/* The record of item `pos` of a call of the device opens as part i. */
static int
open_part(struct acc_fold *f, struct fold_whole *w, uint32_t i, uint64_t at, uint32_t axis,
	struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_ref ref;
	int rc = acc_fold_record(f, at, &r, e);
	rc = rc < 0 ? rc : acc_ref_get(r, "", &ref, e);
	if (rc <= 0 || ref.dtype == ACC_NODTYPE || (i > 0 && ref.dtype != w->in))
		return rc < 0 ? rc : 0;
	w->in = ref.dtype;
	w->len[i] = axis < ref.ndim ? ref.shape[axis] : 1;
	w->part[i] = acc_pay_open(f->roots, acc_get_text(r, "", "src"), &ref, e);
	if (w->part[i] == NULL)
		return e != NULL && e->code < 0 ? e->code : ACC_EIO;
	return 1;
}

struct fold_whole *
acc_whole_open(struct acc_fold *f, const uint64_t *at, uint32_t n, struct acc_place place,
	const struct acc_fold_stat *part, double scale, struct acc_err *e)
{
	struct fold_whole *w = new_whole(n, e);
	int rc = w == NULL ? ACC_ENOMEM : 1;
	for (uint32_t i = 0; i < n && rc > 0; i++) {
		rc = open_part(f, w, i, at[i], place.axis, e);
		if (rc > 0 && n > 1 && !acc_pay_random(w->part[i]))
			rc = 0;
	}
	if (rc <= 0) {
		acc_whole_close(w);
		return NULL;
	}
	w->sums = place.kind == ACC_PARTIAL;
	w->scale = scale;
	bool same = !w->sums && scale == 1;
	w->out = same || w->in == ACC_F64 ? w->in : ACC_F32;
	w->outer = w->inner = 1;
	for (uint32_t d = 0; d < part->ndim; d++)
		if (d < place.axis)
			w->outer *= (uint64_t)part->shape[d];
		else if (d > place.axis)
			w->inner *= (uint64_t)part->shape[d];
	for (uint32_t i = 0; i < n; i++)
		w->axis += (uint64_t)w->len[i];
	/* What is not split stands in one run. */
	if (place.kind != ACC_SHARD || part->ndim == 0) {
		w->outer = 1;
		w->inner = 1;
		w->axis = acc_pay_count(w->part[0]);
		w->len[0] = (int64_t)w->axis;
	}
	w->count = w->outer * w->axis * w->inner;
	for (uint32_t i = 0; i < n; i++)
		if (acc_pay_count(w->part[i]) !=
			(w->sums ? w->count : w->outer * (uint64_t)w->len[i] * w->inner)) {
			acc_whole_close(w);
			return NULL;
		}
	return w;
}

void
acc_whole_cut(struct fold_whole *w, int64_t cut)
{
	if (cut > 0 && (uint64_t)cut < w->axis) {
		w->axis = (uint64_t)cut;
		w->count = w->outer * w->axis * w->inner;
	}
}

static int
read_part(struct fold_whole *w, uint32_t r, uint64_t first, size_t n, const void **p,
	struct acc_err *e)
{
	return acc_pay_read(w->part[r], first, n, w->raw, p, e);
}

static void
store(struct fold_whole *w, const double *x, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i++) {
		double v = x[i] * w->scale;
		float s = (float)v;
		if (w->out == ACC_F64)
			memcpy(out + i * sizeof v, &v, sizeof v);
		else
			memcpy(out + i * sizeof s, &s, sizeof s);
	}
}

/* n elements from `at` of part r, or of the sum of all. */
static int
put_run(struct fold_whole *w, uint32_t r, uint64_t at, size_t n, uint8_t *out, struct acc_err *e)
{
	const size_t size = acc_dtype_of(w->in)->size;
	const void *p;
	int rc = 0;
	if (!w->sums && w->out == w->in && w->scale == 1) {
		rc = read_part(w, r, at, n, &p, e);
		if (rc == 0)
			memcpy(out, p, n * size);
		return rc;
	}
	memset(w->sum, 0, n * sizeof *w->sum);
	for (uint32_t k = w->sums ? 0 : r; k < (w->sums ? w->n : r + 1) && rc == 0; k++) {
		rc = read_part(w, k, at, n, &p, e);
		for (size_t i = 0; i < n && rc == 0; i++)
			w->sum[i] += acc_load_f64(w->in, (const uint8_t *)p + i * size);
	}
	if (rc == 0)
		store(w, w->sum, n, out);
	return rc;
}

struct fold_whole *
acc_whole_rows(struct fold_whole **row, uint32_t n, uint64_t slices, struct acc_err *e)
{
	const struct fold_whole *a = row[0];
	struct fold_whole *w = calloc(1, sizeof *w);
	bool fits = w != NULL && slices > 0;
	if (w == NULL)
		acc_nomem(e);
	for (uint32_t i = 0; i < n && fits; i++) {
		fits = row[i]->in == a->in && row[i]->out == a->out && row[i]->n == a->n &&
		       row[i]->count % slices == 0;
		w->count += row[i]->count;
		w->n += row[i]->n;
	}
	struct fold_whole **own = fits ? calloc(n, sizeof(struct fold_whole *)) : NULL;
	if (own == NULL) {
		for (uint32_t i = 0; i < n; i++)
			acc_whole_close(row[i]);
		free(w);
		return NULL;
	}
	memcpy((void *)own, (void *)row, n * sizeof(struct fold_whole *));
	w->row = own;
	w->nrow = n;
	w->turns = slices;
	w->in = a->in;
	w->out = a->out;
	w->sums = a->sums;
	w->scale = a->scale;
	return w;
}

/* Of rows of parts. */
static int
next_of_rows(struct fold_whole *w, struct fold_pieces pieces, void *out, size_t room, size_t *n,
	uint32_t *rank, struct acc_err *e)
{
	struct fold_whole *x = w->row[w->at_row];
	const uint64_t left = x->count / w->turns - w->in_row;
	*n = 0;
	*rank = w->at_row * x->n;
	if (w->done == w->count)
		return 0;
	int rc = left == 0 ? 0
			   : acc_whole_next(x, pieces, out, left < room ? (size_t)left : room, n,
				     rank, e);
	if (left > 0)
		*rank += w->at_row * x->n;
	w->done += *n;
	w->in_row += *n;
	if (*n == left) {
		w->in_row = 0;
		w->at_row = (w->at_row + 1) % w->nrow;
	}
	return rc;
}

void
acc_whole_rewind(struct fold_whole *w)
{
	for (uint32_t i = 0; i < w->nrow; i++)
		acc_whole_rewind(w->row[i]);
	w->at_row = 0;
	w->in_row = 0;
	w->done = w->in_run = w->at_outer = 0;
	w->piece = 0;
}

int
acc_whole_next(struct fold_whole *w, struct fold_pieces pieces, void *out, size_t room, size_t *n,
	uint32_t *rank, struct acc_err *e)
{
	if (w->nrow > 0)
		return next_of_rows(w, pieces, out, room, n, rank, e);
	/* Unless said otherwise, one part behind the other, as far as the axis goes; of a sum they are one. */
	uint64_t before = 0, len = w->sums ? w->axis : (uint64_t)w->len[w->piece % w->n];
	for (uint32_t i = 0; i < w->piece && i < w->n && pieces.n == 0 && !w->sums; i++)
		before += (uint64_t)w->len[i];
	if (pieces.n == 0 && before + len > w->axis)
		len = before < w->axis ? w->axis - before : 0;
	const struct fold_piece all = {w->piece, 0, len};
	const struct fold_piece *p = pieces.n > 0 ? &pieces.p[w->piece] : &all;
	const uint32_t npiece = pieces.n > 0 ? pieces.n : w->sums ? 1 : w->n;
	uint64_t run = p->n * w->inner, left = run - w->in_run;
	*n = 0;
	*rank = p->part;
	if (w->done == w->count)
		return 0;
	if (w->done + left > w->count)
		return acc_fail(e, ACC_EFORMAT, "its parts are longer than their shapes");
	*n = left < room ? (size_t)left : room;
	uint64_t at = (w->at_outer * (uint64_t)w->len[p->part] + p->start) * w->inner + w->in_run;
	int rc = put_run(w, p->part, at, *n, out, e);
	w->done += *n;
	w->in_run += *n;
	if (w->in_run == run) {
		w->in_run = 0;
		w->piece++;
		if (w->piece >= npiece) {
			w->piece = 0;
			w->at_outer++;
		}
	}
	return rc;
}

/* --- where parts stand in the whole --- */

struct mark {
	double sum, squares, size;
	bool used;
};

static void
add_mark(struct mark *k, double v)
{
	k->sum += v;
	k->squares += v * v;
	k->size += v < 0 ? -v : v;
}

/* Of each slice along an axis: its sum, and sums of squares and magnitudes. */
static int
add_marks(struct mark *m, struct acc_pay *p, enum acc_dtype t, uint64_t axis, uint64_t inner,
	void *raw, struct acc_err *e)
{
	uint64_t count = acc_pay_count(p);
	for (uint64_t at = 0; at < count;) {
		size_t n = count - at < ACC_CHUNK ? (size_t)(count - at) : ACC_CHUNK;
		const void *x;
		int rc = acc_pay_read(p, at, n, raw, &x, e);
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < n; i++) {
			double v = acc_load_f64(t, (const uint8_t *)x + i * acc_dtype_of(t)->size);
			add_mark(&m[(at + i) / inner % axis], v);
		}
		at += n;
	}
	return 0;
}

static const struct fold_whole *
row_of(const struct fold_whole *w, uint32_t i)
{
	return w->nrow > 0 ? w->row[i] : w;
}

/* Of part i, in all rows. */
static struct mark *
marks_of(const struct fold_whole *w, uint32_t i, struct acc_err *e)
{
	const struct fold_whole *first = row_of(w, 0);
	const uint64_t axis = (uint64_t)first->len[i] + (first->len[i] == 0);
	struct mark *m = calloc((size_t)axis + 1, sizeof *m);
	int rc = m == NULL ? acc_nomem(e) : 0;
	for (uint32_t k = 0; k < (w->nrow > 0 ? w->nrow : 1) && rc == 0; k++) {
		const struct fold_whole *x = row_of(w, k);
		rc = add_marks(m, x->part[i], x->in, axis, x->inner, x->raw, e);
	}
	if (rc < 0) {
		free(m);
		return NULL;
	}
	return m;
}

/* Of each slice of a whole whose parts stand one behind the other. */
static struct mark *
marks_of_whole(struct fold_whole *w, uint64_t axis, uint64_t inner, struct acc_err *e)
{
	struct mark *m = calloc((size_t)axis + 1, sizeof *m);
	uint8_t *x = malloc(ACC_CHUNK * 16);
	int rc = m == NULL || x == NULL ? acc_nomem(e) : 0;
	for (uint64_t at = 0; at < w->count && rc == 0;) {
		size_t n;
		uint32_t rank;
		rc = acc_whole_next(w, (struct fold_pieces){NULL, 0}, x, ACC_CHUNK, &n, &rank, e);
		for (size_t i = 0; i < n && rc == 0; i++)
			add_mark(&m[(at + i) / inner % axis],
				acc_load_f64(w->out, x + i * acc_dtype_of(w->out)->size));
		at += n;
	}
	free(x);
	acc_whole_rewind(w);
	if (rc < 0) {
		free(m);
		return NULL;
	}
	return m;
}

/* How far two slices are apart, in parts of the tolerance: 1 and less is as good as equal. What is
 * small is as far off as slices of the usual size may be. */
static double
distance(const struct mark *a, const struct mark *b, double scale, const struct mark *usual,
	double tol)
{
	double by = tol * (b->size + usual->size), by2 = 2 * tol * (b->squares + usual->squares);
	double x = fabs(a->sum * scale - b->sum) / by, y = fabs(a->size * scale - b->size) / by;
	double z = fabs(a->squares * scale * scale - b->squares) / by2;
	double far = x > y ? x : y;
	far = far > z ? far : z;
	return by > 0 && isfinite(far) ? far : INFINITY;
}

static struct mark
usual_of(const struct mark *m, uint64_t n)
{
	struct mark all = {.sum = 0};
	for (uint64_t i = 0; i < n; i++) {
		all.size += m[i].size / (double)n;
		all.squares += m[i].squares / (double)n;
	}
	return all;
}

/* A slice of a part, by its sum. */
struct slice {
	double sum;
	uint64_t at;
	uint32_t part;
};

ACC_ORDER_3(by_sum, struct slice, sum, part, at)

/* Those of all parts, in order; NULL. */
static struct slice *
sorted(const struct fold_whole *w, struct mark *const *part, uint64_t *n, struct acc_err *e)
{
	uint64_t all = 1;
	for (uint32_t r = 0; r < w->n; r++)
		all += (uint64_t)w->len[r];
	struct slice *s = malloc((size_t)all * sizeof *s);
	*n = 0;
	if (s == NULL) {
		acc_nomem(e);
		return NULL;
	}
	for (uint32_t r = 0; r < w->n; r++)
		for (uint64_t j = 0; j < (uint64_t)w->len[r]; j++) {
			const double sum = part[r][j].sum * w->scale;
			if (isfinite(sum))
				s[(*n)++] = (struct slice){sum, j, r};
		}
	qsort(s, (size_t)*n, sizeof *s, by_sum);
	return s;
}

/* Of slices that are as near, the first that is left. */
static struct fold_piece
nearest(const struct fold_whole *w, struct mark *const *part, const struct slice *s, uint64_t n,
	const struct mark *to, const struct mark *usual, double tol)
{
	struct fold_piece found = {.n = 0};
	const double by = tol * (to->size + usual->size);
	double least = 1;
	uint64_t lo = 0;
	ACC_LOWER(lo, n, s[lo].sum < to->sum - by);
	for (uint64_t i = lo; i < n && s[i].sum <= to->sum + by; i++) {
		const double d = distance(&part[s[i].part][s[i].at], to, w->scale, usual, tol);
		const bool before = s[i].part < found.part ||
				    (s[i].part == found.part && s[i].at < found.start);
		if (part[s[i].part][s[i].at].used || d > least || (d == least && !before))
			continue;
		least = d;
		found = (struct fold_piece){s[i].part, s[i].at, 1};
	}
	return found;
}

/* The whole's slices in runs of slices of the parts. */
static int
runs(const struct fold_whole *w, struct mark *const *part, const struct mark *whole, double tol,
	struct fold_piece **out, uint32_t *nout, struct acc_err *e)
{
	const struct mark usual = usual_of(whole, w->axis);
	uint64_t nslice;
	struct slice *s = sorted(w, part, &nslice, e);
	size_t cap = 0;
	uint32_t n = 0;
	int rc = s == NULL ? ACC_ENOMEM : 1;
	*out = NULL;
	for (uint64_t i = 0; i < w->axis && rc > 0; i++) {
		struct fold_piece *last = n > 0 ? &(*out)[n - 1] : NULL;
		uint64_t next = last != NULL ? last->start + last->n : 0;
		if (last != NULL && next < (uint64_t)w->len[last->part] &&
			!part[last->part][next].used &&
			distance(&part[last->part][next], &whole[i], w->scale, &usual, tol) <= 1) {
			part[last->part][next].used = true;
			last->n++;
			continue;
		}
		struct fold_piece found = nearest(w, part, s, nslice, &whole[i], &usual, tol);
		last = found.n == 0 ? NULL : acc_grow(*out, &cap, (size_t)n + 1, sizeof *last, e);
		rc = found.n == 0 ? 0 : last == NULL ? ACC_ENOMEM : 1;
		if (rc <= 0)
			break;
		*out = last;
		last[n++] = found;
		part[found.part][found.start].used = true;
	}
	free(s);
	*nout = rc > 0 ? n : 0;
	return rc;
}

/* Do the parts stand alike in all rows? */
static bool
are_even(const struct fold_whole *w)
{
	for (uint32_t k = 1; k < w->nrow; k++)
		if (w->row[k]->inner != w->row[0]->inner ||
			memcmp(w->row[k]->len, w->row[0]->len,
				w->row[0]->n * sizeof *w->row[0]->len) != 0)
			return false;
	return true;
}

int
acc_whole_order(struct fold_whole *w, struct fold_whole *whole, double tol, struct fold_piece **out,
	uint32_t *n, struct acc_err *e)
{
	enum { LONGEST = 1 << 20 };
	const struct fold_whole *x = row_of(w, 0);
	*out = NULL;
	*n = 0;
	if (x->axis == 0 || x->axis > LONGEST || whole->count != w->count || !are_even(w) ||
		acc_dtype_of(whole->in)->cls == 'C' || acc_dtype_of(w->in)->cls == 'C')
		return 0;
	struct mark **part = calloc(x->n, sizeof(struct mark *));
	int rc = part == NULL ? acc_nomem(e) : 1;
	for (uint32_t i = 0; i < x->n && rc > 0; i++) {
		part[i] = marks_of(w, i, e);
		rc = part[i] == NULL ? ACC_EIO : rc;
	}
	struct mark *all = rc > 0 ? marks_of_whole(whole, x->axis, x->inner, e) : NULL;
	rc = rc > 0 && all == NULL ? ACC_EIO : rc;
	if (rc > 0)
		rc = runs(x, part, all, tol, out, n, e);
	for (uint32_t i = 0; i < x->n && part != NULL; i++)
		free(part[i]);
	free((void *)part);
	free(all);
	if (rc <= 0) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

/* n elements, which may be of several parts. */
static int
read_all(struct fold_whole *w, struct fold_pieces pieces, uint8_t *out, size_t n, struct acc_err *e)
{
	int rc = 0;
	for (size_t at = 0; at < n && rc == 0;) {
		size_t more = 0;
		uint32_t rank;
		const uint64_t before = w->done;
		rc = acc_whole_next(w, pieces, out + at * acc_dtype_of(w->out)->size, n - at, &more,
			&rank, e);
		at += more;
		if (rc == 0 && w->done == before && w->done == w->count)
			rc = acc_fail(e, ACC_EFORMAT, "its parts are shorter than their shapes");
	}
	return rc;
}

int
acc_whole_errors(struct fold_whole *w, struct fold_pieces pieces, struct fold_whole *ref,
	struct fold_pieces theirs, double *error, double *all, struct acc_err *e)
{
	uint8_t *mine = malloc(ACC_CHUNK * 16), *other = malloc(ACC_CHUNK * 16);
	int rc = mine == NULL || other == NULL ? acc_nomem(e) : 0;
	double size = 0, sum = 0;
	memset(error, 0, w->n * sizeof *error);
	for (uint64_t at = 0; rc == 0 && at < w->count && ref->count == w->count;) {
		size_t n;
		uint32_t r;
		rc = acc_whole_next(w, pieces, mine, ACC_CHUNK, &n, &r, e);
		if (rc == 0 && n > 0)
			rc = read_all(ref, theirs, other, n, e);
		for (size_t i = 0; i < n && rc == 0; i++) {
			double x = acc_load_f64(w->out, mine + i * acc_dtype_of(w->out)->size);
			double y = acc_load_f64(ref->out, other + i * acc_dtype_of(ref->out)->size);
			double d = x == y ? 0 : (x - y) * (x - y);
			error[r] += d;
			sum += d;
			size += y * y;
		}
		at += n;
	}
	free(mine);
	free(other);
	*all = size > 0 ? sum / size : sum;
	return rc;
}
