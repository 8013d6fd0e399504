/* The loops of an audit for any machine. */
#define AUDIT_ROW acc_audit_base
#include "kernel/audit_impl.h"
