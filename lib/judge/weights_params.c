/* The optimizers of two checkpoints: groups of parameters and their settings, as torch keeps them in param_groups, and which
 * parameter is which. It goes by its name, or by its state, of which the pairs say whose it is on the other side. */
#include "judge/weights_settings.h"
#include "acc/say.h"

#include <stdlib.h>

/* How a program computes, not what. */
static const char *const ways[] = {"foreach", "fused", "capturable", "differentiable",
	"param_names"};

/* --- names --- */

static struct acc_str
tail(struct acc_str s, uint32_t from)
{
	return (struct acc_str){s.p + from, s.n - from};
}

/* Behind "WORDS." as words of the name; *before: what stands before them. */
static bool
behind(struct acc_str name, const char *words, struct acc_str *before, struct acc_str *rest)
{
	const uint32_t n = (uint32_t)strlen(words);
	const char *at = memmem(name.p, name.n, words, n);
	if (at == NULL || (at > name.p && at[-1] != '.'))
		return false;
	*before = (struct acc_str){name.p, (uint32_t)(at - name.p)};
	*rest = tail(name, before->n + n);
	return rest->n > 0;
}

/* How much of s is its first word. */
static uint32_t
word(struct acc_str s)
{
	const char *dot = memchr(s.p, '.', s.n);
	return dot == NULL ? s.n : (uint32_t)(dot - s.p);
}

bool
acc_is_number(struct acc_str s)
{
	int64_t n;
	return acc_str_int(s, &n) && n >= 0;
}

/* Where the last word of s starts; one more where that is a number, as in betas.0. */
static uint32_t
last_word(struct acc_str s)
{
	uint32_t i = s.n, dots = 0;
	for (; i > 0; i--) {
		if (s.p[i - 1] != '.')
			continue;
		if (dots++ > 0 || !acc_is_number(tail(s, i)))
			break;
	}
	return i;
}

static bool
is_way(struct acc_str rest)
{
	const struct acc_str first = {rest.p, word(rest)};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (acc_str_is(first, ways[i]))
			return true;
	return false;
}

uint64_t
acc_optim_hash(int64_t rank, struct acc_str before, struct acc_str id)
{
	const uint64_t h[3] = {(uint64_t)rank, acc_hash(before.p, before.n), acc_hash(id.p, id.n)};
	return acc_hash(h, sizeof h);
}

/* --- groups --- */

static struct acc_params *
group_of(struct acc_settings *s, int side, int64_t rank, struct acc_str before, struct acc_str id,
	struct acc_err *e)
{
	struct acc_optim *x = &s->s[side];
	const uint64_t h = acc_optim_hash(rank, before, id);
	const uint32_t at = acc_ids_get(&x->groups, h);
	if (at != ACC_NOID)
		return &x->g[at];
	if (!ACC_ROOM(x->g, x->capg, (size_t)x->ng + 1, e))
		return NULL;
	struct acc_params *g = x->g;
	g[x->ng] = (struct acc_params){.before = acc_arena_str(s->m, before),
		.id = acc_arena_str(s->m, id),
		.rank = rank};
	if (g[x->ng].before.p == NULL || g[x->ng].id.p == NULL ||
		acc_ids_put(&x->groups, h, x->ng, false, e) < 0) {
		acc_nomem(e);
		return NULL;
	}
	return &g[x->ng++];
}

static int
add_param(struct acc_settings *s, int side, struct acc_params *g, struct acc_str id,
	struct acc_err *e)
{
	struct acc_optim *x = &s->s[side];
	if (!ACC_ROOM(x->p, x->capp, (size_t)x->np + 1, e))
		return ACC_ENOMEM;
	struct acc_param *p = x->p;
	p[x->np] = (struct acc_param){.id = acc_arena_str(s->m, id),
		.group = (uint32_t)(g - x->g),
		.at = g->nparam++,
		.mate = ACC_NOPARAM};
	if (p[x->np].id.p == NULL)
		return acc_nomem(e);
	return acc_ids_put(&x->params, acc_optim_hash(g->rank, g->before, id), x->np++, false, e);
}

