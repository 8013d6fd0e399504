/* Where in training does the difference come from? The stages of the guide: forward (loss of
 * the first step), backward (norms of the first step), optimizer (loss of the second), and what
 * to check where the curves part later. */
#include "curve/stage.h"
#include "curve/limits.h"
#include "acc/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

bool
acc_curve_evaluates(const char *tag)
{
	return strncmp(tag, "eval", 4) == 0 || strncmp(tag, "val", 3) == 0;
}

bool
acc_curve_is_bad(const struct curve *c)
{
	return c != NULL && c->v.level != NULL && strcmp(c->v.level, "error") == 0;
}

static const struct curve *
find(const struct acc_curves *cs, enum role role, const char *preferred)
{
	const struct curve *best = NULL;
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		if (c->role != role || !c->judged || acc_curve_evaluates(c->tag))
			continue;
		/* Of several ranks, one that differs; of several names, no mean over an epoch. */
		const bool named = strcmp(c->base, preferred) == 0;
		const bool denser = best != NULL && c->f.n > best->f.n &&
				    acc_curve_is_bad(c) >= acc_curve_is_bad(best);
		if (named && (c->rank < 0 || acc_curve_is_bad(c)))
			return c;
		if (best == NULL || ((named || denser) && strcmp(best->base, preferred) != 0))
			best = c;
	}
	return best;
}

/* A norm that one side prints as a constant was not computed. */
static bool
computed(const struct curve *c)
{
	return !c->f.constant[CURVE_A] && !c->f.constant[CURVE_B];
}

int
acc_stage_say(struct scene *s, const struct curve *c, const char *stage, int64_t step, int64_t dump,
	const char *text)
{
	struct remark *m = text == NULL ? NULL : acc_curve_say(s->cs, "difference", s->e);
	if (m == NULL)
		return acc_nomem(s->e);
	m->name = c->tag;
	m->stage = stage;
	m->step = step;
	m->dump = dump;
	m->text = text;
	if (c->v.level != NULL) {
		const char *beyond = acc_beyond_alone(&s->cs->mem, c->v.value, c->v.limit);
		m->text = beyond == NULL      ? NULL
			  : beyond[0] == '\0' ? text
					      : acc_say(&s->cs->mem, "%s (rule %s: %s)", text,
							c->v.rule, beyond);
		if (m->text == NULL)
			return acc_nomem(s->e);
		m->rule = c->v.rule;
		m->value = c->v.value;
		m->limit = c->v.limit;
		m->limit_from = c->v.limit_from;
	}
	return 1;
}

/* What was said rests on this behaviour; NULL: on none. */
int
acc_stage_rests(struct scene *s, const char *id, int said)
{
	return said <= 0 || id == NULL ? said : acc_curve_rests_on(s->cs, id, s->e);
}

/* NaN or Inf on one side: the first curve and step that shows it. */
static int
overflow(struct scene *s)
{
	struct acc_curves *cs = s->cs;
	const struct curve *c = NULL;
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *o = cs->order[i];
		if (o->judged && o->f.nonfinite > 0 && (c == NULL || o->f.odd < c->f.odd))
			c = o;
	}
	/* Where the curves part long before, that is what to look at. */
	if (c == NULL ||
		(s->loss != NULL && s->loss->f.beyond < c->f.odd && s->loss->f.beyond != INT64_MIN))
		return 0;
	int64_t step = c->f.odd;
	const struct acc_point *p = acc_curve_at(c, step);
	int side = isfinite(p->v[CURVE_A]) ? CURVE_B : CURVE_A;
	if (c->zeros[side] > 0)
		return acc_stage_rests(s, "hf-trainer-nan-is-zero",
			acc_stage_say(s, c, "overflow", step, step,
				acc_say(&cs->mem,
					"%s of the %s is 0 at step %" PRId64
					" where the %s has %.6g: so "
					"Hugging Face's Trainer writes a loss that was NaN or infinite "
					"(logging_nan_inf_filter). Check loss scale and 16-bit dtypes; "
					"dump step %" PRId64
					" of both runs and let accdiff name the first "
					"operator that makes it",
					c->tag, side == CURVE_A ? "device" : "bench", step,
					side == CURVE_A ? "bench" : "device", p->v[1 - side],
					step)));
	return acc_stage_say(s, c, "overflow", step, step,
		acc_say(&cs->mem,
			"%s of the %s is %s at step %" PRId64 " where the %s has %.6g: "
			"something overflows there. Check loss scale and 16-bit dtypes; dump "
			"step %" PRId64 " of both runs and let accdiff name the first "
			"operator that makes it",
			c->tag, side == CURVE_A ? "device" : "bench",
			isnan(p->v[side]) ? "NaN" : "infinite", step,
			side == CURVE_A ? "bench" : "device", p->v[1 - side], step));
}

