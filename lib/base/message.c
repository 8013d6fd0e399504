/* The catalogue, and formats taken apart. */
#include "base/message.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* --- the catalogue: open addressing, made at its first use */

enum { SLOTS = 8192 };
static uint16_t slot[SLOTS];

static size_t
place(struct acc_str id)
{
	return (size_t)(acc_hash(id.p, id.n) % SLOTS);
}

static void
fill(void)
{
	for (size_t i = 0; i < acc_nmessages && i < SLOTS * 3 / 4; i++) {
		size_t k = place(acc_str(acc_messages[i].id));
		while (slot[k] != 0)
			k = (k + 1) % SLOTS;
		slot[k] = (uint16_t)(i + 1);
	}
}

const struct message *
acc_message_find(struct acc_str id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (id.n == 0)
		return NULL;
	pthread_once(&once, fill);
	for (size_t k = place(id); slot[k] != 0; k = (k + 1) % SLOTS)
		if (acc_str_is(id, acc_messages[slot[k] - 1].id))
			return &acc_messages[slot[k] - 1];
	return NULL;
}

/* --- formats */

static int
number(const char **p)
{
	int v = 0;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		v = v > INT_MAX / 20 ? v : v * 10 + (**p - '0');
	return v;
}

/* "*" or a number, at *p; a star takes the next argument, or with "2$" that one. */
static int
width(const char **p, int *next, bool *star)
{
	if (**p != '*')
		return **p >= '0' && **p <= '9' ? number(p) : -1;
	(*p)++;
	*star = true;
	const char *q = *p;
	if (number(&q) > 0 && *q == '$')
		*p = q + 1;
	else
		++*next;
	return -1;
}

bool
acc_conversion(const char *p, int *next, struct conversion *c)
{
	*c = (struct conversion){.width = -1, .precision = -1};
	while ((p = strchr(p, '%')) != NULL && p[1] == '%')
		p += 2;
	if (p == NULL)
		return false;
	c->at = p++;
	const char *q = p;
	const int given = number(&q);
	const bool placed = given > 0 && *q == '$';
	p = placed ? q + 1 : p;
	size_t n = strspn(p, "-+ #0'");
	memcpy(c->flags, p, n < sizeof c->flags ? n : sizeof c->flags - 1);
	p += n;
	c->first = *next;
	c->width = width(&p, next, &c->star_width);
	if (*p == '.') {
		p++;
		c->precision = width(&p, next, &c->star_precision);
		c->empty = !c->star_precision && c->precision <= 0;
		c->precision = c->precision < 0 && !c->star_precision ? 0 : c->precision;
	}
	n = strspn(p, "hlzjtL");
	memcpy(c->length, p, n < sizeof c->length ? n : sizeof c->length - 1);
	p += n;
	c->spec = *p;
	if (*p == '\0')
		return false;
	c->empty &= c->spec == 's';
	c->value = placed ? given : (*next)++;
	c->end = p + 1;
	return true;
}

/* A va_list as an argument that is changed. */
struct args {
	va_list ap;
};

