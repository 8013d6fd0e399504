/* The dumper of SGLang, miles and slime: a folder with a file for each tensor, whose name says what
 * it is, in any order:
 *
 *	step=0___rank=1___dump_index=17___name=attn_q___layer_id=3.pt
 *	forward_pass_id=0___rank=0___name=attn_q___dump_index=17.pt
 *
 * and which holds {"value": tensor, "meta": {...}}. grad__X is the gradient of X, param__X a
 * weight, non_intrusive__MODULE.inputs.0 and MODULE.output what a module took and made. */
#include "dump/op/argname.h"
#include "dump/place.h"
#include "dump/weight/ptfile.h"

#include <stdlib.h>

static const char bar[] = "___";

/* What a file's name says. Further words, such as layer_id=3, tell tensors of one name apart. */
struct file {
	const char *file;
	int64_t step, rank, index;
	struct acc_str name;
	const char *words; /* ".layer_id3", ... */
	int64_t call;      /* how many of the same name came before */
	bool any;          /* something of it was handed on */
};

static bool
number_of(struct acc_str word, const char *key, int64_t *out)
{
	char buf[24];
	size_t n = strlen(key);
	if (!acc_str_starts(word, key) || word.n - n >= sizeof buf)
		return false;
	snprintf(buf, sizeof buf, "%.*s", (int)(word.n - n), word.p + n);
	int64_t v = acc_dump_place_number(buf, "");
	if (v >= 0)
		*out = v;
	return v >= 0;
}

/* Says nothing of which tensor it is. */
static bool
is_default(struct acc_str word)
{
	return acc_str_is(word, "recompute_status=disabled") ||
	       acc_str_is(word, "recompute_status=original");
}

/* false: it is no such file. Without an arena, words are left out. < 0: no memory. */
static int
parse(const char *base, struct file *f, struct acc_arena *m)
{
	struct acc_str s = acc_str(base);
	*f = (struct file){.file = base, .step = -1, .rank = -1, .index = -1, .words = ""};
	if (!acc_str_ends(s, ".pt"))
		return 0;
	s.n -= 3;
	while (s.n > 0) {
		const char *end = memmem(s.p, s.n, bar, 3);
		struct acc_str word = {s.p, end == NULL ? s.n : (uint32_t)(end - s.p)};
		uint32_t used = end == NULL ? s.n : word.n + 3;
		const char *eq = memchr(word.p, '=', word.n);
		s = (struct acc_str){s.p + used, s.n - used};
		if (eq == NULL)
			return 0;
		if (acc_str_starts(word, "name="))
			f->name = (struct acc_str){word.p + 5, word.n - 5};
		else if (!number_of(word, "step=", &f->step) &&
			 !number_of(word, "forward_pass_id=", &f->step) &&
			 !number_of(word, "rank=", &f->rank) &&
			 !number_of(word, "dump_index=", &f->index) && !is_default(word) &&
			 m != NULL)
			f->words = acc_arena_printf(m, "%s.%.*s%.*s", f->words, (int)(eq - word.p),
				word.p, (int)(word.p + word.n - eq - 1), eq + 1);
		if (f->words == NULL)
			return ACC_ENOMEM;
	}
	return f->name.n > 0 && f->index >= 0;
}

static bool
level(const char *name, struct place *p)
{
	(void)p;
	return acc_str_starts(acc_str(name), "dump_");
}

static int
holds(int dirfd, struct acc_err *e)
{
	const char **names;
	struct acc_arena m = {0};
	struct file f;
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	int found = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && found == 0; i++)
		found = parse(names[i], &f, NULL) > 0;
	acc_arena_release(&m);
	return found;
}

static const struct place_rule rule = {level, holds, 1, "NAME___dump_index=N.pt"};

static int
probe(const struct acc_probe *p)
{
	char base[512];
	struct file f;
	if (p->is_dir)
		return acc_dump_probe_places(p, &rule, 85);
	snprintf(base, sizeof base, "%.*s", ACC_PRS(p->base));
	return p->nhead >= 4 && parse(base, &f, NULL) > 0 ? 97 : 0;
}

static int
by_place(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	const int64_t v[][2] = {{x->step, y->step}, {x->rank, y->rank}, {x->index, y->index}};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (v[i][0] != v[i][1])
			return v[i][0] < v[i][1] ? -1 : 1;
	return strcmp(x->file, y->file);
}

/* --- one file --- */

static bool
cut(struct acc_str *s, const char *prefix)
{
	if (!acc_str_starts(*s, prefix))
		return false;
	s->p += strlen(prefix);
	s->n -= (uint32_t)strlen(prefix);
	return true;
}

/* MODULE.inputs.0, MODULE.output: the part behind the module's name. */
static void
member(struct acc_str *op, struct argname *a)
{
	static const struct {
		const char *word, *io;
	} words[] = {{".inputs", "in"}, {".input", "in"}, {".outputs", "out"}, {".output", "out"}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		uint32_t n = (uint32_t)strlen(words[i].word);
		const char *p = memmem(op->p, op->n, words[i].word, n);
		const char *end = op->p + op->n;
		if (p == NULL || (p + n < end && p[n] != '.'))
			continue;
		a->io = words[i].io;
		if (p + n < end)
			a->pos = (struct acc_str){p + n + 1, (uint32_t)(end - p) - n - 1};
		op->n = (uint32_t)(p - op->p);
		return;
	}
}

