/* The default judge: the first op call that adds more error than it was given and than its
 * kind and dtype explain.
 *
 * Calls are walked in the device's order. What a call was given is the worst error of its
 * inputs; a backward call also depends on what its forward call took and made. An input that
 * is bad itself is followed to the output that made it, by the identity of the bench's values
 * (the device's may be wrong). The walk runs twice: first to learn the usual noise of each
 * operator, then to judge. */
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

/* Errors as causes: where integers differ, anything may follow. */
static double
cause_of(const struct acc_item *it, bool largest)
{
	if (it->exact && it->rms > 0)
		return INFINITY;
	return largest ? it->max : it->rms;
}

static double
recent(const struct scan *s, bool backward)
{
	double worst = 0;
	for (uint32_t i = 0; i < LIMIT_RECENT && i < s->nrecent[backward]; i++)
		worst = fmax(worst, s->recent[backward][i]);
	return worst;
}

static int
suspect(struct scan *s, const struct suspect *x)
{
	if (s->learning)
		return 0;
	void *p = acc_grow(s->suspect, &s->suspect_cap, s->nsuspect + 1, sizeof *s->suspect, NULL);
	if (p == NULL)
		return ACC_ENOMEM;
	s->suspect = p;
	s->suspect[s->nsuspect++] = *x;
	return 0;
}

/* The margin of the limits is for what nobody recomputes. */
static int
doubt(struct scan *s, uint32_t call)
{
	if (s->learning || s->c->opt.roots == NULL ||
		(s->ndoubt > 0 && s->doubt[s->ndoubt - 1] == call))
		return 0;
	void *p = acc_grow(s->doubt, &s->doubt_cap, s->ndoubt + 1, sizeof *s->doubt, NULL);
	if (p == NULL)
		return ACC_ENOMEM;
	s->doubt = p;
	s->doubt[s->ndoubt++] = call;
	return 0;
}

static int
excess(struct scan *s, const struct acc_call *k, double unit, double by, bool stat)
{
	double cap = acc_unit_low(unit)  ? LIMIT_LEARN_LOW
		     : acc_multiplies(k) ? LIMIT_LEARN_PRODUCTS
					 : LIMIT_LEARN_OTHER;
	void *p = acc_grow(s->excess, &s->excess_cap, s->nexcess + 1, sizeof *s->excess, NULL);
	if (p == NULL)
		return ACC_ENOMEM;
	s->excess = p;
	s->excess[s->nexcess++] = (struct excess){acc_noise_class(k, unit), fmin(by, cap), stat};
	return 0;
}

static bool
is_output(const struct acc_item *it)
{
	return !acc_is_input(it);
}

/* Where one side is fused, or the operators differ, what goes in (backwards: what comes out)
 * need not be the same thing on both sides, and counts only if it looks like it. */
static bool
alike(const struct scan *s, const struct acc_call *k, const struct acc_item *it, double unit)
{
	return !it->loose || acc_is_input(it) == k->backward ||
	       it->rms <= LIMIT_MARGIN * (LIMIT_UNTRACED_FLOOR * unit +
						 LIMIT_UNTRACED_GAIN * recent(s, k->backward));
}

static void
receive(struct given *g, const struct acc_item *it)
{
	g->rms = fmax(g->rms, cause_of(it, false));
	g->max = fmax(g->max, cause_of(it, true));
	g->exact &= it->rms == 0;
	g->permuted |= it->permuted;
	g->max_abs = it->rms == 0                                     ? g->max_abs
		     : it->max_abs > g->max_abs || isnan(it->max_abs) ? it->max_abs
								      : g->max_abs;
	g->sum_abs += it->rms == 0 ? 0 : it->max_abs;
	g->sum_rel += it->rms == 0 ? 0 : it->max_rel;
	g->b_max = fmax(g->b_max, it->exact ? 0 : it->b_max);
	if (!it->exact && g->operands < 2)
		g->operand[g->operands++] = (struct operand){it->b_rms, it->count};
	if (it->b_rms > g->grad_rms) {
		g->grad_rms = it->b_rms;
		g->grad_rmse = it->rmse;
		g->grad_count = it->count;
	}
}

/* Where a second run of the bench tells the noise of this very tensor, no less is a fault. */
static void
known_noise(const struct scan *s, const struct acc_item *it, double e, double e2, struct suspect *x)
{
	if (!(e2 > 0) || it->exact || !(x->margin > 0))
		return;
	struct limit l = {s->noise * e2, 0, NULL};
	double margin = isinf(e2) ? -LIMIT_CERTAIN : acc_margin(e, &l, 0);
	if (margin >= x->margin)
		return;
	x->margin = margin;
	x->limit = LIMIT_MARGIN * l.floor;
	x->from = "the noise between two runs of the bench";
}

