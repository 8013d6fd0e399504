/* diff_ranks.h - what the ranks of one side say of each other, where the comparison makes them one */
#ifndef ACC_DIFF_RANKS_H
#define ACC_DIFF_RANKS_H

#include "diff_plan.h"

/* Are the device's ranks asked? */
bool ranks_ask(const struct plan *p);
/* The programs that ask those of a side. */
struct prog *ranks_plan(struct pipeline *l, const struct side *s);
/* Ask them. The stream of what they convict, in a file, or -1: nothing. What failed has been said, and *failed is set; *bad:
 * something is accused. */
int ranks_convicted(const struct plan *p, bool *failed, bool *bad);

#endif
