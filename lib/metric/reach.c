/* Are two tensors, of which one is quantized at least, the same but for the rounding of its format? Each
 * difference is measured by how far that may have moved the element. */
#include "metric/measurer.h"

#include <math.h>
#include <stdlib.h>

#include "io/quant.h"

/* Both sides, and of each that is quantized how far. */
enum { SIDES = 2, ALL = 2 * SIDES };
/* Of a sum of independent differences, standard errors that are chance: of 10,000,000 sums one is beyond 5.4. */
enum { ERRORS = 6 };

static bool
is_quantized(const struct side *s)
{
	return s->payload && (acc_quant_of(s->ref.enc) != NULL || acc_is_made(s->ref.enc));
}

struct walk {
	struct acc_pay *pay[ALL];
	uint8_t *raw;
	double *value[ALL];
	enum acc_dtype dtype[ALL];
};

/* --- levels that the values tell --- */

/* Formats have one scale for 32 numbers of a row, or for more. */
enum { BLOCK = ACC_LEVELS_BLOCK, LEVELS = 255 };

double
acc_levels_step(const double *v)
{
	const double near = 0x1p-12; /* a level, and the quotient by the largest, in f32 */
	double top = 0;
	for (int i = 0; i < BLOCK; i++)
		top = isfinite(v[i]) ? fmax(top, fabs(v[i])) : INFINITY;
	for (int n = 1; n <= LEVELS && top > 0 && top < INFINITY; n++) {
		int i = 0;
		while (i < BLOCK && fabs(v[i] / top * n - rint(v[i] / top * n)) <= near)
			i++;
		if (i == BLOCK)
			return top / n;
	}
	return top == 0 ? 0 : -1;
}

/* May it be a weight of an operator that one side has in few levels, in a format of its own? */
static bool
may_tell(const struct slot *s)
{
	const struct side *const sides[SIDES] = {&s->a, &s->b};
	const struct acc_str io = acc_get_text(&s->rec, "b.", "io"),
			     pos = acc_get_text(&s->rec, "b.", "pos");
	for (int i = 0; i < SIDES; i++)
		if (!sides[i]->payload || sides[i]->ref.ndim < 2 ||
			acc_dtype_of(sides[i]->ref.dtype)->cls != 'F' ||
			sides[i]->ref.shape[sides[i]->ref.ndim - 1] % BLOCK != 0)
			return false;
	return acc_str_is(io, "param") || (acc_str_is(io, "in") && !acc_str_is(pos, "0"));
}

/* As of a format that is named, where the values of one side tell a step: false: they tell none. */
static bool
add_told(struct reach *r, const struct walk *w, size_t n, int *told)
{
	for (size_t at = 0; at + BLOCK <= n; at += BLOCK) {
		double step = *told < 0 ? -1 : acc_levels_step(w->value[*told] + at);
		for (int k = 0; k < SIDES && *told < 0; k++) {
			step = acc_levels_step(w->value[k] + at);
			*told = step > 0 ? k : -1;
		}
		if (step < 0)
			return false;
		if (*told < 0) /* zeros on both sides, which tell nothing */
			continue;
		for (size_t i = at; i < at + BLOCK; i++) {
			const double v = w->value[*told][i], b = w->value[!*told][i], d = v - b;
			/* The scale is rounded to 16 bits. */
			const double x = d == 0 ? 0 : fabs(d) / (step + 0x1p-11 * fabs(v));
			r->max = x > r->max || isnan(x) ? x : r->max;
			r->sum += x * x;
			r->cross += d * b;
			r->values += b * b;
			r->square += d * d;
			r->noise += d * d * b * b;
		}
	}
	r->n += (double)n;
	return true;
}

bool
acc_reach_due(const struct slot *s, const struct acc_reading *got)
{
	return got->has_two && got->two.same < got->two.n &&
	       (is_quantized(&s->a) || is_quantized(&s->b) || may_tell(s));
}

