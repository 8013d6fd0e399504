/* What the folders of a path say, what a manifest says, what a pattern says; and the order. */
#include "dump/op/handset.h"

#include <stdlib.h>

#include "acc/file.h"
#include "acc/json.h"
#include "dump/op/handname.h"
#include "io/csv.h"

static const struct {
	const char *word, *pass, *io;
} words[] = {
	{"fwd", "forward", NULL},
	{"forward", "forward", NULL},
	{"bwd", "backward", NULL},
	{"backward", "backward", NULL},
	{"grad", "backward", NULL},
	{"grads", "backward", NULL},
	{"gradients", "backward", NULL},
	{"in", "", "in"},
	{"input", "", "in"},
	{"inputs", "", "in"},
	{"out", "", "out"},
	{"output", "", "out"},
	{"outputs", "", "out"},
	{"grad_in", "backward", "out"},
	{"grad_input", "backward", "out"},
	{"grad_out", "backward", "in"},
	{"grad_output", "backward", "in"},
};
enum { NWORDS = sizeof words / sizeof *words };

/* iter_1, step12, global_step100: the number; -1. */
static int64_t
number_of(struct acc_str s, const char *const *word)
{
	for (; *word != NULL; word++) {
		uint32_t n = (uint32_t)strlen(*word);
		int64_t v;
		if (!acc_str_starts(s, *word))
			continue;
		n += n < s.n && (s.p[n] == '_' || s.p[n] == '-');
		if (acc_str_int((struct acc_str){s.p + n, s.n - n}, &v) && v >= 0)
			return v;
	}
	return -1;
}

/* Does one folder's name say something of what is in it? Notes it. */
static bool
folder_says(struct acc_str name, struct hand_file *f)
{
	static const char *const steps[] = {"step", "iter", "iteration", "global_step", NULL};
	static const char *const ranks[] = {"rank", NULL};
	int64_t step = number_of(name, steps), rank = number_of(name, ranks);
	if (step >= 0)
		f->step = step;
	if (rank >= 0)
		f->rank = rank;
	for (size_t i = 0; i < NWORDS; i++)
		if (acc_str_is(name, words[i].word)) {
			f->pass = words[i].pass[0] != '\0' ? words[i].pass : f->pass;
			f->io = words[i].io != NULL ? words[i].io : f->io;
			return true;
		}
	return step >= 0 || rank >= 0;
}

bool
acc_handset_word(struct acc_str name)
{
	struct hand_file f = {.pass = ""};
	return folder_says(name, &f);
}

/* The first component of a path that has a folder; else empty. */
static struct acc_str
first_folder(struct acc_str path)
{
	const char *slash = path.n == 0 ? NULL : memchr(path.p, '/', path.n);
	return (struct acc_str){path.p, slash == NULL ? 0 : (uint32_t)(slash - path.p)};
}

/* Bytes of folders that all paths begin with and that say nothing: the one in which an archive holds
 * everything. */
static uint32_t
shared(const struct handset *s)
{
	uint32_t at = 0;
	for (bool all = s->n > 0; all;) {
		struct acc_str path = acc_str(s->f[0].path + at), top = first_folder(path);
		all = top.n > 0 && !acc_handset_word(top);
		for (size_t i = 1; i < s->n && all; i++)
			all = strncmp(s->f[i].path, s->f[0].path, at + top.n + 1) == 0;
		at += all ? top.n + 1 : 0;
	}
	return at;
}

/* "005-blocks.1.act-out": 005-blocks.1.act */
static struct acc_str
module_of(struct acc_str stem)
{
	struct argname a;
	return acc_dump_handname(stem, &a) ? a.key : stem;
}

/* Where each file of the backward pass has the number and name of one of the forward pass, the
 * numbers are the modules', and what ran last there comes first; a number that counts calls goes
 * on, or begins with the last module. */
static int
mirror(struct handset *s, struct acc_err *e)
{
	struct acc_map forward = {0};
	size_t found = 0, backward = 0;
	int rc = 0;
	for (int round = 0; round < 2 && rc == 0; round++)
		for (size_t i = 0; i < s->n && rc == 0; i++) {
			struct acc_str module = module_of(s->f[i].stem);
			bool back = strcmp(s->f[i].pass, "backward") == 0;
			if (round == 0 && !back && acc_map_put(&forward, module, 0) == NULL)
				rc = acc_nomem(e);
			backward += round == 1 && back;
			found += round == 1 && back && acc_map_get(&forward, module) != NULL;
		}
	acc_map_release(&forward);
	for (size_t i = 0; i < s->n && backward > 0 && found == backward; i++)
		s->f[i].mirrored = strcmp(s->f[i].pass, "backward") == 0;
	return rc;
}

