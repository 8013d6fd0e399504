/* Causes that a sum shows: its last terms are missing; a variance that was taken in one pass. */
#include "acc/say.h"
#include "replay/cause.h"
#include "replay/limits.h"

/* Some elements of the output, and how many of their last terms are looked at. */
enum { SAMPLES = 64, TERMS = 1 << 14 };

/* How far what is missing is from the last j terms of sums, j <= most, squared; [0]: from none. */
struct tail {
	double *left;
	size_t most, terms;
	double size;
};

static bool
start(struct acc_replay *r, size_t terms, struct tail *t)
{
	*t = (struct tail){.most = terms / 2 < TERMS ? terms / 2 : TERMS, .terms = terms};
	t->left = t->most == 0 ? NULL : acc_doubles(r, t->most + 1);
	for (size_t j = 0; t->left != NULL && j <= t->most; j++)
		t->left[j] = 0;
	return t->left != NULL;
}

static const char *
said(struct acc_arena *mem, const struct acc_dense *rec, const struct tail *t)
{
	const double most = acc_residue_most(rec) * acc_unit(rec->dtype);
	size_t best = 0;
	for (size_t j = 1; j <= t->most; j++)
		best = t->left[j] < t->left[best] ? j : best;
	if (best == 0 || !(t->left[best] <= most * most * t->size) ||
		t->left[best] * LIMIT_CAUSE_SHARE * LIMIT_CAUSE_SHARE > t->left[0])
		return NULL;
	return acc_say(mem, "the last %zu of %zu terms of its sums are missing", best, t->terms);
}

/* Of a product. */
static const char *
product_tail(struct acc_trial *t, const struct acc_formed *f)
{
	const struct acc_dense *rec = &f->rec[0];
	struct acc_product p = {.alpha = 1, .beta = 1};
	struct tail s;
	if (t->r.op->product(&t->r, &t->r.rec[0], &p) < 0 || !start(&t->r, p.nk, &s))
		return NULL;
	const size_t n = p.nb * p.m * p.n, step = n > SAMPLES ? n / SAMPLES : 1;
	for (size_t e = 0; e < n; e += step) {
		const size_t b = e / (p.m * p.n), i = e / p.n % p.m, j = e % p.n,
			     o = p.ob[b] + p.om[i] + p.on[j];
		const double *x = p.x + p.xb[b] + p.xm[i], *y = p.y + p.yb[b] + p.yn[j];
		double off = f->ref[0].v[o] - rec->v[o];
		s.left[0] += off * off;
		s.size += rec->v[o] * rec->v[o];
		for (size_t k = 1; k <= s.most; k++) {
			off -= p.alpha * x[p.xk[p.nk - k]] * y[p.yk[p.nk - k]];
			s.left[k] += off * off;
		}
	}
	return said(t->r.mem, rec, &s);
}

/* The rows that lie behind each other, one for each element of the output: their length; 0: there are none. */
static size_t
row_of(struct acc_trial *t, const struct acc_formed *f, const struct acc_dense **x)
{
	const char *why = t->r.why;
	const size_t n = f->rec[0].n;
	const bool has = acc_need_tensor(&t->r, "input", x) >= 0 && n > 0 && (*x)->n % n == 0;
	t->r.why = why;
	return has ? (*x)->n / n : 0;
}

/* Of sums of rows, times a factor: 1, or that of a mean. */
static const char *
row_tail(struct acc_trial *t, const struct acc_formed *f)
{
	const struct acc_dense *rec = &f->rec[0], *x;
	const size_t len = row_of(t, f, &x);
	const double by = acc_str_is(t->r.name, "mean") ? 1 / (double)len : 1;
	struct tail s;
	if (len == 0 || !start(&t->r, len, &s))
		return NULL;
	for (size_t o = 0; o < rec->n; o++) {
		const double *row = x->v + o * len;
		double sum = 0, abs = 0, off = f->ref[0].v[o] - rec->v[o];
		for (size_t i = 0; i < len; i++) {
			sum += by * row[i];
			abs += by * fabs(row[i]);
		}
		if (!(fabs(sum - f->ref[0].v[o]) <= 0x1p-40 * abs))
			return NULL; /* other rows */
		s.left[0] += off * off;
		s.size += rec->v[o] * rec->v[o];
		for (size_t k = 1; k <= s.most; k++) {
			off -= by * row[len - k];
			s.left[k] += off * off;
		}
	}
	return said(t->r.mem, rec, &s);
}

/* The mean of squares less the square of the mean is off by the rounding of these, in f32, in whatever order. */
static const char *
one_pass(struct acc_trial *t, const struct acc_formed *f)
{
	const struct acc_dense *rec = &f->rec[0], *x;
	const size_t len = row_of(t, f, &x);
	const bool root = acc_str_is(t->r.name, "std");
	const double unit = acc_unit(rec->dtype == ACC_F64 ? ACC_F64 : ACC_F32);
	double sum = 0, by = 0;
	for (size_t o = 0; len > 1 && o < rec->n; o++) {
		const double *row = x->v + o * len;
		double mean = 0, squares = 0, all = 0;
		for (size_t i = 0; i < len; i++)
			mean += row[i] / (double)len;
		for (size_t i = 0; i < len; i++) {
			squares += (row[i] - mean) * (row[i] - mean);
			all += row[i] * row[i];
		}
		const double ref = f->ref[0].v[o], var = root ? ref * ref : ref,
			     own = root ? rec->v[o] * rec->v[o] : rec->v[o];
		by = o == 0 ? var / squares : by;
		if (!(all >= LIMIT_ONE_PASS * squares) || !(fabs(var / squares / by - 1) < 0x1p-20))
			return NULL;
		const double e = (own - var) / (by * all * unit);
		sum += e * e / (double)rec->n;
	}
	return len > 1 && sqrt(sum) >= 1 / LIMIT_ONE_PASS_ROUNDINGS &&
			       sqrt(sum) <= LIMIT_ONE_PASS_ROUNDINGS
		       ? "its variance in one pass: the mean of the squares less the square of the mean"
		       : NULL;
}

const char *
acc_cause_sum(struct acc_trial *t, const struct acc_formed *f, uint32_t k)
{
	if (k > 0 || !acc_is_float(f->rec[0].dtype) || f->rec[0].n == 0)
		return NULL;
	for (size_t i = 0; i < f->rec[0].n; i++)
		if (!isfinite(f->rec[0].v[i]) || !isfinite(f->ref[0].v[i]))
			return NULL;
	if (t->r.op->product != NULL)
		return product_tail(t, f);
	if (acc_str_is(t->r.name, "sum") || acc_str_is(t->r.name, "mean"))
		return row_tail(t, f);
	if (acc_str_is(t->r.name, "var") || acc_str_is(t->r.name, "std"))
		return one_pass(t, f);
	return NULL;
}
