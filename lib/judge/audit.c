/* What accaudit found: an output that is not what its own inputs give is wrong by itself,
 * whatever the other side has. */
#include "judge/accept.h"
#include "judge/first_bad.h"
#include "acc/ranks.h"
#include "acc/replay.h"
#include "acc/say.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/order.h"

/* An operator that the other side has in parts: which of its inputs is which was guessed by what they
 * hold. Where all of them agree, nobody is hidden behind one, and what it gives is right for them, but
 * as far from the bench's as other numbers are, they stand in other places (keys and values, say). */
bool
acc_given_otherwise(const struct acc_item *it, const struct suspect *x)
{
	return it->loose && it->rms >= 1 && !isinf(it->rms) && !it->exact && x->hidden.n == 0 &&
	       x->margin >= LIMIT_PLAIN;
}

/* Both sides are right for what they were given, and that is the same: two right answers to one question are
 * one. So the question is another: the operator, an argument, the order of a weight. What all products show
 * is how the device multiplies. */
bool
acc_is_other_answer(const struct scan *s, const struct acc_item *it, const struct suspect *x)
{
	const struct acc_call *k = &s->c->call[it->call];
	const double u = fmax(acc_item_unit(it), acc_call_unit(s->c, k));
	/* But of equal values each may be the largest; of numbers below the normal ones a side may make zeros; a product
	 * that operands of fewer bits give is the same question; and one that is as near to its own terms as f32 takes it
	 * is one, whatever these leave of each other. */
	if ((it->exact && k->ranks && !k->backward) || acc_is_flushed(it) ||
		it->form != ACC_NOFORM ||
		(acc_multiplies(k) && it->audit[ACC_B] <= 1 &&
			it->own_rms <= LIMIT_OWN_PRODUCT * acc_item_unit(it)))
		return false;
	/* Of two programs in f32 inputs are rounded otherwise: then it must be as many times more. */
	const double given = fmax(1, x->cause / (LIMIT_SAME_INPUT * u));
	return x->role == ROLE_OUT && !x->unseen && !x->inner && !x->weak &&
	       (given <= 1 || (s->two && !acc_unit_low(s->unit) && it->count > 1)) &&
	       it->rms > given * LIMIT_OTHER_OUTPUT * u;
}

/* What is right for what the device gave it is no fault of this operator, however far the sides are
 * apart. But then something that it was given explains that: if an input has the right numbers in
 * other places, they are the wrong places; if one was not compared, who made it is suspected,
 * unless that is right, too; if nobody did, the suspicion stays here. */
static void
acquit(const struct scan *s, const struct acc_item *it, struct suspect *x)
{
	const struct hidden *h = &x->hidden;
	if (acc_is_other_answer(s, it, x))
		return;
	if (x->permuted || (h->unmade && !h->accused) || acc_given_otherwise(it, x))
		return;
	for (unsigned i = 0; i < h->n && !h->accused; i++)
		if (s->c->call[h->call[i]].key[ACC_B] == NULL &&
			(x->blame == x->call || h->call[i] < x->blame))
			x->blame = h->call[i];
	/* Of two programs, where calls are right that together stand for one, their formula may be another. */
	const bool formula = s->two && x->role == ROLE_OUT && x->margin >= LIMIT_NAMED_ARG &&
			     (it->loose || x->inner) && acc_call_is_fused(s->c, x->call);
	if (x->blame == x->call && !formula)
		x->margin = -LIMIT_CERTAIN;
}

/* Does the audit know what each step of this one's operator rounds? */
static bool
tells_each_step(const struct scan *s, const struct acc_item *it)
{
	struct acc_rec *r;
	if (s->c->call[it->call].backward || acc_case_record(s->c, it, &r, NULL) < 0)
		return false;
	const struct acc_op *row = acc_op_find(
		acc_get_text(r, acc_rec_is(r, "pair") ? "a." : "", "op"));
	return row != NULL && (row->flags & ACC_EVERY_STEP) != 0;
}

/* An operator of several steps may round each of them to 16 bits, as some devices do: the audit learns
 * that from others of its class, but not from few. Of f32 operators among those of 16 bits it does
 * not believe it. */
