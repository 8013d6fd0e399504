/* The recorder's description says: files are named by API, ordinal and direction; a file holds
 * what went in, what came out, and the stack, together; at level 1 a TensorSummary stands for each
 * tensor, with data type, shape, strides, largest and smallest element; at level 0 there is the
 * stack only. How these are arranged it does not say. Here:
 *
 *	{"input": (args...) or {"args": (...), "kwargs": {...}}, "output": ..., "stack": ...}
 *
 * in any order, inputs and outputs also called so, args and kwargs also at the top; the stack as
 * traceback prints it (the innermost call last), one text or a list of them; a TensorSummary as
 * an object with these five attributes, or made from these five values in that order. */
#include "dump/op/maca_file.h"

#include "acc/stream.h"
#include "dump/weight/ptfile.h"

static const struct {
	const char *member, *io, *word;
} members[] = {{"input.kwargs", "kw", "kwargs"}, {"inputs.kwargs", "kw", "kwargs"},
	{"kwargs", "kw", "kwargs"}, {"input.args", "in", "input"}, {"inputs.args", "in", "input"},
	{"args", "in", "input"}, {"input", "in", "input"}, {"inputs", "in", "input"},
	{"output", "out", "output"}, {"outputs", "out", "output"}};

/* As msprobe calls these; torch.nn's classes keep their names. */
static const struct {
	const char *torch, *op;
} families[] = {{"torch.nn.functional.", "Functional."}, {"torch.Tensor.", "Tensor."},
	{"torch.nn.", "torch.nn."}, {"torch.", "Torch."}};

static const char *const attributes[] = {"dtype", "shape", "stride", "max", "min"};

bool
acc_maca_name(struct acc_str s, struct maca_name *out)
{
	if (acc_str_ends(s, ".pt"))
		s.n -= 3;
	bool back = acc_str_ends(s, ".bwd");
	if (!back && !acc_str_ends(s, ".fwd"))
		return false;
	struct acc_str head = {s.p, s.n - 4};
	const char *dot = head.n == 0 ? NULL : memrchr(head.p, '.', head.n);
	if (dot == NULL || dot == head.p)
		return false;
	struct acc_str digits = {dot + 1, (uint32_t)(head.p + head.n - dot - 1)};
	*out = (struct maca_name){.key = s, .api = {s.p, (uint32_t)(dot - s.p)}, .backward = back};
	return acc_str_int(digits, &out->n) && out->n >= 0;
}

struct call {
	const struct maca_name *name;
	struct acc_str op;
	struct acc_buf text;  /* of the stack */
	struct acc_str stack; /* its id */
	uint64_t leaves, records;
	struct acc_arena mem; /* of the file */
};

/* --- the stack --- */

static int
gather(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct call *k = arg;
	bool stack = acc_str_is(l->path, "stack") || acc_str_starts(l->path, "stack.");
	(void)f;
	k->leaves += !stack;
	if (stack && l->value_type != NULL && strcmp(l->value_type, "str") == 0 &&
		(acc_buf_add(&k->text, l->s.p, l->s.n) < 0 || acc_buf_add(&k->text, "\n", 1) < 0))
		return acc_nomem(e);
	return 1;
}

static struct acc_str
next_line(struct acc_str *s)
{
	const char *end = s->n == 0 ? NULL : memchr(s->p, '\n', s->n);
	struct acc_str line = {s->p, end == NULL ? s->n : (uint32_t)(end - s->p)};
	uint32_t used = line.n + (end != NULL);
	*s = (struct acc_str){s->p + used, s->n - used};
	while (line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t')) {
		line.p++;
		line.n--;
	}
	return line;
}

/* 'File "x.py", line 3, in f' and the code behind it as msprobe writes a frame. */
static struct acc_str
frame(struct acc_str line, struct acc_str *text, struct acc_arena *m)
{
	struct acc_str rest = *text, code = next_line(&rest);
	const char *quote = line.n < 6 ? NULL : memchr(line.p + 6, '"', line.n - 6);
	if (quote == NULL)
		return line;
	if (acc_str_starts(code, "File \""))
		code.n = 0;
	else
		*text = rest;
	return acc_str_made(acc_arena_printf(m, "File %.*s%.*s, \n %.*s", (int)(quote - line.p - 6),
		line.p + 6, (int)(line.p + line.n - quote - 1), quote + 1, ACC_PRS(code)));
}

