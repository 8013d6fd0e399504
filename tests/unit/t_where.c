/* The structure of an error, against errors whose structure is known since they are made here:
 * places, what is there, dtypes, shapes, noise. Nothing may be named in noise alone. */
#include "tap.h"

#include "acc/metric.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 70000 };

static double a[MOST], b[MOST];
static bool bad[MOST], got[MOST];
static struct acc_ref ref;
static size_t count;
static uint64_t seed = 1;

/* --- numbers by chance: splitmix64 --- */

static uint64_t
bits(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static int64_t
below(int64_t n)
{
	return (int64_t)(bits() % (uint64_t)n);
}

static double
uniform(void)
{
	return ((double)(bits() >> 11) + 0.5) * 0x1p-53;
}

static double
normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* v with so many bits of significand, as the dtype has. */
static double
narrow(double v)
{
	const int kept = ref.dtype == ACC_F32 ? 24 : ref.dtype == ACC_F16 ? 11 : 8;
	int e;
	double m = frexp(v, &e);
	return ldexp(nearbyint(ldexp(m, kept)), e - kept);
}

/* --- cases --- */

enum place { NOWHERE, ONE, RUN, TAIL, BLOCK, EVERY, PART, BOTH, FLAT, PLACES };
enum what { FACTOR, OFFSET, SIGN, ZERO, NANS, ANY, WHATS };
static const char *const hows[] = {"scale", "offset", "sign", "zero", "nan", ""};

static const int64_t shapes[][4] = {{600}, {4096}, {64, 96}, {512, 33}, {2, 77, 160}, {8, 64, 128},
	{2, 8, 32, 64}, {4, 16, 14, 14}, {20000}, {3, 11000}};

static void
take_shape(size_t k)
{
	ref = (struct acc_ref){.dtype = (enum acc_dtype[]){ACC_F32, ACC_F16, ACC_BF16}[below(3)]};
	count = 1;
	for (ref.ndim = 0; ref.ndim < 4 && shapes[k][ref.ndim] > 0; ref.ndim++) {
		ref.shape[ref.ndim] = shapes[k][ref.ndim];
		count *= (size_t)ref.shape[ref.ndim];
	}
}

static int64_t
at(size_t i, uint32_t axis)
{
	int64_t stride = 1;
	for (uint32_t k = axis + 1; k < ref.ndim; k++)
		stride *= ref.shape[k];
	return (int64_t)i / stride % ref.shape[axis];
}

/* Which elements are bad; false: no such place in this shape. */
static bool
mark(enum place place)
{
	const uint32_t axis = (uint32_t)below(ref.ndim), other = axis == 0 ? 1 : 0;
	const int64_t n = ref.shape[axis];
	int64_t lo = 0, hi = 0, period = 0;
	if (place != NOWHERE && place != FLAT && n < 8)
		return false;
	if ((place == BOTH || place == FLAT) && ref.ndim < 2)
		return false;
	switch (place) {
	case ONE:
	case BOTH:
		lo = below(n);
		hi = lo + 1;
		break;
	case RUN:
		hi = 2 + below(n / 4);
		lo = below(n - hi);
		hi += lo;
		break;
	case TAIL:
		lo = n - 1 - below(n / 3);
		hi = n;
		break;
	case BLOCK:
		hi = n >= 128 ? 32 : 2;
		lo = hi * below(n / hi - 1);
		hi += lo;
		break;
	case EVERY:
		period = 2 + below(n / 3 < 12 ? n / 3 - 1 : 11);
		lo = below(period);
		hi = lo + 1;
		break;
	case PART:
		period = n >= 64 ? 16 : 4;
		hi = period / 2;
		break;
	case FLAT:
		lo = (int64_t)count - 5 - below(ref.shape[ref.ndim - 1] * 2);
		break;
	case NOWHERE:
	case PLACES:
		break;
	}
	for (size_t i = 0; i < count; i++) {
		int64_t k = at(i, axis);
		bad[i] = place != NOWHERE && (period > 0 ? k % period : k) >= lo &&
			 (period > 0 ? k % period : k) < hi;
		if (place == BOTH)
			bad[i] &= at(i, other) >= ref.shape[other] / 4 &&
				  at(i, other) < ref.shape[other] / 2;
		if (place == FLAT)
			bad[i] = (int64_t)i >= lo;
	}
	return true;
}

/* Numbers, some of them large; noise of summation, of one rounding, or none. */
static void
fill(void)
{
	const int noise = (int)below(3);
	const double u = acc_unit(ref.dtype), wide = below(2) ? 1 : 0;
	for (size_t i = 0; i < count; i++)
		b[i] = narrow(normal() * exp(wide * sin((double)at(i, ref.ndim - 1) * 1.7)));
	for (size_t i = 0; i < count; i++)
		a[i] = narrow(noise == 0   ? b[i]
			      : noise == 1 ? b[i] * (1 + u * (2 * uniform() - 1))
					   : b[i] + 3 * u * normal());
}

/* 40 times the noise; by: what it is. */
static double
spoil(enum what what)
{
	const double u = acc_unit(ref.dtype), by = 0.003 > 120 * u ? 0.003 : 120 * u;
	for (size_t i = 0; i < count; i++) {
		if (!bad[i])
			continue;
		a[i] = what == FACTOR   ? narrow(a[i] * (1 + by))
		       : what == OFFSET ? narrow(a[i] + 2 * by)
		       : what == SIGN   ? -a[i]
		       : what == ZERO   ? 0
		       : what == NANS   ? NAN
					: narrow(a[i] + (below(2) ? 2 : -2) * by * (1 + uniform()));
	}
	return what == FACTOR ? 1 + by : what == OFFSET ? 2 * by : NAN;
}

static int
by_value(const void *x, const void *y)
{
	return (*(const double *)x > *(const double *)y) -
	       (*(const double *)x < *(const double *)y);
}

static double
median(void)
{
	static double v[MOST];
	for (size_t i = 0; i < count; i++)
		v[i] = fabs(b[i]);
	qsort(v, count, sizeof *v, by_value);
	return v[(count - 1) / 2];
}

/* --- what is said of them --- */

static uint64_t state[64];
static struct acc_subject subject;

static struct acc_val
value(const char *key)
{
	return acc_metric_find(key)->value(&subject);
}

static const struct acc_second *
measure(void)
{
	static struct acc_reading r;
	const struct acc_second *pass = acc_metric_find("m.where")->second;
	uint64_t same = 0, kinds = 0;
	for (size_t i = 0; i < count; i++) {
		same += a[i] == b[i];
		kinds += isnan(a[i]);
	}
	r.two.n = count;
	r.two.same = same;
	r.two.kind_diff = kinds;
	r.scale = median();
	pass->begin(state, &r, &ref, &ref);
	do {
		for (size_t i = 0, n; i < count; i += n) {
			n = count - i < 1000 ? count - i : 1000;
			pass->chunk(state, a + i, b + i, n);
		}
	} while (pass->more(state) > 0);
	subject = (struct acc_subject){.second = state};
	return pass;
}

/* Indices as m.where.set has them: is i one of them? */
static bool
in_set(const char *s, int64_t i)
{
	char *p;
	int64_t lo = strtoll(s, &p, 10), hi;
	if (strncmp(p, "::", 2) == 0)
		return i % strtoll(p + 2, NULL, 10) == lo;
	while (*p == ',') {
		if (i == lo)
			return true;
		lo = strtoll(p + 2, &p, 10);
	}
	if (*p != ':')
		return i == lo;
	hi = p[1] == '\0' ? INT64_MAX : strtoll(p + 1, &p, 10);
	if (*p == '%')
		return (i % strtoll(p + 1, NULL, 10)) >= lo && (i % strtoll(p + 1, NULL, 10)) < hi;
	return i >= lo && i < hi;
}

/* The elements of the place that is named; false: none is. */
static bool
named(void)
{
	struct acc_val axes = value("m.where.axis"), sets = value("m.where.set");
	if (axes.type != ACC_V_INTS)
		return false;
	for (size_t i = 0; i < count; i++) {
		got[i] = true;
		for (uint32_t k = 0; k < axes.n; k++)
			got[i] &= in_set(sets.texts[k].p,
				axes.ints[k] < 0 ? (int64_t)i : at(i, (uint32_t)axes.ints[k]));
	}
	return true;
}

static bool
right(enum place place, enum what what, double by)
{
	struct acc_val how = value("m.where.how"), is = value("m.where.by");
	struct acc_str said = how.type == ACC_V_TEXT ? how.s : ACC_STR("");
	size_t n = 0;
	if (place == NOWHERE)
		return value("m.where").type == ACC_V_NIL;
	if (!named())
		return false;
	for (size_t i = 0; i < count; i++) {
		/* Of zero another sign, no factor and no zero is to be seen. */
		if (got[i] != bad[i] && (b[i] != 0 || a[i] != 0))
			return false;
		n += bad[i];
	}
	if (n < 12 && what != NANS) /* one number may be anything */
		return true;
	return acc_str_is(said, hows[what]) && (isnan(by) || fabs(is.f / by - 1) < 0.2);
}

static void
made(void)
{
	static const char *const names[] = {"noise alone", "one index", "a run", "a tail",
		"a block", "every k-th", "a part of every k", "two axes",
		"the end of row-major order"};
	unsigned n[PLACES] = {0}, good[PLACES] = {0};
	for (int round = 0; round < PLACES; round++)
		for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
			const enum place place = (enum place)((size_t)round + k) % PLACES;
			const enum what what = (enum what)below(WHATS);
			take_shape(k);
			if (!mark(place))
				continue;
			fill();
			double by = spoil(what);
			const struct acc_second *pass = measure();
			bool is = right(place, what, by);
			n[place]++;
			good[place] += is;
			if (!is)
				printf("# shape %zu, place %d, what %d, %s: %s\n", k, place, what,
					acc_dtype_of(ref.dtype)->name,
					value("m.where").type == ACC_V_TEXT ? value("m.where").s.p
									    : "nothing");
			pass->end(state);
		}
	unsigned all = 0, all_good = 0;
	for (int p = 0; p < PLACES; p++) {
		all += n[p];
		all_good += good[p];
		ok(n[p] >= 5 && good[p] * 10 >= n[p] * 7, "%s: %u of %u", names[p], good[p], n[p]);
	}
	ok(good[NOWHERE] == n[NOWHERE], "nothing is named in noise");
	ok(all_good * 100 >= all * 95, "95 of 100 are right: %u of %u", all_good, all);
}