static int
place(const struct file *f, struct argname *a, struct acc_str *name, struct acc_arena *m)
{
	struct acc_str op = f->name;
	*a = (struct argname){.call = f->call,
		.pass = ACC_STR("forward"),
		.io = "out",
		.pos = ACC_STR("0")};
	bool grad = cut(&op, "grad__"), param = cut(&op, "param__");
	if (cut(&op, "non_intrusive__"))
		member(&op, a);
	if (op.n == 0) /* nothing behind these words: they are the name */
		op = f->name;
	if (grad)
		a->pass = ACC_STR("backward");
	a->op = acc_str_made(acc_arena_printf(m, "%.*s%s", ACC_PRS(op), f->words));
	a->key = param ? a->op
		       : acc_str_made(acc_arena_printf(m, "%.*s.%lld.%.*s", ACC_PRS(a->op),
				 (long long)f->call, ACC_PRS(a->pass)));
	if (param) {
		a->call = -1;
		a->io = grad ? "grad" : "param";
		a->pass = grad ? ACC_STR("grad") : (struct acc_str){"", 0};
	}
	*name = param ? a->key
		      : acc_str_made(acc_arena_printf(m, "%.*s.%s.%.*s", ACC_PRS(a->key),
				strcmp(a->io, "in") == 0 ? "input" : "output", ACC_PRS(a->pos)));
	return a->op.n == 0 || a->key.n == 0 || name->n == 0 ? ACC_ENOMEM : 0;
}

/* Of value, the tensor, or what is in a dict or list of it; meta says what the name says, and how
 * the run was split. */
static int
own(void *arg, struct ptfile *p, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct file *f = arg;
	struct argname a;
	struct acc_str name, path = l->path;
	if (!cut(&path, "value") || (path.n > 0 && path.p[0] != '.') ||
		(l->value_type != NULL && strcmp(l->value_type, "opaque") == 0))
		return 1;
	if (place(f, &a, &name, &p->mem) < 0)
		return acc_nomem(e);
	if (path.n > 0) {
		name = acc_str_made(
			acc_arena_printf(&p->mem, "%.*s%.*s", ACC_PRS(name), ACC_PRS(path)));
		a.pos = (struct acc_str){path.p + 1, path.n - 1};
	}
	f->any = true;
	int rc = name.n == 0 ? acc_nomem(e) : acc_dump_ptleaf(p, l, name, &a);
	return rc < 0 ? rc : 1;
}

static void
say(struct weights *w, const char *file, struct acc_err *bad)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", w->dir, file);
	acc_err_in(bad, path);
	acc_dump_say(&w->said, w->c, bad);
}

static int
read_one(struct weights *w, int dirfd, struct file *f, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct ptfile p = {.w = w,
		.dirfd = dirfd,
		.file = f->file,
		.stem = acc_dump_stem(f->file),
		.own = own,
		.arg = f};
	int rc = acc_dump_ptfile(&p, &bad);
	if (rc < 0 && bad.code == 0)
		return rc;
	if (rc >= 0 && !f->any)
		rc = acc_fail(&bad, ACC_EFORMAT, "it holds no value that can be read");
	if (rc < 0)
		say(w, f->file, &bad);
	(void)e;
	return 0;
}

/* How many of the same name came before, in the same step and rank. */
static int
count(struct file *f, int64_t n)
{
	struct acc_map seen = {0};
	char id[1200];
	int rc = 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		int k = snprintf(id, sizeof id, "%lld %lld %.*s%s", (long long)f[i].step,
			(long long)f[i].rank, ACC_PRS(f[i].name), f[i].words);
		uint64_t *at = acc_map_put(&seen,
			(struct acc_str){id,
				(uint32_t)(k < (int)sizeof id ? k : (int)sizeof id - 1)},
			0);
		if (at == NULL)
			rc = ACC_ENOMEM;
		else
			f[i].call = (int64_t)(*at)++;
	}
	acc_map_release(&seen);
	return rc;
}

static int
read_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *only,
	const struct place *at, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names = &only;
	struct weights w = {.c = c, .dir = dir, .io = "out"};
	(void)at;
	int64_t n = only != NULL ? 1 : acc_dir_list(dirfd, &names, &m, e), k = 0;
	struct file *f = n < 0 ? NULL : acc_alloc(&m, (size_t)(n + 1) * sizeof *f);
	int rc = n < 0 ? (int)n : f == NULL ? ACC_ENOMEM : 0;
	for (int64_t i = 0; i < n && rc >= 0; i++) {
		struct acc_err bad = {0};
		rc = parse(names[i], &f[k], &m);
		k += rc > 0;
		if (rc == 0 && acc_str_ends(acc_str(names[i]), ".pt")) {
			acc_fail(&bad, ACC_EFORMAT,
				"left out: its name is not one that the dumper gives");
			say(&w, names[i], &bad);
		}
	}
	if (rc >= 0 && k > 0)
		qsort(f, (size_t)k, sizeof *f, by_place);
	rc = rc < 0 ? rc : count(f, k);
	for (int64_t i = 0; i < k && rc == 0; i++) {
		if (!acc_dump_wants(c, f[i].step, f[i].rank))
			continue;
		const struct acc_source s = {.root = dir,
			.format = "sglang",
			.framework = "pytorch",
			.task = "tensor",
			.step = f[i].step,
			.rank = f[i].rank,
			.proc = -1};
		if (i == 0 || f[i].step != f[i - 1].step || f[i].rank != f[i - 1].rank)
			rc = acc_dump_source(c, &s, e);
		if (rc == 0)
			rc = read_one(&w, dirfd, &f[i], e);
	}
	acc_dump_weights_end(&w, dir);
	acc_arena_release(&m);
	return rc == ACC_ENOMEM ? acc_nomem(e) : rc;
}

static int
read_sglang(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_folder, e);
}

const struct acc_dump acc_dump_sglang = {
	.name = "sglang",
	.help = "SGLang's dumper: step=0___rank=0___dump_index=3___name=attn_q.pt, ...",
	.probe = probe,
	.read = read_sglang,
};
