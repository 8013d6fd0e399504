/* ascend.h - a file of Ascend's DumpData: the tensors of one kernel */
#ifndef DUMP_ASCEND_H
#define DUMP_ASCEND_H

#include "dump/op/argname.h"
#include "dump/say.h"

struct ascend_file {
	struct acc_dump_ctx *c;
	struct dump_said *said;
	int dirfd;
	const char *dir, *file;
	const struct argname *call; /* the op call; its io and pos do not count */
	struct acc_str scope;       /* or empty */
};
/* Hand on its inputs and outputs. 0, or < 0: *e says why, where the file itself is no good. */
int acc_ascend_put(const struct ascend_file *f, struct acc_err *e);

#endif
