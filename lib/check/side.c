/* The parameters of one side, and what the rows of the list are there. */
#include "check/check.h"
#include "acc/say.h"

#include <stdlib.h>

static int
copy(struct side *s, struct acc_str from, struct acc_str *to)
{
	*to = acc_arena_str(&s->mem, from);
	return to->p == NULL ? ACC_ENOMEM : 0;
}

int
acc_side_add(struct side *s, const struct acc_rec *r, const char *prefix, struct acc_err *e)
{
	struct acc_str dialect = acc_get_text(r, prefix, "dialect"), text;
	enum dialect d = acc_check_dialect_of(dialect);
	if (!ACC_ROOM(s->p, s->cap, s->n + 1, e))
		return ACC_ENOMEM;
	struct param *p = &s->p[s->n];
	*p = (struct param){.dialect = d};
	int rc = copy(s, acc_get_text(r, prefix, "key"), &p->key);
	rc |= copy(s, acc_get_text(r, prefix, "where"), &p->where);
	if (acc_as_text(acc_get(r, prefix, "value"), &text)) {
		rc |= copy(s, text, &p->text);
		p->v = acc_check_mean(text, d == DIALECT_PIP, &s->mem);
		p->open = text.n > 0 && d != DIALECT_ENV && d != DIALECT_PIP &&
			  (memchr(text.p, '$', text.n) != NULL ||
				  memchr(text.p, '`', text.n) != NULL);
	}
	acc_as_bool(acc_get(r, prefix, "maybe"), &p->maybe);
	bool few = false;
	acc_as_bool(acc_get(r, prefix, "few"), &few);
	s->few[d] = few && (s->few[d] || !s->has[d]);
	if (rc < 0)
		return acc_nomem(e);
	s->has[d] = true;
	/* Nobody writes --use-cpu-initialization False: these are all of Megatron's arguments. */
	if (d == DIALECT_MEGATRON && (p->text.p == NULL || (p->v.type == ACC_V_BOOL && !p->v.b)))
		s->whole[d] = true;
	s->whole_env = s->whole_env || acc_str_is(dialect, "env");
	s->n++;
	return 0;
}

static const char *
identity(struct side *s, const struct param *p)
{
	return acc_say(&s->mem, "%d %.*s", (int)p->dialect, ACC_PRS(p->key));
}

/* Of a key that comes again in its dialect, only the last counts. */
static int
mark_stale(struct side *s, struct acc_err *e)
{
	for (size_t i = s->n; i > 0; i--) {
		const char *id = identity(s, &s->p[i - 1]);
		uint64_t *at = id == NULL ? NULL : acc_map_put(&s->at, acc_str(id), i - 1);
		if (at == NULL)
			return acc_nomem(e);
		s->p[i - 1].stale = *at != i - 1;
	}
	return 0;
}

int
acc_side_partner(struct side *s, const struct param *p, const struct param **out, struct acc_err *e)
{
	const char *id = identity(s, p);
	const uint64_t *at = id == NULL ? NULL : acc_map_get(&s->at, acc_str(id));
	*out = at == NULL ? NULL : &s->p[*at];
	return id == NULL ? acc_nomem(e) : 0;
}

static unsigned
depth(struct acc_str key)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < key.n; i++)
		n += key.p[i] == '.';
	return n;
}

/* Parts of a model that is not the one which learns to write. */
static bool
aside(struct acc_str key)
{
	static const char *const heads[] = {"vision", "visual", "audio", "eval_", "processor",
		"metric", "callbacks", "eval"};
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
		if (acc_str_starts(key, heads[i]) && memchr(key.p, '.', key.n) != NULL)
			return true;
	return false;
}

/* By its whole key, else by the end of it: num_layers is model.model_config.num_layers. The
 * shallowest counts. */
static struct param *
look_up(struct side *s, enum dialect d, struct acc_str name)
{
	struct param *best = NULL;
	for (size_t i = 0; i < s->n; i++) {
		struct param *p = &s->p[i];
		uint32_t more = p->key.n - name.n;
		if (p->dialect != d || p->stale || p->key.n < name.n ||
			memcmp(p->key.p + more, name.p, name.n) != 0)
			continue;
		if (more == 0)
			return p;
		if (p->key.p[more - 1] == '.' && d != DIALECT_CODE && !aside(p->key) &&
			(best == NULL || depth(p->key) < depth(best->key)))
			best = p;
	}
	return best;
}

