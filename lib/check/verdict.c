/* What the rules say of each row, and what is to be said of keys without one. */
#include "check/check.h"
#include "acc/say.h"

static struct verdict *
add_verdict(struct acc_check *ck, struct acc_err *e)
{
	if (!ACC_ROOM(ck->verdict, ck->verdict_cap, ck->nverdict + 1, e))
		return NULL;
	struct verdict *v = &ck->verdict[ck->nverdict++];
	*v = (struct verdict){.row = UINT32_MAX};
	return v;
}

/* A value of the current row under this name, in the fields of rules. */
static void
set(struct acc_check *ck, int side, const char *name, struct acc_val v)
{
	const struct expr_fields *f = &ck->opt.list->fields[DIALECT_OTHER];
	for (uint32_t i = 0; i < f->n; i++)
		if (acc_str_is(f->name[i], name))
			ck->side[side].vals[DIALECT_OTHER].v[i] = v;
}

/* Do both sides know the row, and differ? */
static bool
differs(const struct known *a, const struct known *b)
{
	return a->v.type != ACC_V_NIL && b->v.type != ACC_V_NIL && !acc_check_same(&a->v, &b->v);
}

static const char *
sentence(struct acc_check *ck, const struct rule *u, int side)
{
	const struct expr_table t = {&ck->side[side].vals[DIALECT_OTHER], 1};
	const char *text = "";
	for (uint32_t i = 0; i < u->nwhy && text != NULL; i++) {
		struct acc_val v = u->why[i].x.n > 0 ? acc_expr_run(&u->why[i].x, &t, 0)
						     : acc_nil();
		const char *value = acc_check_text(&v, &ck->mem);
		text = value == NULL ? NULL
				     : acc_say(&ck->mem, "%s%s%s", text, u->why[i].lead, value);
	}
	return text;
}

/* The sides on which a condition holds, as bits. */
static unsigned
holds(const struct acc_check *ck, const struct expr *x)
{
	unsigned sides = 0;
	for (int s = 0; s < 2; s++) {
		const struct expr_table t = {&ck->side[s].vals[DIALECT_OTHER], 1};
		if (x->n == 0 || acc_expr_true(x, &t, 0))
			sides |= 1U << s;
	}
	return sides;
}

/* Those on which a rule is broken. */
static unsigned
broken(const struct acc_check *ck, const struct rule *u, bool apart)
{
	unsigned sides = holds(ck, &u->when);
	if (u->differs)
		return apart && sides != 0 ? 3 : 0;
	return sides;
}

static int
apply(struct acc_check *ck, struct verdict *v, const struct rule *u, struct acc_err *e)
{
	unsigned sides = broken(ck, u, v->differs);
	bool first = sides != 0 && (!v->bad || u->level > v->level);
	if (sides == 0)
		return 0;
	/* A hint adds a word to what is shown anyway, and is shown itself where it is asked for. */
	if (u->level == LEVEL_HINT && !u->differs && !ck->opt.all)
		return 0;
	if (ck->opt.apart && sides == 3 && !u->differs && !v->differs)
		return 0;
	const char *why = sentence(ck, u, sides & 1 ? 0 : 1);
	if (why == NULL)
		return acc_nomem(e);
	if (first && u->level > LEVEL_HINT) {
		v->bad = true;
		v->level = u->level;
		v->rule = u->differs ? "equal" : u->want != NULL ? "recommended" : "constraint";
		v->want = u->want;
		v->sides = sides;
		/* The gravest comes first. */
		for (uint32_t i = v->nwhy; i > 0 && i < 8; i--)
			v->why[i] = v->why[i - 1];
		v->nwhy += v->nwhy < 8;
		v->why[0] = why;
	} else if (v->nwhy < 8) {
		v->why[v->nwhy++] = why;
	}
	return 0;
}

