/* What a record shows and its call did not read, or make. Memory that nobody wrote is no input: it differs from run to
 * run, in what is copied over, in what is left out. */
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"

/* The first of what it was given, as what writes in place writes to. */
static bool
is_first(const struct acc_case *c, uint32_t call, uint32_t i)
{
	uint32_t first = c->call[call].first;
	while (first < i && (c->item[first].call != call || !acc_is_input(&c->item[first])))
		first++;
	return first == i;
}

bool
acc_written_partly(const struct scan *s, uint32_t call, uint32_t i)
{
	return s->c->call[call].partly && is_first(s->c, call, i);
}

bool
acc_left_out(struct scan *s, uint32_t call, uint32_t i, double unit)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	double cause = acc_recent(s, k->backward);
	bool any = false;
	if (!(c->item[i].rms > 0) || (k->cls != ACC_OP_MOVE && !acc_written_partly(s, call, i)))
		return false;
	for (uint32_t n = k->first; n <= k->last; n++)
		if (c->item[n].call == call && n != i && acc_is_input(&c->item[n]) &&
			c->item[n].kind == ACC_ITEM_TENSOR && acc_is_measured(&c->item[n]))
			cause = fmax(cause, acc_cause_of(&c->item[n], false));
	for (uint32_t n = k->first; n <= k->last; n++) {
		const struct acc_item *it = &c->item[n];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_output(it))
			continue;
		const double most = it->exact ? 0
					      : LIMIT_MARGIN * (LIMIT_UNTRACED_FLOOR * unit +
								       LIMIT_UNSEEN_GAIN * cause);
		if (!acc_is_measured(it) || !(it->rms <= most))
			return false;
		any = true;
	}
	return any;
}

/* Is this output on that side the very gradient that came in? */
static bool
is_gradient_itself(const struct acc_case *c, uint32_t call, uint32_t i, int side)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t n = k->first; n <= k->last; n++)
		if (c->item[n].call == call && acc_is_input(&c->item[n]) &&
			c->item[n].id[side] != 0 && c->item[n].id[side] == c->item[i].id[side])
			return true;
	return false;
}

/* A gradient has the shape of what it is of: where that has one shape on both sides, and the gradient has not, it is of
 * something else on one of them. */
static bool
is_other_shape(const struct scan *s, uint32_t call, uint32_t i)
{
	const struct acc_case *c = s->c;
	const uint32_t v = acc_ids_get(&s->twin, c->call[call].twin);
	if (!c->item[i].note_shape || v == ACC_NOID || c->call[v].segment != c->call[call].segment)
		return false;
	for (uint32_t n = c->call[v].first; n <= c->call[v].last; n++)
		if (c->item[n].call == v && c->item[n].kind == ACC_ITEM_TENSOR &&
			(c->item[n].sides != 3 || c->item[n].note_shape))
			return false;
	return true;
}

/* Where two others are, the sides' autograd nodes give their gradients in another order, and the place of one of equal
 * shape says nothing: one sample a class makes the gradients of input and weight alike. */
static bool
in_other_order(const struct scan *s, uint32_t call, uint32_t i)
{
	const struct acc_call *k = &s->c->call[call];
	uint32_t n = 0;
	for (uint32_t o = k->first; o <= k->last; o++)
		n += o != i && s->c->item[o].call == call && acc_is_output(&s->c->item[o]) &&
		     is_other_shape(s, call, o);
	return n >= 2;
}

bool
acc_is_of_view(const struct scan *s, uint32_t call, uint32_t i)
{
	const struct acc_call *k = &s->c->call[call];
	return k->backward && !k->module && k->cls == ACC_OP_CONTRACT && s->c->item[i].count > 1 &&
	       (is_other_shape(s, call, i) || in_other_order(s, call, i) ||
		       is_gradient_itself(s->c, call, i, ACC_A) !=
			       is_gradient_itself(s->c, call, i, ACC_B));
}
