#include "acc/npy.h"

/* The header is a Python dict literal. Every writer that matters writes the three keys, but in
 * any order, with any spacing, either quote, and Python 2 with an L behind long integers. */

enum { HEADER_LIMIT = 65536 };

enum { DESCR = 1, ORDER = 2, SHAPE = 4 };

struct cursor {
	const uint8_t *start, *p, *end;
	struct acc_err *e;
};

struct header {
	int seen;
	struct acc_str descr; /* the text between the quotes, or a whole list */
	bool structured, fortran;
};

static int
bad(const struct cursor *c, const char *what)
{
	return acc_fail_at(c->e, ACC_EFORMAT, (uint64_t)(c->p - c->start),
		"npy header: expected %s", what);
}

/* The next character that is no white space, or 0. */
static int
peek(struct cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || (*c->p >= '\t' && *c->p <= '\r')))
		c->p++;
	return c->p < c->end ? *c->p : 0;
}

static bool
accept(struct cursor *c, char ch)
{
	if (peek(c) != ch)
		return false;
	c->p++;
	return true;
}

static bool
string(struct cursor *c, struct acc_str *out)
{
	int quote = peek(c);
	if (quote != '\'' && quote != '"')
		return false;
	const uint8_t *first = ++c->p;
	for (; c->p < c->end && *c->p != quote; c->p++)
		if (*c->p == '\\' && c->end - c->p > 1)
			c->p++;
	if (c->p >= c->end)
		return false;
	*out = (struct acc_str){(const char *)first, (uint32_t)(c->p - first)};
	c->p++;
	return true;
}

/* A list, taken as text: a structured type is only named, never decoded. */
static bool
list(struct cursor *c, struct acc_str *out)
{
	struct acc_str inner;
	peek(c);
	const uint8_t *first = c->p;
	int depth = 0;
	do {
		int ch = peek(c);
		if (ch == '\'' || ch == '"') {
			if (!string(c, &inner))
				return false;
			continue;
		}
		depth += (ch == '[') - (ch == ']');
		if (ch == 0)
			return false;
		c->p++;
	} while (depth > 0);
	*out = (struct acc_str){(const char *)first, (uint32_t)(c->p - first)};
	return true;
}

static int
word(struct cursor *c, bool *out)
{
	peek(c);
	size_t left = (size_t)(c->end - c->p);
	*out = left >= 4 && memcmp(c->p, "True", 4) == 0;
	if (!*out && (left < 5 || memcmp(c->p, "False", 5) != 0))
		return bad(c, "True or False");
	c->p += *out ? 4 : 5;
	return 0;
}

static int
dimension(struct cursor *c, int64_t *out)
{
	int64_t v = 0;
	const uint8_t *first = c->p;
	for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->p - '0', &v))
			return acc_fail_at(c->e, ACC_EFORMAT, (uint64_t)(first - c->start),
				"npy header: a dimension beyond 64 bits");
	if (c->p == first)
		return bad(c, "a dimension");
	accept(c, 'L');
	*out = v;
	return 0;
}

static int
shape(struct cursor *c, struct acc_ref *ref)
{
	bool comma = true;
	if (!accept(c, '('))
		return bad(c, "a tuple as shape");
	for (ref->ndim = 0; !accept(c, ')'); ref->ndim++) {
		if (!comma)
			return bad(c, "',' or ')'");
		if (ref->ndim == ACC_MAXDIM)
			return acc_fail_at(c->e, ACC_ELIMIT, (uint64_t)(c->p - c->start),
				"npy header: more than %d dimensions", ACC_MAXDIM);
		int rc = dimension(c, &ref->shape[ref->ndim]);
		if (rc < 0)
			return rc;
		comma = accept(c, ',');
	}
	/* (3) is a number in parentheses, no tuple. */
	if (ref->ndim == 1 && !comma)
		return bad(c, "a tuple as shape");
	return 0;
}

/* One key with its value. */
static int
entry(struct cursor *c, struct header *h, struct acc_ref *ref)
{
	struct acc_str key;
	if (!string(c, &key))
		return bad(c, "a key");
	int which = acc_str_is(key, "descr")           ? DESCR
		    : acc_str_is(key, "fortran_order") ? ORDER
		    : acc_str_is(key, "shape")         ? SHAPE
						       : 0;
	if (which == 0 || (h->seen & which) != 0)
		return bad(c, "descr, fortran_order and shape, each once");
	h->seen |= which;
	if (!accept(c, ':'))
		return bad(c, "':'");
	if (which == ORDER)
		return word(c, &h->fortran);
	if (which == SHAPE)
		return shape(c, ref);
	h->structured = peek(c) == '[';
	if (!(h->structured ? list(c, &h->descr) : string(c, &h->descr)))
		return bad(c, "a type");
	return 0;
}