static char *
append(char *end, struct acc_str part, char sep)
{
	memcpy(end, part.p, part.n);
	end += part.n;
	*end = sep;
	return end + (sep != '\0');
}

/* What is left of a path once its folders have said what they know. */
static int
place(struct handset *s, struct hand_file *f, uint32_t skip)
{
	struct acc_str rest = acc_str(f->path + skip), top;
	char *stem = acc_alloc(&s->mem, rest.n + 1), *name = acc_alloc(&s->mem, rest.n + 1);
	char *stem_end = stem, *name_end = name;
	f->step = f->rank = -1;
	f->pass = "";
	f->io = NULL;
	if (stem == NULL || name == NULL)
		return ACC_ENOMEM;
	while ((top = first_folder(rest)).n > 0) {
		int64_t step = f->step, rank = f->rank;
		if (!folder_says(top, f))
			stem_end = append(stem_end, top, '.');
		if (f->step == step && f->rank == rank)
			name_end = append(name_end, top, '/');
		rest = (struct acc_str){rest.p + top.n + 1, rest.n - top.n - 1};
	}
	const char *dot = memrchr(rest.p, '.', rest.n);
	rest.n = dot == NULL || dot == rest.p ? rest.n : (uint32_t)(dot - rest.p);
	append(stem_end, rest, '\0');
	append(name_end, rest, '\0');
	f->stem = (struct acc_str){stem, (uint32_t)(stem_end - stem) + rest.n};
	f->name = (struct acc_str){name, (uint32_t)(name_end - name) + rest.n};
	return 0;
}

static int
by_name(const struct hand_file *x, const struct hand_file *y)
{
	int d = acc_natural_cmp(x->path, y->path);
	if (!x->mirrored || !y->mirrored)
		return d;
	/* What stands behind the module is in its own order. */
	char a[256], b[256];
	snprintf(a, sizeof a, "%.*s", ACC_PRS(module_of(x->stem)));
	snprintf(b, sizeof b, "%.*s", ACC_PRS(module_of(y->stem)));
	int k = acc_natural_cmp(b, a);
	return k != 0 ? k : d;
}

static int
by_place(const void *a, const void *b)
{
	const struct hand_file *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	bool xb = strcmp(x->pass, "backward") == 0, yb = strcmp(y->pass, "backward") == 0;
	return xb != yb ? xb - yb : by_name(x, y);
}

int
acc_handset_place(struct handset *s, struct acc_err *e)
{
	uint32_t skip = shared(s);
	size_t numbered = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (place(s, &s->f[i], skip) < 0)
			return acc_nomem(e);
		const char *slash = strrchr(s->f[i].path, '/');
		numbered += acc_dump_handnumber(acc_str(slash == NULL ? s->f[i].path : slash + 1));
	}
	int rc = numbered == s->n ? mirror(s, e) : 0;
	if (s->n > 0)
		qsort(s->f, s->n, sizeof *s->f, by_place);
	s->order = s->n > 1 && numbered == s->n ? NULL : "names";
	return rc;
}

/* --- what says it in other words: a manifest, a pattern --- */

static const char *const keys[] = {"file", "op", "name", "module", "io", "pos", "index", "step",
	"rank", "pass", "in", "out", "attrs", NULL};
enum { FILE_, OP, NAME_, MODULE, IO, POS, INDEX, STEP, RANK, PASS, IN, OUT, ATTRS, NKEYS };

static int
whole_number(const char *key, struct acc_str v, int64_t *out, struct acc_err *e)
{
	if (acc_str_int(v, out) && *out >= 0)
		return 0;
	return acc_fail(e, ACC_EFORMAT, "%s: '%.*s' is no number", key, v.n < 60 ? (int)v.n : 60,
		v.p);
}