static double
item_unit(const struct acc_item *it)
{
	return fmax(acc_unit((enum acc_dtype)it->dtype[ACC_A]),
		acc_unit((enum acc_dtype)it->dtype[ACC_B]));
}

/* Is it as far off as where it was made, in absolute terms? Its relative error may be larger: that
 * of a gradient is measured against what was summed up, which who takes it cannot know. */
static bool
same_error(const struct acc_item *it, const struct acc_item *made, double unit)
{
	return it->measure == ACC_BY_TENSOR && made->measure == ACC_BY_TENSOR &&
	       it->rmse <= LIMIT_TRACED_GAIN * made->rmse + LIMIT_TRACED_FLOOR * unit * it->b_rms;
}

/* A gradient that is the sum of others: it has their errors, and the device's copy is the sum of
 * the device's own. */
static int
judge_sum(struct scan *s, uint32_t call, uint32_t i, double unit, struct suspect *x)
{
	const struct acc_item *it = &s->c->item[i];
	struct sum sum;
	int rc = s->c->call[call].backward ? acc_sum_find(s, call, i, &sum, s->e)
					   : acc_sum_of_weight(s, call, i, &sum, s->e);
	if (rc <= 0)
		return rc;
	/* Parts of 16 bits are summed up in 16 bits, whatever the sum is cast to. */
	for (unsigned k = 0; k < sum.n; k++)
		unit = fmax(unit, item_unit(&s->c->item[sum.part[k]]));
	struct limit l = {LIMIT_SUM_FLOOR * unit, LIMIT_SUM_GAIN,
		"the sum of the gradients that it is"};
	/* Where parts cancel, or are zero in exact arithmetic, their errors are relative to more than
	 * the sum is: it is measured against the same. */
	double e = it->rms, parts = 0;
	for (unsigned k = 0; k < sum.n; k++) {
		const struct acc_item *part = &s->c->item[sum.part[k]];
		parts = fmax(parts, part->b_rms);
		parts = fmax(parts, part->rms > 0 ? part->rmse / part->rms : 0);
	}
	if (it->rmse < e * parts)
		e = it->rmse / parts;
	x->cause = sum.cause;
	x->margin = acc_margin(e, &l, x->cause);
	x->value = e;
	x->limit = LIMIT_MARGIN * (l.floor + l.gain * x->cause);
	x->from = l.from;
	double own = acc_margin(sum.off, &l, sum.bench_off);
	if (own > x->margin) {
		x->margin = own;
		x->value = sum.off;
		x->limit = LIMIT_MARGIN * (l.floor + l.gain * sum.bench_off);
	}
	known_noise(s, it, it->rms, it->noise_rms, x);
	if (!(x->margin > 0))
		return 0;
	x->sum = "";
	for (unsigned k = 0; k < sum.n && x->sum != NULL; k++)
		x->sum = acc_arena_printf(&s->c->mem, "%s%s%s", x->sum,
			k == 0           ? ""
			: k + 1 == sum.n ? " and "
					 : ", ",
			acc_call_name(&s->c->call[s->c->item[sum.part[k]].call]));
	return x->sum == NULL ? ACC_ENOMEM : 0;
}

