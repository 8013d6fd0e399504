/* One dump alone: the first op call that makes NaN or Inf from finite numbers.
 *
 * Arguments count as inputs: a mask filled with float('-inf') is meant. NaN out of Inf (0 * Inf,
 * a softmax over masked places only) is new, too. A device in saturation mode leaves the largest
 * number of the dtype instead of Inf. */
#include "acc/judge.h"
#include "acc/say.h"

#include <stdlib.h>

#include "judge/case.h"
#include "judge/order.h"

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
		if (it->call != call || acc_is_output(it) != outputs)
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
enum role {
	FINE,
	MAKES,   /* from finite numbers */
	INSIDE,  /* the device says so; what goes in and comes out is finite */
	FLAGGED, /* the device says so; something odd came in already, or nothing is known */
	GETS     /* they came in, and no recorded op made them */
};

/* Where it may begin: of each step and rank the first call that is not fine, and further ones
 * that make NaN or Inf by themselves. */
struct begin {
	uint32_t call, clean; /* calls before it that are fine */
	enum role role;
	struct holds holds;
	const char *harmless; /* why; "": nothing shows that; NULL: not asked yet */
};

/* Of a dump of what overflows: the device's word is evidence; with it, what can be seen. */
static const char *
flagged(struct acc_case *c, uint32_t call, enum role d, struct acc_err *e)
{
	const char *in = acc_say_extremes(c, call, false, e);
	const char *out = in == NULL ? NULL : acc_say_extremes(c, call, true, e);
	if (out == NULL)
		return NULL;
	return acc_say(&c->mem,
		"%s: overflowed%s, as the device says: its inputs: %s; its outputs: %s",
		acc_call_name(&c->call[call]), d == INSIDE ? " inside" : "",
		in[0] != '\0' ? in : "no tensor", out[0] != '\0' ? out : "no tensor");
}

static const char *
sentence(struct acc_case *c, uint32_t call, const struct holds *h, enum role d, struct acc_str pos,
	const char *many, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	const char *name = acc_call_name(k);
	const char *kind = h->nan && h->inf ? "NaN and Inf"
			   : h->nan         ? "NaN"
			   : h->inf         ? "Inf"
				    : "elements at the largest value of its dtype (saturation mode?"
				      " INF_NAN_MODE_ENABLE=1, for MindSpore"
				      " MS_ASCEND_CHECK_OVERFLOW_MODE=INFNAN_MODE, shows Inf)";
	if (!k->keyed)
		return acc_say(&c->mem, "%s has %s%s", name, kind, many);
	if (c->overflow_dump)
		return flagged(c, call, d, e);
	if (d == MAKES)
		return acc_say(&c->mem, "%s: output %.*s has %s%s, and none of its inputs has%s",
			name, ACC_PRS(pos), kind, many, h->nan ? " NaN" : "");
	return acc_say(&c->mem, "%s: input %.*s has %s%s, and no recorded op made it", name,
		ACC_PRS(pos), kind, many);
}

static const char *
rule_of(enum role d)
{
	static const char *const rules[] = {[MAKES] = "overflow",
		[INSIDE] = "inside",
		[FLAGGED] = "flagged",
		[GETS] = "arrived"};
	return rules[d];
}

static int
ask_harm(struct acc_case *c, struct begin *b, struct acc_err *e)
{
	if (b->harmless == NULL)
		b->harmless = b->role == GETS ? "" : acc_harmless(c, b->call, e);
	if (b->harmless == NULL)
		return e->code != 0 ? e->code : acc_nomem(e);
	return 0;
}

/* " in 12 of its 128 elements", where they were counted. */
static const char *
how_many(struct acc_case *c, const struct acc_rec *r, const struct acc_item *it)
{
	static const char *const keys[] = {"s.nan", "s.posinf", "s.neginf"};
	const struct acc_val *shape = acc_get(r, "", "shape");
	double n = 0, x;
	uint64_t all;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		n += acc_as_f64(acc_get(r, "", keys[i]), &x) ? x : 0;
	if (!(n > 0) || it->kind != ACC_ITEM_TENSOR || shape == NULL || shape->type != ACC_V_INTS ||
		!acc_count(shape->ints, shape->n, &all))
		return "";
	return acc_say(&c->mem, " in %.0f of its %llu elements", n, (unsigned long long)all);
}

