/* cut.h - large calls in parts */
#ifndef ACC_REPLAY_CUT_H
#define ACC_REPLAY_CUT_H

#include "replay/impl.h"

/* Test a call whose tensors are open in parts. false: it cannot be cut, and nothing was done. */
bool acc_job_cut(struct acc_job *j, const struct acc_op *op);

#endif
