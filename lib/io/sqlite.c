#include "io/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "acc/file.h"
#include "io/sqlitelib.h"

static const char magic[16] = "SQLite format 3";

bool
acc_is_sqlite(const uint8_t *head, size_t n)
{
	return n >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

/* A log holds what is not in the file yet, and a journal whose head is not zero what is half in it. */
static int
look_beside(int dirfd, const char *name, const char *what, struct acc_err *e)
{
	char beside[300], head = 0;
	snprintf(beside, sizeof beside, "%s%s", name, what);
	const int fd = openat(dirfd, beside, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && acc_file_absent(errno))
		return 0;
	const int64_t n = fd < 0 ? acc_fail(e, ACC_EIO, "cannot look at %s beside it:", beside)
				 : acc_file_peek(fd, &head, 1, 0, e);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || (strcmp(what, "-journal") == 0 && head == 0))
		return n < 0 ? (int)n : 0;
	return acc_fail(e, ACC_EUNSUP,
		"%s holds changes that are not in it yet: end the program that "
		"writes, or copy it by sqlite3's .backup",
		beside);
}

int
acc_sqlite_file(int dirfd, const char *name, struct acc_err *e)
{
	const int fd = acc_file_beneath(dirfd, acc_str(name), e);
	int rc = fd < 0 ? fd : look_beside(dirfd, name, "-wal", e);
	if (rc == 0)
		rc = look_beside(dirfd, name, "-journal", e);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

#ifdef ACC_HAVE_SQLITE

/* A value is no larger than a record of ours; no query of ours is longer than this, nor a schema's. */
enum { VALUE_LIMIT = 64 << 20, SQL_LIMIT = 1 << 20, COLUMN_LIMIT = 2000, OPS_A_CALL = 1000 };

struct acc_sqlite {
	const struct acc_sqlite_lib *lib;
	sqlite3 *db;
	uint64_t size; /* of the file */
	uint64_t calls, most;
};

struct acc_query {
	struct acc_sqlite *s;
	sqlite3_stmt *q;
	int n;
	uint64_t rows, bytes;
};

static int
fail(struct acc_sqlite *s, int rc, struct acc_err *e)
{
	if (rc == SQLITE_NOMEM)
		return acc_nomem(e);
	if (rc == SQLITE_INTERRUPT)
		return acc_fail(e, ACC_ELIMIT,
			"the database has more rows than a file of its size can hold");
	return acc_fail(e, rc == SQLITE_IOERR ? ACC_EIO : ACC_EFORMAT,
		"the database cannot be read: %s", s->lib->sqlite3_errstr(rc));
}

/* Only tables are read: nothing is called that a file could bring, or change something. */
static int
allow(void *arg, int what, const char *a, const char *b, const char *c, const char *d)
{
	(void)arg;
	(void)b;
	(void)c;
	(void)d;
	return what == SQLITE_SELECT || what == SQLITE_READ ||
			       (what == SQLITE_PRAGMA && strcmp(a, "table_info") == 0)
		       ? SQLITE_OK
		       : SQLITE_DENY;
}

/* Between two rows, too, there is an end: pages that a damaged file names twice. */
static int
tick(void *arg)
{
	struct acc_sqlite *s = arg;
	return ++s->calls > s->most;
}

static int
harden(struct acc_sqlite *s)
{
	static const struct {
		int what, value;
	} limit[] = {{SQLITE_LIMIT_LENGTH, VALUE_LIMIT}, {SQLITE_LIMIT_SQL_LENGTH, SQL_LIMIT},
		{SQLITE_LIMIT_COLUMN, COLUMN_LIMIT}, {SQLITE_LIMIT_EXPR_DEPTH, 20},
		{SQLITE_LIMIT_COMPOUND_SELECT, 1}, {SQLITE_LIMIT_ATTACHED, 0},
		{SQLITE_LIMIT_TRIGGER_DEPTH, 0}, {SQLITE_LIMIT_WORKER_THREADS, 0}};
	static const int set[][2] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0}};
	const struct acc_sqlite_lib *l = s->lib;
	for (size_t i = 0; i < sizeof limit / sizeof *limit; i++)
		l->sqlite3_limit(s->db, limit[i].what, limit[i].value);
	int rc = 0;
	for (size_t i = 0; i < sizeof set / sizeof *set && rc == 0; i++)
		rc = l->sqlite3_db_config(s->db, set[i][0], set[i][1], (int *)NULL);
	if (rc == 0)
		rc = l->sqlite3_exec(s->db,
			"PRAGMA cell_size_check=1; PRAGMA mmap_size=0; PRAGMA temp_store=2", NULL,
			NULL, NULL);
	if (rc == 0)
		rc = l->sqlite3_set_authorizer(s->db, allow, NULL);
	l->sqlite3_progress_handler(s->db, OPS_A_CALL, tick, s);
	return rc;
}

