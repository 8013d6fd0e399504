/* Scores that are hidden from a softmax, by minus infinity on one side and by a large negative number
 * on the other.
 *
 * Of either nothing is left: exp() of it is 0. So the two masks are no difference, and would hide
 * all that comes after them, if everything that takes such scores hands them on or is a softmax (or
 * an attention) whose output agrees. What then counts as their error is that of the scores that are
 * not hidden; where these are not told apart, that of what the scores were made from. */
#include "judge/first_bad.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

/* Of values that some call was given: what became of them. */
struct score {
	bool soft, bad, harmless;
	double need; /* the error of the scores that explains what the softmaxes gave */
	float rms;   /* of the scores that are not hidden */
};

struct masks {
	struct acc_case *c;
	struct acc_ids of; /* (values of the bench, segment) -> index */
	struct score *score;
	uint32_t n;
	size_t cap;
};

static double
side_number(const struct acc_rec *r, const char *side, const char *key, const char *other)
{
	double v = NAN;
	acc_as_f64(acc_get(r, side, key), &v);
	if (isnan(v) && other != NULL)
		acc_as_f64(acc_get(r, side, other), &v);
	return v;
}

/* Hidden scores at the low end and nothing else that is odd, on both sides, by other numbers? */
static int
is_masked(struct acc_case *c, const struct acc_item *it, bool *yes, struct acc_err *e)
{
	static const char *const side[] = {"a.", "b."};
	struct acc_rec *r;
	*yes = false;
	if (it->kind != ACC_ITEM_TENSOR || it->sides != 3 || it->exact || it->loose ||
		!(it->rms > 0) || !(it->nonfinite || it->b_max >= LIMIT_HIDDEN) ||
		(it->measure != ACC_BY_TENSOR && it->measure != ACC_BY_STAT))
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	double low[2];
	*yes = true;
	for (int s = 0; s < 2; s++) {
		double high = side_number(r, side[s], "s.max", "stat.max");
		low[s] = side_number(r, side[s], "s.min", "stat.min");
		/* Statistics without NaN or +Inf say so by their largest. */
		*yes &= low[s] <= -LIMIT_HIDDEN && high < LIMIT_HIDDEN &&
			!(side_number(r, side[s], "s.nan", NULL) > 0);
	}
	*yes &= low[ACC_A] < low[ACC_B] || low[ACC_A] > low[ACC_B];
	return 0;
}

static struct score *
score_of(const struct masks *m, const struct acc_item *it)
{
	uint32_t segment = m->c->call[it->call].segment;
	uint32_t i = acc_ids_get(&m->of, acc_id_with(it->id[ACC_B], segment));
	return it->id[ACC_B] == 0 || i == ACC_NOID ? NULL : &m->score[i];
}

static struct score *
score_make(struct masks *m, const struct acc_item *it, struct acc_err *e)
{
	struct score *old = score_of(m, it);
	if (old != NULL)
		return old;
	if (!ACC_ROOM(m->score, m->cap, (size_t)m->n + 1, e))
		return NULL;
	m->score[m->n] = (struct score){.bad = it->id[ACC_B] == 0};
	uint64_t id = acc_id_with(it->id[ACC_B], m->c->call[it->call].segment);
	return acc_ids_put(&m->of, id, m->n, true, e) < 0 ? NULL : &m->score[m->n++];
}

static bool
is_softmax(const struct acc_call *k)
{
	const char *name = k->key[ACC_A];
	return k->cls == ACC_OP_ATTEND ||
	       (strcasestr(name, "softmax") != NULL && strcasestr(name, "log") == NULL);
}

