/* dcp_st.h - files of torch.distributed.checkpoint whose parts are in safetensors */
#ifndef DUMP_DCP_ST_H
#define DUMP_DCP_ST_H

#include "acc/file.h"
#include "acc/safetensors.h"

/* Files that were looked at; all zero at first. */
struct dcp_st {
	struct acc_map files;
	struct dcp_st_file *first;
	struct acc_arena mem;
};

/* A tensor of the file beneath dirfd. 1: the file is in safetensors; *t is the tensor, borrowed, or NULL where
 * there is none of the name, and *info of the file. 0: it is of another kind. < 0: it cannot be read. */
int acc_dcp_st_find(struct dcp_st *s, int dirfd, struct acc_str file, struct acc_str name,
	const struct acc_st_tensor **t, struct acc_file_info *info, struct acc_err *e);
void acc_dcp_st_release(struct dcp_st *s);

#endif