/* NaN or Inf on both sides to the end, and nothing else: both runs are broken, alike or not. */
static int
lost(struct scene *s)
{
	const struct curve *c = s->loss;
	if (c == NULL || !acc_curve_is_lost(c))
		return 0;
	struct acc_arena *mem = &s->cs->mem;
	const struct figures *f = &c->f;
	const struct acc_point *p = acc_curve_at(c, f->lost);
	const char *value = isnan(p->v[CURVE_A]) || isnan(p->v[CURVE_B]) ? "NaN" : "infinite";
	if (f->lost == f->begin)
		return acc_stage_say(s, c, "overflow", f->lost, f->lost,
			acc_say(mem,
				"%s is %s on both sides from the first step that both logged, %" PRId64
				", to the last, %" PRId64
				": nothing of it is compared. Both runs are "
				"broken; dump step %" PRId64 " of each, and let accdiff name the "
				"first operator of each that makes it",
				c->tag, value, f->lost, f->end, f->lost));
	return acc_stage_say(s, c, "overflow", f->lost, f->lost,
		acc_say(mem,
			"%s is %s on both sides from step %" PRId64 " to the last, %" PRId64
			": nothing of it is compared there. Both runs are broken; dump step %" PRId64
			" of each, and the step before it, and let accdiff name the first operator "
			"of each that makes it",
			c->tag, value, f->lost, f->end, f->lost));
}

/* Where the curve leaves what its rule allows: with a limit of 0, any difference; and what runs of the bench differ by. */
int64_t
acc_curve_parts_at(const struct curve *c)
{
	if (c->noise.runs > 0 && c->noise.parts != INT64_MIN)
		return c->noise.parts;
	return c->v.level != NULL && c->v.limit == 0 ? c->f.first : c->f.beyond;
}

/* Is the first step that both logged the first of training? An epoch's number is a mean over its steps. */
bool
acc_curve_from_start(const struct curve *c)
{
	return !c->counted && !c->epochs && (c->f.begin == 0 || c->f.begin == 1);
}

/* One number times the bench's: the network and the batch are right. */
static int
factor(struct scene *s)
{
	struct acc_curve_factor f;
	const struct curve *c = s->loss;
	struct acc_arena *mem = &s->cs->mem;
	if (!acc_curve_is_bad(c) || !acc_curve_factor(c, s->norm, &f))
		return 0;
	const char *number = acc_curve_fraction(mem, &f);
	const char *what =
		f.norm          ? acc_say(mem, ", and so is %s%s", s->norm->tag,
                                 f.varies ? ", of each step by a factor of its own" : "")
		: f.norm_agrees ? acc_say(mem,
					  ", while %s agrees: it is printed otherwise, or divided "
					  "behind the backward pass",
					  s->norm->tag)
		: f.first       ? acc_say(mem, " at step %" PRId64 ", the first", c->f.begin)
				: acc_say(mem, " at all %" PRIu64 " steps", c->f.n);
	const char *divisors = acc_curve_settings(s->cs, &f);
	const bool known = divisors != NULL && divisors[0] != '\0';
	if (divisors != NULL && !known)
		divisors = acc_curve_divisors(mem, &f);
	if (number == NULL || what == NULL || divisors == NULL)
		return acc_nomem(s->e);
	const bool shifts = divisors[0] != '\0' && f.value < 2 && f.value > 0.5;
	return acc_stage_rests(s, shifts ? "hf-trainer-class-name" : NULL,
		acc_stage_say(s, c, "forward", c->f.begin, INT64_MIN,
			known ? acc_say(mem, "%s is %s times the bench's%s%s", c->tag, number, what,
					divisors)
			      : acc_say(mem,
					"%s is %s times the bench's%s%s. The same losses are divided by another "
					"number: the mean against the sum, micro-batches of gradient "
					"accumulation, ranks, or a count of tokens (padding, or before the labels "
					"are shifted)",
					c->tag, number, what, divisors)));
}