/* Noise that is not alike everywhere names no place: rows that err more or less than others, halves of
 * two (samples of a batch), a few roundings to 16 bits that fell otherwise, kept in f32. */
static void
uneven(void)
{
	unsigned n = 0, quiet = 0;
	for (int round = 0; round < 6; round++)
		for (size_t k = 2; k < 8; k++, n++) {
			take_shape(k);
			memset(bad, 0, sizeof bad);
			fill();
			const double u = acc_unit(ref.dtype);
			const int kind = round % 3;
			static double row[1024];
			for (size_t i = 0; i < sizeof row / sizeof *row; i++)
				row[i] = exp(0.8 * normal());
			for (size_t i = 0; i < count; i++) {
				double noise = 20 * u * normal(),
				       more = row[at(i, ref.ndim - 1) % 1024];
				if (kind == 0)
					more = row[at(i, ref.ndim - 2) % 1024];
				if (kind == 1)
					more = i < count / 2 ? 1 : 7;
				a[i] = narrow(b[i] + noise * more);
				if (kind == 2) {
					b[i] = ldexp(nearbyint(ldexp(b[i], 5)), -5);
					a[i] = b[i] + (below(40) == 0 && fabs(b[i]) > 1
								      ? 0x1p-7 * b[i]
								      : 0);
					a[i] = ldexp(nearbyint(ldexp(a[i], 5)), -5);
				}
			}
			const struct acc_second *pass = measure();
			const bool none = value("m.where").type == ACC_V_NIL;
			if (!none)
				printf("# shape %zu, kind %d: %s\n", k, kind, value("m.where").s.p);
			quiet += none;
			pass->end(state);
		}
	ok(quiet >= n - 1, "of uneven noise nothing is said: %u of %u", quiet, n);
}

