/* A loss may be summed or averaged otherwise, and what follows makes up for it, as a sum that is divided by the number of
 * tokens of all parts of a batch. Then other numbers go back through what scales it, and the bench's gradient is what the
 * loss hands on. */
#include "judge/first_bad.h"

#include "judge/case.h"

/* The backward call of a call, at or behind it; ACC_NOCALL. */
static uint32_t
backward_of(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = call; i < c->ncall && c->call[i].segment == k->segment; i++)
		if (c->call[i].backward && c->call[i].twin == k->twin)
			return i;
	return ACC_NOCALL;
}

/* Is a backward call given a number that is not the bench's, and what it gives of many numbers is? */
static bool
hands_on_the_same(const struct acc_case *c, uint32_t back, double may)
{
	bool other = false, same = false;
	for (uint32_t i = c->call[back].first; i <= c->call[back].last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != back || it->kind != ACC_ITEM_TENSOR || !acc_is_measured(it))
			continue;
		if (acc_is_input(it))
			other |= it->count == 1 && it->rms > may;
		else if (it->rms > may)
			return false;
		else
			same |= it->count > 1;
	}
	return other && same;
}

/* The backward call that takes what one gives; ACC_NOCALL. */
static uint32_t
taker_of(const struct acc_case *c, uint32_t call, const struct acc_item *out)
{
	enum { NEAR = 64 };
	for (uint32_t i = call + 1; i < c->ncall && i - call <= NEAR; i++) {
		const struct acc_call *k = &c->call[i];
		if (k->segment != c->call[call].segment)
			break;
		for (uint32_t j = k->first; j <= k->last && k->backward; j++)
			if (c->item[j].call == i && acc_is_input(&c->item[j]) &&
				c->item[j].count == 1 && out->id[ACC_A] != 0 &&
				c->item[j].id[ACC_A] == out->id[ACC_A])
				return i;
	}
	return ACC_NOCALL;
}

bool
acc_is_made_up_for(const struct acc_case *c, uint32_t call, const struct acc_item *it, double unit)
{
	enum { STEPS = 8 };
	const double may = LIMIT_MARGIN * LIMIT_UNTRACED_FLOOR * unit;
	if (it != NULL && (!c->call[call].backward || it->count != 1 || !(it->rms > may)))
		return false;
	uint32_t back = it == NULL ? backward_of(c, call) : call;
	for (int i = 0; i < STEPS && back != ACC_NOCALL; i++) {
		const struct acc_item *out = NULL;
		if (hands_on_the_same(c, back, may))
			return true;
		for (uint32_t j = c->call[back].first; j <= c->call[back].last; j++)
			if (c->item[j].call == back && acc_is_output(&c->item[j]) &&
				c->item[j].kind == ACC_ITEM_TENSOR && c->item[j].count == 1)
				out = &c->item[j];
		back = it == NULL || out == NULL ? ACC_NOCALL : taker_of(c, back, out);
	}
	return false;
}
