/* The test for drift: its parts against numbers of other origin, its errors by simulation. */
#include "acc/curve.h"

#include <math.h>

#include "tap.h"

static uint64_t state = 88172645463325252U;

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

/* Autocorrelated noise of standard deviation sd, and what it fluctuates about. */
static void
series(double *x, size_t n, double phi, double sd, double from, double to)
{
	double v = normal();
	for (size_t i = 0; i < n; i++) {
		x[i] = sd * v + from + (to - from) * (double)i / (double)(n - 1);
		v = phi * v + sqrt(1 - phi * phi) * normal();
	}
}

static bool
close_to(double x, double want)
{
	return fabs(x - want) <= 1e-12 + 1e-9 * fabs(want);
}

/* Two-sided probabilities in closed form: df 1, 2, 4 (Abramowitz and Stegun 26.7.3, 26.7.4). */
static void
student(void)
{
	static const double t[] = {0, 0.1, 1, 2.5, 6, 40};
	bool good = true;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		double x = t[i], a = atan(x), s = x / sqrt(2 + x * x), u = x / sqrt(4 + x * x);
		good &= close_to(acc_student_p(x, 1), 1 - 2 * a / 3.14159265358979323846);
		good &= close_to(acc_student_p(-x, 2), 1 - s);
		good &= close_to(acc_student_p(x, 4), 1 - u * (1 + 2 / (4 + x * x)));
	}
	ok(good, "Student's t of 1, 2 and 4 degrees of freedom");
	ok(acc_student_p(INFINITY, 7) == 0, "infinitely far");
	/* Tables give these to three decimals. */
	ok(fabs(acc_student_p(2.602, 15) - 0.02) < 5e-5 &&
			fabs(acc_student_p(2.998, 7) - 0.02) < 5e-5,
		"tables");
}

static void
simple(void)
{
	double x[200];
	struct acc_drift d;
	for (size_t i = 0; i < 200; i++)
		x[i] = 0;
	acc_drift_test(x, 200, &d);
	ok(d.kind == ACC_DRIFT_NONE && d.offset == 0 && d.offset_p == 1, "no difference at all");
	for (size_t i = 0; i < 200; i++)
		x[i] = 0.1;
	acc_drift_test(x, 200, &d);
	ok(d.kind == ACC_DRIFT_OFFSET && d.offset_p < 1e-12 && d.phi == 0, "the same at all steps");
	for (size_t i = 0; i < 200; i++)
		x[i] = 1e-3 * (double)i;
	acc_drift_test(x, 200, &d);
	ok(d.kind == ACC_DRIFT_TREND && d.trend_p < 1e-6, "a straight line");
	for (size_t i = 0; i < 200; i++)
		x[i] = i % 2 == 0 ? 1 : -1;
	acc_drift_test(x, 200, &d);
	ok(d.kind == ACC_DRIFT_NONE, "to and fro");
	acc_drift_test(x, 9, &d);
	ok(d.kind == ACC_DRIFT_UNKNOWN && isnan(d.offset_p), "too few");
	/* Every value is like the one before, but it crosses zero again and again. */
	static const double waves[12] = {-56, -35, 12, -14, 8, -20, -6, 0, 8, -14, 0, -12};
	acc_drift_test(waves, 12, &d);
	ok(d.eff < 10 && d.signs == 6 && d.kind == ACC_DRIFT_NONE, "few, to and fro");
	static const double falling[12] = {56, 35, 30, 28, 20, 12, 6, 1, -8, -12, -13, -14};
	acc_drift_test(falling, 12, &d);
	ok(d.signs == 1 && d.kind != ACC_DRIFT_NONE, "few, once through zero");
	static const double slow[12] = {-56, -35, -12, -14, 8, 20, 26, 13, -8, -14, -10, -12};
	acc_drift_test(slow, 12, &d);
	ok(d.eff < 10 && d.signs == 2 && d.kind == ACC_DRIFT_UNKNOWN, "few, there and back");
	for (size_t i = 1; i < 200; i++)
		x[i] = x[i - 1] + normal();
	acc_drift_test(x, 200, &d);
	ok(d.kind == ACC_DRIFT_UNKNOWN && d.eff < 6, "a random walk tells nothing");
}

/* How often a drift is seen where the difference goes from `from` to `to`, in parts of the
 * loss; 500 series of 1,000 steps. */