static uint64_t
big_endian(const uint8_t *p, int n)
{
	uint64_t v = 0;
	for (int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* The library reads the pages that a file lacks as far as it needs them. Its head says how many there are, where
 * who wrote last knew of that number. */
static int
is_whole(int fd, uint64_t size, struct acc_err *e)
{
	enum { PAGE = 16, CHANGES = 24, PAGES = 28, VALID = 92, HEAD = 100 };
	uint8_t h[HEAD];
	const int64_t n = acc_file_peek(fd, h, sizeof h, 0, e);
	if (n < 0)
		return (int)n;
	const uint64_t page = n < HEAD ? 0 : big_endian(h + PAGE, 2),
		       whole = (page == 1 ? 65536 : page) *
			       (n < HEAD ? 0 : big_endian(h + PAGES, 4));
	if (n == HEAD && memcmp(h + CHANGES, h + VALID, 4) == 0 && whole > size)
		return acc_fail(e, ACC_ETRUNC, "the database is cut off: %llu bytes of %llu",
			(unsigned long long)size, (unsigned long long)whole);
	return 0;
}

struct acc_sqlite *
acc_sqlite_open(int fd, struct acc_err *e)
{
	struct acc_file_info info;
	char uri[80];
	const struct acc_sqlite_lib *lib = acc_sqlite_load(e);
	if (lib == NULL || acc_file_stat(fd, &info, e) < 0 || is_whole(fd, info.size, e) < 0)
		return NULL;
	struct acc_sqlite *s = calloc(1, sizeof *s);
	if (s == NULL) {
		acc_nomem(e);
		return NULL;
	}
	s->lib = lib;
	s->size = info.size;
	/* A row takes a few dozen operations, and a few bytes. */
	s->most = 1000 + info.size / 8;
	snprintf(uri, sizeof uri, "file:/proc/self/fd/%d?mode=ro&immutable=1", fd);
	int rc = lib->sqlite3_open_v2(uri, &s->db,
		SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
			SQLITE_OPEN_PRIVATECACHE,
		NULL);
	if (rc == 0)
		rc = harden(s);
	if (rc != 0) {
		fail(s, rc, e);
		acc_sqlite_close(s);
		return NULL;
	}
	return s;
}

void
acc_sqlite_close(struct acc_sqlite *s)
{
	if (s == NULL)
		return;
	s->lib->sqlite3_close(s->db);
	free(s);
}

struct acc_query *
acc_sqlite_query(struct acc_sqlite *s, const char *sql, struct acc_err *e)
{
	struct acc_query *r = calloc(1, sizeof *r);
	if (r == NULL) {
		acc_nomem(e);
		return NULL;
	}
	r->s = s;
	s->calls = 0;
	int rc = s->lib->sqlite3_prepare_v2(s->db, sql, -1, &r->q, NULL);
	if (rc != 0) {
		fail(s, rc, e);
		acc_query_close(r);
		return NULL;
	}
	r->n = s->lib->sqlite3_column_count(r->q);
	return r;
}

void
acc_query_close(struct acc_query *r)
{
	if (r == NULL)
		return;
	r->s->lib->sqlite3_finalize(r->q);
	free(r);
}

int
acc_query_next(struct acc_query *r, struct acc_err *e)
{
	const struct acc_sqlite_lib *l = r->s->lib;
	int rc = l->sqlite3_step(r->q);
	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return fail(r->s, rc, e);
	/* A cell has at least its place, its length and a header. */
	r->rows++;
	for (int i = 0; i < r->n; i++) {
		const int type = l->sqlite3_column_type(r->q, i);
		if (type == SQLITE_TEXT || type == SQLITE_BLOB)
			r->bytes += (uint64_t)l->sqlite3_column_bytes(r->q, i);
	}
	/* A text may be stored in two bytes a character, and come in three. */
	if (r->rows * 4 > r->s->size || r->bytes / 2 > r->s->size)
		return fail(r->s, SQLITE_INTERRUPT, e);
	return 1;
}

struct acc_val
acc_query_value(struct acc_query *r, int column)
{
	const struct acc_sqlite_lib *l = r->s->lib;
	struct acc_val v = acc_nil();
	switch (l->sqlite3_column_type(r->q, column)) {
	case SQLITE_INTEGER:
		return acc_int(l->sqlite3_column_int64(r->q, column));
	case SQLITE_FLOAT:
		return acc_f64(l->sqlite3_column_double(r->q, column));
	case SQLITE_TEXT:
		v = acc_text(
			(struct acc_str){(const char *)l->sqlite3_column_text(r->q, column), 0});
		break;
	case SQLITE_BLOB:
		v = acc_text((struct acc_str){l->sqlite3_column_blob(r->q, column), 0});
		v.type = ACC_V_BIN;
		break;
	default:
		return v;
	}
	v.s.n = (uint32_t)l->sqlite3_column_bytes(r->q, column);
	if (v.s.p == NULL)
		v.s = acc_str("");
	return v;
}

#else

struct acc_sqlite *
acc_sqlite_open(int fd, struct acc_err *e)
{
	(void)fd;
	acc_fail(e, ACC_EUNSUP,
		"an SQLite database is not read by what was built without libsqlite3-dev");
	return NULL;
}

void
acc_sqlite_close(struct acc_sqlite *s)
{
	(void)s;
}

struct acc_query *
acc_sqlite_query(struct acc_sqlite *s, const char *sql, struct acc_err *e)
{
	(void)s;
	(void)sql;
	(void)e;
	return NULL;
}

int
acc_query_next(struct acc_query *r, struct acc_err *e)
{
	(void)r;
	(void)e;
	return 0;
}

struct acc_val
acc_query_value(struct acc_query *r, int column)
{
	(void)r;
	(void)column;
	return acc_nil();
}

void
acc_query_close(struct acc_query *r)
{
	(void)r;
}

#endif

int
acc_sqlite_has(struct acc_sqlite *s, const char *table, const char *columns, struct acc_err *e)
{
	char sql[128];
	size_t want = 1, found = 0;
	int rc;
	snprintf(sql, sizeof sql, "PRAGMA table_info(%s)", table);
	struct acc_query *r = acc_sqlite_query(s, sql, e);
	if (r == NULL)
		return e != NULL ? e->code : ACC_EFORMAT;
	while ((rc = acc_query_next(r, e)) > 0)
		found += acc_word_in(columns, acc_query_value(r, 1).s);
	acc_query_close(r);
	for (const char *p = columns; *p != '\0'; p++)
		want += *p == ' ';
	return rc < 0 ? rc : found == want;
}
