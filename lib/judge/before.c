/* What a change of the device mended: of what was named before it, what is gone, what is left, and what is
 * new. An op call, or a weight, is known again by its name, step and rank. */
#include "acc/before.h"
#include "acc/judge.h"
#include "acc/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

enum level { FINE, BAD, NAMED };
enum { MOST = 20 }; /* so many are told one by one, the others are counted */

struct then {
	const char *name;
	int64_t step, rank;
	enum level level;
	bool seen; /* it was compared */
	double rms;
};

struct acc_before {
	struct acc_arena mem;
	struct acc_map at; /* name, step and rank -> index */
	struct then *v;
	size_t n, cap;
	size_t calls; /* op calls of the device */
	bool judged;
};

struct acc_before *
acc_before_new(struct acc_err *e)
{
	struct acc_before *b = calloc(1, sizeof *b);
	if (b == NULL)
		acc_nomem(e);
	return b;
}

void
acc_before_free(struct acc_before *b)
{
	if (b == NULL)
		return;
	acc_map_release(&b->at);
	acc_arena_release(&b->mem);
	free(b->v);
	free(b);
}

bool
acc_before_judged(const struct acc_before *b)
{
	return b->judged;
}

/* "NAME<tab>STEP<tab>RANK" in mem. */
static struct acc_str
key_of(struct acc_arena *mem, struct acc_str name, int64_t step, int64_t rank)
{
	const char *s = acc_arena_printf(mem, "%.*s\t%" PRId64 "\t%" PRId64, ACC_PRS(name), step,
		rank);
	return acc_str(s == NULL ? "" : s);
}

static struct then *
get(struct acc_before *b, struct acc_str name, int64_t step, int64_t rank, struct acc_err *e)
{
	const struct acc_str key = key_of(&b->mem, name, step, rank);
	struct then *p = key.n == 0 ? NULL : acc_grow(b->v, &b->cap, b->n + 1, sizeof *p, e);
	const char *copy = p == NULL ? NULL : acc_arena_copy(&b->mem, name.p, name.n);
	if (copy == NULL) {
		acc_nomem(e);
		return NULL;
	}
	b->v = p;
	uint64_t *at = acc_map_put(&b->at, key, b->n);
	if (at == NULL) {
		acc_nomem(e);
		return NULL;
	}
	if (*at == b->n)
		b->v[b->n++] = (struct then){copy, step, rank, FINE, false, NAN};
	return &b->v[*at];
}

static bool
names(struct acc_str what)
{
	static const char *const those[] = {"culprit", "overflow", "difference", "warning"};
	for (size_t i = 0; i < sizeof those / sizeof *those; i++)
		if (acc_str_is(what, those[i]))
			return true;
	return false;
}

/* The name of its op call, or else its own: a weight is of none. */
static struct acc_str
name_of(const struct acc_rec *r, const char *prefix)
{
	const struct acc_str key = acc_get_text(r, prefix, "key");
	return key.n > 0 ? key : acc_get_text(r, prefix, "name");
}

int
acc_before_add(struct acc_before *b, const struct acc_rec *r, struct acc_err *e)
{
	const bool pair = acc_rec_is(r, "pair"), finding = acc_rec_is(r, "finding");
	const char *prefix = pair && acc_get_text(r, "a.", "kind").n > 0 ? "a." : pair ? "b." : "";
	struct acc_str name = finding ? acc_get_text(r, "", "name") : name_of(r, prefix);
	double rms;
	b->judged |= finding && acc_is_judged(r);
	if (name.n == 0 || (finding && !names(acc_get_text(r, "", "what"))) ||
		!(pair || finding || acc_rec_is(r, "tensor") || acc_rec_is(r, "arg")))
		return 0;
	const size_t known = b->n;
	struct then *t = get(b, name, acc_get_int(r, prefix, "step", INT64_MIN),
		acc_get_int(r, prefix, "rank", INT64_MIN), e);
	if (t == NULL)
		return ACC_ENOMEM;
	if (finding) {
		t->level = NAMED;
		return 0;
	}
	b->calls += b->n > known && strcmp(prefix, "b.") != 0 &&
		    acc_get_text(r, prefix, "key").n > 0;
	const struct acc_str bad = acc_get_text(r, "", "bad");
	if (bad.n > 0 && t->level != NAMED)
		t->level = acc_str_is(bad, "error") ? NAMED : BAD;
	t->seen |= !pair || acc_get(r, "", "m.nonfinite") != NULL ||
		   acc_get(r, "", "m.norm_relerr") != NULL || acc_get(r, "", "m.equal") != NULL;
	if (acc_as_f64(acc_get(r, "", "m.err_rms"), &rms) && isfinite(rms))
		t->rms = fmax(t->rms, rms);
	return 0;
}

