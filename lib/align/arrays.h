/* arrays.h - what the files of arrays by name share */
#ifndef ALIGN_ARRAYS_H
#define ALIGN_ARRAYS_H

#include "align/impl.h"

/* One array, or one output of a call. */
struct output {
	uint32_t op, item;
	uint32_t at;   /* where it stands on its side */
	uint32_t mate; /* of the other side's outputs, or ACC_NOMATE */
	uint8_t how;   /* enum acc_align_how */
	uint64_t count, dims, shape;
	uint64_t name;  /* of its words; 0: none that says which it is */
	uint64_t word;  /* of its operator, as far as its name tells; 0: it does not */
	int64_t number; /* behind that; 0: none */
	/* Of the last that has the same values: a norm may end in a sum with a bias of zeros. */
	uint64_t last_word;
	bool known; /* its values are, and are no constant */
	bool real;  /* floating */
	bool again; /* an output before it has the same values: a block's is that of its last module */
	const float *like;
};

/* Kernels of f32 round so much. */
#define ARRAYS_SAME 0x1p-14

struct arrays {
	struct acc_joined *j;
	struct output *v[2];
	uint32_t n[2];
	struct acc_half *h[2];
	struct acc_ids parents; /* paths of modules in which others stand */
	int side;               /* that has the arrays */
	bool given;             /* calls of both sides have inputs */
	struct acc_err *e;
};

/* How far their values are apart, of the largest; INFINITY: not to be told. */
double acc_arrays_apart(const struct output *x, const struct output *y);
void acc_arrays_mate(struct output *p, struct output *q, enum acc_align_how how);
/* Pair what is within `far` of each other, the nearest first; of the calls' outputs from `from` on. 0 or
 * ACC_ENOMEM. */
int acc_arrays_values(struct arrays *x, double far, uint32_t from, enum acc_align_how how);
/* Which outputs of a side are open: nothing agrees on the way from them to its end, which differs; open: all false, of as
 * many as it has. 0 or ACC_ENOMEM. */
int acc_arrays_open(struct arrays *x, int side, bool *open);
/* Pair what is open, or stands behind the last that has a partner. 0 or ACC_ENOMEM. */
int acc_arrays_behind(struct arrays *x);
/* Pair what takes the same weight and has no partner. 0 or ACC_ENOMEM. */
int acc_arrays_weights(struct arrays *x);
/* Pair what went into calls that belong together: what has the same values, or came from such. 0 or ACC_ENOMEM. */
int acc_arrays_inputs(struct arrays *x);

#endif
