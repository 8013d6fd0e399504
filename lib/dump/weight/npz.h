/* npz.h - a .npy that is a member of something */
#ifndef DUMP_NPZ_H
#define DUMP_NPZ_H

#include "acc/zip.h"

/* Where its elements lie in fd, and of what type and shape they are; file, fsize and mtime_ns are
 * not filled in. crc: the member's checksum is known. No more is inflated than the header. 0 or
 * < 0; *ref then has what is known, or no dimension. */
int acc_dump_npy_member(int fd, const struct acc_zip_member *zm, bool crc, struct acc_ref *ref,
	struct acc_arena *m, struct acc_err *e);

#endif
