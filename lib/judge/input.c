/* What is wrong with what an op call was given: an input that is not what its maker gave, a running
 * mean, a number among the arguments. */
#include "judge/first_bad.h"
#include "acc/say.h"

#include <math.h>

#include "judge/case.h"

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
		unit = fmax(unit, acc_item_unit(&s->c->item[sum.part[k]]));
	struct limit l = {LIMIT_SUM_FLOOR * unit, LIMIT_SUM_GAIN,
		"the sum of the gradients that it is"};
	/* Where parts cancel, or are zero in exact arithmetic, their errors are relative to more than
	 * the sum is: it is measured against the same. */
	double e = acc_item_error(it, false), parts = 0;
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
	/* Of what all ranks have, each tensor is given as one of them has it: these differ by noise. */
	const bool copies = s->folded && s->c->nranks[ACC_A] > 1;
	if (own > x->margin && !copies) {
		x->margin = own;
		x->value = sum.off;
		x->limit = LIMIT_MARGIN * (l.floor + l.gain * sum.bench_off);
	}
	acc_known_noise(s, it, acc_item_error(it, false), it->noise_rms, x);
	if (!(x->margin > 0))
		return 0;
	x->sum = "";
	for (unsigned k = 0; k < sum.n && x->sum != NULL; k++)
		x->sum = acc_say(&s->c->mem, "%s%s%s", x->sum,
			k == 0           ? ""
			: k + 1 == sum.n ? " and "
					 : ", ",
			acc_call_name(&s->c->call[s->c->item[sum.part[k]].call]));
	return x->sum == NULL ? ACC_ENOMEM : 0;
}

/* A gradient that nobody made, or that was not compared where it was, on both sides no larger than what
 * gradients of the size of those before it are rounded by: it is what is left where they cancel, and zero in exact arithmetic. */
static bool
is_rest(const struct scan *s, const struct acc_call *k, const struct acc_item *it, double unit)
{
	double size = 0;
	/* It was computed as the network is, whatever it has been cast to. */
	unit = fmax(unit, s->unit);
	const double floor = acc_unit_low(unit) ? LIMIT_OTHER_FLOOR_16 : LIMIT_OTHER_FLOOR;
	for (uint32_t i = 0; i < LIMIT_RECENT && i < s->nrecent[true]; i++)
		size = s->size[i] > size ? s->size[i] : size;
	double off = it->measure == ACC_BY_STAT ? it->stat_abs : it->rmse;
	return (k->backward || s->nrecent[true] > 0) && !it->weight && !it->permuted && off > 0 &&
	       fmax(off, it->b_rms) <= LIMIT_MARGIN * floor * unit * size;
}

/* A gradient that nobody made, on its way to the optimizer: the sum of several, of micro-batches or of
 * the users of a weight, which may cancel and leave elements that are all error, but no more of it
 * than they had. */
static bool
is_gradient_sum(const struct scan *s, const struct acc_call *k, uint32_t i, double unit)
{
	const struct acc_item *it = &s->c->item[i];
	double off = it->measure == ACC_BY_STAT ? it->stat_abs : it->rmse;
	return !k->backward && !k->module && !it->weight && !it->permuted && s->nrecent[true] > 0 &&
	       off <= acc_gradients_sum(s, i, fmax(unit, s->unit));
}

/* Nothing was computed before this call: what it is given, the two sides read, and at most cast. */
static bool
is_batch(const struct scan *s, const struct acc_call *k)
{
	return !k->backward && !k->grad && !k->module && k->keyed && s->nrecent[false] == 0 &&
	       s->nrecent[true] == 0;
}

/* What an optimizer is to change, in a network of 16 bits: what was there before the step, if no op call made it and most
 * weights are equal on both sides. Statistics of what is split over ranks have the errors of gradients all around it. */