static bool
rounds_each_step(const struct scan *s, const struct acc_item *it)
{
	const struct acc_call *k = &s->c->call[it->call];
	double unit = fmax(acc_call_unit(s->c, k), s->unit);
	double steps = k->steps * (k->backward ? 2 : 1);
	double may = LIMIT_STEP_U * unit * sqrt(steps);
	double most = fmax(LIMIT_MARGIN_MAX * may, LIMIT_STEP_MOST * unit * steps);
	if (!acc_unit_low(unit) || k->steps <= 1 || it->measure != ACC_BY_TENSOR ||
		tells_each_step(s, it))
		return false;
	/* How far apart the sides are holds what came in, too; how far it is from its own inputs does not. */
	return (it->rms <= may && it->max <= most) || (it->own_rms <= may && it->own_max <= most);
}

/* Operators whose errors are alike: all products; all that round once; of several steps, each by
 * itself. */
static uint64_t
class_of(const struct scan *s, const struct acc_item *it)
{
	const struct acc_call *k = &s->c->call[it->call];
	bool once = k->steps <= 1;
	uint64_t id[4] = {acc_multiplies(k) ? 0
			  : once            ? 1
					    : k->op_id,
		k->backward, k->module, acc_unit_low(acc_call_unit(s->c, k))};
	return acc_hash(id, sizeof id);
}

ACC_ORDER_2(by_class, struct usual, cls, ratio)

int
acc_audit_learn(struct scan *s)
{
	s->nusual = 0;
	for (uint32_t i = 0; i < s->c->nitem; i = acc_step(s->c, i)) {
		const struct acc_item *it = &s->c->item[i];
		if (it->call == ACC_NOCALL || it->exact || acc_is_input(it) ||
			isnan(it->audit[ACC_A]))
			continue;
		if (!ACC_ROOM(s->usual, s->usual_cap, (size_t)s->nusual + 1, NULL))
			return ACC_ENOMEM;
		s->usual[s->nusual++] = (struct usual){class_of(s, it), it->audit[ACC_A]};
	}
	if (s->nusual > 1)
		qsort(s->usual, s->nusual, sizeof *s->usual, by_class);
	return 0;
}

/* By how much of its limit nearly all outputs of a class are off; 1 where few were recomputed. */
static double
usual(const struct scan *s, uint64_t cls)
{
	uint32_t low = 0, n = 0;
	ACC_LOWER(low, s->nusual, s->usual[low].cls < cls);
	while (low + n < s->nusual && s->usual[low + n].cls == cls)
		n++;
	uint32_t tail = n / LIMIT_LEARN_TAIL > 1 ? n / LIMIT_LEARN_TAIL : 1;
	return n < LIMIT_USUAL_OUTPUTS ? 1 : s->usual[low + n - 1 - tail].ratio;
}

/* How much of the margin of all limits those of the audit lack, in decades: they were learned from few
 * calls. But what only moves, adds or multiplies rounds once, on whatever device, or twice where an
 * operand is cast before. */
static double
room(const struct acc_call *k)
{
	bool one = k->cls == ACC_OP_MOVE || k->cls == ACC_OP_ADD || k->cls == ACC_OP_MUL;
	return one && k->steps <= 1 && !k->backward && !k->module ? log10(2) / 2
								  : log10(LIMIT_MARGIN);
}

/* Does one argument that is another, or another formula, explain the error? Then it is no rounding. */
static bool
is_explained(const struct scan *s, const struct acc_item *it)
{
	struct acc_rec *r;
	if (acc_case_record(s->c, it, &r, NULL) < 0)
		return false;
	struct acc_str cause = acc_get_text(r, acc_rec_is(r, "pair") ? "a." : "", "audit.cause");
	return acc_str_starts(cause, "as if ") || acc_str_starts(cause, "the tanh form") ||
	       acc_str_starts(cause, "the erf form");
}

/* Both sides computed it in 16 bits on the way, and the device is no further from what its inputs give than
 * the bench: what is between them is rounding, and the bench has the larger part of it. But rounding has either sign, and
 * of what it takes all off by, no element stands out. */
static bool
rounds_as_bench(const struct scan *s, const struct acc_item *it, const struct suspect *x)
{
	struct acc_rec *r;
	return it->audit[ACC_A] > 1 && it->audit[ACC_A] <= it->audit[ACC_B] && !x->slope &&
	       !it->permuted && it->max <= LIMIT_STANDS_OUT * it->rms &&
	       acc_case_record(s->c, it, &r, NULL) == 0 &&
	       acc_str_is(acc_get_text(r, "a.", "audit.cause"), acc_audit_rough) &&
	       acc_str_is(acc_get_text(r, "b.", "audit.cause"), acc_audit_rough);
}

