/* Does an output show more error than its op call may add to what it was given? */
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/order.h"

static int
excess(struct scan *s, const struct acc_call *k, double unit, double by, bool stat)
{
	double cap = acc_unit_low(unit)  ? LIMIT_LEARN_LOW
		     : acc_multiplies(k) ? LIMIT_LEARN_PRODUCTS
					 : LIMIT_LEARN_OTHER;
	if (!ACC_ROOM(s->excess, s->excess_cap, s->nexcess + 1, NULL))
		return ACC_ENOMEM;
	s->excess[s->nexcess++] = (struct excess){acc_noise_class(k, unit), fmin(by, cap), stat};
	return 0;
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
	/* By statistics, errors of the factors show, too, and are of the size of the terms. */
	if (stat && !k->backward)
		terms = fmax(terms, scale);
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
		if (it->call != call || acc_is_input(it) || it->kind != ACC_ITEM_TENSOR ||
			it->exact)
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

/* What an element of an incoming gradient is multiplied by, at most, to be summed up in that of a weight:
 * by an element of the other factor. 0: it is no such sum. */
static double
largest_factor(const struct acc_call *k, const struct acc_item *it, const struct given *g)
{
	bool second = acc_multiplies(k) && g->operands > 1 && g->operand[1].count == it->count &&
		      g->operand[0].count != it->count;
	return second ? LIMIT_MARGIN_MAX * g->operand[0].rms : 0;
}

/* Where a kink before it fell otherwise, one element of an incoming gradient is there or not, and a sum
 * of them differs by as much; its statistics do not show it. Of n elements with errors of e, some e n
 * are such, on average. */
static bool
one_flipped(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g)
{
	if (it->measure != ACC_BY_STAT || !k->backward)
		return false;
	/* So where of equal values another one was chosen; its term of a product has another factor. */
	double other = it->ndim > 1                ? largest_factor(k, it, g)
		       : g->grad_count > it->count ? LIMIT_MARGIN_MAX
						   : 0;
	if (s->chosen && it->stat_abs <= g->b_max * other)
		return true;
	double flipped = (double)g->grad_count * acc_stat_element(s, g->rms, acc_item_unit(it));
	double least = s->flips > 0 ? LIMIT_FLIPPED : 1;
	return it->ndim <= 1 && g->grad_count > it->count && flipped >= least &&
	       acc_stat_gradient_scale(k, it, g) > 0 && it->stat_abs <= g->b_max;
}

/* What statistics of an output may differ by follows from those of the inputs by the slope of the
 * operator at the very elements, which they do not show: its worst. */
static void
respond(const struct acc_call *k, const struct given *g, double unit, struct suspect *x,
	double *cause_max)
{
	double *cause[2] = {&x->cause, cause_max};
	for (int i = 0; i < 2; i++) {
		double e = *cause[i];
		if (k->response == ACC_OP_ROOT && e > 0 && e < 1)
			/* Of a number near zero, what it was made of was rounded. */
			*cause[i] = sqrt(fmax(e, unit));
		else if (k->backward ? k->response == ACC_OP_LOGITS : acc_is_exponent(k))
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
	if (g->unseen || k->grad || it->array || s->unfed) {
		/* What it was given is known only through its neighbours. */
		x->cause = fmax(x->cause, acc_recent(s, k->backward || k->grad));
		*cause_max = fmax(*cause_max, x->cause);
		l.gain = fmax(l.gain, LIMIT_UNSEEN_GAIN);
		/* In 8 bits that would be any number (behaviour msprobe-float8-nothing). */
		l.floor = fmax(l.floor, fmin(LIMIT_UNSEEN_FLOOR * unit,
						fmax(LIMIT_UNSEEN_FLOOR * acc_unit(ACC_BF16),
							LIMIT_UNSEEN_COARSE * unit)));
	}
	if (it->measure == ACC_BY_STAT) {
		x->cause = fmax(x->cause, acc_stat_usual(s, k->backward || k->grad));
		x->cause = fmax(x->cause, acc_stat_unseen(s, unit));
		/* What only moves elements hands on the worst of them, which may be anyone's; so does what
		 * brings other ranks', which statistics may not show. */
		if (s->folded && (k->talks || (k->cls == ACC_OP_MOVE && g->unseen)))
			x->cause = fmax(x->cause, s->most);
		/* That of an element is relative to it; its sum with others is measured by what most
		 * of these are. */
		if (acc_stat_gradient_scale(k, it, g) > 0 && g->grad_rms > 0)
			x->cause = fmax(x->cause, g->grad_abs / g->grad_rms);
		*cause_max = fmax(*cause_max, x->cause);
		/* What the digits of statistics leave open of a large argument. */
		if (k->response == ACC_OP_EXPONENT && !k->backward)
			l.floor *= fmax(1, g->b_max);
		respond(k, g, unit, x, cause_max);
	}
	const struct acc_item *in = acc_passed_through(s->c, it->call, it);
	if (in != NULL) {
		l.gain = LIMIT_PASSED_GAIN;
		x->cause = acc_cause_of(in, false);
		*cause_max = acc_cause_of(in, true);
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

/* Is it an f32 product that shows how it was made? The gradient of a bias is a sum, what is zero shows
 * nothing, and one number may agree by chance. */
static bool
is_product(const struct acc_call *k, const struct acc_item *it, double unit)
{
	return acc_multiplies(k) && !acc_unit_low(unit) && !(k->backward && it->ndim <= 1) &&
	       it->count > 1 && it->b_rms > 0;
}

/* Forward, statistics in 16 bits show less than the margin of all limits is for; but what adds may have
 * terms that cancel, and what multiplies may be small. */
static bool
is_tight(const struct acc_call *k, const struct acc_item *it, double unit)
{
	return it->measure == ACC_BY_STAT && !it->exact && !k->backward && !k->grad && !k->module &&
	       k->cls != ACC_OP_ADD && k->cls != ACC_OP_MUL && acc_unit_low(unit);
}

/* A norm over two values gives their sign; its gradient divides by their difference, which statistics do not
 * show. As far off as another tensor is none the less. */
static bool
over_few(const struct scan *s, uint32_t call, const struct acc_item *it)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	if (k->response != ACC_OP_DEVIATION || !k->backward || it->measure != ACC_BY_STAT ||
		it->ndim < 2 || !(it->rms < 1))
		return false;
	uint64_t channels = it->ndim == 2 ? it->row : 0;
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && !acc_is_input(&c->item[i]) && c->item[i].ndim == 1)
			channels = c->item[i].count;
	return channels > 0 && it->count <= LIMIT_NORM_VALUES * channels;
}

/* A sum of products, or of what was moved, is finite where all that went in was, on whatever way it came
 * here; nothing before it was not. An overflow is told by its size. */
static bool
breaks(const struct scan *s, uint32_t call, const struct acc_item *it)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	if (!it->nonfinite || !(it->a_nan || it->a_inf) || it->b_overflow || s->wild || k->module ||
		(k->cls != ACC_OP_CONTRACT && k->cls != ACC_OP_MOVE && k->cls != ACC_OP_ADD) ||
		!(it->b_max < LIMIT_BREAKS * acc_item_dtype(it, ACC_A)->max))
		return false;
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && acc_is_input(&c->item[i]) &&
			c->item[i].kind == ACC_ITEM_TENSOR &&
			(!c->item[i].a_known || c->item[i].a_nan || c->item[i].a_inf))
			return false;
	return true;
}

