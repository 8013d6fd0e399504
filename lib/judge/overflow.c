/* One dump alone: the first op call that makes NaN or Inf from finite numbers.
 *
 * Arguments count as inputs: a mask filled with float('-inf') is meant. NaN out of Inf (0 * Inf,
 * a softmax over masked places only) is new, too. A device in saturation mode leaves the largest
 * number of the dtype instead of Inf. */
#include "acc/judge.h"

#include "case.h"

/* What a call holds on one side of it. */
struct holds {
	bool nan, inf, full;
	uint32_t item; /* the first record that has either */
};

static void
look(const struct acc_case *c, uint32_t call, bool outputs, struct holds *h)
{
	const struct acc_call *k = &c->call[call];
	*h = (struct holds){.item = ACC_NOCALL};
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		bool out = it->io == ACC_IO_OUT || it->io == ACC_IO_GRAD || it->io == ACC_IO_NONE;
		if (it->call != call || out != outputs)
			continue;
		if ((it->a_nan && !h->nan) || (it->a_inf && !h->inf && !h->nan) ||
			(it->a_full && h->item == ACC_NOCALL))
			h->item = i;
		h->full |= it->a_full;
		h->nan |= it->a_nan;
		h->inf |= it->a_inf;
	}
}

static int
say(struct acc_case *c, uint32_t call, const struct holds *h, bool made, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	struct acc_item *it = &c->item[h->item];
	struct acc_rec *r;
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	if (src == NULL || where == NULL || acc_case_record(c, it, &r, e) < 0)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	struct acc_str pos = acc_get_text(r, "", "pos");
	struct acc_finding *f = acc_case_find(c, "overflow", e);
	if (f == NULL)
		return ACC_ENOMEM;
	const char *kind = h->nan && h->inf ? "NaN and Inf" : h->nan ? "NaN" : h->inf ? "Inf"
		: "elements at the largest value of its dtype (saturation mode?"
		  " INF_NAN_MODE_ENABLE=1 shows Inf)";
	const char *what = made ? "output" : "input", *sep = src[0] != '\0' ? "; at " : "";
	f->name = acc_call_name(k);
	f->io = made ? "out" : "in";
	f->pos = acc_arena_copy(&c->mem, pos.p, pos.n);
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->rule = "overflow";
	f->stack = stack;
	f->bad = true;
	if (!k->keyed)
		f->text = acc_arena_printf(&c->mem, "%s%s has %s", where, f->name, kind);
	else if (made)
		f->text = acc_arena_printf(&c->mem, "%s%s: output %.*s has %s, and nothing that it"
			" was given has%s%s%s", where, f->name, ACC_PRS(pos), kind,
			h->nan ? " NaN" : "", sep, src);
	else
		f->text = acc_arena_printf(&c->mem, "%s%s: input %.*s has %s, and no recorded op"
			" made it%s%s", where, f->name, ACC_PRS(pos), kind, sep, src);
	const char **why = acc_alloc(&c->mem, sizeof *why);
	if (f->text == NULL || why == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	*why = f->text;
	struct acc_verdict v = {.level = "error", .rule = what, .why = why, .nwhy = 1};
	v.value = v.limit = f->value;
	return acc_case_mark(c, it, &v, e);
}

/* Moving elements makes no Inf unless it was asked to (masked_fill, full, where: not every
 * recorder keeps the number); only into another dtype may elements overflow. */
static bool
asked_for(const struct acc_case *c, uint32_t call, const struct holds *h)
{
	const struct acc_call *k = &c->call[call];
	if (k->cls == ACC_OP_ALLOC)
		return true;
	if (k->cls != ACC_OP_MOVE || k->backward || h->nan)
		return false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call == call && it->kind == ACC_ITEM_TENSOR && !it->exact &&
			it->dtype[ACC_A] != c->item[h->item].dtype[ACC_A])
			return false;
	}
	return true;
}

/* What a call does about NaN and Inf. */
enum deed { FINE, MAKES, GETS };

static enum deed
deed(const struct acc_case *c, uint32_t call, struct holds *h)
{
	struct holds in;
	look(c, call, false, &in);
	look(c, call, true, h);
	if (h->item != ACC_NOCALL && asked_for(c, call, h))
		return FINE;
	/* A mask may come in full of -Inf, but NaN comes from somewhere. */
	if (in.nan && c->item[in.item].kind == ACC_ITEM_TENSOR) {
		*h = in;
		return GETS;
	}
	bool odd = in.nan || in.inf || in.full;
	return (h->nan && !in.nan) || (h->inf && !in.inf && !in.nan) || (h->full && !odd) ? MAKES
		: FINE;
}

/* The first in each (step, rank) counts; the earliest of those is named. */
static int
judge(struct acc_case *c, struct acc_err *e)
{
	uint32_t best = ACC_NOCALL, clean = 0, before = 0, done = UINT32_MAX;
	struct holds h, best_holds = {.item = ACC_NOCALL};
	enum deed best_deed = FINE;
	for (uint32_t i = 0; i < c->ncall; i++) {
		const struct acc_call *k = &c->call[i];
		if (i == 0 || k->segment != c->call[i - 1].segment)
			clean = 0;
		if (k->segment == done)
			continue;
		enum deed d = deed(c, i, &h);
		if (d == FINE) {
			clean++;
			continue;
		}
		done = k->segment;
		const struct acc_call *b = best == ACC_NOCALL ? NULL : &c->call[best];
		if (b == NULL || k->step < b->step || (k->step == b->step && k->seq < b->seq)) {
			best = i;
			best_holds = h;
			best_deed = d;
			before = clean;
		}
	}
	int rc = best == ACC_NOCALL ? 0 : say(c, best, &best_holds, best_deed == MAKES, e);
	struct acc_finding *f = rc < 0 ? NULL : acc_case_find(c, "clean", e);
	if (f == NULL)
		return rc < 0 ? rc : ACC_ENOMEM;
	uint32_t n = best == ACC_NOCALL ? c->ncall : before;
	f->value = n;
	f->text = acc_arena_printf(&c->mem, c->ncall == 0 ? "there is nothing to judge"
		: best == ACC_NOCALL
		? "%u op call%s: none makes NaN or Inf from finite numbers"
		: "clean before it: %u op call%s", n, n == 1 ? "" : "s");
	return f->text == NULL ? acc_fail(e, ACC_ENOMEM, "out of memory") : acc_say_rest(c, e);
}

const struct acc_judge acc_judge_overflow = {
	.name = "overflow",
	.help = "one dump alone: the first op call that makes NaN or Inf from finite numbers",
	.judge = judge,
};