/* Element n of [a, b]. */
static struct acc_val
element(struct side *s, const struct param *p, int64_t n)
{
	struct acc_str t = p->text;
	if (t.n < 2 || t.p[0] != '[')
		return acc_nil();
	t = (struct acc_str){t.p + 1, t.n - 2};
	for (int64_t i = 0; t.n > 0; i++) {
		const char *comma = memchr(t.p, ',', t.n);
		uint32_t len = comma == NULL ? t.n : (uint32_t)(comma - t.p);
		if (i == n)
			return acc_check_mean((struct acc_str){t.p, len}, false, &s->mem);
		len += comma != NULL;
		t = (struct acc_str){t.p + len, t.n - len};
	}
	return acc_nil();
}

/* What an expression's field is in this dialect. */
static void
resolve(struct side *s, enum dialect d, struct acc_str name, struct acc_val *v,
	const struct param **from)
{
	const char *dot = memchr(name.p, '.', name.n);
	uint32_t head = dot == NULL ? 0 : (uint32_t)(dot - name.p);
	enum dialect other = acc_check_dialect_of((struct acc_str){name.p, head});
	int64_t n;
	*v = acc_nil();
	*from = NULL;
	if (dot != NULL && other != DIALECT_OTHER) {
		name = (struct acc_str){dot + 1, name.n - head - 1};
		d = other;
	}
	struct param *p = look_up(s, d, name);
	if (p != NULL) {
		p->used = true;
		*from = p;
		*v = p->open ? acc_nil() : p->v;
		return;
	}
	dot = memrchr(name.p, '.', name.n);
	if (dot == NULL ||
		!acc_str_int((struct acc_str){dot + 1, (uint32_t)(name.p + name.n - dot) - 1}, &n))
		return;
	p = look_up(s, d, (struct acc_str){name.p, (uint32_t)(dot - name.p)});
	if (p == NULL)
		return;
	p->used = true;
	*from = p;
	*v = element(s, p, n);
}

static int
prepare(struct side *s, const struct acc_checklist *cl, struct acc_err *e)
{
	for (int d = 0; d < DIALECT_N; d++) {
		uint32_t n = cl->fields[d].n;
		s->vals[d].v = acc_alloc(&s->mem, (n + 1) * sizeof *s->vals[d].v);
		if (s->vals[d].v == NULL)
			return acc_nomem(e);
		for (uint32_t i = 0; i < n; i++)
			s->vals[d].v[i] = acc_nil();
		if (d == DIALECT_OTHER)
			continue;
		s->from[d] = acc_alloc(&s->mem, (n + 1) * sizeof(struct param *));
		if (s->from[d] == NULL)
			return acc_nomem(e);
		for (uint32_t i = 0; i < n; i++)
			resolve(s, (enum dialect)d, cl->fields[d].name[i], &s->vals[d].v[i],
				&s->from[d][i]);
	}
	s->known = acc_alloc(&s->mem, (cl->n + 1) * sizeof *s->known);
	if (s->known == NULL)
		return acc_nomem(e);
	memset(s->known, 0, (cl->n + 1) * sizeof *s->known);
	return 0;
}

/* --- what a row is --- */

enum { USED = 8, NAMED = 3 };

/* The parameters that an expression names and that are there, in its order. */
static uint32_t
parameters(const struct side *s, enum dialect d, const struct expr *x, const struct param **out,
	bool *own)
{
	const struct acc_val *v = s->vals[d].v;
	uint32_t fields[64], nf = acc_expr_fields(x, fields, 64), n = 0;
	*own = false;
	for (uint32_t i = 0; i < nf; i++) {
		const struct param *p = s->from[d][fields[i]];
		bool dup = p == NULL || (v[fields[i]].type == ACC_V_NIL && !p->open);
		for (uint32_t k = 0; k < n; k++)
			dup = dup || out[k] == p;
		if (dup)
			continue;
		*own = *own || p->dialect == d;
		if (n < USED)
			out[n++] = p;
	}
	return n;
}

