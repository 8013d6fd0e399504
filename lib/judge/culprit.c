/* The findings about a suspect: the one that is named, or is not for too little; and the verdicts for
 * the records of all. */
#include "judge/first_bad.h"
#include "acc/say.h"

#include <math.h>

#include "judge/case.h"
#include "judge/order.h"

static int
ranked(struct scan *s, uint32_t chosen, struct acc_finding *f)
{
	const char **list = acc_alloc(acc_mem(s), 5 * sizeof *list);
	if (list == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < s->nsuspect && f->nranked < 5; i++) {
		const char *name = acc_call_name(&s->c->call[s->suspect[i].blame]);
		bool known = i == chosen || strcmp(name, f->name) == 0;
		for (uint32_t j = 0; j < f->nranked; j++)
			known |= strcmp(name, list[j]) == 0;
		if (!known && !s->suspect[i].guess && s->suspect[i].margin >= LIMIT_NAMED)
			list[f->nranked++] = name;
	}
	f->ranked = list;
	return 0;
}

double
acc_confidence(const struct scan *s, const struct suspect *x, bool sums)
{
	const struct acc_item *it = &s->c->item[x->item];
	const struct acc_call *k = &s->c->call[x->blame];
	/* How far it is beyond its limit says nothing of an argument, and less of an input than how often such a verdict is
	 * right. */
	const double share = x->role == ROLE_OUT ? NAN : acc_witness_share(x->witness);
	if (isinf(x->value) || x->value <= 0 || x->role == ROLE_ARG)
		return sums ? 0.5 : fmin(1, share);
	bool made = x->producer != ACC_NOCALL || it->weight || x->sum != NULL;
	bool guess = (x->role == ROLE_IN && (!made || it->measure == ACC_BY_STAT)) ||
		     (x->unseen && !x->audit) || sums ||
		     (k->cls == ACC_OP_RANDOM && x->role == ROLE_OUT) ||
		     (x->role == ROLE_OUT && it->audit[ACC_A] > 1 && !x->audit);
	double wrong = x->audit ? LIMIT_WRONG_AUDIT : guess ? LIMIT_WRONG_GUESS : LIMIT_WRONG;
	double sure = 1 - fmin(1, wrong * x->limit / x->value);
	return sums ? sure / 2 : fmin(sure, share);
}

/* "; else A or B" */
static const char *
others(struct scan *s, const struct acc_finding *f)
{
	return f->nranked == 0 ? ""
	       : f->nranked == 1
		       ? acc_say(acc_mem(s), "; else %s", f->ranked[0])
		       : acc_say(acc_mem(s), "; else %s or %s", f->ranked[0], f->ranked[1]);
}

/* What its error looks like, in mem; "" where nobody knows. NULL: failure. */
static const char *
cause_text(struct scan *s, const struct acc_item *it, struct acc_err *e)
{
	struct acc_rec *r;
	if (acc_case_record(s->c, it, &r, e) < 0)
		return NULL;
	struct acc_str cause = acc_get_text(r, acc_rec_is(r, "pair") ? "a." : "", "audit.cause");
	return acc_arena_copy(acc_mem(s), cause.p, cause.n);
}

/* In how many calls of its operator one cause explains the audit's error, if it does in all that were
 * recomputed, two at least: then it is a setting. 0: it is this call's own; < 0: failure. */
static int64_t
configured(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[x->call];
	const char *cause = x->audit ? cause_text(s, &c->item[x->item], e) : "", *other;
	int64_t n = 0;
	if (cause == NULL)
		return -1;
	for (uint32_t i = 0; i < c->nitem && cause[0] != '\0'; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		const struct acc_item *own = &c->item[x->item];
		if (it->call == ACC_NOCALL || c->call[it->call].op_id != k->op_id ||
			c->call[it->call].backward != k->backward || acc_is_input(it) ||
			it->exact != own->exact || isnan(it->audit[ACC_A]) ||
			(it != own && it->call == x->call))
			continue;
		other = acc_accused(it) ? cause_text(s, it, e) : "";
		if (other == NULL)
			return -1;
		if (strcmp(cause, other) != 0)
			return 0;
		n++;
	}
	return n > 1 ? n : 0;
}

/* What is wrong, and what the bench's call would have to be called with to give it. */
static const char *
culprit_text(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	const struct acc_call *k = &s->c->call[x->call];
	const char *text = acc_sentence(s, x, e), *cause = "";
	/* What only the device calls may be part of what the bench calls in one. */
	if (text == NULL || x->role != ROLE_OUT || x->audit ||
		(x->blame != x->call && s->c->call[x->blame].key[ACC_B] != NULL) ||
		s->c->item[x->item].measure != ACC_BY_TENSOR)
		return text;
	if (acc_substitute(s, x->call, &cause, e) < 0)
		return NULL;
	if (cause[0] != '\0')
		text = acc_say(acc_mem(s),
			"%s; the bench's call gives the same if one thing is changed: %s", text,
			cause);
	const uint32_t product = acc_inner_product(s, x);
	if (text != NULL && product != ACC_NOCALL)
		text = acc_say(acc_mem(s), "%s: with what follows it makes up %s of the bench; %s",
			acc_call_name(&s->c->call[product]), k->key[ACC_B], text);
	return text;
}

