/* pickle.h - a pickle reader that executes nothing
 *
 * Protocols 0 to 5. The program of a pickle is run on an inert tree: a GLOBAL is a name, a
 * call (REDUCE, NEWOBJ, BUILD) is recorded, not made. What calls mean is for the reader above
 * (torch.h). Callables that could act (os.system, eval, getattr, ...: everything outside a
 * list of inert classes that is *called*) are left to that reader to refuse by name.
 */
#ifndef ACC_PICKLE_H
#define ACC_PICKLE_H

#include "acc/base.h"

enum acc_py_type {
	ACC_PY_NONE,
	ACC_PY_BOOL,  /* i */
	ACC_PY_INT,   /* i */
	ACC_PY_BIGINT, /* s: little-endian two's complement bytes */
	ACC_PY_FLOAT, /* f */
	ACC_PY_STR,   /* s, UTF-8 */
	ACC_PY_BYTES, /* s */
	ACC_PY_LIST,  /* item[0..n) */
	ACC_PY_TUPLE,
	ACC_PY_SET,
	ACC_PY_DICT,   /* item[2 i] key, item[2 i + 1] value; order kept, a later equal key wins */
	ACC_PY_GLOBAL, /* s: "module name" with one blank between */
	ACC_PY_PERSID, /* item[0]: the persistent id */
	ACC_PY_CALL    /* item[0] callable, item[1] arguments, then BUILD states, then for objects
	                  that were appended to or set: lists and dicts as further items */
};

struct acc_py {
	enum acc_py_type type;
	uint32_t n, cap; /* items */
	union {
		int64_t i;
		double f;
		struct acc_str s;
		struct acc_py **item;
	};
	uint64_t pos; /* byte of the pickle at which it was made */
};

/* Run one pickle at p[0..n). *used (may be NULL) gets its length, for files that hold several.
 * Limits: 16 million nodes, memo and stack bounded by n; the tree may be cyclic, so walk it
 * with a depth limit. 0 or < 0 with the offset. */
int acc_pickle_read(const void *p, size_t n, size_t *used, struct acc_py **root,
	struct acc_arena *m, struct acc_err *e);

#endif
