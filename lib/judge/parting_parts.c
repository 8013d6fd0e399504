/* What one side computes at once and the other in parts, one after another, as a batch of two views, a padded batch against
 * single sequences, or tokens with a cache: a value of the one agrees if parts of the other, in the order in which they
 * were made, together have its elements, as their statistics say. See parting.h. */
#include "judge/parting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "judge/limits.h"

enum { MOST_PARTS = 8, MOST_OF_KIND = 256 };

/* Values that one kind of operator gives, in their order: parts are made by the same lines of code. */
struct kind {
	uint64_t family;
	uint32_t value, end; /* end: of the first one of a kind, where the next kind begins */
};

ACC_ORDER_2(by_kind, struct kind, family, value)

/* Nothing of the other side is like it, and it says something. */
static bool
is_open(const struct parting *p, const struct part_value *v)
{
	return v->real && v->count > 1 && !(v->off <= p->may);
}

/* Add one part to those before it. false: the whole does not hold it. */
static bool
add(struct part_value *sum, const struct part_value *part, const struct part_value *whole,
	double may)
{
	double *s = sum->stat;
	const double *t = part->stat, *w = whole->stat;
	const double size = fmax(fabs(w[ACC_STAT_MAX]), fabs(w[ACC_STAT_MIN])) * 2 * may;
	if (part->count > whole->count - sum->count || t[ACC_STAT_MAX] > w[ACC_STAT_MAX] + size ||
		t[ACC_STAT_MIN] < w[ACC_STAT_MIN] - size)
		return false;
	const double n = (double)sum->count, m = (double)part->count;
	s[ACC_STAT_MAX] = n == 0 ? t[ACC_STAT_MAX] : fmax(s[ACC_STAT_MAX], t[ACC_STAT_MAX]);
	s[ACC_STAT_MIN] = n == 0 ? t[ACC_STAT_MIN] : fmin(s[ACC_STAT_MIN], t[ACC_STAT_MIN]);
	s[ACC_STAT_MEAN] = (s[ACC_STAT_MEAN] * n + t[ACC_STAT_MEAN] * m) / (n + m);
	s[ACC_STAT_NORM] = hypot(s[ACC_STAT_NORM], t[ACC_STAT_NORM]);
	sum->count += part->count;
	return s[ACC_STAT_NORM] <= w[ACC_STAT_NORM] * (1 + 2 * may);
}

/* Do parts that are so far apart, from this one on, make up the whole? How many; 0: they do not. */
static uint32_t
make_up(const struct parting *p, const struct part_side *d, const struct kind *of, uint32_t n,
	uint32_t stride, const struct part_value *whole, double *off)
{
	struct part_value sum = {.real = true, .unit = whole->unit, .wide = whole->wide};
	for (uint32_t k = 0; k < MOST_PARTS && k * stride < n; k++) {
		if (!add(&sum, &d->value[of[k * stride].value], whole, p->may))
			return 0;
		if (sum.count == whole->count) {
			*off = acc_part_off(whole, &sum);
			return k > 0 && *off <= p->may ? k + 1 : 0;
		}
	}
	return 0;
}

/* Some of the values of a kind, or of the distances between them. */
struct some {
	uint64_t bit[MOST_OF_KIND / 64];
};

/* The first of them from i on, or MOST_OF_KIND. */
static uint32_t
next_in(const struct some *s, uint32_t i)
{
	for (uint32_t k = i / 64; k < MOST_OF_KIND / 64; k++, i = 64 * k) {
		const uint64_t left = s->bit[k] >> i % 64;
		if (left != 0)
			return i + (uint32_t)__builtin_ctzll(left);
	}
	return MOST_OF_KIND;
}

/* Those whose largest or smallest element may be the whole's. One part's is, to what acc_part_off lets pass: it measures
 * by the largest magnitude of the parts together, which add() holds to that of the whole. */
static struct some
ends(const struct parting *p, const struct part_side *d, const struct kind *of, uint32_t n,
	const struct part_value *whole, int stat)
{
	const double *w = whole->stat, far = 2 * p->may * fmax(1, whole->wide);
	const double large = fmax(fabs(w[ACC_STAT_MAX]), fabs(w[ACC_STAT_MIN])) * (1 + 2 * p->may);
	struct some s = {{0}};
	for (uint32_t i = 0; i < n; i++) {
		const double apart = fabs(d->value[of[i].value].stat[stat] - w[stat]);
		const bool in = !(far < 0.5) || !(apart > 2 * far * large);
		s.bit[i / 64] |= (uint64_t)in << i % 64;
	}
	return s;
}

/* How far apart parts from value i on may be, so that one of them is in each. */
static struct some
strides(const struct some *top, const struct some *bottom, uint32_t i)
{
	struct some out;
	memset(&out, 0xff, sizeof out);
	for (const struct some *s = top; s != NULL; s = s == top ? bottom : NULL) {
		struct some far = {{0}};
		uint32_t j = next_in(s, i);
		if (j == i)
			continue; /* the first is */
		for (; j < MOST_OF_KIND; j = next_in(s, j + 1))
			for (uint32_t k = 1; k < MOST_PARTS; k++)
				if ((j - i) % k == 0)
					far.bit[(j - i) / k / 64] |= UINT64_C(1)
								     << (j - i) / k % 64;
		for (uint32_t k = 0; k < MOST_OF_KIND / 64; k++)
			out.bit[k] &= far.bit[k];
	}
	return out;
}

