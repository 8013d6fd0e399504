/* glance.h - what the first records of tensors say */
#ifndef DUMP_GLANCE_H
#define DUMP_GLANCE_H

#include "acc/operand.h"

/* Are they a model's parameters? 1, 0 (also where it cannot be read), or < 0: memory ran out. */
int acc_glance_params(const char *path, struct acc_err *e);

#endif
