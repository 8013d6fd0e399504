/* quant.h - weights in blocks, each with its own scale: what a block's bytes stand for
 *
 * By the public definitions of GGUF's types (github.com/ggml-org/ggml, ggml-common.h and the dequantize_row_*
 * of ggml-quants.c).
 */
#ifndef ACC_IO_QUANT_H
#define ACC_IO_QUANT_H

#include "acc/tensor.h"

enum { ACC_QUANT_MOST = 256, ACC_QUANT_BYTES = 210 }; /* elements and bytes of a block, at most */

struct acc_quant {
	const char *name; /* as GGUF calls it */
	uint32_t type;    /* its number there */
	uint16_t n, size; /* elements and bytes of a block */
	/* The n values of a block; reach, unless NULL: how far from what was rounded each may lie. */
	void (*decode)(const uint8_t *block, float *value, float *reach);
};

/* NULL: it is none of those. */
const struct acc_quant *acc_quant_of(enum acc_enc enc);
/* ACC_STORED: it is not decoded. */
enum acc_enc acc_quant_type(uint32_t type);
/* ACC_STORED: there is none of this name. */
enum acc_enc acc_quant_named(struct acc_str name);

#endif
