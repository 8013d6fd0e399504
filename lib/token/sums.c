/* One pass over the tokens of a sample gathers what metrics and causes are formulas over. */
#include "token/token.h"
#include "acc/tensor.h"

#include <float.h>
#include <stdlib.h>

enum {
	SAFE = 20
}; /* verl's bound of a log-ratio that is squared: of log-ratios beyond, exp is all there is */

int
acc_tok_all_open(struct tok_all *w, struct acc_err *e)
{
	*w = (struct tok_all){.most = -INFINITY,
		.least = INFINITY,
		.dppl_max = -INFINITY,
		.dppl_min = INFINITY};
	w->place = calloc(TOK_POSITIONS, sizeof *w->place);
	w->end = calloc(TOK_POSITIONS, sizeof *w->end);
	if (w->place == NULL || w->end == NULL) {
		acc_tok_all_close(w);
		return acc_nomem(e);
	}
	return 0;
}

void
acc_tok_all_close(struct tok_all *w)
{
	free(w->place);
	free(w->both);
	free(w->end);
	w->place = w->end = NULL;
}

static void
cell(struct tok_cell *c, double l)
{
	c->n++;
	c->s1 += l;
	c->s2 += l * l;
}

/* What is below the last, or no logarithm of a probability, counts in the last or first. */
static size_t
value_bin(double v)
{
	return v >= 0 ? 0 : v <= -TOK_VALUES / 4.0 ? TOK_VALUES - 1 : (size_t)(-4 * v);
}

static void
position(struct tok_cell *v, size_t *n, size_t at, double l)
{
	if (at >= TOK_POSITIONS)
		at = TOK_POSITIONS - 1;
	if (at >= *n)
		*n = at + 1;
	cell(&v[at], l);
}

static double
clamp(double x)
{
	return x > SAFE ? SAFE : x < -SAFE ? -SAFE : x;
}

/* Is it a number of 16 bits, of that many of its mantissa and the exponents of bf16 or fp16? */
static bool
is_bf16(double x)
{
	const float f = (float)x;
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return (double)f == x && (u & 0xffff) == 0;
}

static bool
is_fp16(double x)
{
	const float f = (float)x;
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return (double)f == x && (u & 0x1fff) == 0 && fabs(x) >= 0x1p-14;
}

static void
scales(struct tok_all *w, double a, double b)
{
	const double ln10 = 2.302585092994046, ln2 = 0.6931471805599453;
	const double x[NSCALE] = {a > 0 ? log(a) : NAN, a, a * ln10, a, a * ln2, a},
		     y[NSCALE] = {b, b > 0 ? log(b) : NAN, b, b * ln10, b, b * ln2};
	for (int i = 0; i < NSCALE; i++)
		if (isfinite(x[i]) && isfinite(y[i])) {
			w->nscale[i]++;
			w->scale[i] += (x[i] - y[i]) * (x[i] - y[i]);
		}
}

static void
probabilities(struct tok_all *w, double a, double b)
{
	const double p = exp(a), q = exp(b), d = fabs(q - p);
	w->pa += p;
	w->pb += q;
	w->paa += p * p;
	w->pbb += q * q;
	w->pab += p * q;
	w->pd += d;
	w->pdd += d * d;
	w->pmax = d > w->pmax ? d : w->pmax;
}

static void
token(struct tok_all *w, struct tok_sum *s, double a, double b, size_t at, size_t whole)
{
	const double l = b - a, r = exp(l), k3 = expm1(l) - l, m = fabs(l), rho = exp(clamp(l));
	w->n++;
	w->s1 += l;
	w->s2 += l * l;
	w->s3 += k3;
	w->sabs += m;
	w->sexp += exp(m);
	w->w += r;
	w->w2 += r * r;
	w->rho2 += rho * rho;
	w->clipped += r < 0.8 || r > 1.2;
	w->a += a;
	w->b += b;
	w->aa += a * a;
	w->bb += b * b;
	w->ab += a * b;
	w->bbb += b * b * b;
	w->bbbb += b * b * b * b;
	w->abb += a * b * b;
	probabilities(w, a, b);
	scales(w, a, b);
	/* A probability of 1 is its logarithm, 0. */
	w->nones += b < -1e-3;
	w->one += b < -1e-3 && a > -1e-6 && a <= 0;
	w->most = l > w->most ? l : w->most;
	w->least = l < w->least ? l : w->least;
	w->bf16[SIDE_A] += is_bf16(a);
	w->bf16[SIDE_B] += is_bf16(b);
	w->fp16[SIDE_A] += is_fp16(a);
	w->fp16[SIDE_B] += is_fp16(b);
	int e = m > 0 ? (int)floor(log2(fmin(m, DBL_MAX))) + TOK_BINS - 16 : 0;
	cell(&w->bin[e < 0 ? 0 : e >= TOK_BINS ? TOK_BINS - 1 : e], l);
	if (w->both != NULL)
		w->both[value_bin(a) * TOK_VALUES + value_bin(b)]++;
	position(w->place, &w->nplace, at, l);
	position(w->end, &w->nend, whole, l);
	s->n++;
	s->s1 += l;
	s->s2 += l * l;
	s->s3 += k3;
	s->sabs += m;
	s->sa += a;
	s->low = (float)a < s->low ? (float)a : s->low;
	if (m > fabs((double)s->max) || s->n == 1) {
		s->max = (float)l;
		s->max_at = (uint32_t)at;
	}
}

