/* aside.h - what is written now, and stands later in the output
 *
 * A stream of memory (open_memstream) may lose a byte where memory runs out, and go on; a file
 * remembers that it failed. */
#ifndef ACC_FORMAT_ASIDE_H
#define ACC_FORMAT_ASIDE_H

#include "acc/base.h"

/* A file without a name in that folder (NULL: /tmp), to write to; closed by fclose. NULL on failure. */
FILE *acc_aside_open(const char *tmpdir, struct acc_err *e);
/* All that was written to it goes to out, and it is empty again. 0 or < 0. */
int acc_aside_put(FILE *aside, FILE *out, struct acc_err *e);

#endif
