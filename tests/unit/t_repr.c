/* The shortest decimal of a double, against the exact conversions of the C library: it reads back; nothing
 * shorter does; nothing as short lies nearer. t_repr N tries N doubles more than 200,000.
 *
 * One of so many digits that reads back is the nearest of so many digits, or the next one away from zero:
 * below a power of two doubles lie closer than above it. */
#include "acc/base.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>

/* The digits of text without zeros before or behind them, how many. */
static int
digits_of(const char *text, char d[32])
{
	int n = 0;
	for (; *text != '\0' && *text != 'e'; text++)
		if (*text >= '0' && *text <= '9' && (n > 0 || *text != '0'))
			d[n++] = *text;
	while (n > 1 && d[n - 1] == '0')
		n--;
	d[n] = '\0';
	return n;
}

/* The next decimal of as many digits, away from zero. */
static void
next(char *text)
{
	for (char *p = strchr(text, 'e') - 1; p >= text; p--) {
		if (*p == '.' || *p == '-')
			continue;
		if (*p != '9') {
			++*p;
			return;
		}
		*p = '0';
	}
	text[0] = '\0'; /* 9.99: the next one is of one digit, which was tried */
}

static bool
shortest(double v)
{
	char got[40], mine[32], text[40], d[32];
	const int len = acc_f64_repr(v, got, sizeof got);
	const int n = digits_of(got, mine);
	if (len != (int)strlen(got) || strtod(got, NULL) != v || acc_f64_digits(v) != n)
		return false;
	/* Nothing shorter: that of one digit less, followed by a 0, would be one of n digits. */
	if (n > 1) {
		snprintf(text, sizeof text, "%.*e", n - 2, v);
		if (strtod(text, NULL) == v)
			return false;
		next(text);
		if (text[0] != '\0' && strtod(text, NULL) == v)
			return false;
	}
	snprintf(text, sizeof text, "%.*e", n - 1, v);
	if (strtod(text, NULL) != v) {
		next(text);
		if (strtod(text, NULL) != v)
			return false;
	}
	digits_of(text, d);
	return strcmp(d, mine) == 0;
}

static uint64_t state = 88172645463325252;

static uint64_t
draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static double
of_bits(uint64_t bits)
{
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

static long wrong;

static void
try(double v)
{
	if (!isfinite(v) || v == 0 || shortest(v))
		return;
	char got[40];
	acc_f64_repr(v, got, sizeof got);
	if (wrong++ < 10)
		printf("# %a is written %s\n", v, got);
}

static void
try_around(double v)
{
	try(v);
	try(nextafter(v, INFINITY));
	try(nextafter(v, 0));
}

int
main(int argc, char **argv)
{
	const long more = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	for (int e = -1074; e < 1024; e++)
		try_around(ldexp(1, e));
	ok(wrong == 0, "powers of two and what lies beside them");
	wrong = 0;
	for (int e = -323; e < 309; e++)
		for (int n = 1; n < 10; n++) {
			char text[20];
			snprintf(text, sizeof text, "%de%d", n, e);
			try_around(strtod(text, NULL));
		}
	ok(wrong == 0, "decimals of one digit and what lies beside them");
	wrong = 0;
	for (int i = 0; i < 2000; i++)
		try(of_bits(draw() >> (12 + i % 52)));
	ok(wrong == 0, "subnormal numbers");
	wrong = 0;
	for (long i = 0; i < 50000 + more / 4; i++) {
		try(of_bits(draw()));                                          /* any */
		try((double)(int64_t)draw());                                  /* integers */
		try(round((double)(draw() >> 40)) / 1000);                     /* short decimals */
		try((float)((double)(draw() >> 11) * 0x1p-53 - 0.5) * 0x1p-3); /* means of float */
	}
	ok(wrong == 0, "random doubles: any, whole, of few digits, of 32 bits");
	ok(acc_f64_digits(0.0) == 0 && acc_f64_digits(NAN) == 0 && acc_f64_digits(-INFINITY) == 0,
		"0, NaN and infinities have no digits");
	return done();
}
