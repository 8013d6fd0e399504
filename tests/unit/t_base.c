/* Strings, globs, numbers as text, the map, dtypes. Expected texts are Python's. */
#include "acc/base.h"
#include "acc/record.h"
#include "acc/tensor.h"
#include "tap.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static void
repr(double v, const char *want)
{
	char got[40];
	int n = acc_f64_repr(v, got, sizeof got);
	ok(strcmp(got, want) == 0 && n == (int)strlen(want), "repr is %s, got %s", want, got);
}

static void
glob(const char *pattern, const char *s, bool want)
{
	ok(acc_glob(pattern, acc_str(s)) == want, "glob %s %s %s", pattern,
		want ? "matches" : "does not match", s);
}

static void
character(const char *s, uint32_t n, int32_t code, bool plain)
{
	int32_t got;
	uint32_t len = acc_char(acc_str(s), &got);
	ok(len == n && got == code && acc_char_plain(got) == plain, "character U+%04x",
		(unsigned)code);
}

/* Growing: what is there stays; sizes beyond the machine are refused before they wrap. */
static void
grow(void)
{
	struct acc_err e = {0};
	size_t cap = 0, moves = 0;
	uint32_t *v = NULL;
	bool kept = true;
	for (uint32_t n = 0; n < 100000; n++) {
		size_t had = cap;
		uint32_t *p = acc_grow(v, &cap, (size_t)n + 1, sizeof *p, &e);
		if (p == NULL || cap <= n)
			break;
		kept &= cap == had ? p == v : cap >= 2 * had;
		moves += cap != had;
		v = p;
		v[n] = n;
	}
	for (uint32_t n = 0; n < 100000; n++)
		kept &= v[n] == n;
	ok(kept && e.code == 0, "a grown array keeps what it held");
	ok(moves <= 17, "it grows by doubling: %zu times for 100000 elements", moves);
	static const struct {
		size_t n, size;
	} most[] = {{SIZE_MAX, 1}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX / 8 + 1, 8},
		{17, SIZE_MAX / 16 + 1}, {1, SIZE_MAX / 16 + 1}, {SIZE_MAX / 3, 3},
		{SIZE_MAX / 2 + 2, 1}};
	const size_t before = cap;
	for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
		e = (struct acc_err){0};
		size_t none = 0;
		bool refused = acc_grow(NULL, &none, most[i].n, most[i].size, &e) == NULL &&
			       none == 0;
		ok(refused && e.code == ACC_ENOMEM && strcmp(e.msg, "out of memory") == 0,
			"%zu elements of %zu bytes are refused", most[i].n, most[i].size);
	}
	e = (struct acc_err){0};
	ok(acc_grow(v, &cap, SIZE_MAX / 4 + 2, sizeof *v, &e) == NULL && cap == before &&
			v[99999] == 99999 && acc_grow(v, &cap, before, sizeof *v, NULL) == v,
		"an array that cannot grow stays as it was");
	free(v);
	e = (struct acc_err){0};
	acc_fail(&e, ACC_EFORMAT, "first");
	ok(acc_nomem(&e) == ACC_ENOMEM && e.code == ACC_EFORMAT && acc_nomem(NULL) == ACC_ENOMEM,
		"out of memory does not hide an earlier failure");
}

static void
fields(void)
{
	struct acc_err e = {0};
	struct acc_rec r = {0};
	char key[16];
	int rc = acc_rec_start(&r, ACC_STR("tensor"));
	for (int i = 0; rc == 0 && i < 2 * ACC_MAX_FIELDS; i++) {
		snprintf(key, sizeof key, "k%d", i);
		rc = acc_add(&r, "", key, acc_int(i));
	}
	ok(rc == ACC_ELIMIT && acc_rec_fail(&e, rc) == rc && e.code == rc &&
			strcmp(e.msg, "a record has too many fields") == 0,
		"a full record is no lack of memory");
	acc_rec_release(&r);
}

