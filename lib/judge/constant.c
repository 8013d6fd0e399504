/* Where nothing differs in a bit, a number that no op call made and that differs is computed, or
 * written down, otherwise on the two sides: a table of frequencies, a scale, an epsilon. It may
 * change little of what is recorded, and is within the limits of operators, which allow for
 * rounding; but nothing was rounded before it. */
#include "judge/first_bad.h"
#include "acc/say.h"

#include <math.h>

#include "judge/case.h"

/* What only a rounding of the number itself leaves. */
static double
allowed(const struct acc_item *it)
{
	if (it->kind == ACC_ITEM_ARG)
		return LIMIT_WEIGHT_FLOOR * acc_unit(ACC_F32);
	double unit = fmax(acc_unit((enum acc_dtype)it->dtype[ACC_A]),
		acc_unit((enum acc_dtype)it->dtype[ACC_B]));
	double floor = (acc_unit_low(unit) ? LIMIT_WEIGHT_FLOOR_16 : LIMIT_WEIGHT_FLOOR) * unit;
	return it->measure == ACC_BY_STAT ? floor + acc_statistic_rounding(unit) : floor;
}

/* Was this input of a forward call given by nobody who was recorded? Nothing that differs was made
 * before, so that what differs was not made by an op call of which both sides have a record. */
static bool
is_constant(const struct acc_case *c, const struct acc_item *it)
{
	const struct acc_call *k = &c->call[it->call];
	for (const struct acc_item *m = c->item; m < it; m++)
		if (it->id[ACC_B] != 0 && m->id[ACC_B] == it->id[ACC_B] && acc_is_output(m))
			return false;
	return acc_is_input(it) && it->sides == 3 && !it->loose && k->keyed && !k->backward &&
	       !k->grad && k->key[ACC_A] != NULL && k->key[ACC_B] != NULL && isfinite(it->rms) &&
	       !it->exact && it->measure != ACC_BY_SUM;
}

/* The first record that differs at all, in the order of execution; ACC_NOCALL: none, or something
 * before it is of one side only or was not measured, and may have made it. */
static uint32_t
first_unequal(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if ((it->kind != ACC_ITEM_TENSOR && it->kind != ACC_ITEM_ARG) ||
			it->call == ACC_NOCALL)
			continue;
		bool measured = it->measure != ACC_UNMEASURED && it->sides == 3;
		if (measured && it->rms > 0)
			return i;
		if (!measured && it->kind == ACC_ITEM_TENSOR && acc_is_output(it))
			return ACC_NOCALL;
	}
	return ACC_NOCALL;
}

static const char *
how_much(struct acc_case *c, const struct acc_item *it, const struct acc_rec *r)
{
	double a, b;
	if (it->kind == ACC_ITEM_ARG && acc_as_f64(acc_get(r, "a.", "value"), &a) &&
		acc_as_f64(acc_get(r, "b.", "value"), &b)) {
		char ta[40], tb[40];
		acc_f64_repr(a, ta, sizeof ta);
		acc_f64_repr(b, tb, sizeof tb);
		return acc_say(&c->mem, "is %s on the device and %s on the bench", ta, tb);
	}
	return acc_say(&c->mem, "differs by %.2g of the bench's values", it->rms);
}

int
acc_say_constant(struct scan *s, uint32_t said, struct acc_err *e)
{
	struct acc_case *c = s->c;
	uint32_t i = c->by_names ? ACC_NOCALL : first_unequal(c);
	if (i == ACC_NOCALL || i == said || !is_constant(c, &c->item[i]) ||
		!(c->item[i].rms > allowed(&c->item[i])))
		return 0;
	struct acc_item *it = &c->item[i];
	const struct acc_call *k = &c->call[it->call];
	/* Weights of which most differ are of another step, not of another constant. */
	if (it->weight && s->weights > 0)
		return 0;
	/* Nor does it where two runs of the bench differ by as much. */
	if (it->noise_rms * s->noise >= it->rms)
		return 0;
	struct acc_rec *r;
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	if (src == NULL || where == NULL)
		return e->code == 0 ? acc_nomem(e) : e->code;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_other_constant, "warning",
		"constant", e);
	if (f == NULL)
		return e->code;
	const char *place = acc_say_position(c, r, it), *much = how_much(c, it, r);
	struct acc_str pos = acc_get_text(r, "a.", "pos");
	if (place == NULL || much == NULL)
		return acc_nomem(e);
	acc_finding_of(f, k);
	f->io = acc_say_io(it);
	f->pos = acc_arena_copy(&c->mem, pos.p, pos.n);
	f->value = it->rms;
	f->limit = allowed(it);
	f->limit_from = "nothing before it differs";
	f->stack = stack;
	f->text = acc_say(&c->mem,
		"%s%s: %s %s%s; it is the first difference, and no op call that was compared makes it: "
		"is a constant defined differently?%s%s",
		where, f->name, place, much, acc_got(acc_beyond(&c->mem, f->value, f->limit, NAN)),
		src[0] != '\0' ? " at " : "", src);
	const char **why = acc_alloc(&c->mem, sizeof *why);
	if (f->pos == NULL || f->text == NULL || why == NULL)
		return acc_nomem(e);
	*why = f->text;
	const struct acc_verdict v = {.level = "warning",
		.rule = f->rule,
		.limit_from = f->limit_from,
		.value = f->value,
		.limit = f->limit,
		.why = why,
		.nwhy = 1};
	return it->mark != 0 ? 0 : acc_case_mark(c, it, &v, e);
}
