/* lib/stat: statistics of parts together are those of the elements of all of them. */
#include "acc/stat.h"

#include <math.h>

#include "tap.h"

enum { PARTS = 5, MOST = 37 };

static void
measure(const double *x, uint32_t n, double v[ACC_STATS])
{
	double sum = 0, square = 0;
	v[ACC_STAT_MAX] = -INFINITY;
	v[ACC_STAT_MIN] = INFINITY;
	for (uint32_t i = 0; i < n; i++) {
		v[ACC_STAT_MAX] = fmax(v[ACC_STAT_MAX], x[i]);
		v[ACC_STAT_MIN] = fmin(v[ACC_STAT_MIN], x[i]);
		sum += x[i];
		square += x[i] * x[i];
	}
	v[ACC_STAT_MEAN] = sum / n;
	v[ACC_STAT_NORM] = sqrt(square);
}

static uint64_t
next(uint64_t *state)
{
	return *state = *state * 6364136223846793005U + 1442695040888963407U;
}

static void
parts(void)
{
	double x[PARTS * MOST], v[ACC_STATS], all[ACC_STATS], apart[ACC_STATS];
	uint64_t state = 1;
	for (int round = 0; round < 100; round++) {
		struct acc_stat_parts p = {0};
		uint32_t n = 0;
		for (int part = 0; part < PARTS; part++) {
			const uint32_t some = (uint32_t)(next(&state) >> 33) % MOST, first = n;
			for (; n < first + some; n++)
				x[n] = (double)(int64_t)next(&state) / 0x1p60 - 2;
			measure(x + first, some, v);
			acc_stat_add(&p, v, some);
		}
		if (n == 0)
			continue;
		measure(x, n, all);
		acc_stat_whole(&p, v);
		acc_stat_apart(v, all, n, apart);
		ok(p.count == n && apart[ACC_STAT_MAX] == 0 && apart[ACC_STAT_MIN] == 0 &&
				apart[ACC_STAT_MEAN] < 1e-14 && apart[ACC_STAT_NORM] < 1e-14,
			"parts of %u elements", n);
	}
}

static void
not_numbers(void)
{
	const double one[ACC_STATS] = {2, -1, 0.5, 3}, nan[ACC_STATS] = {NAN, NAN, NAN, NAN};
	for (int first = 0; first < 2; first++) {
		struct acc_stat_parts p = {0};
		double v[ACC_STATS];
		acc_stat_add(&p, first ? nan : one, 4);
		acc_stat_add(&p, first ? one : nan, 4);
		acc_stat_whole(&p, v);
		ok(isnan(v[ACC_STAT_MAX]) && isnan(v[ACC_STAT_MIN]) && isnan(v[ACC_STAT_MEAN]) &&
				isnan(v[ACC_STAT_NORM]),
			"what is not a number stays so");
	}
	ok(acc_stat_finite(one) && !acc_stat_finite(nan), "finite");
	ok(acc_stat_rms(one, 9) == 1 && acc_stat_rms(one, 0) == 0, "root mean square");
}

static void
reading(void)
{
	struct acc_rec r = {0};
	double v[ACC_STATS];
	acc_rec_start(&r, ACC_STR("tensor"));
	acc_put(&r, "a.", "stat.max", acc_bool(true));
	acc_put(&r, "a.", "stat.min", acc_int(-3));
	acc_put(&r, "a.", "stat.mean", acc_nil());
	acc_put(&r, "a.", "s.max", acc_f64(7));
	ok(acc_stat_read(&r, "a.", ACC_STAT_RECORDED, v) ==
				(1 << ACC_STAT_MAX | 1 << ACC_STAT_MIN) &&
			v[ACC_STAT_MAX] == 1 && v[ACC_STAT_MIN] == -3 && isnan(v[ACC_STAT_MEAN]) &&
			isnan(v[ACC_STAT_NORM]),
		"as recorded: a boolean, an integer, null, none");
	ok(acc_stat_read(&r, "a.", ACC_STAT_MEASURED, v) ==
				(1 << ACC_STAT_MAX | 1 << ACC_STAT_MIN) &&
			v[ACC_STAT_MAX] == 7 && v[ACC_STAT_MIN] == -3,
		"as measured, else as recorded");
	acc_rec_release(&r);
}

int
main(void)
{
	parts();
	not_numbers();
	reading();
	return done();
}