int
acc_check_rows(struct acc_check *ck, struct acc_err *e)
{
	const struct acc_checklist *cl = ck->opt.list;
	ck->must = acc_alloc(&ck->mem, cl->n + 1);
	if (ck->must == NULL)
		return acc_nomem(e);
	memset(ck->must, 0, cl->n + 1);
	for (uint32_t i = 0; i < cl->n; i++) {
		const struct known *k[2] = {&ck->side[0].known[i], &ck->side[1].known[i]};
		struct verdict *v = NULL;
		for (int s = 0; s < 2; s++) {
			set(ck, s, "value", k[s]->v);
			set(ck, s, "other", k[1 - s]->v);
			set(ck, s, "default", acc_bool(k[s]->given != NULL && k[s]->key == NULL));
		}
		if ((v = add_verdict(ck, e)) == NULL)
			return ACC_ENOMEM;
		v->row = i;
		v->differs = differs(k[0], k[1]);
		bool relevant = holds(ck, &cl->row[i].relevant) != 0;
		for (const struct rule *u = cl->row[i].rule; u != NULL && relevant; u = u->next) {
			if (apply(ck, v, u, e) < 0)
				return ACC_ENOMEM;
			ck->must[i] |= u->level == LEVEL_ERROR && u->differs &&
				       broken(ck, u, true) != 0;
		}
		bool known = k[0]->v.type != ACC_V_NIL || k[1]->v.type != ACC_V_NIL ||
			     k[0]->open != NULL || k[1]->open != NULL;
		ck->judged += (k[0]->key != NULL || k[1]->key != NULL) && relevant;
		v->differs = v->differs && relevant;
		if (relevant && k[0]->v.type != ACC_V_NIL && k[1]->v.type != ACC_V_NIL) {
			ck->compared++;
			ck->equal += !v->differs;
		}
		/* What neither side says anything about is not worth a line, unless that is bad. */
		if (!v->bad && (!known || (!v->differs && !ck->opt.all)))
			ck->nverdict--;
		else if (v->bad && v->level == LEVEL_ERROR)
			ck->status = 1;
	}
	return 0;
}

static bool
wanted(const struct acc_checklist *cl, const struct param *p)
{
	bool only = false, in = false;
	for (const struct filter *f = cl->filter; f != NULL; f = f->next) {
		bool hit = f->dialect == p->dialect && acc_glob(f->glob, p->key);
		if (!f->only && hit)
			return false;
		only = only || (f->only && f->dialect == p->dialect);
		in = in || (f->only && hit);
	}
	return !only || in;
}

static bool
is_place(const struct param *p)
{
	const struct acc_str t = p->text;
	return acc_str_starts(t, "/") || acc_str_starts(t, "./") || acc_str_starts(t, "~/") ||
	       (t.n > 3 && memmem(t.p, t.n, "://", 3) != NULL);
}

/* Keys without a row can be compared where both sides speak the same dialect. */
int
acc_check_rest(struct acc_check *ck, struct acc_err *e)
{
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < ck->side[s].n; i++) {
			const struct param *p = &ck->side[s].p[i];
			if (!ck->side[1 - s].has[p->dialect] || p->used || p->stale ||
				!wanted(ck->opt.list, p))
				continue;
			const struct param *q;
			if (acc_side_partner(&ck->side[1 - s], p, &q, e) < 0)
				return ACC_ENOMEM;
			if (s == 1 && q != NULL)
				continue;
			/* Words of nobody's vocabulary: only their names can say that they are the same. */
			if (p->dialect == DIALECT_OTHER &&
				(q == NULL || (is_place(p) && is_place(q))))
				continue;
			/* A script's few variables say nothing of those that it does not set; nor do its
			 * few arguments of all that there are. */
			if (q == NULL &&
				(p->dialect == DIALECT_ENV
						? !ck->side[1 - s].whole_env
						: ck->side[s].whole[p->dialect] &&
							  !ck->side[1 - s].whole[p->dialect])) {
				ck->unread[s] += p->dialect != DIALECT_ENV;
				continue;
			}
			bool same = q != NULL && acc_check_same(&p->v, &q->v);
			if (q != NULL)
				ck->compared++, ck->equal += same;
			if (p->dialect == DIALECT_OTHER)
				ck->by_name++, ck->by_name_differ += !same;
			if (same && !ck->opt.all)
				continue;
			struct verdict *v = add_verdict(ck, e);
			if (v == NULL)
				return ACC_ENOMEM;
			v->p[s] = p;
			v->p[1 - s] = q;
			v->differs = !same;
		}
	return 0;
}
