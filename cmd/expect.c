#include "expect.h"

#include <stdlib.h>

void
expect_open(struct expected *x, const char *arg)
{
	free(x->have);
	x->n = cli_int("--expect-ranks", arg, 1, 1 << 20);
	x->have = calloc((size_t)x->n, 1);
	if (x->have == NULL)
		cli_nomem();
}

void
expect_came(struct expected *x, int64_t rank)
{
	if (rank >= 0 && rank < x->n)
		x->have[rank] = true;
}

/* A rank that never came is nobody's trouble but who counts them. */
void
expect_say(const struct expected *x, struct cli_out *out)
{
	char which[224] = "";
	size_t at = 0;
	long long absent = 0;
	for (int64_t i = 0, j; i < x->n; i = j) {
		for (j = i + 1; j < x->n && x->have[j] == x->have[i];)
			j++;
		if (x->have[i])
			continue;
		absent += j - i;
		if (at > 150) {
			memcpy(which + at, ", ...", sizeof ", ...");
			continue;
		}
		const char *comma = at > 0 ? ", " : "";
		int n = j == i + 1 ? snprintf(which + at, 48, "%s%lld", comma, (long long)i)
				   : snprintf(which + at, 48, "%s%lld-%lld", comma, (long long)i,
					     (long long)j - 1);
		at += (size_t)n;
	}
	if (absent == 0)
		return;
	cli_warn("of %lld ranks of the device %lld %s missing: %s", (long long)x->n, absent,
		absent == 1 ? "is" : "are", which);
	cli_status(out, 2);
}

void
expect_close(struct expected *x)
{
	free(x->have);
}
