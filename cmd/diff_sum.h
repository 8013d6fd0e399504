/* diff_sum.h - one line about all that two runs' folders hold */
#ifndef ACC_DIFF_SUM_H
#define ACC_DIFF_SUM_H

#include "acc/operand.h"

/* What the parts of one kind came to. Zero it. */
struct sum {
	size_t parts, bad, failed; /* how many were compared; of which the status was 1, 2 */
	const char *first;         /* what is bad first, as a sentence's part */
	const char *before;        /* of weights: the last part that was equal before */
	double steps;              /* of logs: of the longest loss; */
	bool apart;                /* within the limits, and not the same */
	bool skipped;              /* some were not looked at */
};
/* A part was judged: its status, its name, and its records in the file. */
void sum_part(struct sum *s, enum acc_holds what, int status, const char *name, int fd);
/* "configuration equal, 120 steps equal, weights equal until checkpoint-60"; what programs wrote it. */
const char *sum_line(const struct sum s[ACC_NHOLDS], const struct acc_holding held[2]);

#endif
