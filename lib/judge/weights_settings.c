/* What a checkpoint says of the optimizer: the settings of each of its groups of parameters, as torch keeps them in param_groups.
 * "No decay for biases" on one side alone is another training, whatever the weights are by now. */
#include "judge/weights.h"
#include "acc/say.h"

#include <stdlib.h>

/* How a program computes, not what. */
static const char *const ways[] = {"foreach", "fused", "capturable", "differentiable", "params",
	"param_names"};

struct group {
	uint64_t params[2];
	uint64_t print[2];    /* of its settings, in their order */
	const char *decay[2]; /* of its weights, or NULL */
	bool has[2];
};

struct settings {
	struct acc_weights *t;
	struct group *g;
	uint32_t n;
	size_t cap;
	const char *text; /* those of groups with one number */
	uint64_t differ;
	const char *first;
};

/* NAME.param_groups.3.betas.0: the group's number and what follows it. */
static bool
split(struct acc_str name, uint32_t *group, struct acc_str *rest)
{
	enum { MOST = 9999 };
	static const char words[] = "param_groups.";
	const char *at = memmem(name.p, name.n, words, sizeof words - 1), *end = name.p + name.n;
	if (at == NULL || (at > name.p && at[-1] != '.'))
		return false;
	*group = 0;
	for (at += sizeof words - 1; at < end && *at >= '0' && *at <= '9' && *group <= MOST; at++)
		*group = *group * 10 + (uint32_t)(*at - '0');
	if (at >= end || *at != '.' || *group > MOST)
		return false;
	*rest = (struct acc_str){at + 1, (uint32_t)(end - at - 1)};
	return true;
}

static bool
is_way(struct acc_str rest)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		const size_t n = strlen(ways[i]);
		if (rest.n >= n && memcmp(rest.p, ways[i], n) == 0 &&
			(rest.n == n || rest.p[n] == '.'))
			return true;
	}
	return false;
}

/* 0 and 0.0 are one setting. */
static const char *
text_of(struct acc_arena *m, const struct acc_val *v)
{
	const struct acc_val number = v != NULL && v->type == ACC_V_INT ? acc_f64((double)v->i)
									: acc_nil();
	return acc_say_value(m, number.type == ACC_V_F64 ? &number : v);
}

static struct group *
group_of(struct settings *s, uint32_t i, struct acc_err *e)
{
	if (i >= s->n) {
		struct group *g = acc_grow(s->g, &s->cap, (size_t)i + 1, sizeof *g, e);
		if (g == NULL)
			return NULL;
		s->g = g;
		memset(g + s->n, 0, (i + 1 - s->n) * sizeof *g);
		s->n = i + 1;
	}
	return &s->g[i];
}

static int
look(struct settings *s, uint32_t item, struct acc_err *e)
{
	enum { SHOWN = 4 };
	static const char *const prefix[2] = {"a.", "b."};
	struct acc_arena *m = &s->t->c->mem;
	struct acc_rec *r;
	const char *value[2] = {NULL, NULL};
	struct acc_str rest = {0}, name = {0};
	uint32_t number = 0;
	int rc = acc_case_record(s->t->c, &s->t->c->item[item], &r, e);
	for (int k = 0; k < 2 && rc >= 0; k++) {
		const struct acc_str own = acc_get_text(r, prefix[k], "name");
		if (own.n == 0 || !split(own, &number, &rest))
			continue;
		struct group *g = group_of(s, number, e);
		if (g == NULL)
			return ACC_ENOMEM;
		g->has[k] = true;
		g->params[k] += acc_str_starts(rest, "params.");
		if (is_way(rest))
			continue;
		name = own;
		value[k] = text_of(m, acc_get(r, prefix[k], "value"));
		if (value[k] == NULL)
			return acc_nomem(e);
		if (acc_str_is(rest, "weight_decay"))
			g->decay[k] = value[k];
		const uint64_t of[3] = {g->print[k], acc_hash(rest.p, rest.n),
			acc_hash(value[k], strlen(value[k]))};
		g->print[k] = acc_hash(of, sizeof of);
	}
	if (rc < 0 || value[0] == NULL || value[1] == NULL || strcmp(value[0], value[1]) == 0)
		return rc < 0 ? rc : 0;
	if (s->differ++ == 0) {
		s->first = acc_arena_copy(m, name.p, name.n);
		if (s->first == NULL)
			return acc_nomem(e);
	}
	if (s->differ <= SHOWN)
		s->text = acc_say(m, "%s%s%.*s is %s on the device and %s on the bench", s->text,
			s->differ > 1 ? "; " : "", (int)name.n, name.p, value[0], value[1]);
	return s->text == NULL ? acc_nomem(e) : 0;
}

