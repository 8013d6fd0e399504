/* dumpdata.h - the head of a file of Ascend's DumpData
 *
 *	u64, little-endian   N
 *	N bytes              a protobuf message, toolkit.dumpdata.DumpData
 *	the tensors' bytes, as many as the message says of each: inputs, outputs, buffers, spaces
 *
 * Sums up to the file's size, or is refused.
 */
#ifndef LIB_IO_DUMPDATA_H
#define LIB_IO_DUMPDATA_H

#include "acc/tensor.h"

struct acc_dumpdata_tensor {
	bool output;
	uint32_t index;        /* among the inputs, or the outputs */
	uint32_t type, format; /* as in the message */
	uint32_t ndim;
	const int64_t *shape;
	/* What a private format stands for; norigin 0: not said. */
	uint32_t norigin;
	const int64_t *origin;
	uint32_t groups; /* of a grouped convolution's weight */
	bool has_order;  /* the format of the framework's tensor is known: */
	uint32_t order;
	uint64_t off, len; /* in the file */
};
struct acc_dumpdata {
	struct acc_dumpdata_tensor *t; /* inputs, then outputs */
	size_t n;
	struct acc_str op_name;
};
/* All in m. 0 or < 0. */
int acc_dumpdata_read(int fd, struct acc_dumpdata *d, struct acc_arena *m, struct acc_err *e);
/* Do these first bytes of a file look like one? */
bool acc_dumpdata_is(const uint8_t *p, size_t n);

/* The names of data_type and format as the message's schema has them; NULL: unknown. */
const char *acc_dumpdata_type_name(uint32_t type);
const char *acc_dumpdata_format_name(uint32_t format);
/* The type as ours; ACC_NODTYPE: not decoded. */
enum acc_dtype acc_dumpdata_dtype(uint32_t type);

#endif
