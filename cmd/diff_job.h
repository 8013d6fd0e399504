/* diff_job.h - two folders that hold several of configurations, logs, weights and dumps */
#ifndef ACC_DIFF_JOB_H
#define ACC_DIFF_JOB_H

#include "diff.h"

/* Compare two, of each kind the cheapest first, where both are a job's folders; else as
 * diff_compare does. The exit status. */
int diff_job(const struct diff_opt *opt, const char *device, const char *bench);

#endif
