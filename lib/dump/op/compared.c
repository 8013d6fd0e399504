#include "dump/op/compared.h"

#include <math.h>

#include "acc/tensor.h"
#include "dump/op/argname.h"
#include "io/literal.h"

static const struct {
	const char *title;
	int cell;
} sided[] = {
	{"NPU Name", CELL_NAME},
	{"Bench Name", CELL_NAME + 1},
	{"NPU Dtype", CELL_DTYPE},
	{"Bench Dtype", CELL_DTYPE + 1},
	{"NPU Tensor Dtype", CELL_DTYPE}, /* ptdbg_ascend, */
	{"Bench Tensor Dtype", CELL_DTYPE + 1},
	{"NPU Tensor Shape", CELL_SHAPE},
	{"Bench Tensor Shape", CELL_SHAPE + 1},
	{"NPU Requires_grad", CELL_GRAD},
	{"Bench Requires_grad", CELL_GRAD + 1},
	{"NPU max", CELL_MAX},
	{"Bench max", CELL_MAX + 1},
	{"NPU min", CELL_MIN},
	{"Bench min", CELL_MIN + 1},
	{"NPU mean", CELL_MEAN},
	{"Bench mean", CELL_MEAN + 1},
	{"NPU l2norm", CELL_NORM},
	{"Bench l2norm", CELL_NORM + 1},
	{"NPU MD5", CELL_MD5},
	{"BENCH MD5", CELL_MD5 + 1},
	{"Result", CELL_RESULT},
	{"Accuracy Reached or Not", CELL_RESULT}, /* and msprobe until 8.3 */
	{"Err_message", CELL_WHY},
	{"NPU_Stack_Info", CELL_STACK},
	{"Data_name", CELL_DATA},
};

/* In the order of CELL_METRIC: a title is that of the first of its mode. */
static const struct {
	const char *title, *key;
	enum compared_mode mode;
} metric[CELL_NMETRIC] = {
	{"Cosine", "m.cosine", COMPARED_TENSOR},
	{"EucDist", "m.euclid", COMPARED_TENSOR},
	{"MaxAbsErr", "m.max_abs", COMPARED_TENSOR},
	{"MaxRelativeErr", "m.max_rel", COMPARED_TENSOR},
	{"One Thousandth Err Ratio", "m.thousandth", COMPARED_TENSOR},
	{"Five Thousandths Err Ratio", "m.five_thousandths", COMPARED_TENSOR},
	{"Max diff", "m.max_diff", COMPARED_STATISTICS},
	{"Min diff", "m.min_diff", COMPARED_STATISTICS},
	{"Mean diff", "m.mean_diff", COMPARED_STATISTICS},
	{"L2norm diff", "m.norm_diff", COMPARED_STATISTICS},
	{"MaxRelativeErr", "m.max_relerr", COMPARED_STATISTICS},
	{"MinRelativeErr", "m.min_relerr", COMPARED_STATISTICS},
	{"MeanRelativeErr", "m.mean_relerr", COMPARED_STATISTICS},
	{"NormRelativeErr", "m.norm_relerr", COMPARED_STATISTICS},
};

int
acc_compared_column(struct acc_str title, enum compared_mode mode)
{
	for (size_t i = 0; i < sizeof sided / sizeof *sided; i++)
		if (acc_str_is(title, sided[i].title))
			return sided[i].cell;
	for (int i = 0; i < CELL_NMETRIC; i++)
		if (metric[i].mode == mode && acc_str_is(title, metric[i].title))
			return CELL_METRIC + i;
	return -1;
}

static const char *const side_name[] = {"a.", "b."};

/* What pandas and msprobe write where there is nothing. */
static bool
is_absent(struct acc_str s)
{
	return s.n == 0 || acc_str_is(s, "N/A");
}

/* A cell as the value that Python had. `words` become numbers, too: Nan, inf. */
static struct acc_val
value_of(struct acc_str s, bool words)
{
	struct acc_literal l;
	s = acc_str_trim(s);
	if (s.n == 0 || acc_str_is(s, "None") || acc_str_is(s, "[]"))
		return acc_nil();
	if (acc_str_is(s, "True") || acc_str_is(s, "False"))
		return acc_bool(s.p[0] == 'T');
	if (!acc_literal_all(s, &l) || (!words && !isfinite(l.v)))
		return acc_text(s);
	return l.integer ? acc_int(l.i) : acc_f64(l.v);
}

