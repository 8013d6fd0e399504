/* Which indices of an axis hold the error: from sums over each of them, to a set with a short name. */
#include "metric/where.h"
#include "metric/limits.h"

#include <math.h>
#include <stdlib.h>

bool
acc_where_in(const struct where_set *s, int64_t i)
{
	if (s->kind == WHERE_RANGE)
		return s->lo <= i && i < s->hi;
	if (s->kind == WHERE_EVERY)
		return ((i - s->first) % s->period + s->period) % s->period < s->width;
	for (int k = 0; k < s->nlist; k++)
		if (s->list[k] == i)
			return true;
	return s->kind == WHERE_ALL;
}

static double
variance(double n, double s, double least)
{
	double v = n > 0 ? s / n : 0;
	return v > least ? v : least;
}

double
acc_where_gain(double n, double s, double n1, double s1, double rounding)
{
	double v = s / n, least = LIMIT_ALIKE * v > rounding ? LIMIT_ALIKE * v : rounding,
	       n0 = n - n1;
	double v1 = variance(n1, s1, least), v0 = variance(n0, s - s1, least);
	return 0.5 * (n * log(v) - n1 * log(v1) - n0 * log(v0));
}

/* Is it worth a closer look? */
static bool
higher(double n, double s, double n1, double s1, double rounding, double by)
{
	double n0 = n - n1, s0 = s - s1 > 0 ? s - s1 : 0;
	if (!(n1 > 0 && n0 > 0 && n1 <= LIMIT_WHERE_MOST * n0 && s1 >= LIMIT_MOSTLY * s))
		return false;
	double v0 = s0 / n0 > rounding ? s0 / n0 : rounding;
	return s1 / n1 >= by * v0;
}

bool
acc_where_stands_out(double n, double s, double n1, double s1, double rounding)
{
	return higher(n, s, n1, s1, rounding,
		s1 >= LIMIT_WHERE_SHARE * s ? LIMIT_CONTRAST : LIMIT_FAR);
}

/* Along which `n` bins a set is sought; `cyclic`: the last one is before the first. */
struct line {
	const struct where_bin *b;
	size_t n;
	bool cyclic;
	double all_n, all_s, rounding;
};

struct found {
	size_t lo, len; /* a run; may wrap where the line is cyclic */
	size_t n, at[WHERE_LIST];
	double gain, n1, s1, v0, v1;
};

/* What bin i speaks for v1 rather than v0. */
static double
speaks(const struct where_bin *b, double v0, double v1)
{
	return 0.5 * (b->n * log(v0 / v1) + b->s * (1 / v0 - 1 / v1));
}

/* The run of bins that speaks most (sign 1) or least (-1): how much. */
static double
best_run(const struct line *l, double v0, double v1, double sign, size_t *lo, size_t *len)
{
	double sum = 0, best = -INFINITY;
	size_t start = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (sum <= 0) {
			sum = 0;
			start = i;
		}
		sum += sign * speaks(&l->b[i], v0, v1);
		if (sum > best) {
			best = sum;
			*lo = start;
			*len = i + 1 - start;
		}
	}
	return best;
}

static void
run(const struct line *l, double v0, double v1, struct found *f)
{
	size_t lo = 0, len = 0, lo_not = 0, len_not = 0;
	double total = 0, most = best_run(l, v0, v1, 1, &lo, &len);
	if (l->cyclic) {
		for (size_t i = 0; i < l->n; i++)
			total += speaks(&l->b[i], v0, v1);
		double rest = total + best_run(l, v0, v1, -1, &lo_not, &len_not);
		if (rest > most && len_not < l->n) {
			lo = (lo_not + len_not) % l->n;
			len = l->n - len_not;
		}
	}
	f->lo = lo;
	f->len = len;
	f->n1 = f->s1 = 0;
	for (size_t i = 0; i < len; i++) {
		const struct where_bin *b = &l->b[(lo + i) % l->n];
		f->n1 += b->n;
		f->s1 += b->s;
	}
}

/* Those that speak for more than it costs to name one. */
static void
some(const struct line *l, double v0, double v1, struct found *f)
{
	f->n = 0;
	f->n1 = f->s1 = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (!(speaks(&l->b[i], v0, v1) > log((double)l->n)))
			continue;
		if (f->n < WHERE_LIST)
			f->at[f->n] = i;
		f->n++;
		f->n1 += l->b[i].n;
		f->s1 += l->b[i].s;
	}
}

