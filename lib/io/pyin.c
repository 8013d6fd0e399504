#include "io/pyin.h"

#include <stdlib.h>

int
acc_pyin_memory(struct acc_pyin *in)
{
	return acc_nomem(in->e);
}

int
acc_pyin_bad(struct acc_pyin *in, const char *what)
{
	return acc_fail_at(in->e, ACC_EFORMAT, in->op, "bad pickle: %s", what);
}

const uint8_t *
acc_pyin_take(struct acc_pyin *in, uint64_t k)
{
	if (k > in->n - in->at) {
		acc_fail_at(in->e, ACC_ETRUNC, in->op, "the pickle ends too early");
		return NULL;
	}
	in->at += (size_t)k;
	return in->p + (in->at - (size_t)k);
}

int
acc_pyin_number(struct acc_pyin *in, unsigned k, uint64_t *out)
{
	const uint8_t *p = acc_pyin_take(in, k);
	*out = 0;
	if (p == NULL)
		return in->e->code;
	while (k-- > 0)
		*out = *out << 8 | p[k];
	return 0;
}

int
acc_pyin_line(struct acc_pyin *in, struct acc_str *s)
{
	const uint8_t *p = in->p + in->at;
	const uint8_t *nl = in->at == in->n ? NULL : memchr(p, '\n', in->n - in->at);
	*s = (struct acc_str){0};
	if (nl == NULL)
		return acc_fail_at(in->e, ACC_ETRUNC, in->op, "the pickle ends too early");
	*s = (struct acc_str){(const char *)p, (uint32_t)(nl - p)};
	in->at += s->n + 1;
	return 0;
}

/* k digits at p to base 16 or 8, or -1. */
static int64_t
digits(const char *p, uint32_t k, int base)
{
	int64_t v = 0;
	for (uint32_t i = 0; i < k; i++) {
		char c = p[i];
		int d = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : 99;
		if (d >= base)
			return -1;
		v = v * base + d;
	}
	return v;
}

/* A str of Python 2 as its repr, quotes and all: to the bytes it stands for. `out` has room
 * for s.n bytes. Their number, or -1 where s is no such literal. */
static int64_t
unquote(struct acc_str s, char *out)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	if (s.n < 2 || (s.p[0] != '\'' && s.p[0] != '"') || s.p[s.n - 1] != s.p[0])
		return -1;
	char *o = out;
	for (const char *p = s.p + 1, *end = s.p + s.n - 1; p < end;) {
		if (*p != '\\') {
			*o++ = *p++;
			continue;
		}
		uint32_t left = (uint32_t)(end - p);
		const char *simple = left < 2 || p[1] == '\0' ? NULL : strchr(from, p[1]);
		int64_t v = -1;
		uint32_t used = 4; /* \xHH, \ooo */
		if (simple != NULL) {
			v = to[simple - from];
			used = 2;
		} else if (left >= 4) {
			v = p[1] == 'x' ? digits(p + 2, 2, 16) : digits(p + 1, 3, 8);
		}
		if (v < 0 || v > 255)
			return -1;
		*o++ = (char)v;
		p += used;
	}
	return o - out;
}

static char *
put_utf8(char *o, uint32_t c)
{
	if (c < 0x80) {
		*o++ = (char)c;
	} else if (c < 0x800) {
		*o++ = (char)(0xc0 | c >> 6);
		*o++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*o++ = (char)(0xe0 | c >> 12);
		*o++ = (char)(0x80 | (c >> 6 & 0x3f));
		*o++ = (char)(0x80 | (c & 0x3f));
	} else {
		*o++ = (char)(0xf0 | c >> 18);
		*o++ = (char)(0x80 | (c >> 12 & 0x3f));
		*o++ = (char)(0x80 | (c >> 6 & 0x3f));
		*o++ = (char)(0x80 | (c & 0x3f));
	}
	return o;
}

/* The codec raw-unicode-escape (Latin-1 with \uXXXX and \UXXXXXXXX) to UTF-8. `out` has room
 * for 2 * s.n bytes. */
static int64_t
unescape(struct acc_str s, char *out)
{
	char *o = out;
	for (uint32_t i = 0; i < s.n;) {
		uint32_t k = s.p[i] != '\\' || i + 1 == s.n ? 0
			     : s.p[i + 1] == 'u'            ? 4
			     : s.p[i + 1] == 'U'            ? 8
							    : 0;
		if (k == 0) {
			o = put_utf8(o, (unsigned char)s.p[i++]);
			continue;
		}
		int64_t c = s.n - i - 2 < k ? -1 : digits(s.p + i + 2, k, 16);
		if (c < 0 || c > 0x10ffff)
			return -1;
		o = put_utf8(o, (uint32_t)c);
		i += 2 + k;
	}
	return o - out;
}

static int
set_int(struct acc_py *x, enum acc_py_type type, int64_t i)
{
	x->type = type;
	x->i = i;
	return 1;
}

static int
set_str(struct acc_py *x, enum acc_py_type type, const void *p, size_t n)
{
	x->type = type;
	x->s = (struct acc_str){p, (uint32_t)n};
	return 1;
}

