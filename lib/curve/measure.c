/* The figures of one pair of curves. */
#include "curve/curve.h"

#include <math.h>
#include <stdlib.h>

bool
acc_curve_finite(const struct acc_point *p)
{
	return p->has == 3 && isfinite(p->v[CURVE_A]) && isfinite(p->v[CURVE_B]);
}

double
acc_curve_relative(const struct acc_point *p)
{
	double d = fabs(p->v[CURVE_A] - p->v[CURVE_B]), b = fabs(p->v[CURVE_B]);
	return d == 0 ? 0 : b > 0 ? d / b : 1;
}

/* Half a digit on each side; a little more, since these are sums of decimals. */
static double
resolution(const struct acc_point *p)
{
	double digits = p->res[CURVE_A] + p->res[CURVE_B];
	return digits * (1 + 1e-6) + 1e-15 * fabs(p->v[CURVE_B]);
}

/* NaN and NaN, or the same infinity, are no difference. */
static bool
differ_in_kind(const struct acc_point *p)
{
	double a = p->v[CURVE_A], b = p->v[CURVE_B];
	if (isfinite(a) && isfinite(b))
		return false;
	return !(isnan(a) && isnan(b)) && a != b;
}

bool
acc_curve_beyond(const struct curve *c, const struct acc_point *p)
{
	static const struct {
		double absolute, relative;
	} tolerance[] = {
		[ROLE_NONE] = {0, 0.01},
		[ROLE_LOSS] = {0.005, 0.005}, /* the guide's rule for the first step */
		[ROLE_RATE] = {0, 1e-6},
		[ROLE_NORM] = {0, 0.1},
		[ROLE_LOCAL] = {0, 0.2}, /* squares */
		/* Where they are small they say nothing by their size; the limits of their rules. */
		[ROLE_KL] = {0.01, 0},
		[ROLE_RATIO] = {0.02, 0},
		[ROLE_CLIP] = {0.05, 0},
		[ROLE_ENTROPY] = {0, 0.1},
		[ROLE_REWARD] = {0, 0.1},
		[ROLE_POLICY] = {0, 0.1},
	};
	if (differ_in_kind(p))
		return true;
	if (!acc_curve_finite(p))
		return false;
	double d = fabs(p->v[CURVE_A] - p->v[CURVE_B]);
	return d > resolution(p) && d > tolerance[c->role].absolute &&
	       acc_curve_relative(p) > tolerance[c->role].relative;
}

/* The nearest loss of this side that is not 0, towards one end. */
static double
nearest(const struct curve *c, size_t i, int side, int way)
{
	for (size_t k = i + (size_t)way; k < c->n; k += (size_t)way)
		if (c->p[k].has & 1U << side && c->p[k].v[side] != 0)
			return fabs(c->p[k].v[side]);
	return NAN;
}

/* Hugging Face's Trainer writes 0 for a loss that is NaN or infinite: an exact 0 where the other
 * side has a loss of the size of its neighbours. */
static void
unfilter(struct curve *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct acc_point *p = &c->p[i];
		int side = p->v[CURVE_A] == 0 ? CURVE_A : CURVE_B;
		double other = fabs(p->v[1 - side]);
		if (p->has != 3 || p->v[side] != 0 || !(other >= 0.01) || isinf(other))
			continue;
		double before = nearest(c, i, side, -1), after = nearest(c, i, side, 1);
		double near = isfinite(before) ? before : after;
		if (!(near > other / 3) || !(near < other * 3))
			continue;
		c->zeros[side]++;
		p->v[side] = NAN;
	}
}

/* Usual distance of the steps of one side: the median. */
static int
by_value(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return (a > b) - (a < b);
}

static int64_t
interval(const struct curve *c, int side, int64_t *room)
{
	size_t n = 0;
	int64_t last = INT64_MIN;
	for (size_t i = 0; i < c->n; i++) {
		if (!(c->p[i].has & 1U << side))
			continue;
		if (last != INT64_MIN)
			room[n++] = (int64_t)((uint64_t)c->p[i].step - (uint64_t)last);
		last = c->p[i].step;
	}
	if (n == 0)
		return INT64_MIN;
	qsort(room, n, sizeof *room, by_value);
	return room[(n - 1) / 2];
}