/* "in", "outputs", "grad_output": as the words of names; and what records have. */
static int
say_io(struct hand_file *f, struct acc_str v, struct acc_err *e)
{
	static const char *const own[] = {"in", "kw", "out", "param", "grad", NULL};
	struct argname a;
	for (size_t i = 0; own[i] != NULL; i++)
		if (acc_str_is(v, own[i])) {
			f->io = own[i];
			return 0;
		}
	if (!acc_dump_handpath(ACC_STR("x"), v, &a))
		return acc_fail(e, ACC_EFORMAT, "io: '%.*s' is none of in, kw, out, param and grad",
			v.n < 60 ? (int)v.n : 60, v.p);
	f->io = a.io;
	if (acc_str_is(a.pass, "backward"))
		f->pass = "backward";
	return 0;
}

static int
say_pass(struct hand_file *f, struct acc_str v, struct acc_err *e)
{
	struct hand_file x = {.pass = ""};
	if (!folder_says(v, &x) || x.pass[0] == '\0')
		return acc_fail(e, ACC_EFORMAT, "pass: '%.*s' is neither forward nor backward",
			v.n < 60 ? (int)v.n : 60, v.p);
	f->pass = x.pass;
	return 0;
}

/* One thing that is said of a file; an empty one says nothing. */
static int
say(struct handset *s, struct hand_file *f, int key, struct acc_str v, struct acc_err *e)
{
	if (v.n == 0 || key == FILE_ || key == ATTRS)
		return 0;
	if (key == STEP || key == RANK)
		return whole_number(keys[key], v, key == STEP ? &f->step : &f->rank, e);
	if (key == IO)
		return say_io(f, v, e);
	if (key == PASS)
		return say_pass(f, v, e);
	char *p = acc_arena_copy(&s->mem, v.p, v.n);
	if (p == NULL)
		return acc_nomem(e);
	*(key == POS || key == INDEX ? &f->pos
		: key == NAME_       ? &f->own
		: key == MODULE      ? &f->module
		: key == IN          ? &f->in
		: key == OUT         ? &f->out
				     : &f->op) = (struct acc_str){p, v.n};
	return 0;
}

/* One word of op, name and module is the module or operator, as of recordings by hooks; two or three are the operator,
 * what this call of it is named, and the module in which it stands. */
static void
settle_names(struct hand_file *f)
{
	const bool named = f->own.n > 0, within = f->module.n > 0, op = f->op.n > 0;
	if (named + within + op < 2) {
		f->op = named ? f->own : within ? f->module : f->op;
		if (f->in.n > 0 || f->attrs != NULL)
			f->own = named ? f->own : f->stem;
		else
			f->own = (struct acc_str){"", 0};
		f->module = (struct acc_str){"", 0};
		return;
	}
	f->own = named ? f->own : f->stem;
	f->op = op ? f->op : f->own;
}

static int
key_of(struct acc_str name)
{
	int k = 0;
	while (k < NKEYS && !acc_str_is(name, keys[k]))
		k++;
	return k;
}

enum { COLUMNS = 64 };
struct rows {
	struct handset *s;
	struct acc_csv *csv;   /* or */
	struct acc_json *json; /* an object a row */
	uint64_t line;
	const struct acc_str *field;
	struct acc_str own[COLUMNS]; /* the fields of an object */
	struct jnode *attrs;         /* of that, or NULL */
	size_t n;
	int key[COLUMNS]; /* of each column; NKEYS: none that is known */
	size_t ncols, file;
	size_t folder;    /* bytes of the manifest's own folder */
	const char *name; /* for messages */
	struct acc_map at;
	struct hand_file *out;
	size_t nout, cap;
};

static int
read_header(struct rows *r, struct acc_err *e)
{
	int rc = acc_csv_next(r->csv, &r->field, &r->n, e);
	if (rc <= 0)
		return rc < 0 ? rc : acc_fail(e, ACC_EFORMAT, "it is empty");
	r->ncols = r->n < COLUMNS ? r->n : COLUMNS;
	r->file = r->ncols;
	for (size_t i = 0; i < r->ncols; i++) {
		r->key[i] = key_of(r->field[i]);
		if (r->key[i] == FILE_)
			r->file = i;
	}
	if (r->file == r->ncols)
		return acc_fail(e, ACC_EFORMAT, "its first line has no column 'file'");
	return 0;
}

