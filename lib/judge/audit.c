/* What accaudit found: an output that is not what its own inputs give is wrong by itself,
 * whatever the other side has. */
#include "first_bad.h"

#include <math.h>

#include "case.h"

int
acc_accused(const struct acc_item *it)
{
	/* Where both fail, the test is to blame: the bench is trusted. */
	bool a = it->audit[ACC_A] > 1, b = it->audit[ACC_B] > 1;
	return a == b ? -1 : a ? ACC_A : ACC_B;
}

bool
acc_acquitted(const struct acc_item *it)
{
	return it->audit[ACC_A] <= 1;
}

void
acc_audit_suspect(const struct acc_item *it, struct suspect *x)
{
	int side = acc_accused(it);
	double by = side < 0 ? 0 : it->audit[side];
	/* It stands out as soon as it is beyond its limit: that was learned from the dump. */
	double margin = side < 0 ? -9 : fmin(9, .25 + log10(by));
	if (margin <= x->margin)
		return;
	x->margin = margin;
	x->value = by;
	x->limit = 1;
	x->from = "what its own recorded inputs give";
	x->audit = true;
	x->unseen = x->weak = false;
}

static double
number(const struct acc_rec *r, const char *prefix, const char *key)
{
	double v = NAN;
	acc_as_f64(acc_get(r, prefix, key), &v);
	return v;
}

const char *
acc_audit_text(struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	struct acc_rec *r;
	int side = acc_accused(it);
	if (acc_case_record(c, it, &r, e) < 0)
		return NULL;
	bool pair = acc_rec_is(r, "pair"), other = side == ACC_A && it->audit[ACC_B] <= 1;
	const char *prefix = !pair ? "" : side == ACC_B ? "b." : "a.";
	struct acc_str cause = acc_get_text(r, prefix, "audit.cause");
	double rms = number(r, prefix, "audit.err"), max = number(r, prefix, "audit.err_max");
	const char *size = isinf(rms) ? "NaN or Inf differ"
		: acc_arena_printf(&c->mem, "off by %.3g times its rounding (at most %.3g), %.3g"
			" may be", rms, max, number(r, prefix, "audit.limit"));
	return acc_arena_printf(&c->mem, "%s is not what its own inputs give: %s%s%.*s%s",
		pair && side == ACC_B ? "of the bench" : pair ? "of the device" : "as recorded",
		size == NULL ? "" : size, cause.n > 0 ? "; looks like: " : "", ACC_PRS(cause),
		other ? "; the bench's is what its inputs give" : "");
}

/* --- one dump alone --- */

static int
say(struct acc_case *c, uint32_t i, struct acc_err *e)
{
	const struct acc_item *it = &c->item[i];
	const struct acc_call *k = &c->call[it->call];
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	const char *text = acc_audit_text(c, it, e);
	struct acc_finding *f = text == NULL || src == NULL ? NULL : acc_case_find(c, "culprit", e);
	if (f == NULL || where == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	f->name = acc_call_name(k);
	f->io = "out";
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->rule = "audit";
	f->value = it->audit[ACC_A];
	f->limit = 1;
	f->limit_from = "what its own recorded inputs give";
	f->confidence = isinf(f->value) ? 1 : 1 - 1 / f->value;
	f->stack = stack;
	f->bad = true;
	f->text = acc_arena_printf(&c->mem, "%s%s: its output %s%s%s", where, f->name, text,
		src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_fail(e, ACC_ENOMEM, "out of memory") : 0;
}

static int
mark(struct acc_case *c, uint32_t i, bool first, struct acc_err *e)
{
	struct acc_item *it = &c->item[i];
	const char **why = acc_alloc(&c->mem, sizeof *why);
	const char *text = acc_audit_text(c, it, e);
	if (why == NULL || text == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	*why = text;
	struct acc_verdict v = {.level = first ? "error" : "warning", .rule = "audit",
		.limit_from = "what its own recorded inputs give", .value = it->audit[ACC_A],
		.limit = 1, .why = why, .nwhy = 1};
	return acc_case_mark(c, it, &v, e);
}

/* The first output that fails, in the order of the dump; then NaN and Inf, as without audit. */
static int
judge(struct acc_case *c, struct acc_err *e)
{
	uint32_t first = ACC_NOCALL;
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call == ACC_NOCALL || acc_accused(it) < 0)
			continue;
		bool earlier = first == ACC_NOCALL ||
			c->call[it->call].step < c->call[c->item[first].call].step;
		first = earlier ? i : first;
	}
	for (uint32_t i = 0; i < c->nitem && rc == 0; i++)
		if (c->item[i].call != ACC_NOCALL && acc_accused(&c->item[i]) >= 0)
			rc = mark(c, i, i == first, e);
	if (rc == 0 && first != ACC_NOCALL)
		rc = say(c, first, e);
	return rc < 0 ? rc : acc_judge_overflow.judge(c, e);
}

const struct acc_judge acc_judge_audit = {
	.name = "audit",
	.help = "one dump alone, audited: the first op call whose output is not what its inputs give",
	.judge = judge,
};
