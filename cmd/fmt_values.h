/* fmt_values.h - accfmt --values: what stands in a tensor */
#ifndef ACC_FMT_VALUES_H
#define ACC_FMT_VALUES_H

#include "acc/stream.h"
#include "acc/vocabulary.h"

/* The next record, in which each side has its own fields. As acc_in_next. */
int values_next(struct acc_in *in, struct acc_rec **r, struct acc_err *e);
/* The tensors of this name around their worst elements, as text by a vocabulary (or NULL). Their files are in the
 * folders of the operands, or in one of n others. */
void values_print(struct acc_in *in, const char *name, const struct acc_vocabulary *v,
	char *const *operand, const char *const *folder, size_t n);

#endif
