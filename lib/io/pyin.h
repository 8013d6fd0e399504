/* pyin.h - the bytes of a pickle: opcode arguments, and the opcodes that stand for plain values */
#ifndef LIB_IO_PYIN_H
#define LIB_IO_PYIN_H

#include "acc/pickle.h"

struct acc_pyin {
	const uint8_t *p;
	size_t n, at;
	uint64_t op; /* offset of the opcode that is being run, for messages */
	struct acc_arena *m;
	struct acc_err *e; /* not NULL; its code is that of the last failure here */
};

/* The next k bytes; NULL where the pickle ends before. */
const uint8_t *acc_pyin_take(struct acc_pyin *in, uint64_t k);
/* The next k <= 8 bytes as a little-endian number. */
int acc_pyin_number(struct acc_pyin *in, unsigned k, uint64_t *out);
/* Up to a newline, which is taken too. */
int acc_pyin_line(struct acc_pyin *in, struct acc_str *out);
/* Type and value of what the opcode `op` pushes. 1, 0 where op is no such opcode, or < 0. */
int acc_pyin_value(struct acc_pyin *in, uint8_t op, struct acc_py *out);
/* ACC_EFORMAT "bad pickle: what". */
int acc_pyin_bad(struct acc_pyin *in, const char *what);
int acc_pyin_memory(struct acc_pyin *in);

#endif
