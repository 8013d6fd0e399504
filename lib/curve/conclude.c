/* What is said at the end: where it began, which curves are bad, what was left out. */
#include "curve/curve.h"
#include "acc/say.h"

#include <inttypes.h>
#include <math.h>

enum { MOST_CURVES = 12 };
static const char *const side_name[2] = {"device", "bench"};

struct remark *
acc_curve_say(struct acc_curves *cs, const char *what, struct acc_err *e)
{
	if (!ACC_ROOM(cs->remark, cs->remark_cap, cs->nremark + 1, e))
		return NULL;
	struct remark *m = &cs->remark[cs->nremark++];
	*m = (struct remark){.what = what,
		.step = INT64_MIN,
		.dump = INT64_MIN,
		.value = NAN,
		.limit = NAN};
	return m;
}

int
acc_curve_rests_on(struct acc_curves *cs, const char *id, struct acc_err *e)
{
	struct remark *m = &cs->remark[cs->nremark - 1];
	m->behaviour = id;
	m->text = m->text == NULL ? NULL : acc_say(&cs->mem, "%s (%s)", m->text, id);
	return m->text == NULL ? acc_nomem(e) : 1;
}

static bool
is(const struct curve *c, const char *level)
{
	return c->v.level != NULL && strcmp(c->v.level, level) == 0;
}

/* Each curve of this level, with its first sentence. */
static int
say_curves(struct acc_curves *cs, const char *level, const char *what, struct acc_err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		if (!is(c, level) || n++ >= MOST_CURVES)
			continue;
		struct remark *m = acc_curve_say(cs, what, e);
		if (m == NULL)
			return ACC_ENOMEM;
		m->name = c->tag;
		m->rule = c->v.rule;
		m->value = c->v.value;
		m->limit = c->v.limit;
		m->limit_from = c->v.limit_from;
		m->step = c->f.beyond != INT64_MIN ? c->f.beyond : c->f.first;
		const char *beyond = acc_beyond(&cs->mem, c->v.value, c->v.limit, NAN);
		m->text = beyond == NULL
				  ? NULL
				  : acc_say(&cs->mem, "%s: %s%s", c->tag, c->v.why[0], beyond);
		if (m->text != NULL && c->noise.runs > 0)
			m->text = acc_say(&cs->mem,
				"%s; %.3g %% of the steps are outside the bench's own "
				"spread, mean difference %.3g against "
				"%.3g",
				m->text, 100 * c->noise.outside, c->f.mean_abs, c->noise.mean_abs);
		if (m->text != NULL && c->f.change != INT64_MIN &&
			strcmp(c->v.rule, "late-gap") != 0)
			m->text = acc_say(&cs->mem,
				"%s; shifted from about step %" PRId64 " on: %.3g %% of the "
				"bench's",
				m->text, c->f.change, 100 * c->f.change_rel);
		if (m->text == NULL)
			return acc_nomem(e);
	}
	if (n <= MOST_CURVES)
		return 0;
	struct remark *m = acc_curve_say(cs, what, e);
	if (m == NULL)
		return ACC_ENOMEM;
	m->text = acc_say(&cs->mem, "and %zu more curves", n - MOST_CURVES);
	return m->text == NULL ? acc_nomem(e) : 0;
}

static bool
one_sided(const struct curve *c, int side)
{
	return c->f.n == 0 && c->f.only[side] > 0 && c->f.only[1 - side] == 0 && c->cls[0] == 'm';
}

/* The one curve that only this side has; NULL where it has none or several. */
static const char *
lone(const struct acc_curves *cs, int side)
{
	const char *tag = NULL;
	for (size_t i = 0; i < cs->set[0].n; i++) {
		if (!one_sided(cs->order[i], side))
			continue;
		if (tag != NULL)
			return NULL;
		tag = cs->order[i]->tag;
	}
	return tag;
}

/* Where each side has one that the other lacks, these may be one under two names. */
static const char *
say_other_name(struct acc_curves *cs)
{
	const char *a = lone(cs, 0), *b = lone(cs, 1);
	return a == NULL || b == NULL
		       ? ""
		       : acc_say(&cs->mem, " (the same by another name? --rename %s=%s)", a, b);
}