/* A step of 16 bits that one of two programs alone takes: what is usual of others of its class is not of it, as
 * the kernels of a framework sum up in their own ways. */
static bool
is_other(const struct scan *s, const struct acc_item *it)
{
	return s->two && !acc_is_measured(it) &&
	       acc_unit_low(acc_call_unit(s->c, &s->c->call[it->call]));
}

void
acc_audit_suspect(const struct scan *s, const struct acc_item *it, struct suspect *x)
{
	const struct acc_call *k = &s->c->call[it->call];
	if (x->margin > 0 && rounds_as_bench(s, it, x))
		x->margin = -LIMIT_CERTAIN;
	/* Right as it is, an overflow of the device's dtype alone is where its NaN come from. And of what
	 * was drawn, an output tells itself: drawn otherwise, it is as right, and another. */
	if (acc_acquitted(it) && !acc_overflows(it) && k->cls != ACC_OP_RANDOM)
		acquit(s, it, x);
	/* The audit's limit was learned from few calls: beyond it by up to the factor of 4 that all
	 * limits have, the output must also differ from the bench's by as much as that lacks. */
	double lack = 0;
	if (acc_accused(it)) {
		double most = log10(
			LIMIT_MARGIN * (is_other(s, it) ? 1 : usual(s, class_of(s, it))));
		lack = fmin(0, fmax(x->margin, -fmin(room(k), fmax(0, most))));
	}
	if (!acc_accused(it) || (rounds_each_step(s, it) && !is_explained(s, it)) ||
		log10((double)it->audit[ACC_A]) + lack <= 0)
		return;
	x->margin = fmin(LIMIT_CERTAIN, LIMIT_NAMED + log10((double)it->audit[ACC_A]));
	x->value = it->audit[ACC_A];
	x->limit = 1;
	x->from = "recomputation from its own recorded inputs";
	x->audit = true;
}

static double
number(const struct acc_rec *r, const char *prefix, const char *key)
{
	double v = NAN;
	acc_as_f64(acc_get(r, prefix, key), &v);
	return v;
}

/* "rule stale_weight, " of what ranks say of a record; "" where nobody said which. */
static const char *
rule_text(struct acc_arena *m, const struct acc_rec *r, const char *prefix)
{
	struct acc_str rule = acc_get_text(r, prefix, "audit.rule");
	return rule.n == 0 ? "" : acc_say(m, "rule %.*s, ", ACC_PRS(rule));
}

/* Rules over ranks recompute communication, and nothing else. */
static bool
recomputes(struct acc_str rule)
{
	return rule.n == 0 || acc_str_is(rule, "collective");
}

static const char *
limit_from(const struct acc_rec *r)
{
	return recomputes(acc_get_text(r, "", "audit.rule"))
		       ? "recomputation from its own recorded inputs"
		       : "what the ranks of this run have in common";
}

/* Of what fails recomputation, in whatever program: one number. */
static double
confidence(double value)
{
	return isinf(value) ? 1 : 1 - fmin(1, LIMIT_WRONG_AUDIT / value);
}

/* How often such a verdict is right: of a recomputation by how far it is beyond its limit; of ranks beside each other, where
 * nothing is recomputed, as often as was measured, or not known. NULL: no memory. */
static const char *
how_sure(struct acc_case *c, const struct acc_rec *r, struct acc_finding *f)
{
	const struct acc_str id = acc_get_text(r, "", "audit.rule");
	const struct acc_rank_rule *rule = acc_rank_rule_of(id);
	unsigned of = 0;
	f->limit_from = limit_from(r);
	/* A dump alone has nothing that bears out what is as likely wrong as right. */
	f->confidence = f->value < LIMIT_ALONE ? NAN : confidence(f->value);
	if (recomputes(id))
		return acc_beyond_times(&c->mem, f->value, f->confidence);
	f->audit_rule = acc_arena_copy(&c->mem, id.p, id.n);
	f->confidence = NAN;
	const unsigned right = rule == NULL ? 0 : acc_rank_rule_right(rule, &of);
	if (f->audit_rule == NULL || of < LIMIT_MEASURED)
		return f->audit_rule == NULL ? NULL : acc_beyond_times(&c->mem, f->value, NAN);
	f->confidence = (double)right / of;
	return acc_say(&c->mem, "; such a verdict was right in %.2g of %u cases", f->confidence,
		of);
}