/* Everything that one walk over the points tells. */
static void
walk(struct curve *c)
{
	struct figures *f = &c->f;
	double first[2] = {NAN, NAN};
	bool varies[2] = {false, false};
	uint64_t run = 0; /* of steps at which neither side is finite */
	for (size_t i = 0; i < c->n; i++) {
		const struct acc_point *p = &c->p[i];
		for (int s = 0; s < 2; s++) {
			f->only[s] += p->has == 1U << s;
			if (!(p->has & 1U << s))
				continue;
			if (!isfinite(p->v[s]) && f->nan[s] == INT64_MIN)
				f->nan[s] = p->step;
			if (isnan(first[s]))
				first[s] = p->v[s];
			varies[s] |= p->v[s] != first[s];
		}
		if (p->has != 3)
			continue;
		if (f->n++ == 0)
			f->begin = p->step;
		const bool neither = !isfinite(p->v[CURVE_A]) && !isfinite(p->v[CURVE_B]);
		f->neither += neither;
		run = neither ? run + 1 : 0;
		f->lost = run == 0 ? INT64_MIN : run == 1 ? p->step : f->lost;
		f->end = p->step;
		double d = fabs(p->v[CURVE_A] - p->v[CURVE_B]);
		bool kind = differ_in_kind(p);
		if (kind && f->nonfinite++ == 0)
			f->odd = p->step;
		if (kind || (acc_curve_finite(p) && d > resolution(p))) {
			if (f->apart++ == 0)
				f->first = p->step;
		}
		bool beyond = acc_curve_beyond(c, p);
		if (beyond && f->beyond == INT64_MIN)
			f->beyond = p->step;
		if (!beyond)
			f->stays = INT64_MIN;
		else if (f->stays == INT64_MIN)
			f->stays = p->step;
		f->res = fmax(f->res, p->res[CURVE_A] + p->res[CURVE_B]);
	}
	/* One step at the end may be one that a loss scaler skips. */
	if (run == 1 && f->n > 1)
		f->lost = INT64_MIN;
	f->constant[CURVE_A] = f->n > 1 && !varies[CURVE_A];
	f->constant[CURVE_B] = f->n > 1 && !varies[CURVE_B];
}

/* Sizes of the difference of n points with finite values. */
static void
sizes(struct figures *f, const struct acc_point *const *p, size_t n)
{
	double sum = 0, rel = 0, level = 0;
	f->max_abs = f->max_rel = f->late_abs = 0;
	for (size_t i = 0; i < n; i++) {
		double d = fabs(p[i]->v[CURVE_A] - p[i]->v[CURVE_B]);
		double r = acc_curve_relative(p[i]);
		sum += d;
		rel += r;
		level += fabs(p[i]->v[CURVE_B]);
		if (d > f->max_abs || i == 0) {
			f->max_abs = d;
			f->at = p[i]->step;
		}
		f->max_rel = fmax(f->max_rel, r);
		if (i >= n / 2)
			f->late_abs = fmax(f->late_abs, d);
	}
	f->mean_abs = sum / (double)n;
	f->mean_rel = rel / (double)n;
	f->level = level / (double)n;
	if (p[0]->step == f->begin) {
		f->a_begin = p[0]->v[CURVE_A];
		f->b_begin = p[0]->v[CURVE_B];
		f->begin_abs = fabs(f->a_begin - f->b_begin);
		f->begin_rel = acc_curve_relative(p[0]);
	}
}

/* The difference as a series: its trend, its end. */
static void
series(struct figures *f, const struct acc_point *const *p, size_t n, double *room)
{
	double mean = 0, t0 = 0, tx = 0, tt = 0, gap = 0, level = 0;
	size_t tail = n / 10 > 0 ? n / 10 : 1;
	for (size_t i = 0; i < n; i++) {
		double d = p[i]->v[CURVE_A] - p[i]->v[CURVE_B];
		room[i] = d;
		mean += d / (double)n;
		t0 += (double)p[i]->step / (double)n;
		if (i < n - tail)
			continue;
		gap += d;
		level += fabs(p[i]->v[CURVE_B]);
	}
	for (size_t i = 0; i < n; i++) {
		double t = (double)p[i]->step - t0;
		tx += t * (room[i] - mean);
		tt += t * t;
	}
	acc_drift_test(room, n, &f->drift);
	f->drift.offset = mean;
	f->slope = tt > 0 ? tx / tt : NAN;
	f->final = gap / (double)tail;
	f->final_rel = level > 0 ? gap / level : NAN;
	for (size_t i = 0; i < n; i++)
		room[i] = acc_curve_relative(p[i]);
	qsort(room, n, sizeof *room, acc_by_double);
	size_t most = n / 100 < 1 ? 1 : n / 100 > 50 ? 50 : n / 100;
	f->most_rel = n == 1 ? room[0] : room[n - 1 - most];
}

/* From where on does the relative difference keep another level? The noise of a loss shrinks as
 * the loss does. */
static void
change(struct figures *f, const struct acc_point *const *p, size_t n, bool sharp, double *room)
{
	struct acc_change ch;
	for (size_t i = 0; i < n; i++) {
		double b = fabs(p[i]->v[CURVE_B]);
		if (!(b > 1e-3 * f->level))
			return;
		room[i] = (p[i]->v[CURVE_A] - p[i]->v[CURVE_B]) / b;
	}
	if (sharp && acc_change_sharp(room, n, room + n, &ch)) {
		f->parted = p[ch.at]->step;
		f->parted_steps = ch.at < n - ch.at ? ch.at : n - ch.at;
		f->parted_times = ch.times;
		f->parted_even = ch.even;
		f->parted_rel = ch.after;
	}
	acc_change_test(room, n, &ch);
	if (!ch.found)
		return;
	f->change = p[ch.at]->step;
	f->change_rel = ch.after;
	f->change_t = ch.t;
}

