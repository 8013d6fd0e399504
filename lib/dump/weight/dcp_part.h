/* dcp_part.h - the parts that .metadata says a tensor has */
#ifndef DUMP_DCP_PART_H
#define DUMP_DCP_PART_H

#include "acc/stream.h"

struct dcp;

/* One part of one tensor. */
struct dcp_part {
	struct dcp *d;
	struct acc_str fqn, name; /* of the tensor; of the part */
	uint32_t ndim;
	int64_t at[ACC_MAXDIM], size[ACC_MAXDIM], whole[ACC_MAXDIM];
	bool only;  /* it is all of the tensor */
	bool again; /* the same part as another */
	unsigned n; /* leaves that were seen */
};

/* Why n parts do not make up the tensor, each element once, as torch checks before it writes; NULL: they
 * do. */
int acc_dcp_make_up(struct dcp_part *p, uint32_t n, const int64_t *whole, uint32_t ndim,
	const char **why, struct acc_err *e);

#endif
