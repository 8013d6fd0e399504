/* Where nothing is named: arguments that frameworks have defaults of, and that differ. What they change may be less
 * than what 16 bits round, as an epsilon and the form of gelu do: then no output tells, and the recorded values do; or
 * the call, which is right by its own argument and wrong by the bench's. */
#include "acc/default.h"
#include "acc/say.h"
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/recompute.h"
#include "judge/traced.h"

/* Has the call an argument that differs, of those that have a default? 1 with the item; 0; < 0. How fast running
 * statistics follow is told of by those. */
static int
differing(struct scan *s, uint32_t call, uint32_t *item)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	struct acc_recorded how;
	struct acc_rec *r;
	/* What is padded is the same in many words; an axis, which rounding does not hide, is counted from either end. */
	static const char words[] = "dim dims axis padding";
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_ARG || !acc_is_input(it) ||
			it->sides != 3 || it->measure != ACC_BY_VALUE || !(it->rms > 0))
			continue;
		if (acc_case_record(c, it, &r, s->e) < 0)
			return s->e->code;
		const struct acc_str op = acc_get_text(r, "a.", "op"),
				     pos = acc_get_text(r, "a.", "pos");
		if (acc_op_default(op, acc_default_name(op, pos)).n == 0 ||
			acc_op_writes_later(op, pos) || acc_word_in(words, pos) ||
			!acc_str_eq(pos, acc_get_text(r, "b.", "pos")) ||
			!acc_op_same(op, acc_get_text(r, "b.", "op")))
			continue;
		const int same = acc_same_axis(s, call, it);
		if (same < 0)
			return same;
		*item = i;
		if (same == 0)
			return 1;
	}
	if (acc_recorded(c, k, &how, s->e) < 0)
		return s->e->code;
	if (how.framework || acc_other_default(s, call, item) <= 0)
		return s->e->code;
	if (acc_case_record(c, &c->item[*item], &r, s->e) < 0)
		return s->e->code;
	int64_t place;
	const struct acc_val *v = acc_get(r, "a.", "value");
	const struct acc_str op = acc_get_text(r, "a.", "op"), name = acc_get_text(r, "a.", "pos");
	/* Places are another framework's own, and so is how a window's sizes are listed. */
	return !acc_str_int(name, &place) && (v == NULL || v->type != ACC_V_INTS) &&
	       !acc_op_writes_later(op, name) && !acc_word_in(words, acc_default_name(op, name));
}

/* Of an argument that the device alone gives: does the bench give it by another name, or does what it records say that it
 * leaves it to torch? Hooks record no arguments, and what a module was made with is none of its calls. */
static int
bench_says(struct scan *s, uint32_t call, uint32_t item)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	struct acc_rec *r;
	double number;
	bool args = false;
	if (acc_case_record(s->c, &c->item[item], &r, s->e) < 0)
		return s->e->code;
	const int given = acc_bench_argument(s, call, r, &number);
	if (given != 0)
		return given;
	for (uint32_t i = 0; i < c->nitem && !args; i++)
		args = c->item[i].kind == ACC_ITEM_ARG && (c->item[i].sides & 2) != 0;
	for (uint32_t i = k->first; i <= k->last && args; i++) {
		if (c->item[i].call != call || (c->item[i].sides & 2) == 0)
			continue;
		if (acc_case_record(s->c, &c->item[i], &r, s->e) < 0)
			return s->e->code;
		const struct acc_str op = acc_get_text(r, "b.", "op");
		return acc_op_find(op) != NULL && !acc_op_is_module(op);
	}
	return 0;
}

/* Has this call such an argument, which nothing makes up for? As above. */
static int
told(struct scan *s, uint32_t call, uint32_t *item)
{
	const struct acc_call *k = &s->c->call[call];
	if (!k->keyed || k->backward || k->grad || k->key[ACC_A] == NULL || k->key[ACC_B] == NULL ||
		acc_call_steps(k))
		return 0;
	int rc = differing(s, call, item);
	if (rc > 0 && s->c->item[*item].sides == 1)
		rc = bench_says(s, call, *item);
	/* Nor is it rounding that hides it. */
	return rc > 0 && acc_is_made_up_for(s->c, call, NULL, s->unit) ? 0 : rc;
}

