/* Local norms of which one side prints the squares, as the guide's patch of Megatron does, and the other the norms:
 * told by their values, in rising order, which the root does not change. The norms are squared, since the limits of
 * local norms are those of squares. */
#include "curve/curve.h"
#include "acc/say.h"
#include "curve/limits.h"

#include <math.h>
#include <stdlib.h>

static bool
agree(double a, double b)
{
	return fabs(a - b) <= LIMIT_SQUARE_ALIKE * fmax(a, b);
}

/* The values of a side's first step that are above 0. */
static size_t
gather(const struct curve_set *s, int side, double *v)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct acc_point *p = NULL;
		const struct curve *c = &s->c[i];
		for (size_t k = 0; k < c->n && c->role == ROLE_LOCAL; k++)
			if (c->p[k].has & 1U << side && (p == NULL || c->p[k].step < p->step))
				p = &c->p[k];
		if (p != NULL && p->v[side] > 0 && isfinite(p->v[side]))
			v[n++] = p->v[side];
	}
	qsort(v, n, sizeof *v, acc_by_double);
	return n;
}

static double
power(double x, bool square)
{
	return square ? x * x : x;
}

/* How many of a, or their squares, are among those of b, each once: one that is wrong moves no other. */
static size_t
matched(const double *a, bool square_a, const double *b, bool square_b, size_t n)
{
	size_t found = 0;
	for (size_t i = 0, k = 0; i < n && k < n;) {
		const double x = power(a[i], square_a), y = power(b[k], square_b);
		if (agree(x, y))
			i++, k++, found++;
		else if (x < y)
			i++;
		else
			k++;
	}
	return found;
}

/* The side whose numbers are norms where the other's are squares; -1: none is. */
static int
rooted(const double *a, const double *b, size_t n)
{
	const size_t same = matched(a, false, b, false, n);
	const size_t squares[2] = {matched(a, true, b, false, n), matched(a, false, b, true, n)};
	const int side = squares[1] > squares[0];
	return 2 * squares[side] > n && same < squares[side] ? side : -1;
}

int
acc_curve_square(struct acc_curves *cs, struct acc_err *e)
{
	static const char *const names[] = {"device", "bench"};
	struct curve_set *s = &cs->set[0];
	double *v = malloc((2 * s->n + 1) * sizeof *v);
	if (v == NULL)
		return acc_nomem(e);
	const size_t n = gather(s, CURVE_A, v);
	const int side = gather(s, CURVE_B, v + s->n) != n || n < LIMIT_SQUARES
				 ? -1
				 : rooted(v, v + s->n, n);
	free(v);
	if (side < 0)
		return 0;
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->c[i].n && s->c[i].role == ROLE_LOCAL; k++)
			s->c[i].p[k].v[side] *= s->c[i].p[k].v[side];
	struct remark *m = acc_curve_say(cs, "warning", e);
	if (m == NULL)
		return ACC_ENOMEM;
	m->text = acc_say(&cs->mem,
		"the local norms of the %s are the squares of the %s's, as the guide's patch prints them: these"
		" are squared, too, and compared as squares",
		names[1 - side], names[side]);
	return m->text == NULL ? acc_nomem(e) : 0;
}
