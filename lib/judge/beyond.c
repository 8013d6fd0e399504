/* How far beyond its limit something is, and how sure that is: 6 % over and 10,000 times over must
 * not read alike. */
#include "acc/judge.h"
#include "acc/say.h"

#include <math.h>

static const char *
how_far(struct acc_arena *m, double times, const char *limit)
{
	if (times < 2)
		return acc_say(m, "%.*f %% over its limit%s", times < 1.01 ? 2 : 0,
			100 * (times - 1), limit);
	return acc_say(m, "%.*g times its limit%s", times < 1e5 ? 5 : 2,
		times < 1e5 ? round(times) : times, limit);
}

static const char *
sure(struct acc_arena *m, const char *far, double confidence)
{
	if (far == NULL)
		return NULL;
	const char *colon = far[0] != '\0' ? "; " : "";
	if (isnan(confidence))
		return acc_say(m, "%s%s", colon, far);
	const bool most = confidence > 0.9995;
	return acc_say(m, "%s%s%s confidence %s%.3f", colon, far, far[0] != '\0' ? "," : ";",
		most ? "above " : "", most ? 0.999 : confidence);
}

const char *
acc_beyond_alone(struct acc_arena *m, double value, double limit)
{
	const char *of = acc_say(m, " of %.2g", limit);
	if (of == NULL)
		return NULL;
	/* What must be more than its limit is below it; of what may not be at all there is no factor. */
	if (isfinite(value) && (limit <= 0 || value < limit))
		return acc_say(m, "%.3g where the limit is %.2g", value, limit);
	return isfinite(value) && isfinite(limit) ? how_far(m, value / limit, of) : "";
}

const char *
acc_beyond(struct acc_arena *m, double value, double limit, double confidence)
{
	return sure(m, acc_beyond_alone(m, value, limit), confidence);
}

const char *
acc_beyond_times(struct acc_arena *m, double times, double confidence)
{
	return sure(m, isfinite(times) ? how_far(m, times, "") : "", confidence);
}
