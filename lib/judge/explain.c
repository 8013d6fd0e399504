/* What tools are known to do, beside what was found: behaviours of share/behaviours that a finding rests on, and
 * those that can explain what it accuses, of the framework, the operator and the dtype in question. */
#include "acc/behaviour.h"
#include "acc/say.h"

#include <math.h>

#include "judge/accept.h"
#include "judge/case.h"
#include "judge/first_bad.h"
#include "judge/limits.h"

int
acc_rests_on(struct acc_case *c, struct acc_finding *f, const char *id, struct acc_err *e)
{
	f->behaviour = f->behaviour == NULL ? id
					    : acc_arena_printf(&c->mem, "%s %s", f->behaviour, id);
	f->text = f->text == NULL ? NULL : acc_say(&c->mem, "%s (%s)", f->text, id);
	return f->text == NULL || f->behaviour == NULL ? acc_nomem(e) : 0;
}

int
acc_has_source(struct acc_case *c, const char *key, const char *value, struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		if (acc_rec_is(r, "source") && acc_str_is(acc_get_text(r, "", key), value))
			return 1;
	}
	return 0;
}

int
acc_source_says(struct acc_case *c, struct acc_str src, const char *const key[], char *const out[],
	struct acc_err *e)
{
	char id[64];
	snprintf(id, sizeof id, "%.*s", ACC_PRS(src));
	for (size_t k = 0; key[k] != NULL; k++)
		out[k][0] = '\0';
	for (uint32_t i = 0; id[0] != '\0' && i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		if (!acc_rec_is(r, "source") || !acc_str_is(acc_get_text(r, "", "id"), id))
			continue;
		for (size_t k = 0; key[k] != NULL; k++)
			snprintf(out[k], ACC_SAYS, "%.*s", ACC_PRS(acc_get_text(r, "", key[k])));
		break;
	}
	return 0;
}

static double
number(const struct acc_rec *r, const char *side, const char *key)
{
	double v = 0;
	acc_as_f64(acc_get(r, side, key), &v);
	return v;
}

/* Is a NaN, on either side, in what this op call took or gave? */
static int
has_nan(struct acc_case *c, const struct acc_item *of, bool *yes, struct acc_err *e)
{
	static const char *const side[] = {"a.", "b."};
	const struct acc_call *k = &c->call[of->call];
	*yes = false;
	for (uint32_t i = k->first; i <= k->last && !*yes; i++) {
		struct acc_rec *r;
		if (c->item[i].call != of->call)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		for (int s = 0; s < 2; s++)
			*yes |= number(r, side[s], "s.nan") > 0 ||
				isnan(number(r, side[s], "s.max")) ||
				isnan(number(r, side[s], "value"));
	}
	return 0;
}

/* What a record says of one of its sides. */
struct about {
	char op[2][256], dtype[32], framework[ACC_SAYS], device[ACC_SAYS], versions[ACC_SAYS];
};

static const char *const prefix[] = {"", "a.", "b."};

/* An array of no operator is what the other side's made. */
static int
ask(struct acc_case *c, const struct acc_item *it, const struct acc_rec *r, int s, struct about *a,
	struct acc_behaviour_seen *seen, struct acc_err *e)
{
	static const char *const key[] = {"framework", "device", "versions", NULL};
	const char *other = prefix[s > 0 ? 3 - s : 0];
	snprintf(a->op[0], sizeof a->op[0], "%.*s", ACC_PRS(acc_get_text(r, prefix[s], "op")));
	snprintf(a->op[1], sizeof a->op[1], "%.*s", ACC_PRS(acc_get_text(r, other, "op")));
	snprintf(a->dtype, sizeof a->dtype, "%.*s", ACC_PRS(acc_get_text(r, prefix[s], "dtype")));
	const int rc = acc_source_says(c, acc_get_text(r, prefix[s], "src"), key,
		(char *[]){a->framework, a->device, a->versions}, e);
	*seen = (struct acc_behaviour_seen){.framework = acc_str(a->framework),
		.op = {acc_str(a->op[0]), acc_str(a->op[1])},
		.dtype = acc_str(a->dtype),
		.device = acc_str(a->device),
		.backward = c->call[it->call].backward || c->call[it->call].grad};
	return rc;
}

/* What is known of what recorded, or computed, this side of a pair. */
static int
explain(struct acc_case *c, struct acc_finding *f, const struct acc_item *it, int s, bool nan,
	struct acc_err *e)
{
	struct acc_rec *r;
	struct about a;
	struct acc_behaviour_seen seen;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	if (acc_rec_is(r, "pair") != (s > 0))
		return 0;
	const int rc = ask(c, it, r, s, &a, &seen, e);
	seen.nan = nan;
	seen.checksum = it->measure == ACC_BY_SUM;
	for (size_t i = 0; i < acc_nbehaviours && rc == 0; i++) {
		const struct acc_behaviour *b = &acc_behaviours[i];
		if (!acc_behaviour_fits(b, &seen) ||
			(f->behaviour != NULL && strstr(f->behaviour, b->id) != NULL))
			continue;
		f->behaviour = f->behaviour == NULL
				       ? b->id
				       : acc_arena_printf(&c->mem, "%s %s", f->behaviour, b->id);
		const struct acc_str here = acc_behaviour_other(b, acc_str(a.versions));
		f->text = here.n == 0
				  ? acc_say(&c->mem, "%s; known of %s %s: %s (%s)",
					    acc_got(f->text), b->tool, b->versions, b->what, b->id)
				  : acc_say(&c->mem,
					    "%s; known of %s %s, and here is %.*s: %s (%s)",
					    acc_got(f->text), b->tool, b->versions, ACC_PRS(here),
					    b->what, b->id);
		if (f->behaviour == NULL || f->text == NULL)
			return acc_nomem(e);
	}
	return rc;
}