const char *
acc_audit_text(struct acc_case *c, const struct acc_item *it, int side, bool brief,
	struct acc_err *e)
{
	static const char *const sides[] = {"device", "bench"};
	struct acc_rec *r;
	if (acc_case_record(c, it, &r, e) < 0)
		return NULL;
	bool pair = acc_rec_is(r, "pair"), good = it->audit[!side] <= 1;
	const char *prefix = !pair ? "" : side == ACC_B ? "b." : "a.";
	const char *cause = acc_got(acc_got_said(&c->mem, r, prefix, "audit.cause"));
	struct acc_str ranks = acc_get_text(r, prefix, "audit.ranks");
	const char *rule = acc_got(rule_text(&c->mem, r, prefix));
	if (ranks.n > 0 && cause[0] != '\0' && !(number(r, prefix, "audit.limit_max") > 0))
		return acc_say(&c->mem, "%s (%sof ranks %.*s)", cause, rule, ACC_PRS(ranks));
	if (ranks.n > 0 && cause[0] != '\0')
		return acc_say(&c->mem, "%s (%sof ranks %.*s: %.3g of at most %.3g)", cause, rule,
			ACC_PRS(ranks), number(r, prefix, "audit.err_max"),
			number(r, prefix, "audit.limit_max"));
	double rms = number(r, prefix, "audit.err"), max = number(r, prefix, "audit.err_max");
	const char *size = isinf(rms) ? "NaN or Inf differ"
				      : acc_say(&c->mem,
						"rms error %.3g ulp (limit %.3g), largest %.3g"
						" (limit %.3g)",
						rms, number(r, prefix, "audit.limit"), max,
						number(r, prefix, "audit.limit_max"));
	if (acc_get(r, prefix, "audit.slope") != NULL)
		size = acc_say(&c->mem,
			"%s, all of it off by a factor that is %.3g from 1"
			" (chance makes it %.3g at most)",
			size == NULL ? "" : size, number(r, prefix, "audit.slope"),
			number(r, prefix, "audit.limit_slope"));
	const char *what = !pair   ? "as recorded fails recomputation from its own inputs"
			   : brief ? "recomputed from its own inputs"
				   : acc_say(&c->mem,
					     "of the %s fails recomputation from its own inputs",
					     sides[side]);
	const char *other = !good   ? ""
			    : brief ? acc_say(&c->mem, "; the %s's is right", sides[!side])
				    : acc_say(&c->mem, "; the %s's passes it", sides[!side]);
	if (size == NULL || what == NULL || other == NULL) {
		acc_nomem(e);
		return NULL;
	}
	return acc_say(&c->mem, "%s%s%s%s%s%s", what, brief ? ", " : ": ", size,
		cause[0] != '\0' ? "; looks like: " : "", cause, other);
}

const char *
acc_audit_open_question(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	const struct acc_item *it = &s->c->item[x->item];
	struct acc_rec *r;
	if (x->role != ROLE_OUT || x->audit || !s->c->call[x->call].keyed)
		return "";
	if (it->open && !(it->audit[ACC_A] > 1))
		return "; what of it can be recomputed is right, but elements that cannot be are among those that differ";
	if (acc_acquitted(it) && x->permuted)
		return "; it passes recomputation from its own inputs, and one of these has another order of axes than"
		       " on the bench";
	if (acc_acquitted(it) && acc_given_otherwise(it, x))
		return "; it passes recomputation from its own inputs, and these agree: is each in its place?";
	if (acc_acquitted(it))
		return "; it passes recomputation from its own inputs";
	if (it->audit[ACC_A] > 1 && it->audit[ACC_B] > 1)
		return "; both sides fail recomputation from their own inputs";
	if (it->audit[ACC_A] > 1)
		return "; it fails recomputation from its own inputs, by no more than rounding may take it";
	if (acc_case_record(s->c, it, &r, e) < 0)
		return NULL;
	const char *why = acc_got(
		acc_got_said(&s->c->mem, r, acc_rec_is(r, "pair") ? "a." : "", "audit.skip"));
	if (why[0] == '\0' && s->recompute != NULL && !acc_recompute_knows(s->recompute, x->call))
		why = "unknown operator";
	return why[0] == '\0' ? "" : acc_say(&s->c->mem, "; not recomputed: %s", why);
}

