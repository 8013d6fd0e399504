/* What the files that judge weights share. */
#ifndef JUDGE_WEIGHTS_H
#define JUDGE_WEIGHTS_H

#include "judge/case.h"

/* Pairs whose values agree, and whose layout does not fit that of the others. */
struct acc_odd {
	struct acc_laid *v;
	uint32_t n;
	size_t cap;
	bool found;
};

/* A pair with the same values. 0 or < 0. */
int acc_odd_add(struct acc_odd *o, const struct acc_case *c, uint32_t item, const struct acc_rec *r,
	struct acc_err *e);
/* After all: which of them are wrong; marks them. */
int acc_odd_find(struct acc_odd *o, struct acc_case *c, struct acc_err *e);
/* The findings. */
int acc_odd_say(struct acc_odd *o, struct acc_case *c, struct acc_err *e);
void acc_odd_release(struct acc_odd *o);

#endif
