/* Labels that a loss leaves out (behaviour hf-labels-padded): -1 in one program and -100 in the other are no difference, where each side's loss
 * ignores its own number, and nothing else differs. */
#include "acc/say.h"
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

struct labels {
	uint64_t id[2]; /* identities of the labels of both sides */
	double number[2];
	uint32_t call; /* the loss */
};

struct ignoring {
	struct acc_case *c;
	struct labels *l;
	size_t n, cap;
};

/* An argument, or a tensor of one element. */
static double
number_of(const struct acc_rec *r, const char *side)
{
	double v = NAN;
	if (!acc_as_f64(acc_get(r, side, "value"), &v))
		acc_as_f64(acc_get(r, side, "s.min"), &v);
	return v;
}

/* Do all elements that differ do so by this much? Only then is the sum of squares as large as the sum times it. */
static int
differ_by(struct acc_case *c, const struct acc_item *it, double by, bool *yes, struct acc_err *e)
{
	struct acc_rec *r;
	double mean = NAN, rms = NAN, max = NAN;
	*yes = false;
	if (it->kind != ACC_ITEM_TENSOR || !it->exact || it->measure != ACC_BY_TENSOR)
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	acc_as_f64(acc_get(r, "m.", "mean_abs"), &mean);
	acc_as_f64(acc_get(r, "m.", "rmse"), &rms);
	acc_as_f64(acc_get(r, "m.", "max_abs"), &max);
	*yes = max == by && fabs(rms * rms - mean * by) <= LIMIT_SAME_LABEL * mean * by;
	return 0;
}

/* A loss that ignores one number on the device and another on the bench, and its labels. */
static int
look(struct ignoring *g, uint32_t call, struct acc_err *e)
{
	struct acc_case *c = g->c;
	const struct acc_call *k = &c->call[call];
	struct labels l = {.call = call, .number = {NAN, NAN}};
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || it->kind != ACC_ITEM_ARG || !acc_is_input(it) ||
			it->sides != 3 || !(it->rms > 0))
			continue;
		int rc = acc_case_record(c, it, &r, e);
		if (rc < 0)
			return rc;
		if (!acc_str_is(acc_get_text(r, "a.", "pos"), "ignore_index"))
			continue;
		l.number[ACC_A] = number_of(r, "a.");
		l.number[ACC_B] = number_of(r, "b.");
	}
	const double by = fabs(l.number[ACC_A] - l.number[ACC_B]);
	for (uint32_t i = k->first; i <= k->last && by > 0; i++) {
		const struct acc_item *it = &c->item[i];
		bool yes = false;
		if (it->call != call || !acc_is_input(it) || it->id[ACC_A] == 0 ||
			it->id[ACC_B] == 0)
			continue;
		int rc = differ_by(c, it, by, &yes, e);
		if (rc < 0)
			return rc;
		if (!yes)
			continue;
		if (!ACC_ROOM(g->l, g->cap, g->n + 1, e))
			return ACC_ENOMEM;
		l.id[ACC_A] = it->id[ACC_A];
		l.id[ACC_B] = it->id[ACC_B];
		g->l[g->n++] = l;
		return 0;
	}
	return 0;
}

static bool
is_labels(const struct labels *l, const struct acc_item *it)
{
	return it->kind == ACC_ITEM_TENSOR && it->id[ACC_A] == l->id[ACC_A] &&
	       it->id[ACC_B] == l->id[ACC_B];
}

/* Of a call that takes or gives these labels: they, and the two numbers, which it puts in or is told to leave out. */
static int
forgive_call(struct acc_case *c, const struct labels *l, uint32_t call, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	bool handles = false;
	for (uint32_t i = k->first; i <= k->last; i++)
		handles |= c->item[i].call == call && is_labels(l, &c->item[i]);
	for (uint32_t i = k->first; i <= k->last && handles; i++) {
		struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || it->sides != 3 || !(it->rms > 0))
			continue;
		bool same = is_labels(l, it);
		if (!same && (it->kind == ACC_ITEM_ARG || (it->exact && it->count == 1))) {
			int rc = acc_case_record(c, it, &r, e);
			if (rc < 0)
				return rc;
			same = number_of(r, "a.") == l->number[ACC_A] &&
			       number_of(r, "b.") == l->number[ACC_B];
		}
		if (same) {
			it->rms = it->max = it->max_abs = it->rmse = 0;
			it->masked = true;
		}
	}
	return 0;
}

/* In the step and rank of the loss. */
static int
forgive(struct acc_case *c, const struct labels *l, struct acc_err *e)
{
	const uint32_t segment = c->call[l->call].segment;
	uint32_t i = l->call;
	int rc = 0;
	while (i > 0 && c->call[i - 1].segment == segment)
		i--;
	for (; i < c->ncall && c->call[i].segment == segment && rc == 0; i++)
		if (c->call[i].key[ACC_A] != NULL && c->call[i].key[ACC_B] != NULL)
			rc = forgive_call(c, l, i, e);
	return rc;
}

int
acc_forgive_labels(struct acc_case *c, struct acc_err *e)
{
	struct ignoring g = {.c = c};
	int rc = 0;
	for (uint32_t i = 0; i < c->ncall && rc == 0; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (k->key[ACC_A] != NULL && k->key[ACC_B] != NULL && !k->backward && !k->grad &&
			!k->module)
			rc = look(&g, i, e);
	}
	for (size_t i = 0; i < g.n && rc == 0; i++)
		rc = forgive(c, &g.l[i], e);
	free(g.l);
	return rc;
}

/* What was forgiven is said: it is a difference, if no fault. */
int
acc_say_labels(struct acc_case *c, struct acc_err *e)
{
	uint32_t n = 0, first = ACC_NOCALL;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		const bool labels = it->masked && it->exact && !acc_is_input(it);
		n += labels;
		first = labels && first == ACC_NOCALL ? i : first;
	}
	if (n == 0)
		return 0;
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->rule = "labels";
	f->doubtful = true;
	f->value = n;
	f->name = acc_call_name(&c->call[c->item[first].call]);
	f->text = acc_say(&c->mem,
		"%u output%s hold%s labels that are left out by another number than on the bench, first %s: no fault,"
		" since the loss of each side ignores its own",
		n, n == 1 ? "" : "s", n == 1 ? "s" : "", f->name);
	return f->text == NULL ? acc_nomem(e) : 0;
}
