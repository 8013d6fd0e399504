/* pickle.h - a pickle reader that executes nothing
 *
 * Protocols 0 to 5. The program of a pickle is run on an inert tree: a GLOBAL is a name, a call
 * (REDUCE, INST, OBJ, NEWOBJ, NEWOBJ_EX) is recorded, not made. EXT and out-of-band buffers are
 * not supported.
 *
 * Since nothing is executed, a call can do no harm here; but a file that calls what acts would
 * harm whoever loads it with Python, and is not to be trusted. A call is let pass
 * (a) if its name is on the list in lib/io/pysafe.c: constructors of plain values that
 *     picklers call (collections, datetime, numpy, torch._utils._rebuild_*, ...);
 * (b) else, unless its module can act (os, subprocess, sys, runpy, functools, ...): if it is
 *     made by NEWOBJ, which creates without calling, or if it is named like a class, which is
 *     that each part of the name starts with an upper-case letter after any underscores;
 * (c) if it is functools.partial of a function, by name, of a module that cannot act, which calls nothing;
 * and everything else is refused by name, ACC_EREFUSED "pickle calls os.system: refused",
 * wherever it stands in the pickle, also where its result is thrown away. */
#ifndef ACC_PICKLE_H
#define ACC_PICKLE_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum acc_py_type {
	ACC_PY_NONE,
	ACC_PY_BOOL,   /* i */
	ACC_PY_INT,    /* i */
	ACC_PY_BIGINT, /* beyond 64 bits; s: little-endian two's complement bytes, empty where
	                  the pickle has decimals */
	ACC_PY_FLOAT,  /* f */
	ACC_PY_STR,    /* s, UTF-8; the raw bytes of a str of Python 2 */
	ACC_PY_BYTES,  /* s; also a bytearray */
	ACC_PY_LIST,   /* item[0..n) */
	ACC_PY_TUPLE,
	ACC_PY_SET,    /* also a frozenset */
	ACC_PY_DICT,   /* item[2 i] key, item[2 i + 1] value; n = 2 pairs; as written: an equal
	                  key may come twice, which no pickler writes */
	ACC_PY_GLOBAL, /* s: "module name", one blank between, at most 2,001 bytes */
	ACC_PY_PERSID, /* item[0]: the persistent id */
	ACC_PY_CALL    /* item[ACC_CALL_...], n = ACC_CALL_PARTS */
};

/* The parts of a call. The first is a GLOBAL; args is a TUPLE (NEWOBJ_EX: of the arguments
 * and a DICT); the others are NULL where the pickle has none. */
enum {
	ACC_CALL_NAME,
	ACC_CALL_ARGS,
	ACC_CALL_STATE, /* what BUILD gave it */
	ACC_CALL_LIST,  /* a LIST: what was appended to it */
	ACC_CALL_DICT,  /* a DICT: what was set in it */
	ACC_CALL_PARTS
};

struct acc_py {
	enum acc_py_type type;
	uint32_t n, cap; /* items */
	uint32_t mark;   /* 0; free for whoever walks the tree */
	union {
		int64_t i;
		double f;
		struct acc_str s;
		struct acc_py **item;
	};
	uint64_t pos; /* byte of the pickle at which it was made */
};

/* Run one pickle at p[0..n). *used (may be NULL) gets its length, for files that hold several.
 * Limits: 4 GiB, 16 million nodes, 64 million operations; memory within 32 MiB and
 * 100 bytes per byte of the pickle. Nodes share, and may hold themselves: bound the walk, not only its depth.
 * Strings point into p where they stand there unescaped, so p must live as long as the tree.
 * 0 or < 0 with the offset within the pickle. */
int acc_pickle_read(const void *p, size_t n, size_t *used, struct acc_py **root,
	struct acc_arena *m, struct acc_err *e);
/* The same of one that took `packed` bytes in its file: memory within 32 MiB and 100 bytes for each
 * of those, else ACC_ELIMIT. */
int acc_pickle_read_packed(const void *p, size_t n, uint64_t packed, size_t *used,
	struct acc_py **root, struct acc_arena *m, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