/* A finding of an output of this op call. NULL: no memory. */
static struct acc_finding *
of_output(struct acc_case *c, const struct acc_call *k, const char *what, const char *rule,
	const char *stack, struct acc_err *e)
{
	struct acc_finding *f = acc_case_find(c, what, e);
	if (f == NULL)
		return NULL;
	acc_finding_of(f, k);
	f->io = "out";
	f->rule = rule;
	f->stack = stack;
	return f;
}

/* The verdict and the finding are of the pair, under the device's name. */
int
acc_say_bench(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	if (s->bench == ACC_NOCALL)
		return 0;
	struct acc_item *it = &c->item[s->bench];
	const struct acc_call *k = &c->call[it->call];
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	const char *text = acc_audit_text(c, it, ACC_B, false, e);
	const char **why = acc_alloc(&c->mem, sizeof *why);
	struct acc_finding *f = text == NULL || src == NULL
					? NULL
					: of_output(c, k, "difference", "audit", stack, e);
	if (f == NULL || where == NULL || why == NULL)
		return acc_nomem(e);
	f->value = it->audit[ACC_B];
	f->limit = 1;
	f->limit_from = "recomputation from its own recorded inputs";
	f->confidence = confidence(f->value);
	f->bad = true;
	f->text = acc_say(&c->mem, "%s%s: the reference itself is wrong here: the output %s%s%s%s",
		where, k->key[ACC_B], text,
		acc_got(acc_beyond_times(&c->mem, f->value, f->confidence)),
		src[0] != '\0' ? "; at " : "", src);
	*why = f->text;
	struct acc_verdict v = {.level = "error",
		.rule = "audit",
		.limit_from = f->limit_from,
		.value = f->value,
		.limit = 1,
		.why = why,
		.nwhy = 1};
	return f->text == NULL ? acc_nomem(e) : acc_case_mark(c, it, &v, e);
}

/* --- one dump alone --- */

/* Is what fails recomputation nearer to right than to wrong? What ranks do to each other is no matter of its size. 1, 0, < 0. */
static int
is_barely(struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	struct acc_rec *r;
	if (!(it->audit[ACC_A] < LIMIT_ALONE))
		return 0;
	return acc_case_record(c, it, &r, e) < 0 ? e->code
						 : acc_get_text(r, "", "audit.ranks").n == 0;
}

