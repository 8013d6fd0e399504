/* payload.h - the one tensor that a recorder saved in a file of its own */
#ifndef DUMP_PAYLOAD_H
#define DUMP_PAYLOAD_H

#include "acc/tensor.h"

/* The only tensor of a .pt or .npy file beneath dirfd, recognised by its first bytes.
 * ref->file is `file`, borrowed. In m. After a failure ref's shape stands where it is known. */
int acc_dump_payload(int dirfd, struct acc_str file, struct acc_ref *ref, struct acc_arena *m,
	struct acc_err *e);

#endif
