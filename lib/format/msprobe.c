/* The columns of msprobe's own compare table (version 26) and of ptdbg_ascend's (4.0), cell by
 * cell as these tools print them: Python's texts, a blank before inf, N/A where a row has no
 * partner. Rows that only the bench has are not listed there, and so not here. */
#include "format/cells.h"

#include <math.h>
#include <stdlib.h>

struct ctx {
	bool ptdbg;
	bool pandas3; /* which takes the text None for a missing value: behaviour msprobe-table-pandas */
	struct acc_map stacks; /* id -> offset in text */
	struct acc_buf text;   /* of all stacks, as a Python list, NUL-terminated */
	struct acc_buf last_key;
};

/* Where a row has no partner, or a measure does not exist. */
static struct acc_str
na(const void *ctx)
{
	return ((const struct ctx *)ctx)->ptdbg ? ACC_STR("Nan") : ACC_STR("N/A");
}

static struct acc_str
copy(struct acc_arena *m, const char *text)
{
	return acc_str(acc_arena_copy(m, text, strlen(text)));
}

/* As Python's str() of the value, as pandas writes it into a CSV. */
static struct acc_str
py(const struct acc_val *v, struct acc_arena *m)
{
	char buf[40];
	if (v == NULL || v->type == ACC_V_NIL)
		return ACC_STR("None");
	if (v->type == ACC_V_BOOL)
		return v->b ? ACC_STR("True") : ACC_STR("False");
	if (v->type != ACC_V_F64)
		return acc_cell_text(v, m);
	if (isnan(v->f))
		return ACC_STR("Nan");
	if (isinf(v->f))
		return v->f < 0 ? ACC_STR(" -inf") : ACC_STR(" inf");
	acc_f64_repr(v->f, buf, sizeof buf);
	return copy(m, buf);
}

static const char *
side(const struct acc_column *c)
{
	return c->title[0] == 'B' ? "b." : "a.";
}

/* What a side is, "" where it is absent. */
static struct acc_str
kind(const struct acc_rec *r, const char *prefix)
{
	return acc_get_text(r, prefix, "kind");
}

static struct acc_str
name(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	(void)m;
	return kind(r, side(c)).n > 0 ? acc_get_text(r, side(c), "name") : na(ctx);
}

/* Of what is no tensor, the Python type of the value that stands in the dump; a few classes are
 * named themselves. */
static struct acc_str
dtype(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct ctx *x = ctx;
	static const char *const named[] = {"None", "slice", "ellipsis", "torch.Size",
		"torch.ProcessGroup"};
	static const char *const python[] = {[ACC_V_NIL] = "NoneType",
		[ACC_V_BOOL] = "bool",
		[ACC_V_INT] = "int",
		[ACC_V_UINT] = "int",
		[ACC_V_F64] = "float",
		[ACC_V_TEXT] = "str",
		[ACC_V_BIN] = "bytes",
		[ACC_V_INTS] = "list",
		[ACC_V_TEXTS] = "list"};
	const char *p = side(c);
	const struct acc_str is = kind(r, p);
	if (is.n == 0)
		return na(ctx);
	if (acc_str_is(is, "tensor"))
		return acc_get_text(r, p, "dtype.raw");
	struct acc_str type = acc_get_text(r, p, "type");
	if (x->pandas3 && acc_str_is(type, "None"))
		return na(ctx);
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (acc_str_is(type, named[i]))
			return type;
	const struct acc_val *v = acc_get(r, p, "value");
	if (v == NULL && type.n > 0)
		return acc_str(acc_arena_printf(m, "<class '%.*s'>", ACC_PRS(type)));
	return acc_str(
		acc_arena_printf(m, "<class '%s'>", python[v == NULL ? ACC_V_NIL : v->type]));
}

static struct acc_str
shape(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct ctx *x = ctx;
	const char *p = side(c);
	const struct acc_str is = kind(r, p);
	if (is.n == 0)
		return na(ctx);
	if (acc_str_is(is, "tensor"))
		return acc_cell_text(acc_get(r, p, "shape"), m);
	struct acc_str type = acc_get_text(r, p, "type");
	if (acc_str_is(type, "None"))
		return x->pandas3 ? na(ctx) : ACC_STR("None");
	if (acc_str_is(type, "slice"))
		return ACC_STR("(3,)"); /* the shape of [start, stop, step] */
	if (acc_str_is(type, "torch.Size"))
		return acc_cell_text(acc_get(r, p, "value"), m);
	return ACC_STR("[]");
}

static struct acc_str
grad(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct acc_val *v = acc_get(r, side(c), "requires_grad");
	return v == NULL ? na(ctx) : py(v, m);
}

static struct acc_str
grad_same(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct acc_column n = {.title = "NPU"}, b = {.title = "Bench"};
	(void)c;
	return acc_str_eq(grad(ctx, r, &n, m), grad(ctx, r, &b, m)) ? ACC_STR("True")
								    : ACC_STR("False");
}

