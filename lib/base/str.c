#include "acc/base.h"

#include <ctype.h>
#include <stdlib.h>

struct acc_str
acc_str_made(const char *cstr)
{
	return cstr == NULL ? (struct acc_str){NULL, 0} : acc_str(cstr);
}

bool
acc_str_eq(struct acc_str a, struct acc_str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

int
acc_str_cmp(struct acc_str a, struct acc_str b)
{
	uint32_t n = a.n < b.n ? a.n : b.n;
	int d = n == 0 ? 0 : memcmp(a.p, b.p, n);
	return d != 0 ? d : (a.n > b.n) - (a.n < b.n);
}

bool
acc_str_starts(struct acc_str a, const char *prefix)
{
	for (uint32_t i = 0; prefix[i] != '\0'; i++)
		if (i == a.n || a.p[i] != prefix[i])
			return false;
	return true;
}

bool
acc_str_ends(struct acc_str a, const char *suffix)
{
	size_t n = strlen(suffix);
	return a.n >= n && memcmp(a.p + a.n - n, suffix, n) == 0;
}

uint32_t
acc_char(struct acc_str s, int32_t *code)
{
	const unsigned char *p = (const unsigned char *)s.p;
	uint32_t n = p[0] < 0x80   ? 1
		     : p[0] < 0xc2 ? 0
		     : p[0] < 0xe0 ? 2
		     : p[0] < 0xf0 ? 3
		     : p[0] < 0xf5 ? 4
				   : 0;
	*code = -1;
	if (n == 0 || n > s.n)
		return 1;
	int32_t c = n == 1 ? p[0] : p[0] & (0x7f >> n);
	for (uint32_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (p[i] & 0x3f);
	}
	/* Longer than it needs to be, half of a pair of UTF-16, or beyond the last. */
	if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || (c >= 0xd800 && c < 0xe000) ||
		c > 0x10ffff)
		return 1;
	*code = c;
	return n;
}

bool
acc_char_plain(int32_t code)
{
	return code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0x2028 || code > 0x202e) &&
	       (code < 0x2066 || code > 0x2069);
}

/* The set at *p (just after '['): does c belong to it? Moves *p behind its ']'. */
static bool
in_set(const char **p, char c)
{
	const char *q = *p;
	bool negate = *q == '!' || *q == '^', hit = false;
	if (negate)
		q++;
	for (const char *first = q; *q != '\0' && (*q != ']' || q == first);) {
		char lo = *q, hi = lo;
		if (q[1] == '-' && q[2] != ']' && q[2] != '\0') {
			hi = q[2];
			q += 2;
		}
		if (lo <= c && c <= hi)
			hit = true;
		q++;
	}
	*p = *q == ']' ? q + 1 : q;
	return hit != negate;
}

bool
acc_glob(const char *pattern, struct acc_str s)
{
	const char *p = pattern, *star = NULL;
	uint32_t i = 0, mark = 0;
	/* On a mismatch the last star takes one more character; earlier stars never need to. */
	while (i < s.n || *p == '*') {
		if (*p == '*') {
			star = ++p;
			mark = i;
			continue;
		}
		const char *q = p;
		bool ok = false;
		if (*q == '?') {
			ok = true;
			q++;
		} else if (*q == '[') {
			q++;
			ok = in_set(&q, s.p[i]);
		} else if (*q != '\0') {
			if (*q == '\\' && q[1] != '\0')
				q++;
			ok = *q++ == s.p[i];
		}
		if (ok) {
			p = q;
			i++;
		} else if (star != NULL && mark < s.n) {
			p = star;
			i = ++mark;
		} else {
			return false;
		}
	}
	return *p == '\0';
}

bool
acc_word_in(const char *words, struct acc_str s)
{
	/* At the first byte most are told apart. */
	for (const char *end; *words != '\0'; words = *end == ' ' ? end + 1 : end) {
		const bool may = s.n == 0 || *words == s.p[0];
		for (end = words; *end != '\0' && *end != ' '; end++)
			;
		const size_t n = (size_t)(end - words);
		if (may && n == s.n && memcmp(words, s.p, n) == 0)
			return true;
	}
	return false;
}

bool
acc_str_int(struct acc_str s, int64_t *out)
{
	const bool minus = s.n > 0 && s.p[0] == '-';
	const uint64_t most = (uint64_t)INT64_MAX + minus;
	uint64_t v = 0;
	if (s.n == minus || s.n >= 24)
		return false;
	for (uint32_t i = minus; i < s.n; i++) {
		const unsigned digit = (unsigned)(uint8_t)s.p[i] - '0';
		if (digit > 9 || v > (most - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = minus ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

const char *
acc_framework_versions(const char *framework, char name[64])
{
	const size_t n = framework == NULL ? 0 : strcspn(framework, " ,");
	const bool versions = n > 0 && framework[n] == ' ' &&
			      isdigit((unsigned char)framework[n + 1]);
	snprintf(name, 64, "%.*s", versions ? (int)n : 63, framework == NULL ? "" : framework);
	return versions ? framework : NULL;
}
