/* safetensors.h - what a .safetensors file holds
 *
 * u64 N, N bytes of JSON, data. The checks are those of the reference implementation: the
 * tensors follow each other from the first byte behind the header to the last of the file,
 * without holes and overlaps, and each has the length that its shape and type need; a name
 * occurs once; the header has at most 100,000,000 bytes.
 */
#ifndef ACC_SAFETENSORS_H
#define ACC_SAFETENSORS_H

#include "acc/base.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_st_tensor {
	struct acc_str name;   /* terminated */
	const char *dtype_raw; /* as written; one that is known */
	enum acc_dtype
		dtype; /* of F4, F6_E2M3, F6_E3M2 that of their bytes, u8; shape is of these then */
	uint32_t ndim;
	const int64_t *shape;
	const int64_t *at; /* of a part of a tensor: where in it this begins; or NULL */
	uint64_t off, len; /* bytes, in the file */
};

struct acc_st {
	struct acc_st_tensor *t; /* as their bytes lie in the file */
	size_t n;
};

/* Do a file's first bytes look like one? */
bool acc_st_is(const void *head, size_t n);
/* Read the header of the file. Everything lives in m. The data are not read. */
int acc_st_read(int fd, struct acc_st *out, struct acc_arena *m, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
