/* ptpacked.h - weights in few bits, or with an adapter, in files of torch.save: see packed.h */
#ifndef DUMP_PTPACKED_H
#define DUMP_PTPACKED_H

#include "acc/torch.h"
#include "dump/weight/packed.h"

struct ptfile;

struct ptpacked {
	struct packed_set set;
	struct acc_buf list;  /* of tensors that lie as they are, each with its file */
	struct acc_map where; /* name -> place in it */
	struct acc_arena mem;
};

/* Look what the files hold, before they are read. What cannot be read is said then. 0 or < 0. */
int acc_ptpacked_begin(struct ptpacked *p, struct weights *w, int dirfd, const char *const *files,
	size_t n, struct acc_err *e);
/* 1: the leaf is a weight that is made of several, or part of one, and is taken care of; 0; < 0. */
int acc_ptpacked(struct ptpacked *p, struct ptfile *f, const struct acc_torch_leaf *l,
	struct acc_err *e);
void acc_ptpacked_release(struct ptpacked *p);

#endif
