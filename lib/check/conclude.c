/* What is said at the end, as sentences. */
#include "check/check.h"
#include "acc/say.h"

enum { MOST = 60, LISTED = 12 };
static const char *const side_name[2] = {"device", "bench"};

struct remark *
acc_check_say(struct acc_check *ck, const char *what, struct acc_err *e)
{
	if (!ACC_ROOM(ck->remark, ck->remark_cap, ck->nremark + 1, e))
		return NULL;
	struct remark *m = &ck->remark[ck->nremark++];
	*m = (struct remark){.what = what};
	return m;
}

/* "0.999 (gpu.sh:45)", "0.1 (default of Megatron-LM)" */
static const char *
shown(struct acc_check *ck, uint32_t row, int side)
{
	const struct known *k = &ck->side[side].known[row];
	const char *value = k->open != NULL ? k->open : k->text;
	bool variable = ck->opt.list->row[row].name_in[DIALECT_ENV].n > 0;
	if (k->v.type == ACC_V_NIL && k->open == NULL)
		return variable && ck->side[side].whole_env ? "not set" : "not known";
	if (k->where == NULL) {
		const char *given = acc_say_copy(&ck->mem, &ck->side[side].mem, k->given);
		return given == NULL ? NULL : acc_say(&ck->mem, "%s (%s)", value, given);
	}
	return acc_say(&ck->mem, "%s (%s%s%s%s)", value, k->where,
		k->given != NULL ? ", from " : "", k->given != NULL ? k->key : "",
		k->maybe ? ", perhaps" : "");
}

static int
say_row(struct acc_check *ck, const struct verdict *v, const char *what, struct acc_err *e)
{
	const struct row *row = &ck->opt.list->row[v->row];
	struct remark *m = acc_check_say(ck, what, e);
	bool one = ck->side[1].n == 0;
	const char *text = acc_say(&ck->mem, "%s:", row->name);
	if (m == NULL)
		return ACC_ENOMEM;
	/* What differs is told of both sides, what is bad of those where it is. */
	for (int s = 0; s < 2 && text != NULL; s++) {
		if (!v->differs && !(v->sides & 1U << s))
			continue;
		const char *value = shown(ck, v->row, s);
		bool comma = s == 1 && (v->differs || v->sides & 1);
		text = value == NULL ? NULL
				     : acc_say(&ck->mem, "%s%s%s%s %s", text, comma ? "," : "",
					       one ? "" : " ", one ? "" : side_name[s], value);
	}
	if (text != NULL && v->want != NULL)
		text = acc_say(&ck->mem, "%s, should be %s", text, v->want);
	for (uint32_t i = 0; i < v->nwhy && text != NULL; i++)
		text = acc_say(&ck->mem, "%s%s%s", text, i == 0 ? ": " : "; ", v->why[i]);
	m->name = row->name;
	m->rule = v->rule;
	m->text = text;
	m->limit_from = row->where;
	return text == NULL ? acc_nomem(e) : 0;
}

/* Each broken rule of this level. */
static int
say_rules(struct acc_check *ck, enum level level, const char *what, struct acc_err *e)
{
	size_t n = 0;
	int rc = 0;
	for (size_t i = 0; i < ck->nverdict && rc == 0; i++) {
		const struct verdict *v = &ck->verdict[i];
		if (v->bad && v->level == level && n++ < MOST)
			rc = say_row(ck, v, what, e);
	}
	struct remark *m = rc == 0 && n > MOST ? acc_check_say(ck, what, e) : NULL;
	if (m != NULL && (m->text = acc_say(&ck->mem, "and %zu more", n - MOST)) == NULL)
		return acc_nomem(e);
	return rc;
}

/* Two files of one side that say different things. */
static int
say_contradictions(struct acc_check *ck, struct acc_err *e)
{
	for (uint32_t i = 0; i < ck->opt.list->n; i++)
		for (int s = 0; s < 2; s++) {
			const struct known *k = &ck->side[s].known[i];
			const char *text = k->against == NULL ? NULL : shown(ck, i, s);
			if (k->against == NULL)
				continue;
			struct remark *m = acc_check_say(ck, "warning", e);
			if (m == NULL)
				return ACC_ENOMEM;
			m->name = ck->opt.list->row[i].name;
			m->rule = "contradiction";
			m->text = text == NULL
					  ? NULL
					  : acc_say(&ck->mem,
						    "the %s sets %s twice: %s is effective, not %s",
						    side_name[s], m->name, text, k->against);
			if (m->text == NULL)
				return acc_nomem(e);
		}
	return 0;
}