/* Innermost first. */
static int
stack(struct call *k, struct acc_dump_ctx *c)
{
	struct acc_str text = {(const char *)k->text.p, (uint32_t)k->text.n};
	struct acc_buf frames = {0};
	bool traceback = false;
	int rc = 0;
	while (text.n > 0 && rc == 0) {
		struct acc_str line = next_line(&text);
		if (acc_str_starts(line, "File \"")) {
			traceback = true;
			line = frame(line, &text, &k->mem);
		}
		if (line.n > 0)
			rc = acc_buf_add(&frames, &line, sizeof line);
	}
	size_t n = frames.n / sizeof(struct acc_str);
	struct acc_str *f = (struct acc_str *)(void *)frames.p;
	for (size_t i = 0; traceback && i < n / 2; i++) {
		struct acc_str x = f[i];
		f[i] = f[n - 1 - i];
		f[n - 1 - i] = x;
	}
	if (rc == 0 && n > 0)
		k->stack = acc_dump_stack(c, f, n);
	acc_buf_release(&frames);
	return rc < 0 || (n > 0 && k->stack.p == NULL) ? ACC_ENOMEM : 0;
}

/* --- inputs and outputs --- */

/* Which member a path belongs to, and the rest of it; NULL: none that is known. */
static const char *
member(struct acc_str path, const char **word, struct acc_str *pos)
{
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		uint32_t n = (uint32_t)strlen(members[i].member);
		if (!acc_str_starts(path, members[i].member) || (path.n > n && path.p[n] != '.'))
			continue;
		*pos = path.n > n + 1 ? (struct acc_str){path.p + n + 1, path.n - n - 1}
				      : ACC_STR("0");
		*word = members[i].word;
		return members[i].io;
	}
	return NULL;
}

/* An attribute of a TensorSummary; NULL if it has none. */
static const struct acc_py *
attribute(const struct acc_py *x, size_t i)
{
	const struct acc_py *state = x->item[ACC_CALL_STATE], *args = x->item[ACC_CALL_ARGS];
	if (state != NULL && state->type == ACC_PY_TUPLE && state->n == 2)
		state = state->item[1]; /* of a class with __slots__ */
	for (uint32_t k = 0; state != NULL && state->type == ACC_PY_DICT && k < state->n; k += 2)
		if (state->item[k]->type == ACC_PY_STR &&
			acc_str_is(state->item[k]->s, attributes[i]))
			return state->item[k + 1];
	return state == NULL && args->n == 5 ? args->item[i] : NULL;
}

static bool
is_summary(const struct acc_torch_leaf *l)
{
	return l->object != NULL &&
	       acc_str_ends(l->object->item[ACC_CALL_NAME]->s, "TensorSummary");
}

static uint32_t
ints(const struct acc_py *x, int64_t out[ACC_MAXDIM])
{
	if (x != NULL && x->type == ACC_PY_CALL && x->item[ACC_CALL_ARGS]->n == 1) /* torch.Size */
		x = x->item[ACC_CALL_ARGS]->item[0];
	if (x == NULL || (x->type != ACC_PY_TUPLE && x->type != ACC_PY_LIST) || x->n > ACC_MAXDIM)
		return UINT32_MAX;
	for (uint32_t i = 0; i < x->n; i++) {
		if (x->item[i]->type != ACC_PY_INT)
			return UINT32_MAX;
		out[i] = x->item[i]->i;
	}
	return x->n;
}

static int
add_stat(struct acc_rec *r, const char *key, const struct acc_py *x)
{
	if (x == NULL)
		return 0;
	if (x->type == ACC_PY_FLOAT)
		return acc_add(r, "", key, acc_f64(x->f));
	if (x->type == ACC_PY_INT)
		return acc_add(r, "", key, acc_int(x->i));
	if (x->type == ACC_PY_BOOL)
		return acc_add(r, "", key, acc_bool(x->i != 0));
	return x->type == ACC_PY_NONE ? acc_add(r, "", key, acc_nil()) : 0;
}

static int
add_summary(struct acc_rec *r, const struct acc_py *x, struct acc_arena *m)
{
	const struct acc_py *dtype = attribute(x, 0);
	int64_t shape[ACC_MAXDIM], stride[ACC_MAXDIM];
	uint32_t n = ints(attribute(x, 1), shape), ns = ints(attribute(x, 2), stride);
	int rc = acc_add(r, "", "type", acc_ctext("TensorSummary"));
	if (dtype != NULL && (dtype->type == ACC_PY_STR || dtype->type == ACC_PY_GLOBAL)) {
		char *raw = acc_arena_copy(m, dtype->s.p, dtype->s.n);
		char *blank = raw == NULL ? NULL : memchr(raw, ' ', dtype->s.n);
		if (blank != NULL && dtype->type == ACC_PY_GLOBAL)
			*blank = '.';
		enum acc_dtype t = acc_dtype_find(acc_str(raw));
		rc |= raw == NULL ? ACC_ENOMEM : acc_add(r, "", "dtype.raw", acc_ctext(raw));
		if (t != ACC_NODTYPE)
			rc |= acc_add(r, "", "dtype", acc_ctext(acc_dtype_of(t)->name));
	}
	if (n != UINT32_MAX)
		rc |= acc_add(r, "", "shape", acc_ints(shape, n));
	if (n != UINT32_MAX && ns == n && !acc_contiguous(shape, stride, n))
		rc |= acc_add(r, "", "stride", acc_ints(stride, n));
	rc |= add_stat(r, "stat.max", attribute(x, 3));
	return rc | add_stat(r, "stat.min", attribute(x, 4));
}