/* What the audit said of the outputs of a call. */
struct heard {
	uint32_t right, wrong;
};

static int
hear(void *arg, struct acc_rec *r)
{
	struct heard *h = arg;
	const struct acc_val *good = acc_get(r, "", "audit.ok");
	if (acc_str_is(acc_get_text(r, "", "io"), "out") && good != NULL) {
		h->right += good->b;
		h->wrong += !good->b;
	}
	return 0;
}

static void
hush(void *arg, const struct acc_err *e)
{
	(void)arg;
	(void)e;
}

/* The bench's value of an argument into a record of the device's: its own, or torch's where it gives none. false: it has
 * none that can be written. */
static int
put_bench(struct scan *s, uint32_t call, const struct acc_item *it, struct acc_rec *one)
{
	struct acc_rec *r;
	double number;
	char *end, text[24];
	if (acc_case_record(s->c, it, &r, s->e) < 0)
		return s->e->code;
	const struct acc_val *own = acc_get(r, "b.", "value");
	if (own != NULL)
		return acc_put(one, "", "value", *own) < 0 ? acc_nomem(s->e) : 1;
	const int rc = acc_bench_argument(s, call, r, &number);
	if (rc < 0)
		return rc;
	const struct acc_str op = acc_get_text(one, "", "op");
	const struct acc_str usual = acc_op_default(op,
		acc_default_name(op, acc_get_text(one, "", "pos")));
	snprintf(text, sizeof text, "%.*s", ACC_PRS(usual));
	const double torch = strtod(text, &end);
	struct acc_val v = rc > 0 ? acc_f64(number) : acc_f64(torch);
	if (rc == 0 && end == text)
		v = acc_text(usual);
	if ((rc == 0 && usual.n == 0) || acc_str_is(usual, "True") || acc_str_is(usual, "False"))
		return 0;
	return acc_put(one, "", "value", v) < 0 ? acc_nomem(s->e) : 1;
}

/* One record of the device's call, that of the argument with the bench's value. 1, 0: that is not known, < 0. */
static int
give(struct acc_recompute *t, struct scan *s, uint32_t at, bool other)
{
	const struct acc_item *it = &s->c->item[at];
	struct acc_rec *r;
	if (acc_case_record(s->c, it, &r, s->e) < 0)
		return s->e->code;
	if (acc_recompute_split(r, "a.", &t->one) < 0)
		return acc_nomem(s->e);
	const int rc = other ? put_bench(s, it->call, it, &t->one) : 1;
	return rc <= 0 ? rc : acc_audit_put(t->audit, &t->one, s->e) < 0 ? s->e->code : 1;
}

/* The device's call recomputed, with the bench's value of this argument if that is an item. 1, 0: it cannot be, < 0. */
static int
recompute(struct acc_recompute *t, struct scan *s, uint32_t call, uint32_t other, struct heard *h)
{
	const struct acc_judge_opt *opt = &s->c->opt;
	const struct acc_call *k = &s->c->call[call];
	const struct acc_audit_opt how = {.threads = opt->threads,
		.tmpdir = opt->tmpdir,
		.room = (uint64_t)LIMIT_AUDIT_ROOM << 20,
		.compared = true};
	const uint32_t n = k->last - k->first + 1;
	struct acc_rec *r;
	int rc = 1;
	*h = (struct heard){0};
	t->nfed = t->back = 0;
	acc_ids_clear(&t->sourced);
	t->audit = acc_audit_open(opt->roots, &how, hear, hush, h, s->e);
	if (t->audit == NULL)
		return ACC_ENOMEM;
	/* Sources, what goes in, what comes out. */
	for (uint32_t i = 0; i < 3 * n && rc > 0; i++) {
		const uint32_t at = k->first + i % n;
		const struct acc_item *it = &s->c->item[at];
		if (it->call != call || (it->sides & 1) == 0 || (it->part & 1) != 0 ||
			(it->kind != ACC_ITEM_TENSOR && it->kind != ACC_ITEM_ARG) ||
			(i >= n && acc_is_input(it) != (i < 2 * n)))
			continue;
		if (i >= n)
			rc = give(t, s, at, at == other);
		else if (acc_case_record(s->c, it, &r, s->e) < 0 ||
			 acc_recompute_source(t, acc_get_text(r, "a.", "src"), s->e) < 0)
			rc = s->e->code;
	}
	if (rc > 0 && acc_audit_end(t->audit, s->e) < 0)
		rc = s->e->code;
	acc_audit_close(t->audit);
	t->audit = NULL;
	return rc;
}

