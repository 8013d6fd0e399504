/* What the metrics take from a record's side: roundings, statistics as a recorder forms them,
 * texts as Python prints them. Expected values: numpy 1.24 (float16), torch 1.13 (bfloat16). */
#include "tap.h"

#include "metric/side.h"

#include <math.h>

static void
rounding(void)
{
	static const struct {
		enum acc_dtype t;
		double v, want;
	} row[] = {
		{ACC_F16, 0.1, 0.0999755859375},
		{ACC_F16, 2049, 2048},
		{ACC_F16, 2051, 2052},
		{ACC_F16, 65519, 65504},
		{ACC_F16, 65520, INFINITY},
		{ACC_F16, -70000, -INFINITY},
		{ACC_F16, 1e-7, 0x1p-23},
		{ACC_F16, 2e-8, 0},
		{ACC_F16, 0x1.8p-24, 0x1p-23},
		{ACC_BF16, 0.1, 0.10009765625},
		{ACC_BF16, 257, 256},
		{ACC_BF16, 259, 260},
		{ACC_BF16, 94868.3, 94720},
		{ACC_BF16, 3.4e38, INFINITY},
		{ACC_BF16, 3.38e38, 0x1.fcp127},
		{ACC_F32, 0.1, 0x1.99999ap-4},
		{ACC_F64, 0.1, 0.1},
		{ACC_I64, 0.1, 0x1.99999ap-4},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		double got = acc_side_round(row[i].t, row[i].v);
		ok(got == row[i].want, "%s of %.17g is %.17g (%.17g)", acc_dtype_of(row[i].t)->name,
			row[i].v, row[i].want, got);
	}
	ok(isnan(acc_side_round(ACC_F16, NAN)), "NaN stays NaN");
}

static void
statistics(void)
{
	struct acc_one one;
	struct acc_stats st;
	/* torch: 100,000 elements of 300 in bf16 have the norm 94720 */
	acc_one_init(&one);
	one.n = 100000;
	one.min = one.max = 300;
	one.sum.hi = 300 * 1e5;
	one.sumsq.hi = 90000 * 1e5;
	struct acc_ref ref = {.dtype = ACC_BF16, .ndim = 1, .shape = {100000}};
	acc_side_stats_of(&one, &ref, &st);
	ok(st.has[3] && st.v[3] == 94720, "the norm has the precision of the dtype");
	ref.dtype = ACC_F16;
	acc_side_stats_of(&one, &ref, &st);
	ok(isinf(st.v[3]) && st.v[0] == 300, "and its range");
	const float minus = -2.5f;
	acc_kernel_one(ACC_F32, &minus, 1, &one);
	ref = (struct acc_ref){.dtype = ACC_F32};
	acc_side_stats_of(&one, &ref, &st);
	ok(st.v[0] == -2.5 && st.v[1] == -2.5 && st.v[2] == -2.5 && st.v[3] == -2.5,
		"of a 0-d tensor all four are the element");
	acc_one_init(&one);
	acc_side_stats_of(&one, &ref, &st);
	ok(!st.has[0] && !st.has[3], "no elements, no statistics");
}

static void
texts(void)
{
	static const int64_t ints[] = {1, -2};
	struct {
		struct acc_val v;
		const char *want;
	} row[] = {
		{acc_nil(), "None"},
		{acc_bool(true), "True"},
		{acc_bool(false), "False"},
		{acc_int(-3), "-3"},
		{acc_uint(UINT64_MAX), "18446744073709551615"},
		{acc_f64(2), "2.0"},
		{acc_f64(1e-5), "1e-05"},
		{acc_f64(NAN), "nan"},
		{acc_ctext("cpu"), "cpu"},
		{acc_ints(ints, 2), "[1, -2]"},
		{acc_ints(ints, 0), "[]"},
	};
	char buf[64];
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct acc_str s = acc_side_pystr(&row[i].v, buf, sizeof buf);
		ok(acc_str_is(s, row[i].want), "str() is %s (%.*s)", row[i].want, ACC_PRS(s));
	}
	ok(acc_str_is(acc_side_pystr(NULL, buf, sizeof buf), "None"), "what is absent is None");
	int64_t many[64] = {0};
	struct acc_val v = acc_ints(many, 64);
	ok(acc_side_pystr(&v, buf, sizeof buf).n < sizeof buf, "a long list is cut off");
}

int
main(void)
{
	rounding();
	statistics();
	texts();
	return done();
}