int
acc_is_of(struct acc_case *c, const struct acc_item *it, const struct acc_behaviour *b,
	struct acc_err *e)
{
	for (int s = 1; s < 3; s++) {
		struct acc_rec *r;
		struct about a;
		struct acc_behaviour_seen seen;
		if (acc_case_record(c, it, &r, e) < 0 || ask(c, it, r, s, &a, &seen, e) < 0)
			return e->code;
		if (acc_behaviour_fits(b, &seen) &&
			acc_behaviour_other(b, acc_str(a.versions)).n == 0)
			return 1;
	}
	return 0;
}

/* --- a NaN that a tool hides --- */

/* Has what both sides gave this op call NaN at the same places, and no other infinity or NaN? */
static int
same_nans(struct acc_case *c, uint32_t call, bool *yes, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	bool any = false, same = true;
	for (uint32_t i = k->first; i <= k->last && same; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != call || !acc_is_input(it) || it->kind != ACC_ITEM_TENSOR)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		same = it->sides == 3 && !it->nonfinite && it->measure == ACC_BY_TENSOR;
		any |= number(r, "a.", "s.nan") > 0;
	}
	*yes = any && same;
	return 0;
}

/* Whose behaviour it is that a side has fewer NaN in this output, all else being equal; NULL: nobody's. */
static int
hider(struct acc_case *c, const struct acc_item *it, const struct acc_behaviour **by,
	struct acc_err *e)
{
	struct acc_rec *r;
	struct about a;
	struct acc_behaviour_seen seen;
	double off = INFINITY;
	bool yes = false;
	*by = NULL;
	if (it->call == ACC_NOCALL || !acc_is_output(it) || it->kind != ACC_ITEM_TENSOR ||
		it->sides != 3 || !it->nonfinite || it->measure != ACC_BY_TENSOR)
		return 0;
	const double unit = acc_call_unit(c, &c->call[it->call]);
	if (same_nans(c, it->call, &yes, e) < 0 || !yes || acc_case_record(c, it, &r, e) < 0)
		return e->code;
	const double nan[2] = {number(r, "a.", "s.nan"), number(r, "b.", "s.nan")};
	acc_as_f64(acc_get(r, "", "m.rel_l2"), &off); /* of what is finite on both sides */
	if (nan[0] == nan[1] ||
		!(off <= LIMIT_MARGIN * unit *
				 (acc_unit_low(unit) ? LIMIT_OTHER_FLOOR_16 : LIMIT_OTHER_FLOOR)))
		return 0;
	const int rc = ask(c, it, r, nan[0] < nan[1] ? 1 : 2, &a, &seen, e);
	seen.nan = true;
	for (size_t i = 0; i < acc_nbehaviours && rc == 0 && *by == NULL; i++)
		if (strstr(acc_behaviours[i].when, "with=nan") != NULL &&
			acc_behaviour_fits(&acc_behaviours[i], &seen) &&
			acc_behaviour_other(&acc_behaviours[i], acc_str(a.versions)).n == 0)
			*by = &acc_behaviours[i];
	return rc;
}

int
acc_know_nans(struct acc_case *c, struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_behaviour *by;
		struct acc_item *it = &c->item[i];
		if (hider(c, it, &by, e) < 0)
			return e->code;
		if (by == NULL)
			continue;
		it->hides = true;
		it->audit[ACC_A] = it->audit[ACC_B] = NAN;
		it->audited = 3;
	}
	return 0;
}

int
acc_say_nans(struct acc_case *c, struct acc_err *e)
{
	uint32_t n = 0, first = 0;
	const struct acc_behaviour *by;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		first = c->item[i].hides && n == 0 ? i : first;
		n += c->item[i].hides;
	}
	if (n == 0 || hider(c, &c->item[first], &by, e) < 0 || by == NULL)
		return n == 0 ? 0 : e->code;
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->rule = "nan";
	f->doubtful = true;
	f->value = n;
	f->name = acc_call_name(&c->call[c->item[first].call]);
	f->behaviour = by->id;
	f->text = acc_say(&c->mem,
		"%u output%s lose%s a NaN on one side that both were given, first %s: not judged, known of %s "
		"%s: %s (%s)",
		n, n == 1 ? "" : "s", n == 1 ? "s" : "", f->name, by->tool, by->versions, by->what,
		by->id);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* --- what is accused --- */

int
acc_explain(struct acc_case *c, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t n = 0; n < c->nfinding && rc == 0; n++) {
		struct acc_finding *f = &c->finding[n];
		uint32_t i = 0;
		if (!f->bad || f->name == NULL || f->text == NULL)
			continue;
		while (i < c->nitem &&
			(c->item[i].mark == 0 || c->item[i].call == ACC_NOCALL ||
				strcmp(acc_call_name(&c->call[c->item[i].call]), f->name) != 0))
			i = acc_step(c, i);
		bool nan = false;
		if (i < c->nitem)
			rc = has_nan(c, &c->item[i], &nan, e);
		for (int s = 0; s < 3 && i < c->nitem && rc == 0; s++)
			rc = explain(c, f, &c->item[i], s, nan, e);
	}
	return rc;
}
