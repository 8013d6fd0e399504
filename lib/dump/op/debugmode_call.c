/* A call in a log of torch's DebugMode: see debugmode.h. */
#include "dump/op/debugmode.h"
#include "dump/op/argname.h"
#include "io/literal.h"

#include <ctype.h>
#include <math.h>

enum { NAME_MAX_ = 256, NESTED = 8 };

static struct acc_str
from(struct acc_str s, uint32_t at)
{
	return (struct acc_str){s.p + at, s.n - at};
}

/* How long the first item of a Python expression is: up to a comma outside of brackets and quotes, or the bracket that
 * closes what surrounds it. */
static uint32_t
item(struct acc_str s)
{
	uint32_t depth = 0, i = 0;
	char quote = '\0';
	for (; i < s.n; i++) {
		const char c = s.p[i];
		if (quote != '\0') {
			if (c == '\\')
				i++;
			else if (c == quote)
				quote = '\0';
		} else if (c == '\'' || c == '"') {
			quote = c;
		} else if (c == '(' || c == '[' || c == '{') {
			depth++;
		} else if (c == ')' || c == ']' || c == '}') {
			if (depth == 0)
				return i;
			depth--;
		} else if (c == ',' && depth == 0) {
			return i;
		}
	}
	return s.n < i ? s.n : i;
}

/* All items of an expression: what is left of it behind the one that is taken. */
static bool
next_item(struct acc_str *s, struct acc_str *one)
{
	*s = acc_str_trim(*s);
	if (s->n == 0)
		return false;
	const uint32_t n = item(*s);
	*one = acc_str_trim((struct acc_str){s->p, n});
	*s = from(*s, n < s->n ? n + 1 : n);
	return true;
}

/* ['a', 'b'], ('a',): what is within, where it is one whole bracket. */
static bool
within(struct acc_str s, struct acc_str *inner)
{
	if (s.n < 2 || strchr("[(", s.p[0]) == NULL || strchr("])", s.p[s.n - 1]) == NULL)
		return false;
	*inner = (struct acc_str){s.p + 1, s.n - 2};
	return true;
}

static struct acc_str
unquoted(struct acc_str s)
{
	const bool is = s.n >= 2 && (s.p[0] == '\'' || s.p[0] == '"') && s.p[s.n - 1] == s.p[0];
	return is ? (struct acc_str){s.p + 1, s.n - 2} : s;
}

struct seen {
	enum acc_dtype dtype;
	struct acc_str raw; /* as torch abbreviates it */
	uint32_t ndim;
	int64_t shape[ACC_MAXDIM];
};

/* "t$3: f32[2, 3]", "dt: bf16[8]| S(0)", "ft: i64[]". */
static bool
read_tensor(struct acc_str s, struct seen *t)
{
	uint32_t i = 0;
	struct acc_str size, one;
	s = unquoted(s);
	i += i < s.n && (s.p[i] == 'd' || s.p[i] == 'f');
	if (i >= s.n || s.p[i++] != 't')
		return false;
	if (i < s.n && s.p[i] == '$')
		for (i++; i < s.n && isdigit((unsigned char)s.p[i]);)
			i++;
	if (s.n - i < 4 || s.p[i] != ':' || s.p[i + 1] != ' ')
		return false;
	s = from(s, i + 2);
	const char *open = memchr(s.p, '[', s.n), *end = memchr(s.p, ']', s.n);
	if (open == NULL || end == NULL || end < open || open == s.p)
		return false;
	t->raw = (struct acc_str){s.p, (uint32_t)(open - s.p)};
	for (uint32_t k = 0; k < t->raw.n; k++)
		if (!isalnum((unsigned char)t->raw.p[k]))
			return false;
	t->dtype = acc_str_is(t->raw, "b8") ? ACC_BOOL : acc_dtype_find(t->raw);
	size = (struct acc_str){open + 1, (uint32_t)(end - open - 1)};
	for (t->ndim = 0; next_item(&size, &one); t->ndim++)
		if (t->ndim == ACC_MAXDIM || !acc_str_int(one, &t->shape[t->ndim]) ||
			t->shape[t->ndim] < 0)
			return false;
	return true;
}

