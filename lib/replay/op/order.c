/* Sorting and what picks by rank: sort, topk, median, searchsorted, bincount, unique. */
#include "replay/compose.h"
#include "replay/impl.h"

enum { SORT, ARGSORT, MSORT, TOPK, KTH, MEDIAN, CUMMAX, CUMMIN };

/* Rows along one dimension. */
struct rows {
	const struct acc_dense *x;
	size_t outer, len, inner;
	uint32_t dim;
};

static void
rows_of(const struct acc_dense *x, uint32_t dim, struct rows *s)
{
	*s = (struct rows){x, 1, x->ndim == 0 ? 1 : (size_t)x->shape[dim], 1, dim};
	for (uint32_t d = 0; d < x->ndim; d++) {
		s->outer *= d < dim ? (size_t)x->shape[d] : 1;
		s->inner *= d > dim ? (size_t)x->shape[d] : 1;
	}
}

/* NaN is the greatest. */
static bool
before(double a, double b, bool descending)
{
	if (isnan(a) || isnan(b))
		return descending ? isnan(a) && !isnan(b) : isnan(b) && !isnan(a);
	return descending ? a > b : a < b;
}

/* The order of n elements a step apart, stable; tmp has room for n. */
static void
sort_row(const double *x, size_t n, size_t step, bool descending, size_t *idx, size_t *tmp)
{
	for (size_t i = 0; i < n; i++)
		idx[i] = i;
	for (size_t half = 1; half < n; half *= 2) {
		for (size_t at = 0; at < n; at += 2 * half) {
			size_t mid = at + half < n ? at + half : n;
			size_t end = at + 2 * half < n ? at + 2 * half : n, i = at, j = mid;
			for (size_t k = at; k < end; k++) {
				bool right = i == mid ||
					     (j < end && before(x[idx[j] * step], x[idx[i] * step],
								 descending));
				tmp[k] = idx[right ? j++ : i++];
			}
		}
		memcpy(idx, tmp, n * sizeof *idx);
	}
}

static bool
same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Among equals any order is right: the recorded one, if it names elements of the same values,
 * each once. */
static void
as_recorded(const double *x, size_t step, size_t n, size_t *idx, size_t take, const double *rec,
	size_t rec_step, size_t *seen)
{
	for (size_t i = 0; i < n; i++)
		seen[i] = 0;
	for (size_t i = 0; i < take; i++) {
		double k = rec[i * rec_step];
		if (!(k >= 0 && k < (double)n) || seen[(size_t)k]++ > 0 ||
			!same(x[(size_t)k * step], x[idx[i] * step]))
			return;
	}
	for (size_t i = 0; i < take; i++)
		idx[i] = (size_t)rec[i * rec_step];
}

/* topk that need not be sorted: the recorded order, if it is of the right elements. */
static void
any_order(const double *x, size_t step, size_t n, size_t *idx, size_t take, const double *rec,
	size_t rec_step, size_t *seen)
{
	for (size_t i = 0; i < n; i++)
		seen[i] = 0;
	for (size_t i = 0; i < take; i++) {
		double k = rec[i * rec_step];
		if (!(k >= 0 && k < (double)n) || seen[(size_t)k]++ > 0)
			return;
	}
	/* As many elements of each value as in the right ones. */
	for (size_t i = 0; i < take; i++) {
		size_t right = 0, got = 0;
		for (size_t j = 0; j < take; j++) {
			right += same(x[idx[j] * step], x[idx[i] * step]);
			got += same(x[(size_t)rec[j * rec_step] * step], x[idx[i] * step]);
		}
		if (right != got)
			return;
	}
	for (size_t i = 0; i < take; i++)
		idx[i] = (size_t)rec[i * rec_step];
}

struct rank {
	struct rows s;
	size_t take, first; /* elements of each row that are given, from this rank on */
	bool descending, any, keepdim, drop;
	bool all;            /* of all elements of the tensor */
	int values, indices; /* which outputs; -1: none */
};

