/* Headers of .npy files: what numpy wrote and read, and what it would not. */
#include "acc/npy.h"
#include "tap.h"

#include <stdlib.h>

#define IO "tests/data/io/"

static size_t
load(const char *name, uint8_t *p, size_t size)
{
	char path[128];
	snprintf(path, sizeof path, IO "%s.npy", name);
	FILE *f = fopen(path, "rb");
	size_t n = f == NULL ? 0 : fread(p, 1, size, f);
	if (f != NULL)
		fclose(f);
	return n;
}

static void
join(const int64_t *v, uint32_t n, char *out, size_t size)
{
	size_t len = (size_t)snprintf(out, size, n == 0 ? "-" : "");
	for (uint32_t i = 0; i < n; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%lld", i > 0 ? "," : "",
			(long long)v[i]);
}

struct want {
	char name[32], dtype[16], order[8], shape[64], stride[64];
	int off, len;
};

static void
file(const struct want *w)
{
	uint8_t p[4096];
	size_t n = load(w->name, p, sizeof p);
	struct acc_ref r = {.strided = true, .first = 9};
	struct acc_err e = {0};
	struct acc_str descr = {0};
	struct acc_arena m = {0};
	char shape[64], stride[64];
	int64_t got = acc_npy_header(p, n, &r, &descr, &m, &e);
	join(r.shape, r.ndim, shape, sizeof shape);
	join(r.stride, r.strided ? r.ndim : 0, stride, sizeof stride);
	if (strcmp(w->dtype, "-") == 0)
		ok(got == ACC_EUNSUP && descr.n > 0 && strcmp(shape, w->shape) == 0,
			"%s is named: %s", w->name, e.msg);
	else
		ok(got == w->off && (int)r.off == w->off && (int)r.len == w->len && r.first == 0 &&
				strcmp(acc_dtype_of(r.dtype)->name, w->dtype) == 0 &&
				r.big_endian == (w->order[0] == 'b') &&
				strcmp(shape, w->shape) == 0 && strcmp(stride, w->stride) == 0,
			"%s: %d %s %s %s %s", w->name, (int)got, descr.p, shape, stride, e.msg);
	bool early = true;
	for (int64_t i = 0; i < got; i++)
		early = early && acc_npy_header(p, (size_t)i, &r, NULL, NULL, NULL) == 0;
	ok(early, "%s: every prefix is too short", w->name);
	acc_arena_release(&m);
}

/* A version 1.0 header of this text. */
static int64_t
header(const char *text, struct acc_ref *r, struct acc_err *e)
{
	static char p[70000];
	size_t n = strlen(text);
	memcpy(p, "\x93NUMPY\1\0", 8);
	p[8] = (char)(n & 0xff);
	p[9] = (char)(n >> 8);
	memcpy(p + 10, text, n);
	*r = (struct acc_ref){0};
	return acc_npy_header(p, n + 10, r, NULL, NULL, e);
}

static void
type(const char *descr, const char *want, bool big)
{
	char text[128];
	struct acc_ref r;
	struct acc_err e = {0};
	snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (2,)}", descr);
	int64_t got = header(text, &r, &e);
	if (got == ACC_EUNSUP)
		ok(strstr(e.msg, want) != NULL, "%s: %s", descr, e.msg);
	else
		ok(got > 0 && strcmp(acc_dtype_of(r.dtype)->name, want) == 0 && r.big_endian == big,
			"%s is %s: %s", descr, want, e.msg);
}

static void
refused(const char *text, int code, const char *why)
{
	struct acc_ref r;
	struct acc_err e = {0};
	int64_t got = header(text, &r, &e);
	ok(got == code && e.code == code && strstr(e.msg, why) != NULL, "%.60s: %d %s", text,
		(int)got, e.msg);
}

#define SHAPE(s) "{'descr': '<f4', 'fortran_order': False, 'shape': " s "}"

int
main(void)
{
	struct want w;
	int n = 0;
	FILE *f = fopen(IO "npy.tsv", "r");
	while (f != NULL && fscanf(f, "%31s %15s %7s %d %d %63s %63s", w.name, w.dtype, w.order,
				    &w.off, &w.len, w.shape, w.stride) == 7) {
		file(&w);
		n++;
	}
	if (f != NULL)
		fclose(f);
	ok(n >= 25, "%d files of numpy's", n);
	type("'<E2'", "bf16", false);
	type("'<h2'", "bf16", false);
	type("'|V2'", "bf16", false);
	type("'<V2'", "bf16", false);
	type("'<f1'", "f8e5m2", false);
	type("'>f2'", "f16", true);
	type("'|i1'", "i8", false);
	type("'=f4'", "f32", false);
	type("'f4'", "f32", false);
	type("'|V1'", "raw bytes", false);
	type("'<f16'", "longdouble", false);
	type("'<c32'", "clongdouble", false);
	type("'|O'", "pickle", false);
	type("'<U3'", "text", false);
	type("[('x]', '<f4'), (\"y\", [('z', 'O')])]", "structured", false);
	type("''", "not known", false);
	type("'<f3'", "not known", false);
	refused(SHAPE("(3)"), ACC_EFORMAT, "tuple");
	refused(SHAPE("[3]"), ACC_EFORMAT, "tuple");
	refused(SHAPE("(-1,)"), ACC_EFORMAT, "dimension");
	refused(SHAPE("(,)"), ACC_EFORMAT, "dimension");
	refused(SHAPE("(1 2)"), ACC_EFORMAT, "','");
	refused(SHAPE("(9223372036854775808,)"), ACC_EFORMAT, "64 bits");
	refused(SHAPE("(9223372036854775807,)"), ACC_EFORMAT, "64 bits");
	refused(SHAPE("(4294967296,2147483648)"), ACC_EFORMAT, "64 bits");
	refused(SHAPE("(2,"), ACC_EFORMAT, "dimension");
	refused(SHAPE("(2,)") " x", ACC_EFORMAT, "nothing after");
	refused("{'descr': '<f4', 'fortran_order': False}", ACC_EFORMAT, "expected descr");
	refused("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", ACC_EFORMAT, "True or False");
	refused("{'descr': '<f4', 'descr': '<f4'}", ACC_EFORMAT, "once");
	refused("{'descr': '<f4', 'more': 1}", ACC_EFORMAT, "once");
	refused("{'descr': '<f4 ", ACC_EFORMAT, "a type");
	refused("{'descr': [('a', ", ACC_EFORMAT, "a type");
	refused("__import__('os').system('id')", ACC_EFORMAT, "'{'");
	refused("", ACC_EFORMAT, "'{'");
	char dims[400] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
	for (int i = 0; i < 65; i++)
		strcat(dims, "1, ");
	refused(strcat(dims, ")}"), ACC_ELIMIT, "64 dimensions");
	struct acc_err e = {0};
	struct acc_ref r = {0};
	ok(header(SHAPE("(4294967296,4294967296,0)"), &r, &e) > 0 && r.len == 0, "none of many");
	ok(acc_npy_header("\x93NUMPX", 6, &r, NULL, NULL, &e) == ACC_EFORMAT, "magic: %s", e.msg);
	e.code = 0;
	ok(acc_npy_header("\x93NUMPY\4\0", 8, &r, NULL, NULL, &e) == ACC_EVERSION, "%s", e.msg);
	e.code = 0;
	ok(acc_npy_header("\x93NUMPY\2\0\xff\xff\xff\xff", 12, &r, NULL, NULL, &e) == ACC_ELIMIT,
		"%s", e.msg);
	ok(acc_npy_header(NULL, 0, &r, NULL, NULL, NULL) == 0, "nothing at all is too short");
	return done();
}
