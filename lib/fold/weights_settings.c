/* The settings of optimizers in checkpoints over ranks: one of what all ranks say, and which parameters each group has. */
#include "fold/weights.h"

#include <stdlib.h>

struct settings {
	struct acc_fold *f;
	acc_fold_fn *fn;
	void *arg;
	struct acc_rec rec;
	struct acc_arena mem;
	struct acc_map said; /* names; which value they have */
	int64_t params;
	int stopped;
};

static const char groups[] = "param_groups.", params[] = "params.";

/* Where the word begins in s; NULL: nowhere. */
static const char *
find(struct acc_str s, const char *word)
{
	const char *at = s.n == 0 ? NULL : memmem(s.p, s.n, word, strlen(word));
	return at != NULL && (at == s.p || at[-1] == '.') ? at : NULL;
}

/* Each wrapper of an optimizer puts a word before its settings: base_optimizer_state, optimizer. Which it is of several is
 * a number. */
static const char *
settings_name(struct settings *o, struct acc_str s, const char *at)
{
	const char *name = "optimizer.";
	for (const char *p = s.p, *dot; p < at && name != NULL; p = dot + 1) {
		dot = memchr(p, '.', (size_t)(at - p));
		int64_t n;
		if (dot == NULL)
			break;
		if (acc_str_int((struct acc_str){p, (uint32_t)(dot - p)}, &n))
			name = acc_arena_printf(&o->mem, "%s%lld.", name, (long long)n);
	}
	return name == NULL ? NULL
			    : acc_arena_printf(&o->mem, "%s%.*s", name, (int)(s.p + s.n - at), at);
}

static int
hand(struct settings *o, const struct acc_rec *r, const char *name, const struct acc_val *value)
{
	static const char *const keys[] = {"name", "key", "op"};
	int rc = acc_rec_start(&o->rec, r->kind);
	for (size_t i = 0; i < sizeof keys / sizeof *keys && rc == 0; i++)
		rc = acc_add(&o->rec, "", keys[i], acc_ctext(name));
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (!acc_word_in("name key op value type rank proc", r->f[i].key))
			rc = acc_rec_push(&o->rec, &r->f[i]);
	if (rc == 0 && value != NULL)
		rc = acc_put(&o->rec, "", "value", *value);
	if (rc == 0)
		o->stopped = o->fn(o->arg, &o->rec);
	return rc < 0 ? rc : o->stopped < 0 ? ACC_ESTOP : 0;
}

static uint64_t
hash_of(const struct acc_val *v)
{
	struct acc_str text = {"", 0};
	double x = v == NULL              ? 0
		   : v->type == ACC_V_F64 ? v->f
		   : v->type == ACC_V_INT ? (double)v->i
					  : 0;
	if (v == NULL || acc_as_text(v, &text))
		return acc_hash(text.p, text.n);
	if (v->type == ACC_V_BOOL)
		x = v->b ? 2 : 3;
	return acc_hash(&x, sizeof x);
}

/* What the ranks say alike is said once; what one says otherwise is a setting of that rank. */
static int
put_setting(struct settings *o, const struct acc_rec *r, const char *at, struct acc_err *e)
{
	struct acc_str s = acc_get_text(r, "", "name");
	const struct acc_val *v = acc_get(r, "", "value");
	const char *name = settings_name(o, s, at);
	uint64_t *had = name == NULL ? NULL : acc_map_get(&o->said, acc_str(name));
	int rc = name == NULL ? ACC_ENOMEM : 0;
	if (rc == 0 && had != NULL && *had == hash_of(v))
		return 0;
	if (rc == 0 && had != NULL)
		name = acc_arena_printf(&o->mem, "optimizer.rank%lld.%s",
			(long long)acc_get_int(r, "", "rank", -1), name + sizeof "optimizer." - 1);
	if (name == NULL ||
		(had == NULL && acc_map_put(&o->said, acc_str(name), hash_of(v)) == NULL))
		rc = ACC_ENOMEM;
	rc = rc < 0 ? rc : hand(o, r, name, v);
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* A parameter of a group, by its name or a number of its own. */
static int
put_param(struct settings *o, const struct acc_rec *r, struct acc_str group, struct acc_str param,
	struct acc_err *e)
{
	const struct acc_val v = param.n > 0 ? acc_text(param) : acc_int(o->params);
	const char *name = acc_arena_printf(&o->mem, "%.*s.params.%lld", ACC_PRS(group),
		(long long)o->params++);
	int rc = name == NULL ? ACC_ENOMEM : hand(o, r, name, &v);
	return rc < 0 ? acc_rec_fail(e, rc) : 0;
}

/* param_shapes.GROUP.NAME.0 of DeepSpeed's. */
static int
put_shape(struct settings *o, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str s = acc_get_text(r, "", "name");
	const uint32_t n = sizeof "param_shapes." - 1;
	if (!acc_str_starts(s, "param_shapes.") || !acc_str_ends(s, ".0"))
		return 0;
	const char *dot = memchr(s.p + n, '.', s.n - n);
	const char *group = acc_arena_printf(&o->mem, "optimizer.param_groups.%.*s",
		(int)(dot - s.p - n), s.p + n);
	if (group == NULL)
		return acc_nomem(e);
	return s.p + s.n - dot <= 3
		       ? 0
		       : put_param(o, r, acc_str(group),
				 (struct acc_str){dot + 1, (uint32_t)(s.p + s.n - dot - 3)}, e);
}

static int
put_one(struct settings *o, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str s = acc_get_text(r, "", "name");
	const char *at = find(s, groups);
	int64_t c[FOLD_COORDS];
	const bool placed = acc_weights_place(o->f->weights, r, c) > 0,
		   zero = o->f->weights->data > 0;
	/* Each stage has parameters of its own; other ranks have parts of the same. */
	const bool first = c[0] == 0 && c[2] == 0 && c[3] == 0;
	if (at == NULL)
		return zero && first ? put_shape(o, r, e) : 0;
	if (!placed)
		return hand(o, r, acc_arena_copy(&o->mem, s.p, s.n), acc_get(r, "", "value"));
	const char *rest = at + sizeof groups - 1, *end = s.p + s.n,
		   *dot = memchr(rest, '.', (size_t)(end - rest));
	if (dot == NULL ||
		!acc_str_starts((struct acc_str){dot + 1, (uint32_t)(end - dot - 1)}, params))
		return put_setting(o, r, at, e);
	if (zero || !first)
		return 0;
	const char *group = settings_name(o, (struct acc_str){s.p, (uint32_t)(dot - s.p)}, at);
	return group == NULL ? acc_nomem(e)
			     : put_param(o, r, acc_str(group), (struct acc_str){"", 0}, e);
}

int
acc_weights_put_settings(struct acc_fold *f, acc_fold_fn *fn, void *arg, struct acc_err *e)
{
	struct settings o = {.f = f, .fn = fn, .arg = arg};
	struct acc_rec *r;
	int rc = 0;
	for (uint32_t i = 0; i < f->device.nitem && rc == 0; i++) {
		if (f->device.item[i].tensor)
			continue;
		rc = acc_fold_record(f, f->device.item[i].at, &r, e);
		rc = rc < 0 ? rc : put_one(&o, r, e);
	}
	acc_map_release(&o.said);
	acc_arena_release(&o.mem);
	acc_rec_release(&o.rec);
	return rc == ACC_ESTOP && o.stopped < 0 ? o.stopped : rc;
}
