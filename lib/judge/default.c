/* Kernels of another framework have all their arguments, a function only those that it was called with: what
 * is not given is what the function takes then. */
#include "acc/op.h"
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

/* A number, or a truth; NAN: neither. */
static double
number_of(const struct acc_val *v)
{
	double x;
	if (v == NULL)
		return NAN;
	if (v->type == ACC_V_BOOL)
		return v->b;
	return acc_as_f64(v, &x) ? x : NAN;
}

/* Is it the value that a default is written as? */
static bool
is_default(const struct acc_val *v, struct acc_str text)
{
	char buf[24];
	if (v->type == ACC_V_TEXT)
		return acc_str_eq(v->s, text);
	if (v->type == ACC_V_BOOL)
		return v->b == acc_str_is(text, "True");
	snprintf(buf, sizeof buf, "%.*s", ACC_PRS(text));
	const double x = number_of(v), y = strtod(buf, NULL);
	/* One of them may have been rounded to 32 bits. */
	return fabs(x - y) <= 0x1p-23 * fabs(y);
}

/* Does the bench give this value by another name, or at a place? 1, 0, or < 0. */
static int
bench_gives(struct scan *s, uint32_t call, double x)
{
	const struct acc_case *c = s->c;
	struct acc_rec *r;
	for (uint32_t i = c->call[call].first; i <= c->call[call].last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_ARG || it->sides != 2)
			continue;
		int rc = acc_case_record(s->c, it, &r, s->e);
		if (rc < 0)
			return rc;
		if (number_of(acc_get(r, "b.", "value")) == x)
			return 1;
	}
	return 0;
}

int
acc_judge_defaults(struct scan *s, uint32_t call, double worst)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || it->kind != ACC_ITEM_ARG || !acc_is_input(it) ||
			it->sides != 1)
			continue;
		int rc = acc_case_record(s->c, it, &r, s->e);
		if (rc < 0)
			return rc;
		const struct acc_val *v = acc_get(r, "a.", "value");
		struct acc_str usual = acc_op_default(acc_get_text(r, "a.", "op"),
			acc_get_text(r, "a.", "pos"));
		if (v == NULL || usual.n == 0 || is_default(v, usual))
			continue;
		rc = bench_gives(s, call, number_of(v));
		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		return acc_suspect_argument(s, i, fmin(LIMIT_CERTAIN, worst), INFINITY);
	}
	return 0;
}
