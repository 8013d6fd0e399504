/* tap.h - a test says what it checks, in the Test Anything Protocol */
#ifndef TAP_H
#define TAP_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_n, tap_bad;

__attribute__((format(printf, 2, 3), unused)) static bool
ok(bool good, const char *fmt, ...)
{
	va_list ap;
	printf("%s %d - ", good ? "ok" : "not ok", ++tap_n);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	tap_bad += !good;
	return good;
}

/* End of main: the plan, and the exit status. */
__attribute__((unused)) static int
done(void)
{
	printf("1..%d\n", tap_n);
	return tap_bad != 0;
}
#endif
