/* Records of the op calls of one folder. */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "dump/op/argname.h"
#include "dump/op/ascend.h"
#include "dump/jtree.h"
#include "dump/op/mindspore_folder.h"
#include "dump/op/overflow.h"
#include "dump/payload.h"
#include "dump/op/tiled.h"
#include "dump/refer.h"

static const char *
path_of(struct ms_folder *f, const char *file)
{
	const char *p = acc_arena_printf(&f->one, "%s/%s", f->dir, file);
	return p == NULL ? file : p;
}

/* "Default/network-WithLossCell/_backbone-AlexNet/conv1-Conv2d/Conv2D-op369": the cell that an
 * operator belongs to, as msprobe names its calls: Cell.network._backbone.conv1.Conv2d.forward */
static struct acc_str
scope_of(struct acc_str scoped, bool backward, struct acc_arena *m)
{
	char out[4096], class[512] = "";
	size_t n = 0;
	const char *end = scoped.n == 0 ? NULL : memrchr(scoped.p, '/', scoped.n);
	for (const char *p = scoped.p; end != NULL && p < end;) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t len = (size_t)((slash == NULL ? end : slash) - p);
		const char *dash = memrchr(p, '-', len);
		if (dash != NULL && dash > p) {
			size_t left = sizeof out - n;
			int k = snprintf(out + n, left, "%s.%.*s", n == 0 ? "Cell" : "",
				(int)(dash - p), p);
			n += k < 0 || (size_t)k >= left ? 0 : (size_t)k;
			snprintf(class, sizeof class, "%.*s", (int)(len - 1 - (size_t)(dash - p)),
				dash + 1);
		}
		p += len + 1;
	}
	if (n == 0)
		return (struct acc_str){"", 0};
	return acc_str_made(acc_arena_printf(m, "%.*s.%s.%s", (int)n, out, class,
		backward ? "backward" : "forward"));
}

/* The op call that the records belong to. Gradients_Default_... are made by the backward pass; a
 * parameter is of no op call. */
static int
identify(struct ms_folder *f, const struct ms_call *c, struct argname *a, struct acc_err *e)
{
	const struct ms_name *n = f->first[c->first].n;
	bool backward = acc_str_starts(n->op, "Gradients");
	*a = (struct argname){.call = -1, .pass = {"", 0}, .io = "param", .pos = ACC_STR("0")};
	if (acc_str_is(n->type, "Parameter")) {
		a->key = a->op = n->op;
		return 0;
	}
	a->key = acc_str_made(
		acc_arena_printf(&f->one, "%.*s.%.*s", ACC_PRS(n->type), ACC_PRS(n->op)));
	a->op = n->type;
	a->pass = backward ? ACC_STR("backward") : ACC_STR("forward");
	struct acc_str id = acc_str_made(
		acc_arena_printf(&f->one, "%c%.*s", backward ? 'b' : 'f', ACC_PRS(n->type)));
	uint64_t *count = a->key.n == 0 || id.n == 0 ? NULL : acc_map_put(&f->count->of, id, 0);
	if (count == NULL)
		return acc_nomem(e);
	a->call = (int64_t)(*count)++;
	return 0;
}

static struct acc_val
value_of_cell(const struct ms_value *v)
{
	switch (v->type) {
	case ACC_V_BOOL:
		return acc_bool(v->i != 0);
	case ACC_V_INT:
		return acc_int(v->i);
	case ACC_V_F64:
		return acc_f64(v->f);
	case ACC_V_TEXT:
		return acc_ctext(v->text);
	default:
		return acc_nil();
	}
}

static int
add_row(struct ms_folder *f, struct acc_rec *r, const struct ms_tensor *t)
{
	const struct ms_row *row = t->row == UINT32_MAX ? NULL : &f->sheet.row[t->row];
	int rc = 0;
	/* Of an empty tensor, what stands there is what the counting began with. */
	for (uint32_t i = 0; row != NULL && !row->empty && i < f->sheet.nkey; i++)
		if (row->val[i].type != ACC_V_BIN)
			rc |= acc_add(r, "", f->sheet.key[i], value_of_cell(&row->val[i]));
	return rc;
}

/* An 8-bit float in a file of bytes: only the name says what it is. */
static void
narrow(struct acc_ref *ref, enum acc_dtype named)
{
	if (named != ACC_NODTYPE && acc_dtype_of(named)->size == 1 &&
		acc_dtype_of(named)->cls == 'F' && (ref->dtype == ACC_U8 || ref->dtype == ACC_I8))
		ref->dtype = named;
}

