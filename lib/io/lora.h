/* lora.h - a weight and the adapter that is added to it: base + factor * left right
 *
 * It travels in a stream, as the numbers of part.rows, so that nothing in it is believed.
 */
#ifndef ACC_IO_LORA_H
#define ACC_IO_LORA_H

#include "io/grid.h"

struct acc_lora_matrix {
	int64_t part, type; /* of acc_grid_type */
	int64_t turned;     /* its columns lie one behind the other */
};

/* All of it, as so many int64_t. */
struct acc_lora {
	int64_t rows, cols, rank;
	struct acc_lora_matrix base, left, right;
	double factor;
};
enum { ACC_LORA_N = sizeof(struct acc_lora) / sizeof(int64_t), ACC_LORA_MOST = 1 << 26 };

/* Is each part as long as it says, and are left and right of no more than ACC_LORA_MOST elements? */
int acc_lora_read(const struct acc_parts *p, struct acc_lora *l, uint64_t *count,
	struct acc_err *e);

#endif
