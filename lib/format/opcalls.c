#include "format/opcalls.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "acc/stream.h"

const struct acc_val *
acc_opcall_get(const struct acc_rec *r, const char *key)
{
	static const char *const sides[] = {"a.", "", "b."};
	const struct acc_val *v = NULL;
	for (int i = 0; v == NULL && i < 3; i++)
		v = acc_get(r, sides[i], key);
	return v;
}

struct acc_str
acc_opcall_text(const struct acc_rec *r, const char *key)
{
	struct acc_str s = {"", 0};
	acc_as_text(acc_opcall_get(r, key), &s);
	return s;
}

static struct acc_str
keep(struct acc_opcalls *o, struct acc_str s)
{
	char *p = s.n == 0 ? NULL : acc_arena_copy(&o->mem, s.p, s.n);
	return p == NULL ? (struct acc_str){"", 0} : (struct acc_str){p, s.n};
}

bool
acc_accuses(struct acc_str what)
{
	return acc_word_in("culprit overflow difference rule missing", what);
}

static void
place_name(const struct acc_rec *r, struct acc_place *p)
{
	int64_t v;
	size_t n = 0;
	*p = (struct acc_place){0};
	if (acc_as_int(acc_opcall_get(r, "step"), &v))
		n = (size_t)snprintf(p->name, sizeof p->name, "step %" PRId64, v);
	if (acc_as_int(acc_opcall_get(r, "rank"), &v))
		snprintf(p->name + n, sizeof p->name - n, "%srank %" PRId64, n > 0 ? ", " : "", v);
}

static int
place_of(struct acc_opcalls *o, const struct acc_rec *r, uint32_t *out, struct acc_err *e)
{
	struct acc_place p;
	place_name(r, &p);
	/* One that has neither is a place, too. */
	const uint64_t *at = acc_map_put(&o->by_place, acc_str(p.name), o->nplaces);
	if (at == NULL)
		return acc_nomem(e);
	*out = (uint32_t)*at;
	if (*at < o->nplaces)
		return 0;
	if (!ACC_ROOM(o->place, o->places_cap, o->nplaces + 1, e))
		return ACC_ENOMEM;
	o->place[o->nplaces++] = p;
	return 0;
}

static struct acc_opcall *
call_of(struct acc_opcalls *o, const struct acc_rec *r, struct acc_str key, struct acc_err *e)
{
	uint32_t place = 0;
	if (place_of(o, r, &place, e) < 0)
		return NULL;
	struct acc_opcall *last = o->n > 0 ? &o->v[o->n - 1] : NULL;
	if (last != NULL && last->place == place && acc_str_eq(last->key, key))
		return last;
	if (!ACC_ROOM(o->v, o->cap, o->n + 1, e))
		return NULL;
	struct acc_opcall *p = o->v;
	p += o->n;
	*p = (struct acc_opcall){.key = keep(o, key),
		.pass = keep(o, acc_opcall_text(r, "pass")),
		.place = place,
		.error = -1};
	if (acc_map_put(&o->by_key, key, o->n) == NULL || o->mem.lost) {
		acc_nomem(e);
		return NULL;
	}
	o->n++;
	o->place[place].calls++;
	return p;
}

static const char *const measures[] = {"m.err_max", "m.max_rel", "m.norm_relerr", "m.max_relerr",
	"m.max_abs"};

double
acc_opcall_measure(const struct acc_rec *r, const char **key)
{
	double v;
	for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
		if (acc_as_f64(acc_get(r, "", measures[i]), &v)) {
			*key = measures[i];
			return isnan(v) ? INFINITY : fabs(v);
		}
	return -1;
}

uint8_t
acc_opcall_measure_number(const char *key)
{
	uint8_t i = 0;
	while (i + 1U < sizeof measures / sizeof *measures && measures[i] != key)
		i++;
	return i;
}

const char *
acc_opcall_measure_name(uint8_t number)
{
	return measures[number];
}

static void
measure(struct acc_opcall *c, const struct acc_rec *r)
{
	const char *key;
	const double v = acc_opcall_measure(r, &key);
	if (v > c->error) {
		c->error = v;
		c->measure = key;
	}
}

