/* packed.h - weights that a checkpoint has in few bits, with what they are decoded by in tensors of their own
 *
 * GPTQ, AWQ, compressed-tensors, bitsandbytes and FP8 with scales, and weights with an adapter (LoRA): which tensors belong together is seen by their
 * names, types and shapes, as their loaders do.
 */
#ifndef DUMP_PACKED_H
#define DUMP_PACKED_H

#include "acc/safetensors.h"
#include "dump/weight/weight.h"
#include "io/grid.h"
#include "io/lora.h"

/* The files that PEFT has an adapter in; beside those of the weights it belongs to, it is added to these. */
#define ADAPTER_CONFIG "adapter_config.json"
#define ADAPTER_WEIGHTS "adapter_model.safetensors"

/* A tensor that is there, and where. */
struct packed_tensor {
	const struct acc_st_tensor *t;
	const char *file;
	const struct acc_file_info *info;
	const int64_t
		*all; /* where it does not lie as bytes: the number that each of its elements is */
};

struct packed_set {
	int dirfd;
	bool (*find)(const void *arg, struct acc_str name, struct packed_tensor *out);
	const void *arg;
	struct acc_str src; /* the source that they are of */
	bool zero_as_is;    /* GPTQ's second format: zero points are not one less than they are */
	int64_t block[2];   /* rows and columns of blocks that share a scale; 0: it does not say */
	double adapter; /* what the product of an adapter's matrices is multiplied by; NAN: it is not known */
	bool adapter_turned, adapter_apart; /* of weights that lie turned; of some it is another */
	bool adapter_root;                  /* by the root of r, not by r */
	struct acc_arena mem;               /* of one weight */
};

/* A weight, made of several tensors; ref points to what is here. */
struct packed_weight {
	struct acc_str name;
	const char *raw;
	struct acc_ref ref;
	struct acc_err bad;
	uint32_t n;
	struct acc_str src[8], file[8];
	int64_t off[8], len[8], fsize[8], mtime[8];
	int64_t rows[ACC_GRID_N];
};

/* What the folder's configuration says of them. 0 or < 0. */
int acc_packed_begin(struct packed_set *p, struct acc_err *e);
/* 0: it is a tensor of its own; 1: *out is a weight that it stands for, or why that cannot be read; 2: it is part
 * of one; or < 0. */
int acc_packed(struct packed_set *p, const struct packed_tensor *x, struct packed_weight *out,
	struct acc_err *e);

#endif