static int
add_setting(struct acc_settings *s, struct acc_params *g, struct acc_str key,
	const struct acc_val *v, struct acc_err *e)
{
	/* 0 and 0.0 are one setting. */
	const struct acc_val number = v != NULL && v->type == ACC_V_INT ? acc_f64((double)v->i)
									: acc_nil();
	if (!ACC_ROOM(g->set, g->cap, (size_t)g->nset + 1, e))
		return ACC_ENOMEM;
	struct acc_setting *p = g->set;
	p = &p[g->nset++];
	*p = (struct acc_setting){acc_arena_str(s->m, key),
		acc_say_value(s->m, number.type == ACC_V_F64 ? &number : v)};
	if (acc_str_is(key, "weight_decay"))
		g->decay = p->value;
	return p->key.p == NULL || p->value == NULL ? acc_nomem(e) : 0;
}

/* A name under a key of one of the tables. */
static int
add_name(struct acc_settings *s, struct acc_optim *x, struct acc_ids *table, uint64_t key,
	struct acc_str name, struct acc_err *e)
{
	if (!ACC_ROOM(x->name, x->capn, (size_t)x->nname + 1, e))
		return ACC_ENOMEM;
	x->name[x->nname] = acc_arena_copy(s->m, name.p, name.n);
	return x->name[x->nname] == NULL ? acc_nomem(e)
					 : acc_ids_put(table, key, x->nname++, false, e);
}

uint64_t
acc_numbered(uint64_t a, uint64_t b)
{
	const uint64_t of[2] = {a, b};
	return acc_hash(of, sizeof of);
}

/* PREFIX.param_groups.3.betas.0, .params.7, or, where each parameter has its own, .layers.0.weight.betas.0 */
static int
look(struct acc_settings *s, int side, const struct acc_rec *r, const char *prefix,
	struct acc_err *e)
{
	const struct acc_val *v = acc_get(r, prefix, "value");
	struct acc_str before, rest, text;
	char number[24];
	int64_t at;
	if (!behind(acc_get_text(r, prefix, "name"), "param_groups.", &before, &rest))
		return 0;
	const bool several = acc_is_number((struct acc_str){rest.p, word(rest)});
	const uint32_t n = several ? word(rest) : last_word(rest);
	if (n == 0 || n >= rest.n)
		return 0;
	const struct acc_str id = {rest.p, several ? n : n - 1};
	struct acc_params *g = group_of(s, side, acc_get_int(r, prefix, "rank", -1), before, id, e);
	if (g == NULL)
		return ACC_ENOMEM;
	rest = tail(rest, several ? n + 1 : n);
	int rc = !several && g->nparam == 0 ? add_param(s, side, g, id, e) : 0;
	if (rc == 0 && several && acc_str_starts(rest, "params.") && v != NULL) {
		if (v->type == ACC_V_INT)
			snprintf(number, sizeof number, "%lld", (long long)v->i);
		if (v->type == ACC_V_INT || acc_as_text(v, &text))
			rc = add_param(s, side, g, v->type == ACC_V_INT ? acc_str(number) : text,
				e);
	} else if (rc == 0 && acc_str_starts(rest, "param_names.") && acc_as_text(v, &text) &&
		   acc_str_int(tail(rest, sizeof "param_names." - 1), &at)) {
		struct acc_optim *x = &s->s[side];
		rc = add_name(s, x, &x->names, acc_numbered((uint64_t)(g - x->g), (uint64_t)at),
			text, e);
	} else if (rc == 0 && !is_way(rest)) {
		rc = add_setting(s, g, rest, v, e);
	}
	return rc;
}

/* Whose state is this? NULL: nobody's. */
static struct acc_param *
owner(struct acc_optim *x, const struct acc_rec *r, const char *prefix, bool *state)
{
	struct acc_str before, rest;
	*state = behind(acc_get_text(r, prefix, "name"), "state.", &before, &rest);
	if (!*state)
		return NULL;
	const uint32_t n = acc_is_number((struct acc_str){rest.p, word(rest)}) ? word(rest) + 1
									       : last_word(rest);
	const uint32_t at = n == 0 ? ACC_NOID
				   : acc_ids_get(&x->params,
					     acc_optim_hash(acc_get_int(r, prefix, "rank", -1),
						     before, (struct acc_str){rest.p, n - 1}));
	return at == ACC_NOID ? NULL : &x->p[at];
}