/* What tells whose values they are: the hash of their bytes, or statistics that hardly two have. 0: nothing. */
static uint64_t
identity(const struct acc_rec *r, uint32_t place)
{
	static const char *const hashes[] = {"s.hash", "stat.md5"};
	char buf[200];
	for (int i = 0; i < 2; i++) {
		struct acc_str h = acc_opcall_text(r, hashes[i]), d = acc_opcall_text(r, "dtype");
		if (h.n > 0 && h.n < 64 && d.n < 16) {
			int n = snprintf(buf, sizeof buf, "%u %.*s %.*s", (unsigned)place,
				ACC_PRS(h), ACC_PRS(d));
			return acc_hash(buf, (size_t)n) | 1;
		}
	}
	double max, min, mean, norm;
	if (!acc_as_f64(acc_opcall_get(r, "stat.max"), &max) ||
		!acc_as_f64(acc_opcall_get(r, "stat.min"), &min) ||
		!acc_as_f64(acc_opcall_get(r, "stat.mean"), &mean) ||
		!acc_as_f64(acc_opcall_get(r, "stat.norm"), &norm) || norm == 0)
		return 0;
	int n = snprintf(buf, sizeof buf, "%u %a %a %a %a", (unsigned)place, max, min, mean, norm);
	return acc_hash(buf, (size_t)n) | 1;
}

static int
follow(struct acc_opcalls *o, const struct acc_rec *r, struct acc_err *e)
{
	const uint32_t me = (uint32_t)(o->n - 1);
	const struct acc_str io = acc_opcall_text(r, "io");
	const uint64_t id = identity(r, o->v[me].place);
	if (id == 0)
		return 0;
	if (acc_word_in("out grad", io))
		return acc_ids_put(&o->made, id, me, true, e);
	const uint32_t from = acc_ids_get(&o->made, id);
	if (from == ACC_NOID || from == me)
		return 0;
	for (size_t i = o->nflow; i > 0 && o->flow[i - 1].to == me; i--)
		if (o->flow[i - 1].from == from)
			return 0;
	if (!ACC_ROOM(o->flow, o->flow_cap, o->nflow + 1, e))
		return ACC_ENOMEM;
	o->flow[o->nflow++] = (struct acc_flow){from, me};
	return 0;
}

static void
raise(struct acc_opcalls *o, struct acc_opcall *c, enum acc_grade g, struct acc_str why)
{
	if (g <= c->grade && c->why.n > 0)
		return;
	if (g >= ACC_WARNING && c->grade < ACC_WARNING)
		o->place[c->place].bad++;
	c->grade = g > c->grade ? g : c->grade;
	if (why.n > 0)
		c->why = keep(o, why);
}

enum acc_grade
acc_opcall_grade(const struct acc_rec *r)
{
	const struct acc_str bad = acc_get_text(r, "", "bad");
	bool ok;
	if (acc_str_is(bad, "error"))
		return ACC_ERROR;
	if (acc_str_is(bad, "warning") || (acc_as_bool(acc_opcall_get(r, "audit.ok"), &ok) && !ok))
		return ACC_WARNING;
	return acc_opcall_get(r, "audit.ok") != NULL || acc_get(r, "", "m.mode") != NULL
		       ? ACC_FINE
		       : ACC_UNJUDGED;
}

static struct acc_str
first_why(const struct acc_rec *r)
{
	const struct acc_val *v = acc_get(r, "", "why");
	if (v != NULL && v->type == ACC_V_TEXTS && v->n > 0)
		return v->texts[0];
	return v != NULL && v->type == ACC_V_TEXT ? v->s : acc_opcall_text(r, "audit.cause");
}

/* How well a finding's name, step and rank fit an op call; 0: not at all. Of ranks that were folded several
 * may have had the name: the one that is bad is meant. */
static int
fits(const struct acc_opcalls *o, const struct acc_opcall *c, struct acc_str name,
	const char *place)
{
	if (!acc_str_eq(c->recorded.n > 0 ? c->recorded : c->key, name))
		return 0;
	return 1 + 2 * (strcmp(o->place[c->place].name, place) == 0) + (c->grade == ACC_ERROR);
}

/* A finding about an op call makes that bad where it accuses. */
static int
said(struct acc_opcalls *o, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_str name = acc_get_text(r, "", "name");
	struct acc_opcall *c = NULL;
	struct acc_place p;
	int best = 0;
	o->judged = true;
	if (acc_map_get(&o->by_key, name) == NULL || !acc_accuses(acc_get_text(r, "", "what")))
		return 0;
	place_name(r, &p);
	for (size_t i = 0; i < o->n; i++) {
		const int fit = fits(o, &o->v[i], name, p.name);
		if (fit > best) {
			best = fit;
			c = &o->v[i];
		}
	}
	if (c == NULL)
		return 0;
	c->named = true;
	c->why = (struct acc_str){"", 0};
	raise(o, c, ACC_ERROR, acc_get_text(r, "", "text"));
	return o->mem.lost ? acc_nomem(e) : 0;
}

