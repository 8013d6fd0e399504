/* weight_map.h - the index of a set of files that hold one checkpoint
 *
 *	{"metadata": {...}, "weight_map": {"NAME": "model-00001-of-00002.safetensors", ...}}
 */
#ifndef DUMP_WEIGHT_MAP_H
#define DUMP_WEIGHT_MAP_H

#include "acc/base.h"

struct weight_map {
	struct mapped_weight {
		struct acc_str name;
		uint32_t file; /* index of files */
	} * weight;
	size_t n;
	const char **files; /* plain names, in natural order */
	size_t nfiles;
};

/* Read an index beneath dirfd. A file that is not a plain name is refused. Lives in m. */
int acc_dump_weight_map(int dirfd, const char *index, struct weight_map *out, struct acc_arena *m,
	struct acc_err *e);
/* The index in a folder: the only file whose name ends so, or the one that is called `usual`.
 * NULL where there is none; where several might be meant, NULL and *e. In m. */
const char *acc_dump_weight_index(int dirfd, const char *usual, const char *suffix,
	struct acc_arena *m, struct acc_err *e);

#endif
