/* The Makefile gives this file the flags of its instruction set. */
typedef int acc_not_empty; /* elsewhere than on x86-64 */

#if defined(__x86_64__)
#define AUDIT_ROW acc_audit_avx2
#include "kernel/audit_impl.h"
#endif
