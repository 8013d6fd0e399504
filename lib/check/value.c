/* What the text of a parameter means. */
#include "check/check.h"
#include "acc/say.h"
#include "io/literal.h"

#include <math.h>

const char *const acc_check_level[] = {"hint", "warning", "error"};

enum dialect
acc_check_dialect_of(struct acc_str name)
{
	enum dialect d = acc_dialect_of(name);
	return d == DIALECT_EXPORT ? DIALECT_ENV : d;
}

const char *
acc_check_called(enum dialect d)
{
	static const char *const names[DIALECT_N] = {
		[DIALECT_OTHER] = "",
		[DIALECT_MINDFORMERS] = "MindFormers",
		[DIALECT_MEGATRON] = "Megatron-LM",
		[DIALECT_DEEPSPEED] = "DeepSpeed",
		[DIALECT_HFARGS] = "TrainingArguments",
		[DIALECT_HF] = "transformers",
		[DIALECT_MSPROBE] = "msprobe",
		[DIALECT_MSDUMP] = "MindSpore's dump",
		[DIALECT_PTDBG] = "ptdbg_ascend",
		[DIALECT_MACA] = "maca_tools",
		[DIALECT_CODE] = "the script",
		[DIALECT_LAUNCH] = "the launcher",
		[DIALECT_ENV] = "the environment",
		[DIALECT_PIP] = "pip",
		[DIALECT_EXPORT] = "the environment",
	};
	return names[d];
}

static bool
is_one_of(struct acc_str s, const char *list)
{
	for (const char *p = list; *p != '\0'; p += strlen(p) + 1)
		if (acc_str_is(s, p))
			return true;
	return false;
}

static struct acc_str
data_type(struct acc_str s)
{
	static const char *const prefix[] = {"torch.", "mstype.", "ms.", "mindspore.", "jnp.",
		"np."};
	struct acc_str t = s;
	for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
		if (acc_str_starts(s, prefix[i]))
			t = (struct acc_str){s.p + strlen(prefix[i]),
				s.n - (uint32_t)strlen(prefix[i])};
	if (is_one_of(t, "bf16\0bfloat16\0"))
		return ACC_STR("bf16");
	if (is_one_of(t, "fp16\0float16\0half\0f16\0"))
		return ACC_STR("fp16");
	if (is_one_of(t, "fp32\0float32\0float\0f32\0single\0"))
		return ACC_STR("fp32");
	return s;
}

