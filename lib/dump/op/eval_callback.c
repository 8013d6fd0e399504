/* What llama.cpp's llama-eval-callback (and llama-debug) prints of each tensor of a graph:
 *
 *	ggml_debug:   attn_norm-0 = (f32)   MUL(norm-0{64, 12, 1, 1}, blk.0.attn_norm.weight{64, 1, 1, 1}}) = {64, 12, 1, 1}
 *	                                     [
 *	                                      [
 *	                                       [      0.1234,      -1.0000,       0.5000, ...,       1.0000, ...],
 *	                                       ...,
 *	                                      ],
 *	                                     ]
 *	                                     sum = 1.234500
 *
 * The first three and the last three along each axis, with four digits behind the point. The sum is of what is printed,
 * since September 2025 of all: it tells nothing that both versions mean, but whether there is a NaN. Statistics here are
 * of the elements that are printed; two such texts print the same ones. */
#include "acc/dump.h"
#include "acc/file.h"
#include "acc/stream.h"
#include "dump/op/argname.h"
#include "dump/place.h"
#include "io/lines.h"
#include "io/literal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOOK = 4 << 20, NAMES = 128, DIMS = 4, ARGS = 2 };

static const char *const marks[] = {"ggml_debug:", "common_debug_cb_eval:"};

static bool
holds(const void *p, size_t n)
{
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		const char *at = memmem(p, n, marks[i], strlen(marks[i]));
		if (at != NULL && memmem(at, n - (size_t)(at - (const char *)p), " = (", 4) != NULL)
			return true;
	}
	return false;
}

/* Behind what the program prints while it loads a model. */
static int
probe(const struct acc_probe *p)
{
	enum { SURE = 93 };
	static const char loads[] = "llama_", build[] = "ggml_";
	if (p->is_dir || p->nhead == 0)
		return 0;
	if (holds(p->head, p->nhead))
		return SURE;
	if (memmem(p->head, p->nhead, loads, sizeof loads - 1) == NULL &&
		memmem(p->head, p->nhead, build, sizeof build - 1) == NULL)
		return 0;
	uint8_t *b = malloc(LOOK);
	int fd = b == NULL ? acc_nomem(p->e) : acc_file_beneath(p->dirfd, p->base, p->e);
	const int64_t n = fd < 0 ? fd : acc_file_peek(fd, b, LOOK, 0, p->e);
	const bool found = n > 0 && holds(b, (size_t)n);
	if (fd >= 0)
		close(fd);
	free(b);
	return n < 0 ? acc_dump_sure((int)n, SURE) : found ? SURE : 0;
}

/* A tensor as far as it is printed. */
struct shown {
	char name[NAMES], op[NAMES], type[16], arg[ARGS][NAMES];
	int64_t shape[DIMS]; /* the first axis runs slowest, as everywhere but there */
	uint32_t ndim, nth, n;
	double max, min, sum, squares, digit; /* digit: half a unit of the last */
	bool open, whole;                     /* whole: the sum behind its elements came */
	bool hidden;                          /* a NaN that is not printed */
};

struct evals {
	struct acc_dump_ctx *c;
	struct shown now;
	struct shown *had; /* the last of each name */
	size_t nhad, cap;
	struct acc_map at;  /* name to place in had */
	struct acc_map nth; /* how often a name came */
	uint32_t coarse;    /* tensors that four digits say too little of */
	uint32_t cut;       /* tensors of which not all lines are there */
	struct acc_arena mem;
};

/* The text in front of a word, which is taken from *s with it; false: it is not there. */
static bool
take(struct acc_str *s, const char *word, struct acc_str *out)
{
	const size_t n = strlen(word);
	const char *at = s->n == 0 ? NULL : memmem(s->p, s->n, word, n);
	if (at == NULL)
		return false;
	*out = (struct acc_str){s->p, (uint32_t)(at - s->p)};
	const uint32_t all = out->n + (uint32_t)n;
	*s = (struct acc_str){s->p + all, s->n - all};
	return true;
}

/* Of a copy on another backend, CUDA0#norm-0#0, the tensor. */
static void
keep_name(char *to, size_t size, struct acc_str s)
{
	struct acc_str before, name = s;
	s = acc_str_trim(s);
	if (take(&s, "#", &before) && take(&s, "#", &name))
		s = name;
	else
		s = acc_str_trim(name);
	snprintf(to, size, "%.*s", (int)(s.n < size ? s.n : size - 1), s.p);
}

