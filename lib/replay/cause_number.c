/* Causes found by trying, of arguments that are numbers: what is usual, and what fits best. */
#include "acc/default.h"
#include "acc/say.h"
#include "replay/cause.h"
#include "replay/compose.h"
#include "replay/limits.h"

#include <stdio.h>
#include <stdlib.h>

const double *
acc_usual_values(const char *name, size_t *n)
{
#define USUAL(name, where, ...) \
	{name, sizeof((double[]){__VA_ARGS__}) / sizeof(double), {__VA_ARGS__}},
	static const struct {
		const char *name;
		size_t n;
		double value[8];
	} rows[] = {AUDIT_USUAL(USUAL)};
#undef USUAL
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, name) == 0) {
			*n = rows[i].n;
			return rows[i].value;
		}
	*n = 0;
	return NULL;
}

double
acc_try_usual(const struct attempt *a, const char *name)
{
	size_t n;
	const double *v = acc_usual_values(name, &n);
	for (size_t i = 0; acc_try_has(&a->t->r, name) && i < n; i++)
		if (acc_try_number(a, name, v[i]))
			return v[i];
	return NAN;
}

/* A number as it is written, if with it the call gives what was recorded: of few elements, which much may explain, of
 * one digit. */
static const char *
written(const struct attempt *a, const char *name, double x)
{
	char text[24];
	snprintf(text, sizeof text, a->rec->n < LIMIT_FACTOR_ELEMENTS ? "%.1g" : "%.3g", x);
	x = strtod(text, NULL);
	return acc_try_number(a, name, x) ? acc_say(a->t->r.mem, "as if %s were %g", name, x)
					  : NULL;
}

const char *
acc_try_solved(const struct attempt *a, const char *name)
{
	double x = 0, over = 0, under = 0;
	if (!acc_try_has(&a->t->r, name) || acc_arg_float(&a->t->r, name, &x) < 0)
		return NULL;
	const double h = x != 0 ? x : 0.01;
	const struct acc_value more = acc_named(name, acc_of_float(x + h));
	const double *v = acc_try_with(a, &more, 1);
	for (size_t i = 0; v != NULL && i < a->rec->n; i++) {
		over += (a->rec->v[i] - a->ref[i]) * (v[i] - a->ref[i]);
		under += (v[i] - a->ref[i]) * (v[i] - a->ref[i]);
	}
	return under > 0 ? written(a, name, x + h * over / under) : NULL;
}

/* What is left of the error with 10 to this power. */
static double
left(const struct attempt *a, const char *name, double power)
{
	const struct acc_value x = acc_named(name, acc_of_float(pow(10, power)));
	const double *v = acc_try_with(a, &x, 1);
	return v == NULL ? INFINITY : acc_residue(a->rec, v, 1, NULL);
}

/* By the golden section of its logarithm, next to the best of some that lie evenly. */
static const char *
searched(const struct attempt *a, const char *name, double usual)
{
	enum { MOST = 1 << 14, DECADES = 4, EACH = 4, ROUNDS = 30 };
	const double golden = (sqrt(5) - 1) / 2;
	double x = usual, best = INFINITY, at = 0;
	if (a->rec->n > MOST || acc_arg_float(&a->t->r, name, &x) < 0 || !(x > 0))
		return NULL;
	for (int i = -DECADES * EACH; i <= DECADES * EACH; i++) {
		const double p = log10(x) + (double)i / EACH, d = left(a, name, p);
		at = d < best ? p : at;
		best = fmin(best, d);
	}
	double lo = at - 1.0 / EACH, hi = at + 1.0 / EACH;
	for (int i = 0; i < ROUNDS && isfinite(best); i++) {
		const double p = hi - golden * (hi - lo), q = lo + golden * (hi - lo);
		if (left(a, name, p) < left(a, name, q))
			hi = q;
		else
			lo = p;
	}
	return isfinite(best) ? written(a, name, pow(10, (lo + hi) / 2)) : NULL;
}

const char *
acc_cause_number(const struct attempt *a)
{
	const char *s = NULL;
	const struct acc_default *d;
	for (size_t i = 0; s == NULL && (d = acc_default_at(i)) != NULL &&
			   strcmp(d->framework, "pytorch") == 0;
		i++) {
		char *end;
		const double usual = strtod(d->value, &end);
		if (*end != '\0' || strpbrk(d->value, ".e") == NULL ||
			!acc_try_is(&a->t->r, d->ops) || !acc_try_has(&a->t->r, d->name))
			continue;
		s = acc_try_solved(a, d->name);
		if (s == NULL)
			s = searched(a, d->name, usual);
	}
	return s;
}
