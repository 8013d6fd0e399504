/* expect.h - ranks of the device that must be there: --expect-ranks */
#ifndef EXPECT_H
#define EXPECT_H

#include "cli.h"

/* Zero it to start: none is expected. */
struct expected {
	int64_t n;
	bool *have;
};
/* Those from 0 to N-1, which is the option's argument. */
void expect_open(struct expected *x, const char *arg);
void expect_came(struct expected *x, int64_t rank);
/* Which did not come: a line, and trouble. */
void expect_say(const struct expected *x, struct cli_out *out);
void expect_close(struct expected *x);

#endif
