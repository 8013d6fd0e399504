/* How far beyond its limit something is, and how sure that is: 6 % over and 10,000 times over must
 * not read alike. */
#include "acc/judge.h"

#include <math.h>

static void
how_far(char buf[96], double times, const char *limit)
{
	if (times < 2)
		snprintf(buf, 96, "%.*f %% over its limit%s", times < 1.01 ? 2 : 0,
			100 * (times - 1), limit);
	else
		snprintf(buf, 96, "%.*g times its limit%s", times < 1e5 ? 5 : 2,
			times < 1e5 ? round(times) : times, limit);
}

static const char *
sure(struct acc_arena *m, const char *far, double confidence)
{
	const char *colon = far[0] != '\0' ? "; " : "";
	if (isnan(confidence))
		return acc_arena_printf(m, "%s%s", colon, far);
	const bool most = confidence > 0.9995;
	return acc_arena_printf(m, "%s%s%s confidence %s%.3f", colon, far,
		far[0] != '\0' ? "," : ";", most ? "above " : "", most ? 0.999 : confidence);
}

const char *
acc_beyond(struct acc_arena *m, double value, double limit, double confidence)
{
	char far[96] = "", of[32];
	snprintf(of, sizeof of, " of %.2g", limit);
	/* What must be more than its limit is below it; of what may not be at all there is no factor. */
	if (isfinite(value) && (limit <= 0 || value < limit))
		snprintf(far, sizeof far, "%.3g where the limit is %.2g", value, limit);
	else if (isfinite(value) && isfinite(limit))
		how_far(far, value / limit, of);
	return sure(m, far, confidence);
}

const char *
acc_beyond_times(struct acc_arena *m, double times, double confidence)
{
	char far[96] = "";
	if (isfinite(times))
		how_far(far, times, "");
	return sure(m, far, confidence);
}