/* --- the witnesses of an output --- */

struct look {
	struct scan *s;
	uint32_t call;
	const struct acc_call *k;
	const struct acc_item *it;
	const struct given *g;
	double unit;
	struct limit l;
	double rms;  /* its error, measured as soften says; */
	bool by_max; /* the largest error is further beyond its limit */
};

/* A value beyond its bound, if by more than anything before. */
static bool
beyond(struct suspect *x, double value, double bound, const char *from)
{
	if (!(value > bound) || !(log10(value / bound) > x->margin))
		return false;
	x->margin = fmin(LIMIT_CERTAIN, log10(value / bound));
	x->value = value;
	x->limit = bound;
	x->from = from;
	return true;
}

static bool
is_carried(const struct look *o)
{
	return o->it->measure == ACC_BY_TENSOR && acc_carried(o->it, o->k, o->g, o->unit);
}

static void
carried_error(const struct look *o, struct suspect *x)
{
	if (is_carried(o))
		x->margin = -LIMIT_CERTAIN;
}

static void
handed_on(const struct look *o, struct suspect *x)
{
	if (acc_handed_on(o->s, o->call, o->it))
		x->margin = -LIMIT_CERTAIN;
}

static void
absolute_error(const struct look *o, struct suspect *x)
{
	beyond(x, o->it->max_abs, LIMIT_BOUND * acc_abs_bound(o->s, o->k, o->it, o->g, o->unit),
		"this operator cannot make absolute errors larger");
}

static void
error_slope(const struct look *o, struct suspect *x)
{
	double bound = acc_slope_bound(o->s, o->k, o->it, &o->l, o->g, x->cause, o->unit);
	if (o->it->slope > bound && !acc_handed_on(o->s, o->call, o->it))
		x->slope |= beyond(x, o->it->slope, bound,
			"errors of rounding have either sign, and cancel over the elements");
}