/* Is the largest element of one of n values that of the whole? max: theirs, in their order. */
static bool
has_top(const struct parting *p, const double *max, uint32_t n, const struct part_value *whole)
{
	const double w = whole->stat[ACC_STAT_MAX], may = 2 * p->may * fabs(w);
	uint32_t lo = 0, hi = n; /* the first that is not smaller */
	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;
		if (max[mid] < w)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (lo < n && fabs(max[lo] - w) <= may) || (lo > 0 && fabs(max[lo - 1] - w) <= may);
}

/* Of the values of one kind, of which one has the whole's largest element. */
static void
find_among(const struct parting *p, struct part_side *d, const struct kind *of, uint32_t n,
	struct part_value *whole)
{
	const struct some top = ends(p, d, of, n, whole, ACC_STAT_MAX),
			  bottom = ends(p, d, of, n, whole, ACC_STAT_MIN);
	for (uint32_t i = 0; i < n; i++) {
		struct part_value first = {.real = true};
		if (!add(&first, &d->value[of[i].value], whole, p->may) ||
			first.count == whole->count)
			continue;
		const struct some far = strides(&top, &bottom, i);
		for (uint32_t stride = 1; i + (stride = next_in(&far, stride)) < n; stride++) {
			double off = INFINITY;
			const uint32_t parts = make_up(p, d, &of[i], n - i, stride, whole, &off);
			for (uint32_t k = 0; k < parts; k++)
				d->value[of[i + k * stride].value].off = off;
			if (parts > 0) {
				whole->off = off;
				return;
			}
		}
	}
}

/* What takes a value that agrees takes what agrees. 0 or < 0. */
static int
hand_on(const struct parting *p, struct part_side *d, struct acc_err *e)
{
	struct acc_ids known = {0};
	int rc = 0;
	for (uint32_t i = 0; i < d->nvalue && rc == 0; i++)
		if (d->value[i].out && d->value[i].off <= p->may && d->value[i].id != 0)
			rc = acc_ids_put(&known, d->value[i].id, i, false, e);
	for (uint32_t i = 0; i < d->nvalue && rc == 0; i++) {
		struct part_value *v = &d->value[i];
		const uint32_t from = v->out || v->id == 0 || !is_open(p, v)
					      ? ACC_NOID
					      : acc_ids_get(&known, v->id);
		if (from != ACC_NOID)
			v->off = d->value[from].off;
	}
	acc_ids_release(&known);
	return rc;
}

/* The values of a side that are open, kind by kind; those of which there are one, or too many, are left out. */
static uint32_t
collect(const struct parting *p, const struct part_side *d, struct kind *of)
{
	uint32_t n = 0, kept = 0;
	for (uint32_t i = 0; i < d->nvalue; i++)
		if (d->value[i].out && is_open(p, &d->value[i]))
			of[n++] = (struct kind){d->step[d->value[i].step].family, i, 0};
	if (n > 1)
		qsort(of, n, sizeof *of, by_kind);
	for (uint32_t from = 0, to = 0; from < n; from = to) {
		while (to < n && of[to].family == of[from].family)
			to++;
		if (to - from < 2 || to - from > MOST_OF_KIND)
			continue;
		memmove(&of[kept], &of[from], (to - from) * sizeof *of);
		kept += to - from;
	}
	return kept;
}

/* The largest elements of the values of each kind, in their order. */
static void
sort_tops(const struct part_side *d, struct kind *of, uint32_t n, double *max)
{
	for (uint32_t i = 0; i < n; i++)
		max[i] = d->value[of[i].value].stat[ACC_STAT_MAX];
	for (uint32_t from = 0, to = 0; from < n; from = to) {
		while (to < n && of[to].family == of[from].family)
			to++;
		of[from].end = to;
		qsort(&max[from], to - from, sizeof *max, acc_by_double);
	}
}

int
acc_part_match_parts(struct parting *p, int side, struct acc_err *e)
{
	struct part_side *wholes = &p->side[side], *d = &p->side[!side];
	struct kind *of = malloc(((size_t)d->nvalue + 1) * sizeof *of);
	double *max = malloc(((size_t)d->nvalue + 1) * sizeof *max);
	if (of == NULL || max == NULL) {
		free(of);
		free(max);
		return acc_nomem(e);
	}
	const uint32_t n = collect(p, d, of);
	sort_tops(d, of, n, max);
	for (uint32_t i = 0; i < wholes->nvalue && n > 0; i++) {
		struct part_value *v = &wholes->value[i];
		/* What another step gave is looked for there. */
		if (!v->out && v->maker != ACC_NOCALL)
			continue;
		for (uint32_t from = 0, to; from < n && is_open(p, v); from = to) {
			to = of[from].end;
			if (has_top(p, &max[from], to - from, v))
				find_among(p, d, &of[from], to - from, v);
		}
	}
	free(of);
	free(max);
	const int rc = n == 0 ? 0 : hand_on(p, d, e);
	return rc < 0 || n == 0 ? rc : hand_on(p, wholes, e);
}