/* --- now --- */

struct now {
	enum level level;
	bool there, seen;
	double rms;
};

static const struct then *
find(const struct acc_before *b, struct acc_arena *mem, const char *name, int64_t step,
	int64_t rank)
{
	const struct acc_str key = key_of(mem, acc_str(name), step, rank);
	const uint64_t *at = key.n == 0 ? NULL : acc_map_get(&b->at, key);
	return at == NULL ? NULL : &b->v[*at];
}

/* A judge of weights names none in a finding: each that is wrong is. */
static bool
is_error(const struct acc_case *c, const struct acc_item *it)
{
	return it->mark != 0 && strcmp(c->verdict[it->mark - 1].level, "error") == 0;
}

/* What each op call of the older dump is in this one. now[i] is of b->v[i]. */
static int
look(struct acc_case *c, const struct acc_before *b, struct now *now, size_t *calls)
{
	struct acc_arena mem = {0};
	*calls = 0;
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		const char *name = acc_call_name(k);
		const struct then *t = find(b, &mem, name, k->step, k->rank);
		*calls += k->keyed && k->key[ACC_A] != NULL;
		for (uint32_t j = k->first; t != NULL && j <= k->last; j++) {
			const struct acc_item *it = &c->item[j];
			struct now *n = &now[t - b->v];
			if (it->call != i)
				continue;
			n->there |= it->sides & 1;
			n->seen |= (it->sides == 3 && it->measure != ACC_UNMEASURED) ||
				   c->pairs == 0;
			if (it->mark != 0 && n->level != NAMED)
				n->level = is_error(c, it) ? NAMED : BAD;
			if (it->measure == ACC_BY_TENSOR && isfinite(it->rms))
				n->rms = fmax(n->rms, it->rms);
		}
		if (mem.lost)
			break;
	}
	for (uint32_t i = 0; i < c->nfinding && !mem.lost; i++) {
		const struct acc_finding *f = &c->finding[i];
		const struct then *t = f->name == NULL || !names(acc_str(f->what))
					       ? NULL
					       : find(b, &mem, f->name, f->step, f->rank);
		if (t != NULL)
			now[t - b->v].level = NAMED;
	}
	const bool lost = mem.lost;
	acc_arena_release(&mem);
	return lost ? ACC_ENOMEM : 0;
}

static int
say(struct acc_case *c, const char *rule, const char *name, int64_t step, int64_t rank,
	const char *text, struct acc_err *e)
{
	struct acc_finding *f = text == NULL ? NULL : acc_case_find(c, "before", e);
	if (f == NULL)
		return acc_nomem(e);
	f->rule = rule;
	f->name = name;
	f->step = step;
	f->rank = rank;
	f->text = text;
	return 0;
}

/* "rank 0, step 1: " as of any finding. */
static const char *
where(struct acc_case *c, int64_t step, int64_t rank)
{
	const struct acc_call k = {.step = step, .rank = rank};
	return acc_got(acc_say_where(c, &k));
}

static int
say_then(struct acc_case *c, const struct then *t, const struct now *n, struct acc_err *e)
{
	const char *rule = n->level != FINE ? "left" : n->seen ? "gone" : "unseen", *text;
	const char *at = where(c, t->step, t->rank),
		   *name = acc_arena_copy(&c->mem, t->name, (uint32_t)strlen(t->name));
	const char *much = isfinite(t->rms) && isfinite(n->rms)
				   ? acc_got(acc_say(&c->mem,
					     ", off by %.2g (rms) then and %.2g now", t->rms,
					     n->rms))
				   : "";
	if (name == NULL)
		return acc_nomem(e);
	if (n->level == NAMED)
		text = acc_say(&c->mem, "left: %s%s was named before the change, and is now%s", at,
			name, much);
	else if (n->level == BAD)
		text = acc_say(&c->mem,
			"left: %s%s was named before the change; now another is, and it is bad still%s",
			at, name, much);
	else if (n->seen)
		text = acc_say(&c->mem,
			"gone: %s%s was named before the change, and is not bad now%s", at, name,
			much);
	else if (!n->there)
		text = acc_say(&c->mem,
			"gone: %s%s was named before the change, and the device does not call it now",
			at, name);
	else
		text = acc_say(&c->mem,
			"%s%s was named before the change, and was not compared now: whether it is gone"
			" nobody knows",
			at, name);
	return say(c,
		n->seen || n->level != FINE ? rule
		: n->there                  ? "unseen"
					    : "gone",
		name, t->step, t->rank, text, e);
}

