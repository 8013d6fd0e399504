/* One op call of a ptdbg_ascend dump: its tensors and arguments as records. */
#include "acc/stream.h"
#include "dump/payload.h"
#include "dump/op/ptdbg.h"

#include <math.h>
#include <stdlib.h>

static int
add(struct acc_rec *r, const char *key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = acc_str(key), .v = v});
}

static bool
is_scalar(const struct jnode *n)
{
	return n != NULL && (n->type == ACC_JSON_INT || n->type == ACC_JSON_FLOAT ||
				    n->type == ACC_JSON_TRUE || n->type == ACC_JSON_FALSE);
}

static struct acc_val
number(const struct jnode *n)
{
	return n->type == ACC_JSON_INT     ? acc_int(n->i)
	       : n->type == ACC_JSON_FLOAT ? acc_f64(n->f)
					   : acc_bool(n->type == ACC_JSON_TRUE);
}

/* --- stacks --- */

static const char *
word(const struct jnode *n, struct acc_arena *m)
{
	if (n == NULL || n->type == ACC_JSON_NULL)
		return "None"; /* no source, as msprobe writes it */
	struct acc_str s = n->type == ACC_JSON_STRING ? n->s : acc_jtree_dump(n, m);
	return s.p;
}

/* [file, line, function, code] as msprobe writes a frame; old versions have a text here. */
static struct acc_str
frame(const struct jnode *n, struct acc_arena *m)
{
	const struct jnode *v[4] = {0};
	if (n->type != ACC_JSON_ARRAY)
		return acc_str_made(word(n, m));
	int i = 0;
	for (const struct jnode *c = n->child; c != NULL && i < 4; c = c->next)
		v[i++] = c;
	const char *w[4];
	for (i = 0; i < 4; i++)
		if ((w[i] = word(v[i], m)) == NULL)
			return acc_str_made(NULL);
	return acc_str_made(
		acc_arena_printf(m, "File %s, line %s, in %s, \n %s", w[0], w[1], w[2], w[3]));
}

/* "..._forward" for "..._backward". */
static struct acc_str
forward_of(struct acc_str key, struct acc_arena *m)
{
	if (!acc_str_ends(key, "backward"))
		return (struct acc_str){"", 0};
	return acc_str_made(acc_arena_printf(m, "%.*sforward", (int)key.n - 8, key.p));
}

struct stack {
	struct acc_str id, from;
	char hex[17];
};

/* The stack of the op call, or that of its forward call. */
static int
find_stack(struct ptdbg *p, struct stack *s)
{
	*s = (struct stack){.id = {"", 0}, .from = {"", 0}};
	if (p->frames != NULL && p->frames->n > 0) {
		struct acc_str *f = acc_alloc(&p->mem, p->frames->n * sizeof *f);
		uint32_t n = 0;
		for (const struct jnode *c = p->frames->child; f != NULL && c != NULL; c = c->next)
			f[n++] = frame(c, &p->mem);
		if (f != NULL)
			s->id = acc_dump_stack(p->c, f, n);
		return s->id.n > 0 && acc_map_put(&p->stack_of, p->key,
					      strtoull(s->id.p, NULL, 16)) != NULL
			       ? 0
			       : ACC_ENOMEM;
	}
	struct acc_str fwd = forward_of(p->key, &p->mem);
	const uint64_t *at = fwd.n == 0 ? NULL : acc_map_get(&p->stack_of, fwd);
	if (at != NULL) {
		acc_hex16(*at, s->hex);
		s->id = (struct acc_str){s->hex, 16};
		s->from = fwd;
	}
	return 0;
}

/* --- records --- */

/* The record of a line with its place; *out = NULL where it is not selected. */
static int
begin(struct ptdbg *p, const char *kind, struct acc_str name, const struct argname *a,
	const struct stack *s, struct acc_rec **out, struct acc_err *e)
{
	struct acc_rec *r = acc_dump_rec(p->c, kind, name);
	int rc = acc_dump_argname_put(r, a);
	*out = r;
	if (rc == 0 && !acc_dump_selects(p->c, r)) {
		*out = NULL;
		return acc_dump_put(p->c, r, e);
	}
	if (s->id.n > 0)
		rc |= add(r, "stack", acc_text(s->id));
	if (s->from.n > 0)
		rc |= add(r, "stack_from", acc_text(s->from));
	return rc < 0 ? acc_nomem(e) : 0;
}

