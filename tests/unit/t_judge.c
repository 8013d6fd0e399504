/* What a judge makes of a record, and of an operator's name. */
#include "judge/case.h"
#include "judge/picked.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static struct acc_rec rec;

static void
start(const char *kind)
{
	if (acc_rec_start(&rec, acc_str(kind)) < 0)
		ok(false, "memory");
}

static void
number(const char *key, double v)
{
	acc_put(&rec, "", key, acc_f64(v));
}

static void
text(const char *key, const char *v)
{
	acc_put(&rec, "", key, acc_ctext(v));
}

static void
shape(const char *key, int64_t n)
{
	acc_put(&rec, "", key, acc_ints(&n, 1));
}

static void
pair(const char *dtype, int64_t n)
{
	static const char *const side[] = {"a.", "b."};
	start("pair");
	for (int i = 0; i < 2; i++) {
		acc_put(&rec, side[i], "kind", acc_ctext("tensor"));
		acc_put(&rec, side[i], "io", acc_ctext("out"));
		acc_put(&rec, side[i], "dtype", acc_ctext(dtype));
		acc_put(&rec, side[i], "shape", acc_ints(&n, 1));
	}
}

static struct acc_item
measure(void)
{
	struct acc_item it = {0};
	struct acc_picked picked = {0};
	acc_picked_get(&picked, &rec);
	acc_item_measure(&it, &picked);
	acc_picked_release(&picked);
	return it;
}

static void
tensors(void)
{
	pair("f32", 4);
	number("m.err_rms", 0.5);
	number("m.err_max", 2);
	number("m.nonfinite", 0);
	struct acc_item it = measure();
	ok(it.kind == ACC_ITEM_TENSOR && it.sides == 3 && it.io == ACC_IO_OUT && it.ndim == 1,
		"a pair of tensors");
	ok(it.measure == ACC_BY_TENSOR && it.rms == 0.5F && it.max == 2, "its error");
	number("m.err_rms", NAN);
	ok(isinf(measure().rms), "a NaN is never good");
	number("m.nonfinite", 1);
	it = measure();
	ok(it.nonfinite && isinf(it.rms) && isinf(it.max), "NaN or Inf that differ are infinite");
	text("a.s.hash", "0011");
	text("b.s.hash", "0011");
	it = measure();
	ok(it.rms == 0 && it.id[0] != 0 && it.id[0] == it.id[1], "equal bytes have no error");
	text("b.dtype", "f16");
	it = measure();
	ok(it.id[0] != it.id[1] && it.rms > 0, "equal bytes of another dtype are not equal");
	pair("f32", 0);
	it = measure();
	ok(it.measure == ACC_BY_TENSOR && it.rms == 0, "no elements: nothing differs");
	pair("f32", 4);
	text("m.cosine", "unsupported");
	text("m.skip", "file is missing");
	it = measure();
	ok(it.measure == ACC_UNMEASURED && isnan(it.rms), "nothing measured");
	pair("i64", 4);
	number("m.err_rms", 1e-9);
	number("m.same", 0.75);
	it = measure();
	ok(it.exact && it.rms == 0.25F && it.max == 1, "integers: the share that differs");
	number("m.same", 1);
	number("m.max_abs", 0);
	ok(measure().rms == 0, "integers: equal");
}

static void
stats(const char *p, double max, double min, double mean, double norm)
{
	const double v[] = {max, min, mean, norm};
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	for (int i = 0; i < 4; i++)
		acc_put(&rec, p, keys[i], acc_f64(v[i]));
}

static void
statistics(void)
{
	pair("f32", 4);
	stats("a.", 2, -2, 1e-3, 4);
	stats("b.", 2, -2, 0, 4);
	struct acc_item it = measure();
	/* norm 4 of 4 elements: rms 2; the mean is off by 1e-3 of 0 + 2, of which 1e-6 may be how it
	 * was summed up */
	ok(it.measure == ACC_BY_STAT && fabs(it.rms - (5e-4 - 1e-6)) < 1e-9,
		"a mean near zero is measured against the rms");
	stats("a.", 2, -2, 0, 4.4);
	ok(fabs(measure().rms - 0.1) < 1e-6, "a norm against itself");
	pair("f32", 1);
	stats("a.", -0.5, -0.5, -0.5, -0.5);
	stats("b.", -0.4, -0.4, -0.4, -0.4);
	/* 0.1 of 0.4 + 0.4; the norm by itself: 0.1 of 0.4 */
	ok(fabs(measure().rms - 0.25) < 1e-6, "the norm of a scalar may be negative");
	pair("f32", 4);
	stats("b.", 2, -2, 0, 4);
	stats("a.", INFINITY, -2, 0, 4);
	it = measure();
	ok(it.nonfinite && isinf(it.rms) && it.a_inf && !it.b_overflow, "Inf on the device");
	stats("a.", 2, -2, NAN, INFINITY);
	it = measure();
	ok(!it.nonfinite && it.rms == 0 && !it.a_inf,
		"an infinite norm or mean is no overflow of an element");
	stats("a.", 65504, -2, 0, 4);
	stats("b.", INFINITY, -2, 0, 4);
	text("a.dtype", "f16");
	text("b.dtype", "f16");
	it = measure();
	ok(it.saturated && it.b_overflow && isinf(it.rms), "saturated where the bench overflows");
	stats("a.", 2, -2, 0, 4);
	stats("b.", 2, -2, 0, 4);
	shape("a.shape", 2);
	ok(measure().measure == ACC_UNMEASURED, "statistics of another number of elements");
	pair("f32", 4);
	stats("a.", 2, -2, -0.0, 4);
	stats("b.", 2, -2, 0.0, 4);
	it = measure();
	ok(it.id[0] != 0 && it.id[0] == it.id[1] && it.rms == 0, "-0.0 is 0.0");
	pair("f32", 4);
	acc_put(&rec, "a.", "stat.max", acc_nil());
	acc_put(&rec, "b.", "stat.max", acc_nil());
	it = measure();
	ok(it.measure == ACC_UNMEASURED && it.id[0] == 0, "null against null is no match");
	pair("f32", 4);
	acc_put(&rec, "", "m.equal", acc_bool(false));
	text("a.stat.crc32", "00000001");
	text("b.stat.crc32", "00000002");
	it = measure();
	ok(it.measure == ACC_BY_SUM && isinf(it.rms) && it.id[0] != it.id[1], "checksums");
}