static int
judge_input(struct scan *s, uint32_t call, uint32_t i, double unit, struct given *g)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	const struct acc_item *it = &c->item[i];
	uint32_t p = acc_maker(s, ACC_B, k, it->id[ACC_B]);
	struct limit l;
	struct suspect x = {.call = call, .item = i, .role = ROLE_IN, .producer = p};
	if (p != ACC_NOCALL && c->item[p].measure != ACC_UNMEASURED) {
		l = (struct limit){LIMIT_TRACED_FLOOR * unit, LIMIT_TRACED_GAIN,
			"the output that it is"};
		x.cause = cause_of(&c->item[p], false);
	} else if (p == ACC_NOCALL && it->weight) {
		l = (struct limit){
			(acc_unit_low(unit) ? LIMIT_WEIGHT_FLOOR_16 : LIMIT_WEIGHT_FLOOR) * unit,
			LIMIT_WEIGHT_GAIN, "weights are equal"};
		x.cause = s->weights;
	} else {
		l = (struct limit){LIMIT_UNTRACED_FLOOR * unit, LIMIT_UNTRACED_GAIN,
			"what the op calls before it show"};
		x.cause = recent(s, k->backward);
		/* A gradient on its way to the optimizer may have been added to or scaled. */
		if (!k->backward && !k->module && s->nrecent[true] > 0)
			x.cause = fmax(x.cause, acc_gradients_error(s, i));
	}
	if (it->measure == ACC_BY_STAT)
		l.floor += acc_statistic_rounding(
			p == ACC_NOCALL ? unit : fmax(unit, item_unit(&c->item[p])));
	x.margin = acc_margin(it->rms, &l, x.cause);
	x.value = it->rms;
	x.limit = LIMIT_MARGIN * (l.floor + l.gain * x.cause);
	x.from = l.from;
	if (it->exact && it->rms > 0)
		/* Once choices fell otherwise, indices whose maker is not recorded (a slice, a count)
		 * prove nothing; nor does one integer where the pairing is a guess: a counter goes on
		 * where a side computes again. */
		x.margin = (p != ACC_NOCALL ? c->item[p].rms > 0 : s->flipped) || isinf(x.cause) ||
					   (it->guessed && it->count == 1)
				   ? -LIMIT_CERTAIN
				   : LIMIT_CERTAIN;
	else if (p != ACC_NOCALL && same_error(it, &c->item[p], unit))
		x.margin = -LIMIT_CERTAIN;
	known_noise(s, it, it->rms, it->noise_rms, &x);
	bool gradient = k->backward || (s->nrecent[true] > 0 && !it->weight && !k->module);
	if (p == ACC_NOCALL && gradient && !s->learning) {
		int rc = judge_sum(s, call, i, unit, &x);
		if (rc < 0)
			return rc;
	}
	bool strict = !it->loose || k->backward;
	/* Running means, of which training makes nothing: see judge_state. */
	if (it->state)
		return 0;
	if (x.margin > 0 && strict && !s->learning &&
		(p == ACC_NOCALL || !acc_same_pair(it, &c->item[p]))) {
		x.blame = acc_overwriter(s, call, it);
		if (suspect(s, &x) < 0)
			return ACC_ENOMEM;
	}
	receive(g, it);
	/* Nobody made it: from now on it is known, and no news where it comes again. */
	return p == ACC_NOCALL ? acc_remember(s, k, i, false) : 0;
}

/* What is zero in exact arithmetic is noise on both sides: a small tensor that sums up an
 * incoming gradient is measured against that gradient, a product against its terms. */
static void
soften(const struct acc_call *k, const struct acc_item *it, const struct given *g, double *rms,
	double *max)
{
	bool stat = it->measure == ACC_BY_STAT;
	double scale = k->backward && it->ndim <= 1
			       ? LIMIT_BIAS_SCALE * g->grad_rms
			       : LIMIT_PRODUCT_SCALE * acc_product_scale(k, it, g);
	double terms = fmax(acc_sum_scale(k, it, g), acc_stat_gradient_scale(k, it, g));
	scale = stat ? terms : fmax(scale, terms);
	double off = stat ? it->stat_abs : it->rmse, most = stat ? off : it->max_abs;
	/* Against a zero any difference is infinite. */
	if (!(scale > 0) || (isinf(*rms) && (!stat || it->nonfinite)))
		return;
	if (off / scale < *rms)
		*rms = off / scale;
	if (most / scale < *max)
		*max = most / scale;
}

/* An operator that finds where the largest, or others by rank, stand: of equal values, or of such as
 * noise makes change places, another one may be found. */
static bool
finds_places(const struct acc_call *k, const struct acc_item *it)
{
	return it->exact && k->ranks && !k->backward && !k->grad;
}

/* Are the values that such an operator gives right, as far as what it was given lets them? Then
 * others stand at the places than on the bench, but of the same values: a tie. */
static bool
same_values(const struct scan *s, uint32_t call, double unit, const struct given *g)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !is_output(it) || it->kind != ACC_ITEM_TENSOR || it->exact)
			continue;
		struct limit l = acc_limit_output(s, k, unit, (enum acc_measure)it->measure);
		if (!acc_is_measured(it) || it->measure == ACC_BY_SUM || it->permuted ||
			acc_margin(it->rms, &l, g->rms) > 0)
			return false;
		any = true;
	}
	return any;
}

/* Nothing but a choice between near-equal values: by its values; or by noise in what it was given,
 * where statistics do not show how many choices there were. */
static bool
is_tie(const struct scan *s, uint32_t call, const struct acc_item *it, double unit,
	const struct given *g)
{
	const struct acc_call *k = &s->c->call[call];
	return finds_places(k, it) && it->rms > 0 && !g->unseen && !isinf(g->rms) && !g->permuted &&
	       (same_values(s, call, unit, g) || (it->measure == ACC_BY_STAT && g->rms > 0));
}

/* What statistics of an output may differ by follows from those of the inputs by the slope of the
 * operator at the very elements, which they do not show: its worst. */