static double
seen(double phi, double sd, double from, double to)
{
	double x[1000];
	struct acc_drift d;
	unsigned n = 0;
	for (int k = 0; k < 500; k++) {
		series(x, 1000, phi, sd, from, to);
		acc_drift_test(x, 1000, &d);
		n += d.kind == ACC_DRIFT_OFFSET || d.kind == ACC_DRIFT_TREND;
	}
	return n / 500.0;
}

/* How often another level is seen that begins with step 700 of 1,000; 500 series. */
static double
changes(double phi, double sd, double gap, double *off)
{
	double x[1000];
	struct acc_change c;
	unsigned n = 0;
	*off = 0;
	for (int k = 0; k < 500; k++) {
		series(x, 1000, phi, sd, 0, 0);
		for (size_t i = 700; i < 1000; i++)
			x[i] += gap;
		acc_change_test(x, 1000, &c);
		n += c.found;
		*off += c.found ? fabs((double)c.at - 700) : 0;
	}
	*off /= n > 0 ? n : 1;
	return n / 500.0;
}

static void
change(void)
{
	static const struct {
		double phi, sd;
	} noises[] = {{0, 0.01}, {0.7, 0.005}, {0.95, 0.002}};
	double x[1000], room[1000], off;
	struct acc_change c;
	for (size_t i = 0; i < 1000; i++)
		x[i] = 0;
	acc_change_test(x, 1000, &c);
	ok(!c.found && c.t == 0, "no difference at all is no change");
	for (size_t i = 413; i < 1000; i++)
		x[i] = 0.25;
	acc_change_test(x, 1000, &c);
	ok(c.found && c.at == 413 && c.before == 0 && c.after == 0.25, "a step without noise");
	acc_change_test(x + 300, 399, &c);
	ok(!c.found && isnan(c.t) && isnan(c.after), "too few for a change");
	/* What needs no test: 0.25 from place 413 on, 100 times what came before. */
	for (size_t i = 0; i < 413; i++)
		x[i] = i % 2 == 0 ? 0.0025 : -0.001;
	ok(acc_change_sharp(x + 393, 50, room, &c) && c.at == 20 && c.after == 0.25 &&
			c.before == 0.0025 && c.times == 100 && c.even == 1,
		"a sharp step among 50 values");
	ok(acc_change_sharp(x + 400, 100, room, &c) && c.at == 13,
		"the same place whatever the rest");
	x[420] = -0.25;
	ok(!acc_change_sharp(x + 393, 50, room, &c), "what goes to both sides is none");
	x[420] = 0.02;
	ok(!acc_change_sharp(x + 393, 50, room, &c) || c.times < 10,
		"nor what comes near those before again");
	x[420] = 0.25;
	for (size_t i = 393; i < 413; i++)
		x[i] = 0;
	x[430] = 0.1;
	ok(acc_change_sharp(x + 393, 40, room, &c) && c.at == 20 && c.times == 1e9 && c.even < 0.5,
		"equal before, and uneven behind");
	for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
		double alarm = changes(noises[i].phi, noises[i].sd, 0, &off);
		double found = changes(noises[i].phi, noises[i].sd, 0.005, &off);
		ok(alarm <= 0.02, "phi %g: changes that are none %.3f", noises[i].phi, alarm);
		ok(found >= 0.9 && off < 50, "phi %g: a gap of 0.5 %% found %.3f, off by %.0f",
			noises[i].phi, found, off);
	}
}

static void
noise_is_blunt(void)
{
	double x[60], room[60];
	struct acc_change c;
	unsigned sharp = 0;
	for (int k = 0; k < 2000; k++) {
		series(x, 60, 0.98, 0.01, 0, 0);
		sharp += acc_change_sharp(x, 60, room, &c) && c.times > 10 && c.at >= 10 &&
			 c.at <= 50;
	}
	ok(sharp == 0, "noise is never sharp: %u of 2000", sharp);
}

int
main(void)
{
	static const double phi[] = {0, 0.5, 0.8, 0.9, 0.95};
	student();
	simple();
	change();
	for (size_t i = 0; i < sizeof phi / sizeof *phi; i++) {
		double alarm = seen(phi[i], 0.0025, 0, 0), drift = seen(phi[i], 0.0025, 0, 0.005),
		       offset = seen(phi[i], 0.0025, -0.005, -0.005);
		ok(alarm <= 0.05, "phi %g: false alarms %.3f", phi[i], alarm);
		ok(drift >= 0.88 && (drift >= 0.9 || phi[i] > 0.9),
			"phi %g: drift to 0.5 %% found %.3f", phi[i], drift);
		ok(offset >= 0.98, "phi %g: offset of 0.5 %% found %.3f", phi[i], offset);
	}
	noise_is_blunt();
	return done();
}