/* The bench's curve, one step early or late. */
static int
shifted(struct scene *s)
{
	const struct curve *c = s->loss;
	if (!acc_curve_is_bad(c) || c->f.shift == 0)
		return 0;
	return acc_stage_say(s, c, "unknown", c->f.begin, INT64_MIN,
		acc_say(&s->cs->mem,
			"%s of the device is the bench's of %s: the curves are equal, shifted by "
			"one. One side counts its steps from another number, or logs before the "
			"update and the other behind it; compare the step before the first, and "
			"the batches",
			c->tag, c->f.shift > 0 ? "the step after" : "the step before"));
}

static int
forward(struct scene *s)
{
	const struct curve *c = s->loss;
	if (c == NULL || acc_curve_parts_at(c) != c->f.begin)
		return 0;
	const struct figures *f = &c->f;
	if (!acc_curve_from_start(c))
		return acc_stage_say(s, c, "unknown", f->begin, 1,
			acc_say(&s->cs->mem,
				"the first %s that both logged, of step %" PRId64 ", differs "
				"already (device %.6g, bench %.6g: %.2g %%), so where it "
				"began is not known: log every step from the first on, and "
				"compare the first two",
				c->tag, f->begin, f->a_begin, f->b_begin, 100 * f->begin_rel));
	return acc_stage_say(s, c, "forward", f->begin, f->begin,
		acc_say(&s->cs->mem,
			"%s of the first step (%" PRId64 ") differs: device %.6g, bench "
			"%.6g, %.2g %%. No weight has changed yet, so it is the forward "
			"pass, or what it starts from: check weights, the batch, dropout and "
			"seeds, then dump step %" PRId64 " of both runs (forward) and run "
			"accdiff",
			c->tag, f->begin, f->a_begin, f->b_begin, 100 * f->begin_rel, f->begin));
}

/* The local norms of the first step that differ, the worst first; at most 8 names. */
static int
by_first_step(const void *px, const void *py)
{
	const struct curve *x = *(const struct curve *const *)px;
	const struct curve *y = *(const struct curve *const *)py;
	if (x->f.begin_rel != y->f.begin_rel)
		return x->f.begin_rel > y->f.begin_rel ? -1 : 1;
	return strcmp(x->tag, y->tag);
}

static size_t
local_norms(const struct acc_curves *cs, const struct curve **out, size_t *all)
{
	size_t n = 0;
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		if (c->role != ROLE_LOCAL || !c->judged)
			continue;
		++*all;
		if (c->f.begin_rel > LIMIT_SQUARE_ALIKE)
			out[n++] = c;
	}
	if (n > 1)
		qsort(out, n, sizeof *out, by_first_step);
	return n;
}

static int
backward_local(struct scene *s)
{
	struct acc_curves *cs = s->cs;
	const struct curve **bad = malloc((cs->set[0].n + 1) * sizeof *bad);
	size_t all = 0, n = bad == NULL ? 0 : local_norms(cs, bad, &all);
	int rc = bad == NULL ? acc_nomem(s->e) : 0;
	if (n > 0) {
		const struct figures *f = &bad[0]->f;
		rc = acc_stage_say(s, bad[0], "backward", f->begin, f->begin,
			acc_say(&cs->mem,
				"%sthe local norm of %zu of %zu weights differs at step "
				"%" PRId64 ", most that of %s (device %.4g, bench %.4g: %.2g "
				"%%): the backward pass of that layer; dump step %" PRId64 " "
				"of both runs with gradients and run accdiff",
				s->loss != NULL ? "the first losses agree, but " : "", n, all,
				f->begin, bad[0]->tag, f->a_begin, f->b_begin, 100 * f->begin_rel,
				f->begin));
		struct remark *m = rc > 0 ? &cs->remark[cs->nremark - 1] : NULL;
		for (size_t i = 0; m != NULL && i < n && i < 8; i++)
			m->ranked[m->nranked++] = bad[i]->tag;
	}
	free(bad);
	return rc;
}

static int
backward(struct scene *s)
{
	const struct curve *c = s->norm;
	int rc = backward_local(s);
	if (rc != 0 || c == NULL || !computed(c) || !(c->f.begin_rel > LIMIT_NORM_AGREES))
		return rc;
	if (s->loss != NULL && s->loss->f.begin != c->f.begin)
		return 0;
	const struct figures *f = &c->f;
	return acc_stage_say(s, c, "backward", f->begin, f->begin,
		acc_say(&s->cs->mem,
			"%s%s of step %" PRId64 " differs: device %.6g, bench %.6g, %.2g %%. "
			"That is the backward pass: compare the local norms of the weights, "
			"or dump step %" PRId64 " of both runs with gradients and run "
			"accdiff",
			s->loss != NULL ? "the first losses agree, but " : "", c->tag, f->begin,
			f->a_begin, f->b_begin, 100 * f->begin_rel, f->begin));
}