static uint32_t
count_tensors(struct acc_str s, int depth)
{
	struct acc_str one, inner;
	struct seen t;
	uint32_t n = 0;
	while (next_item(&s, &one)) {
		const char *eq = memchr(one.p, '=', one.n);
		if (eq != NULL && isalpha((unsigned char)one.p[0]))
			one = from(one, (uint32_t)(eq - one.p) + 1);
		if (read_tensor(one, &t))
			n++;
		else if (depth < NESTED && within(one, &inner))
			n += count_tensors(inner, depth + 1);
	}
	return n;
}

bool
acc_debugmode_has_tensor(const struct debug_call *call)
{
	return count_tensors(call->args, 0) + count_tensors(call->out, 0) > 0;
}

/* "'hash': 1.5}": what stands behind a key of a dict. */
static struct acc_str
value_of(struct acc_str s, const char *key)
{
	const size_t n = strlen(key);
	const char *at = s.n == 0 ? NULL : memmem(s.p, s.n, key, n);
	if (at == NULL)
		return (struct acc_str){"", 0};
	s = from(s, (uint32_t)(at - s.p) + (uint32_t)n);
	return acc_str_trim((struct acc_str){s.p, item(s)});
}

/* Is each bracket closed? Where a line is cut off, one is not. */
static bool
is_whole(struct acc_str s)
{
	int open = 0;
	for (uint32_t i = 0; i < s.n; i++)
		open += strchr("([{", s.p[i]) != NULL && s.p[i] != '\0'
				? 1
				: -(strchr(")]}", s.p[i]) != NULL && s.p[i] != '\0');
	return open == 0;
}

bool
acc_debugmode_parse(struct acc_str line, struct debug_call *out)
{
	static const char arrow[] = "  ->  ", log[] = "  # {";
	struct acc_str s = acc_str_trim(line);
	uint32_t n = 0;
	*out = (struct debug_call){0};
	while (n < s.n && (isalnum((unsigned char)s.p[n]) || strchr("_.:", s.p[n]) != NULL))
		n++;
	if (n == 0 || n >= s.n || n > NAME_MAX_ || s.p[n] != '(' || !isalpha((unsigned char)s.p[0]))
		return false;
	out->op = (struct acc_str){s.p, n};
	s = from(s, n + 1);
	for (n = 0; n < s.n && s.p[n] != ')'; n += n < s.n && s.p[n] == ',') {
		n += item(from(s, n));
		if (n < s.n && s.p[n] != ')' && s.p[n] != ',')
			return false;
	}
	if (n >= s.n)
		return false;
	out->args = (struct acc_str){s.p, n};
	s = from(s, n + 1);
	const char *at = s.n == 0 ? NULL : memmem(s.p, s.n, log, sizeof log - 1);
	if (!is_whole(s))
		return false;
	if (at != NULL) {
		const struct acc_str dict = from(s, (uint32_t)(at - s.p) + sizeof log - 1);
		out->given = value_of(dict, "'input_hash': ");
		out->made = value_of(dict, "'hash': ");
		s.n = (uint32_t)(at - s.p);
	}
	if (acc_str_starts(s, arrow))
		out->out = acc_str_trim(from(s, sizeof arrow - 1));
	return s.n == 0 || acc_str_starts(s, arrow);
}

/* --- hashes --- */

/* The next number of an expression of them, whatever its brackets; false: there is no more. */
static bool
next_number(struct acc_str *s, struct acc_str *one)
{
	while (s->n > 0) {
		uint32_t n = 0;
		while (n < s->n && (isalnum((unsigned char)s->p[n]) || strchr("+-._", s->p[n])))
			n++;
		const struct acc_str word = {s->p, n};
		*s = from(*s, n > 0 ? n : 1);
		struct acc_literal x;
		if (n > 0 && !acc_str_is(word, "None") && acc_literal_all(word, &x)) {
			*one = word;
			return true;
		}
	}
	return false;
}

