/* The table of witnesses, and which of them speaks. */
#include "judge/witness.h"

#include <math.h>

#include "judge/case.h"
#include "judge/first_bad.h"
#include "judge/limits.h"
#include "judge/measured.h"

#define ROUNDING "an op call adds no more error than its kind and dtype explain"
#define BOUND "what an operator does to numbers bounds what it does to their errors"
#define OWN "what comes out follows from what the op call's own side gave it"
#define GIVEN "what an op call is given is what was made for it"
#define CHOICE "of near-equal values another one may be chosen"
#define NEWS "an error that is explained already is no news"
#define PROGRAMS "two programs of one network have the same values where they meet"

#define ROW(id, principle, needs, level, what) \
	{#id, principle, ACC_NEEDS_##needs, ACC_##level, what},
const struct acc_rank_rule acc_witnesses[] = {ACC_WITNESSES(ROW)};
const size_t acc_nwitnesses = ACC_NWITNESSES;
_Static_assert(ACC_NWITNESSES <= ACC_MAXWITNESS, "acc_witness_use");

#define WORTH(id, right, of) [ACC_WITNESS_##id] = {right, of},
static const unsigned measured[ACC_NWITNESSES][2] = {ACC_WITNESS_MEASURED(WORTH)};

unsigned
acc_witness_right(const struct acc_rank_rule *w, unsigned *of)
{
	const unsigned *m = measured[w - acc_witnesses];
	*of = m[1];
	return m[0];
}

double
acc_witness_share(enum acc_witness_id id)
{
	const unsigned *m = measured[id];
	return m[1] < LIMIT_MEASURED ? NAN : (double)m[0] / m[1];
}

/* As it is, switched off, or doubted by the user. */
static enum acc_rule_use
use_of(const struct scan *s, enum acc_witness_id id)
{
	return s->c->opt.witness == NULL ? ACC_RULE_AS_IS
					 : (enum acc_rule_use)s->c->opt.witness->use[id];
}

void
acc_witness_switch(struct scan *s, enum acc_witness_id id, const struct suspect *before,
	struct suspect *x)
{
	const bool accuses = x->margin > before->margin || (x->audit && !before->audit);
	/* An excuse that is doubted excuses nothing. */
	if (use_of(s, id) == ACC_RULE_OFF ||
		(use_of(s, id) == ACC_RULE_DOUBTS && acc_witnesses[id].level == ACC_EXCUSES)) {
		s->silent[id] += accuses && x->margin > 0 && !(before->margin > 0);
		*x = *before;
	} else if (accuses) {
		x->witness = id;
	}
}

void
acc_witness_audit(struct scan *s, const struct acc_item *it, struct suspect *x)
{
	const struct suspect before = *x;
	acc_audit_suspect(s, it, x);
	acc_witness_switch(s, x->audit ? ACC_WITNESS_recomputed : ACC_WITNESS_acquitted, &before,
		x);
}

/* Of what an op call was given there is one witness each. */
static enum acc_witness_id
of_given(const struct scan *s, const struct suspect *x)
{
	const struct acc_item *it = &s->c->item[x->item];
	return x->role == ROLE_ARG         ? ACC_WITNESS_equal_argument
	       : it->state                 ? ACC_WITNESS_norm_state
	       : x->sum != NULL            ? ACC_WITNESS_gradient_sum
	       : x->producer != ACC_NOCALL ? ACC_WITNESS_made_input
	       : it->weight                ? ACC_WITNESS_equal_weight
					   : ACC_WITNESS_unmade_input;
}

bool
acc_witness_heard(struct scan *s, struct suspect *x)
{
	x->witness = x->role == ROLE_OUT ? x->witness : of_given(s, x);
	if (x->guess || use_of(s, x->witness) == ACC_RULE_AS_IS)
		return true;
	x->doubted = use_of(s, x->witness) == ACC_RULE_DOUBTS;
	s->demoted[x->witness] += x->doubted;
	s->silent[x->witness] += !x->doubted;
	return x->doubted;
}

bool
acc_witness_excuses(const struct scan *s, enum acc_witness_id id)
{
	return use_of(s, id) == ACC_RULE_AS_IS;
}

/* One that is doubted warns. What it says is where the caller left off. */
struct acc_finding *
acc_witness_find(struct scan *s, enum acc_witness_id id, const char *what, const char *rule,
	struct acc_err *e)
{
	const enum acc_rule_use use = use_of(s, id);
	const bool warns = use == ACC_RULE_DOUBTS || acc_witnesses[id].level == ACC_DOUBTS;
	s->silent[id] += use == ACC_RULE_OFF;
	s->demoted[id] += use == ACC_RULE_DOUBTS;
	struct acc_finding *f = use == ACC_RULE_OFF
					? NULL
					: acc_case_find(s->c, warns ? "warning" : what, e);
	if (f != NULL) {
		f->witness = acc_witnesses[id].id;
		f->rule = use == ACC_RULE_DOUBTS ? "doubt" : rule;
		f->bad = !warns;
		f->doubtful = warns;
	}
	return f;
}

void
acc_witness_count(const struct scan *s)
{
	struct acc_witness_use *u = s->c->opt.witness;
	for (int i = 0; u != NULL && i < ACC_NWITNESSES; i++) {
		u->silent[i] += s->silent[i];
		u->demoted[i] += s->demoted[i];
	}
}
