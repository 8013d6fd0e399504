/* Conditions of a shell script, as far as they are known. */
#include "io/shell_impl.h"

static enum tri
tri(bool b)
{
	return b ? YES : NO;
}

static enum tri
numbers(const struct acc_shell_word *a, struct acc_str op, const struct acc_shell_word *b)
{
	int64_t x, y;
	if (!acc_str_int(a->s, &x) || !acc_str_int(b->s, &y))
		return UNKNOWN;
	return acc_str_is(op, "-eq")   ? tri(x == y)
	       : acc_str_is(op, "-ne") ? tri(x != y)
	       : acc_str_is(op, "-lt") ? tri(x < y)
	       : acc_str_is(op, "-le") ? tri(x <= y)
	       : acc_str_is(op, "-gt") ? tri(x > y)
	       : acc_str_is(op, "-ge") ? tri(x >= y)
				       : UNKNOWN;
}

static enum tri
binary(const struct acc_shell_word *a, struct acc_str op, const struct acc_shell_word *b)
{
	char pattern[256];
	if (a->open || b->open)
		return UNKNOWN;
	if (op.n > 0 && op.p[0] == '-')
		return numbers(a, op, b);
	if (!acc_str_is(op, "=") && !acc_str_is(op, "==") && !acc_str_is(op, "!="))
		return UNKNOWN;
	bool same = acc_str_eq(a->s, b->s);
	if (!same && !b->quoted && b->s.n < sizeof pattern) {
		memcpy(pattern, b->s.p, b->s.n);
		pattern[b->s.n] = '\0';
		same = acc_glob(pattern, a->s);
	}
	return tri(same == (op.p[0] != '!'));
}

/* A condition without "and" and "or". */
static enum tri
one(const struct acc_shell_word *w, uint32_t n)
{
	bool negate = false;
	enum tri t = UNKNOWN;
	while (n > 1 && acc_str_is(w->s, "!") && !w->quoted) {
		negate = !negate;
		w++;
		n--;
	}
	if (n == 1 && !w->open)
		t = tri(w->s.n > 0);
	else if (n == 2 && !w[1].open && (acc_str_is(w->s, "-z") || acc_str_is(w->s, "-n")))
		t = tri((w[1].s.n == 0) == acc_str_is(w->s, "-z"));
	else if (n == 3)
		t = binary(&w[0], w[1].s, &w[2]);
	return negate ? shell_not(t) : t;
}

/* "or" of "and"s. */
enum tri
acc_shell_test(const struct acc_shell_word *w, uint32_t n)
{
	enum tri any = NO, all = YES;
	if (n == 0)
		return UNKNOWN;
	for (uint32_t i = 0, start = 0; i <= n; i++) {
		bool and = i < n && !w[i].quoted &&
			   (acc_str_is(w[i].s, "&&") || acc_str_is(w[i].s, "-a"));
		bool or = i < n && !w[i].quoted &&
			  (acc_str_is(w[i].s, "||") || acc_str_is(w[i].s, "-o"));
		if (i < n && !and&&! or)
			continue;
		enum tri t = one(w + start, i - start);
		all = all == NO || t == NO ? NO : all == UNKNOWN || t == UNKNOWN ? UNKNOWN : YES;
		start = i + 1;
		if (and)
			continue;
		any = any == YES || all == YES           ? YES
		      : any == UNKNOWN || all == UNKNOWN ? UNKNOWN
							 : NO;
		all = YES;
	}
	return any;
}
