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
	return (struct acc_range){.unit = unit,
		.own = max,
		.narrow = narrow,
		.sums = max > f32 ? max : f32};
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