static bool
is_changed(const struct scan *s, const struct acc_call *k, const struct acc_item *it)
{
	struct acc_rec *r;
	return acc_call_steps(k) && acc_unit_low(s->unit) && s->weights == 0 && !it->exact &&
	       it->io == ACC_IO_IN && it->rms > 0 && acc_case_record(s->c, it, &r, s->e) == 0 &&
	       acc_str_starts(acc_get_text(r, "b.", "pos"), "0.");
}

/* What made an input. An operator may have given back what it was given, by chance, as relu of what is
 * positive, and the norm of one number; on the device it need not: then the input is what that operator
 * was given, too, if it is the same on both sides. And zeros are made in many places. */
static uint32_t
made_by(const struct scan *s, const struct acc_call *k, const struct acc_item *it)
{
	const struct acc_case *c = s->c;
	uint32_t p = it->b_max == 0 ? ACC_NOCALL : acc_maker(s, ACC_B, k, it->id[ACC_B]);
	if (p == ACC_NOCALL || acc_is_input(&c->item[p]) || acc_same_pair(it, &c->item[p]))
		return p;
	const struct acc_item *in = acc_passed_through(c, c->item[p].call, &c->item[p]);
	return in != NULL && acc_same_pair(it, in) ? (uint32_t)(in - c->item) : p;
}

/* Which op call gave the device's, if not the one that gave the bench's; NULL: it is not known. */
static const char *
made_otherwise(const struct scan *s, const struct acc_call *k, const struct acc_item *it,
	uint32_t call)
{
	const uint32_t own = it->a_flat ? ACC_NOCALL : acc_maker(s, ACC_A, k, it->id[ACC_A]);
	return own == ACC_NOCALL || acc_is_input(&s->c->item[own]) || s->c->item[own].call == call
		       ? NULL
		       : s->c->call[s->c->item[own].call].key[ACC_A];
}

/* Another operator than the bench's, that gives the same: a quotient for a product, whose divisor is no factor. 1, 0, or < 0. */
static int
is_other_way(struct scan *s, uint32_t call, const struct acc_item *in)
{
	const struct acc_call *k = &s->c->call[call];
	struct acc_rec *r;
	bool gives = false;
	if (!s->two)
		return 0;
	const int rc = acc_case_record(s->c, in, &r, s->e);
	if (rc < 0 || acc_op_same(acc_get_text(r, "a.", "op"), acc_get_text(r, "b.", "op")))
		return rc;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &s->c->item[i];
		if (it->call != call || !acc_is_output(it) || !acc_is_measured(it))
			continue;
		if (!(it->rms <= LIMIT_OTHER_OUTPUT * acc_item_unit(it)))
			return 0;
		gives = true;
	}
	return gives;
}

