#include "acc/say.h"

#include <errno.h>
#include <stdio.h>

#include "base/message.h"

/* One more item of the message; what has no room leaves the message out. */
static int
item(struct acc_err *e, char how, struct acc_str s)
{
	const size_t room = sizeof e->said - e->said_size;
	if ((size_t)s.n + 2 > room || memchr(s.p, '\0', s.n) != NULL)
		return ACC_ELIMIT;
	char *p = e->said + e->said_size;
	p[0] = how;
	memcpy(p + 1, s.p, s.n);
	p[s.n + 1] = '\0';
	e->said_size += (uint16_t)(s.n + 2);
	e->nsaid++;
	return 0;
}

static int
put_arg(void *arg, struct acc_str s)
{
	const bool word = memchr(s.p, '%', s.n) == NULL && acc_message_find(s) != NULL;
	return item(arg, word ? '%' : '=', s);
}

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
	e->nsaid = e->said_size = 0;
	int rc = item(e, '%', acc_str(fmt));
	if (rc == 0)
		rc = acc_format_args(fmt, ap, put_arg, e);
	int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof e->msg ? (size_t)n : sizeof e->msg - 1;
	if (len > 0 && e->msg[len - 1] == ':') {
		e->sys = saved;
		snprintf(e->msg + len, sizeof e->msg - len, " %s", strerror(saved));
	}
	if (rc < 0)
		e->nsaid = e->said_size = 0;
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
acc_fail_v(struct acc_err *e, int code, const char *fmt, va_list ap)
{
	return fail(e, code, false, 0, fmt, ap);
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

/* Names come from files and may hold anything; a terminal must not obey them. */
static void
mask(char *buf)
{
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

void
acc_err_text(const struct acc_err *e, char *buf, size_t size)
{
	if (size == 0)
		return;
	char pos[40] = "";
	if (e->has_pos)
		snprintf(pos, sizeof pos, "byte %llu: ", (unsigned long long)e->pos);
	snprintf(buf, size, "%s%s%s%s", e->where, e->where[0] != '\0' ? ": " : "", pos, e->msg);
	mask(buf);
}

/* The message as items, for as long as e lives; how many. */
static uint32_t
items(const struct acc_err *e, struct acc_str *out)
{
	const char *p = e->said;
	for (uint32_t i = 0; i < e->nsaid && i < ACC_SAID_ARGS + 1; i++, p += strlen(p) + 1)
		out[i] = acc_str(p);
	return e->nsaid;
}

/* The message alone, in the language chosen; false: only in English. */
static bool
shown(const struct acc_err *e, char *buf, size_t size)
{
	struct acc_str item[ACC_SAID_ARGS + 1];
	struct acc_buf b = {0};
	bool ok = strcmp(acc_lang(), "en") != 0 && acc_message_show(item, items(e, item), &b);
	if (ok)
		snprintf(buf, size, "%.*s%s%s", (int)b.n, (const char *)b.p, e->sys != 0 ? " " : "",
			e->sys != 0 ? acc_tr(strerror(e->sys)) : "");
	acc_buf_release(&b);
	return ok;
}

void
acc_err_said(const struct acc_err *e, char *buf, size_t size)
{
	char msg[512], pos[40] = "";
	if (size == 0 || !shown(e, msg, sizeof msg)) {
		acc_err_text(e, buf, size);
		return;
	}
	if (e->has_pos)
		snprintf(pos, sizeof pos, acc_tr("byte %llu: "), (unsigned long long)e->pos);
	snprintf(buf, size, "%s%s%s%s", acc_tr(e->where), e->where[0] != '\0' ? ": " : "", pos,
		msg);
	mask(buf);
}

const char *
acc_said_err(struct acc_arena *m, const struct acc_err *e)
{
	struct acc_rec r = {0};
	struct acc_str item[ACC_SAID_ARGS + 2];
	uint32_t n = items(e, item);
	struct acc_err plain = *e;
	mask(plain.where);
	mask(plain.msg);
	/* As a record would hand it on. */
	struct acc_val v = acc_texts(item, n);
	int rc = acc_put(&r, "", "msg", acc_ctext(plain.msg));
	if (rc == 0 && n > 0 && e->sys == 0)
		rc = acc_put(&r, "", "msg.msg", v);
	const char *msg = rc < 0 ? NULL : acc_got_said(m, &r, "", "msg");
	acc_rec_release(&r);
	if (msg == NULL)
		return NULL;
	if (e->where[0] == '\0' && !e->has_pos)
		return msg;
	if (!e->has_pos)
		return acc_say(m, "%s: %s", plain.where, msg);
	if (e->where[0] == '\0')
		return acc_say(m, "byte %llu: %s", (unsigned long long)e->pos, msg);
	return acc_say(m, "%s: byte %llu: %s", plain.where, (unsigned long long)e->pos, msg);
}

int
acc_put_err(struct acc_rec *r, const char *prefix, const struct acc_err *e)
{
	struct acc_arena mem = {0};
	int rc = acc_put_said(r, prefix, "err", &mem, acc_said_err(&mem, e));
	acc_arena_release(&mem);
	return rc;
}