static int
say(struct acc_case *c, struct begin *b, struct acc_err *e)
{
	const uint32_t call = b->call;
	const struct holds *h = &b->holds;
	const enum role d = b->role;
	bool made = d != GETS;
	const struct acc_call *k = &c->call[call];
	struct acc_item *it = &c->item[h->item];
	struct acc_rec *r;
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	if (src == NULL || where == NULL || ask_harm(c, b, e) < 0)
		return e->code != 0 ? e->code : acc_nomem(e);
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	struct acc_str pos = acc_get_text(r, "", "pos");
	struct acc_finding *f = acc_case_find(c, "overflow", e);
	if (f == NULL)
		return ACC_ENOMEM;
	const char *what = made ? "output" : "input", *sep = src[0] != '\0' ? "; at " : "";
	acc_finding_of(f, k);
	f->io = made ? "out" : "in";
	f->pos = acc_arena_copy(&c->mem, pos.p, pos.n);
	f->rule = rule_of(d);
	f->stack = stack;
	const char *many = how_many(c, r, it);
	const char *text = many == NULL ? NULL : sentence(c, call, h, d, acc_str(f->pos), many, e);
	if (text == NULL)
		return e->code != 0 ? e->code : acc_nomem(e);
	f->bad = b->harmless[0] == '\0';
	f->doubtful = !f->bad;
	f->text = acc_say(&c->mem, "%s%s%s%s%s%s", where, text, sep, src, f->bad ? "" : "; ",
		b->harmless);
	const char **why = acc_alloc(&c->mem, sizeof *why);
	if (f->text == NULL || why == NULL)
		return acc_nomem(e);
	*why = f->text;
	struct acc_verdict v = {.level = f->bad ? "error" : "warning",
		.rule = what,
		.why = why,
		.nwhy = 1};
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

/* Is all known of what it was given and made? */
static bool
is_known(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && !c->item[i].a_known)
			return false;
	return true;
}

/* The recorder kept this op call since the device's flag was raised. */
static enum role
flag(const struct acc_case *c, uint32_t call, const struct holds *in, struct holds *h)
{
	bool odd = in->nan || in->inf || in->full, made = h->item != ACC_NOCALL;
	if (!made)
		h->item = c->call[call].last;
	return odd || !is_known(c, call) ? FLAGGED : made ? MAKES : INSIDE;
}

/* What the other ranks that take part in a communication give to it. */
static void
look_around(const struct acc_case *c, const struct acc_ranks *t, uint32_t call, struct holds *in)
{
	struct holds other;
	for (uint32_t p = acc_partner(t, call, call); p != ACC_NOCALL;
		p = acc_partner(t, call, p)) {
		look(c, p, false, &other);
		in->nan |= other.nan;
		in->inf |= other.inf;
		in->full |= other.full;
	}
}

/* Does a communication put out what is known, and odd nowhere? Then what it was given was there to be filled, as that of
 * broadcast is on all ranks but one. */
static bool
is_replaced(const struct acc_case *c, uint32_t call, const struct holds *out)
{
	const struct acc_call *k = &c->call[call];
	bool known = false;
	for (uint32_t i = k->first; i <= k->last; i++)
		known |= c->item[i].call == call && acc_is_output(&c->item[i]) &&
			 c->item[i].a_known;
	return known && out->item == ACC_NOCALL && acc_is_communication(k);
}

static enum role
role(const struct acc_case *c, const struct acc_ranks *t, uint32_t call, struct holds *h)
{
	struct holds in;
	look(c, call, false, &in);
	look(c, call, true, h);
	if (c->overflow_dump && c->call[call].keyed)
		return flag(c, call, &in, h);
	if (h->item != ACC_NOCALL && asked_for(c, call, h))
		return FINE;
	/* A mask may come in full of -Inf, but NaN comes from somewhere. */
	if (in.nan && c->item[in.item].kind == ACC_ITEM_TENSOR) {
		/* What is moved may be memory that nobody has set, such as what is gathered into: who computes with it is
		 * given NaN. */
		if (is_replaced(c, call, h) ||
			(c->call[call].cls == ACC_OP_MOVE && !c->call[call].backward &&
				!acc_is_communication(&c->call[call])))
			return FINE;
		*h = in;
		return GETS;
	}
	if (acc_is_communication(&c->call[call]))
		look_around(c, t, call, &in);
	bool odd = in.nan || in.inf || in.full;
	if ((h->nan && !in.nan) || (h->inf && !in.inf && !in.nan) || (h->full && !odd))
		return MAKES;
	return FINE;
}

struct begins {
	struct begin *v;
	uint32_t n;
	size_t cap;
};

static int
collect(const struct acc_case *c, const struct acc_ranks *t, struct begins *b)
{
	uint32_t clean = 0;
	bool begun = false;
	for (uint32_t i = 0; i < c->ncall; i++) {
		struct holds h;
		if (i == 0 || c->call[i].segment != c->call[i - 1].segment) {
			clean = 0;
			begun = false;
		}
		enum role d = role(c, t, i, &h);
		clean += d == FINE && !begun;
		if (d == FINE || (d == GETS && begun))
			continue;
		if (!ACC_ROOM(b->v, b->cap, b->n + 1, NULL))
			return ACC_ENOMEM;
		b->v[b->n++] = (struct begin){i, clean, d, h, NULL};
		begun = true;
	}
	return 0;
}

/* "; of 3 tensors nothing is known ...", or "". */
static const char *
unmeasured(struct acc_case *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i))
		n += c->item[i].kind == ACC_ITEM_TENSOR && !c->item[i].a_known;
	return n == 0 ? ""
		      : acc_say(&c->mem,
				"; of %u tensor%s nothing is known: no statistics"
				" were recorded (accmetric measures them)",
				n, n == 1 ? "" : "s");
}

