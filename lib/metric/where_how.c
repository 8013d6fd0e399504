/* What an error is, within the part of a tensor where it sits: a factor, an offset, another order. */
#include "metric/where.h"
#include "metric/limits.h"

#include "acc/say.h"

#include <math.h>
#include <stdio.h>

const char *const acc_where_hows[] = {"", "scale", "offset", "sign", "zero", "nan", "inf", "shift",
	"swap", "order"};

/* Of n numbers without a mean, one of a line explains the part r by chance in less than
 * (1 - r)^((n - 1) / 2) of all cases. */
static bool
no_chance(double r, double n)
{
	return r >= LIMIT_EXPLAINED &&
	       0.5 * (n - 1) * -log(1 - r < 1e-15 ? 1e-15 : 1 - r) >= LIMIT_CHANCE;
}

/* Are the device's numbers those of the bench but for what explains the part r of the difference? Where
 * they are noise of their own, or all the same, the difference is but what the bench has. `device`: their
 * squares, without what the bench's have no part in. One number that is repeated is one. */
static bool
explains(const struct where_tally *t, double r, double device)
{
	return no_chance(r, t->other) && t->s * (1 - r) <= (1 - LIMIT_EXPLAINED) * device;
}

static enum where_how
how_much(const struct where_tally *t, double *by)
{
	const double scale = t->xx > 0 ? t->xy * t->xy / (t->xx * t->s) : 0;
	const double offset = t->zz > 0 ? t->yz * t->yz / (t->zz * t->s) : 0;
	const double device = t->xx + 2 * t->xy + t->s, mean = t->xz + t->yz;
	if (offset > scale && explains(t, offset, device - mean * mean / t->zz)) {
		*by = t->yz / t->zz;
		return WHERE_OFFSET;
	}
	if (!explains(t, scale, device))
		return WHERE_UNKNOWN;
	*by = 1 + t->xy / t->xx;
	return fabs(*by + 1) < 0.01 ? WHERE_SIGN : WHERE_SCALE;
}

enum where_how
acc_where_how(const struct where_tally *t, double *by)
{
	*by = NAN;
	if (!(t->n > 0) || !(t->s > 0))
		return WHERE_UNKNOWN;
	if (t->nan + t->inf > 0)
		return t->nan >= LIMIT_EXPLAINED * t->s   ? WHERE_NAN
		       : t->inf >= LIMIT_EXPLAINED * t->s ? WHERE_INF
							  : WHERE_UNKNOWN;
	if (t->zero == t->n)
		return WHERE_ZERO;
	if (t->minus == t->n)
		return WHERE_SIGN;
	return how_much(t, by);
}

/* --- another order --- */

static double
apart(const double *x, const double *y)
{
	double d = 0;
	for (int k = 0; k < WHERE_SIGNS; k++)
		d += (x[k] - y[k]) * (x[k] - y[k]);
	return d;
}

static size_t
nearest(const double *x, const double (*b)[WHERE_SIGNS], size_t n)
{
	size_t at = 0;
	for (size_t i = 1; i < n; i++)
		if (apart(x, b[i]) < apart(x, b[at]))
			at = i;
	return at;
}

/* Does b, moved by k, explain a? What is moved out need not come in at the other end, but the rest, half of all slices at
 * least, has its part of the error, a quarter at least: where slices are the same, moving them explains nothing. */
static bool
moved(const double (*a)[WHERE_SIGNS], const double (*b)[WHERE_SIGNS], int64_t n, int64_t k,
	double sums)
{
	double before = 0, after = 0, all = 0;
	int64_t lo = k > 0 ? k : 0, hi = k > 0 ? n : n + k;
	if ((double)(hi - lo) * sums < 2 * LIMIT_CHANCE || hi - lo < n / 2)
		return false;
	for (int64_t i = lo; i < hi; i++) {
		before += apart(a[i], b[i]);
		after += apart(a[i], b[i - k]);
	}
	for (int64_t i = 0; i < n; i++)
		all += apart(a[i], b[i]);
	return before > 0 && before >= 0.25 * all && after <= (1 - LIMIT_EXPLAINED) * before;
}

