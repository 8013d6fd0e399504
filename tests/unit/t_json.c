/* The JSON reader: tokens, Python's dialect, correct rounding, what is refused and where. */
#include "acc/json.h"
#include "tap.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct acc_json *
reader(const void *p, size_t n, bool lines)
{
	int fd = memfd_create("t_json", MFD_CLOEXEC);
	if (acc_file_write(fd, p, n, NULL) < 0)
		return NULL;
	lseek(fd, 0, SEEK_SET);
	return acc_json_open(acc_bytes_open(fd, "memory", true, NULL), lines, NULL);
}

/* For a test's name: without line ends. */
static const char *
flat(const char *text)
{
	static char out[64];
	size_t n = 0;
	for (; text[n] != '\0' && n < sizeof out - 1; n++)
		out[n] = (unsigned char)text[n] < 0x20 ? '?' : text[n];
	out[n] = '\0';
	return out;
}

/* One line for all tokens: {"k":[7]} is {0 k1'k' [1 i2=7 ]1 }0; digits behind a sign: depth. */
static int
shown(struct acc_json *j, char *out, size_t size, struct acc_err *e)
{
	static const char *const sign[] = {"{", "}", "[", "]", "k", "s", "i", "f", "t", "F", "n"};
	struct acc_json_tok t;
	size_t n = 0;
	int rc;
	out[0] = '\0';
	while ((rc = acc_json_next(j, &t, e)) > 0 && n < size - 64) {
		n += (size_t)snprintf(out + n, size - n, "%s%s%u", n > 0 ? " " : "", sign[t.type],
			t.depth);
		if (t.type == ACC_JSON_KEY || t.type == ACC_JSON_STRING)
			n += (size_t)snprintf(out + n, size - n, "'%.*s'", ACC_PRS(t.s));
		if (t.type == ACC_JSON_INT)
			n += (size_t)snprintf(out + n, size - n, "=%lld", (long long)t.i);
		if (t.type == ACC_JSON_FLOAT)
			n += (size_t)snprintf(out + n, size - n, "=%g", t.f);
	}
	return rc;
}

static void
tokens(const char *text, const char *want)
{
	struct acc_err e = {0};
	char got[512];
	struct acc_json *j = reader(text, strlen(text), false);
	int rc = shown(j, got, sizeof got, &e);
	ok(rc == 0 && strcmp(got, want) == 0, "tokens of %s: %s", flat(text), e.msg);
	acc_json_close(j);
}

static void
lines(const char *text, const char *want)
{
	struct acc_err e = {0};
	char got[512];
	struct acc_json *j = reader(text, strlen(text), true);
	int rc = shown(j, got, sizeof got, &e);
	ok(rc == 0 && strcmp(got, want) == 0, "lines of %s: %s", flat(text), e.msg);
	acc_json_close(j);
}

static void
refused_n(const char *text, size_t n, int code, uint64_t pos, const char *what)
{
	struct acc_err e = {0}, again = {0};
	char got[512];
	struct acc_json *j = reader(text, n, false);
	int rc = shown(j, got, sizeof got, &e);
	struct acc_json_tok t;
	ok(rc == code && e.code == code && e.has_pos && e.pos == pos &&
			strcmp(e.where, "memory") == 0 && strstr(e.msg, what) != NULL &&
			acc_json_next(j, &t, &again) == code && strcmp(again.msg, e.msg) == 0,
		"%s: %d at %d: %s", flat(text), rc, (int)e.pos, e.msg);
	acc_json_close(j);
}

static void
refused(const char *text, int code, uint64_t pos, const char *what)
{
	refused_n(text, strlen(text), code, pos, what);
}

