/* What a checkpoint says of the optimizer. "No decay for biases" on one side alone is another training, whatever the
 * weights are by now. Groups have no names, and two programs may divide the same parameters otherwise: what is compared are
 * the settings of each parameter. */
#include "judge/weights_settings.h"
#include "acc/say.h"

#include <stdlib.h>

enum { SHOWN = 4 };

/* --- what differs --- */

static const struct acc_setting *
find(const struct acc_params *g, struct acc_str key)
{
	for (uint32_t i = 0; i < g->nset; i++)
		if (acc_str_eq(g->set[i].key, key))
			return &g->set[i];
	return NULL;
}

/* Both have it, and it is another. */
static const struct acc_setting *
other(const struct acc_params *g, const struct acc_setting *v)
{
	const struct acc_setting *w = find(g, v->key);
	return w != NULL && strcmp(w->value, v->value) != 0 ? w : NULL;
}

/* So many parameters with the same settings. */
struct share {
	uint64_t settings, params;
};

static struct share
share_of(const struct acc_params *g)
{
	struct share w = {0, g->nparam};
	for (uint32_t i = 0; i < g->nset; i++)
		w.settings += acc_numbered(acc_hash(g->set[i].key.p, g->set[i].key.n),
			acc_hash(g->set[i].value, strlen(g->set[i].value)));
	return w;
}

static int
cmp_share(const void *x, const void *y)
{
	const struct share *p = x, *q = y;
	return (p->settings > q->settings) - (p->settings < q->settings);
}

/* In their order, those of the same settings as one: how many are left. */
static uint32_t
shares(const struct acc_optim *x, struct share *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->ng; i++)
		w[i] = share_of(&x->g[i]);
	qsort(w, x->ng, sizeof *w, cmp_share);
	for (uint32_t i = 0; i < x->ng; i++)
		if (n > 0 && w[n - 1].settings == w[i].settings)
			w[n - 1].params += w[i].params;
		else
			w[n++] = w[i];
	return n;
}

/* Have both sides as many parameters with the same settings, in whatever groups? */
static int
same_groups(const struct acc_settings *s, bool *same, struct acc_err *e)
{
	const uint32_t na = s->s[0].ng, nb = s->s[1].ng;
	struct share *a = calloc((size_t)na + nb, sizeof *a), *b = a + na;
	if (a == NULL)
		return acc_nomem(e);
	const uint32_t n = shares(&s->s[0], a);
	*same = shares(&s->s[1], b) == n && memcmp(a, b, n * sizeof *a) == 0;
	free(a);
	return 0;
}

/* Groups of one number are one group: of all parameters that are paired, and groups of names of one are not looked at so. */
static bool
straight(const struct acc_settings *s)
{
	const struct acc_optim *a = &s->s[0], *b = &s->s[1];
	if (a->ng != b->ng)
		return false;
	for (uint32_t i = 0; i < a->ng; i++)
		if (!acc_is_number(a->g[i].id))
			return false;
	for (uint32_t i = 0; i < a->np; i++)
		if (a->p[i].mate != ACC_NOPARAM &&
			!acc_str_eq(a->g[a->p[i].group].id, b->g[b->p[a->p[i].mate].group].id))
			return false;
	return true;
}

static int
add_text(struct acc_settings *s, const char *text, const char *name, struct acc_err *e)
{
	if (text == NULL || name == NULL)
		return acc_nomem(e);
	if (s->differ == 0)
		s->first = name;
	if (s->differ++ < SHOWN)
		s->text = acc_say(s->m, "%s%s%s", s->text, s->differ > 1 ? "; " : "", text);
	return s->text == NULL ? acc_nomem(e) : 0;
}

static int
by_group(struct acc_settings *s, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < s->s[0].ng && rc == 0; i++) {
		const struct acc_params *g = &s->s[0].g[i];
		const uint32_t k = acc_ids_get(&s->s[1].groups,
			acc_optim_hash(g->rank, g->before, g->id));
		for (uint32_t m = 0; m < g->nset && k != ACC_NOID && rc == 0; m++) {
			const struct acc_setting *v = &g->set[m], *w = other(&s->s[1].g[k], v);
			if (w == NULL)
				continue;
			const char *name = acc_say(s->m, "%.*sparam_groups.%.*s.%.*s",
				ACC_PRS(g->before), ACC_PRS(g->id), ACC_PRS(v->key));
			rc = add_text(s,
				acc_say(s->m, "%s is %s on the device and %s on the bench",
					acc_got(name), v->value, w->value),
				name, e);
		}
	}
	return rc;
}

/* What a parameter is called: as the optimizer has it; as the weight is that alone has its shape, or one of those that all
 * differ in what is said; or by its state. */