int
acc_judge_input(struct scan *s, uint32_t call, uint32_t i, double unit, struct given *g)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	const struct acc_item *it = &c->item[i];
	uint32_t p = made_by(s, k, it);
	const bool weight = it->weight || (p == ACC_NOCALL && is_changed(s, k, it));
	struct limit l;
	double own = unit;
	struct suspect x = {.call = call, .item = i, .role = ROLE_IN, .producer = p};
	if (p != ACC_NOCALL && c->item[p].measure != ACC_UNMEASURED) {
		l = (struct limit){LIMIT_TRACED_FLOOR * unit, LIMIT_TRACED_GAIN,
			"the output that it is"};
		x.cause = acc_cause_of(&c->item[p], false);
	} else if (p == ACC_NOCALL && (weight || is_batch(s, k))) {
		own = weight && !it->weight   ? s->unit
		      : acc_item_unit(it) > 0 ? acc_item_unit(it)
					      : unit;
		l = (struct limit){
			(acc_unit_low(own) ? LIMIT_WEIGHT_FLOOR_16 : LIMIT_WEIGHT_FLOOR) * own,
			LIMIT_WEIGHT_GAIN,
			weight ? "weights are equal" : "nothing was computed before it"};
		x.cause = it->weight && s->few && !it->rounded ? 0 : s->weights;
	} else {
		l = (struct limit){
			(acc_unit_low(unit) ? LIMIT_UNTRACED_FLOOR_16 : LIMIT_UNTRACED_FLOOR) *
				unit,
			LIMIT_UNSEEN_GAIN, "what the op calls before it show"};
		if (p != ACC_NOCALL) {
			/* It is the only sight of an output that was not compared, and may be as far off. */
			struct limit o = acc_limit_output(s, &c->call[c->item[p].call], unit,
				(enum acc_measure)it->measure);
			l.from = o.floor > l.floor ? o.from : l.from;
			l.floor = fmax(l.floor, o.floor);
			l.gain = fmax(l.gain, o.gain);
		}
		/* What was made in the backward pass has the errors of that. */
		x.cause = acc_recent(s,
			k->backward || (p != ACC_NOCALL && c->call[c->item[p].call].backward));
		/* A gradient on its way to the optimizer may have been added to or scaled. */
		if (!k->backward && !k->module && s->nrecent[true] > 0)
			x.cause = fmax(x.cause, acc_gradients_error(s, i));
		/* A number there, as their norm, is made of all of them, of which not all need have been compared. */
		if (!k->backward && !k->module && s->nrecent[true] > 0 && it->count == 1)
			x.cause = fmax(x.cause, acc_recent(s, true));
	}
	if (it->measure == ACC_BY_STAT)
		l.floor += acc_statistic_rounding(p != ACC_NOCALL
							  ? fmax(unit, acc_item_unit(&c->item[p]))
						  : it->weight ? own
						  : weight     ? acc_item_unit(it)
							       : fmax(own, s->unit));
	/* What most weights show is the cast that the floor is for: it is counted once. */
	if (p == ACC_NOCALL && it->weight)
		l.floor = fmax(0, l.floor - l.gain * x.cause);
	x.margin = acc_margin(acc_item_error(it, false), &l, x.cause);
	x.value = acc_item_error(it, false);
	x.limit = LIMIT_MARGIN * (l.floor + l.gain * x.cause);
	x.from = l.from;
	if (it->exact && it->rms > 0)
		/* Once choices fell otherwise, or may have where nobody saw it, indices whose maker is not
		 * recorded (a slice, a count) prove nothing; nor does one integer where the pairing is a
		 * guess: a counter goes on where a side computes again. */
		x.margin = (p != ACC_NOCALL ? c->item[p].rms > 0 : s->flipped || s->astray) ||
					   isinf(x.cause) || (it->guessed && it->count == 1)
				   ? -LIMIT_CERTAIN
				   : LIMIT_CERTAIN;
	else if (p != ACC_NOCALL
			 ? same_error(it, &c->item[p], unit) ||
				   (c->item[p].measure == ACC_UNMEASURED && is_rest(s, k, it, unit))
			 : (it->nonfinite && s->wild) ||
				   (!weight && (is_rest(s, k, it, unit) ||
						       is_gradient_sum(s, k, i, unit))))
		x.margin = -LIMIT_CERTAIN;
	if (it->weight && it->rounded && p == ACC_NOCALL)
		x.margin = -LIMIT_CERTAIN;
	/* One side makes zero of what is below the normal numbers (jax-flushes-subnormals), and who made it among many
	 * zeros is not told. */
	if (it->measure == ACC_BY_TENSOR && !it->exact && !it->nonfinite && it->max_abs < 0x1p-126)
		x.margin = -LIMIT_CERTAIN;
	acc_known_noise(s, it, it->rms, it->noise_rms, &x);
	bool gradient = k->backward || (s->nrecent[true] > 0 && !weight && !k->module);
	if (p == ACC_NOCALL && gradient && !s->learning) {
		int rc = judge_sum(s, call, i, unit, &x);
		if (rc < 0)
			return rc;
	}
	bool strict = !it->loose || k->backward;
	/* Another tie may have been found before, and places that were made of it are others. */
	if (s->ranked && it->exact && it->measure == ACC_BY_STAT && it->rms > 0) {
		x.margin = -LIMIT_CERTAIN;
		s->rerouted = true;
	}
	/* Where a choice of places fell otherwise, other numbers go other ways. */
	if ((s->rerouted || (s->astray && it->measure == ACC_BY_STAT && !it->nonfinite)) &&
		(!it->weight || it->rms >= LIMIT_OTHER_WEIGHT))
		x.margin = -LIMIT_CERTAIN;
	if (x.margin > 0 && p == ACC_NOCALL && !weight) {
		const bool left = acc_left_out(s, call, i, unit);
		if (left)
			acc_receive(g, it);
		else if (acc_written_partly(s, call, i)) {
			g->unwritten = true;
			g->rms = g->max = INFINITY;
		}
		if (left || g->unwritten)
			return 0;
	}
	/* Running means, of which training makes nothing: see judge_state. */
	if (it->state)
		return 0;
	const bool made_up = x.margin > 0 && k->backward && acc_is_made_up_for(c, call, it, unit);
	if (x.margin > 0 && strict && !s->learning && !made_up &&
		(p == ACC_NOCALL || !acc_same_pair(it, &c->item[p]))) {
		const int other = is_other_way(s, call, it);
		if (other != 0)
			return other < 0 ? other : 0;
		x.blame = acc_overwriter(s, call, it);
		x.weight = weight;
		if (p != ACC_NOCALL)
			x.other = made_otherwise(s, k, it, c->item[p].call);
		if (acc_suspect_add(s, &x) < 0)
			return ACC_ENOMEM;
	}
	acc_receive(g, it);
	/* Nobody made it: from now on it is known, and no news where it comes again. */
	return p == ACC_NOCALL ? acc_remember(s, k, i, false) : 0;
}

