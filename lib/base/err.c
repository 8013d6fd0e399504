#include "acc/base.h"

#include <errno.h>
#include <stdio.h>

__attribute__((format(printf, 5, 0))) static int
fail(struct acc_err *e, int code, bool has_pos, uint64_t pos, const char *fmt, va_list ap)
{
	int saved = errno;
	if (e == NULL || e->code != 0)
		return code;
	e->code = code;
	e->sys = 0;
	e->has_pos = has_pos;
	e->pos = pos;
	int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof e->msg ? (size_t)n : sizeof e->msg - 1;
	if (len > 0 && e->msg[len - 1] == ':') {
		e->sys = saved;
		snprintf(e->msg + len, sizeof e->msg - len, " %s", strerror(saved));
	}
	return code;
}

int
acc_fail(struct acc_err *e, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fail(e, code, false, 0, fmt, ap);
	va_end(ap);
	return code;
}

int
acc_nomem(struct acc_err *e)
{
	return acc_fail(e, ACC_ENOMEM, ACC_NOMEM_TEXT);
}

int
acc_fail_at(struct acc_err *e, int code, uint64_t pos, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fail(e, code, true, pos, fmt, ap);
	va_end(ap);
	return code;
}

int
acc_err_in(struct acc_err *e, const char *where)
{
	if (e == NULL)
		return 0;
	if (e->code != 0 && e->where[0] == '\0') {
		size_t n = strlen(where);
		/* The tail of a long path says more than its head. */
		if (n >= sizeof e->where)
			snprintf(e->where, sizeof e->where, "...%s",
				where + n - (sizeof e->where - 4));
		else
			memcpy(e->where, where, n + 1);
	}
	return e->code;
}

void
acc_err_text(const struct acc_err *e, char *buf, size_t size)
{
	if (size == 0)
		return;
	char pos[40] = "";
	if (e->has_pos)
		snprintf(pos, sizeof pos, "byte %llu: ", (unsigned long long)e->pos);
	snprintf(buf, size, "%s%s%s%s", e->where, e->where[0] != '\0' ? ": " : "", pos, e->msg);
	/* Names come from files and may hold anything; a terminal must not obey them. */
	struct acc_str left = acc_str(buf);
	char *to = buf;
	while (left.n > 0) {
		int32_t code;
		uint32_t n = acc_char(left, &code);
		if (acc_char_plain(code))
			memmove(to, left.p, n);
		else
			*to = '?';
		to += acc_char_plain(code) ? n : 1;
		left.p += n;
		left.n -= n;
	}
	*to = '\0';
}