static int
say(struct acc_case *c, uint32_t i, struct acc_err *e)
{
	const struct acc_item *it = &c->item[i];
	const int barely = is_barely(c, it, e);
	const struct acc_call *k = &c->call[it->call];
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	const char *text = acc_audit_text(c, it, ACC_A, false, e), *place;
	struct acc_rec *r;
	if (barely < 0 || acc_case_record(c, it, &r, e) < 0)
		return e->code;
	place = acc_is_output(it) ? "output" : acc_say_position(c, r, it);
	struct acc_finding *f = text == NULL || src == NULL
					? NULL
					: of_output(c, k, barely == 1 ? "warning" : "culprit",
						  "audit", stack, e);
	if (f == NULL || where == NULL || place == NULL)
		return acc_nomem(e);
	f->io = acc_is_output(it) ? "out" : "in";
	f->value = it->audit[ACC_A];
	f->limit = 1;
	const char *sure = how_sure(c, r, f);
	f->bad = barely == 0;
	f->doubtful = barely == 1;
	f->text = acc_say(&c->mem, "%s%s: its %s %s%s%s%s%s", where, f->name, place, text,
		acc_got(sure),
		barely == 1
			? acc_say(&c->mem, "; so near to its limit it is right as likely as wrong")
			: "",
		src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
}

static int
mark(struct acc_case *c, uint32_t i, bool first, struct acc_err *e)
{
	struct acc_item *it = &c->item[i];
	const int barely = is_barely(c, it, e);
	if (barely < 0)
		return barely;
	const char **why = acc_alloc(&c->mem, sizeof *why);
	const char *text = acc_audit_text(c, it, ACC_A, false, e);
	struct acc_rec *r;
	if (why == NULL || text == NULL)
		return acc_nomem(e);
	*why = acc_say(&c->mem, "%s%s", text,
		acc_got(acc_beyond_times(&c->mem, it->audit[ACC_A], NAN)));
	if (*why == NULL)
		return acc_nomem(e);
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	struct acc_verdict v = {.level = first && barely == 0 ? "error" : "warning",
		.rule = "audit",
		.limit_from = limit_from(r),
		.value = it->audit[ACC_A],
		.limit = 1,
		.why = why,
		.nwhy = 1};
	return acc_case_mark(c, it, &v, e);
}

/* What may be right by design, of all calls that are doubted the first. */
static int
doubt(struct acc_case *c, uint32_t i, struct acc_err *e)
{
	struct acc_item *it = &c->item[i];
	const struct acc_call *k = &c->call[it->call];
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	const char **why = acc_alloc(&c->mem, sizeof *why);
	struct acc_rec *r;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	const char *text = acc_got_said(&c->mem, r, "", "audit.doubt");
	const char *place = acc_is_output(it) ? "output" : acc_say_position(c, r, it);
	struct acc_finding *f = text == NULL || src == NULL || why == NULL
					? NULL
					: of_output(c, k, "warning", "design", stack, e);
	if (f == NULL || where == NULL || place == NULL)
		return acc_nomem(e);
	const struct acc_str rule = acc_get(r, "", "audit.cause") != NULL
					    ? acc_str("")
					    : acc_get_text(r, "", "audit.rule");
	f->audit_rule = rule.n == 0 ? NULL : acc_arena_copy(&c->mem, rule.p, rule.n);
	f->limit_from = "what ranks have in common";
	f->doubtful = true;
	f->io = acc_is_output(it) ? "out" : "in";
	f->text = acc_say(&c->mem, "%s%s: may be by design: its %s %s%s%s%s%s", where, f->name,
		place, text, f->audit_rule == NULL ? "" : "; rule ",
		f->audit_rule == NULL ? "" : f->audit_rule, src[0] != '\0' ? "; at " : "", src);
	*why = f->text;
	const struct acc_verdict v = {.level = "warning",
		.rule = f->rule,
		.limit_from = f->limit_from,
		.why = why,
		.nwhy = 1};
	return f->text == NULL ? acc_nomem(e) : it->mark != 0 ? 0 : acc_case_mark(c, it, &v, e);
}

/* The first output that fails, in the order of the dump, of those that fail clearly if there are any; then NaN and Inf, as
 * without audit. */
static int
judge(struct acc_case *c, struct acc_err *e)
{
	uint32_t firsts[2] = {ACC_NOCALL, ACC_NOCALL}; /* that fails clearly; barely */
	struct acc_ranks *ranks = acc_ranks_open(c, e);
	int rc = ranks == NULL ? ACC_ENOMEM : 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		struct acc_item *it = &c->item[i];
		if (it->call == ACC_NOCALL || !acc_accused(it))
			continue;
		rc = acc_accepted_alone(c, it, e);
		/* What is accepted is as good as right. */
		if (rc > 0)
			it->audit[ACC_A] = NAN;
		if (rc != 0) {
			rc = rc > 0 ? 0 : rc;
			continue;
		}
		const int barely = is_barely(c, it, e);
		if (barely < 0) {
			rc = barely;
			break;
		}
		/* Communication orders what runs on several ranks. */
		uint32_t *f = &firsts[barely];
		bool earlier = *f == ACC_NOCALL ||
			       (it->call != c->item[*f].call &&
				       acc_before(ranks, c, it->call, c->item[*f].call));
		*f = earlier ? i : *f;
	}
	const uint32_t first = firsts[0] != ACC_NOCALL ? firsts[0] : firsts[1];
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i))
		if (c->item[i].call != ACC_NOCALL && acc_accused(&c->item[i]))
			rc = mark(c, i, i == first, e);
	if (rc == 0 && first != ACC_NOCALL)
		rc = say(c, first, e);
	acc_ranks_close(ranks);
	uint32_t doubted = 0;
	while (doubted < c->nitem &&
		(c->item[doubted].call == ACC_NOCALL || !c->item[doubted].doubted))
		doubted = acc_step(c, doubted);
	if (rc == 0 && first == ACC_NOCALL && doubted < c->nitem)
		rc = doubt(c, doubted, e);
	return rc < 0 ? rc : acc_judge_overflow.judge(c, e);
}

static bool
fits(const struct acc_case *c)
{
	return c->pairs == 0 && c->audited > 0;
}

const struct acc_judge acc_judge_audit = {
	.fits = fits,
	.judge = judge,
};