static uint32_t
count_numbers(struct acc_str s)
{
	struct acc_str one;
	uint32_t n = 0;
	while (next_number(&s, &one))
		n++;
	return n;
}

/* Hashes of some tensors, one or two for each. */
struct hashes {
	struct acc_str text;
	uint32_t each; /* 0: their number tells nothing */
};

static struct hashes
hashes_of(struct acc_str text, uint32_t tensors)
{
	const uint32_t n = count_numbers(text);
	const bool known = tensors > 0 && (n == tensors || n == 2 * tensors);
	return (struct hashes){text, known ? n / tensors : 0};
}

/* An L1 norm has a point, an exclusive or has none. Of both the norm tells more: it can be close. */
static int
add_hash(struct acc_rec *r, struct hashes *h, struct acc_arena *m)
{
	struct acc_str one, hash = {"", 0};
	struct acc_literal x;
	bool norm = false;
	int rc = 0;
	for (uint32_t i = 0; i < h->each && next_number(&h->text, &one); i++) {
		acc_literal_all(one, &x);
		const bool whole = one.p[0] >= '0' && one.p[0] <= '9' &&
				   memchr(one.p, '.', one.n) == NULL &&
				   memchr(one.p, 'e', one.n) == NULL;
		if (!whole && !norm) {
			rc |= acc_add(r, "", "stat.l1", acc_f64(x.v));
			norm = true;
		} else if (whole) {
			hash = one;
		}
	}
	if (!norm && hash.n > 0) {
		const struct acc_str copy = acc_arena_str(m, hash);
		rc |= copy.p == NULL ? ACC_ENOMEM : acc_add(r, "", "stat.xor", acc_text(copy));
	}
	return rc;
}

/* --- records --- */

struct putting {
	struct debug_log *d;
	const struct debug_call *call;
	struct argname a;
	struct hashes hashes;
	char pos[64];
};

static int
name_of(struct putting *p, struct acc_str *name, struct acc_err *e)
{
	*name = acc_str_made(acc_arena_printf(&p->d->mem, "%.*s.%s.%s", ACC_PRS(p->a.key),
		p->a.io[0] == 'i'   ? "input"
		: p->a.io[0] == 'o' ? "output"
				    : "kwargs",
		p->pos));
	p->a.pos = acc_str(p->pos);
	return name->n == 0 ? acc_nomem(e) : 0;
}

static int
put_tensor(struct putting *p, const struct seen *t, struct acc_err *e)
{
	struct acc_str name;
	if (name_of(p, &name, e) < 0)
		return ACC_ENOMEM;
	struct acc_rec *r = acc_dump_rec(p->d->c, "tensor", name);
	int rc = acc_dump_argname_put(r, &p->a);
	if (p->call->scope.n > 0)
		rc |= acc_add(r, "", "scope", acc_text(p->call->scope));
	if (t->dtype != ACC_NODTYPE)
		rc |= acc_add(r, "", "dtype", acc_ctext(acc_dtype_of(t->dtype)->name));
	else
		rc |= acc_add(r, "", "dtype.raw", acc_text(t->raw));
	rc |= acc_add(r, "", "shape", acc_ints(t->shape, t->ndim));
	*(p->hashes.each > 0 ? &p->d->hashed : &p->d->unhashed) += 1;
	rc |= add_hash(r, &p->hashes, &p->d->mem);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(p->d->c, r, e);
}