static int
schedule(struct scene *s)
{
	const struct curve *c = s->rate;
	if (!acc_curve_is_bad(c) || c->f.beyond == INT64_MIN)
		return 0;
	if (s->loss != NULL && s->loss->f.beyond < c->f.beyond && s->loss->f.beyond != INT64_MIN)
		return 0;
	const struct acc_point *p = acc_curve_at(c, c->f.beyond);
	const char *squeezed = acc_curve_squeezed(&s->cs->mem, c);
	if (squeezed == NULL)
		return acc_nomem(s->e);
	return acc_stage_rests(s, squeezed[0] == '\0' ? NULL : "keras-accumulation-counts",
		acc_stage_say(s, c, "schedule", c->f.beyond, INT64_MIN,
			acc_say(&s->cs->mem,
				"%s differs from step %" PRId64 " on (device %.6g, bench %.6g): "
				"give both runs the same schedule (rate, warmup, decay, number of "
				"steps) before looking at anything that comes later%s",
				c->tag, c->f.beyond, p->v[CURVE_A], p->v[CURVE_B], squeezed)));
}

/* As far apart at the first step as ever after, though not so far as to break its rule: no step
 * brought that. */
static int
steady(struct scene *s)
{
	const struct curve *c = s->loss;
	if (!acc_curve_is_bad(c) || !acc_curve_from_start(c))
		return 0;
	const struct figures *f = &c->f;
	if (f->drift.kind != ACC_DRIFT_OFFSET || f->first != f->begin ||
		f->begin_abs < 0.5 * f->mean_abs || f->begin_abs < 2 * f->res)
		return 0;
	return acc_stage_say(s, c, "forward", f->begin, f->begin,
		acc_say(&s->cs->mem,
			"%s differs by %.3g on average (%.2g %%), and by %.3g at the first "
			"step (%" PRId64 ") already, where no weight has changed yet: the "
			"forward pass, or what it starts from (weights, batch, dropout). "
			"Dump step %" PRId64 " of both runs and run accdiff",
			c->tag, f->drift.offset, 100 * f->drift.offset / f->level,
			f->a_begin - f->b_begin, f->begin, f->begin));
}

/* The first step and kind of what a monitor watched. */
static int
watched(struct scene *s)
{
	for (size_t i = 0; i < s->cs->set[0].n; i++) {
		const struct curve *c = s->cs->order[i];
		if (acc_curve_is_bad(c) && strcmp(c->cls, "monitor") == 0)
			return acc_stage_say(s, c, acc_curve_monitor_stage(c), c->f.beyond,
				c->f.beyond,
				acc_say(&s->cs->mem,
					"%s: %s. Dump that step of both runs and let accdiff name the first "
					"operator that differs",
					c->tag, c->v.why[0]));
	}
	return 0;
}

/* The loss is good, and another curve is not. */
static int
other(struct scene *s)
{
	for (size_t i = 0; i < s->cs->set[0].n; i++) {
		const struct curve *c = s->cs->order[i];
		if (!acc_curve_is_bad(c))
			continue;
		int64_t step = c->f.beyond != INT64_MIN ? c->f.beyond : c->f.at;
		bool norm = c->role == ROLE_NORM || c->role == ROLE_LOCAL;
		return acc_stage_say(s, c, norm ? "backward" : "unknown", step, step,
			acc_say(&s->cs->mem, "%s differs: %s%s", c->tag, c->v.why[0],
				norm ? ". That is the backward pass: dump that step of both runs with "
				       "gradients and run accdiff"
				     : ""));
	}
	return 0;
}

int
acc_curve_stage(struct acc_curves *cs, struct acc_err *e)
{
	static int (*const stages[])(struct scene *) = {overflow, lost, factor, shifted, forward,
		backward, schedule, steady, acc_stage_gap, acc_stage_spike, acc_stage_parted,
		acc_stage_late, watched, other};
	struct scene s = {.cs = cs,
		.e = e,
		.loss = find(cs, ROLE_LOSS, "loss"),
		.rate = find(cs, ROLE_RATE, "learning_rate"),
		.norm = find(cs, ROLE_NORM, "grad_norm")};
	int rc = 0;
	for (size_t i = 0; i < sizeof stages / sizeof *stages && rc == 0; i++)
		rc = stages[i](&s);
	return rc < 0 ? rc : 0;
}
