/* One dump alone: the first op call that makes NaN or Inf from finite numbers.
 *
 * Arguments count as inputs: a mask filled with float('-inf') is meant. NaN out of Inf (0 * Inf,
 * a softmax over masked places only) is new, too. A device in saturation mode leaves the largest
 * number of the dtype instead of Inf. */
#include "acc/judge.h"

#include <stdlib.h>

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

/* What a call does about NaN and Inf. */
enum deed {
	FINE,
	MAKES,  /* from finite numbers */
	INSIDE, /* the device says so; what goes in and comes out is finite */
	GETS    /* they came in, and no recorded op made them */
};

static const char *
sentence(struct acc_case *c, uint32_t call, const struct holds *h, enum deed d, struct acc_str pos)
{
	const struct acc_call *k = &c->call[call];
	const char *name = acc_call_name(k);
	const char *kind = h->nan && h->inf ? "NaN and Inf" : h->nan ? "NaN" : h->inf ? "Inf"
		: "elements at the largest value of its dtype (saturation mode?"
		  " INF_NAN_MODE_ENABLE=1, for MindSpore"
		  " MS_ASCEND_CHECK_OVERFLOW_MODE=INFNAN_MODE, shows Inf)";
	if (!k->keyed)
		return acc_arena_printf(&c->mem, "%s has %s", name, kind);
	if (d == INSIDE)
		return acc_arena_printf(&c->mem, "%s: overflowed inside, as the device says: what it was"
			" given and what came out are finite", name);
	if (d == MAKES)
		return acc_arena_printf(&c->mem, "%s: output %.*s has %s, and nothing that it was given"
			" has%s", name, ACC_PRS(pos), kind, h->nan ? " NaN" : "");
	return acc_arena_printf(&c->mem, "%s: input %.*s has %s, and no recorded op made it", name,
		ACC_PRS(pos), kind);
}

static int
say(struct acc_case *c, uint32_t call, const struct holds *h, enum deed d, struct acc_err *e)
{
	bool made = d != GETS;
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
	const char *what = made ? "output" : "input", *sep = src[0] != '\0' ? "; at " : "";
	f->name = acc_call_name(k);
	f->io = made ? "out" : "in";
	f->pos = acc_arena_copy(&c->mem, pos.p, pos.n);
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->rule = d == INSIDE ? "inside" : d == GETS ? "arrived" : "overflow";
	f->stack = stack;
	f->bad = true;
	const char *text = sentence(c, call, h, d, pos);
	f->text = text == NULL ? NULL : acc_arena_printf(&c->mem, "%s%s%s%s", where, text, sep, src);
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
	if ((h->nan && !in.nan) || (h->inf && !in.inf && !in.nan) || (h->full && !odd))
		return MAKES;
	if (!c->overflow_dump || odd || h->item != ACC_NOCALL || !c->call[call].keyed)
		return FINE;
	h->item = c->call[call].last;
	return INSIDE;
}

/* Where it may begin: of each step and rank the first call that is not fine, and further ones
 * that make NaN or Inf by themselves. */
struct begin {
	uint32_t call, clean; /* calls before it that are fine */
	enum deed deed;
	struct holds holds;
};

struct begins {
	struct begin *v;
	uint32_t n, cap;
};

static int
collect(const struct acc_case *c, struct begins *b)
{
	uint32_t clean = 0;
	bool begun = false;
	for (uint32_t i = 0; i < c->ncall; i++) {
		struct holds h;
		if (i == 0 || c->call[i].segment != c->call[i - 1].segment) {
			clean = 0;
			begun = false;
		}
		enum deed d = deed(c, i, &h);
		clean += d == FINE && !begun;
		if (d == FINE || (d == GETS && begun))
			continue;
		if (b->n == b->cap) {
			uint32_t cap = b->cap == 0 ? 64 : b->cap * 2;
			void *p = realloc(b->v, cap * sizeof *b->v);
			if (p == NULL)
				return ACC_ENOMEM;
			b->v = p;
			b->cap = cap;
		}
		b->v[b->n++] = (struct begin){i, clean, d, h};
		begun = true;
	}
	return 0;
}

/* Where it began, and how far all is clean there. */
static int
say_begin(struct acc_case *c, const struct begins *b, uint32_t best, struct acc_err *e)
{
	int rc = best == ACC_NOCALL ? 0 : say(c, b->v[best].call, &b->v[best].holds, b->v[best].deed, e);
	struct acc_finding *f = rc < 0 ? NULL : acc_case_find(c, "clean", e);
	if (f == NULL)
		return rc < 0 ? rc : ACC_ENOMEM;
	uint32_t n = best == ACC_NOCALL ? c->ncall : b->v[best].clean;
	f->value = n;
	f->text = acc_arena_printf(&c->mem, c->ncall == 0 ? "there is nothing to judge"
		: best == ACC_NOCALL
		? "%u op call%s: none makes NaN or Inf from finite numbers"
		: c->overflow_dump && n == 0 ? "it is the first that the recorder kept"
		: "clean before it: %u op call%s", n, n == 1 ? "" : "s");
	return f->text == NULL ? acc_fail(e, ACC_ENOMEM, "out of memory") : 0;
}

/* The other ranks, and what else overflows, as far as is wanted. */
static int
say_others(struct acc_case *c, const struct acc_ranks *t, const struct begins *b, uint32_t best,
	struct acc_err *e)
{
	uint32_t *first = malloc(((size_t)b->n + 1) * sizeof *first), n = 0, said = 1;
	if (first == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < b->n; i++)
		if (i == 0 || c->call[b->v[i].call].segment != c->call[b->v[i - 1].call].segment)
			first[n++] = b->v[i].call;
	int rc = acc_say_ranks(c, t, b->v[best].call, first, n, "overflows", e);
	for (uint32_t i = 0; i < b->n && rc == 0; i++) {
		if (c->opt.overflows != 0 && said >= c->opt.overflows)
			break;
		if (i == best || b->v[i].deed == GETS)
			continue;
		rc = say(c, b->v[i].call, &b->v[i].holds, b->v[i].deed, e);
		said++;
	}
	free(first);
	return rc;
}

static int
judge(struct acc_case *c, struct acc_err *e)
{
	struct begins b = {0};
	struct acc_ranks *t = acc_ranks_open(c, e);
	int rc = t == NULL || collect(c, &b) < 0 ? acc_fail(e, ACC_ENOMEM, "out of memory") : 0;
	uint32_t best = ACC_NOCALL;
	for (uint32_t i = 0; i < b.n && rc == 0; i++)
		if (best == ACC_NOCALL || acc_before(t, c, b.v[i].call, b.v[best].call))
			best = i;
	if (rc == 0)
		rc = say_begin(c, &b, best, e);
	if (rc == 0 && best != ACC_NOCALL)
		rc = say_others(c, t, &b, best, e);
	acc_ranks_close(t);
	free(b.v);
	return rc < 0 ? rc : acc_say_rest(c, e);
}

const struct acc_judge acc_judge_overflow = {
	.name = "overflow",
	.help = "one dump alone: the first op call that makes NaN or Inf from finite numbers",
	.judge = judge,
};
