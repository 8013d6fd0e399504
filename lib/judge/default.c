/* Kernels of another framework have all their arguments, a function only those that it was called with: what
 * is not given is what the function takes then. */
#include "acc/default.h"
#include "acc/replay.h"
#include "acc/say.h"
#include "judge/first_bad.h"

#include <math.h>

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
		if (v == NULL || usual.n == 0 || acc_default_is(v, usual))
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

struct acc_str
acc_default_name(struct acc_str op, struct acc_str pos)
{
	const struct acc_op *row = acc_op_find(op);
	int64_t at;
	if (row == NULL || !acc_str_int(pos, &at))
		return pos;
	const char *p = row->sig;
	for (; at > 0 && *p != '\0'; at--) {
		p += strcspn(p, " ");
		p += strspn(p, " ");
	}
	return (struct acc_str){p, (uint32_t)strcspn(p, " |:")};
}

const char *
acc_say_default(struct scan *s, uint32_t call, struct acc_str op, struct acc_str pos,
	const struct acc_val *value, const char *text, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	static const char *const key[] = {"framework", NULL};
	char src[64] = "", framework[ACC_SAYS];
	struct acc_rec *r;
	for (uint32_t i = k->first; i <= k->last && src[0] == '\0'; i++) {
		if (c->item[i].call != call || (c->item[i].sides & 1) == 0)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return NULL;
		snprintf(src, sizeof src, "%.*s", ACC_PRS(acc_get_text(r, "a.", "src")));
	}
	if (acc_source_says(c, acc_str(src), key, (char *[]){framework}, e) < 0)
		return NULL;
	const struct acc_default *d = acc_default_found(acc_str(framework), op,
		acc_default_name(op, pos), value);
	return d == NULL ? text
			 : acc_say(acc_mem(s), "%s; %s of %s %s has %s by default", text, d->api,
				   d->library, d->version, d->value);
}