static void
respond(const struct acc_call *k, const struct given *g, struct suspect *x, double *cause_max)
{
	double *cause[2] = {&x->cause, cause_max};
	for (int i = 0; i < 2; i++) {
		double e = *cause[i];
		if (k->response == ACC_OP_ROOT && !k->backward && e < 1)
			*cause[i] = sqrt(e);
		else if (k->response == ACC_OP_EXPONENT && !k->backward)
			*cause[i] = e * fmax(1, g->b_max);
		else if (k->cls != ACC_OP_MOVE && k->cls != ACC_OP_ADD && k->cls != ACC_OP_STEADY)
			/* Of two factors, or a square: (1 + e)^2 - 1. */
			*cause[i] = e * (1 + e);
	}
}

/* The limit of an output, with what it follows from. */
static struct limit
allow(const struct scan *s, const struct acc_call *k, const struct acc_item *it, double unit,
	const struct given *g, struct suspect *x, double *cause_max)
{
	struct limit l = acc_limit_output(s, k, unit, (enum acc_measure)it->measure);
	x->cause = g->rms;
	*cause_max = g->max;
	if (g->unseen || k->grad) {
		/* What it was given is known only through its neighbours. */
		x->cause = fmax(x->cause, recent(s, k->backward || k->grad));
		*cause_max = fmax(*cause_max, x->cause);
		l.gain = fmax(l.gain, LIMIT_UNSEEN_GAIN);
		l.floor = fmax(l.floor, LIMIT_UNSEEN_FLOOR * unit);
	}
	if (it->measure == ACC_BY_STAT) {
		x->cause = fmax(x->cause, acc_stat_usual(s, k->backward || k->grad));
		*cause_max = fmax(*cause_max, x->cause);
		respond(k, g, x, cause_max);
	}
	const struct acc_item *in = acc_passed_through(s->c, it->call, it);
	if (in != NULL) {
		l.gain = LIMIT_PASSED_GAIN;
		x->cause = cause_of(in, false);
		*cause_max = cause_of(in, true);
		l.from = "the bench hands an input on unchanged";
	}
	double rounding = acc_one_rounding(s, k, it, g, unit);
	if (rounding < l.floor) {
		l.floor = rounding;
		l.from = "one rounding of equal inputs' result";
	}
	/* From inexact inputs a choice may fall otherwise here and there, of few elements in one. */
	if (it->exact)
		l = (struct limit){g->exact ? 0
				   : finds_places(k, it) && it->count > 0
					   ? fmax(LIMIT_CHOICE, 1 / (double)it->count)
					   : LIMIT_CHOICE,
			0, g->exact ? "equal inputs" : "noise"};
	x->from = l.from;
	return l;
}

static int
judge_output(struct scan *s, uint32_t call, uint32_t i, double unit, const struct given *g,
	double *worst)
{
	const struct acc_call *k = &s->c->call[call];
	const struct acc_item *it = &s->c->item[i];
	struct suspect x = {.call = call,
		.item = i,
		.role = ROLE_OUT,
		.blame = call,
		.producer = ACC_NOCALL,
		.unseen = g->unseen};
	double rms = it->rms, max = it->max, cause_max;
	struct limit l = allow(s, k, it, unit, g, &x, &cause_max);
	double bound = LIMIT_BOUND * acc_abs_bound(s, k, it, g, unit);
	soften(k, it, g, &rms, &max);
	x.margin = acc_margin(rms, &l, x.cause);
	struct limit each = {LIMIT_MARGIN_MAX * l.floor, l.gain, NULL};
	double largest = acc_margin(max, &each, cause_max);
	bool by_max = largest > x.margin && !it->exact;
	x.value = by_max ? max : rms;
	x.limit = LIMIT_MARGIN *
		  (by_max ? each.floor + l.gain * cause_max : l.floor + l.gain * x.cause);
	x.margin = by_max ? largest : x.margin;
	if ((it->measure == ACC_BY_TENSOR && acc_carried(it, k, g, unit)) ||
		acc_handed_on(s, call, it))
		x.margin = -LIMIT_CERTAIN;
	if (it->max_abs > bound && log10(it->max_abs / bound) > x.margin) {
		x.margin = fmin(LIMIT_CERTAIN, log10(it->max_abs / bound));
		x.value = it->max_abs;
		x.limit = bound;
		x.from = "this operator cannot make absolute errors larger";
	}
	bound = LIMIT_MARGIN * acc_bias_bound(s, k, it, g, unit);
	if (it->rmse > bound && log10(it->rmse / bound) > x.margin) {
		x.margin = fmin(LIMIT_CERTAIN, log10(it->rmse / bound));
		x.value = it->rmse;
		x.limit = bound;
		x.from = "the gradient of a bias only sums up what comes in";
	}
	known_noise(s, it, by_max ? it->max : it->rms, by_max ? it->noise_max : it->noise_rms, &x);
	if (is_tie(s, call, it, unit, g))
		x.margin = -LIMIT_CERTAIN;
	/* Numbers in other places are no noise, however large that is, if they came in the right ones. */
	if (it->permuted && it->rms >= 1 && !g->permuted && !isinf(x.cause) &&
		!acc_handed_on(s, call, it)) {
		x.margin = LIMIT_CERTAIN;
		x.value = rms;
	}
	x.weak = acc_multiplies(k) && !acc_unit_low(unit) && !acc_is_learned(s, k, unit) &&
		 x.margin < log10(LIMIT_LEARN_PRODUCTS);
	*worst = fmax(*worst, x.margin);
	if (x.margin > 0 && !s->learning && acc_bench_wrong(it) &&
		(s->bench == ACC_NOCALL ||
			acc_before(s->ranks, s->c, call, s->c->item[s->bench].call)))
		s->bench = i;
	x.permuted = g->permuted;
	if (x.margin > 0 && (g->unseen || g->inner) && !s->learning)
		acc_hidden(s, call, &x.hidden);
	bool unsure = x.margin > -log10(LIMIT_MARGIN) && x.margin <= 0 && !(it->audited & 1);
	acc_audit_suspect(s, it, &x);
	if (finds_places(k, it) && it->rms > 0 && !(x.margin > 0) && !isinf(g->rms)) {
		s->tie = s->ties++ == 0 ? i : s->tie;
		s->tie_given = s->ties == 1 ? g->rms : s->tie_given;
	}
	if (unsure && doubt(s, call) < 0)
		return ACC_ENOMEM;
	if (x.margin > 0 && k->cls != ACC_OP_ALLOC && suspect(s, &x) < 0)
		return ACC_ENOMEM;
	/* Where NaN met NaN there may be nothing left that was compared. */
	bool usual = !g->unseen && !isinf(rms) && !it->exact && !it->a_nan;
	if (s->learning && usual && (!k->module || acc_multiplies(k)))
		return excess(s, k, unit, rms / l.floor, it->measure == ACC_BY_STAT);
	return 0;
}

