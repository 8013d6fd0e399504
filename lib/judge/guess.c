/* Of two programs, which pairs are a guess: what differs there may be two things. */
#include "judge/first_bad.h"

#include <math.h>
#include <string.h>

#include "acc/stat.h"
#include "judge/case.h"

/* Does a call give as many numbers as on the bench? Else its arguments may be others, and what follows, too. */
static bool
gives_other_shape(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && c->item[i].sides == 3 &&
			acc_is_output(&c->item[i]) && acc_other_shape(&c->item[i]))
			return true;
	return false;
}

/* Is it no guess, of two programs, that this is a pair? What both sides gave the call agrees. What nobody made on
 * one side may be made on the other. */
bool
acc_is_sure(const struct scan *s, const struct suspect *x)
{
	const struct acc_item *it = &s->c->item[x->item];
	const double u = fmax(acc_item_unit(it), acc_call_unit(s->c, &s->c->call[x->call]));
	if (x->role == ROLE_ARG)
		return (acc_given_alike(s->c, x->call) || acc_differs_by_itself(s, x->call)) &&
		       !acc_unit_low(s->unit);
	/* Integers that another operator puts in another order may choose the same. */
	return x->role == ROLE_OUT && !x->unseen && !x->inner && !(it->exact && it->loose) &&
	       (x->cause <= LIMIT_SAME_INPUT * u ||
		       (acc_acquitted(it) && acc_is_other_answer(s, it, x)));
}

/* Does something that is compared come behind a call in its step, but for gradients? */
static bool
goes_on(const struct acc_case *c, uint32_t call)
{
	enum { REACH = 1 << 12 };
	for (uint32_t i = call + 1; i < c->ncall && i - call < REACH; i++) {
		const struct acc_call *k = &c->call[i];
		if (k->segment != c->call[call].segment)
			return false;
		for (uint32_t j = k->first; j <= k->last && !k->backward && !k->grad; j++)
			if (c->item[j].call == i && c->item[j].kind == ACC_ITEM_TENSOR &&
				acc_is_output(&c->item[j]) && acc_is_measured(&c->item[j]))
				return true;
	}
	return false;
}

/* Has one side the other's floats with the other sign, as its statistics say? Places count from somewhere. */
static bool
is_negative(const struct scan *s, const struct acc_item *it)
{
	double a[ACC_STATS], b[ACC_STATS], apart[ACC_STATS];
	struct acc_rec *r;
	if (it->sides != 3 || it->exact || acc_case_record(s->c, it, &r, NULL) < 0)
		return false;
	acc_stat_read(r, "a.", ACC_STAT_MEASURED, a);
	acc_stat_read(r, "b.", ACC_STAT_MEASURED, b);
	const double minus[ACC_STATS] = {[ACC_STAT_MAX] = -a[ACC_STAT_MIN],
		[ACC_STAT_MIN] = -a[ACC_STAT_MAX],
		[ACC_STAT_MEAN] = -a[ACC_STAT_MEAN],
		[ACC_STAT_NORM] = a[ACC_STAT_NORM]};
	acc_stat_apart(minus, b, (double)it->count, apart);
	double worst = 0;
	for (int i = 0; i < ACC_STATS; i++)
		worst = apart[i] <= worst ? worst : apart[i]; /* NAN is no small one */
	const double u = acc_item_unit(it);
	return worst <= (acc_unit_low(u) ? LIMIT_PART_U_16 : LIMIT_PART_U) * u;
}

/* Did the forward call of a backward one take one tensor twice, as attention(x, x, x)? What one framework gives as the
 * gradient of each, another adds up. */
static bool
takes_twice(const struct scan *s, const struct acc_call *k)
{
	const struct acc_case *c = s->c;
	const uint32_t v = k->backward ? acc_ids_get(&s->twin, k->twin) : ACC_NOID;
	const struct acc_call *f = v == ACC_NOID ? NULL : &c->call[v];
	if (f == NULL || f->segment != k->segment)
		return false;
	for (uint32_t i = f->first; i <= f->last; i++)
		for (uint32_t j = i + 1; j <= f->last; j++)
			for (int side = 0; side < 2; side++)
				if (c->item[i].call == v && c->item[j].call == v &&
					acc_is_input(&c->item[i]) && acc_is_input(&c->item[j]) &&
					c->item[i].count > 1 && c->item[i].id[side] != 0 &&
					c->item[i].id[side] == c->item[j].id[side])
					return true;
	return false;
}

