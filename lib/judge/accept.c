/* Known and accepted: what is ignored by name, what a baseline holds, and wider limits. What was
 * left out is counted, and said at the end. */
#include "acc/accept.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

#include "judge/accept.h"
#include "judge/case.h"
#include "judge/first_bad.h"

struct known { /* a line of the baseline */
	double value;
	bool met;
};

struct acc_accept {
	struct acc_arena mem;
	struct glob {
		const char *pattern, *reason; /* reason: "" where none was given */
		uint32_t hits;
		const char *first;
	} * glob;
	size_t nglob, glob_cap;
	const char *path; /* of the baseline; NULL: there is none */
	struct acc_map at;
	struct known *known;
	size_t nknown, known_cap;
	uint32_t hits, worse;
	const char *first; /* of those that the baseline accepts */
	double scale;
	uint32_t scaled;
};

struct acc_accept *
acc_accept_new(struct acc_err *e)
{
	struct acc_accept *a = calloc(1, sizeof *a);
	if (a == NULL)
		acc_nomem(e);
	else
		a->scale = 1;
	return a;
}

void
acc_accept_free(struct acc_accept *a)
{
	if (a == NULL)
		return;
	acc_map_release(&a->at);
	acc_arena_release(&a->mem);
	free(a->glob);
	free(a->known);
	free(a);
}

int
acc_accept_ignore(struct acc_accept *a, const char *pattern, struct acc_err *e)
{
	struct glob *g = acc_grow(a->glob, &a->glob_cap, a->nglob + 1, sizeof *g, e);
	const char *equals = strchr(pattern, '=');
	if (g == NULL)
		return ACC_ENOMEM;
	a->glob = g;
	if (equals != NULL)
		pattern = acc_arena_copy(&a->mem, pattern, (size_t)(equals - pattern));
	if (pattern == NULL)
		return acc_nomem(e);
	if (pattern[0] == '\0')
		return acc_fail(e, ACC_EUSAGE, "no names are given");
	a->glob[a->nglob++] = (struct glob){.pattern = pattern,
		.reason = equals == NULL ? "" : equals + 1};
	return 0;
}

void
acc_accept_scale(struct acc_accept *a, double scale)
{
	a->scale = scale;
}

/* The next cell of a line. */
static struct acc_str
cell(struct acc_str *line)
{
	const char *tab = line->n == 0 ? NULL : memchr(line->p, '\t', line->n);
	struct acc_str c = {line->p, tab == NULL ? line->n : (uint32_t)(tab - line->p)};
	uint32_t used = c.n + (tab != NULL);
	*line = (struct acc_str){line->p + used, line->n - used};
	return c;
}

/* "NAME<tab>STEP<tab>RANK" up to its value: what tells findings apart. */
static int
take(struct acc_accept *a, struct acc_str line, struct acc_err *e)
{
	struct acc_str all = line, value;
	cell(&line), cell(&line);
	struct acc_str rank = cell(&line);
	if (line.n == 0)
		return acc_fail(e, ACC_EFORMAT, "not NAME, STEP, RANK and VALUE with tabs between");
	struct acc_str key = {all.p, (uint32_t)(rank.p + rank.n - all.p)};
	char text[64], *end;
	value = cell(&line);
	snprintf(text, sizeof text, "%.*s", ACC_PRS(value));
	double v = strtod(text, &end);
	if (end == text || *end != '\0')
		return acc_fail(e, ACC_EFORMAT, "'%s' is no number", text);
	struct known *k = acc_grow(a->known, &a->known_cap, a->nknown + 1, sizeof *k, e);
	const char *copy = acc_arena_copy(&a->mem, key.p, key.n);
	if (k == NULL || copy == NULL)
		return acc_nomem(e);
	a->known = k;
	uint64_t *at = acc_map_put(&a->at, (struct acc_str){copy, key.n}, a->nknown);
	if (at == NULL)
		return acc_nomem(e);
	if (*at == a->nknown)
		a->known[a->nknown++] = (struct known){.value = v};
	else
		a->known[*at].value = fmax(a->known[*at].value, v);
	return 0;
}

int
acc_accept_baseline(struct acc_accept *a, const char *text, size_t n, const char *path,
	struct acc_err *e)
{
	unsigned no = 0;
	a->path = path;
	for (const char *p = text, *end = text + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct acc_str line = {p, (uint32_t)((nl == NULL ? end : nl) - p)};
		p = nl == NULL ? end : nl + 1;
		no++;
		if (line.n == 0 || *line.p == '#')
			continue;
		int rc = take(a, line, e);
		if (rc == ACC_ENOMEM)
			return rc;
		if (rc < 0) {
			char where[200];
			snprintf(where, sizeof where, "%.180s: line %u", path, no);
			return acc_err_in(e, where);
		}
	}
	return 0;
}

int
acc_accept_line(struct acc_case *c, const struct acc_item *it, struct acc_buf *out,
	struct acc_err *e)
{
	const struct acc_call *k = &c->call[it->call];
	const int64_t place[2] = {k->step, k->rank};
	struct acc_rec *r;
	char tail[160] = "";
	int at = 0, rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str name = acc_get_text(r, "", "name");
	out->n = 0;
	if (name.n == 0 || memchr(name.p, '\t', name.n) != NULL ||
		memchr(name.p, '\n', name.n) != NULL)
		return 0;
	for (int i = 0; i < 2; i++)
		at += place[i] == INT64_MIN
			      ? snprintf(tail + at, 32, "\t-")
			      : snprintf(tail + at, 32, "\t%lld", (long long)place[i]);
	const struct acc_verdict *v = it->mark == 0 ? NULL : &c->verdict[it->mark - 1];
	/* Whether it was recomputed or not, this is the same. */
	at += snprintf(tail + at, 32, "\t%.6g", isnan(it->rms) ? INFINITY : (double)it->rms);
	if (v != NULL)
		snprintf(tail + at, 80, "\t%.20s %.30s\n", v->level, v->rule);
	rc = acc_buf_add(out, name.p, name.n);
	if (rc == 0)
		rc = acc_buf_add(out, tail, strlen(tail));
	return rc < 0 ? acc_nomem(e) : 1;
}