/* Tags and steps that only one side has are no difference. */
static int
say_one_sided(struct acc_curves *cs, int side, struct acc_err *e)
{
	struct remark one = {.nranked = 0};
	size_t tags = 0;
	const char *list = "";
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		if (!one_sided(c, side))
			continue;
		if (tags++ < 8) {
			one.ranked[one.nranked++] = c->tag;
			list = acc_say(&cs->mem, "%s%s%s", list, tags > 1 ? ", " : "", c->tag);
		}
		if (list == NULL)
			return acc_nomem(e);
	}
	if (tags == 0)
		return 0;
	struct remark *m = acc_curve_say(cs, "unmatched", e);
	if (m == NULL)
		return ACC_ENOMEM;
	memcpy(m->ranked, one.ranked, sizeof one.ranked);
	m->nranked = one.nranked;
	const char *hint = side == 0 ? "" : say_other_name(cs);
	m->text = hint == NULL
			  ? NULL
			  : acc_say(&cs->mem, "only the %s has %s%s: nothing to compare with%s",
				    side_name[side], list, tags > 8 ? " and more" : "", hint);
	return m->text == NULL ? acc_nomem(e) : 0;
}

/* First and last step of a side. */
static void
ends(const struct curve *c, int side, int64_t *first, int64_t *last)
{
	*first = *last = INT64_MIN;
	for (size_t i = 0; i < c->n; i++) {
		if (!(c->p[i].has & 1U << side))
			continue;
		*first = *first == INT64_MIN ? c->p[i].step : *first;
		*last = c->p[i].step;
	}
}

/* Curves that both sides have, at no step together: the first of them. */
static int
say_disjoint(struct acc_curves *cs, struct acc_err *e)
{
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		int64_t first[2], last[2];
		if (c->f.n > 0 || c->f.only[0] == 0 || c->f.only[1] == 0 || c->cls[0] != 'm')
			continue;
		struct remark *m = acc_curve_say(cs, "unmatched", e);
		if (m == NULL)
			return ACC_ENOMEM;
		for (int s = 0; s < 2; s++)
			ends(c, s, &first[s], &last[s]);
		m->name = c->tag;
		m->text = acc_say(&cs->mem,
			"%s: no step is on both sides; the device logged %" PRIu64
			" between %" PRId64 " and %" PRId64 ", the bench %" PRIu64
			" between %" PRId64 " and %" PRId64,
			c->tag, c->f.only[0], first[0], last[0], c->f.only[1], first[1], last[1]);
		return m->text == NULL ? acc_nomem(e) : 0;
	}
	return 0;
}

/* The first that is judged, and at some step by numbers. */
static const struct curve *
main_curve(const struct acc_curves *cs)
{
	const struct curve *first = NULL;
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		if (c->judged && c->f.neither < c->f.n)
			return c;
		first = first == NULL && c->judged ? c : first;
	}
	return first;
}

bool
acc_curve_is_lost(const struct curve *c)
{
	return c->v.rule != NULL && strcmp(c->v.rule, "not-finite-both") == 0;
}

static int
say_steps(struct acc_curves *cs, const struct curve *c, struct acc_err *e)
{
	const struct figures *f = &c->f;
	if (f->only[0] == 0 && f->only[1] == 0)
		return 0;
	struct remark *m = acc_curve_say(cs, "unmatched", e);
	if (m == NULL)
		return ACC_ENOMEM;
	bool spacing = f->interval[0] != INT64_MIN && f->interval[1] != INT64_MIN &&
		       f->interval[0] != f->interval[1];
	m->name = c->tag;
	m->text = acc_say(&cs->mem,
		"%s: %" PRIu64 " steps are compared, %" PRId64 " to %" PRId64 "; %" PRIu64 " "
		"are of the device alone, %" PRIu64 " of the bench alone%s",
		c->tag, f->n, f->begin, f->end, f->only[0], f->only[1],
		spacing ? ". They log at different intervals: where a program prints the mean over "
			  "its interval, these are means of different steps"
			: "");
	return m->text == NULL ? acc_nomem(e) : 0;
}

