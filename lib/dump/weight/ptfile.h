/* ptfile.h - everything in one file of torch.save, as records
 *
 * What stands in a dict is named by the path to it, as in a state dict:
 * model.layers.0.weight. What stands in a list, or alone, is named by the file too, for recorders
 * name the files by the op call.
 */
#ifndef DUMP_PTFILE_H
#define DUMP_PTFILE_H

#include "acc/torch.h"
#include "dump/weight/weight.h"

struct ptfile {
	struct weights *w;
	int dirfd;
	const char *file;    /* beneath dirfd, and relative to the source's root */
	struct acc_str stem; /* its name without extension; of a slice, what it holds */
	bool slice;          /* only bytes [off, off + len) of it */
	uint64_t off, len;
	const int64_t *whole, *at; /* of a shard, see struct weight */
	uint32_t nwhole;
	/* Other files of the folder hold dicts with the same keys, so that the file is the module. */
	bool apart;
	struct acc_str stack; /* id of the records' stack, or empty */
	/* Or NULL: asked first for each leaf. 1: it is taken care of. */
	int (*own)(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e);
	void *arg;
	struct ptpacked *packed; /* or NULL: asked for what is in a dict */
	struct acc_file_info info;
	struct acc_err *e;
	struct acc_arena mem; /* of one leaf */
};

int acc_dump_ptfile(struct ptfile *f, struct acc_err *e);
/* A leaf as a record in this place, by this name. */
int acc_dump_ptleaf(struct ptfile *f, const struct acc_torch_leaf *l, struct acc_str name,
	const struct argname *at);
/* A file's name without its extension. */
struct acc_str acc_dump_stem(const char *path);

#endif