static int
read_topk(struct acc_replay *r, struct rank *k)
{
	int64_t n = -1;
	bool largest = true, sorted = true;
	if (acc_arg_int(r, "k", &n) < 0 || acc_arg_bool(r, "largest", &largest) < 0 ||
		acc_arg_bool(r, "sorted", &sorted) < 0)
		return ACC_EUNSUP;
	if (n < 0 || (size_t)n > k->s.len)
		return acc_cannot(r, "its number of elements was not recorded");
	k->take = (size_t)n;
	k->descending = largest;
	k->any = !sorted;
	return 0;
}

static int
read_rank(struct acc_replay *r, struct rank *k)
{
	const struct acc_dense *x;
	uint32_t dim;
	int64_t n = 0;
	int which = r->op->which, rc;
	*k = (struct rank){.values = which == ARGSORT ? -1 : 0,
		.indices = which == ARGSORT ? 0
			   : r->nrec > 1    ? 1
					    : -1};
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	rc = acc_arg_dim(r, "dim", x->ndim, which == MSORT ? 0 : -1, &dim);
	if (rc < 0 || acc_arg_bool(r, "descending", &k->descending) < 0 ||
		acc_arg_bool(r, "keepdim", &k->keepdim) < 0)
		return ACC_EUNSUP;
	rows_of(x, dim, &k->s);
	k->take = k->s.len;
	if (which == TOPK)
		return read_topk(r, k);
	if (which == MEDIAN && rc == 0) { /* of all elements */
		k->s = (struct rows){x, 1, x->n, 1, 0};
		k->all = true;
	}
	if (which == KTH && (acc_arg_int(r, "k", &n) <= 0 || n < 1 || (size_t)n > k->s.len))
		return acc_cannot(r, "its number of elements was not recorded");
	if (which == KTH || which == MEDIAN) {
		if (k->s.len == 0)
			return acc_cannot(r, "max or min of an empty tensor");
		k->take = 1;
		k->first = which == KTH ? (size_t)n - 1 : (k->s.len - 1) / 2;
		k->drop = !k->keepdim;
	}
	return 0;
}

static int
check(struct acc_replay *r, const struct rank *k, const struct acc_dense *out)
{
	int64_t shape[ACC_DENSE_DIMS];
	uint32_t n = 0;
	const struct acc_dense *x = k->s.x;
	for (uint32_t d = 0; d < x->ndim && !k->all; d++)
		if (d != k->s.dim || !k->drop)
			shape[n++] = d == k->s.dim ? (int64_t)k->take : x->shape[d];
	return acc_out_shape(r, out, shape, n);
}

/* Which elements of one row, in order, in idx. */
static void
rank_row(const struct rank *k, int which, const double *x, const double *rec, size_t *idx,
	size_t *tmp)
{
	size_t step = k->s.inner, n = k->s.len;
	sort_row(x, n, step, k->descending, idx, tmp);
	/* A median of NaN is NaN. */
	size_t first = which == MEDIAN && n > 0 && isnan(x[idx[n - 1] * step]) ? n - 1 : k->first;
	memmove(idx, idx + first, k->take * sizeof *idx);
	if (rec == NULL)
		return;
	if (k->any)
		any_order(x, step, n, idx, k->take, rec, step, tmp);
	else
		as_recorded(x, step, n, idx, k->take, rec, step, tmp);
}

/* In a gradient the elements are marked, and the recorded indices say which were taken. */
static bool
taken(const double *rec, size_t step, size_t take, size_t n, size_t *idx)
{
	for (size_t i = 0; i < take; i++) {
		if (!(rec[i * step] >= 0 && rec[i * step] < (double)n))
			return false;
		idx[i] = (size_t)rec[i * step];
	}
	return true;
}