static void
read_shape(struct shown *t, struct acc_str s)
{
	int64_t ne[DIMS] = {1, 1, 1, 1};
	struct acc_str one;
	for (int d = 0; d < DIMS; d++) {
		const bool more = take(&s, ",", &one);
		if (!acc_str_int(acc_str_trim(more ? one : s), &ne[d]) || ne[d] < 0)
			ne[d] = 1;
		if (!more)
			break;
	}
	t->ndim = DIMS;
	while (t->ndim > 1 && ne[t->ndim - 1] == 1)
		t->ndim--;
	for (uint32_t d = 0; d < t->ndim; d++)
		t->shape[d] = ne[t->ndim - 1 - d];
}

/* The line that names a tensor. */
static bool
read_head(struct shown *t, struct acc_str line)
{
	struct acc_str s, name, type, op, args, arg;
	bool marked = false;
	for (size_t i = 0; i < sizeof marks / sizeof *marks && !marked; i++) {
		s = line;
		marked = take(&s, marks[i], &name);
	}
	if (!marked || !take(&s, " = (", &name) || !take(&s, ")", &type) || !take(&s, "(", &op))
		return false;
	*t = (struct shown){.max = -INFINITY, .min = INFINITY, .digit = 0.5};
	keep_name(t->name, sizeof t->name, name);
	keep_name(t->op, sizeof t->op, op);
	keep_name(t->type, sizeof t->type, type);
	if (t->name[0] == '\0' || !take(&s, "}) = {", &args))
		return false;
	for (int i = 0; i < ARGS && take(&args, "{", &arg); i++) {
		while (arg.n > 0 && strchr(", }", arg.p[0]) != NULL)
			arg = (struct acc_str){arg.p + 1, arg.n - 1};
		keep_name(t->arg[i], sizeof t->arg[i], arg);
		take(&args, "}", &arg);
	}
	read_shape(t, s);
	t->open = true;
	return true;
}

static void
take_number(struct shown *t, struct acc_str s)
{
	struct acc_literal x;
	if (!acc_literal_all(s, &x))
		return;
	const double v = x.v;
	t->digit = x.res > 0 ? fmin(t->digit, x.res) : t->digit;
	t->n++;
	t->max = isnan(v) || isnan(t->max) ? NAN : fmax(t->max, v);
	t->min = isnan(v) || isnan(t->min) ? NAN : fmin(t->min, v);
	t->sum += v;
	t->squares += v * v;
}

/* A row of elements, or what is said of all. */
static void
read_row(struct shown *t, struct acc_str line)
{
	struct acc_str s = acc_str_trim(line), one, sum = s;
	if (take(&sum, "sum = ", &one) && one.n == 0) {
		struct acc_literal x;
		t->whole = true;
		t->hidden |= acc_literal_all(sum, &x) && isnan(x.v) && !isnan(t->sum);
		return;
	}
	if (s.n < 2 || s.p[0] != '[')
		return;
	s = (struct acc_str){s.p + 1, s.n - 1};
	const char *end = memchr(s.p, ']', s.n);
	if (end == NULL)
		return;
	s.n = (uint32_t)(end - s.p);
	while (take(&s, ",", &one))
		take_number(t, acc_str_trim(one));
	take_number(t, acc_str_trim(s));
}

/* Of what precision the numbers are that are printed: with four digits, not of f32. NULL: they say too little. */
static const char *
seen_as(const struct shown *t)
{
	const double rms = sqrt(t->squares / fmax(t->n, 1)), u = t->digit / rms;
	return strcmp(t->type, "f32") != 0 && strcmp(t->type, "f16") != 0 &&
			       strcmp(t->type, "bf16") != 0
		       ? t->type
	       : !isfinite(rms) || u <= 0x1p-24 ? t->type
	       : u <= 0x1p-12                   ? "float16"
	       : u <= 0x1p-9                    ? "bfloat16"
						: NULL;
}

