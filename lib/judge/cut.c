/* What a cut of gradients to a norm hides: all of them are so many times the bench's, as where ranks add up what is to be
 * averaged, and what they are multiplied by is as much smaller. What the optimizer is given is the bench's; the factor is not. */
#include "acc/say.h"
#include "judge/cut.h"

#include <math.h>
#include <stdlib.h>

#include "acc/base.h"
#include "judge/arrived.h"
#include "judge/item.h"
#include "judge/root.h"
#include "judge/traced.h"

/* Of one side, in one step: the one-element tensor that as many gradients are multiplied by as the optimizer is given. */
struct cut {
	double factor;  /* 0: none */
	uint32_t first; /* op call */
	uint32_t times; /* tensors that are multiplied by it */
	uint32_t given; /* gradients that the optimizer is given */
	bool several;   /* factors */
};

struct cuts {
	struct cut of[2];
	int64_t step;
	uint32_t same;    /* gradients that are the bench's */
	double off;       /* the furthest of them */
	double square[2]; /* of each side's */
	/* What both sides have of gradients as they were made, and what was compared of that: where a loss is scaled, and what
	 * cuts takes it back, it is in no layout over the ranks. */
	uint32_t made, compared;
};

static bool
multiplies(const struct acc_call *k)
{
	static const char *const names[] = {"Tensor.mul_.", "Torch._foreach_mul_.",
		"Tensor.__imul__."};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (acc_str_starts(acc_str(acc_call_name(k)), names[i]))
			return true;
	return false;
}

static void
see_factor(struct cut *t, uint32_t call, double x)
{
	if (!(x > 0 && x <= 1))
		return;
	t->several |= t->factor > 0 && t->factor != x;
	t->first = t->factor > 0 ? t->first : call;
	t->factor = x;
}

static int
look_at(struct acc_case *c, uint32_t item, struct cuts *t, struct acc_err *e)
{
	const struct acc_item *it = &c->item[item];
	const struct acc_call *k = &c->call[it->call];
	const bool steps = acc_call_steps_on(k, ACC_A) || acc_call_steps_on(k, ACC_B);
	struct acc_rec *r;
	if (it->kind == ACC_ITEM_TENSOR && it->sides == 3 && k->backward && acc_is_output(it)) {
		t->made++;
		t->compared += acc_is_measured(it);
	}
	if (it->kind != ACC_ITEM_TENSOR || !(steps || (!k->backward && multiplies(k))) ||
		it->io != ACC_IO_IN)
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	for (int s = 0; s < 2; s++) {
		struct acc_str pos = acc_get_text(r, s == ACC_A ? "a." : "b.", "pos");
		if ((it->sides & 1 << s) == 0)
			continue;
		if (steps)
			t->of[s].given += acc_str_starts(pos, "1.");
		else if (acc_str_is(pos, "1"))
			see_factor(&t->of[s], it->call, acc_element(c, item, r, s, e));
		else
			t->of[s].times += acc_str_is(pos, "0") || acc_str_starts(pos, "0.");
	}
	if (steps && it->sides == 3 && acc_is_measured(it) &&
		acc_str_starts(acc_get_text(r, "b.", "pos"), "1.")) {
		double a = NAN, b = NAN;
		acc_side_norm(r, ACC_A, &a);
		acc_side_norm(r, ACC_B, &b);
		t->same++;
		t->off = fmax(t->off, it->rms);
		t->square[ACC_A] += a * a;
		t->square[ACC_B] += b * b;
	}
	return 0;
}

static bool
is_cut(const struct cut *t)
{
	return t->factor > 0 && !t->several && t->given > 1 && t->times == t->given;
}

/* As many times as there are ranks or parts, or one of so many: more is no matter of rounding, nor of another limit. */
static bool
is_count(double x)
{
	x = x < 1 ? 1 / x : x;
	return round(x) >= 2 && fabs(x - round(x)) < LIMIT_CUT_COUNT * x;
}

static int
say(struct scan *s, const struct cuts *t, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct cut *a = &t->of[ACC_A], *b = &t->of[ACC_B];
	if (!is_cut(a) || !is_cut(b))
		return 0;
	const double times = b->factor / a->factor * sqrt(t->square[ACC_A] / t->square[ACC_B]);
	/* What the optimizer is given must be the bench's, not that many times it. */
	if (!is_count(times) || 2 * t->compared < t->made || t->same < b->given ||
		!(t->off < fabs(times - 1) / 2))
		return 0;
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_cut_gradients, "culprit", "scale",
		e);
	if (f == NULL)
		return e->code;
	const struct acc_call *k = &c->call[a->first];
	const char *src = acc_say_source(c, k, &f->stack, e);
	f->name = acc_call_name(k);
	f->step = k->step;
	f->rank = INT64_MIN;
	f->value = times;
	f->limit = 1;
	f->text =
		src == NULL
			? NULL
			: acc_say(&c->mem,
				  "%s: the gradients are multiplied by %g before the optimizer is given them, the bench's by %g:"
				  " before that they are %g times the bench's, all %u of them, which a cut to a norm hides."
				  " Are they added up over the ranks where the bench takes a mean, or is the loss scaled?%s%s",
				  f->name, a->factor, b->factor, times, a->given,
				  src[0] != '\0' ? " at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_cut(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct cuts none = {.step = INT64_MIN};
	struct cuts t = none;
	int rc = 0;
	acc_case_rest(c);
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		const uint32_t call = c->item[i].call;
		if (call == ACC_NOCALL)
			continue;
		if (c->call[call].step != t.step) {
			rc = say(s, &t, e);
			t = none;
			t.step = c->call[call].step;
		}
		rc = rc < 0 ? rc : look_at(c, i, &t, e);
	}
	return rc < 0 ? rc : say(s, &t, e);
}