/* Without them, by the values for which the marks stand, if no two of those that were taken are equal. */
static bool
alone(const struct rank *k, int which, const double *x, size_t *idx, size_t *tmp)
{
	const size_t step = k->s.inner;
	rank_row(k, which, x, NULL, idx, tmp);
	for (size_t i = 0; i < k->take; i++) {
		size_t equal = 0;
		for (size_t j = 0; j < k->s.len && (k->take == 1 || i == 0); j++)
			equal += same(x[j * step], x[idx[i] * step]);
		if (equal > 1 || (i > 0 && same(x[idx[i - 1] * step], x[idx[i] * step])))
			return false;
	}
	return true;
}

static int
ranked(struct acc_replay *r, struct acc_dense *out)
{
	struct rank k;
	if (read_rank(r, &k) < 0)
		return ACC_EUNSUP;
	for (int o = 0; o < 2; o++)
		if ((o == k.values || o == k.indices) && check(r, &k, &out[o]) < 0)
			return ACC_EUNSUP;
	if (r->nrec > 2)
		return acc_cannot(r, "outputs that are not understood");
	size_t *idx = acc_alloc(r->mem, (k.s.len + 1) * sizeof *idx);
	size_t *tmp = acc_alloc(r->mem, (k.s.len + 1) * sizeof *tmp);
	const double *rec = k.indices < 0 ? NULL : r->rec[k.indices].v;
	if (idx == NULL || tmp == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	bool follow = r->gradient && k.values >= 0;
	if (follow && rec == NULL && r->marked == NULL)
		return acc_cannot(r, "its indices were not recorded");
	for (size_t i = 0; i < k.s.outer * k.s.inner; i++) {
		size_t o = i / k.s.inner, c = i % k.s.inner, at = o * k.take * k.s.inner + c;
		const size_t row = o * k.s.len * k.s.inner + c;
		const double *x = k.s.x->v + row;
		if (follow && rec == NULL && !alone(&k, r->op->which, r->marked + row, idx, tmp))
			return acc_cannot(r,
				"equal elements, and which was taken was not recorded");
		if (!follow)
			rank_row(&k, r->op->which, x, rec == NULL ? NULL : rec + at, idx, tmp);
		else if (rec != NULL && !taken(rec + at, k.s.inner, k.take, k.s.len, idx))
			return acc_cannot(r, "an index outside of its input");
		for (size_t j = 0; j < k.take; j++) {
			if (k.values >= 0)
				out[k.values].v[at + j * k.s.inner] = x[idx[j] * k.s.inner];
			if (k.indices >= 0)
				out[k.indices].v[at + j * k.s.inner] = (double)idx[j];
		}
	}
	return 0;
}

/* cummax, cummin: the extreme up to here, and where it last was. */
static int
running(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	struct rows s;
	uint32_t dim;
	bool largest = r->op->which == CUMMAX;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_dim(r, "dim", x->ndim, 0, &dim) < 0 ||
		r->nrec > 2)
		return acc_cannot(r, "outputs that are not understood");
	for (uint32_t k = 0; k < r->nrec; k++)
		if (acc_out_shape(r, &out[k], x->shape, x->ndim) < 0)
			return ACC_EUNSUP;
	const double *rec = r->nrec > 1 ? r->rec[1].v : NULL;
	if (r->gradient && rec == NULL)
		return acc_cannot(r, "its indices were not recorded");
	rows_of(x, dim, &s);
	for (size_t i = 0; i < x->n; i++) {
		size_t j = i / s.inner % s.len, row = i - j * s.inner;
		size_t was = j == 0 || r->nrec < 2 ? 0 : (size_t)out[1].v[i - s.inner];
		double best = j == 0 ? x->v[i] : out[0].v[i - s.inner];
		bool here = j == 0 || isnan(x->v[i]) ||
			    (!isnan(best) && (largest ? x->v[i] >= best : x->v[i] <= best));
		size_t at = here ? j : was;
		double said = rec == NULL ? -1 : rec[i];
		bool known = said >= 0 && said <= (double)j;
		out[0].v[i] = here ? x->v[i] : best;
		if (known && (r->gradient || same(x->v[row + (size_t)said * s.inner], out[0].v[i])))
			at = (size_t)said;
		if (r->gradient)
			out[0].v[i] = x->v[row + at * s.inner];
		if (r->nrec > 1)
			out[1].v[i] = (double)at;
	}
	return 0;
}

