/* What an op call was given: the errors of its inputs, and of what stands for them where they were
 * not compared. */
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"
#include "judge/order.h"

/* Errors as causes: where integers differ, anything may follow. */
double
acc_cause_of(const struct acc_item *it, bool largest)
{
	if (it->exact && it->rms > 0)
		return INFINITY;
	return largest ? it->max : it->rms;
}

double
acc_recent(const struct scan *s, bool backward)
{
	double worst = 0;
	for (uint32_t i = 0; i < LIMIT_RECENT && i < s->nrecent[backward]; i++)
		worst = s->recent[backward][i] > worst ? s->recent[backward][i] : worst;
	return worst;
}

/* Where one side is fused, or the operators differ, what goes in (backwards: what comes out)
 * need not be the same thing on both sides, and counts only if it looks like it. */
bool
acc_alike(const struct scan *s, const struct acc_call *k, const struct acc_item *it, double unit)
{
	return !it->loose || acc_is_input(it) == k->backward ||
	       it->rms <= fmin(LIMIT_HEALED,
				  LIMIT_MARGIN *
					  (LIMIT_UNTRACED_FLOOR * unit +
						  LIMIT_UNSEEN_GAIN * acc_recent(s, k->backward)));
}

/* What it says of the slope of what comes out. */
static void
receive_slope(struct given *g, const struct acc_item *it)
{
	if (it->rms == 0 || it->exact)
		return;
	bool known = isfinite(it->slope) && isfinite(it->few);
	double mean = fmax((double)it->slope, it->mean_off); /* without what is NAN */
	g->mean = fmax(g->mean, isfinite(mean) ? mean : INFINITY);
	g->slope += known ? it->slope : INFINITY;
	g->spread = fmax(g->spread, known ? it->rest * it->few : INFINITY);
	g->rest = fmax(g->rest, known ? it->rest : INFINITY);
}

void
acc_receive(struct given *g, const struct acc_item *it)
{
	receive_slope(g, it);
	g->rms = fmax(g->rms, acc_cause_of(it, false));
	g->max = fmax(g->max, acc_cause_of(it, true));
	g->exact &= it->rms == 0;
	g->permuted |= it->permuted;
	g->places |= it->exact && it->measure == ACC_BY_STAT;
	g->masks = it->mask && (g->masks || g->operands == 0);
	g->max_abs = it->rms == 0                                     ? g->max_abs
		     : it->max_abs > g->max_abs || isnan(it->max_abs) ? it->max_abs
								      : g->max_abs;
	g->sum_abs += it->rms == 0 ? 0 : it->max_abs;
	g->sum_rel += it->rms == 0 ? 0 : it->max_rel;
	g->b_max = fmax(g->b_max, it->exact ? 0 : it->b_max);
	if (!it->exact && g->operands < 2)
		g->operand[g->operands++] = (struct operand){it->b_rms,
			it->rms == 0 ? 0 : it->max_abs, it->count};
	if (it->b_rms > g->grad_rms) {
		g->grad_rms = it->b_rms;
		g->grad_rmse = it->rmse;
		g->grad_abs = it->stat_abs;
		g->grad_count = it->count;
	}
}

/* Tensors of both sides of which nothing can be compared, for their shapes or forms. */
bool
acc_other_shape(const struct acc_item *it)
{
	return it->kind == ACC_ITEM_TENSOR && it->sides == 3 &&
	       (it->note_shape || it->other_form) && !it->loose && !it->apart && !it->broken &&
	       it->measure == ACC_UNMEASURED;
}

/* Is there a number to judge by? Another checksum, after tensors that differ a little, is only
 * to be expected: it tells nothing. */
bool
acc_comparable(struct scan *s, const struct acc_item *it)
{
	if (!acc_is_measured(it))
		return false;
	if (it->measure == ACC_BY_SUM)
		return it->exact || it->rms == 0 || !s->noisy;
	s->noisy |= !it->exact && it->rms > 0;
	return true;
}