static const char *
name_of(const struct acc_settings *s, const struct acc_optim *x, const struct acc_param *p)
{
	uint32_t params = 0, differ = 0, nth = 0;
	if (!acc_is_number(p->id))
		return p->id.p;
	uint32_t at = acc_ids_get(&x->names, acc_numbered(p->group, p->at));
	for (uint32_t i = 0; i < x->np && at == ACC_NOID && p->shape != 0; i++) {
		nth += &x->p[i] < p && x->p[i].shape == p->shape;
		params += x->p[i].shape == p->shape;
		differ += x->p[i].shape == p->shape && x->p[i].differs;
	}
	if (at == ACC_NOID && p->shape != 0 && params == differ &&
		acc_ids_get(&x->weights, p->shape) + 1 == params)
		at = acc_ids_get(&x->weights, acc_numbered(p->shape, nth));
	return at != ACC_NOID ? x->name[at]
			      : acc_say(s->m, "%.*sstate.%.*s", ACC_PRS(x->g[p->group].before),
					ACC_PRS(p->id));
}

/* "for 5 of 9 parameters, those of one dimension: fc1.bias, norm.weight and 3 more" */
static const char *
those(struct acc_settings *s, const char **first)
{
	struct acc_optim *x = &s->s[0];
	uint32_t n = 0, shown = 0;
	bool flat = true;
	const char *names = "";
	for (uint32_t i = 0; i < x->np; i++) {
		n += x->p[i].differs;
		flat &= x->p[i].shape != 0 && x->p[i].differs == (x->p[i].ndim <= 1);
	}
	for (uint32_t i = 0; i < x->np && shown < SHOWN && n < x->np && names != NULL; i++) {
		if (!x->p[i].differs)
			continue;
		const char *name = name_of(s, x, &x->p[i]);
		*first = *first == NULL ? name : *first;
		names = acc_say(s->m, "%s%s%s", names, shown++ == 0 ? ": " : ", ", acc_got(name));
	}
	if (names != NULL && n < x->np && n > shown)
		names = acc_say(s->m, "%s and %u more", names, n - shown);
	return n == x->np      ? "for all parameters"
	       : names == NULL ? NULL
			       : acc_say(s->m, "for %u of %u parameters%s%s", n, x->np,
					 flat ? ", those of one dimension" : "", names);
}

/* One setting that is the one on the device and the other on the bench: of all parameters of which that is so. */
static int
one_setting(struct acc_settings *s, const struct acc_setting *v, const struct acc_setting *w,
	struct acc_err *e)
{
	struct acc_optim *a = &s->s[0], *b = &s->s[1];
	const char *first = NULL;
	for (uint32_t i = 0; i < a->np; i++) {
		struct acc_param *p = &a->p[i];
		const struct acc_setting *x = p->mate == ACC_NOPARAM
						      ? NULL
						      : find(&a->g[p->group], v->key),
					 *y = x == NULL ? NULL
							: other(&b->g[b->p[p->mate].group], x);
		p->differs = y != NULL && strcmp(x->value, v->value) == 0 &&
			     strcmp(y->value, w->value) == 0;
	}
	const char *which = those(s, &first);
	return add_text(s,
		acc_say(s->m, "%.*s is %s on the device and %s on the bench %s", ACC_PRS(v->key),
			v->value, w->value, acc_got(which)),
		first == NULL ? v->key.p : first, e);
}

static int
by_param(struct acc_settings *s, struct acc_err *e)
{
	const struct acc_optim *a = &s->s[0], *b = &s->s[1];
	struct acc_ids said = {0}, groups = {0};
	int rc = 0;
	for (uint32_t i = 0; i < a->np && rc == 0; i++) {
		const struct acc_param *p = &a->p[i];
		if (p->mate == ACC_NOPARAM)
			continue;
		const struct acc_params *g = &a->g[p->group], *h = &b->g[b->p[p->mate].group];
		const uint64_t both = acc_numbered(p->group, b->p[p->mate].group);
		if (acc_ids_get(&groups, both) != ACC_NOID)
			continue;
		rc = acc_ids_put(&groups, both, 0, false, e);
		for (uint32_t k = 0; k < g->nset && rc == 0; k++) {
			const struct acc_setting *v = &g->set[k], *w = other(h, v);
			const uint64_t id =
				w == NULL ? 0
					  : acc_numbered(
						    acc_numbered(acc_hash(v->key.p, v->key.n),
							    acc_hash(v->value, strlen(v->value))),
						    acc_hash(w->value, strlen(w->value)));
			if (w == NULL || acc_ids_get(&said, id) != ACC_NOID)
				continue;
			rc = acc_ids_put(&said, id, 0, false, e);
			if (rc == 0 && s->differ < SHOWN)
				rc = one_setting(s, v, w, e);
			else if (rc == 0)
				s->differ++;
		}
	}
	acc_ids_release(&said);
	acc_ids_release(&groups);
	return rc;
}