static int
put(struct acc_rec *r, const char *side, const char *key, struct acc_val v)
{
	return acc_add(r, side, key, v);
}

/* "[5, 3]", "(3,)": the sizes. < 0: it is none. */
static int
sizes(struct acc_str s, int64_t *out)
{
	int n = 0;
	if (s.n < 2 || (s.p[0] != '[' && s.p[0] != '('))
		return -1;
	for (uint32_t i = 1; i + 1 < s.n;) {
		uint32_t end = i;
		while (end + 1 < s.n && s.p[end] != ',')
			end++;
		const struct acc_str one = acc_str_trim((struct acc_str){s.p + i, end - i});
		if (one.n > 0 && (n == ACC_MAXDIM || !acc_str_int(one, &out[n]) || out[n++] < 0))
			return -1;
		i = end + 1;
	}
	return n;
}

/* "<class 'int'>": int; slice as it stands. Empty: a tensor's. */
static struct acc_str
arg_type(struct acc_str dtype)
{
	static const char head[] = "<class '";
	static const char *const named[] = {"None", "NoneType", "slice", "ellipsis", "torch.Size",
		"torch.ProcessGroup"};
	const uint32_t n = sizeof head - 1;
	if (acc_str_starts(dtype, head) && dtype.n > n + 2)
		dtype = (struct acc_str){dtype.p + n, dtype.n - n - 2};
	else if (is_absent(dtype))
		return ACC_STR("None"); /* as pandas 3 writes it */
	else if (acc_dtype_find(dtype) != ACC_NODTYPE)
		return ACC_STR("");
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (acc_str_is(dtype, named[i]))
			return acc_str(i == 1 ? named[0] : named[i]);
	return acc_str_starts(dtype, "torch.") ? ACC_STR("") : dtype;
}

/* Module.a.Linear.parameters_grad.0.weight, and what acc_dump_argname knows. */
static int
take_apart(struct acc_str name, struct acc_arena *m, struct argname *out)
{
	static const char mid[] = ".parameters_grad.";
	const uint32_t n = sizeof mid - 1;
	const char *at = name.n == 0 ? NULL : memmem(name.p, name.n, mid, n);
	if (at == NULL)
		return acc_dump_argname(name, m, out);
	const char *end = name.p + name.n, *p = at + n;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	if (p == at + n || p == end || *p != '.')
		p = at + n - 1;
	const struct acc_str key = {name.p, (uint32_t)(p - name.p)};
	int rc = acc_dump_argname_key(key, '.', m, out);
	out->pass = ACC_STR("grad");
	out->io = "grad";
	out->pos = (struct acc_str){p + 1, (uint32_t)(end - p - 1)};
	return rc;
}

static int
put_name(struct acc_rec *r, const char *side, const struct argname *a)
{
	int rc = put(r, side, "key", acc_text(a->key)) | put(r, side, "op", acc_text(a->op));
	if (a->call >= 0)
		rc |= put(r, side, "call", acc_int(a->call));
	if (a->pass.n > 0)
		rc |= put(r, side, "pass", acc_text(a->pass));
	return rc | put(r, side, "io", acc_ctext(a->io)) | put(r, side, "pos", acc_text(a->pos));
}

static int
put_sum(struct acc_rec *r, const char *side, struct acc_str s)
{
	if (is_absent(s))
		return 0;
	return put(r, side,
		acc_str_starts(s, "0x") ? "stat.xor"
		: s.n == 32             ? "stat.md5"
					: "stat.crc32",
		acc_text(s));
}

