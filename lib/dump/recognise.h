/* recognise.h - of which format something is, where one that it is of is known */
#ifndef DUMP_RECOGNISE_H
#define DUMP_RECOGNISE_H

#include "acc/dump.h"

/* As acc_dump_probe, without the format of the name `but` (or NULL). head, of DUMP_HEAD bytes, gets
 * the first *nhead bytes of a file. */
enum { DUMP_HEAD = 4096 };
const struct acc_dump *acc_dump_probe_but(const char *path, const char *but, uint8_t *head,
	size_t *nhead, struct acc_err *e);

#endif