static int
parse(struct cursor *c, struct header *h, struct acc_ref *ref)
{
	if (!accept(c, '{'))
		return bad(c, "'{'");
	for (bool comma = true; !accept(c, '}'); comma = accept(c, ',')) {
		if (!comma)
			return bad(c, "',' or '}'");
		int rc = entry(c, h, ref);
		if (rc < 0)
			return rc;
	}
	if (h->seen != (DESCR | ORDER | SHAPE))
		return bad(c, "descr, fortran_order and shape");
	return peek(c) == 0 && c->p == c->end ? 0 : bad(c, "nothing after '}'");
}

/* What a type is that is not decoded here. */
static int
unsupported(const struct header *h, struct acc_str kind, struct acc_err *e)
{
	static const struct {
		const char *start, *what;
	} row[] = {
		{"O", "Python objects, a pickle that is never loaded"},
		{"S", "byte strings"},
		{"a", "byte strings"},
		{"U", "text"},
		{"M", "dates"},
		{"m", "time spans"},
		{"V", "raw bytes of no known type"},
		{"f16", "extended precision (longdouble)"},
		{"f12", "extended precision (longdouble)"},
		{"c32", "extended precision (clongdouble)"},
		{"c24", "extended precision (clongdouble)"},
	};
	struct acc_str d = h->descr;
	uint32_t shown = d.n < 60 ? d.n : 60;
	if (h->structured)
		return acc_fail(e, ACC_EUNSUP, "a structured array: %.*s", (int)shown, d.p);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (acc_str_starts(kind, row[i].start))
			return acc_fail(e, ACC_EUNSUP, "type '%.*s': %s", (int)shown, d.p,
				row[i].what);
	return acc_fail(e, ACC_EUNSUP, "type '%.*s' is not known", (int)shown, d.p);
}

static int
element(const struct header *h, struct acc_ref *ref, struct acc_err *e)
{
	struct acc_str kind = h->descr;
	ref->big_endian = false;
	ref->dtype = ACC_NODTYPE;
	if (!h->structured) {
		char order = kind.n > 0 ? kind.p[0] : '\0';
		if (order == '<' || order == '>' || order == '|' || order == '=')
			kind = (struct acc_str){kind.p + 1, kind.n - 1};
		ref->dtype = acc_dtype_numpy(kind);
		ref->big_endian = order == '>' && ref->dtype != ACC_NODTYPE &&
				  acc_dtype_of(ref->dtype)->size > 1;
	}
	return ref->dtype == ACC_NODTYPE ? unsupported(h, kind, e) : 0;
}

static int
layout(const struct header *h, struct acc_ref *ref, struct acc_err *e)
{
	uint64_t count, bytes;
	if (!acc_count(ref->shape, ref->ndim, &count) ||
		__builtin_mul_overflow(count, acc_dtype_of(ref->dtype)->size, &bytes) ||
		bytes > INT64_MAX)
		return acc_fail(e, ACC_EFORMAT, "npy header: the shape is beyond 64 bits");
	ref->len = bytes;
	ref->first = 0;
	ref->strided = false;
	if (!h->fortran || count == 0)
		return 0;
	int64_t step = 1;
	for (uint32_t i = 0; i < ref->ndim; i++) {
		ref->stride[i] = step;
		step *= ref->shape[i];
	}
	ref->strided = !acc_contiguous(ref->shape, ref->stride, ref->ndim);
	return 0;
}

/* The whole header's length; *text is where the dict begins. 0: n is too few. */
static int64_t
extent(const uint8_t *p, size_t n, size_t *text, struct acc_err *e)
{
	static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
	if (n == 0)
		return 0;
	if (memcmp(p, magic, n < sizeof magic ? n : sizeof magic) != 0)
		return acc_fail(e, ACC_EFORMAT, "not a .npy file");
	if (n < 8)
		return 0;
	if (p[6] < 1 || p[6] > 3 || p[7] != 0)
		return acc_fail_at(e, ACC_EVERSION, 6, "npy version %d.%d is not known", p[6],
			p[7]);
	*text = p[6] == 1 ? 10 : 12;
	if (n < *text)
		return 0;
	uint32_t len = p[8] | (uint32_t)p[9] << 8;
	if (p[6] > 1)
		len |= (uint32_t)p[10] << 16 | (uint32_t)p[11] << 24;
	if (len > HEADER_LIMIT)
		return acc_fail_at(e, ACC_ELIMIT, 8, "npy header of %u bytes", len);
	return *text + len <= n ? (int64_t)(*text + len) : 0;
}

int64_t
acc_npy_header(const void *p, size_t n, struct acc_ref *ref, struct acc_str *descr,
	struct acc_arena *m, struct acc_err *e)
{
	size_t text;
	int64_t len = extent(p, n, &text, e);
	if (len <= 0)
		return len;
	const uint8_t *start = p;
	struct cursor c = {start, start + text, start + len, e};
	struct header h = {0};
	int rc = parse(&c, &h, ref);
	if (rc == 0 && descr != NULL) {
		*descr = acc_arena_str(m, h.descr);
		if (descr->p == NULL)
			rc = acc_nomem(e);
	}
	if (rc == 0)
		rc = element(&h, ref, e);
	if (rc == 0)
		rc = layout(&h, ref, e);
	ref->off = (uint64_t)len;
	return rc < 0 ? rc : len;
}
