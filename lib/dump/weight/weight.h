/* weight.h - a tensor of a checkpoint: it belongs to no op call, so it is one of its own
 *
 * Its name is the path to it, as the model's state dict has it, whatever the file is called:
 * the same weight has the same name in every format.
 */
#ifndef DUMP_WEIGHT_H
#define DUMP_WEIGHT_H

#include "acc/file.h"
#include "dump/op/argname.h"
#include "dump/say.h"

struct weights {
	struct acc_dump_ctx *c;
	const char *dir; /* the source's root, for messages */
	const char *io;  /* param, grad, out */
	struct dump_said said;
	bool unsummed;        /* that a file has no checksums was said */
	struct acc_arena mem; /* of one record */
};

struct weight {
	struct acc_str name;
	const struct argname *arg; /* where it belongs; NULL: to a key of its own, its name */
	struct acc_str file;       /* relative to dir */
	struct acc_file_info info; /* of the file */
	const struct acc_ref *ref; /* NULL: nothing is known. Its file, fsize, mtime do not count */
	struct acc_str dtype_raw;
	const struct acc_err *err; /* NULL: whole */
	bool grad_known, requires_grad;
	bool buffer;          /* it is said to be no parameter, but a buffer */
	struct acc_str stack; /* its id; empty: none */
	struct acc_str scope; /* the module; empty: none */
	bool several;         /* the file holds others: a message names it */
	/* A shard: the shape of the whole tensor and where in it this part begins; or NULL. */
	const int64_t *whole, *at;
	uint32_t nwhole;
};

/* Key, op, io and pos of a record that is its own op call, which point to name. */
int acc_dump_weight_place(const struct weights *w, struct acc_rec *r, struct acc_str name);
/* The name of a part of a tensor, weight[0:2,0:4], in m; .p NULL: no memory. */
struct acc_str acc_dump_weight_part(struct acc_arena *m, struct acc_str name, const int64_t *at,
	const int64_t *size, uint32_t n);
/* Hand on a tensor record. What is wrong with it is said, and is no failure. 0 or < 0. */
int acc_dump_weight(struct weights *w, const struct weight *x, struct acc_err *e);
/* The last words: how many troubles were not said. Releases *w. */
void acc_dump_weights_end(struct weights *w, const char *where);

#endif
