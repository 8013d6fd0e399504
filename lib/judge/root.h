/* root.h - what the backward passes of two programs begin with */
#ifndef JUDGE_ROOT_H
#define JUDGE_ROOT_H

#include "judge/case.h"
#include "judge/first_bad.h"

/* The one element of a record's tensor on a side; NAN: it has none, several, or cannot be read. */
double acc_element(struct acc_case *c, uint32_t item, const struct acc_rec *r, int side,
	struct acc_err *e);
/* Where nothing else is named: a finding, if two programs begin their backward passes with other losses. 0 or < 0. */
int acc_say_root(struct scan *s, struct acc_err *e);

#endif
