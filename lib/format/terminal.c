#include "acc/terminal.h"

#include <uchar.h>

static const char ellipsis[] = "\xe2\x80\xa6";

static size_t
columns(int32_t c)
{
	bool wide = (c >= 0x3000 && c <= 0xd7ff) || (c >= 0xf900 && c <= 0xfaff) ||
		    (c >= 0xff00 && c <= 0xff60) || (c >= 0x1f300 && c <= 0x1faff) ||
		    (c >= 0x20000 && c <= 0x3ffff);
	return wide ? 2 : 1;
}

size_t
acc_text_width(struct acc_str s)
{
	size_t w = 0;
	while (s.n > 0) {
		int32_t code;
		uint32_t n = acc_char(s, &code);
		w += columns(code);
		s = (struct acc_str){s.p + n, s.n - n};
	}
	return w;
}

/* The end of s that takes at most `most` columns. */
static struct acc_str
tail(struct acc_str s, size_t most)
{
	size_t w = acc_text_width(s);
	while (w > most) {
		int32_t code;
		uint32_t n = acc_char(s, &code);
		w -= columns(code);
		s = (struct acc_str){s.p + n, s.n - n};
	}
	return s;
}

/* As much of s as takes at most `most` columns; returns the columns it took. */
static size_t
put(FILE *out, struct acc_str s, size_t most)
{
	size_t at = 0;
	while (s.n > 0) {
		int32_t code;
		uint32_t n = acc_char(s, &code);
		if (at + columns(code) > most)
			break;
		if (acc_char_plain(code))
			fwrite(s.p, 1, n, out);
		else
			putc('?', out);
		at += columns(code);
		s = (struct acc_str){s.p + n, s.n - n};
	}
	return at;
}

size_t
acc_text_put(FILE *out, struct acc_str s, size_t most)
{
	if (acc_text_width(s) <= most)
		return put(out, s, most);
	if (most == 0)
		return 0;
	/* As of Functional.linear.12.backward.output.0: which call it is stands in the end. */
	size_t end = most * 3 / 5 < 21 ? most * 3 / 5 : most / 2 > 21 ? most / 2 : 21;
	size_t at = put(out, s, most - 1 - end);
	fputs(ellipsis, out);
	return at + 1 + put(out, tail(s, end), end);
}

/* May a line end between two characters that no blank parts? Chinese is written without, but
 * punctuation stays with what it belongs to. */
static bool
parts(int32_t before, int32_t after)
{
	static const char32_t opening[] = U"([{\u201c\u300a\u300c\u3010\uff08",
			      closing[] = U")]}%,.;:?!\u201d\u2026\u3001\u3002\u300b\u300d\u3011"
					  U"\uff01\uff05\uff09\uff0c\uff1a\uff1b\uff1f";
	if (columns(before) < 2 && columns(after) < 2)
		return false;
	for (size_t i = 0; opening[i] != 0; i++)
		if (before == (int32_t)opening[i])
			return false;
	for (size_t i = 0; closing[i] != 0; i++)
		if (after == (int32_t)closing[i])
			return false;
	return true;
}

/* What is not broken: up to a blank, or where a line may end. */
static struct acc_str
piece(struct acc_str s)
{
	int32_t before = 0, code;
	uint32_t n = 0;
	while (n < s.n && s.p[n] != ' ') {
		uint32_t more = acc_char((struct acc_str){s.p + n, s.n - n}, &code);
		if (n > 0 && parts(before, code))
			break;
		before = code;
		n += more;
	}
	return (struct acc_str){s.p, n};
}

void
acc_text_wrap(FILE *out, struct acc_str s, size_t width, size_t at, size_t hang)
{
	for (bool first = true, blank = false;; first = false) {
		struct acc_str word = piece(s);
		if (!first && width > 0 && at + blank + acc_text_width(word) > width) {
			fprintf(out, "\n%*s", (int)hang, "");
			at = hang;
		} else if (blank) {
			putc(' ', out);
			at++;
		}
		at += acc_text_put(out, word, SIZE_MAX);
		if (word.n == s.n)
			return;
		blank = s.p[word.n] == ' ';
		s = (struct acc_str){s.p + word.n + blank, s.n - word.n - blank};
	}
}
