/* Spikes: values far from those around them, on one side alone. */
#include "curve/curve.h"
#include "curve/limits.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOW = 11, LEAST = 11 };

/* The median of the WINDOW values around i (at the ends, of the first or last ones), and how wide
 * the middle half of them is. */
static double
around(const struct acc_point *const *p, size_t n, size_t i, int side, double *middle)
{
	double w[WINDOW];
	size_t lo = i < WINDOW / 2 ? 0 : i - WINDOW / 2;
	if (lo + WINDOW > n)
		lo = n - WINDOW;
	for (size_t k = 0; k < WINDOW; k++) {
		double v = p[lo + k]->v[side];
		size_t at = k;
		for (; at > 0 && w[at - 1] > v; at--)
			w[at] = w[at - 1];
		w[at] = v;
	}
	*middle = w[WINDOW - 1 - WINDOW / 4] - w[WINDOW / 4];
	return w[WINDOW / 2];
}

/* How far each value of a side is from those around it, 0 where these are as far from each other,
 * and how far that usually is. */
static double
distances(const struct acc_point *const *p, size_t n, int side, double *out, double *room)
{
	for (size_t i = 0; i < n; i++) {
		double middle;
		out[i] = p[i]->v[side] - around(p, n, i, side, &middle);
		room[i] = fabs(out[i]);
		if (room[i] <= LIMIT_SPIKE_WIDE * middle)
			out[i] = 0;
	}
	qsort(room, n, sizeof *room, acc_by_double);
	return 1.4826 * room[n / 2];
}

int
acc_curve_spikes(struct curve *c, const struct acc_point *const *p, size_t n, struct acc_err *e)
{
	if (n < LEAST)
		return 0;
	double *far[2] = {malloc(n * sizeof **far), malloc(n * sizeof **far)};
	double *room = malloc(n * sizeof *room), usual[2] = {0, 0}, largest[2] = {0, 0};
	int rc = far[0] == NULL || far[1] == NULL || room == NULL ? acc_nomem(e) : 0;
	for (int s = 0; s < 2 && rc == 0; s++)
		usual[s] = distances(p, n, s, far[s], room);
	for (size_t i = 0; i < n && rc == 0; i++)
		for (int s = 0; s < 2; s++) {
			double d = fabs(far[s][i]);
			if (!acc_curve_beyond(c, p[i]) || d <= LIMIT_SPIKE * usual[s] ||
				d <= 2 * fabs(far[1 - s][i]))
				continue;
			c->f.spikes[s]++;
			if (d > largest[s]) {
				largest[s] = d;
				c->f.spike[s] = p[i]->step;
			}
		}
	free(far[0]);
	free(far[1]);
	free(room);
	return rc;
}
