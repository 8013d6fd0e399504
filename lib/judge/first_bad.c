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
#include "judge/order.h"
#include "judge/parting.h"

/* The gradient of the loss is made of what the forward pass gave, and recorders may leave out the
 * call that makes it: nothing before it in the backward pass shows its error, but the end of the
 * forward pass does. */
static void
turn_back(struct scan *s, const struct acc_call *k)
{
	bool back = k->backward || k->grad;
	if (back && !s->back_before) {
		s->size[s->nrecent[true] % LIMIT_RECENT] = 0;
		s->recent[true][s->nrecent[true]++ % LIMIT_RECENT] = acc_recent(s, false);
		acc_stat_seen(s, true, acc_stat_usual(s, false));
	}
	s->back_before = back;
}

/* Does a call choose places by values, that are this far off, so that some are likely to be others, and the
 * places themselves were not compared, as those of a batch that is split over ranks, or by their extremes
 * alone? A choice falls otherwise
 * where two values are as near to each other as the error: of n values n times the error do. */
static bool
may_stray(const struct scan *s, uint32_t call, double rms)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	double n = 0;
	bool unknown = false;
	for (uint32_t i = k->first; i <= k->last && s->folded && k->ranks && !k->backward; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR)
			continue;
		if (acc_is_input(it) && !it->exact)
			n = fmax(n, (double)it->count);
		unknown |= acc_is_output(it) && it->exact &&
			   (it->measure == ACC_UNMEASURED || it->measure == ACC_BY_STAT);
	}
	return unknown && n * rms > LIMIT_STRAY;
}

/* A kernel's fault stands, though what follows of it agrees: what is taken for computed otherwise is recomputed,
 * and what it was made of that one side alone calls. */
static int
recompute_too(struct scan *s, uint32_t call, uint32_t item)
{
	struct suspect x = {.call = call,
		.item = item,
		.role = ROLE_OUT,
		.blame = call,
		.producer = ACC_NOCALL,
		.guess = true};
	acc_hidden(s, call, &x.hidden);
	return acc_suspect_add(s, &x);
}

