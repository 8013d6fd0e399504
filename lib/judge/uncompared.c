/* Is an output wrong that was compared with nothing? */
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"

/* An output of a different shape, of what was given the same arguments, and tensors of the same shape that
 * agree as far as tensors do: what chooses by values was given others. No gradient: autograd refuses one
 * whose shape is not that of what it is of, so this is a gradient of something else, as hooks of ptdbg give
 * that of the last step inside an operator. Where both sides are ranks that became one, shapes are inferred. */
static bool
is_shape_wrong(const struct scan *s, uint32_t call, const struct acc_item *it,
	const struct given *g)
{
	const struct acc_call *k = &s->c->call[call];
	if (s->wholes || !acc_other_shape(it) || it->other_form || !acc_is_output(it) ||
		it->guessed || g->unseen || isinf(g->rms) || g->inputs == 0 || k->module ||
		k->grad || k->backward || (k->cls == ACC_OP_OTHER && !g->exact))
		return false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *x = &s->c->item[i];
		if (x->call == call && acc_is_input(x) &&
			(x->sides != 3 || (x->kind == ACC_ITEM_ARG && !(x->rms <= 0))))
			return false;
	}
	return true;
}

/* An output that has nothing to be compared with may still be wrong for its inputs. */
int
acc_judge_alone(struct scan *s, uint32_t call, uint32_t i, const struct given *g)
{
	struct suspect x = {.call = call,
		.item = i,
		.role = ROLE_OUT,
		.blame = call,
		.producer = ACC_NOCALL,
		.margin = -LIMIT_CERTAIN};
	if (is_shape_wrong(s, call, &s->c->item[i], g)) {
		x.margin = LIMIT_CERTAIN;
		x.value = INFINITY;
		x.from = "inputs of the same shape";
		x.witness = ACC_WITNESS_other_shape;
	}
	acc_witness_audit(s, &s->c->item[i], &x);
	return x.margin > 0 ? acc_suspect_add(s, &x) : 0;
}
