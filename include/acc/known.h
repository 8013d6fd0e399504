/* known.h - the keys that programs write into records, see accstream(5)
 *
 * A rule or a column that names any other key would be empty on every record, which looks like
 * "nothing is wrong". The metrics of lib/metric/table.h are known, too. Keys that begin with
 * "x-" are users' own.
 */
#ifndef ACC_KNOWN_H
#define ACC_KNOWN_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct acc_known {
	const char *key;
	bool sided; /* about one record: in a pair it stands as a.KEY and b.KEY */
};
extern const struct acc_known acc_known[];
extern const size_t acc_nknown;

/* Does any program write this key? */
bool acc_key_known(struct acc_str key);
/* Is it a key that a program writes only where there is something to say (bad, note, err)? That no
 * record has such a key is an answer; of any other, it means that nothing was looked at. */
bool acc_key_speaks(struct acc_str key);
/* 0, or ACC_EUSAGE with what is wrong and which key may be meant. */
int acc_key_check(struct acc_str key, struct acc_err *e);

#ifdef __cplusplus
}
#endif

#endif
