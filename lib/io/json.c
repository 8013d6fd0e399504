#include "acc/json.h"

#include <math.h>
#include <stdlib.h>

#include "io/ahead.h"
#include "io/parse.h"

/* The scanners below have no bound in their loops: behind the buffered bytes stand zeros
 * (ACC_BYTES_PAD), and a zero ends every token. Whoever stops at j->end asks for more. */
enum {
	DEPTH_LIMIT = 512,
	STRING_LIMIT = 16 << 20,
	END = -1,   /* no further character */
	FAILED = -2 /* j->err says why */
};

enum state { VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, AFTER };

struct acc_json {
	struct acc_bytes *b;
	const uint8_t *start, *p, *end; /* of the buffer, the next character, behind the last */
	enum state state;
	bool lines, any; /* any: a value has begun */
	enum acc_json_type last;
	uint32_t depth;
	struct acc_buf text;
	struct acc_err err;
	uint8_t closer[DEPTH_LIMIT]; /* '}' or ']' for each open container */
};

static uint64_t
position(const struct acc_json *j, const uint8_t *p)
{
	return acc_bytes_pos(j->b) + (uint64_t)(p - j->start);
}

/* More bytes, keeping those from j->p on: 1, 0 at the end, or < 0. */
static int
more(struct acc_json *j)
{
	size_t n;
	acc_bytes_skip(j->b, (size_t)(j->p - j->start));
	int rc = acc_bytes_more(j->b, &j->p, &n, &j->err);
	if (rc < 0)
		n = acc_bytes_peek(j->b, &j->p);
	j->start = j->p;
	j->end = j->p + n;
	return rc;
}

static int
truncated(struct acc_json *j, const char *where)
{
	return acc_fail_at(&j->err, ACC_ETRUNC, position(j, j->end), "the input ends %s", where);
}

/* Only for messages; `p` may stand on the end. */
static int
unexpected(struct acc_json *j, const uint8_t *p, const char *wanted)
{
	if (p >= j->end)
		return truncated(j, j->depth == 0                    ? "before its first value"
				    : j->closer[j->depth - 1] == '}' ? "inside an object"
								     : "inside an array");
	if (*p > 0x20 && *p < 0x7f)
		return acc_fail_at(&j->err, ACC_EFORMAT, position(j, p), "expected %s, found '%c'",
			wanted, *p);
	return acc_fail_at(&j->err, ACC_EFORMAT, position(j, p), "expected %s, found 0x%02x",
		wanted, *p);
}

static int
space(struct acc_json *j)
{
	for (;;) {
		j->p = acc_white(j->p);
		if (j->p < j->end)
			return *j->p;
		int rc = more(j);
		if (rc <= 0)
			return rc == 0 ? END : FAILED;
	}
}

/* The n bytes between the quotes as they are meant. 1 or < 0. */
static int
string_text(struct acc_json *j, const uint8_t *raw, size_t n, bool wide, bool escaped,
	struct acc_str *out)
{
	size_t bad = wide ? acc_utf8_check(raw, n) : n;
	if (bad < n)
		return acc_fail_at(&j->err, ACC_EFORMAT, position(j, raw + bad),
			"a string is not UTF-8");
	*out = (struct acc_str){(const char *)raw, (uint32_t)n};
	if (!escaped)
		return 1;
	size_t len;
	j->text.n = 0;
	if (acc_buf_reserve(&j->text, n) < 0)
		return acc_nomem(&j->err);
	bad = acc_json_unescape(raw, n, j->text.p, &len);
	if (bad < n)
		return acc_fail_at(&j->err, ACC_EFORMAT, position(j, raw + bad),
			"a string holds an unknown escape");
	*out = (struct acc_str){(const char *)j->text.p, (uint32_t)len};
	return 1;
}

/* The string that begins at j->p, into t->s. 1 or < 0. */
static int
string(struct acc_json *j, struct acc_json_tok *t)
{
	size_t n = 1;
	uint64_t seen = 0;
	bool escaped = false;
	for (;;) {
		n += acc_run(j->p + n, &seen);
		if (n > STRING_LIMIT)
			return acc_fail_at(&j->err, ACC_ELIMIT, position(j, j->p),
				"a string of more than %d MiB", STRING_LIMIT >> 20);
		const uint8_t *q = j->p + n;
		if (q + (*q == '\\') >= j->end) {
			int rc = more(j);
			if (rc <= 0)
				return rc == 0 ? truncated(j, "inside a string") : rc;
			continue;
		}
		if (*q == '"')
			break;
		if (*q != '\\')
			return acc_fail_at(&j->err, ACC_EFORMAT, position(j, q),
				"a string holds the control character 0x%02x", *q);
		escaped = true;
		n += 2;
	}
	const uint8_t *raw = j->p + 1;
	j->p += n + 1;
	return string_text(j, raw, n - 1, (seen & ACC_EACH(0x80)) != 0, escaped, &t->s);
}

