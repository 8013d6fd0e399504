/* diff_others.h - what a folder holds that nobody reads */
#ifndef ACC_DIFF_OTHERS_H
#define ACC_DIFF_OTHERS_H

#include "acc/operand.h"

/* "a.md and 3 more (text for people); b.bin", that of which nothing is known last; "": nothing is. */
const char *diff_others(const struct acc_holding *h);

#endif