/* Is it the bench's curve one step early or late? Some programs print the learning rate of the
 * next step. Only where each step is logged. A loss has noise: a tenth of what it differs by. */
static int
shift(const struct acc_point *const *p, size_t n, bool loss)
{
	size_t ahead = 0, behind = 0, all = 0;
	double same = 0, sum_ahead = 0, sum_behind = 0;
	for (size_t i = 1; i < n; i++) {
		if (p[i]->step - 1 != p[i - 1]->step)
			return 0;
		struct acc_point next = *p[i], before = *p[i];
		next.v[CURVE_A] = p[i - 1]->v[CURVE_A];
		before.v[CURVE_B] = p[i - 1]->v[CURVE_B];
		double da = fabs(next.v[CURVE_A] - next.v[CURVE_B]);
		double db = fabs(before.v[CURVE_A] - before.v[CURVE_B]);
		ahead += da <= resolution(&next) + 1e-6 * fabs(next.v[CURVE_B]);
		behind += db <= resolution(&before) + 1e-6 * fabs(before.v[CURVE_B]);
		same += fabs(p[i]->v[CURVE_A] - p[i]->v[CURVE_B]);
		sum_ahead += da;
		sum_behind += db;
		all++;
	}
	if (all < 3)
		return 0;
	if (loss && all >= 8 && fmin(sum_ahead, sum_behind) < 0.1 * same)
		return sum_ahead < sum_behind ? 1 : -1;
	return ahead == all ? 1 : behind == all ? -1 : 0;
}

static int
measure(struct curve *c, const struct acc_point **p, double *room, struct acc_err *e)
{
	struct figures *f = &c->f;
	size_t n = 0;
	for (int s = 0; s < 2; s++)
		f->interval[s] = interval(c, s, (int64_t *)room);
	walk(c);
	for (size_t i = 0; i < c->n; i++)
		if (acc_curve_finite(&c->p[i]))
			p[n++] = &c->p[i];
	if (n == 0)
		return 0;
	sizes(f, p, n);
	series(f, p, n, room);
	change(f, p, n, c->role != ROLE_LOSS && c->role != ROLE_RATE, room); /* these have rules */
	if ((c->role == ROLE_RATE || c->role == ROLE_LOSS) && f->apart > 0)
		f->shift = shift(p, n, c->role == ROLE_LOSS);
	return acc_curve_spikes(c, p, n, e);
}

/* One rate all along on each side, printed to the same digits: two rates that are equal print
 * alike, so what is printed otherwise differs, be it by one digit ("0.001" and "0.002"). */
static void
held_rate(struct curve *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct acc_point *p = &c->p[i];
		if (p->has != 3 || p->res[CURVE_A] != p->res[CURVE_B] ||
			p->v[CURVE_A] != c->p[0].v[CURVE_A] || p->v[CURVE_B] != c->p[0].v[CURVE_B])
			return;
	}
	for (size_t i = 0; i < c->n && c->n > 1; i++)
		c->p[i].res[CURVE_A] = c->p[i].res[CURVE_B] = 0;
}

int
acc_curve_measure(struct curve *c, struct acc_err *e)
{
	if (c->role == ROLE_LOSS)
		unfilter(c);
	if (c->role == ROLE_RATE)
		held_rate(c);
	c->f = (struct figures){.begin = INT64_MIN,
		.end = INT64_MIN,
		.first = INT64_MIN,
		.beyond = INT64_MIN,
		.odd = INT64_MIN,
		.lost = INT64_MIN,
		.stays = INT64_MIN,
		.at = INT64_MIN,
		.max_abs = NAN,
		.max_rel = NAN,
		.mean_abs = NAN,
		.mean_rel = NAN,
		.most_rel = NAN,
		.late_abs = NAN,
		.begin_abs = NAN,
		.begin_rel = NAN,
		.a_begin = NAN,
		.b_begin = NAN,
		.level = NAN,
		.slope = NAN,
		.change = INT64_MIN,
		.change_rel = NAN,
		.change_t = NAN,
		.parted = INT64_MIN,
		.parted_times = NAN,
		.parted_even = NAN,
		.parted_rel = NAN,
		.final = NAN,
		.final_rel = NAN,
		.nan = {INT64_MIN, INT64_MIN},
		.spike = {INT64_MIN, INT64_MIN},
		.interval = {INT64_MIN, INT64_MIN},
		.drift = {.kind = ACC_DRIFT_UNKNOWN,
			.offset = NAN,
			.offset_p = NAN,
			.offset_se = NAN,
			.trend_p = NAN,
			.phi = NAN,
			.eff = NAN}};
	const struct acc_point **p = malloc((c->n + 1) * sizeof(struct acc_point *));
	double *room = malloc((2 * c->n + 1) * sizeof *room);
	int rc = p == NULL || room == NULL ? acc_nomem(e) : measure(c, p, room, e);
	free(p);
	free(room);
	return rc;
}
