/* debugmode.h - a call in a log of torch's DebugMode, whether as text or as JSON */
#ifndef DUMP_DEBUGMODE_H
#define DUMP_DEBUGMODE_H

#include "dump/ctx.h"

/* One line of debug_string(), without what surrounds the call:
 *
 *	aten::mm(t$0: f32[2, 3], t: f32[3, 4], x=1.0)  ->  t$2: f32[2, 4]  # {'input_hash': ((1.5, 2.0), {}), 'hash': 3.0}
 */
struct debug_call {
	struct acc_str op;          /* aten::mm */
	struct acc_str args;        /* within its parentheses */
	struct acc_str out;         /* behind the arrow; empty: it gives nothing */
	struct acc_str given, made; /* hashes of the tensors in args and out, as text; or empty */
	struct acc_str scope;       /* the module around it; or empty */
};

struct debug_log {
	struct acc_dump_ctx *c;
	struct acc_map nth; /* of an operator, how many calls came */
	uint64_t calls, hashed, unhashed;
	struct acc_arena mem; /* of one call */
};

/* Is a line a call? Views into it. */
bool acc_debugmode_parse(struct acc_str line, struct debug_call *out);
/* Does a tensor stand in what a call takes or gives? */
bool acc_debugmode_has_tensor(const struct debug_call *call);
/* Hand on its tensors and arguments. 0 or < 0. */
int acc_debugmode_put(struct debug_log *d, const struct debug_call *call, struct acc_err *e);

#endif