static int
walk_call(struct scan *s, uint32_t call)
{
	const struct acc_case *c = s->c;
	enum { DEPTH = 12 };
	const struct acc_call *k = &c->call[call];
	double unit = acc_call_unit(c, k), worst = -LIMIT_CERTAIN, seen = 0, size = 0;
	struct given g = {.exact = true, .operands = k->backward ? 2 : 0};
	bool paired = k->key[ACC_A] != NULL && k->key[ACC_B] != NULL;
	bool fused = paired && !k->backward && acc_call_is_fused(s->c, call);
	bool compared = false, alone = false;
	int rc = 0;
	turn_back(s, k);
	for (uint32_t i = k->first; i <= k->last && rc == 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it))
			continue;
		g.inputs++;
		if (it->part != 0 && it->count > g.part)
			g.part = it->count;
		if (paired && acc_comparable(s, it) && acc_alike(s, k, it, unit)) {
			rc = acc_judge_input(s, call, i, unit, &g);
			g.heard++;
		} else if (paired && acc_other_shape(it)) {
			g.rms = g.max = INFINITY; /* where choices fell otherwise, say */
			/* More or fewer places than on the bench. */
			s->rerouted |= s->ranked && it->exact;
		} else if (acc_call_is_array(c, call)) {
			continue; /* nor does the other side tell what went in */
		} else if (!fused ||
			   (it->sides != 2 && !acc_receive_inside(s, call, it, unit, &g, DEPTH)))
			g.unseen = true;
		else if (it->sides != 2) {
			g.inner = true;
			g.heard++;
		}
	}
	if (k->backward)
		acc_receive_saved(s, k, &g);
	if (acc_is_communication(k))
		acc_receive_brought(s, call, unit, &g);
	if (!s->astray && may_stray(s, call, g.rms)) {
		s->astray = true;
		s->strayed = s->strayed == ACC_NOCALL ? call : s->strayed;
	}
	for (uint32_t i = k->first; i <= k->last && rc == 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || acc_is_input(it))
			continue;
		/* A sum over the share that one side has is none over all. */
		const bool share = it->part == 0 && it->rms > 0 &&
				   (k->backward ? g.part > 0 : it->count < g.part);
		if (paired && acc_comparable(s, it) && acc_alike(s, k, it, unit) &&
			!acc_is_of_view(s, call, i) && !(g.unwritten && it->rms > 0) && !share &&
			!acc_is_made_up_for(c, call, it, unit)) {
			rc = acc_judge_output(s, call, i, unit, &g, &worst);
			compared = true;
			if (!it->exact && !isinf(it->rms))
				seen = fmax(seen, it->rms);
			if (!it->exact && isfinite(it->max))
				s->most = fmax(s->most, it->max);
			if (!it->exact && isfinite(it->b_rms))
				size = fmax(size, it->b_rms);
			if (!it->exact && it->measure == ACC_BY_STAT)
				acc_stat_seen(s, k->backward || k->grad, it->rms);
			s->flipped |= it->exact && it->rms > 0;
			s->wild |= it->nonfinite;
			s->chosen |= k->backward && k->ranks && it->measure == ACC_BY_STAT;
			s->ranked |= !k->backward && k->ranks && it->exact &&
				     it->measure == ACC_BY_STAT;
		} else {
			if (it->apart && !s->learning && recompute_too(s, call, i) < 0)
				return ACC_ENOMEM;
			alone |= it->sides != 3;
			if (paired && !it->apart && it->sides == 3 && !share)
				worst = fmax(worst, 1);
			rc = acc_judge_alone(s, call, i, &g);
		}
		/* Who reads what is left of memory that nobody wrote takes what nobody made. */
		if (rc == 0 && !(g.unwritten && it->rms > 0))
			rc = acc_remember(s, k, i, true);
	}
	/* What one side gives beside what both do says nothing of what both do. */
	if (paired && alone && !compared)
		worst = fmax(worst, 1);
	if (rc == 0 && paired)
		rc = acc_judge_args(s, call, unit, worst, &g);
	if (rc == 0 && paired)
		rc = acc_judge_state(s, call, unit, worst);
	if (rc == 0)
		rc = acc_sum_learn(s, call);
	s->multiplied |= paired && acc_multiplies(k);
	if (paired && acc_passes_kink(k))
		s->flips = sqrt(s->flips * s->flips +
				acc_stat_element(s, fmax(g.rms, acc_stat_usual(s, false)), unit));
	bool back = k->backward || k->grad;
	if (paired && k->keyed && back)
		s->size[s->nrecent[true] % LIMIT_RECENT] = (float)size;
	if (paired && k->keyed)
		s->recent[back][s->nrecent[back]++ % LIMIT_RECENT] = seen;
	if (rc == 0 && paired && !back)
		rc = acc_ids_put(&s->twin, k->twin, call, true, NULL);
	return rc;
}

/* Behind the calls of a step and rank, whose values no other takes. */
static void
forget(struct scan *s)
{
	memset(s->nrecent, 0, sizeof s->nrecent);
	memset(s->nrecent_stat, 0, sizeof s->nrecent_stat);
	s->noisy = s->wild = s->flipped = s->rerouted = s->back_before = s->multiplied = false;
	s->flips = 0;
	s->chosen = s->ranked = s->astray = false;
	s->most = 0;
	acc_ids_clear(&s->made[0]);
	acc_ids_clear(&s->made[1]);
	acc_ids_clear(&s->user);
	acc_case_rest(s->c);
}

