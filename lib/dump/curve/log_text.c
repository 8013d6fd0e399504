/* What the grammars of logs share: pieces of a line. */
#include "dump/curve/log.h"

const char *
acc_log_find(struct acc_str s, const char *needle)
{
	return s.n == 0 ? NULL : memmem(s.p, s.n, needle, strlen(needle));
}

struct acc_str
acc_log_from(struct acc_str s, const char *p)
{
	return (struct acc_str){p, (uint32_t)(s.p + s.n - p)};
}

bool
acc_log_char(const char **p, const char *end, char c)
{
	const char *q = *p;
	while (q < end && (*q == ' ' || *q == '\t'))
		q++;
	if (q == end || *q != c)
		return false;
	*p = q + 1;
	return true;
}

bool
acc_log_int(const char **p, const char *end, int64_t *v)
{
	const char *q = *p;
	int64_t n = 0;
	while (q < end && (*q == ' ' || *q == '\t'))
		q++;
	const char *first = q;
	for (; q < end && *q >= '0' && *q <= '9'; q++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *q - '0', &n))
			return false;
	if (q == first)
		return false;
	*v = n;
	*p = q;
	return true;
}

bool
acc_log_of(const char **p, const char *end, int64_t *v, int64_t *of)
{
	return acc_log_int(p, end, v) && acc_log_char(p, end, '/') && acc_log_int(p, end, of);
}

bool
acc_log_part(struct acc_str *rest, char sep, struct acc_str *key, struct acc_str *value)
{
	if (rest->n == 0)
		return false;
	const char *p = rest->p, *end = p + rest->n, *q = memchr(p, sep, rest->n);
	/* A comma inside brackets divides nothing. */
	if (sep == ',' && q != NULL) {
		int depth = 0;
		for (q = p; q < end && (*q != ',' || depth > 0); q++)
			depth += *q == '[' || *q == '('                  ? 1
				 : depth > 0 && (*q == ']' || *q == ')') ? -1
									 : 0;
		q = q < end ? q : NULL;
	}
	uint32_t n = (uint32_t)((q == NULL ? end : q) - p);
	*rest = q == NULL ? (struct acc_str){end, 0} : acc_log_from(*rest, q + 1);
	const char *colon = n == 0 ? NULL : memchr(p, ':', n);
	const char *v = colon == NULL ? p : colon + 1;
	*key = acc_str_trim((struct acc_str){p, colon == NULL ? 0 : (uint32_t)(colon - p)});
	*value = acc_str_trim((struct acc_str){v, n - (uint32_t)(v - p)});
	return true;
}
