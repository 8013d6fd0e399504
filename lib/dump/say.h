/* say.h - troubles of single tensors, but not without end: a copy without its tensors has
 * thousands of them */
#ifndef DUMP_SAY_H
#define DUMP_SAY_H

#include "acc/dump.h"

struct dump_said {
	unsigned said;
	uint64_t unsaid;
	uint64_t stored; /* tensors of acc_dump_say_stored */
};
/* Report it, or only count it. Forgets *e. */
void acc_dump_say(struct dump_said *s, struct acc_dump_ctx *c, struct acc_err *e);
/* The same, of a record that is incomplete: noted as its `err`. Nothing where *e is empty.
 * `where` names the file in the report. 0 or ACC_ENOMEM. */
int acc_dump_say_err(struct dump_said *s, struct acc_dump_ctx *c, struct acc_rec *r,
	struct acc_err *e, const char *where);
/* A file that should hold something is empty: a recorder that was stopped, a full disk. */
void acc_dump_say_empty(struct acc_dump_ctx *c, const char *dir, const char *file);
/* A tensor in a private format of the device, of which is not known what it stands for: that it is
 * read as it is stored is no trouble. Said of the first, the others are counted. `what` names it,
 * or is empty. */
void acc_dump_say_stored(struct dump_said *s, struct acc_dump_ctx *c, const char *where,
	const char *what, struct acc_str format, const char *why);
/* How many were only counted. */
void acc_dump_say_rest(struct dump_said *s, struct acc_dump_ctx *c, const char *where);

#endif