/* Tensors of both sides of which nothing can be compared, for their shapes. */
static bool
other_shape(const struct acc_item *it)
{
	return it->kind == ACC_ITEM_TENSOR && it->sides == 3 && it->note_shape && !it->loose &&
	       !it->broken && it->measure == ACC_UNMEASURED;
}

/* An output of another shape, of what was given the same arguments, and tensors of the same shape that
 * agree as far as tensors do: what chooses by values was given others. */
static bool
is_shape_wrong(const struct scan *s, uint32_t call, const struct acc_item *it,
	const struct given *g)
{
	const struct acc_call *k = &s->c->call[call];
	if (!other_shape(it) || !acc_is_output(it) || it->guessed || g->unseen || isinf(g->rms) ||
		g->inputs == 0 || k->module || k->grad || (k->cls == ACC_OP_OTHER && !g->exact))
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
static int
judge_alone(struct scan *s, uint32_t call, uint32_t i, const struct given *g)
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
	}
	acc_audit_suspect(s, &s->c->item[i], &x);
	return x.margin > 0 ? suspect(s, &x) : 0;
}

/* Running means and variances that differ, in a call whose outputs are not explained by the rest: a side
 * that computes a part again has others, and in training nothing is made of them. */
static int
judge_state(struct scan *s, uint32_t call, double unit, double worst)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	const double may = LIMIT_MARGIN * (LIMIT_UNTRACED_FLOOR * unit +
						  LIMIT_UNTRACED_GAIN * recent(s, k->backward));
	for (uint32_t i = k->first; i <= k->last && worst > 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !it->state || !acc_is_measured(it) || !(it->rms > may))
			continue;
		struct suspect x = {.call = call,
			.item = i,
			.role = ROLE_IN,
			.blame = call,
			.producer = ACC_NOCALL,
			.margin = fmin(LIMIT_CERTAIN, log10(it->rms / may)),
			.value = it->rms,
			.limit = may,
			.from = "what the op calls before it show"};
		if (suspect(s, &x) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

/* A number, a flag or a mode that differs, in a call whose outputs are not explained. */
static int
judge_args(struct scan *s, uint32_t call, double unit, double worst)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_ARG || !acc_is_input(it) ||
			it->measure != ACC_BY_VALUE || !(it->rms > LIMIT_UNTRACED_FLOOR * unit) ||
			worst <= 0)
			continue;
		struct suspect x = {.call = call,
			.item = i,
			.role = ROLE_ARG,
			.blame = call,
			.producer = ACC_NOCALL,
			.margin = LIMIT_CERTAIN,
			.value = it->rms,
			.limit = 0,
			.from = "arguments are equal"};
		if (suspect(s, &x) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

/* What a backward call also depends on: what its forward call took and made. */
static void
saved(const struct scan *s, const struct acc_call *k, struct given *g)
{
	uint32_t v = acc_ids_get(&s->twin, k->twin);
	if (v == ACC_NOID)
		return;
	const struct acc_case *c = s->c;
	const struct acc_call *f = &c->call[v];
	if (f->segment != k->segment)
		return;
	g->operands = 0;
	for (uint32_t i = f->first; i <= f->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call == v && other_shape(it))
			g->rms = g->max = INFINITY;
		if (it->call != v || it->kind != ACC_ITEM_TENSOR || !acc_is_measured(it) ||
			(it->loose && acc_is_input(it)))
			continue;
		g->rms = fmax(g->rms, cause_of(it, false));
		g->max = fmax(g->max, cause_of(it, true));
		g->exact &= it->rms == 0;
		g->permuted |= it->permuted;
		if (!acc_is_input(it))
			continue;
		g->sum_rel += it->rms == 0 ? 0 : it->max_rel;
		if (!it->exact && g->operands < 2)
			g->operand[g->operands++] = (struct operand){it->b_rms, it->count};
	}
}