int
main(void)
{
	grow();
	fields();
	/* python3 -c 'print(repr(x))' */
	repr(1e-5, "1e-05");
	repr(0.0001, "0.0001");
	repr(0.1, "0.1");
	repr(-0.0, "-0.0");
	repr(100, "100.0");
	repr(1e15, "1000000000000000.0");
	repr(1e16, "1e+16");
	repr(123456789012345680.0, "1.2345678901234568e+17");
	repr(5e-324, "5e-324");
	repr(1.7976931348623157e308, "1.7976931348623157e+308");
	repr(0.3743210434913635, "0.3743210434913635");
	repr(-10000, "-10000.0");
	repr(2.2250738585072014e-308, "2.2250738585072014e-308");
	repr(0x1p-24, "5.960464477539063e-08");
	repr(0x1p-1022, "2.2250738585072014e-308");
	repr(9007199254740993.0, "9007199254740992.0");
	repr(NAN, "nan");
	repr(-INFINITY, "-inf");

	glob("Functional.*.forward", "Functional.linear.3.forward", true);
	glob("a*b?[0-9]", "axxbz7", true);
	glob("a*b?[!0-9]", "axxbz7", false);
	glob("*", "", true);
	glob("?", "", false);
	glob("a*c", "ab", false);
	glob("[]a]", "]", true);
	glob("\\*", "*", true);
	glob("\\*", "x", false);
	glob("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false);

	/* The table of well-formed sequences in the Unicode standard (3-7). */
	character("a", 1, 'a', true);
	character("\xc3\xa9", 2, 0xe9, true);
	character("\xe6\xa0\x87", 3, 0x6807, true);
	character("\xf0\x9f\x98\x80", 4, 0x1f600, true);
	character("\x1b[0m", 1, 0x1b, false);
	character("\x7f", 1, 0x7f, false);
	character("\xc2\x9b", 2, 0x9b, false);
	character("\xe2\x80\xae", 3, 0x202e, false);
	character("\xe2\x81\xa7", 3, 0x2067, false);
	character("\x9b", 1, -1, false);
	character("\xc0\x80", 1, -1, false);
	character("\xe0\x80\x80", 1, -1, false);
	character("\xed\xa0\x80", 1, -1, false);
	character("\xf4\x90\x80\x80", 1, -1, false);
	character("\xe6\xa0", 1, -1, false);

	struct acc_err bad = {0};
	char text[64];
	acc_fail(&bad, ACC_EFORMAT, "no '\x1b[1m\xe6\xa0\x87\xc2\x9b\xff'");
	acc_err_text(&bad, text, sizeof text);
	ok(strcmp(text, "no '?[1m\xe6\xa0\x87?"
			"?'") == 0,
		"a message is plain: %s", text);

	int64_t i;
	ok(acc_str_int(acc_str("-9223372036854775808"), &i) && i == INT64_MIN, "smallest int");
	ok(!acc_str_int(acc_str("9223372036854775808"), &i), "one too many is refused");
	ok(!acc_str_int(acc_str("12x"), &i) && !acc_str_int(acc_str(""), &i) &&
			!acc_str_int(acc_str("-"), &i) && !acc_str_int(acc_str(" 1"), &i),
		"what is no integer is refused");

	struct acc_map m = {0};
	bool good = true;
	for (int k = 0; k < 10000; k++) {
		char key[16];
		snprintf(key, sizeof key, "k%d", k);
		uint64_t *v = acc_map_put(&m, acc_str(key), (uint64_t)k);
		good = good && v != NULL && *v == (uint64_t)k;
	}
	for (int k = 0; k < 10000; k++) {
		char key[16];
		snprintf(key, sizeof key, "k%d", k);
		uint64_t *v = acc_map_get(&m, acc_str(key));
		good = good && v != NULL && *v == (uint64_t)k;
	}
	ok(good && m.n == 10000, "10,000 keys are found again");
	ok(acc_map_get(&m, acc_str("k10000")) == NULL, "an absent key is absent");
	acc_map_release(&m);

	struct acc_ids ids = {0};
	good = acc_ids_get(&ids, 7) == ACC_NOID;
	for (uint32_t k = 0; k < 10000; k++)
		good &= acc_ids_put(&ids, (uint64_t)k << 40, k, false, NULL) == 0;
	good &= acc_ids_put(&ids, 0, 5, false, NULL) == 0 && acc_ids_get(&ids, 0) == 0;
	good &= acc_ids_put(&ids, 0, 5, true, NULL) == 0 && acc_ids_get(&ids, 0) == 5;
	for (uint32_t k = 1; k < 10000; k++)
		good &= acc_ids_get(&ids, (uint64_t)k << 40) == k;
	ok(good && ids.n == 10000 && acc_ids_get(&ids, 1) == ACC_NOID, "10,000 numbers are found");
	acc_ids_clear(&ids);
	ok(ids.n == 0 && acc_ids_get(&ids, 0) == ACC_NOID && ids.cap > 0, "and forgotten");
	acc_ids_release(&ids);

	static const struct {
		const char *name;
		enum acc_dtype t;
	} spelled[] = {{"torch.float32", ACC_F32}, {"Float32", ACC_F32}, {"FloatStorage", ACC_F32},
		{"torch.cuda.HalfTensor", ACC_F16}, {"BFloat16", ACC_BF16}, {"f8e4m3", ACC_F8E4M3},
		{"torch.float8_e5m2", ACC_F8E5M2}, {"Bool", ACC_BOOL}, {"mindspore.int64", ACC_I64},
		{"LongTensor", ACC_I64}, {"torch.complex64", ACC_C64}, {"quint8", ACC_QU8},
		{"torch.uint7", ACC_U7}, {"torch.bits2x4", ACC_BITS2X4},
		{"torch.bcomplex32", ACC_BC32}, {"float6_e2m3fn", ACC_F6E2M3},
		{"torch.float4_e2m1fn_x2", ACC_F4E2M1X2}, {"<class 'int'>", ACC_NODTYPE},
		{"", ACC_NODTYPE}};
	for (size_t k = 0; k < sizeof spelled / sizeof *spelled; k++)
		ok(acc_dtype_find(acc_str(spelled[k].name)) == spelled[k].t, "dtype '%s'",
			spelled[k].name);

	struct acc_ref r = {.dtype = ACC_F32, .ndim = 2, .shape = {2, 3}, .len = 24};
	ok(acc_ref_check(&r, NULL) == 0, "a tensor that fits its storage");
	for (int t = ACC_NMEASURED; t < ACC_NDTYPE; t++) {
		struct acc_ref named = {.dtype = (enum acc_dtype)t,
			.ndim = 1,
			.shape = {2},
			.len = 64};
		ok(acc_ref_check(&named, NULL) == ACC_EUNSUP &&
				acc_dtype_find(acc_str(acc_dtype_of(named.dtype)->name)) ==
					named.dtype,
			"%s is known by name alone", acc_dtype_of(named.dtype)->name);
	}
	r.len = 23;
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "one byte too few");
	r.len = 24;
	r.first = 1;
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "one element too far");
	r.first = 0;
	r.strided = true;
	r.stride[0] = 1;
	r.stride[1] = 2;
	ok(acc_ref_check(&r, NULL) == 0, "a transposed view fits");
	r.stride[1] = -2;
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "a negative stride before the start");
	r.first = 4;
	ok(acc_ref_check(&r, NULL) == 0, "a flipped view fits");
	r.stride[0] = INT64_MAX;
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "a stride that overflows");
	/* 3 rows of 5 elements in tiles of 2 by 4: two of them, 4 rows each. */
	r = (struct acc_ref){.dtype = ACC_U8,
		.ndim = 2,
		.shape = {3, 5},
		.len = 16,
		.strided = true};
	r.stride[0] = 4;
	r.stride[1] = 1;
	r.block = (struct acc_block){1, 4, 8};
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "blocks beyond the storage");
	r.len = 20;
	ok(acc_ref_check(&r, NULL) == 0, "blocks that fit, with their padding");
	r.first = 1;
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "blocks that begin one element later");
	r.first = 0;
	r.block.stride = -8;
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "blocks before the start");
	r.block.stride = INT64_MAX;
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "blocks that overflow");
	r.block = (struct acc_block){2, 4, 8};
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "blocks of an axis that there is not");
	r.block = (struct acc_block){1, -4, 8};
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "blocks of less than nothing");
	r = (struct acc_ref){.dtype = ACC_U8, .ndim = 3, .shape = {INT64_MAX, 3, 3}, .len = 9};
	ok(acc_ref_check(&r, NULL) == ACC_EFORMAT, "a shape that overflows");
	r.shape[1] = 0;
	ok(acc_ref_check(&r, NULL) == 0, "no elements need no bytes");

	/* https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification: the
	 * largest and smallest numbers of the formats */
	static const struct {
		enum acc_dtype t;
		uint16_t bits;
		double want;
	} code[] = {{ACC_F16, 0x7bff, 65504}, {ACC_F16, 0x0001, 0x1p-24},
		{ACC_F16, 0xfc00, -INFINITY}, {ACC_BF16, 0x7f7f, 0x1.fep127},
		{ACC_F8E4M3, 0x7e, 448}, {ACC_F8E4M3, 0x01, 0x1p-9}, {ACC_F8E5M2, 0x7b, 57344},
		{ACC_F8E5M2, 0x01, 0x1p-16}, {ACC_F8E5M2, 0xfc, -INFINITY},
		{ACC_F8E4M3FNUZ, 0x7f, 240}, {ACC_F8E5M2FNUZ, 0x7f, 57344}, {ACC_F8E8M0, 0x7f, 1},
		{ACC_HIF8, 0x08, 1}, {ACC_HIF8, 0x6f, INFINITY}, {ACC_HIF8, 0x6e, 32768},
		{ACC_HIF8, 0x07, 0x1p-16}, {ACC_HIF8, 0x01, 0x1p-22}};
	for (size_t k = 0; k < sizeof code / sizeof *code; k++) {
		uint8_t byte = (uint8_t)code[k].bits;
		const void *p = acc_dtype_of(code[k].t)->size == 1 ? (const void *)&byte
								   : (const void *)&code[k].bits;
		double got = acc_load_f64(code[k].t, p);
		ok(got == code[k].want, "%s %#x is %g, got %g", acc_dtype_of(code[k].t)->name,
			code[k].bits, code[k].want, got);
	}
	static const int none[] = {ACC_NODTYPE, -2, ACC_NDTYPE, ACC_NDTYPE + 1, 1000000, INT_MIN,
		INT_MAX};
	for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
		const struct acc_dtype_info *d = acc_dtype_of((enum acc_dtype)none[k]);
		ok(strcmp(d->name, "?") == 0 && d->cls == '\0' && d->eps == 0,
			"%d is no index of a table", none[k]);
	}
	ok(acc_unit(ACC_F32) == 0x1p-24 && acc_unit(ACC_F16) == 0x1p-12 &&
			acc_unit(ACC_BF16) == 0x1p-9 && acc_unit(ACC_C64) == 0x1p-24 &&
			acc_unit(ACC_I32) == 0 && acc_unit(ACC_NODTYPE) == 0,
		"units");
	bool low = acc_unit_low(acc_unit(ACC_F16)) && acc_unit_low(acc_unit(ACC_BF16)) &&
		   acc_unit_low(acc_unit(ACC_HIF8)) && acc_unit_low(acc_unit(ACC_F8E8M0));
	ok(low && !acc_unit_low(acc_unit(ACC_F32)) && !acc_unit_low(acc_unit(ACC_F64)) &&
			!acc_unit_low(acc_unit(ACC_I8)),
		"which of them are of 16 bits or fewer");
	return done();
}
