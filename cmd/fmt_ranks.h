/* fmt_ranks.h - one row for what several ranks say alike */
#ifndef ACC_FMT_RANKS_H
#define ACC_FMT_RANKS_H

#include "acc/record.h"

/* Take a copy of a record that is bad, to be put with its likes of other ranks; false: it is no such. */
bool ranks_take(const struct acc_rec *r);
/* Put what was taken, in the order of the first of each: that record, whose rank is a text such as "0-2, 5"
 * where several say so, and how many they are. What put returns below 0 ends it. */
int ranks_put(int (*put)(void *arg, const struct acc_rec *r, uint64_t n, struct acc_err *e),
	void *arg, struct acc_err *e);

#endif