/* What is no factor and no offset: numbers that are noise on both sides, less of it on the device; the
 * same number everywhere. */
static void
unlike(void)
{
	unsigned n = 0, quiet = 0;
	for (size_t k = 2; k < 9; k++)
		for (int constant = 0; constant < 2; constant++, n++) {
			take_shape(k);
			ref.dtype = ACC_F32;
			memset(bad, 0, sizeof bad);
			for (size_t i = 0; i < count; i++) {
				b[i] = constant ? 0.25 : narrow(1e-7 * normal());
				a[i] = constant ? 0.26 : narrow(0.05e-7 * normal());
			}
			const struct acc_second *pass = measure();
			quiet += value("m.where").type == ACC_V_NIL;
			pass->end(state);
		}
	ok(quiet == n, "noise against less noise, and one number, are no factor: %u of %u", quiet,
		n);
}

/* The same, moved or in another order along an axis. */
static void
orders(void)
{
	unsigned good = 0, n = 0;
	for (size_t k = 2; k < 9; k++)
		for (int reverse = 0; reverse < 2; reverse++, n++) {
			take_shape(k);
			memset(bad, 0, sizeof bad);
			fill();
			const uint32_t axis = ref.ndim - 1;
			const int64_t len = ref.shape[axis], by = 1 + below(4);
			static double moved[MOST];
			for (size_t i = 0; i < count; i++) {
				int64_t c = at(i, axis);
				int64_t from = reverse ? len - 1 - c : (c - by + len) % len;
				moved[i] = a[(int64_t)i - c + from];
			}
			memcpy(a, moved, sizeof a);
			const struct acc_second *pass = measure();
			struct acc_val how = value("m.where.how"), is = value("m.where.by");
			bool right_one = how.type == ACC_V_TEXT &&
					 acc_str_is(how.s, reverse ? "order" : "shift") &&
					 (reverse || is.f == (double)by) &&
					 value("m.where.along").i == axis;
			if (!right_one)
				printf("# shape %zu, %s by %lld: %s\n", k,
					reverse ? "order" : "shift", (long long)by,
					value("m.where").type == ACC_V_TEXT ? value("m.where").s.p
									    : "nothing");
			good += right_one;
			pass->end(state);
		}
	ok(good >= n - 2, "shifts and other orders: %u of %u", good, n);
}

/* Rows that are one number each, of which an element is off: to move columns explains nothing. */
static void
alike(void)
{
	unsigned good = 0, n = 0;
	for (size_t wrong = 0; wrong < 32; wrong++, n++) {
		take_shape(2);
		ref.dtype = ACC_F32;
		ref.shape[0] = 4;
		ref.shape[1] = 8;
		count = 32;
		memset(bad, 0, sizeof bad);
		for (size_t i = 0; i < count; i++)
			a[i] = b[i] = narrow(sin((double)(i / 8)) + 2);
		a[wrong] += 0.5;
		const struct acc_second *pass = measure();
		struct acc_val how = value("m.where.how");
		good += how.type != ACC_V_TEXT || !acc_str_is(how.s, "shift");
		pass->end(state);
	}
	ok(good == n, "columns that are the same are not shifted: %u of %u", good, n);
}

int
main(void)
{
	made();
	uneven();
	unlike();
	orders();
	alike();
	return done();
}