static struct acc_str
metric(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct acc_val *v = acc_get(r, "", c->key);
	return v == NULL ? na(ctx) : py(v, m);
}

/* key is stat.max, ...; what is no tensor shows its value in all four. */
static struct acc_str
stat(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const struct ctx *x = ctx;
	const char *p = side(c);
	const struct acc_str is = kind(r, p);
	if (is.n == 0)
		return na(ctx);
	if (acc_str_is(is, "tensor")) {
		const struct acc_val *v = acc_get(r, p, c->key);
		if (x->ptdbg && (v == NULL || v->type == ACC_V_NIL))
			return v == NULL ? ACC_STR("Nan") : ACC_STR("[]");
		return py(v, m);
	}
	struct acc_str type = acc_get_text(r, p, "type");
	if (acc_str_is(type, "None") || acc_str_is(type, "slice") || acc_str_is(type, "torch.Size"))
		return ACC_STR("None");
	return py(acc_get(r, p, "value"), m);
}

static struct acc_str
md5(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	static const char *const kind[] = {"stat.crc32", "stat.md5", "stat.xor"};
	(void)m;
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
		struct acc_str s = acc_get_text(r, side(c), kind[i]);
		if (s.n > 0)
			return s;
	}
	return na(ctx);
}

static struct acc_str
result(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	(void)ctx;
	(void)c;
	(void)m;
	struct acc_str bad = acc_get_text(r, "", "bad");
	return bad.n == 0 ? ACC_STR("pass") : bad;
}

static struct acc_str
err_message(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	(void)ctx;
	(void)c;
	const struct acc_val *v = acc_get(r, "", "why");
	const struct acc_str one = v != NULL && v->type == ACC_V_TEXT ? v->s : ACC_STR("");
	uint32_t n = v == NULL ? 0 : v->type == ACC_V_TEXTS ? v->n : 1;
	const struct acc_str *t = v != NULL && v->type == ACC_V_TEXTS ? v->texts : &one;
	size_t room = 3;
	for (uint32_t i = 0; i < n; i++)
		room += 2 * t[i].n + 4;
	char *p = acc_alloc(m, room);
	if (p == NULL)
		return (struct acc_str){NULL, 0};
	size_t at = 0;
	p[at++] = '[';
	for (uint32_t i = 0; i < n; i++) {
		if (i > 0) {
			p[at++] = ',';
			p[at++] = ' ';
		}
		p[at++] = '"';
		for (uint32_t k = 0; k < t[i].n; k++) {
			if (t[i].p[k] == '"' || t[i].p[k] == '\\')
				p[at++] = '\\';
			p[at++] = t[i].p[k];
		}
		p[at++] = '"';
	}
	p[at++] = ']';
	return (struct acc_str){p, (uint32_t)at};
}

static bool
is_empty(const struct acc_val *shape)
{
	for (uint32_t i = 0; shape != NULL && shape->type == ACC_V_INTS && i < shape->n; i++)
		if (shape->ints[i] == 0)
			return true;
	return false;
}

/* ptdbg_ascend says why it did not compare, not why it condemns. */
static struct acc_str
ptdbg_message(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	(void)ctx;
	(void)c;
	(void)m;
	const struct acc_val *shape = acc_get(r, "a.", "shape");
	struct acc_str cosine = acc_get_text(r, "", "m.cosine");
	if (kind(r, "b.").n == 0)
		return ACC_STR("No bench data matched.");
	if (acc_str_is(cosine, "N/A"))
		return ACC_STR("The position of inf or nan in NPU and bench Tensor do not match.");
	if (acc_str_is(cosine, "shape unmatched"))
		return ACC_STR("Shape of NPU and bench Tensor do not match. Skipped.");
	if (is_empty(shape))
		return ACC_STR("This is empty data, can not compare.");
	if (shape == NULL || shape->n == 0)
		return ACC_STR("This is type of scalar data, can not compare.");
	if (!acc_str_eq(acc_get_text(r, "a.", "name"), acc_get_text(r, "b.", "name")))
		return ACC_STR(" Fuzzy matching data, the comparison accuracy may be affected.");
	return ACC_STR("");
}

/* A string as Python's repr quotes it, appended to b. */
static int
py_quote(struct acc_buf *b, struct acc_str s)
{
	bool single = s.n > 0 && memchr(s.p, '\'', s.n) != NULL;
	char q = single && memchr(s.p, '"', s.n) == NULL ? '"' : '\'';
	int rc = acc_buf_add(b, &q, 1);
	for (uint32_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == '\n')
			rc |= acc_buf_add(b, "\\n", 2);
		else if (c == '\t')
			rc |= acc_buf_add(b, "\\t", 2);
		else if (c == '\r')
			rc |= acc_buf_add(b, "\\r", 2);
		else {
			if (c == '\\' || c == q)
				rc |= acc_buf_add(b, "\\", 1);
			rc |= acc_buf_add(b, &c, 1);
		}
	}
	return rc | acc_buf_add(b, &q, 1);
}

