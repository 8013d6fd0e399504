/* The state of an optimizer in a checkpoint: optimizer.state.7.exp_avg, of the parameter that param_groups have as number 7.
 * Two programs may number other parameters so. */
#include "align/loose.h"
#include "align/lists.h"

#include <stdlib.h>

enum { SUFFIXES = 8, DIGITS = 9 };

/* One side: of each parameter its group and where it stands there; and what states hold. */
struct place {
	uint32_t group, at;
	uint64_t name; /* 0: it has none */
};

struct numbers {
	struct acc_ids groups, params; /* params: of an optimizer and a number */
	struct place *v;
	uint32_t n, ngroup;
	size_t cap, capg;
	uint32_t *many; /* parameters of each group */
	uint64_t *base; /* and whose optimizer's it is */
	uint64_t suffix[SUFFIXES];
	uint32_t nsuffix;
	bool fails; /* too many suffixes */
};

struct word {
	uint64_t before; /* of all in front */
	uint64_t key;    /* of the number and that */
	struct acc_str rest;
};

/* NAME.WORD.7.REST */
static bool
numbered(struct acc_str name, const char *word, struct word *out)
{
	const uint32_t n = (uint32_t)strlen(word);
	const char *at = memmem(name.p, name.n, word, n), *end = name.p + name.n;
	if (at == NULL || (at > name.p && at[-1] != '.'))
		return false;
	const char *from = at + n, *to = from;
	while (to < end && *to >= '0' && *to <= '9' && to - from < DIGITS)
		to++;
	if (to == from || to == end || *to != '.')
		return false;
	out->before = acc_hash(name.p, (size_t)(at - name.p));
	out->key = acc_hash_pair(out->before, acc_hash(from, (size_t)(to - from)));
	out->rest = (struct acc_str){to + 1, (uint32_t)(end - to - 1)};
	return true;
}

static int
add_group(struct numbers *x, const struct word *w, uint32_t *group, struct acc_err *e)
{
	*group = acc_ids_get(&x->groups, w->key);
	if (*group != ACC_NOID)
		return 0;
	size_t cap = x->capg;
	if (!ACC_ROOM(x->many, cap, (size_t)x->ngroup + 1, e))
		return ACC_ENOMEM;
	if (!ACC_ROOM(x->base, x->capg, (size_t)x->ngroup + 1, e))
		return ACC_ENOMEM;
	x->many[x->ngroup] = 0;
	x->base[x->ngroup] = w->before;
	*group = x->ngroup++;
	return acc_ids_put(&x->groups, w->key, *group, false, e);
}

/* optimizer.param_groups.0.params.3 is the number of a parameter, .param_names.3 its name. */
static int
note(struct loosely *l, int side, const struct loose *t, struct numbers *x, struct acc_ids *names)
{
	static const char *const prefix[2] = {"a.", "b."};
	const struct loose_side *s = &l->s[side];
	struct acc_rec *r;
	struct acc_str text;
	struct word w;
	uint32_t group;
	int64_t at, value;
	char digits[24];
	if (!numbered(t->path, "param_groups.", &w))
		return 0;
	const bool params = acc_str_starts(w.rest, "params."),
		   named = acc_str_starts(w.rest, "param_names.");
	const uint32_t skip = params ? sizeof "params." - 1 : sizeof "param_names." - 1;
	if ((!params && !named) ||
		!acc_str_int((struct acc_str){w.rest.p + skip, w.rest.n - skip}, &at))
		return 0;
	int rc = add_group(x, &w, &group, l->e);
	if (rc == 0)
		rc = acc_store_rec(s->h->store, s->h->ix.item[t->item].at, &r, l->e);
	if (rc < 0)
		return rc;
	const struct acc_val *v = acc_get(r, prefix[side], "value");
	if (named && acc_as_text(v, &text))
		return acc_ids_put(names, acc_hash_pair(group, (uint64_t)at),
			(uint32_t)acc_hash(text.p, text.n) | 1, false, l->e);
	if (named || !acc_as_int(v, &value))
		return 0;
	if (!ACC_ROOM(x->v, x->cap, (size_t)x->n + 1, l->e))
		return ACC_ENOMEM;
	x->v[x->n] = (struct place){group, x->many[group]++, 0};
	const int n = snprintf(digits, sizeof digits, "%lld", (long long)value);
	return acc_ids_put(&x->params, acc_hash_pair(w.before, acc_hash(digits, (size_t)n)), x->n++,
		false, l->e);
}

/* What counts steps says nothing of a parameter, and stands last. */
static int
cmp_suffix(const void *x, const void *y)
{
	const uint64_t p = *(const uint64_t *)x, q = *(const uint64_t *)y,
		       step = acc_hash("step", 4);
	if ((p == step) != (q == step))
		return p == step ? 1 : -1;
	return (p > q) - (p < q);
}

/* optimizer.state.7.exp_avg: of a parameter that is known; *suffix: of exp_avg. */
static const struct place *
state(const struct numbers *x, const struct loose *t, uint64_t *suffix)
{
	struct word w;
	if (!numbered(t->path, "state.", &w))
		return NULL;
	const uint32_t i = acc_ids_get(&x->params, w.key);
	*suffix = acc_hash(w.rest.p, w.rest.n);
	return i == ACC_NOID ? NULL : &x->v[i];
}

static uint32_t
row_of(const struct numbers *x, uint64_t suffix)
{
	for (uint32_t i = 0; i < x->nsuffix; i++)
		if (x->suffix[i] == suffix)
			return i;
	return x->nsuffix;
}

