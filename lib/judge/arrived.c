/* Gradients that come to the optimizer as the bench's do, whatever stands between: a division by the micro-batches' number, or
 * by the ranks', that is recorded of what is no output of the op calls before. */
#include "judge/arrived.h"

#include <math.h>
#include <stdlib.h>

#include "acc/base.h"
#include "judge/item.h"
#include "judge/traced.h"

bool
acc_side_norm(const struct acc_rec *r, int side, double *norm)
{
	const char *prefix = side == ACC_A ? "a." : "b.";
	return acc_as_f64(acc_get(r, prefix, "stat.norm"), norm) ||
	       acc_as_f64(acc_get(r, prefix, "s.norm"), norm);
}

static int
look_at(struct acc_case *c, const struct acc_call *k, const struct acc_item *it,
	struct acc_stepped *a, struct acc_err *e)
{
	const bool steps = acc_call_steps_on(k, ACC_A) && acc_call_steps_on(k, ACC_B);
	struct acc_rec *r;
	double norm;
	if (it->kind != ACC_ITEM_TENSOR || it->sides != 3 || !acc_is_measured(it) ||
		!(steps ? acc_is_input(it) : !k->backward && it->count == 1 && acc_is_output(it)))
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0 || !acc_side_norm(r, ACC_B, &norm) || !(norm > 0))
		return rc < 0 ? rc : 0;
	const struct acc_step_norm one = {.norm = norm, .off = it->rms};
	if (!steps && !ACC_ROOM(a->factor, a->factors, a->nfactor + 1, e))
		return e->code;
	if (!steps)
		a->factor[a->nfactor++] = one;
	/* An optimizer's second list. */
	if (!steps || !acc_str_starts(acc_get_text(r, "b.", "pos"), "1."))
		return 0;
	if (!ACC_ROOM(a->gradient, a->gradients, a->ngradient + 1, e))
		return e->code;
	a->gradient[a->ngradient++] = one;
	return 0;
}

int
acc_find_arrived(struct acc_case *c, struct acc_stepped *a, struct acc_err *e)
{
	acc_case_rest(c);
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		int rc = it->call == ACC_NOCALL ? 0 : look_at(c, &c->call[it->call], it, a, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void
acc_arrived_free(struct acc_stepped *a)
{
	free(a->gradient);
	free(a->factor);
	*a = (struct acc_stepped){0};
}

/* As good as equal: nearer to 1 than to that many times it. */
static bool
excludes(double off, double times)
{
	return off < fabs(times - 1) / 2;
}

bool
acc_has_arrived(const struct acc_stepped *a, double norm, double times)
{
	/* What a product in f32 rounds, and a sum of squares in another order. */
	const double same = 1e-5;
	for (uint32_t i = 0; i < a->ngradient; i++) {
		const struct acc_step_norm *g = &a->gradient[i];
		if (!excludes(g->off, times))
			continue;
		if (fabs(g->norm - norm) <= same * norm)
			return true;
		for (uint32_t j = 0; j < a->nfactor; j++)
			if (excludes(a->factor[j].off, 1 / times) &&
				fabs(g->norm - norm * a->factor[j].norm) <= same * g->norm)
				return true;
	}
	return false;
}
