/* What to record again, and how: where a dump holds too little to be sure. */
#include "first_bad.h"

#include "case.h"

/* The recorder's words for a list or a range of op calls, as its own setting spells it. */
static const char *
setting(struct acc_case *c, const char *task, const char *how, const char *first, const char *last)
{
	const char *names = strcmp(first, last) == 0
		? acc_arena_printf(&c->mem, "[\"%s\"]", first)
		: acc_arena_printf(&c->mem, "[\"%s\", \"%s\"]", first, last);
	if (names == NULL)
		return NULL;
	/* ptdbg_ascend joins the parts of a name by underscores. */
	return strchr(first, '.') != NULL
		? acc_arena_printf(&c->mem, "\"task\": \"%s\", \"%s\": %s", task, how, names)
		: acc_arena_printf(&c->mem, "mode=\"%s\", scope=%s%s", how, names,
			strcmp(task, "statistics") == 0 ? ", summary_only=True" : "");
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

static struct acc_finding *
find_next(struct acc_case *c, const char *rule, const char *first, const char *last,
	struct acc_err *e)
{
	const char **names = acc_alloc(&c->mem, 2 * sizeof *names);
	struct acc_finding *f = names == NULL ? NULL : acc_case_find(c, "next", e);
	if (f == NULL)
		return NULL;
	names[0] = first;
	names[1] = last;
	f->name = first;
	f->rule = rule;
	f->ranked = names;
	f->nranked = strcmp(first, last) == 0 ? 1 : 2;
	return f;
}

/* Of statistics, the op call alone (and what made its bad input) in full; of checksums,
 * statistics from the first difference on: those tell where rounding ends. */
int
acc_say_next(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct suspect *x = &s->suspect[chosen];
	const struct acc_call *k = &c->call[x->blame];
	bool sums = c->item[x->item].measure == ACC_BY_SUM;
	if (!k->keyed || k->module || (!sums && c->item[x->item].measure != ACC_BY_STAT))
		return 0;
	const char *first = acc_call_name(k), *last = sums ? end_of(c, x->blame) : first;
	if (!sums && x->producer != ACC_NOCALL && x->blame == x->call)
		first = acc_call_name(&c->call[c->item[x->producer].call]);
	const char *rule = sums ? "range" : "list";
	const char *how = setting(c, sums ? "statistics" : "tensor", rule, first, last);
	const char *where = acc_say_where(c, k);
	struct acc_finding *f = find_next(c, rule, first, last, e);
	if (how == NULL || where == NULL || f == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	f->step = k->step;
	f->rank = k->rank;
	f->text = acc_arena_printf(&c->mem, sums
		? "next: %srecord statistics from here on, on both sides (%s): checksums tell that"
		  " something differs, not how much; what runs before is clean"
		: "next: %srecord this in full, on both sides (%s): statistics do not show single"
		  " elements; what runs before is clean", where, how);
	return f->text == NULL ? acc_fail(e, ACC_ENOMEM, "out of memory") : 0;
}