/* Did this side log a learning rate at the step? */
static bool
logged(const struct acc_curves *cs, int side, int64_t step)
{
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		const struct acc_point *p = c->role == ROLE_RATE ? acc_curve_at(c, step) : NULL;
		if (p != NULL && p->has & 1U << side)
			return true;
	}
	return false;
}

/* A loss that neither side logs any more, where both go on with the learning rate: twice as long as it
 * ever is from one to the next. */
static int
say_ends(struct acc_curves *cs, const struct curve *c, struct acc_err *e)
{
	const struct figures *f = &c->f;
	int64_t last = INT64_MIN;
	if (c->role != ROLE_LOSS || f->only[0] + f->only[1] > 0 || f->interval[0] == INT64_MIN)
		return 0;
	for (size_t i = 0; i < cs->set[0].n; i++)
		if (cs->order[i]->role == ROLE_RATE && cs->order[i]->f.n > 0 &&
			cs->order[i]->f.end > last)
			last = cs->order[i]->f.end;
	if (last <= f->end || (last - f->end) / 2 < f->interval[CURVE_A])
		return 0;
	struct remark *m = acc_curve_say(cs, "warning", e);
	if (m == NULL)
		return ACC_ENOMEM;
	m->name = c->tag;
	m->step = f->end;
	m->text = acc_say(&cs->mem,
		"%s ends on both sides with step %" PRId64 ", the learning rate with step %" PRId64
		": Megatron leaves out a loss that is NaN; behind it nothing is compared",
		c->tag, f->end, last);
	return acc_curve_rests_on(cs, "megatron-skips-nan", e) < 0 ? e->code : 0;
}

/* Behaviour megatron-skips-nan. A loss that is missing where the same side logged something else: Megatron leaves a NaN
 * out. */
static int
say_left_out(struct acc_curves *cs, const struct curve *c, struct acc_err *e)
{
	for (int side = 0; side < 2; side++) {
		uint64_t n = 0;
		int64_t first = INT64_MIN;
		for (size_t i = 0; i < c->n; i++)
			if (c->p[i].has == 1U << (1 - side) && logged(cs, side, c->p[i].step) &&
				n++ == 0)
				first = c->p[i].step;
		if (n == 0)
			continue;
		struct remark *m = acc_curve_say(cs, "warning", e);
		if (m == NULL)
			return ACC_ENOMEM;
		m->name = c->tag;
		m->step = first;
		m->text = acc_say(&cs->mem,
			"the %s has no %s at %" PRIu64 " steps, first %" PRId64 ", where it "
			"logged the learning rate: Megatron leaves out a loss that is NaN or "
			"of skipped steps",
			side_name[side], c->tag, n, first);
		if (acc_curve_rests_on(cs, "megatron-skips-nan", e) < 0)
			return e->code;
	}
	return 0;
}

/* The same of a monitor's curves, of which there are hundreds: it writes NaN where there was no tensor, too. */
static int
say_neither_watched(struct acc_curves *cs, struct acc_err *e)
{
	size_t n = 0;
	const struct curve *first = NULL;
	for (size_t i = 0; i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		if (!c->judged || c->f.neither == 0 || strcmp(c->cls, "monitor") != 0)
			continue;
		first = n++ == 0 ? c : first;
	}
	struct remark *m = n == 0 ? NULL : acc_curve_say(cs, "warning", e);
	if (n == 0)
		return 0;
	if (m == NULL)
		return ACC_ENOMEM;
	m->name = first->tag;
	m->text = acc_say(&cs->mem,
		"%zu curve%s NaN or infinite on both sides at steps that are not compared, first %s",
		n, n == 1 ? " is" : "s are", first->tag);
	return m->text == NULL ? acc_nomem(e) : 0;
}