static bool
shifted(const double (*a)[WHERE_SIGNS], const double (*b)[WHERE_SIGNS], size_t n, double sums,
	double *by)
{
	enum { ANCHORS = 16 };
	for (size_t i = 0; i < ANCHORS && i < n; i++) {
		size_t at = n <= ANCHORS ? i : i * (n - 1) / (ANCHORS - 1);
		int64_t k = (int64_t)at - (int64_t)nearest(a[at], b, n), len = (int64_t)n;
		/* Around the end it is the shorter way. */
		int64_t other = k > 0 ? k - len : k + len;
		if (k != 0 && moved(a, b, len, k, sums)) {
			*by = (double)k;
			return true;
		}
		if (k != 0 && moved(a, b, len, other, sums)) {
			*by = (double)other;
			return true;
		}
	}
	return false;
}

/* Is each slice of the device another one of the bench, none of them twice? How many moved. */
static size_t
permuted(const double (*a)[WHERE_SIGNS], const double (*b)[WHERE_SIGNS], size_t n)
{
	enum { MOST = 2048 };
	bool taken[MOST] = {false};
	double before = 0, after = 0;
	size_t other = 0;
	if (n > MOST)
		return 0;
	for (size_t i = 0; i < n; i++) {
		size_t j = apart(a[i], b[i]) == 0 ? i : nearest(a[i], b, n);
		if (taken[j])
			return 0;
		taken[j] = true;
		other += j != i;
		before += apart(a[i], b[i]);
		after += apart(a[i], b[j]);
	}
	return after <= (1 - LIMIT_EXPLAINED) * before ? other : 0;
}

enum where_how
acc_where_order(const double (*a)[WHERE_SIGNS], const double (*b)[WHERE_SIGNS], size_t n,
	double each, double *by)
{
	double sums = each < WHERE_SIGNS ? each : WHERE_SIGNS;
	if (n < 2)
		return WHERE_UNKNOWN;
	/* Slices of few elements are near each other by chance, and two of two may be exchanged. */
	if (n >= 4 && shifted(a, b, n, sums, by))
		return WHERE_SHIFT;
	*by = NAN;
	if (each < 8 && n < 16)
		return WHERE_UNKNOWN;
	size_t other = permuted(a, b, n);
	return other == 0 ? WHERE_UNKNOWN : other == 2 ? WHERE_SWAP : WHERE_ORDER;
}

/* Of a factor near 1, two digits of what it is more or less; no zeros at the end. */
static const char *
factor(struct acc_arena *m, double by)
{
	char buf[64];
	double off = fabs(by - 1);
	if (!(off < 0.1) || off < 1e-12)
		snprintf(buf, sizeof buf, "%.3g", by);
	else
		snprintf(buf, sizeof buf, "%.*f", (int)ceil(-log10(off)) + 1, by);
	size_t n = strlen(buf);
	while (n > 0 && strchr(buf, '.') != NULL && buf[n - 1] == '0' && strchr(buf, 'e') == NULL)
		buf[--n] = '\0';
	if (n > 0 && buf[n - 1] == '.')
		buf[n - 1] = '\0';
	return acc_say(m, "times %s", buf);
}

const char *
acc_where_how_name(struct acc_arena *m, enum where_how how, double by, int along)
{
	switch (how) {
	case WHERE_SCALE:
		return factor(m, by);
	case WHERE_OFFSET:
		return by < 0 ? acc_say(m, "minus %.3g", fabs(by))
			      : acc_say(m, "plus %.3g", fabs(by));
	case WHERE_SIGN:
		return "of the other sign";
	case WHERE_ZERO:
		return "all zeros";
	case WHERE_NAN:
		return "NaN";
	case WHERE_INF:
		return "Inf";
	case WHERE_SHIFT:
		return acc_say(m, "shifted by %.0f along axis %d", by, along);
	case WHERE_SWAP:
		return acc_say(m, "two exchanged along axis %d", along);
	case WHERE_ORDER:
		return acc_say(m, "in a different order along axis %d", along);
	case WHERE_UNKNOWN:
		break;
	}
	return "";
}
