/* torch.h - what torch.save wrote: the tensors in it, by reference
 *
 * Both forms: the zip of torch 1.6 and later, and pickles and storages one behind the other, as
 * before and with _use_new_zipfile_serialization=False, which has no checksums.
 *
 * Rules: a class that is unknown and holds no tensor is opaque and passes; a tensor form that
 * is not decoded (sparse, quantized, meta, lazily conjugated or negated, a bare storage, a
 * tensor inside an unknown class) is reported with an error of its own and the rest is read; a
 * callable outside the rule in pickle.h is refused by name (ACC_EREFUSED) and nothing of the
 * file is passed on.
 *
 * Decoded: torch._utils._rebuild_tensor, _v2, _v3 and torch_npu's _rebuild_npu_tensor, as they
 * are or inside _rebuild_parameter, _rebuild_parameter_with_state, _rebuild_from_type_v2 and
 * _rebuild_device_tensor_from_cpu_tensor; the only shard that a ShardedTensor has on its rank, and the local tensor
 * of a DTensor, which its placements and mesh say the place of; the typed storages of torch, torch.cuda, torch.npu,
 * ... and the untyped one; numpy arrays, also those of _rebuild_device_tensor_from_numpy, whose
 * bytes stand in data.pkl as they are (protocol 3 and up) or as UTF-8 (protocol 2). Containers: list, tuple, set, dict, torch.Size, torch's named
 * results and all of collections. Location and hooks do not matter.
 */
#ifndef ACC_TORCH_H
#define ACC_TORCH_H

#include "acc/base.h"
#include "acc/pickle.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One leaf, in the order of the file. `path` is how to reach it from the root: "" for the root
 * itself, "0.1" in lists and tuples, "model.layers.0.weight" in dicts: str and int keys, True,
 * False, None and names of Python (float32) joined by '.', any other key as its number in the dict, "[3]".
 * Exactly one of a tensor (ref or err, or both) or value_type is there; err is non-NULL for a
 * tensor that could not be decoded (ref is then what is known of dtype and shape, or NULL).
 * value_type is
 *   "int", "bool" (i), "float" (f), "str" (s; also a torch dtype "torch.float32", a device
 *   "cuda:0", other constants of torch), "None",
 *   "opaque": s is the class, or "bytes" or "int" for a long one. It may be ignored.
 * An empty container gives no leaf. All pointers are valid during the call only. */
struct acc_torch_leaf {
	struct acc_str path;
	bool in_dict; /* the root is a dict, such as a state dict, or a list of (name, value) */
	const struct acc_ref *ref; /* file, fsize, mtime_ns are empty: the caller knows them */
	struct acc_str dtype_raw;  /* "torch.float32"; of a numpy array, "f4" */
	bool requires_grad, is_parameter;
	bool is_buffer; /* as TorchScript's code says of it; false: nothing says so */
	const int64_t *whole,
		*at; /* of a rank's part of a ShardedTensor or DTensor: the shape of all of it, and */
	uint32_t nwhole; /* where in it the part begins; or NULL, 0 */
	bool unsummed;   /* the file was written without the checksums that its kind has */
	const char *value_type;
	int64_t i;
	double f;
	struct acc_str s;
	const struct acc_py
		*object; /* the call that makes what is opaque, or holds a tensor that is
	                              * not decoded; or NULL */
	const struct acc_err *err;
};
typedef int acc_torch_fn(void *arg, const struct acc_torch_leaf *leaf);

/* Read the file of torch.save that is bytes [base, base + size) of fd and call fn for each leaf. A
 * negative return of fn stops and is returned. Limits: data.pkl of 256 MiB, containers 64
 * deep, paths of 4,095 bytes, 1,000,000 items beyond the pickle's length in bytes (shared
 * containers are read once for each place they stand at). Storages are not read. */
int acc_torch_read(int fd, uint64_t base, uint64_t size, acc_torch_fn *fn, void *arg,
	struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