/* Rows that only one side knows: nothing to compare with. */
static int
say_unknown(struct acc_check *ck, int side, struct acc_err *e)
{
	const struct acc_checklist *cl = ck->opt.list;
	const char *list = "";
	size_t n = 0;
	for (uint32_t i = 0; i < cl->n && ck->side[0].n > 0 && ck->side[1].n > 0; i++) {
		const struct known *k = &ck->side[side].known[i], *o = &ck->side[1 - side].known[i];
		bool given = o->v.type != ACC_V_NIL && o->key != NULL;
		if (k->v.type != ACC_V_NIL || !given || !ck->must[i])
			continue;
		if (n++ < LISTED)
			list = acc_say(&ck->mem, "%s%s%s (%s%s%s)", list, n > 1 ? ", " : "",
				cl->row[i].name, o->text, k->open != NULL ? " against " : "",
				k->open != NULL ? k->open : "");
		if (list == NULL)
			return acc_nomem(e);
	}
	struct remark *m = n == 0 ? NULL : acc_check_say(ck, "missing", e);
	if (n > 0 && m == NULL)
		return ACC_ENOMEM;
	if (m != NULL)
		m->text = acc_say(&ck->mem,
			"not known of the %s, so not compared with the %s's: "
			"%s%s",
			side_name[side], side_name[1 - side], list, n > LISTED ? ", and more" : "");
	return m != NULL && m->text == NULL ? acc_nomem(e) : 0;
}

/* What was not given cannot be checked; which files would help is known. */
static int
say_not_given(struct acc_check *ck, struct acc_err *e)
{
	static const struct {
		enum dialect d;
		const char *what;
	} kinds[] = {
		{DIALECT_ENV,
			"the environment (determinism, INF/NaN mode) is not checked: give the output of "
			"env, too"},
		{DIALECT_PIP,
			"the versions of the software are not checked: give the output of pip list, too"},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		bool env = kinds[i].d == DIALECT_ENV, given[2];
		for (int s = 0; s < 2; s++)
			given[s] = env ? ck->side[s].whole_env : ck->side[s].has[kinds[i].d];
		bool a = given[0], b = given[1] || ck->side[1].n == 0;
		if ((a && b) || ck->opt.apart || acc_check_params(ck) == 0)
			continue;
		struct remark *m = acc_check_say(ck, "missing", e);
		if (m == NULL)
			return ACC_ENOMEM;
		m->text = acc_say(&ck->mem, "%s%s",
			ck->side[1].n == 0 || (!a && !b) ? ""
			: a                              ? "of the bench, "
							 : "of the device, ",
			kinds[i].what);
		if (m->text == NULL)
			return acc_nomem(e);
	}
	return 0;
}

/* Words of nobody's vocabulary were compared by name. That they differ is the verdict where there
 * is no other. */
static int
say_by_name(struct acc_check *ck, struct acc_err *e)
{
	if (ck->by_name == 0)
		return 0;
	/* Variables and versions that are known beside them do not speak for them. */
	bool alone = ck->by_name_differ > 0;
	for (int d = DIALECT_OTHER + 1; d <= DIALECT_HF; d++)
		alone = alone && !ck->side[0].has[d] && !ck->side[1].has[d];
	struct remark *m = acc_check_say(ck, alone ? "difference" : "other", e);
	if (m == NULL)
		return ACC_ENOMEM;
	if (alone)
		ck->status = 1;
	m->rule = "name";
	m->text = acc_say(&ck->mem,
		"no row of the check-list knows %s%s: %zu compared by name alone, of which %zu differ%s",
		ck->judged == 0 ? "any of these keys" : "all of the keys",
		ck->judged == 0 ? ", so that nothing says what matters" : "", ck->by_name,
		ck->by_name_differ, ck->by_name_differ == 1 ? "s" : "");
	return m->text == NULL ? acc_nomem(e) : 0;
}