/* Is there a number to judge by? Another checksum, after tensors that differ a little, is only
 * to be expected: it tells nothing. */
static bool
comparable(struct scan *s, const struct acc_item *it)
{
	if (!acc_is_measured(it))
		return false;
	if (it->measure == ACC_BY_SUM)
		return it->exact || it->rms == 0 || !s->noisy;
	s->noisy |= !it->exact && it->rms > 0;
	return true;
}

/* The gradient of the loss is made of what the forward pass gave, and recorders may leave out the
 * call that makes it: nothing before it in the backward pass shows its error, but the end of the
 * forward pass does. */
static void
turn_back(struct scan *s, const struct acc_call *k)
{
	bool back = k->backward || k->grad;
	if (back && !s->back_before) {
		s->recent[true][s->nrecent[true]++ % LIMIT_RECENT] = recent(s, false);
		acc_stat_seen(s, true, acc_stat_usual(s, false));
	}
	s->back_before = back;
}

/* Is this call one of several against one of the other side? */
static bool
is_fused(const struct scan *s, uint32_t call)
{
	const struct acc_call *k = &s->c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (s->c->item[i].call == call && s->c->item[i].loose)
			return true;
	return false;
}

/* A tensor that only the device has, inside of what the bench computes in one call: was it made of
 * tensors that were compared? Then these are what the call was given. Scalars that nobody made are
 * constants of the formula. */
static bool
inside(struct scan *s, uint32_t call, const struct acc_item *it, double unit, struct given *g,
	int depth)
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
		if (acc_is_measured(x) && alike(s, m, x, unit))
			receive(g, x);
		else if (!inside(s, maker, x, unit, g, depth - 1))
			return false;
	}
	return any;
}

/* A communication that fills a buffer of its own brings in what other ranks hold, and their errors;
 * where they were not recorded, nothing is known of what arrived. */
static void
brought(struct scan *s, uint32_t call, double unit, struct given *g)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	bool fills = false, any = false;
	for (uint32_t i = k->first; i <= k->last; i++)
		fills |= c->item[i].call == call && c->item[i].kind == ACC_ITEM_BUFFER;
	uint32_t p = fills ? acc_partner(s->ranks, call, call) : ACC_NOCALL;
	for (; p != ACC_NOCALL; p = acc_partner(s->ranks, call, p))
		for (uint32_t i = c->call[p].first; i <= c->call[p].last; i++) {
			const struct acc_item *it = &c->item[i];
			if (it->call != p || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) ||
				!comparable(s, it) || !alike(s, &c->call[p], it, unit))
				continue;
			receive(g, it);
			any = true;
		}
	g->unseen |= fills && !any;
}