static bool
is_nan(const struct jnode *n)
{
	return n->type == ACC_JSON_FLOAT && isnan(n->f);
}

/* "Nan" where there is no norm; [] where the tensor is bool or empty. TroubleShooter writes NaN for what it was not
 * asked for, so one beside a number says nothing. */
static int
add_stats(struct acc_rec *r, const struct jnode *list, const struct jnode *norm)
{
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	const struct jnode *n = list != NULL && list->type == ACC_JSON_ARRAY ? list->child : NULL;
	const bool all = norm == NULL;
	bool any = !all && is_scalar(norm) && !is_nan(norm);
	int rc = 0;
	for (const struct jnode *x = n; x != NULL; x = x->next)
		any |= is_scalar(x) && !is_nan(x);
	if (!all && is_scalar(norm))
		rc = add(r, "stat.norm", number(norm));
	for (int i = 0; n != NULL && i < 4; n = n->next, i++)
		if (!all && any && is_nan(n))
			continue;
		else if (is_scalar(n))
			rc |= add(r, keys[i], number(n));
		else if (n->type != ACC_JSON_STRING)
			rc |= add(r, keys[i], acc_nil());
	return rc;
}

/* 32 hex digits, 8 of them, or a decimal number. Eight decimal digits are read as the checksums
 * before them: a dump has one kind. */
static int
add_sum(struct ptdbg *p, struct acc_rec *r, const struct jnode *n)
{
	int64_t v = -1;
	if (n == NULL)
		return 0;
	if (n->type == ACC_JSON_STRING && n->s.n == 32)
		return add(r, "stat.md5", acc_text(n->s));
	if (n->type == ACC_JSON_INT)
		v = n->i;
	else if (n->type == ACC_JSON_STRING && acc_str_int(n->s, &v))
		p->decimal |= n->s.n != 8;
	if (v >= 0 && v <= UINT32_MAX && (n->type == ACC_JSON_INT || p->decimal))
		return acc_add(r, "", "stat.crc32",
			acc_ctext(acc_arena_printf(&p->mem, "%08llx", (unsigned long long)v)));
	return n->type == ACC_JSON_STRING && n->s.n == 8 ? add(r, "stat.crc32", acc_text(n->s)) : 0;
}

static bool
read_shape(const struct jnode *n, struct acc_ref *ref)
{
	if (n == NULL || n->type != ACC_JSON_ARRAY || n->n > ACC_MAXDIM)
		return false;
	for (const struct jnode *c = n->child; c != NULL; c = c->next) {
		if (c->type != ACC_JSON_INT || c->i < 0)
			return false;
		ref->shape[ref->ndim++] = c->i;
	}
	return true;
}

/* Do the line and the file agree? numpy has no bfloat16, and a half may have been widened on
 * its way to the host. */
static int
agree(const struct acc_ref *want, const struct acc_ref *got, struct acc_err *e)
{
	if (want->ndim != got->ndim ||
		memcmp(want->shape, got->shape, want->ndim * sizeof *want->shape) != 0)
		return acc_fail(e, ACC_EFORMAT, "the file has another shape than the dump says");
	if (!acc_dtype_measured(want->dtype) || want->dtype == got->dtype)
		return 0;
	const struct acc_dtype_info *w = acc_dtype_of(want->dtype), *g = acc_dtype_of(got->dtype);
	if (w->cls == 'F' && g->cls == 'F' && w->size < g->size)
		return 0;
	return acc_fail(e, ACC_EFORMAT, "the dump says %s, the file holds %s", w->name, g->name);
}