static void
good(void)
{
	tokens("{}", "{0 }0");
	tokens(" [ ] \n", "[0 ]0");
	tokens("\xef\xbb\xbf[1]", "[0 i1=1 ]0");
	tokens("\"\"", "s0''");
	tokens("12", "i0=12");
	tokens("{\"a\": [1, {\"b\": null}], \"a\":\ttrue, \"\": false}",
		"{0 k1'a' [1 i2=1 {2 k3'b' n3 }2 ]1 k1'a' t1 k1'' F1 }0");
	tokens("[NaN, Infinity,-Infinity]", "[0 f1=nan f1=inf f1=-inf ]0");
	tokens("[-0, -0.0, 1e5, 9223372036854775807, -9223372036854775808]",
		"[0 i1=0 f1=-0 f1=100000 i1=9223372036854775807 i1=-9223372036854775808 ]0");
	tokens("[9223372036854775808, -9223372036854775809, 1e999]",
		"[0 f1=9.22337e+18 f1=-9.22337e+18 f1=inf ]0");
	tokens("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\"",
		"s0'\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac'");
	tokens("\"\\ud83d\\ude00x\"", "s0'\xf0\x9f\x98\x80x'");
	/* Half a pair, in every position. */
	tokens("\"\\ud83d\"", "s0'\xef\xbf\xbd'");
	tokens("\"\\ude00\\ud83d\"", "s0'\xef\xbf\xbd\xef\xbf\xbd'");
	tokens("\"\\ud83dx\\ude00\"", "s0'\xef\xbf\xbdx\xef\xbf\xbd'");
	tokens("\"\\ud83d\\ud83d\\ude00\"", "s0'\xef\xbf\xbd\xf0\x9f\x98\x80'");
	tokens("\"\\ud83d\\n\"", "s0'\xef\xbf\xbd\n'");
	tokens("\"\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
		"s0'\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'");
	lines("", "");
	lines("{\"a\":1}\n{\"a\":2}\n", "{0 k1'a' i1=1 }0 {0 k1'a' i1=2 }0");
	lines("1\n[2]\n\n3", "i0=1 [0 i1=2 ]0 i0=3");
}

static void
malformed(void)
{
	refused("", ACC_ETRUNC, 0, "ends before");
	refused(" \n", ACC_ETRUNC, 2, "ends before");
	refused("{} x", ACC_EFORMAT, 3, "expected nothing after the value, found 'x'");
	refused("[1,]", ACC_EFORMAT, 3, "expected a value, found ']'");
	refused("[,1]", ACC_EFORMAT, 1, "expected a value");
	refused("[1 2]", ACC_EFORMAT, 3, "expected ',' or ']'");
	refused("[1}", ACC_EFORMAT, 2, "expected ',' or ']', found '}'");
	refused("{\"a\":1]", ACC_EFORMAT, 6, "expected ',' or '}'");
	refused("{\"a\":1,}", ACC_EFORMAT, 7, "a key in double quotes");
	refused("{a:1}", ACC_EFORMAT, 1, "a key in double quotes");
	refused("{'a':1}", ACC_EFORMAT, 1, "a key in double quotes");
	refused("{\"a\" 1}", ACC_EFORMAT, 5, "':' after a key");
	refused("{\"a\",1}", ACC_EFORMAT, 4, "':' after a key");
	refused("]", ACC_EFORMAT, 0, "expected a value");
	refused("[1] // no", ACC_EFORMAT, 4, "nothing after");
	refused("[/**/1]", ACC_EFORMAT, 1, "expected a value");
	refused("[nan]", ACC_EFORMAT, 1, "expected a value");
	refused("[True]", ACC_EFORMAT, 1, "expected a value");
	refused("[nulL]", ACC_EFORMAT, 1, "expected a value");
	refused("[nullx]", ACC_EFORMAT, 5, "expected ',' or ']'");
	refused("[-Infinite]", ACC_EFORMAT, 1, "expected a value");
	refused("[+1]", ACC_EFORMAT, 1, "expected a value");
	refused("[.5]", ACC_EFORMAT, 1, "expected a value");
	refused("[5.]", ACC_EFORMAT, 1, "its point");
	refused("[5.e1]", ACC_EFORMAT, 1, "its point");
	refused("[01]", ACC_EFORMAT, 1, "leading zero");
	refused("[-]", ACC_EFORMAT, 1, "without digits");
	refused("[1e]", ACC_EFORMAT, 1, "exponent");
	refused("[1e+]", ACC_EFORMAT, 1, "exponent");
	refused("[0x10]", ACC_EFORMAT, 2, "expected ',' or ']'");
	refused("[\"\\x\"]", ACC_EFORMAT, 2, "escape");
	refused("[\"ab\\u00g0\"]", ACC_EFORMAT, 4, "escape");
	refused("[\"\\u12\"]", ACC_EFORMAT, 2, "escape");
	refused("[\"\\ud83d\\u12\"]", ACC_EFORMAT, 8, "escape");
	refused("[\"a\nb\"]", ACC_EFORMAT, 3, "control character 0x0a");
	refused("[\"a\x1f\"]", ACC_EFORMAT, 3, "control character 0x1f");
	refused_n("[\"a\0b\"]", 7, ACC_EFORMAT, 3, "control character 0x00");
	refused_n("[\"\\\0\"]", 6, ACC_EFORMAT, 2, "escape");
	refused_n("[\0]", 3, ACC_EFORMAT, 1, "found 0x00");
	refused("[\"a\x80\"]", ACC_EFORMAT, 3, "UTF-8");
	refused("[\"\xc0\x80\"]", ACC_EFORMAT, 2, "UTF-8");
	refused("[\"\xe0\x9f\xbf\"]", ACC_EFORMAT, 2, "UTF-8");
	refused("[\"\xed\xa0\x80\"]", ACC_EFORMAT, 2, "UTF-8");
	refused("[\"\xf4\x90\x80\x80\"]", ACC_EFORMAT, 2, "UTF-8");
	refused("[\"\xf0\x9f\x98\"]", ACC_EFORMAT, 2, "UTF-8");
	refused("[1, \"abc", ACC_ETRUNC, 8, "inside a string");
	refused("[1, \"abc\\", ACC_ETRUNC, 9, "inside a string");
	refused("[1, ", ACC_ETRUNC, 4, "inside an array");
	refused("[{\"a\": 1", ACC_ETRUNC, 8, "inside an object");
	refused("[tru", ACC_ETRUNC, 4, "inside a word");
	refused("[-Inf", ACC_ETRUNC, 5, "inside a word");
	refused("-", ACC_ETRUNC, 1, "inside a number");
	refused("[1.", ACC_ETRUNC, 3, "inside a number");
}

