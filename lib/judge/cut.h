/* cut.h - what a cut of gradients to a norm hides */
#ifndef JUDGE_CUT_H
#define JUDGE_CUT_H

#include "judge/first_bad.h"

/* Of ranks that accfold made one, where nothing is bad: findings `culprit`, rule scale, of gradients that are so many times the
 * bench's before they are cut to a norm. 0 or < 0. */
int acc_say_cut(struct scan *s, struct acc_err *e);

#endif
