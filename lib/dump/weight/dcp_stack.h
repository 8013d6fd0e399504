/* dcp_stack.h - behaviour megatron-layers-stacked: layers, and experts, that Megatron saves as one tensor: decoder.layers.mlp.linear_fc1.weight [layers,
 * ...] stands for decoder.layers.0.mlp.linear_fc1.weight and those of the other layers */
#ifndef DUMP_DCP_STACK_H
#define DUMP_DCP_STACK_H

#include "dump/weight/ptfile.h"

/* How many of the first axes are layers and experts, by the name: 0 to 2. */
uint32_t acc_dcp_stacked(struct acc_str name, uint32_t ndim);
/* A part of such a tensor, as a part of each layer's (and expert's). at, size and whole are of all axes. */
int acc_dcp_put_stacked(struct ptfile *f, const struct acc_torch_leaf *l, struct acc_str name,
	const int64_t *at, const int64_t *size, const int64_t *whole);

#endif