/* Where neither side is finite, no difference is no agreement. */
static int
say_neither(struct acc_curves *cs, struct acc_err *e)
{
	size_t said = 0;
	for (size_t i = 0; i < cs->set[0].n && said < MOST_CURVES; i++) {
		const struct curve *c = cs->order[i];
		if (!c->judged || c->f.neither == 0 || acc_curve_is_lost(c) ||
			strcmp(c->cls, "monitor") == 0)
			continue;
		struct remark *m = acc_curve_say(cs, "warning", e);
		if (m == NULL)
			return ACC_ENOMEM;
		m->name = c->tag;
		m->step = c->f.lost;
		m->text = c->f.lost == INT64_MIN
				  ? acc_say(&cs->mem,
					    "%s: NaN or infinite on both sides at %" PRIu64
					    " of %" PRIu64 " steps, which are not compared",
					    c->tag, c->f.neither, c->f.n)
				  : acc_say(&cs->mem,
					    "%s: NaN or infinite on both sides at %" PRIu64
					    " of %" PRIu64 " steps, which are not compared: at all "
					    "from step %" PRId64 " to the last",
					    c->tag, c->f.neither, c->f.n, c->f.lost);
		if (m->text == NULL)
			return acc_nomem(e);
		said++;
	}
	return say_neither_watched(cs, e);
}

/* What makes the figures of a curve mean less than they seem to. */
static const char *
doubt(struct acc_curves *cs, const struct curve *c)
{
	struct acc_arena *mem = &cs->mem;
	for (int s = 0; s < 2; s++) {
		if (c->runs[s])
			return acc_say(mem,
				"the %s holds %s of several runs or ranks, of which the last "
				"counts: name the file of one",
				side_name[s], c->tag);
		if (c->role == ROLE_NORM && c->f.constant[s] && c->f.apart > 0)
			return acc_say(mem,
				"%s of the %s is the same at all steps: it was "
				"not computed, and is not judged",
				c->tag, side_name[s]);
	}
	if (c->counted && c->f.apart > 0)
		return acc_say(mem,
			"%s: a log names no steps, so its lines were counted: they are not judged as "
			"the first steps of training, and belong together only if both runs log at "
			"the same steps",
			c->tag);
	for (int s = 0; s < 2; s++)
		if (c->zeros[s] > 0)
			return acc_say(mem,
				"%s of the %s is exactly 0 between larger ones (steps: %" PRIu64
				"): taken for NaN or infinity that the Trainer filtered out (%s)",
				c->tag, side_name[s], c->zeros[s], "hf-trainer-nan-is-zero");
	if (c->n > 1 && c->times[0] > 1 && c->times[1] > 1)
		return acc_say(mem,
			"%s has each step several times (%" PRIu64 " on the device, %" PRIu64
			" on the bench), as where processes or batches print alike; the last value counts",
			c->tag, c->times[0], c->times[1]);
	if (c->repeated[0] + c->repeated[1] > 0)
		return acc_say(mem,
			"%s has steps twice (%" PRIu64 " on the device, %" PRIu64
			" on the bench), as after a restart; the last value counts",
			c->tag, c->repeated[0], c->repeated[1]);
	if (c->role == ROLE_LOSS && c->f.res >= 0.0005)
		return acc_say(mem,
			"%s is printed so coarsely that %.2g of a difference "
			"may be rounding: the first step's rule (0.005) says little",
			c->tag, c->f.res);
	return "";
}

static int
say_doubts(struct acc_curves *cs, struct acc_err *e)
{
	size_t said = 0;
	if (cs->set[0].unplaced > 0) {
		struct remark *m = acc_curve_say(cs, "warning", e);
		if (m == NULL)
			return ACC_ENOMEM;
		m->text = acc_say(&cs->mem, "points without a step cannot be joined: %" PRIu64,
			cs->set[0].unplaced);
		if (m->text == NULL)
			return acc_nomem(e);
	}
	for (size_t i = 0; i < cs->set[0].n && said < 4; i++) {
		const struct curve *c = cs->order[i];
		const char *text = c->judged ? doubt(cs, c) : "";
		if (text == NULL)
			return acc_nomem(e);
		if (text[0] == '\0')
			continue;
		struct remark *m = acc_curve_say(cs, "warning", e);
		if (m == NULL)
			return ACC_ENOMEM;
		m->name = c->tag;
		m->text = text;
		said++;
	}
	return 0;
}

