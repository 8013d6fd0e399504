/* pysafe.h - which names a pickle may call; the rule stands in acc/pickle.h */
#ifndef LIB_IO_PYSAFE_H
#define LIB_IO_PYSAFE_H

#include "acc/base.h"

/* `name` is "module name"; `newobj`: created by NEWOBJ, not called. */
bool acc_pysafe(struct acc_str name, bool newobj);
/* The same of a function that is not called, but kept to be called later, with what it is given:
 * functools.partial. */
bool acc_pysafe_kept(struct acc_str name);
/* Is it on the list only because it calls its first argument, which is then to be judged? */
bool acc_pysafe_applies(struct acc_str name);

#endif