/* Where a Cast stands around a kernel of 16 bits, MindSpore 2.10 on the CPU writes the header of those and the
 * elements of 32 bits, twice as long: what it computes with. Behaviour ms-cast-float32-body. Of places, which
 * MaxPool3DWithArgmax gives, it is the header of 64 bits, and half as long: ms-argmax-int32-body. */
static void
as_cast(struct ms_folder *f, struct acc_ref *ref, const char *file, struct acc_err *bad)
{
	const bool has = bad->code != 0 && !ref->strided && ref->len > 0 && ref->fsize > ref->off;
	const uint64_t is = has ? ref->fsize - ref->off : 0;
	const bool wide = has && bad->code == ACC_EFORMAT && ref->dtype == ACC_F16 &&
			  is == 2 * ref->len,
		   narrow = has && bad->code == ACC_ETRUNC && ref->dtype == ACC_I64 &&
			    2 * is == ref->len;
	if (!wide && !narrow)
		return;
	ref->dtype = wide ? ACC_F32 : ACC_I32;
	ref->len = is;
	*bad = (struct acc_err){0};
	if ((f->cast & (wide ? 1 : 2)) == 0)
		acc_dump_note(f->c, path_of(f, file),
			wide ? "32 bits an element under a header of 16: read as f32, and so others here (%s)"
			     : "32 bits an element under a header of 64: read as i32, and so others here (%s)",
			wide ? "ms-cast-float32-body" : "ms-argmax-int32-body");
	f->cast |= wide ? 1 : 2;
}

static int
add_file(struct ms_folder *f, struct acc_rec *r, const struct ms_tensor *t, struct acc_str format)
{
	struct acc_ref ref;
	struct acc_err bad = {0};
	acc_dump_payload(f->dirfd, acc_str(t->file), &ref, &f->one, &bad);
	if (bad.code == 0)
		narrow(&ref, acc_dtype_find(t->n->dtype));
	if (acc_str_starts(t->n->type, "MaxPool") || ref.dtype != ACC_I64)
		as_cast(f, &ref, t->file, &bad);
	if (bad.code == 0)
		acc_ms_view_put(f, t, &ref);
	if (bad.code == 0 && ref.ndim == 0 && t->n->io == 'o' && acc_ms_made(f, t->file) < 0)
		return ACC_ENOMEM;
	if (bad.code == 0 && acc_tiled_is(format))
		acc_dump_say_stored(&f->said, f->c, path_of(f, t->file), "", format,
			"without the shape that it stands for");
	else if (bad.code == 0 && acc_layout_private(format))
		acc_fail(&bad, ACC_EUNSUP,
			"in the device's private format %.*s, which is not decoded",
			(int)(format.n < 40 ? format.n : 40), format.p);
	return acc_dump_refer(f->c, &f->said, r, &ref, &bad, path_of(f, t->file));
}

/* Of a tensor that only statistic.csv knows. */
static int
add_described(struct acc_rec *r, const struct ms_row *row)
{
	enum acc_dtype t = acc_dtype_find(row->n.dtype);
	int rc = 0;
	if (t != ACC_NODTYPE)
		rc |= acc_add(r, "", "dtype", acc_ctext(acc_dtype_of(t)->name));
	return rc | acc_add(r, "", "shape", acc_ints(row->shape, row->ndim));
}

static struct acc_str
name_of(struct ms_folder *f, const struct ms_tensor *t)
{
	const struct ms_name *n = t->n;
	if (t->name.n > 0)
		return t->name;
	return acc_str_made(acc_arena_printf(&f->one, "%.*s.%.*s.%lld.%lld.%lld.%s.%lld",
		ACC_PRS(n->type), ACC_PRS(n->op), (long long)n->task, (long long)n->stream,
		(long long)n->time, n->io == 'i' ? "input" : "output", (long long)n->slot));
}