static int
walk(struct scan *s, bool learning, struct acc_err *e)
{
	forget(s);
	acc_ids_clear(&s->kept[0]);
	acc_ids_clear(&s->kept[1]);
	acc_ids_clear(&s->twin);
	acc_ids_clear(&s->back);
	s->nsuspect = 0;
	s->bench = s->tie = s->strayed = ACC_NOCALL;
	s->ties = 0;
	s->learning = learning;
	s->told = false;
	for (uint32_t i = 0; s->near != NULL && i < s->c->ncall; i++)
		s->near[i] = -INFINITY;
	if (acc_audit_learn(s) < 0)
		return acc_rec_fail(e, ACC_ENOMEM);
	int rc = 0;
	for (uint32_t i = 0; i < s->c->ncall && rc == 0; i++) {
		if (i > 0 && s->c->call[i].segment != s->c->call[i - 1].segment)
			forget(s);
		if (i + 1 < s->c->ncall)
			acc_remember_soon(s, &s->c->call[i + 1]);
		rc = walk_call(s, i);
	}
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* Does any output or gradient differ at all? */
static bool
differs(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i))
		if (c->item[i].kind == ACC_ITEM_TENSOR && acc_is_output(&c->item[i]) &&
			c->item[i].measure == ACC_BY_TENSOR && c->item[i].rms > 0)
			return true;
	return false;
}

/* What leaves doubt: nothing is named and yet the sides differ, or what is named is "probably" it. Then a
 * fault may hide in all that the comparison takes for noise, and was not recomputed. */
static bool
doubtful(const struct scan *s, uint32_t chosen)
{
	/* A second run of the bench has said what is noise. */
	if (s->c->opt.noise != NULL)
		return false;
	if (chosen == ACC_NOCALL)
		return differs(s->c);
	const struct suspect *x = &s->suspect[chosen];
	const bool sums = s->c->item[x->item].measure == ACC_BY_SUM || !s->c->call[x->blame].keyed;
	return acc_confidence(s, x, sums) < LIMIT_SURE;
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
		*out = acc_choose(s, false);
		rc = acc_recompute(s, *out, e);
		*chosen = acc_choose(s, true);
		if (rc == 0 && *chosen != *out)
			rc = acc_recompute(s, *chosen, e);
		if (rc == 0)
			rc = acc_recompute_rest(s,
				*chosen == ACC_NOCALL ? ACC_NOCALL : s->suspect[*chosen].call,
				doubtful(s, *chosen), e);
	}
	return rc;
}

/* Of two programs, does a suspect stay in spite of where they part? If recomputation says so, or its argument, of
 * what is not behind that; in 16 bits, where recomputation is surer than statistics, wherever it is. */
static bool
stays(const struct scan *s, const struct suspect *x, const struct parting *p)
{
	const bool behind = acc_part_is_behind(p, x->blame);
	/* Statistics that find the stretch do not show numbers in other places. */
	if (x->role == ROLE_OUT && !behind && acc_is_sure(s, x))
		return true;
	/* A factor may have been moved to another call, which then is given other numbers. */
	const bool own = x->role == ROLE_ARG && !behind &&
			 (acc_given_alike(s->c, x->call) || !acc_part_is_within(p, x->call));
	return (x->audit && (p->low || !behind)) || own;
}

/* Is a suspect only off, not all of what it was given having been compared? */
static bool
is_unknown(const struct suspect *x)
{
	return x->role == ROLE_OUT && x->unseen && !x->audit;
}

/* Are there outputs of which nothing but statistics is known? */
static bool
is_by_statistics(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i))
		if (c->item[i].kind == ACC_ITEM_TENSOR && acc_is_output(&c->item[i]) &&
			c->item[i].measure == ACC_BY_STAT)
			return true;
	return false;
}

/* Of two programs, the stretch of op calls where they part, which is accused in place of what stands out in
 * pairs. 1: it is, or nothing, since it is not known; *first is where it begins; 0; < 0. */