static int
open_walk(struct walk *w, const struct acc_measurer *m, const struct side *const side[SIDES],
	struct acc_err *const err[SIDES])
{
	w->raw = malloc((size_t)ACC_CHUNK * 16);
	for (int i = 0; i < ALL; i++) {
		const struct side *s = side[i % SIDES];
		struct acc_err *e = err[i % SIDES];
		struct acc_ref ref = s->ref;
		if (i >= SIDES && !is_quantized(s))
			continue;
		ref.reach = i >= SIDES;
		ref.has_crc = false;
		ref.parts.crc32 = NULL;
		w->dtype[i] = ref.dtype;
		w->pay[i] = acc_pay_open(m->roots, s->src, &ref, e);
		w->value[i] = malloc(ACC_CHUNK * sizeof(double));
		if (w->pay[i] != NULL && (w->raw == NULL || w->value[i] == NULL))
			acc_nomem(e);
		if (e->code < 0)
			return e->code;
	}
	return 0;
}

static void
add(struct reach *r, const struct walk *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double far = 0;
		for (int k = 0; k < SIDES; k++)
			far += w->pay[SIDES + k] != NULL
				       ? w->value[SIDES + k][i]
				       : acc_dtype_of(w->dtype[k])->eps / 2 * fabs(w->value[k][i]);
		const double d = fabs(w->value[0][i] - w->value[1][i]);
		const double x = d == 0 ? 0 : d / far;
		r->max = x > r->max || isnan(x) ? x : r->max;
		r->sum += x * x;
		const int plain = w->pay[SIDES + 1] == NULL;
		const double b = w->value[plain][i], e = w->value[!plain][i] - b;
		r->cross += e * b;
		r->values += b * b;
		r->square += e * e;
		r->noise += e * e * b * b;
	}
	r->n += (double)n;
}

int
acc_reach_measure(const struct acc_measurer *m, struct slot *s, struct acc_err *ea,
	struct acc_err *eb)
{
	const struct side *const side[SIDES] = {&s->a, &s->b};
	struct acc_err *const err[SIDES] = {ea, eb};
	struct walk w = {.raw = NULL};
	int rc = open_walk(&w, m, side, err);
	const uint64_t n = rc == 0 ? acc_pay_count(w.pay[0]) : 0;
	const bool named = is_quantized(&s->a) || is_quantized(&s->b);
	int told = -1;
	s->reach = (struct reach){.is = true};
	for (uint64_t at = 0; at < n && rc == 0 && s->reach.is; at += ACC_CHUNK) {
		const size_t k = n - at < ACC_CHUNK ? (size_t)(n - at) : ACC_CHUNK;
		for (int i = 0; i < ALL && rc == 0; i++) {
			const void *p;
			if (w.pay[i] == NULL)
				continue;
			rc = acc_pay_read(w.pay[i], at, k, w.raw, &p, err[i % SIDES]);
			if (rc == 0)
				acc_kernel_load(w.dtype[i], p, k, w.value[i]);
		}
		if (rc == 0 && named)
			add(&s->reach, &w, k);
		else if (rc == 0)
			s->reach.is = add_told(&s->reach, &w, k, &told);
	}
	for (int i = 0; i < ALL; i++) {
		acc_pay_close(w.pay[i]);
		free(w.value[i]);
	}
	free(w.raw);
	return rc;
}

int
acc_reach_put(struct acc_rec *r, const struct reach *x)
{
	if (!x->is)
		return 0;
	/* Less what is chance, and what a scale in bf16 rounds by. */
	const double chance = ERRORS * sqrt(x->noise) + acc_dtype_of(ACC_BF16)->eps * x->values,
		     beyond = fabs(x->cross) - chance;
	int rc = acc_add(r, "", "m.reach", acc_f64(x->max));
	if (rc == 0)
		rc = acc_add(r, "", "m.reach.rms", acc_f64(x->n > 0 ? sqrt(x->sum / x->n) : 0));
	return rc < 0 ? rc
		      : acc_add(r, "", "m.reach.along",
				acc_f64(beyond > 0 ? copysign(beyond, x->cross) / x->square : 0));
}
