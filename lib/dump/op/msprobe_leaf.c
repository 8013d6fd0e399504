/* One tensor or argument of an op call as a record. */
#include "acc/say.h"
#include "acc/stream.h"
#include "dump/op/msprobe.h"

#include <unistd.h>

/* A record's shape while it is made here, of keys that are literals, by where these stand: many records have the same
 * ones, and are not looked at again. The lowest bits count them; what others have put makes it 0. */
enum { COUNT = 12 };
_Static_assert(ACC_MAX_FIELDS <= 1 << COUNT, "a record's fields can be counted");

static inline uint64_t
shape_with(uint64_t shape, uint32_t n, const char *literal)
{
	const uint64_t h = ((shape >> COUNT) + (uintptr_t)literal) * UINT64_C(0x9e3779b97f4a7c15);
	return (shape & ((1 << COUNT) - 1)) != n ? 0 : h << COUNT | (n + 1);
}

/* Everything that is put points into the op's arena or is constant: nothing is copied. The key is a literal. */
static inline int
add(struct acc_rec *r, struct acc_str key, const struct acc_val v)
{
	if (r->n >= r->cap || r->n >= ACC_MAX_FIELDS - 1 || (v.type == ACC_V_TEXT && v.s.p == NULL))
		return acc_rec_push(r, &(struct acc_field){.key = key, .v = v});
	struct acc_field *f = &r->f[r->n];
	r->shape = shape_with(r->shape, r->n++, key.p);
	f->key.p = key.p;
	f->key.n = key.n;
	f->v.type = v.type;
	f->v.n = v.n;
	f->v.s.p = v.s.p;
	f->v.s.n = v.s.n;
	f->raw = NULL;
	f->nraw = 0;
	return 0;
}

/* acc_text, compiled in. */
static inline struct acc_val
text(struct acc_str s)
{
	return (struct acc_val){.type = ACC_V_TEXT, .s = s};
}

static inline int
add_text(struct acc_rec *r, struct acc_str key, struct acc_str s)
{
	return s.n == 0 ? 0 : add(r, key, text(s));
}

/* The record of a leaf with its place; *r = NULL where it is not selected. */
static int
begin(struct msprobe_op *o, const char *kind, struct acc_str name, struct acc_rec **out,
	struct acc_err *e)
{
	struct acc_dump_ctx *c = o->m->c;
	struct acc_rec *r = acc_dump_nameless(c, kind);
	r->shape = (uint64_t)(uintptr_t)kind << COUNT;
	int rc = add(r, ACC_STR("name"), text(name));
	rc |= add(r, ACC_STR("key"), text(o->key));
	rc |= add(r, ACC_STR("op"), text(o->parsed.op));
	if (o->parsed.call >= 0)
		rc |= add(r, ACC_STR("call"), acc_int(o->parsed.call));
	rc |= add_text(r, ACC_STR("pass"), o->pass);
	rc |= add(r, ACC_STR("io"), text(acc_str(o->io)));
	rc |= add_text(r, ACC_STR("pos"), o->pos);
	*out = r;
	if (rc == 0 && !acc_dump_selects(c, r)) {
		*out = NULL;
		return acc_dump_put(c, r, e);
	}
	rc |= add_text(r, ACC_STR("scope"), o->scope);
	if (o->stack != NULL) {
		rc |= add_text(r, ACC_STR("stack"), acc_msprobe_stack_id(&o->m->maps, o->stack, c));
		rc |= add_text(r, ACC_STR("stack_from"), o->stack_from);
	}
	return rc < 0 ? acc_nomem(e) : 0;
}

/* --- tensors --- */

static int
add_stat(struct acc_rec *r, struct acc_str key, const struct jnode *n)
{
	if (n == NULL)
		return 0;
	switch (n->type) {
	case ACC_JSON_NULL:
		return add(r, key, acc_nil());
	case ACC_JSON_INT:
		return add(r, key, acc_int(n->i));
	case ACC_JSON_FLOAT:
		return add(r, key, acc_f64(n->f));
	case ACC_JSON_TRUE:
	case ACC_JSON_FALSE:
		return add(r, key, acc_bool(n->type == ACC_JSON_TRUE));
	default:
		return 0;
	}
}

