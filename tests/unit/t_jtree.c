/* A value in one go is the one that the reader of tokens gives, or is left to it: of texts as recorders write
 * them, of each that is out of the ordinary, and of thousands that are changed by chance. */
#include "dump/jtree.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct acc_json *
reader(const char *p, size_t n)
{
	int fd = memfd_create("t_jtree", MFD_CLOEXEC);
	if (acc_file_write(fd, p, n, NULL) < 0)
		return NULL;
	lseek(fd, 0, SEEK_SET);
	return acc_json_open(acc_bytes_open(fd, "memory", false, NULL), false, NULL);
}

/* Each member of an object: its key, its value as text, one a line; then how it ended, and where. *plain: how
 * many were read in one go, if that may be. */
static void
told(const char *p, size_t n, bool in_one_go, struct acc_buf *out, unsigned *plain)
{
	struct acc_json *j = reader(p, n);
	struct acc_json_tok t;
	struct acc_err e = {0};
	struct acc_arena m = {0};
	char end[400];
	int rc = acc_json_next(j, &t, &e);
	out->n = 0;
	while (rc > 0 && (rc = acc_json_next(j, &t, &e)) > 0 && t.type == ACC_JSON_KEY) {
		acc_arena_reset(&m);
		acc_buf_add(out, t.s.p, t.s.n);
		struct jnode *v = in_one_go ? acc_jtree_plain(j, &m) : NULL;
		*plain += v != NULL;
		rc = v != NULL ? 1 : acc_json_next(j, &t, &e);
		if (v == NULL && rc > 0)
			rc = acc_jtree_read(j, &t, &m, &v, &e) < 0 ? -1 : 1;
		if (rc <= 0)
			break;
		struct acc_str s = acc_jtree_dump(v, &m);
		acc_buf_add(out, " = ", 3);
		acc_buf_add(out, s.p, s.n);
		acc_buf_add(out, "\n", 1);
	}
	if (rc > 0)
		rc = acc_json_next(j, &t, &e);
	int k = snprintf(end, sizeof end, "%s %lld %s\n", rc < 0 ? "failed" : "ended",
		(long long)e.pos, e.msg);
	acc_buf_add(out, end, (size_t)k);
	acc_buf_add(out, "", 1);
	acc_arena_release(&m);
	acc_json_close(j);
}

static bool
alike(const char *p, size_t n, unsigned *plain)
{
	struct acc_buf a = {0}, b = {0};
	unsigned none = 0;
	told(p, n, true, &a, plain);
	told(p, n, false, &b, &none);
	bool same = a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
	if (!same)
		printf("# %s# %s", (char *)a.p, (char *)b.p);
	acc_buf_release(&a);
	acc_buf_release(&b);
	return same;
}

static void
one(const char *text, unsigned want)
{
	unsigned plain = 0;
	bool same = alike(text, strlen(text), &plain);
	ok(same && plain == want, "%u in one go: %.28s", plain, text);
}

static const char usual[] =
	"{\"Functional.linear.0.forward\": {\n  \"input_args\": [\n   {\n    \"type\": \"torch.Tensor\",\n"
	"    \"shape\": [\n     4096,\n     1\n    ],\n    \"Max\": 4.7550191879272461,\n    \"Min\": -Infinity,\n"
	"    \"Mean\": NaN,\n    \"Norm\": 5.9e-05,\n    \"requires_grad\": true\n   },\n   null, false, -0, -12,"
	" Infinity\n  ],\n  \"input_kwargs\": {}, \"x\": []\n },\n \"b\" : [ 1 , 2.5 ] ,\"c\":{\"k\":\"v\"}, \"d\": 7}\n";

/* Many members, so that the buffer ends inside some. */
static void
many(void)
{
	struct acc_buf b = {0};
	unsigned plain = 0;
	acc_buf_add(&b, "{", 1);
	for (int i = 0; i < 5000; i++) {
		char member[200];
		int n = snprintf(member, sizeof member,
			"%s\"k%d\": {\"type\": \"t\", \"v\": [%d, %.17g]}", i > 0 ? ",\n" : "", i,
			i, i / 7.0);
		acc_buf_add(&b, member, (size_t)n);
	}
	acc_buf_add(&b, "}", 1);
	ok(b.n > 3 << 16 && alike((char *)b.p, b.n, &plain), "5,000 members");
	ok(plain > 4900 && plain <= 5000, "%u of them in one go", plain);
	acc_buf_release(&b);
}