/* The error of what it was given that explains this output; infinite where nothing does. */
static double
needed(const struct acc_case *c, const struct acc_call *k, const struct acc_item *it)
{
	double unit = acc_call_unit(c, k), floor = unit;
	if (!acc_is_measured(it) || it->exact || it->measure == ACC_BY_SUM)
		return INFINITY;
	floor *= acc_unit_low(unit) ? LIMIT_OTHER_FLOOR_16 : LIMIT_OTHER_FLOOR;
	floor += it->measure == ACC_BY_STAT ? acc_statistic_rounding(unit) : 0;
	return fmax(0, (it->rms / LIMIT_MARGIN - floor) / LIMIT_OTHER_GAIN);
}

/* The scores that are not hidden, relative to their own size; NAN where they were not told apart. */
static int
plain_error(struct acc_case *c, const struct acc_item *it, double *rms, double *abs,
	struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	*rms = *abs = NAN;
	if (it->measure == ACC_BY_TENSOR && it->nonfinite) {
		*rms = side_number(r, "", "m.rel_l2", NULL);
		*abs = it->max_abs;
	}
	return 0;
}

/* How large the error of the scores is that an item of this call holds. An absolute one becomes a
 * relative one of what softmax gives. */
static int
known_error(struct acc_case *c, uint32_t call, const struct acc_item *it, double *rms, double *most,
	struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	double abs;
	int rc = plain_error(c, it, rms, &abs, e);
	if (rc < 0)
		return rc;
	*most = fmax(*rms, abs);
	if (!isnan(*rms))
		return 0;
	*rms = *most = 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *in = &c->item[i];
		if (in->call != call || !acc_is_input(in) || !acc_is_measured(in) || in->exact ||
			isinf(in->rms) || in->kind != ACC_ITEM_TENSOR ||
			in->id[ACC_B] == it->id[ACC_B] || in->b_max >= LIMIT_HIDDEN)
			continue;
		*rms = fmax(*rms, in->rms);
		*most = fmax(fmax(*most, in->rms), in->max_abs);
	}
	return 0;
}

/* What this call does with hidden scores that it was given, and whether what it gives is such. */
static int
look(struct masks *m, uint32_t call, struct acc_err *e)
{
	struct acc_case *c = m->c;
	const struct acc_call *k = &c->call[call];
	bool soft = is_softmax(k), odd = false, any = false, yes;
	struct score out = {.soft = soft};
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct score *s;
		double rms, most;
		if (it->call != call || acc_is_input(it) || it->kind != ACC_ITEM_TENSOR)
			continue;
		int rc = is_masked(c, it, &yes, e);
		if (rc < 0)
			return rc;
		if (soft)
			out.need = fmax(out.need, needed(c, k, it));
		odd |= !soft && (!yes || (s = score_of(m, it)) == NULL);
		if (soft || odd)
			continue;
		rc = known_error(c, call, it, &rms, &most, e);
		if (rc < 0)
			return rc;
		s->harmless = s->soft && !s->bad && s->need <= most;
		s->rms = (float)rms;
		out.soft |= s->soft;
		out.bad |= s->bad;
		out.need = fmax(out.need, s->need <= most ? 0 : s->need);
		any = true;
	}
	bool on = k->cls == ACC_OP_MOVE || k->cls == ACC_OP_ADD || k->cls == ACC_OP_MUL;
	out.bad |= !soft && (!any || odd || !on);
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !acc_is_input(it))
			continue;
		int rc = is_masked(c, it, &yes, e);
		struct score *s = rc < 0 || !yes ? NULL : score_make(m, it, e);
		if (rc < 0 || (yes && s == NULL))
			return rc < 0 ? rc : ACC_ENOMEM;
		if (!yes)
			continue;
		s->soft |= out.soft;
		s->bad |= out.bad;
		s->need = fmax(s->need, out.need);
	}
	return 0;
}

/* A mask that no call makes. */
static int
given(struct masks *m, uint32_t call, struct acc_err *e)
{
	const struct acc_call *k = &m->c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &m->c->item[i];
		struct score *s = it->call == call && acc_is_input(it) ? score_of(m, it) : NULL;
		double rms, most;
		if (s == NULL || s->harmless || s->bad || !s->soft)
			continue;
		int rc = known_error(m->c, call, it, &rms, &most, e);
		if (rc < 0)
			return rc;
		s->harmless = s->need <= most;
		s->rms = (float)rms;
	}
	return 0;
}

