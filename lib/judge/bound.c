/* What the kind of an operator and its inputs say about the error of what comes out, beyond
 * the usual noise: bounds that hold for any implementation. */
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"

/* Elements that were moved or added carry their absolute errors with them, those that were
 * multiplied their relative ones: what is small may come to light, and be no new error. */
bool
acc_carried(const struct acc_item *it, const struct acc_call *k, const struct given *g, double unit)
{
	if (isinf(it->rms) || it->exact)
		return false;
	/* Backwards, moving and adding are sums, too; and a sum of n errors of either sign grows as
	 * the root of n. */
	bool sum = it->ndim <= 1 || k->cls == ACC_OP_MOVE || k->cls == ACC_OP_ADD;
	if (k->backward && sum && it->count > 0) {
		const double root = sqrt((double)g->grad_count / (double)it->count);
		/* What is zero in exact arithmetic is what both sides rounded, each in its own order. */
		const bool cancels = it->ndim <= 1 && !acc_unit_low(unit);
		const double own = cancels ? LIMIT_CARRIED_ADD_U * unit * root * g->grad_rms : 0;
		if (it->rmse <= LIMIT_CARRIED_SUM * root * g->grad_rmse + own)
			return true;
	}
	/* Of p - y; what is a rounding of p is one of it. */
	if (k->backward && k->response == ACC_OP_LOGITS && g->operands > 0 &&
		it->rms <= LIMIT_CARRIED_LOGITS * g->operand[0].max_abs && g->b_max < LIMIT_HIDDEN)
		return true;
	if (k->cls == ACC_OP_MOVE)
		return it->max_abs <= LIMIT_CARRIED_MOVE * g->max_abs;
	if (k->cls == ACC_OP_ADD || k->cls == ACC_OP_STEADY)
		return it->max_abs <= LIMIT_CARRIED_GAIN * k->slope * g->sum_abs +
					      LIMIT_CARRIED_ADD_U * unit * it->b_rms;
	if (k->cls == ACC_OP_MUL && g->sum_rel < LIMIT_CARRIED_REL)
		return it->max_rel <= LIMIT_CARRIED_GAIN * g->sum_rel + LIMIT_CARRIED_MUL_U * unit;
	/* Where an element is all error, a relative bound holds for none: x dy + y dx does. */
	if (k->cls == ACC_OP_MUL)
		return it->max_abs <= LIMIT_CARRIED_GAIN * g->b_max * g->sum_abs;
	return false;
}

/* Collectives bring in what other ranks hold. */
static bool
collective(const struct acc_call *k)
{
	return k->talks;
}

/* "alpha", as both sides have it: what the second term is multiplied by. */
static bool
is_factor(struct acc_case *c, const struct acc_item *it, double *factor)
{
	struct acc_rec *r;
	double x;
	if (it->rms > 0 || it->sides != 3 || acc_case_record(c, it, &r, NULL) < 0 ||
		!acc_str_is(acc_get_text(r, "a.", "pos"), "alpha") ||
		!acc_as_f64(acc_get(r, "a.", "value"), &x))
		return false;
	*factor = fabs(x);
	return true;
}

/* The largest absolute error that moving or adding elements forward can leave, or a function
 * whose slope is known, both sides' rounding counted; infinite where nothing is known.
 * Keywords may be factors (alpha). */
double
acc_abs_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double unit)
{
	const struct acc_case *c = s->c;
	bool add = k->cls == ACC_OP_ADD, steady = k->cls == ACC_OP_STEADY;
	if ((!add && !steady && k->cls != ACC_OP_MOVE) || k->backward || k->grad || k->module ||
		it->loose || it->exact || it->measure != ACC_BY_TENSOR || !isfinite(it->max_abs) ||
		g->unseen || isinf(g->rms) || collective(k) ||
		(it->a_nan && isnan(it->b_max))) /* beside a NaN nobody knows how large they are */
		return INFINITY;
	double factor = 1;
	for (uint32_t i = k->first; i <= k->last && add; i++)
		if (c->item[i].call == it->call && c->item[i].kind == ACC_ITEM_ARG &&
			c->item[i].io == ACC_IO_KW &&
			(g->operands < 2 || g->inputs != 2 || factor != 1 ||
				!is_factor(s->c, &c->item[i], &factor)))
			return INFINITY;
	double most = fmax(g->b_max, isfinite(it->b_max) ? it->b_max : 0);
	double sum = add ? g->sum_abs : k->slope * g->max_abs;
	if (factor != 1) {
		most = fmax(most, factor * g->b_max);
		sum = g->operand[0].max_abs + factor * g->operand[1].max_abs;
	}
	double rounding = steady ? LIMIT_MARGIN * acc_limit_output(s, k, unit, ACC_BY_TENSOR).floor
				 : LIMIT_BOUND_U * unit;
	return isfinite(sum) && isfinite(most) ? LIMIT_BOUND_ERRORS * sum + rounding * most
					       : INFINITY;
}

