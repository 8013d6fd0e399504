/* Kernels of another framework have all their arguments, a function only those that it was called with: what
 * is not given is what the function takes then. */
#include "acc/default.h"
#include "acc/replay.h"
#include "acc/say.h"
#include "judge/accept.h"
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

/* Is a value of the device's this one, which is said to be an axis, or not? Axes are counted from either end. */
static bool
is_same(double x, double y, bool axis, uint32_t ndim)
{
	x += axis && x < 0 ? ndim : 0;
	y += axis && y < 0 ? ndim : 0;
	return fabs(x - y) <= 0x1p-23 * fabs(y);
}

static bool
is_axis(struct acc_str name)
{
	return acc_word_in("dim dims axis", name);
}

/* Axes of the first tensor that goes into the device's call; 0: not known, or < 0. */
static int
axes(struct scan *s, uint32_t call)
{
	const struct acc_call *k = &s->c->call[call];
	struct acc_rec *r;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &s->c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it))
			continue;
		const int rc = acc_case_record(s->c, it, &r, s->e);
		if (rc < 0)
			return rc;
		const struct acc_val *v = acc_get(r, "a.", "shape");
		v = v == NULL ? acc_get(r, "b.", "shape") : v;
		if (v != NULL && v->type == ACC_V_INTS)
			return (int)v->n;
	}
	return 0;
}

int
acc_same_axis(struct scan *s, uint32_t call, const struct acc_item *arg)
{
	struct acc_rec *r;
	if (acc_case_record(s->c, arg, &r, s->e) < 0)
		return s->e->code;
	if (!is_axis(acc_default_name(acc_get_text(r, "b.", "op"), acc_get_text(r, "b.", "pos"))))
		return 0;
	const int ndim = axes(s, call);
	if (ndim < 0 || acc_case_record(s->c, arg, &r, s->e) < 0)
		return s->e->code;
	return is_same(number_of(acc_get(r, "a.", "value")), number_of(acc_get(r, "b.", "value")),
		true, (uint32_t)ndim);
}

/* Are these two names of one argument of the operator? */
static bool
is_alias(struct acc_str op, struct acc_str x, struct acc_str y)
{
	return acc_str_eq(acc_default_name(op, x), acc_default_name(op, y));
}

/* What torch has where the argument of this name is not given; empty: not known. */
static struct acc_str
usual_of(struct acc_str op, struct acc_str name)
{
	const struct acc_op_info *o = acc_op_info_of(op);
	const struct acc_default *d;
	for (size_t i = 0; o != NULL && (d = acc_default_at(i)) != NULL &&
			   strcmp(d->framework, "pytorch") == 0;
		i++)
		if (acc_word_in(d->ops, acc_op_own_name(o)) && is_alias(op, acc_str(d->name), name))
			return acc_str(d->value);
	return (struct acc_str){"", 0};
}

bool
acc_is_usual(struct acc_str op, struct acc_str pos, const struct acc_val *v)
{
	const struct acc_str usual = usual_of(op, acc_default_name(op, pos));
	return v != NULL && usual.n > 0 && acc_default_is(v, usual);
}

/* What the bench alone gives of the call: by this name, 1 with *value; else whether it gives this number by another
 * name, or at a place. 1, 0, or < 0. */
static int
bench_gives(struct scan *s, uint32_t call, struct acc_str name, double x,
	const struct acc_val **value)
{
	const struct acc_case *c = s->c;
	struct acc_rec *r;
	bool number = false;
	*value = NULL;
	for (uint32_t i = c->call[call].first; i <= c->call[call].last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_ARG || it->sides != 2)
			continue;
		int rc = acc_case_record(s->c, it, &r, s->e);
		if (rc < 0)
			return rc;
		*value = acc_get(r, "b.", "value");
		const struct acc_str op = acc_get_text(r, "b.", "op");
		if (is_alias(op, acc_default_name(op, acc_get_text(r, "b.", "pos")), name) &&
			!isnan(number_of(*value)))
			return 1;
		number |= number_of(*value) == x;
	}
	*value = NULL;
	return number;
}