/* How many parameters each group has: "5 (weight_decay 0.1) + 7 (weight_decay 0.0)"; of several ranks those of the first. */
static const char *
groups_text(const struct acc_settings *s, int side)
{
	const struct acc_optim *x = &s->s[side];
	const char *text = "";
	bool ranks = false;
	for (uint32_t i = 0; i < x->ng && text != NULL; i++) {
		const struct acc_params *g = &x->g[i];
		ranks |= g->rank != x->g[0].rank;
		if (g->rank != x->g[0].rank)
			continue;
		const char *plus = i == 0 ? "" : " + ";
		/* Distributed checkpoints leave out which they are; settings of one rank alone are those that differ. */
		const char *rank = memmem(g->before.p, g->before.n, "rank", 4);
		const char *many = g->nparam > 0 ? acc_say(s->m, "%u", g->nparam)
				   : rank == NULL
					   ? "some"
					   : acc_say(s->m, "%.*s otherwise",
						     (int)(g->before.p + g->before.n - rank - 1),
						     rank);
		text = acc_say(s->m, "%s%s%s", text, plus, acc_got(many));
		if (text != NULL && g->decay != NULL)
			text = acc_say(s->m, "%s (weight_decay %s)", text, g->decay);
	}
	return ranks && text != NULL
		       ? acc_say(s->m, "%s of rank %lld", text, (long long)x->g[0].rank)
		       : text;
}

/* Groups of one parameter each, by its name, are no groups. */
static bool
in_groups(const struct acc_settings *s)
{
	for (int k = 0; k < 2; k++)
		if (!acc_is_number(s->s[k].g[0].id))
			return false;
	return true;
}

static int
tell(struct acc_settings *s, bool groups, struct acc_err *e)
{
	struct acc_finding *f = acc_case_find(s->t->c, "settings", e);
	const char *a = groups_text(s, 0), *b = groups_text(s, 1);
	if (f == NULL || a == NULL || b == NULL)
		return acc_nomem(e);
	f->bad = true;
	f->name = s->first;
	f->rule = "settings";
	f->value = (double)s->differ;
	if (groups)
		f->text = acc_say(s->m,
			"the optimizer has other groups of parameters: %s on the device, %s on the bench%s%s",
			a, b, s->differ > 0 ? "; " : "", s->text);
	else if (in_groups(s))
		f->text = acc_say(s->m,
			"the optimizer has %llu other setting%s (parameters in its groups: %s): %s",
			(unsigned long long)s->differ, s->differ == 1 ? "" : "s", a, s->text);
	else
		f->text = acc_say(s->m, "the optimizer has %llu other setting%s: %s",
			(unsigned long long)s->differ, s->differ == 1 ? "" : "s", s->text);
	return f->text == NULL ? acc_nomem(e) : 0;
}

static uint32_t
without_params(const struct acc_optim *x)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->ng; i++)
		n += x->g[i].nparam == 0;
	return n;
}

/* Has a side one flat parameter for each group, as ZeRO's universal checkpoint leaves them, and the other those that are in
 * them? Then how many there are is no difference. */
static bool
is_flat(const struct acc_settings *s)
{
	uint32_t total[2] = {0, 0};
	bool one[2] = {true, true};
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < s->s[k].ng; i++) {
			total[k] += s->s[k].g[i].nparam;
			one[k] &= s->s[k].g[i].nparam == 1;
		}
	return s->paired == 0 &&
	       ((one[0] && total[0] < total[1]) || (one[1] && total[1] < total[0]));
}

static int
compare(struct acc_settings *s, struct acc_err *e)
{
	bool same = false;
	int rc = acc_settings_read(s, e);
	/* A checkpoint without an optimizer says nothing of it. */
	if (rc < 0 || s->s[0].ng == 0 || s->s[1].ng == 0)
		return rc;
	/* Of parameters of which nothing is known only their groups can be compared. */
	if (s->paired == 0)
		rc = same_groups(s, &same, e);
	if (rc < 0 || same)
		return rc;
	const bool by = s->paired == 0 || straight(s),
		   groups = s->s[0].ng != s->s[1].ng && in_groups(s) && !is_flat(s);
	rc = by ? by_group(s, e) : by_param(s, e);
	const bool same_ranks = without_params(&s->s[0]) == without_params(&s->s[1]);
	return rc < 0 || (s->differ == 0 && ((s->paired > 0 && same_ranks) || !groups))
		       ? rc
		       : tell(s, groups, e);
}

int
acc_weights_settings(struct acc_weights *t, struct acc_err *e)
{
	struct acc_settings s = {.t = t, .m = &t->c->mem, .text = ""};
	const int rc = compare(&s, e);
	acc_settings_release(&s);
	return rc;
}
