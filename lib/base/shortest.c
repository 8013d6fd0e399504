/* The shortest decimal that reads back as a double.
 *
 * R. Giulietti, "The Schubfach way to render doubles" (2020): of the decimals with k digits behind the
 * point, k the largest such that at most two lie within the rounding interval of v, and of those with one
 * digit less, at most one lies within. All is computed to 2 bits below the digits of v, by a power of ten
 * of 128 bits and rounding to odd. */
#include "acc/base.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 wide;

/* Of 10^k = f 2^e with 2^127 <= f < 2^128, for all that a double asks for: f, rounded up. */
enum { POW10_FIRST = -292, POW10_LAST = 324 };
static uint64_t pow10_128[POW10_LAST - POW10_FIRST + 1][2];

/* The first 128 bits of a number, one more in the last place if there is a rest. */
static void
first_bits(const uint32_t *n, int len, bool rest, uint64_t f[2])
{
	while (n[len - 1] == 0)
		len--;
	wide v = 0;
	for (int i = 1; i <= 4; i++)
		v = v << 32 | (len >= i ? n[len - i] : 0);
	const uint32_t next = len > 4 ? n[len - 5] : 0;
	const int shift = __builtin_clz(n[len - 1]);
	v = v << shift | (uint32_t)((uint64_t)next << shift >> 32);
	rest |= (uint32_t)(next << shift) != 0;
	for (int i = 0; i < len - 5; i++)
		rest |= n[i] != 0;
	v += rest;
	f[0] = (uint64_t)(v >> 64);
	f[1] = (uint64_t)v;
}

/* 10^k has the bits of 5^k. */
static void
fill(void)
{
	enum { UP = 24, DOWN = 27 };
	uint32_t up[UP] = {1}, down[DOWN] = {[DOWN - 1] = 1}; /* 5^k, and 2^832 / 5^k */
	for (int k = 0; k <= POW10_LAST; k++) {
		first_bits(up, UP, false, pow10_128[k - POW10_FIRST]);
		uint64_t carry = 0;
		for (int i = 0; i < UP; i++, carry >>= 32)
			up[i] = (uint32_t)(carry += (uint64_t)up[i] * 5);
	}
	for (int k = -1; k >= POW10_FIRST; k--) {
		uint64_t carry = 0;
		for (int i = DOWN - 1; i >= 0; i--, carry %= 5)
			down[i] = (uint32_t)((carry = carry << 32 | down[i]) / 5);
		first_bits(down, DOWN, true, pow10_128[k - POW10_FIRST]);
	}
}

/* floor of log10(2^q), or of log10(3/4 2^q); of log2(10^k). For all that a double asks for. */
static int
log10_pow2(int q, bool three_quarters)
{
	return (q * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}
static int
log2_pow10(int k)
{
	return (k * 1741647) >> 19;
}

/* g c / 2^128, of which bit 0 is set too where the rest is not 0. g is rounded up, by less than 1: that
 * shows in the lowest bit of the rest alone. */
static uint64_t
times(const uint64_t g[2], uint64_t c)
{
	wide low = (wide)g[1] * c;
	wide v = (wide)g[0] * c + (uint64_t)(low >> 64);
	return (uint64_t)(v >> 64) | ((uint64_t)v > 1);
}

/* v = digits 10^*exponent, v > 0 and finite. */
static uint64_t
shortest(double v, int *exponent)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
	const int e = (int)(bits >> 52);
	const uint64_t c = e == 0 ? fraction : fraction | UINT64_C(1) << 52;
	const int q = (e == 0 ? 1 : e) - 1075;
	if (q <= 0 && q > -53 && (c & ((UINT64_C(1) << -q) - 1)) == 0) {
		*exponent = 0;
		return c >> -q;
	}
	/* Doubles below a power of two lie closer than above it. What is rounded to even is v where
	 * its last bit is 0. */
	const bool closer = fraction == 0 && e > 1, even = (c & 1) == 0;
	const int k = log10_pow2(q, closer), h = q + log2_pow10(-k) + 1;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, fill);
	const uint64_t *g = pow10_128[-k - POW10_FIRST];
	const uint64_t low = times(g, (4 * c - 2 + closer) << h) + !even;
	const uint64_t at = times(g, 4 * c << h);
	const uint64_t high = times(g, (4 * c + 2) << h) - !even;
	const uint64_t s = at / 4;
	if (s >= 10) {
		const uint64_t ten = s / 10;
		const bool below = low <= 40 * ten, above = 40 * ten + 40 <= high;
		if (below != above) {
			*exponent = k + 1;
			return ten + above;
		}
	}
	*exponent = k;
	const bool below = low <= 4 * s, above = 4 * s + 4 <= high;
	if (below != above)
		return s + above;
	return s + (at > 4 * s + 2 || (at == 4 * s + 2 && (s & 1) != 0));
}

/* Its decimal digits into d, without zeros at the end, which *exponent has instead; how many. */
static int
spell(uint64_t n, int *exponent, char d[20])
{
	char room[20];
	int at = sizeof room;
	for (; n % 10 == 0; n /= 10)
		++*exponent;
	for (; n > 0; n /= 10)
		room[--at] = (char)('0' + n % 10);
	const int len = (int)sizeof room - at;
	memcpy(d, room + at, (size_t)len);
	return len;
}

static char *
put(char *p, const char *s, int n)
{
	memcpy(p, s, (size_t)n);
	return p + n;
}

int
acc_f64_digits(double v)
{
	int exponent, n = 0;
	if (v == 0 || !isfinite(v))
		return 0;
	uint64_t digits = shortest(fabs(v), &exponent);
	while (digits % 10 == 0)
		digits /= 10;
	for (uint64_t more = 1; n < 20 && more <= digits; more *= 10)
		n++;
	return n;
}

int
acc_f64_repr(double v, char *buf, size_t size)
{
	if (isnan(v))
		return snprintf(buf, size, "nan");
	if (isinf(v))
		return snprintf(buf, size, v < 0 ? "-inf" : "inf");
	char out[40], d[20] = "0", *p = out;
	int exponent = 0, n = 1;
	if (v != 0)
		n = spell(shortest(fabs(v), &exponent), &exponent, d);
	const int point = exponent + n; /* digits before it */
	if (signbit(v))
		*p++ = '-';
	if (point <= -4 || point > 16) {
		*p++ = d[0];
		if (n > 1) {
			*p++ = '.';
			p = put(p, d + 1, n - 1);
		}
		p += snprintf(p, 8, "e%c%02d", point - 1 < 0 ? '-' : '+', abs(point - 1));
	} else if (point <= 0) {
		p = put(p, "0.000", 2 - point);
		p = put(p, d, n);
	} else if (point >= n) {
		p = put(p, d, n);
		p = put(p, "0000000000000000", point - n);
		p = put(p, ".0", 2);
	} else {
		p = put(p, d, point);
		*p++ = '.';
		p = put(p, d + point, n - point);
	}
	const size_t len = (size_t)(p - out);
	if (size > 0) {
		memcpy(buf, out, len < size ? len : size - 1);
		buf[len < size ? len : size - 1] = '\0';
	}
	return (int)len;
}
