/* overflow.h - what the device noted of an overflow: Opdebug.Node_OpDebug.TASK.STREAM.TIME, as
 * DumpData or as JSON */
#ifndef DUMP_OVERFLOW_H
#define DUMP_OVERFLOW_H

#include "dump/op/ascend.h"

/* An arg record for each unit (AI Core, ...) that reported: its type is "overflow", its value
 * JSON text, whose `status` is 0 where that unit had none. 0 or < 0. */
int acc_overflow_put(const struct ascend_file *f, struct acc_err *e);

#endif
