/* torchref.h - from the calls that rebuild a tensor to a reference */
#ifndef LIB_IO_TORCHREF_H
#define LIB_IO_TORCHREF_H

#include "acc/pickle.h"
#include "acc/zip.h"

struct acc_torchsrc {
	struct acc_zip zip; /* of a file without zip: the storages, by their keys */
	bool old;           /* without zip */
	bool plain;         /* one pickle and nothing else */
	bool paddle;        /* of numpy arrays as paddle has them: of uint16 are bfloat16 */
	struct acc_str top; /* the folder within the zip, without '/' */
	bool big_endian;
	const struct acc_zip_member *pkl; /* the pickle, and its bytes */
	const uint8_t *bytes;
};

struct acc_torchref {
	struct acc_ref ref;
	bool known; /* dtype and shape are set, whatever follows */
	struct acc_str dtype_raw;
	bool requires_grad, is_parameter;
	/* Of a part of a ShardedTensor or a DTensor: the shape of all of it, and where in it this one
	 * begins; of the latter, how large it has to be. */
	uint32_t nwhole; /* 0: it is no part */
	int64_t whole[ACC_MAXDIM], at[ACC_MAXDIM];
	bool placed;
	int64_t part[ACC_MAXDIM];
};

/* 0: x is no tensor; 1: *out is set; < 0: a tensor that cannot be decoded, and why. */
int acc_torchref_of(const struct acc_torchsrc *src, const struct acc_py *x,
	struct acc_torchref *out, struct acc_err *e);
/* ('storage', class, key, location, number of elements): the element type, in *out. *size is
 * that in which the last is counted. */
int acc_torchref_storage(const struct acc_py *id, struct acc_torchref *out, uint64_t *size,
	struct acc_err *e);
/* torchpart.c: is x the part of a tensor that one rank has? 1: what makes it is *next, where it stands in
 * *out; 0: it is none, or has no elements here; < 0 as above. */
int acc_torchref_part(const struct acc_py *x, struct acc_torchref *out, const struct acc_py **next,
	struct acc_err *e);
/* torchinner.c: is x no tensor and no container, but holds tensors by name, as a module does, a tensor of a
 * class of its own or nested or sparse, an array of objects? 1: *out is a container of them, in m; 0; < 0:
 * memory ran out. */
int acc_torchref_inside(const struct acc_py *x, struct acc_arena *m, struct acc_py **out);
/* torchcode.c: marks the values of items, which are x's, an object of TorchScript, that its class calls buffers; reads
 * at most *left bytes of code. 0, or < 0: memory ran out. */
int acc_torchcode_buffers(const struct acc_torchsrc *src, int fd, const struct acc_py *x,
	struct acc_py *items, uint32_t mark, uint64_t *left, struct acc_arena *m);
/* The integers of a tuple, list or torch.Size. */
int acc_torchref_dims(const struct acc_py *x, int64_t out[ACC_MAXDIM], uint32_t *n,
	struct acc_err *e);
int acc_torchref_not_decoded(struct acc_err *e, const char *what);
int acc_torchref_malformed(struct acc_err *e, const struct acc_py *x);
/* The part of "module name" behind the blank. */
struct acc_str acc_torchref_name(const struct acc_py *global);

#endif
