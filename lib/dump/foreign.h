/* foreign.h - files that are known by name, and not read */
#ifndef DUMP_FOREIGN_H
#define DUMP_FOREIGN_H

#include "acc/base.h"

struct foreign {
	const char *what;   /* "HDF5" */
	const char *advice; /* what to do for it to be read; NULL: nothing */
};
/* Of a file by its first bytes, or NULL. */
const struct foreign *acc_foreign(const uint8_t *head, size_t n);

/* Of a file in a run's folder that is no setting, curve or tensor of the run: what it is, or NULL.
 * `base` is its name without folders. */
const char *acc_run_clutter(struct acc_str base, const uint8_t *head, size_t n);

/* final_metrics.json, all_results.json: what a run ended with, and no settings? */
bool acc_foreign_results(struct acc_str base);

/* stack.json, net_stack.json: where the calls of a recorder's dump stand in its program? */
bool acc_foreign_stacks(struct acc_str base, const uint8_t *head, size_t n);

#endif