int
acc_say_culprit(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	const struct suspect *x = &s->suspect[chosen];
	struct acc_case *c = s->c;
	const struct acc_item *it = &c->item[x->item];
	const uint32_t product = acc_inner_product(s, x);
	const struct acc_call *k = &c->call[product != ACC_NOCALL ? product : x->blame];
	const char *stack, *src = acc_say_source(c, &c->call[x->blame], &stack, e);
	const char *text = culprit_text(s, x, e), *where = acc_say_where(c, k);
	struct acc_rec *r;
	int64_t all = text == NULL ? 0 : configured(s, x, e);
	if (src == NULL || text == NULL || where == NULL || all < 0)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	if (all > 0)
		text = acc_say(acc_mem(s),
			"%s; so are all %lld calls of this operator that were recomputed: a setting"
			" or another formula, not one call's fault",
			text, (long long)all);
	bool sums = it->measure == ACC_BY_SUM || !k->keyed;
	struct acc_finding *f = acc_case_find(c, sums ? "difference" : "culprit", e);
	if (f == NULL)
		return ACC_ENOMEM;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str pos = acc_get_text(r, "a.", "pos");
	acc_finding_of(f, k);
	f->io = acc_say_io(it);
	f->pos = acc_arena_copy(acc_mem(s), pos.p, pos.n);
	f->comm = acc_layer(s->ranks, c, x->call);
	f->rule = all > 0               ? "configuration"
		  : x->audit            ? "audit"
		  : x->role == ROLE_ARG ? "argument"
		  : x->role == ROLE_IN  ? "input"
					: "output";
	f->value = x->value;
	f->limit = it->measure == ACC_BY_SUM ? 0 : x->limit;
	f->limit_from = it->measure == ACC_BY_SUM ? "equal inputs" : x->from;
	f->witness = acc_witnesses[x->witness].id;
	f->confidence = acc_confidence(s, x, sums);
	f->stack = stack;
	f->bad = true;
	if (ranked(s, chosen, f) < 0)
		return acc_nomem(e);
	const char *other = sums || f->confidence >= LIMIT_SURE ? "" : acc_got(others(s, f));
	const char *beyond = acc_got(
		x->audit ? acc_beyond_times(acc_mem(s), f->value, f->confidence)
			 : acc_beyond(acc_mem(s), f->value, f->limit, f->confidence));
	f->text = acc_say(acc_mem(s), "%s%s%s%s%s%s%s", where,
		!sums && f->confidence < LIMIT_SURE ? "probably " : "", text, beyond, other,
		src[0] != '\0' ? "; at " : "", src);
	rc = f->text == NULL ? acc_nomem(e) : acc_blame_flat(c, f, k->segment, k->key[ACC_B], e);
	return rc < 0 ? rc : 0;
}

int
acc_warn_of(struct scan *s, const struct suspect *x, uint32_t call, const char *rule,
	struct acc_finding **out, struct acc_err *e)
{
	const struct acc_call *k = &s->c->call[call];
	const char *text = acc_sentence(s, x, e), *where = acc_say_where(s->c, k);
	if (text == NULL || where == NULL)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	struct acc_finding *f = acc_case_find(s->c, "warning", e);
	if (f == NULL)
		return ACC_ENOMEM;
	acc_finding_of(f, k);
	f->rule = rule;
	f->value = x->value;
	f->limit = x->limit;
	f->limit_from = x->from;
	f->witness = acc_witnesses[x->witness].id;
	f->doubtful = true;
	f->text = acc_say(acc_mem(s), "%s%s%s", where, text,
		acc_got(acc_beyond(acc_mem(s), x->value, x->limit, NAN)));
	*out = f;
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_unsure(struct scan *s, uint32_t first, struct acc_err *e)
{
	const struct suspect *x = &s->suspect[first];
	struct acc_finding *f;
	int rc = acc_warn_of(s, x, x->blame, "unsure", &f, e);
	if (rc < 0)
		return rc;
	f->text = acc_say(acc_mem(s), "%s: too little to tell it from noise", f->text);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_doubted(struct scan *s, uint32_t first, struct acc_err *e)
{
	const struct suspect *x = &s->suspect[first];
	struct acc_finding *f;
	return acc_warn_of(s, x, x->blame, "doubt", &f, e);
}

int
acc_mark_suspects(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	struct acc_case *c = s->c;
	static const char *const rules[] = {"output", "input", "argument"};
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		const struct suspect *x = &s->suspect[i];
		struct acc_item *it = &c->item[x->item];
		if (it->mark != 0 || x->guess)
			continue;
		const char **why = acc_alloc(acc_mem(s), sizeof *why);
		const char *text = acc_sentence(s, x, e);
		text = text == NULL ? NULL
				    : acc_say(acc_mem(s), "%s%s", text,
					      acc_got(x->audit ? acc_beyond_times(acc_mem(s),
									 x->value, NAN)
							       : acc_beyond(acc_mem(s), x->value,
									 x->limit, NAN)));
		if (why == NULL)
			return acc_nomem(e);
		if (text == NULL)
			return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
		*why = text;
		bool guilty = chosen != ACC_NOCALL && x->call == s->suspect[chosen].call &&
			      !x->doubted;
		struct acc_verdict v = {.level = guilty ? "error" : "warning",
			.rule = rules[x->role],
			.limit_from = x->from,
			.value = x->value,
			.limit = x->limit,
			.why = why,
			.nwhy = 1};
		int rc = acc_case_mark(c, it, &v, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}
