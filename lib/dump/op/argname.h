/* argname.h - the name of one argument of an op call, as ptdbg_ascend and msprobe build it
 *
 *	Functional_linear_0_forward_input.0       ptdbg_ascend until v5
 *	Functional.linear.0.forward.input.0       v6, msprobe's file names
 *	Module.fc.Linear.forward.0.kwargs.mask    msprobe
 */
#ifndef DUMP_ARGNAME_H
#define DUMP_ARGNAME_H

#include "acc/dump.h"

struct argname {
	struct acc_str key;
	struct acc_str op; /* in dots: Functional.linear, whatever the name is written with */
	int64_t call;      /* -1: none */
	struct acc_str pass;
	const char *io;
	struct acc_str pos; /* "0" where the name has none: the only output */
};

/* Take a name apart: views into it, and a copy of op in m. A name that is none of these is its
 * own key, as the only output of itself. 0 or ACC_ENOMEM. */
int acc_dump_argname(struct acc_str name, struct acc_arena *m, struct argname *out);
/* The same for an op call's key; io and pos are empty. */
int acc_dump_argname_key(struct acc_str key, char sep, struct acc_arena *m, struct argname *out);
/* Just the key: a view into name. */
struct acc_str acc_dump_argname_find(struct acc_str name);
/* key, op, call, pass, io, pos as fields of r, which points to what *a does. 0 or < 0. */
int acc_dump_argname_put(struct acc_rec *r, const struct argname *a);

#endif
