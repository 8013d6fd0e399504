/* How often acc_drift_test is wrong: on noise about zero (false alarms), and on differences that
 * grow to, or stay at, 0.5 % of a loss of 2.5 (found).
 *
 *	make build/bench/curve_drift && build/bench/curve_drift
 *	build/bench/curve_drift SERIES    so many series of each kind instead of 4,000
 *
 * The noise is an AR(1) process x[t] = phi x[t-1] + e[t] of the standard deviation given; "+white"
 * has as much white noise added, "growing" grows from a tenth of it to one and a half times it.
 */
#include "acc/curve.h"

#include <math.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252U;

/* xorshift64*; Box and Muller. */
static double
uniform(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((double)((state * 2685821657736338717U) >> 11) + 0.5) * 0x1p-53;
}

static double
normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

enum kind { PLAIN, WHITE, GROWING };
static const char *const kind_name[] = {"", " + white", ", growing"};

static void
noise(double *x, size_t n, double phi, enum kind kind)
{
	double v = normal();
	for (size_t i = 0; i < n; i++) {
		x[i] = v;
		v = phi * v + sqrt(1 - phi * phi) * normal();
		if (kind == WHITE)
			x[i] = (x[i] + normal()) / sqrt(2);
		if (kind == GROWING)
			x[i] *= 0.1 + 1.4 * (double)i / (double)n;
	}
}

struct rates {
	double alarm, unknown, drift, offset;
};

/* sd: of the noise, in parts of the loss; the differences reach 0.005. */
static struct rates
measure(size_t n, double phi, enum kind kind, double sd, unsigned series)
{
	static double x[10000], y[10000];
	struct rates r = {0};
	struct acc_drift d;
	for (unsigned k = 0; k < series; k++) {
		noise(x, n, phi, kind);
		acc_drift_test(x, n, &d);
		r.alarm += d.kind == ACC_DRIFT_OFFSET || d.kind == ACC_DRIFT_TREND;
		r.unknown += d.kind == ACC_DRIFT_UNKNOWN;
		for (size_t i = 0; i < n; i++)
			y[i] = sd * x[i] + 0.005 * (double)(i + 1) / (double)n;
		acc_drift_test(y, n, &d);
		r.drift += d.kind == ACC_DRIFT_OFFSET || d.kind == ACC_DRIFT_TREND;
		for (size_t i = 0; i < n; i++)
			y[i] = sd * x[i] + 0.005;
		acc_drift_test(y, n, &d);
		r.offset += d.kind == ACC_DRIFT_OFFSET || d.kind == ACC_DRIFT_TREND;
	}
	r.alarm /= series;
	r.unknown /= series;
	r.drift /= series;
	r.offset /= series;
	return r;
}

int
main(int argc, char **argv)
{
	static const double phis[] = {0, 0.5, 0.8, 0.9, 0.95, 0.98};
	static const size_t steps[] = {12, 40, 200, 1000, 10000};
	unsigned series = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 4000;
	printf("%6s %-20s %8s | %s\n", "steps", "noise", "sd %",
		"false alarms  not told  growing to 0.5 %  staying at 0.5 %");
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		for (int k = PLAIN; k <= GROWING; k++)
			for (size_t j = 0; j < sizeof phis / sizeof *phis; j++) {
				if (k != PLAIN && phis[j] < 0.9)
					continue;
				unsigned m = steps[i] > 1000 ? series / 10 : series;
				struct rates r = measure(steps[i], phis[j], (enum kind)k, 0.0025,
					m);
				printf("%6zu phi %.2f%-12s %8.2f | %11.1f%% %8.1f%% %16.1f%% %16.1f%%\n",
					steps[i], phis[j], kind_name[k], 0.25, 100 * r.alarm,
					100 * r.unknown, 100 * r.drift, 100 * r.offset);
			}
	return 0;
}