/* The texts of a list, a line each; of what is none of these nothing. */
static int
lines_of(struct rows *r, struct acc_str *out, struct acc_err *e)
{
	struct acc_json_tok t;
	struct acc_buf b = {0};
	int rc;
	while ((rc = acc_json_next(r->json, &t, e)) > 0 && t.type != ACC_JSON_ARRAY_END) {
		if (t.type == ACC_JSON_OBJECT || t.type == ACC_JSON_ARRAY) {
			if ((rc = acc_json_skip(r->json, e)) < 0)
				break;
			continue;
		}
		/* What a call was not given, a null, has its line, too. */
		if ((t.type == ACC_JSON_STRING && acc_buf_add(&b, t.s.p, t.s.n) < 0) ||
			acc_buf_add(&b, "\n", 1) < 0) {
			rc = acc_nomem(e);
			break;
		}
	}
	char *p = rc < 0 ? NULL : acc_arena_copy(&r->s->mem, b.p, b.n);
	*out = (struct acc_str){p, (uint32_t)b.n};
	acc_buf_release(&b);
	return rc < 0 ? rc : p == NULL ? acc_nomem(e) : 0;
}

/* The value behind a key, as a column of CSV would have it; a container says nothing but of names and attributes. */
static int
value_of(struct rows *r, int key, struct acc_str *out, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc = acc_json_next(r->json, &t, e);
	*out = (struct acc_str){"", 0};
	if (rc > 0 && t.type == ACC_JSON_ARRAY && (key == IN || key == OUT))
		return lines_of(r, out, e);
	if (rc > 0 && t.type == ACC_JSON_OBJECT && key == ATTRS)
		return acc_jtree_read(r->json, &t, &r->s->mem, &r->attrs, e);
	if (rc > 0 && (t.type == ACC_JSON_OBJECT || t.type == ACC_JSON_ARRAY))
		return acc_json_skip(r->json, e);
	if (rc <= 0 ||
		(t.type != ACC_JSON_STRING && t.type != ACC_JSON_INT && t.type != ACC_JSON_FLOAT))
		return rc < 0 ? rc : 0;
	char *p = acc_arena_copy(&r->s->mem, t.s.p, t.s.n);
	*out = (struct acc_str){p, t.s.n};
	return p == NULL ? acc_nomem(e) : 0;
}

/* The next object as a row: 1, 0 at the end, < 0. */
static int
next_object(struct rows *r, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc = acc_json_next(r->json, &t, e);
	if (rc <= 0)
		return rc;
	r->line++;
	r->n = 0;
	r->file = COLUMNS;
	r->field = r->own;
	r->attrs = NULL;
	if (t.type != ACC_JSON_OBJECT)
		return acc_fail(e, ACC_EFORMAT, "object %llu: it is none",
			(unsigned long long)r->line);
	while ((rc = acc_json_next(r->json, &t, e)) > 0 && t.type == ACC_JSON_KEY) {
		struct acc_str v;
		int key = key_of(t.s);
		rc = value_of(r, key, &v, e);
		if (rc < 0)
			return rc;
		if (key == NKEYS || r->n == COLUMNS)
			continue;
		r->file = key == FILE_ ? r->n : r->file;
		r->key[r->n] = key;
		r->own[r->n++] = v;
	}
	r->ncols = r->n;
	if (rc > 0 && r->file == COLUMNS)
		return acc_fail(e, ACC_EFORMAT, "object %llu: it has no key 'file'",
			(unsigned long long)r->line);
	return rc;
}

static int
next_row(struct rows *r, struct acc_err *e)
{
	if (r->json != NULL)
		return next_object(r, e);
	int rc = acc_csv_next(r->csv, &r->field, &r->n, e);
	r->line = acc_csv_line(r->csv);
	return rc;
}

static int
open_rows(struct rows *r, int fd, struct acc_err *e)
{
	struct acc_bytes *b = acc_bytes_open(fd, r->name, false, e);
	if (r->s->manifest_lines)
		return (r->json = acc_json_open(b, true, e)) == NULL ? ACC_EIO : 0;
	r->csv = acc_csv_open(b, e);
	return r->csv == NULL ? ACC_EIO : read_header(r, e);
}

/* What a row is in the file it stands in: objects may stand on any lines. */
static const char *
unit(const struct rows *r)
{
	return r->json != NULL ? "object" : "line";
}

