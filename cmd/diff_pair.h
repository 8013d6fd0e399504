/* diff_pair.h - which parts of two folders belong together */
#ifndef ACC_DIFF_PAIR_H
#define ACC_DIFF_PAIR_H

#include "acc/operand.h"

struct couple {
	const struct acc_held_part *a, *b; /* NULL: the other is alone */
};
/* Of one kind, in the order of their names: `couples` of two, and `alone` what is left over (both of struct
 * couple). What has the same name belongs together, then what has the same name but for the ids of runs, then
 * what alone is called so in whatever folder; where each side has one more, these. Of weights and dumps those
 * of another step never do. */
void pair_up(const struct acc_holding held[2], enum acc_holds what, struct acc_buf *couples,
	struct acc_buf *alone);

#endif
