#include "io/csv.h"

#include <stdlib.h>

enum { RECORD_LIMIT = 16 << 20, FIELD_LIMIT = 65536 };

struct acc_csv {
	struct acc_bytes *b;
	struct acc_buf text;   /* the fields of the record, unquoted, one after another */
	struct acc_buf ends;   /* uint32_t: where each ends in text */
	struct acc_buf fields; /* struct acc_str, made when the record is whole */
	uint64_t line, began;
	char sep;
	bool cr;  /* the last byte was a CR: a LF that follows belongs to it */
	bool cut; /* the record was ended by the end of the input */
};

struct acc_csv *
acc_csv_open(struct acc_bytes *b, struct acc_err *e)
{
	if (b == NULL)
		return NULL;
	struct acc_csv *c = calloc(1, sizeof *c);
	const uint8_t *p;
	size_t n = 0;
	int rc = c == NULL ? acc_nomem(e) : 1;
	while (rc > 0 && n < 3)
		rc = acc_bytes_more(b, &p, &n, e);
	if (rc < 0) {
		acc_bytes_close(b);
		free(c);
		return NULL;
	}
	if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		acc_bytes_skip(b, 3);
	c->b = b;
	c->line = 1;
	c->sep = ',';
	return c;
}

void
acc_csv_separator(struct acc_csv *c, char sep)
{
	c->sep = sep;
}

static int
fail(struct acc_csv *c, int code, const char *what, struct acc_err *e)
{
	acc_fail(e, code, "line %llu: %s", (unsigned long long)c->line, what);
	acc_err_in(e, acc_bytes_name(c->b));
	return code;
}

static int
nomem(struct acc_csv *c, struct acc_err *e)
{
	acc_nomem(e);
	acc_err_in(e, acc_bytes_name(c->b));
	return ACC_ENOMEM;
}

enum state { START, PLAIN, QUOTED, QUOTE };

static int
end_field(struct acc_csv *c, struct acc_err *e)
{
	uint32_t end = (uint32_t)c->text.n;
	if (c->ends.n / sizeof end >= FIELD_LIMIT)
		return fail(c, ACC_ELIMIT, "too many fields", e);
	if (acc_buf_add(&c->ends, &end, sizeof end) < 0)
		return nomem(c, e);
	return 0;
}

/* Bytes up to one that means something in this state. */
static size_t
run(enum state s, char sep, const uint8_t *p, size_t n)
{
	size_t i = 0;
	if (s == QUOTED)
		while (i < n && p[i] != '"' && p[i] != '\n')
			i++;
	else if (s == PLAIN)
		while (i < n && p[i] != sep && p[i] != '\n' && p[i] != '\r')
			i++;
	return i;
}

/* One byte that run() stopped at, or the first of a field. 1: the record has ended. */
static int
step(struct acc_csv *c, enum state *s, char ch, struct acc_err *e)
{
	if (*s == QUOTED) {
		c->line += ch == '\n';
		if (ch != '"')
			return acc_buf_add(&c->text, &ch, 1);
		*s = QUOTE;
		return 0;
	}
	if (ch == '"' && *s != PLAIN) {
		int rc = *s == QUOTE ? acc_buf_add(&c->text, &ch, 1) : 0;
		*s = QUOTED;
		return rc;
	}
	if (ch == c->sep || ch == '\n' || ch == '\r') {
		*s = START;
		int rc = end_field(c, e);
		if (rc < 0 || ch == c->sep)
			return rc;
		c->cr = ch == '\r';
		c->line++;
		return 1;
	}
	if (*s == QUOTE)
		return fail(c, ACC_EFORMAT, "text behind a closing quote", e);
	*s = PLAIN;
	return acc_buf_add(&c->text, &ch, 1);
}

/* The bytes of one record: 1, 0 if there is none, < 0. */
static int
gather(struct acc_csv *c, struct acc_err *e)
{
	enum state s = START;
	const uint8_t *p;
	size_t n;
	int rc = 1;
	for (;;) {
		n = acc_bytes_peek(c->b, &p);
		if (n == 0) {
			rc = acc_bytes_more(c->b, &p, &n, e);
			if (rc < 0)
				return rc;
			if (rc == 0)
				break;
		}
		if (c->cr && *p == '\n') { /* of a CRLF */
			acc_bytes_skip(c->b, 1);
			c->cr = false;
			continue;
		}
		c->cr = false;
		size_t len = run(s, c->sep, p, n);
		if (len > 0 && acc_buf_add(&c->text, p, len) < 0)
			return nomem(c, e);
		rc = len < n ? step(c, &s, (char)p[len], e) : 0;
		acc_bytes_skip(c->b, len < n ? len + 1 : len);
		if (rc != 0)
			return rc == ACC_ENOMEM ? nomem(c, e) : rc;
		if (c->text.n > RECORD_LIMIT)
			return fail(c, ACC_ELIMIT, "a record of more than 16 MiB", e);
	}
	if (s == QUOTED)
		return fail(c, ACC_ETRUNC, "the input ends inside quotes", e);
	if (s == START && c->ends.n == 0)
		return 0;
	c->cut = true;
	rc = end_field(c, e);
	return rc < 0 ? rc : 1;
}

int
acc_csv_next(struct acc_csv *c, const struct acc_str **field, size_t *n, struct acc_err *e)
{
	int rc;
	do {
		c->text.n = c->ends.n = c->fields.n = 0;
		c->began = c->line;
		rc = gather(c, e);
		if (rc <= 0)
			return rc;
		*n = c->ends.n / sizeof(uint32_t);
	} while (*n == 1 && c->text.n == 0); /* an empty line */
	uint32_t start = 0, end;
	/* So that no field's pointer is NULL. */
	if (acc_buf_add(&c->text, "", 1) < 0)
		return nomem(c, e);
	for (size_t i = 0; i < *n; i++, start = end) {
		memcpy(&end, c->ends.p + i * sizeof end, sizeof end);
		struct acc_str s = {(const char *)c->text.p + start, end - start};
		if (acc_buf_add(&c->fields, &s, sizeof s) < 0)
			return nomem(c, e);
	}
	*field = (const struct acc_str *)(const void *)c->fields.p;
	return 1;
}

uint64_t
acc_csv_line(const struct acc_csv *c)
{
	return c->began;
}

bool
acc_csv_cut(const struct acc_csv *c)
{
	return c->cut;
}

void
acc_csv_close(struct acc_csv *c)
{
	if (c == NULL)
		return;
	acc_bytes_close(c->b);
	acc_buf_release(&c->text);
	acc_buf_release(&c->ends);
	acc_buf_release(&c->fields);
	free(c);
}
