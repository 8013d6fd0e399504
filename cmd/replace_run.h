/* replace_run.h - what accreplace runs: accdiff, and the user's command */
#ifndef ACC_REPLACE_RUN_H
#define ACC_REPLACE_RUN_H

#include "acc/payload.h"
#include "acc/stream.h"

/* The pairs: of two recordings by accdiff, which is started; else a stream, "-" or none: standard input. Only files
 * beneath the operands, or beside them, and beneath root[0 .. n) may be read. Dies on failure. */
struct acc_in *replace_open(const char *argv0, char *const *operand, int n, struct acc_roots *roots,
	const char *const *root, size_t nroot);
/* accdiff has ended; dies where it had trouble. */
void replace_wait(void);
/* Words as a shell takes them. */
const char *replace_quoted(struct acc_arena *m, char *const *operand, int n);
/* By the user's shell, its output on standard error, ACC_FEED in its environment: its status, as a shell says it. A
 * signal that ends this program ends it first. */
int replace_run(const char *command, const char *folder);

#endif