/* --- where values belong --- */

/* How many of the sorted elements stand before x: those that are less, or not greater. */
static double
search(const double *s, size_t n, double x, bool right)
{
	size_t from = 0;
	while (n > 0) {
		size_t half = n / 2;
		bool up = right ? !before(x, s[from + half], false)
				: before(s[from + half], x, false);
		from += up ? half + 1 : 0;
		n = up ? n - half - 1 : half;
	}
	return (double)from;
}

/* The same as torch has it, where NaN is neither greater nor less than any. */
static double
search_unordered(const double *s, size_t n, double x, bool right)
{
	size_t from = 0;
	while (n > 0) {
		size_t half = n / 2;
		const double at = s[from + half];
		bool up = right ? !(at > x) : !(at >= x);
		from += up ? half + 1 : 0;
		n = up ? n - half - 1 : half;
	}
	return (double)from;
}

static int
searchsorted(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *s, *x;
	struct acc_str side = {"", 0};
	bool right = false;
	if (acc_need_tensor(r, "sorted", &s) < 0 || acc_need_tensor(r, "input", &x) < 0 ||
		acc_arg_bool(r, "right", &right) < 0 || acc_arg_text(r, "side", &side) < 0 ||
		acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	size_t len = s->ndim == 0 ? 1 : (size_t)s->shape[s->ndim - 1];
	size_t each = x->ndim == 0 ? 1 : (size_t)x->shape[x->ndim - 1];
	if (acc_arg(r, "sorter") != NULL || len == 0 ||
		(s->ndim > 1 && (each == 0 || s->n / len != x->n / each)))
		return acc_cannot(r, "its inputs do not fit each other");
	right |= acc_str_is(side, "right");
	for (size_t i = 0; i < x->n; i++) {
		const double *in = s->v + (s->ndim > 1 ? i / each * len : 0);
		const double other = search_unordered(in, len, x->v[i], right);
		out->v[i] = search(in, len, x->v[i], right);
		if (r->rec[0].v != NULL && r->rec[0].v[i] == other)
			out->v[i] = other;
	}
	return 0;
}

static int
bincount(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *w = NULL;
	int64_t least = 0;
	double most = -1;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_tensor(r, "weights", &w) < 0 ||
		acc_arg_int(r, "minlength", &least) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < x->n; i++)
		most = fmax(most, x->v[i]);
	int64_t n = most + 1 > (double)least ? (int64_t)most + 1 : least;
	if ((w != NULL && w->n != x->n) || most > 0x1p40)
		return acc_cannot(r, "its inputs do not fit each other");
	if (acc_out_shape(r, out, &n, 1) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < out->n; i++)
		out->v[i] = 0;
	for (size_t i = 0; i < x->n; i++) {
		if (x->v[i] < 0)
			return acc_cannot(r, "an index outside of its input");
		double v = w == NULL ? 1 : w->v[i];
		out->v[(size_t)x->v[i]] += v;
		if (out->mag != NULL)
			out->mag[(size_t)x->v[i]] += fabs(v);
	}
	return 0;
}

/* unique, sorted: the values; then, as far as they were asked for, which of them each element is,
 * and how many there are of each. What is not sorted is not audited. */
