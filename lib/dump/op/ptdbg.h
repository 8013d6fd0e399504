/* ptdbg.h - what the files of the ptdbg_ascend reader share */
#ifndef DUMP_PTDBG_H
#define DUMP_PTDBG_H

#include "acc/dump.h"
#include "dump/op/argname.h"
#include "dump/jtree.h"
#include "dump/say.h"

/* [name, dump_step, third, dtype, shape, summary], or of TroubleShooter
 * [name, dump_step, [], dtype, shape, summary, md5, norm]; NULL: not there. */
struct ptdbg_line {
	struct ptdbg_line *next;
	struct acc_str name;
	const struct jnode *sum, *dtype, *shape, *stats, *norm;
};

/* One .pkl that is being read, and in it the op call whose lines are being collected. */
struct ptdbg {
	struct acc_dump_ctx *c;
	const char *dir, *file; /* its folder, also as root; its name */
	int dirfd;
	const char *npy; /* the folder of the tensors; NULL: there is none */
	bool mindspore;
	int64_t step, rank, proc;
	bool started;  /* the source is declared */
	bool overflow; /* lines of a step above 100: what overflowed, and nothing else */
	bool decimal;  /* checksums are decimal numbers */
	struct dump_said said;
	uint64_t nlines;
	struct acc_map stack_of; /* forward op call -> id of its stack, as a number */

	struct acc_str key; /* empty: none is being collected */
	char sep;           /* what its name is written with */
	struct ptdbg_line *first, *last;
	const struct jnode *frames;
	size_t held;          /* by mem when the op call began */
	struct acc_arena mem; /* of the op call */
};
/* A whole .pkl; `b` is closed. Bad places are troubles, also a truncated end. */
int acc_ptdbg_pkl(struct ptdbg *p, struct acc_bytes *b, struct acc_err *e);
/* Hand on the records of the op call that was collected. */
int acc_ptdbg_call(struct ptdbg *p, struct acc_err *e);
void acc_ptdbg_release(struct ptdbg *p);

#endif
