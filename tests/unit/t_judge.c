/* What a judge makes of a record, and of an operator's name. */
#include "judge/sight.h"

#include <math.h>

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
	struct acc_sight sight = {0};
	acc_sight_get(&sight, &rec);
	acc_item_measure(&it, &sight);
	acc_sight_release(&sight);
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
	/* norm 4 of 4 elements: rms 2; the mean is off by 1e-3 of 0 + 2 */
	ok(it.measure == ACC_BY_STAT && fabs(it.rms - 5e-4) < 1e-9,
		"a mean near zero is measured against the rms");
	stats("a.", 2, -2, 0, 4.4);
	ok(fabs(measure().rms - 0.1) < 1e-6, "a norm against itself");
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
			it.rms == 0, "3 is 3.0");
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

static void
operators(void)
{
	static const struct {
		const char *op;
		enum acc_op_class cls;
	} t[] = {{"Tensor.__add__", ACC_OP_ADD}, {"Torch.add", ACC_OP_ADD},
		{"Tensor.clamp_", ACC_OP_ADD}, {"Tensor.__rmul__", ACC_OP_MUL},
		{"Functional.linear", ACC_OP_CONTRACT}, {"Tensor.__matmul__", ACC_OP_CONTRACT},
		{"Module.layers.0.fc.Linear", ACC_OP_CONTRACT},
		{"Module.stem.Conv2d", ACC_OP_CONTRACT}, {"Module.add.Add", ACC_OP_OTHER},
		{"Tensor.view", ACC_OP_MOVE}, {"Tensor.__getitem__", ACC_OP_MOVE},
		{"Functional.dropout", ACC_OP_RANDOM}, {"Torch.empty", ACC_OP_ALLOC},
		{"Functional.gelu", ACC_OP_OTHER}, {"", ACC_OP_OTHER}, {".", ACC_OP_OTHER},
		{"x.__", ACC_OP_OTHER}};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		ok(acc_op_class(acc_str(t[i].op)) == t[i].cls, "'%s'", t[i].op);
	ok(acc_op_weighted(acc_str("Functional.layer_norm")) &&
			!acc_op_weighted(acc_str("Torch.matmul")), "who takes weights");
	ok(acc_unit(ACC_F32) == 0x1p-24 && acc_unit(ACC_F16) == 0x1p-12 &&
			acc_unit(ACC_BF16) == 0x1p-9 && acc_unit(ACC_C64) == 0x1p-24 &&
			acc_unit(ACC_I32) == 0 && acc_unit(ACC_NODTYPE) == 0, "units");
}

int
main(void)
{
	tensors();
	statistics();
	arguments();
	operators();
	acc_rec_release(&rec);
	return done();
}