/* 512 deep is fine, 513 is not; so with 4096 digits and 16 MiB. */
static void
limits(void)
{
	char deep[2 * 513];
	struct acc_json_tok t;
	for (size_t n = 512; n <= 513; n++) {
		memset(deep, '[', n);
		memset(deep + n, ']', n);
		struct acc_err e = {0};
		struct acc_json *j = reader(deep, 2 * n, false);
		int rc;
		while ((rc = acc_json_next(j, &t, &e)) > 0)
			;
		ok(n == 512 ? rc == 0 : rc == ACC_ELIMIT && e.pos == 512, "%zu deep: %s", n, e.msg);
		acc_json_close(j);
	}
	char digits[4099] = "";
	for (size_t n = 4096; n <= 4097; n++) {
		memset(digits, '1', n);
		struct acc_err e = {0};
		struct acc_json *j = reader(digits, n, false);
		int rc = acc_json_next(j, &t, &e);
		ok(n == 4096 ? rc == 1 && isinf(t.f) : rc == ACC_ELIMIT, "%zu digits: %s", n,
			e.msg);
		acc_json_close(j);
	}
	const size_t most = 16 << 20;
	char *big = malloc(most + 3);
	for (size_t n = most - 1; n <= most; n++) {
		memset(big, 'x', most + 3);
		big[0] = big[n + 1] = '"';
		struct acc_err e = {0};
		struct acc_json *j = reader(big, n + 2, false);
		int rc = acc_json_next(j, &t, &e);
		ok(n < most ? rc == 1 && t.s.n == n && t.s.p[n - 1] == 'x' : rc == ACC_ELIMIT,
			"a string of %zu: %s", n, e.msg);
		acc_json_close(j);
	}
	free(big);
}

/* Tokens that lie across the ends of the buffer, at every offset; and every prefix of a text
 * ends too early. */