/* Is what the device's call gave right by its own argument, and wrong by the bench's? Then rounding does not hide it. */
static int
shows(struct acc_recompute *t, struct scan *s, uint32_t call, uint32_t item)
{
	struct heard own, other;
	int rc = recompute(t, s, call, ACC_NOCALL, &own);
	if (rc <= 0 || own.right == 0 || own.wrong > 0)
		return rc < 0 ? rc : 0;
	rc = recompute(t, s, call, item, &other);
	return rc <= 0 ? rc : other.wrong > 0;
}

int
acc_shown_argument(struct scan *s, uint32_t *chosen)
{
	enum { MOST = 16 };
	struct acc_case *c = s->c;
	struct acc_recompute *t = NULL;
	const uint32_t had = s->nsuspect;
	uint32_t item = 0, asked = 0;
	int rc = 0;
	if (c->opt.roots == NULL || !acc_witness_excuses(s, ACC_WITNESS_equal_argument))
		return 0;
	for (uint32_t i = 0; i < c->ncall && rc == 0 && asked < MOST; i = acc_step(c, i)) {
		rc = acc_call_is_fused(c, i) ? 0 : told(s, i, &item);
		if (rc <= 0)
			continue;
		asked++;
		if (t == NULL && (t = acc_recompute_open(s, s->e)) == NULL)
			return ACC_ENOMEM;
		rc = shows(t, s, i, item);
		if (rc > 0)
			rc = acc_suspect_argument(s, item, LIMIT_CERTAIN, INFINITY) < 0
				     ? acc_nomem(s->e)
				     : 1;
	}
	if (rc > 0 && s->nsuspect > had) {
		s->suspect[had].guess = false;
		*chosen = had;
	}
	return rc < 0 ? rc : 0;
}

int
acc_say_quiet(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	uint32_t item = 0, first = ACC_NOCALL, calls = 0;
	for (uint32_t i = 0, at; i < c->ncall; i = acc_step(c, i)) {
		const int rc = told(s, i, &at);
		if (rc < 0)
			return rc;
		if (rc > 0 && calls++ == 0) {
			first = i;
			item = at;
		}
	}
	if (first == ACC_NOCALL || !acc_witness_excuses(s, ACC_WITNESS_quiet_argument))
		return 0;
	const struct suspect x = {.call = first,
		.item = item,
		.role = ROLE_ARG,
		.blame = first,
		.producer = ACC_NOCALL,
		.witness = ACC_WITNESS_quiet_argument,
		.value = c->item[item].sides == 3 ? c->item[item].rms : INFINITY,
		.from = "arguments are equal"};
	struct acc_finding *f;
	const int rc = acc_warn_of(s, &x, first, "argument", &f, e);
	if (rc < 0)
		return rc;
	f->text = calls > 1 ? acc_say(acc_mem(s),
				      "%s; rounding hides what it does; so it is in %u op calls",
				      f->text, calls)
			    : acc_say(acc_mem(s), "%s; rounding hides what it does", f->text);
	return f->text == NULL ? acc_nomem(e) : 0;
}