static void
error_mean(const struct look *o, struct suspect *x)
{
	beyond(x, o->it->mean_off, acc_mean_bound(o->s, o->k, o->it, o->g, x->cause, o->unit),
		"errors of rounding have either sign, and cancel in a mean");
}

static void
bench_noise(const struct look *o, struct suspect *x)
{
	const struct acc_item *it = o->it;
	acc_known_noise(o->s, it, o->by_max ? it->max : it->rms,
		o->by_max ? it->noise_max : it->noise_rms, x);
}

static void
other_choice(const struct look *o, struct suspect *x)
{
	struct scan *s = o->s;
	const struct acc_item *it = o->it;
	const bool stat = it->measure == ACC_BY_STAT;
	s->rerouted |= s->ranked && it->exact && stat && it->rms > 0;
	if (is_tie(s, o->call, it, o->unit, o->g) || one_flipped(s, o->k, it, o->g) ||
		over_few(s, o->call, it) ||
		/* Statistics of a mask do not show that places in it changed, nor what it was then
		 * that was found or put there. */
		(s->rerouted && (it->exact || o->g->places) && stat) ||
		(s->astray && stat && !it->nonfinite))
		x->margin = -LIMIT_CERTAIN;
}

/* Numbers in other places are no noise, however large that is, if they came in the right ones. */
static void
other_places(const struct look *o, struct suspect *x)
{
	if (!o->it->permuted || !(o->it->rms >= 1) || o->g->permuted || isinf(x->cause) ||
		acc_handed_on(o->s, o->call, o->it))
		return;
	x->margin = LIMIT_CERTAIN;
	x->value = o->rms;
}

/* Nor those of its places as floats, which are counted here: how often each was chosen. */
static void
counted_places(const struct look *o, struct suspect *x)
{
	struct scan *s = o->s;
	if (!s->ranked || !o->g->masks || o->k->sums == ACC_NO_SUM ||
		o->it->measure != ACC_BY_STAT || !(x->margin > 0))
		return;
	s->rerouted = true;
	x->margin = -LIMIT_CERTAIN;
}

/* Where the statistics of what the device gave it say what comes out, they decide: in units of what
 * rounding leaves. */
static void
own_statistics(const struct look *o, struct suspect *x)
{
	bool whole = false;
	double q = acc_relation(o->s, o->call, o->it, &whole);
	if (q >= 0 && q <= 1 && whole)
		x->margin = -LIMIT_CERTAIN;
	if (!(q > 1) || log10(q) <= x->margin)
		return;
	/* Some devices sum up a bias's gradient on the units that make products. */
	if (o->k->backward && o->it->ndim <= 1 && acc_is_coarse(o->s, acc_item_unit(o->it)))
		return;
	x->own = true;
	x->margin = fmin(log10(q), LIMIT_CERTAIN);
	x->value = isinf(q) ? INFINITY : o->it->rms;
	x->limit = isinf(q) ? 0 : x->value / q;
	x->from = "the statistics of the device's own inputs";
}

static void
finite_sum(const struct look *o, struct suspect *x)
{
	if (!breaks(o->s, o->call, o->it) || x->margin > 0)
		return;
	x->margin = LIMIT_CERTAIN;
	x->value = INFINITY;
	x->limit = 0;
	x->from = "what is finite adds up to what is";
}

static void
hidden_nan(const struct look *o, struct suspect *x)
{
	if (o->it->hides)
		x->margin = -LIMIT_CERTAIN;
}

static void
own_formula(const struct look *o, struct suspect *x)
{
	if (o->it->lawful)
		x->margin = -LIMIT_CERTAIN;
}

static void
noise_step(const struct look *o, struct suspect *x)
{
	if (x->margin > 0 && acc_is_noise_step(o->s->c, o->call, o->it))
		x->margin = -LIMIT_CERTAIN;
}

/* Each accuses or excuses in turn; of those that accuse the strongest stays. */
static void
hear(const struct look *o, struct suspect *x)
{
#define ROW(id) \
	{ \
		ACC_WITNESS_##id, id \
	}
	static const struct {
		enum acc_witness_id id;
		void (*ask)(const struct look *o, struct suspect *x);
	} row[] = {ROW(carried_error), ROW(handed_on), ROW(absolute_error), ROW(error_slope),
		ROW(error_mean), ROW(bench_noise), ROW(other_choice), ROW(other_places),
		ROW(counted_places), ROW(own_statistics), ROW(finite_sum), ROW(hidden_nan),
		ROW(own_formula), ROW(noise_step)};
#undef ROW
	struct suspect before = *x;
	before.margin = -LIMIT_CERTAIN;
	acc_witness_switch(o->s, ACC_WITNESS_usual_error, &before, x);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		before = *x;
		row[i].ask(o, x);
		acc_witness_switch(o->s, row[i].id, &before, x);
	}
}

