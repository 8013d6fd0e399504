/* stacks.h - the frames of stacks, as a cell of a table shows them */
#ifndef ACC_FORMAT_STACKS_H
#define ACC_FORMAT_STACKS_H

#include "acc/record.h"

/* Zero it to start. */
struct acc_stacks {
	struct acc_map at;   /* id -> where in text, NUL-terminated */
	struct acc_buf text; /* of each stack, in one line */
};

/* Is it a key whose value is the id of a stack? */
bool acc_stacks_key(const char *key);
/* Learn a stack record; others are nothing to it. 0 or < 0. */
int acc_stacks_see(struct acc_stacks *s, const struct acc_rec *r, struct acc_err *e);
/* The frames of this id, innermost first, with "; " between them; the id where no record tells
 * them. Valid until the next stack is learnt. */
struct acc_str acc_stacks_get(const struct acc_stacks *s, struct acc_str id);
void acc_stacks_release(struct acc_stacks *s);

#endif
