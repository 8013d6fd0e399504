/* values.h - what stands in a tensor, or in both of a pair, around one element: for people */
#ifndef ACC_VALUES_H
#define ACC_VALUES_H

#include <stdio.h>

#include "acc/payload.h"
#include "acc/record.h"
#include "acc/vocabulary.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Is it a tensor, or a pair with one, that goes by a name of this pattern on either side? */
bool acc_values_match(const struct acc_rec *r, const char *glob);
/* Print the elements around the worst one (m.worst; without it, the first) to out, a line each: 4 on
 * either side along the last axis, and 2 along each other. Files are those of r's sources, with what
 * acc_roots_allow says. 0; < 0: they cannot be read. A write error shows when out is closed. */
int acc_values_print(struct acc_roots *roots, const struct acc_rec *r, FILE *out,
	struct acc_err *e);

/* Print tokens as text, a row of the last axis a line, of a pair each side's; what is no token is <number>. As above. */
int acc_values_text(struct acc_roots *roots, const struct acc_rec *r,
	const struct acc_vocabulary *v, FILE *out, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
