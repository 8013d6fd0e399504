/* Ranks that accfold has made one: a finding speaks of the op call and the rank that were recorded. */
#include "judge/case.h"
#include "acc/say.h"

bool
acc_is_folded(struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind == ACC_ITEM_TENSOR && c->item[i].sides == 3)
			return acc_case_record(c, &c->item[i], &r, NULL) >= 0 &&
			       (acc_get(r, "a.", "fold") != NULL ||
				       acc_get(r, "b.", "fold") != NULL);
	}
	return false;
}

/* The record that a finding is about, or an output of its op call; NULL where there is none. */
static struct acc_rec *
record_of(struct acc_case *c, const struct acc_finding *f)
{
	struct acc_rec *r;
	int64_t found = -1;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		const struct acc_call *k = it->call == ACC_NOCALL ? NULL : &c->call[it->call];
		if (k == NULL || it->kind != ACC_ITEM_TENSOR || (it->sides & 1) == 0 ||
			k->step != f->step || strcmp(acc_call_name(k), f->name) != 0 ||
			acc_case_record(c, it, &r, NULL) < 0)
			continue;
		if (f->io != NULL && f->pos != NULL &&
			acc_str_is(acc_get_text(r, "a.", "io"), f->io) &&
			acc_str_is(acc_get_text(r, "a.", "pos"), f->pos))
			return r;
		found = found < 0 || acc_is_output(it) ? (int64_t)i : found;
	}
	return found < 0 || acc_case_record(c, &c->item[found], &r, NULL) < 0 ? NULL : r;
}

static const char *
told(struct acc_case *c, struct acc_finding *f, const struct acc_rec *r)
{
	struct acc_str key = acc_get_text(r, "a.", "fold.key"),
		       layout = acc_get_text(r, "a.", "fold");
	struct acc_str by = acc_get_text(r, "a.", "fold.by");
	f->rank = acc_get_int(r, "a.", "fold.rank", INT64_MIN);
	if (strcmp(f->what, "next") == 0) {
		const char *bench = f->name;
		f->name = key.n > 0 ? acc_arena_copy(&c->mem, key.p, key.n) : f->name;
		return f->rank == INT64_MIN
			       ? acc_say(&c->mem,
					 "next: record %s in full on all ranks, and on the bench",
					 bench)
			       : acc_say(&c->mem,
					 "next: record %.*s of rank %lld in full, and %s of the bench",
					 key.n > 0 ? (int)key.n : (int)strlen(bench),
					 key.n > 0 ? key.p : bench, (long long)f->rank, bench);
	}
	if (!f->bad)
		return "";
	if (key.n > 0) {
		f->name = acc_arena_copy(&c->mem, key.p, key.n);
		return f->rank == INT64_MIN
			       ? acc_say(&c->mem, "; its ranks recorded it as %.*s", ACC_PRS(key))
			       : acc_say(&c->mem, "; rank %lld recorded it as %.*s",
					 (long long)f->rank, ACC_PRS(key));
	}
	if (by.n > 0)
		return acc_say(&c->mem, "; of all ranks together, as %.*s gives it", ACC_PRS(by));
	if (f->rank != INT64_MIN)
		return acc_say(&c->mem, "; it is rank %lld that is off", (long long)f->rank);
	return acc_say(&c->mem, "; of all ranks together, by the layout %.*s", ACC_PRS(layout));
}

int
acc_say_folded(struct acc_case *c, struct acc_err *e)
{
	/* Of weights it is said where they are judged. */
	bool folded = c->nfinding > 0 && c->passed > 0 && acc_is_folded(c);
	for (uint32_t i = 0; i < c->nfinding && folded; i++) {
		struct acc_finding *f = &c->finding[i];
		bool known = f->rule != NULL && strcmp(f->rule, "reduction") == 0;
		struct acc_rec *r = known || f->name == NULL || f->rank == INT64_MIN
					    ? NULL
					    : record_of(c, f);
		if (r == NULL || acc_get(r, "a.", "fold") == NULL)
			continue;
		const char *text = told(c, f, r);
		bool anew = strcmp(f->what, "next") == 0;
		f->text = text == NULL ? NULL : acc_say(&c->mem, "%s%s", anew ? "" : f->text, text);
		if (f->text == NULL || f->name == NULL)
			return acc_nomem(e);
	}
	return 0;
}
