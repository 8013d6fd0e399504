/* Where curves part that agree at first: the step that stands out, or what to check where none does. */
#include "curve/stage.h"
#include "curve/limits.h"
#include "acc/say.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The step before this one that both sides have. */
static int64_t
step_before(const struct curve *c, int64_t step)
{
	const struct acc_point *p = acc_curve_at(c, step);
	while (p > c->p && (--p)->has != 3)
		;
	return p->step;
}

/* "steps 1 to 2 agree", for the sentence. */
static const char *
agreed(struct scene *s, int64_t step)
{
	const struct figures *f = &s->loss->f;
	const char *how = f->first == step ? "to the last digit" : "within the tolerance";
	if (f->begin == step)
		return "";
	const int64_t last = step_before(s->loss, step);
	if (last == f->begin)
		return acc_say(&s->cs->mem, "Step %" PRId64 " agrees %s. ", last, how);
	return acc_say(&s->cs->mem, "Steps %" PRId64 " to %" PRId64 " agree %s. ", f->begin, last,
		how);
}

/* What to look at, where step is the first that differs. */
static const char *
advice(struct scene *s, bool second, int64_t step, int64_t dump)
{
	struct acc_arena *mem = &s->cs->mem;
	if (s->loss->lr0)
		return acc_say(mem,
			"The weights do not change, so only this step's own batch counts: "
			"dump step %" PRId64 " of both runs and run accdiff",
			step);
	if (second)
		return acc_say(mem,
			"The first update is wrong: check learning rate, weight decay, "
			"betas, epsilon and clipping; dump step %" PRId64 " of both runs "
			"with gradients, and compare the weights after it",
			dump);
	return acc_say(mem,
		"Look at step %" PRId64 ": its batch, overflow, loss scale, learning rate, "
		"local norms; dump it, and the step before it, in both runs and run "
		"accdiff",
		step);
}

/* A gap that a rule minds, from a step on. */
static bool
gap(const struct curve *c)
{
	return acc_curve_is_bad(c) && !c->lr0 && c->f.change != INT64_MIN &&
	       fabs(c->f.change_rel) > LIMIT_GAP_TOLD;
}

/* No step brought it alone: the curves part by little, and stay so. */
int
acc_stage_gap(struct scene *s)
{
	const struct curve *c = s->loss;
	if (c == NULL || !gap(c))
		return 0;
	const struct figures *f = &c->f;
	/* A step far before it, or much larger, is what to look at. */
	if (f->first != INT64_MIN && acc_curve_parts_at(c) != INT64_MIN &&
		acc_curve_parts_at(c) < f->change && f->stays == acc_curve_parts_at(c))
		return 0;
	return acc_stage_say(s, c, "late", f->change, f->change,
		acc_say(&s->cs->mem,
			"%s keeps %.2g %% %s the bench from about step %" PRId64 " on, more than "
			"its noise. Check what changes there (data, learning rate, loss scale) "
			"and what adds up: optimizer type, weight decay (also of biases and "
			"norms), mixed precision; dump step %" PRId64 " of both runs and run "
			"accdiff%s",
			c->tag, 100 * fabs(f->change_rel), f->change_rel > 0 ? "above" : "below",
			f->change, f->change,
			fabs(f->change_rel) < 0.01
				? " (below 1 %, an evaluation on downstream tasks may accept it)"
				: ""));
}

/* Is the difference at p twice what it ever was before? */
static bool
stands_out(const struct curve *c, const struct acc_point *p)
{
	double before = 0;
	for (const struct acc_point *q = c->p; q < p; q++)
		if (acc_curve_finite(q))
			before = fmax(before, fabs(q->v[CURVE_A] - q->v[CURVE_B]));
	return fabs(p->v[CURVE_A] - p->v[CURVE_B]) > 2 * before;
}