/* Note where a value comes from: from the parameter that is it, or those it was computed from. */
static int
describe(struct side *s, struct known *k, const struct param *const *p, uint32_t n)
{
	const struct param *self = n == 1 && (p[0]->v.type == ACC_V_BOOL) ==
							   (k->v.type == ACC_V_BOOL)
					   ? p[0]
					   : NULL;
	const char *keys = "";
	for (uint32_t i = 0; i < n && self == NULL; i++)
		if (p[i]->v.type != ACC_V_BOOL && acc_check_same(&p[i]->v, &k->v))
			self = p[i];
	for (uint32_t i = 0; i < n; i++)
		k->maybe = k->maybe || p[i]->maybe;
	if (self != NULL) {
		k->key = acc_arena_copy(&s->mem, self->key.p, self->key.n);
		k->where = acc_arena_copy(&s->mem, self->where.p, self->where.n);
		k->text = acc_check_same(&self->v, &k->v)
				  ? acc_arena_copy(&s->mem, self->text.p, self->text.n)
				  : acc_check_text(&k->v, &s->mem);
		return k->key == NULL || k->where == NULL || k->text == NULL ? ACC_ENOMEM : 0;
	}
	for (uint32_t i = 0; i < n && i < NAMED && keys != NULL; i++)
		keys = acc_say(&s->mem, "%s%s%.*s%s", keys, i > 0 ? ", " : "", ACC_PRS(p[i]->key),
			i + 1 == NAMED && n > NAMED ? ", ..." : "");
	k->key = keys;
	k->where = acc_arena_copy(&s->mem, p[0]->where.p, p[0]->where.n);
	k->text = acc_check_text(&k->v, &s->mem);
	k->given = "computed";
	return keys == NULL || k->where == NULL || k->text == NULL ? ACC_ENOMEM : 0;
}

/* As it is set in dialect d. 1: it is. */
static int
set_in(struct side *s, const struct row *row, enum dialect d, struct known *k)
{
	const struct expr *x = &row->name_in[d];
	const struct param *p[USED];
	const struct expr_table t = {&s->vals[d], 1};
	bool own, open = false;
	if (x->n == 0 || !s->has[d])
		return 0;
	uint32_t n = parameters(s, d, x, p, &own);
	if (!own)
		return 0;
	struct acc_val v = acc_expr_run(x, &t, 0);
	for (uint32_t i = 0; i < n; i++)
		open = open || p[i]->open;
	if (v.type == ACC_V_NIL && !open)
		return 0;
	if (k->v.type != ACC_V_NIL || k->open != NULL) {
		/* Known already; another dialect says it, too. */
		if (k->against == NULL && v.type != ACC_V_NIL && k->v.type != ACC_V_NIL &&
			!acc_check_same(&v, &k->v)) {
			const char *text = acc_check_text(&v, &s->mem);
			k->against = text == NULL
					     ? NULL
					     : acc_say(&s->mem, "%s (%.*s, %.*s)", text,
						       ACC_PRS(p[0]->key), ACC_PRS(p[0]->where));
			return k->against == NULL ? ACC_ENOMEM : 1;
		}
		return 1;
	}
	if (open && v.type == ACC_V_NIL) {
		k->open = acc_say(&s->mem, "%.*s", ACC_PRS(p[0]->text));
		return k->open == NULL || describe(s, k, p, n) < 0 ? ACC_ENOMEM : 1;
	}
	k->v = v;
	return describe(s, k, p, n) < 0 ? ACC_ENOMEM : 1;
}

/* The version of a dialect's tool, from the packages; empty where unknown. */
static struct acc_str
version(struct side *s, enum dialect d)
{
	static const char *const package[DIALECT_N] = {
		[DIALECT_MINDFORMERS] = "mindformers",
		[DIALECT_MEGATRON] = "megatron_core",
		[DIALECT_DEEPSPEED] = "deepspeed",
		[DIALECT_HFARGS] = "transformers",
		[DIALECT_HF] = "transformers",
	};
	const struct param *p = package[d] == NULL ? NULL
						   : look_up(s, DIALECT_PIP, acc_str(package[d]));
	if (p == NULL && d == DIALECT_HF)
		p = look_up(s, DIALECT_HF, ACC_STR("transformers_version"));
	return p == NULL || p->text.p == NULL ? ACC_STR("") : p->text;
}

static int
fall_back(struct side *s, const struct row *row, struct known *k)
{
	for (const struct fallback *f = row->fallback; f != NULL; f = f->next) {
		const struct expr_table t = {&s->vals[f->dialect], 1};
		bool there = s->has[f->dialect] && !s->few[f->dialect] &&
			     (f->dialect != DIALECT_ENV || s->whole_env);
		struct acc_str is = version(s, f->dialect);
		if (!there || (f->before != NULL &&
				      (is.n == 0 || !acc_check_before(is, acc_str(f->before)))))
			continue;
		k->v = acc_expr_run(&f->x, &t, 0);
		if (k->v.type == ACC_V_NIL)
			continue;
		k->text = acc_check_text(&k->v, &s->mem);
		k->given = acc_say(&s->mem, f->fixed ? "fixed in %s%s" : "default of %s%s",
			acc_check_called(f->dialect), f->before != NULL ? " of this version" : "");
		return k->text == NULL || k->given == NULL ? ACC_ENOMEM : 0;
	}
	return 0;
}