/* The word `w` at j->p. 1 or < 0. */
static int
word(struct acc_json *j, const char *w)
{
	size_t n = strlen(w), i = 0;
	for (;;) {
		while (i < n && j->p[i] == (uint8_t)w[i])
			i++;
		if (i == n)
			break;
		int rc = j->p + i < j->end ? 0 : more(j);
		if (rc < 0)
			return rc;
		if (rc == 0 && j->p + i == j->end)
			return truncated(j, "inside a word");
		if (rc == 0)
			return unexpected(j, j->p, "a value");
	}
	j->p += n;
	return 1;
}

static int
number(struct acc_json *j, struct acc_json_tok *t)
{
	struct acc_number v;
	const uint8_t *q;
	int rc = 1;
	while ((q = acc_number_scan(j->p, &v)) >= j->end && rc > 0 && q - j->p <= ACC_NUMBER_LIMIT)
		rc = more(j);
	if (rc < 0)
		return rc;
	size_t n = (size_t)(q - j->p);
	t->s = (struct acc_str){(const char *)j->p, (uint32_t)n};
	t->type = ACC_JSON_FLOAT;
	if (n > ACC_NUMBER_LIMIT)
		return acc_fail_at(&j->err, ACC_ELIMIT, t->pos,
			"a number of more than %d characters", ACC_NUMBER_LIMIT);
	if (*q == 'I' && n == 1 && v.negative) {
		rc = word(j, "-Infinity");
		t->s.p = (const char *)j->p - 9;
		t->s.n = 9;
		t->f = -INFINITY;
		return rc;
	}
	if (v.bad != NULL && q >= j->end)
		return truncated(j, "inside a number");
	if (v.bad != NULL)
		return acc_fail_at(&j->err, ACC_EFORMAT, t->pos, "%s", v.bad);
	if (!v.real && v.digits <= 19 && v.w <= (uint64_t)INT64_MAX + v.negative) {
		t->type = ACC_JSON_INT;
		t->i = (int64_t)(v.negative ? 0 - v.w : v.w);
		t->f = (double)t->i;
	} else {
		t->f = acc_number_f64(&v, j->p, n);
	}
	j->p = q;
	return 1;
}

static int
constant(struct acc_json *j, struct acc_json_tok *t, int c)
{
	const char *w = "null";
	t->type = ACC_JSON_NULL;
	if (c == 't') {
		w = "true";
		t->type = ACC_JSON_TRUE;
	} else if (c == 'f') {
		w = "false";
		t->type = ACC_JSON_FALSE;
	} else if (c == 'N' || c == 'I') {
		w = c == 'N' ? "NaN" : "Infinity";
		t->type = ACC_JSON_FLOAT;
		t->f = c == 'N' ? (double)NAN : (double)INFINITY;
	}
	int rc = word(j, w);
	if (rc > 0 && t->type == ACC_JSON_FLOAT)
		t->s = (struct acc_str){(const char *)j->p - strlen(w), (uint32_t)strlen(w)};
	return rc;
}

static int
open_container(struct acc_json *j, struct acc_json_tok *t, int c)
{
	if (j->depth == DEPTH_LIMIT)
		return acc_fail_at(&j->err, ACC_ELIMIT, t->pos, "nested deeper than %d",
			DEPTH_LIMIT);
	t->type = c == '{' ? ACC_JSON_OBJECT : ACC_JSON_ARRAY;
	j->closer[j->depth++] = c == '{' ? '}' : ']';
	j->state = c == '{' ? FIRST_KEY : FIRST_VALUE;
	j->p++;
	return 1;
}

static int
value(struct acc_json *j, struct acc_json_tok *t, int c)
{
	j->any = true;
	if (c == '{' || c == '[')
		return open_container(j, t, c);
	j->state = AFTER;
	if (c == '"') {
		t->type = ACC_JSON_STRING;
		return string(j, t);
	}
	if (c == '-' || (c >= '0' && c <= '9'))
		return number(j, t);
	if (c == 't' || c == 'f' || c == 'n' || c == 'N' || c == 'I')
		return constant(j, t, c);
	return unexpected(j, j->p, "a value");
}