/* dtype, shape, and where the payload is. */
static int
add_ref(struct ptdbg *p, struct acc_rec *r, const struct ptdbg_line *l)
{
	struct acc_ref want = {.dtype = acc_dtype_find(l->dtype->s)}, got;
	struct acc_err bad = {0};
	const char *file = p->dir;
	bool payload = false;
	int rc = add(r, "dtype.raw", acc_text(l->dtype->s));
	bool shape = read_shape(l->shape, &want);
	if (!shape)
		acc_fail(&bad, ACC_EFORMAT, "the shape is no list of sizes");
	if (p->npy != NULL && memchr(l->name.p, '/', l->name.n) != NULL) {
		acc_fail(&bad, ACC_EREFUSED, "refused %.150s: it is no plain name", l->name.p);
	} else if (p->npy != NULL) {
		file = acc_arena_printf(&p->mem, "%s/%.*s.npy", p->npy, ACC_PRS(l->name));
		if (file == NULL)
			return ACC_ENOMEM;
		payload = acc_dump_payload(p->dirfd, acc_str(file), &got, &p->mem, &bad) == 0;
		if (payload && shape)
			agree(&want, &got, &bad);
		file = acc_arena_printf(&p->mem, "%s/%s", p->dir, file);
	}
	if (payload) {
		rc |= acc_ref_put(r, &got);
	} else {
		if (want.dtype != ACC_NODTYPE)
			rc |= add(r, "dtype", acc_ctext(acc_dtype_of(want.dtype)->name));
		if (shape)
			rc |= acc_add(r, "", "shape", acc_ints(want.shape, want.ndim));
	}
	return rc | acc_dump_say_err(&p->said, p->c, r, &bad, file == NULL ? p->dir : file);
}

/* <class 'int'>: int */
static bool
is_class(struct acc_str dtype, struct acc_str *type)
{
	const uint32_t n = 8; /* <class ' */
	if (!acc_str_starts(dtype, "<class '") || !acc_str_ends(dtype, "'>") || dtype.n < n + 2)
		return false;
	*type = (struct acc_str){dtype.p + n, dtype.n - n - 2};
	return true;
}

static int
put_line(struct ptdbg *p, const struct ptdbg_line *l, const struct stack *s, struct acc_err *e)
{
	struct argname a;
	struct acc_str type;
	struct acc_rec *r;
	bool arg = is_class(l->dtype->s, &type);
	if (acc_dump_argname(l->name, &p->mem, &a) < 0)
		return acc_nomem(e);
	int rc = begin(p, arg ? "arg" : "tensor", l->name, &a, s, &r, e);
	if (rc < 0 || r == NULL)
		return rc;
	if (arg) {
		const struct jnode *v = l->stats != NULL && l->stats->type == ACC_JSON_ARRAY
						? l->stats->child
						: NULL;
		rc |= add(r, "type", acc_text(type));
		if (is_scalar(v))
			rc |= add(r, "value", number(v));
	} else {
		rc |= add_ref(p, r, l);
		rc |= add_stats(r, l->stats, l->norm);
		rc |= add_sum(p, r, l->sum);
	}
	if (rc < 0)
		return acc_nomem(e);
	return acc_dump_put(p->c, r, e);
}

/* The dump's kind is what its first op call shows. */
static int
start(struct ptdbg *p, struct acc_err *e)
{
	const struct jnode *v = p->first == NULL ? NULL : p->first->stats;
	bool stats = v != NULL && v->type == ACC_JSON_ARRAY && v->n > 0;
	struct acc_source s = {
		.root = p->dir,
		.format = "ptdbg",
		.framework = p->mindspore ? "mindspore" : "pytorch",
		.task = p->first == NULL ? NULL
			: p->overflow    ? "overflow_check"
			: p->npy != NULL ? "tensor"
			: stats          ? "statistics"
					 : "md5",
		.step = p->step,
		.rank = p->rank,
		.proc = p->proc,
	};
	p->started = true;
	return acc_dump_source(p->c, &s, e);
}

int
acc_ptdbg_call(struct ptdbg *p, struct acc_err *e)
{
	struct stack s;
	int rc = p->started ? 0 : start(p, e);
	if (rc < 0)
		return rc;
	if (find_stack(p, &s) < 0)
		return acc_nomem(e);
	for (const struct ptdbg_line *l = p->first; l != NULL && rc >= 0; l = l->next)
		rc = put_line(p, l, &s, e);
	if (p->first != NULL)
		return rc;
	struct argname a;
	struct acc_rec *r;
	if (acc_dump_argname_key(p->key, p->sep, &p->mem, &a) < 0)
		return acc_nomem(e);
	rc = begin(p, "call", p->key, &a, &s, &r, e);
	return rc < 0 || r == NULL ? rc : acc_dump_put(p->c, r, e);
}
