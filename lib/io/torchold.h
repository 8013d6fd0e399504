/* torchold.h - what torch.save wrote before torch 1.6, or without zip */
#ifndef LIB_IO_TORCHOLD_H
#define LIB_IO_TORCHOLD_H

#include "io/torchref.h"

/* Does it begin with the magic number of that form? */
bool acc_torchold_is(int fd, uint64_t base, uint64_t size);
/* Bytes [base, base + size) of fd: the object, and where its storages lie. Of the file's bulk,
 * only the lengths that stand before each storage are read. In m, which is reset. */
int acc_torchold_read(int fd, uint64_t base, uint64_t size, struct acc_torchsrc *src,
	struct acc_py **root, struct acc_arena *m, struct acc_err *e);

/* torchplain.c: does it begin as a pickle of protocol 2 or above? Ask after acc_torchold_is. */
bool acc_torchplain_is(int fd, uint64_t base, uint64_t size);
/* All of it is one pickle; numpy arrays stand in it. As acc_torchold_read. */
int acc_torchplain_read(int fd, uint64_t base, uint64_t size, struct acc_torchsrc *src,
	struct acc_py **root, struct acc_arena *m, struct acc_err *e);

#endif