static bool
ignored(struct acc_accept *a, const struct acc_case *c, const struct acc_item *it)
{
	const struct acc_call *k = &c->call[it->call];
	for (size_t i = 0; i < a->nglob; i++)
		for (int s = 0; s < 2; s++)
			if (k->key[s] != NULL && acc_glob(a->glob[i].pattern, acc_str(k->key[s]))) {
				if (a->glob[i].hits++ == 0)
					a->glob[i].first = acc_call_name(k);
				return true;
			}
	return false;
}

/* Is it in the baseline, and not worse by now? */
static int
expected(struct acc_accept *a, struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	struct acc_buf line = {0};
	if (a->path == NULL)
		return 0;
	int rc = acc_accept_line(c, it, &line, e);
	uint64_t *at = NULL;
	if (rc > 0) {
		struct acc_str s = {(char *)line.p, (uint32_t)line.n}, key = {s.p, 0};
		cell(&s), cell(&s);
		struct acc_str rank = cell(&s);
		key.n = (uint32_t)(rank.p + rank.n - key.p);
		at = acc_map_get(&a->at, key);
	}
	acc_buf_release(&line);
	if (rc < 0 || at == NULL)
		return rc < 0 ? rc : 0;
	struct known *k = &a->known[*at];
	k->met = true;
	if (!isnan(it->rms) && !(it->rms <= LIMIT_BASELINE * k->value)) {
		a->worse++;
		return 0;
	}
	if (a->hits++ == 0)
		a->first = acc_call_name(&c->call[it->call]);
	return 1;
}

int
acc_accepted(struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	struct acc_accept *a = c->opt.accept;
	if (a == NULL || it->call == ACC_NOCALL)
		return 0;
	return ignored(a, c, it) ? 1 : expected(a, c, it, e);
}

int
acc_accepted_alone(struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	struct acc_accept *a = c->opt.accept;
	int rc = acc_accepted(c, it, e);
	if (rc != 0 || a == NULL || !(it->audit[ACC_A] <= a->scale))
		return rc;
	a->scaled++;
	return 1;
}

int
acc_accept_suspects(struct scan *s, struct acc_err *e)
{
	struct acc_accept *a = s->c->opt.accept;
	uint32_t n = 0;
	if (a == NULL)
		return 0;
	/* Suspects are looked for again after some were recomputed. */
	for (size_t i = 0; i < a->nglob; i++)
		a->glob[i].hits = 0;
	a->hits = a->worse = a->scaled = 0;
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		struct suspect x = s->suspect[i];
		int rc = acc_accepted(s->c, &s->c->item[x.item], e);
		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		/* What its own inputs do not give is no question of limits. */
		if (a->scale > 1 && !x.audit && x.margin < LIMIT_CERTAIN) {
			x.limit *= a->scale;
			x.margin -= log10(a->scale);
			if (x.margin <= 0) {
				a->scaled++;
				continue;
			}
		}
		s->suspect[n++] = x;
	}
	s->nsuspect = n;
	return 0;
}

static int
say(struct acc_case *c, const char *rule, double value, const char *text, struct acc_err *e)
{
	struct acc_finding *f = text == NULL ? NULL : acc_case_find(c, "accepted", e);
	if (f == NULL)
		return acc_nomem(e);
	f->rule = rule;
	f->value = value;
	f->text = text;
	return 0;
}

int
acc_say_accepted(struct acc_case *c, struct acc_err *e)
{
	struct acc_accept *a = c->opt.accept;
	uint32_t gone = 0;
	int rc = 0;
	if (a == NULL)
		return 0;
	for (size_t i = 0; i < a->nglob && rc == 0; i++) {
		const struct glob *g = &a->glob[i];
		rc = say(c, "ignore", g->hits,
			acc_say(&c->mem, "--ignore %s: %u finding%s left out%s%s%s%s%s", g->pattern,
				g->hits, g->hits == 1 ? "" : "s", g->hits > 0 ? ", first of " : "",
				g->hits > 0 ? g->first : "",
				g->reason[0] != '\0' ? " (reason: " : "", g->reason,
				g->reason[0] != '\0' ? ")" : ""),
			e);
	}
	for (size_t i = 0; i < a->nknown; i++)
		gone += !a->known[i].met;
	if (a->path != NULL && rc == 0)
		rc = say(c, "baseline", a->hits,
			acc_say(&c->mem,
				"--baseline %s: %u finding%s known and not worse%s%s; %u worse than "
				"then; %u no longer found",
				a->path, a->hits, a->hits == 1 ? "" : "s",
				a->hits > 0 ? ", first of " : "", a->hits > 0 ? a->first : "",
				a->worse, gone),
			e);
	if (a->scale > 1 && rc == 0)
		rc = say(c, "scale", a->scale,
			acc_say(&c->mem,
				"--scale %g: %u finding%s within the limits because these are "
				"multiplied",
				a->scale, a->scaled, a->scaled == 1 ? "" : "s"),
			e);
	return rc;
}
