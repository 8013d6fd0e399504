/* What a log says in numbers, and nothing understood: lines of one form, with another number each time. */
#include "dump/curve/log.h"

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
among(char c, const char *of)
{
	return c != '\0' && strchr(of, c) != NULL;
}

/* Rates, and bars: how fast it goes is no metric. */
static bool
is_rate(struct acc_str s)
{
	static const char *const marks[] = {"it/s", "s/it", "/s]", "/step", "ETA"};
	bool found = false;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		found = found || acc_log_find(s, marks[i]) != NULL;
	return found;
}

/* Of time, or memory. */
static bool
has_unit(const char *p, const char *end)
{
	static const char *const units[] = {"s", "ms", "us", "sec", "secs", "seconds", "min",
		"mins", "minutes", "h", "hours", "KB", "MB", "GB", "KiB", "MiB", "GiB"};
	while (p < end && *p == ' ')
		p++;
	const char *q = p;
	while (q < end && (*q | 0x20) >= 'a' && (*q | 0x20) <= 'z')
		q++;
	bool found = q > p && q < end && *q == '/'; /* samples/sec */
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		found = found || acc_str_is((struct acc_str){p, (uint32_t)(q - p)}, units[i]);
	return found;
}

/* The number at p: behind it; *decimal: with a point, and no part of a time, a version or a file's name. */
static const char *
number(struct acc_str s, const char *p, bool *decimal)
{
	const char *end = s.p + s.n, *q = p, *point = NULL;
	while (q < end &&
		(digit(*q) || (*q == '.' && point == NULL && q + 1 < end && digit(q[1])))) {
		point = *q == '.' ? q : point;
		q++;
	}
	if (q + 2 < end && (*q | 0x20) == 'e' &&
		(digit(q[1]) || (among(q[1], "+-") && digit(q[2]))))
		for (q += 2; q < end && digit(*q); q++)
			;
	*decimal = point != NULL && (p == s.p || among(p[-1], " \t=:([,|{'\"+-")) &&
		   (p - s.p < 2 || p[-1] != ':' || !digit(p[-2])) &&
		   (q == end || among(*q, " \t,;)]}|%'\"")) && !has_unit(q, end);
	return q;
}

void
acc_log_unread(struct log_unread *u, struct acc_str s, uint64_t line)
{
	const uint64_t prime = UINT64_C(1099511628211);
	uint64_t form = UINT64_C(14695981039346656037), values = form;
	bool any = false, one;
	s = acc_str_trim(s);
	for (const char *p = s.p, *end = p + s.n, *q; p < end; p = q) {
		q = p + 1;
		if (digit(*p)) {
			q = number(s, p, &one);
			any = any || one;
			values = one ? (values ^ acc_hash(p, (size_t)(q - p))) * prime : values;
			form = (form ^ '0') * prime;
		} else if (!among(*p, " \t+-")) {
			form = (form ^ (unsigned char)*p) * prime;
		}
	}
	if (!any || is_rate(s))
		return;
	struct log_form *f = &u->form[form % LOG_FORMS];
	if (f->line == 0) {
		f->line = line;
		f->form = form;
		snprintf(f->text, sizeof f->text, "%.*s",
			s.n < sizeof f->text ? (int)s.n : (int)sizeof f->text - 1, s.p);
	} else if (f->form == form && f->values != values) {
		f->lines += f->lines == 0 ? 2 : 1;
	}
	f->values = f->form == form ? values : f->values;
}

void
acc_log_say_unread(const struct log_unread *u, struct acc_dump_ctx *c, const char *path)
{
	const struct log_form *most = NULL;
	uint64_t n = 0;
	for (size_t i = 0; i < LOG_FORMS; i++) {
		n += u->form[i].lines;
		if (u->form[i].lines > 0 && (most == NULL || u->form[i].lines > most->lines))
			most = &u->form[i];
	}
	if (most != NULL)
		acc_dump_note(c, path,
			"line %llu: its numbers were not understood, nor those of lines like it: '%s' (%llu in all)",
			(unsigned long long)most->line, most->text, (unsigned long long)n);
}