static const char *
nature(const struct curve *c)
{
	if (c->f.apart == 0)
		return "equal to the last digit";
	if (c->noise.inside)
		return "inside the bench's own spread";
	if (c->f.change != INT64_MIN)
		return "a shift from one step on, too small to matter";
	if (c->f.drift.kind == ACC_DRIFT_NONE)
		return "noise about zero";
	if (c->f.drift.kind == ACC_DRIFT_UNKNOWN)
		return c->f.drift.signs > 0
			       ? "on both sides of zero (too short to tell noise from drift)"
			       : "too short to tell noise from drift";
	return c->role == ROLE_NONE ? "a steady difference, which no rule is about"
				    : "a steady difference, too small to matter";
}

/* Where there is nothing but local norms, the worst of them stands first. */
static const char *
say_weights(struct acc_curves *cs, const struct curve *c, size_t n)
{
	if (c->f.apart == 0)
		return acc_say(&cs->mem,
			"no rule of %s is broken: %zu local norm%s equal to "
			"the last digit",
			cs->opt.rules_name, n, n == 1 ? "" : "s");
	return acc_say(&cs->mem,
		"no rule of %s is broken by %zu local norm%s; on average over "
		"the steps none differs by more than %.2g %%, that of %s",
		cs->opt.rules_name, n, n == 1 ? "" : "s", 100 * c->f.mean_rel, c->tag);
}

static int
say_clean(struct acc_curves *cs, struct acc_err *e)
{
	const struct curve *c = main_curve(cs);
	size_t n = 0;
	for (size_t i = 0; i < cs->set[0].n; i++)
		n += cs->order[i]->judged;
	struct remark *m = c == NULL ? NULL : acc_curve_say(cs, "clean", e);
	if (c == NULL)
		return 0;
	if (m == NULL)
		return ACC_ENOMEM;
	m->name = c->tag;
	const uint64_t steps = c->f.n - c->f.neither;
	if (steps == 0) {
		m->text = acc_say(&cs->mem,
			"no rule of %s is broken, but no step of any curve is finite on both sides",
			cs->opt.rules_name);
		return m->text == NULL ? acc_nomem(e) : 0;
	}
	if (c->role == ROLE_LOCAL) {
		m->text = say_weights(cs, c, n);
		return m->text == NULL ? acc_nomem(e) : 0;
	}
	m->text = acc_say(&cs->mem,
		"no rule of %s is broken by %zu curve%s; %s over %" PRIu64 " step%s: %s",
		cs->opt.rules_name, n, n == 1 ? "" : "s", c->tag, steps, steps == 1 ? "" : "s",
		nature(c));
	if (m->text != NULL && c->f.apart > 0)
		m->text = acc_say(&cs->mem,
			"%s; largest difference %.3g (%.2g %%) at step %" PRId64 ", mean %.3g",
			m->text, c->f.max_abs, 100 * c->f.max_rel, c->f.at, c->f.mean_abs);
	return m->text == NULL ? acc_nomem(e) : 0;
}

int
acc_curve_conclude(struct acc_curves *cs, struct acc_err *e)
{
	const struct curve *c = main_curve(cs);
	int rc = 0;
	if (cs->status != 0) {
		rc = acc_curve_stage(cs, e);
		if (rc == 0)
			rc = say_curves(cs, "error", "rule", e);
	}
	if (rc == 0)
		rc = say_curves(cs, "warning", "warning", e);
	if (rc == 0)
		rc = say_neither(cs, e);
	if (rc == 0)
		rc = say_doubts(cs, e);
	if (rc == 0 && c != NULL)
		rc = say_left_out(cs, c, e);
	if (rc == 0 && c != NULL)
		rc = say_ends(cs, c, e);
	if (rc == 0 && c != NULL)
		rc = say_steps(cs, c, e);
	if (rc == 0)
		rc = say_disjoint(cs, e);
	for (int side = 0; side < 2 && rc == 0; side++)
		rc = say_one_sided(cs, side, e);
	return rc == 0 && cs->status == 0 ? say_clean(cs, e) : rc;
}
