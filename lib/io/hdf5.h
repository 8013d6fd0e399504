/* hdf5.h - the datasets of an HDF5 file: where their bytes lie
 *
 * By the HDF5 File Format Specification, version 3, of The HDF Group. What h5py writes is read: superblocks 0 to 3,
 * groups of both kinds, arrays of numbers in one piece. Not read, and said: arrays in chunks (which compression
 * needs), groups in fractal heaps.
 */
#ifndef ACC_IO_HDF5_H
#define ACC_IO_HDF5_H

#include "acc/tensor.h"

/* A dataset, or an attribute that is a text. */
struct acc_hdf5_item {
	struct acc_str
		path; /* layers/dense/vars/0; of an attribute, that of its object; valid during the call */
	const struct acc_ref *ref; /* offsets are from the file's own start; NULL: an attribute */
	const struct acc_err *err; /* of a dataset: why it cannot be read; or NULL */
	bool opaque;               /* bytes of a type that is not told: as u8, u16, u32 or u64 */
	struct acc_str name, text; /* of the attribute */
};
typedef int acc_hdf5_fn(void *arg, const struct acc_hdf5_item *item);

bool acc_hdf5_is(const uint8_t *head, size_t n);
/* Those of bytes [base, base + size) of fd; attributes before the datasets of their object. 0 or < 0, also from fn. */
int acc_hdf5_read(int fd, uint64_t base, uint64_t size, acc_hdf5_fn *fn, void *arg,
	struct acc_err *e);

#endif