/* One side of a row, under its prefix. */
static int
put_side(struct acc_rec *r, const struct acc_str *cell, int i, const char *side,
	struct acc_str type, struct acc_str scope, struct acc_arena *m)
{
	static const struct {
		int cell;
		const char *key;
	} stat[] = {{CELL_MAX, "stat.max"}, {CELL_MIN, "stat.min"}, {CELL_MEAN, "stat.mean"},
		{CELL_NORM, "stat.norm"}};
	struct argname a;
	int64_t shape[ACC_MAXDIM];
	const struct acc_str dtype = cell[CELL_DTYPE + i], grad = cell[CELL_GRAD + i];
	int rc = take_apart(cell[CELL_NAME + i], m, &a);
	if (side[0] != '\0')
		rc |= put(r, side, "name", acc_text(cell[CELL_NAME + i]));
	rc |= put_name(r, side, &a);
	if (scope.n > 0)
		rc |= put(r, side, "scope", acc_text(scope));
	if (type.n > 0) {
		const struct acc_str v = cell[CELL_MAX + i];
		const bool shown = !acc_word_in("None slice torch.Size", type);
		rc |= put(r, side, "type", acc_text(type));
		if (!shown || v.p != NULL)
			rc |= put(r, side, "value", shown ? value_of(v, true) : acc_nil());
		return rc | put_sum(r, side, cell[CELL_MD5 + i]);
	}
	const enum acc_dtype known = acc_dtype_find(dtype);
	const int n = sizes(cell[CELL_SHAPE + i], shape);
	rc |= put(r, side, "dtype.raw", acc_text(dtype));
	if (known != ACC_NODTYPE)
		rc |= put(r, side, "dtype", acc_ctext(acc_dtype_of(known)->name));
	if (n >= 0)
		rc |= put(r, side, "shape", acc_ints(shape, (uint32_t)n));
	if (acc_word_in("True False", grad))
		rc |= put(r, side, "requires_grad", acc_bool(grad.p[0] == 'T'));
	for (size_t k = 0; k < sizeof stat / sizeof *stat; k++) {
		const struct acc_str s = cell[stat[k].cell + i];
		struct acc_val v = value_of(s, true);
		if (!is_absent(s) && v.type != ACC_V_TEXT)
			rc |= put(r, side, stat[k].key, v);
	}
	return rc | put_sum(r, side, cell[CELL_MD5 + i]);
}

/* A list of texts as Python prints it, or JSON does; each item into texts, at most max. */
static uint32_t
list_of(struct acc_str s, struct acc_arena *m, struct acc_str *texts, uint32_t max)
{
	uint32_t n = 0, i = 1;
	if (s.n < 2 || s.p[0] != '[')
		return 0;
	while (i < s.n && n < max) {
		const char q = s.p[i++];
		if (q != '"' && q != '\'')
			continue;
		char *p = acc_alloc(m, s.n - i);
		uint32_t k = 0;
		if (p == NULL)
			return n;
		for (; i < s.n && s.p[i] != q; i++) {
			const bool escaped = s.p[i] == '\\' && i + 1 < s.n;
			i += escaped;
			p[k++] = escaped && s.p[i] == 'n'   ? '\n'
				 : escaped && s.p[i] == 't' ? '\t'
							    : s.p[i];
		}
		i++;
		texts[n++] = (struct acc_str){p, k};
	}
	return n;
}

/* Result, or Accuracy Reached or Not, is a judgement of msprobe's. */
static int
put_result(struct acc_rec *r, const struct acc_str *cell, struct acc_arena *m)
{
	static const char *const bad[][2] = {{"error", "error"}, {"warning", "warning"},
		{"Different", "error"}, {"Warning", "warning"}, {"No", "error"}};
	struct acc_str why[16];
	const char *level = NULL;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (acc_str_is(cell[CELL_RESULT], bad[i][0]))
			level = bad[i][1];
	if (level == NULL)
		return 0;
	int rc = put(r, "", "bad", acc_ctext(level)) | put(r, "", "rule", acc_ctext("msprobe"));
	uint32_t n = list_of(cell[CELL_WHY], m, why, 16);
	if (n == 0 && cell[CELL_WHY].n > 0 && cell[CELL_WHY].p[0] != '[')
		why[n++] = cell[CELL_WHY];
	if (n > 0)
		rc |= put(r, "", "why", n == 1 ? acc_text(why[0]) : acc_texts(why, n));
	return rc;
}

/* "['x.0.forward.output.0.pt', '-1']": the files that were compared, if there were any. */
static int
put_files(struct acc_rec *r, const bool has[2], struct acc_str s, struct acc_arena *m)
{
	struct acc_str name[2];
	int rc = 0;
	if (list_of(s, m, name, 2) < 2)
		return 0;
	for (int i = 0; i < 2; i++)
		if (has[i] && !acc_str_is(name[i], "-1") && !is_absent(name[i]))
			rc |= put(r, side_name[i], "data_name", acc_text(name[i]));
	return rc;
}

enum { FRAMES = 256 };

static int
put_stack(struct acc_dump_ctx *c, struct acc_rec *r, const char *side, struct acc_str s,
	struct acc_arena *m)
{
	struct acc_str frame[FRAMES];
	uint32_t n = list_of(s, m, frame, FRAMES);
	return n == 0 ? 0 : put(r, side, "stack", acc_text(acc_dump_stack(c, frame, n)));
}

