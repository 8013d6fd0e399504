/* The rules as a table, and which of them speaks. */
#include "ranks/rules.h"
#include "acc/say.h"
#include "ranks/fleet.h"
#include "ranks/measured.h"

#define EXACT "what communication makes is what its operands give"
#define SAME "what is the same on all ranks stays the same"
#define SUM "a gradient is one number times the sum over the ranks that hold its weight"
#define BACK "what goes to other ranks comes back in the backward pass"
#define LINE "the calls of one line of code go the same way"

#define ROW(id, principle, needs, level, what) \
	{#id, principle, ACC_NEEDS_##needs, ACC_##level, what},
const struct acc_rank_rule acc_rank_rules[] = {ACC_RANK_RULES(ROW)};
const size_t acc_nrank_rules = ACC_RANK_NRULES;

#define WORTH(id, right, of) [ACC_RULE_##id] = {right, of},
static const unsigned measured[ACC_RANK_NRULES][2] = {ACC_RANK_MEASURED(WORTH)};

unsigned
acc_rank_rule_right(const struct acc_rank_rule *r, unsigned *of)
{
	const unsigned *m = measured[r - acc_rank_rules];
	*of = m[1];
	return m[0];
}

const struct acc_rank_rule *
acc_rank_rule_of(struct acc_str id)
{
	for (size_t i = 0; i < acc_nrank_rules; i++)
		if (acc_str_is(id, acc_rank_rules[i].id))
			return &acc_rank_rules[i];
	return NULL;
}

/* Rule after rule; how often each has spoken, or would have. */
static const char *
one_more(struct acc_arena *m, const char *text, const char *id, bool off, unsigned long long n)
{
	const char *comma = text[0] == '\0' ? "" : ", ";
	return n == 0 ? acc_say(m, "%s%s%s", text, comma, id)
	       : off  ? acc_say(m, "%s%s%s (it would have accused %llu record%s)", text, comma, id,
				n, n == 1 ? "" : "s")
		      : acc_say(m, "%s%s%s (%llu record%s)", text, comma, id, n, n == 1 ? "" : "s");
}

/* The ids of those that are used so, and how often each has spoken. In m; NULL: no memory. */
static const char *
list(struct acc_arena *m, const struct acc_rank_rule *rules, size_t n, const uint8_t *use,
	enum acc_rule_use which, const uint64_t *times)
{
	const char *text = "";
	for (size_t i = 0; use != NULL && i < n && text != NULL; i++)
		if (use[i] == which)
			text = one_more(m, text, rules[i].id, which == ACC_RULE_OFF, times[i]);
	return text;
}

const char *
acc_rule_list(struct acc_arena *m, const uint8_t *use, enum acc_rule_use which, const uint64_t *n)
{
	return list(m, acc_rank_rules, acc_nrank_rules, use, which, n);
}

const char *
acc_rules_said(struct acc_arena *m, const struct acc_rank_rule *rules, size_t n, const uint8_t *use,
	const uint64_t *silent, const uint64_t *demoted)
{
	const char *off = list(m, rules, n, use, ACC_RULE_OFF, silent),
		   *doubts = list(m, rules, n, use, ACC_RULE_DOUBTS, demoted);
	if (off == NULL || doubts == NULL)
		return NULL;
	if (off[0] != '\0')
		off = acc_say(m, "switched off: %s%s", off, doubts[0] == '\0' ? "" : "; ");
	if (doubts[0] != '\0')
		doubts = acc_say(m, "as doubts alone: %s", doubts);
	return off == NULL || doubts == NULL ? NULL : acc_say(m, "%s%s", off, doubts);
}

int
acc_rank_rules_use(struct acc_rec *r, const uint8_t *use, struct acc_arena *m, uint64_t *silent,
	uint64_t *demoted)
{
	static const char *const gone[] = {"audit.ok", "audit.err", "audit.err_max", "audit.limit",
		"audit.limit_max", "audit.cause", "audit.cause.msg", "audit.rule"};
	static const char *const sides[] = {"", "a.", "b."};
	int rc = 0;
	for (size_t s = 0; s < 3 && rc == 0; s++) {
		const struct acc_rank_rule *rule = acc_rank_rule_of(
			acc_get_text(r, sides[s], "audit.rule"));
		const size_t id = rule == NULL ? 0 : (size_t)(rule - acc_rank_rules);
		const char *cause = acc_got_said(m, r, sides[s], "audit.cause");
		if (rule == NULL || use[id] == ACC_RULE_AS_IS || m->lost)
			continue;
		if (cause == NULL) { /* a doubt */
			if (use[id] != ACC_RULE_OFF)
				continue;
			silent[id]++;
			acc_del(r, sides[s], "audit.doubt");
			acc_del(r, sides[s], "audit.doubt.msg");
			acc_del(r, sides[s], "audit.rule");
			continue;
		}
		for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
			acc_del(r, sides[s], gone[i]);
		if (use[id] == ACC_RULE_OFF) {
			silent[id]++;
			rc = acc_put(r, sides[s], "audit.skip",
				acc_ctext("the rule that judged it is switched off"));
			continue;
		}
		demoted[id]++;
		rc = acc_put(r, sides[s], "audit.rule", acc_ctext(rule->id));
		rc = rc < 0 ? rc : acc_put_said(r, sides[s], "audit.doubt", m, cause);
	}
	return rc < 0 || m->lost ? ACC_ENOMEM : 0;
}

void
acc_rule_enter(struct acc_fleet *f, enum acc_rank_rule_id id)
{
	/* A cause within a cause within a rule is the deepest there is. */
	if (f->nrule < sizeof f->rule / sizeof *f->rule)
		f->rule[f->nrule] = (uint8_t)id;
	f->nrule++;
}

int
acc_rule_leave(struct acc_fleet *f, int rc)
{
	f->nrule--;
	return rc;
}

enum acc_rule_use
acc_rule_use(const struct acc_fleet *f, enum acc_rank_rule_id id)
{
	if (f->use != NULL && f->use[id] == ACC_RULE_OFF)
		return ACC_RULE_OFF;
	if (f->strange.line != SIZE_MAX && acc_rank_rules[id].needs == ACC_NEEDS_GROUPS)
		return ACC_RULE_OFF;
	return f->use == NULL ? ACC_RULE_AS_IS : (enum acc_rule_use)f->use[id];
}
