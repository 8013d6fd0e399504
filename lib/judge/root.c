/* What a backward pass begins with: the loss. Two programs of one network have the same one, also where the calls that give it
 * are no pair, as where one side alone adds a term to it, and nothing behind is compared. */
#include "judge/root.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "acc/say.h"
#include "judge/bounds.h"

double
acc_element(struct acc_case *c, uint32_t item, const struct acc_rec *r, int side, struct acc_err *e)
{
	const char *prefix = side == ACC_A ? "a." : "b.";
	const struct acc_val *shape = acc_get(r, prefix, "shape");
	double x = NAN;
	if (shape == NULL || shape->type != ACC_V_INTS || shape->n != 0)
		return NAN;
	if (acc_as_f64(acc_get(r, prefix, "stat.max"), &x) ||
		acc_as_f64(acc_get(r, prefix, "s.max"), &x))
		return x;
	double *v = acc_read_elements(c, item, prefix, 1, 1, e);
	x = v == NULL ? NAN : v[0];
	free(v);
	return x;
}

/* Of a side, in the first step and rank: the forward call that a backward pass begins with, and the number that it gives. */
struct root {
	uint32_t call; /* ACC_NOCALL: there is none */
	double loss;
	uint32_t n; /* backward passes */
};

/* The single number that a call of a side is given, or gives; NAN: it has several tensors, or a larger one. */
static double
only_number(struct acc_case *c, uint32_t call, int side, bool given, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	double x = NAN;
	uint32_t n = 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || it->kind != ACC_ITEM_TENSOR ||
			(it->sides & 1 << side) == 0 || acc_is_input(it) != given)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return NAN;
		x = n++ == 0 ? acc_element(c, i, r, side, e) : NAN;
	}
	return x;
}

/* The forward call of a side's backward call, before it; ACC_NOCALL. */
static uint32_t
forward_of(const struct acc_case *c, uint32_t call, int side)
{
	static const char back[] = ".backward", forward[] = ".forward";
	const char *key = c->call[call].key[side];
	const size_t n = strlen(key);
	if (n < sizeof back || strcmp(key + n - (sizeof back - 1), back) != 0)
		return ACC_NOCALL;
	for (uint32_t i = call; i-- > 0 && c->call[i].segment == c->call[call].segment;) {
		const char *of = c->call[i].key[side];
		if (of != NULL && strlen(of) == n - 1 &&
			memcmp(of, key, n - (sizeof back - 1)) == 0 &&
			strcmp(of + n - (sizeof back - 1), forward) == 0)
			return i;
	}
	return ACC_NOCALL;
}

/* Does a call of a side give a gradient of 1, as that of a sum does? */
static bool
gives_one(struct acc_case *c, uint32_t call, int side, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	bool one = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call == call && it->kind == ACC_ITEM_TENSOR &&
			(it->sides & 1 << side) != 0 && acc_is_output(it) &&
			acc_case_record(c, it, &r, e) == 0)
			one |= acc_element(c, i, r, side, e) == 1;
	}
	return one;
}

/* Backward passes begin with a gradient of 1 that no call before has given; of several, which is whose is not known. */
static int
find(struct acc_case *c, int side, struct root *r, struct acc_err *e)
{
	bool given = false;
	*r = (struct root){.call = ACC_NOCALL, .loss = NAN};
	for (uint32_t i = 0; i < c->ncall && c->call[i].segment == c->call[0].segment; i++) {
		const struct acc_call *k = &c->call[i];
		if (!k->backward || k->module || k->grad || k->key[side] == NULL)
			continue;
		const double seed = given ? NAN : only_number(c, i, side, true, e);
		const uint32_t of = seed == 1 ? forward_of(c, i, side) : ACC_NOCALL;
		given |= gives_one(c, i, side, e);
		if (e->code < 0)
			return e->code;
		if (of == ACC_NOCALL)
			continue;
		r->n++;
		r->call = of;
		r->loss = only_number(c, of, side, false, e);
	}
	return e->code;
}

int
acc_say_root(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct root a, b;
	const double limit = acc_unit_low(s->unit) ? LIMIT_HEALED : LIMIT_PROGRAM_END;
	if (!s->two || find(c, ACC_A, &a, e) < 0 || find(c, ACC_B, &b, e) < 0)
		return e->code;
	const double off = fabs(a.loss - b.loss) / fmax(fabs(a.loss), fabs(b.loss));
	if (a.n != 1 || b.n != 1 || !(off > limit))
		return 0;
	const bool scale = acc_is_loss_scale(a.loss / b.loss, limit);
	const struct acc_call *k = &c->call[a.call];
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	if (src == NULL || where == NULL)
		return acc_nomem(e);
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_program_end,
		scale ? "warning" : "difference", "program", e);
	if (f == NULL)
		return e->code;
	acc_finding_of(f, k);
	f->stack = stack;
	f->bad &= !scale;
	f->doubtful = !f->bad;
	f->value = off;
	f->limit = limit;
	f->text = acc_say(acc_mem(s),
		"%s%s: the backward pass begins with %.6g on the device, which %s gives, and with %.6g on the bench, which %s"
		" gives: another loss%s, though all that was compared before agrees%s%s",
		where, f->name, a.loss, k->key[ACC_A], b.loss, c->call[b.call].key[ACC_B],
		scale ? ", as loss scaling makes it" : "", src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
}
