/* fmt_rows.h - which rows accfmt prints, and what it says of those that it leaves out */
#ifndef ACC_FMT_ROWS_H
#define ACC_FMT_ROWS_H

#include "acc/format.h"

struct rows_wanted {
	uint64_t top; /* so many rows; 0: all */
	/* Behind the culprit, what adds error, too, mostly follows from it, and one fault may be followed by hundreds:
	 * so many rows of these, if they are counted. */
	uint64_t behind;
	bool counted;
	bool bad;   /* of all rows those that are bad alone */
	bool joins; /* ranks that say alike get one row, where bad rows alone are printed: others would change their order */
};
void rows_want(const struct rows_wanted *w);
/* A table of its own begins. */
void rows_begin(void);
/* A record as a row, if it is wanted. What the format returns. */
int rows_put(const struct acc_format *f, void *state, const struct acc_rec *r, struct acc_err *e);
/* Say how many rows were left out, before what is said of the whole. */
int rows_left(const struct acc_format *f, void *state, struct acc_err *e);

#endif