/* "File F, line N, in FN, \n CODE": as the list that ptdbg_ascend writes. A frame without
 * source has None there. */
static int
py_frame(struct acc_buf *b, struct acc_str s)
{
	static const char *const mark[] = {", \n ", ", in ", ", line "};
	struct acc_str part[4];
	const char *end = memmem(s.p, s.n, mark[0], 4), *at = end;
	if (!acc_str_starts(s, "File ") || end == NULL)
		return py_quote(b, s);
	part[3] = (struct acc_str){end + 4, s.n - (uint32_t)(end + 4 - s.p)};
	/* From behind: the file's name may hold anything. */
	for (int i = 2; i > 0; i--, end = at) {
		size_t n = strlen(mark[3 - i]);
		while (at > s.p && (at + n > end || memcmp(at, mark[3 - i], n) != 0))
			at--;
		if (at == s.p)
			return py_quote(b, s);
		part[i] = (struct acc_str){at + n, (uint32_t)(end - at - (ptrdiff_t)n)};
	}
	part[0] = (struct acc_str){s.p + 5, (uint32_t)(end - s.p - 5)};
	int rc = acc_buf_add(b, "[", 1);
	for (int i = 0; i < 4; i++) {
		rc |= i > 0 ? acc_buf_add(b, ", ", 2) : 0;
		rc |= i == 3 && acc_str_is(part[3], "None") ? acc_buf_add(b, "None", 4)
							    : py_quote(b, part[i]);
	}
	return rc | acc_buf_add(b, "]", 1);
}

/* The first row of an op call shows the stack. */
static struct acc_str
stack(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	struct ctx *x = ctx;
	(void)c;
	(void)m;
	struct acc_str key = acc_get_text(r, "a.", "key");
	struct acc_str last = {(const char *)x->last_key.p, (uint32_t)x->last_key.n};
	bool first = !acc_str_eq(key, last);
	x->last_key.n = 0;
	if (acc_buf_add(&x->last_key, key.p, key.n) < 0)
		return (struct acc_str){NULL, 0};
	const struct acc_str none = x->ptdbg ? ACC_STR("") : na(ctx);
	if (x->ptdbg && kind(r, "b.").n == 0)
		return none;
	/* A stack taken from the forward call is ours, not the recorder's. */
	if (!first || acc_get(r, "a.", "stack_from") != NULL)
		return none;
	const uint64_t *at = acc_map_get(&x->stacks, acc_get_text(r, "a.", "stack"));
	return at == NULL ? none : acc_str((const char *)x->text.p + *at);
}

static struct acc_str
data_name(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	struct acc_str s[2];
	(void)c;
	for (int i = 0; i < 2; i++) {
		const char *p = i == 0 ? "a." : "b.";
		s[i] = acc_get_text(r, p, "data_name");
		if (s[i].n == 0)
			s[i] = kind(r, p).n > 0 ? ACC_STR("-1") : na(ctx);
	}
	return acc_str(acc_arena_printf(m, "['%.*s', '%.*s']", ACC_PRS(s[0]), ACC_PRS(s[1])));
}

#define BASIC \
	{"NPU Name", name, NULL}, {"Bench Name", name, NULL}, {"NPU Dtype", dtype, NULL}, \
		{"Bench Dtype", dtype, NULL}, {"NPU Tensor Shape", shape, NULL}, \
		{"Bench Tensor Shape", shape, NULL}, {"NPU Requires_grad", grad, NULL}, \
	{ \
		"Bench Requires_grad", grad, NULL \
	}
#define STATS \
	{"NPU max", stat, "stat.max"}, {"NPU min", stat, "stat.min"}, \
		{"NPU mean", stat, "stat.mean"}, {"NPU l2norm", stat, "stat.norm"}, \
		{"Bench max", stat, "stat.max"}, {"Bench min", stat, "stat.min"}, \
		{"Bench mean", stat, "stat.mean"}, \
	{ \
		"Bench l2norm", stat, "stat.norm" \
	}
#define TAIL \
	{"Requires_grad Consistent", grad_same, NULL}, {"Result", result, NULL}, \
		{"Err_message", err_message, NULL}, \
	{ \
		"NPU_Stack_Info", stack, NULL \
	}
#define END \
	{ \
		NULL, NULL, NULL \
	}

