/* torch.h - what torch.save wrote (zip form): the tensors in it, by reference
 *
 * Rules: a class that is unknown and holds no tensor is opaque and passes; a tensor form that
 * is not decoded (sparse, quantized, meta, a tensor inside an unknown class) is reported with
 * an error of its own and the rest is read; a callable outside the known list is refused by
 * name (ACC_EREFUSED) and nothing of the file is passed on.
 */
#ifndef ACC_TORCH_H
#define ACC_TORCH_H

#include "acc/base.h"
#include "acc/tensor.h"

/* One leaf, in the order of the file. `path` is how to reach it from the root: "" for the root
 * itself, "0.1" in lists and tuples, "model.layers.0.weight" in dicts (keys joined by '.').
 * Exactly one of ref (a tensor) or value_type is set; err is non-NULL for a tensor that could
 * not be decoded (ref may hold what is known). */
struct acc_torch_leaf {
	struct acc_str path;
	const struct acc_ref *ref;  /* file is empty: the caller knows its name */
	struct acc_str dtype_raw;   /* "torch.float32" */
	bool requires_grad, is_parameter;
	const char *value_type;     /* "int", "float", "bool", "str", "None" for other leaves */
	int64_t i;
	double f;
	struct acc_str s;
	const struct acc_err *err;
};
typedef int acc_torch_fn(void *arg, const struct acc_torch_leaf *leaf);

/* Read the torch zip that is bytes [base, base + size) of fd and call fn for each leaf. A
 * negative return of fn stops and is returned. */
int acc_torch_read(int fd, uint64_t base, uint64_t size, acc_torch_fn *fn, void *arg,
	struct acc_err *e);

#endif