/* A run of which only parts are bad is none. */
static bool
whole(const struct line *l, const struct found *f)
{
	const size_t parts = f->len < 8 ? 1 : 4;
	for (size_t k = 0; k < parts; k++) {
		double n = 0, s = 0;
		for (size_t i = k * f->len / parts; i < (k + 1) * f->len / parts; i++) {
			n += l->b[(f->lo + i) % l->n].n;
			s += l->b[(f->lo + i) % l->n].s;
		}
		if (s < LIMIT_UNEVEN * f->v1 * n)
			return false;
	}
	return true;
}

/* From two variances to a set, and from the set to its variances, until it stays. */
static void
settle(const struct line *l, void (*step)(const struct line *, double, double, struct found *),
	double v0, double v1, struct found *best)
{
	double least = LIMIT_ALIKE * l->all_s / l->all_n;
	struct found f = {.gain = -INFINITY};
	double last = -1;
	least = least > l->rounding ? least : l->rounding;
	for (int i = 0; i < 12; i++) {
		v0 = v0 > least ? v0 : least;
		if (!(v1 > v0))
			return;
		step(l, v0, v1, &f);
		if (!(f.n1 > 0) || !(f.n1 < l->all_n) || f.n1 == last)
			break;
		last = f.n1;
		v1 = f.s1 / f.n1;
		v0 = (l->all_s - f.s1) / (l->all_n - f.n1);
	}
	if (!higher(l->all_n, l->all_s, f.n1, f.s1, l->rounding, LIMIT_CONTRAST) ||
		f.n > WHERE_LIST)
		return;
	f.gain = acc_where_gain(l->all_n, l->all_s, f.n1, f.s1, l->rounding);
	f.v1 = f.s1 / f.n1;
	f.v0 = variance(l->all_n - f.n1, l->all_s - f.s1, least);
	if (f.gain > best->gain && (f.n > 0 || whole(l, &f)))
		*best = f;
}

static int
by_size(const void *x, const void *y)
{
	double a = ((const struct where_bin *)x)->s, b = ((const struct where_bin *)y)->s;
	return (a > b) - (a < b);
}

static double
mean_of(const struct where_bin *b, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += b[i].s;
	return n == 0 ? 0 : sum / (double)n;
}

/* Both ways to see a line, from some guesses of what is noise. tmp: l->n bins. */
static void
seek(const struct line *l, struct where_bin *tmp, struct found *as_run, struct found *as_list)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		if (l->b[i].n > 0)
			tmp[n++] = (struct where_bin){1, l->b[i].s / l->b[i].n};
	if (n < 2)
		return;
	qsort(tmp, n, sizeof *tmp, by_size);
	/* Of noise many may be 0: means as well as quantiles. Of few, one may be noise alone. */
	const double v1 = tmp[n - 1].s;
	const double v0[] = {n < 8 ? tmp[0].s : tmp[n / 8].s, tmp[n / 2 - (n < 8)].s,
		mean_of(tmp, n / 2), mean_of(tmp, n - (n + 7) / 8)};
	for (size_t k = 0; k < sizeof v0 / sizeof *v0; k++) {
		settle(l, run, v0[k], v1, as_run);
		if (as_list != NULL)
			settle(l, some, v0[k], v1, as_list);
	}
}

/* --- slices against slices --- */

/* Elements of noise do not err alone: one wrong activation feeds a row, one that came out on the other
 * side of relu's zero a whole channel. So a set has to stand out from how unlike slices are among
 * themselves. By the logarithm of their squared error an element, slices are taken as normal with one
 * variance, whose own law is known beforehand: on 1,148 axes of 8 to 64 slices of clean runs of five
 * networks of the teach half this logarithm has a standard deviation of 0.15, 0.46, 1.2, 2.6 and 4.4 at
 * 10, 50, 90, 95 and 99 of 100: an inverse chi-square of 2 degrees of freedom around 0.38 squared (0.25,
 * 0.46, 1.2, 1.7, 3.8). */

struct logs {
	double n, sum, squares;
};

static void
add_log(struct logs *to, double v)
{
	to->n += 1;
	to->sum += v;
	to->squares += v * v;
}

static double
around_mean(const struct logs *l)
{
	double v = l->n > 0 ? l->squares - l->sum * l->sum / l->n : 0;
	return v > 0 ? v : 0;
}