static struct acc_str
fold(struct acc_str s, struct acc_arena *mem)
{
	char *p = acc_arena_copy(mem, s.p, s.n);
	uint32_t n = 0;
	if (p == NULL)
		return (struct acc_str){NULL, 0};
	bool list = s.n > 0 && (s.p[0] == '[' || s.p[0] == '(');
	for (uint32_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (list && (c == ' ' || c == '"' || c == '\''))
			continue;
		p[n++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	p[n] = '\0';
	return (struct acc_str){p, n};
}

/* "3", "0-2" or its quotes, as an element of a list of steps or ranks. */
static bool
range(struct acc_str s, int64_t *lo, int64_t *hi)
{
	struct acc_literal l;
	s = acc_str_trim(s);
	if (s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0])
		s = (struct acc_str){s.p + 1, s.n - 2};
	const char *dash = s.n < 2 ? NULL : memchr(s.p + 1, '-', s.n - 1);
	const uint32_t first = dash == NULL ? s.n : (uint32_t)(dash - s.p);
	if (!acc_literal_all((struct acc_str){s.p, first}, &l) || !l.integer || l.i < 0)
		return false;
	*lo = *hi = l.i;
	if (dash == NULL)
		return true;
	if (!acc_literal_all((struct acc_str){dash + 1, s.n - first - 1}, &l) || !l.integer)
		return false;
	*hi = l.i;
	return *hi >= *lo;
}

/* The numbers that a list of ranges is short for, so that all ways to write it are one value:
 * [0, "2-4"] of msprobe, 0|2-4 of MindSpore. Not a list, or more numbers than anyone records: left
 * as it is written. */
static struct acc_val
number_list(struct acc_str s, struct acc_arena *mem)
{
	enum { MOST = 256, DIGITS = 21 };
	const bool list = s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']';
	const char mark = list ? ',' : '|';
	int64_t lo = 0, hi = 0;
	size_t n = 0, at = 1;
	if (!list && (s.n == 0 || memchr(s.p, '|', s.n) == NULL))
		return acc_nil();
	char *p = acc_alloc(mem, (size_t)MOST * DIGITS + 2);
	struct acc_str rest = list ? (struct acc_str){s.p + 1, s.n - 2} : s;
	for (bool more = p != NULL; more;) {
		const char *end = rest.n == 0 ? NULL : memchr(rest.p, mark, rest.n);
		const uint32_t len = end == NULL ? rest.n : (uint32_t)(end - rest.p);
		if (!range((struct acc_str){rest.p, len}, &lo, &hi) ||
			hi - lo >= (int64_t)(MOST - n))
			return acc_nil();
		for (; lo <= hi; lo++, n++)
			at += (size_t)snprintf(p + at, DIGITS + 1, "%lld,", (long long)lo);
		more = end != NULL;
		if (more)
			rest = (struct acc_str){end + 1, rest.n - len - 1};
	}
	if (p == NULL)
		return acc_nil();
	p[0] = '[';
	p[at - 1] = ']';
	return n == 1 ? acc_int(hi) : acc_text((struct acc_str){p, (uint32_t)at});
}

struct acc_val
acc_check_mean(struct acc_str text, bool plain, struct acc_arena *mem)
{
	struct acc_literal l;
	text = acc_str_trim(text);
	if (text.n >= 2 && (text.p[0] == '"' || text.p[0] == '\'') &&
		text.p[text.n - 1] == text.p[0])
		text = (struct acc_str){text.p + 1, text.n - 2};
	if (!plain && acc_literal_all(text, &l))
		return l.integer ? acc_int(l.i) : acc_f64(l.v);
	const struct acc_val many = plain ? acc_nil() : number_list(text, mem);
	if (many.type != ACC_V_NIL)
		return many;
	struct acc_str s = fold(text, mem);
	/* An address says nothing of what lies there. */
	if (s.p == NULL || s.n == 0 || is_one_of(s, "none\0null\0auto\0") ||
		memmem(s.p, s.n, " object at 0x", 13) != NULL)
		return acc_nil();
	if (!plain && is_one_of(s, "true\0false\0"))
		return acc_bool(s.p[0] == 't');
	return acc_text(plain ? s : data_type(s));
}

bool
acc_check_same(const struct acc_val *a, const struct acc_val *b)
{
	double x, y;
	bool p, q, na = acc_as_f64(a, &x), nb = acc_as_f64(b, &y);
	if (acc_as_bool(a, &p))
		x = p, na = true;
	if (acc_as_bool(b, &q))
		y = q, nb = true;
	if (na && nb)
		return x == y || fabs(x - y) <= 1e-9 * fmax(fabs(x), fabs(y));
	return acc_val_eq(a, b);
}

const char *
acc_check_text(const struct acc_val *v, struct acc_arena *mem)
{
	char buf[40];
	switch (v->type) {
	case ACC_V_NIL:
		return "";
	case ACC_V_BOOL:
		return v->b ? "true" : "false";
	case ACC_V_TEXT:
		return acc_arena_copy(mem, v->s.p, v->s.n);
	case ACC_V_INT:
		return acc_say(mem, "%lld", (long long)v->i);
	default:
		break;
	}
	double x = 0;
	acc_as_f64(v, &x);
	if (x == floor(x) && fabs(x) < 1e15)
		return acc_say(mem, "%.0f", x);
	acc_f64_repr(x, buf, sizeof buf);
	return acc_arena_copy(mem, buf, strlen(buf));
}

bool
acc_check_before(struct acc_str a, struct acc_str b)
{
	while (a.n > 0 || b.n > 0) {
		uint64_t x[2] = {0, 0};
		struct acc_str *s[2] = {&a, &b};
		for (int k = 0; k < 2; k++) {
			while (s[k]->n > 0 && *s[k]->p >= '0' && *s[k]->p <= '9') {
				x[k] = x[k] < 1000000 ? x[k] * 10 + (uint64_t)(*s[k]->p - '0')
						      : x[k];
				s[k]->p++, s[k]->n--;
			}
			/* 2.6.0rc1: what follows the numbers does not count. */
			if (s[k]->n > 0 && *s[k]->p == '.')
				s[k]->p++, s[k]->n--;
			else
				s[k]->n = 0;
		}
		if (x[0] != x[1])
			return x[0] < x[1];
	}
	return false;
}