/* Running means and variances that differ, in a call whose outputs are not explained by the rest: a side
 * that computes a part again has others, and in training nothing is made of them. */
int
acc_judge_state(struct scan *s, uint32_t call, double unit, double worst)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	const double may = LIMIT_MARGIN * (LIMIT_UNTRACED_FLOOR * unit +
						  LIMIT_UNSEEN_GAIN * acc_recent(s, k->backward));
	for (uint32_t i = k->first; i <= k->last && worst > 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !it->state || !acc_is_measured(it) ||
			!(acc_item_error(it, false) > may))
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
		if (acc_suspect_add(s, &x) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

/* The value of an argument that one side alone gives. Both are valid until the next record is read. */
static const struct acc_val *
value_of(struct scan *s, const struct acc_item *it, int *rc)
{
	struct acc_rec *r;
	*rc = acc_case_record(s->c, it, &r, s->e);
	return *rc < 0 ? NULL : acc_get(r, it->sides == 1 ? "a." : "b.", "value");
}

/* None and False are what arguments are that are not given. */
static bool
says_nothing(const struct acc_val *v)
{
	return v == NULL || v->type == ACC_V_NIL || (v->type == ACC_V_BOOL && !v->b) ||
	       (v->type == ACC_V_TEXT && acc_str_is(v->s, "none"));
}

/* A hash of a value; 0 where it is none. An integer is the float of its value. */
static uint64_t
value_id(const struct acc_val *v)
{
	double x;
	if (v->type == ACC_V_TEXT)
		return acc_hash(v->s.p, v->s.n) | 1;
	if (v->type == ACC_V_INTS)
		return acc_hash(v->ints, v->n * sizeof *v->ints) | 1;
	return acc_as_f64(v, &x) ? acc_hash(&x, sizeof x) | 1 : 0;
}

/* Does an argument that the other side alone gives have this value, by another name or at another place? 1,
 * 0, or < 0. */
static int
is_elsewhere(struct scan *s, uint32_t call, const struct acc_item *it, uint64_t id)
{
	const struct acc_case *c = s->c;
	int rc = 0;
	for (uint32_t i = c->call[call].first; i <= c->call[call].last; i++) {
		const struct acc_item *x = &c->item[i];
		if (x->call != call || x->kind != ACC_ITEM_ARG || x->sides != 3 - it->sides)
			continue;
		const struct acc_val *v = value_of(s, x, &rc);
		if (rc < 0)
			return rc;
		if (v != NULL && value_id(v) == id)
			return 1;
	}
	return 0;
}

/* What comes out differs and is right on either side for what was given: is that the same but for an argument that
 * has a default of its own in each framework? 1, 0, or < 0. */
static int
is_other_default(struct scan *s, uint32_t call, const struct acc_item *arg)
{
	struct acc_rec *r;
	if (!acc_differs_by_itself(s, call))
		return 0;
	int rc = acc_case_record(s->c, arg, &r, s->e);
	if (rc < 0)
		return rc;
	struct acc_str op = acc_get_text(r, "a.", "op"), pos = acc_get_text(r, "a.", "pos");
	return acc_op_default(op, pos).n > 0 && acc_str_eq(pos, acc_get_text(r, "b.", "pos"));
}

/* MindSpore's primitives are made with arguments that msprobe has no record of. */
static bool
is_primitive(const struct acc_call *k, int side)
{
	return k->key[side] != NULL && strncmp(k->key[side], "Primitive.", 10) == 0;
}

/* Of kernels that make up one call of another framework, is it another operator than that? Of a variance, which is the
 * square of a deviation, it is not: what the two divide by is the same argument. 1, 0, or < 0. */
static int
is_part(struct scan *s, uint32_t call)
{
	static const struct acc_str name = {"unbiased", 8};
	const struct acc_call *k = &s->c->call[call];
	struct acc_recorded how;
	struct acc_rec *r;
	if (acc_recorded(s->c, k, &how, s->e) < 0)
		return s->e->code;
	for (uint32_t i = k->first; i <= k->last && !how.framework; i++) {
		const struct acc_item *it = &s->c->item[i];
		if (it->call != call || it->sides != 3 || !acc_is_output(it))
			continue;
		const int rc = acc_case_record(s->c, it, &r, s->e);
		return rc < 0 ? rc
			      : acc_op_default(acc_get_text(r, "a.", "op"), name).n == 0 ||
					acc_op_default(acc_get_text(r, "b.", "op"), name).n == 0;
	}
	return 1;
}

/* What both sides make is right for what they were given, the tensors that they were given agree, and what
 * they make does not: then the arguments are others. One that one side alone gives is it. */
static int
judge_alone_args(struct scan *s, uint32_t call, double worst, const struct given *g)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	struct acc_recorded how;
	const int part = acc_call_is_fused(s->c, call) ? is_part(s, call) : 0;
	if (part < 0 || g->unseen || g->inner || part > 0 || k->cls == ACC_OP_RANDOM)
		return part < 0 ? part : 0;
	const bool little = worst < LIMIT_NAMED_ARG, itself = acc_differs_by_itself(s, call);
	if (little && !itself)
		return 0;
	/* Kernels have arguments of their own, and lack others. */
	if (acc_recorded(s->c, k, &how, s->e) < 0)
		return s->e->code;
	const bool kernels = !how.framework && !how.format;
	const size_t had = s->nsuspect;
	if (itself && kernels && acc_judge_defaults(s, call, LIMIT_CERTAIN) < 0)
		return s->e->code;
	if (little || s->nsuspect > had)
		return 0;
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && c->item[i].kind == ACC_ITEM_TENSOR &&
			!acc_is_input(&c->item[i]) && !acc_acquitted(&c->item[i]))
			return 0;
	struct acc_rec *r;
	const int by_name = how.framework ? 0 : acc_judge_defaults(s, call, worst);
	if (by_name < 0 || kernels || s->nsuspect > had)
		return by_name;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		int rc = 0;
		if (it->call != call || it->kind != ACC_ITEM_ARG || !acc_is_input(it) ||
			it->sides == 3 || is_primitive(k, it->sides == 1 ? ACC_B : ACC_A))
			continue;
		const struct acc_val *v = value_of(s, it, &rc);
		const uint64_t id = rc < 0 || says_nothing(v) ? 0 : value_id(v);
		/* Between frameworks one side says what the other leaves to its default. */
		if (id != 0 && !how.framework && it->sides == 1 &&
			acc_case_record(s->c, it, &r, s->e) == 0 &&
			acc_is_usual(acc_get_text(r, "a.", "op"), acc_get_text(r, "a.", "pos"), v))
			continue;
		if (id != 0)
			rc = is_elsewhere(s, call, it, id);
		if (rc < 0)
			return rc;
		if (id == 0 || rc > 0)
			continue;
		return acc_suspect_argument(s, i, fmin(LIMIT_CERTAIN, worst), INFINITY);
	}
	return 0;
}

