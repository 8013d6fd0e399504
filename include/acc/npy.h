/* npy.h - the header of a .npy file (versions 1.0, 2.0, 3.0) */
#ifndef ACC_NPY_H
#define ACC_NPY_H

#include "acc/base.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parse the header at the start of p[0..n). On success fills dtype, big_endian, ndim, shape,
 * first, strided and stride (Fortran order), off = bytes of the header, len = bytes of the
 * elements; the rest of *ref is left alone. Returns the header's length (at most 64 KiB and 12
 * bytes), 0 if n bytes are too few, or < 0: object and structured arrays, strings, dates and
 * longdoubles are ACC_EUNSUP by name, never read; ndim, shape and `descr` stand even then.
 * "E2" and "h2" (MindSpore) and "V2" (ml_dtypes) are bf16. `descr` (may be NULL, then m too)
 * gets the dtype as written, in m. */
int64_t acc_npy_header(const void *p, size_t n, struct acc_ref *ref, struct acc_str *descr,
	struct acc_arena *m, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
