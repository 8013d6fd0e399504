/* accept.h - what is known and accepted: ignored by name, held by a baseline, within wider limits
 *
 * For the judges that have limits of their own: two dumps, two checkpoints, one audited dump. Rules
 * of a user are edited instead.
 */
#ifndef ACC_ACCEPT_H
#define ACC_ACCEPT_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_accept;
struct acc_accept *acc_accept_new(struct acc_err *e);
void acc_accept_free(struct acc_accept *a);
/* Op calls and weights of these names are not accused: a pattern of acc_glob, or PATTERN=REASON, of
 * which the reason is said with what was left out. It stays the caller's. */
int acc_accept_ignore(struct acc_accept *a, const char *pattern, struct acc_err *e);
/* Limits are multiplied by this, 1 or more. */
void acc_accept_scale(struct acc_accept *a, double scale);
/* Lines of acc_accept_line, of a file of this name, which stays the caller's. 0 or < 0. */
int acc_accept_baseline(struct acc_accept *a, const char *text, size_t n, const char *path,
	struct acc_err *e);
#ifdef __cplusplus
}
#endif

#endif