/* The sizes and axes of a view are others where the tensors that it is of have other shapes. */
static bool
is_other_view(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++)
		any |= c->item[i].call == call && c->item[i].note_shape;
	return any && k->cls == ACC_OP_MOVE;
}

/* Does an argument that differs show in nothing that the call gives, but in what it writes for later? So does how
 * fast the statistics of a norm follow, where it is trained and has some. 1, 0, or < 0. */
static int
shows_later(struct scan *s, uint32_t call, const struct acc_item *arg)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	struct acc_rec *r;
	bool trained = false, running = false;
	int rc = acc_case_record(c, arg, &r, s->e);
	if (rc < 0)
		return rc;
	struct acc_str pos = acc_get_text(r, "a.", "pos");
	if (k->backward || !acc_op_writes_later(acc_get_text(r, "a.", "op"), pos) ||
		acc_get(r, "a.", "value") == NULL || acc_get(r, "b.", "value") == NULL)
		return 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		struct acc_item *it = &c->item[i];
		if (it->call != call || !acc_is_input(it))
			continue;
		rc = acc_case_record(c, it, &r, s->e);
		if (rc < 0)
			return rc;
		const struct acc_val *v = acc_get(r, "b.", "value");
		if (it->kind == ACC_ITEM_ARG &&
			acc_word_in("training 5", acc_get_text(r, "b.", "pos")))
			trained |= v != NULL && v->type == ACC_V_BOOL && v->b;
		running |= it->kind != ACC_ITEM_ARG &&
			   acc_word_in("1 running_mean", acc_get_text(r, "b.", "pos"));
	}
	return trained && running;
}

