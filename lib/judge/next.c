/* What to record again, and how: where a dump holds too little to be sure. */
#include "acc/recorder.h"
#include "acc/say.h"
#include "judge/accept.h"
#include "judge/first_bad.h"

#include "judge/case.h"

/* Of the dump that a record of this side is from. */
struct origin {
	struct acc_str format;
	const char *root;
	bool overflow; /* it holds only what overflowed, by a call of ptdbg_ascend's */
};

static int
origin_of(struct acc_case *c, const struct acc_item *it, struct origin *out, struct acc_err *e)
{
	struct acc_rec *r;
	*out = (struct origin){.format = {"", 0}, .root = ""};
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	const char *side = !acc_rec_is(r, "pair") ? "" : (it->sides & 1) ? "a." : "b.";
	struct acc_str src = acc_get_text(r, side, "src");
	const char *id = src.n == 0 ? "" : acc_arena_copy(&c->mem, src.p, src.n);
	if (id == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; id[0] != '\0' && i < c->nitem; i = acc_step(c, i)) {
		if (c->item[i].kind != ACC_ITEM_AUX)
			continue;
		if (acc_case_record(c, &c->item[i], &r, e) < 0)
			return e->code;
		if (!acc_rec_is(r, "source") || !acc_str_is(acc_get_text(r, "", "id"), id))
			continue;
		struct acc_str format = acc_get_text(r, "", "format"),
			       by = acc_get_text(r, "", "interface"),
			       root = acc_get_text(r, "", "root");
		/* Who called accrecord as ptdbg_ascend is called does so again. */
		if (by.n > 0)
			format = ACC_STR("ptdbg");
		out->overflow = acc_str_is(by, "overflow_check");
		out->format = acc_arena_str(&c->mem, format);
		out->root = acc_arena_copy(&c->mem, root.p, root.n);
		return out->format.p == NULL || out->root == NULL ? acc_nomem(e) : 0;
	}
	return 0;
}

/* The last op call of the device in the step and rank of this one. */
static const char *
end_of(const struct acc_case *c, uint32_t call)
{
	uint32_t segment = c->call[call].segment;
	const char *last = acc_call_name(&c->call[call]);
	for (uint32_t i = call; i < c->ncall && c->call[i].segment == segment; i++)
		if (c->call[i].key[ACC_A] != NULL && !c->call[i].grad && !c->call[i].module)
			last = c->call[i].key[ACC_A];
	return last;
}

static bool
was_compared(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t j = k->first; j <= k->last; j++)
		if (c->item[j].call == call && acc_is_measured(&c->item[j]))
			return true;
	return false;
}

/* The last op call before it that was compared, or NULL. It is clean, since none before the
 * culprit is bad. */
static const char *
clean_before(const struct acc_case *c, uint32_t call)
{
	uint32_t segment = c->call[call].segment;
	for (uint32_t i = call; i-- > 0 && c->call[i].segment == segment;) {
		const struct acc_call *k = &c->call[i];
		if (!k->grad && !k->module && was_compared(c, i))
			return acc_call_name(k);
	}
	return NULL;
}

/* What the dump shows of what runs before, as the end of a sentence: nothing that was not seen. */
static const char *
seen_before(struct acc_case *c, uint32_t call)
{
	uint32_t modules = 0, ops = 0, unseen = 0;
	bool elements = true;
	for (uint32_t i = call; i-- > 0 && c->call[i].segment == c->call[call].segment;) {
		const struct acc_call *k = &c->call[i];
		bool compared = was_compared(c, i);
		unseen += !compared;
		ops += compared && !k->module;
		modules += compared && k->module;
		for (uint32_t j = k->first; j <= k->last; j++)
			elements &= c->item[j].call != i || c->item[j].measure != ACC_BY_STAT;
	}
	if (modules + ops == 0)
		return "";
	return acc_say(&c->mem, "; %s %s clean%s",
		ops == 0     ? "the modules before it"
		: unseen > 0 ? "what was compared before it"
			     : "what runs before",
		ops == 0 ? "are" : "is", elements ? "" : ", as far as statistics show");
}

static const char *
after(const struct acc_case *c, const char *last, uint32_t call)
{
	uint32_t segment = c->call[call].segment;
	for (uint32_t i = call; i + 1 < c->ncall && c->call[i + 1].segment == segment; i++)
		if (strcmp(acc_call_name(&c->call[i]), last) == 0)
			return acc_call_name(&c->call[i + 1]);
	return NULL;
}

/* What would tell more about this suspect? false: nothing. */
static bool
what(const struct scan *s, const struct suspect *x, struct acc_again *g, const char **why)
{
	const struct acc_case *c = s->c;
	const struct acc_item *it = &c->item[x->item];
	const struct acc_call *k = &c->call[x->blame];
	const char *before = clean_before(c, x->call);
	*g = (struct acc_again){.level = "L1",
		.step = k->step,
		.rank = k->by_proc ? INT64_MIN : k->rank};
	g->first = g->last = acc_call_name(k);
	if (it->measure == ACC_BY_SUM) {
		g->statistics = true;
		g->range = true;
		g->last = end_of(c, x->blame);
		*why = "checksums show that something differs, not how much";
	} else if (k->module) {
		g->level = "mix";
		*why = "this is a module: only a dump of the op calls inside can tell which of them";
	} else if (x->role == ROLE_IN && x->producer == ACC_NOCALL && !it->weight &&
		   x->sum == NULL && x->blame == x->call && before != NULL) {
		g->range = true;
		g->first = before;
		*why = "the producer of its bad input is not in this dump";
	} else if (it->measure == ACC_BY_STAT) {
		if (x->producer != ACC_NOCALL && x->blame == x->call)
			g->first = acc_call_name(&c->call[c->item[x->producer].call]);
		*why = "statistics do not show single elements";
	} else if (x->unseen && !x->audit) {
		*why = "not all of its inputs could be compared";
	} else {
		return false;
	}
	return true;
}