int
acc_stage_parted(struct scene *s)
{
	const struct curve *c = s->loss;
	int64_t step = c == NULL ? INT64_MIN : acc_curve_parts_at(c);
	if (step == INT64_MIN)
		return 0;
	const struct acc_point *p = acc_curve_at(c, step);
	if (step == c->f.beyond && !stands_out(c, p))
		return 0;
	bool second = acc_curve_from_start(c) && step - 1 == c->f.begin && !c->lr0;
	int64_t dump = second ? c->f.begin : step;
	const char *before = agreed(s, step), *what = advice(s, second, step, dump);
	const char *stage = c->lr0 ? "forward" : second ? "optimizer" : "later";
	const char *why = second ? acc_curve_by_chance(&s->cs->mem, c)
				 : acc_curve_behind_evaluation(s->cs, step_before(c, step), step);
	if (before == NULL || what == NULL || why == NULL)
		return acc_nomem(s->e);
	return acc_stage_rests(s, second || why[0] == '\0' ? NULL : "torch-dataloader-draws",
		acc_stage_say(s, c, stage, step, dump,
			acc_say(&s->cs->mem,
				"%s parts at step %" PRId64
				": device %.6g, bench %.6g, %.2g %%%s. %s%s%s",
				c->tag, step, p->v[CURVE_A], p->v[CURVE_B],
				100 * acc_curve_relative(p),
				c->f.stays == INT64_MIN ? " (and comes back)" : "", before, what,
				why)));
}

/* A value far from those around it, on the device alone. */
int
acc_stage_spike(struct scene *s)
{
	const struct curve *c = s->loss;
	if (!acc_curve_is_bad(c) || c->f.spike[CURVE_A] == INT64_MIN || c->lr0 ||
		c->f.drift.kind != ACC_DRIFT_NONE)
		return 0;
	int64_t step = c->f.spike[CURVE_A];
	const struct acc_point *p = acc_curve_at(c, step);
	return acc_stage_say(s, c, "later", step, step,
		acc_say(&s->cs->mem,
			"%s of the device leaves its course at step %" PRId64 " alone: %.6g, "
			"bench %.6g. Look at that step: its batch, overflow, loss scale, "
			"local norms; dump it in both runs and run accdiff",
			c->tag, step, p->v[CURVE_A], p->v[CURVE_B]));
}

/* The weights do not change: the step that differs most is the one to look at. */
static int
late_fixed(struct scene *s, const struct curve *c)
{
	return acc_stage_say(s, c, "forward", c->f.at, c->f.at,
		acc_say(&s->cs->mem,
			"%s differs by %.3g a step though the learning rate is 0 and the "
			"weights stay as they are: the forward pass. Dump the step that "
			"differs most, %" PRId64 ", of both runs and run accdiff",
			c->tag, c->f.mean_abs, c->f.at));
}

/* Noise about zero, but much of it. */
static int
late_noise(struct scene *s, const struct curve *c)
{
	const char *next =
		c->noise.runs > 0
			? "and more than the bench's own runs do: check determinism, dropout and "
			  "seeds, and mixed precision"
			: "which may be how these runs are: run the bench again, determinism off, "
			  "and give accalign's pairs of its two runs as --noise";
	return acc_stage_say(s, c, "late", c->f.beyond, c->f.at,
		acc_say(&s->cs->mem,
			"%s fluctuates about zero difference, but by %.3g on average and up "
			"to %.3g (step %" PRId64 "), %s",
			c->tag, c->f.mean_abs, c->f.max_abs, c->f.at, next));
}

/* No single step stands out, but the difference is none that fluctuates about zero. */
int
acc_stage_late(struct scene *s)
{
	const struct curve *c = s->loss;
	if (!acc_curve_is_bad(c))
		return 0;
	const struct figures *f = &c->f;
	if (c->lr0)
		return late_fixed(s, c);
	if (f->drift.kind == ACC_DRIFT_NONE)
		return late_noise(s, c);
	struct acc_arena *mem = &s->cs->mem;
	const char *when = f->beyond == INT64_MIN ? ""
			   : f->stays == f->beyond
				   ? acc_say(mem,
					     ", and outside the tolerance from step %" PRId64 " on",
					     f->beyond)
				   : acc_say(mem,
					     ", and outside the tolerance first at step %" PRId64,
					     f->beyond);
	if (when == NULL)
		return acc_nomem(s->e);
	return acc_stage_say(s, c, "late", f->beyond, f->beyond != INT64_MIN ? f->beyond : f->at,
		acc_say(mem,
			"%s differs by %.3g on average and by %.3g (%.2g %%) at the end%s; "
			"no step stands out. Check optimizer type, learning rate, weight "
			"decay (also of biases and norms) and mixed precision%s",
			c->tag, f->drift.offset, f->final, 100 * f->final_rel, when,
			f->mean_rel < 0.01
				? " (below 1 %, an evaluation on downstream tasks may accept it)"
				: ""));
}
