/* weight_map.h - the index of a set of files that hold one checkpoint
 *
 *	{"metadata": {...}, "weight_map": {"NAME": "model-00001-of-00002.safetensors", ...}}
 */
#ifndef DUMP_WEIGHT_MAP_H
#define DUMP_WEIGHT_MAP_H

#include "dump/weight/weight.h"

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

/* A single file beside an index, model.safetensors beside model.safetensors.index.json: loaders take it and do
 * not look at the index, which an earlier checkpoint may have left. 1: its name is in `single`, and it is
 * said; 0: there is none. */
int acc_dump_weight_single(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *index,
	char single[256], struct acc_err *e);
/* Files that say by their names that they are of so many, model-00002-of-00003.safetensors, and that there are
 * shards before them, shard-00002-...: which are not there is a trouble. */
void acc_dump_weight_numbers(struct weights *w, const char *const *files, size_t n);

#endif
