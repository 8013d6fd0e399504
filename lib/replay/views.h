/* views.h - operators that only say where elements are */
#ifndef ACC_REPLAY_VIEWS_H
#define ACC_REPLAY_VIEWS_H

#include "replay/impl.h"
#include "replay/view.h"

/* Test a call whose tensors are open, where it is one of `views` and all is right. false: it has to
 * be looked at otherwise. */
bool acc_audit_job_views(struct acc_audit_job *j, const struct acc_op *op);
/* The same of one of `rows`. */
bool acc_audit_job_rows(struct acc_audit_job *j, const struct acc_op *op);

#endif
