/* What a set of indices is called. */
#include "metric/where.h"

#include "acc/say.h"

#include <stdio.h>

/* One index of an axis, and several. */
static const char *
noun(int axis, uint32_t ndim, bool several)
{
	if (axis == WHERE_FLAT || ndim == 1)
		return several ? ACC_MSG("elements") : ACC_MSG("element");
	if (ndim == 2 && axis == 0)
		return several ? ACC_MSG("rows") : ACC_MSG("row");
	if (ndim == 2)
		return several ? ACC_MSG("columns") : ACC_MSG("column");
	if (axis == (int)ndim - 1)
		return several ? ACC_MSG("channels") : ACC_MSG("channel");
	return several ? ACC_MSG("indices") : ACC_MSG("index");
}

static const char *
ordinal(int64_t n)
{
	if (n % 100 / 10 == 1)
		return "th";
	return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* Is it one of the blocks of 2^k indices that the axis is cut into? Then which. */
static bool
block(const struct where_set *s, int64_t *which)
{
	int64_t n = s->hi - s->lo;
	if (s->kind != WHERE_RANGE || n < 2 || (n & (n - 1)) != 0 || s->lo % n != 0 ||
		s->extent % n != 0)
		return false;
	*which = s->lo / n;
	return true;
}

static size_t
list(const struct where_set *s, char *buf, size_t size)
{
	size_t n = 0;
	for (int i = 0; i < s->nlist && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%lld", i == 0 ? "" : ", ",
			(long long)s->list[i]);
	return n;
}

/* "3, 5 and 7" */
static const char *
named(struct acc_arena *m, const struct where_set *s)
{
	const char *text = "";
	for (int i = 0; i < s->nlist && text != NULL; i++)
		text = i == 0 ? acc_arena_printf(m, "%lld", (long long)s->list[i])
		       : i + 1 < s->nlist
			       ? acc_arena_printf(m, "%s, %lld", text, (long long)s->list[i])
			       : acc_say(m, "%s and %lld", text, (long long)s->list[i]);
	return text;
}

/* Of blocks: which one, or "". */
static const char *
numbered(struct acc_arena *m, const struct where_set *s)
{
	int64_t k;
	return !block(s, &k) ? ""
			     : acc_say(m, " (number %lld of blocks of %lld)", (long long)k,
				       (long long)(s->hi - s->lo));
}

static const char *
name(struct acc_arena *m, const struct where_set *s, const char *one, const char *many,
	const char *of)
{
	const char *more;
	if (s->kind == WHERE_SOME) {
		more = named(m, s);
		return more == NULL ? NULL : acc_say(m, "%s %s%s", many, more, of);
	}
	if (s->kind == WHERE_EVERY && s->width == 1) {
		more = s->first > 0 ? acc_say(m, " from %lld on", (long long)s->first) : "";
		return more == NULL ? NULL
				    : acc_say(m, "every %lld%s %s%s%s", (long long)s->period,
					      ordinal(s->period), one, of, more);
	}
	if (s->kind == WHERE_EVERY)
		return acc_say(m, "%lld %s of every %lld%s, from %lld on", (long long)s->width,
			many, (long long)s->period, of, (long long)s->first);
	if (s->hi - s->lo == 1)
		return acc_say(m, "%s %lld%s", one, (long long)s->lo, of);
	if (s->hi == s->extent)
		return acc_say(m, "the last %lld %s%s", (long long)(s->hi - s->lo), many, of);
	more = numbered(m, s);
	return more == NULL ? NULL
			    : acc_say(m, "%s %lld to %lld%s%s", many, (long long)s->lo,
				      (long long)s->hi - 1, of, more);
}

const char *
acc_where_name(struct acc_arena *m, const struct where_set *s, uint32_t ndim)
{
	const char *of = "";
	if (s->axis == WHERE_FLAT && ndim > 1)
		of = " in row-major order";
	else if (ndim > 2)
		of = acc_say(m, " of axis %d", s->axis);
	return of == NULL ? NULL
			  : name(m, s, noun(s->axis, ndim, false), noun(s->axis, ndim, true), of);
}

void
acc_where_slice(const struct where_set *s, char *buf, size_t size)
{
	if (s->kind == WHERE_SOME)
		list(s, buf, size);
	else if (s->kind == WHERE_EVERY && s->width == 1)
		snprintf(buf, size, "%lld::%lld", (long long)s->first, (long long)s->period);
	else if (s->kind == WHERE_EVERY)
		snprintf(buf, size, "%lld:%lld%%%lld", (long long)s->first,
			(long long)s->first + s->width, (long long)s->period);
	else if (s->hi - s->lo == 1)
		snprintf(buf, size, "%lld", (long long)s->lo);
	else if (s->hi == s->extent)
		snprintf(buf, size, "%lld:", (long long)s->lo);
	else
		snprintf(buf, size, "%lld:%lld", (long long)s->lo, (long long)s->hi);
}
