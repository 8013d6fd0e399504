#include "io/lines.h"

/* Consume the rest of a line of which nothing more is wanted. 1: its end was found; 0: the
 * input ended; < 0. */
static int
skip_rest(struct acc_lines *l, struct acc_err *e)
{
	const uint8_t *p;
	size_t n;
	int rc = 1;
	while (rc > 0) {
		n = acc_bytes_peek(l->b, &p);
		const uint8_t *nl = n == 0 ? NULL : memchr(p, '\n', n);
		acc_bytes_skip(l->b, nl == NULL ? n : (size_t)(nl - p) + 1);
		if (nl != NULL)
			return 1;
		rc = acc_bytes_more(l->b, &p, &n, e);
	}
	return rc;
}

int
acc_lines_next(struct acc_lines *l, struct acc_str *line, struct acc_err *e)
{
	const uint8_t *p, *nl;
	size_t seen = 0;
	int rc = 1;
	acc_bytes_skip(l->b, l->used);
	l->used = 0;
	if (l->too_long && (rc = skip_rest(l, e)) <= 0)
		return rc;
	l->too_long = l->cut = false;
	size_t n = acc_bytes_peek(l->b, &p);
	for (;;) {
		size_t have = n > ACC_LINE_LIMIT ? (size_t)ACC_LINE_LIMIT + 1 : n;
		nl = have == seen ? NULL : memchr(p + seen, '\n', have - seen);
		if (nl != NULL || n > ACC_LINE_LIMIT)
			break;
		seen = n;
		rc = acc_bytes_more(l->b, &p, &n, e);
		if (rc < 0)
			return rc;
		if (rc == 0 && n == 0)
			return 0;
		if (rc == 0)
			break;
	}
	l->too_long = nl == NULL && n > ACC_LINE_LIMIT;
	l->cut = nl == NULL && !l->too_long;
	size_t len = nl != NULL ? (size_t)(nl - p) : l->too_long ? (size_t)ACC_LINE_LIMIT : n;
	l->used = nl != NULL ? len + 1 : len;
	l->no++;
	*line = (struct acc_str){(const char *)p, (uint32_t)len};
	return 1;
}

static uint32_t
four(const char *p)
{
	uint32_t w;
	memcpy(&w, p, sizeof w);
	return w;
}

static unsigned
slot(const char *p)
{
	uint16_t two;
	memcpy(&two, p, sizeof two);
	return (two * 40503u >> 8) & 4095;
}

/* Wu and Manber's table for words of four bytes and blocks of two. */
uint32_t
acc_sieve_add(struct acc_sieve *s, const char *word)
{
	if (s->n == 0)
		memset(s->shift, 3, sizeof s->shift);
	for (int i = 0; i < s->n; i++)
		if (s->word[i] == four(word))
			return UINT32_C(1) << i;
	if (s->n == ACC_SIEVE_WORDS)
		return 0;
	for (int at = 0; at < 3; at++) {
		uint8_t *shift = &s->shift[slot(word + at)];
		if (*shift > 2 - at)
			*shift = (uint8_t)(2 - at);
	}
	s->word[s->n] = four(word);
	return UINT32_C(1) << s->n++;
}

uint32_t
acc_sieve_find(const struct acc_sieve *s, struct acc_str line)
{
	const char *p = line.p, *end = line.p + line.n;
	uint32_t found = 0;
	while (end - p >= 4) {
		unsigned shift = s->shift[slot(p + 2)];
		if (shift > 0) {
			p += shift;
			continue;
		}
		uint32_t w = four(p++);
		for (int i = 0; i < s->n; i++)
			found |= (uint32_t)(s->word[i] == w) << i;
	}
	return found;
}