/* From here on it has the error of the scores that are not hidden. */
static void
forgive(struct acc_item *it, const struct score *s)
{
	bool told = it->measure == ACC_BY_TENSOR && it->nonfinite;
	it->rms = it->max = s->rms;
	if (!told)
		it->rmse = it->max_abs = NAN;
	it->max_rel = it->stat_abs = it->b_rms = it->b_max = NAN;
	it->nonfinite = it->saturated = it->b_overflow = it->a_inf = it->a_full = false;
	it->audit[ACC_A] = it->audit[ACC_B] = NAN;
	it->audited = 3;
	it->masked = true;
}

static bool
forward(const struct acc_call *k)
{
	return !k->backward && !k->grad && !k->module && k->keyed && k->key[ACC_A] != NULL &&
	       k->key[ACC_B] != NULL;
}

int
acc_forgive_masks(struct acc_case *c, struct acc_err *e)
{
	struct masks m = {.c = c};
	struct acc_ids hides = {0}; /* operators that do */
	int rc = 0;
	for (uint32_t i = c->ncall; i-- > 0 && rc == 0;) {
		if (i + 1 < c->ncall && c->call[i].segment != c->call[i + 1].segment)
			acc_case_rest(c);
		rc = forward(&c->call[i]) ? look(&m, i, e) : 0;
	}
	for (uint32_t i = 0; i < c->ncall && m.n > 0 && rc == 0; i++)
		rc = forward(&c->call[i]) ? given(&m, i, e) : 0;
	for (uint32_t i = 0; i < c->nitem && m.n > 0 && rc == 0; i = acc_step(c, i)) {
		struct acc_item *it = &c->item[i];
		bool yes = false;
		if (it->call == ACC_NOCALL || !forward(&c->call[it->call]))
			continue;
		rc = is_masked(c, it, &yes, e);
		const struct score *s = yes ? score_of(&m, it) : NULL;
		if (s == NULL || !s->harmless)
			continue;
		forgive(it, s);
		rc = acc_ids_put(&hides, c->call[it->call].op_id, it->call, false, e);
	}
	/* What one side computes again, it hides again. */
	for (uint32_t i = 0; i < c->nitem && m.n > 0 && rc == 0; i = acc_step(c, i)) {
		struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call == ACC_NOCALL || it->sides != 1 || it->kind != ACC_ITEM_TENSOR ||
			acc_ids_get(&hides, c->call[it->call].op_id) == ACC_NOID)
			continue;
		rc = acc_case_record(c, it, &r, e);
		if (rc < 0 || (!it->a_full && !(side_number(r, "a.", "s.min", "stat.min") <=
						      -LIMIT_HIDDEN)))
			continue;
		it->audit[ACC_A] = NAN;
		it->audited = 3;
	}
	acc_ids_release(&hides);
	acc_ids_release(&m.of);
	free(m.score);
	return rc;
}

/* What was forgiven is said: it is a difference, if no fault. */
int
acc_say_masks(struct acc_case *c, struct acc_err *e)
{
	uint32_t n = 0, first = ACC_NOCALL;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		bool made = c->item[i].masked && !c->item[i].exact && !acc_is_input(&c->item[i]);
		n += made;
		first = made && first == ACC_NOCALL ? i : first;
	}
	if (n == 0)
		return 0;
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->rule = "masks";
	f->doubtful = true;
	f->value = n;
	f->name = acc_call_name(&c->call[c->item[first].call]);
	f->text = acc_say(&c->mem,
		"%u output%s hide%s scores by a different number than on the bench, first %s: no fault,"
		" since softmax leaves nothing of either",
		n, n == 1 ? "" : "s", n == 1 ? "s" : "", f->name);
	return f->text == NULL ? acc_nomem(e) : 0;
}