static int
walk_call(struct scan *s, uint32_t call)
{
	const struct acc_case *c = s->c;
	enum { DEPTH = 12 };
	const struct acc_call *k = &c->call[call];
	double unit = acc_call_unit(c, k), worst = -LIMIT_CERTAIN, seen = 0;
	struct given g = {.exact = true, .operands = k->backward ? 2 : 0};
	bool paired = k->key[ACC_A] != NULL && k->key[ACC_B] != NULL;
	bool fused = paired && !k->backward && is_fused(s, call);
	int rc = 0;
	turn_back(s, k);
	for (uint32_t i = k->first; i <= k->last && rc == 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it))
			continue;
		g.inputs++;
		if (paired && comparable(s, it) && alike(s, k, it, unit))
			rc = judge_input(s, call, i, unit, &g);
		else if (paired && other_shape(it))
			g.rms = g.max = INFINITY; /* where choices fell otherwise, say */
		else if (!fused || (it->sides != 2 && !inside(s, call, it, unit, &g, DEPTH)))
			g.unseen = true;
		else
			g.inner |= it->sides != 2;
	}
	if (k->backward)
		saved(s, k, &g);
	if (acc_is_communication(k))
		brought(s, call, unit, &g);
	for (uint32_t i = k->first; i <= k->last && rc == 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !is_output(it))
			continue;
		if (paired && comparable(s, it) && alike(s, k, it, unit)) {
			rc = judge_output(s, call, i, unit, &g, &worst);
			if (!it->exact && !isinf(it->rms))
				seen = fmax(seen, it->rms);
			if (!it->exact && it->measure == ACC_BY_STAT)
				acc_stat_seen(s, k->backward || k->grad, it->rms);
			s->flipped |= it->exact && it->rms > 0;
		} else {
			worst = fmax(worst, paired ? 1 : -LIMIT_CERTAIN);
			rc = judge_alone(s, call, i, &g);
		}
		if (rc == 0)
			rc = acc_remember(s, k, i, true);
	}
	if (rc == 0 && paired)
		rc = judge_args(s, call, unit, worst);
	if (rc == 0 && paired)
		rc = judge_state(s, call, unit, worst);
	if (rc == 0 && paired)
		rc = acc_sum_learn(s, call);
	bool back = k->backward || k->grad;
	if (paired && k->keyed)
		s->recent[back][s->nrecent[back]++ % LIMIT_RECENT] = seen;
	if (rc == 0 && paired && !back)
		rc = acc_ids_put(&s->twin, k->twin, call, true, NULL);
	return rc;
}

static int
walk(struct scan *s, bool learning, struct acc_err *e)
{
	acc_ids_clear(&s->made[0]);
	acc_ids_clear(&s->made[1]);
	acc_ids_clear(&s->twin);
	acc_ids_clear(&s->back);
	acc_ids_clear(&s->user);
	s->nsuspect = s->ndoubt = 0;
	s->bench = s->tie = ACC_NOCALL;
	s->ties = 0;
	memset(s->nrecent, 0, sizeof s->nrecent);
	memset(s->nrecent_stat, 0, sizeof s->nrecent_stat);
	s->learning = learning;
	s->noisy = s->flipped = s->back_before = false;
	int rc = 0;
	for (uint32_t i = 0; i < s->c->ncall && rc == 0; i++) {
		if (i > 0 && s->c->call[i].segment != s->c->call[i - 1].segment) {
			memset(s->nrecent, 0, sizeof s->nrecent);
			memset(s->nrecent_stat, 0, sizeof s->nrecent_stat);
			s->noisy = s->flipped = s->back_before = false;
		}
		if (i + 1 < s->c->ncall)
			acc_remember_soon(s, &s->c->call[i + 1]);
		rc = walk_call(s, i);
	}
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* How far beyond its limit a suspect must be before it is named. What its own inputs do not give is
 * wrong, whatever the limits; they are of what is usual, and what stands just beyond them where
 * nothing was recomputed is as often noise as not. */
static double
gate(const struct scan *s, const struct suspect *x)
{
	const struct acc_item *it = &s->c->item[x->item];
	bool made = x->producer != ACC_NOCALL || it->weight || x->sum != NULL;
	if (x->audit || x->role == ROLE_ARG || it->exact || it->measure == ACC_BY_SUM ||
		(it->permuted && it->rms >= 1))
		return 0;
	const struct acc_call *k = &s->c->call[x->call];
	if (x->role == ROLE_OUT && k->response == ACC_OP_KINK && k->backward &&
		it->rms <= LIMIT_KINK * sqrt(x->cause))
		return INFINITY;
	if (x->role == ROLE_OUT && it->audit[ACC_A] > 1)
		return LIMIT_NAMED_BOTH;
	if (x->role == ROLE_IN && (!made || it->measure == ACC_BY_STAT) && !it->weight)
		return LIMIT_NAMED_INPUT;
	return LIMIT_NAMED;
}

/* The earliest suspect that stands out, and by enough to be named if that is asked for, in the order
 * of steps and of communication. Inputs were found before arguments and outputs, as they stand.
 * Where something is plainly wrong, what may be arithmetic of another kind is not it. */
static uint32_t
choose(struct scan *s, bool name)
{
	double largest = 0, plain = 0;
	s->nfirst = 0;
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		largest = fmax(largest, s->suspect[i].margin);
		plain = fmax(plain, s->suspect[i].weak ? 0 : s->suspect[i].margin);
	}
	double enough = fmin(LIMIT_NAMED, LIMIT_NAMED_SHARE * largest);
	uint32_t best = ACC_NOCALL, segment = UINT32_MAX;
	/* Where nothing says what ran first, an input that is bad says only that something else is. */
	bool makes = false;
	for (uint32_t i = 0; i < s->nsuspect && s->c->by_names; i++)
		makes |= s->suspect[i].margin >= enough && s->suspect[i].role == ROLE_OUT;
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		struct suspect *x = &s->suspect[i];
		x->first = false;
		if ((makes && x->role == ROLE_IN) ||
			x->margin < (name ? fmax(enough, gate(s, x)) : enough) ||
			(plain >= LIMIT_PLAIN && x->weak) || s->c->call[x->call].segment == segment)
			continue;
		segment = s->c->call[x->call].segment;
		s->first[s->nfirst++] = x->call;
		x->first = true;
		if (best == ACC_NOCALL ||
			acc_before(s->ranks, s->c, x->call, s->suspect[best].call))
			best = i;
	}
	/* An argument explains what comes out of its call. */
	for (uint32_t i = best; best != ACC_NOCALL && i < s->nsuspect; i++)
		if (s->suspect[i].call == s->suspect[best].call && s->suspect[i].role == ROLE_ARG &&
			s->suspect[best].role == ROLE_OUT)
			return i;
	return best;
}

