/* Ranks and steps are judged where their dumps lie; this joins what those judges found. */
#include "acc/judge.h"
#include "acc/say.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/first_bad.h"

static const char received[] = "received";

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
	f->audit_rule = text_of(c, r, "audit.rule");
	f->witness = text_of(c, r, "witness");
	f->limit_from = text_of(c, r, "limit_from");
	f->text = acc_got_said(&c->mem, r, "", "text");
	f->stack = text_of(c, r, "stack");
	f->behaviour = text_of(c, r, "behaviour");
	f->settings = text_of(c, r, "settings");
	f->settings_name = text_of(c, r, "settings.name");
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
	/* What is missing is bad, but for records that could not be read or measured. */
	f->bad |= strcmp(f->what, "missing") == 0 && f->rule != NULL &&
		  strcmp(f->rule, "incomplete") != 0 && strcmp(f->rule, "unmeasured") != 0;
	return 0;
}

/* --- the stages of a pipeline, each judged alone --- */

static bool
is_stage(const struct acc_finding *f)
{
	return f->rule != NULL && strcmp(f->what, "missing") == 0 && strcmp(f->rule, "stage") == 0;
}

/* Did a judge see this rank? */
static bool
has_rank(const struct acc_case *c, int64_t rank)
{
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (c->finding[i].rank == rank)
			return true;
	return false;
}

/* Are the ranks that this one lacks those of other judges? Where it does not know them, any others. */
static bool
is_here(const struct acc_case *c, const struct acc_finding *f)
{
	int64_t rank;
	for (uint32_t i = 0; i < f->nranked; i++)
		if (!acc_str_int(acc_str(f->ranked[i]), &rank) || !has_rank(c, rank))
			return false;
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (c->finding[i].rank != INT64_MIN && c->finding[i].rank != f->rank)
			return true;
	return false;
}

static void
drop_stages(struct acc_case *c)
{
	static const char here[] = "here";
	uint32_t kept = 0;
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (is_stage(&c->finding[i]) && is_here(c, &c->finding[i]))
			c->finding[i].rule = here;
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (c->finding[i].rule != here)
			c->finding[kept++] = c->finding[i];
	c->relieved = kept < c->nfinding;
	c->nfinding = kept;
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

/* --- what many ranks say alike --- */

/* What a finding says but for numbers, and of whom. */
static uint64_t
gist(const struct acc_finding *f)
{
	const char *const own[] = {f->what, f->name, f->rule, f->io, f->pos};
	uint64_t h = acc_hash(&f->step, sizeof f->step) ^ f->bad;
	/* Of stages, how much of each was compared is of interest. */
	if (strcmp(f->what, "clean") == 0 && f->value >= 0 && f->value < 0x1p63)
		h = acc_id_with((uint64_t)f->value, h);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		h = acc_id_with(own[i] == NULL ? 0 : acc_hash(own[i], strlen(own[i])), h);
	char word[256];
	size_t n = 0;
	for (const char *p = f->text; *p != '\0'; p++) {
		if (strchr("0123456789.,", *p) != NULL)
			continue;
		word[n++] = *p;
		if (n == sizeof word || p[1] == '\0') {
			h = acc_id_with(acc_hash(word, n), h);
			n = 0;
		}
	}
	return acc_id_with(acc_hash(word, n), h);
}

struct said {
	int64_t rank;
	uint32_t by; /* the finding that is kept for it */
};

ACC_ORDER_2(by_finding, struct said, by, rank)

/* "rank 3: " or "ranks 0-2, 4: " before what is said; of ranks that differ in numbers, the first one's. */
static const char *
of_ranks(struct acc_case *c, const struct acc_finding *f, const struct acc_which *w, bool same,
	bool several)
{
	const bool named = strncmp(f->text, "rank ", 5) == 0;
	if (w->n > 1 && named)
		return acc_say(&c->mem, "ranks %s, as %s", w->text, f->text);
	if (w->n > 1)
		return same ? acc_say(&c->mem, "ranks %s: %s", w->text, f->text)
			    : acc_say(&c->mem, "ranks %s, as rank %lld: %s", w->text,
				      (long long)f->rank, f->text);
	return named || !several ? f->text
				 : acc_say(&c->mem, "rank %lld: %s", (long long)f->rank, f->text);
}

/* One finding for all ranks that say so; a judge that saw one rank had no need to say which. */
static int
gather(struct acc_case *c, struct acc_err *e)
{
	const uint32_t n = c->nfinding;
	struct acc_ids seen = {0};
	struct said *v = malloc(n * sizeof *v);
	bool *differs = calloc(n, sizeof *differs);
	uint32_t m = 0, kept = 0;
	int64_t low = INT64_MAX, high = INT64_MIN;
	int rc = v == NULL || differs == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct acc_finding *f = &c->finding[i];
		uint32_t at = kept;
		if (f->rank != INT64_MIN && f->text != NULL) {
			const uint64_t id = gist(f);
			const uint32_t old = acc_ids_get(&seen, id);
			at = old == ACC_NOID ? kept : old;
			rc = old == ACC_NOID ? acc_ids_put(&seen, id, kept, false, e) : 0;
			v[m++] = (struct said){f->rank, at};
			low = f->rank < low ? f->rank : low;
			high = f->rank > high ? f->rank : high;
			differs[at] |= at != kept && strcmp(c->finding[at].text, f->text) != 0;
		}
		if (at == kept)
			c->finding[kept++] = *f;
	}
	if (m > 0)
		qsort(v, m, sizeof *v, by_finding);
	c->nfinding = rc == 0 ? kept : n;
	for (uint32_t i = 0, end = 0; i < m && rc == 0; i = end) {
		struct acc_finding *f = &c->finding[v[i].by];
		struct acc_which w = {.text = ""};
		for (; end < m && v[end].by == v[i].by; end++)
			if (end == i || v[end].rank != v[end - 1].rank)
				acc_which_add(&c->mem, &w, v[end].rank);
		acc_which_end(&c->mem, &w);
		f->text = w.text == NULL ? NULL : of_ranks(c, f, &w, !differs[v[i].by], low < high);
		rc = f->text == NULL ? acc_nomem(e) : 0;
	}
	acc_ids_release(&seen);
	free(differs);
	free(v);
	return rc;
}

int
acc_join(struct acc_case *c, struct acc_err *e)
{
	int rc = acc_take_findings(c, e);
	if (rc < 0 || c->nfinding < 2)
		return rc;
	drop_stages(c);
	qsort(c->finding, c->nfinding, sizeof *c->finding, earlier);
	const struct acc_finding *from = &c->finding[0];
	for (uint32_t i = 1; i < c->nfinding && from->bad; i++) {
		struct acc_finding *f = &c->finding[i];
		if (!f->bad || f->step != from->step || f->rank == from->rank ||
			strcmp(f->what, from->what) != 0 ||
			!(communicates(f) || f->comm > from->comm))
			continue;
		f->what = "ranks";
		f->rule = received;
		f->bad = false;
	}
	rc = gather(c, e);
	for (uint32_t i = 1; i < c->nfinding && rc == 0; i++) {
		struct acc_finding *f = &c->finding[i];
		if (f->rule != received)
			continue;
		f->text = acc_say(&c->mem, "received through communication: %s",
			f->text == NULL ? "" : f->text);
		rc = f->text == NULL ? acc_nomem(e) : 0;
	}
	return rc;
}
