/* What the user selected. */
#include "dump/ctx.h"

static bool
any_glob(const char *const *pattern, size_t n, struct acc_str s)
{
	for (size_t i = 0; i < n; i++)
		if (acc_glob(pattern[i], s))
			return true;
	return false;
}

static bool
has(const int64_t *list, size_t n, int64_t v)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return n == 0;
}

bool
acc_dump_wants(const struct acc_dump_ctx *c, int64_t step, int64_t rank)
{
	if (c->census != NULL) {
		const struct acc_str key = {(const char *)&rank, sizeof rank};
		/* What finds no memory is counted, so that it shows. */
		if (rank >= 0 && acc_map_put(c->census, key, 0) == NULL)
			c->census->keys.lost = true;
		return false;
	}
	return (step < 0 || has(c->sel.steps, c->sel.nsteps, step)) &&
	       (rank < 0 || has(c->sel.ranks, c->sel.nranks, rank));
}

static bool
is_end(const char *pattern, struct acc_str key, struct acc_str op)
{
	return acc_glob(pattern, key) || acc_glob(pattern, op);
}

/* Where a source stands in the range from..to, now that a record of op call `key` comes. */
static bool
in_range(struct dump_src *s, const struct acc_select *sel, struct acc_str key, struct acc_str op)
{
	uint64_t h = acc_hash(key.p, key.n);
	if (s->key == h && s->range != RANGE_NEW)
		return s->range != RANGE_BEFORE && s->range != RANGE_AFTER;
	s->key = h;
	if (s->range == RANGE_NEW)
		s->range = sel->from == NULL ? RANGE_IN : RANGE_BEFORE;
	if (s->range == RANGE_LAST)
		s->range = RANGE_AFTER;
	if (s->range == RANGE_BEFORE && is_end(sel->from, key, op))
		s->range = RANGE_IN;
	if (s->range == RANGE_IN && sel->to != NULL && is_end(sel->to, key, op))
		s->range = RANGE_LAST;
	return s->range != RANGE_BEFORE && s->range != RANGE_AFTER;
}

bool
acc_dump_selected(struct acc_dump_ctx *c, struct dump_src *s, const struct acc_rec *r,
	const char *prefix)
{
	const struct acc_select *sel = &c->sel;
	if (!c->selective)
		return true;
	/* A point of a curve has a step of its own; its source has all of them. */
	int64_t step = s->step < 0 ? acc_get_int(r, prefix, "step", -1) : s->step;
	if (!acc_dump_wants(c, step, s->rank < 0 ? s->proc : s->rank))
		return false;
	struct acc_str key = acc_get_text(r, prefix, "key"), op = acc_get_text(r, prefix, "op");
	if ((sel->from != NULL || sel->to != NULL) && (key.n == 0 || !in_range(s, sel, key, op)))
		return false;
	if (sel->nkinds > 0 && !any_glob(sel->kinds, sel->nkinds, r->kind) &&
		!any_glob(sel->kinds, sel->nkinds, acc_get_text(r, prefix, "kind")))
		return false;
	if (sel->npasses > 0 &&
		!any_glob(sel->passes, sel->npasses, acc_get_text(r, prefix, "pass")))
		return false;
	if (sel->nios > 0 && !any_glob(sel->ios, sel->nios, acc_get_text(r, prefix, "io")))
		return false;
	return sel->nops == 0 || any_glob(sel->ops, sel->nops, key) ||
	       any_glob(sel->ops, sel->nops, acc_get_text(r, prefix, "tag")) ||
	       any_glob(sel->ops, sel->nops, acc_get_text(r, prefix, "tag.raw")) ||
	       any_glob(sel->ops, sel->nops, op) ||
	       any_glob(sel->ops, sel->nops, acc_get_text(r, "", "name"));
}
