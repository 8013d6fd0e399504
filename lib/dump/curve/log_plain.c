/* How lines of a log are laid bare: without colours, with ASCII's punctuation, each message a line. */
#include "dump/curve/log.h"

enum { WIDE = (char)0xef }; /* the first byte of punctuation of full width in UTF-8 */

/* Punctuation of full width, as Chinese input methods write it: U+FF01 to U+FF5E are ASCII. */
static const char *
narrow(const char *p, const char *end, struct acc_buf *buf, int *rc)
{
	const unsigned char *u = (const unsigned char *)p;
	unsigned c = end - p < 3 ? 0 : (u[0] & 0x0fU) << 12 | (u[1] & 0x3fU) << 6 | (u[2] & 0x3fU);
	const bool wide = c >= 0xff01 && c <= 0xff5e;
	const char ascii = (char)(c - 0xff01 + '!');
	*rc = acc_buf_add(buf, wide ? &ascii : p, 1);
	return p + (wide ? 3 : 1);
}

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Does a text write 2,4123 for 2.4123? Three digits behind a comma may be thousands, or a list goes on
 * behind them; 0,5 is none. */
bool
acc_log_commas(const uint8_t *p, size_t n)
{
	const char *s = (const char *)p;
	unsigned commas = 0, points = 0;
	for (size_t i = 1; i + 1 < n; i++) {
		if (!digit(s[i - 1]) || !digit(s[i + 1]) || (s[i] != ',' && s[i] != '.'))
			continue;
		size_t k = i + 1, first = i - 1;
		while (k < n && digit(s[k]))
			k++;
		while (first > 0 && digit(s[first - 1]))
			first--;
		const bool alone = first == 0 || strchr(" \t=:", s[first - 1]) != NULL;
		if (!alone || (k < n && (s[k] == ',' || s[k] == '.' || s[k] == ':')))
			continue;
		points += s[i] == '.';
		commas += s[i] == ',' && (k - i != 4 || (first == i - 1 && s[first] == '0'));
	}
	return commas >= 3 && points == 0;
}

/* Write such numbers with a point; *s is in buf then. 0 or ACC_ENOMEM. */
int
acc_log_points(struct acc_str *s, struct acc_buf *buf)
{
	if (s->n == 0)
		return 0;
	buf->n = 0;
	if (acc_buf_add(buf, s->p, s->n) < 0)
		return ACC_ENOMEM;
	for (size_t i = 1; i + 1 < buf->n; i++)
		if (buf->p[i] == ',' && digit((char)buf->p[i - 1]) && digit((char)buf->p[i + 1]))
			buf->p[i] = '.';
	*s = (struct acc_str){(const char *)buf->p, (uint32_t)buf->n};
	return 0;
}

/* Leave out the escape sequences of terminals, make full width narrow; *s is in buf then. 0 or
 * ACC_ENOMEM. */
int
acc_log_plain(struct acc_str *s, struct acc_buf *buf)
{
	const char *p = s->p, *end = p + s->n;
	int rc = 0;
	if (s->n == 0 || (memchr(p, '\033', s->n) == NULL && memchr(p, WIDE, s->n) == NULL))
		return 0;
	buf->n = 0;
	while (p < end && rc == 0) {
		const char *q = p;
		while (q < end && *q != '\033' && *q != WIDE)
			q++;
		rc = acc_buf_add(buf, p, (size_t)(q - p));
		p = q;
		if (p == end || rc < 0)
			break;
		if (*p == WIDE) {
			p = narrow(p, end, buf, &rc);
			continue;
		}
		if (++p < end && *p == '[')
			for (p++; p < end && !(*p >= '@' && *p <= '~'); p++)
				;
		p += p < end;
	}
	if (rc < 0)
		return ACC_ENOMEM;
	*s = (struct acc_str){(const char *)buf->p, (uint32_t)buf->n};
	return 0;
}

/* Where the bar in s ends, "| 45/100 [00:10<00:12,  4.44it/s, loss=1.2]" with its rate: behind its bracket;
 * NULL: there is none. */
static const char *
end_of_bar(struct acc_str s)
{
	const char *p = s.p, *end = p + s.n, *open = NULL;
	int64_t n, of;
	while (open == NULL && p < end && (p = memchr(p, '|', (size_t)(end - p))) != NULL) {
		const char *q = ++p;
		if (acc_log_of(&q, end, &n, &of) && acc_log_char(&q, end, '['))
			open = q;
	}
	int depth = 1;
	for (p = open; open != NULL && p < end && depth > 0; p++)
		depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
	return open != NULL && depth == 0 && memchr(open, '/', (size_t)(p - open)) != NULL ? p
											   : NULL;
}

void
acc_log_after_bar(struct acc_str *s, struct acc_str *rest)
{
	const char *p = s->n == 0 ? NULL : end_of_bar(*s);
	*rest = (struct acc_str){s->p, 0};
	if (p == NULL || acc_str_trim(acc_log_from(*s, p)).n == 0)
		return;
	*rest = acc_log_from(*s, p);
	s->n = (uint32_t)(p - s->p);
}

bool
acc_log_is_object(struct acc_str s)
{
	int depth = 0;
	bool text = false;
	for (uint32_t i = 0; i < s.n; i++) {
		if (text && s.p[i] == '\\')
			i++;
		else if (s.p[i] == '"')
			text = !text;
		else if (!text)
			depth += (s.p[i] == '{') - (s.p[i] == '}');
		if (depth == 0)
			return s.n > 2 && i == s.n - 1;
	}
	return false;
}