/* First and second choice of both sides, if they are the same two. */
static void
choices(struct tok_all *w, const struct tok_side *a, size_t va, size_t na, const struct tok_side *b,
	size_t vb, size_t nb)
{
	if (na < 2 || nb < 2)
		return;
	const double *x = a->top + va, *y = b->top + vb;
	size_t p = 0, q = 1;
	if (a->topid != NULL && b->topid != NULL) {
		const int64_t *i = a->topid + va, *j = b->topid + vb;
		for (p = 0; p < nb && j[p] != i[0]; p++)
			;
		for (q = 0; q < nb && j[q] != i[1]; q++)
			;
		if (p >= nb || q >= nb)
			return;
	}
	const double da = x[0] - x[1], db = y[p] - y[q];
	if (!isfinite(da) || !isfinite(db) || da > 1e3 || db > 1e3)
		return;
	w->nd++;
	w->da += da * da;
	w->db += db * db;
	w->dab += da * db;
	w->dres += (da - db) * (da - db);
}

/* The difference of two numbers of bf16 from 1/2 on is a multiple of 2^-8; of other numbers one in 25 is as
 * near to one. */
static void
grid(struct tok_all *w, int side, const struct tok_side *s, size_t v, size_t n)
{
	if (n < 2)
		return;
	const double d = (s->top[v] - s->top[v + 1]) * 256;
	if (!(fabs(d) < 1e6) || d == 0)
		return;
	w->ngrid[side]++;
	w->grid[side] += fabs(d - round(d)) < 0.02;
}

/* The entropy of what is known of a distribution, and its mass. */
static void
entropy(struct tok_all *w, int side, const struct tok_side *s, size_t v, size_t n)
{
	double h = 0, mass = 0;
	for (size_t i = 0; i < n; i++) {
		const double p = exp(s->top[v + i]);
		if (!(p >= 0 && p <= 1 + 1e-3))
			return;
		mass += p;
		h -= p > 0 ? p * s->top[v + i] : 0;
	}
	if (n < 2)
		return;
	w->ent[side] += h;
	w->nent[side]++;
	w->ntop[side]++;
	w->topless[side] += fabs(mass - 1) > 1e-4;
}

static bool
is_number(const struct tok_side *s, size_t i, double *v)
{
	*v = s->logp[i];
	return isfinite(*v);
}

/* A table of the ids that came before in the sample. */
static int
seen_open(struct acc_tokens *t, size_t n, struct acc_err *e)
{
	size_t cap = 64;
	while (cap < 2 * n)
		cap *= 2;
	if (cap > t->seen.cap) {
		free(t->seen.slot);
		t->seen.slot = calloc(cap, sizeof *t->seen.slot);
		t->seen.cap = t->seen.slot == NULL ? 0 : cap;
		return t->seen.slot == NULL ? acc_nomem(e) : 0;
	}
	memset(t->seen.slot, 0, t->seen.cap * sizeof *t->seen.slot);
	return 0;
}

/* How often the id came before, up to the last of NSEEN; and once more now. A slot has the id above its count. */
static unsigned
seen(struct acc_tokens *t, int64_t id)
{
	const uint64_t key = ((uint64_t)id + 1) << 3, mask = t->seen.cap - 1;
	for (size_t i = (key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;; i = (i + 1) & mask) {
		uint64_t *slot = &t->seen.slot[i];
		if (*slot == 0)
			*slot = key;
		if ((*slot & ~UINT64_C(7)) != key)
			continue;
		const unsigned n = (unsigned)(*slot & 7);
		*slot += n + 1 < NSEEN;
		return n;
	}
}

/* How a's mask and b's differ, over the response. */
static void
masks(struct tok_all *w, size_t sample, const struct tok_side *a, const struct tok_side *b,
	int64_t off, size_t same)
{
	const struct tok_side *s[NSIDE] = {a, b};
	uint64_t more[NSIDE] = {0, 0}, later = 0, last = SIZE_MAX;
	for (int k = 0; k < NSIDE; k++) {
		for (size_t i = 0; s[k]->mask != NULL && i < s[k]->start; i++)
			w->mask_prompt[k] += s[k]->mask[i] != 0;
		w->counted[k] += (uint64_t)s[k]->counted;
		w->masked[k] += s[k]->mask != NULL;
	}
	if (a->mask == NULL || b->mask == NULL)
		return;
	const uint8_t *x = a->mask + a->start, *y = b->mask + ((int64_t)a->start + off);
	for (size_t i = 0; i < same; i++) {
		more[SIDE_A] += x[i] > y[i];
		more[SIDE_B] += y[i] > x[i];
		later += i > 0 && x[i - 1] != y[i];
		if (x[i] != y[i])
			last = i;
	}
	if (more[SIDE_A] + more[SIDE_B] == 0)
		return;
	if (w->mask_samples++ == 0)
		w->mask_first = sample;
	w->mask_more[SIDE_A] += more[SIDE_A];
	w->mask_more[SIDE_B] += more[SIDE_B];
	w->mask_shift += later == 0 && same > 2;
	w->mask_last += more[SIDE_A] + more[SIDE_B] == 1 && last + 1 == same;
}

/* A row of one number is what stands where nothing was computed. */
static void
constant(struct tok_sum *s, const struct tok_side *a, const struct tok_side *b, int64_t off,
	size_t same)
{
	const double *x = a->logp + a->start, *y = b->logp + ((int64_t)a->start + off);
	bool one[NSIDE] = {same >= 4, same >= 4};
	for (size_t i = 1; i < same && (one[0] || one[1]); i++) {
		one[SIDE_A] = one[SIDE_A] && x[i] == x[0];
		one[SIDE_B] = one[SIDE_B] && y[i] == y[0];
	}
	if (one[SIDE_A] && !one[SIDE_B])
		s->flags |= FLAG_CONST_A;
	if (one[SIDE_B] && !one[SIDE_A])
		s->flags |= FLAG_CONST_B;
}

/* The trainer's log-probabilities one token later, or earlier, over the tokens that have both. */
static void
shifts(struct tok_all *w, const double *x, const double *y, const uint8_t *use, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!use[i])
			continue;
		for (int k = 0; k < NSHIFT; k++) {
			const size_t j = k == 0 ? i + 1 : i - 1;
			if ((k == 1 && i == 0) || j >= n || !use[j])
				continue;
			w->nshift[k]++;
			w->shift[k] += (y[j] - x[i]) * (y[j] - x[i]);
			w->shift0[k] += (y[i] - x[i]) * (y[i] - x[i]);
		}
	}
}