/* Expressions of later rows may name this one. */
static void
publish(struct side *s, const struct acc_checklist *cl, const struct row *row,
	const struct known *k)
{
	for (int d = DIALECT_OTHER + 1; d < DIALECT_N; d++)
		for (uint32_t i = 0; i < cl->fields[d].n; i++) {
			struct acc_str f = cl->fields[d].name[i];
			if (acc_str_starts(f, "check.") &&
				acc_str_is((struct acc_str){f.p + 6, f.n - 6}, row->name))
				s->vals[d].v[i] = k->v;
		}
}

static bool
has_key(const struct side *s, enum dialect d, const char *prefix)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i].dialect == d && acc_str_starts(s->p[i].key, prefix))
			return true;
	return false;
}

static void
characterise(struct side *s)
{
	const struct param *target = look_up(s, DIALECT_MINDFORMERS,
		ACC_STR("context.device_target"));
	s->framework = s->has[DIALECT_MINDFORMERS] ? "mindformers"
		       : s->has[DIALECT_MEGATRON]  ? "megatron"
		       : s->has[DIALECT_HF] || s->has[DIALECT_HFARGS] || s->has[DIALECT_DEEPSPEED]
			       ? "transformers"
			       : NULL;
	if (target != NULL && target->v.type == ACC_V_TEXT)
		s->device = acc_str_is(target->v.s, "ascend") ? "npu"
			    : acc_str_is(target->v.s, "gpu")  ? "cuda"
							      : NULL;
	else if (has_key(s, DIALECT_ENV, "ASCEND_") || has_key(s, DIALECT_ENV, "HCCL_") ||
		 has_key(s, DIALECT_PIP, "torch_npu") || has_key(s, DIALECT_CODE, "torch.npu"))
		s->device = "npu";
	else if (has_key(s, DIALECT_ENV, "MACA_") || has_key(s, DIALECT_PIP, "maca"))
		s->device = "maca";
	else if (has_key(s, DIALECT_ENV, "CUDA_") || has_key(s, DIALECT_ENV, "CUBLAS_") ||
		 has_key(s, DIALECT_ENV, "NCCL_") || has_key(s, DIALECT_PIP, "nvidia_"))
		s->device = "cuda";
}

int
acc_side_know(struct side *s, const struct acc_checklist *cl, struct acc_err *e)
{
	int rc = mark_stale(s, e);
	if (rc == 0)
		rc = prepare(s, cl, e);
	if (rc == 0)
		characterise(s);
	for (uint32_t i = 0; i < cl->n && rc == 0; i++) {
		struct known *k = &s->known[i];
		bool set = false;
		for (int d = DIALECT_OTHER + 1; d < DIALECT_N && rc >= 0; d++) {
			rc = set_in(s, &cl->row[i], (enum dialect)d, k);
			set = set || rc > 0;
		}
		if (rc >= 0)
			rc = set ? 0 : fall_back(s, &cl->row[i], k);
		if (rc < 0)
			return acc_nomem(e);
		publish(s, cl, &cl->row[i], k);
	}
	return rc;
}

/* A field of a rule: a row, of this side or the other, or a key of a dialect. */
static struct acc_val
field(struct side s[2], int side, const struct acc_checklist *cl, struct acc_str name)
{
	const struct param *from;
	struct acc_val v;
	if (acc_str_starts(name, "other.")) {
		name = (struct acc_str){name.p + 6, name.n - 6};
		side = 1 - side;
	}
	if (acc_str_is(name, "framework"))
		return s[side].framework == NULL ? acc_nil() : acc_ctext(s[side].framework);
	if (acc_str_is(name, "device"))
		return s[side].device == NULL ? acc_nil() : acc_ctext(s[side].device);
	if (acc_str_is(name, "whole_env"))
		return acc_bool(s[side].whole_env);
	uint32_t at = acc_checklist_find(cl, name);
	if (at < cl->n)
		return s[side].known[at].v;
	resolve(&s[side], DIALECT_OTHER, name, &v, &from);
	return v;
}

void
acc_side_join(struct side s[2], const struct acc_checklist *cl)
{
	const struct expr_fields *f = &cl->fields[DIALECT_OTHER];
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0; i < f->n; i++)
			s[side].vals[DIALECT_OTHER].v[i] = field(s, side, cl, f->name[i]);
}

void
acc_side_release(struct side *s)
{
	free(s->p);
	acc_map_release(&s->at);
	acc_arena_release(&s->mem);
}