/* Are the bytes of its tensors at hand, those of both sides of one shape? */
static bool
shows(const struct acc_rec *r)
{
	static const char *const prefix[2] = {"a.", "b."};
	const bool pair = acc_rec_is(r, "pair");
	struct acc_ref ref[2];
	bool has[2] = {false, false};
	for (int i = 0; i < (pair ? 2 : 1); i++) {
		has[i] = !pair || acc_str_is(acc_get_text(r, prefix[i], "kind"), "tensor");
		if (has[i] && acc_ref_get(r, pair ? prefix[i] : "", &ref[i], NULL) <= 0)
			return false;
	}
	return !has[0] || !has[1] ||
	       (ref[0].ndim == ref[1].ndim &&
		       memcmp(ref[0].shape, ref[1].shape, ref[0].ndim * sizeof *ref[0].shape) == 0);
}

int
acc_opcalls_add(struct acc_opcalls *o, const struct acc_rec *r, struct acc_err *e)
{
	if (acc_rec_is(r, "stack"))
		return acc_stacks_see(&o->stacks, r, e);
	if (acc_rec_is(r, "finding"))
		return said(o, r, e);
	if (!acc_word_in("pair tensor arg call", r->kind))
		return 0;
	const struct acc_str key = acc_opcall_text(r, "key");
	if (key.n == 0)
		return 0;
	struct acc_opcall *c = call_of(o, r, key, e);
	if (c == NULL)
		return ACC_ENOMEM;
	c->records++;
	c->parted = c->parted || acc_get(r, "a.", "part.src") != NULL ||
		    acc_get(r, "b.", "part.src") != NULL;
	c->hidden = c->hidden || (acc_word_in("pair tensor", r->kind) && !shows(r));
	if (c->recorded.n == 0) {
		c->recorded = keep(o, acc_opcall_text(r, "fold.key"));
		if (c->recorded.n > 0 &&
			acc_map_put(&o->by_key, c->recorded, (uint64_t)(c - o->v)) == NULL)
			return acc_nomem(e);
	}
	if (c->scope.n == 0)
		c->scope = keep(o, acc_opcall_text(r, "scope"));
	if (c->stack.n == 0)
		c->stack = keep(o, acc_opcall_text(r, "stack"));
	measure(c, r);
	const enum acc_grade g = acc_opcall_grade(r);
	raise(o, c, g, g >= ACC_WARNING ? first_why(r) : (struct acc_str){"", 0});
	return o->mem.lost ? acc_nomem(e) : follow(o, r, e);
}

void
acc_opcalls_release(struct acc_opcalls *o)
{
	free(o->v);
	free(o->place);
	free(o->flow);
	acc_ids_release(&o->made);
	acc_stacks_release(&o->stacks);
	acc_map_release(&o->by_key);
	acc_map_release(&o->by_place);
	acc_arena_release(&o->mem);
	*o = (struct acc_opcalls){0};
}

/* --- frames: "File F, line N, in FN, CODE", with "; File " between them */

static bool
until(struct acc_str *s, const char *mark, struct acc_str *out)
{
	const size_t n = strlen(mark);
	const char *at = s->n == 0 ? NULL : memmem(s->p, s->n, mark, n);
	if (at == NULL)
		return false;
	*out = (struct acc_str){s->p, (uint32_t)(at - s->p)};
	*s = (struct acc_str){at + n, s->n - out->n - (uint32_t)n};
	return true;
}

static bool
is_framework(struct acc_str file)
{
	static const char *const of[] = {"site-packages", "dist-packages", "torch/", "mindspore/",
		"<frozen"};
	bool is = false;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		is |= memmem(file.p, file.n, of[i], strlen(of[i])) != NULL;
	return is;
}

bool
acc_frame_next(struct acc_str *rest, struct acc_frame *f)
{
	struct acc_str one;
	while (rest->n > 0) {
		if (!until(rest, "; File ", &one)) {
			one = *rest;
			rest->n = 0;
		}
		if (acc_str_starts(one, "File "))
			one = (struct acc_str){one.p + 5, one.n - 5};
		if (until(&one, ", line ", &f->file) && until(&one, ", in ", &f->line) &&
			!is_framework(f->file)) {
			if (until(&one, ", ", &f->fn))
				f->code = one;
			else {
				f->fn = one;
				f->code = (struct acc_str){"", 0};
			}
			return true;
		}
	}
	return false;
}

bool
acc_frame_own(const struct acc_stacks *stacks, struct acc_str id, struct acc_frame *f)
{
	struct acc_str s = id.n == 0 ? id : acc_stacks_get(stacks, id);
	return acc_frame_next(&s, f);
}