/* What is named now and was not then. */
static int
say_new(struct acc_case *c, const struct acc_before *b, const char *name, int64_t step,
	int64_t rank, struct acc_err *e)
{
	const struct then *t = find(b, &c->mem, name, step, rank);
	const char *at = where(c, step, rank);
	if (t != NULL && t->level == NAMED)
		return 0;
	if (t != NULL && t->level == BAD)
		return say(c, "behind", name, step, rank,
			acc_say(&c->mem,
				"left: %s%s was bad before the change, too, but behind what was named then",
				at, name),
			e);
	return say(c, "new", name, step, rank,
		acc_say(&c->mem,
			t != NULL && t->seen
				? "new: %s%s was compared before the change, and was not bad"
				: "new: %s%s was not compared before the change, nor named",
			at, name),
		e);
}

/* Those of findings, then what is wrong beside them. */
static int
say_all_new(struct acc_case *c, const struct acc_before *b, struct acc_err *e)
{
	const uint32_t named = c->nfinding;
	uint32_t n = 0;
	int rc = 0;
	for (uint32_t i = 0; i < named && rc == 0; i++) {
		const struct acc_finding f = c->finding[i];
		if (f.name != NULL && names(acc_str(f.what)))
			rc = say_new(c, b, f.name, f.step, f.rank, e);
	}
	for (uint32_t i = 0; i < c->ncall && rc == 0 && n < MOST; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		bool wrong = false, told = false;
		for (uint32_t j = k->first; j <= k->last; j++)
			wrong |= c->item[j].call == i && is_error(c, &c->item[j]);
		for (uint32_t j = 0; wrong && !told && j < named; j++)
			told = c->finding[j].name != NULL && names(acc_str(c->finding[j].what)) &&
			       strcmp(c->finding[j].name, acc_call_name(k)) == 0;
		if (wrong && !told) {
			n++;
			rc = say_new(c, b, acc_call_name(k), k->step, k->rank, e);
		}
	}
	return rc;
}

static int
say_sum(struct acc_case *c, const struct acc_before *b, const struct now *now, size_t calls,
	struct acc_err *e)
{
	size_t bad = 0, left = 0, more = 0;
	for (size_t i = 0; i < b->n; i++) {
		bad += b->v[i].level != FINE;
		left += b->v[i].level != FINE && now[i].level != FINE;
		more += b->v[i].level == FINE && now[i].level != FINE;
	}
	const char *moved =
		calls == b->calls || b->calls == 0
			? ""
			: acc_got(acc_say(&c->mem,
				  "; the device has %zu op calls now and had %zu, so that the numbers in their"
				  " names may have moved",
				  calls, b->calls));
	return say(c, "sum", NULL, INT64_MIN, INT64_MIN,
		acc_say(&c->mem,
			"before the change %zu op calls or weights were bad: %zu of them are not now, %zu are; %zu that"
			" were not are now%s",
			bad, bad - left, left, more, moved),
		e);
}

int
acc_say_before(struct acc_case *c, struct acc_err *e)
{
	const struct acc_before *b = c->opt.before;
	size_t calls;
	if (b == NULL)
		return 0;
	struct now *now = calloc(b->n + 1, sizeof *now);
	if (now == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < b->n; i++)
		now[i].rms = NAN;
	int rc = look(c, b, now, &calls) < 0 ? acc_nomem(e) : 0;
	for (size_t i = 0, n = 0; i < b->n && rc == 0 && n < MOST; i++)
		if (b->v[i].level == NAMED) {
			rc = say_then(c, &b->v[i], &now[i], e);
			n++;
		}
	if (rc == 0)
		rc = say_all_new(c, b, e);
	if (rc == 0)
		rc = say_sum(c, b, now, calls, e);
	free(now);
	return rc;
}