static int
put_summary(struct call *k, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_str name,
	const struct argname *at)
{
	struct acc_rec *r = acc_dump_rec(f->w->c, "tensor", name);
	int rc = acc_dump_argname_put(r, at);
	if (rc == 0 && k->stack.n > 0)
		rc = acc_add(r, "", "stack", acc_text(k->stack));
	if (rc == 0 && acc_dump_selects(f->w->c, r))
		rc = add_summary(r, l->object, &f->mem);
	return rc < 0 ? acc_nomem(f->e) : acc_dump_put(f->w->c, r, f->e);
}

static struct argname
argument(const struct call *k, const char *io, struct acc_str pos)
{
	return (struct argname){.key = k->name->key,
		.op = k->op,
		.call = k->name->n,
		.pass = acc_str(k->name->backward ? "backward" : "forward"),
		.io = io,
		.pos = pos};
}

/* A tensor of a member that no recorder is known to write: what it is to the call is not known. */
static void
say_unknown(struct ptfile *f, const struct acc_torch_leaf *l)
{
	struct acc_err bad = {0};
	char *path = acc_arena_printf(&f->mem, "%s/%s", f->w->dir, f->file);
	acc_fail(&bad, ACC_EFORMAT, "left out, neither input nor output: '%.*s'",
		l->path.n < 80 ? (int)l->path.n : 80, l->path.p);
	acc_err_in(&bad, path == NULL ? f->file : path);
	acc_dump_say(&f->w->said, f->w->c, &bad);
}

static int
leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct call *k = arg;
	const char *word;
	struct acc_str pos;
	const char *io = member(l->path, &word, &pos);
	if (io == NULL && l->value_type == NULL && l->path.n > 0)
		say_unknown(f, l);
	if (io == NULL ||
		(l->value_type != NULL && strcmp(l->value_type, "opaque") == 0 && !is_summary(l)))
		return 1;
	struct argname at = argument(k, io, pos);
	struct acc_str name = acc_str_made(acc_arena_printf(&f->mem, "%.*s.%s.%.*s",
		ACC_PRS(k->name->key), word, ACC_PRS(pos)));
	if (name.n == 0)
		return acc_nomem(e);
	k->records++;
	f->stack = k->stack;
	int rc = is_summary(l) ? put_summary(k, f, l, name, &at) : acc_dump_ptleaf(f, l, name, &at);
	return rc == 0 ? 1 : rc;
}

/* Level 0: only that it ran, and where. */
static int
put_call(struct call *k, struct weights *w, struct acc_err *e)
{
	struct argname at = argument(k, "", (struct acc_str){"", 0});
	struct acc_rec *r = acc_dump_rec(w->c, "call", k->name->key);
	int rc = acc_dump_argname_put(r, &at);
	if (rc == 0 && k->stack.n > 0)
		rc = acc_add(r, "", "stack", acc_text(k->stack));
	return rc < 0 ? acc_nomem(e) : acc_dump_put(w->c, r, e);
}

static int
name_op(struct call *k)
{
	struct acc_str api = k->name->api;
	k->op = api;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		uint32_t n = (uint32_t)strlen(families[i].torch);
		if (!acc_str_starts(api, families[i].torch))
			continue;
		k->op = acc_str_made(acc_arena_printf(&k->mem, "%s%.*s", families[i].op,
			(int)(api.n - n), api.p + n));
		break;
	}
	return k->op.n == 0 ? ACC_ENOMEM : 0;
}

int
acc_maca_file(struct weights *w, int dirfd, const char *file, const struct maca_name *name,
	struct acc_err *e)
{
	struct acc_err bad = {0};
	struct call k = {.name = name};
	struct ptfile f = {.w = w, .dirfd = dirfd, .file = file, .own = gather, .arg = &k};
	int rc = name_op(&k);
	if (rc == 0)
		rc = acc_dump_ptfile(&f, &bad);
	if (rc == 0)
		rc = stack(&k, w->c);
	if (rc == 0) {
		f.own = leaf;
		rc = acc_dump_ptfile(&f, &bad);
	}
	if (rc == 0 && k.records == 0 && k.leaves > 0)
		rc = acc_fail(&bad, ACC_EFORMAT, "it holds neither input nor output");
	if (rc == 0 && k.records == 0)
		rc = put_call(&k, w, e);
	acc_buf_release(&k.text);
	acc_arena_release(&k.mem);
	if (rc == ACC_ENOMEM)
		return acc_nomem(e);
	if (bad.code == 0)
		return rc;
	acc_arena_reset(&w->mem);
	char *path = acc_arena_printf(&w->mem, "%s/%s", w->dir, file);
	acc_err_in(&bad, path == NULL ? file : path);
	acc_dump_say(&w->said, w->c, &bad);
	return 0;
}