static int
put_argument(struct putting *p, struct acc_str text, struct acc_err *e)
{
	struct acc_literal x;
	struct acc_str name;
	const char *type = "str";
	struct acc_val v = acc_text(unquoted(text));
	if (acc_str_is(text, "None")) {
		type = "None";
		v = acc_nil();
	} else if (acc_str_is(text, "True") || acc_str_is(text, "False")) {
		type = "bool";
		v = acc_bool(text.p[0] == 'T');
	} else if (acc_literal_all(text, &x)) {
		type = x.integer ? "int" : "float";
		v = x.integer ? acc_int(x.i) : acc_f64(x.v);
	} else if (text.n > 0 && text.p[0] == '[') {
		type = "list"; /* as its text */
	}
	if (name_of(p, &name, e) < 0)
		return ACC_ENOMEM;
	struct acc_rec *r = acc_dump_rec(p->d->c, "arg", name);
	int rc = acc_dump_argname_put(r, &p->a);
	if (p->call->scope.n > 0)
		rc |= acc_add(r, "", "scope", acc_text(p->call->scope));
	rc |= acc_add(r, "", "type", acc_ctext(type));
	rc |= acc_add(r, "", "value", v);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(p->d->c, r, e);
}

/* A tensor, a number, or a list in which tensors are. Places are 0, 1, 2.0, 2.1, or a keyword. */
static int
put_one(struct putting *p, struct acc_str one, size_t at, int depth, struct acc_err *e)
{
	struct seen t;
	struct acc_str inner, part;
	int rc = 0;
	if (read_tensor(one, &t))
		return put_tensor(p, &t, e);
	if (depth >= NESTED || !within(one, &inner) || count_tensors(inner, 0) == 0)
		return p->a.io[0] == 'o' ? 0 : put_argument(p, one, e);
	for (uint32_t i = 0; rc == 0 && next_item(&inner, &part); i++) {
		const int n = snprintf(p->pos + at, sizeof p->pos - at, ".%u", i);
		if (n < 0 || (size_t)n >= sizeof p->pos - at)
			break;
		rc = put_one(p, part, at + (size_t)n, depth + 1, e);
	}
	return rc;
}

static int
put_given(struct putting *p, struct acc_err *e)
{
	struct acc_str s = p->call->args, one;
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && next_item(&s, &one); i++) {
		uint32_t n = 0;
		while (n < one.n && (isalnum((unsigned char)one.p[n]) || one.p[n] == '_'))
			n++;
		const bool named = n > 0 && n < one.n && one.p[n] == '=' && n < sizeof p->pos &&
				   isalpha((unsigned char)one.p[0]);
		p->a.io = named ? "kw" : "in";
		if (named)
			snprintf(p->pos, sizeof p->pos, "%.*s", (int)n, one.p);
		else
			snprintf(p->pos, sizeof p->pos, "%u", i);
		rc = put_one(p, named ? from(one, n + 1) : one, strlen(p->pos), 0, e);
	}
	return rc;
}

static int
put_made(struct putting *p, struct acc_err *e)
{
	struct acc_str s = p->call->out, one, inner;
	int rc = 0;
	p->a.io = "out";
	if (within(s, &inner))
		s = inner;
	for (uint32_t i = 0; rc == 0 && next_item(&s, &one); i++) {
		snprintf(p->pos, sizeof p->pos, "%u", i);
		rc = put_one(p, one, strlen(p->pos), 0, e);
	}
	return rc;
}

int
acc_debugmode_put(struct debug_log *d, const struct debug_call *call, struct acc_err *e)
{
	struct putting p = {.d = d, .call = call};
	acc_arena_reset(&d->mem);
	uint64_t *nth = acc_map_put(&d->nth, call->op, 0);
	if (nth == NULL)
		return acc_nomem(e);
	const int64_t k = (int64_t)(*nth)++;
	p.a = (struct argname){.op = call->op,
		.call = k,
		.pass = ACC_STR("forward"),
		.key = acc_str_made(acc_arena_printf(&d->mem, "%.*s.%lld.forward",
			ACC_PRS(call->op), (long long)k))};
	if (p.a.key.n == 0)
		return acc_nomem(e);
	d->calls++;
	p.hashes = hashes_of(call->given, count_tensors(call->args, 0));
	int rc = put_given(&p, e);
	p.hashes = hashes_of(call->made, count_tensors(call->out, 0));
	return rc < 0 ? rc : put_made(&p, e);
}