/* Bins of a piece: a run is one, since neighbours are alike, and what is beside it is cut into such. */
static size_t
piece(const struct where_set *s, int64_t width)
{
	return s->kind == WHERE_RANGE   ? (size_t)((s->hi - s->lo + width - 1) / width)
	       : s->kind == WHERE_EVERY ? (size_t)s->width
					: 1;
}

/* The logarithms of the pieces, outside (0) and inside (1) of a set. Less than half a piece is none. */
static void
take_logs(const struct line *l, int64_t from, int64_t width, const struct where_set *s,
	struct logs of[2])
{
	const double v = LIMIT_ALIKE * l->all_s / l->all_n,
		     least = v > l->rounding ? v : l->rounding;
	const size_t len = piece(s, width);
	double n = 0, sum = 0;
	for (size_t i = 0, held = 0; i < l->n; i++) {
		const bool in = acc_where_in(s, from + (int64_t)i * width);
		held++;
		n += l->b[i].n;
		sum += l->b[i].s;
		if (held < len && i + 1 < l->n &&
			acc_where_in(s, from + (int64_t)(i + 1) * width) == in)
			continue;
		if (n > 0 && 2 * held >= len)
			add_log(&of[in], log(variance(n, sum, least)));
		n = sum = 0;
		held = 0;
	}
}

/* Is there no error at all outside, and some in each index inside? That is no matter of chance: a decode loop agrees up
 * to a position. */
static bool
is_exact(const struct line *l, int64_t from, int64_t width, const struct where_set *s)
{
	for (size_t i = 0; i < l->n; i++)
		if ((l->b[i].s > 0) != acc_where_in(s, from + (int64_t)i * width) && l->b[i].n > 0)
			return false;
	return true;
}

/* By how many nats the pieces of a set stand out from the others, beyond what it takes to write which
 * they are: that two groups of n explain the part r of the squares comes by chance in less than
 * (1 - r)^((n - 2) / 2) of all cases, and what is known beforehand counts as LIMIT_KNOWN more. Of runs of one
 * length there are as many as pieces. */
static bool
apart(const struct line *l, int64_t from, int64_t width, struct where_set *s)
{
	struct logs of[2] = {{0, 0, 0}, {0, 0, 0}};
	if (s->kind == WHERE_RANGE && is_exact(l, from, width, s)) {
		s->aside = l->all_n;
		return true;
	}
	take_logs(l, from, width, s, of);
	const double n = of[0].n + of[1].n;
	if (!(of[0].n > 0 && of[1].n > 0))
		return false;
	const double by = of[1].sum / of[1].n - of[0].sum / of[0].n;
	const double between = of[0].n * of[1].n / n * by * by;
	const double within = around_mean(&of[0]) + around_mean(&of[1]) +
			      LIMIT_KNOWN * LIMIT_SPREAD * LIMIT_SPREAD;
	const double cost = s->kind == WHERE_RANGE ? log(n) : s->cost - log(l->all_n);
	s->aside = 0.5 * (LIMIT_KNOWN + n - 2) * log1p(between / within) - cost;
	return by > 0 && s->aside > 0;
}

/* --- one after the other, every k-th --- */

static void
fold(const struct line *l, size_t period, struct where_bin *out)
{
	for (size_t i = 0; i < period; i++)
		out[i] = (struct where_bin){0, 0};
	for (size_t i = 0, k = 0; i < l->n; i++, k = k + 1 == period ? 0 : k + 1) {
		out[k].n += l->b[i].n;
		out[k].s += l->b[i].s;
	}
}

/* Does it stand out in every quarter of the axis? Else it is not every one of them. */
static bool
throughout(const struct line *l, size_t period, const struct found *f)
{
	size_t parts = l->n / period < 4 ? l->n / period : 4;
	for (size_t k = 0; k < parts; k++) {
		double n1 = 0, s1 = 0;
		for (size_t i = k * l->n / parts; i < (k + 1) * l->n / parts; i++)
			if ((i + period - f->lo) % period < f->len) {
				n1 += l->b[i].n;
				s1 += l->b[i].s;
			}
		if (!(speaks(&(struct where_bin){n1, s1}, f->v0, f->v1) > LIMIT_CHANCE / 4))
			return false;
	}
	return true;
}