static int
put(struct evals *v, const struct shown *t, const struct shown *of, const char *io, uint32_t pos,
	struct acc_err *e)
{
	char number[16];
	snprintf(number, sizeof number, "%u", pos);
	const struct acc_str key = acc_str_made(
		acc_arena_printf(&v->mem, "%s%s%.0u", of->name, of->nth > 0 ? "#" : "", of->nth));
	const struct acc_str name = acc_str_made(
		acc_arena_printf(&v->mem, "%.*s.%s.%u", ACC_PRS(key), io, pos));
	const struct argname a = {.key = key,
		.op = acc_str(of->op),
		.call = -1,
		.pass = ACC_STR("forward"),
		.io = io,
		.pos = acc_str(number)};
	if (key.n == 0 || name.n == 0)
		return acc_nomem(e);
	struct acc_rec *r = acc_dump_rec(v->c, "tensor", name);
	const enum acc_dtype dtype = acc_dtype_find(acc_str(t->type));
	const char *seen = seen_as(t);
	int rc = acc_dump_argname_put(r, &a);
	if (dtype != ACC_NODTYPE)
		rc |= acc_add(r, "", "dtype", acc_ctext(acc_dtype_of(dtype)->name));
	if (seen != NULL && dtype != ACC_NODTYPE)
		rc |= acc_add(r, "", "dtype.raw", acc_ctext(seen));
	rc |= acc_add(r, "", "shape", acc_ints(t->shape, t->ndim));
	if (t->n > 0 && seen != NULL) {
		rc |= acc_add(r, "", "stat.max", acc_f64(t->hidden ? NAN : t->max));
		rc |= acc_add(r, "", "stat.min", acc_f64(t->hidden ? NAN : t->min));
		rc |= acc_add(r, "", "stat.mean", acc_f64(t->hidden ? NAN : t->sum / t->n));
		rc |= acc_add(r, "", "stat.norm", acc_f64(t->hidden ? NAN : sqrt(t->squares)));
	}
	v->coarse += t->n > 0 && seen == NULL && io[0] == 'o';
	return rc < 0 ? acc_nomem(e) : acc_dump_put(v->c, r, e);
}

/* The tensor is whole: hand it on, behind what went in, as far as that was printed. */
static int
finish(struct evals *v, struct acc_err *e)
{
	struct shown *t = &v->now;
	int rc = 0;
	if (!t->open)
		return 0;
	t->open = false;
	/* What is not all of what is printed is no statistic of it. */
	if (t->n > 0 && !t->whole) {
		t->n = 0;
		v->cut++;
	}
	acc_arena_reset(&v->mem);
	uint64_t *nth = acc_map_put(&v->nth, acc_str(t->name), 0);
	if (nth == NULL)
		return acc_nomem(e);
	t->nth = (uint32_t)(*nth)++;
	for (uint32_t i = 0; i < ARGS && rc == 0; i++) {
		const uint64_t *at = acc_map_get(&v->at, acc_str(t->arg[i]));
		if (at != NULL && t->arg[i][0] != '\0')
			rc = put(v, &v->had[*at], t, "in", i, e);
	}
	if (rc == 0)
		rc = put(v, t, t, "out", 0, e);
	if (rc < 0 || !ACC_ROOM(v->had, v->cap, v->nhad + 1, e))
		return rc < 0 ? rc : ACC_ENOMEM;
	uint64_t *at = acc_map_put(&v->at, acc_str(t->name), v->nhad);
	if (at == NULL)
		return acc_nomem(e);
	if (*at == v->nhad)
		v->nhad++;
	v->had[*at] = *t;
	return 0;
}

static int
read_lines(struct evals *v, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_lines l = {.b = b};
	struct acc_str line;
	struct shown next;
	int rc;
	while ((rc = acc_lines_next(&l, &line, e)) > 0) {
		if (read_head(&next, line)) {
			rc = finish(v, e);
			v->now = next;
		} else if (v->now.open) {
			read_row(&v->now, line);
		}
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? rc : finish(v, e);
}

static int
read_evals(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct evals v = {.c = c};
	char dir[PATH_MAX];
	const char *file;
	int fd = acc_dump_open_file(path, dir, &file, e);
	if (fd < 0)
		return fd;
	struct acc_source s = {.root = dir,
		.format = "eval_callback",
		.framework = "ggml",
		.task = "statistics",
		ACC_NO_PLACE};
	struct acc_bytes *b = acc_bytes_open(fd, path, true, e);
	int rc = b == NULL ? ACC_EIO : acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = read_lines(&v, b, e);
	if (rc == 0 && v.nhad == 0)
		rc = acc_fail(e, ACC_EFORMAT, "no tensor is printed in it");
	if (rc == 0 && v.cut > 0)
		rc = acc_fail(e, ACC_ETRUNC,
			"%u tensor%s without the sum that ends it: cut off, or mixed with other output",
			v.cut, v.cut == 1 ? "" : "s");
	if (v.coarse > 0)
		acc_dump_note(c, path,
			"%u tensor%s too small for the digits that are printed: not compared (-lv 1 prints more)",
			v.coarse, v.coarse == 1 ? "" : "s");
	acc_bytes_close(b);
	free(v.had);
	acc_map_release(&v.at);
	acc_map_release(&v.nth);
	acc_arena_release(&v.mem);
	return rc;
}

const struct acc_dump acc_dump_eval_callback = {
	.name = "eval_callback",
	.help = "what llama.cpp's llama-eval-callback prints of each tensor",
	.probe = probe,
	.read = read_evals,
};
