/* Numbers as programs print them, lines, and the words in them. Values: Python's float() and
 * decimal. */
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/lines.h"
#include "io/literal.h"
#include "tap.h"

static void
literals(void)
{
	static const struct {
		const char *text;
		double v, res;
		uint32_t n;
		bool integer;
	} is[] = {
		{"1.244238E+01", 12.44238, 5e-6, 12, false},
		{"5.4962", 5.4962, 5e-5, 6, false},
		{"8388608.0", 8388608, 0.05, 9, false},
		{"1000", 1000, 0, 4, true},
		{"-12 ", -12, 0, 3, true},
		{"+3.5x", 3.5, 0.05, 4, false},
		{"0.", 0, 0.5, 2, false},
		{".25", 0.25, 0.005, 3, false},
		{"1752ms", 1752, 0, 4, true},
		{"1e-05", 1e-05, 5e-6, 5, false},
		{"1e", 1, 0, 1, true},
		{"1e+", 1, 0, 1, true},
		{"2e5", 2e5, 5e4, 3, false},
		{"007", 7, 0, 3, true},
		{"0.1.2", 0.1, 0.05, 3, false},
		{"1e999", INFINITY, 0, 5, false},
		{"0.0e999", 0, 0, 7, false},
		{"INF", INFINITY, 0, 3, false},
		{"-inf", -INFINITY, 0, 4, false},
		{"Infinity,", INFINITY, 0, 8, false},
		{"-0.0", -0.0, 0.05, 4, false},
		{"123456789012345678901234567890", 123456789012345678901234567890.0, 0, 30, false},
		{"-9223372036854775808", -9223372036854775808.0, 0, 20, false},
	};
	static const char *const no[] = {"", "-", "x1", ".", "e5", "infinite", "nano", "+-1",
		"- 1"};
	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		struct acc_literal l;
		uint32_t n = 99;
		bool got = acc_literal(acc_str(is[i].text), &l, &n);
		ok(got && l.v == is[i].v && signbit(l.v) == signbit(is[i].v) &&
				l.res == is[i].res && n == is[i].n && l.integer == is[i].integer &&
				(!l.integer || (double)l.i == l.v),
			"%s: %.17g %g %u", is[i].text, l.v, l.res, n);
	}
	for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
		struct acc_literal l;
		uint32_t n;
		ok(!acc_literal(acc_str(no[i]), &l, &n), "no number: '%s'", no[i]);
	}
	struct acc_literal l;
	ok(acc_literal_all(acc_str(" \t nan\r"), &l) && isnan(l.v) && l.res == 0, "blanks around");
	ok(!acc_literal_all(acc_str("1 2"), &l) && !acc_literal_all(acc_str("1s"), &l), "not all");
	char text[501];
	memset(text, '9', 500);
	text[500] = '\0';
	ok(!acc_literal_all(acc_str(text), &l), "500 digits are none");
	text[400] = '\0';
	ok(acc_literal_all(acc_str(text), &l) && isinf(l.v), "400 are");
	/* Not a byte behind the string is part of the number. */
	ok(acc_literal((struct acc_str){"12.75e3", 4}, &l, &(uint32_t){0}) && l.v == 12.7,
		"a part of a string");
}

static struct acc_bytes *
bytes(const void *p, size_t n)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return acc_bytes_open(fd, "input", false, NULL);
}

static void
lines(void)
{
	static const char text[] = "one\n\ntwo\r\n\nlast";
	static const char *const want[] = {"one", "", "two\r", "", "last"};
	struct acc_bytes *b = bytes(text, sizeof text - 1);
	struct acc_lines l = {.b = b};
	struct acc_str s;
	int n = 0, rc;
	bool good = true;
	while ((rc = acc_lines_next(&l, &s, NULL)) > 0) {
		good = good && n < 5 && acc_str_is(s, want[n]) && l.no == (uint64_t)n + 1;
		n++;
	}
	ok(rc == 0 && n == 5 && good, "lines");
	acc_bytes_close(b);
	/* One line longer than the limit, one that ends in the same chunk, one more. */
	size_t size = ACC_LINE_LIMIT + 300000;
	char *big = malloc(size);
	memset(big, 'x', size);
	big[size - 5] = big[0] = '\n';
	b = bytes(big, size);
	l = (struct acc_lines){.b = b};
	ok(acc_lines_next(&l, &s, NULL) == 1 && s.n == 0 && !l.too_long, "an empty line");
	ok(acc_lines_next(&l, &s, NULL) == 1 && s.n == ACC_LINE_LIMIT && l.too_long,
		"a line that is cut off");
	ok(acc_lines_next(&l, &s, NULL) == 1 && acc_str_is(s, "xxxx") && l.no == 3,
		"the line behind it");
	ok(acc_lines_next(&l, &s, NULL) == 0, "the end");
	acc_bytes_close(b);
	free(big);
}

static void
sieve(void)
{
	struct acc_sieve s = {0};
	static const char *const words[] = {"iteration", "step", "norm", "(ms)"};
	uint32_t bit[4];
	for (int i = 0; i < 4; i++)
		bit[i] = acc_sieve_add(&s, words[i]);
	ok(acc_sieve_add(&s, "iterate") == bit[0], "the same four bytes are one word");
	ok(bit[0] == 1 && bit[1] == 2 && bit[2] == 4 && bit[3] == 8, "bits");
	/* Each word at each place of a line, alone and doubled. */
	bool good = true;
	for (int w = 0; w < 4; w++)
		for (int at = 0; at < 40; at++) {
			char text[64];
			memset(text, at & 1 ? 's' : 'i', sizeof text);
			memcpy(text + at, words[w], 4);
			good = good && acc_sieve_find(&s, (struct acc_str){text, 48}) == bit[w];
			memcpy(text + 44, words[3 - w], 4);
			good = good && acc_sieve_find(&s, (struct acc_str){text, 48}) ==
					       (bit[w] | bit[3 - w]);
			good = good && acc_sieve_find(&s, (struct acc_str){text, 47}) == bit[w];
		}
	ok(good, "words are found wherever they stand");
	ok(acc_sieve_find(&s, acc_str("ste")) == 0 && acc_sieve_find(&s, acc_str("")) == 0 &&
			acc_sieve_find(&s, acc_str("sstteepp nor m ite ration")) == 0,
		"no words");
}

int
main(void)
{
	literals();
	lines();
	sieve();
	return done();
}