/* By how much more than it may an output is off, by itself. */
static void
weigh(struct look *o, struct suspect *x)
{
	const struct acc_item *it = o->it;
	double max = acc_item_error(it, true), cause_max;
	o->rms = acc_item_error(it, false);
	o->l = allow(o->s, o->k, it, o->unit, o->g, x, &cause_max);
	soften(o->k, it, o->g, &o->rms, &max);
	x->margin = acc_margin(o->rms, &o->l, x->cause);
	struct limit each = {LIMIT_MARGIN_MAX * o->l.floor, o->l.gain, NULL};
	double largest = acc_margin(max, &each, cause_max);
	o->by_max = largest > x->margin && !it->exact;
	x->value = o->by_max ? max : o->rms;
	x->limit = LIMIT_MARGIN * (o->by_max ? each.floor + each.gain * cause_max
					     : o->l.floor + o->l.gain * x->cause);
	x->margin = o->by_max ? largest : x->margin;
	if (is_tight(o->k, it, o->unit)) {
		x->margin += log10(LIMIT_MARGIN / LIMIT_MARGIN_STAT);
		x->limit *= LIMIT_MARGIN_STAT / LIMIT_MARGIN;
	}
}

/* How much of its limit an output is off by, of which the usual noise is learned. Where NaN met NaN there may be
 * nothing left that was compared; and what has no elements, as of experts without tokens, or is zero, as their
 * gradients, shows nothing of how it was made. */
static int
learn(const struct look *o)
{
	const struct acc_item *it = o->it;
	const double by = o->rms / o->l.floor;
	if (!o->s->learning || o->g->unseen || isinf(o->rms) || it->exact || it->a_nan ||
		it->count == 0 || it->b_rms == 0)
		return 0;
	if (is_product(o->k, it, o->unit))
		o->s->finest = fmin(o->s->finest, by);
	return o->k->module && !acc_multiplies(o->k)
		       ? 0
		       : excess(o->s, o->k, o->unit, by, it->measure == ACC_BY_STAT);
}

/* Where all products are off alike, one of them is recomputed, which tells how they are made: the first. */
static bool
is_to_tell(const struct look *o)
{
	struct scan *s = o->s;
	if (s->learning || s->told || !is_product(o->k, o->it, o->unit) || !(o->it->rms > 0) ||
		!(acc_learned(s, o->k, o->unit) > LIMIT_LEARN_SAID))
		return false;
	s->told = true;
	return true;
}

/* Is no tensor recorded of what went in, as by hooks that save outputs alone? Then nothing shows that it agrees. */
static bool
nothing_went_in(const struct scan *s, uint32_t call, const struct given *g)
{
	return g->inputs == 0 && !g->saved && !acc_is_communication(&s->c->call[call]);
}

int
acc_judge_output(struct scan *s, uint32_t call, uint32_t i, double unit, const struct given *g,
	double *worst)
{
	const struct acc_call *k = &s->c->call[call];
	const struct acc_item *it = &s->c->item[i];
	struct look o = {.s = s, .call = call, .k = k, .it = it, .g = g, .unit = unit};
	struct suspect x = {.call = call,
		.item = i,
		.role = ROLE_OUT,
		.blame = call,
		.producer = ACC_NOCALL,
		.unseen = g->unseen,
		.alone = it->array || (g->inputs > 0 && g->heard == 0 && !isinf(g->rms)),
		.bare = !it->array && nothing_went_in(s, call, g),
		.inner = g->inner,
		.flips = s->flips};
	weigh(&o, &x);
	if (s->near != NULL)
		s->near[call] = fmaxf(s->near[call], fminf((float)x.margin, 0));
	/* The bound of a product holds for any two factors, and forgives much where one is small. */
	bool loose = k->cls == ACC_OP_MUL && x.margin > 0 && is_carried(&o);
	hear(&o, &x);
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
	bool unsure = (loose || x.margin > -log10(LIMIT_MARGIN)) && x.margin <= 0 &&
		      !(it->audited & 1);
	acc_witness_audit(s, it, &x);
	if (finds_places(k, it) && it->rms > 0 && !(x.margin > 0) && !isinf(g->rms)) {
		s->tie = s->ties++ == 0 ? i : s->tie;
		s->tie_given = s->ties == 1 ? g->rms : s->tie_given;
		s->rerouted = true;
	}
	/* The margin of the limits is for what nobody recomputes. */
	if (s->near != NULL && (unsure || is_to_tell(&o)))
		s->near[call] = 1;
	if (x.margin > 0 && k->cls != ACC_OP_ALLOC && acc_suspect_add(s, &x) < 0)
		return ACC_ENOMEM;
	return learn(&o);
}