static void
borders(void)
{
	static const char text[] =
		"{\"k\\u00e9y\": [-12.5e-3, -Infinity, \"\\ud83d\\ude00z\", "
		"\"quite a long string \xe2\x82\xac\", false, 123456789], \"e\": {}}";
	static const char want[] = "{0 k1'k\xc3\xa9y' [1 f2=-0.0125 f2=-inf s2'\xf0\x9f\x98\x80z' "
				   "s2'quite a long string \xe2\x82\xac' F2 i2=123456789 ]1 "
				   "k1'e' {1 }1 }0";
	const size_t n = sizeof text - 1, around = 128 << 10;
	size_t bad = 0;
	char *p = malloc(around + n + 1), got[512];
	for (size_t shift = around - n - 2; shift < around + 2 && bad == 0; shift++) {
		memset(p, ' ', shift);
		memcpy(p + shift, text, shift + n <= around + n ? n : around + n - shift);
		struct acc_err e = {0};
		struct acc_json *j = reader(p, shift + n <= around + n ? shift + n : around + n,
			false);
		if (shift <= around &&
			(shown(j, got, sizeof got, &e) != 0 || strcmp(got, want) != 0))
			bad++;
		acc_json_close(j);
	}
	ok(bad == 0, "a text across the end of the buffer: %s", got);
	free(p);
	bad = 0;
	for (size_t i = 0; i < n; i++) {
		struct acc_err e = {0};
		struct acc_json *j = reader(text, i, false);
		bad += shown(j, got, sizeof got, &e) != ACC_ETRUNC || e.pos != i;
		acc_json_close(j);
	}
	ok(bad == 0, "%zu prefixes are not truncated", bad);
}

/* Python's float() of each literal, as its bits. */
static void
rounding(void)
{
	FILE *f = fopen("tests/data/io/numbers.tsv", "r");
	char literal[256];
	unsigned long long want;
	int n = 0, bad = 0;
	while (f != NULL && fscanf(f, "%255s %llx", literal, &want) == 2) {
		uint64_t got = 0;
		struct acc_json_tok t = {0};
		struct acc_json *j = reader(literal, strlen(literal), false);
		int rc = acc_json_next(j, &t, NULL);
		memcpy(&got, &t.f, sizeof got);
		/* The integer 0 has no sign. */
		if (t.type == ACC_JSON_INT && t.i == 0)
			want = 0;
		if (rc != 1 || got != want || !acc_str_is(t.s, literal)) {
			printf("# %s is %016llx, got %016llx\n", literal, want,
				(unsigned long long)got);
			bad++;
		}
		acc_json_close(j);
		n++;
	}
	ok(n > 150 && bad == 0, "%d of %d numbers are rounded wrong", bad, n);
	if (f != NULL)
		fclose(f);
}

static void
skipping(void)
{
	static const char text[] =
		"{\"a\": {\"x\": [1, {\"y\": 2}]}, \"b\": 7, \"c\": [1, [2, 3], 4]}";
	struct acc_json_tok t = {0};
	struct acc_json *j = reader(text, strlen(text), false);
	acc_json_next(j, &t, NULL);
	acc_json_next(j, &t, NULL);
	ok(acc_json_skip(j, NULL) == 0 && acc_json_next(j, &t, NULL) == 1 && acc_str_is(t.s, "b"),
		"after a key: its object is skipped");
	ok(acc_json_skip(j, NULL) == 0 && acc_json_next(j, &t, NULL) == 1 && acc_str_is(t.s, "c"),
		"after a key: its number is skipped");
	acc_json_next(j, &t, NULL);
	acc_json_next(j, &t, NULL);
	acc_json_next(j, &t, NULL);
	ok(t.type == ACC_JSON_ARRAY && t.depth == 2 && t.pos == 45, "inside an array");
	ok(acc_json_skip(j, NULL) == 0 && acc_json_next(j, &t, NULL) == 1 && t.i == 4,
		"after [: the rest is skipped");
	acc_json_close(j);
	j = reader(text, strlen(text), false);
	acc_json_next(j, &t, NULL);
	ok(acc_json_skip(j, NULL) == 0 && acc_json_next(j, &t, NULL) == 0, "all is skipped");
	acc_json_close(j);
	j = reader(text, strlen(text) - 1, false);
	acc_json_next(j, &t, NULL);
	ok(acc_json_skip(j, NULL) == ACC_ETRUNC, "skipping sees the end");
	acc_json_close(j);
}

int
main(void)
{
	good();
	malformed();
	limits();
	borders();
	rounding();
	skipping();
	ok(acc_json_open(NULL, false, NULL) == NULL, "no bytes, no reader");
	acc_json_close(NULL);
	return done();
}
