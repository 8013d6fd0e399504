/* Which layout it is: by a sample of the content. */
#include "metric/layout.h"

#include <math.h>
#include <stdlib.h>

enum {
	SAMPLE = 64,
	TOGETHER = 4,
	FIRST = 8,
	LARGE_SAMPLE = 4096,
	SMALL = 8 << 10,
	MAX_INFLATED = 8 << 20
};

/* One tensor, of which elements are read here and there. */
struct reader {
	struct acc_pay *pay;
	uint8_t *all; /* all of a small or compressed one; else NULL */
	enum acc_dtype dtype;
	size_t size;
};

static void
close_reader(struct reader *r)
{
	acc_pay_close(r->pay);
	free(r->all);
}

static bool
read_all(struct reader *r, uint64_t n, struct acc_err *e)
{
	const void *p;
	for (uint64_t at = 0; at < n; at += ACC_CHUNK) {
		size_t k = n - at < ACC_CHUNK ? (size_t)(n - at) : ACC_CHUNK;
		uint8_t *to = r->all + at * r->size;
		if (acc_pay_read(r->pay, at, k, to, &p, e) < 0)
			return false;
		if (p != to)
			memcpy(to, p, k * r->size);
	}
	return true;
}

static bool
open_reader(struct reader *r, struct acc_roots *roots, const struct side *s)
{
	struct acc_err e = {0};
	*r = (struct reader){.dtype = s->ref.dtype, .size = acc_dtype_of(s->ref.dtype)->size};
	r->pay = acc_pay_open(roots, s->src, &s->ref, &e);
	if (r->pay == NULL)
		return false;
	uint64_t n = acc_pay_count(r->pay), most = acc_pay_can_peek(r->pay) ? SMALL : MAX_INFLATED;
	if (n > most / r->size)
		return acc_pay_can_peek(r->pay);
	r->all = malloc(n * r->size + 1);
	return r->all != NULL && read_all(r, n, &e);
}