bool
acc_call_is_fused(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && c->item[i].loose)
			return true;
	return false;
}

bool
acc_call_is_array(const struct acc_case *c, uint32_t call)
{
	return c->call[call].array;
}

/* What a backward call also depends on: what its forward call took and made. */
void
acc_receive_saved(const struct scan *s, const struct acc_call *k, struct given *g)
{
	uint32_t v = acc_ids_get(&s->twin, k->twin);
	if (v == ACC_NOID)
		return;
	const struct acc_case *c = s->c;
	const struct acc_call *f = &c->call[v];
	if (f->segment != k->segment)
		return;
	g->operands = 0;
	g->saved = true;
	for (uint32_t i = f->first; i <= f->last; i++) {
		const struct acc_item *it = &c->item[i];
		g->saved &= it->call != v || it->kind != ACC_ITEM_TENSOR || acc_is_measured(it);
		if (it->call == v && acc_other_shape(it))
			g->rms = g->max = INFINITY;
		if (it->call != v || it->kind != ACC_ITEM_TENSOR || !acc_is_measured(it) ||
			(it->loose && acc_is_input(it)))
			continue;
		receive_slope(g, it);
		g->rms = fmax(g->rms, acc_cause_of(it, false));
		g->max = fmax(g->max, acc_cause_of(it, true));
		g->exact &= it->rms == 0;
		g->permuted |= it->permuted;
		if (!acc_is_input(it))
			continue;
		g->sum_rel += it->rms == 0 ? 0 : it->max_rel;
		if (!it->exact && g->operands < 2)
			g->operand[g->operands++] = (struct operand){it->b_rms,
				it->rms == 0 ? 0 : it->max_abs, it->count};
	}
}

/* A tensor that only the device has, inside of what the bench computes in one call: was it made of
 * tensors that were compared? Then these are what the call was given. Scalars that nobody made are
 * constants of the formula. */
bool
acc_receive_inside(struct scan *s, uint32_t call, const struct acc_item *it, double unit,
	struct given *g, int depth)
{
	const struct acc_case *c = s->c;
	if (it->sides != 1 || s->learning)
		return false;
	uint32_t p = acc_maker(s, ACC_A, &c->call[call], it->id[ACC_A]);
	uint32_t maker = p == ACC_NOCALL ? ACC_NOCALL : c->item[p].call;
	if (maker == ACC_NOCALL || maker >= call || depth == 0)
		return maker == ACC_NOCALL && it->ndim == 0;
	const struct acc_call *m = &c->call[maker];
	bool any = false;
	for (uint32_t i = m->first; i <= m->last; i++) {
		const struct acc_item *x = &c->item[i];
		if (x->call != maker || x->kind != ACC_ITEM_TENSOR || !acc_is_input(x) ||
			x->sides == 2)
			continue;
		any = true;
		if (acc_is_measured(x) && acc_alike(s, m, x, unit))
			acc_receive(g, x);
		else if (!acc_receive_inside(s, maker, x, unit, g, depth - 1))
			return false;
	}
	return any;
}

/* A communication that fills a buffer of its own brings in what other ranks hold, and their errors;
 * where they were not recorded, nothing is known of what arrived. */
void
acc_receive_brought(struct scan *s, uint32_t call, double unit, struct given *g)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	bool fills = false, any = false;
	for (uint32_t i = k->first; i <= k->last && k->talks; i++)
		fills |= c->item[i].call == call && c->item[i].kind == ACC_ITEM_BUFFER;
	uint32_t p = fills ? acc_partner(s->ranks, call, call) : ACC_NOCALL;
	for (; p != ACC_NOCALL; p = acc_partner(s->ranks, call, p))
		for (uint32_t i = c->call[p].first; i <= c->call[p].last; i++) {
			const struct acc_item *it = &c->item[i];
			if (it->call != p || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) ||
				!acc_comparable(s, it) || !acc_alike(s, &c->call[p], it, unit))
				continue;
			acc_receive(g, it);
			any = true;
		}
	g->unseen |= fills && !any;
}
