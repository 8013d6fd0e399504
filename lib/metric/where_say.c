/* What a set of indices is called. */
#include "metric/where.h"

#include <stdio.h>

/* One index of an axis, and several. */
static const char *
noun(int axis, uint32_t ndim, bool several)
{
	if (axis == WHERE_FLAT || ndim == 1)
		return several ? "elements" : "element";
	if (ndim == 2 && axis == 0)
		return several ? "rows" : "row";
	if (ndim == 2)
		return several ? "columns" : "column";
	if (axis == (int)ndim - 1)
		return several ? "channels" : "channel";
	return several ? "indices" : "index";
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
list(const struct where_set *s, const char *last, char *buf, size_t size)
{
	size_t n = 0;
	for (int i = 0; i < s->nlist && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%lld",
			i == 0              ? ""
			: i + 1 == s->nlist ? last
					    : ", ",
			(long long)s->list[i]);
	return n;
}

void
acc_where_name(const struct where_set *s, uint32_t ndim, char *buf, size_t size)
{
	char some[160], of[48] = "";
	const char *one = noun(s->axis, ndim, false), *many = noun(s->axis, ndim, true);
	int64_t k;
	if (s->axis == WHERE_FLAT && ndim > 1)
		snprintf(of, sizeof of, " in row-major order");
	else if (ndim > 2)
		snprintf(of, sizeof of, " of axis %d", s->axis);
	if (s->kind == WHERE_SOME) {
		list(s, " and ", some, sizeof some);
		snprintf(buf, size, "%s %s%s", many, some, of);
	} else if (s->kind == WHERE_EVERY && s->width == 1) {
		char from[48] = "";
		if (s->first > 0)
			snprintf(from, sizeof from, " from %lld on", (long long)s->first);
		snprintf(buf, size, "every %lld%s %s%s%s", (long long)s->period, ordinal(s->period),
			one, of, from);
	} else if (s->kind == WHERE_EVERY) {
		snprintf(buf, size, "%lld %s of every %lld%s, from %lld on", (long long)s->width,
			many, (long long)s->period, of, (long long)s->first);
	} else if (s->hi - s->lo == 1) {
		snprintf(buf, size, "%s %lld%s", one, (long long)s->lo, of);
	} else {
		char at[64] = "";
		if (block(s, &k))
			snprintf(at, sizeof at, " (number %lld of blocks of %lld)", (long long)k,
				(long long)(s->hi - s->lo));
		if (s->hi == s->extent)
			snprintf(buf, size, "the last %lld %s%s", (long long)(s->hi - s->lo), many,
				of);
		else
			snprintf(buf, size, "%s %lld to %lld%s%s", many, (long long)s->lo,
				(long long)s->hi - 1, of, at);
	}
}

void
acc_where_slice(const struct where_set *s, char *buf, size_t size)
{
	if (s->kind == WHERE_SOME)
		list(s, ", ", buf, size);
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
