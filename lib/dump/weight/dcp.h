/* dcp.h - a folder that torch.distributed.checkpoint wrote */
#ifndef DUMP_DCP_H
#define DUMP_DCP_H

#include "dump/weight/weight.h"

/* Does the folder hold one? */
int acc_dcp_in(int dirfd, struct acc_err *e);
/* Every tensor and value, after those of common.pt, where Megatron puts what is not sharded. */
int acc_dcp_read(struct weights *w, int dirfd, struct acc_err *e);

#endif