static int
add_stats(struct acc_rec *r, const struct msprobe_leaf *leaf)
{
	int rc = add_stat(r, ACC_STR("stat.max"), leaf->max);
	rc |= add_stat(r, ACC_STR("stat.min"), leaf->min);
	rc |= add_stat(r, ACC_STR("stat.mean"), leaf->mean);
	rc |= add_stat(r, ACC_STR("stat.norm"), leaf->norm);
	/* One field for three checksums, told apart by their look; in xor mode a single number of floats is itself. */
	static const char *const all[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	const struct jnode *md5 = leaf->md5;
	for (size_t i = 0;
		i < sizeof all / sizeof *all && md5 != NULL && md5->type != ACC_JSON_STRING; i++)
		rc |= add_stat(r, acc_str(all[i]), md5);
	struct acc_str sum = acc_jtree_text(md5);
	if (acc_str_starts(sum, "0x"))
		rc |= add(r, ACC_STR("stat.xor"), acc_text(sum));
	else if (sum.n == 8)
		rc |= add(r, ACC_STR("stat.crc32"), acc_text(sum));
	else if (sum.n == 32)
		rc |= add(r, ACC_STR("stat.md5"), acc_text(sum));
	return rc;
}

/* "[2, 3]" */
static const char *
shape_text(struct acc_arena *m, const int64_t *shape, uint32_t n)
{
	char *s = acc_arena_copy(m, "[", 1);
	for (uint32_t i = 0; i < n && s != NULL; i++)
		s = acc_arena_printf(m, "%s%s%lld", s, i > 0 ? ", " : "", (long long)shape[i]);
	s = s == NULL ? NULL : acc_arena_printf(m, "%s]", s);
	return s == NULL ? "?" : s;
}

/* The shape that dump.json gives; false if it is none. */
static bool
read_shape(const struct jnode *n, struct acc_ref *ref)
{
	if (n == NULL || n->type != ACC_JSON_ARRAY || n->n > ACC_MAXDIM)
		return false;
	ref->ndim = 0;
	for (const struct jnode *c = n->child; c != NULL; c = c->next) {
		if (c->type != ACC_JSON_INT || c->i < 0)
			return false;
		ref->shape[ref->ndim++] = c->i;
	}
	return true;
}

/* Do dump.json (want, which may lack either) and the file agree? */
static int
agree(struct msprobe_op *o, const struct acc_ref *want, bool has_shape, const struct acc_ref *got,
	struct acc_err *e)
{
	if (has_shape &&
		(want->ndim != got->ndim ||
			memcmp(want->shape, got->shape, want->ndim * sizeof *want->shape) != 0))
		return acc_fail(e, ACC_EFORMAT, "%s says shape %.80s, the file holds %.80s",
			o->m->file, shape_text(&o->m->mem, want->shape, want->ndim),
			shape_text(&o->m->mem, got->shape, got->ndim));
	/* numpy has no bfloat16; what is known by name alone may be held as bytes. */
	if (acc_dtype_measured(want->dtype) && want->dtype != got->dtype &&
		!(want->dtype == ACC_BF16 && got->dtype == ACC_F32))
		return acc_fail(e, ACC_EFORMAT, "%s says %s, the file holds %s", o->m->file,
			acc_dtype_of(want->dtype)->name, acc_dtype_of(got->dtype)->name);
	return 0;
}

/* A recorder writes names only; a path would lead elsewhere. */
static bool
plain(struct acc_str data_name)
{
	return memchr(data_name.p, '/', data_name.n) == NULL &&
	       memchr(data_name.p, '\0', data_name.n) == NULL && !acc_str_is(data_name, "..");
}

static int
find_payload(struct msprobe_op *o, struct acc_str data_name, struct acc_ref *ref, struct acc_err *e)
{
	struct msprobe *m = o->m;
	if (!plain(data_name))
		return acc_fail(e, ACC_EREFUSED, "refused data_name %.*s: it is no plain name",
			data_name.n < 150 ? (int)data_name.n : 150, data_name.p);
	const char *file = acc_arena_printf(&m->mem, "dump_tensor_data/%.*s", ACC_PRS(data_name));
	if (file == NULL)
		return acc_nomem(e);
	if (m->no_folder)
		return acc_fail(e, ACC_EIO, "there is no folder dump_tensor_data");
	int rc = acc_dump_payload(m->dirfd, (struct acc_str){file, data_name.n + 17}, ref, &m->mem,
		e);
	if (rc == ACC_EIO && acc_dir_has(m->dirfd, "dump_tensor_data", NULL) == 0) {
		m->no_folder = true;
		if (e != NULL)
			*e = (struct acc_err){0};
		return acc_fail(e, ACC_EIO, "there is no folder dump_tensor_data");
	}
	return rc;
}

/* Report a bad tensor by its file, or by its place where it has none. */
static void
say_bad(struct msprobe_op *o, struct acc_err *bad, struct acc_str data_name)
{
	struct msprobe *m = o->m;
	const char *where;
	if (data_name.n == 0)
		where = acc_arena_printf(&m->mem, "%s/%s: %.*s", m->dir, m->file, ACC_PRS(o->path));
	else if (memmem(bad->msg, strlen(bad->msg), data_name.p, data_name.n) != NULL)
		where = acc_arena_printf(&m->mem, "%s/%s", m->dir, m->file);
	else
		where = acc_arena_printf(&m->mem, "%s/dump_tensor_data/%.*s", m->dir,
			ACC_PRS(data_name));
	acc_err_in(bad, where != NULL ? where : m->dir);
	acc_msprobe_trouble(m, bad);
}

static int
add_shape(struct msprobe_op *o, struct acc_rec *r, const struct acc_ref *ref)
{
	int64_t *d = acc_alloc(&o->m->mem, (ref->ndim + 1) * sizeof *d);
	if (d == NULL)
		return ACC_ENOMEM;
	memcpy(d, ref->shape, ref->ndim * sizeof *d);
	return add(r, ACC_STR("shape"), acc_ints(d, ref->ndim));
}

/* dtype, shape, and where the payload is. A failure goes into the record and is reported. */
static int
add_ref(struct msprobe_op *o, struct acc_rec *r, const struct msprobe_leaf *leaf,
	struct acc_str data_name)
{
	struct msprobe *m = o->m;
	struct acc_ref want, got; /* of want: dtype, ndim and shape */
	struct acc_err bad = {0};
	struct acc_str raw = acc_jtree_text(leaf->dtype);
	const struct jnode *shape = leaf->shape;
	want.dtype = acc_dtype_find(raw);
	want.ndim = 0;
	bool has_shape = read_shape(shape, &want), told = m->no_folder;
	int rc = add_text(r, ACC_STR("dtype.raw"), raw);
	if (shape != NULL && shape->type != ACC_JSON_NULL && !has_shape)
		acc_fail(&bad, ACC_EFORMAT, "the shape is no list of sizes");
	bool payload = data_name.n > 0 && m->dirfd >= 0 &&
		       find_payload(o, data_name, &got, &bad) == 0;
	if (payload) {
		agree(o, &want, has_shape, &got, &bad);
		rc |= acc_ref_put(r, &got);
	} else {
		if (want.dtype != ACC_NODTYPE)
			rc |= add(r, ACC_STR("dtype"), acc_ctext(acc_dtype_of(want.dtype)->name));
		if (has_shape)
			rc |= add_shape(o, r, &want);
	}
	if (bad.code == 0)
		return rc;
	rc |= acc_put_err(r, "", &bad);
	if (told && m->no_folder)
		return rc;
	say_bad(o, &bad, data_name);
	return rc;
}

/* The row's name: the file's without its last extension, where there is a file. */
static struct acc_str
row_name(const struct msprobe_op *o, struct acc_str data_name)
{
	if (data_name.n == 0 || !plain(data_name))
		return o->path;
	const char *dot = memrchr(data_name.p, '.', data_name.n);
	if (dot != NULL && dot > data_name.p)
		data_name.n = (uint32_t)(dot - data_name.p);
	return data_name;
}

static int
put_tensor(struct msprobe_op *o, const struct msprobe_leaf *leaf, struct acc_str type,
	struct acc_err *e)
{
	struct acc_str data_name = acc_jtree_text(leaf->data_name);
	const struct jnode *grad = leaf->grad;
	struct acc_rec *r;
	int rc = begin(o, "tensor", row_name(o, data_name), &r, e);
	if (rc < 0 || r == NULL)
		return rc;
	rc |= add_text(r, ACC_STR("type"), type);
	rc |= add_ref(o, r, leaf, data_name);
	if (grad != NULL && (grad->type == ACC_JSON_TRUE || grad->type == ACC_JSON_FALSE))
		rc |= add(r, ACC_STR("requires_grad"), acc_bool(grad->type == ACC_JSON_TRUE));
	rc |= add_text(r, ACC_STR("data_name"), data_name);
	rc |= add_stats(r, leaf);
	if (rc < 0)
		return acc_nomem(e);
	return acc_dump_put(o->m->c, r, e);
}

/* --- arguments --- */

/* An array as it can stand in a record: all integers, or all strings. */
static bool
flat(struct acc_arena *m, const struct jnode *a, struct acc_val *v)
{
	bool ints = true, texts = a->n > 0;
	for (const struct jnode *c = a->child; c != NULL; c = c->next) {
		ints &= c->type == ACC_JSON_INT;
		texts &= c->type == ACC_JSON_STRING;
	}
	if (!ints && !texts)
		return false;
	void *p = acc_alloc(m, a->n * (ints ? sizeof(int64_t) : sizeof(struct acc_str)));
	if (p == NULL)
		return false;
	uint32_t i = 0;
	for (const struct jnode *c = a->child; c != NULL; c = c->next, i++) {
		if (ints)
			((int64_t *)p)[i] = c->i;
		else
			((struct acc_str *)p)[i] = c->s;
	}
	*v = ints ? acc_ints(p, a->n) : acc_texts(p, a->n);
	return true;
}

static struct acc_val
value_of(struct acc_arena *m, const struct jnode *n)
{
	struct acc_val v;
	switch (n->type) {
	case ACC_JSON_NULL:
		return acc_nil();
	case ACC_JSON_TRUE:
	case ACC_JSON_FALSE:
		return acc_bool(n->type == ACC_JSON_TRUE);
	case ACC_JSON_INT:
		return acc_int(n->i);
	case ACC_JSON_FLOAT:
		return acc_f64(n->f);
	case ACC_JSON_STRING:
		return acc_text(n->s);
	default:
		if (n->type == ACC_JSON_ARRAY && flat(m, n, &v))
			return v;
		return acc_text(acc_jtree_dump(n, m));
	}
}

static int
put_arg(struct msprobe_op *o, struct acc_str type, const struct jnode *value, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = begin(o, "arg", o->path, &r, e);
	if (rc < 0 || r == NULL)
		return rc;
	rc |= add(r, ACC_STR("type"), acc_text(type));
	rc |= add(r, ACC_STR("value"), value_of(&o->m->mem, value));
	if (rc < 0)
		return acc_nomem(e);
	return acc_dump_put(o->m->c, r, e);
}

/* Where its key belongs; NULL: nowhere. */
static const struct jnode **
member(struct msprobe_leaf *l, struct acc_str key)
{
#define IS(name, first, last, place) \
	case ACC_KEY(sizeof(name) - 1, first, last): \
		return memcmp(key.p, name, sizeof(name) - 1) == 0 ? &l->place : NULL
	switch (acc_key(key)) {
		IS("type", 't', 'e', type);
		IS("dtype", 'd', 'e', dtype);
		IS("shape", 's', 'e', shape);
		IS("Max", 'M', 'x', max);
		IS("Min", 'M', 'n', min);
		IS("Mean", 'M', 'n', mean);
		IS("Norm", 'N', 'm', norm);
		IS("md5", 'm', '5', md5);
		IS("requires_grad", 'r', 'd', grad);
		IS("data_name", 'd', 'e', data_name);
		IS("value", 'v', 'e', value);
		IS("format", 'f', 't', format);
		IS("group_ranks", 'g', 's', ranks);
	default:
		return NULL;
	}
#undef IS
}

void
acc_msprobe_members(const struct jnode *n, struct msprobe_leaf *l)
{
	*l = (struct msprobe_leaf){.whole = n};
	for (const struct jnode *c = n->type == ACC_JSON_OBJECT ? n->child : NULL; c != NULL;
		c = c->next) {
		const struct jnode **at = member(l, c->key);
		if (at != NULL)
			*at = c; /* the last, as Python keeps it */
	}
}

/* An object with a `type`. Where the value has another name than `value`, or there is none,
 * the whole leaf is it. */
int
acc_msprobe_leaf(struct msprobe_op *o, const struct msprobe_leaf *leaf, struct acc_err *e)
{
	struct acc_str type = acc_jtree_text(leaf->type);
	if (leaf->shape != NULL || leaf->dtype != NULL || acc_str_ends(type, "Tensor"))
		return put_tensor(o, leaf, type, e);
	const struct jnode *value = leaf->value;
	if (value == NULL)
		value = leaf->format;
	if (value == NULL)
		value = leaf->ranks;
	return put_arg(o, type, value != NULL ? value : leaf->whole, e);
}

/* What stands where a leaf should: the types of Python. */
int
acc_msprobe_bare(struct msprobe_op *o, const struct jnode *n, struct acc_err *e)
{
	static const char *const names[] = {[ACC_JSON_STRING] = "str",
		[ACC_JSON_INT] = "int",
		[ACC_JSON_FLOAT] = "float",
		[ACC_JSON_TRUE] = "bool",
		[ACC_JSON_FALSE] = "bool",
		[ACC_JSON_NULL] = "None"};
	return put_arg(o, acc_str(names[n->type]), n, e);
}
