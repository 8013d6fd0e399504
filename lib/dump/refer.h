/* refer.h - what a tensor's record says of its payload, or why it has none */
#ifndef DUMP_REFER_H
#define DUMP_REFER_H

#include "dump/say.h"

/* Add the reference; or, where *bad says that it is no good, what is known of it, and `err`.
 * `where` names the file in the report. 0 or < 0. */
int acc_dump_refer(struct acc_dump_ctx *c, struct dump_said *said, struct acc_rec *r,
	const struct acc_ref *ref, struct acc_err *bad, const char *where);

#endif
