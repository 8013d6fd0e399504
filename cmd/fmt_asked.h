/* fmt_asked.h - the keys that the user of accfmt named, and which of them occur */
#ifndef ACC_FMT_ASKED_H
#define ACC_FMT_ASKED_H

#include "acc/record.h"

void asked_add(const char *key);
/* Which of them has this record? */
void asked_look(const struct acc_rec *r);
/* Has no record had any of them? Nobody wants a table of nothing. */
bool asked_nothing_yet(void);
/* Keys that no program writes end the program; a stream of a newer version may hold some that are new. */
void asked_check(void);
/* Keys that exist, but not in this stream; one line. 2 where a column is empty that could not be
 * so if anything had been looked at: nobody may read it as zero. */
int asked_missing(void);

#endif