double
acc_product_scale(const struct acc_call *k, const struct acc_item *it, const struct given *g)
{
	if (k->cls != ACC_OP_CONTRACT || k->module || it->loose || it->count == 0 ||
		g->operands < 2)
		return 0;
	const struct operand *x = &g->operand[0], *y = &g->operand[1],
			     back = {.rms = g->grad_rms, .count = g->grad_count};
	/* The gradient of one factor is the product of what came in and of the other one. */
	if (k->backward) {
		y = x->count == it->count ? y : x;
		x = &back;
	}
	/* n terms: of (r, n) (n, c) -> (r, c), n^2 is the number of factors by that of results. */
	double terms = sqrt((double)x->count * (double)y->count / (double)it->count);
	return sqrt(terms) * x->rms * y->rms;
}

double
acc_sum_scale(const struct acc_call *k, const struct acc_item *it, const struct given *g)
{
	const struct operand *x = &g->operand[0];
	if (k->backward || k->module || it->loose || it->count == 0 || g->operands == 0 ||
		x->count < it->count)
		return 0;
	/* A sum of n terms is n means. */
	double n = k->sums == ACC_SUM ? (double)x->count / (double)it->count : 1;
	if (k->sums != ACC_NO_SUM)
		return n * x->rms;
	/* Of elements, tensors tell more: see acc_carried. */
	return k->cls == ACC_OP_ADD && it->measure == ACC_BY_STAT
		       ? fmax(x->rms, g->operands > 1 ? g->operand[1].rms : 0)
		       : 0;
}

/* An operator in 16 bits computes in f32 and rounds at its end: from equal inputs come results
 * that are mostly equal, and one step apart here and there. Of few elements, one step weighs
 * more. Infinite where that is not to be expected, or where these dumps show otherwise. */
double
acc_one_rounding(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double unit)
{
	/* Backwards, what moves is a sum, in which some round every term, as what has several steps may. */
	bool back = k->backward && (k->cls == ACC_OP_MOVE || k->steps > 1 || !g->saved);
	if (s->learning || !acc_unit_low(unit) || back || k->grad || k->module || it->loose ||
		it->measure != ACC_BY_TENSOR || it->count == 0 || !g->exact || g->unseen ||
		k->cls == ACC_OP_RANDOM || acc_learned(s, k, unit) > 1)
		return INFINITY;
	return LIMIT_ONE_ROUNDING * unit * (1 + LIMIT_ONE_ROUNDING_FEW / (double)it->count);
}

/* Errors of rounding are of either sign, and over many elements they cancel: what is left of them
 * along the tensor itself, a factor, is as small as one element's is large, by the root of their
 * number. What comes in with a factor may leave with it, as far as the operator makes errors larger;
 * and what all elements are multiplied by may be rounded once. So a factor shows that is smaller
 * than the errors of single elements. Infinite where nothing is known. */
double
acc_slope_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct limit *l, const struct given *g, double cause, double unit)
{
	bool stat = it->measure == ACC_BY_STAT;
	if (k->module || k->grad || k->cls == ACC_OP_RANDOM || k->talks || it->loose || it->exact ||
		(it->measure != ACC_BY_TENSOR && !stat) || !(it->few <= LIMIT_SLOPE_FEW) ||
		g->unseen || g->inner || g->permuted || isinf(g->rms) || !isfinite(g->slope) ||
		s->learning || (k->backward && !g->saved))
		return INFINITY;
	double rest = stat ? acc_stat_rest(s, k, cause, unit) : it->rest;
	double larger = stat          ? fmax(1, acc_stat_terms(k, it, g) / it->b_rms)
			: g->rest > 0 ? fmax(1, it->rest / g->rest)
				      : 1;
	double spread = stat ? larger * fmax(rest * it->few, g->spread)
			     : fmax(rest * it->few, g->spread);
	double shared = acc_unit_low(unit) ? LIMIT_SLOPE_U * unit : LIMIT_MARGIN * l->floor;
	return fmax(LIMIT_MARGIN * (larger * g->slope + spread), shared);
}

/* So the mean: of errors of either sign little is left in it, but what the inputs' means and norms are
 * off by. Those of an exponential's rows have one sign each. Backwards, what kinks let pass has one. */
double
acc_mean_bound(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	const struct given *g, double cause, double unit)
{
	if (k->module || k->grad || k->backward || k->cls == ACC_OP_RANDOM || k->talks ||
		it->loose || it->exact || it->measure != ACC_BY_STAT || it->count <= 1 ||
		!isfinite(it->mean_off) || !isfinite(it->few) || !acc_unit_low(unit) || g->unseen ||
		g->inner || g->permuted || isinf(g->rms) || !isfinite(cause) || s->learning ||
		acc_is_exponent(k))
		return INFINITY;
	double larger = fmax(1, acc_stat_terms(k, it, g) / it->b_rms), few = it->few;
	/* The rounding of a weight is the same in all rows. */
	if (acc_multiplies(k))
		few = it->b_max / (it->b_rms * sqrt(fmin(it->row, sqrt((double)it->count))));
	return LIMIT_MARGIN * larger * (g->mean + acc_stat_rest(s, k, cause, unit) * few);
}
