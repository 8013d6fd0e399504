#include "io/parse.h"

#include <math.h>
#include <stdlib.h>

const uint8_t *
acc_number_scan(const uint8_t *p, struct acc_number *v)
{
	*v = (struct acc_number){.negative = *p == '-'};
	const uint8_t *first = p + v->negative, *q = acc_digits(first, &v->w), *point = q;
	size_t ndigits = (size_t)(q - first);
	if (ndigits == 0)
		v->bad = "a number without digits";
	else if (ndigits > 1 && *first == '0')
		v->bad = "a number with a leading zero";
	if (*q == '.') {
		v->real = true;
		q = acc_digits(point + 1, &v->w);
		size_t after = (size_t)(q - point - 1);
		if (after == 0)
			v->bad = "a number that ends in its point";
		ndigits += after;
		v->exp10 = -(int)(after < ACC_NUMBER_LIMIT ? after : ACC_NUMBER_LIMIT);
	}
	v->digits = ndigits;
	/* Only worth the time where the digits might not fit 64 bits. */
	for (const uint8_t *z = first; v->digits > 19 && (*z == '0' || *z == '.'); z++)
		v->digits -= *z == '0';
	if ((*q | 0x20) == 'e') {
		v->real = true;
		bool minus = *++q == '-';
		if (minus || *q == '+')
			q++;
		if (!acc_digit(*q))
			v->bad = "a number without digits in its exponent";
		int ex = 0;
		for (; acc_digit(*q); q++)
			ex = ex < 100000 ? ex * 10 + (*q - '0') : ex;
		v->exp10 += minus ? -ex : ex;
	}
	return q;
}

__extension__ typedef unsigned __int128 u128;

/* w / 10^k, correctly rounded; w > 0, 1 <= k <= 27. Exact integer division of w by 5^k, both
 * shifted up to 64 bits, gives at least 62 bits; what remains only matters as being not zero,
 * which the last bit may stand for. Halving k times is exact: the result is >= 1e-27. */
static double
divide(uint64_t w, int k)
{
	static const uint64_t five[28] = {1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125,
		9765625, 48828125, 244140625, 1220703125, 6103515625, 30517578125, 152587890625,
		762939453125, 3814697265625, 19073486328125, 95367431640625, 476837158203125,
		2384185791015625, 11920928955078125, 59604644775390625, 298023223876953125,
		1490116119384765625, 7450580596923828125};
	int up = __builtin_clzll(w), dup = __builtin_clzll(five[k]);
	u128 n = (u128)(w << up) << 63;
	uint64_t d = five[k] << dup, q = (uint64_t)(n / d);
	if ((u128)q * d != n)
		q |= 1;
	/* As ldexp, of which the result is normal. */
	const uint64_t bits = (uint64_t)(1023 + dup - up - 63 - k) << 52;
	double power;
	memcpy(&power, &bits, sizeof power);
	return (double)q * power;
}

/* Any number, by strtod. It gets no point, which it would read as the locale says. */
static double
slow(const struct acc_number *v, const uint8_t *s, size_t n)
{
	char text[ACC_NUMBER_LIMIT + 16];
	size_t len = 0;
	for (size_t i = 0; i < n && (s[i] | 0x20) != 'e'; i++)
		if (acc_digit(s[i]))
			text[len++] = (char)s[i];
	snprintf(text + len, sizeof text - len, "e%d", v->exp10);
	return strtod(text, NULL);
}

double
acc_number_f64(const struct acc_number *v, const uint8_t *s, size_t n)
{
	/* Where both operands are exact, the one rounding is right (Clinger). */
	static const double ten[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	double f;
	if (v->digits <= 19 && v->w <= UINT64_C(1) << 53 && v->exp10 >= -22 && v->exp10 <= 22) {
		f = (double)v->w;
		f = v->exp10 < 0 ? f / ten[-v->exp10] : f * ten[v->exp10];
	} else if (v->digits <= 19 && v->exp10 == 0) {
		f = (double)v->w;
	} else if (v->digits <= 19 && v->exp10 < 0 && v->exp10 >= -27 && v->w > 0) {
		f = divide(v->w, -v->exp10);
	} else {
		f = slow(v, s, n);
	}
	return v->negative ? -f : f;
}
