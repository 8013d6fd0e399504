/* tiled.h - Ascend's private formats: how they lay out a tensor
 *
 * A device computes on tiles, so it keeps one axis (C, or the last) in blocks of C0 elements, with
 * padding where it does not fill the last one. Sizes of tiles differ between types and chips; the
 * stored shape says them.
 *
 *	NC1HWC0       (N, C1, H, W, C0), of NCHW, C1 = ceil(C / C0)
 *	NDC1HWC0      (N, D, C1, H, W, C0), of NCDHW
 *	FRACTAL_Z     (C1 * H * W, N1, N0, C0), of NCHW
 *	C1HWNCoC0     (C1, H, W, N, C0, C0), of NCHW: elements on the diagonal, else zeros
 *	FRACTAL_NZ    (..., N1, M1, M0, N0), of (..., M, N)
 */
#ifndef DUMP_TILED_H
#define DUMP_TILED_H

#include "acc/tensor.h"

struct dump_tiled {
	const char *format; /* as the recorder writes it */
	uint32_t ndim;      /* as it is stored */
	const int64_t *shape;
	uint32_t norigin; /* what it stands for */
	const int64_t *origin;
	const char *order; /* its axes, as NHWC; NULL: not said */
	uint32_t groups;   /* of a grouped convolution's weight; 0 and 1: none */
};

/* Is it one of those above? MindSpore abbreviates some. */
bool acc_tiled_is(struct acc_str format);
/* Fill in shape, strided, stride and block. The order of its axes, static text; NULL where the
 * shapes do not belong together: then *ref is as it was. Where several orders fit and none is said,
 * NCHW is the one. */
const char *acc_tiled_ref(const struct dump_tiled *t, struct acc_ref *ref);

#endif