static int
collect(struct loosely *l, int side, struct numbers *x)
{
	const struct loose_side *s = &l->s[side];
	struct acc_ids names = {0};
	int rc = 0;
	for (uint32_t i = 0; i < s->n && rc == 0; i++)
		if (!s->h->ix.item[s->v[i].item].tensor)
			rc = note(l, side, &s->v[i], x, &names);
	for (uint32_t i = 0; i < x->n; i++) {
		const uint32_t name = acc_ids_get(&names, acc_hash_pair(x->v[i].group, x->v[i].at));
		x->v[i].name = name == ACC_NOID ? 0 : name;
	}
	for (uint32_t i = 0; i < s->n && rc == 0 && x->n > 0; i++) {
		uint64_t suffix;
		if (!s->h->ix.item[s->v[i].item].tensor || state(x, &s->v[i], &suffix) == NULL ||
			row_of(x, suffix) < x->nsuffix)
			continue;
		x->fails |= x->nsuffix == SUFFIXES;
		if (!x->fails)
			x->suffix[x->nsuffix++] = suffix;
	}
	qsort(x->suffix, x->nsuffix, sizeof *x->suffix, cmp_suffix);
	acc_ids_release(&names);
	return rc;
}

static int
tabulate(struct loosely *l, int side, const struct numbers *x, struct lists_side *to)
{
	const struct loose_side *s = &l->s[side];
	bool one = true; /* there is one optimizer, whatever its name */
	for (uint32_t i = 1; i < x->ngroup; i++)
		one &= x->base[i] == x->base[0];
	to->h = s->h;
	for (uint32_t i = 0; i < x->ngroup; i++) {
		struct lists_call *c = acc_lists_call(to, one ? 1 : x->base[i], x->many[i],
			x->nsuffix, l->e);
		if (c == NULL)
			return ACC_ENOMEM;
		c->ins = x->nsuffix;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t suffix;
		const bool tensor = s->h->ix.item[s->v[i].item].tensor;
		const struct place *p = tensor ? state(x, &s->v[i], &suffix) : NULL;
		if (p != NULL)
			to->c[p->group].item[row_of(x, suffix) * to->c[p->group].n + p->at] =
				s->v[i].item;
	}
	int rc = acc_lists_params(to, l->e);
	for (uint32_t i = 0; i < x->n && rc == 0; i++)
		if (x->v[i].name != 0)
			to->p[to->c[x->v[i].group].first + x->v[i].at].print = x->v[i].name;
	return rc;
}

/* Which loose tensor an item is. */
struct mating {
	struct loosely *l;
	uint32_t *loose[2];
	bool named; /* all parameters have names of both sides */
};

static void
part(void *arg, int side, uint32_t item)
{
	const struct mating *m = arg;
	const struct loose_side *s = &m->l->s[side];
	const uint32_t i = m->loose[side][item];
	s->h->ix.item[item].mate = ACC_NOMATE;
	if (i != ACC_NOMATE)
		s->h->ix.op[s->v[i].op].mate = ACC_NOMATE;
}

static void
mate(void *arg, uint32_t a, uint32_t b, enum acc_align_how how)
{
	const struct mating *m = arg;
	const uint32_t x = m->loose[0][a], y = m->loose[1][b];
	if (x == ACC_NOMATE || y == ACC_NOMATE)
		return;
	const struct loose *p = &m->l->s[0].v[x], *q = &m->l->s[1].v[y];
	const bool name = acc_str_eq(p->path, q->path) || (m->named && how == ACC_HOW_CONTENT);
	acc_loose_mate(m->l, p, q, name ? ACC_HOW_NAME : how == ACC_HOW_OP ? ACC_HOW_PLACE : how);
}

static int
pair(struct loosely *l, const struct numbers x[2])
{
	struct mating m = {.l = l, .named = true};
	struct lists t = {.j = l->j, .mate = mate, .part = part, .arg = &m, .e = l->e};
	int rc = 0;
	for (int s = 0; s < 2 && rc == 0; s++) {
		const struct loose_side *side = &l->s[s];
		m.loose[s] = malloc(((size_t)side->h->ix.nitem + 1) * sizeof *m.loose[s]);
		if (m.loose[s] == NULL) {
			rc = acc_nomem(l->e);
			break;
		}
		for (uint32_t i = 0; i < side->h->ix.nitem; i++)
			m.loose[s][i] = ACC_NOMATE;
		for (uint32_t i = 0; i < side->n; i++)
			m.loose[s][side->v[i].item] = i;
		for (uint32_t i = 0; i < x[s].n; i++)
			m.named &= x[s].v[i].name != 0;
		rc = tabulate(l, s, &x[s], &t.s[s]);
	}
	if (rc == 0)
		rc = acc_lists_pair(&t);
	acc_lists_release(&t);
	free(m.loose[0]);
	free(m.loose[1]);
	return rc;
}

int
acc_loose_states(struct loosely *l)
{
	struct numbers x[2] = {{.n = 0}, {.n = 0}};
	int rc = collect(l, 0, &x[0]);
	if (rc == 0 && x[0].nsuffix > 0)
		rc = collect(l, 1, &x[1]);
	const bool same = x[0].nsuffix > 0 && x[0].nsuffix == x[1].nsuffix && !x[0].fails &&
			  !x[1].fails &&
			  memcmp(x[0].suffix, x[1].suffix, x[0].nsuffix * sizeof *x[0].suffix) == 0;
	if (rc == 0 && same)
		rc = pair(l, x);
	for (int s = 0; s < 2; s++) {
		acc_ids_release(&x[s].groups);
		acc_ids_release(&x[s].params);
		free(x[s].v);
		free(x[s].many);
		free(x[s].base);
	}
	return rc;
}
