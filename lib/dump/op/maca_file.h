/* maca_file.h - one file of the MXMACA recorder. All that is assumed of its layout, which is not
 * public, stands in maca_file.c. */
#ifndef DUMP_MACA_FILE_H
#define DUMP_MACA_FILE_H

#include "dump/weight/weight.h"

struct maca_name {
	struct acc_str key; /* torch.nn.Conv1d.6.fwd */
	struct acc_str api; /* torch.nn.Conv1d */
	int64_t n;          /* 6: the sixth op of this direction */
	bool backward;
};

/* A file's name, with or without .pt; false if it is none of the recorder. */
bool acc_maca_name(struct acc_str file, struct maca_name *out);
/* Its records. What is wrong with a file is said, and is no failure. */
int acc_maca_file(struct weights *w, int dirfd, const char *file, const struct maca_name *name,
	struct acc_err *e);

#endif