int
acc_bench_argument(struct scan *s, uint32_t call, const struct acc_rec *device, double *value)
{
	const struct acc_val *v;
	const struct acc_str pos = acc_arena_str(acc_mem(s),
		acc_default_name(acc_get_text(device, "a.", "op"),
			acc_get_text(device, "a.", "pos")));
	const int rc = pos.p == NULL ? acc_nomem(s->e) : bench_gives(s, call, pos, NAN, &v);
	if (rc <= 0 || v == NULL)
		return rc < 0 ? rc : 0;
	*value = number_of(v);
	return 1;
}

int
acc_other_default(struct scan *s, uint32_t call, uint32_t *item)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	const int ndim = axes(s, call);
	if (ndim < 0)
		return ndim;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		const struct acc_val *bench;
		if (it->call != call || it->kind != ACC_ITEM_ARG || !acc_is_input(it) ||
			it->sides != 1)
			continue;
		int rc = acc_case_record(s->c, it, &r, s->e);
		if (rc < 0)
			return rc;
		const struct acc_val *v = acc_get(r, "a.", "value");
		const struct acc_str op = acc_get_text(r, "a.", "op"),
				     name = acc_arena_str(acc_mem(s),
					     acc_default_name(op, acc_get_text(r, "a.", "pos"))),
				     usual = usual_of(op, name);
		const double x = number_of(v);
		const bool other = v != NULL && usual.n > 0 && !acc_default_is(v, usual);
		if (name.p == NULL)
			return acc_nomem(s->e);
		rc = bench_gives(s, call, name, x, &bench);
		if (rc < 0)
			return rc;
		const bool same = bench != NULL &&
				  is_same(x, number_of(bench), is_axis(name), (uint32_t)ndim);
		if (bench != NULL ? isnan(x) || same : rc > 0 || !other)
			continue;
		*item = i;
		return 1;
	}
	return 0;
}

int
acc_judge_defaults(struct scan *s, uint32_t call, double worst)
{
	uint32_t item;
	const int rc = acc_other_default(s, call, &item);
	return rc > 0 ? acc_suspect_argument(s, item, fmin(LIMIT_CERTAIN, worst), INFINITY) : rc;
}

/* What engines call arguments that mean the same of whatever operator, and torch; how much is padded does not. */
static const struct {
	const char *names, *torch;
} spelled[] = {
	{"epsilon variance_epsilon", "eps"},
	{"axis axes dimension dimensions", "dim"},
	{"keepdims keep_dims", "keepdim"},
	{"strides", "stride"},
	{"dilations", "dilation"},
	{"group", "groups"},
	{"kernel_shape", "kernel_size"},
};

struct acc_str
acc_default_name(struct acc_str op, struct acc_str pos)
{
	const struct acc_op *row = acc_op_find(op);
	int64_t at = -1;
	const bool place = acc_str_int(pos, &at);
	/* A word of the signature has all names of one argument, as beta|delta, torch's first. */
	for (const char *p = row == NULL ? "" : row->sig; *p != '\0'; p += strspn(p, " ")) {
		p += *p == '*';
		const struct acc_str first = {p, (uint32_t)strcspn(p, " |:")};
		bool is = place && at-- == 0;
		for (uint32_t n = first.n; !place && !is; n = (uint32_t)strcspn(++p, " |:")) {
			is = acc_str_eq((struct acc_str){p, n}, pos);
			p += n;
			if (*p != '|')
				break;
		}
		if (is)
			return first;
		p += strcspn(p, " ");
	}
	if (place)
		return row == NULL ? pos : (struct acc_str){"", 0};
	for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++)
		if (acc_word_in(spelled[i].names, pos))
			return acc_str(spelled[i].torch);
	return pos;
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
