/* What to record again, and how: where a dump holds too little to be sure. */
#include "first_bad.h"

#include "case.h"

/* What to record: some op calls, or all from the first to the last. */
struct again {
	const char *rule; /* "list", "range" */
	const char *task, *level;
	const char *first, *last;
	const char *end; /* the op call after the last, NULL: none */
	const char *why;
};

/* maca_tools says which op it is of all, and fwd or bwd: torch.nn.Conv1d.6.fwd */
static bool
is_maca(const char *name)
{
	return acc_glob("*.[0-9]*.[fb]wd", acc_str(name));
}

/* The recorder's own words for it. */
static const char *
setting(struct acc_case *c, const struct acc_call *k, const struct again *g)
{
	struct acc_arena *m = &c->mem;
	bool one = strcmp(g->first, g->last) == 0, range = strcmp(g->rule, "range") == 0;
	bool stat = strcmp(g->task, "statistics") == 0;
	if (is_maca(g->first)) {
		const char *end = g->end == NULL ? ", None"
			: acc_arena_printf(m, ", \"%s\"", g->end);
		return end == NULL ? NULL
			: acc_arena_printf(m, "start_record(record_level=%d, op_range=[\"%s\"%s], skip=0)",
				stat ? 1 : 2, g->first, end);
	}
	const char *names = one && !range ? acc_arena_printf(m, "[\"%s\"]", g->first)
		: acc_arena_printf(m, "[\"%s\", \"%s\"]", g->first, g->last);
	if (names == NULL)
		return NULL;
	/* ptdbg_ascend joins the parts of a name by underscores. */
	if (strchr(g->first, '.') == NULL)
		return acc_arena_printf(m, "set_dump_switch(\"ON\", mode=\"%s\", scope=%s%s)", g->rule,
			names, stat ? ", summary_only=True" : "");
	const char *where = "";
	if (k->rank != INT64_MIN && k->step != INT64_MIN && !k->by_proc)
		where = acc_arena_printf(m, "\"rank\": [%lld], \"step\": [%lld], ", (long long)k->rank,
			(long long)k->step);
	return where == NULL ? NULL
		: acc_arena_printf(m, "{\"task\": \"%s\", \"level\": \"%s\", %s\"%s\": {\"%s\": %s}}",
			g->task, g->level, where, g->task, range ? "scope" : "list", names);
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

/* The last op call before it that was compared, or NULL. It is clean, since none before the
 * culprit is bad. */
static const char *
clean_before(const struct acc_case *c, uint32_t call)
{
	uint32_t segment = c->call[call].segment;
	for (uint32_t i = call; i-- > 0 && c->call[i].segment == segment;) {
		const struct acc_call *k = &c->call[i];
		for (uint32_t j = k->first; j <= k->last && !k->grad && !k->module; j++)
			if (c->item[j].call == i && acc_is_measured(&c->item[j]))
				return acc_call_name(k);
	}
	return NULL;
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
what(const struct scan *s, const struct suspect *x, struct again *g)
{
	const struct acc_case *c = s->c;
	const struct acc_item *it = &c->item[x->item];
	const struct acc_call *k = &c->call[x->blame];
	const char *before = clean_before(c, x->call);
	*g = (struct again){.task = "tensor", .level = "L1", .rule = "list"};
	g->first = g->last = acc_call_name(k);
	if (it->measure == ACC_BY_SUM) {
		g->task = "statistics";
		g->rule = "range";
		g->last = end_of(c, x->blame);
		g->why = "checksums tell that something differs, not how much";
	} else if (k->module) {
		g->level = "mix";
		g->why = "this is a module: which op call in it, only a record of those can tell";
	} else if (x->role == ROLE_IN && x->producer == ACC_NOCALL && !it->weight && x->sum == NULL &&
		   x->blame == x->call && before != NULL) {
		g->rule = "range";
		g->first = before;
		g->why = "what makes its bad input is not in this dump, or is hidden in a compiled"
			 " function";
	} else if (it->measure == ACC_BY_STAT) {
		if (x->producer != ACC_NOCALL && x->blame == x->call)
			g->first = acc_call_name(&c->call[c->item[x->producer].call]);
		g->why = "statistics do not show single elements";
	} else if (x->unseen) {
		g->why = "not all of what it was given could be compared";
	} else {
		return false;
	}
	return true;
}

int
acc_say_next(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct suspect *x = &s->suspect[chosen];
	const struct acc_call *k = &c->call[x->blame];
	struct again g;
	if (!(k->keyed || is_maca(acc_call_name(k))) || !what(s, x, &g))
		return 0;
	g.end = after(c, g.last, x->blame);
	const char *how = setting(c, k, &g), *where = acc_say_where(c, k);
	const char **names = acc_alloc(&c->mem, 2 * sizeof *names);
	struct acc_finding *f = names == NULL ? NULL : acc_case_find(c, "next", e);
	if (how == NULL || where == NULL || f == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	names[0] = g.first;
	names[1] = g.last;
	f->name = g.first;
	f->rule = g.rule;
	f->ranked = names;
	f->nranked = strcmp(g.first, g.last) == 0 ? 1 : 2;
	f->step = k->step;
	f->rank = k->rank;
	f->text = acc_arena_printf(&c->mem, "next: %srecord %s on both sides, %s: %s; what runs before is"
		" clean", where, strcmp(g.task, "tensor") == 0 ? "this in full" : "its statistics", how,
		g.why);
	return f->text == NULL ? acc_fail(e, ACC_ENOMEM, "out of memory") : 0;
}
