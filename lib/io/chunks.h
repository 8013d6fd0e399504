/* chunks.h - an array in chunks of one shape, each a part of a reference, as zarr has it
 *
 * They stand in row-major order; those at the end of an axis are filled up. A part of no bytes is a chunk of zeros.
 * It travels in a stream, as the numbers of part.rows: whether they are compressed by zstd, and a chunk's shape.
 */
#ifndef ACC_IO_CHUNKS_H
#define ACC_IO_CHUNKS_H

#include "acc/tensor.h"

struct acc_chunks {
	bool zstd;
	const int64_t *shape; /* of a chunk, as many as the array's */
	uint64_t count;       /* of the array's elements */
	uint64_t one;         /* of a chunk's */
	uint64_t beside;      /* chunks that the first of the array's rows lie in */
};
/* How many chunks an array of such a shape has; 0: none, or too many. */
uint64_t acc_chunks_number(const int64_t *shape, const int64_t *chunk, uint32_t ndim);
/* Are there as many parts as there must be, and of the right size? 0 or ACC_EFORMAT. */
int acc_chunks_read(const struct acc_ref *ref, struct acc_chunks *c, struct acc_err *e);

#endif
