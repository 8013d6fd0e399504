/* The row that runs anywhere: SSE2 on x86-64, NEON on aarch64. */
#include <stdbool.h>

#include "kernel/prim_base.h"

static bool
always(void)
{
	return true;
}

#if defined(__SSE2__)
#define ROW_NAME "sse2"
#elif defined(__ARM_NEON)
#define ROW_NAME "neon"
#else
#define ROW_NAME "generic"
#endif
#define ROW acc_row_base
#define ROW_AUDIT acc_audit_base
#define ROW_USABLE always
#include "kernel/impl.h"