static const struct acc_column tensor_mode[] = {BASIC, {"Cosine", metric, "m.cosine"},
	{"EucDist", metric, "m.euclid"}, {"MaxAbsErr", metric, "m.max_abs"},
	{"MaxRelativeErr", metric, "m.max_rel"},
	{"One Thousandth Err Ratio", metric, "m.thousandth"},
	{"Five Thousandths Err Ratio", metric, "m.five_thousandths"}, STATS, TAIL,
	{"Data_name", data_name, NULL}, END};
static const struct acc_column statistics_mode[] = {BASIC, {"Max diff", metric, "m.max_diff"},
	{"Min diff", metric, "m.min_diff"}, {"Mean diff", metric, "m.mean_diff"},
	{"L2norm diff", metric, "m.norm_diff"}, {"MaxRelativeErr", metric, "m.max_relerr"},
	{"MinRelativeErr", metric, "m.min_relerr"}, {"MeanRelativeErr", metric, "m.mean_relerr"},
	{"NormRelativeErr", metric, "m.norm_relerr"}, STATS, TAIL, END};
static const struct acc_column md5_mode[] = {BASIC, {"NPU MD5", md5, NULL},
	{"BENCH MD5", md5, NULL}, TAIL, END};
static const struct acc_column ptdbg_tensor[] = {{"NPU Name", name, NULL},
	{"Bench Name", name, NULL}, {"NPU Tensor Dtype", dtype, NULL},
	{"Bench Tensor Dtype", dtype, NULL}, {"NPU Tensor Shape", shape, NULL},
	{"Bench Tensor Shape", shape, NULL}, {"Cosine", metric, "m.cosine"},
	{"MaxAbsErr", metric, "m.max_abs"}, {"MaxRelativeErr", metric, "m.max_rel"},
	{"One Thousandth Err Ratio", metric, "m.thousandth"},
	{"Five Thousandths Err Ratio", metric, "m.five_thousandths"}, STATS,
	{"Accuracy Reached or Not", metric, "m.accuracy"}, {"Err_message", ptdbg_message, NULL},
	{"NPU_Stack_Info", stack, NULL}, END};

static int
open_msprobe(void **ctx, struct acc_err *e)
{
	struct ctx *x = calloc(1, sizeof *x);
	*ctx = x;
	return x == NULL ? acc_nomem(e) : 0;
}

static int
open_ptdbg(void **ctx, struct acc_err *e)
{
	int rc = open_msprobe(ctx, e);
	if (rc == 0)
		((struct ctx *)*ctx)->ptdbg = true;
	return rc;
}

static int
open_pandas3(void **ctx, struct acc_err *e)
{
	int rc = open_msprobe(ctx, e);
	if (rc == 0)
		((struct ctx *)*ctx)->pandas3 = true;
	return rc;
}

static int
see(void *ctx, const struct acc_rec *r, struct acc_err *e)
{
	struct ctx *x = ctx;
	if (!acc_rec_is(r, "stack"))
		return 0;
	const struct acc_val *v = acc_get(r, "", "frames");
	uint64_t *at = acc_map_put(&x->stacks, acc_get_text(r, "", "id"), x->text.n);
	int rc = at == NULL ? ACC_ENOMEM : 0;
	if (rc == 0 && *at != x->text.n)
		return 0; /* seen before */
	rc |= acc_buf_add(&x->text, "[", 1);
	for (uint32_t i = 0; v != NULL && v->type == ACC_V_TEXTS && i < v->n; i++) {
		if (i > 0)
			rc |= acc_buf_add(&x->text, ", ", 2);
		rc |= x->ptdbg ? py_frame(&x->text, v->texts[i]) : py_quote(&x->text, v->texts[i]);
	}
	rc |= acc_buf_add(&x->text, "]", 2);
	return rc < 0 ? acc_nomem(e) : 0;
}

static bool
is_row(void *ctx, const struct acc_rec *r)
{
	(void)ctx;
	return acc_rec_is(r, "pair") && kind(r, "a.").n > 0;
}

static const struct acc_column *
columns(void *ctx, const struct acc_rec *first)
{
	const struct ctx *x = ctx;
	struct acc_str mode = acc_get_text(first, "", "m.mode");
	if (x->ptdbg)
		return ptdbg_tensor;
	return acc_str_is(mode, "statistics") ? statistics_mode
	       : acc_str_is(mode, "md5")      ? md5_mode
					      : tensor_mode;
}

static void
close_ctx(void *ctx)
{
	struct ctx *x = ctx;
	acc_map_release(&x->stacks);
	acc_buf_release(&x->text);
	acc_buf_release(&x->last_key);
	free(x);
}

const struct acc_columns acc_columns_msprobe = {"msprobe", open_msprobe, see, is_row, columns,
	close_ctx};
const struct acc_columns acc_columns_msprobe26 = {"msprobe-26", open_pandas3, see, is_row, columns,
	close_ctx};
const struct acc_columns acc_columns_ptdbg = {"ptdbg", open_ptdbg, see, is_row, columns, close_ctx};
