/* How far beyond its limit something is, and how sure that is: 6 % over and 10,000 times over must
 * not read alike. */
#include "judge/first_bad.h"

#include <math.h>

const char *
acc_say_beyond(struct acc_case *c, const struct acc_finding *f)
{
	double times = f->value / f->limit;
	char far[64], sure[32] = "";
	if (!isfinite(times))
		return "";
	if (times < 2)
		snprintf(far, sizeof far, "%.0f %% over its limit of %.2g", 100 * (times - 1),
			f->limit);
	else
		snprintf(far, sizeof far, "%.*g times its limit of %.2g", times < 1e5 ? 5 : 2,
			times < 1e5 ? round(times) : times, f->limit);
	if (!isnan(f->confidence))
		snprintf(sure, sizeof sure, ", confidence %.3f", f->confidence);
	return acc_arena_printf(&c->mem, "; %s%s", far, sure);
}