static int
unique(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	bool sorted = true, inverse = false, counts = false;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_bool(r, "sorted", &sorted) < 0 ||
		acc_arg_bool(r, "return_inverse", &inverse) < 0 ||
		acc_arg_bool(r, "return_counts", &counts) < 0)
		return ACC_EUNSUP;
	if (!sorted || acc_arg(r, "dim") != NULL || r->nrec > 1U + inverse + counts)
		return acc_cannot(r, "outputs that are not understood");
	size_t *idx = acc_alloc(r->mem, (x->n + 1) * sizeof *idx), n = 0;
	size_t *tmp = acc_alloc(r->mem, (x->n + 1) * sizeof *tmp);
	if (idx == NULL || tmp == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	struct acc_dense *back = inverse && r->nrec > 1 ? &out[1] : NULL;
	struct acc_dense *count = counts && r->nrec > 1U + inverse ? &out[1 + inverse] : NULL;
	if (back != NULL && acc_out_shape(r, back, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	sort_row(x->v, x->n, 1, false, idx, tmp);
	for (size_t i = 0; i < x->n; i++) {
		bool fresh = i == 0 || x->v[idx[i]] != x->v[idx[i - 1]];
		n += fresh;
		if (n > out->n || (count != NULL && n > count->n))
			break;
		out->v[n - 1] = x->v[idx[i]];
		if (back != NULL)
			back->v[idx[i]] = (double)(n - 1);
		if (count != NULL)
			count->v[n - 1] = fresh ? 1 : count->v[n - 1] + 1;
	}
	if (count != NULL && acc_out_shape(r, count, (int64_t[]){(int64_t)n}, 1) < 0)
		return ACC_EUNSUP;
	return acc_out_shape(r, out, (int64_t[]){(int64_t)n}, 1);
}

/* The places of what is not zero: a row for each, or a tensor for each dimension. */
static int
nonzero(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	bool tuple = false;
	size_t k = 0, n = 0;
	if (acc_need_tensor(r, "input", &x) < 0 || acc_arg_bool(r, "as_tuple", &tuple) < 0)
		return ACC_EUNSUP;
	tuple |= acc_str_is(r->name, "where");
	if (r->nrec != (tuple ? x->ndim : 1))
		return acc_cannot(r, "outputs that are not understood");
	for (size_t i = 0; i < x->n; i++)
		n += x->v[i] != 0;
	for (uint32_t d = 0; d < r->nrec; d++)
		if (acc_out_shape(r, &out[d], (int64_t[]){(int64_t)n, x->ndim}, tuple ? 1 : 2) < 0)
			return ACC_EUNSUP;
	for (size_t i = 0; i < x->n; i++) {
		size_t rest = i;
		if (x->v[i] == 0)
			continue;
		for (uint32_t d = x->ndim; d-- > 0;) {
			double at = (double)(rest % (size_t)x->shape[d]);
			rest /= (size_t)x->shape[d];
			if (tuple)
				out[d].v[k] = at;
			else
				out[0].v[k * x->ndim + d] = at;
		}
		k++;
	}
	return 0;
}

#define ROW(n, s, f, w) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = ACC_EXACT, .eval = f, .which = w \
	}
const struct acc_op acc_ops_order[] = {
	ROW("sort npu_sort_v2", "input|self|x:move dim|axis descending stable", ranked, SORT),
	ROW("argsort", "input|self dim|axis descending stable", ranked, ARGSORT),
	ROW("msort", "input|self:move", ranked, MSORT),
	ROW("topk TopK", "input|self|x:move k dim largest sorted", ranked, TOPK),
	ROW("kthvalue", "input|self:move k dim keepdim", ranked, KTH),
	ROW("median", "input|self:move dim|axis keepdim", ranked, MEDIAN),
	ROW("cummax", "input|self:move dim|axis", running, CUMMAX),
	ROW("cummin", "input|self:move dim|axis", running, CUMMIN),
	ROW("searchsorted", "sorted|sorted_sequence input|self|values out_int32 right side sorter",
		searchsorted, 0),
	ROW("bucketize", "input|self sorted|boundaries out_int32 right", searchsorted, 0),
	{.names = "bincount",
		.sig = "input|self weights minlength",
		.cls = "reduce",
		.rounding = ACC_FEW,
		.eval = bincount},
	ROW("unique", "input|self sorted return_inverse return_counts dim", unique, 0),
	ROW("nonzero", "input|self|condition as_tuple", nonzero, 0),
	{.names = NULL},
};
