/* atb.h - the head of a tensor file of ATB (Ascend Transformer Boost)
 *
 *	$Version=1.0
 *	$Object.Count=1
 *	$Object.Length=64
 *	format=2
 *	dtype=1
 *	dims=2,16
 *	$Object.data=0,64
 *	$End=1
 *	the elements
 *
 * Only dtype, dims and $End are always there. $Object.Length is not believed: writers get it
 * wrong, and no reader looks at it.
 */
#ifndef LIB_IO_ATB_H
#define LIB_IO_ATB_H

#include "acc/tensor.h"

struct acc_atb {
	int64_t dtype, format; /* as written, numbers of ACL; format -1: not said */
};
/* Fills dtype, ndim, shape, off and len of *ref, as far as they are known even after a failure.
 * What stands behind the head must be what dtype and dims say. 0 or < 0. */
int acc_atb_read(int fd, struct acc_ref *ref, struct acc_atb *a, struct acc_err *e);
/* Do these first bytes of a file look like one? */
bool acc_atb_is(const uint8_t *p, size_t n);

#endif