static int
put_tensor(struct ms_folder *f, const struct ms_tensor *t, struct argname *a, struct acc_str scope,
	struct acc_err *e)
{
	const struct ms_row *row = t->row == UINT32_MAX ? NULL : &f->sheet.row[t->row];
	struct acc_str raw = t->n->dtype, format = t->n->format;
	char pos[24];
	if (raw.n == 0 && row != NULL)
		raw = row->n.dtype;
	if (format.n == 0 && row != NULL)
		format = row->n.format;
	if (a->pass.n > 0) {
		snprintf(pos, sizeof pos, "%lld", (long long)t->n->slot);
		a->io = t->n->io == 'i' ? "in" : "out";
		a->pos = acc_str(pos);
	}
	struct acc_rec *r = acc_dump_rec(f->c, "tensor", name_of(f, t));
	int rc = acc_dump_argname_put(r, a);
	if (rc == 0 && !acc_dump_selects(f->c, r))
		return acc_dump_put(f->c, r, e);
	if (scope.n > 0)
		rc |= acc_add(r, "", "scope", acc_text(scope));
	if (raw.n > 0)
		rc |= acc_add(r, "", "dtype.raw", acc_text(raw));
	if (format.n > 0 && !acc_str_is(format, "DefaultFormat"))
		rc |= acc_add(r, "", "layout", acc_text(format));
	if (t->file != NULL)
		rc |= add_file(f, r, t, format);
	else if (row != NULL)
		rc |= add_described(r, row);
	/* So that a tensor whose contents travel with the stream is not taken for statistics. */
	if (t->file != NULL && row != NULL)
		rc |= acc_add(r, "", "data_name", acc_ctext(t->file));
	rc |= add_row(f, r, t);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

static int
put_loose(struct ms_folder *f, const struct ms_tensor *t, struct acc_err *e)
{
	struct argname a;
	struct acc_ref ref;
	struct acc_err bad = {0};
	int rc = acc_dump_argname(t->name, &f->one, &a);
	struct acc_rec *r = acc_dump_rec(f->c, "tensor", t->name);
	rc |= acc_dump_argname_put(r, &a);
	if (rc == 0 && !acc_dump_selects(f->c, r))
		return acc_dump_put(f->c, r, e);
	acc_dump_payload(f->dirfd, acc_str(t->file), &ref, &f->one, &bad);
	rc |= acc_dump_refer(f->c, &f->said, r, &ref, &bad, path_of(f, t->file));
	return rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

/* {op_type}.{op_name}.json: a flat object of the operator's attributes. */
static int
put_args(struct ms_folder *f, const struct ms_tensor *t, struct argname *a, struct acc_str scope,
	struct acc_err *e)
{
	struct acc_err bad = {0};
	struct jnode *root = NULL;
	int rc = acc_jtree_file(f->dirfd, t->file, path_of(f, t->file), &f->one, &root, &bad);
	if (rc == 0 && (root == NULL || root->type != ACC_JSON_OBJECT))
		rc = acc_fail(&bad, ACC_EFORMAT, "no attributes of an operator: it is no object");
	if (rc < 0) {
		acc_err_in(&bad, path_of(f, t->file));
		acc_dump_say(&f->said, f->c, &bad);
		return 0;
	}
	a->io = "kw";
	rc = 0;
	for (const struct jnode *n = root->child; n != NULL && rc == 0; n = n->next) {
		struct acc_str name = acc_str_made(
			acc_arena_printf(&f->one, "%.*s.%.*s", ACC_PRS(a->key), ACC_PRS(n->key)));
		a->pos = n->key;
		struct acc_rec *r = acc_dump_rec(f->c, "arg", name);
		rc = acc_dump_argname_put(r, a);
		if (scope.n > 0)
			rc |= acc_add(r, "", "scope", acc_text(scope));
		rc |= acc_jtree_arg(r, n, &f->one);
		rc = rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
	}
	return rc;
}

/* An attribute that was dumped as an input, as the argument that it is. */
static int
put_attr(struct ms_folder *f, const struct ms_tensor *t, const struct ms_attr *v, struct argname *a,
	struct acc_str scope, struct acc_err *e)
{
	struct acc_rec *r = acc_dump_rec(f->c, "arg", name_of(f, t));
	a->io = v->operand ? "in" : "kw";
	a->pos = v->name;
	int rc = acc_dump_argname_put(r, a);
	if (scope.n > 0)
		rc |= acc_add(r, "", "scope", acc_text(scope));
	rc |= acc_add(r, "", "type", acc_ctext(v->type));
	rc |= acc_add(r, "", "value", acc_ms_attr_value(v));
	return rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

/* What the kernel alone stands for. */
static int
put_implied(struct ms_folder *f, const struct ms_call *c, struct argname *a, struct acc_str scope,
	struct acc_err *e)
{
	const struct ms_tensor *t = &f->first[c->first];
	struct acc_str text;
	if (t->kind != MS_TENSOR || a->pass.n == 0 || !acc_ms_implied(t->n->type, &a->pos, &text))
		return 0;
	a->io = "kw";
	struct acc_rec *r = acc_dump_rec(f->c, "arg",
		acc_str_made(
			acc_arena_printf(&f->one, "%.*s.%.*s", ACC_PRS(a->key), ACC_PRS(a->pos))));
	int rc = acc_dump_argname_put(r, a);
	if (scope.n > 0)
		rc |= acc_add(r, "", "scope", acc_text(scope));
	rc |= acc_add(r, "", "type", acc_ctext("str"));
	rc |= acc_add(r, "", "value", acc_text(text));
	return rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

/* A tensor that a kernel's files hold, and that is neither its input nor its output. */
static int
put_apart(struct ms_folder *f, const struct ms_tensor *t, const struct argname *a,
	struct acc_err *e)
{
	struct argname own = {.call = -1, .pass = {"", 0}, .io = "param", .pos = ACC_STR("0")};
	own.key = own.op = acc_str_made(acc_arena_printf(&f->one, "%.*s.%s.%d", ACC_PRS(a->key),
		t->n->io == 'i' ? "input" : "output", (int)t->n->slot));
	return own.key.n == 0 ? acc_nomem(e) : put_tensor(f, t, &own, (struct acc_str){"", 0}, e);
}

/* What a kernel wrote over, as the output that it is. */
static int
put_result(struct ms_folder *f, const struct ms_tensor *t, const struct ms_attr *v,
	struct argname *a, struct acc_str scope, struct acc_err *e)
{
	struct ms_name n = *t->n;
	struct ms_tensor out = *t;
	n.io = 'o';
	n.slot = (int32_t)v->ints[0];
	out.n = &n;
	return put_tensor(f, &out, a, scope, e);
}

static int
put_call(struct ms_folder *f, const struct ms_call *c, struct acc_err *e)
{
	const struct ms_tensor *t = &f->first[c->first];
	struct argname a;
	if (c->loose)
		return put_loose(f, t, e);
	int rc = identify(f, c, &a, e);
	struct acc_str scope = scope_of(c->scoped, acc_str_is(a.pass, "backward"), &f->one);
	struct ms_attr *attr = NULL;
	if (rc == 0 && acc_ms_attrs(f, c, &attr) < 0)
		rc = acc_nomem(e);
	if (rc == 0)
		rc = put_implied(f, c, &a, scope, e);
	acc_ms_view(f, c, attr);
	for (uint32_t i = 0; i < c->n && rc == 0; i++, t++) {
		struct acc_err bad = {0};
		struct ascend_file af = {.c = f->c,
			.said = &f->said,
			.dirfd = f->dirfd,
			.dir = f->dir,
			.file = t->file,
			.call = &a,
			.scope = scope};
		if (attr != NULL && attr[i].name.n > 0) {
			rc = put_attr(f, t, &attr[i], &a, scope, e);
		} else if (attr != NULL && attr[i].apart) {
			continue;
		} else if (attr != NULL && attr[i].result) {
			rc = put_result(f, t, &attr[i], &a, scope, e);
		} else if (t->kind == MS_TENSOR) {
			rc = put_tensor(f, t, &a, scope, e);
		} else if (t->kind == MS_ARGS) {
			rc = c->n > 1 ? put_args(f, t, &a, scope, e) : 0;
		} else if (t->kind == MS_ALL) {
			rc = acc_ascend_put(&af, &bad);
		} else {
			rc = acc_overflow_put(&af, &bad);
		}
		if (bad.code != 0) {
			acc_err_in(&bad, path_of(f, t->file));
			acc_dump_say(&f->said, f->c, &bad);
			rc = 0;
		}
	}
	/* The records of a call stand together. */
	t = &f->first[c->first];
	for (uint32_t i = 0; i < c->n && attr != NULL && rc == 0; i++)
		if (attr[i].apart)
			rc = put_apart(f, &t[i], &a, e);
	return rc;
}

int
acc_ms_put(struct ms_folder *f, const struct ms_place *p, struct acc_err *e)
{
	const char *task = f->files > 0 ? "tensor" : f->sheet.others ? "statistics" : "md5";
	struct acc_source s = {.root = f->dir,
		.format = "mindspore",
		.framework = "mindspore",
		.device = p->device,
		.task = task,
		.level = "L2",
		.step = p->step,
		.rank = p->rank,
		.proc = -1};
	s.order = p->order != NULL ? NULL : f->timed ? "times" : "names";
	int rc = f->ncalls == 0 ? 0 : acc_dump_source(f->c, &s, e);
	for (size_t i = 0; i < f->ncalls && rc == 0; i++) {
		acc_arena_reset(&f->one);
		rc = put_call(f, &f->calls[i], e);
	}
	return rc;
}
