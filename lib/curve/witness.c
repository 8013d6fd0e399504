/* What a curve alone says of the cause, beyond the step at which it parts. */
#include "curve/curve.h"
#include "curve/limits.h"
#include "acc/say.h"

#include <inttypes.h>
#include <math.h>

enum { PRODUCTS = 4 };

/* "8 x 32, 16 x 16 ..." of a number of terms. */
static const char *
products(struct acc_arena *mem, int64_t n)
{
	const char *s = "";
	int k = 0;
	for (int64_t p = 2; p * p <= n && s != NULL; p++)
		if (n % p == 0 && k++ < PRODUCTS)
			s = acc_arena_printf(mem, "%s%s%" PRId64 " x %" PRId64, s,
				k > 1 ? ", " : "", p, n / p);
	return s;
}

const char *
acc_curve_divisors(struct acc_arena *mem, const struct acc_curve_factor *f)
{
	const double over = f->value >= 1 ? f->value : 1 / f->value, n = round(over);
	/* One more among T: labels that are shifted are one fewer a sequence. */
	const double t = round(over / (over - 1));
	if (over < 2) {
		if (!(t >= 3 && t <= 1 << 20 && fabs(t / (t - 1) / over - 1) <= f->tol) ||
			f->tol * t * t > 0.2)
			return "";
		return acc_say(mem,
			": T/(T-1) of sequences of T = %.0f tokens, counted before the labels are shifted",
			t);
	}
	if (n > 1 << 24 || fabs(n / over - 1) > f->tol)
		return "";
	const char *list = products(mem, (int64_t)n);
	return list == NULL ? NULL
	       : list[0] == '\0'
		       ? acc_say(mem, ": %.0f samples, micro-batches or ranks", n)
		       : acc_say(mem,
				 ": %.0f samples, micro-batches or ranks, or %s of these, or of sequences and their tokens",
				 n, list);
}

/* An evaluation of either side that stands behind the last step that agreed, and not behind `step`. */
static const struct curve *
evaluation(const struct acc_curves *cs, int64_t before, int64_t step, int64_t *at, unsigned *sides)
{
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		if (!acc_curve_evaluates(c->tag) || c->n == 0)
			continue;
		/* The first of each side: one that did no harm acquits the next. */
		int64_t first[2] = {INT64_MIN, INT64_MIN};
		for (size_t k = c->n; k-- > 0;)
			for (int s = 0; s < 2; s++)
				if (c->p[k].has & 1U << s)
					first[s] = c->p[k].step;
		*sides = 0;
		for (int s = 0; s < 2; s++)
			if (first[s] != INT64_MIN && first[s] >= before && first[s] < step) {
				*sides |= 1U << s;
				*at = first[s];
			}
		if (*sides != 0)
			return c;
	}
	return NULL;
}

const char *
acc_curve_behind_evaluation(struct acc_curves *cs, int64_t before, int64_t step)
{
	int64_t at;
	unsigned sides;
	const struct curve *c = evaluation(cs, before, step, &at, &sides);
	if (c == NULL)
		return "";
	return acc_say(&cs->mem,
		". It is the first step behind the first evaluation %s (%s, step %" PRId64
		"): a model that stays in eval mode has no dropout, and evaluation may draw random numbers",
		sides == 3   ? "of both"
		: sides == 1 ? "of the device alone"
			     : "of the bench alone",
		c->tag, at);
}

const char *
acc_curve_by_chance(struct acc_arena *mem, const struct curve *c)
{
	const struct figures *f = &c->f;
	if (f->first != f->begin ||
		!(f->b_begin >= LIMIT_LEAST_WORDS && f->b_begin <= LIMIT_MOST_WORDS))
		return "";
	return acc_say(mem,
		". But a model that has learnt nothing has a loss near ln V whatever it is given, here of about %.3g words: "
		"that the first losses agree does not mean that the batches do. Compare seeds and the order of the data first",
		exp(f->b_begin));
}

/* Is the rate of side `fast` at each step n the other's at k n + o (behaviour keras-accumulation-counts)? How many
 * distinct rates say so; 0: it is not. */
static size_t
every(const struct curve *c, int fast, int64_t k, int64_t o)
{
	enum { ENOUGH = 16 };
	double last = NAN;
	size_t n = 0;
	for (size_t i = 0; i < c->n && n < ENOUGH; i++) {
		const struct acc_point *p = &c->p[i], *q;
		if (p->step < INT64_MIN / 256 || p->step > INT64_MAX / 256)
			return 0;
		q = acc_curve_at(c, k * p->step + o);
		if ((p->has & 1U << fast) == 0 || q == NULL || (q->has & 1U << (1 - fast)) == 0)
			continue;
		const double v = p->v[fast], w = q->v[1 - fast];
		/* As logs print them. */
		if (!(fabs(v - w) <= 1e-6 * fabs(w)))
			return 0;
		n += v != last;
		last = v;
	}
	return n;
}

const char *
acc_curve_squeezed(struct acc_arena *mem, const struct curve *rate)
{
	enum { MOST = 64, LEAST = 5 };
	for (int64_t k = 2; k <= MOST; k++)
		for (int64_t o = 1 - k; o < k; o++)
			for (int fast = 0; fast < 2; fast++)
				if (every(rate, fast, k, o) >= LEAST)
					return acc_say(mem,
						". The %s's goes %" PRId64
						" times as fast as the %s's: its schedule counts micro-batches of"
						" gradient accumulation, or ranks, where the other's counts updates",
						fast == CURVE_A ? "device" : "bench", k,
						fast == CURVE_A ? "bench" : "device");
	return "";
}