/* One or two bytes are others, or the text ends early. */
static void
changed(void)
{
	static const char by[] = "{}[]\",:\\ \n\t0123456789+-.eENaIinftrul\x01\x7f\x80\xc3\xff";
	char text[sizeof usual];
	unsigned wrong = 0, plain = 0;
	uint32_t r = 1;
	for (int i = 0; i < 20000; i++) {
		size_t n = sizeof usual - 1;
		memcpy(text, usual, sizeof usual);
		for (int k = 0; k < 1 + i % 2; k++) {
			r = r * 1664525 + 1013904223;
			const char c = by[(r >> 8) % sizeof by];
			r = r * 1664525 + 1013904223;
			text[(r >> 8) % n] = c;
		}
		if (i % 16 == 0)
			n = (r >> 4) % n;
		wrong += !alike(text, n, &plain);
	}
	ok(wrong == 0, "20,000 that are changed: %u are not alike", wrong);
	ok(plain > 10000, "%u of their members in one go", plain);
}

/* Decimals of 2 to 24 digits and a point, as strtod has them, to the last bit. */
static void
numbers(void)
{
	enum { ROUNDS = 2000, EACH = 100 };
	char text[EACH * 32];
	double want[EACH];
	unsigned wrong = 0, read = 0;
	uint64_t r = 58;
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = (size_t)snprintf(text, sizeof text, "{\"k\": [");
		for (int k = 0; k < EACH; k++) {
			r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			const unsigned ndigits = 2 + (unsigned)(r >> 60) + (unsigned)(r >> 57 & 7),
				       whole = 1 + (unsigned)(r >> 32) % (ndigits - 1);
			const size_t first = n;
			if (r >> 40 & 1)
				text[n++] = '-';
			uint64_t d = r * UINT64_C(0x9e3779b97f4a7c15);
			for (unsigned at = 0; at < ndigits; at++, d = d * 7 + (d >> 33)) {
				if (at == whole)
					text[n++] = '.';
				/* A zero stands alone before the point. */
				text[n++] = (char)(at == 0 && whole > 1 ? '1' + (d >> 20) % 9
									: '0' + (d >> 20) % 10);
			}
			text[n] = '\0';
			want[k] = strtod(text + first, NULL);
			n += (size_t)snprintf(text + n, sizeof text - n,
				k + 1 < EACH ? ", " : "]}");
		}
		struct acc_json *j = reader(text, n);
		struct acc_json_tok t;
		struct acc_arena m = {0};
		acc_json_next(j, &t, NULL);
		acc_json_next(j, &t, NULL);
		const struct jnode *v = acc_jtree_plain(j, &m);
		const struct jnode *c = v == NULL ? NULL : v->child;
		for (int k = 0; k < EACH && c != NULL; k++, c = c->next, read++)
			wrong += c->type != ACC_JSON_FLOAT || memcmp(&c->f, &want[k], 8) != 0;
		acc_arena_release(&m);
		acc_json_close(j);
	}
	ok(wrong == 0 && read == ROUNDS * EACH, "of %u numbers %u are not strtod's", read, wrong);
}

int
main(void)
{
	numbers();
	one(usual, 3);
	one("{\"a\": {\"s\": \"an \\\"escape\\\"\"}, \"b\": [1]}", 1);
	one("{\"a\": [\"\xc3\xa9\"]}", 0);
	one("{\"a\": [9223372036854775807, 18446744073709551616, -9223372036854775808]}", 0);
	one("{\"a\": [999999999999999999, 1e400, 0.1e-400, 12345678901234567890.5]}", 1);
	one("{\"a\": [01]}", 0);
	one("{\"a\": [1,]}", 0);
	one("{\"a\": [-]}", 0);
	one("{\"a\": {\"k\" 1}}", 0);
	one("{\"a\": {\"k\": 1, \"k\": 2}}", 1);
	one("{\"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
		0);
	one("{\"a\" [1]}", 0);
	one("{\"a\": [1]", 1);
	one("{\"a\": [1", 0);
	one("{\"a\": \"text\", \"b\": 1}", 0);
	many();
	changed();
	return done();
}