/* The row's file, which is looked for beside the manifest; one that is not there is said. */
static int
take_row(struct rows *r, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct handset *s = r->s;
	struct acc_str name = r->file < r->n ? r->field[r->file] : (struct acc_str){0};
	char *path = acc_arena_printf(&s->mem, "%.*s%.*s", (int)r->folder, s->manifest.path,
		ACC_PRS(name));
	if (path == NULL)
		return acc_nomem(e);
	uint64_t *at = acc_map_get(&r->at, acc_str(path));
	if (at == NULL || s->f[*at].line > 0) {
		acc_fail(&bad, ACC_EFORMAT,
			at == NULL ? "%s %llu: there is no file %.150s"
				   : "%s %llu: the second one for %.150s",
			unit(r), (unsigned long long)r->line, path);
		acc_err_in(&bad, r->name);
		acc_dump_say(&s->said, s->c, &bad);
		return 0;
	}
	if (!ACC_ROOM(r->out, r->cap, r->nout + 1, e))
		return ACC_ENOMEM;
	struct hand_file *p = r->out;
	p = &r->out[r->nout++];
	s->f[*at].line = r->line;
	*p = s->f[*at];
	for (size_t i = 0; i < r->n && i < r->ncols; i++)
		if (r->key[i] < NKEYS && say(s, p, r->key[i], r->field[i], &bad) < 0)
			return acc_fail(e, bad.code, "%s %llu: %s", unit(r),
				(unsigned long long)p->line, bad.msg);
	p->attrs = r->attrs;
	settle_names(p);
	return 0;
}

static void
note_left(struct handset *s, size_t left, const char *why)
{
	if (left > 0)
		acc_dump_note(s->c, s->where, "%zu file%s left out: %s", left, left == 1 ? "" : "s",
			why);
}

int
acc_handset_manifest(struct handset *s, int fd, struct acc_err *e)
{
	struct rows r = {.s = s};
	const char *slash = strrchr(s->manifest.path, '/');
	r.folder = slash == NULL ? 0 : (size_t)(slash + 1 - s->manifest.path);
	r.name = acc_arena_printf(&s->mem, "%s/%s", s->where, s->manifest.path);
	if (r.name == NULL)
		r.name = s->manifest.path;
	int rc = open_rows(&r, fd, e);
	for (size_t i = 0; i < s->n && rc == 0; i++)
		if (acc_map_put(&r.at, acc_str(s->f[i].path), i) == NULL)
			rc = acc_nomem(e);
	if (rc == 0)
		while ((rc = next_row(&r, e)) > 0 && (rc = take_row(&r, e)) == 0)
			;
	if (rc == 0 && r.json != NULL && r.line == 0)
		rc = acc_fail(e, ACC_EFORMAT, "it is empty");
	acc_err_in(e, r.name);
	acc_csv_close(r.csv);
	acc_json_close(r.json);
	acc_map_release(&r.at);
	if (rc < 0) {
		free(r.out);
		return rc;
	}
	note_left(s, s->n - r.nout, "the manifest does not name them");
	free(s->f);
	s->f = r.out;
	s->n = r.nout;
	s->cap = r.cap;
	s->order = NULL;
	return 0;
}

static int
match(struct handset *s, struct hand_file *f, struct acc_err *e)
{
	struct acc_regex *re = s->c->names;
	struct acc_str path = acc_str(f->path);
	path.n = (uint32_t)(strrchr(f->path, '.') - f->path); /* it ends in .npy, .pt or .pth */
	int rc = acc_regex_find(re, path, e);
	for (size_t i = 0; rc > 0 && i < acc_regex_names(re); i++) {
		struct acc_str v = acc_regex_group(re, path, i);
		int k = key_of(acc_regex_name(re, i));
		if (v.n > 0 && k < IN && say(s, f, k, v, e) < 0)
			return e->code;
	}
	settle_names(f);
	return rc;
}

int
acc_handset_pattern(struct handset *s, struct acc_err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < acc_regex_names(s->c->names); i++) {
		struct acc_str name = acc_regex_name(s->c->names, i);
		if (key_of(name) >= IN || key_of(name) == FILE_)
			return acc_fail(e, ACC_EUSAGE,
				"the pattern's group '%.*s' is none of op, io, pos, step, rank and pass",
				ACC_PRS(name));
	}
	for (size_t i = 0; i < s->n; i++) {
		int rc = match(s, &s->f[i], e);
		if (rc < 0) {
			acc_err_in(e, s->f[i].path);
			return rc;
		}
		if (rc > 0)
			s->f[n++] = s->f[i];
	}
	if (n == 0)
		return acc_fail(e, ACC_EFORMAT, "no name matches the pattern, such as %.150s",
			s->n > 0 ? s->f[0].path : "any");
	note_left(s, s->n - n, "the pattern does not match their names");
	s->n = n;
	qsort(s->f, s->n, sizeof *s->f, by_place);
	return 0;
}
