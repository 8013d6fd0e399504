#include "check/check.h"
#include "tap.h"

static struct acc_arena mem;

static struct acc_val
mean(const char *text)
{
	return acc_check_mean(acc_str(text), false, &mem);
}

static bool
same(const char *a, const char *b)
{
	struct acc_val x = mean(a), y = mean(b);
	return acc_check_same(&x, &y) && acc_check_same(&y, &x);
}

static void
test_values(void)
{
	ok(same("1e-5", "0.00001") && same("1.e-8", "1.0E-08") && same("32", "32.0"), "numbers");
	ok(!same("1e-5", "1.001e-5") && !same("0", "1e-300"), "other numbers");
	ok(same("true", "True") && same("True", "1") && same("false", "0") && !same("true", "0"),
		"switches");
	ok(same("bf16", "torch.bfloat16") && same("bfloat16", "mstype.bfloat16") &&
			same("half", "float16") && same("fp32", "torch.float32") &&
			!same("fp16", "bf16"),
		"data types");
	ok(same("RMSNorm", "rmsnorm") && !same("rmsnorm", "layernorm"), "capitals");
	ok(same("[0.9, 0.95]", "[0.9,0.95]") && same("[\"a\"]", "['a']"), "lists");
	ok(same("'swiglu'", "swiglu") && !same("1", "one"), "quotes");
	ok(mean("None").type == ACC_V_NIL && mean("null").type == ACC_V_NIL &&
			mean("auto").type == ACC_V_NIL && mean("").type == ACC_V_NIL,
		"not set");
	struct acc_val v = acc_check_mean(acc_str("2.10"), true, &mem);
	ok(v.type == ACC_V_TEXT && acc_str_is(v.s, "2.10"), "a version stays a text");
}

static void
test_text(void)
{
	struct acc_val v = acc_f64(11008);
	ok(strcmp(acc_check_text(&v, &mem), "11008") == 0, "a whole number has no point");
	v = acc_f64(1e-5);
	ok(strcmp(acc_check_text(&v, &mem), "1e-05") == 0, "a small one is as Python's");
	v = acc_bool(true);
	ok(strcmp(acc_check_text(&v, &mem), "true") == 0, "a switch");
}

static bool
before(const char *a, const char *b)
{
	return acc_check_before(acc_str(a), acc_str(b));
}

static void
test_versions(void)
{
	ok(before("0.9", "0.11") && !before("0.11", "0.9"), "by numbers");
	ok(!before("0.11", "0.11.0") && before("0.11", "0.11.1"), "of other lengths");
	ok(before("2.6.0rc1", "2.7") && !before("2.6.0rc1", "2.6.0"), "with a tail");
	ok(!before("", "") && before("", "1"), "empty");
}

static struct acc_checklist *
list(const char *text)
{
	struct acc_err e = {0};
	struct acc_checklist *cl = acc_checklist_new(&e);
	if (acc_checklist_add(cl, text, strlen(text), "test", &e) < 0)
		printf("# %s\n", e.msg);
	return cl;
}

static void
add(struct acc_check *ck, const char *dialect, const char *key, const char *value)
{
	struct acc_rec r = {0};
	acc_rec_start(&r, ACC_STR("param"));
	acc_add(&r, "", "key", acc_ctext(key));
	acc_add(&r, "", "value", acc_ctext(value));
	acc_add(&r, "", "dialect", acc_ctext(dialect));
	acc_add(&r, "", "where", acc_ctext("f:1"));
	ok(acc_check_add(ck, &r, NULL) == 1, "%s %s", key, value);
	acc_rec_release(&r);
}

/* Whichever row comes first: its field, or "". */
static const char *
field(struct acc_check *ck, const char *key)
{
	struct acc_rec *r;
	if (acc_check_judge(ck, NULL) < 0 || acc_check_next(ck, &r, NULL) <= 0)
		return "";
	struct acc_str s = acc_get_text(r, "", key);
	return s.p == NULL ? "" : acc_arena_copy(&mem, s.p, s.n);
}

static void
test_lookup(void)
{
	struct acc_checklist *cl = list(
		"param x\n\tmindformers first(b.x, l.1)\n\terror when value == 3\n"
		"\twhy it is {value}\n");
	struct acc_check_opt opt = {.list = cl};
	struct acc_check *ck = acc_check_open(&opt, NULL);
	add(ck, "mindformers", "eval_dataset.b.x", "4");
	add(ck, "mindformers", "a.c.b.x", "5");
	add(ck, "mindformers", "a.b.x", "3");
	add(ck, "mindformers", "ab.x", "6");
	ok(strcmp(field(ck, "why"), "it is 3") == 0, "the shallowest whose components end so");
	ok(acc_check_status(ck) == 1, "a broken rule");
	acc_check_close(ck);
	ck = acc_check_open(&opt, NULL);
	add(ck, "mindformers", "l", "[1, 3.0, 2]");
	ok(strcmp(field(ck, "a.value"), "3") == 0, "an element of a list");
	acc_check_close(ck);
	ck = acc_check_open(&opt, NULL);
	add(ck, "megatron", "b.x", "3");
	ok(acc_check_judge(ck, NULL) == 0 && acc_check_status(ck) == 0,
		"another dialect's key is none");
	acc_check_close(ck);
	ck = acc_check_open(&opt, NULL);
	add(ck, "mindformers", "b.x", "3");
	add(ck, "mindformers", "b.x", "${X}");
	ok(acc_check_judge(ck, NULL) == 0 && acc_check_status(ck) == 0,
		"the last counts, and is unknown");
	acc_check_close(ck);
	acc_checklist_free(cl);
}

int
main(void)
{
	test_values();
	test_text();
	test_versions();
	test_lookup();
	acc_arena_release(&mem);
	return done();
}
