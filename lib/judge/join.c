/* Ranks and steps are judged where their dumps lie; this joins what those judges found. */
#include "acc/judge.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

static const char *
text_of(struct acc_case *c, const struct acc_rec *r, const char *key)
{
	struct acc_str s;
	return acc_as_text(acc_get(r, "", key), &s) ? acc_arena_copy(&c->mem, s.p, s.n) : NULL;
}

static double
number_of(const struct acc_rec *r, const char *key)
{
	double v = NAN;
	acc_as_f64(acc_get(r, "", key), &v);
	return v;
}

static int
take(struct acc_case *c, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_finding *f = acc_case_find(c, text_of(c, r, "what"), e);
	if (f == NULL)
		return ACC_ENOMEM;
	if (f->what == NULL)
		f->what = "unknown";
	f->name = text_of(c, r, "name");
	f->io = text_of(c, r, "io");
	f->pos = text_of(c, r, "pos");
	f->rule = text_of(c, r, "rule");
	f->limit_from = text_of(c, r, "limit_from");
	f->text = acc_got_said(&c->mem, r, "", "text");
	f->stack = text_of(c, r, "stack");
	f->step = acc_get_int(r, "", "step", INT64_MIN);
	f->rank = acc_get_int(r, "", "rank", INT64_MIN);
	f->seq = acc_get_int(r, "", "seq", INT64_MIN);
	f->comm = acc_get_int(r, "", "comm", INT64_MIN);
	f->value = number_of(r, "value");
	f->limit = number_of(r, "limit");
	f->confidence = number_of(r, "confidence");
	const struct acc_val *v = acc_get(r, "", "ranked");
	if (v != NULL && v->type == ACC_V_TEXTS && v->n > 0) {
		const char **list = acc_alloc(&c->mem, v->n * sizeof *list);
		if (list == NULL)
			return acc_nomem(e);
		for (uint32_t i = 0; i < v->n; i++) {
			list[i] = acc_arena_copy(&c->mem, v->texts[i].p, v->texts[i].n);
			if (list[i] == NULL)
				return acc_nomem(e);
		}
		f->ranked = list;
		f->nranked = v->n;
	}
	static const char *const bad[] = {"culprit", "overflow", "difference", "rule"};
	static const char *const doubtful[] = {"unmatched", "missing", "warning"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		f->bad |= strcmp(f->what, bad[i]) == 0;
	for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++)
		f->doubtful |= strcmp(f->what, doubtful[i]) == 0;
	return 0;
}

static bool
communicates(const struct acc_finding *f)
{
	return f->name != NULL && acc_str_starts(acc_str(f->name), "Distributed.");
}

/* What is bad comes first, the earliest of it before all, as communication orders the ranks; the
 * rest stays in order. */
static int
earlier(const void *pa, const void *pb)
{
	const struct acc_finding *a = pa, *b = pb;
	if (a->bad != b->bad)
		return a->bad ? -1 : 1;
	if (a->bad) {
		if (a->step != b->step)
			return a->step < b->step ? -1 : 1;
		if (a->comm != b->comm)
			return a->comm < b->comm ? -1 : 1;
		if (communicates(a) != communicates(b))
			return communicates(a) ? -1 : 1;
		if (a->seq != b->seq)
			return a->seq < b->seq ? -1 : 1;
	}
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->text == NULL ? "" : a->text, b->text == NULL ? "" : b->text);
}

bool
acc_is_judged(const struct acc_rec *finding)
{
	static const char *const whats[] = {"culprit", "overflow", "difference", "rule", "warning",
		"clean"};
	struct acc_str what = acc_get_text(finding, "", "what");
	for (size_t i = 0; i < sizeof whats / sizeof *whats; i++)
		if (acc_str_is(what, whats[i]))
			return true;
	return false;
}

int
acc_take_findings(struct acc_case *c, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_FINDING)
			continue;
		rc = acc_case_record(c, &c->item[i], &r, e);
		if (rc == 0)
			rc = take(c, r, e);
	}
	return rc;
}

/* A judge that saw one rank had no need to say which. */
static int
name_ranks(struct acc_case *c)
{
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (c->finding[i].rank != INT64_MIN) {
			low = c->finding[i].rank < low ? c->finding[i].rank : low;
			high = c->finding[i].rank > high ? c->finding[i].rank : high;
		}
	for (uint32_t i = 0; i < c->nfinding && low < high; i++) {
		struct acc_finding *f = &c->finding[i];
		if (f->rank == INT64_MIN || f->text == NULL || strncmp(f->text, "rank ", 5) == 0)
			continue;
		f->text = acc_say(&c->mem, "rank %lld: %s", (long long)f->rank, f->text);
		if (f->text == NULL)
			return ACC_ENOMEM;
	}
	return 0;
}

int
acc_join(struct acc_case *c, struct acc_err *e)
{
	int rc = acc_take_findings(c, e);
	if (rc < 0 || c->nfinding < 2)
		return rc;
	qsort(c->finding, c->nfinding, sizeof *c->finding, earlier);
	if (name_ranks(c) < 0)
		return acc_nomem(e);
	const struct acc_finding *from = &c->finding[0];
	for (uint32_t i = 1; i < c->nfinding && from->bad; i++) {
		struct acc_finding *f = &c->finding[i];
		if (!f->bad || f->step != from->step || f->rank == from->rank ||
			strcmp(f->what, from->what) != 0 ||
			!(communicates(f) || f->comm > from->comm))
			continue;
		f->what = "ranks";
		f->rule = "received";
		f->bad = false;
		f->text = acc_say(&c->mem, "received through communication: %s",
			f->text == NULL ? "" : f->text);
		if (f->text == NULL)
			return acc_nomem(e);
	}
	return 0;
}