/* After a value, or a key's name: the comma or colon before the token to come, if that is
 * what comes. The next character, END or FAILED. */
static int
separator(struct acc_json *j, int c)
{
	if (j->state == COLON) {
		if (c != ':')
			return unexpected(j, j->p, "':' after a key"), FAILED;
		j->state = VALUE;
	} else {
		bool object = j->closer[j->depth - 1] == '}';
		if (c == j->closer[j->depth - 1])
			return c;
		if (c != ',')
			return unexpected(j, j->p, object ? "',' or '}'" : "',' or ']'"), FAILED;
		j->state = object ? KEY : VALUE;
	}
	j->p++;
	return space(j);
}

/* The next token: 1, 0 at the proper end, or < 0 with j->err. */
static int
next(struct acc_json *j, struct acc_json_tok *t)
{
	int c = space(j);
	if (j->depth > 0 && c >= 0 && (j->state == COLON || j->state == AFTER))
		c = separator(j, c);
	if (c == FAILED)
		return j->err.code;
	*t = (struct acc_json_tok){.depth = j->depth, .pos = position(j, j->p)};
	if (j->depth == 0) {
		if (c == END && (j->any || j->lines))
			return 0;
		if (j->any && !j->lines)
			return unexpected(j, j->p, "nothing after the value");
		return value(j, t, c);
	}
	if (j->state == AFTER || (j->state == FIRST_KEY && c == '}') ||
		(j->state == FIRST_VALUE && c == ']')) {
		if (c == END)
			return unexpected(j, j->p, "");
		t->type = c == '}' ? ACC_JSON_OBJECT_END : ACC_JSON_ARRAY_END;
		t->depth = --j->depth;
		j->state = AFTER;
		j->p++;
		return 1;
	}
	if (j->state == VALUE || j->state == FIRST_VALUE)
		return value(j, t, c);
	if (c != '"')
		return unexpected(j, j->p, "a key in double quotes");
	t->type = ACC_JSON_KEY;
	j->state = COLON;
	return string(j, t);
}

int
acc_json_next(struct acc_json *j, struct acc_json_tok *t, struct acc_err *e)
{
	int rc = j->err.code != 0 ? j->err.code : next(j, t);
	if (rc < 0) {
		acc_err_in(&j->err, acc_bytes_name(j->b));
		if (e != NULL && e->code == 0)
			*e = j->err;
		return rc;
	}
	j->last = t->type;
	return rc;
}

int
acc_json_skip(struct acc_json *j, struct acc_err *e)
{
	struct acc_json_tok t;
	uint32_t depth = j->depth;
	int rc = 1;
	if (j->last == ACC_JSON_KEY)
		rc = acc_json_next(j, &t, e);
	else if (j->last == ACC_JSON_OBJECT || j->last == ACC_JSON_ARRAY)
		depth--;
	while (rc > 0 && j->depth > depth)
		rc = acc_json_next(j, &t, e);
	return rc < 0 ? rc : 0;
}

const uint8_t *
acc_json_ahead(struct acc_json *j)
{
	if (j->err.code != 0 || j->last != ACC_JSON_KEY)
		return NULL;
	int c = space(j);
	if (c >= 0 && j->state == COLON)
		c = separator(j, c);
	return c == '{' || c == '[' ? j->p : NULL;
}

void
acc_json_took(struct acc_json *j, const uint8_t *end)
{
	j->p = end;
	j->state = AFTER;
	j->last = ACC_JSON_NULL;
}

struct acc_json *
acc_json_open(struct acc_bytes *b, bool lines, struct acc_err *e)
{
	struct acc_json *j = b == NULL ? NULL : calloc(1, sizeof *j);
	if (j == NULL) {
		if (b != NULL)
			acc_nomem(e);
		acc_bytes_close(b);
		return NULL;
	}
	j->b = b;
	j->lines = lines;
	size_t n = acc_bytes_peek(b, &j->p);
	j->start = j->p;
	j->end = j->p + n;
	/* A byte order mark; Windows tools leave it. */
	int rc = 1;
	while (j->end - j->p < 3 && rc > 0)
		rc = more(j);
	if (j->end - j->p >= 3 && memcmp(j->p, "\xef\xbb\xbf", 3) == 0)
		j->p += 3;
	return j;
}

void
acc_json_close(struct acc_json *j)
{
	if (j == NULL)
		return;
	acc_bytes_close(j->b);
	acc_buf_release(&j->text);
	free(j);
}