/* Of two operators that each move numbers, as triu and tril, neither's argument is the other's. 1, 0, or < 0. */
static int
is_other_mover(struct scan *s, const struct acc_call *k, const struct acc_item *arg)
{
	struct acc_rec *r;
	if (k->cls != ACC_OP_MOVE)
		return 0;
	const int rc = acc_case_record(s->c, arg, &r, s->e);
	if (rc < 0)
		return rc;
	return !acc_op_same(acc_get_text(r, "a.", "op"), acc_get_text(r, "b.", "op"));
}

/* A number, a flag or a mode that differs, in a call whose outputs are not explained. */
int
acc_judge_args(struct scan *s, uint32_t call, double unit, double worst, const struct given *g)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	if (is_other_view(c, call) || (worst > 0 && acc_is_made_up_for(c, call, NULL, unit)))
		return 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_ARG || !acc_is_input(it) ||
			it->measure != ACC_BY_VALUE || !(it->rms > LIMIT_UNTRACED_FLOOR * unit))
			continue;
		int later = is_other_mover(s, k, it);
		if (later == 0 && (later = acc_same_axis(s, call, it)) > 0)
			continue;
		if (later != 0)
			return later < 0 ? later : 0;
		later = worst > 0 || !acc_given_alike(c, call) ? 0 : shows_later(s, call, it);
		if (later == 0 && worst <= 0)
			later = is_other_default(s, call, it);
		if (later < 0)
			return later;
		if (worst <= 0 && later == 0)
			continue;
		if (acc_suspect_argument(s, i, LIMIT_CERTAIN, it->rms) < 0)
			return ACC_ENOMEM;
	}
	return judge_alone_args(s, call, worst, g);
}