/* Where it began, and how far all is clean there. */
static int
say_begin(struct acc_case *c, struct begins *b, uint32_t best, struct acc_err *e)
{
	int rc = best == ACC_NOCALL ? 0 : say(c, &b->v[best], e);
	struct acc_finding *f = rc < 0 ? NULL : acc_case_find(c, "clean", e);
	if (f == NULL)
		return rc < 0 ? rc : ACC_ENOMEM;
	uint32_t n = best == ACC_NOCALL ? c->ncall : b->v[best].clean;
	const char *unknown = unmeasured(c);
	if (unknown == NULL)
		return acc_nomem(e);
	f->value = n;
	f->text = acc_say(&c->mem,
		c->ncall == 0        ? "there is nothing to judge"
		: best == ACC_NOCALL ? "%u op call%s: none makes NaN or Inf from finite numbers%s"
		: c->overflow_dump && n == 0
			? "it is the first that the recorder kept%.0u%.0s%s"
			: "%u earlier op call%s without NaN or Inf of their own%s",
		n, n == 1 ? "" : "s", unknown);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* The other ranks, and what else overflows, as far as is wanted. */
static int
say_others(struct acc_case *c, const struct acc_ranks *t, struct begins *b, uint32_t best,
	struct acc_err *e)
{
	uint32_t *first = malloc(((size_t)b->n + 1) * sizeof *first), n = 0, said = 1;
	/* Unless told otherwise, all that the recorder kept since it overflows; else the first. */
	uint32_t most = c->opt.overflows != ACC_OVERFLOWS ? c->opt.overflows : !c->overflow_dump;
	if (first == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < b->n; i++)
		if (i == 0 || c->call[b->v[i].call].segment != c->call[b->v[i - 1].call].segment)
			first[n++] = b->v[i].call;
	int rc = acc_say_ranks(c, t, b->v[best].call, first, n, "overflows", e);
	for (uint32_t i = 0; i < b->n && rc == 0; i++) {
		if (most != 0 && said >= most)
			break;
		if (i == best || b->v[i].role == GETS)
			continue;
		rc = say(c, &b->v[i], e);
		said++;
	}
	free(first);
	return rc;
}

/* Does it matter, and what to do about it. */
static int
say_next(struct acc_case *c, const struct begins *b, uint32_t best, struct acc_err *e)
{
	bool odd = false, full = false;
	for (uint32_t i = 0; i < b->n; i++) {
		odd |= b->v[i].holds.nan || b->v[i].holds.inf;
		full |= b->v[i].holds.full;
	}
	if (!c->call[b->v[best].call].keyed)
		return 0;
	return acc_say_again(c, b->v[best].call,
		full && !odd
			? "whether the overflow matters shows there. The device seems to saturate, so first let it"
			  " show Inf as the bench does (INF_NAN_MODE_ENABLE=1; MindSpore:"
			  " MS_ASCEND_CHECK_OVERFLOW_MODE=INFNAN_MODE); if it matters, try this op in f32, or bf16"
			: "whether the overflow matters shows there; if it does, try this op in f32, or bf16",
		e);
}

/* The first that does harm, or that nothing shows to be harmless; else the first. */
static int
earliest(struct acc_case *c, const struct acc_ranks *t, struct begins *b, uint32_t *best,
	struct acc_err *e)
{
	uint32_t first = ACC_NOCALL;
	for (;;) {
		*best = ACC_NOCALL;
		for (uint32_t i = 0; i < b->n; i++)
			if ((b->v[i].harmless == NULL || b->v[i].harmless[0] == '\0') &&
				(*best == ACC_NOCALL ||
					acc_before(t, c, b->v[i].call, b->v[*best].call)))
				*best = i;
		if (first == ACC_NOCALL)
			first = *best;
		if (*best == ACC_NOCALL || b->v[*best].harmless != NULL)
			break;
		if (ask_harm(c, &b->v[*best], e) < 0)
			return e->code;
	}
	if (*best == ACC_NOCALL)
		*best = first;
	return 0;
}

static int
judge(struct acc_case *c, struct acc_err *e)
{
	struct begins b = {0};
	struct acc_ranks *t = acc_ranks_open(c, e);
	int rc = t == NULL || collect(c, t, &b) < 0 ? acc_nomem(e) : 0;
	uint32_t best = ACC_NOCALL;
	if (rc == 0)
		rc = earliest(c, t, &b, &best, e);
	if (rc == 0)
		rc = say_begin(c, &b, best, e);
	if (rc == 0 && best != ACC_NOCALL)
		rc = say_others(c, t, &b, best, e);
	if (rc == 0 && best != ACC_NOCALL && b.v[best].role != GETS &&
		b.v[best].harmless[0] == '\0')
		rc = say_next(c, &b, best, e);
	acc_ranks_close(t);
	free(b.v);
	return rc < 0 ? rc : acc_say_rest(c, e);
}

/* Tensors of one dump have nothing to be compared with. */
static bool
fits(const struct acc_case *c)
{
	return c->pairs == 0;
}

const struct acc_judge acc_judge_overflow = {
	.fits = fits,
	.judge = judge,
};
