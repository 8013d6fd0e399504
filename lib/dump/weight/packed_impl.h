/* packed_impl.h - what the files that read packed weights share */
#ifndef DUMP_PACKED_IMPL_H
#define DUMP_PACKED_IMPL_H

#include "dump/weight/packed.h"

enum acc_packed_kind {
	ACC_PACKED_NONE,
	ACC_PACKED_GPTQ,
	ACC_PACKED_AWQ,
	ACC_PACKED_INTS,
	ACC_PACKED_FLOATS,
	ACC_PACKED_SCALED,
	ACC_PACKED_BLOCKS,
	ACC_PACKED_NF4,
	ACC_PACKED_INT8,
	ACC_PACKED_LORA,    /* an adapter's file beside the weight's */
	ACC_PACKED_LORA_IN, /* in one file with it */
	ACC_PACKED_N
};

/* The tensor of a stem and a word behind it. */
bool acc_packed_find(struct packed_set *p, struct acc_str stem, const char *word,
	struct packed_tensor *out);
/* A part of the weight, by its number. */
int64_t acc_packed_add(struct packed_set *p, struct packed_weight *w,
	const struct packed_tensor *x);

/* packed_grid.c: codes and what they are decoded by, of any kind but an adapter's. 0 or < 0, in w->bad. */
int acc_packed_grid(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct packed_weight *w);

/* packed_lora.c: what adapter_config.json says. 0 or < 0. */
int acc_packed_adapter(struct packed_set *p, struct acc_err *e);
/* Is it a weight with an adapter? Its kind; and its tensor. */
enum acc_packed_kind acc_packed_adapted(struct packed_set *p, struct acc_str stem,
	struct packed_tensor *head);
/* The stem of the weight, of that of an adapter's matrix. */
struct acc_str acc_packed_unwrapped(enum acc_packed_kind kind, struct acc_str stem);
/* The sum. 0 or < 0, in w->bad. */
int acc_packed_added(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct packed_weight *w);

#endif
