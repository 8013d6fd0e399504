/* align_input.h - the two inputs of accalign: streams, or dumps that it reads itself
 *
 * Failures end the program. */
#ifndef ACC_ALIGN_INPUT_H
#define ACC_ALIGN_INPUT_H

#include "acc/align.h"
#include "acc/dump.h"
#include "cli.h"

struct input {
	const char *path, *pattern; /* pattern: of a log, or NULL */
	enum acc_side side;
	struct acc_rd *rd;    /* NULL: a dump */
	struct acc_rec *data; /* the payload record at which reading stands */
	uint64_t place, off;  /* of that: which pair it belongs to, and the byte in its tensor */
	struct acc_align *al;
	struct acc_modules *modules; /* or NULL */
	struct acc_maps *rules;      /* for the tags of the device; or NULL */
	struct cli_out *out;
	int64_t first, last; /* steps of what came since the last step record */
	struct acc_rec step; /* the step record at which reading stands; no kind: none */
	struct bench *bench; /* where it is kept, that steps are compared with */
};

/* Find out what it is. */
void align_open(struct input *in);
/* The device, then the bench; two streams in turn. False: the device is recorded while it is read, and its first step
 * is whole. */
bool align_read(struct input in[2]);
/* The next record of a stream; false at its end, at its payload and behind a step. */
bool align_read_record(struct input *in);
/* All of a dump. */
void align_read_dump(struct input *in, acc_emit_fn *fn);
/* A record of a side (arg, an input), as its modules have it; and as it is. */
int align_take(void *arg, struct acc_rec *r);
int align_take_whole(void *arg, struct acc_rec *r);

/* --- payload --- */
/* Which of the records written, the n-th, has which tensors. */
void align_remember(const struct input in[2], const struct acc_rec *r, uint64_t n);
/* The rest of both streams, what belongs to the earlier pair first. */
void align_pass_data(struct input in[2]);

#endif