/* Walk, and again while suspects are recomputed: which is named, ACC_NOCALL: none; and which stands
 * out first, by however little. */
static int
decide(struct scan *s, uint32_t *chosen, uint32_t *out, struct acc_err *e)
{
	int rc = 1;
	while (rc > 0) {
		rc = walk(s, false, e);
		if (rc == 0)
			rc = acc_accept_suspects(s, e);
		if (rc < 0)
			break;
		void *p = acc_grow(s->first, &s->first_cap, s->nsuspect, sizeof *s->first, e);
		if (p == NULL && s->nsuspect > 0)
			return ACC_ENOMEM;
		s->first = p;
		*out = choose(s, false);
		rc = acc_recompute(s, *out, e);
		*chosen = choose(s, true);
		if (rc == 0 && *chosen != *out)
			rc = acc_recompute(s, *chosen, e);
	}
	return rc;
}

static int
judge(struct acc_case *c, struct acc_err *e)
{
	struct scan s = {.c = c, .e = e, .unit = acc_network_unit(c)};
	uint32_t i = ACC_NOCALL, out = ACC_NOCALL;
	s.noise = acc_noise_ratio(c);
	s.weights = acc_weight_error(c);
	int rc = acc_sharded(c, e);
	if (rc != 0)
		return rc < 0 ? rc : acc_say_rest(c, e);
	rc = acc_forgive_masks(c, e);
	if (rc == 0)
		rc = walk(&s, true, e);
	if (rc == 0)
		rc = acc_learn(&s, e);
	if (rc == 0 && (s.ranks = acc_ranks_open(c, e)) == NULL)
		rc = ACC_ENOMEM;
	if (rc == 0)
		rc = decide(&s, &i, &out, e);
	if (rc == 0) {
		if (out != ACC_NOCALL)
			rc = acc_mark_suspects(&s, i, e);
		if (rc == 0 && i != ACC_NOCALL)
			rc = acc_say_culprit(&s, i, e);
		else if (rc == 0 && out != ACC_NOCALL)
			rc = acc_say_unsure(&s, out, e);
		if (rc == 0)
			rc = acc_say_constant(&s,
				i != ACC_NOCALL     ? s.suspect[i].item
				: out != ACC_NOCALL ? s.suspect[out].item
						    : ACC_NOCALL,
				e);
		if (rc == 0)
			rc = acc_say_bench(&s, e);
		if (rc == 0)
			rc = acc_say_clean(&s, i == ACC_NOCALL ? NULL : &s.suspect[i], e);
		if (rc == 0 && out != ACC_NOCALL)
			rc = acc_say_next(&s, i != ACC_NOCALL ? i : out, e);
		if (rc == 0 && i != ACC_NOCALL)
			rc = acc_say_ranks(c, s.ranks, s.suspect[i].call, s.first, s.nfirst,
				"stands out", e);
	}
	if (rc == 0)
		rc = acc_say_masks(c, e);
	if (rc == 0)
		rc = acc_say_ties(&s, i == ACC_NOCALL ? NULL : &s.suspect[i], e);
	if (rc == 0)
		rc = acc_say_missing(c, e);
	if (rc == 0)
		rc = acc_say_lost(c, e);
	if (rc == 0)
		rc = acc_say_rest(c, e);
	acc_ids_release(&s.made[0]);
	acc_ids_release(&s.made[1]);
	acc_ids_release(&s.twin);
	acc_map_release(&s.floor);
	acc_sum_release(&s);
	acc_ranks_close(s.ranks);
	acc_recompute_close(s.recompute);
	free(s.first);
	free(s.doubt);
	free(s.excess);
	free(s.suspect);
	return rc;
}

static bool
fits(const struct acc_case *c)
{
	(void)c;
	return true;
}

const struct acc_judge acc_judge_first_bad = {
	.fits = fits,
	.judge = judge,
};
