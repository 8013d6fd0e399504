/* Databases as Python's sqlite3 writes them (tests/data/make_sqlite.py), and some that nobody should trust. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/sqlite.h"
#include "tap.h"

static int
open_file(const char *name)
{
	char path[100];
	snprintf(path, sizeof path, "tests/data/io/%s.db", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static size_t
value(struct acc_val v, char *out, size_t size)
{
	int n = v.type == ACC_V_NIL   ? snprintf(out, size, "-")
		: v.type == ACC_V_INT ? snprintf(out, size, "%lld", (long long)v.i)
		: v.type == ACC_V_F64 ? snprintf(out, size, "%g", v.f)
		: v.n == 0 && v.s.n < 9 && v.type == ACC_V_TEXT
			? snprintf(out, size, "'%.*s'", ACC_PRS(v.s))
			: snprintf(out, size, "[%u]", v.s.n);
	return (size_t)n;
}

/* The rows of t, as text; the last code. */
static int
rows(const char *name, char *out, size_t size, uint32_t *n, struct acc_err *e)
{
	int fd = open_file(name), rc;
	struct acc_sqlite *s = acc_sqlite_open(fd, e);
	struct acc_query *r = s == NULL ? NULL : acc_sqlite_query(s, "SELECT i, r, s, b FROM t", e);
	size_t o = 0;
	*n = 0;
	rc = r == NULL ? e->code : 0;
	while (r != NULL && (rc = acc_query_next(r, e)) > 0) {
		for (int i = 0; i < 4 && o + 100 < size; i++) {
			o += value(acc_query_value(r, i), out + o, size - o);
			out[o++] = i < 3 ? ' ' : '/';
		}
		++*n;
	}
	out[o] = '\0';
	acc_query_close(r);
	acc_sqlite_close(s);
	close(fd);
	return rc;
}

int
main(void)
{
	char got[1024];
	uint32_t n;
	struct acc_err e = {0};
	int fd = open_file("types");
	struct acc_sqlite *s = acc_sqlite_open(fd, &e);
	if (s == NULL && e.code == ACC_EUNSUP) {
		ok(strstr(e.msg, "SQLite") != NULL, "%s", e.msg);
		return done();
	}
	ok(acc_sqlite_has(s, "t", "i s b", &e) == 1 && acc_sqlite_has(s, "t", "i q", &e) == 0 &&
			acc_sqlite_has(s, "u", "i", &e) == 0,
		"a table has its columns, another has none");
	ok(acc_sqlite_query(s, "DELETE FROM t", &e) == NULL && e.code == ACC_EFORMAT, "%s", e.msg);
	e = (struct acc_err){0};
	ok(acc_sqlite_query(s, "SELECT hex(b) FROM t", &e) == NULL, "no function is called");
	e = (struct acc_err){0};
	acc_sqlite_close(s);
	close(fd);
	ok(rows("types", got, sizeof got, &n, &e) == 0 &&
			strcmp(got, "1 0.5 'one' [2]/-9223372036854775808 inf '' [0]/- - - -/"
				    "3 3 'd\303\251' [2000]/") == 0,
		"reads %s", got);
	ok(rows("view", got, sizeof got, &n, &e) == ACC_EFORMAT && n == 0, "a view is no table: %s",
		e.msg);
	e = (struct acc_err){0};
	const int rc = rows("again", got, sizeof got, &n, &e);
	ok(rc == ACC_ELIMIT && n > 300 && n < 400, "%u rows: %s", n, e.msg);
	return done();
}
