/* CSV, against what Python's csv module reads (strict). */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/csv.h"
#include "tap.h"

static struct acc_csv *
open_text(const char *p, size_t n, struct acc_err *e)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return acc_csv_open(acc_bytes_open(fd, "input", false, e), e);
}

/* Records as text: fields between |, records between /. */
static int
flat(const char *text, size_t n, char *out, size_t size, struct acc_err *e)
{
	struct acc_csv *c = open_text(text, n, e);
	const struct acc_str *f;
	size_t nf, o = 0;
	int rc;
	while ((rc = acc_csv_next(c, &f, &nf, e)) > 0)
		for (size_t i = 0; i < nf; i++)
			o += (size_t)snprintf(out + o, size - o, "%s%.*s",
				i > 0   ? "|"
				: o > 0 ? "/"
					: "",
				ACC_PRS(f[i]));
	out[o] = '\0';
	acc_csv_close(c);
	return rc;
}

static void
reads(const char *text, const char *want)
{
	char got[256];
	struct acc_err e = {0};
	int rc = flat(text, strlen(text), got, sizeof got, &e);
	ok(rc == 0 && strcmp(got, want) == 0, "reads %s", want);
}

static void
refuses(const char *text, int code, const char *msg)
{
	char got[256];
	struct acc_err e = {0};
	int rc = flat(text, strlen(text), got, sizeof got, &e);
	ok(rc == code && e.code == code && strstr(e.msg, msg) != NULL, "%s", e.msg);
}

static void
limits(void)
{
	struct acc_err e = {0};
	size_t n = 70000;
	char *commas = malloc(n);
	const struct acc_str *f;
	size_t nf;
	memset(commas, ',', n);
	struct acc_csv *c = open_text(commas, n, &e);
	ok(acc_csv_next(c, &f, &nf, &e) == ACC_ELIMIT, "too many fields: %s", e.msg);
	acc_csv_close(c);
	free(commas);
	n = (16 << 20) + 300000;
	char *big = malloc(n);
	memset(big, 'x', n);
	e = (struct acc_err){0};
	c = open_text(big, n, &e);
	ok(acc_csv_next(c, &f, &nf, &e) == ACC_ELIMIT, "too long a record: %s", e.msg);
	acc_csv_close(c);
	free(big);
}

int
main(void)
{
	struct acc_err e = {0};
	const struct acc_str *f;
	size_t n;
	reads("a,b\n1,2\n", "a|b/1|2");
	reads("a,b\r\n1,2\r\n", "a|b/1|2");
	reads("a,b\r1,2\r", "a|b/1|2");
	reads("a,b\n1,2", "a|b/1|2");
	reads("\xef\xbb\xbf"
	      "a,b",
		"a|b");
	reads("\"a\",\"b,c\",\"d\"\"e\"\n\"x\ny\",,\n", "a|b,c|d\"e/x\ny||");
	reads("\"\",\"\"\"\"\n", "|\"");
	reads("a\"b,c\"\n", "a\"b|c\"");
	reads("\n\n1\n\r\n\n2\n", "1/2");
	reads("", "");
	reads("\n", "");
	reads("ab", "ab");
	reads("\"a\"", "a");
	refuses("a,\"b\n1,2\n", ACC_ETRUNC, "line 3: the input ends inside quotes");
	refuses("1\n\"a\"b\n", ACC_EFORMAT, "line 2: text behind a closing quote");
	struct acc_csv *c = open_text("a\n\"x\ny\"\n\nb\n", 11, &e);
	uint64_t line[3] = {0};
	for (int i = 0; i < 3 && acc_csv_next(c, &f, &n, &e) > 0; i++)
		line[i] = acc_csv_line(c);
	acc_csv_close(c);
	ok(line[0] == 1 && line[1] == 2 && line[2] == 5, "lines: %d %d %d", (int)line[0],
		(int)line[1], (int)line[2]);
	limits();
	return done();
}
