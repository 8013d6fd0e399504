/* The expressions of rule files, on two inputs and an output. */
#include "rule/expr.h"

#include <math.h>
#include <stdlib.h>

#include "tap.h"

static struct acc_arena mem;
static struct expr_fields fields;

/* The rows: x is 1, 2 (inputs), 4 (output); the others are the same in each. */
static struct acc_val
field(const char *name, int row)
{
	static const int64_t shape[] = {2, 3};
	static const double x[] = {1, 2, 4};
	static const struct {
		const char *name, *text;
	} texts[] = {{"t", "inf"}, {"p", "12.5%"}, {"a.key", "Torch.add.0.forward"}};
	if (strcmp(name, "x") == 0)
		return acc_f64(x[row]);
	if (strcmp(name, "nan") == 0)
		return acc_f64(NAN);
	if (strcmp(name, "i") == 0)
		return acc_int(4);
	if (strcmp(name, "yes") == 0)
		return acc_bool(true);
	if (strcmp(name, "shape") == 0)
		return acc_ints(shape, 2);
	if (strcmp(name, "late") == 0)
		return row == 1 ? acc_f64(7) : acc_nil();
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcmp(name, texts[i].name) == 0)
			return acc_ctext(texts[i].text);
	return acc_nil();
}

static struct acc_val
run(const char *text)
{
	struct expr x = {0};
	struct acc_err e = {0};
	struct acc_val v[3][32];
	struct expr_row row[3];
	if (acc_expr_compile(&x, acc_str(text), &fields, &mem, &e) < 0) {
		acc_expr_release(&x);
		return acc_ctext("does not compile");
	}
	for (int r = 0; r < 3; r++) {
		row[r] = (struct expr_row){v[r], r == 2};
		for (uint32_t i = 0; i < fields.n && i < 32; i++)
			v[r][i] = field(fields.name[i].p, r);
	}
	struct expr_table t = {row, 3};
	acc_expr_prepare(&x, &t);
	struct acc_val got = acc_expr_run(&x, &t, 2);
	acc_expr_release(&x);
	return got;
}

static void
is(const char *text, double want)
{
	struct acc_val v = run(text);
	double got = NAN;
	ok(acc_as_f64(&v, &got) && got == want, "%s is %g", text, want);
}

static void
truth(const char *text, bool want)
{
	struct acc_val v = run(text);
	ok(v.type == ACC_V_BOOL && v.b == want, "%s is %s", text, want ? "true" : "false");
}

static void
undefined(const char *text)
{
	ok(run(text).type == ACC_V_NIL, "%s is undefined", text);
}

int
main(void)
{
	is("1 + 2 * 3 - 8 / 4", 5);
	is("(1 + 2) * -3", -9);
	is("1e-3", 0.001);
	is("x", 4);
	is("min_in(x)", 1);
	is("max_in(x)", 2);
	is("max_out(x, 9)", 4);
	is("max_in(none, 9)", 9);
	is("max_in(late)", 7);
	is("min_in(if(x > 1, x * 10))", 20);
	is("max_in(x) + max_out(x)", 6);
	is("abs(-3)", 3);
	is("min(none, 3, i)", 3);
	truth("first(none, t, x) == 'inf'", true);
	is("number(t)", INFINITY);
	undefined("number('0x10')");
	is("percent(p)", 0.125);
	is("if(yes, 1, 2)", 1);
	is("if(none > 1, 1, 2)", 2);
	truth("i == 4.0 and i >= 4 and i <= 4 and not i < 4 and not i > 4 and not i != 4", true);
	truth("nan == nan or nan < 1 or nan > 1", false);
	truth("nan != nan", true);
	truth("isnan(nan) and isinf(number(t)) and isfinite(x)", true);
	truth("isnan(t) or isinf(t) or isfinite(t) or isfinite(none)", false);
	truth("not none > 1", true);
	truth("none > 1 or yes", true);
	truth("true or false and false", true);
	truth("defined(x) and not defined(none)", true);
	truth("in(part(a.key, 1), 'sub', \"add\")", true);
	truth("in(none, none)", false);
	truth("glob(a.key, 'Torch.*.forward')", true);
	is("floor(-1.5)", -2);
	is("ceil(x / 3)", 2);
	is("mod(7, i)", 3);
	truth("defined(mod(7, 0))", false);
	truth("shape == shape and shape != x", true);
	truth("t == 'inf' and t != p", true);
	undefined("none");
	undefined("none == none");
	undefined("none + 1");
	undefined("t < p");
	undefined("percent(t)");
	undefined("number(p)");
	undefined("part(a.key, 9)");
	undefined("abs(t)");
	undefined("min(none)");
	static const char *const wrong[] = {"", "1 +", "(1", "1)", "f(1)", "'x", "x x", "abs()",
		"abs(1, 2)", "min_in(min_out(x))", "min_in(x", "min_in(x, 1, 2)", "x = 1", "and",
		"1 < 2 < 3", "{", "if(1)"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct acc_val v = run(wrong[i]);
		ok(v.type == ACC_V_TEXT, "'%s' does not compile", wrong[i]);
	}
	free(fields.name);
	acc_arena_release(&mem);
	return done();
}
