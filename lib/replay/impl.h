/* impl.h - the parts of an audit; see acc/replay.h for what a row of the table is */
#ifndef ACC_REPLAY_IMPL_H
#define ACC_REPLAY_IMPL_H

#include "replay/trial.h"

/* The families: each a table that ends with names == NULL. */
#define TABLE(name) extern const struct acc_op acc_ops_##name[];
#include "replay/table.h"
#undef TABLE
extern const struct acc_op acc_op_modulus; /* abs of complex numbers */

#endif