static void
arguments(void)
{
	start("pair");
	text("a.kind", "arg");
	text("b.kind", "arg");
	text("a.io", "kw");
	acc_put(&rec, "a.", "value", acc_int(3));
	acc_put(&rec, "b.", "value", acc_f64(3));
	struct acc_item it = measure();
	ok(it.kind == ACC_ITEM_ARG && it.io == ACC_IO_KW && it.measure == ACC_BY_VALUE &&
			it.rms == 0,
		"3 is 3.0");
	acc_put(&rec, "b.", "value", acc_f64(4));
	ok(measure().rms == 0.25F, "numbers differ by so much");
	acc_put(&rec, "a.", "value", acc_bool(true));
	ok(isinf(measure().rms), "True is not 4");
	text("a.value", "npu:0");
	text("b.value", "cuda:0");
	acc_put(&rec, "", "m.equal", acc_bool(false));
	ok(measure().rms == 0, "devices are meant to differ");
	text("b.value", "none");
	ok(isinf(measure().rms), "other texts are not");
	acc_del(&rec, "", "m.equal");
	acc_del(&rec, "b.", "kind");
	it = measure();
	ok(it.sides == 1 && it.measure == ACC_UNMEASURED, "one side");
	text("note", "dtype,shape,requires_grad");
	text("a.err", "file is missing");
	it = measure();
	ok(it.note_dtype && it.note_shape && it.broken, "notes, and a broken record");
	text("note", "requires_grad");
	it = measure();
	ok(!it.note_dtype && !it.note_shape, "no such note");
	start("tensor");
	text("dtype", "f16");
	number("s.nan", 1);
	number("s.posinf", 0);
	number("s.neginf", 2);
	it = measure();
	ok(it.sides == 1 && it.a_nan && it.a_inf, "a tensor of one dump");
}

/* The file in which a case keeps its records: it is open and has no name any more. */
static int
spool_of(void)
{
	char path[300], target[300];
	int found = -1;
	DIR *d = opendir("/proc/self/fd");
	for (struct dirent *x; d != NULL && (x = readdir(d)) != NULL;) {
		snprintf(path, sizeof path, "/proc/self/fd/%s", x->d_name);
		ssize_t n = readlink(path, target, sizeof target - 1);
		target[n < 0 ? 0 : n] = '\0';
		int fd = atoi(x->d_name); /* one that was inherited has not this flag */
		if (strstr(target, " (deleted)") != NULL && fcntl(fd, F_GETFD) == FD_CLOEXEC)
			found = fd;
	}
	if (d != NULL)
		closedir(d);
	return found;
}

/* Judge a stream whose records can be written, and not be read again. */
static void
unread(const char *name)
{
	struct acc_err e = {0}, opened = {0};
	const struct acc_judge_opt opt = {.tmpdir = "/tmp"};
	char path[200];
	snprintf(path, sizeof path, "tests/data/regress/%s", name);
	char *list[] = {path};
	struct acc_case *c = acc_case_open(&opt, &opened);
	struct acc_in *in = acc_in_open(list, 1, &opened);
	struct acc_rec *r;
	while (c != NULL && in != NULL && acc_in_next(in, &r, &opened) > 0)
		if (acc_case_add(c, r, &opened) < 0)
			break;
	int fd = spool_of(), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (opened.code != 0 || c == NULL || fd < 0 || dup2(nothing, fd) < 0) {
		ok(false, "%s: %s", name, opened.msg);
	} else {
		int rc = acc_case_judge(c, &e);
		ok(rc == ACC_EIO && e.code == rc, "%s unread: %d, %s", name, rc, e.msg);
	}
	close(nothing);
	acc_in_close(in);
	acc_case_close(c);
}

/* A dtype that is not known is no index. */
static void
dtypes(void)
{
	const struct acc_item it = {.dtype = {ACC_NODTYPE, ACC_F16}};
	const struct acc_dtype_info *none = acc_item_dtype(&it, ACC_A);
	ok(none->size == 1 && none->eps == 0 && isinf(none->max) &&
			acc_item_dtype(&it, ACC_B)->size == 2,
		"of a dtype that is not known nothing is said");
}

int
main(void)
{
	dtypes();
	tensors();
	statistics();
	arguments();
	unread("006-element-ocular-tf32.acc.gz"); /* the first that it reads is of a suspect, */
	unread("039-lost_branch-lattice-fp32.acc.gz"); /* or a part of a gradient that is a sum */
	acc_rec_release(&rec);
	return done();
}
