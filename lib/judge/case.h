/* case.h - what the files of lib/judge share */
#ifndef JUDGE_CASE_H
#define JUDGE_CASE_H

#include "acc/judge.h"

#define ROW(name) extern const struct acc_judge acc_judge_##name;
#include "table.h"
#undef ROW

/* Is this finding a judge's, so that its stream needs no other judge? accalign writes some,
 * too. */
bool acc_is_judged(const struct acc_rec *finding);
/* The findings of the input become the case's, behind its own. */
int acc_take_findings(struct acc_case *c, struct acc_err *e);
/* Join the findings of earlier judges (several ranks judged alone). */
int acc_join(struct acc_case *c, struct acc_err *e);
void acc_out_free(struct acc_out *o);

/* What every judge says at the end: what is unmatched, what was not measured. */
int acc_say_rest(struct acc_case *c, struct acc_err *e);
/* "rank 1, step 3: " or "" of a call, in mem. NULL when memory runs out. */
const char *acc_say_where(struct acc_case *c, const struct acc_call *k);
/* The source line that made an op call: "model.py:41 in __init__: code", or "" where no stack
 * is known; *id gets the stack's id or NULL. NULL when memory runs out or reading fails. */
const char *acc_say_source(struct acc_case *c, const struct acc_call *k, const char **id,
	struct acc_err *e);
/* The device's key of a call, or the bench's. */
const char *acc_call_name(const struct acc_call *k);

#endif