static void
sequence(struct tok_all *w, const struct tok_sum *s)
{
	if (s->n == 0)
		return;
	const double d = -s->s1 / s->n, r = exp(s->s1), q = exp(clamp(s->s1));
	w->seq_n++;
	w->seq_w += r;
	w->seq_w2 += r * r;
	w->seq_rho2 += q * q;
	w->dppl += d;
	w->dppl_abs += fabs(d);
	w->ppl += exp(d);
	w->dppl_max = d > w->dppl_max ? d : w->dppl_max;
	w->dppl_min = d < w->dppl_min ? d : w->dppl_min;
}

int
acc_tok_sums(struct acc_tokens *t, struct tok_all *w, struct tok_sum *s, const struct tok_side *a,
	const struct tok_side *b, int64_t off, size_t same, struct acc_err *e)
{
	const int64_t from = (int64_t)a->start + off;
	size_t va = 0, vb = 0;
	masks(w, (size_t)(s->order), a, b, off, same);
	if (a->logp == NULL || b->logp == NULL || same == 0)
		return 0;
	const bool tops = a->ntop >= same, topsb = b->ntop >= same && from == (int64_t)b->start;
	uint8_t *use = acc_alloc(&t->one, same);
	if (use == NULL)
		return acc_nomem(e);
	int rc = a->ids == NULL ? 0 : seen_open(t, a->n, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; a->ids != NULL && i < a->start; i++)
		seen(t, a->ids[i]);
	constant(s, a, b, off, same);
	for (size_t i = 0; i < same; i++) {
		const size_t ia = a->start + i, ib = (size_t)(from + (int64_t)i);
		double x, y;
		const bool counted = (a->mask == NULL || a->mask[ia]) &&
				     (b->mask == NULL || b->mask[ib]);
		const bool fx = is_number(a, ia, &x), fy = is_number(b, ib, &y);
		const unsigned before = a->ids != NULL ? seen(t, a->ids[ia]) : 0;
		const size_t na = tops ? (size_t)a->topn[i] : 0,
			     nb = topsb ? (size_t)b->topn[i] : 0;
		use[i] = counted && fx && fy;
		if (counted && !use[i]) {
			const bool gone_x = isinf(x) && x > 0, gone_y = isinf(y) && y > 0;
			w->absent[SIDE_A] += gone_x;
			w->absent[SIDE_B] += gone_y;
			w->nans[SIDE_A] += !fx && !gone_x;
			w->nans[SIDE_B] += !fy && !gone_y;
			if ((!fx && !gone_x) || (!fy && !gone_y))
				s->flags |= FLAG_NAN;
		}
		if (use[i]) {
			token(w, s, x, y, i, ia);
			w->positive[SIDE_A] += x > 1e-6;
			w->positive[SIDE_B] += y > 1e-6;
			if (a->ids != NULL)
				cell(&w->seen[before], y - x);
			choices(w, a, va, na, b, vb, nb);
			grid(w, SIDE_A, a, va, na);
			grid(w, SIDE_B, b, vb, nb);
			entropy(w, SIDE_A, a, va, na);
			entropy(w, SIDE_B, b, vb, nb);
		}
		va += na;
		vb += nb;
	}
	shifts(w, a->logp + a->start, b->logp + from, use, same);
	sequence(w, s);
	return 0;
}