static int
cmp_print(const void *x, const void *y)
{
	const uint64_t *p = x, *q = y;
	return p[0] != q[0] ? (p[0] > q[0]) - (p[0] < q[0]) : (p[1] > q[1]) - (p[1] < q[1]);
}

/* Have both sides the same groups, in whatever order? */
static int
same_groups(const struct settings *s, bool *same, struct acc_err *e)
{
	uint64_t(*w)[2] = calloc(2 * (size_t)s->n + 1, sizeof *w);
	uint32_t n[2] = {0, 0};
	if (w == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < s->n; i++)
		for (int k = 0; k < 2; k++)
			if (s->g[i].has[k]) {
				uint64_t *at = w[(size_t)k * s->n + n[k]++];
				at[0] = s->g[i].print[k];
				at[1] = s->g[i].params[k];
			}
	for (int k = 0; k < 2; k++)
		qsort(w + (size_t)k * s->n, n[k], sizeof *w, cmp_print);
	*same = n[0] == n[1] && memcmp(w, w + s->n, n[0] * sizeof *w) == 0;
	free(w);
	return 0;
}

/* How many parameters each group has: "5 (weight_decay 0.1) + 7 (weight_decay 0.0)". */
static const char *
groups_text(const struct settings *s, int side)
{
	const char *text = "";
	for (uint32_t i = 0; i < s->n && text != NULL; i++)
		if (s->g[i].has[side]) {
			const char *decay = s->g[i].decay[side],
				   *plus = text[0] == '\0' ? "" : " + ";
			const unsigned long long n = s->g[i].params[side];
			text = decay == NULL ? acc_say(&s->t->c->mem, "%s%s%llu", text, plus, n)
					     : acc_say(&s->t->c->mem, "%s%s%llu (weight_decay %s)",
						       text, plus, n, decay);
		}
	return text;
}

int
acc_weights_settings(struct acc_weights *t, struct acc_err *e)
{
	struct settings s = {.t = t, .text = ""};
	bool same = true, sides[2] = {false, false};
	uint32_t count[2] = {0, 0};
	int rc = 0;
	for (uint32_t i = 0; i < t->c->nitem && rc >= 0; i = acc_step(t->c, i))
		if (t->c->item[i].kind == ACC_ITEM_ARG)
			rc = look(&s, i, e);
	for (uint32_t i = 0; i < s.n; i++)
		for (int k = 0; k < 2; k++) {
			sides[k] |= s.g[i].has[k];
			count[k] += s.g[i].has[k];
		}
	/* A checkpoint without an optimizer says nothing of it. */
	if (rc >= 0 && sides[0] && sides[1])
		rc = same_groups(&s, &same, e);
	if (rc >= 0 && !same && (s.differ > 0 || count[0] != count[1])) {
		struct acc_finding *f = acc_case_find(t->c, "settings", e);
		const char *a = groups_text(&s, 0), *b = groups_text(&s, 1);
		if (f == NULL || a == NULL || b == NULL) {
			free(s.g);
			return acc_nomem(e);
		}
		f->bad = true;
		f->name = s.first;
		f->rule = "settings";
		f->value = (double)s.differ;
		f->text =
			count[0] != count[1]
				? acc_say(&t->c->mem,
					  "the optimizer has other groups of parameters: %s on the device, %s on the bench%s%s",
					  a, b, s.differ > 0 ? "; " : "", s.text)
				: acc_say(&t->c->mem,
					  "the optimizer has %llu other setting%s (parameters in its groups: %s): %s",
					  (unsigned long long)s.differ, s.differ == 1 ? "" : "s", a,
					  s.text);
		rc = f->text == NULL ? acc_nomem(e) : 0;
	}
	free(s.g);
	return rc < 0 ? rc : 0;
}
