/* The median behind the scale, against sorting. */
#include "payload/pay.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

static int
order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static uint64_t
mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

int
main(void)
{
	static double x[ACC_SAMPLE], y[ACC_SAMPLE];
	int bad = 0;
	for (uint64_t round = 0; round < 300; round++) {
		size_t n = round < 20 ? (size_t)round : (size_t)(mix(round) % ACC_SAMPLE) + 1,
		       m = 0;
		for (size_t i = 0; i < n; i++) {
			uint64_t r = mix(round << 32 | i);
			/* All bits; a narrow range; few values; neighbours; some that do not count. */
			uint64_t bits = round % 4 == 0   ? r >> 1
					: round % 4 == 1 ? (r >> 12) | (UINT64_C(0x3fe) << 52)
					: round % 4 == 2 ? (r % 3) << 60
							 : 0x3ff0000000000000 + r % 5;
			memcpy(&x[i], &bits, sizeof bits);
			if (x[i] > 0 && isfinite(x[i]))
				y[m++] = x[i];
		}
		qsort(y, m, sizeof *y, order);
		double want = m == 0 ? 0 : y[(m - 1) / 2];
		bad += acc_median(x, n) != want;
	}
	ok(bad == 0, "the lower median of what is finite and not 0 (%d wrong)", bad);
	size_t n;
	ok(acc_sample_runs(0) == 0 && acc_sample_runs(4096) == 1 && acc_sample_runs(4097) == 64,
		"how many runs");
	ok(acc_sample_run(4096, 0, &n) == 0 && n == 4096, "a small tensor is the sample");
	bad = 0;
	const uint64_t counts[] = {4097, 5000, 65536, 1000003, UINT64_C(1) << 62};
	for (size_t c = 0; c < 5; c++) {
		uint64_t end = 0;
		for (size_t i = 0; i < 64; i++) {
			uint64_t at = acc_sample_run(counts[c], i, &n);
			bad += n != 64 || at < end;
			end = at + n;
		}
		bad += end != counts[c] || acc_sample_run(counts[c], 0, &n) != 0;
	}
	ok(bad == 0, "runs do not overlap, from the first element to the last");
	return done();
}