/* Do both sides call one optimizer, whose weights (0.i) agree place by place? */
static bool
steps_the_same(const struct scan *s, uint32_t call)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	uint32_t weights = 0;
	if (k->key[ACC_A] == NULL || k->key[ACC_B] == NULL || !acc_call_steps(k) ||
		strcmp(k->key[ACC_A], k->key[ACC_B]) != 0)
		return false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it))
			continue;
		if (!acc_is_measured(it) || acc_other_shape(it) ||
			acc_case_record(c, it, &r, NULL) < 0)
			return false;
		if (!acc_str_starts(acc_get_text(r, "a.", "pos"), "0.") ||
			!acc_str_starts(acc_get_text(r, "b.", "pos"), "0."))
			break;
		if (!(it->rms <= LIMIT_SAME_INPUT * acc_item_unit(it)))
			return false;
		weights++;
	}
	return weights > 0;
}

/* Then a gradient is that of the weight at its place, unless its values are those of another on the bench. */
static bool
is_gradient_there(const struct scan *s, const struct suspect *x)
{
	const struct acc_call *k = &s->c->call[x->call];
	const struct acc_item *of = &s->c->item[x->item], *it;
	if (x->role != ROLE_IN || !steps_the_same(s, x->call))
		return false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		it = &s->c->item[i];
		if (it->call == x->call && it->id[ACC_B] != 0 && it->id[ACC_B] == of->id[ACC_A])
			return false;
	}
	return true;
}

/* Of two programs much is paired by guess. What agrees again behind a call says that it is right; a weight may
 * lie in another order; and of what one side alone calls, or a gradient that was not compared where it was made,
 * nothing says that it is the other's. */
bool
acc_is_guess(const struct scan *s, const struct suspect *x)
{
	const struct acc_case *c = s->c;
	if (x->role == ROLE_OUT && takes_twice(s, &c->call[x->call]) && !x->audit)
		return true;
	/* Statistics show little of what a few elements are. */
	if (c->item[x->item].measure == ACC_BY_STAT)
		return false;
	/* A minus may be taken earlier, or later. */
	if (s->cleared != NULL && (s->cleared[x->call] || s->cleared[x->blame]) &&
		(!acc_is_sure(s, x) || (x->role == ROLE_OUT && acc_acquitted(&c->item[x->item]) &&
					       is_negative(s, &c->item[x->item]))))
		return true;
	if (x->role == ROLE_IN && (c->item[x->item].ordered || x->value <= x->limit))
		return true;
	/* Single numbers are a pair by their value alone, unless the pass ends in them: those that other operators give,
	 * and those that a call takes which was not paired by what is around it. */
	if ((x->role == ROLE_OUT ? c->item[x->item].loose
				 : x->role == ROLE_IN && c->item[x->item].guessed) &&
		c->item[x->item].count == 1 && goes_on(c, x->call))
		return true;
	if (is_gradient_there(s, x))
		return false;
	/* Of an optimizer that is written out, many tensors are alike: it is compared by the weights that it gives. */
	if (acc_call_steps(&c->call[x->call]) &&
		(x->role == ROLE_IN || (x->role == ROLE_OUT && x->unseen && c->opt.where != NULL &&
					       c->opt.roots != NULL)))
		return true;
	/* But an optimizer's number is what it is, though of its lists one side has a kernel for each. */
	if ((x->role == ROLE_IN || (x->role == ROLE_ARG && !acc_call_steps(&c->call[x->call]))) &&
		c->call[x->call].writes && !acc_given_alike(c, x->call))
		return true;
	if (acc_is_sure(s, x))
		return false;
	return x->role == ROLE_ARG && gives_other_shape(c, x->call);
}
