#include "payload/pay.h"

#include <math.h>

size_t
acc_sample_runs(uint64_t count)
{
	return count == 0 ? 0 : count <= ACC_SAMPLE ? 1 : 64;
}

uint64_t
acc_sample_run(uint64_t count, size_t i, size_t *n)
{
	if (count <= ACC_SAMPLE) {
		*n = (size_t)count;
		return 0;
	}
	*n = 64;
	uint64_t room = count - 64;
	return room / 63 * i + room % 63 * i / 63;
}

/* The k-th of n positive numbers, of which the exponent is the same: positive doubles are in the order of their
 * bits, so digits of 11 bits narrow them down without a comparison. */
static double
rank(double *x, size_t n, size_t k)
{
	uint16_t count[2048];
	for (int shift = 41; shift >= -3 && n > 1; shift -= 11) {
		const int s = shift < 0 ? 0 : shift; /* the last digit overlaps the one before */
		uint64_t bits;
		size_t digit = 0, m = 0;
		memset(count, 0, sizeof count);
		for (size_t i = 0; i < n; i++) {
			memcpy(&bits, &x[i], sizeof bits);
			count[bits >> s & 2047]++;
		}
		for (; k >= count[digit]; digit++)
			k -= count[digit];
		for (size_t i = 0; i < n; i++) {
			memcpy(&bits, &x[i], sizeof bits);
			double v = x[i];
			x[m] = v;
			m += (bits >> s & 2047) == digit;
		}
		n = m;
	}
	return x[0];
}

/* Of the positive and finite ones. The exponent is the first digit; what is left out has the largest, which none of them
 * has. */
double
acc_median(double *x, size_t n)
{
	enum { NONE = 2047 };
	uint16_t count[NONE + 1];
	uint64_t bits;
	size_t all = 0, digit = 0, m = 0;
	memset(count, 0, sizeof count);
	for (size_t i = 0; i < n; i++) {
		memcpy(&bits, &x[i], sizeof bits);
		const bool in = bits - 1 < ((uint64_t)NONE << 52) - 1;
		count[in ? bits >> 52 : NONE]++;
		all += in;
	}
	if (all == 0)
		return 0;
	size_t k = (all - 1) / 2;
	for (; k >= count[digit]; digit++)
		k -= count[digit];
	for (size_t i = 0; i < n; i++) {
		memcpy(&bits, &x[i], sizeof bits);
		double v = x[i];
		x[m] = v;
		m += (bits >> 52 == digit) & (bits != 0);
	}
	return rank(x, m, k);
}
