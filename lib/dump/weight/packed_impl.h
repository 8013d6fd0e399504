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
	ACC_PACKED_AO,      /* torchao's subclasses, in a pickle */
	ACC_PACKED_AO_ST,   /* the same, as it names them in safetensors */
	ACC_PACKED_ORT,     /* onnxruntime's initializers */
	ACC_PACKED_LORA,    /* an adapter's file beside the weight's */
	ACC_PACKED_LORA_IN, /* in one file with it */
	ACC_PACKED_N
};

/* What is behind the stem in the name of its tensor (0), and of its parts. */
const char *acc_packed_word(enum acc_packed_kind kind, int i);
/* The tensor of a stem and a word behind it. */
bool acc_packed_find(struct packed_set *p, struct acc_str stem, const char *word,
	struct packed_tensor *out);
/* A part of the weight, by its number. */
int64_t acc_packed_add(struct packed_set *p, struct packed_weight *w,
	const struct packed_tensor *x);

/* packed_ao.c: is it a tensor of torchao's that is decoded? Its codes. */
bool acc_packed_ao(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	struct packed_tensor *head);
int acc_packed_ao_grid(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct acc_grid *g, struct packed_weight *w);

/* packed_grid.c: what these files share. */
/* A part of it of this word; -1: there is none. */
int64_t acc_packed_part(struct packed_set *p, struct packed_weight *w, struct acc_str stem,
	const char *word, struct packed_tensor *x);
/* The same shape as x, but for the last axis. */
void acc_packed_shape(struct packed_weight *w, struct acc_grid *g, const struct acc_st_tensor *x,
	int64_t cols);
/* Scales of rows by groups of columns; or of blocks, of which the last of an axis may be smaller; or one of all. */
int acc_packed_scaled(const struct packed_set *p, const struct packed_tensor *s, struct acc_grid *g,
	struct packed_weight *w);
/* The bytes of a small tensor. */
int acc_packed_bytes(struct packed_set *p, const struct packed_tensor *x, void *out, size_t n,
	struct acc_err *e);

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
