#include "acc/terminal.h"

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

void
acc_text_wrap(FILE *out, struct acc_str s, size_t width, size_t at, size_t hang)
{
	for (bool first = true;; first = false) {
		const char *blank = s.n == 0 ? NULL : memchr(s.p, ' ', s.n);
		struct acc_str word = {s.p, blank == NULL ? s.n : (uint32_t)(blank - s.p)};
		if (!first && width > 0 && at + 1 + acc_text_width(word) > width) {
			fprintf(out, "\n%*s", (int)hang, "");
			at = hang;
		} else if (!first) {
			putc(' ', out);
			at++;
		}
		at += acc_text_put(out, word, SIZE_MAX);
		if (blank == NULL)
			return;
		s = (struct acc_str){blank + 1, s.n - word.n - 1};
	}
}