static int
part(struct scan *s, uint32_t chosen, uint32_t *first, struct acc_err *e)
{
	const struct suspect *x = chosen == ACC_NOCALL ? NULL : &s->suspect[chosen];
	struct parting p;
	if (x == NULL && !s->parted)
		return 0;
	int rc = acc_part_find(s, x == NULL ? ACC_NOCALL : x->call, &p, e);
	p.found = p.found && !is_by_statistics(s->c);
	const char *cause = "";
	const bool unknown = s->two && x != NULL && !p.found && is_unknown(x) &&
			     !acc_given_otherwise(&s->c->item[x->item], x);
	/* What the bench's call gives of its own inputs, with one argument changed, needs nothing else to be compared. */
	if (rc == 0 && x != NULL && x->role == ROLE_OUT && !x->audit &&
		(unknown || (p.found && !stays(s, x, &p) && !acc_part_is_behind(&p, x->blame))))
		rc = acc_substitute(s, x->call, &cause, e);
	if (rc != 0 || cause[0] != '\0') {
		acc_part_release(&p);
		return rc;
	}
	if (unknown) {
		*first = x->call;
		rc = acc_part_say_unknown(s, x, e);
		rc = rc < 0 ? rc : 1;
	} else if (p.found && (x == NULL ? acc_part_is_plain(&p) : !stays(s, x, &p))) {
		rc = acc_part_say(s, &p, x == NULL ? ACC_NOCALL : x->blame, e);
		*first = rc > 0 ? acc_part_first(&p) : *first;
	}
	acc_part_release(&p);
	return rc;
}

/* Has one side forward op calls of its own, or one for several? Else there is nothing that is written otherwise.
 * What ranks exchange is no other way to write it. */
static bool
is_rewritten(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (!k->keyed || k->backward || k->grad || k->module || k->talks)
			continue;
		if (k->key[ACC_A] == NULL || k->key[ACC_B] == NULL || acc_call_is_fused(c, i))
			return true;
	}
	return false;
}

/* How much noise is usual, and then which suspect is named: see decide. */
static int
learn_and_decide(struct scan *s, uint32_t *chosen, uint32_t *out, struct acc_err *e)
{
	int rc = acc_part_clear(s, e);
	acc_map_release(&s->floor);
	s->nexcess = 0;
	s->finest = INFINITY;
	if (rc == 0)
		rc = walk(s, true, e);
	if (rc == 0)
		rc = acc_learn(s, e);
	return rc == 0 ? decide(s, chosen, out, e) : rc;
}

/* Has recomputation nothing against it, and is what stands out among the tensors that are marked as healed? */
static bool
is_healed(const struct scan *s, const struct suspect *x)
{
	const struct acc_item *it = &s->c->item[x->item];
	const struct acc_call *k = &s->c->call[x->call];
	if (x->role == ROLE_OUT)
		return it->apart && acc_acquitted(it);
	if (x->role == ROLE_IN)
		return it->apart && it->a_known;
	bool all = true;
	for (uint32_t i = k->first; i <= k->last; i++)
		if (s->c->item[i].call == x->call && s->c->item[i].kind == ACC_ITEM_TENSOR &&
			acc_is_output(&s->c->item[i]) && s->c->item[i].rms > 0)
			all &= s->c->item[i].apart && acc_acquitted(&s->c->item[i]);
	return all;
}

/* All op calls may be pairs, and yet one formula be another, as that of summands in another order. Where what is
 * named can be recomputed, is right, and what follows agrees again, that tells. 0 or < 0. */
static int
look_again(struct scan *s, uint32_t *chosen, uint32_t *out, struct acc_err *e)
{
	const struct suspect *x = *chosen == ACC_NOCALL ? NULL : &s->suspect[*chosen];
	if (x == NULL || s->two || s->wholes ||
		!acc_witness_excuses(s, ACC_WITNESS_computed_otherwise) || x->audit ||
		s->c->opt.roots == NULL || s->c->item[x->item].measure == ACC_BY_STAT)
		return 0;
	/* Of several communications one may be missing, and the next be paired in its place: no other way to write it. */
	const bool talks = s->c->call[x->call].talks;
	int rc = acc_heal(s->c, e);
	const bool healed = rc == 0 && is_healed(s, x);
	s->two = healed && !talks;
	acc_heal_settle(s->c, healed, talks);
	rc = rc == 0 && healed ? learn_and_decide(s, chosen, out, e) : rc;
	return rc == 0 && healed && talks ? look_again(s, chosen, out, e) : rc;
}

