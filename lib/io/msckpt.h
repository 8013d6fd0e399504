/* msckpt.h - MindSpore's checkpoint files, walked without reading the tensors
 *
 * A file is a sequence of protobuf fields 1, each a Value: a tag, and a tensor of dims, type and
 * content. A tensor of more than 512 MiB is cut into consecutive Values of the same tag, each with
 * all dims. With crc_check, "crc_num" and ten bytes, the CRC-32 of all before, follow.
 */
#ifndef LIB_IO_MSCKPT_H
#define LIB_IO_MSCKPT_H

#include "acc/tensor.h"

struct acc_msckpt_value {
	struct acc_str tag, type; /* "Float32"; until the next call */
	uint32_t ndim;
	int64_t shape[ACC_MAXDIM];
	uint64_t at, end;  /* of the whole field in the file */
	uint64_t off, len; /* of its content */
	bool map;          /* a map of tensors, which is not decoded: only the tag is known */
};

/* Zero it, but for fd, at and end, to start. */
struct acc_msckpt {
	int fd;
	uint64_t at, end; /* what is to be walked; see acc_msckpt_end */
	struct acc_str tag, type;
	struct acc_arena mem;
	uint8_t buf[4096];
	uint64_t buf_at;
	size_t nbuf;
};
/* Where the fields end in a file of this size: before the checksum, if there is one. 0 or < 0. */
int acc_msckpt_end(int fd, uint64_t size, uint64_t *end, struct acc_err *e);
/* 1: the next one; 0: that was all; < 0. */
int acc_msckpt_next(struct acc_msckpt *c, struct acc_msckpt_value *v, struct acc_err *e);
void acc_msckpt_release(struct acc_msckpt *c);
/* Do these first bytes of a file look like one? */
bool acc_msckpt_is(const uint8_t *p, size_t n);

#endif