/* What differs before anything is measured, as accalign notes it. */
static int
put_note(struct acc_rec *r, const struct acc_str *cell, const struct acc_str type[2])
{
	char note[64] = "";
	static const struct {
		int cell;
		const char *what;
	} differs[] = {{CELL_DTYPE, ",dtype"}, {CELL_SHAPE, ",shape"},
		{CELL_GRAD, ",requires_grad"}};
	const bool tensors = type[0].n == 0 && type[1].n == 0;
	size_t n = 0;
	for (size_t i = 0; tensors && i < sizeof differs / sizeof *differs; i++)
		if (!acc_str_eq(cell[differs[i].cell], cell[differs[i].cell + 1]) &&
			!is_absent(cell[differs[i].cell + 1]))
			n += (size_t)snprintf(note + n, sizeof note - n, "%s", differs[i].what);
	if (!acc_str_eq(type[0], type[1]))
		snprintf(note + n, sizeof note - n, ",type");
	return note[0] == '\0' ? 0 : put(r, "", "note", acc_ctext(note + 1));
}

bool
acc_compared_has(const struct acc_str *cell, int side)
{
	return !is_absent(cell[CELL_NAME + side]) && !acc_str_is(cell[CELL_NAME + side], "Nan");
}

int
acc_compared_put(struct acc_dump_ctx *c, const struct acc_str *cell, enum compared_mode mode,
	const struct acc_str *scope, struct acc_arena *m, struct acc_err *e)
{
	static const char *const modes[] = {"tensor", "statistics", "md5"};
	bool has[2], same = false;
	struct acc_str type[2];
	for (int i = 0; i < 2; i++) {
		has[i] = acc_compared_has(cell, i);
		type[i] = arg_type(cell[CELL_DTYPE + i]);
	}
	if (!has[0] && !has[1])
		return acc_fail(e, ACC_EFORMAT, "a pair has no name");
	struct acc_rec *r = acc_dump_rec(c, "pair", cell[CELL_NAME + !has[0]]);
	int rc = 0;
	for (int i = 0; i < 2; i++)
		if (has[i])
			rc |= put(r, side_name[i], "kind",
				acc_ctext(type[i].n > 0 ? "arg" : "tensor"));
	same = has[0] && has[1];
	rc |= put(r, "", "how", acc_ctext(same ? "msprobe" : has[0] ? "only-a" : "only-b"));
	if (same)
		rc |= put_note(r, cell, type);
	for (int i = 0; i < 2 && rc == 0; i++)
		if (has[i])
			rc = put_side(r, cell, i, side_name[i], type[i], scope[i], m);
	if (same)
		rc |= put(r, "", "m.mode", acc_ctext(modes[mode]));
	for (int i = 0; i < CELL_NMETRIC; i++) {
		const struct acc_str s = cell[CELL_METRIC + i];
		if (s.n > 0 && (same || !is_absent(s)))
			rc |= put(r, "", metric[i].key, value_of(s, false));
	}
	if (same && mode == COMPARED_MD5 && !is_absent(cell[CELL_MD5]) &&
		!is_absent(cell[CELL_MD5 + 1]))
		rc |= put(r, "", "m.equal",
			acc_bool(acc_str_eq(cell[CELL_MD5], cell[CELL_MD5 + 1])));
	if (has[0])
		rc |= put_stack(c, r, "a.", cell[CELL_STACK], m);
	rc |= put_files(r, has, cell[CELL_DATA], m);
	rc |= put_result(r, cell, m);
	return rc < 0 || m->lost ? acc_nomem(e) : acc_dump_put_pair(c, r, e);
}

int
acc_compared_put_one(struct acc_dump_ctx *c, const struct acc_str *cell, int side,
	struct acc_str scope, struct acc_arena *m, struct acc_err *e)
{
	const struct acc_str type = arg_type(cell[CELL_DTYPE + side]);
	struct acc_rec *r = acc_dump_rec(c, type.n > 0 ? "arg" : "tensor", cell[CELL_NAME + side]);
	if (put_side(r, cell, side, "", type, scope, m) < 0 ||
		put_stack(c, r, "", cell[CELL_STACK], m) < 0 || m->lost)
		return acc_nomem(e);
	return acc_dump_put(c, r, e);
}