static int
int_text(struct acc_pyin *in, struct acc_py *x, bool is_long)
{
	struct acc_str s;
	int64_t i;
	int rc = acc_pyin_line(in, &s);
	if (rc < 0)
		return rc;
	if (!is_long && (acc_str_is(s, "00") || acc_str_is(s, "01")))
		return set_int(x, ACC_PY_BOOL, s.p[1] == '1');
	if (is_long && s.n > 0 && s.p[s.n - 1] == 'L')
		s.n--;
	if (acc_str_int(s, &i))
		return set_int(x, ACC_PY_INT, i);
	uint32_t sign = s.n > 0 && s.p[0] == '-';
	for (uint32_t k = sign; k < s.n; k++)
		if (s.p[k] < '0' || s.p[k] > '9')
			return acc_pyin_bad(in, "not a number");
	return s.n - sign < 19 ? acc_pyin_bad(in, "not a number")
			       : set_str(x, ACC_PY_BIGINT, "", 0);
}

static int
float_text(struct acc_pyin *in, struct acc_py *x)
{
	struct acc_str s;
	char buf[64], *end;
	int rc = acc_pyin_line(in, &s);
	if (rc < 0)
		return rc;
	if (s.n == 0 || s.n >= sizeof buf)
		return acc_pyin_bad(in, "not a number");
	memcpy(buf, s.p, s.n);
	buf[s.n] = '\0';
	x->type = ACC_PY_FLOAT;
	x->f = strtod(buf, &end);
	return end == buf + s.n ? 1 : acc_pyin_bad(in, "not a number");
}

static int
float_binary(struct acc_pyin *in, struct acc_py *x)
{
	const uint8_t *p = acc_pyin_take(in, 8);
	if (p == NULL)
		return in->e->code;
	uint64_t bits = 0;
	for (int i = 0; i < 8; i++)
		bits = bits << 8 | p[i];
	x->type = ACC_PY_FLOAT;
	memcpy(&x->f, &bits, sizeof x->f);
	return 1;
}

static int
long_binary(struct acc_pyin *in, struct acc_py *x, unsigned width)
{
	uint64_t n, u = 0;
	int rc = acc_pyin_number(in, width, &n);
	if (rc < 0)
		return rc;
	if (n > INT32_MAX)
		return acc_pyin_bad(in, "a negative length");
	const uint8_t *p = acc_pyin_take(in, n);
	if (p == NULL)
		return in->e->code;
	if (n > 8)
		return set_str(x, ACC_PY_BIGINT, p, (size_t)n);
	if (n > 0 && (p[n - 1] & 0x80) != 0)
		u = UINT64_MAX;
	while (n-- > 0)
		u = u << 8 | p[n];
	x->type = ACC_PY_INT;
	memcpy(&x->i, &u, sizeof x->i);
	return 1;
}

static int
small_int(struct acc_pyin *in, struct acc_py *x, unsigned width)
{
	uint64_t u;
	int rc = acc_pyin_number(in, width, &u);
	if (rc < 0)
		return rc;
	/* Only the widest has a sign. */
	return set_int(x, ACC_PY_INT, width == 4 ? (int32_t)(uint32_t)u : (int64_t)u);
}

/* A length of `width` bytes, then that many bytes. */
static int
counted(struct acc_pyin *in, struct acc_py *x, enum acc_py_type type, unsigned width)
{
	uint64_t n;
	int rc = acc_pyin_number(in, width, &n);
	const uint8_t *p = rc < 0 ? NULL : acc_pyin_take(in, n);
	return p == NULL ? in->e->code : set_str(x, type, p, (size_t)n);
}

static int
str_text(struct acc_pyin *in, struct acc_py *x, int64_t (*decode)(struct acc_str, char *),
	size_t factor)
{
	struct acc_str s;
	int rc = acc_pyin_line(in, &s);
	if (rc < 0)
		return rc;
	char *out = acc_alloc(in->m, s.n * factor);
	if (out == NULL)
		return acc_pyin_memory(in);
	int64_t n = decode(s, out);
	if (n < 0)
		return acc_pyin_bad(in, "not a string");
	return set_str(x, ACC_PY_STR, out, (size_t)n);
}

int
acc_pyin_value(struct acc_pyin *in, uint8_t op, struct acc_py *x)
{
	switch (op) {
	case 'N':
		return set_int(x, ACC_PY_NONE, 0);
	case 0x88:
		return set_int(x, ACC_PY_BOOL, 1);
	case 0x89:
		return set_int(x, ACC_PY_BOOL, 0);
	case 'J':
		return small_int(in, x, 4);
	case 'K':
		return small_int(in, x, 1);
	case 'M':
		return small_int(in, x, 2);
	case 'I':
		return int_text(in, x, false);
	case 'L':
		return int_text(in, x, true);
	case 0x8a:
		return long_binary(in, x, 1);
	case 0x8b:
		return long_binary(in, x, 4);
	case 'F':
		return float_text(in, x);
	case 'G':
		return float_binary(in, x);
	case 'S':
		return str_text(in, x, unquote, 1);
	case 'V':
		return str_text(in, x, unescape, 2);
	case 'U':
		return counted(in, x, ACC_PY_STR, 1);
	case 'T':
		return counted(in, x, ACC_PY_STR, 4);
	case 0x8c:
		return counted(in, x, ACC_PY_STR, 1);
	case 'X':
		return counted(in, x, ACC_PY_STR, 4);
	case 0x8d:
		return counted(in, x, ACC_PY_STR, 8);
	case 'C':
		return counted(in, x, ACC_PY_BYTES, 1);
	case 'B':
		return counted(in, x, ACC_PY_BYTES, 4);
	case 0x8e:
		return counted(in, x, ACC_PY_BYTES, 8);
	case 0x96:
		return counted(in, x, ACC_PY_BYTES, 8);
	default:
		return 0;
	}
}