/* Keys that no row knows, and that have nothing to be compared with. */
static int
say_unread(struct acc_check *ck, struct acc_err *e)
{
	size_t n[2] = {ck->unread[0], ck->unread[1]}, unknown[2] = {0, 0};
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < ck->side[s].n; i++) {
			const struct param *p = &ck->side[s].p[i];
			n[s] += !p->used && !p->stale && p->dialect != DIALECT_OTHER &&
				p->dialect < DIALECT_CODE && !ck->side[1 - s].has[p->dialect];
			unknown[s] += p->dialect == DIALECT_OTHER && !p->stale;
		}
	/* Those that were compared by name are none. */
	for (int s = 0; s < 2 && ck->side[1].n > 0; s++)
		unknown[s] -= ck->by_name < unknown[s] ? ck->by_name : unknown[s];
	if (n[0] + n[1] + unknown[0] + unknown[1] == 0)
		return 0;
	struct remark *m = acc_check_say(ck, "unmatched", e);
	if (m == NULL)
		return ACC_ENOMEM;
	m->text =
		ck->side[1].n == 0
			? acc_say(&ck->mem, "keys that no row of the check-list knows: %zu",
				  n[0] + unknown[0])
			: acc_say(&ck->mem,
				  "keys that no row of the check-list knows, and that "
				  "have no equal on the other side: %zu of the device, %zu of the bench",
				  n[0] + unknown[0], n[1] + unknown[1]);
	return m->text == NULL ? acc_nomem(e) : 0;
}

static int
say_sum(struct acc_check *ck, struct acc_err *e)
{
	size_t bad[3] = {0, 0, 0}, differ = 0;
	for (size_t i = 0; i < ck->nverdict; i++) {
		const struct verdict *v = &ck->verdict[i];
		if (v->bad)
			bad[v->level]++;
		else
			differ += v->differs;
	}
	for (size_t i = 0; i < ck->nremark; i++)
		if (ck->remark[i].rule != NULL &&
			(strcmp(ck->remark[i].rule, "input_ids") == 0 ||
				strcmp(ck->remark[i].rule, "shift") == 0 ||
				strcmp(ck->remark[i].rule, "padding") == 0))
			bad[strcmp(ck->remark[i].what, "rule") == 0 ? LEVEL_ERROR
								    : LEVEL_WARNING]++;
	/* Of nothing that was looked at nothing is clean. */
	if (acc_check_nothing(ck) != NULL)
		return 0;
	struct remark *m = acc_check_say(ck, ck->status == 0 ? "clean" : "rule", e);
	if (m == NULL)
		return ACC_ENOMEM;
	if (acc_check_params(ck) == 0)
		m->text = acc_say(&ck->mem,
			"%zu batch%s of tokens: %zu rule%s broken, %zu warning%s", ck->batches,
			ck->batches == 1 ? "" : "es", bad[LEVEL_ERROR],
			bad[LEVEL_ERROR] == 1 ? "" : "s", bad[LEVEL_WARNING],
			bad[LEVEL_WARNING] == 1 ? "" : "s");
	else if (ck->side[1].n == 0)
		m->text = acc_say(&ck->mem, "one side alone: %zu rule%s broken, %zu warning%s",
			bad[LEVEL_ERROR], bad[LEVEL_ERROR] == 1 ? "" : "s", bad[LEVEL_WARNING],
			bad[LEVEL_WARNING] == 1 ? "" : "s");
	else
		m->text = acc_say(&ck->mem,
			"%zu parameter%s compared: %zu rule%s broken, %zu "
			"warning%s, %zu other difference%s, %zu equal%s",
			ck->compared, ck->compared == 1 ? "" : "s", bad[LEVEL_ERROR],
			bad[LEVEL_ERROR] == 1 ? "" : "s", bad[LEVEL_WARNING],
			bad[LEVEL_WARNING] == 1 ? "" : "s", differ, differ == 1 ? "" : "s",
			ck->equal, ck->opt.all ? "" : " (--all shows them)");
	m->summed = ck->side[1].n > 0;
	m->value = (double)(ck->compared - ck->equal);
	return m->text == NULL ? acc_nomem(e) : 0;
}

int
acc_check_conclude(struct acc_check *ck, struct acc_err *e)
{
	int rc = say_rules(ck, LEVEL_ERROR, "rule", e);
	if (rc == 0)
		rc = acc_check_batches(ck, e);
	if (rc == 0)
		rc = acc_check_ids(ck, e);
	if (rc == 0)
		rc = say_rules(ck, LEVEL_WARNING, "warning", e);
	if (rc == 0)
		rc = say_contradictions(ck, e);
	for (int s = 0; s < 2 && rc == 0; s++)
		rc = say_unknown(ck, s, e);
	if (rc == 0)
		rc = say_not_given(ck, e);
	if (rc == 0)
		rc = say_by_name(ck, e);
	if (rc == 0)
		rc = say_unread(ck, e);
	return rc == 0 ? say_sum(ck, e) : rc;
}
