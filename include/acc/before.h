/* before.h - what was judged of the device before it was changed, to tell what that mended
 *
 * A stream of accfirstbad's, of the older dump against the same bench, becomes what each op call or
 * weight was then. With acc_judge_opt.before, a judge says of each that was named what it is now.
 */
#ifndef ACC_BEFORE_H
#define ACC_BEFORE_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_before;
struct acc_before *acc_before_new(struct acc_err *e);
/* Take in a record of that stream. 0 or < 0. */
int acc_before_add(struct acc_before *b, const struct acc_rec *r, struct acc_err *e);
/* Was anything judged in it? */
bool acc_before_judged(const struct acc_before *b);
void acc_before_free(struct acc_before *b);

#ifdef __cplusplus
}
#endif

#endif