/* The first that the user doubts, where nothing else is known of it. */
static uint32_t
first_doubted(const struct scan *s)
{
	for (uint32_t i = 0; i < s->nsuspect; i++)
		if (s->suspect[i].doubted)
			return i;
	return ACC_NOCALL;
}

/* Are results alone recorded, as by hooks that save outputs? */
static bool
is_unfed(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nitem; i++)
		if (c->item[i].kind == ACC_ITEM_TENSOR && acc_is_input(&c->item[i]))
			return false;
	return true;
}

static int
judge(struct acc_case *c, struct acc_err *e)
{
	struct scan s = {.c = c, .e = e, .unit = acc_network_unit(c), .finest = INFINITY};
	uint32_t i = ACC_NOCALL, out = ACC_NOCALL, doubted = ACC_NOCALL;
	struct suspect stretch = {.call = ACC_NOCALL};
	const struct suspect *named = NULL;
	s.noise = acc_noise_ratio(c);
	s.unfed = is_unfed(c);
	s.folded = c->passed > 0 && acc_is_folded(c);
	s.wholes = s.folded && acc_is_folded_side(c, ACC_A) && acc_is_folded_side(c, ACC_B);
	s.weights = acc_weight_error(c, &s.weight_unit);
	/* Ranks have calls of their own, as those that take their parts, however much one program they are. */
	s.two = !s.folded && is_rewritten(c);
	int rc = acc_sharded(c, e);
	s.few = acc_weights_are_rounded(&s);
	if (rc == 0 && s.two &&
		acc_witness_excuses(&s,
			ACC_WITNESS_few_levels)) { /* whose pairs are found by their values */
		c->nothing = acc_levels_apart(c, s.few, e);
		rc = e->code < 0 ? e->code : c->nothing != NULL;
	}
	if (rc != 0)
		return rc < 0 ? rc : acc_say_rest(c, e);
	if (c->opt.roots != NULL && (s.near = malloc((c->ncall + 1) * sizeof *s.near)) == NULL)
		rc = acc_nomem(e);
	if (rc == 0 && acc_witness_excuses(&s, ACC_WITNESS_axis_order))
		rc = acc_forgive_orders(c, e);
	if (rc == 0 && s.two && acc_witness_excuses(&s, ACC_WITNESS_inverse_mask))
		rc = acc_forgive_inverses(c, e);
	if (rc == 0 && acc_witness_excuses(&s, ACC_WITNESS_hidden_scores))
		rc = acc_forgive_masks(c, e);
	if (rc == 0)
		rc = acc_know_nans(c, e);
	if (rc == 0)
		rc = acc_know_laws(c, e);
	if (rc == 0 && acc_witness_excuses(&s, ACC_WITNESS_ignored_labels))
		rc = acc_forgive_labels(c, e);
	if (rc == 0 && s.two && acc_witness_excuses(&s, ACC_WITNESS_computed_otherwise))
		rc = acc_heal(c, e);
	if (rc == 0)
		acc_heal_settle(c, true, false);
	if (rc == 0 && (s.ranks = acc_ranks_open(c, e)) == NULL)
		rc = ACC_ENOMEM;
	if (rc == 0)
		rc = learn_and_decide(&s, &i, &out, e);
	if (rc == 0)
		rc = look_again(&s, &i, &out, e);
	if (rc == 0 && s.two && (i == ACC_NOCALL || is_unknown(&s.suspect[i])))
		rc = acc_say_update(&s, &stretch.call, e);
	if (rc == 0 && s.two && i == ACC_NOCALL && stretch.call == ACC_NOCALL)
		rc = acc_substitute_apart(&s, &i, e);
	if (rc == 0 && i != ACC_NOCALL)
		rc = acc_say_scaler(&s, &s.suspect[i], &stretch.call, e);
	if (rc == 0)
		rc = part(&s, i, &stretch.call, e);
	if (rc == 0 && s.two && i == ACC_NOCALL && out == ACC_NOCALL)
		rc = acc_part_other_shape(&s, &i, e);
	if (rc == 0 && i == ACC_NOCALL && out == ACC_NOCALL)
		rc = acc_say_angle(&s, &stretch.call, e);
	if (rc == 0 && i == ACC_NOCALL && out == ACC_NOCALL && stretch.call == ACC_NOCALL)
		rc = acc_say_shards(&s, &stretch.call, e);
	if (rc == 0 && i == ACC_NOCALL && out == ACC_NOCALL && stretch.call == ACC_NOCALL)
		rc = acc_say_reduced(&s, &stretch.call, e);
	if (rc == 0 && i == ACC_NOCALL && out == ACC_NOCALL && stretch.call == ACC_NOCALL)
		rc = acc_say_unfed(&s, &stretch.call, e);
	if (rc == 0 && i == ACC_NOCALL && out == ACC_NOCALL)
		rc = acc_shown_argument(&s, &i);
	if (rc > 0) {
		named = &stretch;
		i = out = ACC_NOCALL;
		rc = 0;
	} else if (i != ACC_NOCALL) {
		named = &s.suspect[i];
	}
	if (rc == 0 && i != ACC_NOCALL)
		rc = acc_find_where(c, s.suspect[i].item, e);
	const uint32_t first = c->nfinding;
	if (rc == 0) {
		doubted = first_doubted(&s);
		if (out != ACC_NOCALL || doubted != ACC_NOCALL)
			rc = acc_mark_suspects(&s, i, e);
		if (rc == 0 && doubted != ACC_NOCALL)
			rc = acc_say_doubted(&s, doubted, e);
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
		if (rc == 0 && named == NULL && out == ACC_NOCALL)
			rc = acc_say_quiet(&s, e);
		if (rc == 0)
			rc = acc_say_bench(&s, e);
		if (rc == 0)
			rc = acc_say_clean(&s, named, e);
		if (rc == 0)
			rc = acc_say_programs(&s, named, e);
		if (rc == 0 && out != ACC_NOCALL)
			rc = acc_say_next(&s, i != ACC_NOCALL ? i : out, e);
		if (rc == 0)
			rc = acc_say_fixes(&s, i, first, e);
		if (rc == 0 && i != ACC_NOCALL)
			rc = acc_say_ranks(c, s.ranks, s.suspect[i].call, s.first, s.nfirst,
				"stands out", e);
	}
	if (rc == 0)
		rc = acc_say_neither(c, false, e);
	if (rc == 0)
		rc = acc_say_masks(c, e);
	if (rc == 0)
		rc = acc_say_nans(c, e);
	if (rc == 0)
		rc = acc_say_laws(c, e);
	if (rc == 0)
		rc = acc_say_labels(c, e);
	if (rc == 0)
		rc = acc_say_ties(&s, named, e);
	if (rc == 0)
		rc = acc_say_missing(c, e);
	if (rc == 0)
		rc = acc_say_stage(c, e);
	if (rc == 0)
		rc = acc_say_lost(&s, e);
	if (rc == 0)
		rc = acc_say_sums(&s, e);
	if (rc == 0)
		rc = acc_say_rest(c, e);
	if (rc == 0)
		rc = acc_say_folded(c, e);
	if (rc == 0)
		rc = acc_say_unlaid(c, e);
	acc_witness_count(&s);
	acc_ids_release(&s.made[0]);
	acc_ids_release(&s.made[1]);
	acc_ids_release(&s.kept[0]);
	acc_ids_release(&s.kept[1]);
	acc_ids_release(&s.twin);
	acc_map_release(&s.floor);
	acc_sum_release(&s);
	acc_ranks_close(s.ranks);
	acc_recompute_close(s.recompute);
	free(s.first);
	free(s.near);
	free(s.cleared);
	free(s.usual);
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