/* Is a part of every period bad, and in every one of them? */
static void
every(const struct line *l, struct where_bin *tmp, double cost, struct where_set *out)
{
	size_t most = l->n / 2 < WHERE_PERIOD ? l->n / 2 : WHERE_PERIOD;
	for (size_t p = 2; p <= most; p++) {
		struct line folded = {tmp, p, true, l->all_n, l->all_s, l->rounding};
		struct found f = {.gain = -INFINITY};
		fold(l, p, tmp);
		seek(&folded, tmp + p, &f, NULL);
		struct where_set set = {.axis = out->axis, .extent = out->extent};
		set.kind = WHERE_EVERY;
		set.cost = cost + log(WHERE_PERIOD) + 2 * log((double)p);
		set.gain = f.gain - set.cost;
		set.period = (int64_t)p;
		set.first = (int64_t)f.lo;
		set.width = (int64_t)f.len;
		if (set.gain > out->gain && set.gain > LIMIT_CHANCE && throughout(l, p, &f) &&
			apart(l, 0, 1, &set))
			*out = set;
	}
}

void
acc_where_fit(const struct where_bin *b, size_t nbin, int64_t from, int64_t width, double rounding,
	struct where_bin *tmp, struct where_set *out)
{
	struct line l = {b, nbin, false, 0, 0, rounding};
	const struct where_set none = {.axis = out->axis, .extent = out->extent};
	out->gain = -INFINITY;
	for (size_t i = 0; i < nbin; i++) {
		l.all_n += b[i].n;
		l.all_s += b[i].s;
	}
	if (!(l.all_n > 1) || !(l.all_s > 0) || nbin < 2)
		return;
	/* Two variances, and which of the kinds it is. */
	const double cost = log(l.all_n) + log(3);
	struct found as_run = {.gain = -INFINITY}, as_list = {.gain = -INFINITY};
	seek(&l, tmp, &as_run, &as_list);
	struct where_set set = none;
	set.kind = WHERE_RANGE;
	set.cost = cost + 2 * log((double)nbin);
	set.gain = as_run.gain - set.cost;
	set.lo = from + (int64_t)as_run.lo * width;
	set.hi = from + (int64_t)(as_run.lo + as_run.len) * width;
	set.hi = set.hi < set.extent ? set.hi : set.extent;
	set.unit = width;
	set.v0 = as_run.v0;
	set.v1 = as_run.v1;
	if (set.gain > LIMIT_CHANCE && apart(&l, from, width, &set))
		*out = set;
	set = none;
	set.kind = WHERE_SOME;
	set.cost = cost + ((double)as_list.n + 1) * log((double)nbin);
	set.gain = as_list.gain - set.cost;
	set.nlist = (int)as_list.n;
	for (size_t i = 0; i < as_list.n && i < WHERE_LIST; i++)
		set.list[i] = from + (int64_t)as_list.at[i];
	if (width == 1 && as_list.n > 1 && LIMIT_RARE * as_list.n <= nbin &&
		set.gain > LIMIT_CHANCE && set.gain > out->gain && apart(&l, from, width, &set))
		*out = set;
	if (width == 1 && from == 0)
		every(&l, tmp, cost, out);
}

void
acc_where_sharpen(const struct where_bin *b, size_t nbin, int64_t from, int64_t width, int ends,
	struct where_set *s)
{
	struct line l = {b, nbin, false, 0, 0, 0};
	struct found f;
	double sum = 0, best = 0;
	size_t cut = ends == WHERE_LO ? nbin : 0;
	if (ends == (WHERE_LO | WHERE_HI)) {
		run(&l, s->v0, s->v1, &f);
		s->lo = from + (int64_t)f.lo * width;
		s->hi = s->lo + (int64_t)f.len * width;
	}
	for (size_t i = 0; i < nbin && ends != (WHERE_LO | WHERE_HI); i++) {
		size_t at = ends == WHERE_LO ? nbin - 1 - i : i;
		sum += speaks(&b[at], s->v0, s->v1);
		if (sum > best) {
			best = sum;
			cut = ends == WHERE_LO ? at : at + 1;
		}
	}
	if (ends == WHERE_LO)
		s->lo = from + (int64_t)cut * width;
	if (ends == WHERE_HI)
		s->hi = from + (int64_t)cut * width;
	s->hi = s->hi < s->extent ? s->hi : s->extent;
	s->unit = width;
}
