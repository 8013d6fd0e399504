/* What every judge says at the end: what is unmatched, what was not measured, how much was audited. */
#include "judge/case.h"
#include "judge/item.h"

#include "acc/say.h"

/* Pairs with numbers missing: how many of each kind. */
struct gaps {
	uint64_t n;
	uint32_t first;
};

static void
gap(struct gaps *g, uint32_t i)
{
	if (g->n++ == 0)
		g->first = i;
}

static int
say_gap(struct acc_case *c, const struct gaps *g, const char *what, const char *rule,
	const char *text, struct acc_err *e)
{
	if (g->n == 0)
		return 0;
	struct acc_rec *r;
	const struct acc_item *it = &c->item[g->first];
	if (acc_case_record(c, it, &r, e) < 0)
		return e == NULL ? ACC_EIO : e->code;
	struct acc_str name = acc_get_text(r, "", "name");
	const char *why = acc_got_said(&c->mem, r, "", "m.skip");
	static const char *const prefix[] = {"", "a.", "b."};
	for (int i = 0; i < 3 && why == NULL; i++)
		why = acc_got_said(&c->mem, r, prefix[i], "err");
	struct acc_finding *f = acc_case_find(c, what, e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->name = acc_arena_copy(&c->mem, name.p, name.n);
	f->rule = rule;
	f->value = (double)g->n;
	f->doubtful = true;
	bool reason = strcmp(what, "missing") == 0 && why != NULL;
	f->text = acc_say(&c->mem, "%s: %llu record%s, first %.*s%s%s%s", text,
		(unsigned long long)g->n, g->n == 1 ? "" : "s", ACC_PRS(name), reason ? " (" : "",
		reason ? why : "", reason ? ")" : "");
	if (f->name == NULL || f->text == NULL)
		return acc_nomem(e);
	return 0;
}

/* How much of one dump was audited; of two, only where it was nothing. */
static int
say_audit(struct acc_case *c, int side, struct acc_err *e)
{
	const struct acc_coverage *v = &c->cover[side];
	bool nothing = v->good + v->bad == 0;
	if (!acc_coverage_any(v) || (c->pairs > 0 && !nothing))
		return 0;
	const char *text = acc_coverage_text(v, &c->mem);
	struct acc_finding *f = acc_case_find(c, "audit", e);
	if (f == NULL || text == NULL)
		return acc_nomem(e);
	f->rule = "audit";
	f->value = (double)(v->good + v->bad);
	f->text = acc_say(&c->mem, "audit%s: %s",
		c->pairs == 0   ? ""
		: side == ACC_A ? " of the device"
				: " of the bench",
		text);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Where files have names and nothing else, nobody knows what ran when. */
static int
say_order(struct acc_case *c, struct acc_err *e)
{
	if (!c->by_names || c->passed == 0 || c->pairs == 0)
		return 0;
	struct acc_finding *f = acc_case_find(c, "other", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->rule = "order";
	f->text = "the order here is that of the names, not of the execution, so that nothing says "
		  "what ran first (a number before the names does, and acc-by-hand(7) shows how to "
		  "record it)";
	return 0;
}

/* A tensor on one side that is None, a number or a formula on the other. */
static int
is_value(struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	struct acc_rec *r;
	if (it->dtype[ACC_A] != ACC_NODTYPE && it->dtype[ACC_B] != ACC_NODTYPE)
		return 0;
	/* A tensor may have a dtype that nobody knows. */
	const int rc = acc_case_record(c, it, &r, e);
	return rc < 0 ? rc
		      : !acc_str_is(acc_get_text(r, "a.", "kind"), "tensor") ||
				!acc_str_is(acc_get_text(r, "b.", "kind"), "tensor");
}

int
acc_say_rest(struct acc_case *c, struct acc_err *e)
{
	struct gaps dtype = {0}, shape = {0}, unmeasured = {0}, broken = {0}, value = {0};
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc >= 0; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->kind != ACC_ITEM_TENSOR && it->kind != ACC_ITEM_ARG)
			continue;
		if (it->broken)
			gap(&broken, i);
		if (it->note_dtype)
			gap(&dtype, i);
		/* A part of a tensor was compared with the part that it is. */
		if (it->note_shape && !(it->part != 0 && acc_is_measured(it)))
			gap(&shape, i);
		else if (!it->broken && !it->other_form && !it->apart &&
			 it->kind == ACC_ITEM_TENSOR && it->sides == 3 &&
			 it->measure == ACC_UNMEASURED && (rc = is_value(c, it, e)) >= 0)
			gap(rc > 0 ? &value : &unmeasured, i);
	}
	rc = rc < 0 ? rc : say_order(c, e);
	if (rc == 0)
		rc = acc_say_unmatched(c, e);
	if (rc == 0)
		rc = say_gap(c, &shape, "unmatched", "shape", "different shapes on the two sides",
			e);
	if (rc == 0)
		rc = say_gap(c, &dtype, "unmatched", "dtype", "different dtypes on the two sides",
			e);
	if (rc == 0)
		rc = say_gap(c, &value, "unmatched", "kind",
			"a tensor on one side, a value on the other", e);
	if (rc == 0)
		rc = say_gap(c, &broken, "missing", "incomplete", "incomplete", e);
	if (rc == 0)
		rc = say_gap(c, &unmeasured, "missing", "unmeasured", "not measured", e);
	for (int side = ACC_A; side <= ACC_B && rc == 0; side++)
		rc = say_audit(c, side, e);
	return rc;
}