/* The finding: this call, recorded so, because of `why`. */
static int
say(struct acc_case *c, uint32_t call, const struct acc_item *it, struct acc_again *g,
	const char *why, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	struct origin from;
	if (origin_of(c, it, &from, e) < 0)
		return e->code;
	const struct acc_recorder *by = acc_recorder_of(from.format);
	g->overflow = g->overflow || from.overflow;
	const char *how = by->again(&c->mem, g), *where = acc_say_where(c, k);
	if (g->range && !g->statistics && by->risks)
		why = acc_got(acc_say(&c->mem,
			"%s; msprobe 26 leaves out views, cat, clamp, empty and to, unless risk_level is ALL",
			why));
	const char **names = acc_alloc(&c->mem, 2 * sizeof *names);
	struct acc_finding *f = names == NULL ? NULL : acc_case_find(c, "next", e);
	if (how == NULL || where == NULL || f == NULL)
		return acc_nomem(e);
	names[0] = g->first;
	names[1] = g->last;
	f->name = g->first;
	f->rule = g->range ? "range" : "list";
	f->ranked = names;
	f->nranked = strcmp(g->first, g->last) == 0 ? 1 : 2;
	f->step = k->step;
	f->rank = k->rank;
	f->settings = acc_recorder_settings(by, &c->mem, g, from.root, &f->settings_name);
	if (f->settings == NULL)
		return acc_nomem(e);
	if (f->settings[0] == '\0')
		f->settings = f->settings_name = NULL;
	const char *again = g->statistics ? "its statistics" : "this in full";
	const char *sep = how[0] == '\0' ? "" : ", ";
	f->text = acc_say(&c->mem, "next: %srecord %s on both sides%s%s: %s", where, again, sep,
		how, why);
	if (f->text == NULL)
		return acc_nomem(e);
	return g->range && !g->statistics && by->risks ? acc_rests_on(c, f, "msprobe-focus-risk", e)
						       : 0;
}

/* What to try where 16 bits were too narrow; "" where they were not. */
static const char *
wider(struct scan *s, const struct suspect *x)
{
	struct acc_case *c = s->c;
	const struct acc_item *it = &c->item[x->item];
	const enum acc_dtype t = (enum acc_dtype)it->dtype[ACC_A];
	bool over = it->nonfinite && !it->a_nan && (it->a_inf || it->saturated || it->b_overflow);
	const struct acc_call *k = &c->call[x->blame];
	/* A mask is asked for. */
	if (x->role != ROLE_OUT || !over || k->cls == ACC_OP_MOVE || k->cls == ACC_OP_ALLOC ||
		(t != ACC_F16 && t != ACC_BF16))
		return "";
	return acc_say(&c->mem, "%s holds no more than %.6g: try this op in f32%s, %s",
		acc_dtype_of(t)->name, acc_dtype_of(t)->max, t == ACC_F16 ? " or bf16" : "",
		it->saturated || it->b_overflow ? "on both sides, since the bench overflows, too"
						: "since the bench stays below");
}

/* Everything was recorded, and it is an overflow. */
static int
say_dtype(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[x->blame];
	const char *wide = wider(s, x), *where = acc_say_where(c, k);
	if (wide == NULL || where == NULL)
		return acc_nomem(e);
	if (wide[0] == '\0')
		return 0;
	struct acc_finding *f = acc_case_find(c, "next", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->name = acc_call_name(k);
	f->rule = "dtype";
	f->step = k->step;
	f->rank = k->rank;
	f->text = acc_say(&c->mem, "next: %s%s: %s", where, f->name, wide);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_next(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct suspect *x = &s->suspect[chosen];
	struct acc_again g;
	const char *why;
	const int node = acc_is_node(c, &c->item[x->item], e);
	if (!c->call[x->blame].keyed || node != 0)
		return node < 0 ? node : 0;
	if (!what(s, x, &g, &why))
		return say_dtype(s, x, e);
	g.end = after(c, g.last, x->blame);
	const char *before = seen_before(c, x->call), *wide = wider(s, x);
	why = before == NULL || wide == NULL ? NULL
					     : acc_say(&c->mem, "%s%s%s%s", why, before,
						       wide[0] != '\0' ? "; " : "", wide);
	return why == NULL ? acc_nomem(e) : say(c, x->blame, &c->item[x->item], &g, why, e);
}

int
acc_say_again(struct acc_case *c, uint32_t call, const char *why, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	const char *name = acc_call_name(k);
	struct acc_again g = {.level = "L1",
		.first = name,
		.last = name,
		.overflow = c->overflow_dump,
		.end = after(c, name, call),
		.step = k->step,
		.rank = k->by_proc ? INT64_MIN : k->rank};
	return say(c, call, &c->item[k->first], &g, why, e);
}
