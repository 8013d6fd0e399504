/* How often acc_change_test is wrong: on noise about zero (false alarms), and on a difference that
 * is 0.5 % of the loss from 70 % of the steps on (found); alone, and together with
 * acc_drift_test. The limit of lib/curve/change.c comes from the column of 98 %: what 2 % of the
 * series of noise exceed.
 *
 *	make build/bench/curve_change && build/bench/curve_change
 *	build/bench/curve_change SERIES    so many series of each kind instead of 1,000
 *
 * The noise is that of curve_drift.c; its standard deviation is given in parts of the loss.
 */
#include "acc/curve.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 10000 };
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

enum kind { PLAIN, WHITE, GROWING, SHRINKING };
static const char *const kind_name[] = {"", " + white", ", growing", ", shrinking"};

static void
noise(double *x, size_t n, double phi, enum kind kind)
{
	double v = normal();
	for (size_t i = 0; i < n; i++) {
		double at = (double)i / (double)n;
		x[i] = v;
		v = phi * v + sqrt(1 - phi * phi) * normal();
		if (kind == WHITE)
			x[i] = (x[i] + normal()) / sqrt(2);
		if (kind == GROWING)
			x[i] *= 0.1 + 1.4 * at;
		if (kind == SHRINKING)
			x[i] *= 1.5 - 1.4 * at;
	}
}

static int
by_size(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static bool
drifts(const double *x, size_t n)
{
	struct acc_drift d;
	acc_drift_test(x, n, &d);
	return d.kind == ACC_DRIFT_OFFSET || d.kind == ACC_DRIFT_TREND;
}

/* One line of the table. */
static void
measure(size_t n, double phi, enum kind kind, double sd, unsigned series)
{
	static double x[MOST], t[1 << 20];
	unsigned alarm = 0, any = 0, found = 0, told = 0;
	double off = 0;
	struct acc_change c;
	for (unsigned k = 0; k < series; k++) {
		noise(x, n, phi, kind);
		acc_change_test(x, n, &c);
		t[k] = fabs(c.t);
		told += c.told;
		alarm += c.found;
		any += c.found || drifts(x, n);
		for (size_t i = 0; i < n; i++)
			x[i] = sd * x[i] + (10 * i >= 7 * n ? 0.005 : 0);
		acc_change_test(x, n, &c);
		found += c.found;
		off += c.found ? fabs((double)c.at - 0.7 * (double)n) / (double)n : 0;
	}
	qsort(t, series, sizeof *t, by_size);
	printf("%6zu phi %.2f%-12s %8.2f | %6.2f %6.1f%% %11.1f%% %15.1f%% %8.1f%% %8.1f%%\n", n,
		phi, kind_name[kind], 100 * sd, t[series * 98UL / 100], 100. * told / series,
		100. * alarm / series, 100. * any / series, 100. * found / series,
		found == 0 ? 0 : 100 * off / found);
}

int
main(int argc, char **argv)
{
	static const struct {
		double phi, sd;
	} plain[] = {{0, 0.01}, {0.5, 0.007}, {0.7, 0.005}, {0.8, 0.004}, {0.9, 0.003},
		{0.95, 0.002}, {0.98, 0.001}};
	static const size_t steps[] = {400, 1000, 10000};
	unsigned series = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
	series = series < 1 ? 1 : series > 1 << 20 ? 1 << 20 : series;
	printf("%6s %-20s %8s | %6s %7s %12s %16s %9s %9s\n", "steps", "noise", "sd %", "98 %",
		"told", "false alarms", "with drift test", "found", "off by");
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		for (int k = PLAIN; k <= SHRINKING; k++)
			for (size_t j = 0; j < sizeof plain / sizeof *plain; j++)
				if (k == PLAIN || plain[j].phi >= 0.9 || plain[j].phi == 0)
					measure(steps[i], plain[j].phi, (enum kind)k, plain[j].sd,
						series);
	return 0;
}