/* A tensor: the state of a parameter of each side, or a weight, whose name is that of a parameter of its shape. */
static int
see(struct acc_settings *s, const struct acc_rec *r, struct acc_err *e)
{
	static const char *const prefix[2] = {"a.", "b."};
	struct acc_param *p[2];
	int rc = 0;
	for (int k = 0; k < 2 && rc == 0; k++) {
		const struct acc_val *shape = acc_get(r, prefix[k], "shape");
		struct acc_optim *x = &s->s[k];
		bool state;
		p[k] = owner(x, r, prefix[k], &state);
		if (shape == NULL || shape->type != ACC_V_INTS || shape->n == 0)
			continue;
		const uint64_t h = acc_hash(shape->ints, shape->n * sizeof *shape->ints);
		if (p[k] != NULL && shape->n > p[k]->ndim) {
			p[k]->shape = h;
			p[k]->ndim = shape->n;
		}
		const uint32_t nth = state ? 0
					   : acc_ids_get(&x->weights, h) +
						     1; /* ACC_NOID + 1 is 0 */
		if (!state)
			rc = acc_ids_put(&x->weights, h, nth, true, e);
		if (!state && rc == 0)
			rc = add_name(s, x, &x->weights, acc_numbered(h, nth),
				acc_get_text(r, prefix[k], "name"), e);
	}
	if (rc < 0 || p[0] == NULL || p[1] == NULL || p[0]->mate != ACC_NOPARAM ||
		p[1]->mate != ACC_NOPARAM)
		return rc;
	p[0]->mate = (uint32_t)(p[1] - s->s[1].p);
	p[1]->mate = (uint32_t)(p[0] - s->s[0].p);
	s->paired++;
	return 0;
}

/* The name of a parameter, that it goes by or that its group tells; 0: none. */
static uint64_t
named(const struct acc_optim *x, const struct acc_param *p)
{
	const uint32_t at = acc_is_number(p->id)
				    ? acc_ids_get(&x->names, acc_numbered(p->group, p->at))
				    : ACC_NOID;
	const struct acc_params *g = &x->g[p->group];
	return !acc_is_number(p->id) ? acc_optim_hash(g->rank, g->before, p->id)
	       : at == ACC_NOID      ? 0
				     : acc_optim_hash(g->rank, g->before, acc_str(x->name[at]));
}

/* What has a name goes by that. */
static int
pair_names(struct acc_settings *s, struct acc_err *e)
{
	struct acc_optim *a = &s->s[0], *b = &s->s[1];
	struct acc_ids names = {0};
	int rc = 0;
	for (uint32_t i = 0; i < b->np && rc == 0; i++)
		if (named(b, &b->p[i]) != 0)
			rc = acc_ids_put(&names, named(b, &b->p[i]), i, false, e);
	for (uint32_t i = 0; i < a->np && rc == 0; i++) {
		struct acc_param *p = &a->p[i];
		const uint64_t name = named(a, p);
		const uint32_t k = p->mate != ACC_NOPARAM || name == 0 ? ACC_NOID
								       : acc_ids_get(&names, name);
		if (k == ACC_NOID || b->p[k].mate != ACC_NOPARAM)
			continue;
		p->mate = k;
		b->p[k].mate = i;
		s->paired++;
	}
	acc_ids_release(&names);
	return rc;
}

static int
read_all(struct acc_settings *s, enum acc_item_kind kind, struct acc_err *e)
{
	static const char *const prefix[2] = {"a.", "b."};
	struct acc_case *c = s->t->c;
	struct acc_rec *r;
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc >= 0; i = acc_step(c, i)) {
		if (c->item[i].kind != kind)
			continue;
		rc = acc_case_record(c, &c->item[i], &r, e);
		if (rc >= 0 && kind == ACC_ITEM_TENSOR)
			rc = see(s, r, e);
		for (int k = 0; k < 2 && rc >= 0 && kind == ACC_ITEM_ARG; k++)
			rc = look(s, k, r, prefix[k], e);
	}
	return rc < 0 ? rc : 0;
}

int
acc_settings_read(struct acc_settings *s, struct acc_err *e)
{
	int rc = read_all(s, ACC_ITEM_ARG, e);
	if (rc < 0 || s->s[0].ng == 0 || s->s[1].ng == 0)
		return rc;
	rc = pair_names(s, e);
	return rc < 0 ? rc : read_all(s, ACC_ITEM_TENSOR, e);
}

void
acc_settings_release(struct acc_settings *s)
{
	for (int k = 0; k < 2; k++) {
		struct acc_optim *x = &s->s[k];
		for (uint32_t i = 0; i < x->ng; i++)
			free(x->g[i].set);
		free(x->g);
		free(x->p);
		free(x->name);
		acc_ids_release(&x->groups);
		acc_ids_release(&x->params);
		acc_ids_release(&x->names);
		acc_ids_release(&x->weights);
	}
}
