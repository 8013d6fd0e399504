/* tar.h - the members of a tar file, where they lie: ustar, GNU's long names, pax
 *
 * Nothing is unpacked. A header whose checksum is wrong ends the reading; sizes are checked against
 * the file before they are believed. A file that ends without the two empty blocks is one that was
 * cut off.
 */
#ifndef LIB_IO_TAR_H
#define LIB_IO_TAR_H

#include "acc/base.h"

struct acc_tar_member {
	struct acc_str name; /* as it stands there: it may be anything, "../x" too; in the arena */
	uint64_t off, len;   /* of its bytes */
	char type;           /* '0' a file, '5' a folder, '1' and '2' links, ... */
};

struct acc_tar {
	int fd;        /* borrowed */
	uint64_t size; /* of the file */
	uint64_t at;   /* 0 to start */
	size_t n;      /* members so far: at most 1,000,000 */
};

/* Do these first bytes of a file begin a tar? */
bool acc_tar_is(const uint8_t *head, size_t n);
/* 1: the next member; 0: that was all; < 0: ACC_EFORMAT, ACC_ETRUNC, ACC_ELIMIT. */
int acc_tar_next(struct acc_tar *t, struct acc_tar_member *out, struct acc_arena *m,
	struct acc_err *e);

#endif