/* One conversion alone, with its widths as numbers. */
static void
alone(const struct conversion *c, char *out, size_t size)
{
	char w[16] = "", p[16] = "";
	if (c->width >= 0)
		snprintf(w, sizeof w, "%d", c->width);
	if (c->precision >= 0)
		snprintf(p, sizeof p, ".%d", c->precision);
	snprintf(out, size, "%%%s%s%s%s%c", c->flags, w, p, c->length, c->spec);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* Of one argument: longer than any number of a sentence; -1 for a conversion that is not known. */
static int
print(char *buf, size_t size, const struct conversion *c, struct args *a)
{
	char f[64];
	alone(c, f, sizeof f);
	const char *l = c->length;
	if (strchr("aAeEfFgG", c->spec) != NULL)
		return l[0] == 'L' ? -1 : snprintf(buf, size, f, va_arg(a->ap, double));
	if (c->spec == 'p')
		return snprintf(buf, size, f, va_arg(a->ap, void *));
	if (strchr("diouxXc", c->spec) == NULL)
		return -1;
	if (strcmp(l, "ll") == 0)
		return snprintf(buf, size, f, va_arg(a->ap, long long));
	if (l[0] == 'l')
		return snprintf(buf, size, f, va_arg(a->ap, long));
	if (l[0] == 'z')
		return snprintf(buf, size, f, va_arg(a->ap, size_t));
	if (l[0] == 'j')
		return snprintf(buf, size, f, va_arg(a->ap, intmax_t));
	if (l[0] == 't')
		return snprintf(buf, size, f, va_arg(a->ap, ptrdiff_t));
	return snprintf(buf, size, f, va_arg(a->ap, int));
}
#pragma GCC diagnostic pop

static struct acc_str
bounded(const char *s, int precision)
{
	s = s == NULL ? "(null)" : s;
	return (struct acc_str){s,
		(uint32_t)(precision < 0 ? strlen(s) : strnlen(s, (size_t)precision))};
}

int
acc_format_args(const char *fmt, va_list ap, acc_put_arg *put, void *arg)
{
	struct args a;
	struct conversion c;
	char buf[400];
	int next = 1, rc = 0;
	va_copy(a.ap, ap);
	for (const char *p = fmt; rc == 0 && acc_conversion(p, &next, &c); p = c.end) {
		if (c.star_width)
			c.width = va_arg(a.ap, int);
		if (c.star_precision)
			c.precision = va_arg(a.ap, int);
		if (c.spec == 's') {
			const char *s = va_arg(a.ap, const char *);
			rc = put(arg, bounded(s, c.precision));
			continue;
		}
		int n = print(buf, sizeof buf, &c, &a);
		rc = n < 0 || n >= (int)sizeof buf ? ACC_EUNSUP
						   : put(arg, (struct acc_str){buf, (uint32_t)n});
	}
	va_end(a.ap);
	return rc;
}

/* --- messages */

enum { DEPTH = 200, MOST = 1 << 20 };

static int
conversions(const char *fmt)
{
	struct conversion c;
	int n = 0, next = 1;
	for (const char *p = fmt; acc_conversion(p, &next, &c); p = c.end)
		n++;
	return n;
}

struct show {
	char **item; /* terminated */
	uint32_t n;
	struct acc_buf *out;
};

/* Where the message that begins there ends; UINT32_MAX: it does not. */
static uint32_t
behind(const struct show *s, uint32_t at)
{
	for (uint64_t open = 1; open > 0; at++, open--) {
		if (at >= s->n)
			return UINT32_MAX;
		if (s->item[at][0] == '%')
			open += (uint64_t)conversions(s->item[at] + 1);
	}
	return at;
}

static bool show(struct show *s, uint32_t at, int depth);

/* Text between conversions, where %% is %. */
static bool
plain(struct show *s, const char *p, const char *end)
{
	for (; p < end; p++) {
		if (acc_buf_add(s->out, p, 1) < 0)
			return false;
		p += p[0] == '%' && p + 1 < end && p[1] == '%';
	}
	return s->out->n <= MOST;
}

/* The format shown, `id` that of the message: its conversion with the argument of that number is the
 * n-th, whose item begins at start[n]. */
static bool
substitute(struct show *s, const char *id, const char *shown, const uint32_t *start, int depth)
{
	struct conversion c, of;
	int next = 1;
	const char *p = shown;
	for (; acc_conversion(p, &next, &c); p = c.end) {
		if (!plain(s, p, c.at))
			return false;
		int n = 0, k = 1;
		const char *q = id;
		bool found = false;
		for (; !found && acc_conversion(q, &k, &of); q = of.end, n += !found)
			found = of.value == c.value;
		if (!found || (!c.empty && !show(s, start[n], depth + 1)))
			return false;
	}
	return plain(s, p, p + strlen(p));
}

static bool
show(struct show *s, uint32_t at, int depth)
{
	const char *item = s->item[at], *id = item + 1;
	if (depth > DEPTH)
		return false;
	if (item[0] == '=')
		return acc_buf_add(s->out, id, strlen(id)) == 0 && s->out->n <= MOST;
	if (item[0] != '%')
		return false;
	const struct message *m = acc_message_find(acc_str(id));
	const int n = conversions(id);
	if (n > ACC_SAID_ARGS || (depth == 0 && m == NULL))
		return false;
	uint32_t start[ACC_SAID_ARGS], from = at + 1;
	for (int i = 0; i < n && from != UINT32_MAX; i++) {
		start[i] = from;
		from = behind(s, from);
	}
	return from != UINT32_MAX && substitute(s, id, m == NULL ? id : m->zh, start, depth);
}

uint32_t
acc_message_items(const struct acc_str *item, uint32_t n)
{
	struct acc_arena mem = {0};
	struct show s = {.item = acc_alloc(&mem, (n + 1) * sizeof *s.item), .n = n};
	bool ok = s.item != NULL;
	for (uint32_t i = 0; ok && i < n; i++)
		ok = (s.item[i] = acc_arena_copy(&mem, item[i].p, item[i].n)) != NULL;
	const uint32_t end = ok && n > 0 ? behind(&s, 0) : UINT32_MAX;
	acc_arena_release(&mem);
	return end;
}

bool
acc_message_show(const struct acc_str *item, uint32_t n, struct acc_buf *out)
{
	struct acc_arena mem = {0};
	struct show s = {.item = acc_alloc(&mem, (n + 1) * sizeof *s.item), .n = n, .out = out};
	bool ok = n > 0 && s.item != NULL;
	for (uint32_t i = 0; ok && i < n; i++)
		ok = (s.item[i] = acc_arena_copy(&mem, item[i].p, item[i].n)) != NULL;
	ok = ok && behind(&s, 0) == n && show(&s, 0, 0);
	acc_arena_release(&mem);
	return ok;
}