/* Up to TOGETHER elements. */
static bool
values(struct reader *r, const uint64_t *at, size_t n, double *out)
{
	uint8_t some[TOGETHER * 16];
	struct acc_err e = {0};
	if (r->all == NULL && acc_pay_peek_each(r->pay, at, n, some, &e) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		out[i] = acc_load_f64(r->dtype,
			r->all != NULL ? r->all + at[i] * r->size : some + i * r->size);
	return true;
}

static uint64_t
scatter(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15u;
	i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
	i = (i ^ i >> 27) * 0x94d049bb133111ebu;
	return i ^ i >> 31;
}

struct sample {
	size_t n;
	uint64_t at[LARGE_SAMPLE]; /* row-major; those far from the mean first, which tell most */
	double v[LARGE_SAMPLE];
	double spread; /* sum of (v - mean)^2 */
};

static void
exchange(struct sample *s, size_t i, size_t k)
{
	const uint64_t at = s->at[i];
	const double v = s->v[i];
	s->at[i] = s->at[k];
	s->v[i] = s->v[k];
	s->at[k] = at;
	s->v[k] = v;
}

/* All of a small tensor; else places that no stride shares. */
static bool
take(struct sample *s, struct reader *r, uint64_t count, size_t n)
{
	double sum = 0, square = 0;
	size_t finite = 0;
	bool all = count <= 4 * n && count <= LARGE_SAMPLE;
	s->n = all ? (size_t)count : n;
	for (size_t i = 0; i < s->n; i++)
		s->at[i] = all ? i : scatter(i) % count;
	for (size_t i = 0; i < s->n; i += TOGETHER) {
		const size_t left = s->n - i;
		if (!values(r, s->at + i, left < TOGETHER ? left : TOGETHER, s->v + i))
			return false;
	}
	for (size_t i = 0; i < s->n; i++) {
		finite += isfinite(s->v[i]) != 0;
		sum += isfinite(s->v[i]) ? s->v[i] : 0;
	}
	const double mean = sum / (double)finite;
	for (size_t i = 0; i < s->n; i++)
		if (isfinite(s->v[i])) {
			double d = s->v[i] - mean;
			square += d * d;
		}
	s->spread = square;
	for (size_t i = 0; i < FIRST && i < s->n; i++) {
		size_t far = i;
		for (size_t k = i + 1; k < s->n; k++)
			if (fabs(s->v[k] - mean) > fabs(s->v[far] - mean))
				far = k;
		exchange(s, i, far);
	}
	return true;
}

/* Where element i of the sample lies in a row-major tensor that is viewed so. */
static uint64_t
place(const struct acc_ref *view, uint64_t i)
{
	uint64_t at = view->first;
	for (uint32_t k = view->ndim; k-- > 0;) {
		uint64_t index = i % (uint64_t)view->shape[k];
		int64_t run;
		if (k == 0 && view->groups.n > 0)
			index = (uint64_t)acc_grouped(&view->groups, (int64_t)index, &run);
		at += index * (uint64_t)view->stride[k];
		i /= (uint64_t)view->shape[k];
	}
	return at;
}

/* How far the sample is from the tensor so viewed; once that is `most` or more, as far as was seen. `dense`
 * is a row-major tensor of its shape. */
static double
distance(const struct layout *l, const struct acc_ref *dense, struct reader *r,
	const struct sample *s, double most)
{
	struct acc_ref view;
	double square = 0, x[TOGETHER];
	uint64_t at[TOGETHER];
	if (!acc_layout_view(l, dense, &view))
		return INFINITY;
	for (size_t i = 0; i < s->n && sqrt(square / s->spread) < most; i += TOGETHER) {
		const size_t n = s->n - i < TOGETHER ? s->n - i : TOGETHER;
		for (size_t k = 0; k < n; k++)
			at[k] = place(&view, s->at[i + k]);
		if (!values(r, at, n, x))
			return INFINITY;
		for (size_t k = 0; k < n; k++) {
			const double v = s->v[i + k];
			if (isfinite(x[k]) && isfinite(v))
				square += (x[k] - v) * (x[k] - v);
			else if (x[k] != v && !(isnan(x[k]) && isnan(v)))
				return INFINITY;
		}
	}
	return sqrt(square / s->spread);
}

static int
choose(const struct layout *all, size_t n, const struct acc_ref *ref, struct reader *r,
	const struct sample *s, struct layout *out)
{
	double best = 0.5; /* all of it is measured later */
	int found = 0;
	struct acc_ref dense = {.dtype = ref->dtype, .ndim = ref->ndim};
	memcpy(dense.shape, ref->shape, ref->ndim * sizeof *ref->shape);
	for (size_t i = 0; i < n && best > 0; i++) {
		double d = distance(&all[i], &dense, r, s, best);
		if (d >= best)
			continue;
		best = d;
		*out = all[i];
		found = 1;
	}
	return found;
}

/* Elements from `from` on: all zero, or each like the one in the row before it? */
static bool
is_padding(const struct reader *r, uint64_t from, uint64_t count, uint64_t row, bool zero)
{
	const void *p[2];
	uint8_t *raw = malloc(2 * (size_t)ACC_CHUNK * r->size);
	struct acc_err e = {0};
	bool is = raw != NULL;
	for (uint64_t at = from; at < count && is; at += ACC_CHUNK) {
		const size_t n = count - at < ACC_CHUNK ? (size_t)(count - at) : ACC_CHUNK;
		for (int k = 0; k < (zero ? 1 : 2) && is; k++) {
			const uint64_t there = k == 0 ? at : at - row;
			if (r->all != NULL)
				p[k] = r->all + there * r->size;
			else
				is = acc_pay_read(r->pay, there, n,
					     raw + (size_t)k * ACC_CHUNK * r->size, &p[k], &e) == 0;
		}
		for (size_t i = 0; i < n && is && zero; i++)
			is = acc_load_f64(r->dtype, (const uint8_t *)p[0] + i * r->size) == 0;
		is = is && (zero || memcmp(p[0], p[1], n * r->size) == 0);
	}
	free(raw);
	return is;
}

/* What is behind a part that begins where the whole does: padding? By a sample, and of rows all of it. */
static void
look_behind(struct layout *l, const struct acc_ref *ref, struct reader *r)
{
	const int d = l->part_dim;
	bool zero = true, last = true, ends = true;
	if (d < 0 || l->nview > 0 || l->cut || l->part_start != 0)
		return;
	const int64_t n = ref->shape[d], left = n - l->part_len;
	if (n < 2)
		return;
	uint64_t inner = 1, count = 1;
	for (uint32_t i = 0; i < ref->ndim; i++) {
		count *= (uint64_t)ref->shape[i];
		inner *= (int)i > d ? (uint64_t)ref->shape[i] : 1;
	}
	for (uint64_t i = 0; i < LARGE_SAMPLE && (zero || last || ends); i++) {
		uint64_t any = scatter(i) % count, within = any % inner;
		uint64_t block = any / inner / (uint64_t)n * (uint64_t)n;
		uint64_t index = (uint64_t)l->part_len + scatter(any) % (uint64_t)left;
		const uint64_t at[4] = {(block + index) * inner + within,
			(block + (uint64_t)l->part_len - 1) * inner + within,
			(block + (uint64_t)n - 1) * inner + within,
			(block + (uint64_t)n - 2) * inner + within};
		double x[4]; /* there; the last of the part; at the end, and before it */
		if (!values(r, at, 4, x))
			return;
		zero &= x[0] == 0;
		last &= x[0] == x[1];
		ends &= x[2] == 0 || x[2] == x[3];
	}
	if ((zero || last) && d == 0 &&
		!is_padding(r, (uint64_t)l->part_len * inner, count, inner, zero))
		zero = last = false;
	l->padded = zero || last ? "all" : ends ? "some" : "no";
}

int
acc_layout_find(struct acc_roots *roots, const struct side *a, const struct side *b,
	struct layout *l, struct acc_ref *ref)
{
	struct layout *all = malloc((MAX_LAYOUTS + MAX_WEIGHT_LAYOUTS) * sizeof *all);
	size_t n = all == NULL ? 0 : acc_layouts(&a->ref, &b->ref, all);
	if (all != NULL && a->weight && b->weight)
		n += acc_weight_layouts(&a->ref, &b->ref, all + n);
	if (n == 0) {
		free(all);
		return 0;
	}
	const struct side *viewed = all[0].side == 'a' ? a : b, *other = viewed == a ? b : a;
	struct reader r = {0}, o = {0};
	struct sample *s = malloc(sizeof *s);
	int rc = 0;
	if (s != NULL && open_reader(&o, roots, other) && open_reader(&r, roots, viewed)) {
		uint64_t count = acc_pay_count(o.pay);
		bool known = take(s, &o, count, SAMPLE) &&
			     (s->spread > 0 || take(s, &o, count, LARGE_SAMPLE));
		if (known && s->spread > 0)
			rc = choose(all, n, &viewed->ref, &r, s, l);
	}
	if (rc > 0 && !acc_layout_view(l, &viewed->ref, ref))
		rc = 0;
	if (rc > 0 && a->weight && b->weight)
		look_behind(l, &viewed->ref, &r);
	close_reader(&r);
	close_reader(&o);
	free(s);
	free(all);
	return rc;
}

double
acc_layout_far(const struct acc_reading *r)
{
	const struct acc_one *b = &r->b;
	const int exp = (int)b->sumsq.exp; /* all of them at one */
	const struct acc_sum of = acc_sum_at(&b->sum, exp / 2), dd = acc_sum_at(&r->two.dd, exp);
	double n = (double)(b->n - b->nan - b->posinf - b->neginf), sum = of.hi + of.lo;
	double all = b->sumsq.hi + b->sumsq.lo, spread = all - (n > 0 ? sum * sum / n : 0);
	double d = dd.hi + dd.lo;
	if (r->two.kind_diff > 0)
		return INFINITY;
	if (d == 0)
		return 0;
	return spread > 1e-14 * all ? sqrt(d / spread) : NAN;
}

bool
acc_layout_right(double direct)
{
	return direct <= 0.3;
}

bool
acc_layout_is(double far, double direct, uint64_t n)
{
	return far <= (n < 12 ? 0.01 : 0.25) && far <= direct / 4;
}
