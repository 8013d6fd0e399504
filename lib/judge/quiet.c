/* Where nothing is named: arguments that frameworks have defaults of, and that differ. What they change may be less
 * than what 16 bits round, as an epsilon and the form of gelu do: then no output tells, and the recorded values do. */
#include "acc/default.h"
#include "acc/say.h"
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"
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
	const struct acc_str op = acc_get_text(r, "a.", "op"), name = acc_get_text(r, "a.", "pos");
	/* Places are another framework's own. */
	return !acc_str_int(name, &place) && !acc_op_writes_later(op, name) &&
	       !acc_word_in(words, name);
}

int
acc_say_quiet(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	uint32_t item = 0, first = ACC_NOCALL, calls = 0;
	for (uint32_t i = 0, at; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (!k->keyed || k->backward || k->grad || k->key[ACC_A] == NULL ||
			k->key[ACC_B] == NULL || acc_call_steps(k))
			continue;
		const int rc = differing(s, i, &at);
		if (rc < 0)
			return rc;
		if (rc > 0 && acc_is_made_up_for(c, i, NULL, s->unit))
			continue; /* nor is it rounding that hides it */
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
