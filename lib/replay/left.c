/* What is right beyond the numbers of a dtype, and the elements that a verdict leaves out.
 *
 * A verdict covers what was looked at. Of an element that was not (an input was NaN, a kink lies next to it),
 * the tensor of the other side, where there is one, tells whether it matters: equal there, nothing is left. */
#include "replay/impl.h"

enum acc_fate
acc_fate_of(const struct acc_range *g, double rec, double ref, double abs)
{
	/* What is a right rounding of the largest number, and in 16 bits of the steps before it. */
	const double near = (g->unit > 0x1p-7 ? 0.5 : 8) * g->unit, size = fabs(ref);
	const bool wild = !isfinite(rec);
	if (isnan(ref))
		return isnan(rec) ? ACC_RIGHT : ACC_LEFT;
	/* In f64 it may have overflowed here, and not there, on the way. */
	if (g->own > acc_max_of(ACC_F32) && !isfinite(abs) && rec != ref)
		return ACC_LEFT;
	if (size > g->own * (1 + near)) {
		if (rec == copysign(INFINITY, ref))
			return ACC_RIGHT;
		/* Sums of either sign that overflow on the way give NaN, or the other one. */
		return wild && !((abs - size) / 2 < g->sums / 2) ? ACC_LEFT : ACC_WRONG;
	}
	if (size >= fmin(g->own, g->narrow) * (1 - near) && wild)
		return rec == copysign(INFINITY, ref) ? ACC_RIGHT : ACC_WRONG;
	if (size > g->own && fabs(rec) == g->own)
		return ACC_RIGHT;
	if (wild)
		return abs < g->sums / 4 ? ACC_WRONG : ACC_LEFT;
	return ACC_NUMBER;
}

struct acc_range
acc_range_of(enum acc_dtype own, double unit, double narrow)
{
	const double f32 = acc_max_of(ACC_F32), max = acc_max_of(own);
	return (struct acc_range){.dtype = own,
		.unit = unit,
		.own = max,
		.narrow = narrow,
		.sums = max > f32 ? max : f32};
}

/* --- what a dtype does not hold --- */

static double
low_bytes(int bits, bool sign, double x)
{
	const double all = ldexp(1, bits);
	double m = fmod(trunc(x), all);
	m = m < 0 ? m + all : m;
	return sign && m >= all / 2 ? m - all : m;
}

/* By any library: of a cast, x86 makes the least number of 32 or 64 bits of what these do not hold, and of NaN,
 * and the low bytes of that are 0; others saturate there first. */
static enum acc_fate
whole(const struct acc_range *g, double rec, double ref, double abs)
{
	const bool sign = acc_dtype_of(g->dtype)->cls == 'I';
	const int bits = 8 * (int)acc_dtype_of(g->dtype)->size;
	const double hi = acc_dtype_of(g->dtype)->max, lo = sign ? -ldexp(1, bits - 1) : 0;
	const bool far = !(fabs(ref) < 0x1p31), nan = isnan(ref);
	if (!g->cast && !(fabs(ref) < 0x1p53 && abs < 0x1p53))
		return nan || rec != ref ? ACC_LEFT : ACC_RIGHT; /* no double holds it */
	if (ref > lo - 1 && ref <= hi)
		/* Whole numbers of what is none: each library rounds in its own way. */
		return g->cast || ref == trunc(ref) || fabs(rec - ref) >= 1.5 ? ACC_NUMBER
									      : ACC_RIGHT;
	const bool fits = !nan && (rec == low_bytes(bits, sign, ref) || rec == (ref > 0 ? hi : lo));
	const bool out = g->cast && (far || nan) && (rec == lo || rec == 0);
	/* The largest of 32 or 64 bits has low bytes of its own. */
	const bool top = g->cast &&
			 (nan ? rec == hi : far && ref > 0 && rec == low_bytes(bits, sign, -1));
	return fits || out || top ? ACC_RIGHT : ACC_NUMBER;
}

/* Powers of two alone, of either sign of what goes in. */
static enum acc_fate
power(double rec, double ref)
{
	int e;
	const double size = fabs(ref), most = 0x1p127;
	if (!(ref > 0) || isinf(ref) || size > 1.5 * most) {
		if (isnan(rec) || (size > most && rec == most) || (ref == 0 && rec == 0x1p-127))
			return ACC_RIGHT;
		if (isnan(ref) || size > most)
			return ACC_WRONG;
	}
	const double x = fmax(size, 0x1p-127), up = ldexp(1, (frexp(x, &e), e)), down = up / 2;
	const double middle = 0.75 * up;
	return (rec == down && x <= middle) || (rec == up && x >= middle) ? ACC_RIGHT : ACC_NUMBER;
}

enum acc_fate
acc_fate_beyond(const struct acc_range *g, double rec, double ref, double abs)
{
	const enum acc_dtype t = g->dtype;
	if (acc_dtype_of(t)->cls == 'B')
		return rec == (ref != 0) ? ACC_RIGHT : ACC_NUMBER;
	if (!acc_is_float(t))
		return whole(g, rec, ref, abs);
	if (t == ACC_F8E8M0)
		return power(rec, ref);
	/* Those of 8 bits saturate, or have a NaN in the place of Inf. */
	if (acc_dtype_of(t)->size == 1 && g->cast && fabs(ref) > g->own &&
		(isnan(rec) || rec == copysign(g->own, ref) || rec == copysign(INFINITY, ref)))
		return ACC_RIGHT;
	return acc_fate_of(g, rec, ref, abs);
}

/* --- the other side --- */

static int
start(struct acc_audit_job *j, struct acc_held *h)
{
	struct acc_err e = {0};
	if (h->pay != NULL)
		return 0;
	pthread_mutex_lock(j->reader->lock);
	h->pay = acc_pay_open(j->reader->roots, h->src, &h->ref, &e);
	pthread_mutex_unlock(j->reader->lock);
	return h->pay == NULL ? ACC_EIO : 0;
}

const double *
acc_other_values(struct acc_audit_job *j, struct acc_arena *mem, const struct acc_held *h)
{
	struct acc_held *o = h->other;
	double *v = o == NULL || h->first + h->d.n > o->d.n ? NULL
							    : acc_alloc(mem, h->d.n * sizeof *v);
	if (v == NULL || start(j, o) < 0 || acc_held_read(j, o, h->first, h->d.n, v) < 0)
		return NULL;
	return v;
}

struct acc_sealed *
acc_other_open(struct acc_audit_job *j, const struct acc_held *h)
{
	return h->other == NULL || start(j, h->other) < 0 || !acc_pay_random(h->other->pay)
		       ? NULL
		       : (struct acc_sealed *)(void *)h->other;
}

bool
acc_differs(double unit, double rec, double other)
{
	if (isnan(rec) || isnan(other))
		return isnan(rec) != isnan(other);
	return rec != other && !(fabs(rec - other) <= 8 * unit * fmax(fabs(rec), fabs(other)));
}

void
acc_left_add(struct acc_left *to, const struct acc_left *more)
{
	to->n += more->n;
	to->open += more->open;
}

static int
shut(void *arg, struct acc_held *h)
{
	(void)arg;
	if (h->other != NULL && h->other->pay != NULL) {
		acc_pay_close(h->other->pay);
		h->other->pay = NULL;
	}
	return 0;
}

void
acc_others_shut(struct acc_audit_job *j)
{
	acc_each_tensor(j, shut, NULL);
}
